//! Everything that can be wrong with a file, with its place, the offending value and the way out.

use std::fmt::Write as _;
use std::io;

use crate::number::NotNumber;

/// The result of reading.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the readers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened, read or unpacked.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system, or the code that unpacks the file, says.
        source: io::Error,
    },
    /// A line that is wrong.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: Problem,
    },
    /// A file that is wrong as a whole.
    #[error("{file}: {problem}")]
    File {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: Problem,
    },
    /// A table, or a line, that does not fit into memory.
    #[error(
        "{file}: {what} takes more than the {:.1} MB of memory that reading may take: free memory, or read a part of the file",
        *.limit as f64 / 1e6
    )]
    Memory {
        /// The file.
        file: String,
        /// What does not fit.
        what: &'static str,
        /// Bytes that reading may take.
        limit: u64,
    },
    /// A name that means nothing here.
    #[error("unknown {what} {name:?}: known are {}", .known.join(", "))]
    Name {
        /// What is named.
        what: &'static str,
        /// The name.
        name: String,
        /// Every name that has a meaning.
        known: &'static [&'static str],
    },
    /// Threads could not be started, or reading was interrupted.
    #[error(transparent)]
    Library(#[from] kernelpath::Error),
}

/// What is wrong with a line or a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing but blank lines and comments.
    #[error("the file has no rows")]
    Empty,
    /// Bytes that are no text.
    #[error("the line has a NUL byte, so this is no text file: is it UTF-16, or packed in a way that is not known?")]
    Nul,
    /// A label of a LIBSVM file that is no number.
    #[error("the label {label} is {why}: LIBSVM files have one number first in each line")]
    LibsvmLabel {
        /// The label.
        label: String,
        /// Why it is none.
        why: NotNumber,
    },
    /// A LIBSVM line that starts with an entry.
    #[error("the line starts with the entry {entry}, but its label must come first (any number, if it is unknown)")]
    NoLabel {
        /// The entry.
        entry: String,
    },
    /// Several labels for one row.
    #[error("the row has several labels ({labels}), and one is needed: split the file into one for each label")]
    MultiLabel {
        /// The labels.
        labels: String,
    },
    /// Something else than `index:value`.
    #[error("{entry} is no entry: index:value is needed, such as 3:0.5")]
    Entry {
        /// What there is.
        entry: String,
    },
    /// An index that does not rise.
    #[error("index {index} does not rise after {after}")]
    Order {
        /// The index.
        index: u64,
        /// The index before it.
        after: u64,
    },
    /// An index of 0 in a file whose indices count from 1.
    #[error(
        "index 0, but indices count from 1: read the file as one that counts from 0 if its first column is column 0"
    )]
    Zero,
    /// An index that is too large.
    #[error("index {index} is too large: the largest is {largest}{why}")]
    Index {
        /// The index, as it is written.
        index: String,
        /// The largest that there can be.
        largest: u64,
        /// Where that comes from.
        why: &'static str,
    },
    /// A value that is no number.
    #[error("the value of index {index} is {value}, {why}")]
    Value {
        /// The index.
        index: u64,
        /// The value.
        value: String,
        /// Why it is none.
        why: NotNumber,
    },
    /// An entry that names a query.
    #[error(
        "{entry} names the query of a ranking, which no machine here learns: remove these entries, or skip them on request"
    )]
    Query {
        /// The entry.
        entry: String,
    },
    /// A record with too many or too few fields.
    #[error(
        "{fields} fields where {expected} are expected, as in the first record: is the delimiter {delimiter:?} right, and are fields with a delimiter quoted?"
    )]
    Fields {
        /// How many there are.
        fields: usize,
        /// How many the first record has.
        expected: usize,
        /// The delimiter.
        delimiter: char,
    },
    /// A quote that does not enclose a field.
    #[error("{column}: a quote inside a field: quote the whole field, and write the quotes in it twice")]
    Quote {
        /// The column.
        column: String,
    },
    /// A quote that is never closed.
    #[error("{column}: the quote is never closed")]
    OpenQuote {
        /// The column.
        column: String,
    },
    /// A missing value.
    #[error("{column}: the value is missing ({value:?}): fill it in, remove the row, or ignore the column")]
    Missing {
        /// The column.
        column: String,
        /// What stands for it.
        value: String,
    },
    /// A missing label.
    #[error("{column}: the label is missing ({value:?}): fill it in, or remove the row")]
    MissingLabel {
        /// The column.
        column: String,
        /// What stands for it.
        value: String,
    },
    /// A field that is no number.
    #[error("{column}: {value} is {why}: ignore the column, make it the label, or write it as numbers")]
    Number {
        /// The column.
        column: String,
        /// The field.
        value: String,
        /// Why it is none.
        why: NotNumber,
    },
    /// A weight that is no weight.
    #[error("{column}: the weight {value} must be finite and at least 0")]
    Weight {
        /// The column.
        column: String,
        /// The weight.
        value: String,
    },
    /// Text that is not UTF-8.
    #[error("{column}: the text is not UTF-8: save the file in that encoding")]
    Encoding {
        /// The column.
        column: String,
    },
    /// A column that does not exist.
    #[error("there is no column {column}: {there}")]
    NoColumn {
        /// The column that was asked for.
        column: String,
        /// What there is instead.
        there: String,
    },
    /// Columns that a model needs.
    #[error("the file has no column {}, which the model needs{there}", .names.join(", "))]
    Needed {
        /// The names of the columns.
        names: Vec<String>,
        /// What there is instead.
        there: String,
    },
    /// A packed file that is much larger than what it is packed into.
    #[error(
        "the file unpacks to more than {times} times its size, as files do that are made to fill a disk or a memory: unpack it first, if you know where it comes from"
    )]
    Bomb {
        /// How many times.
        times: u64,
    },
    /// A comma that would be two things.
    #[error("the comma cannot be both the delimiter and the point of numbers: name another delimiter")]
    Comma,
    /// A name that several columns have.
    #[error("the header has {name:?} twice: name each column differently, or read the file without a header")]
    Twice {
        /// The name.
        name: String,
    },
    /// A column that was asked for in two roles.
    #[error("{column} cannot be both {one} and {other}")]
    Roles {
        /// The column.
        column: String,
        /// One role.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// No column of features.
    #[error("no column is left for the features: {columns} in all, with the delimiter {delimiter:?}")]
    NoFeatures {
        /// How many columns there are.
        columns: usize,
        /// The delimiter.
        delimiter: char,
    },
    /// A delimiter that cannot be one.
    #[error(
        "{delimiter:?} cannot be the delimiter: use a comma, a semicolon, a tab, or another ASCII character that no number has"
    )]
    Delimiter {
        /// The delimiter.
        delimiter: char,
    },
}

