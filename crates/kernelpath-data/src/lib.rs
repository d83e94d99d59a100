//! Data from files: LIBSVM, CSV and TSV, plain or compressed, read in parallel.
//!
//! [`read`] takes a path, the bytes of a file, or standard input, and returns a [`Table`]: rows, labels, and what else
//! the file says. The format is seen from the content unless [`Options`] state it.
//!
//! ```
//! use kernelpath_data::{Column, Control, CsvOptions, Options, Source, read};
//!
//! let text = b"width,length,kind\n0.2,1.4,setosa\n1.5,4.5,versicolor\n";
//! let csv = CsvOptions { label: Some(Column::Place(-1)), ..CsvOptions::default() };
//! let options = Options { csv, ..Options::default() };
//! let table = read(Source::Bytes(text), &options, &Control::default())?;
//! assert_eq!(table.columns.as_deref(), Some(&["width".to_string(), "length".to_string()][..]));
//! assert_eq!(table.rows.view()?.entry(1, 0), Some(1.5));
//! assert_eq!(table.labels.unwrap().get(0).to_string(), "setosa");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How it works: one thread at a time reads the next block of the file and cuts it after a whole record; all threads
//! parse their blocks; the parts are then joined in the order of the file. No result depends on the number of threads.

mod blocks;
mod cells;
mod csv;
mod error;
mod join;
mod labels;
mod layout;
mod libsvm;
mod number;
mod options;
mod sniff;
mod source;
mod table;
mod texts;
mod workers;
mod write;

pub use error::{Error, Problem, Result};
pub use kernelpath::Control;
pub use labels::{LabelRef, Labels};
pub use options::{Base, Column, CsvOptions, Format, Header, LibsvmOptions, Options, Texts, Wanted};
pub use source::Source;
pub use table::{ColumnIndices, Table, TableRows};
pub use write::write_libsvm;

/// Reads a table. `control` can interrupt it.
///
/// Memory is bounded: a file whose table would not fit into [`Options::memory`] is refused on the way, be it the last
/// line of it. So is a packed file that unpacks to more than a thousand times its size, and to more than a megabyte.
pub fn read<'a>(source: impl Into<Source<'a>>, options: &Options, control: &Control) -> Result<Table> {
    let source = source.into();
    let file = source.name();
    workers::read(&source, options, control).map_err(|failure| failure.in_file(&file))
}
