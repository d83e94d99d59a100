//! Models that ONNX Runtime predicts with.

use kernelpath::SavedModel;

use crate::error::Result;

/// How the graph computes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// In single precision, input included.
    pub is_single: bool,
}

/// The bytes of an ONNX model.
pub fn to_onnx(model: &SavedModel, options: &Options) -> Result<Vec<u8>> {
    let _ = (model, options);
    Ok(Vec::new())
}
