//! The factor of a Newton system, which preconditions the systems of later steps as well.

use faer::Mat;

use crate::error::Result;
use crate::numeric::cholesky::{Cholesky, Working};
use crate::numeric::parallel;
use crate::numeric::simd::largest;
use crate::observe::Control;
use crate::solver::low_rank::by_rows::ByRows;
use crate::solver::low_rank::tuning::{FLOOR, SINGLE_RIDGE};

/// The inverse of [I 0; 0 0] + [Z 1]ᵀ S [Z 1], of the smaller order.
pub(super) enum Factor<T> {
    /// In the dimensions of the features, in the precision of Z.
    Features(Cholesky<T>),
    /// The same in f64.
    Wide(Cholesky<f64>),
    /// In the dimensions of the rows.
    Rows(ByRows<T>),
}

impl<T: Working> Factor<T> {
    /// B ← (…)⁻¹B for columns of length `order`.
    pub fn solve(&self, b: &mut [f64], order: usize, control: &Control) -> Result<()> {
        // Divided by its largest entry, a right-hand side neither overflows in single precision nor loses small
        // residuals.
        let scales: Vec<f64> = b.chunks_exact(order).map(|column| largest(column).max(f64::MIN_POSITIVE)).collect();
        match self {
            Self::Wide(factor) => factor.solve(b, order),
            Self::Features(factor) => {
                let mut narrow: Vec<T> = Vec::with_capacity(b.len());
                for (column, scale) in b.chunks_exact(order).zip(&scales) {
                    narrow.extend(column.iter().map(|v| T::narrow(v / scale)));
                }
                factor.solve(&mut narrow, order);
                for ((column, narrow), scale) in b.chunks_exact_mut(order).zip(narrow.chunks_exact(order)).zip(scales) {
                    column.iter_mut().zip(narrow).for_each(|(v, narrow)| *v = narrow.wide() * scale);
                }
            }
            Self::Rows(factor) => {
                parallel::try_for_each(b.chunks_exact_mut(order).zip(&scales), |(column, scale)| {
                    for v in &mut *column {
                        *v /= scale;
                    }
                    factor.solve(column, control)?;
                    for v in column {
                        *v *= scale;
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

/// The ridge of a factor in the precision of R, relative to the largest diagonal entry.
pub(super) fn ridge<R>() -> f64 {
    if size_of::<R>() == 4 { SINGLE_RIDGE } else { 0.0 }
}

/// The Cholesky factor of [I 0; 0 0] + `curvature`.
pub(super) fn by_features<R: Working>(curvature: &Mat<R>, control: &Control) -> Result<Cholesky<R>> {
    let order = curvature.nrows();
    let ridge = ridge::<R>() * (0..order).map(|q| curvature[(q, q)].wide()).fold(1.0, f64::max);
    Cholesky::new(order, ridge, control, |q, column| {
        column.copy_from_slice(&curvature.col_as_slice(q)[..=q]);
        column[q] = R::narrow(column[q].wide() + ridge + if q + 1 < order { 1.0 } else { FLOOR });
    })
}
