//! Newton's method with conjugate gradients for the multinomial loss, all folds at once.
//!
//! As in [`newton`](super::newton), B = θ at the optimum, with θᵢ = Cwᵢ (e_yᵢ − pᵢ), and the columns of B sum to 0.
//! With H the curvature (Hᵢ = Cwᵢ (diag(pᵢ) − pᵢpᵢᵀ) couples the classes of a row), R = θ − B and H = AAᵀ, a Newton
//! step is
//!
//! ```text
//! ΔB + H(KΔB + 1Δbᵀ) = R,     1ᵀ(B + ΔB) = 0
//! ΔB = R + Av:     (I + AᵀKA)v + NΔb = −AᵀKR,     Nᵀv = −1ᵀθ,     Nb = Aᵀ(1bᵀ)
//! ```
//!
//! Conjugate gradients, projected on Nᵀv = const and preconditioned by a low-rank K, solve the systems of all folds and
//! classes in one block, so that each pass over K is a matrix product. Half the square of their residual is the gap
//! after the step, to second order.

use faer::Mat;
use faer::linalg::solvers::DenseSolveCore;
use std::sync::Arc;

use crate::certify::classes::Classes;
use crate::certify::ledger::Taken;
use crate::certify::record::{Outcome, Status};
use crate::error::{Error, Result};
use crate::kernel::operator::Operator;
use crate::kernel::pivoted::LowRank;
use crate::loss::softmax::softmax;
use crate::numeric::conjugate_gradients::{Conjugate, conjugate_gradients, next_search};
use crate::numeric::parallel;
use crate::numeric::simd::dot;
use crate::observe::Control;
use crate::solver::engine::{Engine, Goal, Job, Leap, LeftOutRows, Whole, WithoutOne};
use crate::solver::newton::coupled::{ADDED_ROWS, Coupled, Curvature};
use crate::solver::newton::descent::{MAX_NEWTON, MAX_PASSES, NEWTON_PATIENCE};
use crate::solver::newton::smooth::NEWTON_ATTEMPTS;
use crate::solver::newton::starts::{GAP_BETWEEN, LONGEST_LEAP, lines, step_length};

/// A Newton step is solved until its gap is at most `COUPLED_STEP_GAP` times the gap before it, or `COUPLED_LAST_GAP` times the wanted
/// gap.
const COUPLED_STEP_GAP: f64 = 1e-2;

const COUPLED_LAST_GAP: f64 = 0.1;

/// Probabilities count as at least this in the curvature, so that b has an equation where every row is certain.
const LEAST_PROBABILITY: f64 = 1e-9;

/// Rank of the preconditioner: at first, at most, and at most when multiplied by the number of classes.
const FIRST_RANK: usize = 16;

const MOST_RANK: usize = 200;

const MOST_COUPLED: usize = 1024;

/// A problem in work: B, f = KB to working precision, b.
#[derive(Clone)]
pub(crate) struct Column {
    pub weight: Arc<[f64]>,
    pub beta: Vec<f64>,
    pub f: Vec<f64>,
    pub b: Vec<f64>,
    pub outcome: Outcome,
    gap: f64,
    /// Best gap so far, and steps since it halved.
    best: (f64, usize),
    /// Whether the last direction led nowhere. The next one then uses the bound on the curvature, with which a
    /// direction always leads down.
    majorise: bool,
}

impl Column {
    fn new(weight: Arc<[f64]>, beta: Vec<f64>, f: Vec<f64>, b: Vec<f64>) -> Self {
        let outcome = Outcome { status: Status::NotRun, steps: 0 };
        Self { weight, beta, f, b, outcome, gap: f64::INFINITY, best: (f64::INFINITY, 0), majorise: false }
    }
}

/// The Newton system of a column.
struct System {
    curvature: Curvature,
    /// R = θ − B.
    residual: Vec<f64>,
    /// −1ᵀθ.
    constraint: Vec<f64>,
    /// The gap that is small enough.
    enough: f64,
}

/// A direction: ΔB, KΔB, Δb.
struct Direction {
    beta: Vec<f64>,
    f: Vec<f64>,
    b: Vec<f64>,
    passes: usize,
}

