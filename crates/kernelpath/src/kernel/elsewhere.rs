//! Kernels between rows that a device computes.

use faer::MatRef;

use crate::data::rows::Rows;
use crate::error::Result;
use crate::kernel::shape::KernelFn;
use crate::observe::Control;

/// Gets some rows of a kernel matrix, one after the other: the position of the first, and their values.
pub(crate) type EachPanel<'a> = &'a mut dyn FnMut(usize, &[f64]) -> Result<()>;

/// What a device does for kernels between rows. All is in double precision. Squared distances are sums of squared
/// differences, so that near rows lose no digits, and k(x, z) = k(z, x) to the last bit.
pub(crate) trait Kernels: Send + Sync {
    /// The kernel between rows `a` of `x` and rows `b` of `z`, in panels of whole rows. Dense rows are taken less a
    /// `centre`, unless that is empty.
    #[allow(clippy::too_many_arguments)]
    fn panels(
        &self,
        x: &Rows,
        a: &[usize],
        z: &Rows,
        b: &[usize],
        kernel: &KernelFn,
        centre: &[f64],
        control: &Control,
        each: EachPanel,
    ) -> Result<()>;

    /// Σⱼ coefⱼ k(x, zⱼ) for rows `a` of `x` and each column of `coef`, row after row. The kernel values never leave the
    /// device.
    fn times(
        &self,
        x: &Rows,
        a: &[usize],
        z: &Rows,
        coef: MatRef<f64>,
        kernel: &KernelFn,
        control: &Control,
    ) -> Result<Vec<f64>>;
}
