//! One path: the problems of one fold at rising C, each started from the ones before.
//!
//! The exact path is piecewise linear in C, so the start at the next C is the line through the last
//! two solutions (the first is β = 0 at C = 0), clipped to the box; f extrapolates with β. Rows at
//! a level stay at it.

use crate::error::{Error, Result};
use crate::gram::Entry;
use crate::grid::leaps;
use crate::observe::Control;
use crate::problem::{BoxQp, Outcome, Point, Settings, Shared, Status};
use crate::simd::within;
use crate::solver::{BoxSolver, Working, holds};

/// `count` values from `first` to `last`, evenly spaced in the logarithm, both ends exact.
///
/// ```
/// let cs = kernelpath::logspace(1e-3, 1e3, 7);
/// assert_eq!((cs[0], cs[6]), (1e-3, 1e3));
/// assert!((cs[3] - 1.0).abs() < 1e-12);
/// ```
pub fn logspace(first: f64, last: f64, count: usize) -> Vec<f64> {
    (0..count)
        .map(|k| match k {
            0 => first,
            k if k + 1 == count => last,
            k => (first.ln() + (last.ln() - first.ln()) * k as f64 / (count - 1) as f64).exp(),
        })
        .collect()
}

/// Positions of the C's in rising order.
pub(crate) fn rising(cs: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cs.len()).collect();
    order.sort_by(|&a, &b| cs[a].total_cmp(&cs[b]));
    order
}

/// Fails on an empty grid and on values that are not positive numbers.
pub(crate) fn check_cs(cs: &[f64]) -> Result<()> {
    if cs.is_empty() {
        return Err(Error::NoCs);
    }
    match cs.iter().position(|c| !(*c > 0.0 && c.is_finite())) {
        Some(index) => Err(Error::BadC { value: cs[index], index }),
        None => Ok(()),
    }
}

/// C's further apart than this factor get others in between.
const LONGEST_LEAP: f64 = 8.0;

/// A line through two solutions is followed no farther than this many times the distance of their C's (a regular grid
/// asks for `LONGEST_LEAP` at most). Between C's that are nearly equal only rounding moves the solution, and a longer line
/// would start far from the path.
const FARTHEST: f64 = 10.0;

/// A solved problem of a path.
pub(crate) struct Step {
    pub beta: Vec<f64>,
    pub b: f64,
    pub outcome: Outcome,
}

/// A path in work.
pub(crate) struct Path<'a, T> {
    /// Weight of each unit; 0 holds it out.
    weight: &'a [f64],
    solver: BoxSolver<T>,
    /// Where to start, at C = 1.
    constant: Option<Point>,
    /// The last two solutions with their C.
    last: Option<(f64, Point)>,
    before: Option<(f64, Point)>,
}

impl<'a, T: Working> Path<'a, T> {
    /// A path with these weights, to start from their constant model.
    pub fn new(weight: &'a [f64], constant: Point) -> Self {
        Self { weight, solver: BoxSolver::default(), constant: Some(constant), last: None, before: None }
    }

    /// Solves the problem at `c`, which must be at least every C before.
    ///
    /// A first C beyond the easy ones, and a leap between two, are reached by way of C's in between,
    /// solved roughly: as long as they can be, and as the solution changes with C.
    pub fn advance(&mut self, shared: &Shared<T>, c: f64, control: &Control) -> Result<Step> {
        let from = self.last.as_ref().map_or(shared.easy_c, |(c1, _)| *c1);
        let rough = Settings { tol: shared.settings.tol.max(1e-3), max_iter: shared.settings.max_iter.min(20_000) };
        for between in leaps(from, c, LONGEST_LEAP).take_while(|between| *between < c) {
            control.check()?;
            if control.out_of_time() || self.is_final(shared) {
                break;
            }
            if self.solve(shared, between, &rough, control)?.outcome.status == Status::Stalled {
                break;
            }
        }
        self.solve(shared, c, &shared.settings, control)
    }

    /// Whether the last solution is that of every larger C: no row stands at a bound.
    fn is_final(&self, shared: &Shared<T>) -> bool {
        self.last.as_ref().is_some_and(|(c1, last)| {
            let qp = BoxQp::new(shared.gram, &shared.diagonal, &shared.kinks, self.weight, *c1);
            !has_bounded(&qp, &last.beta, 1.0)
        })
    }

