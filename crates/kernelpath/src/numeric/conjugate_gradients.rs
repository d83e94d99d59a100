//! Preconditioned conjugate gradients on several systems at once, so that each pass over the matrix serves them all.

use crate::error::Result;
use crate::numeric::parallel;

/// One system, and where its solution stands.
pub(crate) trait Conjugate: Send + Sync {
    /// Whether the residual is small enough, or rounding lets it fall no more.
    fn is_done(&self) -> bool;
    /// What the matrix is to be multiplied with: the search direction, as the matrix wants it.
    fn to_multiply(&self) -> &[f64];
    /// Moves along the search direction, given the product.
    fn advance(&mut self, product: &[f64]);
}

/// At most `passes` steps on all systems that are not done. `aim` finds their next search directions, and may find that
/// some are done; `times` multiplies the matrix with vectors.
pub(crate) fn conjugate_gradients<S: Conjugate>(
    mut open: Vec<&mut S>,
    passes: usize,
    aim: impl Fn(&mut [&mut S]),
    times: impl Fn(&[&[f64]]) -> Result<Vec<Vec<f64>>>,
) -> Result<()> {
    for _ in 0..passes {
        aim(&mut open);
        open.retain(|system| !system.is_done());
        if open.is_empty() {
            break;
        }
        let searches: Vec<&[f64]> = open.iter().map(|system| system.to_multiply()).collect();
        let products = times(&searches)?;
        parallel::for_each(open.iter_mut().zip(&products), |(system, product)| system.advance(product));
        open.retain(|system| !system.is_done());
    }
    Ok(())
}

/// The next search direction z + κp, conjugate to the last one p, with κ the ratio of the new energy rᵀz to the old.
pub(crate) fn next_search(search: &mut Vec<f64>, z: Vec<f64>, energy: f64, last_energy: f64) {
    if search.is_empty() {
        *search = z;
        return;
    }
    let keep = energy / last_energy;
    for (p, z) in search.iter_mut().zip(z) {
        *p = z + keep * *p;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::numeric::simd::dot;

    /// x with Ax = r for A = diag(scale) + 11ᵀ.
    struct System {
        x: Vec<f64>,
        residual: Vec<f64>,
        search: Vec<f64>,
        energy: f64,
    }

    impl Conjugate for System {
        fn is_done(&self) -> bool {
            dot(&self.residual, &self.residual) < 1e-24
        }

        fn to_multiply(&self) -> &[f64] {
            &self.search
        }

        fn advance(&mut self, product: &[f64]) {
            let t = self.energy / dot(&self.search, product);
            self.x.iter_mut().zip(&self.search).for_each(|(x, p)| *x += t * p);
            self.residual.iter_mut().zip(product).for_each(|(r, product)| *r -= t * product);
        }
    }

    #[test]
    fn as_many_steps_as_distinct_eigenvalues_solve_every_system() {
        let n = 12;
        let scale: Vec<f64> = (0..n).map(|i| 1.0 + f64::from(i % 3)).collect();
        let product = |v: &[f64]| -> Vec<f64> {
            let sum: f64 = v.iter().sum();
            v.iter().zip(&scale).map(|(v, s)| s * v + sum).collect()
        };
        let right = |k: i32| (0..n).map(|i| (0.7 * f64::from(i * (k + 1))).sin()).collect::<Vec<f64>>();
        let mut systems: Vec<System> =
            (0..3).map(|k| System { x: vec![0.0; 12], residual: right(k), search: Vec::new(), energy: 0.0 }).collect();
        let aim = |open: &mut [&mut System]| {
            for system in open {
                let (z, energy) = (system.residual.clone(), dot(&system.residual, &system.residual));
                next_search(&mut system.search, z, energy, system.energy);
                system.energy = energy;
            }
        };
        let times = |columns: &[&[f64]]| Ok(columns.iter().map(|column| product(column)).collect());
        // A has six distinct eigenvalues at most.
        conjugate_gradients(systems.iter_mut().collect(), 6, aim, times).unwrap();
        for (k, system) in (0..3).zip(&systems) {
            for (got, want) in product(&system.x).iter().zip(right(k)) {
                assert!((got - want).abs() < 1e-10, "{got} is not {want}");
            }
        }
    }
}
