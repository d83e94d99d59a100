//! A round of the primal–dual active set.
//!
//! Given the free set F, with all other rows at a level of their box, solve f = kink on F with Σβ = 0 exactly. Then
//! rows of F that left their segment go to the level they crossed, and rows at a level whose residual has the wrong
//! sign become free. At a fixed point the KKT conditions hold.

use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::entry::Entry;
use crate::numeric::simd::{sums, within};
use crate::observe::Control;
use crate::solver::box_qp::factor::KktFactor;
use crate::solver::box_qp::problem::{BoxQp, Point};

/// What carries over between rounds, C's and problems on the same Gram.
#[derive(Default)]
pub(crate) struct ActiveSet<T> {
    /// The factor for the free set, in the precision of the Gram matrix.
    factor: Option<KktFactor<T>>,
    free: Vec<Free>,
}

/// A free row: the segment of its box it moves in and the f it wants.
#[derive(Clone, Copy)]
struct Free {
    row: usize,
    low: f64,
    high: f64,
    kink: f64,
}

/// What a round changed.
pub(crate) struct Round {
    /// Rows that left their segment and went to the level they crossed.
    pub clipped: usize,
    /// Rows that left their level.
    pub released: usize,
}

impl<T: Working> ActiveSet<T> {
    /// Drops the border of the factor, if there is one.
    pub fn reset(&mut self) {
        if let Some(factor) = &mut self.factor {
            factor.reset();
        }
    }

    /// Starts from the rows inside a segment and those the extrapolation expects to leave their level.
    /// (The others at a level are judged once f is right on these.)
    pub fn begin(&mut self, qp: &BoxQp<T>, point: &mut Point) {
        let free = |row: usize, rising: bool| {
            let beta = point.beta[row];
            let inside = qp.is_inside(row, beta);
            Free {
                row,
                low: if inside || !rising { qp.floor(row, beta) } else { beta },
                high: if inside || rising { qp.ceiling(row, beta) } else { beta },
                kink: if inside || rising { qp.up(row, beta) } else { qp.down(row, beta) },
            }
        };
        let inside = (0..qp.n()).filter(|&row| qp.is_inside(row, point.beta[row])).map(|row| free(row, true));
        let eager = point.eager.iter().filter(|(row, _)| !qp.is_inside(*row, point.beta[*row]));
        self.free = inside.chain(eager.map(|&(row, rising)| free(row, rising))).collect();
        self.free.sort_unstable_by_key(|free| free.row);
        point.eager.clear();
    }

    /// One round. Afterwards f = Kβ, and if nothing changed β is in the box with Σβ = 0 to rounding;
    /// `None` when there is no free row or the factor broke down. `slack` is the violation below
    /// which a row at a level stays there.
    pub fn round(&mut self, qp: &BoxQp<T>, point: &mut Point, slack: f64, control: &Control) -> Result<Option<Round>> {
        if self.free.is_empty() {
            return Ok(None);
        }
        let rows: Vec<usize> = self.free.iter().map(|free| free.row).collect();
        // Solved for the change of b, so that what single precision loses shrinks from round to round.
        let residual: Vec<f64> = self.free.iter().map(|free| free.kink - point.f[free.row] - point.b).collect();
        let (surplus, _) = sums(&point.beta);
        let factor = KktFactor::of(self.factor.take(), qp.gram, &rows, 0.0, T::RIDGE, control)?;
        let (step, shift) = self.factor.insert(factor).solve(qp.gram, &rows, &residual, -surplus)?;
        if !(shift.is_finite() && step.iter().all(|d| d.is_finite())) {
            self.factor = None;
            return Ok(None);
        }
        control.check()?;
        // Use what β really changes by: along a null direction of K_FF steps can be large, and rounding in β that f
        // does not share would break f = Kβ.
        let mut deltas = step;
        for (&row, delta) in rows.iter().zip(&mut deltas) {
            let old = point.beta[row];
            point.beta[row] += *delta;
            *delta = point.beta[row] - old;
        }
        point.add(qp, &rows, &deltas);
        point.b += shift;

        // Rows at a level are judged by the f of the unclipped solution; clipping comes after.
        let mut is_free = vec![false; qp.n()];
        let (mut next, mut clipped, mut deltas) = (Vec::with_capacity(self.free.len()), Vec::new(), Vec::new());
        for free in &self.free {
            is_free[free.row] = true;
            let beta = point.beta[free.row];
            let level = within(beta, free.low, free.high);
            if level == beta {
                next.push(*free);
            } else {
                clipped.push(free.row);
                deltas.push(level - beta);
            }
        }
        let stayed = next.len();
        let (rise, fall) = qp.margins(&point.beta, &point.f);
        let suspects =
            (0..qp.n()).filter(|&row| (rise[row] - point.b > slack || point.b - fall[row] > slack) && !is_free[row]);
        next.extend(suspects.filter_map(|row| wants_to_move(qp, point, row, slack)));
        let released = next.len() - stayed;
        next.sort_unstable_by_key(|free| free.row);
        for free in &self.free {
            point.beta[free.row] = within(point.beta[free.row], free.low, free.high);
        }
        point.add(qp, &clipped, &deltas);
        self.free = next;
        Ok(Some(Round { clipped: clipped.len(), released }))
    }
}

/// Frees a row at a level if its residual has the wrong sign by more than `slack`.
#[inline(always)]
fn wants_to_move<T: Entry>(qp: &BoxQp<T>, point: &Point, row: usize, slack: f64) -> Option<Free> {
    let beta = point.beta[row];
    let g = point.f[row] + point.b;
    let (up, down) = (qp.up(row, beta), qp.down(row, beta));
    if up - g > slack {
        Some(Free { row, low: beta, high: qp.ceiling(row, beta), kink: up })
    } else if g - down > slack {
        Some(Free { row, low: qp.floor(row, beta), high: beta, kink: down })
    } else {
        None
    }
}
