//! Where the linear algebra of the spectral engine and of low-rank features runs.
//!
//! A device owns matrices (column after column) and knows the few operations the engines need, each of
//! them large: products, one eigendecomposition, and maps fused with their reductions; of features, the blocks of
//! kernel values they are made from and the passes over them.

mod basis;
mod cpu;

pub(crate) use basis::{Basis, Eigenvectors, OfFeatures};
pub(crate) use cpu::{Cpu, eigen, eigen_bytes, eigenvalues, has_cholesky};

use faer::Mat;

use crate::data::Rows;
use crate::design::{Accuracy, Design};
use crate::error::Result;
use crate::features::Map;
use crate::gram::{Entry, Gram};
use crate::loss::Smoothed;
use crate::observe::Control;
use crate::solver::Working;

/// Problems in work on a device: columns, each with its own C and its own weights.
pub(crate) struct Block<M> {
    /// Uᵀβ of the last step.
    pub coordinates: M,
    /// Where the next step starts: the last one, carried on.
    pub ahead: M,
    /// Intercepts of both.
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
    /// K = UΛUᵀ: the eigenvalues (negative ones, which are rounding unless K is indefinite, as 0) and U.
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
    /// The features of these rows of `x`, row after row: blocks of kernel values times a small matrix. Corrections go to
    /// `residues`, unless that is empty.
    fn features<T: Entry>(
        &self,
        map: &Map,
        x: &Rows,
        rows: &[usize],
        out: &mut [T],
        residues: &mut [i16],
        control: &Control,
    ) -> Result<()>;
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
    /// The upper triangle of [Z 1]ᵀ S [Z 1] in the precision of R, summed over `groups` of rows side by side.
    fn curvature<T: Working, R: Working>(
        &self,
        z: Design<T>,
        s: &[f64],
        groups: usize,
        control: &Control,
    ) -> Result<Mat<R>>;
    /// diag(scale)·A.
    fn scale_rows(&self, scale: &[f64], a: &Self::Matrix) -> Result<Self::Matrix>;
    /// The columns named.
    fn select(&self, a: &Self::Matrix, columns: &[usize]) -> Result<Self::Matrix>;
    /// θ = weight · a(f + b), row by row; `weight` holds C·w.
    fn pulls(
        &self,
        loss: Smoothed,
        y: &[f64],
        weight: &Self::Matrix,
        f: &Self::Matrix,
        b: &[f64],
    ) -> Result<Self::Matrix>;
    /// The step from `ahead`, given Uᵀθ there, for curvatures C·M; then the momentum, restarted where it
    /// points uphill. Returns ½(θ − β)ᵀK(θ − β) at `ahead`: the gap there, but for what Σθ misses of 0.
    fn advance(
        &self,
        block: &mut Block<Self::Matrix>,
        pulls: &Self::Matrix,
        spectrum: &Spectrum,
        curvature: &[f64],
    ) -> Result<Vec<f64>>;
}
