//! The losses: scalar formulas, their smoothing, the best intercept; and the multinomial loss.

#[cfg(test)]
mod contract;
pub(crate) mod envelope;
pub(crate) mod intercept;
pub(crate) mod objective;
pub(crate) mod scalar;
pub(crate) mod smoothed;
pub(crate) mod softmax;
