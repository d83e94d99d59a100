//! Several values of γ to try.

use crate::data::rows::Rows;
use crate::error::Result;
use crate::kernel::bandwidth::{Bandwidth, Kernel};

/// What the γ of `sigest` is multiplied with, if a grid is to be made around it.
const AUTO_GRID: [f64; 6] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0];

/// Which values of γ are tried; see `gammas` of the builders.
///
/// ```
/// use kernelpath::{Gammas, Regressor};
///
/// let x: Vec<f64> = (0..80).map(|i| 0.1 * f64::from(i)).collect();
/// let y: Vec<f64> = x.iter().map(|x| (3.0 * x).sin()).collect();
/// let model = Regressor::ridge().gammas(Gammas::Auto).cs([1.0, 100.0]).fit((&x[..], 1), &y)?;
/// assert_eq!(model.gammas().len(), 6);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Gammas {
    /// 1/8, 1/4, 1/2, 1, 2 and 4 times the γ of [`Bandwidth::Sigest`].
    Auto,
    /// These values.
    Values(Vec<f64>),
}

impl<V: Into<Vec<f64>>> From<V> for Gammas {
    fn from(values: V) -> Self {
        Self::Values(values.into())
    }
}

impl Kernel {
    /// The values of γ to try: those of the grid, or the one of the kernel's own rule; 1 for kernels without γ.
    pub fn gammas(&self, grid: Option<&Gammas>, x: &Rows, weight: Option<&[f64]>, seed: u64) -> Result<Vec<f64>> {
        match grid {
            Some(Gammas::Values(gammas)) if self.shape.uses_gamma() => Ok(gammas.clone()),
            Some(Gammas::Auto) if self.shape.uses_gamma() => {
                let middle = Self { bandwidth: Bandwidth::Sigest, ..*self }.resolve(x, weight, seed)?.gamma;
                Ok(AUTO_GRID.iter().map(|factor| middle * factor).collect())
            }
            _ => Ok(vec![self.resolve(x, weight, seed)?.gamma]),
        }
    }
}
