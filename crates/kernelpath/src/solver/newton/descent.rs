//! Newton's method with conjugate gradients for smooth losses, many problems at once.
//!
//! At the optimum of (P) β = θ with θ = C w a(f + b), and Σβ = 0. A Newton step linearises this, with H the curvature
//! C w L″(f + b) and r = θ − β:
//!
//! ```text
//! (I + H K) Δβ + H 1 Δb = r,     Σ(β + Δβ) = 0
//! ```
//!
//! With H = AAᵀ and Δβ = r + Av the system is symmetric, and rows without curvature need no special case:
//!
//! ```text
//! (I + AᵀKA) v + N Δb = −AᵀK r,     Nᵀv = −Σθ,     N = Aᵀ1
//! ```
//!
//! A loss of one value per row has H = S, which is diagonal, and A = S½. The multinomial loss couples the classes of a
//! row; its β, f and b have a column for each class. Conjugate gradients, projected on Nᵀv = const and preconditioned by
//! a low-rank K, solve the systems of all problems (the folds) as one block, so that each pass over K is a matrix
//! product. If the loss were quadratic, half the square of their residual would be the duality gap after the step. So
//! they start from Δβ = 0, where it is the gap before the step, and stop when it is small enough. The step is shortened
//! until the gap falls or, if the gap does not, until the primal does. Passes run in the precision of the Gram matrix:
//! the certificate recomputes Kβ, and the next step corrects what rounding lost.

use std::sync::Arc;

use crate::certify::ledger::{Judged, Taken};
use crate::certify::record::{Outcome, Status};
use crate::error::Result;
use crate::numeric::parallel;
use crate::numeric::simd::dot;
use crate::observe::Control;
use crate::solver::engine::{Engine, Goal, Job, Leap, LeftOutRows, Whole, each_c};
use crate::solver::newton::smooth::{Column, Direction, Smooth, System};
use crate::solver::newton::starts::{GAP_BETWEEN, LONGEST_LEAP, mixtures, step_length};

/// Most Newton steps for one problem.
const MAX_NEWTON: usize = 100;

/// Steps without the gap halving before a problem counts as stalled.
const NEWTON_PATIENCE: usize = 8;

/// How often problems are solved and certified at one C.
const NEWTON_ATTEMPTS: usize = 3;

/// The solver for one smooth loss on one K.
pub(crate) struct Newton<'a, P: Smooth> {
    problem: &'a P,
    /// Weights of each problem.
    weights: Vec<Arc<[f64]>>,
    preconditioners: P::Preconditioners,
    control: &'a Control,
}

impl<'a, P: Smooth> Newton<'a, P> {
    /// For problems with these weights.
    pub fn new(problem: &'a P, weights: Vec<Arc<[f64]>>, control: &'a Control) -> Result<Self> {
        Ok(Self { problem, weights, preconditioners: problem.preconditioners(control)?, control })
    }

    /// Minimises every column at `c` from where it stands. The goal is half of `tol`, so that certificates find at most
    /// `tol`.
    fn descend(&mut self, columns: &mut [&mut Column], c: f64, tol: f64) -> Result<()> {
        let (problem, control, tol) = (self.problem, self.control, 0.5 * tol);
        parallel::for_each(columns.iter_mut(), |column| {
            column.best = (f64::INFINITY, 0);
            column.majorise = false;
            problem.measure(column, c);
            problem.find_gap(column, c, tol);
            column.outcome.status = if column.gap <= tol { Status::Converged } else { Status::MaxIter };
        });
        let mut open: Vec<&mut Column> = columns
            .iter_mut()
            .map(|column| &mut **column)
            .filter(|column| column.outcome.status == Status::MaxIter)
            .collect();
        for step in 0..MAX_NEWTON {
            if open.is_empty() {
                break;
            }
            if control.out_of_time() {
                for column in open {
                    column.outcome.status = Status::TimeLimit;
                }
                break;
            }
            let systems = parallel::map(&open, |column| system(problem, column, c, tol));
            let directions = problem.directions(&mut self.preconditioners, &systems, step == 0, control)?;
            parallel::for_each(open.iter_mut().zip(&directions), |(column, direction)| {
                take(problem, column, direction, c, tol);
            });
            let max_iter = problem.settings().max_iter;
            open.retain(|column| column.outcome.status == Status::MaxIter && column.outcome.steps < max_iter);
        }
        Ok(())
    }
}

fn system<P: Smooth>(problem: &P, column: &Column, c: f64, tol: f64) -> System<P::Root> {
    let (root, mut residual) = problem.linearised(column, c);
    let constraint = residual.chunks_exact(problem.n()).map(|theta| -theta.iter().sum::<f64>()).collect();
    residual.iter_mut().zip(&column.beta).for_each(|(theta, beta)| *theta -= beta);
    let enough = (P::LAST_GAP * tol * column.primal.abs()).max(P::STEP_GAP * column.mismatch);
    System { root, residual, constraint, enough }
}

