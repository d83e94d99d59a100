//! What can go wrong when a model is turned into another format, or read from one.

use thiserror::Error as ThisError;

/// Why a model was not turned into another format, or not read from one.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The format cannot express the model.
    #[error("{format} cannot express this model: {reason}")]
    Refused {
        /// The format.
        format: &'static str,
        /// What it has no words for, and what to do.
        reason: String,
    },
    /// A text is not a model of its format.
    #[error("line {line}: {problem}")]
    Text {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// An error of the library.
    #[error(transparent)]
    Library(#[from] kernelpath::Error),
}

/// The result of a conversion.
pub type Result<T> = std::result::Result<T, Error>;
