//! Lists on the command line: parts with commas between them, which stand in double quotes if they have commas.

use crate::failure::Failure;

/// The parts of a list, each with whether it stood in quotes. Spaces around a part are no part of it.
pub(crate) fn listed(text: &str, option: &str) -> Result<Vec<(String, bool)>, Failure> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = if let Some(inside) = rest.trim_start().strip_prefix('"') {
            let (part, after) = unquoted(inside).ok_or_else(|| open(text, option))?;
            ((part, true), after.trim_start())
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            ((rest[..end].trim().to_string(), false), &rest[end..])
        };
        parts.push(part);
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(parts),
            None => return Err(open(text, option)),
        }
    }
}

/// The parts of a list of `NAME=VALUE`, where a name with a comma or an equals sign stands in double quotes.
pub(crate) fn pairs(text: &str, option: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut pairs = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = if let Some(inside) = rest.trim_start().strip_prefix('"') {
            let (name, after) = unquoted(inside).ok_or_else(|| open(text, option))?;
            (name, after.trim_start().strip_prefix('='))
        } else {
            // The last sign of the part: a name without quotes may have some.
            let part = &rest[..rest.find(',').unwrap_or(rest.len())];
            match part.rfind('=') {
                Some(at) => (rest[..at].trim().to_string(), Some(&rest[at + 1..])),
                None => (part.to_string(), None),
            }
        };
        let Some(after) = after else {
            return Err(Failure::input(format!("{option}: {name:?} is not LABEL=WEIGHT; or give balanced")));
        };
        let end = after.find(',').unwrap_or(after.len());
        pairs.push((name, after[..end].trim().to_string()));
        match after[end..].strip_prefix(',') {
            Some(after) => rest = after,
            None => return Ok(pairs),
        }
    }
}

/// What stands in quotes, of which two stand for one, and what follows them.
fn unquoted(inside: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut rest = inside;
    loop {
        let (before, after) = rest.split_once('"')?;
        out.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                out.push('"');
                rest = after;
            }
            None => return Some((out, after)),
        }
    }
}

fn open(text: &str, option: &str) -> Failure {
    Failure::input(format!("{option} {text}: a quote is not closed, or stands inside a name; write it twice there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_quotes_may_have_commas() {
        let of = |text: &str| listed(text, "--ignore").map(|parts| parts.into_iter().map(|(name, _)| name).collect());
        let names = |text: &str| -> Vec<String> { of(text).unwrap() };
        assert_eq!(names("a, b,c d"), ["a", "b", "c d"]);
        assert_eq!(names("\"a, b\",\"say \"\"hi\"\"\" ,-1"), ["a, b", "say \"hi\"", "-1"]);
        let bad: [Result<Vec<String>, Failure>; 2] = [of("\"a"), of("\"a\"b,c")];
        assert!(bad.iter().all(Result::is_err));
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let found = pairs("a=1,\"b,=c\"=2, d=e = 3", "--class-weight").unwrap();
        assert_eq!(found, [pair("a", "1"), pair("b,=c", "2"), pair("d=e", "3")]);
        assert!(pairs("a", "--class-weight").is_err() && pairs("\"a\"", "--class-weight").is_err());
    }
}
