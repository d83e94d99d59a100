//! Losses as small scalar formulas. Loops over rows live elsewhere.

use crate::error::{Error, Result};

/// A loss L(y, f) of problem (P).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// (1 − yf)₊ with y = ±1
    Hinge,
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

impl Loss {
    /// Checks the loss's own constants.
    pub fn check(self) -> Result<Self> {
        match self {
            Self::Quantile { tau } if !(tau > 0.0 && tau < 1.0) => {
                Err(Error::Parameter { name: "tau", expected: "between 0 and 1", value: tau })
            }
            Self::EpsilonInsensitive { epsilon } if !(epsilon >= 0.0 && epsilon.is_finite()) => {
                Err(Error::Parameter { name: "epsilon", expected: "a finite number >= 0", value: epsilon })
            }
            _ => Ok(self),
        }
    }

    /// L(y, f).
    #[inline(always)]
    pub fn value(self, y: f64, f: f64) -> f64 {
        match self {
            Self::Hinge => (1.0 - y * f).max(0.0),
            Self::Quantile { tau } => {
                let r = y - f;
                (tau * r).max((tau - 1.0) * r)
            }
            Self::EpsilonInsensitive { epsilon } => ((y - f).abs() - epsilon).max(0.0),
        }
    }

    /// −L*(y, −a): what a dual variable a contributes to the dual objective at unit weight;
    /// −∞ outside the domain.
    #[inline(always)]
    pub fn dual_value(self, y: f64, a: f64) -> f64 {
        let Kinks { lo, hi, .. } = self.kinks(y);
        if !(lo..=hi).contains(&a) {
            return f64::NEG_INFINITY;
        }
        match self {
            Self::Hinge | Self::Quantile { .. } => y * a,
            Self::EpsilonInsensitive { epsilon } => y * a - epsilon * a.abs(),
        }
    }

    /// The loss as a piecewise-linear function.
    #[inline(always)]
    pub fn kinks(self, y: f64) -> Kinks {
        match self {
            Self::Hinge => {
                let (lo, hi) = (y.min(0.0), y.max(0.0));
                Kinks { lo, mid: hi, hi, kink_low: y, kink_high: y }
            }
            Self::Quantile { tau } => Kinks { lo: tau - 1.0, mid: tau, hi: tau, kink_low: y, kink_high: y },
            Self::EpsilonInsensitive { epsilon } => {
                Kinks { lo: -1.0, mid: 0.0, hi: 1.0, kink_low: y + epsilon, kink_high: y - epsilon }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSSES: &[(Loss, &[f64])] = &[
        (Loss::Hinge, &[-1.0, 1.0]),
        (Loss::Quantile { tau: 0.1 }, &[-2.0, 0.0, 1.3]),
        (Loss::Quantile { tau: 0.5 }, &[-2.0, 0.0, 1.3]),
        (Loss::EpsilonInsensitive { epsilon: 0.3 }, &[-2.0, 0.0, 1.3]),
        (Loss::EpsilonInsensitive { epsilon: 0.0 }, &[1.3]),
    ];

    /// Every loss keeps the contract: Fenchel–Young, finite at extremes, kinks where the slope jumps.
    #[test]
    fn contract() {
        for &(loss, targets) in LOSSES {
            for &y in targets {
                let k = loss.kinks(y);
                assert!(k.lo <= k.mid && k.mid <= k.hi && k.kink_high <= k.kink_low);
                assert!(k.lo <= 0.0 && 0.0 <= k.hi, "0 must be dual feasible: {loss:?}");
                let grid = (-400..=400).map(|i| f64::from(i) * 0.01);
                for f in grid.chain([-1e4, 1e4]) {
                    assert!(loss.value(y, f).is_finite() && loss.value(y, f) >= 0.0);
                    for step in 0..=20 {
                        let a = k.lo + (k.hi - k.lo) * f64::from(step) / 20.0;
                        // Fenchel–Young: L(f) + L*(−a) + a f ≥ 0.
                        assert!(loss.value(y, f) - loss.dual_value(y, a) + a * f >= -1e-12);
                    }
                    // Equality at the (negative) slope.
                    let a = if f < k.kink_high {
                        k.hi
                    } else if f < k.kink_low {
                        k.mid
                    } else {
                        k.lo
                    };
                    let equal = loss.value(y, f) - loss.dual_value(y, a) + a * f;
                    assert!(equal.abs() < 1e-9 * (1.0 + f.abs()), "{loss:?} y={y} f={f}: {equal}");
                    let kink = (f - k.kink_low).abs().min((f - k.kink_high).abs());
                    if kink > 1e-3 && f.abs() < 100.0 {
                        let slope = (loss.value(y, f + 1e-6) - loss.value(y, f - 1e-6)) / 2e-6;
                        assert!((slope + a).abs() < 1e-5, "{loss:?} y={y} f={f}");
                    }
                }
                assert_eq!(loss.dual_value(y, k.hi + 0.1), f64::NEG_INFINITY);
            }
        }
    }

    #[test]
    fn bad_constants_are_refused() {
        assert!(Loss::Quantile { tau: 1.0 }.check().is_err());
        assert!(Loss::EpsilonInsensitive { epsilon: -0.1 }.check().is_err());
        assert!(Loss::Hinge.check().is_ok());
    }
}
