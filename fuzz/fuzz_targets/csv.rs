//! A CSV file is read or refused, whatever is asked of it.

#![no_main]

#[path = "../options.rs"]
mod options;

use kernelpath_data::{Control, Source, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [choice, text @ ..] = bytes else { return };
    if let Ok(table) = read(Source::Bytes(text), &options::csv(*choice, 1), &Control::default()) {
        let rows = table.rows.view().expect("the parts of a table fit together");
        assert_eq!(rows.nrows(), table.rows.nrows());
        assert!(table.labels.is_none_or(|labels| labels.len() == rows.nrows()));
        assert!(table.weights.is_none_or(|weights| weights.len() == rows.nrows()));
    }
});
