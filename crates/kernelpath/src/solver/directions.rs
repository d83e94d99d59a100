//! The linear systems of Newton's method in rank dimensions: many at once.
//!
//! ```text
//! (I + Zᵀ S Z) Δw + Zᵀ S 1 Δb = −e,     1ᵀ S Z Δw + 1ᵀ S 1 Δb = ρ
//! ```
//!
//! Only rows with curvature take part. Where the systems have most of these rows in common, they are solved by conjugate
//! gradients as one block, preconditioned by one Cholesky factor of their mean, or by one each where that is cheaper than
//! the passes; where each has few rows and of its own, each by itself, on one thread. Between two steps few rows come in or
//! go out, so that factors serve for many steps, until the passes of one cost as much as another factor. Systems of fewer
//! rows than features are a block, too, and each has a factor in the [dimensions of its rows](super::by_rows).

use std::collections::HashMap;

use faer::Mat;
use rayon::prelude::*;

use crate::design::{Accuracy, Design, Gathered};
use crate::device::Device;
use crate::error::Result;
use crate::observe::Control;
use crate::simd::dot;

use super::by_rows::{ByRows, MOST_AT_ONCE, Products};
use super::cholesky::{Cholesky, Working};

/// A step is solved until ½‖e‖² is so much of what it was.
const STEP_GAP: f64 = 0.1;

/// Conjugate gradients of one step.
const MAX_PASSES: usize = 200;

/// A pass takes longer than a part of a factor with as many operations: so many times as long for a system alone, and
/// as if there were so many more operations for a block of systems together.
const PASS_ALONE: usize = 4;
const PASS_OF_BLOCK: usize = 9;

/// A factor takes as long as one of so many more features would at the pace of wide ones.
const NARROW: usize = 100;

/// Ridge of a factor in single precision, relative to the largest entry.
const RIDGE: f64 = 3e-7;

/// Up to so many rows a factor by rows is cheaper than the passes with one that is kept.
const LARGEST_BY_ROWS: usize = 600;

/// Stands for the curvature in b where no row has any.
const FLOOR: f64 = 1e-6;

/// A system: S, and e and ρ on its right-hand side.
pub(super) struct Equation<'a> {
    /// The problem that it belongs to, whose factor is kept.
    pub plan: usize,
    pub s: &'a [f64],
    /// Rows that take part.
    pub n_active: usize,
    pub error: &'a [f64],
    /// ρ.
    pub pull: f64,
    /// Small enough, for ‖residual‖², whatever ‖e‖² is.
    pub enough: f64,
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

impl<T: Working> Preconditioner<T> {
    /// The next search directions, by factors of their own or the shared one.
    fn aim(&self, open: &mut [&mut System]) {
        let own = |system: &System| self.own[system.plan].as_ref();
        let mut sharing: Vec<&mut System> =
            open.iter_mut().map(|system| &mut **system).filter(|system| own(system).is_none()).collect();
        if let (Some(shared), Some(order)) = (&self.shared, sharing.first().map(|system| system.residual.len())) {
            let mut block: Vec<f64> = sharing.iter().flat_map(|system| &system.residual).copied().collect();
            shared.solve(&mut block, order);
            sharing.iter_mut().zip(block.chunks_exact(order)).for_each(|(system, solved)| system.aim(solved));
        }
        open.par_iter_mut().for_each(|system| {
            if let Some(own) = own(system) {
                system.aim_by(own);
            }
        });
    }
}

/// A factor in the precision of the steps.
enum Factor<T> {
    Working(Cholesky<T>),
    Double(Cholesky<f64>),
}

