//! Piecewise-linear losses: warm-started SMO, finished by an active set.

pub(crate) mod active_set;
pub(crate) mod constant;
pub(crate) mod factor;
pub(crate) mod one_path;
pub(crate) mod problem;
pub(crate) mod proximal;
pub(crate) mod smo;
pub(crate) mod turns;

use crate::solver::engine::Description;

/// Numbers per row and problem that paths take before the first C: weights, the start and what it is made from.
const STARTS: u64 = 8;

pub(crate) const ACTIVE_SET: Description = Description {
    name: "active-set",
    lacks: |loss| loss.curvature_bound().map(|_| "which is not piecewise linear"),
    bytes: |size| 8 * (size.rows * size.problems) as u64 * STARTS,
};