/// The solver for the multinomial loss on one kernel matrix, or on features.
pub(crate) struct SoftmaxNewton<'a, K> {
    problem: &'a Classes<'a, K>,
    /// Weights of each problem.
    weights: Vec<Arc<[f64]>>,
    low_rank: LowRank,
    /// Columns of `low_rank` in use. Never fewer than before: a rank that was too small at one C is too small at larger
    /// C's as well.
    rank: usize,
    control: &'a Control,
}

impl<'a, K: Operator> SoftmaxNewton<'a, K> {
    pub fn new(problem: &'a Classes<'a, K>, weights: Vec<Arc<[f64]>>, control: &'a Control) -> Result<Self> {
        let most = most_rank(problem.kernel.n(), problem.softmax.classes);
        Ok(Self {
            problem,
            weights,
            low_rank: problem.kernel.factor(most, control)?,
            rank: most.min(FIRST_RANK),
            control,
        })
    }

    /// B = 0, and for b the logarithms of the classes' weights.
    fn constant(&self, weight: &Arc<[f64]>) -> Column {
        let softmax = &self.problem.softmax;
        let mut b = vec![0.0; softmax.classes];
        for (&y, w) in softmax.y.iter().zip(weight.iter()) {
            b[y] += w;
        }
        let mean = b.iter().map(|b| b.ln()).sum::<f64>() / b.len() as f64;
        for b in &mut b {
            *b = b.ln() - mean;
        }
        let zeros = vec![0.0; softmax.y.len() * softmax.classes];
        Column::new(weight.clone(), zeros.clone(), zeros, b)
    }

    /// Minimises every column at `c` from where it stands. The goal is half of `tol`, which leaves a margin for the
    /// rounding of f.
    fn descend(&mut self, columns: &mut [&mut Column], c: f64, tol: f64) -> Result<()> {
        let tol = 0.5 * tol;
        parallel::for_each(columns.iter_mut(), |column| {
            column.best = (f64::INFINITY, 0);
            column.majorise = false;
            self.judge(column, c);
            column.outcome.status = if column.gap <= tol { Status::Converged } else { Status::MaxIter };
        });
        let max_iter = self.problem.settings.max_iter;
        let mut open: Vec<&mut Column> = columns
            .iter_mut()
            .map(|column| &mut **column)
            .filter(|column| column.outcome.status == Status::MaxIter)
            .collect();
        for _ in 0..MAX_NEWTON {
            if open.is_empty() {
                break;
            }
            if self.control.out_of_time() {
                for column in open {
                    column.outcome.status = Status::TimeLimit;
                }
                break;
            }
            let systems = parallel::map(&open, |column| self.system(column, c, tol));
            let directions = self.directions(&systems)?;
            parallel::for_each(open.iter_mut().zip(&directions), |(column, direction)| {
                self.take(column, direction, c, tol);
            });
            open.retain(|column| column.outcome.status == Status::MaxIter && column.outcome.steps < max_iter);
            self.strengthen(&directions);
        }
        Ok(())
    }

    /// Doubles the rank of the preconditioner when the passes of a step cost more than making the larger preconditioner
    /// would.
    fn strengthen(&mut self, directions: &[Direction]) {
        let Classes { kernel, softmax, .. } = self.problem;
        let passes = directions.iter().map(|direction| direction.passes).max().unwrap_or(0);
        if passes * (kernel.cost() + 4 * self.rank) > 2 * self.rank * self.rank * softmax.classes {
            self.rank = (2 * self.rank).min(most_rank(kernel.n(), softmax.classes));
        }
    }

    /// Takes one Newton step, and sets the status by what came of it.
    fn take(&self, column: &mut Column, direction: &Direction, c: f64, tol: f64) {
        column.outcome.steps += direction.passes + 1;
        let moved = self.step(column, direction, c);
        let stuck = !moved && column.majorise;
        column.majorise = !moved;
        if !moved {
            let weight = scaled(&column.weight, c);
            column.b = self.problem.softmax.best_intercepts(&weight, &column.f, &column.b);
        }
        self.judge(column, c);
        let halved = column.gap <= 0.5 * column.best.0;
        column.best = if halved { (column.gap, 0) } else { (column.best.0, column.best.1 + 1) };
        if column.gap <= tol {
            column.outcome.status = Status::Converged;
        } else if stuck || column.best.1 > NEWTON_PATIENCE || column.gap.is_nan() {
            column.outcome.status = Status::Stalled;
        }
    }

