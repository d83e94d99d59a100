//! The solver for piecewise-linear losses.

use super::{proximal, smo};
use crate::certify::record::{Outcome, Settings, Status};
use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::entry::Entry;
use crate::numeric::simd::{largest_of_rows, sum_of_rows, sums};
use crate::observe::Control;
use crate::solver::box_qp::active_set::ActiveSet;
use crate::solver::box_qp::problem::{BoxQp, Point, margin};

/// Rounds tried before the solver goes back to SMO.
const MAX_ROUNDS: usize = 12;

/// Rounds in which the number of changed rows may fall by less than a quarter, before the rounds count as not settling.
const ROUND_PATIENCE: usize = 4;

/// Rounds that change at most this many rows settle, though not always at once.
const FEW_CHANGES: usize = 4;

/// Rounds come first when at least one row in this many is free.
const ROUNDS_SHARE: usize = 64;

/// A solve whose gap did not halve in this many turns, each with twice the SMO steps of the last, has
/// stalled.
const TURNS_TO_HALVE: usize = 5;

/// Proximal steps tried when rounds have failed.
const MAX_PROXIMAL: usize = 40;

/// Proximal steps, at the largest σ, that may fail to halve the gap. Steps that come out far worse than the best before
/// count, too.
const PROXIMAL_PATIENCE: usize = 6;

/// σ of the first proximal steps, in units of the widest box. Some problems need a larger σ: those of targets without
/// noise, on a matrix that is singular to rounding. Once a problem did, the next ones begin with proximal steps.
const STEEP: f64 = 300.0;

/// Flops of a step of SMO for each row.
const OF_SMO_STEP: f64 = 8.0;

/// A proximal step whose gap is more than this many times the best gap before was spoilt by rounding. A smaller rise is
/// usual on the way to the optimum.
const FAR_WORSE: f64 = 10.0;

/// The solver for piecewise-linear losses: active-set rounds from the extrapolated start; SMO when
/// few rows are free or the rounds do not settle; proximal steps when both fail.
#[derive(Default)]
pub(crate) struct BoxSolver<T> {
    active_set: ActiveSet<T>,
    smo: smo::Workspace,
    /// Whether the last problem took proximal steps of a large σ: the next one begins with them.
    is_steep: bool,
}

/// Dual objective and gap of a dual-feasible point.
#[derive(Clone, Copy)]
struct Judgement {
    dual: f64,
    gap: f64,
}

impl Judgement {
    fn scale(self) -> f64 {
        self.dual.abs().max((self.dual + self.gap).abs())
    }

    fn relative(self) -> f64 {
        if self.scale() > 0.0 { self.gap / self.scale() } else { self.gap }
    }
}

/// One solve: its limits and what it has used of them.
struct Run<'a> {
    tol: f64,
    max_iter: usize,
    steps: usize,
    /// Flops of SMO and of proximal steps so far, and at most.
    work: f64,
    most_work: f64,
    control: &'a Control,
}

impl<T: Working> BoxSolver<T> {
    /// Forgets what belongs to the last problem, but keeps the factor of its free set.
    pub fn reset(&mut self) {
        self.active_set.reset();
    }

    /// Minimises from `point`, which must be in the box with f = Kβ.
    pub fn solve(
        &mut self,
        qp: &BoxQp<T>,
        point: &mut Point,
        settings: &Settings,
        control: &Control,
    ) -> Result<Outcome> {
        self.solve_within(qp, point, settings, f64::INFINITY, control)
    }

    fn solve_within(
        &mut self,
        qp: &BoxQp<T>,
        point: &mut Point,
        settings: &Settings,
        most_work: f64,
        control: &Control,
    ) -> Result<Outcome> {
        // The certificate recomputes Kβ; leave room for its rounding.
        let (tol, max_iter) = (0.9 * settings.tol, settings.max_iter);
        let mut run = Run { tol, max_iter, steps: 0, work: 0.0, most_work, control };
        let status = self.minimise(qp, point, &mut run)?;
        Ok(Outcome { status, steps: run.steps })
    }

