//! Where the linear algebra runs: the spectral engine's, products with kernel matrices and features, and kernels.
//!
//! A device owns matrices (stored column after column) and offers the few operations that the spectral engine needs, each
//! of them large: products, one eigendecomposition, and maps fused with their reductions. The kernel matrix and
//! low-rank features can be put on it: their products, which all other engines and the certificates are made of, then run there.

pub(crate) mod basis;
pub(crate) mod basis_in_single;
pub(crate) mod cpu;
pub(crate) mod gpu;
pub(crate) mod matrix;
pub(crate) mod place;

use std::sync::OnceLock;

use crate::device::matrix::Matrix;
use crate::error::Result;
use crate::kernel::elsewhere::Kernels;
use crate::kernel::gram::Gram;
use crate::loss::smoothed::Smoothed;
use crate::numeric::eigen::eigen_bytes;
use crate::numeric::entry::Entry;
use crate::numeric::remote::{Remote, Stored};
use crate::observe::Control;

/// Problems in work on a device: columns, each with its own C and its own weights.
pub(crate) struct Block {
    /// Uᵀβ of the last step.
    pub coordinates: Matrix,
    /// Where the next step starts: the last step, carried on by its momentum.
    pub ahead: Matrix,
    /// Intercepts of the last step, and of where the next one starts.
    pub b: Vec<f64>,
    pub b_ahead: Vec<f64>,
    /// Nesterov's t of each column.
    pub momentum: Vec<f64>,
}

/// The eigenvalues of K, and Uᵀ1.
pub(crate) struct Spectrum {
    pub values: Vec<f64>,
    pub ones: Vec<f64>,
}

impl Spectrum {
    /// vᵀKv for the v with these coordinates.
    pub fn squares(&self, coordinates: &[f64]) -> f64 {
        coordinates.iter().zip(&self.values).map(|(a, v)| v * a * a).sum()
    }
}

/// K = UΛUᵀ, made once for all losses, folds and C's.
pub(crate) struct Decomposition {
    pub basis: Matrix,
    pub spectrum: Spectrum,
}

/// The decompositions of one matrix, each made when it is needed.
#[derive(Default)]
pub(crate) struct Decompositions {
    pub double: OnceLock<Decomposition>,
    pub single: OnceLock<Decomposition>,
}

impl Decomposition {
    pub fn new<T: Entry>(device: &dyn Device, gram: &Gram<T>, control: &Control) -> Result<Self> {
        let matrix = device.symmetric(gram.n(), &|i, row| gram.copy_row(i, 0, row), control)?;
        let (values, basis) = device.eigh(matrix, control)?;
        let ones = device.upload(gram.n(), &[vec![1.0; gram.n()]])?;
        let ones = device.download(&device.transposed_times(&basis, &ones, control)?)?.remove(0);
        Ok(Self { basis, spectrum: Spectrum { values, ones } })
    }
}

