//! The Rust face: typed builders, and the models they train.

pub(crate) mod class_weights;
pub(crate) mod classifier;
pub(crate) mod counted;
pub(crate) mod fitted;
pub(crate) mod fitted_classifier;
pub(crate) mod function;
pub(crate) mod label;
pub(crate) mod options;
pub(crate) mod proving;
pub(crate) mod quantiles;
pub(crate) mod regressor;
pub(crate) mod saving;
pub(crate) mod setters;
pub(crate) mod svc;
pub(crate) mod targets;
pub(crate) mod training;
