//! A loss in the form that Newton's method wants: with a continuous slope, and a curvature.
//!
//! A smooth loss stays as it is. A piecewise-linear one is replaced by its envelope around a centre ā,
//!
//! ```text
//! h(g) = max over a in the box of  ψ(a) − a g − (a − ā)²/(2σ),     −h′(g) = a(g),   h″ = σ where a(g) is inside a segment
//! ```
//!
//! with ψ as in the box QP of the active set. Where a(g) = ā the envelope touches the loss.

use crate::loss::scalar::Loss;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope {
    pub loss: Loss,
    /// σ for a row with C·w = 1. The σ of a row is proportional to its C·w, so that a row of weight 2 counts as two
    /// rows.
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
        let slope = slope(low, high, lo, mid, hi);
        (slope.a, if slope.lower || slope.upper { sigma } else { 0.0 })
    }

    /// As [`Loss::sum`].
    #[inline]
    pub fn sum<const N: usize, const K: usize>(
        self,
        columns: [&[f64]; N],
        term: impl Fn(Self, [f64; N]) -> [f64; K],
    ) -> [f64; K] {
        self.loss.sum(
            columns,
            #[inline(always)]
            |loss, row| term(Self { loss, ..self }, row),
        )
    }

    /// As [`Loss::fill`].
    #[inline]
    pub fn fill<const N: usize, const K: usize>(
        self,
        columns: [&[f64]; N],
        out: [&mut [f64]; K],
        of: impl Fn(Self, [f64; N]) -> [f64; K],
    ) {
        self.loss.fill(
            columns,
            out,
            #[inline(always)]
            |loss, row| of(Self { loss, ..self }, row),
        );
    }

    /// How far a(g) is from being a slope of the loss itself: C·w L(g) − ψ(a) + a g ≥ 0.
    #[inline(always)]
    pub fn mismatch(self, y: f64, cw: f64, a: f64, g: f64) -> f64 {
        let Some(k) = self.loss.kinks(y) else { return 0.0 };
        let above = (a - cw * k.mid).max(0.0);
        (cw * self.loss.value(y, g) - k.kink_low * (a - above) - k.kink_high * above + a * g).max(0.0)
    }
}

/// a(g), and whether it is strictly inside the lower or the upper segment.
pub(crate) struct Slope {
    pub a: f64,
    pub lower: bool,
    pub upper: bool,
}

/// a(g), given where the lower and the upper segment would put it: `low` and `high` are ā + σ(kink − g) for the kink of
/// each, so that `high` is at most `low`. There are no branches, so that loops over rows become SIMD.
#[inline(always)]
pub(crate) fn slope(low: f64, high: f64, lo: f64, mid: f64, hi: f64) -> Slope {
    let above = if high > mid { if high < hi { high } else { hi } } else { mid };
    let below = if low > lo { low } else { lo };
    Slope { a: if low < mid { below } else { above }, lower: lo < low && low < mid, upper: mid < high && high < hi }
}
