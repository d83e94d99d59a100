//! What can be asked for on the command line.

pub(crate) mod data;
pub(crate) mod grid;
pub(crate) mod list;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod small;
pub(crate) mod train;
pub(crate) mod verify;

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

/// Exact kernel machines, tuned in one call, each answer with a certificate.
#[derive(Debug, Parser)]
#[command(name = "kernelpath", version, max_term_width = 100)]
#[command(
    after_help = "Exit status: 0 if all went well, 1 if reading, writing or the machine failed, 2 if the arguments \
or the data are wrong, 3 if the model did not reach --tol, or verify found no proof, 130 after Ctrl-C."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train and tune a model on a file.
    Train(Box<train::TrainArguments>),
    /// Predict the rows of a file.
    Predict(predict::PredictArguments),
    /// Say what a model file holds, without reading its arrays.
    Inspect(small::InspectArguments),
    /// Turn a model into another format, by the extensions of the files.
    Convert(small::ConvertArguments),
    /// Prove a model anew, from the rows of its fit.
    Verify(verify::VerifyArguments),
    /// Write a page of HTML that explains a model.
    Report(report::ReportArguments),
    /// List the devices that a fit can run on.
    Devices(small::DevicesArguments),
    /// Train with the options, the messages and the model file of LIBSVM's svm-train.
    #[command(name = "svm-train", disable_help_flag = true)]
    SvmTrain(LibsvmArguments),
    /// Predict with the options, the messages and the output file of LIBSVM's svm-predict.
    #[command(name = "svm-predict", disable_help_flag = true)]
    SvmPredict(LibsvmArguments),
    /// Print a script that completes this command in a shell.
    Completions(small::CompletionsArguments),
    /// Print the manual page, in roff.
    Man(small::ManArguments),
}

/// The letters of LIBSVM, which are read as it reads them.
#[derive(Debug, Args)]
pub(crate) struct LibsvmArguments {
    /// Options, such as -c 1, and files; without any, they are listed.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS AND FILES")]
    pub words: Vec<OsString>,
}