/// What the engines ask of a device. Matrices are in double precision, unless they were [narrowed](Device::narrow).
pub(crate) trait Device: Send + Sync {
    /// From the host, column after column.
    fn upload(&self, rows: usize, columns: &[Vec<f64>]) -> Result<Matrix>;
    /// To the host.
    fn download(&self, matrix: &Matrix) -> Result<Vec<Vec<f64>>>;
    /// The symmetric matrix of `n` rows whose row i `fill(i, row)` writes.
    fn symmetric(&self, n: usize, fill: &(dyn Fn(usize, &mut [f64]) + Sync), control: &Control) -> Result<Matrix>;
    /// A copy in single precision.
    fn narrow(&self, matrix: &Matrix) -> Result<Matrix>;
    /// K = UΛUᵀ: the eigenvalues and U. Negative eigenvalues, which are rounding unless K is indefinite, are returned
    /// as 0.
    fn eigh(&self, k: Matrix, control: &Control) -> Result<(Vec<f64>, Matrix)>;
    /// K ≈ UΛUᵀ in single precision: the eigenvalues as they come out, and U narrowed.
    fn eigh_in_single(&self, k: Matrix, control: &Control) -> Result<(Vec<f64>, Matrix)> {
        let (values, basis) = self.eigh(k, control)?;
        Ok((values, self.narrow(&basis)?))
    }
    /// Whether a matrix of `n` rows is decomposed in single precision first, and in double precision only if that was not
    /// enough.
    fn decomposes_in_single(&self, _n: usize) -> bool {
        false
    }
    /// A·B in the precision of A.
    fn times(&self, a: &Matrix, b: &Matrix, control: &Control) -> Result<Matrix>;
    /// Aᵀ·B in the precision of A.
    fn transposed_times(&self, a: &Matrix, b: &Matrix, control: &Control) -> Result<Matrix>;
    /// A·B, or Aᵀ·B, in double precision, whatever the precision of A.
    fn times_in_double(&self, a: &Matrix, b: &Matrix, transposed: bool, control: &Control) -> Result<Matrix>;
    /// diag(scale)·A.
    fn scale_rows(&self, scale: &[f64], a: &Matrix) -> Result<Matrix>;
    /// The columns of A with these numbers.
    fn select(&self, a: &Matrix, columns: &[usize]) -> Result<Matrix>;
    /// The rows of A with these numbers, as columns.
    fn rows(&self, a: &Matrix, rows: &[usize]) -> Result<Matrix>;
    /// θ = weight · a(f + b), row by row; `weight` holds C·w.
    fn pulls(&self, loss: Smoothed, y: &[f64], weight: &Matrix, f: &Matrix, b: &[f64]) -> Result<Matrix>;
    /// 1 / (1 + cm·λ): a row for each of `values`, a column for each of `curvature`.
    fn resolvent(&self, values: &[f64], curvature: &[f64]) -> Result<Matrix>;
    /// The sum of matrices, each with its columns multiplied by numbers.
    fn combine(&self, terms: &[(&Matrix, &[f64])]) -> Result<Matrix>;
    /// The products of entries.
    fn hadamard(&self, a: &Matrix, b: &Matrix) -> Result<Matrix>;
    /// The inner product of each column of A with that of B.
    fn column_dots(&self, a: &Matrix, b: &Matrix) -> Result<Vec<f64>>;
    /// The step of the spectral engine as one operation, if the device has one. It must do what the engine's own
    /// definition does.
    fn fused_step(
        &self,
        _block: &mut Block,
        _pulls: &Matrix,
        _spectrum: &Spectrum,
        _curvature: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }
    /// Columns with which a product makes full use of the device. The spectral engine takes several neighbouring C's
    /// together, until its blocks are about this wide.
    fn columns(&self) -> usize {
        0
    }
    /// Whether double precision takes so much longer than single that steps avoid it where they can.
    fn double_is_slow(&self) -> bool {
        false
    }
    /// Most rows for which `auto` decomposes the kernel matrix of a piecewise-linear loss. The processor never does: its
    /// active set needs no decomposition.
    fn decomposed_rows(&self) -> usize {
        0
    }
    /// Bytes on the device for the decomposition of a matrix of `n` rows.
    fn decomposition_bytes(&self, _n: usize) -> u64 {
        0
    }
    /// Looks at the memory that is free now. A plan of memory begins with this.
    fn survey(&self) -> Result<()> {
        Ok(())
    }
    /// Bytes of the host for the decomposition of a matrix of `n` rows: a copy of the matrix in double precision, its
    /// eigenvectors, and work space.
    fn host_decomposition_bytes(&self, n: usize) -> u64 {
        8 * (n as u64).pow(2) + eigen_bytes(n)
    }
    /// An error if this many bytes, and the work space of products beside them, are more than the device has left. What
    /// an interrupted fit has left behind is waited for.
    fn check_room(&self, _bytes: u64, _control: &Control) -> Result<()> {
        Ok(())
    }
    /// The matrix of an operator, put on the device, where its products run from now on. `None` if the host multiplies
    /// it itself.
    fn hold(&self, _matrix: &Stored, _control: &Control) -> Result<Option<Box<dyn Remote>>> {
        Ok(None)
    }
    /// Kernels between rows, if the device computes them.
    fn kernels(&self) -> Option<&dyn Kernels> {
        None
    }
}
