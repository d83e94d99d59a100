//! A round of the primal–dual active set.
//!
//! Given the free set F, the others at a level of their box, solve f = kink on F with Σβ = 0
//! exactly; then rows of F that left their segment go to the level they crossed, and rows at a
//! level whose residual has the wrong sign become free. At a fixed point the KKT conditions hold.

use crate::error::Result;
use crate::gram::Entry;
use crate::observe::Control;
use crate::problem::{BoxQp, Point};

use super::factor::KktFactor;

/// A border wider than this share of the base set is given up for a new factor.
const WIDEST_BORDER: f64 = 0.25;

/// What carries over between rounds, C's and problems on the same Gram.
#[derive(Default)]
pub(super) struct ActiveSet {
    factor: Option<KktFactor<f32>>,
    free: Vec<Free>,
    pub factorisations: usize,
    pub rounds: usize,
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
pub(super) struct Round {
    /// Rows that left their segment and went to the level they crossed.
    pub clipped: usize,
    /// Rows that left their level.
    pub released: usize,
}

impl ActiveSet {
    /// Drops the border of the factor, if there is one.
    pub fn reset(&mut self) {
        if let Some(factor) = &mut self.factor {
            factor.reset();
        }
    }

    /// Starts from the rows inside a segment. (Those at a level are judged once f is right on these.)
    pub fn begin<T: Entry>(&mut self, qp: &BoxQp<T>, point: &Point) {
        let inside = |&row: &usize| qp.is_inside(row, point.beta[row]);
        let free = |row: usize| {
            let beta = point.beta[row];
            Free { row, low: qp.floor(row, beta), high: qp.ceiling(row, beta), kink: qp.up(row, beta) }
        };
        self.free = (0..qp.n()).filter(inside).map(free).collect();
    }

    /// One round. Afterwards f = Kβ, and if nothing changed β is in the box with Σβ = 0 to rounding;
    /// `None` when the factor broke down. `slack` is the violation below which a row at a level
    /// stays there.
    pub fn round<T: Entry>(&mut self, qp: &BoxQp<T>, point: &mut Point, slack: f64, control: &Control) -> Result<Option<Round>> {
        if self.free.is_empty() {
            return Ok(None);
        }
        let rows: Vec<usize> = self.free.iter().map(|f| f.row).collect();
        // Solved for the change of b, so that what single precision loses shrinks from round to round.
        let residual: Vec<f64> = self.free.iter().map(|r| r.kink - point.f[r.row] - point.b).collect();
        let surplus: f64 = point.beta.iter().sum();
        let factor = self.factor_for(qp, &rows, control)?;
        let (step, shift) = factor.solve(qp.gram, &rows, &residual, -surplus);
        let b = point.b + shift;
        self.rounds += 1;
        if std::env::var("KP_TRACE").is_ok() { eprintln!("   surplus {surplus:.2e} residual {:.2e} step {:.2e} b {b}", residual.iter().fold(0.0f64, |a,v| a.max((v).abs())), step.iter().fold(0.0f64, |a,v| a.max(v.abs()))); }
        if !(b.is_finite() && step.iter().all(|d| d.is_finite())) {
            return Ok(None);
        }
        control.check()?;
        for (&row, step) in rows.iter().zip(&step) {
            point.beta[row] += step;
        }
        qp.gram.add_rows(&rows, &step, &mut point.f);
        point.b = b;

        // Rows at a level are judged by the f of the unclipped solution; clipping comes after.
        let mut is_free = vec![false; qp.n()];
        let (mut next, mut clipped, mut deltas) = (Vec::with_capacity(self.free.len()), Vec::new(), Vec::new());
        for free in &self.free {
            is_free[free.row] = true;
            let beta = point.beta[free.row];
            let level = beta.clamp(free.low, free.high);
            if level == beta {
                next.push(*free);
            } else {
                clipped.push(free.row);
                deltas.push(level - beta);
            }
        }
        let stayed = next.len();
        for row in 0..qp.n() {
            if !is_free[row]
                && let Some(free) = wants_to_move(qp, point, row, slack)
            {
                next.push(free);
            }
        }
        let released = next.len() - stayed;
        next.sort_unstable_by_key(|free| free.row);
        for free in &self.free {
            point.beta[free.row] = point.beta[free.row].clamp(free.low, free.high);
        }
        qp.gram.add_rows(&clipped, &deltas, &mut point.f);
        self.free = next;
        Ok(Some(Round { clipped: clipped.len(), released }))
    }

    fn factor_for<T: Entry>(&mut self, qp: &BoxQp<T>, rows: &[usize], control: &Control) -> Result<&mut KktFactor<f32>> {
        let keep = self.factor.as_ref().is_some_and(|factor| {
            let (new, total) = factor.columns_for(rows);
            let room = WIDEST_BORDER * factor.base_len().min(rows.len()) as f64 + 24.0;
            (total as f64) < room && new <= rows.len()
        });
        if !keep {
            self.factor = None;
            self.factor = Some(KktFactor::new(qp.gram, rows, control)?);
            self.factorisations += 1;
        }
        match &mut self.factor {
            Some(factor) => Ok(factor),
            None => unreachable!("just made"),
        }
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

/// Restores Σβ = 0 to rounding by moving the rows with the most room; appends what moved.
pub(crate) fn repair_sum<T: Entry>(qp: &BoxQp<T>, beta: &mut [f64], changed: &mut Vec<usize>, deltas: &mut Vec<f64>) {
    let mut surplus: f64 = beta.iter().sum();
    let scale: f64 = beta.iter().map(|b| b.abs()).sum();
    if surplus.abs() <= 1e-15 * scale {
        return;
    }
    // Rows inside their box first: moving one off a bound may be far from optimal.
    let room = |i: usize, beta: f64| if surplus > 0.0 { beta - qp.floor(i, beta) } else { qp.ceiling(i, beta) - beta };
    let mut candidates: Vec<(bool, f64, usize)> = (0..qp.n())
        .map(|i| (qp.is_inside(i, beta[i]), room(i, beta[i]), i))
        .filter(|(_, room, _)| *room > 0.0)
        .collect();
    candidates.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    for (inside, room, i) in candidates {
        // Half the room keeps a row inside.
        let take = surplus.abs().min(if inside { 0.5 * room } else { room });
        let old = beta[i];
        beta[i] -= take.copysign(surplus);
        changed.push(i);
        deltas.push(beta[i] - old);
        surplus -= old - beta[i];
        if surplus.abs() <= 1e-15 * scale {
            return;
        }
    }
}
