//! The slopes and curvatures of all rows at a model.
//!
//! With h the loss times C·w, or its [envelope](crate::loss::envelope),
//!
//! ```text
//! a = −h′(g + b),     S = h″(g + b),     b such that Σa = 0
//! ```
//!
//! Only with Σa = 0 is a dual feasible, so the intercept moves first.

use std::ops::Range;

use crate::loss::envelope::Envelope;
use crate::loss::intercept::balanced;
use crate::numeric::cholesky::Working;
use crate::numeric::parallel;
use crate::numeric::simd::dot;
use crate::solver::low_rank::column::Column;
use crate::solver::low_rank::primal::Primal;
use crate::solver::low_rank::tuning::{CHUNK, UNBALANCED, UNCHANGED, UNKNOWN_GAP};

/// y, weights, centre and g (without b) of some rows.
pub(super) type Stretch<'a> = [&'a [f64]; 4];

impl<T: Working> Primal<'_, T> {
    pub(super) fn envelope(&self, column: &Column) -> Envelope {
        Envelope { loss: self.loss, sigma: column.sigma }
    }

    /// y, weights, centre and g of some rows.
    pub(super) fn stretch<'b>(&'b self, column: &'b Column, rows: Range<usize>) -> Stretch<'b> {
        // Smooth losses have no centre, and do not ask for it.
        let centre = if column.centre.is_empty() { &column.g } else { &column.centre };
        [self.y, column.weight, centre, &column.g].map(|values| &values[rows.clone()])
    }

    /// Moves b to where Σa = 0, and computes a, S and the objective there. Returns by how much a changed.
    pub(super) fn look(&self, column: &mut Column, c: f64) -> Vec<f64> {
        self.balance(column, c);
        let (mut a, mut s) = (std::mem::take(&mut column.a), std::mem::take(&mut column.s));
        let (envelope, b, mut change) = (self.envelope(column), column.b, vec![0.0; a.len()]);
        let chunks = a.chunks_mut(CHUNK).zip(s.chunks_mut(CHUNK)).zip(change.chunks_mut(CHUNK)).enumerate();
        let sums: Vec<[f64; 2]> = parallel::map(chunks, |(chunk, ((a, s), change))| {
            let [y, weight, centre, g] = self.stretch(column, chunk * CHUNK..chunk * CHUNK + a.len());
            let before = a.to_vec();
            envelope.fill(
                [y, weight, centre, g, &before],
                [&mut *a, s, change],
                #[inline(always)]
                |of, [y, w, centre, g, before]| {
                    let (a, s) = of.pull_and_curvature(y, c * w, centre, g + b);
                    // A change within rounding is none: most rows stay at a bound.
                    let change = if (a - before).abs() <= UNCHANGED * a.abs() { 0.0 } else { a - before };
                    [a, s, change]
                },
            );
            envelope.sum(
                [y, weight, g, &*a],
                #[inline(always)]
                |of, [y, w, g, a]| [c * w * of.loss.value(y, g + b), of.mismatch(y, c * w, a, g + b)],
            )
        });
        let [loss, mismatch] = added(&sums);
        (column.a, column.s) = (a, s);
        column.primal = loss + 0.5 * dot(&column.w, &column.w);
        column.mismatch = mismatch;
        change
    }

    /// Moves b to the root of Σa, which falls as b rises.
    pub(super) fn balance(&self, column: &mut Column, c: f64) {
        let envelope = self.envelope(column);
        // Σa, ΣS and Σ|a|.
        let sums = |b: f64| {
            sum_over(self.y.len(), |rows| {
                envelope.sum(
                    self.stretch(column, rows),
                    #[inline(always)]
                    |of, [y, w, centre, g]| {
                        let (a, s) = of.pull_and_curvature(y, c * w, centre, g + b);
                        [a, s, a.abs()]
                    },
                )
            })
        };
        let (pull_frozen, size_frozen) = (column.frozen.pull, column.frozen.size);
        let scale = self.loss.scale(self.y);
        let wanted = self.settings.tol * column.scale;
        let gap = if column.progress.gap.is_finite() { column.progress.gap } else { UNKNOWN_GAP * wanted };
        // A Σa of r adds at most |r|·(|b| + scale) to the gap.
        let enough = UNBALANCED * gap / (column.b.abs() + scale);
        let sums = |b: f64| {
            let [pull, curvature, size] = sums(b);
            let (pull, size) = (pull + pull_frozen, size + size_frozen);
            (if pull.abs() <= enough.max(1e-14 * size) { 0.0 } else { pull }, curvature)
        };
        let enough =
            |b: f64, step: f64, width: f64| step <= f64::EPSILON * (b.abs() + scale) || width <= 1e-15 * b.abs();
        column.b = balanced(column.b, scale, sums, enough);
    }
}

