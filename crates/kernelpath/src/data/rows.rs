//! Checked views of the data. Nothing is copied: any strides, either precision.

use faer::{Mat, MatRef};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::data::sparse::{Csr, CsrBuf};
use crate::error::{Error, Result};
use crate::numeric::parallel;

/// A borrowed matrix of rows, in the precision and memory order the caller has.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// Single precision.
    F32(MatRef<'a, f32>),
    /// Double precision.
    F64(MatRef<'a, f64>),
    /// Sparse, in either precision.
    Csr(Csr<'a>),
}

impl<'a> From<MatRef<'a, f32>> for Rows<'a> {
    fn from(x: MatRef<'a, f32>) -> Self {
        Self::F32(x)
    }
}

impl<'a> From<MatRef<'a, f64>> for Rows<'a> {
    fn from(x: MatRef<'a, f64>) -> Self {
        Self::F64(x)
    }
}

impl<'a> From<&'a Mat<f64>> for Rows<'a> {
    fn from(x: &'a Mat<f64>) -> Self {
        Self::F64(x.as_ref())
    }
}

/// What the methods of builders and models take as rows: [`Rows`] and all that becomes them, and a slice of numbers,
/// row after row, with the number of columns.
///
/// ```
/// use kernelpath::IntoRows;
///
/// assert_eq!((&[0.0, 1.0, 2.0, 3.0][..], 2).into_rows()?.nrows(), 2);
/// assert!((&[0.0, 1.0, 2.0][..], 2).into_rows().is_err()); // the last row is not complete
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub trait IntoRows<'a> {
    /// The rows.
    fn into_rows(self) -> Result<Rows<'a>>;
}

impl<'a, T: Into<Rows<'a>>> IntoRows<'a> for T {
    fn into_rows(self) -> Result<Rows<'a>> {
        Ok(self.into())
    }
}

impl<'a> IntoRows<'a> for (&'a [f64], usize) {
    fn into_rows(self) -> Result<Rows<'a>> {
        Rows::from_slice(self.0, self.1)
    }
}

impl<'a> Rows<'a> {
    /// A view of values stored row after row, `columns` numbers per row.
    ///
    /// ```
    /// let x = kernelpath::Rows::from_slice(&[0.0, 1.0, 2.0, 3.0], 2)?;
    /// assert_eq!((x.nrows(), x.ncols()), (2, 2));
    /// # Ok::<(), kernelpath::Error>(())
    /// ```
    pub fn from_slice(values: &'a [f64], columns: usize) -> Result<Self> {
        let rows = values.len().checked_div(columns).unwrap_or(0);
        if rows == 0 {
            return Err(Error::Empty { rows, columns });
        }
        if rows * columns != values.len() {
            return Err(Error::Length {
                what: "the slice",
                got: values.len(),
                expected: rows * columns,
                why: "a multiple of the number of columns",
            });
        }
        Ok(Self::F64(MatRef::from_row_major_slice(values, rows, columns)))
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        match self {
            Self::F32(x) => x.nrows(),
            Self::F64(x) => x.nrows(),
            Self::Csr(x) => x.nrows(),
        }
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        match self {
            Self::F32(x) => x.ncols(),
            Self::F64(x) => x.ncols(),
            Self::Csr(x) => x.ncols(),
        }
    }

    /// Number of entries that take memory.
    pub(crate) fn stored(&self) -> usize {
        if let Self::Csr(x) = self { x.stored() } else { self.nrows() * self.ncols() }
    }

