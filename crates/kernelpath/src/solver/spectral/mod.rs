//! Every loss: accelerated proximal steps on one eigendecomposition, in blocks of folds and neighbouring C's.

pub(crate) mod block;
pub(crate) mod on_features;
pub(crate) mod on_matrix;
pub(crate) mod step;

/// Neighbouring C's in a block.
pub(crate) const NEIGHBOURS: usize = 4;

use crate::solver::engine::Description;

/// Numbers per row and problem at each C of a block: coordinates, f and slopes, on the device and off it, and the parts
/// of products.
const STATE_OF_A_STEP: u64 = 20;

pub(crate) const SPECTRAL: Description = Description {
    name: "spectral",
    lacks: |_| None,
    bytes: |size| {
        let columns = (size.rows * size.problems * NEIGHBOURS) as u64;
        size.decomposition() + 8 * columns * STATE_OF_A_STEP
    },
};