impl<T: Working> Factor<T> {
    /// B ← (UᵀU)⁻¹B for columns of length `order`.
    fn solve(&self, b: &mut [f64], order: usize) {
        match self {
            Self::Double(factor) => factor.solve(b, order),
            Self::Working(factor) => {
                let scales: Vec<f64> = b.chunks_exact(order).map(largest).collect();
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

/// What a right-hand side is divided by, so that single precision neither overflows nor loses small residuals.
fn largest(values: &[f64]) -> f64 {
    values.iter().fold(f64::MIN_POSITIVE, |a, v| a.max(v.abs()))
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
        let n = self.design.n();
        let mean: Vec<f64> = (0..n)
            .into_par_iter()
            .map(|i| equations.iter().map(|equation| equation.s[i]).sum::<f64>() / equations.len() as f64)
            .collect();
        let active: Vec<usize> = (0..n).filter(|&i| mean[i] > 0.0).collect();
        let inside: usize = equations.iter().map(|equation| equation.n_active).sum();
        let few = active.len() <= MOST_AT_ONCE && equations.iter().all(|equation| self.has_few_rows(equation));
        if few || 2 * inside < equations.len() * active.len() {
            return self.apart(equations, preconditioner);
        }
        self.refresh(equations, &mean, active.len(), preconditioner)?;
        let few = 2 * active.len() < n && active.len() <= self.copied;
        let gathered = few.then(|| self.design.gather(&active, self.accuracy)).transpose()?;
        let design = gathered.as_ref().map_or(self.design, Gathered::design);
        let curvature = |equation: &Equation| {
            if few { active.iter().map(|&i| equation.s[i]).collect() } else { equation.s.to_vec() }
        };
        let mut systems: Vec<System> =
            equations.iter().map(|equation| System::new(equation, curvature(equation))).collect();
        let worth = equations.iter().map(|equation| self.worth(equation, active.len(), equations.len())).max();
        self.conjugate(design, &mut systems, worth.unwrap_or(0).min(MAX_PASSES), |open| {
            preconditioner.aim(open);
            Ok(())
        })?;
        let late: Vec<usize> = (0..systems.len()).filter(|&k| !systems[k].done).collect();
        let own = late.par_iter().map(|&k| self.factor(equations[k].s, 1)).collect::<Result<Vec<_>>>()?;
        for (&k, own) in late.iter().zip(own) {
            preconditioner.own[equations[k].plan] = Some(own);
            systems[k].begin_anew();
        }
        self.conjugate(design, &mut systems, MAX_PASSES, |open| {
            preconditioner.aim(open);
            Ok(())
        })?;
        for system in &systems {
            preconditioner.passes[system.plan] = system.passes;
        }
        Ok(systems.into_iter().map(|system| system.direction).collect())
    }

    /// Conjugate gradients on all systems as one block, at most so many; `aim` chooses their search directions.
    fn conjugate(
        &self,
        design: Design<T>,
        systems: &mut [System],
        passes: usize,
        aim: impl Fn(&mut [&mut System]) -> Result<()>,
    ) -> Result<()> {
        let rank = design.rank();
        let mut open: Vec<&mut System> = systems.iter_mut().filter(|system| !system.done).collect();
        for _ in 0..passes {
            if open.is_empty() {
                break;
            }
            aim(&mut open)?;
            open.retain(|system| !system.done);
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
            open.retain(|system| !system.done);
        }
        Ok(())
    }

    /// Operations that take as long as a factor of a system.
    fn operations(&self, rows: usize) -> usize {
        let rank = self.design.rank();
        (rows + rank / 2) * rank * (rank + NARROW)
    }

    /// Passes over so many rows, for so many systems at once, that cost as much as a factor of one.
    fn worth(&self, equation: &Equation, rows: usize, systems: usize) -> usize {
        1 + self.operations(equation.n_active) / self.pass(rows, systems)
    }

    /// Operations that take as long as the part of a system in a pass for so many, and what it takes to start it.
    fn pass(&self, rows: usize, systems: usize) -> usize {
        let multiplied = 4 * rows * self.design.rank();
        multiplied + (PASS_OF_BLOCK * multiplied + 1_000_000) / systems
    }

    /// Whether a factor of a system is cheap in the dimensions of its rows.
    fn has_few_rows(&self, equation: &Equation) -> bool {
        let most = if self.accuracy == Accuracy::Working { self.design.rank().min(LARGEST_BY_ROWS) } else { 0 };
        equation.n_active <= most
    }

    /// (Δw, Δb) of every system by a factor of its own, where they have few rows, or few in common.
    fn apart(&self, equations: &[Equation], preconditioner: &mut Preconditioner<T>) -> Result<Vec<Vec<f64>>> {
        let Preconditioner { own, passes, products, .. } = preconditioner;
        let mut directions = vec![Vec::new(); own.len()];
        let (few, mut many): (Vec<&Equation>, Vec<&Equation>) =
            equations.iter().partition(|equation| self.has_few_rows(equation));
        if let Some(found) = self.by_rows(&few, products)? {
            few.iter().zip(found).for_each(|(equation, direction)| directions[equation.plan] = direction);
        } else {
            many = equations.iter().collect();
        }
        let jobs: Vec<(&Equation, Option<Factor<T>>, usize)> =
            many.into_iter().map(|equation| (equation, own[equation.plan].take(), passes[equation.plan])).collect();
        let done = jobs
            .into_par_iter()
            .map(|(equation, factor, passes)| {
                let (factor, direction, passes) = self.one(equation, factor, passes)?;
                Ok((equation.plan, direction, factor, passes))
            })
            .collect::<Result<Vec<_>>>()?;
        for (plan, direction, factor, spent) in done {
            (own[plan], passes[plan], directions[plan]) = (Some(factor), spent, direction);
        }
        Ok(equations.iter().map(|equation| std::mem::take(&mut directions[equation.plan])).collect())
    }

    /// (Δw, Δb) of systems with few rows, by factors in their dimensions; `None` if these are too many in all.
    fn by_rows(&self, equations: &[&Equation], products: &mut Option<Products<T>>) -> Result<Option<Vec<Vec<f64>>>> {
        let rank = self.design.rank();
        let takes_part = |i: &usize| equations.iter().any(|equation| equation.s[*i] > 0.0);
        let rows: Vec<usize> = (0..self.design.n()).filter(takes_part).collect();
        if rows.len() > MOST_AT_ONCE {
            return Ok(None);
        }
        let names: Vec<usize> = rows.iter().map(|&i| self.rows.map_or(i, |rows| rows[i])).collect();
        let gathered = self.design.gather(&rows, self.accuracy)?;
        let design = gathered.design();
        let products = products.get_or_insert_with(|| Products::new(rank));
        let places = products.include(design, &names, self.control)?;
        let ridge = if size_of::<T>() == 4 { RIDGE } else { 0.0 };
        let curvature = |equation: &&Equation| rows.iter().map(|&i| equation.s[i]).collect::<Vec<f64>>();
        let factors = equations
            .par_iter()
            .map(|equation| ByRows::new(products, &places, &curvature(equation), (FLOOR, ridge), self.control))
            .collect::<Result<Vec<ByRows<T>>>>()?;
        let mut systems: Vec<System> =
            equations.iter().map(|equation| System::new(equation, curvature(equation))).collect();
        let factors: HashMap<usize, ByRows<T>> = equations.iter().map(|equation| equation.plan).zip(factors).collect();
        self.conjugate(design, &mut systems, MAX_PASSES, |open| {
            let scales: Vec<f64> = open.iter().map(|system| largest(&system.residual)).collect();
            let scaled = |(system, scale): (&&mut System, &f64)| system.residual.iter().map(|v| v / scale).collect();
            let scaled: Vec<Vec<f64>> = open.iter().zip(&scales).map(scaled).collect();
            let right: Vec<&[f64]> = scaled.iter().map(|scaled| &scaled[..rank]).collect();
            let images = self.device.pass(design, &right, self.accuracy, self.control)?;
            let (pulls, shifts): (Vec<Vec<f64>>, Vec<f64>) = (open.par_iter().zip(&images).zip(&scaled))
                .map(|((system, image), scaled)| factors[&system.plan].solve(image, scaled[rank]))
                .unzip();
            let pulls: Vec<&[f64]> = pulls.iter().map(|pulls| &pulls[..]).collect();
            let back = self.device.pass_back(design, &pulls, self.accuracy, self.control)?;
            for (c, system) in open.iter_mut().enumerate() {
                let mut solved: Vec<f64> =
                    scaled[c].iter().zip(&back[c]).map(|(right, back)| scales[c] * (right - back)).collect();
                solved.push(scales[c] * shifts[c]);
                system.aim(&solved);
            }
            Ok(())
        })?;
        Ok(Some(systems.into_iter().map(|system| system.direction).collect()))
    }

    /// (Δw, Δb) of a system, the factor that it was found with, and its passes: by the factor at hand, unless the passes
    /// that it took last time, or takes now, cost more than another.
    fn one(
        &self,
        equation: &Equation,
        factor: Option<Factor<T>>,
        passes: usize,
    ) -> Result<(Factor<T>, Vec<f64>, usize)> {
        let rank = self.design.rank();
        let active: Vec<usize> = (0..equation.s.len()).filter(|&i| equation.s[i] > 0.0).collect();
        let gathered = self.design.gather(&active, self.accuracy)?;
        let design = gathered.design();
        let curvature: Vec<f64> = active.iter().map(|&i| equation.s[i]).collect();
        let pass = PASS_ALONE * 4 * (active.len() + rank) * rank;
        let worth = 1 + self.operations(active.len()) / pass.max(1); // no features: no operations
        let mut system = System::new(equation, curvature);
        if let Some(factor) = factor.filter(|_| passes < worth) {
            self.conjugate_alone(design, &mut system, worth, &factor)?;
            if system.done {
                return Ok((factor, system.direction, system.passes));
            }
            system.begin_anew();
        }
        let factor = self.factor(equation.s, 1)?;
        self.conjugate_alone(design, &mut system, MAX_PASSES, &factor)?;
        Ok((factor, system.direction, system.passes))
    }

    /// Conjugate gradients on one system, at most so many, on this thread.
    fn conjugate_alone(&self, design: Design<T>, system: &mut System, passes: usize, factor: &Factor<T>) -> Result<()> {
        let rank = design.rank();
        for _ in 0..passes {
            if !system.done {
                system.aim_by(factor);
            }
            if system.done {
                break;
            }
            self.control.check()?;
            let (product, sum) =
                design.curved_times(&system.curvature, &system.search[..rank], system.search[rank], self.accuracy);
            system.advance(product, sum);
        }
        Ok(())
    }

    /// New factors where the passes of the last step took longer than they would have.
    fn refresh(
        &self,
        equations: &[Equation],
        mean: &[f64],
        n_active: usize,
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<()> {
        let pass = self.pass(n_active, equations.len());
        let spent = |equation: &Equation| preconditioner.passes[equation.plan] * pass;
        let own_factor = |equation: &Equation| self.operations(equation.n_active);
        let (stale, fine): (Vec<&Equation>, Vec<&Equation>) =
            equations.iter().partition(|equation| spent(equation) > own_factor(equation));
        let own = stale.par_iter().map(|equation| self.factor(equation.s, 1)).collect::<Result<Vec<_>>>()?;
        let shared = self.operations(n_active);
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
struct System {
    /// The problem that it belongs to.
    plan: usize,
    /// Since the preconditioner was last changed.
    passes: usize,
    curvature: Vec<f64>,
    /// Small enough, for ‖residual‖².
    enough: f64,
    direction: Vec<f64>,
    residual: Vec<f64>,
    search: Vec<f64>,
    energy: f64,
    /// Whether the residual is small enough, or rounding lets it fall no more.
    done: bool,
}

impl System {
    fn new(equation: &Equation, curvature: Vec<f64>) -> Self {
        let (plan, error) = (equation.plan, equation.error);
        let mut residual: Vec<f64> = error.iter().map(|e| -e).collect();
        residual.push(equation.pull);
        let enough = (STEP_GAP * dot(error, error)).max(equation.enough);
        let direction = vec![0.0; residual.len()];
        let (passes, search, energy, done) = (0, Vec::new(), 0.0, false);
        Self { plan, passes, curvature, enough, direction, residual, search, energy, done }
    }

    /// Goes on with another preconditioner.
    fn begin_anew(&mut self) {
        (self.passes, self.search) = (0, Vec::new());
    }

    /// The next search direction, by a factor.
    fn aim_by<T: Working>(&mut self, factor: &Factor<T>) {
        let mut solved = self.residual.clone();
        factor.solve(&mut solved, self.residual.len());
        self.aim(&solved);
    }

    /// The next search direction, from the preconditioned residual.
    fn aim(&mut self, preconditioned: &[f64]) {
        let energy = dot(&self.residual, preconditioned);
        if !(energy > 0.0 && energy.is_finite()) {
            self.done = true;
            return;
        }
        if self.search.is_empty() {
            self.search = preconditioned.to_vec();
        } else {
            let keep = energy / self.energy;
            self.search.iter_mut().zip(preconditioned).for_each(|(p, z)| *p = z + keep * *p);
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
        self.done = dot(&self.residual, &self.residual) <= self.enough;
    }
}