    /// The sparse matrix, if the rows are sparse.
    pub(crate) fn as_csr(&self) -> Option<&Csr<'a>> {
        if let Self::Csr(x) = self { Some(x) } else { None }
    }

    /// One entry, widened; `None` outside of the matrix.
    ///
    /// ```
    /// let x = kernelpath::Rows::from_slice(&[0.0, 1.0, 2.0, 3.0], 2)?;
    /// assert_eq!((x.entry(1, 0), x.entry(2, 0)), (Some(2.0), None));
    /// # Ok::<(), kernelpath::Error>(())
    /// ```
    pub fn entry(&self, i: usize, j: usize) -> Option<f64> {
        (i < self.nrows() && j < self.ncols()).then(|| self.get(i, j))
    }

    /// One entry, widened. It must be there.
    #[inline]
    pub(crate) fn get(&self, i: usize, j: usize) -> f64 {
        match self {
            Self::F32(x) => f64::from(x[(i, j)]),
            Self::F64(x) => x[(i, j)],
            Self::Csr(x) => x.get(i, j),
        }
    }

    /// Calls `visit` with the column and the value of every entry of row `i` that is not 0, columns ascending.
    #[inline(always)]
    pub(crate) fn for_each_nonzero(&self, i: usize, mut visit: impl FnMut(usize, f64)) {
        if let Self::Csr(x) = self {
            x.row(i).filter(|(_, value)| *value != 0.0).for_each(|(j, value)| visit(j, value));
        } else {
            (0..self.ncols()).map(|j| (j, self.get(i, j))).filter(|(_, value)| *value != 0.0).for_each(
                #[inline(always)]
                |(j, value)| visit(j, value),
            );
        }
    }

    /// Copies row `i`, widened and shifted, into `out`.
    pub(crate) fn copy_row(&self, i: usize, shift: &[f64], out: &mut [f64]) {
        match self {
            Self::F32(x) => {
                for (j, (o, s)) in out.iter_mut().zip(shift).enumerate() {
                    *o = f64::from(x[(i, j)]) - s;
                }
            }
            Self::F64(x) => {
                for (j, (o, s)) in out.iter_mut().zip(shift).enumerate() {
                    *o = x[(i, j)] - s;
                }
            }
            Self::Csr(x) => {
                for (j, (o, s)) in out.iter_mut().zip(shift).enumerate() {
                    *o = x.get(i, j) - s;
                }
            }
        }
    }

    /// ‖x − z‖² of row `a` of this matrix and row `b` of `other`.
    pub(crate) fn squared_distance(&self, a: usize, other: &Self, b: usize) -> f64 {
        self.sum_over_differences(a, other, b, |d| d * d)
    }

    /// ‖x − z‖₁ of row `a` of this matrix and row `b` of `other`.
    pub(crate) fn l1_distance(&self, a: usize, other: &Self, b: usize) -> f64 {
        self.sum_over_differences(a, other, b, f64::abs)
    }

    fn sum_over_differences(&self, a: usize, other: &Self, b: usize, of: impl Fn(f64) -> f64) -> f64 {
        match (self, other) {
            (Self::Csr(x), Self::Csr(z)) => sum_in_parts(x.differences(a, z, b).map(of)),
            _ => sum_in_parts((0..self.ncols()).map(|j| of(self.get(a, j) - other.get(b, j)))),
        }
    }

    /// The order of two rows, decided by the first column in which they differ.
    pub(crate) fn compare_rows(&self, a: usize, b: usize) -> Ordering {
        let sign = |d: f64| d.partial_cmp(&0.0).filter(|order| order.is_ne());
        let first = match self {
            Self::Csr(x) => x.differences(a, x, b).find_map(sign),
            _ => (0..self.ncols()).find_map(|j| sign(self.get(a, j) - self.get(b, j))),
        };
        first.unwrap_or(Ordering::Equal)
    }

    /// The sum of `of` over the entries of row `i`, including zeros.
    pub(crate) fn sum_over_row(&self, i: usize, of: impl Fn(f64) -> f64) -> f64 {
        match self {
            Self::Csr(x) => {
                let zeros = x.ncols() - x.row(i).count();
                x.row(i).map(|(_, value)| of(value)).sum::<f64>() + zeros as f64 * of(0.0)
            }
            _ => (0..self.ncols()).map(|j| of(self.get(i, j))).sum(),
        }
    }

    /// Feeds row `i` to `hasher`, in the same way for equal rows.
    pub(crate) fn hash_row(&self, i: usize, hasher: &mut impl Hasher) {
        if let Self::Csr(_) = self {
            // Zeros may be stored or not.
            self.for_each_nonzero(i, |j, value| (j, value.to_bits()).hash(hasher));
        } else {
            // 0.0 and -0.0 are equal but differ in bits: adding 0.0 makes both +0.0.
            (0..self.ncols()).for_each(|j| (self.get(i, j) + 0.0).to_bits().hash(hasher));
        }
    }

    /// A copy of some rows, which is sparse if the rows are.
    pub(crate) fn copy_rows(&self, rows: &[usize]) -> RowsBuf {
        match self {
            Self::Csr(x) => RowsBuf::Csr(CsrBuf::from_rows(x, rows)),
            _ => RowsBuf::Dense(Mat::from_fn(rows.len(), self.ncols(), |i, j| self.get(rows[i], j))),
        }
    }

    /// Fails on the first value that is not finite, and on a matrix without entries. The work is shared out among all
    /// threads of the current pool.
    pub fn check(&self, what: &'static str) -> Result<()> {
        let (rows, columns) = (self.nrows(), self.ncols());
        if rows == 0 || columns == 0 {
            return Err(Error::Empty { rows, columns });
        }
        let first = |count: usize, least: usize, bad: &(dyn Fn(usize) -> Option<Error> + Sync)| {
            parallel::find_first(count, least, bad).map_or(Ok(()), Err)
        };
        // Column by column, if that is the order in memory.
        let by_column = match self {
            Self::Csr(x) => {
                let bad = |row: usize| {
                    let (column, value) = x.row(row).find(|(_, value)| !value.is_finite())?;
                    Some(Error::NotFinite { what, value, row, column })
                };
                return first(rows, 1, &bad);
            }
            Self::F32(x) => x.row_stride().unsigned_abs() < x.col_stride().unsigned_abs(),
            Self::F64(x) => x.row_stride().unsigned_abs() < x.col_stride().unsigned_abs(),
        };
        let (outer, inner) = if by_column { (columns, rows) } else { (rows, columns) };
        let bad = |a: usize| {
            // A sum is finite only if all its terms are: one pass without a branch per entry.
            let at = |b: usize| if by_column { (b, a) } else { (a, b) };
            let sum: f64 = (0..inner).map(|b| self.get(at(b).0, at(b).1) * 0.0).sum();
            if sum == 0.0 {
                return None;
            }
            let b = (0..inner).find(|&b| !self.get(at(b).0, at(b).1).is_finite());
            let (row, column) = at(b.unwrap_or(0));
            Some(Error::NotFinite { what, value: self.get(row, column), row, column })
        };
        first(outer, 1 + 65_536 / inner, &bad)
    }

    /// The median of each column over a sample of some rows: always the same rows, whatever the threads. Shifting by the
    /// medians leaves distances unchanged and saves their digits, and no single number moves them far.
    pub(crate) fn column_medians(&self, rows: &[usize]) -> Vec<f64> {
        let step = rows.len().div_ceil(MEDIAN_OF).max(1);
        let median = |j: usize| {
            let mut column: Vec<f64> = rows.iter().step_by(step).map(|&i| self.get(i, j)).collect();
            let middle = column.len().saturating_sub(1) / 2;
            if column.is_empty() { 0.0 } else { *column.select_nth_unstable_by(middle, f64::total_cmp).1 }
        };
        (0..self.ncols()).map(median).collect()
    }
}

