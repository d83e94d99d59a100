//! Kernels, bandwidth rules, and the kernel matrix with its products.

pub(crate) mod accuracy;
pub(crate) mod bandwidth;
pub(crate) mod definite;
pub(crate) mod elsewhere;
pub(crate) mod evaluate;
#[cfg(test)]
pub(crate) mod every_shape;
pub(crate) mod feature_map;
pub(crate) mod gammas;
pub(crate) mod gram;
pub(crate) mod operator;
pub(crate) mod pairs;
pub(crate) mod pivoted;
pub(crate) mod plane;
pub(crate) mod products;
pub(crate) mod shape;
pub(crate) mod tile;
pub(crate) mod tilt;
