//! The multinomial loss, as Newton's method sees it: θᵢ = Cwᵢ (e_yᵢ − pᵢ), and Hᵢ = Cwᵢ (diag(pᵢ) − pᵢpᵢᵀ) couples the
//! classes of a row.

use crate::certify::classes::Classes;
use crate::certify::ledger::Judge;
use crate::certify::record::Settings;
use crate::error::Result;
use crate::kernel::operator::Operator;
use crate::kernel::pivoted::LowRank;
use crate::loss::softmax::softmax;
use crate::numeric::parallel;
use crate::numeric::simd::dot;
use crate::observe::Control;
use crate::solver::newton::coupled::{ADDED_ROWS, Coupled, Curvature};
use crate::solver::newton::descent::Newton;
use crate::solver::newton::gradients::{self, Gradients};
use crate::solver::newton::smooth::{Column, Direction, Smooth, System};

/// Probabilities count as at least this in the curvature, so that b has an equation where every row is certain.
const LEAST_PROBABILITY: f64 = 1e-9;

/// Rank of the preconditioner: at first, at most, and at most when multiplied by the number of classes.
const FIRST_RANK: usize = 16;

const MOST_RANK: usize = 200;

const MOST_COUPLED: usize = 1024;

/// The solver for the multinomial loss on one kernel matrix, or on features.
pub(crate) type SoftmaxNewton<'a, K> = Newton<'a, Classes<'a, K>>;

/// A low-rank K, and how many of its columns are in use. Never fewer than before: a rank that was too small at one C is
/// too small at larger C's as well.
pub(crate) struct Ranked {
    low_rank: LowRank,
    rank: usize,
}

