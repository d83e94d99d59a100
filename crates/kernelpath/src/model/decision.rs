//! The fitted model.

use faer::MatRef;

use crate::data::rows::{IntoRows, Rows, RowsBuf};
use crate::device::place::Hardware;
use crate::error::{Error, Result};
use crate::kernel::evaluate::{kernel_flops, kernel_times};
use crate::kernel::plane::Plane;
use crate::kernel::shape::{KernelFn, Shape};
use crate::kernel::tile::{Side, check_sums};
use crate::numeric::threads::{are_few, pooled_if_worth};
use crate::observe::Control;

/// f(x) = Σ coefᵢ k(x, xᵢ) + b over the support vectors.
#[derive(Debug, Clone)]
pub struct Model {
    kernel: KernelFn,
    support: Vec<usize>,
    vectors: RowsBuf,
    coef: Vec<f64>,
    intercept: f64,
}

impl Model {
    /// Keeps the rows of `x` whose β is not 0.
    pub fn new(x: &Rows, kernel: KernelFn, beta: &[f64], intercept: f64) -> Self {
        let support: Vec<usize> = (0..beta.len()).filter(|&i| beta[i] != 0.0).collect();
        let vectors = x.copy_rows(if kernel.shape == Shape::Precomputed { &[] } else { &support });
        let coef = support.iter().map(|&i| beta[i]).collect();
        Self { kernel, support, vectors, coef, intercept }
    }

    /// The kernel with its settled bandwidth.
    pub fn kernel(&self) -> KernelFn {
        self.kernel
    }

    /// Training rows with non-zero coefficient.
    pub fn support(&self) -> &[usize] {
        &self.support
    }

    /// The coefficients β of the support vectors.
    pub fn coef(&self) -> &[f64] {
        &self.coef
    }

    /// The intercept b.
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// f at every row of `x`; its sign is the class. For a precomputed kernel, `x` holds the kernel
    /// between the new rows and the support vectors.
    pub fn decision_function<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        let coef = MatRef::from_column_major_slice(&self.coef, self.coef.len(), 1);
        decision(
            &x.into_rows()?,
            &self.vectors.view(),
            coef,
            &[self.intercept],
            &self.kernel,
            Hardware::default(),
            &Control::default(),
        )
    }

    /// The class, −1 or +1, of every row of `x`.
    pub fn predict<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        Ok(self.decision_function(x)?.into_iter().map(|f| if f > 0.0 { 1.0 } else { -1.0 }).collect())
    }
}

/// Σ coefⱼ k(x, vⱼ) + b for every row of `x` and each machine, row after row. `coef` has one row per vector and one
/// column per machine, and the kernel is evaluated once for all machines. If there is much to compute, the device does it,
/// or it is shared out among the threads. A model needs no device: where the one of `hardware` is not at hand, the
/// processor computes.
pub fn decision(
    x: &Rows,
    vectors: &Rows,
    coef: MatRef<f64>,
    intercepts: &[f64],
    kernel: &KernelFn,
    hardware: Hardware,
    control: &Control,
) -> Result<Vec<f64>> {
    let (support, machines) = (coef.nrows(), coef.ncols());
    if intercepts.len() != machines {
        let (got, expected) = (intercepts.len(), machines);
        return Err(Error::Length { what: "the intercepts", got, expected, why: "one a machine" });
    }
    if kernel.shape != Shape::Precomputed && vectors.nrows() != support {
        let (got, expected) = (support, vectors.nrows());
        return Err(Error::Length { what: "the coefficients", got, expected, why: "one a support vector" });
    }
    let expected = if kernel.shape == Shape::Precomputed { support } else { vectors.ncols() };
    if x.ncols() != expected {
        return Err(Error::Features { got: x.ncols(), expected });
    }
    if support == 0 || machines == 0 {
        return Ok(intercepts.repeat(x.nrows()));
    }
    if kernel.shape == Shape::Linear && Plane::is_small(vectors, coef) {
        return Plane::new(vectors, coef, intercepts, None)?.decision(x, hardware.threads);
    }
    let flops = kernel_flops(x, vectors, machines);
    let device = if are_few(flops) { None } else { hardware.device.open().ok() };
    let mut f = pooled_if_worth(hardware.threads, flops, || {
        x.check("X")?;
        if kernel.shape == Shape::Precomputed {
            let row = |i: usize| (0..machines).map(move |m| (0..support).map(|j| x.get(i, j) * coef[(j, m)]).sum());
            return Ok((0..x.nrows()).flat_map(row).collect());
        }
        match device.as_ref().and_then(|device| device.kernels()) {
            Some(kernels) => {
                let rows: Vec<usize> = (0..x.nrows()).collect();
                match kernels.times(x, &rows, vectors, coef, kernel, control) {
                    // The processor needs no memory of a device.
                    Err(Error::DeviceMemory { .. } | Error::DeviceFailed { .. } | Error::DeviceSize { .. }) => {
                        kernel_times(x, vectors, coef, kernel, control)
                    }
                    done => done,
                }
            }
            None => kernel_times(x, vectors, coef, kernel, control),
        }
    })?;
    check_sums::<f64>("the decision value", Side::x(kernel, x), |row| row, machines, &f)?;
    for f in f.chunks_exact_mut(machines) {
        for (f, b) in f.iter_mut().zip(intercepts) {
            *f += b;
        }
    }
    Ok(f)
}
