//! A loss as Newton's method wants it: with a slope that is continuous and a curvature.
//!
//! A smooth loss is itself. A piecewise-linear one is replaced by its envelope around a centre ā,
//!
//! ```text
//! h(g) = max over a in the box of  ψ(a) − a g − (a − ā)²/(2σ),     −h′(g) = a(g),   h″ = σ where a(g) is inside a segment
//! ```
//!
//! with ψ as in [`BoxQp`](crate::problem::BoxQp). Where a(g) = ā the envelope touches the loss.

use crate::loss::Loss;

#[derive(Debug, Clone, Copy)]
pub(super) struct Envelope {
    pub loss: Loss,
    /// σ for a row of C·w = 1; it grows with C·w, so that a row of weight 2 is two rows.
    pub sigma: f64,
}

impl Envelope {
    /// −h′(g) and h″(g) of a row of weight `cw` = C·w.
    #[inline(always)]
    pub fn pull_and_curvature(self, y: f64, cw: f64, centre: f64, g: f64) -> (f64, f64) {
        let Some(k) = self.loss.kinks(y) else {
            return (cw * self.loss.pull(y, g), cw * self.loss.curvature(y, g));
        };
        let sigma = self.sigma * cw;
        let (lo, mid, hi) = (cw * k.lo, cw * k.mid, cw * k.hi);
        let (low, high) = (centre + sigma * (k.kink_low - g), centre + sigma * (k.kink_high - g));
        match slope(low, high, lo, mid, hi) {
            (a, Place::Level) => (a, 0.0),
            (a, Place::Lower | Place::Upper) => (a, sigma),
        }
    }

    /// What a(g) misses of being a slope of the loss itself: C·w L(g) − ψ(a) + a g ≥ 0.
    #[inline(always)]
    pub fn mismatch(self, y: f64, cw: f64, a: f64, g: f64) -> f64 {
        let Some(k) = self.loss.kinks(y) else { return 0.0 };
        let above = (a - cw * k.mid).max(0.0);
        (cw * self.loss.value(y, g) - k.kink_low * (a - above) - k.kink_high * above + a * g).max(0.0)
    }
}

/// Where a stands: strictly inside a segment, or at a level.
pub(super) enum Place {
    Lower,
    Upper,
    Level,
}

/// a(g), given where the slopes of the lower and of the upper segment would take it: ā + σ(kink − g) of each.
#[inline(always)]
pub(super) fn slope(low: f64, high: f64, lo: f64, mid: f64, hi: f64) -> (f64, Place) {
    if low < mid {
        (low.max(lo), if low > lo { Place::Lower } else { Place::Level })
    } else if high > mid {
        (high.min(hi), if high < hi { Place::Upper } else { Place::Level })
    } else {
        (mid, Place::Level)
    }
}
