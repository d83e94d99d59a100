//! The corpus of the fuzzer: texts that are models of LIBSVM, or claim to be.

use std::path::Path;
use std::time::{Duration, Instant};

use kernelpath::SavedModel;
use kernelpath_export::libsvm::from_libsvm;

#[test]
fn each_file_is_read_or_refused_at_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/libsvm_model");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let (bytes, started) = (std::fs::read(&path).unwrap(), Instant::now());
        if let Ok(model) = from_libsvm(&bytes) {
            let written = model.to_bytes().unwrap();
            assert!(SavedModel::from_bytes(&written).is_ok(), "{}", path.display());
        }
        assert!(started.elapsed() < Duration::from_secs(5), "{}", path.display());
        files += 1;
    }
    assert!(files > 5, "{files}");
}
