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
    pub clipped: usize,
    pub released: usize,
}

impl ActiveSet {
    /// Drops the border of the factor, if there is one.
    pub fn reset(&mut self) {
        if let Some(factor) = &mut self.factor {
            factor.reset();
        }
    }

    /// One round from `point`, which stays dual feasible with f = Kβ. `slack` is the violation below
    /// which a row at a level stays there.
    pub fn round<T: Entry>(&mut self, qp: &BoxQp<T>, point: &mut Point, slack: f64, control: &Control) -> Result<Round> {
        let (free, released) = free_rows(qp, point, slack);
        if free.is_empty() {
            return Ok(Round { clipped: 0, released: 0 });
        }
        let rows: Vec<usize> = free.iter().map(|f| f.row).collect();
        let residual: Vec<f64> = free.iter().map(|r| r.kink - point.f[r.row]).collect();
        let surplus: f64 = point.beta.iter().sum();
        let factor = self.factor_for(qp, &rows, control)?;
        let (step, b) = factor.solve(qp.gram, &rows, &residual, -surplus);
        self.rounds += 1;
        if !(b.is_finite() && step.iter().all(|d| d.is_finite())) {
            return Ok(Round { clipped: usize::MAX, released });
        }
        control.check()?;
        let mut changed = rows;
        let mut deltas = Vec::with_capacity(step.len());
        let mut clipped = 0;
        for (free, step) in free.iter().zip(&step) {
            let old = point.beta[free.row];
            let new = (old + step).clamp(free.low, free.high);
            clipped += usize::from(new != old + step);
            point.beta[free.row] = new;
            deltas.push(new - old);
        }
        repair_sum(qp, &mut point.beta, &mut changed, &mut deltas);
        qp.gram.add_rows(&changed, &deltas, &mut point.f);
        point.b = b;
        Ok(Round { clipped, released })
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

/// Rows inside a segment, and rows at a level that the current b and f want to move.
fn free_rows<T: Entry>(qp: &BoxQp<T>, point: &Point, slack: f64) -> (Vec<Free>, usize) {
    let mut free = Vec::new();
    let mut released = 0;
    for row in 0..qp.n() {
        let beta = point.beta[row];
        let g = point.f[row] + point.b;
        let (up, down) = (qp.up(row, beta), qp.down(row, beta));
        let inside = qp.is_inside(row, beta);
        if inside {
            free.push(Free { row, low: qp.floor(row, beta), high: qp.ceiling(row, beta), kink: up });
        } else if up - g > slack {
            free.push(Free { row, low: beta, high: qp.ceiling(row, beta), kink: up });
            released += 1;
        } else if g - down > slack {
            free.push(Free { row, low: qp.floor(row, beta), high: beta, kink: down });
            released += 1;
        }
    }
    (free, released)
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
