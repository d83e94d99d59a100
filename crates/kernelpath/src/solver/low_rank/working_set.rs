//! The rows that take part in the steps, while all other rows are frozen.
//!
//! With a piecewise-linear loss, most rows are far from a kink: their a is at a bound of a segment, and mostly stays
//! there. A frozen row adds a constant to Zᵀa, Σa and Σ|a|, so steps and passes need the other rows alone. When
//! the working set is solved, all rows are looked at again. If that shows that the gap is not small enough, rows
//! outside the set had a part in it, and the set grows.

use crate::error::Result;
use crate::loss::scalar::Loss;
use crate::numeric::cholesky::Working;
use crate::numeric::design::with_numbers;
use crate::numeric::parallel;
use crate::numeric::simd::sums;
use crate::solver::low_rank::column::{Column, Frozen};
use crate::solver::low_rank::directions::Preconditioner;
use crate::solver::low_rank::primal::{Primal, references};
use crate::solver::low_rank::proximal_loop::Goal;
use crate::solver::low_rank::tuning::{CHUNK, MAX_NEAR, NEAR_SHARE, ROWS_PER_INSIDE, SAMPLED_ROWS, SOLVED_ON_PART};

/// How many rows take part: of each column, the nearest to a kink,
///
/// ```text
/// times · max(n / NEAR_SHARE, ROWS_PER_INSIDE · rows inside a segment)
/// ```
///
/// where `times` is 1 at first, and doubles whenever the set was not enough.
pub(super) struct Growth {
    fewest: usize,
    times: usize,
    /// Rows that took part, and rows whose a turned out to change. If they were left out again, the sets might cycle.
    known: Vec<usize>,
}

impl Growth {
    /// For a problem of `n` rows.
    pub fn new(n: usize) -> Self {
        Self { fewest: n.div_ceil(NEAR_SHARE), times: 1, known: Vec::new() }
    }

    fn wanted(&self, inside: usize) -> usize {
        self.times.saturating_mul(self.fewest.max(ROWS_PER_INSIDE * inside))
    }

    /// Grows the set, given its rows and by how much a changed in all rows.
    pub fn was_not_enough(&mut self, rows: Vec<usize>, changes: &[Vec<f64>]) {
        self.times = self.times.saturating_mul(2);
        self.known = with_numbers(&references(changes));
        self.known.extend(rows);
    }
}

