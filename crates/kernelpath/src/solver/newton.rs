//! Newton's method with conjugate gradients for smooth losses, many problems at once.
//!
//! At the optimum of (P) β = θ with θ = C w a(f + b), and Σβ = 0. A Newton step linearises this, with
//! S = C w L″(f + b) and r = θ − β:
//!
//! ```text
//! (I + S K) Δβ + S 1 Δb = r,     Σ(β + Δβ) = 0
//! ```
//!
//! With Δβ = r + S½v it is symmetric, and rows without curvature (S = 0) need no special case:
//!
//! ```text
//! (I + S½ K S½) v + s Δb = −S½ K r,     sᵀv = −Σθ,     s = S½ 1
//! ```
//!
//! Each row is linearised at the f where its loss is nearest to both its f and its β ([`Loss::nearest`]).
//! Conjugate gradients, projected on sᵀv = const and preconditioned by a low-rank K, solve it for all
//! problems (the folds) as one block, so that each pass over K is a matrix product. Were the loss
//! quadratic, half the square of their residual would be the duality gap after the step: they start where
//! it is the gap before (Δβ = 0) and stop when it is small enough. The step is shortened until the gap falls, or
//! if it does not, the primal. Passes run in the precision of the Gram matrix: the certificate recomputes
//! Kβ, and the next step corrects what rounding lost.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::error::Result;
use crate::grid::leaps;
use crate::ledger::{Ledger, Solution};
use crate::loss::best_intercept;
use crate::observe::Control;
use crate::path::rising;
use crate::problem::{Outcome, Shared, Status};
use crate::simd::{dot, within};

use super::cholesky::Working;
use super::low_rank::{LowRank, Of};
use super::precondition::Preconditioner;

/// Newton steps for one problem.
pub(super) const MAX_NEWTON: usize = 100;

/// Passes over K for one step.
pub(super) const MAX_PASSES: usize = 400;

/// A step is solved until the gap is so much of what it was, and of what is wanted.
const STEP_GAP: f64 = 1e-3;
const LAST_GAP: f64 = 0.04;

/// A C that is so many times the last one is reached by others in between, each solved to this gap.
pub(super) const LONGEST_LEAP: f64 = 10.0;
pub(super) const GAP_BETWEEN: f64 = 1e-3;

/// Most of a known solution that a parabola through three takes, or takes away: of C's that are nearly equal it would be
/// so much that only their rounding is left.
const LARGEST_SHARE: f64 = 1e3;

/// Steps without the gap halving before a problem counts as stalled.
pub(super) const PATIENCE: usize = 8;

/// A problem in work: β, f = Kβ to working precision, b.
#[derive(Clone)]
pub(crate) struct Column<'a> {
    pub weight: &'a [f64],
    pub beta: Vec<f64>,
    pub f: Vec<f64>,
    pub b: f64,
    pub outcome: Outcome,
    /// The gap over the objective, where β is dual feasible.
    gap: f64,
    /// The sum of the rows' Fenchel–Young terms, and the objective when it was last summed.
    mismatch: f64,
    primal: f64,
    /// Best gap so far, and steps since it halved.
    best: (f64, usize),
    /// The last direction led nowhere: the next takes the bound on the curvature for it, which cannot.
    majorise: bool,
}

impl<'a> Column<'a> {
    pub fn new(weight: &'a [f64], beta: Vec<f64>, f: Vec<f64>, b: f64) -> Self {
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
struct System {
    /// S½.
    root: Vec<f64>,
    /// θ − β.
    residual: Vec<f64>,
    /// −Σθ.
    constraint: f64,
    /// The gap that is small enough.
    enough: f64,
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
    /// For those of each column, and made anew for each C.
    OwnLowRank,
    /// A factor of the whole matrix for all columns together.
    SharedFactor,
    /// One for each column.
    OwnFactor,
}

/// A direction: Δβ, KΔβ, Δb.
struct Direction {
    beta: Vec<f64>,
    f: Vec<f64>,
    b: f64,
    passes: usize,
}

/// The solver for smooth losses on one Gram matrix.
pub(crate) struct Newton<'a, T> {
    shared: &'a Shared<'a, T>,
    low_rank: LowRank,
    /// What proved too weak at one C will be at larger ones too.
    strength: Mutex<Strength>,
    control: &'a Control,
}

impl<'a, T: Working> Newton<'a, T> {
    pub fn new(shared: &'a Shared<'a, T>, control: &'a Control) -> Result<Self> {
        Ok(Self {
            shared,
            low_rank: LowRank::new(shared.gram, rank(shared.gram.n()), control)?,
            strength: Mutex::new(Strength::SharedLowRank),
            control,
        })
    }

