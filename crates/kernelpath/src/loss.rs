//! Losses as small scalar formulas. Loops over rows live elsewhere.
//!
//! A loss is convex in f. Its dual variable is a = −L′(f), so β = C·w·a at the optimum of (P).

use crate::error::{Error, Result};
use crate::kernel::{exp_nonpositive, ln_positive};
use crate::simd::{sum_in_lanes, vectorise};

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
    // log(1 + e), with what rounding takes from 1 + e.
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
    /// Runs `work`, whose loops over rows become SIMD: compiled for the best instruction set of this machine, and for
    /// each loss by itself. `work` must be `#[inline(always)]`.
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

    /// Sums over the rows of `columns` of terms of their numbers, in a fixed order that SIMD can follow. The first column
    /// says how many rows there are. `term` must be `#[inline(always)]`.
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

    /// Its name.
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

    /// a(f) = −L′(y, f); at a kink, the value above it.
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
            Self::Huber { delta } => (y - f).clamp(-delta, delta),
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

    /// L″(y, f), where it exists; else a value between those on both sides. 0 for piecewise-linear losses.
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
    fn straight(self, y: f64, f: f64) -> Option<(f64, f64)> {
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

    /// The f at which a smooth loss has its pull nearest to both f and a: where a line through (f, a) crosses the graph
    /// of the pull. Newton's method for f and a together linearises there: by f alone it would leap where the curvature
    /// at f is small, and by a alone where it is large.
    #[inline(always)]
    pub(crate) fn nearest(self, y: f64, f: f64, a: f64) -> f64 {
        let rise = match self {
            Self::Logistic => return f, // of whose pull the slope is never far from that at f
            Self::Dwd => {
                // The geometric mean of the slopes at f and where the pull is a.
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
        // Computed in any case: a branch would not be SIMD.
        let value = if a >= lo { value } else { f64::NEG_INFINITY };
        if a <= hi { value } else { f64::NEG_INFINITY }
    }

    /// The loss of targets and values divided by `u`: L(y, f) is u^[growth](Self::growth) times its value.
    pub(crate) fn in_unit(self, u: f64) -> Self {
        match self {
            Self::EpsilonInsensitive { epsilon } => Self::EpsilonInsensitive { epsilon: epsilon / u },
            Self::Huber { delta } => Self::Huber { delta: delta / u },
            other => other,
        }
    }

    /// The power of the unit of y that values and [scores](Self::score) of the loss have; 0 for labels, which have none.
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
        // Squares of very large or very small targets are no numbers, or 0.
        let largest = y.iter().fold(0.0_f64, |a, y| a.max(y.abs()));
        let spread = if plain > 0.0 && plain.is_finite() || largest == 0.0 { plain } else { spread(largest) };
        if spread > 0.0 { spread } else { 1.0 }
    }

    /// The largest slope |L′| and the largest value that a constant model between the targets gives any of them, about.
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

    /// What cross-validation scores a held-out row with unless told otherwise, higher is better: whether
    /// the label is right, −|r| for the ε-insensitive loss, −L for the other regressions.
    #[inline(always)]
    pub fn score(self, y: f64, f: f64) -> f64 {
        match self {
            Self::EpsilonInsensitive { .. } => -(y - f).abs(),
            _ if self.is_classification() => f64::from((f > 0.0) == (y > 0.0)),
            _ => -self.value(y, f),
        }
    }
}

/// A piecewise-linear loss with each kink rounded over a width of 2δ, as finite smoothing needs it; a smooth
/// loss is itself. It lies above the loss, by at most (hi − lo)·δ/4, and its limit for δ → 0 is the loss.
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
                // The loss, and at each kink what rounding it adds.
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
            // Two kinks closer than 2δ add up.
            let (lo, hi) = self.loss.domain(1.0);
            (hi - lo) / (2.0 * self.delta)
        })
    }
}

