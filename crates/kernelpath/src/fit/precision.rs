//! The precision that the kernel matrix is stored in.

use crate::data::rows::Rows;
use crate::data::units::Units;
use crate::error::{Result, named};
use crate::fit::folds::counts;
use crate::fit::request::{KernelChoice, Request, Task};
use crate::kernel::accuracy::STANDARD_ERRORS;
use crate::kernel::gram::{Gram, single_is_enough};
use crate::kernel::shape::{KernelFn, Shape};
use crate::loss::scalar::Loss;
use crate::observe::Control;

/// Precision of the kernel matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Single where rounding stays far below the tolerance. Double where the kernel matrix is nearly singular, as for
    /// kernels of ⟨x, z⟩ and smooth kernels in few dimensions, because rounding would make it indefinite. Double, too,
    /// where C is so large that the corrections of single precision would not be enough. A precomputed matrix keeps its
    /// own precision.
    #[default]
    Auto,
    /// f32 with 16-bit corrections: three quarters of the memory, and faster steps. Certificates are just as valid.
    Single,
    /// f64.
    Double,
}

impl Precision {
    /// The names, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["auto", "float32", "float64"];

    /// The precision of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        named("dtype", name, Self::NAMES, &[Self::Auto, Self::Single, Self::Double])
    }

    fn is_single(self, kernel: &KernelFn, x: &Rows, rows: &[usize], control: &Control) -> Result<bool> {
        Ok(match self {
            Self::Single => true,
            Self::Double => false,
            Self::Auto if kernel.shape == Shape::Precomputed => matches!(x, Rows::F32(_)),
            Self::Auto => kernel.shape.is_shift_invariant() && single_is_enough(x, rows, kernel, control)?,
        })
    }
}

/// Whether the kernel matrix, or the features, are stored in single precision.
pub(crate) fn is_single(request: &Request, units: &Units, control: &Control) -> Result<bool> {
    let (precision, rows) = (request.precision, &units.representative);
    let may_be = precision != Precision::Auto || single_proves(request);
    match request.kernel {
        KernelChoice::Exact(kernel) => Ok(may_be && precision.is_single(&kernel, &request.x, rows, control)?),
        KernelChoice::LowRank(_) => Ok(may_be && precision != Precision::Double),
    }
}

/// Whether a matrix stored in single precision with its corrections can prove the tolerance at the largest C. With a
/// piecewise-linear loss whose rows all stand at a bound, f is off there by a standard error of √n·C·w times that of an
/// entry.
fn single_proves(request: &Request) -> bool {
    let largest = request.cs.iter().fold(0.0, |a: f64, c| a.max(*c));
    let is_straight = |loss: &Loss| loss.curvature_bound().is_none();
    let straight = request.tasks.iter().filter_map(|task| Some((task, task.loss().filter(is_straight)?)));
    straight.into_iter().all(|(task, loss)| {
        let weight = largest_weight(request, task);
        let error = Gram::<f32>::storage_error() * (task.y.len() as f64).sqrt() * largest * weight;
        STANDARD_ERRORS * error <= request.settings.tol * loss.scale(&task.y)
    })
}

/// The largest weight of a row in the refit or a fold: folds balance their classes anew.
fn largest_weight(request: &Request, task: &Task) -> f64 {
    let largest = |count: &dyn Fn(usize) -> f64| task.weights(count).into_iter().fold(0.0, f64::max);
    let mut weight = largest(&|_| 1.0);
    if task.classes.as_ref().is_some_and(|classes| classes.are_balanced()) {
        for fold in request.folds.splits() {
            let count = counts(request.x.nrows(), &fold.train);
            weight = largest(&|i| count[i]).max(weight);
        }
    }
    weight
}
