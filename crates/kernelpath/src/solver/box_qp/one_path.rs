//! The active set as an engine: one fold of a piecewise-linear loss at one C.
//!
//! The exact path is piecewise linear in C. So the start at the next C is the line through the last two solutions (the
//! first one is β = 0 and the best constant b, at C = 0), clipped to the box, and f is extrapolated along with β. Rows at a
//! level stay at it.

use std::sync::Arc;

use crate::certify::exact::Shared;
use crate::certify::record::{Outcome, Settings, Status};
use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::entry::Entry;
use crate::numeric::simd::within;
use crate::observe::Control;
use crate::solver::box_qp::constant::constant_starts;
use crate::solver::box_qp::problem::{BoxQp, Point};
use crate::solver::box_qp::turns::{BoxSolver, holds};
use crate::solver::engine::{Engine, Goal, Job, Leap, LeftOutRows, Whole};

/// Between two C's that are further apart than this factor, others are solved on the way.
const LONGEST_STEP: f64 = 8.0;

/// A line through two solutions is followed no farther than this many times the distance of their C's (a regular grid
/// asks for at most `LONGEST_STEP`). Between C's that are nearly equal only rounding moves the solution, and a longer
/// line would start far from the path.
const FARTHEST_ALONG: f64 = 10.0;

/// Where a path stands: a solution, or a start.
#[derive(Clone)]
pub(crate) struct Stand {
    point: Point,
    outcome: Outcome,
}

impl Stand {
    fn new(point: Point) -> Self {
        Self { point, outcome: Outcome::default() }
    }
}

/// The path of one fold.
pub(crate) struct PathEngine<'a, T> {
    shared: &'a Shared<'a, T>,
    weight: Arc<[f64]>,
    /// The constant model at C = 1.
    constant: Point,
    solver: BoxSolver<T>,
    control: &'a Control,
}

/// The engines of problems with these weights, one each.
pub(crate) fn engines<'a, T: Working>(
    shared: &'a Shared<'a, T>,
    weights: &[Arc<[f64]>],
    control: &'a Control,
) -> Result<Vec<PathEngine<'a, T>>> {
    let starts = constant_starts(shared, &weights.iter().map(|weight| &weight[..]).collect::<Vec<_>>(), control)?;
    let engine = |(weight, constant): (&Arc<[f64]>, Point)| {
        let (weight, solver) = (weight.clone(), BoxSolver::default());
        PathEngine { shared, weight, constant, solver, control }
    };
    Ok(weights.iter().zip(starts).map(engine).collect())
}

impl<'a, T: Working> PathEngine<'a, T> {
    fn problem(&self, c: f64) -> BoxQp<'a, T> {
        BoxQp::new(self.shared.gram, &self.shared.diagonal, &self.shared.kinks, &self.weight, c)
    }

    /// Solves with unit `i` in a smaller box, from the solution `full` with all rows.
    fn without(&mut self, qp: &BoxQp<T>, i: usize, old: [f64; 3], full: &mut Point) -> Result<Stand> {
        let (beta, levels) = (full.beta[i], qp.levels(i));
        let level = old.iter().position(|level| *level == beta);
        let new = level.map_or_else(|| within(beta, levels[0], levels[2]), |at| levels[at]);
        // β of all rows may still be optimal, because βᵢ fits into the smaller box. (If no row is free, the row left out
        // may have been the one that determined b.)
        if new == beta && holds(qp, full, self.shared.settings.tol) {
            return Ok(Stand { point: full.clone(), outcome: Outcome { status: Status::Converged, steps: 0 } });
        }
        let mut point = full.clone();
        if new != beta {
            point.beta[i] = new;
            point.add(qp, &[i], &[new - beta]);
        }
        point.restore_sum(qp);
        let outcome = self.solver.solve(qp, &mut point, &self.shared.settings, self.control)?;
        self.solver.reset();
        Ok(Stand { point, outcome })
    }
}

