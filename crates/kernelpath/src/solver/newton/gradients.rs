//! Conjugate gradients on the Newton systems of several problems.

use crate::error::Result;
use crate::numeric::conjugate_gradients::{Conjugate, conjugate_gradients, next_search};
use crate::numeric::parallel;
use crate::numeric::simd::dot;
use crate::solver::newton::smooth::{CurvatureRoot, Direction, System};

/// Most passes over K for one step.
const MAX_PASSES: usize = 400;

/// Conjugate gradients on one system.
pub(crate) struct Gradients<'a, A> {
    /// The place of the system among all.
    pub column: usize,
    pub system: &'a System<A>,
    pub direction: Direction,
    pub residual: Vec<f64>,
    search: Vec<f64>,
    /// A times the search direction.
    scaled: Vec<f64>,
    energy: f64,
    done: bool,
}

impl<'a, A: CurvatureRoot> Gradients<'a, A> {
    /// Starts from Δβ = r + Av.
    fn new(column: usize, system: &'a System<A>, v: Vec<f64>) -> Self {
        let beta = system.residual.iter().zip(system.root.times(&v)).map(|(r, along)| r + along).collect();
        let direction = Direction { beta, f: Vec::new(), b: vec![0.0; system.constraint.len()], passes: 1 };
        let (search, scaled) = (Vec::new(), Vec::new());
        Self { column, system, direction, residual: v, search, scaled, energy: 0.0, done: false }
    }

    /// The first residual, from v and KΔβ.
    fn begin(&mut self, product: Vec<f64>) {
        for (v, along) in self.residual.iter_mut().zip(self.system.root.transposed_times(&product)) {
            *v = -*v - along;
        }
        self.direction.f = product;
    }

    /// The next search direction, from the preconditioned residual `z` and its product with the residual, unless the gap
    /// is small enough.
    pub fn aim(&mut self, z: Vec<f64>, energy: f64, gap: f64) {
        if gap <= self.system.enough || !(energy > 0.0 && energy.is_finite()) {
            self.done = true;
            return;
        }
        next_search(&mut self.search, z, energy, self.energy);
        self.energy = energy;
        self.scaled = self.system.root.times(&self.search);
    }
}

impl<A: CurvatureRoot> Conjugate for Gradients<'_, A> {
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
        let along = self.system.root.transposed_times(product);
        for i in 0..product.len() {
            self.direction.beta[i] += t * self.scaled[i];
            self.direction.f[i] += t * product[i];
            self.residual[i] -= t * (self.search[i] + along[i]);
        }
    }
}

/// The v with which Δβ = r + S½v is 0 where the curvature S allows it.
pub(crate) fn standstill(root: &[f64], residual: &[f64]) -> Vec<f64> {
    root.iter().zip(residual).map(|(&s, r)| if s > 0.3 { -r / s } else { 0.0 }).collect()
}

/// Projected, preconditioned conjugate gradients on all systems. `start` returns a v that fulfils the constraint.
/// `aim` projects and preconditions residuals, and hands them to [`Gradients::aim`]. `times` multiplies K with vectors.
pub(crate) fn directions<A: CurvatureRoot>(
    systems: &[System<A>],
    start: impl Fn(usize, &System<A>) -> Vec<f64> + Sync,
    aim: impl Fn(&mut [&mut Gradients<A>]),
    times: impl Fn(&[&[f64]]) -> Result<Vec<Vec<f64>>>,
) -> Result<Vec<Direction>> {
    let mut gradients = parallel::map(systems.iter().enumerate(), |(column, system)| {
        Gradients::new(column, system, start(column, system))
    });
    let betas: Vec<&[f64]> = gradients.iter().map(|g| &g.direction.beta[..]).collect();
    let products = times(&betas)?;
    parallel::for_each(gradients.iter_mut().zip(products), |(g, product)| g.begin(product));
    conjugate_gradients(gradients.iter_mut().collect(), MAX_PASSES, aim, times)?;
    Ok(gradients.into_iter().map(|g| g.direction).collect())
}
