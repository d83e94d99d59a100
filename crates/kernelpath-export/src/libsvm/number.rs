//! Numbers with 17 digits, which is what it takes to read the same number again.

use std::fmt::Write;

/// Digits of a number.
const DIGITS: usize = 17;

/// Appends a number as `%.17g` of C writes it.
pub(crate) fn push_number(out: &mut String, value: f64) {
    let scientific = format!("{value:.*e}", DIGITS - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS as i32).contains(&exponent) {
        let decimals = (DIGITS as i32 - 1 - exponent) as usize;
        out.push_str(without_zeros(&format!("{value:.decimals$}")));
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a string cannot fail.
        let _ = write!(out, "{}e{sign}{:02}", without_zeros(mantissa), exponent.unsigned_abs());
    }
}

/// Drops zeros at the end of decimals.
fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_those_of_c() {
        let written = |value: f64| {
            let mut out = String::new();
            push_number(&mut out, value);
            assert_eq!(out.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{out}");
            out
        };
        // printf("%.17g").
        assert_eq!(written(0.1), "0.10000000000000001");
        assert_eq!(written(-2.5), "-2.5");
        assert_eq!(written(0.0), "0");
        assert_eq!(written(100.0), "100");
        assert_eq!(written(1e17), "1e+17");
        assert_eq!(written(12_345_678_901_234_567.0), "12345678901234568");
        assert_eq!(written(1e-4), "0.0001");
        assert_eq!(written(1.5e-5), "1.5e-05");
        assert_eq!(written(1.0 / 3.0), "0.33333333333333331");
        assert_eq!(written(-1e300), "-1.0000000000000001e+300");
        assert_eq!(written(5e-324), "4.9406564584124654e-324");
    }
}
