//! What a report is made of, beside the model.

use kernelpath::{Hardware, LabelValue, Rows};

/// Rows, and what is true of them.
#[derive(Debug, Clone, Copy)]
pub struct Labelled<'a> {
    /// The rows, with the columns that the model was trained on.
    pub x: Rows<'a>,
    /// What is true of each row.
    pub truth: Truth<'a>,
}

/// What is true of some rows.
#[derive(Debug, Clone, Copy)]
pub enum Truth<'a> {
    /// A label for each row, for a classifier.
    Labels(&'a [LabelValue]),
    /// Numbers, row after row, for a regressor: one for each target, or one that all quantiles are compared with.
    Numbers {
        /// Numbers of each row.
        columns: usize,
        /// The numbers.
        values: &'a [f64],
    },
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
}
