//! What a file looks like: LIBSVM or CSV, the delimiter, a header.

use crate::cells::is_missing;
use crate::number;

/// Lines that are looked at. A file of fewer rows is seen whole; more lines would seldom say more.
const LINES: usize = 100;

/// Whether the file looks like LIBSVM: the first line with several words has the entry `index:value` as its second,
/// or as its first. CSV is what does not.
pub(crate) fn is_libsvm(start: &[u8]) -> bool {
    for line in start.split(|c| *c == b'\n').take(LINES) {
        let line = line.split(|c| *c == b'#').next().unwrap_or_default();
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        match (words.next(), words.next()) {
            (None, _) => {}
            (Some(only), None) if is_entry(only) => return true,
            (Some(only), None) if number::number(only).is_ok() => {}
            (Some(_), Some(second)) => return is_entry(second),
            _ => return false,
        }
    }
    false
}

fn is_entry(word: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', word) else { return false };
    let (index, value) = (&word[..colon], &word[colon + 1..]);
    index == b"qid"
        || (number::integer(index).is_some() && number::leading(value).is_some_and(|(_, length)| length == value.len()))
}

/// The delimiters that are tried. In a file with tabs or semicolons in every record, commas belong to fields.
const DELIMITERS: [u8; 3] = [b'\t', b';', b','];

/// The delimiter that all first records have equally often, or else the one that the first has most often. Where the
/// comma is in numbers, it is none.
pub(crate) fn delimiter(start: &[u8], decimal_comma: bool) -> u8 {
    let mut counts = [[0_usize; LINES]; DELIMITERS.len()];
    let (mut record, mut is_inside, mut has_more) = (0, false, false);
    for &c in start {
        match c {
            b'"' => is_inside = !is_inside,
            b'\n' if !is_inside => {
                // Blank lines are no records.
                if has_more {
                    record += 1;
                    has_more = false;
                }
                if record == LINES {
                    break;
                }
            }
            b'\r' => {}
            _ => {
                has_more = true;
                if let Some(k) = DELIMITERS.iter().position(|d| *d == c && !is_inside) {
                    counts[k][record] += 1;
                }
            }
        }
    }
    // A last record without an end may be cut off.
    let whole = record.max(1);
    let is_even = |k: &usize| counts[*k][0] > 0 && counts[*k][..whole].iter().all(|count| *count == counts[*k][0]);
    let known = || 0..DELIMITERS.len() - usize::from(decimal_comma);
    let even = known().find(is_even);
    let most = known().max_by_key(|&k| counts[k][0]);
    DELIMITERS[even.or(most).unwrap_or(0)]
}

/// Whether the first record is a header: it has text where the second has a number, or nothing but texts.
pub(crate) fn has_header(first: &[Vec<u8>], second: Option<&[Vec<u8>]>, decimal_comma: bool) -> bool {
    let number = if decimal_comma { number::number_with_comma } else { number::number };
    let is_text = |field: &[u8]| !field.is_empty() && number(field).is_err() && !is_missing(field);
    let is_number = |field: &[u8]| number(field).is_ok();
    first.iter().all(|field| is_text(field))
        || second.is_some_and(|second| first.iter().zip(second).any(|(name, value)| is_text(name) && is_number(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libsvm_is_told_from_csv() {
        for text in
            ["1 1:0.5 2:1\n", "# c\n\n-1\n+1 3:1e5\n", "1,2 1:3\n", "1\t7:1\n", "1:0.5\n", "2 qid:3 1:1\n", "cat 1:2"]
        {
            assert!(is_libsvm(text.as_bytes()), "{text}");
        }
        for text in ["", "1,2\n3,4\n", "a b,c\n", "1\n2\n3\n", "2020-01-01 10:30,5\n", "x y:z\n", "1;2\n"] {
            assert!(!is_libsvm(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_delimiter_is_found() {
        for (text, expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2,5\n", b';'),
            ("1,5;2,5\n1,5;2,5\n", b';'),
            ("a\tb\n1,5\t2\n", b'\t'),
            ("\"x;y\",b\n1,2\n", b','),
            ("\"x\ny\",b\n\n1,2\n", b','),
            ("1\n2\n", b','),
            ("", b','),
        ] {
            assert_eq!(delimiter(text.as_bytes(), false), expected, "{text}");
        }
        assert_eq!(delimiter(b"1,5\t2,5\n", true), b'\t');
        assert_eq!(delimiter(b"1,5;2,5\n,5;2\n", true), b';');
    }

    #[test]
    fn headers_are_found() {
        let fields = |text: &str| -> Vec<Vec<u8>> { text.split(',').map(|field| field.as_bytes().to_vec()).collect() };
        for (first, second, expected) in [
            ("a,b", Some("1,2"), true),
            ("a,b", Some("c,d"), true),
            ("a,b", None, true),
            ("0,1,target", Some("0.1,0.2,1"), true),
            ("1,2,cat", Some("1,2,dog"), false),
            ("1,2", Some("3,4"), false),
            ("1,2", None, false),
            ("a,", Some("1,2"), true),
            ("nan,1", Some("2,1"), false),
        ] {
            let second = second.map(fields);
            assert_eq!(has_header(&fields(first), second.as_deref(), false), expected, "{first} {second:?}");
        }
    }
}
