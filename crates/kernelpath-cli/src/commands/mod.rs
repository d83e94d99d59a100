//! What the subcommands do, one file for each.

mod completions;
mod convert;
mod devices;
mod inspect;
mod man;
mod predict;
mod report;
mod svm_predict;
mod svm_train;
mod train;
mod verify;

use kernelpath::Control;

use crate::arguments::Command;
use crate::failure::Failure;

/// Runs a subcommand; returns the exit status.
pub(crate) fn run(command: Command, control: &Control) -> Result<u8, Failure> {
    let done = match command {
        Command::Train(arguments) => return train::run(&arguments, control),
        Command::Predict(arguments) => predict::run(&arguments, control),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Verify(arguments) => return verify::run(&arguments, control),
        Command::Report(arguments) => report::run(&arguments, control),
        Command::Devices(arguments) => devices::run(&arguments),
        Command::SvmTrain(arguments) => return svm_train::run(&arguments.words, control),
        Command::SvmPredict(arguments) => return svm_predict::run(&arguments.words, control),
        Command::Completions(arguments) => completions::run(arguments.shell),
        Command::Man(arguments) => man::run(arguments.command.as_deref()),
    };
    done.map(|()| 0)
}
