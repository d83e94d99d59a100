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
const MAX_ROUNDS: usize = 8;

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
        let mut budget = std::env::var("KP_SMO").map_or(smo_budget(qp.n()), |v| v.parse().unwrap());
        let mut judgement = judge(qp, point, tol);
        loop {
            let target = violation_target(qp, judgement, tol);
            let report = smo::run(qp, point, budget.min(settings.max_iter - steps), target, control)?;
            steps += report.steps;
            judgement = judge(qp, point, tol);
            if std::env::var("KP_TRACE").is_ok() { eprintln!("C {:.4} smo steps {} viol {:.2e} rel gap {:.2e} dual {:.9e} inside {}", qp.hi.iter().fold(0.0f64, |a,&b| a.max(b)), report.steps, report.violation, judgement.relative(), judgement.dual, (0..qp.n()).filter(|&i| qp.is_inside(i, point.beta[i])).count()); }
            if let Some(status) = self.ended(judgement, tol, steps, settings, control) {
                return Ok(Outcome { status, steps });
            }
            let before = (point.clone(), judgement);
            self.active_set.begin(qp, point, violation_target(qp, judgement, tol));
            for _ in 0..MAX_ROUNDS {
                let slack = violation_target(qp, before.1, tol);
                let Some(round) = self.active_set.round(qp, point, slack, control)? else { break };
                steps += 1;
                if std::env::var("KP_TRACE").is_ok() { eprintln!("C {:.4} round clipped {} released {} fact {}", qp.hi.iter().fold(0.0f64, |a,&b| a.max(b)), round.clipped, round.released, self.active_set.factorisations); }
                if round.clipped == 0 {
                    self.restore_sum(qp, point);
                    judgement = judge(qp, point, tol);
                    if std::env::var("KP_TRACE").is_ok() { eprintln!("   gap {:.2e} dual {:.12e} b {}", judgement.relative(), judgement.dual, point.b); }
                    if let Some(status) = self.ended(judgement, tol, steps, settings, control) {
                        return Ok(Outcome { status, steps });
                    }
                }
            }
            self.restore_sum(qp, point);
            judgement = judge(qp, point, tol);
            if std::env::var("KP_TRACE").is_ok() { eprintln!("rounds failed: {:.2e} {}", judgement.relative(), judgement.dual - before.1.dual); }
            if !(judgement.dual >= before.1.dual) {
                *point = before.0;
                judgement = before.1;
                if report.steps == 0 {
                    return Ok(Outcome { status: Status::Stalled, steps });
                }
            }
            budget = (budget * 2).max(500);
        }
    }

    /// Makes Σβ = 0 to rounding.
    fn restore_sum<T: Entry>(&self, qp: &BoxQp<T>, point: &mut Point) {
        let (mut changed, mut deltas) = (Vec::new(), Vec::new());
        repair_sum(qp, &mut point.beta, &mut changed, &mut deltas);
        qp.gram.add_rows(&changed, &deltas, &mut point.f);
    }

    fn ended(&self, judgement: Judgement, tol: f64, steps: usize, settings: &Settings, control: &Control) -> Option<Status> {
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
}

/// SMO steps before the first rounds.
fn smo_budget(n: usize) -> usize {
    (n / 2).clamp(64, 2000)
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
