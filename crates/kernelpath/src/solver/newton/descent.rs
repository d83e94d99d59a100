//! Newton's method with conjugate gradients for smooth losses, many problems at once.
//!
//! At the optimum of (P) β = θ with θ = C w a(f + b), and Σβ = 0. A Newton step linearises this, with
//! S = C w L″(f + b) and r = θ − β:
//!
//! ```text
//! (I + S K) Δβ + S 1 Δb = r,     Σ(β + Δβ) = 0
//! ```
//!
//! With Δβ = r + S½v the system is symmetric, and rows without curvature (S = 0) need no special case:
//!
//! ```text
//! (I + S½ K S½) v + s Δb = −S½ K r,     sᵀv = −Σθ,     s = S½ 1
//! ```
//!
//! Each row is linearised at the f where its loss is nearest to both its f and its β ([`Loss::nearest`]). Conjugate
//! gradients, projected on sᵀv = const and preconditioned by a low-rank K, solve the systems of all problems (the
//! folds) as one block, so that each pass over K is a matrix product. If the loss were quadratic, half the square of
//! their residual would be the duality gap after the step. So they start from Δβ = 0, where it is the gap before the
//! step, and stop when it is small enough. The step is shortened until the gap falls or, if the gap does not, until the
//! primal does. Passes run in the precision of the Gram matrix: the certificate recomputes Kβ, and the next step
//! corrects what rounding lost.

use std::sync::{Arc, Mutex, PoisonError};

use crate::certify::exact::Shared;
use crate::certify::record::{Outcome, Status};
use crate::error::Result;
use crate::kernel::pivoted::{LowRank, Of};
use crate::loss::intercept::best_intercept;
use crate::numeric::cholesky::Working;
use crate::numeric::conjugate_gradients::conjugate_gradients;
use crate::numeric::parallel;
use crate::numeric::simd::{dot, within};
use crate::observe::Control;
use crate::solver::newton::gradients::Gradients;
use crate::solver::newton::precondition::Preconditioner;
use crate::solver::newton::starts::step_length;

/// Most Newton steps for one problem.
pub(crate) const MAX_NEWTON: usize = 100;

/// Most passes over K for one step.
pub(crate) const MAX_PASSES: usize = 400;

/// A Newton step is solved until its gap is at most `STEP_GAP` times the gap before it, or `LAST_GAP` times the wanted
/// gap.
const STEP_GAP: f64 = 1e-3;

const LAST_GAP: f64 = 0.04;

/// Steps without the gap halving before a problem counts as stalled.
pub(crate) const NEWTON_PATIENCE: usize = 8;

/// A problem in work: β, f = Kβ to working precision, b.
#[derive(Clone)]
pub(crate) struct Column {
    pub weight: Arc<[f64]>,
    pub beta: Vec<f64>,
    pub f: Vec<f64>,
    pub b: f64,
    pub outcome: Outcome,
    /// The gap over the objective, where β is dual feasible.
    gap: f64,
    /// The sum of the rows' Fenchel–Young terms, and the objective, as they were when last computed.
    mismatch: f64,
    primal: f64,
    /// Best gap so far, and steps since it halved.
    best: (f64, usize),
    /// Whether the last direction led nowhere. The next one then uses the bound on the curvature, with which a
    /// direction always leads down.
    majorise: bool,
}

impl Column {
    pub fn new(weight: Arc<[f64]>, beta: Vec<f64>, f: Vec<f64>, b: f64) -> Self {
        let outcome = Outcome { status: Status::NotRun, steps: 0 };
        Self {
            weight,
            beta,
            f,
            b,
            outcome,
            gap: f64::INFINITY,
            mismatch: f64::INFINITY,
            primal: 0.0,
            best: (f64::INFINITY, 0),
            majorise: false,
        }
    }
}

/// The Newton system of a column.
pub(crate) struct System {
    /// S½.
    pub root: Vec<f64>,
    /// θ − β.
    pub residual: Vec<f64>,
    /// −Σθ.
    pub constraint: f64,
    /// The gap that is small enough.
    pub enough: f64,
}

impl System {
    fn curvature(&self) -> Vec<f64> {
        self.root.iter().map(|root| root * root).collect()
    }
}

