//! Conjugate gradients on one system of a Newton step, with a factor of an earlier or similar system as preconditioner.

use crate::numeric::conjugate_gradients::next_search;
use crate::numeric::simd::dot;
use crate::solver::low_rank::directions::Equation;
use crate::solver::low_rank::tuning::{FLOOR, STEP_RESIDUAL};

/// A system in work.
pub(super) struct System {
    /// S of the rows that passes go over.
    pub curvature: Vec<f64>,
    /// A ‖residual‖² that is small enough.
    enough: f64,
    /// (Δw, Δb), as far as it is known.
    pub direction: Vec<f64>,
    pub residual: Vec<f64>,
    pub search: Vec<f64>,
    /// Residual times preconditioned residual.
    energy: f64,
    /// Passes with the present preconditioner.
    pub passes: usize,
    /// Whether the residual is small enough, or rounding lets it fall no more.
    pub done: bool,
}

impl System {
    pub fn new(equation: &Equation, curvature: Vec<f64>) -> Self {
        let mut residual: Vec<f64> = equation.error.iter().map(|e| -e).collect();
        residual.push(equation.pull);
        Self {
            curvature,
            enough: (STEP_RESIDUAL * dot(equation.error, equation.error)).max(equation.enough),
            direction: vec![0.0; residual.len()],
            residual,
            search: Vec::new(),
            energy: 0.0,
            passes: 0,
            done: false,
        }
    }

    /// The next search direction, from the preconditioned residual.
    pub fn aim(&mut self, preconditioned: &[f64]) {
        let energy = dot(&self.residual, preconditioned);
        if !(energy > 0.0 && energy.is_finite()) {
            self.done = true;
            return;
        }
        next_search(&mut self.search, preconditioned.to_vec(), energy, self.energy);
        self.energy = energy;
    }

    /// Moves along the search direction p, given ZᵀS(Zp + p_b) and the sum over rows of S(Zp + p_b).
    pub fn advance(&mut self, mut product: Vec<f64>, sum: f64) {
        self.passes += 1;
        let (&shift, search) = self.search.split_last().unwrap_or((&0.0, &[]));
        product.iter_mut().zip(search).for_each(|(product, p)| *product += p);
        product.push(sum + FLOOR * shift);
        let t = self.energy / dot(&self.search, &product);
        if !(t > 0.0 && t.is_finite()) {
            self.done = true; // indefinite up to rounding: stop with the direction found so far
            return;
        }
        self.direction.iter_mut().zip(&self.search).for_each(|(d, p)| *d += t * p);
        self.residual.iter_mut().zip(&product).for_each(|(r, p)| *r -= t * p);
        self.done = dot(&self.residual, &self.residual) <= self.enough;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a preconditioner, a system of order 5 takes at most 5 passes, and the residual is what it says.
    #[test]
    fn it_ends_after_as_many_passes_as_dimensions() {
        let mut rng = fastrand::Rng::with_seed(5);
        let z: Vec<[f64; 4]> = (0..30).map(|_| [0; 4].map(|_| rng.f64() - 0.5)).collect();
        let s: Vec<f64> = (0..30).map(|_| 3.0 * rng.f64()).collect();
        let error = [0.3, -0.2, 0.9, 0.1];
        let times = |x: &[f64]| {
            let (mut product, mut sum) = (vec![0.0; 4], 0.0);
            for (row, s) in z.iter().zip(&s) {
                let u = s * (row.iter().zip(x).map(|(z, x)| z * x).sum::<f64>() + x[4]);
                product.iter_mut().zip(row).for_each(|(product, z)| *product += u * z);
                sum += u;
            }
            (product, sum)
        };
        let mut system =
            System::new(&Equation { plan: 0, s: &s, n_active: 30, error: &error, pull: 0.4, enough: 0.0 }, s.clone());
        system.enough = 1e-18;
        while !system.done {
            assert!(system.passes < 5);
            let residual = system.residual.clone();
            system.aim(&residual);
            let (product, sum) = times(&system.search);
            system.advance(product, sum);
        }
        let (product, sum) = times(&system.direction);
        for j in 0..4 {
            assert!((product[j] + system.direction[j] + error[j]).abs() < 1e-8);
        }
        assert!((sum + FLOOR * system.direction[4] - 0.4).abs() < 1e-8);
    }
}
