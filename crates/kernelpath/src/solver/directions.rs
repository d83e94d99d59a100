//! The linear systems of Newton's method in rank dimensions: many at once.
//!
//! ```text
//! (I + Zᵀ S Z) Δw + Zᵀ S 1 Δb = −e,     1ᵀ S Z Δw + 1ᵀ S 1 Δb = 0
//! ```
//!
//! Only rows with curvature take part. Where the systems have most of these rows in common, they are solved by conjugate
//! gradients as one block, preconditioned by one Cholesky factor of their mean, or by one each where that is cheaper than
//! the passes; where each has few rows and of its own, each by itself, on one thread: [by its rows](super::by_rows) if
//! they are fewer than the features. Between two steps few rows come in or go out, so that factors serve for many steps.

use std::borrow::Cow;

use faer::Mat;
use rayon::prelude::*;

use crate::design::{Accuracy, Design};
use crate::device::Device;
use crate::error::Result;
use crate::observe::Control;
use crate::simd::dot;

use super::by_rows::{ByRows, Products};
use super::cholesky::{Cholesky, Working};

/// A step is solved until ½‖e‖² is so much of what it was.
const STEP_GAP: f64 = 0.1;

/// Conjugate gradients of one step.
const MAX_PASSES: usize = 200;

/// Ridge of a factor in single precision, relative to the largest entry.
const RIDGE: f64 = 3e-7;

/// Up to so many rows a factor by rows is cheaper than the passes with one that is kept.
const LARGEST_BY_ROWS: usize = 512;

/// Stands for the curvature in b where no row has any.
const FLOOR: f64 = 1e-6;

/// A system: S, and e on its right-hand side.
pub(super) struct Equation<'a> {
    /// The problem that it belongs to, whose factor is kept.
    pub plan: usize,
    pub s: &'a [f64],
    pub error: &'a [f64],
    /// Small enough, for ‖residual‖², whatever ‖e‖² is.
    pub enough: f64,
}

impl Equation<'_> {
    /// Rows that take part.
    fn n_active(&self) -> usize {
        self.s.iter().filter(|s| **s > 0.0).count()
    }
}

/// What conjugate gradients divide by: factors of earlier systems, kept as long as they serve.
pub(crate) struct Preconditioner<T> {
    /// Of the mean of all systems.
    shared: Option<Factor<T>>,
    /// Per plan its own, where the shared one does not do, and the passes of its last step.
    own: Vec<Option<Factor<T>>>,
    passes: Vec<usize>,
    /// Of rows that took part.
    products: Option<Products<T>>,
}

impl<T> Preconditioner<T> {
    /// Bytes that it takes at most.
    pub fn bytes(n: usize, rank: usize, plans: usize) -> u64 {
        Products::<T>::bytes(n, rank) + ((plans + 1) * (rank + 1).pow(2) * size_of::<T>()) as u64
    }

    pub fn new(plans: usize) -> Self {
        Self { shared: None, own: (0..plans).map(|_| None).collect(), passes: vec![0; plans], products: None }
    }
}

/// A factor in the precision of the steps.
enum Factor<T> {
    Working(Cholesky<T>),
    Double(Cholesky<f64>),
    Rows(ByRows<T>),
}

impl<T: Working> Factor<T> {
    /// B ← (UᵀU)⁻¹B for columns of length `order`.
    fn solve(&self, b: &mut [f64], order: usize) {
        match self {
            Self::Double(factor) => factor.solve(b, order),
            Self::Rows(rows) => rows.solve(b),
            Self::Working(factor) => {
                // Scaled to 1, so that single precision neither overflows nor loses small residuals.
                let scale = |column: &[f64]| column.iter().fold(f64::MIN_POSITIVE, |a, v| a.max(v.abs()));
                let scales: Vec<f64> = b.chunks_exact(order).map(scale).collect();
                let mut narrow: Vec<T> = Vec::with_capacity(b.len());
                for (column, scale) in b.chunks_exact(order).zip(&scales) {
                    narrow.extend(column.iter().map(|v| T::narrow(v / scale)));
                }
                factor.solve(&mut narrow, order);
                for ((column, narrow), scale) in b.chunks_exact_mut(order).zip(narrow.chunks_exact(order)).zip(scales) {
                    column.iter_mut().zip(narrow).for_each(|(v, narrow)| *v = narrow.wide() * scale);
                }
            }
        }
    }
}

