//! Centres of numbers: what is subtracted from targets, or from a column, before anything is computed with them.
//!
//! A centre is near the median, which a few absurd values do not move, and a multiple of a power of two near the spread.
//! So numbers around 0 have the centre 0 and stay what they are to the last bit, and x − c is exact wherever it is
//! smaller than x.

/// The power of two nearest to a spread.
pub(crate) fn unit(spread: f64) -> f64 {
    // (For the largest and the smallest doubles, the square of the unit must still be finite.)
    spread.log2().round().clamp(-400.0, 400.0).exp2()
}

/// The multiple of `unit` nearest to `middle`, counted in units; 0 if that is beyond all doubles.
pub(crate) fn in_units(middle: f64, unit: f64) -> f64 {
    let count = (middle / unit).round();
    if count.is_finite() { count } else { 0.0 }
}

/// The centre of the values of a column, which are put in order.
pub(crate) fn of_values(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return 0.0;
    }
    values.sort_unstable_by(f64::total_cmp);
    let (middle, spread) = (values[n / 2], values[n - 1 - n / 4] - values[n / 4]);
    // More than half of the values are equal: with them as the centre, they become 0 without a rounding.
    if !(spread > 0.0 && spread.is_finite()) {
        return if middle.is_finite() { middle } else { 0.0 };
    }
    let unit = unit(spread);
    in_units(middle, unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_around_zero_stay_and_others_come_near_it() {
        let around = |centre: f64| (0..101).map(|i| centre + f64::from(i - 50) / 30.0).collect::<Vec<f64>>();
        assert_eq!(of_values(&mut around(0.3)), 0.0);
        for far in [2e4, -1.7e9, 1e15] {
            assert!((of_values(&mut around(far)) - far).abs() <= 2.0, "{far}");
        }
        assert_eq!(of_values(&mut [7.3; 5]), 7.3);
        assert_eq!(of_values(&mut []), 0.0);
        assert_eq!(of_values(&mut [0.0, 0.0, 0.0, 5.0, 1e9]), 0.0);
        // What is subtracted is so coarse that the differences are exact.
        let far = around(2e4);
        let centre = of_values(&mut far.clone());
        assert!(far.iter().all(|x| (x - centre) + centre == *x));
    }

    #[test]
    fn one_absurd_value_moves_nothing() {
        let mut values: Vec<f64> = (0..100).map(|i| 1e4 + f64::from(i % 10)).collect();
        let centre = of_values(&mut values.clone());
        for absurd in [1e308, -1e200, 999_999_999.0] {
            values[17] = absurd;
            assert!((of_values(&mut values.clone()) - centre).abs() <= 8.0, "{absurd}");
        }
    }

    #[test]
    fn the_largest_and_the_smallest_doubles_have_finite_centres() {
        for values in [[f64::MAX, f64::MAX, -f64::MAX], [5e-324, 5e-324, 0.0], [f64::MAX, 1.0, 5e-324]] {
            assert!(of_values(&mut values.clone()).is_finite());
        }
    }
}
