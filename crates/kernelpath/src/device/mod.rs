//! Where the linear algebra of the spectral engine and of low-rank features runs.
//!
//! A device owns matrices (stored column after column) and offers the few operations that the engines need, each of
//! them large: products, one eigendecomposition, maps fused with their reductions, and passes over features.

pub(crate) mod basis;
pub(crate) mod cpu;
#[allow(dead_code)]
pub(crate) mod gpu;
#[allow(dead_code)]
pub(crate) mod interim;
#[allow(dead_code)]
pub(crate) mod matrix;
pub(crate) mod place;

/// The device of unit tests that need one by its type.
#[cfg(test)]
pub(crate) use cpu::Cpu as TestDevice;

use faer::Mat;

use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::loss::smoothed::Smoothed;
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design};
use crate::numeric::entry::Entry;
use crate::observe::Control;

/// Problems in work on a device: columns, each with its own C and its own weights.
pub(crate) struct Block<M> {
    /// Uᵀβ of the last step.
    pub coordinates: M,
    /// Where the next step starts: the last step, carried on by its momentum.
    pub ahead: M,
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

/// K = UΛUᵀ, made once for all losses, folds and C's.
pub(crate) struct Decomposition<M> {
    pub basis: M,
    pub spectrum: Spectrum,
}

impl<M> Decomposition<M> {
    pub fn new<T: Entry>(device: &impl Device<Matrix = M>, gram: &Gram<T>, control: &Control) -> Result<Self> {
        let (values, basis) = device.eigh(device.gram(gram)?, control)?;
        let ones = device.upload(gram.n(), &[vec![1.0; gram.n()]])?;
        let ones = device.download(&device.transposed_times(&basis, &ones)?)?.remove(0);
        Ok(Self { basis, spectrum: Spectrum { values, ones } })
    }
}

/// What the engines ask of a device.
pub(crate) trait Device: Sync {
    /// A matrix on the device.
    type Matrix: Send + Sync;
    /// A matrix in single precision, for products that a later step corrects.
    type Narrow: Send + Sync;

    /// From the host, column after column.
    fn upload(&self, rows: usize, columns: &[Vec<f64>]) -> Result<Self::Matrix>;
    /// To the host.
    fn download(&self, matrix: &Self::Matrix) -> Result<Vec<Vec<f64>>>;
    /// A copy in single precision.
    fn narrow(&self, matrix: &Self::Matrix) -> Result<Self::Narrow>;
    /// The kernel matrix.
    fn gram<T: Entry>(&self, gram: &Gram<T>) -> Result<Self::Matrix>;
    /// K = UΛUᵀ: the eigenvalues and U. Negative eigenvalues, which are rounding unless K is indefinite, are returned
    /// as 0.
    fn eigh(&self, k: Self::Matrix, control: &Control) -> Result<(Vec<f64>, Self::Matrix)>;
    /// A·B.
    fn times(&self, a: &Self::Matrix, b: &Self::Matrix) -> Result<Self::Matrix>;
    /// Aᵀ·B.
    fn transposed_times(&self, a: &Self::Matrix, b: &Self::Matrix) -> Result<Self::Matrix>;
    /// A·B in single precision.
    fn narrow_times(&self, a: &Self::Narrow, b: &Self::Matrix) -> Result<Self::Matrix>;
    /// Aᵀ·B in single precision.
    fn narrow_transposed_times(&self, a: &Self::Narrow, b: &Self::Matrix) -> Result<Self::Matrix>;
    /// [Z 1]·B: a pass over features.
    fn features_times<T: Working>(
        &self,
        z: Design<T>,
        b: &Self::Matrix,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Self::Matrix>;
    /// [Z 1]ᵀ·B.
    fn features_transposed_times<T: Working>(
        &self,
        z: Design<T>,
        b: &Self::Matrix,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Self::Matrix>;
    /// Z·W for vectors of the host.
    fn pass<T: Working>(
        &self,
        z: Design<T>,
        w: &[&[f64]],
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Vec<Vec<f64>>>;
    /// Zᵀ·V for vectors of the host.
    fn pass_back<T: Working>(
        &self,
        z: Design<T>,
        v: &[&[f64]],
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Vec<Vec<f64>>>;
    /// The upper triangle of [Z 1]ᵀ S [Z 1] in the precision of R. The sums over `groups` groups of rows are taken side
    /// by side.
    fn curvature<T: Working, R: Working>(
        &self,
        z: Design<T>,
        s: &[f64],
        groups: usize,
        control: &Control,
    ) -> Result<Mat<R>>;
    /// diag(scale)·A.
    fn scale_rows(&self, scale: &[f64], a: &Self::Matrix) -> Result<Self::Matrix>;
    /// The columns of A with these numbers.
    fn select(&self, a: &Self::Matrix, columns: &[usize]) -> Result<Self::Matrix>;
    /// The rows of A with these numbers, as columns.
    fn rows(&self, a: &Self::Matrix, rows: &[usize]) -> Result<Self::Matrix>;
    /// θ = weight · a(f + b), row by row; `weight` holds C·w.
    fn pulls(
        &self,
        loss: Smoothed,
        y: &[f64],
        weight: &Self::Matrix,
        f: &Self::Matrix,
        b: &[f64],
    ) -> Result<Self::Matrix>;
    /// 1 / (1 + cm·λ): a row for each of `values`, a column for each of `curvature`.
    fn resolvent(&self, values: &[f64], curvature: &[f64]) -> Result<Self::Matrix>;
    /// The sum of matrices, each with its columns multiplied by numbers.
    fn combine(&self, terms: &[(&Self::Matrix, &[f64])]) -> Result<Self::Matrix>;
    /// The products of entries.
    fn hadamard(&self, a: &Self::Matrix, b: &Self::Matrix) -> Result<Self::Matrix>;
    /// The inner product of each column of A with that of B.
    fn column_dots(&self, a: &Self::Matrix, b: &Self::Matrix) -> Result<Vec<f64>>;
    /// The step of the spectral engine as one operation, if the device has one. It must do what the engine's own
    /// definition does.
    fn fused_step(
        &self,
        _block: &mut Block<Self::Matrix>,
        _pulls: &Self::Matrix,
        _spectrum: &Spectrum,
        _curvature: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }
}
