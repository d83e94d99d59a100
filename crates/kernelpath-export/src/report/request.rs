//! What a report is made of, beside the model.

use kernelpath::{Control, Hardware, Rows};

pub use kernelpath::Truth;

/// Rows, and what is true of them.
#[derive(Debug, Clone, Copy)]
pub struct Labelled<'a> {
    /// The rows, with the columns that the model was trained on.
    pub x: Rows<'a>,
    /// What is true of each row: a label for a classifier; for a regressor numbers, one for each target, or one that all
    /// quantiles are compared with.
    pub truth: Truth<'a>,
    /// The weights of the rows, by which those of the fit are known again; `None`: all 1. Figures do not count them.
    pub weights: Option<&'a [f64]>,
}

/// How the page is made.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The heading of the page; the name of the estimator unless given.
    pub title: Option<String>,
    /// What the data is called, such as the name of its file.
    pub data_name: Option<String>,
    /// Where predictions for the data are computed.
    pub hardware: Hardware,
    /// Stops the work from another thread.
    pub control: Control,
}
