//! Losses as small scalar formulas. Loops over rows live elsewhere.
//!
//! A loss is convex in f. Its dual variable is a = −L′(f), so β = C·w·a at the optimum of (P).

use crate::error::{Error, Result};
use crate::numeric::elementary::{exp_nonpositive, ln_positive};
use crate::numeric::simd::{fill_in_lanes, sum_in_lanes, vectorise, within};

/// A loss L(y, f) of problem (P).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// (1 − yf)₊ with y = ±1
    Hinge,
    /// ((1 − yf)₊)² with y = ±1
    SquaredHinge,
    /// log(1 + e^{−yf}) with y = ±1
    Logistic,
    /// 1 − u if u ≤ ½, else 1/(4u), with u = yf and y = ±1: distance-weighted discrimination
    Dwd,
    /// τ(r)₊ + (1−τ)(−r)₊ with r = y − f
    Quantile {
        /// The level τ in (0, 1).
        tau: f64,
    },
    /// (|y − f| − ε)₊
    EpsilonInsensitive {
        /// Half the width of the tube, ≥ 0.
        epsilon: f64,
    },
    /// r²
    Squared,
    /// r²/2 if |r| ≤ δ, else δ(|r| − δ/2)
    Huber {
        /// Where the loss turns linear, > 0.
        delta: f64,
    },
    /// τ(r₊)² + (1−τ)(r₋)²
    Expectile {
        /// The level τ in (0, 1).
        tau: f64,
    },
}

/// A convex piecewise-linear loss of f with at most two kinks, as its dual sees it.
///
/// The dual variable of a row of unit weight lies in [lo, hi]. It is `lo` for f above both kinks,
/// inside [lo, mid] only at f = `kink_low`, `mid` between the kinks, inside [mid, hi] only at
/// f = `kink_high`, and `hi` for f below. A loss with one kink has mid = hi.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kinks {
    /// Smallest dual value.
    pub lo: f64,
    /// Dual value between the kinks.
    pub mid: f64,
    /// Largest dual value.
    pub hi: f64,
    /// The f at which the dual moves in [lo, mid].
    pub kink_low: f64,
    /// The f at which the dual moves in [mid, hi]; at most `kink_low`.
    pub kink_high: f64,
}

/// log(1 + eˣ) without overflow.
#[inline(always)]
pub(crate) fn log1pexp(x: f64) -> f64 {
    let e = exp_nonpositive(-x.abs());
    // log(1 + e), corrected by what rounding takes from 1 + e.
    let sum = 1.0 + e;
    let value = x.max(0.0) + (ln_positive(sum) + (e - (sum - 1.0)) / sum);
    if x.is_nan() { x } else { value }
}

/// 1 / (1 + e^{−x}) without overflow.
#[inline(always)]
pub(crate) fn sigmoid(x: f64) -> f64 {
    let e = exp_nonpositive(-x.abs());
    let value = (if x >= 0.0 { 1.0 } else { e }) / (1.0 + e);
    if x.is_nan() { x } else { value }
}

/// x log x, 0 at 0.
#[inline(always)]
fn xlogx(x: f64) -> f64 {
    let value = x * ln_positive(x);
    if x > 0.0 { value } else { 0.0 }
}

impl Loss {
    /// Runs `work` compiled for the best instruction set of this machine, and for each loss by itself, so that its
    /// loops over rows become SIMD. `work` must be `#[inline(always)]`.
    #[inline]
    pub(crate) fn vectorised<R>(self, work: impl FnOnce(Self) -> R) -> R {
        vectorise(
            #[inline(always)]
            || match self {
                Self::Hinge => work(Self::Hinge),
                Self::SquaredHinge => work(Self::SquaredHinge),
                Self::Logistic => work(Self::Logistic),
                Self::Dwd => work(Self::Dwd),
                Self::Quantile { tau } => work(Self::Quantile { tau }),
                Self::EpsilonInsensitive { epsilon } => work(Self::EpsilonInsensitive { epsilon }),
                Self::Squared => work(Self::Squared),
                Self::Huber { delta } => work(Self::Huber { delta }),
                Self::Expectile { tau } => work(Self::Expectile { tau }),
            },
        )
    }

