//! Where the descent at a C starts: at the best constant, or from the solutions at smaller C's.

use crate::certify::certificate::weighted;
use crate::loss::intercept::best_intercept;
use crate::numeric::cholesky::Working;
use crate::numeric::simd::dot;
use crate::solver::low_rank::column::Column;
use crate::solver::low_rank::primal::Primal;

impl<T: Working> Primal<'_, T> {
    /// w = 0 with the best constant b, and slopes of the loss there that sum to 0.
    pub(super) fn constant<'b>(&self, plan: usize, weight: &'b [f64], c: f64) -> Column<'b> {
        let n = self.y.len();
        let b = best_intercept(self.loss, self.y, weight, &vec![0.0; n], 0.0);
        let slopes = |i: usize| {
            let Some(k) = self.loss.kinks(self.y[i]) else { return (0.0, 0.0) };
            let near = |kink: f64| (kink - b).abs() <= 1e-9 * (kink.abs() + b.abs());
            let pull = self.loss.pull(self.y[i], b);
            let at_kink = [(k.kink_low, k.lo, k.mid), (k.kink_high, k.mid, k.hi)].into_iter().filter(|at| near(at.0));
            let (low, high) = at_kink.fold((pull, pull), |(low, high), (_, lo, hi)| (low.min(lo), high.max(hi)));
            (c * weight[i] * low, c * weight[i] * high)
        };
        let (low, high) = (0..n).map(slopes).fold((0.0, 0.0), |(low, high), (l, h)| (low + l, high + h));
        let share = if high > low { (-low / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        let centre = if self.is_smooth() {
            Vec::new()
        } else {
            (0..n).map(slopes).map(|(low, high)| low + share * (high - low)).collect()
        };
        self.column((plan, weight), vec![0.0; self.design.rank()], b, vec![0.0; n], centre)
    }

    /// The start at a C that is `factor` times as large as the last: all of the solution but b grows with the boxes.
    pub(super) fn scaled<'b>(&self, last: &Column<'b>, factor: f64) -> Column<'b> {
        let grown = |values: &[f64]| values.iter().map(|v| v * factor).collect::<Vec<f64>>();
        let centre = if self.is_smooth() { Vec::new() } else { grown(&last.a) };
        let column = self.column((last.plan, last.weight), grown(&last.w), last.b, grown(&last.g), centre);
        Column { a: grown(&last.a), image: grown(&last.image), ..column }
    }

    /// The line in C through the last two solutions, or the last one, whichever has the smaller objective.
    pub(super) fn extrapolated<'b>(&self, last: &Column<'b>, before: &Column<'b>, t: f64, c: f64) -> Column<'b> {
        let b_at = |t: f64| last.b + t * (last.b - before.b);
        let line = |a: &[f64], b: &[f64], t: f64| a.iter().zip(b).map(|(a, b)| a + t * (a - b)).collect::<Vec<f64>>();
        let objective = |t: f64| {
            let (w, b) = (line(&last.w, &before.w, t), b_at(t));
            let [losses] = self.loss.sum(
                [self.y, last.weight, &last.g, &before.g],
                #[inline(always)]
                |loss, [y, weight, g, g_before]| [weighted(weight, loss.value(y, g + t * (g - g_before) + b))],
            );
            0.5 * dot(&w, &w) + c * losses
        };
        let t = if objective(t) < objective(0.0) { t } else { 0.0 };
        let mut centre = Vec::new();
        if !self.is_smooth() {
            centre = vec![0.0; self.y.len()];
            self.loss.fill(
                [self.y, last.weight, &last.a, &before.a],
                [&mut centre],
                #[inline(always)]
                |loss, [y, weight, a, a_before]| {
                    let ((lo, hi), cw) = (loss.domain(y), c * weight);
                    [(a + t * (a - a_before)).max(cw * lo).min(cw * hi)]
                },
            );
        }
        let (w, b, g) = (line(&last.w, &before.w, t), b_at(t), line(&last.g, &before.g, t));
        let column = self.column((last.plan, last.weight), w, b, g, centre);
        let (a, image) = (line(&last.a, &before.a, t), line(&last.image, &before.image, t));
        Column { a, image, scale: last.scale, ..column }
    }
}