    /// Solves all plans of a ledger at every C, from the smallest up.
    pub fn sweep(&self, ledger: &Ledger<T>) -> Result<()> {
        let n = self.shared.gram.n();
        let constant = |weight| {
            let mut column = Column::new(weight, vec![0.0; n], vec![0.0; n], 0.0);
            column.b = best_intercept(self.shared.loss, &self.shared.y, weight, &column.f, 0.0);
            column
        };
        let tol = self.shared.settings.tol;
        // Below it, every row stands close to the constant model.
        let easy = 1.0 / (0..n).map(|i| self.shared.gram.get(i, i)).fold(f64::MIN_POSITIVE, f64::max);
        // The solutions at the last C's, the newest first.
        let mut past: Vec<(f64, Vec<Column>)> =
            vec![(0.0, ledger.plans.iter().map(|plan| constant(&plan.weight)).collect())];
        for (step, k) in rising(ledger.cs).into_iter().enumerate() {
            if step > 0 && self.control.out_of_time() {
                break;
            }
            let mut stalled = false;
            for c in leaps(past[0].0.max(easy), ledger.cs[k], LONGEST_LEAP) {
                self.control.check()?;
                if stalled && c < ledger.cs[k] {
                    continue; // where all stall, so they would at larger C's
                }
                let mixtures = mixtures(&past.iter().map(|(c, _)| *c).collect::<Vec<_>>(), c);
                let start = |plan: usize| {
                    let known: Vec<&Column> = past.iter().map(|(_, columns)| &columns[plan]).collect();
                    self.start(&known, &mixtures, c)
                };
                let mut columns: Vec<Column> = (0..ledger.plans.len()).into_par_iter().map(start).collect();
                if c == ledger.cs[k] {
                    self.solve(&mut columns, c, tol)?;
                    self.settle(ledger, k, &mut columns)?;
                } else {
                    self.solve(&mut columns, c, tol.max(GAP_BETWEEN))?;
                    stalled = columns.iter().all(|column| column.outcome.status == Status::Stalled);
                }
                past.insert(0, (c, columns));
                past.truncate(3);
            }
            self.control.advance(ledger.plans.len());
        }
        Ok(())
    }

    /// Certifies; where rounding hid a gap, f is right now and Newton goes on.
    fn settle(&self, ledger: &Ledger<T>, k: usize, columns: &mut [Column]) -> Result<()> {
        let mut pending: Vec<usize> = (0..columns.len()).collect();
        for attempt in 0..3 {
            let solution = |&plan: &usize| {
                let column: &Column = &columns[plan];
                Solution { plan, c: k, beta: column.beta.clone(), b: column.b, outcome: column.outcome }
            };
            let batch: Vec<Solution> = pending.iter().map(solution).collect();
            let mut short = Vec::new();
            ledger.settle(batch, |at, gap, f| {
                let column = &mut columns[pending[at]];
                column.f.copy_from_slice(f);
                if gap > self.shared.settings.tol
                    && matches!(column.outcome.status, Status::Converged | Status::Stalled)
                {
                    short.push(pending[at]);
                }
            })?;
            if short.is_empty() || attempt == 2 {
                return Ok(());
            }
            let mut again: Vec<Column> = short.iter().map(|&plan| columns[plan].clone()).collect();
            self.solve(&mut again, ledger.cs[k], self.shared.settings.tol)?;
            for (&plan, column) in short.iter().zip(again) {
                columns[plan] = column;
            }
            pending = short;
        }
        Ok(())
    }

