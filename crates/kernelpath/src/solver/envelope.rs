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
        if low < mid {
            (low.max(lo), if low > lo { sigma } else { 0.0 })
        } else if high > mid {
            (high.min(hi), if high < hi { sigma } else { 0.0 })
        } else {
            (mid, 0.0)
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
