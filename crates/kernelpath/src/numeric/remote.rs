//! Matrices whose numbers lie on a device, too, where their products run.

use faer::Mat;
use std::fmt::Debug;

use crate::error::Result;
use crate::numeric::design::Accuracy;
use crate::observe::Control;

/// A matrix A that a device multiplies.
pub(crate) trait Remote: Debug + Send + Sync {
    /// A·B, column by column.
    fn times(&self, b: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>>;
    /// Aᵀ·V, column by column.
    fn transposed_times(&self, v: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>>;
    /// The upper triangle of [A 1]ᵀ S [A 1], for s ≥ 0.
    fn curvature(&self, s: &[f64], accuracy: Accuracy, control: &Control) -> Result<Mat<f64>>;
}

/// A matrix as the host keeps it, row after row.
pub(crate) struct Stored<'a> {
    pub rows: usize,
    pub columns: usize,
    /// Distance between rows.
    pub stride: usize,
    pub numbers: Numbers<'a>,
    pub symmetric: bool,
}

/// The entries of a stored matrix.
pub enum Numbers<'a> {
    /// In single precision, with their [corrections](crate::numeric::entry::residue), if there are any.
    Single(&'a [f32], &'a [i16]),
    /// In double precision.
    Double(&'a [f64]),
}