/// Of [I 0; 0 0] + `curvature`.
fn factor_of<R: Working>(curvature: &Mat<R>, control: &Control) -> Result<Cholesky<R>> {
    let order = curvature.nrows();
    let largest = (0..order).map(|q| curvature[(q, q)].wide()).fold(1.0, f64::max);
    let ridge = if size_of::<R>() == 4 { largest * RIDGE } else { 0.0 };
    Cholesky::new(order, ridge, control, |q, column| {
        column.copy_from_slice(&curvature.col_as_slice(q)[..=q]);
        column[q] = R::narrow(column[q].wide() + ridge + if q + 1 < order { 1.0 } else { FLOOR });
    })
}

/// What the systems are made of.
pub(super) struct Directions<'a, T, D> {
    pub device: &'a D,
    pub design: Design<'a, T>,
    /// Which of all rows those of the design are; `None`: all.
    pub rows: Option<&'a [usize]>,
    /// Rows whose features may be copied at once.
    pub copied: usize,
    pub accuracy: Accuracy,
    pub control: &'a Control,
}

impl<T: Working, D: Device> Directions<'_, T, D> {
    /// (Δw, Δb) of every system.
    pub fn all(&self, equations: &[Equation], preconditioner: &mut Preconditioner<T>) -> Result<Vec<Vec<f64>>> {
        let (n, rank) = (self.design.n(), self.design.rank());
        let mean: Vec<f64> = (0..n)
            .into_par_iter()
            .map(|i| equations.iter().map(|equation| equation.s[i]).sum::<f64>() / equations.len() as f64)
            .collect();
        let active: Vec<usize> = (0..n).filter(|&i| mean[i] > 0.0).collect();
        let inside: usize = equations.iter().map(Equation::n_active).sum();
        if 2 * inside < equations.len() * active.len() {
            return self.apart(equations, &active, preconditioner);
        }
        self.refresh(equations, &mean, active.len(), preconditioner)?;
        let few = 2 * active.len() < n && active.len() <= self.copied;
        let gathered = if few { self.design.gather(&active) } else { Vec::new() };
        let design = if few { Design::new(&gathered, active.len(), rank) } else { self.design };
        let curvature = |equation: &Equation| {
            if few { active.iter().map(|&i| equation.s[i]).collect() } else { equation.s.to_vec() }
        };
        let mut systems: Vec<System<T>> = equations
            .iter()
            .map(|equation| System::new(equation, curvature(equation), preconditioner.own[equation.plan].as_ref()))
            .collect();
        let mut open: Vec<&mut System<T>> = systems.iter_mut().collect();
        for _ in 0..MAX_PASSES {
            if let Some(shared) = &preconditioner.shared {
                let sharing: Vec<usize> = (0..open.len()).filter(|&c| open[c].own.is_none()).collect();
                let mut block: Vec<f64> = sharing.iter().flat_map(|&c| &open[c].residual).copied().collect();
                shared.solve(&mut block, rank + 1);
                sharing.iter().zip(block.chunks_exact(rank + 1)).for_each(|(&c, solved)| open[c].aim(solved));
            }
            open.par_iter_mut().filter(|system| system.own.is_some()).for_each(|system| system.aim_by_own());
            open.retain(|system| !system.done);
            if open.is_empty() {
                break;
            }
            let searches: Vec<&[f64]> = open.iter().map(|system| &system.search[..rank]).collect();
            let mut images = self.device.pass(design, &searches, self.accuracy, self.control)?;
            let sums: Vec<f64> = images
                .par_iter_mut()
                .zip(&open)
                .map(|(image, system)| {
                    let shift = system.search[rank];
                    image.iter_mut().zip(&system.curvature).for_each(|(u, s)| *u = s * (*u + shift));
                    image.iter().sum()
                })
                .collect();
            let scaled: Vec<&[f64]> = images.iter().map(|image| &image[..]).collect();
            let products = self.device.pass_back(design, &scaled, self.accuracy, self.control)?;
            for ((system, product), sum) in open.iter_mut().zip(products).zip(sums) {
                system.advance(product, sum);
            }
        }
        for (system, equation) in systems.iter().zip(equations) {
            preconditioner.passes[equation.plan] = system.passes;
        }
        Ok(systems.into_iter().map(|system| system.direction).collect())
    }

    /// (Δw, Δb) of every system by itself, where they have few rows in common.
    fn apart(
        &self,
        equations: &[Equation],
        active: &[usize],
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<Vec<Vec<f64>>> {
        let Preconditioner { own, passes, products, .. } = preconditioner;
        let name = |i: usize| self.rows.map_or(i, |rows| rows[i]);
        let few = |equation: &Equation| equation.n_active() <= self.design.rank().min(LARGEST_BY_ROWS);
        let products = products.get_or_insert_with(|| Products::new(self.design.rank()));
        let by_rows = self.accuracy == Accuracy::Working
            && equations.iter().any(few)
            && products.include(self.design, active, name, self.control)?;
        let ridge = if size_of::<T>() == 4 { RIDGE } else { 0.0 };
        let jobs: Vec<(&Equation, Option<Factor<T>>, usize)> =
            equations.iter().map(|equation| (equation, own[equation.plan].take(), passes[equation.plan])).collect();
        let done = jobs
            .into_par_iter()
            .map(|(equation, factor, passes)| {
                if by_rows && few(equation) {
                    let rows = ByRows::new(products, equation.s, name, (FLOOR, ridge), self.control)?;
                    let (direction, _) = self.one(equation, &Factor::Rows(rows))?;
                    return Ok((direction, factor, passes));
                }
                let factor = self.fresh(equation, factor, passes)?;
                let (direction, passes) = self.one(equation, &factor)?;
                Ok((direction, Some(factor), passes))
            })
            .collect::<Result<Vec<_>>>()?;
        let mut directions = Vec::with_capacity(equations.len());
        for (equation, (direction, factor, spent)) in equations.iter().zip(done) {
            own[equation.plan] = factor;
            passes[equation.plan] = spent;
            directions.push(direction);
        }
        Ok(directions)
    }

    /// The factor, unless the passes that it took last time cost more than another.
    fn fresh(&self, equation: &Equation, factor: Option<Factor<T>>, passes: usize) -> Result<Factor<T>> {
        let (rank, active) = (self.design.rank(), equation.n_active());
        let (pass, anew) = (4 * (active + rank) * rank, (active + rank / 2) * rank * rank / 4);
        match factor {
            Some(factor) if passes * pass < anew => Ok(factor),
            _ => self.factor(equation.s, 1),
        }
    }

    /// (Δw, Δb) of a system, and the passes.
    fn one(&self, equation: &Equation, factor: &Factor<T>) -> Result<(Vec<f64>, usize)> {
        let rank = self.design.rank();
        let (active, gathered): (Vec<usize>, Cow<[T]>) = if let Factor::Rows(by_rows) = factor {
            (by_rows.rows.clone(), Cow::Borrowed(&by_rows.values))
        } else {
            let active: Vec<usize> = (0..equation.s.len()).filter(|&i| equation.s[i] > 0.0).collect();
            let gathered = self.design.gather(&active);
            (active, Cow::Owned(gathered))
        };
        let design = Design::new(&gathered, active.len(), rank);
        let curvature: Vec<f64> = active.iter().map(|&i| equation.s[i]).collect();
        let mut system = System::new(equation, curvature, Some(factor));
        for _ in 0..MAX_PASSES {
            system.aim_by_own();
            if system.done {
                break;
            }
            self.control.check()?;
            let (product, sum) =
                design.curved_times(&system.curvature, &system.search[..rank], system.search[rank], self.accuracy);
            system.advance(product, sum);
        }
        Ok((system.direction, system.passes))
    }

    /// New factors where the passes of the last step took longer than they would have.
    fn refresh(
        &self,
        equations: &[Equation],
        mean: &[f64],
        n_active: usize,
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<()> {
        let rank = self.design.rank();
        // In operations, and what it takes to start a pass.
        let pass = 4 * n_active * rank + 1_000_000 / equations.len();
        let factor = |rows: usize| rows * rank * rank + rank * rank * rank / 2;
        let spent = |equation: &Equation| preconditioner.passes[equation.plan] * pass;
        let own_factor = |equation: &Equation| factor(equation.n_active());
        let (stale, fine): (Vec<&Equation>, Vec<&Equation>) =
            equations.iter().partition(|equation| spent(equation) > own_factor(equation));
        let own = stale.par_iter().map(|equation| self.factor(equation.s, 1)).collect::<Result<Vec<_>>>()?;
        let shared = factor(n_active);
        let sharing = |equation: &Equation| preconditioner.own[equation.plan].is_none();
        let spent_sharing: usize =
            fine.iter().filter(|equation| sharing(equation)).map(|equation| spent(equation)).sum();
        let outdated = fine.iter().filter(|equation| !sharing(equation) && spent(equation) > shared / equations.len());
        let outdated: Vec<usize> = outdated.map(|equation| equation.plan).collect();
        let needed =
            !outdated.is_empty() || preconditioner.shared.is_none() && fine.iter().any(|equation| sharing(equation));
        if needed || spent_sharing > shared {
            preconditioner.shared = Some(self.factor(mean, 4)?);
        }
        for (equation, own) in stale.into_iter().zip(own) {
            preconditioner.own[equation.plan] = Some(own);
        }
        for plan in outdated {
            preconditioner.own[plan] = None;
        }
        Ok(())
    }

    /// A factor of [I 0; 0 0] + [Z 1]ᵀ S [Z 1].
    fn factor(&self, s: &[f64], groups: usize) -> Result<Factor<T>> {
        Ok(match self.accuracy {
            Accuracy::Working => {
                let curvature: Mat<T> = self.device.curvature(self.design, s, groups, self.control)?;
                Factor::Working(factor_of(&curvature, self.control)?)
            }
            Accuracy::Double => {
                let curvature: Mat<f64> = self.device.curvature(self.design, s, groups, self.control)?;
                Factor::Double(factor_of(&curvature, self.control)?)
            }
        })
    }
}

/// Conjugate gradients on one system.
struct System<'a, T> {
    /// A preconditioner of its own.
    own: Option<&'a Factor<T>>,
    passes: usize,
    curvature: Vec<f64>,
    /// Small enough, for ‖residual‖².
    enough: f64,
    direction: Vec<f64>,
    residual: Vec<f64>,
    search: Vec<f64>,
    energy: f64,
    done: bool,
}

