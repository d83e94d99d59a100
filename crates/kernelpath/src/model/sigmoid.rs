//! The logistic function and its logarithm, to the last bits of a double. Those that losses use become SIMD, but end at
//! 1e-308 instead of 0.

/// 1 / (1 + e^−z).
pub(crate) fn sigmoid(z: f64) -> f64 {
    if z >= 0.0 { 1.0 / (1.0 + (-z).exp()) } else { z.exp() / (1.0 + z.exp()) }
}

/// log(1 / (1 + e^−z)), finite where the number itself is 0.
pub(crate) fn log_sigmoid(z: f64) -> f64 {
    z.min(0.0) - (-z.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_exact() {
        assert_eq!((sigmoid(-1000.0), sigmoid(0.0), sigmoid(1000.0)), (0.0, 0.5, 1.0));
        assert_eq!((log_sigmoid(-1000.0), log_sigmoid(1000.0)), (-1000.0, 0.0));
        assert!((log_sigmoid(0.3) - sigmoid(0.3).ln()).abs() < 1e-15);
        assert!(sigmoid(f64::NAN).is_nan() && log_sigmoid(f64::NAN).is_nan());
    }
}
