//! Newton's method with conjugate gradients for the multinomial loss, all folds at once.
//!
//! As in [`newton`](super::newton), B = θ at the optimum, with θᵢ = Cwᵢ (e_yᵢ − pᵢ), and the columns of B sum to 0. With
//! H the curvature (Hᵢ = Cwᵢ (diag(pᵢ) − pᵢpᵢᵀ) couples the classes of a row), R = θ − B and H = AAᵀ, a Newton step is
//!
//! ```text
//! ΔB + H(KΔB + 1Δbᵀ) = R,     1ᵀ(B + ΔB) = 0
//! ΔB = R + Av:     (I + AᵀKA)v + NΔb = −AᵀKR,     Nᵀv = −1ᵀθ,     Nb = Aᵀ(1bᵀ)
//! ```
//!
//! Conjugate gradients, projected on Nᵀv = const and preconditioned by a low-rank K, solve it for all folds and classes
//! in one block, so that each pass over K is a matrix product. Half the square of their residual is the gap after the
//! step, to second order.

use faer::Mat;
use faer::linalg::solvers::DenseSolveCore;
use rayon::prelude::*;

use crate::error::Result;
use crate::grid::leaps;
use crate::multinomial::{Ledger, Problem};
use crate::observe::Control;
use crate::path::rising;
use crate::problem::{Outcome, Status};
use crate::simd::dot;
use crate::softmax::softmax;

use super::coupled::{Coupled, Curvature, ROWS};
use super::low_rank::LowRank;
use super::newton::{GAP_BETWEEN, LONGEST_LEAP, MAX_NEWTON, MAX_PASSES, PATIENCE, lines, step_length};
use super::operator::Operator;

/// A step is solved until the gap is so much of what it was, and of what is wanted.
const STEP_GAP: f64 = 1e-2;
const LAST_GAP: f64 = 0.1;

/// Probabilities count as at least this in the curvature, so that b has an equation where every row is certain.
const LEAST_PROBABILITY: f64 = 1e-9;

/// Rank of the preconditioner at first, at most, and at most for all classes together.
const FIRST_RANK: usize = 16;
const MOST_RANK: usize = 200;
const MOST_COUPLED: usize = 1024;

/// A problem in work: B, f = KB to working precision, b.
#[derive(Clone)]
pub(crate) struct Column<'a> {
    pub weight: &'a [f64],
    pub beta: Vec<f64>,
    pub f: Vec<f64>,
    pub b: Vec<f64>,
    pub outcome: Outcome,
    gap: f64,
    /// Best gap so far, and steps since it halved.
    best: (f64, usize),
    /// The last direction led nowhere: the next takes the bound on the curvature for it, which cannot.
    majorise: bool,
}

impl<'a> Column<'a> {
    fn new(weight: &'a [f64], beta: Vec<f64>, f: Vec<f64>, b: Vec<f64>) -> Self {
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
    problem: &'a Problem<'a, K>,
    low_rank: LowRank,
    /// Columns of it in use: what proved too few at one C will be at larger ones too.
    rank: usize,
    control: &'a Control,
}

impl<'a, K: Operator> SoftmaxNewton<'a, K> {
    pub fn new(problem: &'a Problem<'a, K>, control: &'a Control) -> Result<Self> {
        let most = most_rank(problem.kernel.n(), problem.softmax.classes);
        Ok(Self { problem, low_rank: problem.kernel.factor(most, control)?, rank: most.min(FIRST_RANK), control })
    }

    /// Solves all plans of a ledger at every C, from the smallest up.
    pub fn sweep(&mut self, ledger: &mut Ledger<'a, K>) -> Result<()> {
        let plans = ledger.plans;
        let mut last: Vec<Column> = plans.iter().map(|plan| self.constant(&plan.weight)).collect();
        let mut before = last.clone();
        let (mut c0, mut c1) = (0.0, 0.0);
        let tol = self.problem.settings.tol;
        // Below it, every row stands close to the constant model.
        let easy = 1.0 / self.problem.largest_diagonal.max(f64::MIN_POSITIVE);
        for (step, k) in rising(ledger.cs).into_iter().enumerate() {
            if step > 0 && self.control.out_of_time() {
                break;
            }
            let mut stalled = false;
            for c in leaps(easy.max(c1), ledger.cs[k], LONGEST_LEAP) {
                self.control.check()?;
                let is_last = c == ledger.cs[k];
                if stalled && !is_last {
                    continue; // where all stall, so they would at larger C's
                }
                let start = |(last, before)| self.start(last, before, (c0, c1, c));
                let mut columns: Vec<Column> = last.par_iter().zip(&before).map(start).collect();
                self.solve(&mut columns, c, if is_last { tol } else { tol.max(GAP_BETWEEN) })?;
                if is_last {
                    self.settle(ledger, k, &mut columns)?;
                }
                stalled = columns.iter().all(|column| column.outcome.status == Status::Stalled);
                before = std::mem::replace(&mut last, columns);
                (c0, c1) = (c1, c);
            }
            self.control.advance(plans.len());
        }
        Ok(())
    }

