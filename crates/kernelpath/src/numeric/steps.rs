//! The order in which the values of C are visited, and the steps between them.

use crate::error::{Error, Result};
use crate::numeric::memory;

/// `count` values from `first` to `last`, evenly spaced in the logarithm, both ends exact. The ends must be finite
/// numbers > 0.
///
/// ```
/// let cs = kernelpath::logspace(1e-3, 1e3, 7)?;
/// assert_eq!((cs[0], cs[6]), (1e-3, 1e3));
/// assert!((cs[3] - 1.0).abs() < 1e-12);
/// assert!(kernelpath::logspace(-1.0, 10.0, 3).is_err());
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub fn logspace(first: f64, last: f64, count: usize) -> Result<Vec<f64>> {
    for (name, value) in [("the first value", first), ("the last value", last)] {
        if !(value > 0.0 && value.is_finite()) {
            return Err(Error::Parameter { name, expected: "a finite number > 0", value });
        }
    }
    let mut values = memory::with_room(count, "a grid of values")?;
    values.extend((0..count).map(|k| match k {
        0 => first,
        k if k + 1 == count => last,
        k => (first.ln() + (last.ln() - first.ln()) * k as f64 / (count - 1) as f64).exp(),
    }));
    Ok(values)
}

/// Positions of the C's in rising order.
pub(crate) fn rising(cs: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cs.len()).collect();
    order.sort_by(|&a, &b| cs[a].total_cmp(&cs[b]));
    order
}

/// The C's to solve on the way to `to`, which is the last of them. They divide the way from `from` in equal ratios, so
/// that no ratio is larger than `longest`, but into at most 100 parts.
pub(crate) fn leaps(from: f64, to: f64, longest: f64) -> impl Iterator<Item = f64> {
    // (The ratio of the largest and the smallest double would overflow.)
    let distance = to.ln() - from.ln();
    let parts = (distance / longest.ln()).ceil().clamp(1.0, 100.0);
    let between = move |part: usize| (from.ln() + distance * part as f64 / parts).exp();
    // Rounding must not turn a value in between into either end.
    (1..parts as usize).map(between).filter(move |c| from < *c && *c < to).chain([to])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaps_rise_strictly_and_are_short() {
        for (from, to) in [(1.0, 8.0), (1.0, 64.0), (1.0, 65.0), (1e-3, 1e3), (1.0, 1.0_f64.next_up()), (1.0, 0.1)] {
            let cs: Vec<f64> = leaps(from, to, 8.0).collect();
            assert_eq!(cs.last(), Some(&to));
            assert!(cs.windows(2).all(|pair| pair[0] < pair[1]), "{from} to {to}: {cs:?}");
            assert!(to < from || cs[0] > from && cs[0] <= 8.0 * from * (1.0 + 1e-12), "{from} to {to}: {cs:?}");
            assert!(cs.windows(2).all(|pair| pair[1] <= 8.0 * pair[0] * (1.0 + 1e-12)), "{from} to {to}: {cs:?}");
        }
        assert!(leaps(f64::MIN_POSITIVE, f64::MAX, 8.0).all(f64::is_finite));
    }
}
