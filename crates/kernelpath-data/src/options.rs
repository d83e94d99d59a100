//! What a caller can ask of the readers.

use std::str::FromStr;

use crate::error::{Error, Result};

/// How a file is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The format of the file.
    pub format: Format,
    /// How many threads parse; 0 is one per core that the process may use.
    pub threads: usize,
    /// Bytes of memory that reading may take; `None` is what the process has available.
    pub memory: Option<u64>,
    /// What only LIBSVM files need.
    pub libsvm: LibsvmOptions,
    /// What only CSV and TSV files need.
    pub csv: CsvOptions,
}

/// A format of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// The one that the content looks like.
    #[default]
    Auto,
    /// Sparse rows: `label index:value index:value … # comment`.
    Libsvm,
    /// Fields between delimiters, quoted as in RFC 4180.
    Csv,
    /// CSV with tabs.
    Tsv,
}

impl Format {
    /// Every name, in the order of the variants.
    pub const NAMES: [&'static str; 4] = ["auto", "libsvm", "csv", "tsv"];
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "libsvm" => Ok(Self::Libsvm),
            "csv" => Ok(Self::Csv),
            "tsv" => Ok(Self::Tsv),
            _ => Err(Error::Name { what: "format", name: name.into(), known: &Self::NAMES }),
        }
    }
}

/// What only LIBSVM files need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibsvmOptions {
    /// Number of columns; `None` is the largest index of the file.
    pub columns: Option<usize>,
    /// The index of the first column.
    pub base: Base,
    /// Whether `qid:` entries, which name the query of a ranking, are skipped. They are an error otherwise, since no
    /// machine of this library learns to rank.
    pub ignore_qid: bool,
}

/// The index of the first column of a LIBSVM file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Base {
    /// Indices count from 1, as LIBSVM has it; index 0 is an error.
    #[default]
    One,
    /// Indices count from 0.
    Zero,
    /// Indices count from 0 if the file has an index 0, from 1 if not.
    Auto,
}

/// What only CSV and TSV files need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// Whether the first record names the columns.
    pub header: Header,
    /// The byte between fields; `None` is the one of `,`, `;` and tab that the first records have.
    pub delimiter: Option<u8>,
    /// The column of the labels; `None` if the file has none.
    pub label: Option<Column>,
    /// The column of the weights of the rows; they must be finite and at least 0.
    pub weight: Option<Column>,
    /// Columns that are not read.
    pub ignore: Vec<Column>,
    /// How many features a file without labels has. A file with exactly that many columns, apart from the weight and
    /// the ignored ones, is read as one without labels although `label` is given: a model predicts files of both kinds.
    pub features: Option<usize>,
    /// The columns that a model needs, to be found by their names.
    pub wanted: Option<Wanted>,
    /// Whether numbers have a comma where others have a point, in labels and weights, too. Points are then refused: in
    /// such files they stand between thousands.
    pub decimal_comma: bool,
    /// Whether a missing value becomes NaN. It is an error otherwise.
    pub missing_as_nan: bool,
    /// What becomes of features that are texts.
    pub texts: Texts,
}

/// The features that a model needs. In a file whose header has names, they are taken by these, wherever they stand;
/// a file without names must have them in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The names of the features, in the order of the model; no two are equal.
    pub features: Vec<String>,
    /// The name that the column of the labels had in training. If the file has it, and no other label is asked for,
    /// that is the label.
    pub label: Option<String>,
}

/// What becomes of features that are texts. The numbers of such a column are the places of its texts in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Texts {
    /// They are an error.
    #[default]
    Refused,
    /// A column with a field that is neither a number nor missing is one of texts.
    Found,
    /// These columns of features are texts, and these are their lists; a text that is not in the list becomes −1. With
    /// names the columns are those of [`Wanted`], in its order.
    Known(Vec<Option<Vec<String>>>),
}

/// Whether the first record of a CSV file names the columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Header {
    /// It does if it has text where the second record has a number, or nothing but texts.
    #[default]
    Auto,
    /// It does.
    Yes,
    /// It is data.
    No,
}

/// A column of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// By its place: 0 is the first, -1 the last.
    Place(i64),
    /// By its name. If the header has no such name, `first`, `last` and whole numbers are places.
    Name(String),
    /// By its name, which is never a place.
    Exactly(String),
}

impl From<i64> for Column {
    fn from(place: i64) -> Self {
        Self::Place(place)
    }
}

impl From<&str> for Column {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}