/// The b that minimises Σ w L(y, f + b), where the pull Σ w a(f + b), falling in b, changes sign.
pub(crate) fn best_intercept(loss: Loss, y: &[f64], weight: &[f64], f: &[f64], near: f64) -> f64 {
    let rows: Vec<usize> = (0..y.len()).filter(|&i| weight[i] > 0.0).collect();
    let of_rows = |values: &[f64]| rows.iter().map(|&i| values[i]).collect::<Vec<f64>>();
    let (y, weight, f) = (of_rows(y), of_rows(weight), of_rows(f));
    let sums = |b: f64| {
        let [pull, curvature] = loss.sum(
            [&y, &weight, &f],
            #[inline(always)]
            |loss, [y, w, f]| [w * loss.pull(y, f + b), w * loss.curvature(y, f + b)],
        );
        (pull, curvature)
    };
    let largest = y.iter().zip(&f).fold(near.abs(), |a, (y, f)| a.max(y.abs() + f.abs()));
    let unit = if largest > 0.0 { largest } else { 1.0 };
    balanced(near, unit, sums, |_, step, width| step <= f64::EPSILON * unit || width <= 1e-14 * unit)
}

/// Where a smooth loss is straight at every row, their pulls balance at many b: the middle of these. Else b.
pub(crate) fn middle_intercept(loss: Loss, y: &[f64], weight: &[f64], f: &[f64], b: f64) -> f64 {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for i in (0..y.len()).filter(|&i| weight[i] > 0.0) {
        let Some((from, to)) = loss.straight(y[i], f[i] + b) else { return b };
        (low, high) = (low.max(from - f[i]), high.min(to - f[i]));
    }
    let middle = 0.5 * (low + high);
    if middle.is_finite() { middle } else { b }
}

