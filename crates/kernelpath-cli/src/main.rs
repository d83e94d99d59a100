//! The `kernelpath` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    kernelpath_cli::run(std::env::args_os()).into()
}
