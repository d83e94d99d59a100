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
    /// A number with a point in a file whose decimals have a comma.
    Point,
}

impl fmt::Display for NotNumber {
    /// The text that follows "is".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "no number",
            Self::NotFinite => "not finite",
            Self::Huge => "too large for double precision",
            Self::Comma => "no number (write decimals with a point)",
            Self::Point => "no number (decimals have a comma here, and a point may stand between thousands)",
        })
    }
}

/// Powers of ten that double precision holds exactly.
const POWERS: [f64; MOST_DIGITS + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19];

/// The most digits that always fit into 64 bits.
const MOST_DIGITS: usize = 19;

/// The number that a text starts with, and its length in bytes; correctly rounded.
///
/// A number of at most 19 digits, k of them behind the point, is m / 10ᵏ. Up to m = 2⁵³ that is one rounding of two
/// exact numbers (Clinger), and beyond one division of integers. Everything else is left to `fast-float2`.
#[inline(always)]
pub(crate) fn leading(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative || text.first() == Some(&b'+'));
    let (mut at, mut mantissa) = (start, 0u64);
    while let Some(digit) = digit(text, at) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
        at += 1;
    }
    let whole = at - start;
    let mut decimals = 0;
    if text.get(at) == Some(&b'.') {
        at += 1;
        let point = at;
        while let Some(eight) = eight_digits(text, at) {
            mantissa = mantissa.wrapping_mul(100_000_000).wrapping_add(eight);
            at += 8;
        }
        while let Some(digit) = digit(text, at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        decimals = at - point;
    }
    let plain = !matches!(text.get(at), Some(b'e' | b'E'));
    if plain && (1..=MOST_DIGITS).contains(&(whole + decimals)) {
        let value = if mantissa <= 1 << 53 { mantissa as f64 / POWERS[decimals] } else { quotient(mantissa, decimals) };
        return Some((if negative { -value } else { value }, at));
    }
    general(text)
}

#[inline(always)]
fn digit(text: &[u8], at: usize) -> Option<u64> {
    text.get(at).map(|c| c.wrapping_sub(b'0')).filter(|digit| *digit < 10).map(u64::from)
}

/// The number of the eight digits at `at`, if there are so many. Pairs of digits are joined, then pairs of pairs, then
/// both halves, all in one word.
#[inline(always)]
fn eight_digits(text: &[u8], at: usize) -> Option<u64> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let word = u64::from_le_bytes(*text.get(at..)?.first_chunk()?);
    // A byte above '9' gets its highest bit from the sum, one below '0' from the difference.
    let others = word.wrapping_add(0x4646_4646_4646_4646) | word.wrapping_sub(ZEROS);
    if others & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let digits = word - ZEROS;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// m / 10ᵏ for m > 0 and k ≤ 19, correctly rounded.
///
/// With m and 10ᵏ shifted to 64 bits, the quotient of m·2⁶³ has at least 63 bits. Its lowest bit says, too, whether
/// something is left over, so that the conversion to 53 bits rounds as the whole quotient would.
#[inline]
fn quotient(m: u64, k: usize) -> f64 {
    let divisor = 10_u64.pow(k as u32);
    let (up, divisor_up) = (m.leading_zeros(), divisor.leading_zeros());
    let (numerator, divisor) = (u128::from(m << up) << 63, u128::from(divisor << divisor_up));
    let quotient = (numerator / divisor) as u64;
    let is_inexact = u128::from(quotient) * divisor != numerator;
    // 2 to the power of divisor_up − up − 63, which is between −126 and 0.
    let scale = f64::from_bits(u64::from(1023 - 63 + divisor_up - up) << 52);
    (quotient | u64::from(is_inexact)) as f64 * scale
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

/// The number that a text is, in a file whose decimals have a comma.
pub(crate) fn number_with_comma(text: &[u8]) -> Result<f64, NotNumber> {
    if memchr::memchr(b'.', text).is_some() {
        let is_number = number(text).is_ok();
        return Err(if is_number { NotNumber::Point } else { NotNumber::Text });
    }
    match memchr::memchr(b',', text) {
        None => number(text),
        Some(at) => {
            let mut pointed = text.to_vec();
            pointed[at] = b'.';
            number(&pointed).map_err(|why| if why == NotNumber::Comma { NotNumber::Text } else { why })
        }
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

    /// The halfway points between neighbours, and what is a digit away from them.
    #[test]
    fn ties_are_rounded_to_even() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100_000 {
            let half = ((random.u64(1 << 52..1 << 53) << 1) | 1) << random.u32(..10);
            let digits = [half - 1, half, half + 1][random.usize(..3)].to_string();
            let point = random.usize(..=digits.len());
            let text = format!("{}.{}", &digits[..point], &digits[point..]);
            let expected: f64 = text.parse().unwrap();
            assert_eq!(number(text.as_bytes()).unwrap().to_bits(), expected.to_bits(), "{text}");
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
    fn decimals_may_have_a_comma() {
        for (text, expected) in [
            ("1,5", Ok(1.5)),
            ("-,25e3", Ok(-250.0)),
            ("12", Ok(12.0)),
            ("1.5", Err(NotNumber::Point)),
            ("1.234,5", Err(NotNumber::Text)),
            ("1,2,3", Err(NotNumber::Text)),
            ("a,b", Err(NotNumber::Text)),
            ("inf", Err(NotNumber::NotFinite)),
        ] {
            assert_eq!(number_with_comma(text.as_bytes()), expected, "{text}");
        }
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
