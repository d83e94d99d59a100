//! Kernels between rows, where a device computes them.

use faer::MatRef;

use crate::data::rows::Rows;
use crate::error::Result;
use crate::kernel::shape::KernelFn;
use crate::observe::Control;

/// What a device does for kernels between rows. All is computed in double precision; squared distances are sums of squared
/// differences, so that near rows lose no digits and k(i, j) = k(j, i) to the bit.
pub(crate) trait Kernels: Send + Sync {
    /// K between rows `a` of `x` and rows `b` of `z`, in panels of whole rows: `each(first, values)` gets some rows (row
    /// after row, `b.len()` numbers each), beginning with the `first`-th of `a`.
    #[allow(clippy::too_many_arguments)]
    fn panels(
        &self,
        x: &Rows,
        a: &[usize],
        z: &Rows,
        b: &[usize],
        kernel: &KernelFn,
        control: &Control,
        each: &mut dyn FnMut(usize, &[f64]) -> Result<()>,
    ) -> Result<()>;
    /// Σⱼ coefⱼ k(x, zⱼ) for every row of `x` and each column of `coef`, row after row; the kernel values never leave the
    /// device.
    fn times(&self, x: &Rows, z: &Rows, coef: MatRef<f64>, kernel: &KernelFn, control: &Control) -> Result<Vec<f64>>;
}