    /// A solve from a good guess of the free rows: rounds, and SMO and proximal steps of at most `most_work` flops, or
    /// little more.
    pub fn finish(
        &mut self,
        qp: &BoxQp<T>,
        point: &mut Point,
        settings: &Settings,
        most_work: f64,
        control: &Control,
    ) -> Result<Outcome> {
        let few = Settings { max_iter: settings.max_iter.min(4 * qp.n() + 1000), ..*settings };
        self.solve_within(qp, point, &few, most_work, control)
    }

    fn minimise(&mut self, qp: &BoxQp<T>, point: &mut Point, run: &mut Run) -> Result<Status> {
        let free = qp.count_inside(&point.beta);
        // Rounds need no Σβ = 0 to start from, and pay when the extrapolated free set is large; SMO finds a small one
        // faster. If more rows are expected to become free than are free now, the path bends, and most of those rows
        // will not.
        let mut try_rounds = free * ROUNDS_SHARE > qp.n() && point.eager.len() <= free;
        let (surplus, size) = sums(&point.beta);
        let feasible = surplus.abs() <= 1e-13 * size;
        if !try_rounds || feasible {
            point.restore_sum(qp);
            if let Some(status) = run.ended(qp, point) {
                return Ok(status);
            }
        }
        let mut budget = 4 * free + 128;
        let mut failures = 0;
        // The factor of proximal steps is in double precision. If it would be large beside the Gram matrix, SMO goes on
        // instead.
        let mut proximal_fits = free * free * 8 < (32 << 20) + size_of::<T>() * qp.n() * qp.n() / 16;
        let mut gaps: Vec<f64> = Vec::new();
        if self.is_steep && proximal_fits {
            point.restore_sum(qp);
            if let Some(status) = self.proximal(qp, point, run)? {
                return Ok(status);
            }
        }
        loop {
            run.control.check()?;
            if try_rounds {
                let mut start = point.clone();
                if let Some(status) = self.rounds(qp, point, run)? {
                    return Ok(status);
                }
                failures += 1;
                start.restore_sum(qp);
                let (reached, had) = (dual_value(qp, point), dual_value(qp, &start));
                if reached < had || reached.is_nan() {
                    *point = start;
                }
            }
            if failures >= 2 && proximal_fits {
                let before = judge(qp, point, run.tol).relative();
                if let Some(status) = self.proximal(qp, point, run)? {
                    return Ok(status);
                }
                // Where the work is limited, what did not help once is not tried again: it takes longer than all else.
                proximal_fits = run.most_work.is_infinite() || judge(qp, point, run.tol).relative() <= 0.5 * before;
            }
            point.eager.clear();
            if let Some(status) = smo_steps(qp, point, &mut self.smo, run, budget, free)? {
                return Ok(status);
            }
            gaps.push(judge(qp, point, run.tol).relative());
            // (A gap that is NaN never halves.)
            let halved = |now: usize| gaps[now] <= 0.5 * gaps[now - TURNS_TO_HALVE];
            if gaps.len() > TURNS_TO_HALVE && !halved(gaps.len() - 1) {
                return Ok(Status::Stalled);
            }
            budget *= 2;
            try_rounds = true;
        }
    }

