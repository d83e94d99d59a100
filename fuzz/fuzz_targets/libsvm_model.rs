//! A model of LIBSVM is read or refused, and one that is read is a model like any other.

#![no_main]

use kernelpath::SavedModel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = kernelpath_export::libsvm::from_libsvm(bytes) else { return };
    let written = model.to_bytes().expect("a model that was read can be written");
    drop(SavedModel::from_bytes(&written).expect("what was written can be read"));
});
