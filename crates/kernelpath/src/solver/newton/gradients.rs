//! The state of conjugate gradients on the Newton system of one problem.

use crate::numeric::conjugate_gradients::{Conjugate, next_search};
use crate::numeric::simd::dot;
use crate::solver::newton::descent::{Direction, System};

/// Conjugate gradients on one system.
pub(crate) struct Gradients<'a> {
    pub column: usize,
    pub system: &'a System,
    /// M⁻¹s, and sᵀM⁻¹s.
    normal: Vec<f64>,
    normal_size: f64,
    pub direction: Direction,
    pub residual: Vec<f64>,
    search: Vec<f64>,
    /// S½ times the search direction.
    pub scaled: Vec<f64>,
    energy: f64,
    pub done: bool,
}

impl<'a> Gradients<'a> {
    /// Starts from Δβ = 0 where the curvature allows it, shifted along M⁻¹s until the constraint holds.
    pub(crate) fn new(column: usize, system: &'a System, normal: Vec<f64>) -> Self {
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
    pub(crate) fn begin(&mut self, product: Vec<f64>) {
        for ((v, s), f) in self.residual.iter_mut().zip(&self.system.root).zip(&product) {
            *v = -*v - s * f;
        }
        self.direction.f = product;
    }

    /// The next search direction, from the preconditioned residual, unless the residual is small enough.
    pub(crate) fn aim(&mut self, mut z: Vec<f64>) {
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
        next_search(&mut self.search, z, energy, self.energy);
        self.energy = energy;
        self.scaled = root.iter().zip(&self.search).map(|(s, p)| s * p).collect();
    }
}

impl Conjugate for Gradients<'_> {
    fn is_done(&self) -> bool {
        self.done
    }

    /// S½ times the search direction.
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
        for (i, product) in product.iter().enumerate() {
            self.direction.beta[i] += t * self.scaled[i];
            self.direction.f[i] += t * product;
            self.residual[i] -= t * (self.search[i] + self.system.root[i] * product);
        }
    }
}
