//! `kernelpath completions`: a script for a shell.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "kernelpath", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
