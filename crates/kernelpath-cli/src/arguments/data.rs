//! How a file of data is read.

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use kernelpath_data::{Base, Column, CsvOptions, Format, Header, LibsvmOptions, Options};

use crate::failure::Failure;

/// The column of the labels of a CSV file, unless another is named.
const LABEL: &str = "last";

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
    /// Column of the labels of a CSV file: its name, its place from 0 on, or first or last (default: last).
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub label: Option<String>,
    /// Column of the weights of the rows of a CSV file.
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub weight: Option<String>,
    /// Columns of a CSV file that are not read, with commas between them.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', allow_hyphen_values = true)]
    pub ignore: Vec<String>,
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
        let column = |name: &String| Column::Name(name.clone());
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
            label: Some(self.label.as_ref().map_or_else(|| Column::from(LABEL), column)),
            weight: self.weight.as_ref().map(column),
            ignore: self.ignore.iter().map(column).collect(),
            // A model predicts files with and without labels, unless the column is named.
            features: width.filter(|_| self.label.is_none()),
        };
        let base = if self.zero_based { Base::Zero } else { Base::One };
        let libsvm = LibsvmOptions { columns: width, base, ignore_qid: self.ignore_qid };
        Ok(Options { format: self.format.parse()?, threads, memory: None, libsvm, csv })
    }
}