impl<T: Working> PathEngine<'_, T> {
    /// Solves without a row of unit `u` where all boxes change, from the solution with all rows scaled into them.
    fn rebalanced(&mut self, c: f64, whole: &Whole, rows: &LeftOutRows, u: usize) -> Result<Stand> {
        let qp = BoxQp::new(self.shared.gram, &self.shared.diagonal, &self.shared.kinks, &rows.without(u), c);
        let mut point = Point { b: whole.b, ..Point::origin(qp.n()) };
        point.beta[..qp.n()].copy_from_slice(&rows.beta(whole, u));
        point.f[..qp.n()].copy_from_slice(&rows.f(whole, u));
        point.snap(&qp);
        let (mut changed, mut deltas) = (Vec::new(), Vec::new());
        for (i, beta) in point.beta.iter_mut().enumerate() {
            let inside = within(*beta, qp.lo[i], qp.hi[i]);
            if inside != *beta {
                changed.push(i);
                deltas.push(inside - *beta);
                *beta = inside;
            }
        }
        point.add(&qp, &changed, &deltas);
        point.restore_sum(&qp);
        let outcome = self.solver.solve(&qp, &mut point, &self.shared.settings, self.control)?;
        self.solver.reset();
        Ok(Stand { point, outcome })
    }
}

impl<T: Working> Engine for PathEngine<'_, T> {
    type Point = Stand;

    const ALONE: bool = true;

    fn leap(&self, last: f64) -> Option<Leap> {
        // A C at which most rows stand at a bound, so that no path is needed to get there.
        let mean_diagonal = self.shared.diagonal.iter().sum::<f64>() / self.shared.gram.n() as f64;
        let easy = 1.0 / mean_diagonal.abs().max(f64::MIN_POSITIVE);
        Some(Leap { from: if last > 0.0 { last } else { easy }, longest: LONGEST_STEP })
    }

    /// No row stands at a bound.
    fn is_final(&self, c: f64, points: &[Stand]) -> bool {
        c > 0.0 && points.iter().all(|stand| !has_bounded(&self.problem(c), &stand.point.beta, 1.0))
    }

    fn constants(&mut self) -> Result<Vec<Stand>> {
        Ok(vec![Stand::new(self.constant.clone())])
    }

    fn start(&self, past: &[(f64, &Stand)], c: f64) -> Stand {
        let (qp, (c1, last)) = (self.problem(c), past[0]);
        if c1 == 0.0 {
            return Stand::new(last.point.clone().scaled(&qp, c));
        }
        if !has_bounded(&qp, &last.point.beta, c1 / c) {
            // No row is held by its box: the solution is the same at every larger C.
            return Stand::new(last.point.clone());
        }
        // A line through a point that is far from the path would mislead.
        let before = past.get(1).filter(|(c0, _)| *c0 > 0.0 && last.outcome.status == Status::Converged);
        let origin = || Point { b: self.constant.b, ..Point::origin(qp.n()) };
        let (c0, before) = before.map_or_else(|| (0.0, origin()), |(c0, stand)| (*c0, stand.point.clone()));
        let t = (c - c1) / (c1 - c0);
        Stand::new(extrapolate(&qp, &last.point, before, c1 / c, if t <= FARTHEST_ALONG { t } else { 0.0 }))
    }

    fn solve(&mut self, jobs: &mut [Job<Stand>], goal: Goal) -> Result<()> {
        let exact = self.shared.settings;
        let rough = Settings { tol: exact.tol.max(1e-3), max_iter: exact.max_iter.min(20_000), ..exact };
        let settings = if goal == Goal::Answer { exact } else { rough };
        for Job { c, point: Stand { point, outcome } } in jobs {
            let qp = self.problem(*c);
            *outcome = self.solver.solve(&qp, point, &settings, self.control)?;
        }
        Ok(())
    }

    fn outcome(&self, stand: &Stand) -> Outcome {
        stand.outcome
    }

    fn solution(&self, stand: &Stand) -> (Vec<f64>, Vec<f64>) {
        (stand.point.beta[..self.shared.gram.n()].to_vec(), vec![stand.point.b])
    }

    fn leave_out(&mut self, c: f64, whole: &Whole, rows: &LeftOutRows, units: &[usize]) -> Result<Vec<Stand>> {
        let (mut qp, kinks) = (self.problem(c), &self.shared.kinks);
        let mut full = Point { b: whole.b, ..Point::origin(qp.n()) };
        full.beta[..qp.n()].copy_from_slice(whole.beta);
        full.f[..qp.n()].copy_from_slice(whole.f);
        let without = |&u: &usize| {
            self.control.check()?;
            if rows.rebalance.is_some() {
                return self.rebalanced(c, whole, rows, u);
            }
            let old = qp.levels(u);
            qp.set_box(u, c * rows.remaining(u), &kinks[u]);
            let stand = self.without(&qp, u, old, &mut full)?;
            qp.set_box(u, c * rows.weight[u], &kinks[u]);
            Ok(stand)
        };
        units.iter().map(without).collect()
    }

    fn product<'b>(&self, stand: &'b Stand) -> Option<&'b [f64]> {
        Some(&stand.point.f[..self.shared.gram.n()])
    }
}