    /// Proximal steps with rising σ: small σ are easy, and lead to points from which large σ are easy too. `None` when they
    /// were not enough.
    fn proximal(&mut self, qp: &BoxQp<T>, point: &mut Point, run: &mut Run) -> Result<Option<Status>> {
        let diagonal = qp.largest_diagonal.max(f64::MIN_POSITIVE);
        // Up to this σ the factor can tell the envelopes from the loss: each envelope is off by at most width²/σ.
        let most = 0.1 / (diagonal * proximal::least_ridge(qp.n()));
        let mut sigma = (STEEP * qp.width()).min(1e3 / diagonal).min(most);
        let mut best = (judge(qp, point, run.tol).relative(), point.clone());
        let mut patience = PROXIMAL_PATIENCE;
        for _ in 0..MAX_PROXIMAL {
            let effort = proximal::step(qp, point, sigma, run.most_work - run.work, run.control)?;
            run.steps += effort.steps;
            run.work += effort.flops;
            point.restore_sum(qp);
            point.refresh(qp);
            if let Some(status) = run.ended(qp, point) {
                self.is_steep = sigma > STEEP * qp.width();
                return Ok(Some(status));
            }
            let gap = judge(qp, point, run.tol).relative();
            let (is_slow, is_spoilt) = (sigma >= most && gap > 0.5 * best.0, gap > FAR_WORSE * best.0);
            patience = patience.saturating_sub(usize::from(is_slow) + usize::from(is_spoilt));
            if patience == 0 {
                break;
            }
            if gap <= best.0 {
                best = (gap, point.clone());
            } else if is_spoilt {
                // Rounding took over.
                *point = best.1.clone();
                sigma *= 0.01;
            }
            sigma = most.min(10.0 * sigma);
        }
        self.is_steep = false;
        *point = best.1;
        Ok(None)
    }

    /// Active-set rounds while they settle; `None` when they do not, with Σβ = 0 restored.
    fn rounds(&mut self, qp: &BoxQp<T>, point: &mut Point, run: &mut Run) -> Result<Option<Status>> {
        let slack = violation_target(qp, dual_value(qp, point), run.tol);
        self.active_set.begin(qp, point);
        let mut changes = usize::MAX / 4;
        let mut patience = ROUND_PATIENCE;
        for _ in 0..MAX_ROUNDS {
            let Some(round) = self.active_set.round(qp, point, slack, run.control)? else { break };
            run.steps += 1;
            if round.clipped == 0 {
                point.restore_sum(qp);
                if let Some(status) = run.ended(qp, point) {
                    return Ok(Some(status));
                }
            }
            let now = round.clipped + round.released;
            if 4 * now > 3 * changes && now > FEW_CHANGES {
                patience -= 1;
                if patience == 0 {
                    break;
                }
            }
            changes = now;
        }
        point.restore_sum(qp);
        Ok(None)
    }
}

/// At most about `budget` steps of SMO, judged every now and then; `None` when they were not enough.
fn smo_steps<T: Working>(
    qp: &BoxQp<T>,
    point: &mut Point,
    workspace: &mut smo::Workspace,
    run: &mut Run,
    budget: usize,
    free: usize,
) -> Result<Option<Status>> {
    let mut taken = 0;
    while taken < budget {
        run.control.check()?;
        // (The dual of the start may be far larger than that of the optimum.)
        let target = violation_target(qp, dual_value(qp, point), run.tol);
        let most = (free / 4 + 64).min(run.max_iter.saturating_sub(run.steps));
        let report = smo::run(qp, point, workspace, most, target, run.control)?;
        run.steps += report.steps;
        run.work += OF_SMO_STEP * (report.steps * qp.n()) as f64;
        taken += report.steps;
        // The gap closes long before the violation reaches the target that would guarantee it, but not while it is 1000
        // times as large.
        let far = report.violation > 1000.0 * target && !run.is_over();
        if !far && let Some(status) = run.ended(qp, point) {
            return Ok(Some(status));
        }
        if report.steps == 0 {
            // No pair violates the conditions, and yet the gap is open: rounding must be the cause.
            if point.noise == 0.0 {
                return Ok(Some(Status::Stalled));
            }
            point.restore_sum(qp);
            point.refresh(qp);
            point.noise = 0.0;
        }
    }
    Ok(None)
}