    fn solve(&mut self, shared: &Shared<T>, c: f64, settings: &Settings, control: &Control) -> Result<Step> {
        let qp = BoxQp::new(shared.gram, &shared.diagonal, &shared.kinks, self.weight, c);
        let mut point = self.start(&qp, c);
        let outcome = self.solver.solve(&qp, &mut point, settings, control)?;
        let step = Step { beta: point.beta[..qp.n()].to_vec(), b: point.b, outcome };
        if outcome.status == Status::Converged || self.last.is_none() {
            self.before = self.last.replace((c, point));
        } else {
            // A line through a point far from the path would mislead.
            self.before = None;
            self.last = Some((c, point));
        }
        Ok(step)
    }

    fn start(&mut self, qp: &BoxQp<T>, c: f64) -> Point {
        if let Some(constant) = self.constant.take() {
            return constant.scaled(qp, c);
        }
        let Some((c1, last)) = &self.last else { return Point::origin(qp.n()) };
        if !has_bounded(qp, &last.beta, c1 / c) {
            // No row is held by its box: the solution is the same at every larger C.
            return last.clone();
        }
        let (c0, before) = self.before.take().unwrap_or_else(|| (0.0, Point::origin(qp.n())));
        let t = (c - c1) / (c1 - c0);
        extrapolate(qp, last, before, c1 / c, if t <= FARTHEST { t } else { 0.0 })
    }
}

/// Whether a row stands at a non-zero level of its box, which is `ratio` of the box of `qp`.
fn has_bounded<T: Entry>(qp: &BoxQp<T>, beta: &[f64], ratio: f64) -> bool {
    let at = |beta: f64, level: f64| level != 0.0 && (beta - level * ratio).abs() <= 1e-12 * level.abs();
    (0..qp.n()).any(|i| at(beta[i], qp.lo[i]) || at(beta[i], qp.mid[i]) || at(beta[i], qp.hi[i]))
}

/// β₁ + t(β₁ − β₀), clipped, with rows at a level of the old box (`ratio` of the new) kept at it.
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

/// Where every path starts, at C = 1: the model f = b, whose losses pull each row to a level, except
/// the rows whose kink is at b; of those the ones with the smallest f take what Σβ = 0 leaves.
/// It scales with C. All paths' products with K are one pass over it.
pub(crate) fn constant_starts<T: Working>(
    shared: &Shared<T>,
    weights: &[&[f64]],
    control: &Control,
) -> Result<Vec<Point>> {
    let n = shared.gram.n();
    let add = |points: &mut [Point], deltas: &[Vec<f64>]| -> Result<()> {
        let deltas: Vec<&[f64]> = deltas.iter().map(|delta| &delta[..n]).collect();
        for (point, product) in points.iter_mut().zip(shared.gram.times(&deltas, control)?) {
            for (f, change) in point.f.iter_mut().zip(product) {
                *f += change;
            }
        }
        Ok(())
    };
    let problem = |weight: &[f64]| BoxQp::new(shared.gram, &shared.diagonal, &shared.kinks, weight, 1.0);
    let (mut points, tied): (Vec<Point>, Vec<Vec<usize>>) = weights.iter().map(|w| settle(&problem(w))).unzip();
    let betas: Vec<Vec<f64>> = points.iter().map(|point| point.beta.clone()).collect();
    add(&mut points, &betas)?;
    let filled: Vec<Vec<f64>> = (points.iter_mut().zip(tied).zip(weights))
        .map(|((point, tied), weight)| fill_up(&problem(weight), point, tied))
        .collect();
    add(&mut points, &filled)?;
    for (point, weight) in points.iter_mut().zip(weights) {
        point.restore_sum(&problem(weight));
    }
    Ok(points)
}

