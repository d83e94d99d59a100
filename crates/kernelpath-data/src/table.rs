//! What is read: rows, labels, weights, names.

use faer::MatRef;
use kernelpath::{Csr, Rows};

use crate::labels::Labels;
use crate::options::Format;

/// A file of data.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The features of the rows.
    pub rows: TableRows,
    /// Names of the features, if a header gives them.
    pub columns: Option<Vec<String>>,
    /// One label a row; `None` if the file has none.
    pub labels: Option<Labels>,
    /// Name of the column of the labels, if a header gives it.
    pub label_name: Option<String>,
    /// One weight a row, if a column of them was asked for.
    pub weights: Option<Vec<f64>>,
    /// The lists of texts of the features that are texts, if these were asked for: one entry for each feature.
    pub texts: Vec<Option<Vec<String>>>,
    /// Names of the columns that were left out because a model does not need them.
    pub unneeded: Vec<String>,
    /// The format that was read.
    pub format: Format,
}

/// The features of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableRows {
    /// Row after row, `columns` numbers each.
    Dense {
        /// The numbers.
        values: Vec<f64>,
        /// How many rows.
        rows: usize,
        /// How many numbers a row has.
        columns: usize,
    },
    /// Row i has `values[k]` in column `indices[k]` for k from `indptr[i]` to `indptr[i + 1]`, columns ascending.
    Sparse {
        /// Where rows start and end.
        indptr: Vec<usize>,
        /// Columns, counted from 0.
        indices: ColumnIndices,
        /// Values.
        values: Vec<f64>,
        /// How many columns there are.
        columns: usize,
    },
}

/// Columns of a sparse table: 32 bits each where that is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnIndices {
    /// All below 2³¹.
    I32(Vec<i32>),
    /// At least one is not.
    I64(Vec<i64>),
}

impl TableRows {
    /// The rows, as the library reads them. Fails only if a caller has changed the parts so that they do not fit
    /// together.
    pub fn view(&self) -> kernelpath::Result<Rows<'_>> {
        match self {
            Self::Dense { values, rows, columns } => {
                if rows.checked_mul(*columns) != Some(values.len()) {
                    let (got, expected) = (values.len(), rows.saturating_mul(*columns));
                    let (what, why) = ("the vector of values", "rows times columns");
                    return Err(kernelpath::Error::Length { what, got, expected, why });
                }
                Ok(Rows::F64(MatRef::from_row_major_slice(values, *rows, *columns)))
            }
            Self::Sparse { indptr, indices: ColumnIndices::I32(indices), values, columns } => {
                Csr::new(*columns, &indptr[..], &indices[..], &values[..]).map(Rows::Csr)
            }
            Self::Sparse { indptr, indices: ColumnIndices::I64(indices), values, columns } => {
                Csr::new(*columns, &indptr[..], &indices[..], &values[..]).map(Rows::Csr)
            }
        }
    }

    /// Leaves out all columns from `width` on. Dense rows, which are as wide as they were asked for, stay.
    #[must_use]
    pub fn narrowed(self, width: usize) -> Self {
        match self {
            Self::Sparse { mut indptr, indices, mut values, columns } if columns > width => {
                let indices = match indices {
                    ColumnIndices::I32(mut indices) => {
                        keep(&mut indptr, &mut indices, &mut values, |column| (column as usize) < width);
                        ColumnIndices::I32(indices)
                    }
                    ColumnIndices::I64(mut indices) => {
                        keep(&mut indptr, &mut indices, &mut values, |column| (column as usize) < width);
                        ColumnIndices::I64(indices)
                    }
                };
                Self::Sparse { indptr, indices, values, columns: width }
            }
            rows => rows,
        }
    }

    /// How many rows there are.
    pub fn nrows(&self) -> usize {
        match self {
            Self::Dense { rows, .. } => *rows,
            Self::Sparse { indptr, .. } => indptr.len().saturating_sub(1),
        }
    }

    /// How many columns there are.
    pub fn ncols(&self) -> usize {
        match self {
            Self::Dense { columns, .. } | Self::Sparse { columns, .. } => *columns,
        }
    }
}

/// Keeps the entries of these columns, in place.
fn keep<I: Copy>(indptr: &mut [usize], indices: &mut Vec<I>, values: &mut Vec<f64>, is_kept: impl Fn(I) -> bool) {
    let (mut start, mut kept) = (0, 0);
    for end in indptr.iter_mut().skip(1) {
        for k in start..*end {
            if is_kept(indices[k]) {
                (indices[kept], values[kept]) = (indices[k], values[k]);
                kept += 1;
            }
        }
        start = *end;
        *end = kept;
    }
    indices.truncate(kept);
    values.truncate(kept);
}