impl Run<'_> {
    /// Whether time, steps or work are used up.
    fn is_over(&self) -> bool {
        self.is_spent() || self.control.out_of_time()
    }

    fn is_spent(&self) -> bool {
        self.steps >= self.max_iter || self.work >= self.most_work
    }

    /// Whether the solve is over, and why. Convergence counts only if f is known well enough.
    fn ended<T: Entry>(&self, qp: &BoxQp<T>, point: &mut Point) -> Option<Status> {
        point.snap(qp);
        let mut judgement = judge(qp, point, self.tol);
        if judgement.relative() <= self.tol && qp.total_weight * point.noise > 0.05 * self.tol * judgement.scale() {
            point.refresh(qp);
            judgement = judge(qp, point, self.tol);
        }
        if judgement.relative() <= self.tol {
            Some(Status::Converged)
        } else if !judgement.gap.is_finite() {
            Some(Status::Stalled)
        } else if self.control.out_of_time() {
            Some(Status::TimeLimit)
        } else if self.is_spent() {
            Some(Status::MaxIter)
        } else {
            None
        }
    }
}

/// Whether the gap of a feasible point is at most `tol` at the best intercept. That intercept is stored in the point.
pub(crate) fn holds<T: Entry>(qp: &BoxQp<T>, point: &mut Point, tol: f64) -> bool {
    judge(qp, point, tol).relative() <= tol
}

/// If no row violates its condition by more than this, the gap is below `tol`.
fn violation_target<T>(qp: &BoxQp<T>, dual: f64, tol: f64) -> f64 {
    0.5 * tol * dual.abs() / qp.total_weight
}

fn dual_value<T>(qp: &BoxQp<T>, point: &Point) -> f64 {
    sum_of_rows(
        [&point.beta, &point.f, &qp.mid, &qp.kink_low, &qp.kink_high],
        #[inline(always)]
        |[beta, f, mid, kink_low, kink_high]| {
            let above = (beta - mid).max(0.0);
            [kink_low * (beta - above) + kink_high * above - 0.5 * beta * f]
        },
    )[0]
}

/// Dual objective and gap at the best intercept, which is stored in the point.
///
/// With Σβ = 0 the gap is a sum over rows of Fenchel–Young terms, each ≥ 0:
/// (k₁−g)₊(mid−β)₊ + (k₂−g)₊(hi−max(β,mid)) + (g−k₁)₊(min(β,mid)−lo) + (g−k₂)₊(β−mid)₊ with
/// g = f + b and kinks k₁ ≥ k₂.
fn judge<T: Entry>(qp: &BoxQp<T>, point: &mut Point, tol: f64) -> Judgement {
    let dual = dual_value(qp, point);
    let (top, bottom) = kkt_interval(qp, &point.beta, &point.f);
    let mut best = Judgement { dual, gap: f64::INFINITY };
    let try_b = |b: f64, best: &mut Judgement, point: &mut Point| {
        let gap = gap_at(qp, point, b);
        if gap < best.gap {
            best.gap = gap;
            point.b = b;
        }
    };
    if !(top.is_finite() && bottom.is_finite()) {
        let finite = [top, bottom].into_iter().find(|b| b.is_finite());
        try_b(finite.unwrap_or(0.0), &mut best, point);
        return best;
    }
    try_b(0.5 * (top + bottom), &mut best, point);
    if top > bottom && (tol..50.0 * tol).contains(&best.relative()) {
        // The gap is convex in b with slope −Σβ*(b): find where the slope changes sign.
        let (mut low, mut high) = (bottom, top);
        for _ in 0..20 {
            let b = 0.5 * (low + high);
            if pull_at(qp, &point.f, b) > 0.0 { low = b } else { high = b }
        }
        try_b(0.5 * (low + high), &mut best, point);
    }
    best
}

