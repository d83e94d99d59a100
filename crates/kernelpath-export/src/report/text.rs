//! Texts and numbers as a page shows them.

use kernelpath::LabelValue;

/// Thin space that does not break: between groups of digits, and before units.
const THIN: char = '\u{202f}';

/// Most characters of a text from the model that a page shows in one place.
const LONGEST: usize = 200;

/// The text, or its start and an ellipsis.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A label as people write it.
pub(crate) fn label(value: &LabelValue) -> String {
    if let LabelValue::Text(text) = value { shortened(text, LONGEST) } else { value.to_string() }
}

/// Four digits, or a power of ten where the number is far from 1.
pub(crate) fn number(value: f64) -> String {
    digits(value, 4)
}

/// Two digits, for what is known to no more: errors and gaps.
pub(crate) fn rough(value: f64) -> String {
    digits(value, 2)
}

/// That many significant digits.
pub(crate) fn digits(value: f64, significant: i32) -> String {
    if value.is_nan() {
        return "–".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞".into() } else { "−∞".into() };
    }
    if value == value.trunc() && value.abs() < 1e7 {
        return signed(value, &grouped(value.abs() as u64));
    }
    // Rounding may carry into the next power of ten: 9.9996 has the exponent of 10.
    let scientific = format!("{:.*e}", (significant - 1).max(0) as usize, value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific.as_str(), "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = (significant - 1 - exponent).max(0) as usize;
        return signed(value, without_zeros(&format!("{:.decimals$}", value.abs())));
    }
    let power = power_of_ten(exponent);
    match without_zeros(mantissa) {
        "1" => signed(value, &power),
        mantissa => signed(value, &format!("{mantissa}{THIN}×{THIN}{power}")),
    }
}

fn signed(value: f64, magnitude: &str) -> String {
    if value < 0.0 { format!("−{magnitude}") } else { magnitude.to_string() }
}

fn without_zeros(decimal: &str) -> &str {
    if decimal.contains('.') { decimal.trim_end_matches('0').trim_end_matches('.') } else { decimal }
}

/// 10ⁿ.
pub(crate) fn power_of_ten(exponent: i32) -> String {
    let superscript = |c: char| match c.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    };
    format!("10{}", exponent.to_string().chars().map(superscript).collect::<String>())
}

/// A whole number in groups of three digits.
pub(crate) fn count(value: usize) -> String {
    grouped(value as u64)
}

fn grouped(value: u64) -> String {
    let plain = value.to_string();
    if plain.len() < 5 {
        return plain;
    }
    let mut out = String::new();
    for (at, digit) in plain.chars().enumerate() {
        if at > 0 && (plain.len() - at).is_multiple_of(3) {
            out.push(THIN);
        }
        out.push(digit);
    }
    out
}

/// `1 model`, `2 models`.
pub(crate) fn counted(value: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// A share as per cent.
pub(crate) fn percent(share: f64) -> String {
    if share.is_nan() {
        return "–".into();
    }
    format!("{}{THIN}%", digits((1000.0 * share).round() / 10.0, 4))
}

/// A time in the unit that suits it.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        v if !v.is_finite() => number(v),
        v if v < 1e-3 => format!("{}{THIN}µs", digits(1e6 * v, 3)),
        v if v < 1.0 => format!("{}{THIN}ms", digits(1e3 * v, 3)),
        v if v < 120.0 => format!("{}{THIN}s", digits(v, 3)),
        v if v < 7200.0 => {
            let whole = v.round() as usize;
            format!("{}{THIN}min {}{THIN}s", whole / 60, whole % 60)
        }
        v => format!("{}{THIN}h", digits(v / 3600.0, 3)),
    }
}

/// A size in decimal units.
pub(crate) fn bytes(value: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(size, _)| value >= *size) {
        Some((size, unit)) => format!("{}{THIN}{unit}", digits(value / size, 3)),
        None => format!("{}{THIN}bytes", digits(value, 3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("häuser", 4), "häu…");
        assert_eq!(label(&LabelValue::Text("a \"b\"".into())), "a \"b\"");
        assert_eq!(label(&LabelValue::Truth(true)), "true");
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (-12.0, "−12"),
            (12_345.0, "12\u{202f}345"),
            (0.123_456, "0.1235"),
            (99.999_9, "100"),
            (0.000_1, "0.0001"),
            (1.25e-7, "1.25\u{202f}×\u{202f}10⁻⁷"),
            (-3e300, "−3\u{202f}×\u{202f}10³⁰⁰"),
            (1e-6, "10⁻⁶"),
            (f64::NAN, "–"),
            (f64::INFINITY, "∞"),
            (f64::NEG_INFINITY, "−∞"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
        assert_eq!(rough(0.022_22), "0.022");
        assert_eq!((count(1234), count(1_234_567)), ("1234".into(), "1\u{202f}234\u{202f}567".into()));
    }

    #[test]
    fn units_suit_their_values() {
        assert_eq!(percent(0.934_21), "93.4\u{202f}%");
        assert_eq!(percent(f64::NAN), "–");
        assert_eq!(seconds(0.012_34), "12.3\u{202f}ms");
        assert_eq!(seconds(185.0), "3\u{202f}min 5\u{202f}s");
        assert_eq!(seconds(7200.0), "2\u{202f}h");
        assert_eq!(bytes(1_536_000.0), "1.54\u{202f}MB");
        assert_eq!(bytes(12.0), "12\u{202f}bytes");
    }
}
