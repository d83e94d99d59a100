//! One Newton step of every problem: the systems, their solutions, and how far to go along them.
//!
//! The objective is ½‖w‖² + Σ h(g + b). Along (Δw, Δb), with Δg = ZΔw, its slope is
//!
//! ```text
//! (w + tΔw)ᵀΔw − Σ a(t)·(Δg + Δb),     a(t) = −h′(g + b + t(Δg + Δb))
//! ```
//!
//! where the frozen rows add what does not change with t. The slope rises with t, as the objective is convex.

use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::line_search::bracketed;
use crate::numeric::parallel;
use crate::numeric::simd::{dot, sums};
use crate::solver::low_rank::column::Column;
use crate::solver::low_rank::directions::{Directions, Equation, Preconditioner};
use crate::solver::low_rank::primal::Primal;
use crate::solver::low_rank::slopes::sum_over;
use crate::solver::low_rank::tuning::STEP_TARGET;

impl<T: Working> Primal<'_, T> {
    /// Takes a Newton step in every column that one is due for, as far as the column's objective falls.
    pub(super) fn step(
        &self,
        columns: &mut [&mut Column],
        c: f64,
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<()> {
        let mut columns: Vec<&mut Column> =
            columns.iter_mut().filter(|column| column.due).map(|column| &mut **column).collect();
        if columns.is_empty() {
            return Ok(());
        }
        let Self { design, copied, accuracy, control, .. } = *self;
        let equations = parallel::map(&columns, |Column { plan, s, error, scale, shift, .. }| Equation {
            plan: *plan,
            s,
            n_active: s.iter().filter(|s| **s > 0.0).count(),
            error,
            pull: shift.iter().map(|(_, shift)| shift).sum(),
            enough: STEP_TARGET * self.settings.tol * scale,
        });
        let directions = Directions { design, copied, accuracy, control }.all(&equations, preconditioner)?;
        let dw: Vec<&[f64]> = directions.iter().map(|d| &d[..self.design.rank()]).collect();
        let images = self.design.times(&dw, self.accuracy, self.control)?;
        let steps = columns.iter_mut().zip(&directions).zip(images);
        parallel::for_each(steps, |((column, direction), image)| {
            let (&db, dw) = direction.split_last().unwrap_or((&0.0, &[]));
            let t = self.line_search(column, dw, db, &image, c);
            column.w.iter_mut().zip(dw).for_each(|(w, d)| *w += t * d);
            column.g.iter_mut().zip(&image).for_each(|(g, d)| *g += t * d);
            column.b += t * db;
            column.shift = Vec::new();
        });
        Ok(())
    }

    /// A t in [0, 1] near the minimum of the objective along a direction. The slope of the objective rises with t.
    pub(super) fn line_search(&self, column: &Column, dw: &[f64], db: f64, image: &[f64], c: f64) -> f64 {
        let frozen = dot(&column.frozen.image, dw) + column.frozen.pull * db;
        let (linear, quadratic) = (dot(&column.w, dw) - frozen, dot(dw, dw));
        let (envelope, b) = (self.envelope(column), column.b);
        let slope = |t: f64| {
            let [pull] = sum_over(image.len(), |rows| {
                let (dg, [y, weight, centre, g]) = (&image[rows.clone()], self.stretch(column, rows));
                envelope.sum(
                    [y, weight, centre, g, dg],
                    #[inline(always)]
                    |of, [y, w, centre, g, dg]| {
                        let (a, _) = of.pull_and_curvature(y, c * w, centre, g + b + t * (dg + db));
                        [a * (dg + db)]
                    },
                )
            });
            linear + t * quadratic - pull
        };
        if column.shift.is_empty() {
            return bracketed(linear - dot(&column.a, image) - db * sums(&column.a).0, slope);
        }
        // A direction for the shifted a, which all rows would have inside their segments, need not be one of descent.
        let start = slope(0.0);
        if start < 0.0 { bracketed(start, slope) } else { 0.0 }
    }

    /// Subtracts what the shifts of a add to Zᵀa from the errors of the columns.
    pub(super) fn shift(&self, columns: &mut [&mut Column]) -> Result<()> {
        let mut shifted: Vec<&mut Column> =
            columns.iter_mut().map(|column| &mut **column).filter(|column| !column.shift.is_empty()).collect();
        if shifted.is_empty() {
            return Ok(());
        }
        let spread = |column: &&mut Column| {
            let mut values = vec![0.0; self.y.len()];
            column.shift.iter().for_each(|(i, shift)| values[*i] = *shift);
            values
        };
        let shifts = parallel::map(&shifted, spread);
        let images = self.pass_back(&shifts)?;
        for (column, image) in shifted.iter_mut().zip(images) {
            column.error.iter_mut().zip(image).for_each(|(error, image)| *error -= image);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::scalar::Loss;
    use crate::solver::low_rank::fixture::{Fixture, PIECEWISE, SMOOTH};

    /// The objective of the squared loss is quadratic: one step leads to where w = Zᵀa and Σa = 0.
    #[test]
    fn one_step_solves_a_quadratic_problem() {
        let (c, mut fixture) = (3.0, Fixture::new(300, 6));
        let (w, b, g, _) = fixture.column(Loss::Squared, c);
        let primal = fixture.primal(Loss::Squared);
        let mut column = primal.column((0, &fixture.weight), w, b, g, Vec::new());
        let mut columns = [&mut column];
        primal.round(&mut columns, c, 0.0).unwrap();
        primal.step(&mut columns, c, &mut Preconditioner::new(1)).unwrap();
        // The slope of r² is −2r.
        let f = fixture.times(&column.w);
        let a: Vec<f64> = (0..300).map(|i| 2.0 * c * fixture.weight[i] * (fixture.y[i] - f[i] - column.b)).collect();
        for (w, image) in column.w.iter().zip(fixture.transposed_times(&a)) {
            assert!((w - image).abs() < 1e-8, "{w} is not {image}");
        }
        assert!(a.iter().sum::<f64>().abs() < 1e-5, "{}", a.iter().sum::<f64>());
        assert!(column.g.iter().zip(f).all(|(g, f)| (g - f).abs() < 1e-12));
    }

    /// Along a random direction downhill, with some rows frozen, against the slope of the objective by differences.
    #[test]
    fn the_line_search_ends_near_the_minimum() {
        let (c, mut fixture) = (3.0, Fixture::new(300, 6));
        for loss in PIECEWISE.into_iter().chain(SMOOTH) {
            let (w, b, g, centre) = fixture.column(loss, c);
            let frozen: Vec<f64> = (0..6).map(|_| fixture.rng.f64() - 0.5).collect();
            let length = 4.0 * fixture.rng.f64();
            let primal = fixture.primal(loss);
            let mut column = primal.column((0, &fixture.weight), w, b, g, centre);
            (column.sigma, column.frozen.image, column.frozen.pull) = (1.0, frozen, 0.3);
            primal.look(&mut column, c);
            // The gradient: w − Zᵀa in w, where a has the frozen part.
            let image = fixture.transposed_times(&column.a);
            let dw: Vec<f64> = (0..6).map(|j| length * (image[j] + column.frozen.image[j] - column.w[j])).collect();
            let dg = fixture.times(&dw);
            let objective = |t: f64| {
                let w: Vec<f64> = column.w.iter().zip(&dw).map(|(w, d)| w + t * d).collect();
                let frozen = column.frozen.image.iter().zip(&w).map(|(image, w)| image * w).sum::<f64>();
                let envelope = primal.envelope(&column);
                // h is the integral of −a: from 0 to f in small steps of the midpoint rule.
                let h = |i: usize| {
                    let centre = column.centre.get(i).copied().unwrap_or(0.0);
                    let (from, to) = (column.g[i] + column.b, column.g[i] + t * dg[i] + column.b);
                    let at = |k: i32| from + (to - from) * (f64::from(k) + 0.5) / 200.0;
                    let a = |k: i32| envelope.pull_and_curvature(fixture.y[i], c * fixture.weight[i], centre, at(k)).0;
                    -(0..200).map(a).sum::<f64>() * (to - from) / 200.0
                };
                0.5 * w.iter().map(|w| w * w).sum::<f64>() - frozen + (0..300).map(h).sum::<f64>()
            };
            let found = primal.line_search(&column, &dw, 0.0, &dg, c);
            let slope = |t: f64| (objective(t + 1e-4) - objective(t - 1e-4)) / 2e-4;
            let (start, end) = (slope(0.0), slope(found));
            let is_flat = end.abs() <= 0.11 * start.abs() || found == 1.0 && end < 0.0;
            assert!(start < 0.0 && found > 0.0 && is_flat, "{loss:?}: {end} at {found}, {start} at 0");
        }
    }
}
