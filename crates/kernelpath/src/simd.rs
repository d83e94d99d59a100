//! Run-time SIMD: the loops inside are compiled once for every instruction set and the best one the
//! machine has is chosen when they run.

use std::ops::{Add, Mul};

use crate::gram::Entry;

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

/// aᵀb in the precision of `b`, summed in lanes; for use inside [`vectorise`].
#[inline(always)]
pub(crate) fn dot_in_lanes<T: Entry, R: Entry + Add<Output = R> + Mul<Output = R>>(a: &[T], b: &[R]) -> R {
    const LANES: usize = 16;
    let mut lanes = [R::default(); LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    // By position: the `next` of two zipped iterators is not always inlined, and then nothing is SIMD.
    for k in 0..a.len().min(b.len()) {
        let (a, b) = (&a[k], &b[k]);
        for l in 0..LANES {
            lanes[l] = lanes[l] + R::narrow(a[l].wide()) * b[l];
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| R::narrow(a.wide()) * *b);
    lanes.into_iter().chain(rest).fold(R::default(), |sum, value| sum + value)
}

/// Sums of terms in a fixed order that SIMD can follow; for use inside [`vectorise`], with an `#[inline(always)]` term.
#[inline(always)]
pub(crate) fn sum_in_lanes<const K: usize>(length: usize, term: impl Fn(usize) -> [f64; K]) -> [f64; K] {
    const LANES: usize = 16;
    let mut lanes = [[0.0; LANES]; K];
    let whole = length - length % LANES;
    for start in (0..whole).step_by(LANES) {
        #[allow(clippy::needless_range_loop)] // lanes side by side, or it would not be SIMD
        for l in 0..LANES {
            let term = term(start + l);
            for k in 0..K {
                lanes[k][l] += term[k];
            }
        }
    }
    let mut sums = [0.0; K];
    for k in 0..K {
        sums[k] = lanes[k].iter().sum();
    }
    for i in whole..length {
        let term = term(i);
        for k in 0..K {
            sums[k] += term[k];
        }
    }
    sums
}
