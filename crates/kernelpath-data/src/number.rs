//! Numbers, from the bytes of a file.

use std::fmt;

/// Why a piece of text is no number that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotNumber {
    /// Something else.
    Text,
    /// NaN or an infinity, written out.
    NotFinite,
    /// A number beyond ±1.8e308.
    Huge,
    /// A number with a comma where a point should be.
    Comma,
}

impl fmt::Display for NotNumber {
    /// The text that follows "is".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "no number",
            Self::NotFinite => "not finite",
            Self::Huge => "too large for double precision",
            Self::Comma => "no number (write decimals with a point)",
        })
    }
}

/// Powers of ten that double precision holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The number that a text starts with, and its length in bytes; correctly rounded.
///
/// m / 10ᵏ is one rounding of two exact numbers if m ≤ 2⁵³ and k ≤ 22 (Clinger). Everything else is left to
/// `fast-float2`.
#[inline(always)]
pub(crate) fn leading(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative || text.first() == Some(&b'+'));
    let (mut at, mut mantissa) = (start, 0u64);
    let mut digits = |at: &mut usize| {
        let from = *at;
        while let Some(digit) = text.get(*at).map(|c| c.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            *at += 1;
        }
        *at - from
    };
    let whole = digits(&mut at);
    let mut decimals = 0;
    if text.get(at) == Some(&b'.') {
        at += 1;
        decimals = digits(&mut at);
    }
    let plain = !matches!(text.get(at), Some(b'e' | b'E'));
    // 19 digits never wrap around.
    if plain && (1..=19).contains(&(whole + decimals)) && mantissa <= 1 << 53 {
        let value = mantissa as f64 / POWERS[decimals];
        return Some((if negative { -value } else { value }, at));
    }
    general(text)
}

/// As [`leading`], for any number.
#[inline(never)]
fn general(text: &[u8]) -> Option<(f64, usize)> {
    fast_float2::parse_partial::<f64, _>(text).ok()
}

/// The number that a text is.
pub(crate) fn number(text: &[u8]) -> Result<f64, NotNumber> {
    match leading(text) {
        Some((value, length)) if length == text.len() => finite(value, text),
        _ => Err(refusal(text)),
    }
}

/// The value, if it is finite; `text` is what it was read from.
#[inline(always)]
pub(crate) fn finite(value: f64, text: &[u8]) -> Result<f64, NotNumber> {
    if value.is_finite() { Ok(value) } else { Err(refusal(text)) }
}

/// Why a text is no finite number.
pub(crate) fn refusal(text: &[u8]) -> NotNumber {
    match leading(text) {
        Some((value, length)) if length == text.len() && !value.is_finite() => {
            let has_digits = text.iter().any(u8::is_ascii_digit);
            if has_digits { NotNumber::Huge } else { NotNumber::NotFinite }
        }
        Some((_, length))
            if text[length..].strip_prefix(b",").is_some_and(|rest| rest.iter().all(u8::is_ascii_digit)) =>
        {
            NotNumber::Comma
        }
        _ => NotNumber::Text,
    }
}

/// The integer that a text is: an optional sign and digits only.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"+").or_else(|| text.strip_prefix(b"-")).unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let mut random = fastrand::Rng::with_seed(0);
        for _ in 0..200_000 {
            let text = match random.u8(..6) {
                0 => format!("{}", f64::from_bits(random.u64(..))),
                1 => format!("{:e}", f64::from_bits(random.u64(..))),
                2 => format!("{}.{}", random.i32(..), random.u64(..)),
                3 => format!("{:.*}", random.usize(..25), random.f64() - 0.5),
                4 => format!("+{}", random.u64(..)),
                _ => format!("{}e{}", random.i64(..), random.i16(-330..330)),
            };
            let expected: f64 = text.parse().unwrap();
            match number(text.as_bytes()) {
                Ok(value) => assert_eq!(value.to_bits(), expected.to_bits(), "{text}"),
                Err(why) => assert!(!expected.is_finite(), "{text} is {why}"),
            }
        }
    }

    #[test]
    fn what_is_no_number_says_why() {
        for (text, why) in [
            ("", NotNumber::Text),
            ("-", NotNumber::Text),
            (".", NotNumber::Text),
            ("1.2.3", NotNumber::Text),
            ("1e", NotNumber::Text),
            ("0x10", NotNumber::Text),
            ("1_000", NotNumber::Text),
            ("nan", NotNumber::NotFinite),
            ("-inf", NotNumber::NotFinite),
            ("1e999", NotNumber::Huge),
            ("1,5", NotNumber::Comma),
        ] {
            assert_eq!(number(text.as_bytes()), Err(why), "{text}");
        }
        assert_eq!((number(b"5."), number(b".5"), number(b"-0")), (Ok(5.0), Ok(0.5), Ok(-0.0)));
    }

    #[test]
    fn integers_have_digits_only() {
        assert_eq!((integer(b"+12"), integer(b"-7"), integer(b"007")), (Some(12), Some(-7), Some(7)));
        assert_eq!(
            (integer(b"1.0"), integer(b""), integer(b"+"), integer(b"9223372036854775808")),
            (None, None, None, None)
        );
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
    }
}
