//! A loss with its kinks rounded off.

use crate::loss::scalar::Loss;

/// A piecewise-linear loss with each kink rounded over a width of 2δ, as finite smoothing needs it. A smooth loss stays
/// as it is. The smoothed loss lies above the loss by at most (hi − lo)·δ/4, and tends to the loss for δ → 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothed {
    /// The loss.
    pub loss: Loss,
    /// Half the width of a rounded kink.
    pub delta: f64,
}

impl Smoothed {
    /// As [`Loss::vectorised`].
    #[inline]
    pub(crate) fn vectorised<R>(self, work: impl FnOnce(Self) -> R) -> R {
        self.loss.vectorised(
            #[inline(always)]
            |loss| work(Self { loss, ..self }),
        )
    }

    /// L_δ(y, f).
    #[inline(always)]
    pub fn value(self, y: f64, f: f64) -> f64 {
        match self.loss.kinks(y) {
            None => self.loss.value(y, f),
            Some(k) => {
                // The loss, plus what rounding each kink adds.
                let rounding = |kink: f64, jump: f64| {
                    let inside = (self.delta - (f - kink).abs()).max(0.0);
                    jump * inside * inside / (4.0 * self.delta)
                };
                self.loss.value(y, f) + rounding(k.kink_low, k.mid - k.lo) + rounding(k.kink_high, k.hi - k.mid)
            }
        }
    }

    /// −L_δ′(y, f).
    #[inline(always)]
    pub fn pull(self, y: f64, f: f64) -> f64 {
        match self.loss.kinks(y) {
            None => self.loss.pull(y, f),
            Some(k) => {
                let ramp = |kink: f64| (0.5 + (kink - f) / (2.0 * self.delta)).clamp(0.0, 1.0);
                k.lo + (k.mid - k.lo) * ramp(k.kink_low) + (k.hi - k.mid) * ramp(k.kink_high)
            }
        }
    }

    /// The largest L_δ″ of any row.
    pub fn curvature_bound(self) -> f64 {
        self.loss.curvature_bound().unwrap_or_else(|| {
            // Two kinks that are closer than 2δ add up.
            let (lo, hi) = self.loss.domain(1.0);
            (hi - lo) / (2.0 * self.delta)
        })
    }
}
