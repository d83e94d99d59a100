//! The `kernelpath` command, as the wheel offers it.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::boundary::run_here;

/// Runs the command, the name of the program first among its arguments, and returns the exit status. Signals are what
/// the caller made of them.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    run_here(py, || Ok(kernelpath_cli::run(arguments)))
}
