//! What `report` can be asked for.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::data::DataArguments;
use crate::arguments::verify::WeightsArguments;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Model file; - is standard input.
    pub model: PathBuf,
    /// File of rows and labels that the predictions are compared with, and by which the model is verified if they are
    /// those of its fit; - is standard input.
    pub data: Option<PathBuf>,
    /// Where the page goes (default: the name of the model, with .html).
    #[arg(short, long, value_name = "PAGE")]
    pub output: Option<PathBuf>,
    /// Heading of the page.
    #[arg(long)]
    pub title: Option<String>,
    #[command(flatten)]
    pub weights: WeightsArguments,
    #[command(flatten)]
    pub data_options: DataArguments,
}