/// The constant model: every row at the level it is pulled to, the lower one if its kink is at b.
/// Those rows are returned too; Σβ ≤ 0.
fn settle<T: Entry>(qp: &BoxQp<T>) -> (Point, Vec<usize>) {
    let n = qp.n();
    let mut point = Point::origin(n);
    // b is where the pull Σβ*(b) changes sign: walk the kinks from below.
    let mut kinks: Vec<(f64, f64)> = Vec::with_capacity(2 * n);
    let mut pull = 0.0;
    for i in 0..n {
        pull += qp.hi[i];
        kinks.push((qp.kink_high[i], qp.hi[i] - qp.mid[i]));
        kinks.push((qp.kink_low[i], qp.mid[i] - qp.lo[i]));
    }
    kinks.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    for (kink, drop) in kinks {
        if pull > 0.0 {
            point.b = kink;
            pull -= drop;
        }
    }
    let b = point.b;
    let mut tied = Vec::new();
    for i in 0..n {
        point.beta[i] = if b < qp.kink_high[i] {
            qp.hi[i]
        } else if b < qp.kink_low[i] {
            qp.mid[i]
        } else {
            qp.lo[i]
        };
        if b == qp.kink_low[i] && qp.lo[i] < qp.mid[i] || b == qp.kink_high[i] && qp.mid[i] < qp.hi[i] {
            tied.push(i);
        }
    }
    // Where nothing pulls but tied rows, as on constant targets, β = 0 is the answer.
    if point.beta.iter().enumerate().all(|(i, beta)| *beta == 0.0 || tied.binary_search(&i).is_ok()) {
        let has_zero = |&i: &usize| qp.lo[i] <= 0.0 && 0.0 <= qp.hi[i];
        if tied.iter().all(has_zero) {
            return (Point { b, ..Point::origin(n) }, Vec::new());
        }
    }
    (point, tied)
}

/// Raises tied rows, those with the smallest f first, until Σβ = 0; returns by how much each.
fn fill_up<T: Entry>(qp: &BoxQp<T>, point: &mut Point, mut tied: Vec<usize>) -> Vec<f64> {
    tied.sort_unstable_by(|&a, &b| point.f[a].total_cmp(&point.f[b]).then(a.cmp(&b)));
    let mut missing = -point.beta.iter().sum::<f64>();
    let mut deltas = vec![0.0; point.beta.len()];
    for i in tied {
        let old = point.beta[i];
        let top = if point.b == qp.kink_high[i] { qp.hi[i] } else { qp.mid[i] };
        let take = (top - old).min(missing.max(0.0));
        point.beta[i] = if take == top - old { top } else { old + take };
        deltas[i] = point.beta[i] - old;
        missing -= take;
    }
    deltas
}

/// Re-solves at one C after one unit's weight fell, from the solution with all rows.
pub(crate) struct LeaveOut<'a, T> {
    shared: &'a Shared<'a, T>,
    qp: BoxQp<'a, T>,
    full: Point,
    solver: BoxSolver<T>,
    c: f64,
}

impl<'a, T: Working> LeaveOut<'a, T> {
    /// `full` is the solution at `c` with these weights, with f = Kβ.
    pub fn new(shared: &'a Shared<'a, T>, weight: &[f64], c: f64, full: Point) -> Self {
        let qp = BoxQp::new(shared.gram, &shared.diagonal, &shared.kinks, weight, c);
        Self { shared, qp, full, solver: BoxSolver::default(), c }
    }

    /// Solves with unit `i` at weight `remaining`. The point is `None` where β of the full solution
    /// still is optimal, because βᵢ fits into the smaller box; the intercept is given in any case.
    pub fn solve(&mut self, i: usize, remaining: f64, control: &Control) -> Result<(Option<Point>, f64, Outcome)> {
        let old = (self.qp.lo[i], self.qp.mid[i], self.qp.hi[i]);
        self.qp.set_box(i, self.c * remaining, &self.shared.kinks[i]);
        let solved = self.resolve(i, old, control);
        (self.qp.lo[i], self.qp.mid[i], self.qp.hi[i]) = old;
        solved
    }

    fn resolve(&mut self, i: usize, old: (f64, f64, f64), control: &Control) -> Result<(Option<Point>, f64, Outcome)> {
        let beta = self.full.beta[i];
        let new = if beta == old.0 {
            self.qp.lo[i]
        } else if beta == old.1 {
            self.qp.mid[i]
        } else if beta == old.2 {
            self.qp.hi[i]
        } else {
            within(beta, self.qp.lo[i], self.qp.hi[i])
        };
        // (Without a free row, the row left out may have been what held b.)
        if new == beta && holds(&self.qp, &mut self.full, self.shared.settings.tol) {
            return Ok((None, self.full.b, Outcome { status: Status::Converged, steps: 0 }));
        }
        let mut point = self.full.clone();
        if new != beta {
            point.beta[i] = new;
            point.add(&self.qp, &[i], &[new - beta]);
        }
        point.restore_sum(&self.qp);
        let outcome = self.solver.solve(&self.qp, &mut point, &self.shared.settings, control)?;
        self.solver.reset();
        let b = point.b;
        Ok((Some(point), b, outcome))
    }
}