impl<T: Working> Primal<'_, T> {
    /// Rows whose a may change soon: the known ones, the rows inside a segment, and the rows nearest to a kink, of all
    /// columns. `None` if they are too many for a copy of their features to pay, or for the memory.
    pub(super) fn working_set(&self, columns: &[&mut Column], growth: &Growth) -> Option<Vec<usize>> {
        let n = self.y.len();
        let mut chosen = vec![0.0; n];
        for &i in &growth.known {
            chosen[i] = 1.0;
        }
        let reaches = parallel::map(columns, |column| self.reach(column, growth));
        parallel::for_each(chosen.chunks_mut(CHUNK).enumerate(), |(chunk, chosen)| {
            let mut before = vec![0.0; chosen.len()];
            for (column, &reach) in columns.iter().zip(&reaches) {
                before.copy_from_slice(chosen);
                let at = chunk * CHUNK..chunk * CHUNK + chosen.len();
                let rows = [self.y, column.weight, &column.g, &column.s].map(|values| &values[at.clone()]);
                let [y, weight, g, s] = rows;
                self.loss.fill(
                    [y, weight, g, s, &before],
                    [&mut *chosen],
                    #[inline(always)]
                    |loss, [y, w, g, s, before]| {
                        let close = distance(loss, y, w, g + column.b) <= reach;
                        [if s > 0.0 || close { 1.0 } else { before }]
                    },
                );
            }
        });
        let rows: Vec<usize> = (0..n).filter(|&i| chosen[i] > 0.0).collect();
        (2 * rows.len() <= n && rows.len() <= self.copied).then_some(rows)
    }

    /// The distance from a kink within which the wanted number of rows lies.
    fn reach(&self, column: &Column, growth: &Growth) -> f64 {
        let n = self.y.len();
        let inside = column.s.iter().filter(|s| **s > 0.0).count();
        // Of many rows, a sample says well enough how far to go.
        let stride = 1 + n / SAMPLED_ROWS;
        let distance = |i: usize| distance(self.loss, self.y[i], column.weight[i], column.g[i] + column.b);
        let mut distances: Vec<f64> = (0..n).step_by(stride).map(distance).collect();
        let wanted = (growth.wanted(inside) / stride).min(distances.len() - 1);
        let reach = *distances.select_nth_unstable_by(wanted, f64::total_cmp).1;
        if reach.is_finite() { reach } else { f64::MAX }
    }

    /// Minimises on these rows, with all others frozen.
    pub(super) fn descend_on(
        &self,
        rows: &[usize],
        columns: &mut [&mut Column],
        c: f64,
        goal: Goal,
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<()> {
        let (gathered, y) = (self.design.gather(rows, self.accuracy)?, picked(self.y, rows));
        let (design, copied) = (gathered.design(), self.copied - rows.len());
        let part = Primal { design, copied, y: &y, ..*self };
        let weights = parallel::map(columns.iter(), |column| picked(column.weight, rows));
        let mut parts =
            parallel::map(columns.iter().zip(&weights), |(column, weight)| part.restricted(column, weight, rows));
        let pulls: Vec<&[f64]> = parts.iter().map(|part| &part.a[..]).collect();
        let images = design.transposed_times(&pulls, self.accuracy, self.control)?;
        for ((part, column), image) in parts.iter_mut().zip(columns.iter()).zip(images) {
            part.freeze_rest_of(column, image);
        }
        let mut open: Vec<&mut Column> = parts.iter_mut().collect();
        let goal = Goal { share: SOLVED_ON_PART * goal.share, rounds: MAX_NEAR };
        // A column at a new centre already knows its next step; a look would find g outside of many segments.
        let mut fresh: Vec<&mut Column> =
            open.iter_mut().map(|part| &mut **part).filter(|part| part.shift.is_empty()).collect();
        part.round(&mut fresh, c, goal.share)?;
        part.descend(&mut open, c, goal, None, preconditioner)?;
        let w: Vec<&[f64]> = parts.iter().map(|part| &part.w[..]).collect();
        let products = self.design.times(&w, self.accuracy, self.control)?;
        for ((column, part), g) in columns.iter_mut().zip(parts).zip(products) {
            rows.iter().zip(&part.centre).for_each(|(&i, centre)| column.centre[i] = *centre);
            column.outcome.steps += part.outcome.steps;
            (column.w, column.b, column.g, column.sigma) = (part.w, part.b, g, part.sigma);
            column.shift = Vec::new();
        }
        Ok(())
    }

    /// A column of a larger problem, of which `self` has these rows. Nothing is frozen yet.
    fn restricted<'b>(&self, column: &Column, weight: &'b [f64], rows: &[usize]) -> Column<'b> {
        let pick = |values: &[f64]| picked(values, rows);
        let place = |&(i, shift): &(usize, f64)| (rows.partition_point(|&row| row < i), shift);
        Column {
            sigma: column.sigma,
            widest: column.widest,
            a: pick(&column.a),
            s: pick(&column.s),
            scale: column.scale,
            shift: column.shift.iter().map(place).collect(),
            error: column.error.clone(),
            due: column.due,
            ..self.column((column.plan, weight), column.w.clone(), column.b, pick(&column.g), pick(&column.centre))
        }
    }
}

impl Column<'_> {
    /// Freezes all rows of `whole` that are not rows of this part of it. `image` is the part's Zᵀa.
    fn freeze_rest_of(&mut self, whole: &Column, image: Vec<f64>) {
        let ((_, all_size), (part, part_size)) = (sums(&whole.a), sums(&self.a));
        let rest = (whole.frozen.image.iter().zip(&whole.image)).zip(&image);
        self.frozen = Frozen {
            image: rest.map(|((frozen, all), part)| frozen + all - part).collect(),
            // Σa of the whole is 0 only as far as its gap asks for. The part alone may be unable to make up for the rest,
            // and b would run away.
            pull: -part,
            size: whole.frozen.size + all_size - part_size,
        };
        self.image = image;
    }
}

fn picked(values: &[f64], rows: &[usize]) -> Vec<f64> {
    rows.iter().map(|&i| values[i]).collect()
}

