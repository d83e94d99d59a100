//! The inverse of a Newton system in which fewer rows take part than there are features, in the dimensions of these
//! rows.
//!
//! With M = S⁻¹ + ZZᵀ over these rows, Woodbury's formula gives for
//!
//! ```text
//! (I + Zᵀ S Z) x + Zᵀ S 1 β = r,     1ᵀ S Z x + (1ᵀ S 1 + ε) β = ρ
//! h = M⁻¹ Z r,   t = M⁻¹ 1,          β = (ρ − 1ᵀh) / (ε + 1ᵀt),     x = r − Zᵀ(h + β t)
//! ```

use faer::{Mat, MatRef};

use crate::error::Result;
use crate::numeric::cholesky::{Cholesky, Working};
use crate::numeric::design::{Accuracy, Design, product};
use crate::observe::Control;
use crate::solver::low_rank::tuning::{FLOOR, PRODUCTS_AT_ONCE};

/// M⁻¹ of one system, with the rows that it belongs to.
pub(super) struct ByRows<T> {
    /// Features of the rows, row after row.
    z: Vec<T>,
    rank: usize,
    factor: Cholesky<T>,
    /// t, and ε + 1ᵀt.
    ones: Vec<f64>,
    total: f64,
}

impl<T: Working> ByRows<T> {
    /// Factorises M for rows with features `z` and curvatures `s` > 0. `ridge` is relative to the largest diagonal
    /// entry of M.
    pub fn new(z: Vec<T>, rank: usize, s: &[f64], ridge: f64, control: &Control) -> Result<Self> {
        let order = s.len();
        let lengths = Design::new(&z, &[], order, rank).squared_lengths();
        let diagonal = |q: usize| lengths[q] + 1.0 / s[q];
        let ridge = ridge * (0..order).map(diagonal).fold(0.0, f64::max);
        let mut band = Mat::new();
        let factor = Cholesky::new(order, ridge, control, |q, column| {
            let at = q % PRODUCTS_AT_ONCE;
            if at == 0 {
                let end = (q + PRODUCTS_AT_ONCE).min(order);
                let left = MatRef::from_row_major_slice(&z[..end * rank], end, rank);
                let right = MatRef::from_column_major_slice(&z[q * rank..end * rank], rank, end - q);
                band = product(left, right);
            }
            column.copy_from_slice(&band.col_as_slice(at)[..=q]);
            column[q] = T::narrow(diagonal(q) + ridge);
        })?;
        let mut ones = vec![T::narrow(1.0); order];
        factor.solve(&mut ones, order);
        let ones: Vec<f64> = ones.into_iter().map(T::wide).collect();
        let total = FLOOR + ones.iter().sum::<f64>();
        Ok(Self { z, rank, factor, ones, total })
    }

    /// (r, ρ) ← (x, β).
    pub fn solve(&self, right: &mut [f64], control: &Control) -> Result<()> {
        let design = Design::new(&self.z, &[], self.ones.len(), self.rank);
        let (r, rho) = right.split_at_mut(self.rank);
        let image = design.times(&[r], Accuracy::Working, control)?.concat();
        let mut h: Vec<T> = image.into_iter().map(T::narrow).collect();
        self.factor.solve(&mut h, self.ones.len());
        let h: Vec<f64> = h.into_iter().map(T::wide).collect();
        let beta = (rho[0] - h.iter().sum::<f64>()) / self.total;
        let pulls: Vec<f64> = h.iter().zip(&self.ones).map(|(h, t)| h + beta * t).collect();
        let back = design.transposed_times(&[&pulls], Accuracy::Working, control)?.concat();
        r.iter_mut().zip(back).for_each(|(r, back)| *r -= back);
        rho[0] = beta;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solved<T: Working>(z: &[f64], rank: usize, s: &[f64], right: &[f64]) -> Vec<f64> {
        let z: Vec<T> = z.iter().map(|z| T::narrow(*z)).collect();
        let mut solution = right.to_vec();
        ByRows::new(z, rank, s, 0.0, &Control::default()).unwrap().solve(&mut solution, &Control::default()).unwrap();
        solution
    }

    /// With random features, curvatures and right-hand sides, in f64 and f32; with no rows, few, and several bands.
    #[test]
    fn it_solves_the_system() {
        let mut rng = fastrand::Rng::with_seed(3);
        for (n, rank) in [(0, 20), (12, 20), (19, 20), (2 * PRODUCTS_AT_ONCE + 5, 150)] {
            let z: Vec<f64> = (0..n * rank).map(|_| rng.f64() - 0.5).collect();
            let s: Vec<f64> = (0..n).map(|_| 0.1 + 10.0 * rng.f64()).collect();
            let right: Vec<f64> = (0..=rank).map(|_| rng.f64() - 0.5).collect();
            let wide = solved::<f64>(&z, rank, &s, &right);
            let single = solved::<f32>(&z, rank, &s, &right);
            // H(x, β), row by row.
            let (x, beta) = (&wide[..rank], wide[rank]);
            let mut product: Vec<f64> = x.to_vec();
            product.push(FLOOR * beta);
            for (row, s) in z.chunks_exact(rank).zip(&s) {
                let u = s * (row.iter().zip(x).map(|(z, x)| z * x).sum::<f64>() + beta);
                product.iter_mut().zip(row).for_each(|(product, z)| *product += u * z);
                product[rank] += u;
            }
            for (product, right) in product.iter().zip(&right) {
                assert!((product - right).abs() < 1e-9, "{n} rows: {product} is not {right}");
            }
            let size = wide.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
            for (single, wide) in single.iter().zip(&wide) {
                assert!((single - wide).abs() < 1e-3 * size, "{n} rows: {single} is not {wide}");
            }
        }
    }
}