impl<K: Operator> Smooth for Classes<'_, K> {
    type Root = Curvature;
    type Preconditioners = Ranked;

    const STEP_GAP: f64 = 1e-2;
    const LAST_GAP: f64 = 0.2;
    const REMEMBERS: usize = 2;

    fn settings(&self) -> Settings {
        self.settings
    }

    fn largest_diagonal(&self) -> f64 {
        self.largest_diagonal
    }

    fn preconditioners(&self, control: &Control) -> Result<Ranked> {
        let most = most_rank(self.kernel.n(), self.softmax.classes);
        Ok(Ranked { low_rank: self.kernel.factor(most, control)?, rank: most.min(FIRST_RANK) })
    }

    /// The logarithms of the classes' weights.
    fn constant(&self, weight: &[f64]) -> Vec<f64> {
        let mut b = vec![0.0; self.softmax.classes];
        for (&y, w) in self.softmax.y.iter().zip(weight) {
            b[y] += w;
        }
        let mean = b.iter().map(|b| b.ln()).sum::<f64>() / b.len() as f64;
        b.iter().map(|b| b.ln() - mean).collect()
    }

    fn best_intercepts(&self, column: &Column, c: f64) -> Vec<f64> {
        self.softmax.best_intercepts(&scaled(&column.weight, c), &column.f, &column.b)
    }

    fn primal(&self, column: &Column, c: f64) -> f64 {
        self.softmax.primal(&scaled(&column.weight, c), &column.beta, &column.b, &column.f)
    }

    fn mismatch(&self, column: &Column, direction: &Direction, c: f64, t: f64) -> f64 {
        let b = at(&column.b, &direction.b, t);
        let beta = |at: usize| column.beta[at] + t * direction.beta[at];
        let score = |at: usize, c: usize| column.f[at] + t * direction.f[at] + b[c];
        self.softmax.mismatch(&scaled(&column.weight, c), beta, score)
    }

    fn pull(&self, column: &Column, direction: &Direction, c: f64, t: f64) -> f64 {
        let (f, b) = (at(&column.f, &direction.f, t), at(&column.b, &direction.b, t));
        let theta = self.softmax.slopes(&scaled(&column.weight, c), &f, &b);
        let of_b = |(theta, d): (&[f64], &f64)| d * theta.iter().sum::<f64>();
        dot(&theta, &direction.f) + theta.chunks_exact(self.n()).zip(&direction.b).map(of_b).sum::<f64>()
    }

    fn measure(&self, column: &mut Column, c: f64) {
        let (weight, Column { beta, f, b, .. }) = (scaled(&column.weight, c), &*column);
        column.mismatch = self.softmax.mismatch(&weight, |at| beta[at], |at, c| f[at] + b[c]);
    }

    /// Computes the objective, too.
    fn find_gap(&self, column: &mut Column, c: f64, _: f64) {
        let weight = scaled(&column.weight, c);
        let bound = self.softmax.bound(&weight, &column.beta, &column.b, &column.f, self.largest_diagonal);
        (column.gap, column.primal) = (bound.gap(), bound.primal);
    }

    fn linearised(&self, column: &Column, c: f64) -> (Curvature, Vec<f64>) {
        let (n, k) = (self.n(), self.softmax.classes);
        let weight = scaled(&column.weight, c);
        let mut curvature = Curvature { n, root: vec![0.0; n * k], unit: vec![0.0; n * k] };
        let mut p = vec![0.0; k];
        for (i, &cw) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            self.softmax.row(i, &mut p, |at, c| column.f[at] + column.b[c]);
            softmax(&mut p);
            for (c, p) in p.iter().enumerate() {
                // H ≤ Cw/2 (I − 11ᵀ/k) whatever p is (Böhning 1992).
                let p = (p + LEAST_PROBABILITY) / (1.0 + k as f64 * LEAST_PROBABILITY);
                let (s, p) = if column.majorise { (0.5, 1.0 / k as f64) } else { (p, p) };
                curvature.root[c * n + i] = (cw * s).sqrt();
                curvature.unit[c * n + i] = p.sqrt();
            }
        }
        (curvature, self.softmax.slopes(&weight, &column.f, &column.b))
    }

    /// Doubles the rank of the preconditioner when the passes of a step cost more than making the larger preconditioner
    /// would.
    fn directions(
        &self,
        Ranked { low_rank, rank }: &mut Ranked,
        systems: &[System<Curvature>],
        _: bool,
        control: &Control,
    ) -> Result<Vec<Direction>> {
        let Self { kernel, softmax, .. } = self;
        let factor = low_rank.columns(*rank);
        let preconditioners = parallel::try_map(systems, |system| Coupled::new(factor, &system.root, control))?;
        // Shifted along M⁻¹N until the constraint holds.
        let start = |column: usize, System { root, residual, constraint, .. }: &System<Curvature>| {
            let preconditioner = &preconditioners[column];
            let mut v = gradients::standstill(&root.root, residual);
            root.project(&mut v);
            let missing: Vec<f64> = constraint.iter().zip(root.sums(&v)).map(|(t, s)| t - s).collect();
            let shift = preconditioner.apply(&preconditioner.balanced(&missing).0);
            v.iter_mut().zip(shift).for_each(|(v, shift)| *v += shift);
            v
        };
        let aim = |open: &mut [&mut Gradients<Curvature>]| {
            parallel::for_each(open.iter_mut(), |g| {
                let preconditioner = &preconditioners[g.column];
                let sums = g.system.root.sums(&preconditioner.apply(&g.residual));
                let (of_b, b) = preconditioner.balanced(&sums);
                g.direction.b = b;
                let rest: Vec<f64> = g.residual.iter().zip(of_b).map(|(r, of_b)| r - of_b).collect();
                let z = preconditioner.apply(&rest);
                let (energy, gap) = (dot(&rest, &z), 0.5 * dot(&rest, &rest));
                g.aim(z, energy, gap);
            });
        };
        let times = |columns: &[&[f64]]| self.each_class(columns, |classes| kernel.apply(classes, control));
        let directions = gradients::directions(systems, start, aim, times)?;
        let passes = directions.iter().map(|direction| direction.passes).max().unwrap_or(0);
        if passes * (kernel.cost() + 4 * *rank) > 2 * *rank * *rank * softmax.classes {
            *rank = (2 * *rank).min(most_rank(kernel.n(), softmax.classes));
        }
        Ok(directions)
    }
}

fn scaled(weight: &[f64], c: f64) -> Vec<f64> {
    weight.iter().map(|w| c * w).collect()
}

/// Values t of the way along a direction.
fn at(values: &[f64], along: &[f64], t: f64) -> Vec<f64> {
    values.iter().zip(along).map(|(value, d)| value + t * d).collect()
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
