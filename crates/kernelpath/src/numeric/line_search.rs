//! How far to go along a direction.

use crate::numeric::simd::within;

/// A t in (0, 1] at which a slope that rises with t is at most a tenth of what it was at 0. It is the full step, if the
/// slope is that small there; else it is found by secants between bounds.
pub(crate) fn bracketed(start: f64, slope: impl Fn(f64) -> f64) -> f64 {
    let close = 0.1 * start.abs();
    let (mut low, mut high) = ((0.0, start), (1.0, slope(1.0)));
    if high.1 <= close {
        return 1.0;
    }
    // A secant that falls near an end of the interval is moved to a tenth of the way from that end.
    let mut t = 0.5;
    for _ in 0..30 {
        let secant = low.0 - low.1 * (high.0 - low.0) / (high.1 - low.1);
        let width = high.0 - low.0;
        // (Slopes that are not finite have no secant.)
        t = if secant.is_finite() {
            within(secant, low.0 + 0.1 * width, high.0 - 0.1 * width)
        } else {
            low.0 + 0.5 * width
        };
        let here = slope(t);
        if here.abs() <= close {
            break;
        }
        if here < 0.0 { low = (t, here) } else { high = (t, here) }
    }
    t
}

#[cfg(test)]
mod tests {

    use super::bracketed;

    #[test]
    fn the_slope_is_small_there() {
        for (minimum, power) in [(2.0, 1), (0.9, 1), (0.3, 3), (1e-3, 5)] {
            let slope = |t: f64| (t - minimum) * (1.0 + t).powi(power);
            let t = bracketed(slope(0.0), slope);
            assert!(t > 0.0 && t <= 1.0);
            assert!(t == 1.0 && slope(1.0) < 0.0 || slope(t).abs() <= 0.1 * slope(0.0).abs(), "{minimum}: {t}");
        }
        // A jump: as near as bisection comes.
        let t = bracketed(-1.0, |t| if t < 0.25 { -1.0 } else { 1.0 });
        assert!((t - 0.25).abs() < 0.05, "{t}");
    }
}
