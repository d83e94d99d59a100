//! Fields of CSV records: RFC 4180, and spaces around a field are not part of it.

/// What is wrong with the quotes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadQuote {
    /// One in a field without quotes, or something after the closing one.
    Inside,
    /// Never closed.
    Open,
}

/// A field, and the place of the byte that ended it: the delimiter or the line feed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cell<'a> {
    pub content: &'a [u8],
    pub end: usize,
}

fn is_space(c: u8, delimiter: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\r') && c != delimiter
}

/// The field that starts at `at`. A field with doubled quotes is put together in `scratch`. The last byte of the text is
/// a line feed.
pub(crate) fn cell<'a>(
    text: &'a [u8],
    at: usize,
    delimiter: u8,
    scratch: &'a mut Vec<u8>,
) -> Result<Cell<'a>, BadQuote> {
    let space = |at: usize| text[at..].iter().position(|c| !is_space(*c, delimiter)).map_or(text.len(), |k| at + k);
    let start = space(at);
    if text.get(start) == Some(&b'"') {
        return quoted(text, start + 1, scratch).and_then(|(content, closed)| {
            let end = space(closed);
            if text.get(end).is_none_or(|c| *c == delimiter || *c == b'\n') {
                Ok(Cell { content, end })
            } else {
                Err(BadQuote::Inside)
            }
        });
    }
    let end = memchr::memchr2(delimiter, b'\n', &text[start..]).map_or(text.len(), |k| start + k);
    let mut content = &text[start..end];
    while let Some((&last, before)) = content.split_last() {
        if !is_space(last, delimiter) {
            break;
        }
        content = before;
    }
    if memchr::memchr(b'"', content).is_some() { Err(BadQuote::Inside) } else { Ok(Cell { content, end }) }
}

/// The content of the field whose opening quote is before `start`, and the place after its closing quote.
fn quoted<'a>(text: &'a [u8], start: usize, scratch: &'a mut Vec<u8>) -> Result<(&'a [u8], usize), BadQuote> {
    let quote = |at: usize| memchr::memchr(b'"', &text[at..]).map(|k| at + k).ok_or(BadQuote::Open);
    let mut close = quote(start)?;
    if text.get(close + 1) != Some(&b'"') {
        return Ok((&text[start..close], close + 1));
    }
    scratch.clear();
    let mut from = start;
    while text.get(close + 1) == Some(&b'"') {
        scratch.extend_from_slice(&text[from..=close]);
        from = close + 2;
        close = quote(from)?;
    }
    scratch.extend_from_slice(&text[from..close]);
    Ok((scratch, close + 1))
}

/// Shows each field of the record that starts at `at`, and returns the place after it.
fn walk(text: &[u8], mut at: usize, delimiter: u8, mut field: impl FnMut(&[u8])) -> Result<usize, BadQuote> {
    let mut scratch = Vec::new();
    loop {
        let Cell { content, end } = cell(text, at, delimiter, &mut scratch)?;
        field(content);
        at = end + 1;
        if text.get(end) != Some(&delimiter) {
            return Ok(at.min(text.len()));
        }
    }
}

/// The number of fields of the record that starts at `at`, up to a quote that is wrong.
pub(crate) fn width(text: &[u8], at: usize, delimiter: u8) -> usize {
    let mut fields = 0;
    let _ = walk(text, at, delimiter, |_| fields += 1);
    fields
}

/// The fields of the record that starts at `at`, the first `most` of them, and the place after it.
pub(crate) fn record(text: &[u8], at: usize, delimiter: u8, most: usize) -> (Vec<Vec<u8>>, Result<usize, BadQuote>) {
    let mut fields = Vec::new();
    let end = walk(text, at, delimiter, |field| {
        if fields.len() < most {
            fields.push(field.to_vec());
        }
    });
    (fields, end)
}

/// The place of the first byte from `at` on that is in no blank line.
pub(crate) fn after_blank_lines(text: &[u8], mut at: usize, delimiter: u8) -> usize {
    let mut start = at;
    while let Some(&c) = text.get(at) {
        if c == b'\n' {
            start = at + 1;
        } else if !is_space(c, delimiter) {
            return start;
        }
        at += 1;
    }
    at
}

/// Whether a field stands for a label that is missing.
pub(crate) fn is_missing_label(field: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] = [b"", b"?", b"na", b"n/a", b"#n/a", b"nan", b"<na>", b"null"];
    NAMES.iter().any(|name| field.eq_ignore_ascii_case(name))
}

/// Whether a field stands for a number that is missing.
pub(crate) fn is_missing(field: &[u8]) -> bool {
    is_missing_label(field) || field == b"-" || field.eq_ignore_ascii_case(b"none")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Result<Vec<String>, BadQuote> {
        let (fields, end) = record(text.as_bytes(), 0, b',', usize::MAX);
        end.map(|_| fields.into_iter().map(|field| String::from_utf8(field).unwrap()).collect())
    }

    #[test]
    fn fields_are_those_of_the_rfc() {
        for (text, expected) in [
            ("a,b\n", vec!["a", "b"]),
            (" a b ,\tc\r\n", vec!["a b", "c"]),
            ("\"a,b\",\"c\nd\"\n", vec!["a,b", "c\nd"]),
            ("\"say \"\"hi\"\"\",\"\"\"\"\n", vec!["say \"hi\"", "\""]),
            (" \" a \" ,\"\"\n", vec![" a ", ""]),
            (",\n", vec!["", ""]),
            ("\n", vec![""]),
        ] {
            assert_eq!(fields(text).unwrap(), expected, "{text:?}");
        }
        for (text, expected) in [
            ("5\",1\n", BadQuote::Inside),
            ("\"a\"b,1\n", BadQuote::Inside),
            ("\"a,1\n", BadQuote::Open),
            ("\"a\"\"\n", BadQuote::Open),
        ] {
            assert_eq!(fields(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn blank_lines_are_skipped_as_wholes() {
        assert_eq!(after_blank_lines(b"\n \r\n  a,b\n", 0, b','), 4);
        assert_eq!(after_blank_lines(b"\n\t1\n", 0, b'\t'), 1);
        assert_eq!(after_blank_lines(b"\n\n", 0, b','), 2);
    }
}
