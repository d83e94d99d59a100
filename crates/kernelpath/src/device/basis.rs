//! Orthonormal bases in which K is diagonal: all eigenvectors of a kernel matrix, or those of a low-rank kernel that
//! are not in its null space.

use faer::Mat;

use crate::device::{Decomposition, Device, Spectrum};
use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design};
use crate::numeric::eigen::eigen;
use crate::observe::Control;

/// Directions whose eigenvalue is this small, relative to the largest, are left out of a low-rank basis.
const NEGLIGIBLE: f64 = 1e-12;

/// Groups of rows whose parts of ZᵀZ are summed side by side. The number of groups sets the order of summation, so it
/// must not depend on the threads. Each group takes a matrix of rank² doubles: more groups would take much memory
/// beside the features.
const GROUPS: usize = 4;

/// An orthonormal basis U on a device. The passes of the spectral engine are products with it.
pub(crate) trait Basis<D: Device>: Sync {
    /// U·X.
    fn times(&self, device: &D, x: &D::Matrix, accuracy: Accuracy, control: &Control) -> Result<D::Matrix>;
    /// Uᵀ·V.
    fn transposed_times(&self, device: &D, v: &D::Matrix, accuracy: Accuracy, control: &Control) -> Result<D::Matrix>;
}

/// The eigenvectors of a kernel matrix, in both precisions.
pub(crate) struct Eigenvectors<'a, D: Device> {
    double: &'a D::Matrix,
    single: D::Narrow,
}

impl<'a, D: Device> Eigenvectors<'a, D> {
    pub fn new(device: &D, decomposition: &'a Decomposition<D::Matrix>) -> Result<Self> {
        let double = &decomposition.basis;
        Ok(Self { double, single: device.narrow(double)? })
    }
}

impl<D: Device> Basis<D> for Eigenvectors<'_, D> {
    fn times(&self, device: &D, x: &D::Matrix, accuracy: Accuracy, _: &Control) -> Result<D::Matrix> {
        match accuracy {
            Accuracy::Working => device.narrow_times(&self.single, x),
            Accuracy::Double => device.times(self.double, x),
        }
    }

    fn transposed_times(&self, device: &D, v: &D::Matrix, accuracy: Accuracy, _: &Control) -> Result<D::Matrix> {
        match accuracy {
            Accuracy::Working => device.narrow_transposed_times(&self.single, v),
            Accuracy::Double => device.transposed_times(self.double, v),
        }
    }
}

/// The eigenvectors of K = ZZᵀ that are not in its null space, and one vector more for what they miss of the vector 1.
///
/// With ZᵀZ = VΣ²Vᵀ the eigenvectors are U = ZVΣ⁻¹. The vector e = (1 − UUᵀ1)/‖1 − UUᵀ1‖, of eigenvalue 0, completes
/// them: for a β outside their span, all that the engine asks for is the sum of β. So the basis is [Z 1]·T with a small
/// T, and is never formed.
pub(crate) struct OfFeatures<'a, T, D: Device> {
    design: Design<'a, T>,
    map: D::Matrix,
    /// VΣ, which takes coordinates to w = Zᵀβ.
    weights: Mat<f64>,
}

impl<'a, T: Working, D: Device> OfFeatures<'a, T, D> {
    pub fn new(device: &D, design: Design<'a, T>, control: &Control) -> Result<(Self, Spectrum)> {
        let (n, rank) = (design.n(), design.rank());
        // The upper triangle of [Z 1]ᵀ[Z 1].
        let square: Mat<f64> = device.curvature(design, &vec![1.0; n], GROUPS, control)?;
        let (values, vectors) = eigen(square.submatrix(0, 0, rank, rank).transpose().to_owned(), control)?;
        let largest = values.iter().fold(0.0_f64, |a, v| a.max(*v));
        let kept: Vec<usize> = (0..rank).filter(|&k| values[k] > NEGLIGIBLE * largest).collect();
        let mut values: Vec<f64> = kept.iter().map(|&k| values[k]).collect();
        let sigma: Vec<f64> = values.iter().map(|v| v.sqrt()).collect();
        let weights = Mat::from_fn(rank, kept.len(), |j, k| vectors[(j, kept[k])] * sigma[k]);
        let of_one = |k: usize| (0..rank).map(|j| vectors[(j, kept[k])] * square[(j, rank)]).sum::<f64>() / sigma[k];
        let mut ones: Vec<f64> = (0..kept.len()).map(of_one).collect();
        let left = n as f64 - ones.iter().map(|o| o * o).sum::<f64>();
        let column = |k: usize| (0..rank).map(|j| vectors[(j, kept[k])] / sigma[k]).chain([0.0]).collect();
        let mut map: Vec<Vec<f64>> = (0..kept.len()).map(column).collect();
        if left > NEGLIGIBLE.sqrt() * n as f64 {
            let mut rest = vec![0.0; rank + 1];
            rest[rank] = 1.0;
            for (column, one) in map.iter().zip(&ones) {
                rest.iter_mut().zip(column).for_each(|(rest, value)| *rest -= one * value);
            }
            map.push(rest.into_iter().map(|value| value / left.sqrt()).collect());
            ones.push(left.sqrt());
            values.push(0.0);
        }
        let map = device.upload(rank + 1, &map)?;
        Ok((Self { design, map, weights }, Spectrum { values, ones }))
    }

    /// w = Zᵀβ for the β with these coordinates.
    pub fn weights(&self, coordinates: &[f64]) -> Vec<f64> {
        let Self { weights, .. } = self;
        (0..weights.nrows()).map(|j| (0..weights.ncols()).map(|k| weights[(j, k)] * coordinates[k]).sum()).collect()
    }
}

impl<T: Working, D: Device> Basis<D> for OfFeatures<'_, T, D> {
    fn times(&self, device: &D, x: &D::Matrix, accuracy: Accuracy, control: &Control) -> Result<D::Matrix> {
        device.features_times(self.design, &device.times(&self.map, x)?, accuracy, control)
    }

    fn transposed_times(&self, device: &D, v: &D::Matrix, accuracy: Accuracy, control: &Control) -> Result<D::Matrix> {
        let products = device.features_transposed_times(self.design, v, accuracy, control)?;
        device.transposed_times(&self.map, &products)
    }
}
