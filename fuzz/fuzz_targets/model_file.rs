//! A model file is read or refused; one that is read predicts, and comes back from the bytes it is written as.

#![no_main]

use kernelpath::{Hardware, Rows, SavedModel};
use libfuzzer_sys::fuzz_target;

/// The most columns and values that the target predicts with: more say no more.
const SMALL: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = SavedModel::from_bytes(bytes) else { return };
    let predictor = &model.predictor;
    let one_thread = Hardware::threads(1);
    if predictor.width() <= SMALL && predictor.n_values() <= SMALL {
        let row = vec![0.5; predictor.width()];
        if let Ok(row) = Rows::from_slice(&row, predictor.width()) {
            drop(predictor.predict(row, one_thread));
            drop(predictor.predict_proba(row, one_thread));
        }
    }
    let written = model.to_bytes().expect("a model that was read can be written");
    let again = SavedModel::from_bytes(&written).expect("what was written can be read");
    assert!(written == again.to_bytes().expect("and written again"), "the bytes change from one writing to the next");
});