    fn judge(&self, column: &mut Column, c: f64) {
        let weight = scaled(&column.weight, c);
        let Classes { softmax, largest_diagonal, .. } = self.problem;
        column.gap = softmax.bound(&weight, &column.beta, &column.b, &column.f, *largest_diagonal).gap();
    }

    fn system(&self, column: &Column, c: f64, tol: f64) -> System {
        let targets = &self.problem.softmax;
        let (n, k) = (targets.y.len(), targets.classes);
        let weight = scaled(&column.weight, c);
        let theta = targets.slopes(&weight, &column.f, &column.b);
        let mut curvature = Curvature { n, root: vec![0.0; n * k], unit: vec![0.0; n * k] };
        let mut p = vec![0.0; k];
        for (i, &cw) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            for (c, p) in p.iter_mut().enumerate() {
                *p = column.f[c * n + i] + column.b[c];
            }
            softmax(&mut p);
            for (c, p) in p.iter().enumerate() {
                // H ≤ Cw/2 (I − 11ᵀ/k) whatever p is (Böhning 1992).
                let p = (p + LEAST_PROBABILITY) / (1.0 + k as f64 * LEAST_PROBABILITY);
                let (s, p) = if column.majorise { (0.5, 1.0 / k as f64) } else { (p, p) };
                curvature.root[c * n + i] = (cw * s).sqrt();
                curvature.unit[c * n + i] = p.sqrt();
            }
        }
        let residual = theta.iter().zip(&column.beta).map(|(theta, beta)| theta - beta).collect();
        let constraint = theta.chunks_exact(n).map(|theta| -theta.iter().sum::<f64>()).collect();
        let primal = targets.primal(&weight, &column.beta, &column.b, &column.f);
        let gap = targets.mismatch(&weight, |at| column.beta[at], |at, c| column.f[at] + column.b[c]);
        let enough = (2.0 * COUPLED_LAST_GAP * tol * primal.abs()).max(COUPLED_STEP_GAP * gap);
        System { curvature, residual, constraint, enough }
    }

    /// Projected, preconditioned conjugate gradients on all systems.
    fn directions(&self, systems: &[System]) -> Result<Vec<Direction>> {
        let factor = self.low_rank.columns(self.rank);
        let mut gradients = parallel::try_map(systems, |system| {
            Ok(Gradients::new(system, Coupled::new(factor, &system.curvature, self.control)?))
        })?;
        let betas: Vec<&[f64]> = gradients.iter().map(|g| &g.direction.beta[..]).collect();
        let products = self.times(&betas)?;
        parallel::for_each(gradients.iter_mut().zip(products), |(g, product)| g.begin(product));

        let aim = |open: &mut [&mut Gradients]| {
            parallel::for_each(open.iter_mut(), |g| g.aim());
            Ok(())
        };
        conjugate_gradients(gradients.iter_mut().collect(), MAX_PASSES, aim, |searches| self.times(searches))?;
        Ok(gradients.into_iter().map(|g| g.direction).collect())
    }

    /// K times each class of each column.
    fn times(&self, columns: &[&[f64]]) -> Result<Vec<Vec<f64>>> {
        let Classes { kernel, softmax, .. } = self.problem;
        let classes: Vec<&[f64]> = columns.iter().flat_map(|column| column.chunks_exact(kernel.n())).collect();
        let products = kernel.apply(&classes, self.control)?;
        Ok(products.chunks_exact(softmax.classes).map(<[Vec<f64>]>::concat).collect())
    }

    /// Moves along the direction as far as the gap falls or, if the gap does not, as far as the primal falls. False if
    /// neither does.
    fn step(&self, column: &mut Column, direction: &Direction, c: f64) -> bool {
        let targets = &self.problem.softmax;
        let weight = scaled(&column.weight, c);
        let at = |values: &[f64], along: &[f64], t: f64| -> Vec<f64> {
            values.iter().zip(along).map(|(value, d)| value + t * d).collect()
        };
        let gap_at = |t: f64| {
            let b = at(&column.b, &direction.b, t);
            let beta = |at: usize| column.beta[at] + t * direction.beta[at];
            targets.mismatch(&weight, beta, |at, c| column.f[at] + t * direction.f[at] + b[c])
        };
        let (linear, quadratic) = (dot(&column.beta, &direction.f), dot(&direction.beta, &direction.f));
        let slope_at = |t: f64| {
            let theta = targets.slopes(&weight, &at(&column.f, &direction.f, t), &at(&column.b, &direction.b, t));
            let of_b = |(theta, d): (&[f64], &f64)| d * theta.iter().sum::<f64>();
            let pull =
                dot(&theta, &direction.f) + theta.chunks_exact(weight.len()).zip(&direction.b).map(of_b).sum::<f64>();
            linear + t * quadratic - pull
        };
        let Some((t, _)) = step_length(gap_at(0.0), gap_at, slope_at) else { return false };
        column.beta = at(&column.beta, &direction.beta, t);
        column.f = at(&column.f, &direction.f, t);
        column.b = at(&column.b, &direction.b, t);
        true
    }
}

