//! How the first byte of an input chooses the options of a reader: the fuzzer's targets and the tests that walk their
//! corpora take it from here.

use kernelpath_data::{Base, Column, CsvOptions, Format, Header, LibsvmOptions, Options, Texts};

/// Bytes of memory for a reader: enough for every plain file, too little for one that unpacks to a thousand times its size.
const MEMORY: Option<u64> = Some(64 << 20);

/// For the target `libsvm`.
#[allow(dead_code)] // Each target uses one of the two.
pub fn libsvm(choice: u8, threads: usize) -> Options {
    let libsvm = LibsvmOptions {
        columns: (choice & 4 > 0).then_some(usize::from(choice >> 4)),
        base: [Base::One, Base::Zero, Base::Auto, Base::One][usize::from(choice & 3)],
        ignore_qid: choice & 8 > 0,
    };
    Options { format: Format::Libsvm, threads, memory: MEMORY, libsvm, ..Options::default() }
}

/// For the target `csv`.
#[allow(dead_code)]
pub fn csv(choice: u8, threads: usize) -> Options {
    let csv = CsvOptions {
        header: [Header::Auto, Header::Yes, Header::No, Header::Auto][usize::from(choice & 3)],
        delimiter: (choice & 4 > 0).then_some(b';'),
        label: (choice & 8 > 0).then_some(Column::Place(-1)),
        weight: (choice & 16 > 0).then_some(Column::Place(0)),
        ignore: if choice & 32 > 0 { vec![Column::Place(1)] } else { Vec::new() },
        features: (choice & 64 > 0).then_some(2),
        wanted: None,
        decimal_comma: choice & 128 > 0,
        missing_as_nan: false,
        texts: if choice & 64 > 0 { Texts::Found } else { Texts::Refused },
    };
    let format = if choice & 128 > 0 { Format::Auto } else { Format::Csv };
    Options { format, threads, memory: MEMORY, csv, ..Options::default() }
}