    /// Certifies; where rounding hid a gap, f is right now and Newton goes on.
    fn settle<'b>(&mut self, ledger: &mut Ledger<'a, K>, k: usize, columns: &mut [Column<'b>]) -> Result<()> {
        let mut pending: Vec<usize> = (0..columns.len()).collect();
        for attempt in 0..3 {
            let gaps = ledger.settle(k, &pending, columns)?;
            let tol = self.problem.settings.tol;
            let goes_on = |plan: usize| matches!(columns[plan].outcome.status, Status::Converged | Status::Stalled);
            pending =
                pending.into_iter().zip(gaps).filter(|(p, gap)| *gap > tol && goes_on(*p)).map(|(p, _)| p).collect();
            if pending.is_empty() || attempt == 2 {
                break;
            }
            let mut again: Vec<Column<'b>> = pending.iter().map(|&plan| columns[plan].clone()).collect();
            self.solve(&mut again, ledger.cs[k], tol)?;
            for (&plan, column) in pending.iter().zip(again) {
                columns[plan] = column;
            }
        }
        Ok(())
    }

    /// B = 0, and the logarithms of the classes' weights for b.
    fn constant<'b>(&self, weight: &'b [f64]) -> Column<'b> {
        let softmax = &self.problem.softmax;
        let mut b = vec![0.0; softmax.classes];
        for (&y, w) in softmax.y.iter().zip(weight) {
            b[y] += w;
        }
        let mean = b.iter().map(|b| b.ln()).sum::<f64>() / b.len() as f64;
        for b in &mut b {
            *b = b.ln() - mean;
        }
        let zeros = vec![0.0; softmax.y.len() * softmax.classes];
        Column::new(weight, zeros.clone(), zeros, b)
    }

    /// The best of the last solution and two lines through the last two: in C, and in log C.
    fn start<'b>(&self, last: &Column<'b>, before: &Column<'b>, (c0, c1, c): (f64, f64, f64)) -> Column<'b> {
        let lines = lines(c0, c1, c);
        let weight = scaled(last.weight, c);
        let on_line = |t: f64| {
            let line = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + t * (a - b)).collect::<Vec<f64>>();
            let (beta, f, b) = (line(&last.beta, &before.beta), line(&last.f, &before.f), line(&last.b, &before.b));
            (self.problem.softmax.primal(&weight, &beta, &b, &f), Column::new(last.weight, beta, f, b))
        };
        let mut best = on_line(lines[0]);
        for &t in &lines[1..] {
            let other = on_line(t);
            if other.0 < best.0 {
                best = other;
            }
        }
        best.1
    }

    /// Minimises every column at `c` from where it stands, with a margin for the rounding of f.
    fn solve(&mut self, columns: &mut [Column], c: f64, tol: f64) -> Result<()> {
        let tol = 0.5 * tol;
        columns.par_iter_mut().for_each(|column| {
            column.best = (f64::INFINITY, 0);
            column.majorise = false;
            self.judge(column, c);
            column.outcome.status = if column.gap <= tol { Status::Converged } else { Status::MaxIter };
        });
        let max_iter = self.problem.settings.max_iter;
        let mut open: Vec<&mut Column> =
            columns.iter_mut().filter(|column| column.outcome.status == Status::MaxIter).collect();
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
            let systems: Vec<System> = open.par_iter().map(|column| self.system(column, c, tol)).collect();
            let directions = self.directions(&systems)?;
            open.par_iter_mut().zip(&directions).for_each(|(column, direction)| self.take(column, direction, c, tol));
            open.retain(|column| column.outcome.status == Status::MaxIter && column.outcome.steps < max_iter);
            self.strengthen(&directions);
        }
        Ok(())
    }

    /// Doubles the rank of the preconditioner when the passes of a step cost more than making the larger one would.
    fn strengthen(&mut self, directions: &[Direction]) {
        let Problem { kernel, softmax, .. } = self.problem;
        let passes = directions.iter().map(|direction| direction.passes).max().unwrap_or(0);
        if passes * (kernel.cost() + 4 * self.rank) > 2 * self.rank * self.rank * softmax.classes {
            self.rank = (2 * self.rank).min(most_rank(kernel.n(), softmax.classes));
        }
    }

    /// One Newton step, and what came of it.
    fn take(&self, column: &mut Column, direction: &Direction, c: f64, tol: f64) {
        column.outcome.steps += direction.passes + 1;
        let moved = self.step(column, direction, c);
        let stuck = !moved && column.majorise;
        column.majorise = !moved;
        if !moved {
            let weight = scaled(column.weight, c);
            column.b = self.problem.softmax.best_intercepts(&weight, &column.f, &column.b);
        }
        self.judge(column, c);
        let halved = column.gap <= 0.5 * column.best.0;
        column.best = if halved { (column.gap, 0) } else { (column.best.0, column.best.1 + 1) };
        if column.gap <= tol {
            column.outcome.status = Status::Converged;
        } else if stuck || column.best.1 > PATIENCE || column.gap.is_nan() {
            column.outcome.status = Status::Stalled;
        }
    }

    fn judge(&self, column: &mut Column, c: f64) {
        let weight = scaled(column.weight, c);
        let Problem { softmax, largest_diagonal, .. } = self.problem;
        column.gap = softmax.bound(&weight, &column.beta, &column.b, &column.f, *largest_diagonal).gap();
    }

    fn system(&self, column: &Column, c: f64, tol: f64) -> System {
        let targets = &self.problem.softmax;
        let (n, k) = (targets.y.len(), targets.classes);
        let weight = scaled(column.weight, c);
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
        let enough = (2.0 * LAST_GAP * tol * primal.abs()).max(STEP_GAP * gap);
        System { curvature, residual, constraint, enough }
    }

    /// Projected, preconditioned conjugate gradients on all systems.
    fn directions(&self, systems: &[System]) -> Result<Vec<Direction>> {
        let factor = self.low_rank.columns(self.rank);
        let mut gradients = systems
            .par_iter()
            .map(|system| Ok(Gradients::new(system, Coupled::new(factor, &system.curvature, self.control)?)))
            .collect::<Result<Vec<Gradients>>>()?;
        let betas: Vec<&[f64]> = gradients.iter().map(|g| &g.direction.beta[..]).collect();
        let products = self.times(&betas)?;
        gradients.par_iter_mut().zip(products).for_each(|(g, product)| g.begin(product));

        let mut open: Vec<&mut Gradients> = gradients.iter_mut().collect();
        for _ in 0..MAX_PASSES {
            open.par_iter_mut().for_each(|g| g.aim());
            open.retain(|g| !g.done);
            if open.is_empty() {
                break;
            }
            let scaled: Vec<&[f64]> = open.iter().map(|g| &g.scaled[..]).collect();
            let products = self.times(&scaled)?;
            open.par_iter_mut().zip(&products).for_each(|(g, product)| g.advance(product));
            open.retain(|g| !g.done);
        }
        Ok(gradients.into_iter().map(|g| g.direction).collect())
    }

    /// K times each class of each column.
    fn times(&self, columns: &[&[f64]]) -> Result<Vec<Vec<f64>>> {
        let Problem { kernel, softmax, .. } = self.problem;
        let classes: Vec<&[f64]> = columns.iter().flat_map(|column| column.chunks_exact(kernel.n())).collect();
        let products = kernel.apply(&classes, self.control)?;
        Ok(products.chunks_exact(softmax.classes).map(<[Vec<f64>]>::concat).collect())
    }

    /// Moves along the direction, as far as the gap falls, or else the primal; false if neither does.
    fn step(&self, column: &mut Column, direction: &Direction, c: f64) -> bool {
        let targets = &self.problem.softmax;
        let weight = scaled(column.weight, c);
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
    /// (NᵀM⁻¹N)⁻¹ on vectors of sum 0, M the preconditioner.
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
        // N1 = 0: along 1, which is of no interest, anything will do.
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
        if self.search.is_empty() {
            self.search = z;
        } else {
            let keep = energy / self.energy;
            for (p, z) in self.search.iter_mut().zip(z) {
                *p = z + keep * *p;
            }
        }
        self.energy = energy;
        self.scaled = curvature.times(&self.search);
    }

    /// Moves along the search direction, given K times the scaled one.
    fn advance(&mut self, product: &[f64]) {
        self.direction.passes += 1;
        let curvature = dot(&self.search, &self.search) + dot(&self.scaled, product);
        if !(curvature > 0.0 && curvature.is_finite()) {
            self.done = true; // indefinite to rounding: what there is must do
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

fn scaled(weight: &[f64], c: f64) -> Vec<f64> {
    weight.iter().map(|w| c * w).collect()
}

/// Columns of the preconditioner's factor at most.
fn most_rank(n: usize, classes: usize) -> usize {
    (n / 8).clamp(64, MOST_RANK).min(MOST_COUPLED / classes).min(n)
}

/// Bytes that the solver takes beside K, for so many problems at once.
pub(crate) fn softmax_bytes(n: usize, classes: usize, problems: usize) -> u64 {
    let coupled = most_rank(n, classes) * classes;
    let vectors = 20 * problems * classes * n;
    let bands = rayon::current_num_threads() * ROWS.min(n) * coupled;
    let factors = 2 * n * MOST_RANK + bands + 2 * problems * coupled * coupled;
    8 * (vectors + factors) as u64
}
