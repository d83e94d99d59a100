//! What `verify` can be asked for.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::data::DataArguments;

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Model file.
    pub model: PathBuf,
    /// File of the rows and labels of the fit; - is standard input.
    pub data: PathBuf,
    #[command(flatten)]
    pub weights: WeightsArguments,
    /// Largest relative gap of a verified model (default: what the model was fitted to).
    #[arg(long)]
    pub tol: Option<f64>,
    /// Number of threads; 0 takes one for each core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data_options: DataArguments,
}

/// The weights of the fit, which are part of what it minimised.
#[derive(Debug, Args)]
pub(crate) struct WeightsArguments {
    /// Weights of the fit, if it had them: a file with a number in each line, or a column of the CSV file.
    #[arg(long, value_name = "FILE|COLUMN", conflicts_with = "weight", allow_hyphen_values = true)]
    pub weights: Option<String>,
}
