//! Rows of data, dense or sparse, and equal rows merged.

pub(crate) mod rows;
pub(crate) mod sparse;
pub(crate) mod units;
