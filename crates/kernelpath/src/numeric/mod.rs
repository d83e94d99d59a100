//! Numbers, memory and threads: what every other layer is built on.

pub(crate) mod centre;
pub(crate) mod cholesky;
pub(crate) mod conjugate_gradients;
pub(crate) mod design;
pub(crate) mod eigen;
pub(crate) mod elementary;
pub(crate) mod entry;
pub(crate) mod line_search;
pub mod memory;
pub(crate) mod parallel;
pub(crate) mod positive;
pub(crate) mod remote;
pub(crate) mod simd;
pub(crate) mod skinny;
pub(crate) mod steps;
pub mod threads;
