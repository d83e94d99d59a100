//! Orthonormal bases in which K is diagonal: all eigenvectors of a kernel matrix, or those of a low-rank kernel that
//! are not in its null space.

use faer::Mat;

use crate::device::matrix::Matrix;
use crate::device::{Decomposition, Device, Spectrum};
use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design};
use crate::numeric::eigen::eigen;
use crate::numeric::parallel;
use crate::observe::Control;

/// Directions whose eigenvalue is this small, relative to the largest, are left out of a low-rank basis.
const NEGLIGIBLE: f64 = 1e-12;

/// Groups of rows whose parts of ZᵀZ are summed side by side. The number of groups sets the order of summation, so it
/// must not depend on the threads. Each group takes a matrix of rank² doubles: more groups would take much memory
/// beside the features.
const GROUPS: usize = 4;

/// A basis U on a device, orthonormal or nearly so. The passes of the spectral engine are products with it. In double
/// accuracy they are those of K itself, even if K = UΛUᵀ and UᵀU = I hold in single precision only.
pub(crate) trait Basis: Sync {
    /// U·X: the vectors with these coordinates.
    fn times(&self, device: &dyn Device, x: &Matrix, accuracy: Accuracy, control: &Control) -> Result<Matrix>;
    /// U⁻¹·V = Uᵀ·V: the coordinates of these vectors.
    fn transposed_times(
        &self,
        device: &dyn Device,
        v: &Matrix,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Matrix>;
    /// Kβ for the β with these coordinates, given Λ times them, too.
    fn values(
        &self,
        device: &dyn Device,
        scaled: &Matrix,
        _coordinates: &Matrix,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Matrix> {
        self.times(device, scaled, accuracy, control)
    }
    /// βᵀKβ for each β, given its coordinates and f = Kβ.
    fn squares(
        &self,
        _device: &dyn Device,
        spectrum: &Spectrum,
        known: &[(&[f64], &[f64])],
        _control: &Control,
    ) -> Result<Vec<f64>> {
        Ok(known.iter().map(|(coordinates, _)| spectrum.squares(coordinates)).collect())
    }
    /// θᵀKθ for each of these vectors of the host.
    fn squares_of(
        &self,
        device: &dyn Device,
        spectrum: &Spectrum,
        vectors: &[Vec<f64>],
        control: &Control,
    ) -> Result<Vec<f64>> {
        let uploaded = device.upload(vectors.first().map_or(0, Vec::len), vectors)?;
        let coordinates = device.download(&self.transposed_times(device, &uploaded, Accuracy::Double, control)?)?;
        Ok(coordinates.iter().map(|coordinates| spectrum.squares(coordinates)).collect())
    }
}

/// The eigenvectors of a kernel matrix, in both precisions.
pub(crate) struct Eigenvectors<'a> {
    double: &'a Matrix,
    single: Matrix,
}

impl<'a> Eigenvectors<'a> {
    pub fn new(device: &dyn Device, decomposition: &'a Decomposition) -> Result<Self> {
        let double = &decomposition.basis;
        Ok(Self { double, single: device.narrow(double)? })
    }

    fn of(&self, accuracy: Accuracy) -> &Matrix {
        match accuracy {
            Accuracy::Working => &self.single,
            Accuracy::Double => self.double,
        }
    }
}

impl Basis for Eigenvectors<'_> {
    fn times(&self, device: &dyn Device, x: &Matrix, accuracy: Accuracy, control: &Control) -> Result<Matrix> {
        device.times(self.of(accuracy), x, control)
    }

    fn transposed_times(
        &self,
        device: &dyn Device,
        v: &Matrix,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Matrix> {
        device.transposed_times(self.of(accuracy), v, control)
    }
}

/// The eigenvectors of K = ZZᵀ that are not in its null space, and one vector more for what they miss of the vector 1.
///
/// With ZᵀZ = VΣ²Vᵀ the eigenvectors are U = ZVΣ⁻¹. The vector e = (1 − UUᵀ1)/‖1 − UUᵀ1‖, of eigenvalue 0, completes
/// them: for a β outside their span, all that the engine asks for is the sum of β. So the basis is [Z 1]·T with a small
/// T, and is never formed.
pub(crate) struct OfFeatures<'a, T> {
    design: Design<'a, T>,
    map: Matrix,
    /// VΣ, which takes coordinates to w = Zᵀβ.
    weights: Mat<f64>,
}

impl<'a, T: Working> OfFeatures<'a, T> {
    pub fn new(device: &dyn Device, design: Design<'a, T>, control: &Control) -> Result<(Self, Spectrum)> {
        let (n, rank) = (design.n(), design.rank());
        // The upper triangle of [Z 1]ᵀ[Z 1].
        let square: Mat<f64> = design.curvature(&vec![1.0; n], GROUPS, control)?;
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

impl<T: Working> Basis for OfFeatures<'_, T> {
    fn times(&self, device: &dyn Device, x: &Matrix, accuracy: Accuracy, control: &Control) -> Result<Matrix> {
        let rank = self.design.rank();
        let weights = device.download(&device.times(&self.map, x, control)?)?;
        let w: Vec<&[f64]> = weights.iter().map(|column| &column[..rank]).collect();
        let mut products = self.design.times(&w, accuracy, control)?;
        parallel::for_each(products.iter_mut().zip(&weights), |(product, column)| {
            for value in product {
                *value += column[rank];
            }
        });
        device.upload(self.design.n(), &products)
    }

    fn transposed_times(
        &self,
        device: &dyn Device,
        v: &Matrix,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Matrix> {
        let columns = device.download(v)?;
        let references: Vec<&[f64]> = columns.iter().map(|column| &column[..]).collect();
        let mut products = self.design.transposed_times(&references, accuracy, control)?;
        products.iter_mut().zip(&columns).for_each(|(product, column)| product.push(column.iter().sum()));
        device.transposed_times(&self.map, &device.upload(self.design.rank() + 1, &products)?, control)
    }
}