/// Longest piece of a file that a message quotes, in characters: enough to find it, and a line of text at most.
const QUOTED: usize = 40;

/// A piece of a file for a message: on one line, and not longer than [`QUOTED`].
pub(crate) fn shown(piece: &[u8]) -> String {
    // A character has 4 bytes at most.
    let start = String::from_utf8_lossy(&piece[..piece.len().min(4 * QUOTED)]);
    let mut out = String::new();
    for c in start.chars().take(QUOTED) {
        if c.is_control() {
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    if start.chars().nth(QUOTED).is_some() {
        out.push('…');
    }
    out
}

/// A name from a file for a message, not longer than [`QUOTED`].
pub(crate) fn short(name: &str) -> String {
    let mut out: String = name.chars().take(QUOTED).collect();
    if out.len() < name.len() {
        out.push('…');
    }
    out
}

/// What stops the reading of a file whose name is not known where it happens.
#[derive(Debug)]
pub(crate) enum Failure {
    Io(io::Error),
    Line { line: usize, problem: Problem },
    File(Problem),
    Memory { what: &'static str, limit: u64 },
    Library(kernelpath::Error),
}

impl Failure {
    pub fn in_file(self, file: &str) -> Error {
        let file = file.to_string();
        match self {
            Self::Io(source) => Error::Io { file, source },
            Self::Line { line, problem } => Error::Line { file, line, problem },
            Self::File(problem) => Error::File { file, problem },
            Self::Memory { what, limit } => Error::Memory { file, what, limit },
            Self::Library(error) => Error::Library(error),
        }
    }
}

impl Failure {
    /// The failure, if its line was counted after so many others.
    pub fn after(self, lines: usize) -> Self {
        match self {
            Self::Line { line, problem } => Self::Line { line: lines + line, problem },
            failure => failure,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // What unpacks a file can only speak in errors of the system.
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Problem>()) {
            Some(problem) => Self::File(problem.clone()),
            None => Self::Io(error),
        }
    }
}

impl From<kernelpath::Error> for Failure {
    fn from(error: kernelpath::Error) -> Self {
        Self::Library(error)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::File(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_files_are_short_and_on_one_line() {
        assert_eq!(shown(b"a\tb\n\xff"), "a\\tb\\n\u{fffd}");
        assert_eq!(shown(&[b'x'; 1000]), format!("{}…", "x".repeat(QUOTED)));
        assert_eq!(shown("é".repeat(QUOTED).as_bytes()), "é".repeat(QUOTED));
        assert_eq!(shown(b""), "");
    }
}