/// How far a row is from a kink; ∞ for rows without weight, and losses without kinks.
#[inline(always)]
fn distance(loss: Loss, y: f64, weight: f64, g: f64) -> f64 {
    match loss.kinks(y) {
        Some(k) => {
            let distance = (g - k.kink_low).abs().min((g - k.kink_high).abs());
            if weight > 0.0 { distance } else { f64::INFINITY }
        }
        None => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::low_rank::fixture::{Fixture, PIECEWISE};

    #[test]
    fn a_set_that_was_not_enough_doubles() {
        let mut growth = Growth::new(1000);
        assert_eq!((growth.wanted(3), growth.wanted(100)), (50, 200));
        growth.was_not_enough(vec![7], &[vec![0.0, 0.0, 1.0, 0.0], vec![-2.0, 0.0, 0.0, 0.0]]);
        assert_eq!((growth.wanted(3), growth.wanted(100)), (100, 400));
        assert_eq!(growth.known, [0, 2, 7]);
    }

    /// Against all distances, sorted.
    #[test]
    fn the_rows_nearest_to_a_kink_take_part() {
        let (c, mut fixture) = (1.0, Fixture::new(500, 4));
        for loss in PIECEWISE {
            let (w, b, g, centre) = fixture.column(loss, c);
            let primal = fixture.primal(loss);
            let mut column = primal.column((0, &fixture.weight), w, b, g, centre);
            (column.sigma, column.s[11], column.s[12]) = (1.0, 1.0, 1.0);
            let growth = Growth { fewest: 30, times: 2, known: vec![13, 499] };
            let rows = primal.working_set(&[&mut column], &growth).unwrap();
            let distance = |i: usize| {
                let k = loss.kinks(fixture.y[i]).unwrap();
                let f = column.g[i] + column.b;
                (f - k.kink_low).abs().min((f - k.kink_high).abs())
            };
            let mut nearest: Vec<usize> = (0..500).filter(|&i| fixture.weight[i] > 0.0).collect();
            nearest.sort_by(|&i, &k| distance(i).total_cmp(&distance(k)));
            nearest.truncate(61); // all that are no farther than the one after 60 others
            nearest.extend([11, 12, 13, 499]);
            nearest.sort_unstable();
            nearest.dedup();
            assert_eq!(rows, nearest, "{loss:?}");
            let few = Primal { copied: rows.len() - 1, ..primal };
            assert!(few.working_set(&[&mut column], &growth).is_none());
            assert!(primal.working_set(&[&mut column], &Growth { times: 9, ..growth }).is_none());
        }
    }

    /// A step on the part sees the errors, the objective's slopes and Σa of the whole.
    #[test]
    fn frozen_rows_add_what_they_added_before() {
        let (c, mut fixture) = (1.0, Fixture::new(120, 4));
        let rows: Vec<usize> = (0..120).filter(|i| i % 3 == 0).collect();
        for loss in PIECEWISE {
            let (w, b, g, centre) = fixture.column(loss, c);
            let primal = fixture.primal(loss);
            let mut whole = primal.column((0, &fixture.weight), w, b, g, centre);
            whole.sigma = 1.0;
            primal.look(&mut whole, c);
            whole.image = fixture.transposed_times(&whole.a);
            whole.shift = vec![(3, 0.5), (117, -0.5)];
            let weight = picked(&fixture.weight, &rows);
            let mut part = primal.restricted(&whole, &weight, &rows);
            assert_eq!(part.shift, [(1, 0.5), (39, -0.5)]);
            let of_rows: Vec<f64> = (0..120).map(|i| if i % 3 == 0 { whole.a[i] } else { 0.0 }).collect();
            part.freeze_rest_of(&whole, fixture.transposed_times(&of_rows));
            for (j, all) in whole.image.iter().enumerate() {
                assert!((part.image[j] + part.frozen.image[j] - all).abs() < 1e-12);
            }
            let of_others = |of: fn(f64) -> f64| (0..120).filter(|i| i % 3 > 0).map(|i| of(whole.a[i])).sum::<f64>();
            assert!((part.frozen.pull - of_others(|a| a)).abs() < 1e-12);
            assert!((part.frozen.size - of_others(f64::abs)).abs() < 1e-12);
        }
    }
}
