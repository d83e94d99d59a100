//! Files of data, from their bytes to a table.

mod csv;
mod libsvm;
mod packed;
mod twin;