/// Where a pull that falls with b is 0: Newton's method between bounds, and where it has no curvature to go by, their
/// middle. `sums` gives the pull and its curvature at b; `enough` says of b, the length of Newton's step and the distance
/// of the bounds whether they will do. Bounds are looked for from `unit` on.
pub(crate) fn balanced(
    near: f64,
    unit: f64,
    sums: impl Fn(f64) -> (f64, f64),
    enough: impl Fn(f64, f64, f64) -> bool,
) -> f64 {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let (mut b, mut reach) = (near, unit);
    for attempt in 0..200 {
        let (pull, curvature) = sums(b);
        let newton = b + pull / curvature;
        (low, high) = if pull > 0.0 { (b, high) } else { (low, b) };
        if pull == 0.0 || enough(b, (newton - b).abs(), high - low) || reach >= 1e12 * unit {
            break;
        }
        b = if curvature > 0.0 && low < newton && newton < high && attempt % 4 != 3 {
            newton
        } else if low.is_finite() && high.is_finite() {
            0.5 * (low + high)
        } else {
            let step = reach.copysign(pull);
            reach *= 2.0;
            b + step
        };
    }
    b
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

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: &[f64] = &[-1.0, 1.0];
    const TARGETS: &[f64] = &[-2.0, 0.0, 1.3];

    const LOSSES: &[(Loss, &[f64])] = &[
        (Loss::Hinge, LABELS),
        (Loss::SquaredHinge, LABELS),
        (Loss::Logistic, LABELS),
        (Loss::Dwd, LABELS),
        (Loss::Quantile { tau: 0.1 }, TARGETS),
        (Loss::Quantile { tau: 0.5 }, TARGETS),
        (Loss::EpsilonInsensitive { epsilon: 0.3 }, TARGETS),
        (Loss::EpsilonInsensitive { epsilon: 0.0 }, TARGETS),
        (Loss::Squared, TARGETS),
        (Loss::Huber { delta: 0.7 }, TARGETS),
        (Loss::Expectile { tau: 0.2 }, TARGETS),
    ];

    /// Points away from every corner of a loss, and far out.
    fn grid() -> impl Iterator<Item = f64> {
        (-400..=400).map(|i| f64::from(i) * 0.01 + 0.001_234).chain([-1e4, 1e4])
    }

    fn for_each(check: impl Fn(Loss, f64)) {
        for &(loss, targets) in LOSSES {
            for &y in targets {
                check(loss, y);
            }
        }
    }

    #[test]
    fn the_nearest_point_of_the_pull_lies_between() {
        for_each(|loss, y| {
            if loss.curvature_bound().is_none() {
                return;
            }
            for f in grid() {
                let (lo, hi) = loss.domain(y);
                let (lo, hi) = (lo.max(-3.0), hi.min(3.0));
                for share in [-0.3, 0.0, 0.001, 0.3, 0.9, 1.0, 1.2] {
                    let a = lo + share * (hi - lo);
                    let (near, here) = (loss.pull(y, loss.nearest(y, f, a)), loss.pull(y, f));
                    let slack = 1e-5 * (1.0 + here.abs());
                    let between = near >= here.min(a) - slack && near <= here.max(a) + slack;
                    assert!(between, "{loss:?}: {near} is not between {here} and {a} at {f}");
                }
                let itself = loss.nearest(y, f, loss.pull(y, f));
                assert!((itself - f).abs() <= 1e-5 * (1.0 + f.abs()), "{loss:?} at {f}: {itself}");
            }
        });
    }

    #[test]
    fn straight_stretches_have_one_slope_and_end_where_it_changes() {
        for_each(|loss, y| {
            for f in grid().filter(|f| f.abs() < 1e3) {
                let Some((from, to)) = loss.straight(y, f) else {
                    let curved = loss.curvature(y, f) > 0.0;
                    assert!(curved || loss.curvature_bound().is_none(), "{loss:?} at {f}");
                    continue;
                };
                assert!(from <= f && f <= to);
                for end in [from.max(-20.0), to.min(20.0)] {
                    assert!((loss.pull(y, end) - loss.pull(y, f)).abs() < 1e-12, "{loss:?} at {f}, {end}");
                }
                let changed = |end: f64| !end.is_finite() || loss.pull(y, end) != loss.pull(y, f);
                assert!(changed(from - 0.01) && changed(to + 0.01), "{loss:?} at {f}");
            }
        });
    }

    #[test]
    fn an_intercept_that_is_free_is_put_into_the_middle() {
        let (y, f) = ([1.0, -1.0, 1.0, -1.0], [0.1, -0.2, -0.1, 0.0]);
        // −0.5 − min f of the negatives ≤ b ≤ 0.5 − max f of the positives.
        for b in [-0.3, 0.0, 0.4] {
            assert!((middle_intercept(Loss::Dwd, &y, &[1.0; 4], &f, b) - 0.05).abs() < 1e-15);
        }
        assert_eq!(middle_intercept(Loss::Dwd, &y, &[1.0; 4], &f, 0.45), 0.45);
        assert_eq!(middle_intercept(Loss::Dwd, &y, &[1.0, 0.0, 1.0, 0.0], &f, 0.2), 0.2);
        assert_eq!(middle_intercept(Loss::Logistic, &y, &[1.0; 4], &f, 0.2), 0.2);
    }

    #[test]
    fn values_are_finite_convex_and_not_negative() {
        for_each(|loss, y| {
            for f in grid() {
                for number in [loss.value(y, f), loss.pull(y, f), loss.curvature(y, f)] {
                    assert!(number.is_finite(), "{loss:?} at {f}");
                }
                assert!(loss.value(y, f) >= 0.0 && loss.curvature(y, f) >= 0.0, "{loss:?} at {f}");
                assert!(loss.pull(y, f) >= loss.pull(y, f + 0.01), "{loss:?} at {f}");
            }
        });
    }

    #[test]
    fn slope_and_curvature_are_the_derivatives() {
        let h = 1e-5;
        for_each(|loss, y| {
            for f in grid().filter(|f| f.abs() < 1e3) {
                let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1.0 + a.abs());
                let slope = (loss.value(y, f + h) - loss.value(y, f - h)) / (2.0 * h);
                assert!(near(-loss.pull(y, f), slope), "{loss:?} at {f}: {} {slope}", loss.pull(y, f));
                let curvature = (loss.pull(y, f - h) - loss.pull(y, f + h)) / (2.0 * h);
                assert!(near(loss.curvature(y, f), curvature), "{loss:?} at {f}");
                if let Some(bound) = loss.curvature_bound() {
                    assert!(loss.curvature(y, f) <= bound + 1e-12, "{loss:?} at {f}");
                }
            }
        });
    }

    #[test]
    fn fenchel_young_holds_with_equality_at_the_slope() {
        for_each(|loss, y| {
            let (lo, hi) = loss.domain(y);
            assert!(lo <= 0.0 && 0.0 <= hi, "0 must be dual feasible: {loss:?}");
            let (from, to) = (lo.max(-5.0), hi.min(5.0));
            for f in grid() {
                for step in 0..=20 {
                    let a = from + (to - from) * f64::from(step) / 20.0;
                    // L(f) + L*(−a) + a f ≥ 0.
                    let sum = loss.value(y, f) - loss.dual_value(y, a) + a * f;
                    assert!(sum >= -1e-12 * (1.0 + f.abs()), "{loss:?} at {f}, {a}: {sum}");
                }
                let a = loss.pull(y, f);
                let sum = loss.value(y, f) - loss.dual_value(y, a) + a * f;
                assert!(sum.abs() <= 1e-9 * (1.0 + f * f), "{loss:?} at {f}: {sum}");
            }
            for outside in [lo - 0.1, hi + 0.1].into_iter().filter(|a| a.is_finite()) {
                assert_eq!(loss.dual_value(y, outside), f64::NEG_INFINITY);
            }
        });
    }

    #[test]
    fn kinks_are_where_the_slope_jumps() {
        for_each(|loss, y| {
            assert_eq!(loss.kinks(y).is_some(), loss.curvature_bound().is_none());
            let Some(k) = loss.kinks(y) else { return };
            assert!(k.lo <= k.mid && k.mid <= k.hi && k.kink_high <= k.kink_low);
            assert_eq!(loss.pull(y, k.kink_high - 1e-9), k.hi);
            assert_eq!(loss.pull(y, k.kink_low + 1e-9), k.lo);
        });
    }

    #[test]
    fn smoothing_tends_to_the_loss() {
        for_each(|loss, y| {
            for delta in [1.0, 0.1, 1e-3] {
                let smooth = Smoothed { loss, delta };
                let (lo, hi) = loss.domain(y);
                let most = if loss.kinks(y).is_some() { (hi - lo) * delta / 4.0 } else { 0.0 };
                for f in grid() {
                    let excess = smooth.value(y, f) - loss.value(y, f);
                    assert!((0.0..=most + 1e-12).contains(&excess), "{loss:?} at {f}: {excess}");
                    let h = 1e-6;
                    if f.abs() < 1e3 {
                        let slope = (smooth.value(y, f + h) - smooth.value(y, f - h)) / (2.0 * h);
                        let error = (slope + smooth.pull(y, f)).abs();
                        assert!(error < 1e-5 * (1.0 + slope.abs()) + 2.0 * h * smooth.curvature_bound(), "{loss:?}");
                        let bend = (smooth.pull(y, f - h) - smooth.pull(y, f + h)) / (2.0 * h);
                        assert!(bend <= smooth.curvature_bound() * (1.0 + 1e-6) + 1e-4, "{loss:?} at {f}");
                    }
                }
            }
        });
    }

    #[test]
    fn constants_are_checked() {
        assert!(Loss::from_name("quantile", 1.0).is_err());
        assert!(Loss::from_name("expectile", f64::NAN).is_err());
        assert!(Loss::from_name("epsilon_insensitive", -0.1).is_err());
        assert!(Loss::from_name("huber", 0.0).is_err());
        assert!(Loss::from_name("absolute", 0.0).is_err());
        for &(loss, _) in LOSSES {
            assert!(Loss::NAMES.contains(&loss.name()));
            assert!(loss.check().is_ok());
        }
    }
}
