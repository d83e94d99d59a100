//! Every loss: accelerated proximal steps on one eigendecomposition, in blocks of folds and neighbouring C's.

pub(crate) mod basis_products;
pub(crate) mod block;
pub(crate) mod on_features;
pub(crate) mod on_matrix;
pub(crate) mod step;

/// Fewest neighbouring C's in a block, and most.
const FEWEST_NEIGHBOURS: usize = 4;

const MOST_NEIGHBOURS: usize = 32;

/// Neighbouring C's in a block of `problems` problems each, which should have about `columns` columns.
pub(crate) fn neighbours(problems: usize, columns: usize) -> usize {
    (columns / problems.max(1)).clamp(FEWEST_NEIGHBOURS, MOST_NEIGHBOURS)
}

use crate::solver::engine::Description;

/// Numbers per row and problem at each C of a block: coordinates, f and slopes, on the device and off it, and the parts
/// of products.
const STATE_OF_A_STEP: u64 = 20;

pub(crate) const SPECTRAL: Description = Description {
    name: "spectral",
    lacks: |_| None,
    bytes: |size| {
        let columns = (size.rows * size.problems * neighbours(size.problems, size.columns)) as u64;
        size.decomposition + 8 * columns * STATE_OF_A_STEP
    },
};
