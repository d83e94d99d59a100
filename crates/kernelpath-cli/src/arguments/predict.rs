//! What `predict` can be asked for.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::data::DataArguments;

#[derive(Debug, Args)]
pub(crate) struct PredictArguments {
    /// Model file: .kpath, or LIBSVM's; - is standard input.
    pub model: PathBuf,
    /// File of rows; - is standard input.
    pub data: PathBuf,
    /// Where the predictions go, one line for each row (default: standard output).
    pub output: Option<PathBuf>,
    /// Add the probability of each class, in the order of inspect.
    #[arg(long)]
    pub proba: bool,
    /// Add decision values: one for two classes (above 0 for the second), else one for each class.
    #[arg(long)]
    pub decision: bool,
    /// Do not compare the predictions with the labels of the file.
    #[arg(short, long)]
    pub quiet: bool,
    /// Device: cpu, auto, opencl or cuda.
    #[arg(long, default_value = "cpu")]
    pub device: String,
    /// Number of threads, at most 256; 0 takes one for each core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    #[command(flatten)]
    pub data_options: DataArguments,
}