impl<'a, T: Working> System<'a, T> {
    fn new(equation: &Equation, curvature: Vec<f64>, own: Option<&'a Factor<T>>) -> Self {
        let error = equation.error;
        let mut residual: Vec<f64> = error.iter().map(|e| -e).collect();
        residual.push(0.0);
        let enough = (STEP_GAP * dot(error, error)).max(equation.enough);
        let direction = vec![0.0; residual.len()];
        Self { own, passes: 0, curvature, enough, direction, residual, search: Vec::new(), energy: 0.0, done: false }
    }

    /// The next search direction by its own preconditioner.
    fn aim_by_own(&mut self) {
        self.done |= self.is_solved();
        if let Some(own) = self.own
            && !self.done
        {
            let mut solved = self.residual.clone();
            own.solve(&mut solved, self.residual.len());
            self.aim(&solved);
        }
    }

    /// Whether the residual is small enough, after one step at least.
    fn is_solved(&self) -> bool {
        !self.search.is_empty() && dot(&self.residual, &self.residual) <= self.enough
    }

    /// The next search direction, from the preconditioned residual, unless the residual is small enough.
    fn aim(&mut self, preconditioned: &[f64]) {
        let energy = dot(&self.residual, preconditioned);
        let begun = !self.search.is_empty();
        if self.is_solved() || !(energy > 0.0 && energy.is_finite()) {
            self.done = true;
            return;
        }
        if begun {
            let keep = energy / self.energy;
            self.search.iter_mut().zip(preconditioned).for_each(|(p, z)| *p = z + keep * *p);
        } else {
            self.search = preconditioned.to_vec();
        }
        self.energy = energy;
    }

    /// Moves along the search direction p, given ZᵀS(Zp + p_b) and the sum over rows of S(Zp + p_b).
    fn advance(&mut self, mut product: Vec<f64>, sum: f64) {
        self.passes += 1;
        let (&shift, search) = self.search.split_last().unwrap_or((&0.0, &[]));
        product.iter_mut().zip(search).for_each(|(product, p)| *product += p);
        product.push(sum + FLOOR * shift);
        let t = self.energy / dot(&self.search, &product);
        if !(t > 0.0 && t.is_finite()) {
            self.done = true; // indefinite to rounding: what there is must do
            return;
        }
        self.direction.iter_mut().zip(&self.search).for_each(|(d, p)| *d += t * p);
        self.residual.iter_mut().zip(&product).for_each(|(r, p)| *r -= t * p);
    }
}
