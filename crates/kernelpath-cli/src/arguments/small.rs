//! What the small commands can be asked for.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// Model file; - is standard input.
    pub model: PathBuf,
    /// Print the whole header as one JSON document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// Model: NAME.kpath, or NAME.model of LIBSVM; - is standard input.
    pub from: PathBuf,
    /// Where it goes: NAME.kpath, NAME.model for LIBSVM's svm-predict, or NAME.onnx.
    pub to: PathBuf,
    /// ONNX in single precision, input included.
    #[arg(long)]
    pub float32: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DevicesArguments {
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// Shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Subcommand whose page is printed (default: that of the whole command).
    pub command: Option<String>,
}
