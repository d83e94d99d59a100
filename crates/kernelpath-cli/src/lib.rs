//! The `kernelpath` command, as a library: a thin `main` calls it, and so does the console script of the wheel.
//!
//! `arguments/` says what can be asked for, `commands/` does it, one file for each subcommand.

mod arguments;
mod commands;
mod data;
mod failure;
mod fitted;
mod interrupt;
mod labels;
mod libsvm;
mod models;
mod output;
mod progress;
mod scaling;
mod settings;
mod summary;
mod table;

use std::ffi::OsString;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use kernelpath::{Control, shown};

use crate::arguments::Arguments;
use crate::failure::{FAILED, Failure, status};

/// Runs the command with its arguments, the name of the program first; returns the exit status: 0 if all went well, 1 if
/// something failed, 2 if the input is wrong, 3 if the model did not reach its tolerance, 130 after an interruption.
///
/// While it runs, an interruption from the keyboard (SIGINT) ends the command, not the process; handlers of signals that
/// were there before are called, too.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    interrupt::heeded(move |control| run_with(arguments, control))
}

/// As [`run`], but what interrupts the command is [`Control::cancel`] only, from another thread.
pub fn run_with(arguments: impl IntoIterator<Item = OsString>, control: &Control) -> u8 {
    let done = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => commands::run(arguments.command, control),
        Err(error) => return explained(error),
    };
    done.unwrap_or_else(|failure| {
        failure.report();
        failure.status
    })
}

/// Prints what is wrong with the arguments, or the help that they ask for.
fn explained(mut error: clap::Error) -> u8 {
    // What was typed, or a shell put there for a `*`.
    let said = |value: &ContextValue| match value {
        ContextValue::String(text) => Some(ContextValue::String(shown(text).into_owned())),
        ContextValue::Strings(texts) => {
            Some(ContextValue::Strings(texts.iter().map(|text| shown(text).into_owned()).collect()))
        }
        _ => None,
    };
    let context: Vec<_> =
        error.context().filter_map(|(kind, value)| Some((kind, value.clone(), said(value)?))).collect();
    for (kind, typed, shown) in context {
        if typed != shown {
            // A suggestion repeats what was typed.
            error.insert(ContextKind::Suggested, ContextValue::None);
        }
        error.insert(kind, shown);
    }
    match error.print() {
        Ok(()) => status(error.exit_code()),
        Err(error) if Failure::from(&error).is_closed_pipe() => 0,
        Err(_) => FAILED,
    }
}
