//! How the columns of a table become the features of a model: numbers stay, texts become one column for each of their
//! values, missing values are filled in.

use faer::Mat;

use crate::data::rows::{Rows, RowsBuf};
use crate::error::{Error, Result, named};
use crate::numeric::memory::{self, available_memory};

/// What becomes of missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// They are an error.
    #[default]
    Error,
    /// Rows with one are left out of training, and are not predicted.
    Drop,
    /// The mean of the column takes their place; of a text, the share of each of its values.
    Mean,
}

impl Missing {
    /// Every name, in the order of the variants.
    pub const NAMES: [&'static str; 3] = ["error", "drop", "mean"];

    /// The one with this name.
    pub fn from_name(name: &str) -> Result<Self> {
        named("rule of missing values", name, &Self::NAMES, &[Self::Error, Self::Drop, Self::Mean])
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableColumn {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// If it holds texts: its values in training, in rising order. Each becomes a feature that is 1 where the column has
    /// it and 0 elsewhere; for a text that training has not seen all of them are 0.
    pub texts: Option<Vec<String>>,
    /// What takes the place of a missing value: a number for each feature of the column. Empty: nothing does.
    pub fill: Vec<f64>,
}

impl TableColumn {
    /// How many features the column becomes.
    pub fn features(&self) -> usize {
        self.texts.as_ref().map_or(1, Vec::len)
    }

    /// The number that stands for a text: its place, or −1 if training has not seen it.
    fn place(&self, text: &str) -> Option<f64> {
        let texts = self.texts.as_ref()?;
        Some(texts.binary_search_by(|known| known.as_str().cmp(text)).map_or(-1.0, |place| place as f64))
    }
}

/// A cell of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RawCell<'a> {
    /// A number.
    Number(f64),
    /// A text.
    Text(&'a str),
    /// Nothing.
    Missing,
}

/// How a table is read, and how its columns become features.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Encoding {
    /// The columns, in the order of training. Empty: they are the features.
    pub columns: Vec<TableColumn>,
    /// What becomes of missing values.
    pub missing: Missing,
    /// Whether decimals have a comma in the file.
    pub decimal_comma: bool,
    /// The name of the column of the labels, if it has one.
    pub label: Option<String>,
}

impl Encoding {
    /// Whether the columns of the table are the features.
    pub fn is_plain(&self) -> bool {
        self.columns.is_empty()
    }

    /// The columns for rows `x`, in which NaN is missing and texts are their places in `texts`. `weights` count rows.
    pub fn columns_of(
        x: &Rows,
        names: Option<&[String]>,
        texts: Vec<Option<Vec<String>>>,
        weights: Option<&[f64]>,
        missing: Missing,
    ) -> Result<Vec<TableColumn>> {
        let mut texts = texts;
        texts.resize(x.ncols(), None);
        if missing != Missing::Mean && texts.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        let mut columns = Vec::with_capacity(texts.len());
        for (j, texts) in texts.into_iter().enumerate() {
            let name = names.and_then(|names| names.get(j)).cloned();
            let mut column = TableColumn { name, texts, fill: Vec::new() };
            if missing == Missing::Mean {
                column.fill = means(x, j, &column, weights)?;
            }
            columns.push(column);
        }
        Ok(columns)
    }

    /// How many features the columns become; `None` if they are the features.
    pub fn features(&self) -> Option<usize> {
        (!self.is_plain()).then(|| self.columns.iter().map(TableColumn::features).sum())
    }

    /// The names of the features: that of a column, or `column=value`.
    pub fn feature_names(&self) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for column in &self.columns {
            let name = column.name.as_ref()?;
            match &column.texts {
                None => names.push(name.clone()),
                Some(texts) => names.extend(texts.iter().map(|text| format!("{name}={text}"))),
            }
        }
        (!self.is_plain()).then_some(names)
    }

    /// The features of rows in which NaN is missing and texts are their places, −1 for those that are not known.
    pub fn apply(&self, x: &Rows) -> Result<RowsBuf> {
        let Some(width) = self.features() else { return Ok(RowsBuf::copy_of(x)) };
        if x.ncols() != self.columns.len() {
            return Err(Error::Features { got: x.ncols(), expected: self.columns.len() });
        }
        let n = x.nrows();
        let need = (n as u64).saturating_mul(width as u64).saturating_mul(8);
        if available_memory().is_some_and(|available| need > available) {
            let most = self.columns.iter().max_by_key(|column| column.features());
            let name = most.and_then(|column| column.name.clone()).unwrap_or_default();
            let count = most.map_or(0, TableColumn::features);
            let problem = format!(
                "the features of {n} rows take {} MB; column {name:?} alone has {count} different texts: leave it out",
                need >> 20
            );
            return Err(Error::Setting { call: "encoding".into(), problem });
        }
        let mut out: Mat<f64> = memory::matrix(n, width, "the features of the table", |_, _| 0.0)?;
        let mut start = 0;
        for (j, column) in self.columns.iter().enumerate() {
            for i in 0..n {
                let value = x.get(i, j);
                if value.is_nan() {
                    if column.fill.is_empty() {
                        return Err(Error::NotFinite { what: "X", value, row: i, column: j });
                    }
                    column.fill.iter().enumerate().for_each(|(k, fill)| out[(i, start + k)] = *fill);
                } else if let Some(texts) = &column.texts {
                    if value >= 0.0 && (value as usize) < texts.len() {
                        out[(i, start + value as usize)] = 1.0;
                    }
                } else {
                    out[(i, start)] = value;
                }
            }
            start += column.features();
        }
        Ok(RowsBuf::Dense(out))
    }

    /// The features of rows of cells.
    pub fn rows(&self, rows: &[Vec<RawCell<'_>>]) -> Result<RowsBuf> {
        let width = if self.is_plain() { rows.first().map_or(0, Vec::len) } else { self.columns.len() };
        let mut raw: Mat<f64> = memory::matrix(rows.len(), width, "the table", |_, _| 0.0)?;
        for (i, row) in rows.iter().enumerate() {
            if row.len() != width {
                return Err(Error::Features { got: row.len(), expected: width });
            }
            for (j, cell) in row.iter().enumerate() {
                let column = self.columns.get(j);
                raw[(i, j)] = match *cell {
                    RawCell::Missing if column.is_none_or(|column| column.fill.is_empty()) => {
                        return Err(Error::NotFinite { what: "X", value: f64::NAN, row: i, column: j });
                    }
                    RawCell::Missing => f64::NAN,
                    RawCell::Text(text) => column.and_then(|column| column.place(text)).ok_or_else(|| {
                        let problem = format!("the model has numbers in column {j}, and row {i} has the text {text:?}");
                        Error::Setting { call: "encoding".into(), problem }
                    })?,
                    // A number in a column of texts is the text that it is written as.
                    RawCell::Number(value) => match column.filter(|column| column.texts.is_some()) {
                        Some(column) => column.place(&value.to_string()).unwrap_or(value),
                        None => value,
                    },
                };
            }
        }
        self.apply(&Rows::from(&raw))
    }
}

/// The mean of each feature of a column over the rows that have a value, each counted by its weight.
fn means(x: &Rows, j: usize, column: &TableColumn, weights: Option<&[f64]>) -> Result<Vec<f64>> {
    let mut means = vec![0.0; column.features()];
    let mut total = 0.0;
    for i in 0..x.nrows() {
        let (value, weight) = (x.get(i, j), weights.map_or(1.0, |weights| weights[i]));
        if value.is_nan() || weight == 0.0 {
            continue;
        }
        total += weight;
        // A running mean does not overflow where a sum would.
        let share = weight / total;
        match &column.texts {
            None => means[0] += (value - means[0]) * share,
            Some(_) => {
                for (k, mean) in means.iter_mut().enumerate() {
                    *mean += (f64::from(u8::from(value == k as f64)) - *mean) * share;
                }
            }
        }
    }
    if total > 0.0 {
        return Ok(means);
    }
    let called = column.name.as_ref().map_or_else(|| format!("column {j}"), |name| format!("column {name:?}"));
    let problem = format!("{called} has no value in any row that counts, so it has no mean; ignore it");
    Err(Error::Setting { call: "encoding".into(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colours() -> Vec<String> {
        vec!["blue".into(), "red".into()]
    }

    #[test]
    fn texts_become_columns_and_missing_values_means() {
        let nan = f64::NAN;
        let raw = [1.0, 0.0, nan, 1.0, 5.0, 1.0, 3.0, nan];
        let x = Rows::from_slice(&raw, 2).unwrap();
        let names = ["size".to_string(), "colour".to_string()];
        let columns = Encoding::columns_of(
            &x,
            Some(&names),
            vec![None, Some(colours())],
            Some(&[1.0, 1.0, 2.0, 0.0]),
            Missing::Mean,
        );
        let encoding = Encoding { columns: columns.unwrap(), missing: Missing::Mean, ..Encoding::default() };
        assert_eq!(encoding.feature_names().unwrap(), ["size", "colour=blue", "colour=red"]);
        let mean = (1.0 + 2.0 * 5.0) / 3.0;
        let close = |found: &RowsBuf, expected: &[[f64; 3]]| {
            for (i, row) in expected.iter().enumerate() {
                for (j, value) in row.iter().enumerate() {
                    assert!((found.view().get(i, j) - value).abs() < 1e-15, "{i} {j}");
                }
            }
        };
        close(&encoding.apply(&x).unwrap(), &[[1.0, 1.0, 0.0], [mean, 0.0, 1.0], [5.0, 0.0, 1.0], [3.0, 0.25, 0.75]]);
        let cells = [vec![RawCell::Missing, RawCell::Text("red")], vec![RawCell::Number(2.0), RawCell::Text("green")]];
        close(&encoding.rows(&cells).unwrap(), &[[mean, 0.0, 1.0], [2.0, 0.0, 0.0]]);
        assert!(encoding.rows(&[vec![RawCell::Text("red"), RawCell::Missing]]).is_err());
        assert!(encoding.rows(&[vec![RawCell::Missing]]).is_err());
    }

    #[test]
    fn what_is_missing_is_refused_unless_it_is_filled() {
        let x = [1.0, f64::NAN];
        let x = Rows::from_slice(&x, 1).unwrap();
        let columns = vec![TableColumn { texts: Some(colours()), ..TableColumn::default() }];
        let encoding = Encoding { columns, ..Encoding::default() };
        assert!(matches!(encoding.apply(&x), Err(Error::NotFinite { row: 1, column: 0, .. })));
        assert!(Encoding::columns_of(&x, None, Vec::new(), None, Missing::Drop).unwrap().is_empty());
        let nothing = [f64::NAN];
        let nothing = Rows::from_slice(&nothing, 1).unwrap();
        assert!(Encoding::columns_of(&nothing, None, Vec::new(), None, Missing::Mean).is_err());
    }
}