    /// The best mixture of known solutions at `c`.
    fn start<'b>(&self, known: &[&Column<'b>], mixtures: &[Vec<f64>], c: f64) -> Column<'b> {
        let Shared { loss, y, .. } = self.shared;
        let mix = |mixture: &[f64]| {
            let mut mixed = Column::new(known[0].weight, vec![0.0; y.len()], vec![0.0; y.len()], 0.0);
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
                [y, mixed.weight, &mixed.beta, &mixed.f],
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

    /// Minimises every column at `c` from where it stands, to half of `tol`: certificates are to find no more than it.
    pub fn solve(&self, columns: &mut [Column], c: f64, tol: f64) -> Result<()> {
        let tol = 0.5 * tol;
        columns.par_iter_mut().for_each(|column| {
            column.best = (f64::INFINITY, 0);
            column.majorise = false;
            self.measure(column, c);
            self.judge(column, c, tol);
            column.outcome.status = if column.gap <= tol { Status::Converged } else { Status::MaxIter };
        });
        let mut open: Vec<&mut Column> =
            columns.iter_mut().filter(|column| column.outcome.status == Status::MaxIter).collect();
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
            let systems: Vec<System> = open.par_iter().map(|column| self.system(column, c, tol)).collect();
            let directions = self.preconditioned_directions(&systems, &mut curved)?;
            open.par_iter_mut().zip(&directions).for_each(|(column, direction)| self.take(column, direction, c, tol));
            let max_iter = self.shared.settings.max_iter;
            open.retain(|column| column.outcome.status == Status::MaxIter && column.outcome.steps < max_iter);
        }
        Ok(())
    }

    /// One Newton step, and what came of it.
    fn take(&self, column: &mut Column, direction: &Direction, c: f64, tol: f64) {
        column.outcome.steps += direction.passes + 1;
        let moved = self.step(column, direction, c);
        let stuck = !moved && column.majorise;
        column.majorise = !moved;
        if !moved {
            column.b = best_intercept(self.shared.loss, &self.shared.y, column.weight, &column.f, column.b);
            self.measure(column, c);
        }
        self.judge(column, c, tol);
        let halved = column.gap <= 0.5 * column.best.0;
        column.best = if halved { (column.gap, 0) } else { (column.best.0, column.best.1 + 1) };
        if column.gap <= tol {
            column.outcome.status = Status::Converged;
        } else if stuck || column.best.1 > PATIENCE || column.gap.is_nan() {
            column.outcome.status = Status::Stalled;
        }
    }

    fn system(&self, column: &Column, c: f64, tol: f64) -> System {
        let Shared { loss, y, .. } = self.shared;
        let n = y.len();
        let mut system = System { root: vec![0.0; n], residual: vec![0.0; n], constraint: 0.0, enough: 0.0 };
        // Where a corner of the loss hides the curvature of every row, b would have no equation.
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

    /// Chooses the preconditioner by what the steps before have cost: of a column, one of low rank takes the time of
    /// rank²/n passes, and a factor of the whole matrix that of n/6. `curved` keeps the pivots of this C.
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
        let mut gradients: Vec<Gradients> = systems
            .par_iter()
            .zip(normals)
            .enumerate()
            .map(|(column, (system, normal))| Gradients::new(column, system, normal))
            .collect();
        let betas: Vec<&[f64]> = gradients.iter().map(|g| &g.direction.beta[..]).collect();
        let products = gram.apply(&betas, self.control)?;
        gradients.par_iter_mut().zip(products).for_each(|(g, product)| g.begin(product));

        let mut open: Vec<&mut Gradients> = gradients.iter_mut().collect();
        for _ in 0..MAX_PASSES {
            let residuals: Vec<Of> =
                open.iter().map(|g| Of { column: g.column, root: &g.system.root, vector: &g.residual }).collect();
            let preconditioned = preconditioner.apply(&residuals);
            open.par_iter_mut().zip(preconditioned).for_each(|(g, z)| g.aim(z));
            open.retain(|g| !g.done);
            if open.is_empty() {
                break;
            }
            let scaled: Vec<&[f64]> = open.iter().map(|g| &g.scaled[..]).collect();
            let products = gram.apply(&scaled, self.control)?;
            open.par_iter_mut().zip(&products).for_each(|(g, product)| g.advance(product));
            open.retain(|g| !g.done);
        }
        Ok(gradients.into_iter().map(|g| g.direction).collect())
    }

    /// Moves along the direction, as far as the gap falls, or else the primal; false if neither does.
    fn step(&self, column: &mut Column, direction: &Direction, c: f64) -> bool {
        let Shared { loss, y, .. } = self.shared;
        let (linear, quadratic) = (dot(&column.beta, &direction.f), dot(&direction.beta, &direction.f));
        let slope_at = |t: f64| {
            let [pull] = loss.sum(
                [y, column.weight, &column.f, &direction.f],
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

    /// Judges the column by its gap so far: if that is good enough brings β into the domain of the dual with Σβ = 0, f with it.
    /// (While it is not, that would throw Newton back.)
    fn judge(&self, column: &mut Column, c: f64, tol: f64) {
        for (i, beta) in column.beta.iter_mut().enumerate() {
            let cw = c * column.weight[i];
            if cw > 0.0 {
                let (lo, hi) = self.shared.loss.domain(self.shared.y[i]);
                let inside = within(*beta, cw * lo, cw * hi);
                if (inside - *beta).abs() <= 1e-12 * cw {
                    *beta = inside; // which changes f by less than it is known to
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

    /// Rows of β, with their values, whose change makes it dual feasible; `None` where no row has room for what Σβ misses.
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

    /// Sums the terms of the column, and its objective.
    fn measure(&self, column: &mut Column, c: f64) {
        let [mismatch, loss] = self.mismatch(column, c, 0.0, (&column.beta, &column.f, column.b));
        column.mismatch = mismatch;
        column.primal = 0.5 * dot(&column.beta, &column.f) + loss;
        column.gap = relative(mismatch, column.primal);
    }

    /// Sum of the rows' Fenchel–Young terms, t of the way along a direction in β, f and b, and of their losses. The first
    /// is the gap, where β is dual feasible; where it is not, β is clamped, and that has its price.
    fn mismatch(&self, column: &Column, c: f64, t: f64, (d_beta, d_f, d_b): (&[f64], &[f64], f64)) -> [f64; 2] {
        let Shared { loss, y, .. } = self.shared;
        loss.sum(
            [y, column.weight, &column.beta, &column.f, d_beta, d_f],
            #[inline(always)]
            |loss, [y, w, beta, f, d_beta, d_f]| {
                let cw = c * w;
                let (beta, g) = (beta + t * d_beta, f + column.b + t * (d_f + d_b));
                let (lo, hi) = loss.domain(y);
                // Of a row of weight 0 all is computed and nothing counts: a branch would not be SIMD.
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

/// A gap over the larger of both objectives.
fn relative(gap: f64, primal: f64) -> f64 {
    let scale = primal.abs().max((primal - gap).abs());
    if scale > 0.0 { gap / scale } else { 0.0 }
}

/// Columns of a K of low rank.
fn rank(n: usize) -> usize {
    (n / 8).clamp(64, 200)
}

/// How far a line through the solutions at c0 and c1 may be followed to reach c: not at all, in C, or in log C.
pub(super) fn lines(c0: f64, c1: f64, c: f64) -> Vec<f64> {
    let mut lines = vec![0.0];
    if c1 > c0 {
        lines.push((c - c1) / (c1 - c0));
    }
    if c0 > 0.0 && c1 > c0 {
        lines.push((c / c1).ln() / (c1 / c0).ln());
    }
    // Between C's that are nearly equal rounding is all that moved the solution.
    lines.retain(|t| *t <= LONGEST_LEAP);
    lines
}

/// Guesses at the solution at c as mixtures of those at `cs`, the newest first: the newest; the line through two in C,
/// and in log C; the parabola through three in log C.
fn mixtures(cs: &[f64], c: f64) -> Vec<Vec<f64>> {
    let mut mixtures = vec![vec![1.0]];
    if let [c1, c0, ..] = cs[..] {
        mixtures = lines(c0, c1, c).into_iter().map(|t| vec![1.0 + t, -t]).collect();
    }
    if let [c2, c1, c0] = cs[..]
        && c0 > 0.0
        && c1 > c0
        && c2 > c1
    {
        let [x0, x1, x2, x] = [c0, c1, c2, c].map(f64::ln);
        let share = |a: f64, b: f64, c: f64| (x - b) * (x - c) / ((a - b) * (a - c));
        let parabola = vec![share(x2, x1, x0), share(x1, x0, x2), share(x0, x1, x2)];
        if parabola.iter().all(|share| share.abs() <= LARGEST_SHARE) {
            mixtures.push(parabola);
        }
    }
    mixtures
}

/// The t in (0, 1] to which the gap falls from what it is `now`, or if it does not, the primal, and the gap there;
/// `None` if neither does.
/// What is no number counts as no fall.
pub(super) fn step_length(now: f64, gap_at: impl Fn(f64) -> f64, slope_at: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
    let finite = |t: f64, gap: f64| gap.is_finite().then_some((t, gap));
    let (mut t, mut gap) = (1.0, gap_at(1.0));
    while t > 0.01 && (gap > 0.1 * now || gap.is_nan()) {
        let shorter = gap_at(0.7 * t);
        if shorter >= gap && gap < (1.0 - 0.1 * t) * now {
            break;
        }
        (t, gap) = (0.7 * t, shorter);
    }
    if t > 0.01 {
        return finite(t, gap);
    }
    // The primal is convex along the line: its slope can be bisected.
    let slope = slope_at(0.0);
    if slope.is_nan() || slope >= 0.0 {
        return None;
    }
    if slope_at(1.0) <= -0.1 * slope {
        return finite(1.0, gap_at(1.0));
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..30 {
        t = 0.5 * (low + high);
        let here = slope_at(t);
        if here.abs() <= -0.1 * slope {
            break;
        }
        if here < 0.0 { low = t } else { high = t }
    }
    finite(t, gap_at(t))
}

/// Conjugate gradients on one system.
struct Gradients<'a> {
    column: usize,
    system: &'a System,
    /// M⁻¹s, and sᵀM⁻¹s.
    normal: Vec<f64>,
    normal_size: f64,
    direction: Direction,
    residual: Vec<f64>,
    search: Vec<f64>,
    /// S½ times the search direction.
    scaled: Vec<f64>,
    energy: f64,
    done: bool,
}

impl<'a> Gradients<'a> {
    /// Starts from Δβ = 0 where the curvature allows it, shifted along M⁻¹s until the constraint holds.
    fn new(column: usize, system: &'a System, normal: Vec<f64>) -> Self {
        let System { root, residual, .. } = system;
        let normal_size = dot(root, &normal);
        let v: Vec<f64> = root.iter().zip(residual).map(|(&s, r)| if s > 0.3 { -r / s } else { 0.0 }).collect();
        let shift = if normal_size > 0.0 { (system.constraint - dot(root, &v)) / normal_size } else { 0.0 };
        let v: Vec<f64> = v.iter().zip(&normal).map(|(v, z)| v + shift * z).collect();
        let beta = (0..v.len()).map(|i| residual[i] + root[i] * v[i]).collect();
        let direction = Direction { beta, f: Vec::new(), b: 0.0, passes: 1 };
        let (search, scaled) = (Vec::new(), Vec::new());
        Self { column, system, normal, normal_size, direction, residual: v, search, scaled, energy: 0.0, done: false }
    }

    /// The first residual, from v and KΔβ.
    fn begin(&mut self, product: Vec<f64>) {
        for ((v, s), f) in self.residual.iter_mut().zip(&self.system.root).zip(&product) {
            *v = -*v - s * f;
        }
        self.direction.f = product;
    }

    /// The next search direction, from the preconditioned residual, unless the residual is small enough.
    fn aim(&mut self, mut z: Vec<f64>) {
        let System { root, enough, .. } = self.system;
        let shift = if self.normal_size > 0.0 { dot(root, &z) / self.normal_size } else { 0.0 };
        for (z, normal) in z.iter_mut().zip(&self.normal) {
            *z -= shift * normal;
        }
        self.direction.b = shift;
        let gap: f64 = self.residual.iter().zip(root).map(|(r, s)| 0.5 * (r - s * shift).powi(2)).sum();
        let energy = dot(&self.residual, &z);
        if gap <= *enough || !(energy > 0.0 && energy.is_finite()) {
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
        self.scaled = root.iter().zip(&self.search).map(|(s, p)| s * p).collect();
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
        for (i, product) in product.iter().enumerate() {
            self.direction.beta[i] += t * self.scaled[i];
            self.direction.f[i] += t * product;
            self.residual[i] -= t * (self.search[i] + self.system.root[i] * product);
        }
    }
}
