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
        let slope = slope(low, high, lo, mid, hi);
        (slope.a, if slope.lower || slope.upper { sigma } else { 0.0 })
    }

    /// As [`Loss::vectorised`].
    #[inline]
    pub fn vectorised<R>(self, work: impl FnOnce(Self) -> R) -> R {
        self.loss.vectorised(
            #[inline(always)]
            |loss| work(Self { loss, ..self }),
        )
    }

    /// a and S of a block of rows.
    #[inline(always)]
    pub fn bend(self, rows: &Block) -> (Lanes, Lanes) {
        let (mut a, mut s) = ([0.0; LANES], [0.0; LANES]);
        for l in 0..LANES {
            (a[l], s[l]) = self.pull_and_curvature(rows.y[l], rows.cw[l], rows.centre[l], rows.g[l]);
        }
        (a, s)
    }

    /// What a(g) misses of being a slope of the loss itself: C·w L(g) − ψ(a) + a g ≥ 0.
    #[inline(always)]
    pub fn mismatch(self, y: f64, cw: f64, a: f64, g: f64) -> f64 {
        let Some(k) = self.loss.kinks(y) else { return 0.0 };
        let above = (a - cw * k.mid).max(0.0);
        (cw * self.loss.value(y, g) - k.kink_low * (a - above) - k.kink_high * above + a * g).max(0.0)
    }
}

/// Rows that loops take at a time.
pub(super) const LANES: usize = 8;

/// So many numbers, one a row.
pub(super) type Lanes = [f64; LANES];

/// What the loops read of some rows.
#[derive(Clone, Copy)]
pub(super) struct Stretch<'a> {
    pub y: &'a [f64],
    pub weight: &'a [f64],
    pub centre: &'a [f64],
    /// Without b.
    pub g: &'a [f64],
}

/// A block of [`LANES`] rows; past the end they have weight 0.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub y: Lanes,
    pub cw: Lanes,
    pub centre: Lanes,
    pub g: Lanes,
}

impl Stretch<'_> {
    /// The rows from `start` on, with C = `c` and `b` added to g.
    #[inline(always)]
    pub fn block(&self, start: usize, c: f64, b: f64) -> Block {
        let (weight, g) = (lanes(self.weight, start), lanes(self.g, start));
        let (mut cw, mut shifted) = ([0.0; LANES], [0.0; LANES]);
        for l in 0..LANES {
            cw[l] = c * weight[l];
            shifted[l] = g[l] + b;
        }
        Block { y: lanes(self.y, start), cw, centre: lanes(self.centre, start), g: shifted }
    }
}

/// [`LANES`] values from `start` on, 0 past the end.
#[inline(always)]
pub(super) fn lanes(values: &[f64], start: usize) -> Lanes {
    let mut out = [0.0; LANES];
    if let Some(whole) = values.get(start..start + LANES) {
        out.copy_from_slice(whole);
    } else {
        out[..values.len() - start].copy_from_slice(&values[start..]);
    }
    out
}

/// a(g), and whether it is strictly inside the lower or the upper segment.
pub(super) struct Slope {
    pub a: f64,
    pub lower: bool,
    pub upper: bool,
}

/// a(g), given where the slopes of the lower and of the upper segment would take it: ā + σ(kink − g) of each, so that
/// `high` is at most `low`. Without branches: loops over rows become SIMD.
#[inline(always)]
pub(super) fn slope(low: f64, high: f64, lo: f64, mid: f64, hi: f64) -> Slope {
    let above = if high > mid { if high < hi { high } else { hi } } else { mid };
    let below = if low > lo { low } else { lo };
    Slope { a: if low < mid { below } else { above }, lower: lo < low && low < mid, upper: mid < high && high < hi }
}
