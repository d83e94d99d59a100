//! How one problem is minimised.

mod active_set;
mod factor;
mod smo;

pub(crate) use active_set::repair_sum;

use crate::error::Result;
use crate::gram::Entry;
use crate::observe::Control;
use crate::problem::{BoxQp, Outcome, Point, Settings, Status};
use crate::simd::vectorise;
use active_set::ActiveSet;

/// Rounds tried before the solver goes back to SMO.
const MAX_ROUNDS: usize = 12;

/// Rounds come first when at least one row in this many is free.
const ROUNDS_SHARE: usize = 16;

/// The solver for piecewise-linear losses: SMO from a warm start, finished by active-set rounds.
#[derive(Default)]
pub(crate) struct BoxSolver {
    active_set: ActiveSet,
}

/// Dual objective and gap of a dual-feasible point.
#[derive(Clone, Copy)]
struct Judgement {
    dual: f64,
    gap: f64,
}

impl Judgement {
    fn relative(self) -> f64 {
        let scale = self.dual.abs().max((self.dual + self.gap).abs());
        if scale > 0.0 { self.gap / scale } else { self.gap }
    }
}

impl BoxSolver {
    /// Forgets what belongs to the last problem but keeps the factor of its free set.
    pub fn reset(&mut self) {
        self.active_set.reset();
    }

    /// Minimises from `point`, which must be dual feasible with f = Kβ.
    pub fn solve<T: Entry>(
        &mut self,
        qp: &BoxQp<T>,
        point: &mut Point,
        settings: &Settings,
        control: &Control,
    ) -> Result<Outcome> {
        // The certificate recomputes Kβ; leave room for its rounding.
        let tol = 0.9 * settings.tol;
        let mut steps = 0;
        let mut budget = 0;
        let surplus: f64 = point.beta.iter().sum();
        if surplus.abs() <= 1e-13 * point.beta.iter().map(|b| b.abs()).sum::<f64>()
            && let Some(status) = ended(judge(qp, point, tol), tol, steps, settings, control)
        {
            return Ok(Outcome { status, steps });
        }
        let inside = (0..qp.n()).filter(|&i| qp.is_inside(i, point.beta[i])).count();
        // Rounds pay when the extrapolated free set is large; SMO finds a small one faster.
        let mut try_rounds = inside * ROUNDS_SHARE > qp.n();
        if !try_rounds {
            self.restore_sum(qp, point);
        }
        loop {
            if try_rounds {
                let before = point.clone();
                let ended = self.rounds(qp, point, tol, &mut steps, settings, control)?;
                if let Some(status) = ended {
                    return Ok(Outcome { status, steps });
                }
                let reached = judge(qp, point, tol);
                let mut start = before;
                self.restore_sum(qp, &mut start);
                if !(reached.dual >= judge(qp, &mut start, tol).dual) {
                    *point = start;
                }
            }
            budget = if budget == 0 { 4 * inside + 128 } else { 2 * budget };
            let mut taken = 0;
            while taken < budget {
                let judgement = judge(qp, point, tol);
                if let Some(status) = ended(judgement, tol, steps, settings, control) {
                    return Ok(Outcome { status, steps });
                }
                let target = violation_target(qp, judgement, tol);
                let most = (inside / 4 + 64).min(settings.max_iter - steps);
                let report = smo::run(qp, point, most, target, control)?;
                if trace() { eprintln!("C {:.4} smo steps {} viol {:.2e} rel gap {:.2e} dual {:.9e} inside {}", qp.hi.iter().fold(0.0f64, |a,&b| a.max(b)), report.steps, report.violation, judgement.relative(), judgement.dual, (0..qp.n()).filter(|&i| qp.is_inside(i, point.beta[i])).count()); }
                steps += report.steps;
                taken += report.steps;
                if report.steps == 0 {
                    break;
                }
            }
            try_rounds = true;
        }
    }

    /// Active-set rounds while they settle; `None` when they do not, with Σβ = 0 restored.
    fn rounds<T: Entry>(
        &mut self,
        qp: &BoxQp<T>,
        point: &mut Point,
        tol: f64,
        steps: &mut usize,
        settings: &Settings,
        control: &Control,
    ) -> Result<Option<Status>> {
        let slack = violation_target(qp, judge(qp, point, tol), tol);
        self.active_set.begin(qp, point);
        let mut changes = usize::MAX;
        let mut patience = 2;
        for _ in 0..MAX_ROUNDS {
            let Some(round) = self.active_set.round(qp, point, slack, control)? else { break };
            *steps += 1;
                if trace() { eprintln!("C {:.4} round clipped {} released {} fact {}", qp.hi.iter().fold(0.0f64, |a,&b| a.max(b)), round.clipped, round.released, self.active_set.factorisations); }
            if round.clipped == 0 {
                self.restore_sum(qp, point);
                if let Some(status) = ended(judge(qp, point, tol), tol, *steps, settings, control) {
                    return Ok(Some(status));
                }
            }
            let now = round.clipped + round.released;
            if now > changes / 4 * 3 {
                patience -= 1;
                if patience == 0 {
                    break;
                }
            }
            changes = now;
        }
        if trace() { eprintln!("rounds failed"); }
        self.restore_sum(qp, point);
        Ok(None)
    }

