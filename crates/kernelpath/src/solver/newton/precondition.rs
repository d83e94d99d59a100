//! The preconditioner of conjugate gradients: an approximate inverse of I + S½KS½.

use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::kernel::pivoted::{LowRank, Of, Woodbury};
use crate::numeric::cholesky::{Cholesky, Working};
use crate::observe::Control;

/// Made for the S of each column, or for one S̄ ≥ S for all columns. It is exact for that S or S̄, except for what the
/// low rank leaves out.
pub(crate) enum Preconditioner<'a, T> {
    /// Cheap to make, weak where many eigenvalues of S½KS½ are large.
    LowRank(Woodbury<'a>),
    /// A Cholesky factor of all of I + S̄½KS̄½, and S̄½.
    Dense(Cholesky<T>, Vec<f64>),
}

impl<'a, T: Working> Preconditioner<'a, T> {
    pub fn low_rank(low_rank: &'a LowRank, curvatures: &[Vec<f64>], control: &Control) -> Result<Self> {
        Ok(Self::LowRank(low_rank.precondition(curvatures, control)?))
    }

    pub fn dense(gram: &Gram<T>, curvature: &[f64], control: &Control) -> Result<Self> {
        let root: Vec<f64> = curvature.iter().map(|s| s.sqrt()).collect();
        let factor = Cholesky::new(gram.n(), 1e-6, control, |q, column| {
            for ((value, k), r) in column.iter_mut().zip(gram.row(q)).zip(&root) {
                *value = T::narrow(k.wide() * root[q] * r);
            }
            column[q] += T::narrow(1.0);
        })?;
        Ok(Self::Dense(factor, root))
    }

    /// Applies the preconditioner to the vectors of some columns.
    pub fn apply(&self, vectors: &[Of]) -> Vec<Vec<f64>> {
        match self {
            Self::LowRank(woodbury) => woodbury.apply(vectors),
            Self::Dense(factor, full) => {
                // Vectors are scaled, so that single precision neither overflows nor loses small residuals.
                let sizes: Vec<f64> = vectors
                    .iter()
                    .map(|of| of.vector.iter().fold(0.0_f64, |a, v| a.max(v.abs())).max(f64::MIN_POSITIVE))
                    .collect();
                let n = full.len();
                // Rows with hardly any curvature in this column are decoupled from the others.
                let coupled = |root: &[f64], i: usize| root[i] > 0.03 * full[i];
                let mut block: Vec<T> = Vec::with_capacity(n * vectors.len());
                for (Of { root, vector, .. }, size) in vectors.iter().zip(&sizes) {
                    block.extend((0..n).map(|i| T::narrow(if coupled(root, i) { vector[i] / size } else { 0.0 })));
                }
                factor.solve(&mut block, n);
                let column = |((Of { root, vector, .. }, size), solved): ((&Of, &f64), &[T])| {
                    (0..n).map(|i| if coupled(root, i) { solved[i].wide() * size } else { vector[i] }).collect()
                };
                vectors.iter().zip(&sizes).zip(block.chunks_exact(n)).map(column).collect()
            }
        }
    }
}
