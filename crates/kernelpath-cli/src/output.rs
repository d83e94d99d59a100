//! What the command says: results to standard output, everything else to standard error.

use std::io::{self, Write};

use crate::failure::Failure;

/// Writes to standard output. A reader that has seen enough, such as `head`, has closed it: that is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let failure = match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => return Ok(()),
        Err(error) => Failure::from(&error),
    };
    if failure.is_closed_pipe() { Ok(()) } else { Err(failure) }
}

/// Writes a line to standard error. If nobody can read it there, nobody is told.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
