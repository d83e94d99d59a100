//! Trained kernel machines for other programs and for people: LIBSVM models, ONNX, a report page.

mod encoded;
mod error;
pub mod libsvm;
pub mod onnx;
pub mod report;

pub use error::{Error, Result};
