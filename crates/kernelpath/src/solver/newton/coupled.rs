//! The preconditioner of the multinomial Newton system: K ≈ FFᵀ, with the coupling of the classes kept exactly.
//!
//! With H = AAᵀ the curvature (see [`Curvature`]), Woodbury's formula gives
//!
//! ```text
//! (I + AᵀFFᵀA)⁻¹ = I − AᵀF J⁻¹ FᵀA,     J = I + FᵀHF,     J_cd = δ_cd (I + FᵀS_cF) − G_cᵀG_d,     G_c = S_c½ diag(u_c) F
//! ```

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::linalg::solvers::DenseSolveCore;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::error::Result;
use crate::numeric::cholesky::Cholesky;
use crate::numeric::simd::vectorise;
use crate::observe::Control;
use crate::solver::newton::smooth::CurvatureRoot;

/// Rows that are projected at once.
const PROJECTED_ROWS: usize = 256;

/// Rows of F that are added to J at a time.
pub(crate) const ADDED_ROWS: usize = 2048;

/// H of every row as S½ Q S½, with Q = I − uuᵀ and u of length 1: for probabilities p, S = Cw diag(p) and u = √p, so
/// that H = Cw (diag(p) − ppᵀ). A = S½Q, and H = AAᵀ since QQ = Q. All values class after class.
pub(crate) struct Curvature {
    pub n: usize,
    /// S½.
    pub root: Vec<f64>,
    pub unit: Vec<f64>,
}

impl Curvature {
    pub fn classes(&self) -> usize {
        self.root.len() / self.n
    }

    /// v ← Qv, in blocks of rows.
    pub fn project(&self, v: &mut [f64]) {
        for start in (0..self.n).step_by(PROJECTED_ROWS) {
            let height = PROJECTED_ROWS.min(self.n - start);
            let mut along = [0.0; PROJECTED_ROWS];
            vectorise(
                #[inline(always)]
                || {
                    for at in (start..v.len()).step_by(self.n) {
                        let (unit, v) = (&self.unit[at..at + height], &v[at..at + height]);
                        for ((along, unit), v) in along.iter_mut().zip(unit).zip(v) {
                            *along += unit * v;
                        }
                    }
                    for at in (start..v.len()).step_by(self.n) {
                        let (unit, v) = (&self.unit[at..at + height], &mut v[at..at + height]);
                        for ((along, unit), v) in along.iter().zip(unit).zip(v) {
                            *v -= along * unit;
                        }
                    }
                },
            );
        }
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

impl CurvatureRoot for Curvature {
    fn times(&self, v: &[f64]) -> Vec<f64> {
        let mut v = v.to_vec();
        self.project(&mut v);
        v.iter_mut().zip(&self.root).for_each(|(v, s)| *v *= s);
        v
    }

    fn transposed_times(&self, f: &[f64]) -> Vec<f64> {
        let mut v: Vec<f64> = f.iter().zip(&self.root).map(|(f, s)| s * f).collect();
        self.project(&mut v);
        v
    }
}

/// J⁻¹ for one problem.
pub(crate) struct Coupled<'a> {
    curvature: &'a Curvature,
    factor: MatRef<'a, f64>,
    inner: Cholesky<f64>,
    /// (NᵀM⁻¹N)⁻¹ on vectors of sum 0, where M is the preconditioner.
    projection: Mat<f64>,
}

impl<'a> Coupled<'a> {
    pub fn new(factor: MatRef<'a, f64>, curvature: &'a Curvature, control: &Control) -> Result<Self> {
        let (n, rank, classes) = (factor.nrows(), factor.ncols(), curvature.classes());
        let order = rank * classes;
        let mut inner = Mat::<f64>::zeros(order, order);
        let upper = |target: MatMut<f64>, left: MatRef<f64>, right: MatRef<f64>, sign: f64| {
            let (whole, triangle) = (BlockStructure::Rectangular, BlockStructure::TriangularUpper);
            triangular_matmul(target, triangle, Accum::Add, left, whole, right, whole, sign, Par::Seq);
        };
        for start in (0..n).step_by(ADDED_ROWS) {
            control.check()?;
            let band = factor.subrows(start, ADDED_ROWS.min(n - start));
            let coupling = Mat::<f64>::from_fn(band.nrows(), order, |i, q| {
                let at = q / rank * n + start + i;
                curvature.root[at] * curvature.unit[at] * band[(i, q % rank)]
            });
            upper(inner.as_mut(), coupling.transpose(), coupling.as_ref(), -1.0);
            for c in 0..classes {
                let s = &curvature.root[c * n + start..];
                let weighted = Mat::<f64>::from_fn(band.nrows(), rank, |i, j| s[i].powi(2) * band[(i, j)]);
                let block = inner.as_mut().submatrix_mut(c * rank, c * rank, rank, rank);
                upper(block, band.transpose(), weighted.as_ref(), 1.0);
            }
        }
        let inner = Cholesky::new(order, 1e-14, control, |q, column| {
            column.copy_from_slice(&inner.col_as_slice(q)[..=q]);
            column[q] += 1.0;
        })?;
        let mut coupled = Self { curvature, factor, inner, projection: Mat::identity(classes, classes) };
        let mut normal = Mat::<f64>::zeros(classes, classes);
        for c in 0..classes {
            let mut class = vec![0.0; classes];
            class[c] = 1.0;
            let sums = curvature.sums(&coupled.apply(&curvature.of_intercepts(&class)));
            normal.col_as_slice_mut(c).copy_from_slice(&sums);
        }
        // N1 = 0: the component along 1 does not matter, so any value will do for it.
        let size = (0..classes).map(|c| normal[(c, c)]).sum::<f64>() / classes as f64;
        coupled.projection =
            Mat::<f64>::from_fn(classes, classes, |c, d| normal[(c, d)] + size).partial_piv_lu().inverse();
        Ok(coupled)
    }

    /// Nb, for the b with NᵀM⁻¹Nb = `sums`, and that b.
    pub fn balanced(&self, sums: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let classes = 0..sums.len();
        let of_class = |c: usize| classes.clone().map(|d| self.projection[(c, d)] * sums[d]).sum();
        let b: Vec<f64> = classes.clone().map(of_class).collect();
        (self.curvature.of_intercepts(&b), b)
    }

    /// Applies the preconditioner to v.
    pub fn apply(&self, v: &[f64]) -> Vec<f64> {
        let curvature = self.curvature;
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
