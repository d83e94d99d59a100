//! How a file of data is read.

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use kernelpath_data::{Base, Column, CsvOptions, Format, Header, LibsvmOptions, Options};

use crate::arguments::list::listed;
use crate::failure::Failure;

/// Names of columns, each with whether it stood in quotes.
#[derive(Debug, Clone)]
pub(crate) struct Columns(pub Vec<(String, bool)>);

impl std::str::FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        listed(text, "--ignore").map(Self).map_err(|failure| failure.message)
    }
}

/// The column of the labels of a CSV file, unless another is named: the last one, whatever the columns are called.
const LABEL: Column = Column::Place(-1);

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "How the data is read")]
pub(crate) struct DataArguments {
    /// Format of the file; auto looks at its content. Files packed by gzip, bzip2 or xz are unpacked.
    #[arg(long, default_value = "auto", value_parser = PossibleValuesParser::new(Format::NAMES))]
    pub format: String,
    /// Whether the first line of a CSV file names the columns.
    #[arg(long, value_enum, default_value_t = HeaderChoice::Auto)]
    pub header: HeaderChoice,
    /// Character between the fields of a CSV file (default: the one of comma, semicolon and tab that is there).
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<char>,
    /// Column of the labels of a CSV file: its name, its place from 0 on, or first or last (default: last). A name in
    /// double quotes is never a place.
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub label: Option<String>,
    /// Column of the weights of the rows of a CSV file.
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub weight: Option<String>,
    /// Columns of a CSV file that are not read, with commas between them. A name with a comma stands in double quotes.
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true)]
    pub ignore: Vec<Columns>,
    /// Character before the decimals of a CSV file: a point or a comma (default: a point, or that of the training data).
    #[arg(long, value_name = ". or ,", value_parser = [".", ","])]
    pub decimal: Option<String>,
    /// The columns of a LIBSVM file count from 0, not from 1.
    #[arg(long)]
    pub zero_based: bool,
    /// Skip the qid: entries of a LIBSVM file.
    #[arg(long)]
    pub ignore_qid: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeaderChoice {
    Auto,
    Yes,
    No,
}

impl DataArguments {
    /// The first option that only CSV files have a use for, if one is given.
    pub fn of_csv(&self) -> Option<&'static str> {
        let given = [
            ("--header", self.header != HeaderChoice::Auto),
            ("--delimiter", self.delimiter.is_some()),
            ("--label", self.label.is_some()),
            ("--weight", self.weight.is_some()),
            ("--ignore", !self.ignore.is_empty()),
            ("--decimal", self.decimal.is_some()),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
    }

    /// The first option that only LIBSVM files have a use for, if one is given.
    pub fn of_libsvm(&self) -> Option<&'static str> {
        let given = [("--zero-based", self.zero_based), ("--ignore-qid", self.ignore_qid)];
        given.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
    }

    /// What the reader is asked for. `width` is the number of features, if a model says so.
    pub fn options(&self, threads: usize, width: Option<usize>) -> Result<Options, Failure> {
        let column = |(name, is_quoted): (String, bool)| {
            if is_quoted { Column::Exactly(name) } else { Column::Name(name) }
        };
        // One column, whose name may have commas.
        let one = |option: &str, text: &String| match listed(text, option)?.as_slice() {
            [(name, true)] => Ok(Column::Exactly(name.clone())),
            _ => Ok::<_, Failure>(Column::Name(text.clone())),
        };
        let delimiter = match self.delimiter {
            None => None,
            Some(c) => match u8::try_from(c) {
                Ok(byte) if c.is_ascii() => Some(byte),
                _ => return Err(Failure::input(format!("--delimiter {c:?}: it must be one ASCII character"))),
            },
        };
        let csv = CsvOptions {
            header: match self.header {
                HeaderChoice::Auto => Header::Auto,
                HeaderChoice::Yes => Header::Yes,
                HeaderChoice::No => Header::No,
            },
            delimiter,
            label: Some(self.label.as_ref().map_or(Ok(LABEL), |text| one("--label", text))?),
            weight: self.weight.as_ref().map(|text| one("--weight", text)).transpose()?,
            ignore: self.ignore.iter().flat_map(|Columns(columns)| columns.clone()).map(column).collect(),
            decimal_comma: self.decimal.as_deref() == Some(","),
            // A model predicts files with and without labels, unless the column is named.
            features: width.filter(|_| self.label.is_none()),
            ..CsvOptions::default()
        };
        let base = if self.zero_based { Base::Zero } else { Base::One };
        let libsvm = LibsvmOptions { columns: width, base, ignore_qid: self.ignore_qid };
        Ok(Options { format: self.format.parse()?, threads, memory: None, libsvm, csv })
    }
}