/// Most rows that the median of a column is taken over. It need not be exact: with the exact one, the rows' squared norms
/// would be smaller by about a hundredth.
const MEDIAN_OF: usize = 128;

/// A sum that is taken in parts, so that fewer roundings follow one another.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SumInParts {
    sum: f64,
    part: f64,
    terms: usize,
}

impl SumInParts {
    /// Terms of a part.
    pub const PART: usize = 128;

    /// Adds a term.
    #[inline(always)]
    pub fn add(&mut self, term: f64) {
        self.part += term;
        self.terms += 1;
        if self.terms.is_multiple_of(Self::PART) {
            self.sum += self.part;
            self.part = 0.0;
        }
    }

    /// The sum of all terms so far.
    pub fn total(self) -> f64 {
        self.sum + self.part
    }
}

fn sum_in_parts(terms: impl Iterator<Item = f64>) -> f64 {
    let mut sum = SumInParts::default();
    terms.for_each(|term| sum.add(term));
    sum.total()
}

/// Rows that own their memory.
#[derive(Debug, Clone)]
pub enum RowsBuf {
    /// Dense.
    Dense(Mat<f64>),
    /// Sparse.
    Csr(CsrBuf),
}

impl RowsBuf {
    /// A copy of all rows of `x`, which is sparse if they are.
    pub fn copy_of(x: &Rows) -> Self {
        x.copy_rows(&(0..x.nrows()).collect::<Vec<_>>())
    }

    /// The rows.
    pub fn view(&self) -> Rows<'_> {
        match self {
            Self::Dense(rows) => Rows::F64(rows.as_ref()),
            Self::Csr(rows) => Rows::Csr(rows.view()),
        }
    }
}