    /// Writes what `of` returns for the numbers of each row of `columns`. The first column says how many rows there are.
    /// `of` must be `#[inline(always)]`.
    #[inline]
    pub(crate) fn fill<const N: usize, const K: usize>(
        self,
        columns: [&[f64]; N],
        out: [&mut [f64]; K],
        of: impl Fn(Self, [f64; N]) -> [f64; K],
    ) {
        self.vectorised(
            #[inline(always)]
            |loss| {
                fill_in_lanes(
                    columns,
                    out,
                    #[inline(always)]
                    |row| of(loss, row),
                );
            },
        );
    }

    /// Sums of `term` over the rows of `columns`, in a fixed order that SIMD can follow. The first column says how many
    /// rows there are. `term` must be `#[inline(always)]`.
    #[inline]
    pub(crate) fn sum<const N: usize, const K: usize>(
        self,
        columns: [&[f64]; N],
        term: impl Fn(Self, [f64; N]) -> [f64; K],
    ) -> [f64; K] {
        self.vectorised(
            #[inline(always)]
            |loss| {
                sum_in_lanes(
                    columns,
                    #[inline(always)]
                    |row| term(loss, row),
                )
            },
        )
    }

    /// The names, for [`Loss::from_name`].
    pub const NAMES: &'static [&'static str] = &[
        "hinge",
        "squared_hinge",
        "logistic",
        "dwd",
        "quantile",
        "epsilon_insensitive",
        "squared",
        "huber",
        "expectile",
    ];

    /// The loss of that name; `parameter` is its τ, ε or δ, if it has one.
    pub fn from_name(name: &str, parameter: f64) -> Result<Self> {
        match name {
            "hinge" => Ok(Self::Hinge),
            "squared_hinge" => Ok(Self::SquaredHinge),
            "logistic" => Ok(Self::Logistic),
            "dwd" => Ok(Self::Dwd),
            "quantile" => Ok(Self::Quantile { tau: parameter }),
            "epsilon_insensitive" => Ok(Self::EpsilonInsensitive { epsilon: parameter }),
            "squared" => Ok(Self::Squared),
            "huber" => Ok(Self::Huber { delta: parameter }),
            "expectile" => Ok(Self::Expectile { tau: parameter }),
            _ => Err(Error::Unknown { what: "loss", name: name.into(), known: Self::NAMES }),
        }
        .and_then(Self::check)
    }

    /// The name of the loss.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hinge => "hinge",
            Self::SquaredHinge => "squared_hinge",
            Self::Logistic => "logistic",
            Self::Dwd => "dwd",
            Self::Quantile { .. } => "quantile",
            Self::EpsilonInsensitive { .. } => "epsilon_insensitive",
            Self::Squared => "squared",
            Self::Huber { .. } => "huber",
            Self::Expectile { .. } => "expectile",
        }
    }

    /// The loss's τ, ε or δ; 0 if it has none.
    pub fn constant(self) -> f64 {
        match self {
            Self::Quantile { tau: constant }
            | Self::Expectile { tau: constant }
            | Self::EpsilonInsensitive { epsilon: constant }
            | Self::Huber { delta: constant } => constant,
            Self::Hinge | Self::SquaredHinge | Self::Logistic | Self::Dwd | Self::Squared => 0.0,
        }
    }

    /// Checks the loss's own constants.
    pub fn check(self) -> Result<Self> {
        match self {
            Self::Quantile { tau } | Self::Expectile { tau } if !(tau > 0.0 && tau < 1.0) => {
                Err(Error::Parameter { name: "tau", expected: "between 0 and 1", value: tau })
            }
            Self::EpsilonInsensitive { epsilon } if !(epsilon >= 0.0 && epsilon.is_finite()) => {
                Err(Error::Parameter { name: "epsilon", expected: "a finite number >= 0", value: epsilon })
            }
            Self::Huber { delta } if !(delta > 0.0 && delta.is_finite()) => {
                Err(Error::Parameter { name: "delta", expected: "a finite number > 0", value: delta })
            }
            _ => Ok(self),
        }
    }

    /// Whether targets are the labels ±1.
    pub fn is_classification(self) -> bool {
        matches!(self, Self::Hinge | Self::SquaredHinge | Self::Logistic | Self::Dwd)
    }

    /// L(y, f).
    #[inline(always)]
    pub fn value(self, y: f64, f: f64) -> f64 {
        match self {
            Self::Hinge => (1.0 - y * f).max(0.0),
            Self::SquaredHinge => square((1.0 - y * f).max(0.0)),
            Self::Logistic => log1pexp(-y * f),
            Self::Dwd => {
                let u = y * f;
                if u <= 0.5 { 1.0 - u } else { 0.25 / u }
            }
            Self::Quantile { tau } => {
                let r = y - f;
                (tau * r).max((tau - 1.0) * r)
            }
            Self::EpsilonInsensitive { epsilon } => ((y - f).abs() - epsilon).max(0.0),
            Self::Squared => square(y - f),
            Self::Huber { delta } => {
                let r = (y - f).abs();
                if r <= delta { 0.5 * r * r } else { delta * (r - 0.5 * delta) }
            }
            Self::Expectile { tau } => {
                let r = y - f;
                asymmetry(tau, r) * r * r
            }
        }
    }

    /// a(f) = −L′(y, f). At a kink it is the value for f just above.
    #[inline(always)]
    pub fn pull(self, y: f64, f: f64) -> f64 {
        match self {
            Self::SquaredHinge => 2.0 * y * (1.0 - y * f).max(0.0),
            Self::Logistic => y * sigmoid(-y * f),
            Self::Dwd => {
                let u = y * f;
                if u <= 0.5 { y } else { 0.25 * y / (u * u) }
            }
            Self::Squared => 2.0 * (y - f),
            Self::Huber { delta } => within(y - f, -delta, delta),
            Self::Expectile { tau } => {
                let r = y - f;
                2.0 * asymmetry(tau, r) * r
            }
            Self::Hinge | Self::Quantile { .. } | Self::EpsilonInsensitive { .. } => {
                let kinks = self.piecewise_linear(y);
                if f < kinks.kink_high {
                    kinks.hi
                } else if f < kinks.kink_low {
                    kinks.mid
                } else {
                    kinks.lo
                }
            }
        }
    }

    /// L″(y, f) where it exists, else a value between those on both sides; 0 for piecewise-linear losses.
    #[inline(always)]
    pub fn curvature(self, y: f64, f: f64) -> f64 {
        match self {
            Self::Hinge | Self::Quantile { .. } | Self::EpsilonInsensitive { .. } => 0.0,
            Self::SquaredHinge => 2.0 * f64::from(y * f < 1.0),
            Self::Logistic => {
                let p = sigmoid(-y * f);
                p * (1.0 - p)
            }
            Self::Dwd => {
                let u = y * f;
                if u <= 0.5 { 0.0 } else { 0.5 / (u * u * u) }
            }
            Self::Squared => 2.0,
            Self::Huber { delta } => f64::from((y - f).abs() <= delta),
            Self::Expectile { tau } => 2.0 * asymmetry(tau, y - f),
        }
    }

    /// The stretch around f on which a smooth loss is a straight line; `None` where it is curved.
    pub(crate) fn straight(self, y: f64, f: f64) -> Option<(f64, f64)> {
        let (above, below) = match self {
            Self::SquaredHinge => {
                if y > 0.0 {
                    (1.0, f64::NEG_INFINITY)
                } else {
                    (f64::INFINITY, -1.0)
                }
            }
            Self::Dwd => {
                if y > 0.0 {
                    (f64::INFINITY, 0.5)
                } else {
                    (-0.5, f64::NEG_INFINITY)
                }
            }
            Self::Huber { delta } => (y + delta, y - delta),
            _ => return None,
        };
        if f >= above {
            Some((above, f64::INFINITY))
        } else if f <= below {
            Some((f64::NEG_INFINITY, below))
        } else {
            None
        }
    }

    /// The largest L″; `None` for a piecewise-linear loss, which has none.
    pub fn curvature_bound(self) -> Option<f64> {
        match self {
            Self::Hinge | Self::Quantile { .. } | Self::EpsilonInsensitive { .. } => None,
            Self::SquaredHinge | Self::Squared => Some(2.0),
            Self::Logistic => Some(0.25),
            Self::Dwd => Some(4.0),
            Self::Huber { .. } => Some(1.0),
            Self::Expectile { tau } => Some(2.0 * tau.max(1.0 - tau)),
        }
    }

    /// The f at which the pull of a smooth loss is nearest to both f and a: where a line through (f, a) crosses the
    /// graph of the pull. Newton's method for f and a together linearises there. Linearised by f alone, it would leap
    /// where the curvature at f is small; linearised by a alone, where it is large.
    #[inline(always)]
    pub(crate) fn nearest(self, y: f64, f: f64, a: f64) -> f64 {
        let rise = match self {
            Self::Logistic => return f, // the slope of its pull is never far from that at f
            Self::Dwd => {
                // The geometric mean of two slopes: at f, and where the pull is a.
                let (u, a) = ((y * f).max(0.5), (y * a).clamp(0.0, 1.0));
                (0.5 / (u * u * u) * 4.0 * a * a.sqrt()).sqrt().max(1e-9)
            }
            _ => self.curvature_bound().unwrap_or(1.0),
        };
        let above = |t: f64| a - self.pull(y, t) - rise * (f - t);
        let start = above(f);
        let (mut low, mut high) = if start > 0.0 { (f - start / rise, f) } else { (f, f - start / rise) };
        let mut t = f;
        for _ in 0..20 {
            let here = above(t);
            if here > 0.0 {
                high = t;
            } else {
                low = t;
            }
            let next = t - here / (self.curvature(y, t) + rise);
            let next = if next > low && next < high { next } else { 0.5 * (low + high) };
            let done = (next - t).abs() <= 1e-6 * t.abs();
            t = next;
            if done {
                break;
            }
        }
        t
    }

    /// The interval of the dual variable a at unit weight. It contains 0.
    #[inline(always)]
    pub fn domain(self, y: f64) -> (f64, f64) {
        match self {
            Self::Hinge | Self::Logistic | Self::Dwd => (y.min(0.0), y.max(0.0)),
            Self::SquaredHinge if y > 0.0 => (0.0, f64::INFINITY),
            Self::SquaredHinge => (f64::NEG_INFINITY, 0.0),
            Self::Quantile { tau } => (tau - 1.0, tau),
            Self::EpsilonInsensitive { .. } => (-1.0, 1.0),
            Self::Squared | Self::Expectile { .. } => (f64::NEG_INFINITY, f64::INFINITY),
            Self::Huber { delta } => (-delta, delta),
        }
    }

    /// −L*(y, −a): what a dual variable a contributes to the dual objective at unit weight;
    /// −∞ outside the domain.
    #[inline(always)]
    pub fn dual_value(self, y: f64, a: f64) -> f64 {
        let (lo, hi) = self.domain(y);
        let value = match self {
            Self::Hinge | Self::Quantile { .. } => y * a,
            Self::EpsilonInsensitive { epsilon } => y * a - epsilon * a.abs(),
            Self::SquaredHinge | Self::Squared => y * a - 0.25 * a * a,
            Self::Logistic => {
                let p = y * a;
                -xlogx(p) - xlogx(1.0 - p)
            }
            Self::Dwd => (y * a).sqrt(),
            Self::Huber { .. } => y * a - 0.5 * a * a,
            Self::Expectile { tau } => y * a - 0.25 * a * a / asymmetry(tau, a),
        };
        // Computed in any case: a branch would prevent SIMD.
        let value = if a >= lo { value } else { f64::NEG_INFINITY };
        if a <= hi { value } else { f64::NEG_INFINITY }
    }

    /// The same loss for targets and values divided by `u`: L(y, f) is u^[growth](Self::growth) times the value of the
    /// returned loss.
    pub(crate) fn in_unit(self, u: f64) -> Self {
        match self {
            Self::EpsilonInsensitive { epsilon } => Self::EpsilonInsensitive { epsilon: epsilon / u },
            Self::Huber { delta } => Self::Huber { delta: delta / u },
            other => other,
        }
    }

    /// The power of the unit of y in values and [scores](Self::score) of the loss; 0 for labels, which have no unit.
    pub(crate) fn growth(self) -> i32 {
        match self {
            Self::Quantile { .. } | Self::EpsilonInsensitive { .. } => 1,
            Self::Squared | Self::Huber { .. } | Self::Expectile { .. } => 2,
            Self::Hinge | Self::SquaredHinge | Self::Logistic | Self::Dwd => 0,
        }
    }

    /// The scale of f: 1 for labels, the spread of the targets otherwise.
    pub(crate) fn scale(self, y: &[f64]) -> f64 {
        if self.is_classification() {
            return 1.0;
        }
        let spread = |unit: f64| {
            let mean = y.iter().map(|y| y / unit).sum::<f64>() / y.len() as f64;
            (y.iter().map(|y| (y / unit - mean) * (y / unit - mean)).sum::<f64>() / y.len() as f64).sqrt() * unit
        };
        let plain = spread(1.0);
        // Squares of very large targets overflow, and those of very small ones are 0.
        let largest = y.iter().fold(0.0_f64, |a, y| a.max(y.abs()));
        let spread = if plain > 0.0 && plain.is_finite() || largest == 0.0 { plain } else { spread(largest) };
        if spread > 0.0 { spread } else { 1.0 }
    }

    /// About the largest slope |L′| and the largest value that a constant model between the targets gives to any of
    /// them.
    pub(crate) fn steepness(self, y: &[f64]) -> (f64, f64) {
        let u = y.iter().fold(0.0_f64, |a, y| a.max(y.abs()));
        let slope = self.pull(u, -u).abs().max(self.pull(-u, u).abs());
        (slope, self.value(u, -u).max(self.value(-u, u)))
    }

    /// The loss as a piecewise-linear function, if it is one.
    #[inline(always)]
    pub fn kinks(self, y: f64) -> Option<Kinks> {
        match self {
            Self::Hinge | Self::Quantile { .. } | Self::EpsilonInsensitive { .. } => Some(self.piecewise_linear(y)),
            _ => None,
        }
    }

    #[inline(always)]
    fn piecewise_linear(self, y: f64) -> Kinks {
        let (lo, hi) = self.domain(y);
        match self {
            Self::EpsilonInsensitive { epsilon } => {
                Kinks { lo, mid: 0.0, hi, kink_low: y + epsilon, kink_high: y - epsilon }
            }
            _ => Kinks { lo, mid: hi, hi, kink_low: y, kink_high: y },
        }
    }

    /// How cross-validation scores a held-out row unless told otherwise; higher is better. It is whether the label is
    /// right for classification, −|r| for the ε-insensitive loss, and −L for the other regressions.
    #[inline(always)]
    pub fn score(self, y: f64, f: f64) -> f64 {
        match self {
            Self::EpsilonInsensitive { .. } => -(y - f).abs(),
            _ if self.is_classification() => f64::from((f > 0.0) == (y > 0.0)),
            _ => -self.value(y, f),
        }
    }
}

#[inline(always)]
fn square(x: f64) -> f64 {
    x * x
}

/// τ for r ≥ 0, else 1 − τ.
#[inline(always)]
fn asymmetry(tau: f64, r: f64) -> f64 {
    if r >= 0.0 { tau } else { 1.0 - tau }
}