/// Takes one Newton step, and sets the status by what came of it.
fn take<P: Smooth>(problem: &P, column: &mut Column, direction: &Direction, c: f64, tol: f64) {
    column.outcome.steps += direction.passes + 1;
    let moved = step(problem, column, direction, c);
    let stuck = !moved && column.majorise;
    column.majorise = !moved;
    if !moved {
        column.b = problem.best_intercepts(column, c);
        problem.measure(column, c);
    }
    problem.find_gap(column, c, tol);
    let halved = column.gap <= 0.5 * column.best.0;
    column.best = if halved { (column.gap, 0) } else { (column.best.0, column.best.1 + 1) };
    if column.gap <= tol {
        column.outcome.status = Status::Converged;
    } else if stuck || column.best.1 > NEWTON_PATIENCE || column.gap.is_nan() {
        column.outcome.status = Status::Stalled;
    }
}

/// Moves along the direction as far as the gap falls or, if the gap does not, as far as the primal falls. False if
/// neither does.
fn step<P: Smooth>(problem: &P, column: &mut Column, direction: &Direction, c: f64) -> bool {
    let (linear, quadratic) = (dot(&column.beta, &direction.f), dot(&direction.beta, &direction.f));
    let slope_at = |t: f64| linear + t * quadratic - problem.pull(column, direction, c, t);
    let gap_at = |t: f64| problem.mismatch(column, direction, c, t);
    let Some((t, gap)) = step_length(column.mismatch, gap_at, slope_at) else { return false };
    column.mismatch = gap;
    column.advance(direction, t);
    true
}

/// The sum of known solutions, each times its share.
fn mixture(known: &[(f64, &Column)], shares: &[f64]) -> Column {
    let mix = |part: fn(&Column) -> &[f64]| {
        let mut sum = vec![0.0; part(known[0].1).len()];
        for (&share, (_, column)) in shares.iter().zip(known) {
            sum.iter_mut().zip(part(column)).for_each(|(sum, value)| *sum += share * value);
        }
        sum
    };
    Column::new(known[0].1.weight.clone(), mix(|column| &column.beta), mix(|column| &column.f), mix(|column| &column.b))
}

impl<P: Smooth> Engine for Newton<'_, P> {
    type Point = Column;

    fn remembers(&self) -> usize {
        P::REMEMBERS
    }

    fn leap(&self, last: f64) -> Option<Leap> {
        // Below this C, every row stands close to the constant model.
        let easy = 1.0 / self.problem.largest_diagonal().max(f64::MIN_POSITIVE);
        Some(Leap { from: last.max(easy), longest: LONGEST_LEAP })
    }

    /// β = 0, and the best b.
    fn constants(&mut self) -> Result<Vec<Column>> {
        let constant = |weight: &Arc<[f64]>| {
            let b = self.problem.constant(weight);
            let zeros = vec![0.0; self.problem.n() * b.len()];
            Column::new(weight.clone(), zeros.clone(), zeros, b)
        };
        Ok(self.weights.iter().map(constant).collect())
    }

    /// The mixture of the last solutions that has the smallest objective at `c`.
    fn start(&self, past: &[(f64, &Column)], c: f64) -> Column {
        let cs: Vec<f64> = past.iter().map(|(c, _)| *c).collect();
        let mix = |shares: &[f64]| {
            let column = mixture(past, shares);
            (self.problem.primal(&column, c), column)
        };
        let mixtures = mixtures(&cs, c);
        let better = |best: (f64, Column), next: (f64, Column)| if next.0 < best.0 { next } else { best };
        mixtures[1..].iter().map(|shares| mix(shares)).fold(mix(&mixtures[0]), better).1
    }

    fn solve(&mut self, jobs: &mut [Job<Column>], goal: Goal) -> Result<()> {
        let tol = self.problem.settings().tol;
        let tol = if goal == Goal::Answer { tol } else { tol.max(GAP_BETWEEN) };
        each_c(jobs, |c, columns| self.descend(columns, c, tol))
    }

    fn outcome(&self, column: &Column) -> Outcome {
        column.outcome
    }

    fn solution(&self, column: &Column) -> (Vec<f64>, Vec<f64>) {
        (column.beta.clone(), column.b.clone())
    }

    fn take(&self, column: &mut Column, _: f64, f: &[f64], _: &[f64]) -> Option<Taken> {
        column.f.copy_from_slice(f);
        None
    }

    fn learn(&self, column: &mut Column, judged: &Judged) {
        if judged.is_constant {
            column.f.fill(0.0);
        }
    }

    fn attempts(&self) -> usize {
        NEWTON_ATTEMPTS
    }

    fn leave_out(&mut self, c: f64, whole: &Whole, rows: &LeftOutRows, units: &[usize]) -> Result<Vec<Column>> {
        let starts = units.iter().map(|&u| self.problem.without(whole, rows, u));
        let mut columns = starts.collect::<Result<Vec<Column>>>()?;
        self.descend(&mut columns.iter_mut().collect::<Vec<_>>(), c, self.problem.settings().tol)?;
        Ok(columns)
    }
}