/// How much is spent on preconditioning.
#[derive(Clone, Copy, PartialEq)]
enum Strength {
    /// K of low rank, for the curvatures of all columns together.
    SharedLowRank,
    /// K of low rank, for the curvatures of each column, and made anew for each C.
    OwnLowRank,
    /// A factor of the whole matrix for all columns together.
    SharedFactor,
    /// A factor of the whole matrix for each column.
    OwnFactor,
}

/// A direction: Δβ, KΔβ, Δb.
pub(crate) struct Direction {
    pub beta: Vec<f64>,
    pub f: Vec<f64>,
    pub b: f64,
    pub passes: usize,
}

/// The solver for smooth losses on one Gram matrix.
pub(crate) struct Newton<'a, T> {
    pub shared: &'a Shared<'a, T>,
    /// Weights of each problem.
    pub weights: Vec<Arc<[f64]>>,
    low_rank: LowRank,
    /// Never made weaker: a preconditioner that was too weak at one C is too weak at larger C's as well.
    strength: Mutex<Strength>,
    pub control: &'a Control,
}

impl<'a, T: Working> Newton<'a, T> {
    /// For problems with these weights.
    pub fn new(shared: &'a Shared<'a, T>, weights: Vec<Arc<[f64]>>, control: &'a Control) -> Result<Self> {
        Ok(Self {
            shared,
            weights,
            low_rank: LowRank::new(shared.gram, rank(shared.gram.n()), control)?,
            strength: Mutex::new(Strength::SharedLowRank),
            control,
        })
    }

    /// The mixture of known solutions that has the smallest objective at `c`.
    pub fn mixed(&self, known: &[&Column], mixtures: &[Vec<f64>], c: f64) -> Column {
        let Shared { loss, y, .. } = self.shared;
        let mix = |mixture: &[f64]| {
            let mut mixed = Column::new(known[0].weight.clone(), vec![0.0; y.len()], vec![0.0; y.len()], 0.0);
            for (&share, column) in mixture.iter().zip(known) {
                mixed.b += share * column.b;
                for (sum, beta) in mixed.beta.iter_mut().zip(&column.beta) {
                    *sum += share * beta;
                }
                for (sum, f) in mixed.f.iter_mut().zip(&column.f) {
                    *sum += share * f;
                }
            }
            let [primal] = loss.sum(
                [y, &mixed.weight, &mixed.beta, &mixed.f],
                #[inline(always)]
                |loss, [y, w, beta, f]| [c * w * loss.value(y, f + mixed.b) + 0.5 * beta * f],
            );
            (primal, mixed)
        };
        let mut best = mix(&mixtures[0]);
        for mixture in &mixtures[1..] {
            let next = mix(mixture);
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }

    /// Minimises every column at `c` from where it stands. The goal is half of `tol`, so that certificates find at most
    /// `tol`.
    pub fn descend(&self, columns: &mut [&mut Column], c: f64, tol: f64) -> Result<()> {
        let tol = 0.5 * tol;
        parallel::for_each(columns.iter_mut(), |column| {
            column.best = (f64::INFINITY, 0);
            column.majorise = false;
            self.measure(column, c);
            self.judge(column, c, tol);
            column.outcome.status = if column.gap <= tol { Status::Converged } else { Status::MaxIter };
        });
        let mut open: Vec<&mut Column> = columns
            .iter_mut()
            .map(|column| &mut **column)
            .filter(|column| column.outcome.status == Status::MaxIter)
            .collect();
        let mut curved = None;
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
            let directions = self.preconditioned_directions(&systems, &mut curved)?;
            parallel::for_each(open.iter_mut().zip(&directions), |(column, direction)| {
                self.take(column, direction, c, tol);
            });
            let max_iter = self.shared.settings.max_iter;
            open.retain(|column| column.outcome.status == Status::MaxIter && column.outcome.steps < max_iter);
        }
        Ok(())
    }

