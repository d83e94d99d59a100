//! Run-time SIMD: the loops inside are compiled once for every instruction set and the best one the
//! machine has is chosen when they run.

/// Runs `work` compiled for the best instruction set of this machine.
///
/// `work` and what it calls must be `#[inline(always)]` for its loops to become SIMD.
#[inline]
pub(crate) fn vectorise<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(Closure(work))
}

struct Closure<F>(F);

impl<R, F: FnOnce() -> R> pulp::WithSimd for Closure<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> R {
        (self.0)()
    }
}

/// aᵀb, summed in order.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
