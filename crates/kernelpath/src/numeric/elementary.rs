//! Elementary functions in a form that becomes SIMD.

/// log 2 in two parts. Whole multiples of the first part are exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;

const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// The polynomial with these coefficients, the highest power first.
#[inline(always)]
fn polynomial<const N: usize>(coefficients: [f64; N], x: f64) -> f64 {
    let mut sum = 0.0;
    for c in coefficients {
        sum = sum * x + c;
    }
    sum
}

/// Below this, eˣ is no normal double.
pub(crate) const SMALLEST_EXPONENT: f64 = -708.0;

/// eˣ for x ≤ 0, without branches so that loops over it become SIMD.
///
/// x = k ln 2 + r with |r| ≤ ½ ln 2; eʳ by its Taylor polynomial of degree 12 (relative error
/// below 1e-15), scaled by 2ᵏ through the exponent bits. Below −708 the answer is 0 to rounding. NaN stays NaN.
#[inline(always)]
pub(crate) fn exp_nonpositive(x: f64) -> f64 {
    // Adding 1.5·2⁵² rounds to an integer, which then stands in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // (`f64::max` would make a number of NaN.)
    let x = if x < SMALLEST_EXPONENT { SMALLEST_EXPONENT } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let taylor = [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    polynomial(taylor, r) * power
}

/// log x for positive, normal x, without branches so that loops over it become SIMD; −∞ at 0.
///
/// x = 2ᵏm with √½ < m ≤ √2; log m = 2 artanh s = 2(s + s³/3 + s⁵/5 + …) with s = (m − 1)/(m + 1), |s| < 0.172.
#[inline(always)]
pub(crate) fn ln_positive(x: f64) -> f64 {
    const ROOT_HALF: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    // 2⁵² plus an integer below it has that integer in its low bits.
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    let above = x.to_bits().wrapping_sub(ROOT_HALF);
    let m = f64::from_bits((above & ((1 << 52) - 1)).wrapping_add(ROOT_HALF));
    let biased = (above >> 52).wrapping_add(2048) & 4095;
    let k = f64::from_bits(biased | SHIFT.to_bits()) - SHIFT - 2048.0;
    let t = m - 1.0;
    let s = t / (m + 1.0);
    let z = s * s;
    let series = [
        2.0 / 23.0,
        2.0 / 21.0,
        2.0 / 19.0,
        2.0 / 17.0,
        2.0 / 15.0,
        2.0 / 13.0,
        2.0 / 11.0,
        2.0 / 9.0,
        2.0 / 7.0,
        2.0 / 5.0,
        2.0 / 3.0,
    ];
    // log(1 + t) = t − t²/2 + s(t²/2 + z·series): the first term is exact, the others are small beside it.
    let half = 0.5 * t * t;
    let log = k * LN2_HIGH - ((half - (s * (half + z * polynomial(series, z)) + k * LN2_LOW)) - t);
    if x > 0.0 { log } else { f64::NEG_INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_agrees_with_the_standard_library() {
        let mut rng = fastrand::Rng::with_seed(3);
        for i in 0..200_000 {
            let x = match i % 3 {
                0 => rng.f64(),
                1 => 1.0 + (rng.f64() - 0.5) * 10_f64.powi(-(i % 16)),
                _ => f64::from_bits(rng.u64(f64::MIN_POSITIVE.to_bits()..f64::MAX.to_bits())),
            };
            let (ours, std) = (ln_positive(x), x.ln());
            assert!((ours - std).abs() <= 4e-16 * std.abs(), "ln({x}) = {ours}, not {std}");
        }
        assert_eq!(ln_positive(1.0), 0.0);
        assert_eq!(ln_positive(0.0), f64::NEG_INFINITY);
    }

    #[test]
    fn exp_agrees_with_the_standard_library() {
        for i in 0..=70_000 {
            let x = -f64::from(i) * 0.01;
            let (ours, std) = (exp_nonpositive(x), x.exp());
            assert!((ours - std).abs() <= 4e-16 * std, "exp({x}) = {ours}, not {std}");
        }
        assert_eq!(exp_nonpositive(0.0), 1.0);
        assert!(exp_nonpositive(-1e9) < 1e-300 && exp_nonpositive(f64::NEG_INFINITY) < 1e-300);
        assert!(exp_nonpositive(f64::NAN).is_nan() && exp_nonpositive(-f64::NAN).is_nan());
    }
}
