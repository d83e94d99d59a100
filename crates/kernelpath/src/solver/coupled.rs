//! The preconditioner of the multinomial Newton system: K ≈ FFᵀ, the coupling of the classes kept exactly.
//!
//! With H = AAᵀ the curvature (see [`Curvature`]), Woodbury's formula gives
//!
//! ```text
//! (I + AᵀFFᵀA)⁻¹ = I − AᵀF J⁻¹ FᵀA,     J = I + FᵀHF,     J_cd = δ_cd (I + FᵀS_cF) − G_cᵀG_d,     G_c = S_c½ diag(u_c) F
//! ```

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::error::Result;
use crate::observe::Control;

use super::cholesky::Cholesky;

/// H of every row as S½ Q S½, with Q = I − uuᵀ and u of length 1: for probabilities p, S = Cw diag(p) and u = √p, so
/// that H = Cw (diag(p) − ppᵀ). A = S½Q, and H = AAᵀ since QQ = Q. All values class after class.
pub(super) struct Curvature {
    pub n: usize,
    /// S½.
    pub root: Vec<f64>,
    pub unit: Vec<f64>,
}

impl Curvature {
    pub fn classes(&self) -> usize {
        self.root.len() / self.n
    }

    /// v ← Qv.
    pub fn project(&self, v: &mut [f64]) {
        for i in 0..self.n {
            let along: f64 = (i..v.len()).step_by(self.n).map(|at| self.unit[at] * v[at]).sum();
            for at in (i..v.len()).step_by(self.n) {
                v[at] -= along * self.unit[at];
            }
        }
    }

    /// Av.
    pub fn times(&self, v: &[f64]) -> Vec<f64> {
        let mut v = v.to_vec();
        self.project(&mut v);
        v.iter_mut().zip(&self.root).for_each(|(v, s)| *v *= s);
        v
    }

    /// Aᵀf.
    pub fn transposed_times(&self, f: &[f64]) -> Vec<f64> {
        let mut v: Vec<f64> = f.iter().zip(&self.root).map(|(f, s)| s * f).collect();
        self.project(&mut v);
        v
    }

    /// Aᵀ(1bᵀ).
    pub fn of_intercepts(&self, b: &[f64]) -> Vec<f64> {
        let mut v = self.root.clone();
        for (v, b) in v.chunks_exact_mut(self.n).zip(b) {
            for v in v.iter_mut() {
                *v *= b;
            }
        }
        self.project(&mut v);
        v
    }

    /// Column sums of Av.
    pub fn sums(&self, v: &[f64]) -> Vec<f64> {
        self.times(v).chunks_exact(self.n).map(|column| column.iter().sum()).collect()
    }
}

/// J⁻¹ for one problem.
pub(super) struct Coupled<'a> {
    factor: MatRef<'a, f64>,
    inner: Cholesky<f64>,
}

impl<'a> Coupled<'a> {
    pub fn new(factor: MatRef<'a, f64>, curvature: &Curvature, control: &Control) -> Result<Self> {
        let (n, rank, classes) = (factor.nrows(), factor.ncols(), curvature.classes());
        let order = rank * classes;
        let coupling = Mat::<f64>::from_fn(n, order, |i, q| {
            let at = q / rank * n + i;
            curvature.root[at] * curvature.unit[at] * factor[(i, q % rank)]
        });
        let mut inner = Mat::<f64>::zeros(order, order);
        let upper = |target: MatMut<f64>, left: MatRef<f64>, right: MatRef<f64>, sign: f64| {
            let (whole, triangle) = (BlockStructure::Rectangular, BlockStructure::TriangularUpper);
            triangular_matmul(target, triangle, Accum::Add, left, whole, right, whole, sign, Par::Seq);
        };
        upper(inner.as_mut(), coupling.transpose(), coupling.as_ref(), -1.0);
        for c in 0..classes {
            control.check()?;
            let weighted = Mat::<f64>::from_fn(n, rank, |i, j| curvature.root[c * n + i].powi(2) * factor[(i, j)]);
            let block = inner.as_mut().submatrix_mut(c * rank, c * rank, rank, rank);
            upper(block, factor.transpose(), weighted.as_ref(), 1.0);
        }
        let inner = Cholesky::new(order, 1e-14, control, |q, column| {
            column.copy_from_slice(&inner.col_as_slice(q)[..=q]);
            column[q] += 1.0;
        })?;
        Ok(Self { factor, inner })
    }

    /// Applied to v.
    pub fn apply(&self, curvature: &Curvature, v: &[f64]) -> Vec<f64> {
        let (n, rank, classes) = (self.factor.nrows(), self.factor.ncols(), curvature.classes());
        let scaled = curvature.times(v);
        let mut inner = vec![0.0; rank * classes];
        matmul(
            MatMut::from_column_major_slice_mut(&mut inner, rank, classes),
            Accum::Replace,
            self.factor.transpose(),
            MatRef::from_column_major_slice(&scaled, n, classes),
            1.0,
            Par::Seq,
        );
        self.inner.solve(&mut inner, rank * classes);
        let mut back = scaled;
        matmul(
            MatMut::from_column_major_slice_mut(&mut back, n, classes),
            Accum::Replace,
            self.factor,
            MatRef::from_column_major_slice(&inner, rank, classes),
            1.0,
            Par::Seq,
        );
        let back = curvature.transposed_times(&back);
        v.iter().zip(back).map(|(v, back)| v - back).collect()
    }
}
