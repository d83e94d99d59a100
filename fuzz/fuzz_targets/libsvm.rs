//! A LIBSVM file is read or refused; the table of one that is read is written, and read again.

#![no_main]

#[path = "../options.rs"]
mod options;

use kernelpath_data::{Control, Format, Options, Source, read, write_libsvm};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [choice, text @ ..] = bytes else { return };
    let control = Control::default();
    let Ok(table) = read(Source::Bytes(text), &options::libsvm(*choice, 1), &control) else { return };
    let rows = table.rows.view().expect("the parts of a table fit together");
    let (Some(labels), true) = (&table.labels, table.rows.ncols() < 1 << 40) else { return };
    let mut written = Vec::new();
    write_libsvm(&rows, labels, &mut written).expect("a table of numbers can be written");
    let again = read(Source::Bytes(&written), &Options { format: Format::Libsvm, ..Options::default() }, &control);
    let again = again.expect("what was written can be read");
    assert_eq!(again.labels.as_ref().map(|l| l.to_floats()), table.labels.as_ref().map(|l| l.to_floats()));
});