/// Whether a row stands at a non-zero level of its box. The box of β is `ratio` times that of `qp`.
fn has_bounded<T: Entry>(qp: &BoxQp<T>, beta: &[f64], ratio: f64) -> bool {
    let at = |beta: f64, level: f64| level != 0.0 && (beta - level * ratio).abs() <= 1e-12 * level.abs();
    (0..qp.n()).any(|i| at(beta[i], qp.lo[i]) || at(beta[i], qp.mid[i]) || at(beta[i], qp.hi[i]))
}

/// β₁ + t(β₁ − β₀), clipped to the new box. Rows at a level of the old box, which is `ratio` times the new one, are
/// kept at that level.
fn extrapolate<T: Entry>(qp: &BoxQp<T>, last: &Point, before: Point, ratio: f64, t: f64) -> Point {
    let mut point = before;
    let (mut changed, mut deltas) = (Vec::new(), Vec::new());
    for (f, f1) in point.f.iter_mut().zip(&last.f) {
        *f = f1 + t * (f1 - *f);
    }
    point.b = last.b + t * (last.b - point.b);
    point.eager.clear();
    for (i, beta) in point.beta.iter_mut().enumerate().take(qp.n()) {
        let old = last.beta[i];
        let line = old + t * (old - *beta);
        let at = |new: f64| (old - new * ratio).abs() <= 1e-12 * new.abs();
        let level = [qp.lo[i], qp.hi[i], qp.mid[i]].into_iter().find(|level| at(*level));
        *beta = level.unwrap_or_else(|| within(line, qp.lo[i], qp.hi[i]));
        if level.is_some() {
            let g = point.f[i] + point.b;
            if qp.up(i, *beta) > g {
                point.eager.push((i, true));
            } else if qp.down(i, *beta) < g {
                point.eager.push((i, false));
            }
        }
        if (*beta - line).abs() > 1e-14 * line.abs() {
            changed.push(i);
            deltas.push(*beta - line);
        }
    }
    point.noise = last.noise + t * (last.noise + point.noise);
    point.add(qp, &changed, &deltas);
    point
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::data::rows::Rows;
    use crate::kernel::gram::Gram;
    use crate::kernel::shape::{KernelFn, Shape};
    use crate::loss::scalar::Loss;

    #[test]
    fn the_intercept_of_the_second_start_comes_from_the_constant_model() {
        let control = Control::default();
        let x: Vec<f64> = (0..31).map(|i| (0.9 * f64::from(i)).sin()).collect();
        let y: Vec<f64> = x.iter().enumerate().map(|(i, x)| 50.0 + x + 0.1 * (7.0 * i as f64).cos()).collect();
        let all: Vec<usize> = (0..31).collect();
        let (rows, kernel) = (Rows::from_slice(&x, 1).unwrap(), KernelFn::new(Shape::Rbf, 1.0).unwrap());
        let gram = Gram::<f64>::compute(&rows, &all, &kernel, None, &control).unwrap();
        let shared = Shared::new(&gram, Loss::Quantile { tau: 0.3 }, y, Settings { tol: 1e-10, ..Settings::default() });
        let mut engine = engines(&shared, &[vec![1.0; 31].into()], &control).unwrap().remove(0);
        let constant = engine.constants().unwrap().remove(0);
        // At C's so small that no row but one leaves its bound, the path is a line.
        let mut solved = |c: f64, past: &[(f64, &Stand)]| {
            let start = engine.start(past, c);
            let mut jobs = [Job { c, point: start.clone() }];
            engine.solve(&mut jobs, Goal::Answer).unwrap();
            assert_eq!(jobs[0].point.outcome.status, Status::Converged);
            (start, jobs[0].point.clone())
        };
        let (_, first) = solved(1e-4, &[(0.0, &constant)]);
        let (start, second) = solved(2e-4, &[(1e-4, &first), (0.0, &constant)]);
        assert!((second.point.b - first.point.b).abs() > 1e-6);
        assert!((start.point.b - second.point.b).abs() < 1e-9, "{} {}", start.point.b, second.point.b);
    }
}
