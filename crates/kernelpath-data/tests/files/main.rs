//! Files of data, from their bytes to a table.

mod csv;
mod libsvm;
#[path = "../../../../fuzz/options.rs"]
mod options;
mod packed;
mod twin;
