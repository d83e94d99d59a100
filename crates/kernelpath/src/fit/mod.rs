//! From a request to every model of a fit.

pub(crate) mod absent;
pub(crate) mod check;
pub(crate) mod folds;
pub(crate) mod grid;
pub(crate) mod held_out;
pub(crate) mod left_out;
pub(crate) mod memory_plan;
pub(crate) mod metrics;
pub(crate) mod placed;
pub(crate) mod precision;
pub(crate) mod request;
pub(crate) mod result;
pub(crate) mod row_classes;
pub(crate) mod run;
pub(crate) mod scoring;
pub(crate) mod search;
pub(crate) mod select;
pub(crate) mod solved;
pub(crate) mod spread;
pub(crate) mod surface;
pub(crate) mod tune;
pub(crate) mod tune_classes;
pub(crate) mod tune_numbers;
pub(crate) mod verify;
pub(crate) mod with_features;
pub(crate) mod with_matrix;