/// Conjugate gradients on one system.
struct Gradients<'a> {
    system: &'a System,
    preconditioner: Coupled<'a>,
    /// (NᵀM⁻¹N)⁻¹ on vectors of sum 0, where M is the preconditioner.
    projection: Mat<f64>,
    direction: Direction,
    residual: Vec<f64>,
    search: Vec<f64>,
    /// A times the search direction.
    scaled: Vec<f64>,
    energy: f64,
    done: bool,
}

impl<'a> Gradients<'a> {
    /// Starts from ΔB = 0 where the curvature allows it, shifted along M⁻¹N until the constraint holds.
    fn new(system: &'a System, preconditioner: Coupled<'a>) -> Self {
        let System { curvature, residual, constraint, .. } = system;
        let k = curvature.classes();
        let mut normal = Mat::<f64>::zeros(k, k);
        for c in 0..k {
            let mut class = vec![0.0; k];
            class[c] = 1.0;
            let sums = curvature.sums(&preconditioner.apply(curvature, &curvature.of_intercepts(&class)));
            normal.col_as_slice_mut(c).copy_from_slice(&sums);
        }
        // N1 = 0: the component along 1 does not matter, so any value will do for it.
        let size = (0..k).map(|c| normal[(c, c)]).sum::<f64>() / k as f64;
        let projection = Mat::<f64>::from_fn(k, k, |c, d| normal[(c, d)] + size).partial_piv_lu().inverse();

        let mut start: Vec<f64> =
            curvature.root.iter().zip(residual).map(|(&s, r)| if s > 0.3 { -r / s } else { 0.0 }).collect();
        curvature.project(&mut start);
        let (search, scaled) = (Vec::new(), Vec::new());
        let direction = Direction { beta: Vec::new(), f: Vec::new(), b: vec![0.0; k], passes: 1 };
        let mut gradients = Self {
            system,
            preconditioner,
            projection,
            direction,
            residual: start,
            search,
            scaled,
            energy: 0.0,
            done: false,
        };
        let missing: Vec<f64> =
            constraint.iter().zip(curvature.sums(&gradients.residual)).map(|(t, s)| t - s).collect();
        let shift = curvature.of_intercepts(&gradients.projected(&missing));
        let shift = gradients.preconditioner.apply(curvature, &shift);
        gradients.residual.iter_mut().zip(shift).for_each(|(v, shift)| *v += shift);
        let along = curvature.times(&gradients.residual);
        gradients.direction.beta = residual.iter().zip(along).map(|(r, along)| r + along).collect();
        gradients
    }

    fn projected(&self, sums: &[f64]) -> Vec<f64> {
        (0..sums.len()).map(|c| (0..sums.len()).map(|d| self.projection[(c, d)] * sums[d]).sum()).collect()
    }

    /// The first residual, from v and KΔB.
    fn begin(&mut self, product: Vec<f64>) {
        let along = self.system.curvature.transposed_times(&product);
        for (v, along) in self.residual.iter_mut().zip(along) {
            *v = -*v - along;
        }
        self.direction.f = product;
    }

    /// The next search direction, from the preconditioned residual, unless the residual is small enough.
    fn aim(&mut self) {
        let System { curvature, enough, .. } = self.system;
        let sums = curvature.sums(&self.preconditioner.apply(curvature, &self.residual));
        self.direction.b = self.projected(&sums);
        let of_b = curvature.of_intercepts(&self.direction.b);
        let rest: Vec<f64> = self.residual.iter().zip(of_b).map(|(r, of_b)| r - of_b).collect();
        let z = self.preconditioner.apply(curvature, &rest);
        let energy = dot(&rest, &z);
        if 0.5 * dot(&rest, &rest) <= *enough || !(energy > 0.0 && energy.is_finite()) {
            self.done = true;
            return;
        }
        next_search(&mut self.search, z, energy, self.energy);
        self.energy = energy;
        self.scaled = curvature.times(&self.search);
    }
}