    /// Makes Σβ = 0 to rounding.
    fn restore_sum<T: Entry>(&self, qp: &BoxQp<T>, point: &mut Point) {
        let (mut changed, mut deltas) = (Vec::new(), Vec::new());
        repair_sum(qp, &mut point.beta, &mut changed, &mut deltas);
        qp.gram.add_rows(&changed, &deltas, &mut point.f);
    }

}

fn trace() -> bool { std::env::var("KP_TRACE").is_ok() }

/// Whether a solve is over, and why.
fn ended(judgement: Judgement, tol: f64, steps: usize, settings: &Settings, control: &Control) -> Option<Status> {
    if judgement.relative() <= tol {
        Some(Status::Converged)
    } else if control.out_of_time() {
        Some(Status::TimeLimit)
    } else if steps >= settings.max_iter {
        Some(Status::MaxIter)
    } else {
        None
    }
}

/// If no row violates its condition by more than this, the gap is below `tol`.
fn violation_target<T>(qp: &BoxQp<T>, judgement: Judgement, tol: f64) -> f64 {
    0.5 * tol * (judgement.dual.abs()) / qp.total_weight
}

/// Dual objective and gap at the best intercept, which is stored in the point.
///
/// With Σβ = 0 the gap is a sum over rows of Fenchel–Young terms, each ≥ 0:
/// (k₁−g)₊(mid−β)₊ + (k₂−g)₊(hi−max(β,mid)) + (g−k₁)₊(min(β,mid)−lo) + (g−k₂)₊(β−mid)₊ with
/// g = f + b and kinks k₁ ≥ k₂.
fn judge<T: Entry>(qp: &BoxQp<T>, point: &mut Point, tol: f64) -> Judgement {
    let dual = vectorise(#[inline(always)] || dual_objective(qp, &point.beta, &point.f));
    let (top, bottom) = kkt_interval(qp, point);
    let mut best = Judgement { dual, gap: f64::INFINITY };
    let try_b = |b: f64, best: &mut Judgement, point: &mut Point| {
        let gap = vectorise(#[inline(always)] || gap_at(qp, &point.beta, &point.f, b));
        if gap < best.gap {
            best.gap = gap;
            point.b = b;
        }
    };
    if !(top.is_finite() && bottom.is_finite()) {
        let finite = if top.is_finite() { top } else if bottom.is_finite() { bottom } else { 0.0 };
        try_b(finite, &mut best, point);
        return best;
    }
    try_b(0.5 * (top + bottom), &mut best, point);
    if top > bottom && best.relative() > tol {
        // The gap is convex in b, of slope −Σβ*(b): find its sign change.
        let (mut low, mut high) = (bottom, top);
        for _ in 0..20 {
            let b = 0.5 * (low + high);
            let pull = vectorise(#[inline(always)] || pull_at(qp, &point.f, b));
            if pull > 0.0 { low = b } else { high = b }
        }
        try_b(0.5 * (low + high), &mut best, point);
    }
    best
}

/// max (up − f) and min (down − f): b lies between them at the optimum.
fn kkt_interval<T: Entry>(qp: &BoxQp<T>, point: &Point) -> (f64, f64) {
    let (mut top, mut bottom) = (f64::NEG_INFINITY, f64::INFINITY);
    for (i, (&beta, &f)) in point.beta.iter().zip(&point.f).enumerate() {
        top = top.max(qp.up(i, beta) - f);
        bottom = bottom.min(qp.down(i, beta) - f);
    }
    (top, bottom)
}

#[inline(always)]
fn dual_objective<T>(qp: &BoxQp<T>, beta: &[f64], f: &[f64]) -> f64 {
    sum_lanes(beta.len(), |i| {
        let above = (beta[i] - qp.mid[i]).max(0.0);
        qp.kink_low[i] * (beta[i] - above) + qp.kink_high[i] * above - 0.5 * beta[i] * f[i]
    })
}

#[inline(always)]
fn gap_at<T>(qp: &BoxQp<T>, beta: &[f64], f: &[f64], b: f64) -> f64 {
    sum_lanes(beta.len(), |i| {
        let g = f[i] + b;
        let (low, high) = (qp.kink_low[i] - g, qp.kink_high[i] - g);
        let (below, above) = (beta[i].min(qp.mid[i]), beta[i].max(qp.mid[i]));
        low.max(0.0) * (qp.mid[i] - below) + high.max(0.0) * (qp.hi[i] - above)
            + (-low).max(0.0) * (below - qp.lo[i]) + (-high).max(0.0) * (above - qp.mid[i])
    })
}

/// Σ β*(b): what the rows' losses want at that intercept.
#[inline(always)]
fn pull_at<T>(qp: &BoxQp<T>, f: &[f64], b: f64) -> f64 {
    sum_lanes(f.len(), |i| {
        let g = f[i] + b;
        let low = if g < qp.kink_low[i] { qp.mid[i] } else { qp.lo[i] };
        if g < qp.kink_high[i] { qp.hi[i] } else { low }
    })
}

/// A sum in a fixed order that SIMD can follow. `length` is padded.
#[inline(always)]
fn sum_lanes(length: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut lanes = [0.0; 16];
    for start in (0..length).step_by(16) {
        for (l, lane) in lanes.iter_mut().enumerate() {
            *lane += term(start + l);
        }
    }
    lanes.iter().sum()
}
