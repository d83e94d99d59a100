//! What the command says: results to standard output, everything else to standard error. No text from elsewhere, such as
//! a label or the name of a file, reaches a terminal but through [`shown`].

use std::io::{self, Write};

use kernelpath::{is_hidden, shown};
use serde_json::Value;

use crate::failure::Failure;

/// Writes lines to standard output. Texts in them have gone through [`shown`] where they were put together, so that they
/// have no ends of lines of their own; what else a terminal would not show is written out here.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut lines = String::with_capacity(text.len());
    for piece in text.split_inclusive(['\n', '\t']) {
        let end = piece.len() - usize::from(piece.ends_with(['\n', '\t']));
        lines.push_str(&shown(&piece[..end]));
        lines.push_str(&piece[end..]);
    }
    write(&lines)
}

/// Writes a JSON document to standard output. Characters that [`shown`] writes out have the escapes of JSON.
pub(crate) fn print_json(document: &Value) -> Result<(), Failure> {
    let mut text = String::new();
    for c in format!("{document:#}\n").chars() {
        if is_hidden(c) && c != '\n' {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.extend(["\\u".to_string(), format!("{unit:04x}")]));
        } else {
            text.push(c);
        }
    }
    write(&text)
}

/// A reader that has seen enough, such as `head`, has closed standard output: that is no failure.
fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let failure = match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => return Ok(()),
        Err(error) => Failure::from(&error),
    };
    if failure.is_closed_pipe() { Ok(()) } else { Err(failure) }
}

/// Writes a line to standard error. If nobody can read it there, nobody is told.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(line));
}
