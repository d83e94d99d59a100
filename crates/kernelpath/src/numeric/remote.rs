//! Matrices whose products run elsewhere.

use faer::Mat;
use std::fmt::Debug;

use crate::error::Result;
use crate::numeric::design::Accuracy;
use crate::observe::Control;

/// A matrix whose numbers lie on a device, too, where its products run.
pub(crate) trait Remote: Debug + Send + Sync {
    /// A·B.
    fn times(&self, b: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>>;
    /// Aᵀ·V.
    fn transposed_times(&self, v: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>>;
    /// The upper triangle of [A 1]ᵀ diag(s) [A 1], s ≥ 0.
    fn curvature(&self, s: &[f64], accuracy: Accuracy, control: &Control) -> Result<Mat<f64>>;
}

/// The numbers of a matrix as the host keeps them.
pub(crate) enum Numbers<'a> {
    /// In single precision, with [corrections](crate::numeric::entry::residue) that may be empty.
    Single(&'a [f32], &'a [i16]),
    /// In double precision.
    Double(&'a [f64]),
}

/// A matrix as the host keeps it: `rows` rows of `columns` numbers, `stride` apart.
pub(crate) struct Stored<'a> {
    pub rows: usize,
    pub columns: usize,
    pub stride: usize,
    pub numbers: Numbers<'a>,
    pub symmetric: bool,
}
