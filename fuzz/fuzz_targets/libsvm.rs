//! A LIBSVM file is read or refused, the and what was read can be written and read
//! again.

#![no_main]

use kernelpath_data::{Base, Control, Format, LibsvmOptions, Options, Source, read, write_libsvm};
use libfuzzer_sys::fuzz_target;

/// Bytes of memory for the readers: enough for all that is plain, too little for what unpacks to much.
const MEMORY: u64 = 64 << 20;

fuzz_target!(|bytes: &[u8]| {
    let [choice, text @ ..] = bytes else { return };
    let libsvm = LibsvmOptions {
        columns: (choice & 4 > 0).then_some(usize::from(choice >> 4)),
        base: [Base::One, Base::Zero, Base::Auto, Base::One][usize::from(choice & 3)],
        ignore_qid: choice & 8 > 0,
    };
    let options = |threads| Options {
        format: Format::Libsvm,
        threads,
        memory: Some(MEMORY),
        libsvm: libsvm.clone(),
        ..Options::default()
    };
    let control = Control::default();
    let one = read(Source::Bytes(text), &options(1), &control);
    let Ok(table) = one else { return };
    let rows = table.rows.view().expect("the parts of a table fit together");
    let (Some(labels), true) = (&table.labels, table.rows.ncols() < 1 << 40) else { return };
    let mut written = Vec::new();
    write_libsvm(&rows, labels, &mut written).expect("a table of numbers can be written");
    let again = read(Source::Bytes(&written), &Options { format: Format::Libsvm, ..Options::default() }, &control);
    let again = again.expect("what was written can be read");
    assert_eq!(again.labels.as_ref().map(|l| l.to_floats()), table.labels.as_ref().map(|l| l.to_floats()));
});