#[cfg(test)]
mod tests {
    use crate::loss::scalar::Loss;
    use crate::solver::low_rank::fixture::{Fixture, PIECEWISE};

    /// Every slope is one of the loss at b, and together they are 0.
    #[test]
    fn the_constant_model_has_slopes_that_sum_to_0() {
        let (c, fixture) = (2.0, Fixture::new(200, 3));
        for loss in PIECEWISE {
            let column = fixture.primal(loss).constant(0, &fixture.weight, c);
            assert!(column.w.iter().chain(&column.g).all(|v| *v == 0.0));
            let sum: f64 = column.centre.iter().sum();
            assert!(sum.abs() < 1e-9, "{loss:?}: {sum}");
            for (i, &a) in column.centre.iter().enumerate() {
                // A subgradient: no other f is below the line of slope −a/(C·w) through the loss at b.
                let (y, cw) = (fixture.y[i], c * fixture.weight[i]);
                for k in -30..=30 {
                    let f = 0.1 * f64::from(k);
                    let line = cw * loss.value(y, column.b) - a * (f - column.b);
                    assert!(cw * loss.value(y, f) >= line - 1e-9, "{loss:?}, row {i}");
                }
            }
            let at = |b: f64| fixture.objective(loss, c, &column.w, b);
            let best = (-300..=300).map(|k| at(0.01 * f64::from(k))).fold(f64::INFINITY, f64::min);
            assert!(at(column.b) <= best + 1e-9, "{loss:?}: {} is not the best constant", column.b);
        }
    }

    #[test]
    fn all_but_the_intercept_grows_with_c() {
        let mut fixture = Fixture::new(50, 3);
        let (w, b, g, centre) = fixture.column(Loss::Hinge, 1.0);
        let primal = fixture.primal(Loss::Hinge);
        let mut last = primal.column((0, &fixture.weight), w, b, g, centre);
        last.a = (0..50).map(f64::from).collect();
        let start = primal.scaled(&last, 4.0);
        assert_eq!(start.b, last.b);
        for (start, last) in [(&start.w, &last.w), (&start.g, &last.g), (&start.a, &last.a), (&start.centre, &last.a)] {
            assert!(start.iter().zip(last).all(|(start, last)| *start == 4.0 * last));
        }
    }

    /// The line is followed where the objective falls along it, and slopes stay in their boxes.
    #[test]
    fn the_line_is_followed_where_it_leads_down() {
        let (c, mut fixture) = (1.0, Fixture::new(100, 3));
        let (_, _, _, centre) = fixture.column(Loss::Hinge, c);
        let primal = fixture.primal(Loss::Hinge);
        let at = |first: f64| {
            let w = vec![first, 0.0, 0.0];
            let mut column = primal.column((0, &fixture.weight), w.clone(), 0.0, fixture.times(&w), Vec::new());
            column.a = centre.iter().map(|a| first * a).collect();
            column
        };
        // The first feature says what y is.
        for (before, last, expected) in [(0.0, 1.0, 3.0), (1.0, 0.0, 0.0)] {
            let start = primal.extrapolated(&at(last), &at(before), 2.0, c);
            assert!((start.w[0] - expected).abs() < 1e-12, "{} is not {expected}", start.w[0]);
            for (i, centre) in start.centre.iter().enumerate() {
                let ((lo, hi), cw) = (Loss::Hinge.domain(fixture.y[i]), c * fixture.weight[i]);
                assert!(*centre >= cw * lo && *centre <= cw * hi);
                assert!((start.a[i] - expected * at(1.0).a[i]).abs() < 1e-12);
            }
        }
    }
}