    /// Takes one Newton step, and sets the status by what came of it.
    fn take(&self, column: &mut Column, direction: &Direction, c: f64, tol: f64) {
        column.outcome.steps += direction.passes + 1;
        let moved = self.step(column, direction, c);
        let stuck = !moved && column.majorise;
        column.majorise = !moved;
        if !moved {
            column.b = best_intercept(self.shared.loss, &self.shared.y, &column.weight, &column.f, column.b);
            self.measure(column, c);
        }
        self.judge(column, c, tol);
        let halved = column.gap <= 0.5 * column.best.0;
        column.best = if halved { (column.gap, 0) } else { (column.best.0, column.best.1 + 1) };
        if column.gap <= tol {
            column.outcome.status = Status::Converged;
        } else if stuck || column.best.1 > NEWTON_PATIENCE || column.gap.is_nan() {
            column.outcome.status = Status::Stalled;
        }
    }

    fn system(&self, column: &Column, c: f64, tol: f64) -> System {
        let Shared { loss, y, .. } = self.shared;
        let n = y.len();
        let mut system = System { root: vec![0.0; n], residual: vec![0.0; n], constraint: 0.0, enough: 0.0 };
        // A floor on the curvature: b would have no equation if a corner of the loss hid the curvature of every row.
        let bound = loss.curvature_bound().unwrap_or(1.0);
        let floor = if column.majorise { bound } else { 1e-9 * bound };
        let (weight, beta, f, b) = (&column.weight[..n], &column.beta[..n], &column.f[..n], column.b);
        let (root, theta) = (&mut system.root[..n], &mut system.residual[..n]);
        loss.vectorised(
            #[inline(always)]
            |loss| {
                for i in 0..n {
                    let (cw, g) = (c * weight[i], f[i] + b);
                    let at = if column.majorise || cw <= 0.0 { g } else { loss.nearest(y[i], g, beta[i] / cw) };
                    let curvature = loss.curvature(y[i], at).max(floor);
                    let slope = cw * (loss.pull(y[i], at) - curvature * (g - at));
                    root[i] = if cw > 0.0 { (cw * curvature).sqrt() } else { 0.0 };
                    theta[i] = if cw > 0.0 { slope } else { 0.0 };
                }
            },
        );
        system.constraint = -theta.iter().sum::<f64>();
        theta.iter_mut().zip(beta).for_each(|(theta, beta)| *theta -= beta);
        system.enough = (LAST_GAP * tol * column.primal.abs()).max(STEP_GAP * column.mismatch);
        system
    }

    /// Chooses the preconditioner by what the steps before have cost. For one column, a preconditioner of low rank
    /// takes the time of rank²/n passes, and a factor of the whole matrix the time of n/6 passes. `curved` keeps the
    /// pivots for this C.
    fn preconditioned_directions(&self, systems: &[System], curved: &mut Option<LowRank>) -> Result<Vec<Direction>> {
        let (gram, control) = (self.shared.gram, self.control);
        let own = || -> Vec<Vec<f64>> { systems.iter().map(System::curvature).collect() };
        let largest = || {
            let mut largest = vec![0.0_f64; gram.n()];
            for system in systems {
                for (largest, root) in largest.iter_mut().zip(&system.root) {
                    *largest = largest.max(root * root);
                }
            }
            largest
        };
        let strength = *self.strength.lock().unwrap_or_else(PoisonError::into_inner);
        let directions = match strength {
            Strength::SharedLowRank => {
                let preconditioner = Preconditioner::low_rank(&self.low_rank, &[largest()], control)?;
                self.directions(systems, &preconditioner)?
            }
            Strength::OwnLowRank => {
                let low_rank = match curved {
                    Some(low_rank) => low_rank,
                    None => curved.insert(LowRank::curved(gram, &largest(), rank(gram.n()), control)?),
                };
                let preconditioner = Preconditioner::low_rank(low_rank, &own(), control)?;
                self.directions(systems, &preconditioner)?
            }
            Strength::SharedFactor => {
                let preconditioner = Preconditioner::dense(gram, &largest(), control)?;
                self.directions(systems, &preconditioner)?
            }
            Strength::OwnFactor => {
                let mut directions = Vec::new();
                for system in systems {
                    let preconditioner = Preconditioner::dense(gram, &system.curvature(), control)?;
                    directions.append(&mut self.directions(std::slice::from_ref(system), &preconditioner)?);
                }
                directions
            }
        };
        let passes: usize = directions.iter().map(|direction| direction.passes).sum();
        let stronger = match strength {
            Strength::SharedLowRank if passes * gram.n() > 2 * systems.len() * rank(gram.n()).pow(2) => {
                Strength::OwnLowRank
            }
            Strength::OwnLowRank if 3 * passes > gram.n() => Strength::SharedFactor,
            Strength::SharedFactor if 30 * passes > gram.n() * systems.len() => Strength::OwnFactor,
            enough => enough,
        };
        *self.strength.lock().unwrap_or_else(PoisonError::into_inner) = stronger;
        Ok(directions)
    }