/// max (up − f) and min (down − f): b lies between them at the optimum.
fn kkt_interval<T: Entry>(qp: &BoxQp<T>, beta: &[f64], f: &[f64]) -> (f64, f64) {
    let [top, bottom] = largest_of_rows(
        [beta, f, &qp.lo, &qp.mid, &qp.hi, &qp.kink_low, &qp.kink_high],
        #[inline(always)]
        |row| {
            let (rise, fall) = margin(row);
            [rise, -fall]
        },
    );
    (top, -bottom)
}

fn gap_at<T>(qp: &BoxQp<T>, point: &Point, b: f64) -> f64 {
    sum_of_rows(
        [&point.beta, &point.f, &qp.lo, &qp.mid, &qp.hi, &qp.kink_low, &qp.kink_high],
        #[inline(always)]
        |[beta, f, lo, mid, hi, kink_low, kink_high]| {
            let g = f + b;
            let (low, high) = (kink_low - g, kink_high - g);
            let (below, above) = (beta.min(mid), beta.max(mid));
            [low.max(0.0) * (mid - below)
                + high.max(0.0) * (hi - above)
                + (-low).max(0.0) * (below - lo)
                + (-high).max(0.0) * (above - mid)]
        },
    )[0]
}

/// Σ β*(b): the sum of the slopes that the rows' losses want at that intercept.
fn pull_at<T>(qp: &BoxQp<T>, f: &[f64], b: f64) -> f64 {
    sum_of_rows(
        [f, &qp.lo, &qp.mid, &qp.hi, &qp.kink_low, &qp.kink_high],
        #[inline(always)]
        |[f, lo, mid, hi, kink_low, kink_high]| {
            let g = f + b;
            let low = if g < kink_low { mid } else { lo };
            [if g < kink_high { hi } else { low }]
        },
    )[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::data::rows::Rows;
    use crate::kernel::gram::Gram;
    use crate::kernel::shape::{KernelFn, Shape};
    use crate::loss::scalar::{Kinks, Loss};

    #[test]
    fn finishing_a_hopeless_guess_takes_no_more_work_than_it_is_given() {
        // A polynomial of 100 rows, which has rank 15, weights over 12 decades, and a C far beyond what doubles can prove.
        let (n, control, mut rng) = (100, Control::default(), fastrand::Rng::with_seed(2));
        let x: Vec<f64> = (0..4 * n).map(|_| 4.0 * rng.f64() - 2.0).collect();
        let weight: Vec<f64> = (0..n).map(|_| 10.0_f64.powf(12.0 * rng.f64() - 6.0)).collect();
        let kernel = KernelFn::new(Shape::Poly { degree: 2, coef0: 1.0 }, 1.0).unwrap();
        let all: Vec<usize> = (0..n).collect();
        let gram = Gram::<f64>::compute(&Rows::from_slice(&x, 4).unwrap(), &all, &kernel, None, &control).unwrap();
        let loss = Loss::Quantile { tau: 0.1 };
        let kinks: Vec<Kinks> = (0..n).map_while(|i| loss.kinks((2.0 * x[4 * i]).sin() + 0.3 * rng.f64())).collect();
        let diagonal = gram.diagonal();
        let qp = BoxQp::new(&gram, &diagonal, &kinks, &weight, 1e8);
        let steps_within = |flops_a_entry: f64| {
            let mut point = Point::origin(n);
            let most_work = flops_a_entry * (n * n) as f64;
            let outcome = BoxSolver::default()
                .finish(&qp, &mut point, &Settings { tol: 1e-12, ..Settings::default() }, most_work, &control)
                .unwrap();
            assert_ne!(outcome.status, Status::Converged);
            outcome.steps
        };
        // Before work was counted, all of 4n + 1000 steps were taken, each of which may be a factor of the matrix.
        let (few, some, many) = (steps_within(15.0), steps_within(30.0), steps_within(f64::INFINITY));
        assert!(few <= 400 && some <= 2 * few && many >= 1400, "{few} {some} {many}");
    }
}
