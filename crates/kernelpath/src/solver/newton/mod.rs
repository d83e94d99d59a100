//! Smooth losses, and the multinomial one: Newton's method with conjugate gradients, all folds at once.

pub(crate) mod coupled;
pub(crate) mod descent;
pub(crate) mod gradients;
pub(crate) mod multiclass;
pub(crate) mod one_value;
pub(crate) mod precondition;
pub(crate) mod smooth;
pub(crate) mod starts;

use crate::solver::engine::Description;

/// Numbers per row and problem: the solutions at the last three C's and the one at hand, what conjugate gradients keep of
/// a step, and the parts of products with K.
const COLUMN: u64 = 32;

pub(crate) const NEWTON: Description = Description {
    name: "newton",
    lacks: |loss| loss.curvature_bound().is_none().then_some("which is not smooth"),
    bytes: |size| {
        let n = size.rows as u64;
        // A factor of the whole matrix, in case it is needed, and two of low rank, one of which is being transposed.
        n * n / 2 * size.entry as u64 + 4 * n * 200 * 8 + 8 * n * size.problems as u64 * COLUMN
    },
};
