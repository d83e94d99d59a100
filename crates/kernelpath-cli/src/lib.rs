//! The `kernelpath` command, as a library: a thin `main` calls it, and so does the console script of the wheel.

use std::ffi::OsString;

/// Runs the command with its arguments, the name of the program first; returns the exit status.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let _ = arguments.into_iter().count();
    0
}
