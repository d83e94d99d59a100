//! Low rank: landmarks, the features they give, and where these are kept.

pub(crate) mod approximation;
pub(crate) mod build;
pub(crate) mod feature_kernel;
pub(crate) mod features;
pub(crate) mod landmarks;