    /// Projected, preconditioned conjugate gradients on all systems.
    fn directions(&self, systems: &[System], preconditioner: &Preconditioner<T>) -> Result<Vec<Direction>> {
        let gram = self.shared.gram;
        let roots: Vec<Of> =
            systems.iter().enumerate().map(|(column, s)| Of { column, root: &s.root, vector: &s.root }).collect();
        let normals = preconditioner.apply(&roots);
        let mut gradients = parallel::map(systems.iter().zip(normals).enumerate(), |(column, (system, normal))| {
            Gradients::new(column, system, normal)
        });
        let betas: Vec<&[f64]> = gradients.iter().map(|g| &g.direction.beta[..]).collect();
        let products = gram.apply(&betas, self.control)?;
        parallel::for_each(gradients.iter_mut().zip(products), |(g, product)| g.begin(product));

        let aim = |open: &mut [&mut Gradients]| {
            let residuals: Vec<Of> =
                open.iter().map(|g| Of { column: g.column, root: &g.system.root, vector: &g.residual }).collect();
            let preconditioned = preconditioner.apply(&residuals);
            parallel::for_each(open.iter_mut().zip(preconditioned), |(g, z)| g.aim(z));
            Ok(())
        };
        let open = gradients.iter_mut().collect();
        conjugate_gradients(open, MAX_PASSES, aim, |searches| gram.apply(searches, self.control))?;
        Ok(gradients.into_iter().map(|g| g.direction).collect())
    }

    /// Moves along the direction as far as the gap falls or, if the gap does not, as far as the primal falls. False if
    /// neither does.
    fn step(&self, column: &mut Column, direction: &Direction, c: f64) -> bool {
        let Shared { loss, y, .. } = self.shared;
        let (linear, quadratic) = (dot(&column.beta, &direction.f), dot(&direction.beta, &direction.f));
        let slope_at = |t: f64| {
            let [pull] = loss.sum(
                [y, &column.weight, &column.f, &direction.f],
                #[inline(always)]
                |loss, [y, w, f, d_f]| {
                    let step = d_f + direction.b;
                    [w * loss.pull(y, f + column.b + t * step) * step]
                },
            );
            linear + t * quadratic - c * pull
        };
        let gap_at = |t: f64| {
            let [gap, _] = self.mismatch(column, c, t, (&direction.beta, &direction.f, direction.b));
            gap
        };
        let Some((t, gap)) = step_length(column.mismatch, gap_at, slope_at) else { return false };
        column.mismatch = gap;
        column.gap = relative(gap, column.primal);
        for (beta, d) in column.beta.iter_mut().zip(&direction.beta) {
            *beta += t * d;
        }
        for (f, d) in column.f.iter_mut().zip(&direction.f) {
            *f += t * d;
        }
        column.b += t * direction.b;
        true
    }

    /// Judges the column by its gap so far. If that is small enough, brings β into the domain of the dual with Σβ = 0,
    /// and f along with it. (With a larger gap, this would throw Newton back.)
    fn judge(&self, column: &mut Column, c: f64, tol: f64) {
        for (i, beta) in column.beta.iter_mut().enumerate() {
            let cw = c * column.weight[i];
            if cw > 0.0 {
                let (lo, hi) = self.shared.loss.domain(self.shared.y[i]);
                let inside = within(*beta, cw * lo, cw * hi);
                if (inside - *beta).abs() <= 1e-12 * cw {
                    *beta = inside; // changes f by less than its rounding error
                }
            }
        }
        if column.gap > tol || column.gap.is_nan() {
            return;
        }
        let Some((rows, values)) = self.corrections(column, c) else {
            column.gap = f64::INFINITY;
            return;
        };
        let mut candidate = column.clone();
        let deltas: Vec<f64> = rows.iter().zip(&values).map(|(&i, value)| value - column.beta[i]).collect();
        for (&i, value) in rows.iter().zip(values) {
            candidate.beta[i] = value;
        }
        self.shared.gram.add_rows(&rows, &deltas, &mut candidate.f);
        self.measure(&mut candidate, c);
        column.gap = candidate.gap;
        if column.gap <= tol {
            column.beta = candidate.beta;
            column.f = candidate.f;
        }
    }

