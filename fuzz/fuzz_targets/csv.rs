//! A CSV file is read or refused, whatever is asked of it.

#![no_main]

use kernelpath_data::{Column, Control, CsvOptions, Format, Header, Options, Source, read};
use libfuzzer_sys::fuzz_target;

/// Bytes of memory for the readers: enough for all that is plain, too little for what unpacks to much.
const MEMORY: u64 = 64 << 20;

fuzz_target!(|bytes: &[u8]| {
    let [choice, text @ ..] = bytes else { return };
    let csv = CsvOptions {
        header: [Header::Auto, Header::Yes, Header::No, Header::Auto][usize::from(choice & 3)],
        delimiter: (choice & 4 > 0).then_some(b';'),
        label: (choice & 8 > 0).then_some(Column::Place(-1)),
        weight: (choice & 16 > 0).then_some(Column::Place(0)),
        ignore: if choice & 32 > 0 { vec![Column::Place(1)] } else { Vec::new() },
        features: (choice & 64 > 0).then_some(2),
    };
    let format = if choice & 128 > 0 { Format::Auto } else { Format::Csv };
    let options = Options { format, threads: 1, memory: Some(MEMORY), csv, ..Options::default() };
    if let Ok(table) = read(Source::Bytes(text), &options, &Control::default()) {
        let rows = table.rows.view().expect("the parts of a table fit together");
        assert_eq!(rows.nrows(), table.rows.nrows());
        assert!(table.labels.is_none_or(|labels| labels.len() == rows.nrows()));
        assert!(table.weights.is_none_or(|weights| weights.len() == rows.nrows()));
    }
});
