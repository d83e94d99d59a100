//! A step's products with U, and their precision.

use crate::device::basis::Basis;
use crate::device::matrix::Matrix;
use crate::device::{Block, Device};
use crate::error::Result;
use crate::loss::smoothed::Smoothed;
use crate::numeric::design::Accuracy;
use crate::solver::spectral::block::Spectral;

/// The precision of a step's products with U.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Products {
    /// In single precision.
    Single,
    /// What changed since the last products in double precision, in single precision. The errors vanish with the changes,
    /// so that the limit is that of products in double precision, for devices on which these are slow.
    Corrected,
    /// In double precision.
    Double,
}

/// Steps after which corrected products start from products in double precision again.
const RENEWED_AFTER: usize = 12;

impl Products {
    /// The precision to begin with: double only if K is stored in double precision on a device where that is slow.
    pub fn first(device: &dyn Device, is_rough: bool) -> Self {
        if is_rough || !device.double_is_slow() { Self::Single } else { Self::Double }
    }

    /// The next precision, where this one is not enough.
    pub fn better(self, device: &dyn Device) -> Self {
        if self == Self::Single && device.double_is_slow() { Self::Corrected } else { Self::Double }
    }
}

/// Products in double precision, and what was multiplied.
pub(crate) struct Reference {
    scaled: Matrix,
    f: Matrix,
    pulls: Matrix,
    products: Matrix,
    age: usize,
}

impl<B: Basis + ?Sized> Spectral<'_, B> {
    /// Uᵀθ at where the steps start, with f = UΛ·ahead.
    pub(super) fn pulled(
        &self,
        block: &Block,
        smooth: Smoothed,
        weight: &Matrix,
        reference: &mut Option<Reference>,
    ) -> Result<Matrix> {
        let Self { device, basis, spectrum, y, control, .. } = *self;
        let scaled = device.scale_rows(&spectrum.values, &block.ahead)?;
        let accuracy = if self.products == Products::Single { Accuracy::Working } else { Accuracy::Double };
        if self.products == Products::Corrected
            && let Some(known) = reference
            && known.age < RENEWED_AFTER
        {
            known.age += 1;
            let f = changed(device, (&scaled, &known.scaled, &known.f), |change| {
                basis.times(device, change, Accuracy::Working, control)
            })?;
            let pulls = device.pulls(smooth, y, weight, &f, &block.b_ahead)?;
            return changed(device, (&pulls, &known.pulls, &known.products), |change| {
                basis.transposed_times(device, change, Accuracy::Working, control)
            });
        }
        let f = basis.values(device, &scaled, &block.ahead, accuracy, control)?;
        let pulls = device.pulls(smooth, y, weight, &f, &block.b_ahead)?;
        let products = basis.transposed_times(device, &pulls, accuracy, control)?;
        if self.products == Products::Corrected {
            let copy = device.combine(&[(&products, &vec![1.0; products.columns])])?;
            *reference = Some(Reference { scaled, f, pulls, products: copy, age: 0 });
        }
        Ok(products)
    }
}

/// A·now, given A·before.
fn changed(
    device: &dyn Device,
    (now, before, product): (&Matrix, &Matrix, &Matrix),
    times: impl Fn(&Matrix) -> Result<Matrix>,
) -> Result<Matrix> {
    let (plus, minus) = (vec![1.0; now.columns], vec![-1.0; now.columns]);
    let change = times(&device.combine(&[(now, &plus), (before, &minus)])?)?;
    device.combine(&[(product, &plus), (&change, &plus)])
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::certify::record::Settings;
    use crate::data::rows::Rows;
    use crate::device::Decomposition;
    use crate::device::basis::Eigenvectors;
    use crate::device::basis_in_single::{self, InSingle};
    use crate::device::place::DeviceChoice;
    use crate::kernel::gram::Gram;
    use crate::kernel::shape::{KernelFn, Shape};
    use crate::loss::scalar::Loss;
    use crate::observe::Control;
    use crate::solver::spectral::step::take_step;

    /// f after 200 steps for the logistic loss with C = 100, with eigenvectors in double or in single precision.
    fn after_many_steps(products: Products, in_single: bool) -> Vec<f64> {
        let (n, c, control) = (60, 100.0, Control::default());
        let x: Vec<f64> = (0..2 * n).map(|i| (0.37 * f64::from(i)).sin()).collect();
        let y: Vec<f64> = x.chunks(2).map(|row| if row[0] * row[1] > 0.1 { 1.0 } else { -1.0 }).collect();
        let (rows, all) = (Rows::from_slice(&x, 2).unwrap(), (0..60).collect::<Vec<usize>>());
        let kernel = KernelFn::new(Shape::Rbf, 2.0).unwrap();
        let gram = Gram::<f64>::compute(&rows, &all, &kernel, None, &control).unwrap();
        let device = &*DeviceChoice::Cpu.open().unwrap();
        let decomposed = if in_single { basis_in_single::decomposed } else { Decomposition::new };
        let made = decomposed(device, &gram, &control).unwrap();
        let basis: Box<dyn Basis> = if in_single {
            Box::new(InSingle { vectors: &made.basis, gram: &gram })
        } else {
            Box::new(Eigenvectors::new(device, &made).unwrap())
        };
        let basis = &*basis;
        let (loss, settings, spectrum) = (Loss::Logistic, Settings::default(), &made.spectrum);
        let spectral = Spectral { device, basis, spectrum, loss, y: &y, settings, products, control: &control };
        let zeros = || device.upload(y.len(), &[vec![0.0; y.len()]]).unwrap();
        let weight = device.upload(y.len(), &[vec![c; y.len()]]).unwrap();
        let (b, momentum) = (vec![0.0], vec![1.0]);
        let mut block = Block { coordinates: zeros(), ahead: zeros(), b_ahead: b.clone(), b, momentum };
        let (smooth, mut reference) = (Smoothed { loss, delta: 1.0 }, None);
        for _ in 0..200 {
            let pulls = spectral.pulled(&block, smooth, &weight, &mut reference).unwrap();
            take_step(device, &mut block, &pulls, spectrum, &[c * smooth.curvature_bound()]).unwrap();
        }
        let scaled = device.scale_rows(&spectrum.values, &block.coordinates).unwrap();
        let f = basis.values(device, &scaled, &block.coordinates, Accuracy::Double, &control).unwrap();
        device.download(&f).unwrap().remove(0)
    }

    #[test]
    fn corrected_products_lead_where_those_in_double_precision_lead() {
        let want = after_many_steps(Products::Double, false);
        let off = |products: Products, in_single: bool| {
            let got = after_many_steps(products, in_single);
            got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        for in_single in [false, true] {
            let (single, corrected) = (off(Products::Single, in_single), off(Products::Corrected, in_single));
            assert!(corrected < 1e-2 * single && single < 1e-2, "{corrected} {single}, in single {in_single}");
        }
        assert!(off(Products::Double, true) < 1e-9);
    }
}