impl Conjugate for Gradients<'_> {
    fn is_done(&self) -> bool {
        self.done
    }

    /// A times the search direction.
    fn to_multiply(&self) -> &[f64] {
        &self.scaled
    }

    fn advance(&mut self, product: &[f64]) {
        self.direction.passes += 1;
        let curvature = dot(&self.search, &self.search) + dot(&self.scaled, product);
        if !(curvature > 0.0 && curvature.is_finite()) {
            self.done = true; // indefinite up to rounding: stop with the direction found so far
            return;
        }
        let t = self.energy / curvature;
        let along = self.system.curvature.transposed_times(product);
        for i in 0..product.len() {
            self.direction.beta[i] += t * self.scaled[i];
            self.direction.f[i] += t * product[i];
            self.residual[i] -= t * (self.search[i] + along[i]);
        }
    }
}

impl<K: Operator> Engine for SoftmaxNewton<'_, K> {
    type Point = Column;

    fn leap(&self, last: f64) -> Option<Leap> {
        // Below this C, every row stands close to the constant model.
        let easy = 1.0 / self.problem.largest_diagonal.max(f64::MIN_POSITIVE);
        Some(Leap { from: easy.max(last), longest: LONGEST_LEAP })
    }

    fn constants(&mut self) -> Result<Vec<Column>> {
        Ok(self.weights.iter().map(|weight| self.constant(weight)).collect())
    }

    /// The best of three starts: the last solution, and the lines through the last two solutions in C and in log C.
    fn start(&self, past: &[(f64, &Column)], c: f64) -> Column {
        let ((c1, last), (c0, before)) = (past[0], past[past.len() - 1]);
        let weight = scaled(&last.weight, c);
        let on_line = |t: f64| {
            let line = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + t * (a - b)).collect::<Vec<f64>>();
            let (beta, f, b) = (line(&last.beta, &before.beta), line(&last.f, &before.f), line(&last.b, &before.b));
            (self.problem.softmax.primal(&weight, &beta, &b, &f), Column::new(last.weight.clone(), beta, f, b))
        };
        let mut starts = lines(c0, c1, c).into_iter().map(on_line);
        let first = starts.next().unwrap_or_else(|| on_line(0.0));
        starts.fold(first, |best, other| if other.0 < best.0 { other } else { best }).1
    }

    fn solve(&mut self, jobs: &mut [Job<Column>], goal: Goal) -> Result<()> {
        let tol = self.problem.settings.tol;
        let tol = if goal == Goal::Answer { tol } else { tol.max(GAP_BETWEEN) };
        for of_c in jobs.chunk_by_mut(|a, b| a.c == b.c) {
            let c = of_c[0].c;
            let mut columns: Vec<&mut Column> = of_c.iter_mut().map(|job| &mut job.point).collect();
            self.descend(&mut columns, c, tol)?;
        }
        Ok(())
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

    fn attempts(&self) -> usize {
        NEWTON_ATTEMPTS
    }

    fn leave_out(&mut self, _: f64, _: &Whole, _: &LeftOutRows, _: &[usize]) -> Result<Vec<WithoutOne>> {
        Err(Error::NoLeaveOneOut)
    }
}

fn scaled(weight: &[f64], c: f64) -> Vec<f64> {
    weight.iter().map(|w| c * w).collect()
}

/// Most columns of the preconditioner's factor.
fn most_rank(n: usize, classes: usize) -> usize {
    (n / 8).clamp(64, MOST_RANK).min(MOST_COUPLED / classes).min(n)
}

/// Bytes that the solver takes beside K, for `problems` problems at once.
pub(crate) fn softmax_bytes(n: usize, classes: usize, problems: usize) -> u64 {
    let coupled = most_rank(n, classes) * classes;
    let vectors = 20 * problems * classes * n;
    let bands = rayon::current_num_threads() * ADDED_ROWS.min(n) * coupled;
    let factors = 2 * n * MOST_RANK + bands + 2 * problems * coupled * coupled;
    8 * (vectors + factors) as u64
}