    /// The rows to change, and their new values, that make β dual feasible; `None` if no row has room for what Σβ
    /// misses.
    fn corrections(&self, column: &Column, c: f64) -> Option<(Vec<usize>, Vec<f64>)> {
        let Shared { loss, y, .. } = self.shared;
        let bounds = |i: usize| {
            let (lo, hi) = loss.domain(y[i]);
            let cw = c * column.weight[i];
            if cw > 0.0 { (cw * lo, cw * hi) } else { (0.0, 0.0) }
        };
        let mut changed: Vec<(usize, f64)> = Vec::new();
        let (mut surplus, mut size) = (0.0, 0.0);
        let mut roomiest = (0.0, 0);
        for (i, &beta) in column.beta.iter().enumerate() {
            let (lo, hi) = bounds(i);
            let inside = within(beta, lo, hi);
            surplus += inside;
            size += inside.abs();
            if inside == beta {
                let room = (beta - lo).min(hi - beta);
                let room = if room.is_finite() { room } else { c * column.weight[i] };
                if room > roomiest.0 {
                    roomiest = (room, i);
                }
            } else {
                changed.push((i, inside));
            }
        }
        // What Σβ misses goes to the row with the most room.
        if surplus.abs() > 1e-15 * size {
            if surplus.abs() > 0.5 * roomiest.0 {
                return None;
            }
            changed.push((roomiest.1, column.beta[roomiest.1] - surplus));
        }
        Some(changed.into_iter().unzip())
    }

    /// Sums the Fenchel–Young terms of the column, and computes its objective.
    fn measure(&self, column: &mut Column, c: f64) {
        let [mismatch, loss] = self.mismatch(column, c, 0.0, (&column.beta, &column.f, column.b));
        column.mismatch = mismatch;
        column.primal = 0.5 * dot(&column.beta, &column.f) + loss;
        column.gap = relative(mismatch, column.primal);
    }

    /// The sum of the rows' Fenchel–Young terms, t of the way along a direction in β, f and b, and the sum of their
    /// losses. The first sum is the gap where β is dual feasible. Elsewhere β is clamped, and the sum includes a price
    /// for that.
    fn mismatch(&self, column: &Column, c: f64, t: f64, (d_beta, d_f, d_b): (&[f64], &[f64], f64)) -> [f64; 2] {
        let Shared { loss, y, .. } = self.shared;
        loss.sum(
            [y, &column.weight, &column.beta, &column.f, d_beta, d_f],
            #[inline(always)]
            |loss, [y, w, beta, f, d_beta, d_f]| {
                let cw = c * w;
                let (beta, g) = (beta + t * d_beta, f + column.b + t * (d_f + d_b));
                let (lo, hi) = loss.domain(y);
                // For a row of weight 0 everything is computed and nothing counts: a branch would prevent SIMD.
                let a = (beta / cw).max(lo).min(hi);
                let (value, outside) = (loss.value(y, g), beta - cw * a);
                let mismatch = cw * (value - loss.dual_value(y, a) + a * g) + 0.5 * outside * outside;
                [mismatch, cw * value].map(
                    #[inline(always)]
                    |term| if cw > 0.0 { term } else { 0.0 },
                )
            },
        )
    }
}

/// A gap, relative to the larger of the primal and the dual objective.
fn relative(gap: f64, primal: f64) -> f64 {
    let scale = primal.abs().max((primal - gap).abs());
    if scale > 0.0 { gap / scale } else { 0.0 }
}

/// Columns of the low-rank K.
fn rank(n: usize) -> usize {
    (n / 8).clamp(64, 200)
}