/// Sums over all rows, chunk by chunk on all threads.
pub(super) fn sum_over<const K: usize>(n: usize, of: impl Fn(Range<usize>) -> [f64; K] + Sync) -> [f64; K] {
    added(&parallel::map((0..n).step_by(CHUNK), |start| of(start..n.min(start + CHUNK))))
}

fn added<const K: usize>(parts: &[[f64; K]]) -> [f64; K] {
    let mut sum = [0.0; K];
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::scalar::Loss;
    use crate::solver::low_rank::fixture::{Fixture, PIECEWISE, SMOOTH};

    /// In more than one chunk, against the scalar formulas row by row.
    #[test]
    fn a_and_s_are_those_of_each_row_and_a_sums_to_0() {
        let (c, mut fixture) = (0.7, Fixture::new(CHUNK + 77, 3));
        for loss in PIECEWISE.into_iter().chain(SMOOTH) {
            let (w, b, g, centre) = fixture.column(loss, c);
            let primal = fixture.primal(loss);
            let mut column = primal.column((0, &fixture.weight), w, b, g, centre);
            column.sigma = 2.0;
            column.a.fill(0.25);
            let change = primal.look(&mut column, c);
            let envelope = Envelope { loss, sigma: 2.0 };
            let (mut sum, mut size, mut mismatch) = (0.0, 0.0, 0.0);
            for (i, (&y, &weight)) in fixture.y.iter().zip(&fixture.weight).enumerate() {
                let at = column.g[i] + column.b;
                let centre = column.centre.get(i).copied().unwrap_or(0.0);
                let (a, s) = envelope.pull_and_curvature(y, c * weight, centre, at);
                assert!((column.a[i] - a).abs() <= 1e-14 * a.abs() && column.s[i] == s, "{loss:?}, row {i}");
                assert!((change[i] - (a - 0.25)).abs() < 1e-12, "{loss:?}, row {i}: {}", change[i]);
                (sum, size) = (sum + a, size + a.abs());
                mismatch += envelope.mismatch(y, c * weight, a, at);
            }
            assert!(sum.abs() <= 1e-9 * size, "{loss:?}: the slopes sum to {sum}");
            let objective = fixture.objective(loss, c, &column.w, column.b);
            assert!((column.primal - objective).abs() < 1e-10 * objective, "{loss:?}: {}", column.primal);
            assert!((column.mismatch - mismatch).abs() <= 1e-10 * mismatch, "{loss:?}: {}", column.mismatch);
        }
    }

    /// The frozen rows pull, too: the slopes of the others sum to minus their pull.
    #[test]
    fn frozen_rows_count() {
        let mut fixture = Fixture::new(200, 3);
        let (w, b, g, _) = fixture.column(Loss::Logistic, 1.0);
        let primal = fixture.primal(Loss::Logistic);
        let mut column = primal.column((0, &fixture.weight), w, b, g, Vec::new());
        column.frozen.pull = 5.0;
        primal.look(&mut column, 1.0);
        let sum: f64 = column.a.iter().sum();
        assert!((sum + 5.0).abs() < 1e-6, "{sum}");
    }
}
