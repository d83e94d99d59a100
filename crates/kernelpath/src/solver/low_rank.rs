//! K ≈ FFᵀ by randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2022), and the preconditioner it
//! gives for I + S½KS½ by Woodbury's formula. All in f64: the formula subtracts nearly equal numbers.

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use crate::error::Result;
use crate::gram::{Entry, Gram};
use crate::observe::Control;

use super::cholesky::Cholesky;

/// Rows of the blocks that are worked on by one thread.
const BAND: usize = 512;

/// F, with as many columns as pay.
pub(super) struct LowRank {
    factor: Mat<f64>,
}

impl LowRank {
    /// Pivots are drawn with probability proportional to what is left of the diagonal.
    pub fn new<T: Entry>(gram: &Gram<T>, rank: usize, control: &Control) -> Result<Self> {
        let n = gram.n();
        let mut left: Vec<f64> = (0..n).map(|i| gram.get(i, i).max(0.0)).collect();
        let nothing = 1e-7 * left.iter().sum::<f64>();
        let mut factor = Mat::<f64>::zeros(n, rank.min(n));
        let mut rng = fastrand::Rng::with_seed(0);
        let mut columns = 0;
        while columns < factor.ncols() {
            control.check()?;
            let total: f64 = left.iter().sum();
            if total <= nothing {
                break;
            }
            let mut target = rng.f64() * total;
            let pivot = left.iter().position(|d| {
                target -= d;
                target <= 0.0 && *d > 0.0
            });
            let Some(pivot) = pivot.or_else(|| (0..n).max_by(|&a, &b| left[a].total_cmp(&left[b]))) else { break };
            let across = Mat::<f64>::from_fn(columns, 1, |i, _| factor[(pivot, i)]);
            let (done, mut rest) = factor.as_mut().split_at_col_mut(columns);
            let mut column = rest.rb_mut().subcols_mut(0, 1);
            for (i, value) in gram.row(pivot)[..n].iter().enumerate() {
                column[(i, 0)] = value.wide();
            }
            matmul(column.rb_mut(), Accum::Add, done.rb(), across.as_ref(), -1.0, Par::Seq);
            let scale = 1.0 / left[pivot].sqrt();
            for (i, left) in left.iter_mut().enumerate() {
                let value = column[(i, 0)] * scale;
                column[(i, 0)] = value;
                *left = (*left - value * value).max(0.0);
            }
            left[pivot] = 0.0;
            columns += 1;
        }
        factor.truncate(n, columns);
        Ok(Self { factor })
    }

    /// The first so many columns of F.
    pub fn columns(&self, rank: usize) -> MatRef<'_, f64> {
        self.factor.as_ref().subcols(0, rank.min(self.factor.ncols()))
    }

    /// The preconditioner for curvatures of at most `curvature`.
    pub fn precondition(&self, curvature: &[f64], control: &Control) -> Result<Woodbury<'_>> {
        let (n, rank) = (self.factor.nrows(), self.factor.ncols());
        let weighted = Mat::<f64>::from_fn(n, rank, |i, j| self.factor[(i, j)] * curvature[i]);
        let starts: Vec<usize> = (0..rank).step_by(64).collect();
        let bands: Vec<Mat<f64>> = starts
            .par_iter()
            .map(|&start| {
                let width = 64.min(rank - start);
                let mut band = Mat::<f64>::zeros(rank - start, width);
                matmul(
                    band.as_mut(),
                    Accum::Replace,
                    self.factor.as_ref().subcols(start, rank - start).transpose(),
                    weighted.as_ref().subcols(start, width),
                    1.0,
                    Par::Seq,
                );
                band
            })
            .collect();
        let inner = Cholesky::new(rank, 1e-14, control, |q, column| {
            let band = &bands[q / 64];
            for (i, value) in column.iter_mut().enumerate() {
                *value = band[(i + q % 64, q % 64)];
            }
            column[0] += 1.0;
        })?;
        Ok(Woodbury { factor: self.factor.as_ref(), inner })
    }
}

/// I − S½F(I + FᵀS̄F)⁻¹FᵀS½, which is definite for S ≤ S̄ and the inverse of I + S½FFᵀS½ for S = S̄.
pub(super) struct Woodbury<'a> {
    factor: MatRef<'a, f64>,
    inner: Cholesky<f64>,
}

impl Woodbury<'_> {
    /// Applied to each vector, with the S½ of its column.
    pub fn apply(&self, vectors: &[(&[f64], &[f64])]) -> Vec<Vec<f64>> {
        let (n, rank, m) = (self.factor.nrows(), self.factor.ncols(), vectors.len());
        let starts: Vec<usize> = (0..n).step_by(BAND).collect();
        // Summed band by band in a fixed order, whatever the threads.
        let parts: Vec<Mat<f64>> = starts
            .par_iter()
            .map(|&start| {
                let height = BAND.min(n - start);
                let right = Mat::<f64>::from_fn(height, m, |i, c| {
                    let (root, vector) = vectors[c];
                    root[start + i] * vector[start + i]
                });
                let mut part = Mat::<f64>::zeros(rank, m);
                let left = self.factor.subrows(start, height).transpose();
                matmul(part.as_mut(), Accum::Replace, left, right.as_ref(), 1.0, Par::Seq);
                part
            })
            .collect();
        let mut inner = Mat::<f64>::zeros(rank, m);
        for part in parts {
            for c in 0..m {
                for (sum, value) in inner.col_as_slice_mut(c).iter_mut().zip(part.col_as_slice(c)) {
                    *sum += value;
                }
            }
        }
        self.inner.solve_lower(inner.as_mut());
        self.inner.solve_upper(inner.as_mut());
        let bands: Vec<Mat<f64>> = starts
            .par_iter()
            .map(|&start| {
                let height = BAND.min(n - start);
                let mut band = Mat::<f64>::zeros(height, m);
                let left = self.factor.subrows(start, height);
                matmul(band.as_mut(), Accum::Replace, left, inner.as_ref(), 1.0, Par::Seq);
                band
            })
            .collect();
        let result = |(c, (root, vector)): (usize, &(&[f64], &[f64]))| {
            let mut out = vector.to_vec();
            for (&start, band) in starts.iter().zip(&bands) {
                for (i, value) in band.col_as_slice(c).iter().enumerate() {
                    out[start + i] -= root[start + i] * value;
                }
            }
            out
        };
        vectors.iter().enumerate().map(result).collect()
    }
}
