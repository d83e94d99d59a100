//! The intercept that is best for given values f.

use crate::loss::scalar::Loss;

/// The b that minimises Σ w L(y, f + b): there the pull Σ w a(f + b), which falls with b, changes sign.
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

/// The b of the best constant model. In a regression whose targets are all the same, it is their value to the bit.
pub(crate) fn constant_intercept(loss: Loss, y: &[f64], weight: &[f64]) -> f64 {
    let mut known = y.iter().zip(weight).filter(|(_, w)| **w > 0.0).map(|(y, _)| *y);
    let first = known.next().unwrap_or(0.0);
    if !loss.is_classification() && known.all(|y| y == first) {
        return first;
    }
    best_intercept(loss, y, weight, &vec![0.0; y.len()], 0.0)
}

/// If a smooth loss is straight at every row, the pulls balance at a range of b: returns the middle of that range.
/// Otherwise returns `b`.
pub(crate) fn middle_intercept(loss: Loss, y: &[f64], weight: &[f64], f: &[f64], b: f64) -> f64 {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for i in (0..y.len()).filter(|&i| weight[i] > 0.0) {
        let Some((from, to)) = loss.straight(y[i], f[i] + b) else { return b };
        (low, high) = (low.max(from - f[i]), high.min(to - f[i]));
    }
    let middle = 0.5 * (low + high);
    if middle.is_finite() { middle } else { b }
}

/// The b at which a pull that falls with b is 0. It is found by Newton's method between bounds, or by bisection where
/// there is no curvature to go by. `sums` returns the pull and its curvature at b. `enough` is given b, the length of
/// Newton's step and the distance of the bounds, and says whether they are good enough. Bounds are first looked for at
/// the distance `unit`.
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
