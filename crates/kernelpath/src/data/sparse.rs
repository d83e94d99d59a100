//! Sparse rows, read where they lie, and sums over the columns that two blocks of rows have in common.

use crate::data::rows::{Rows, SumInParts};
use crate::error::{Error, Result};
use crate::numeric::simd::vectorise;

/// The integers of a [`Csr`], in the type that the caller has.
#[derive(Debug, Clone, Copy)]
pub enum Indices<'a> {
    /// 32 bits.
    I32(&'a [i32]),
    /// 64 bits.
    I64(&'a [i64]),
    /// The machine's own.
    Usize(&'a [usize]),
}

impl<'a> From<&'a [i32]> for Indices<'a> {
    fn from(values: &'a [i32]) -> Self {
        Self::I32(values)
    }
}

impl<'a> From<&'a [i64]> for Indices<'a> {
    fn from(values: &'a [i64]) -> Self {
        Self::I64(values)
    }
}

impl<'a> From<&'a [usize]> for Indices<'a> {
    fn from(values: &'a [usize]) -> Self {
        Self::Usize(values)
    }
}

impl Indices<'_> {
    fn len(&self) -> usize {
        match self {
            Self::I32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::Usize(values) => values.len(),
        }
    }

    /// The k-th integer. A negative number becomes one that is too large to be in range.
    #[inline(always)]
    fn get(&self, k: usize) -> usize {
        match self {
            Self::I32(values) => values[k] as usize,
            Self::I64(values) => values[k] as usize,
            Self::Usize(values) => values[k],
        }
    }

    /// The k-th integer as the caller wrote it, for messages.
    fn shown(&self, k: usize) -> String {
        match self {
            Self::I32(values) => values[k].to_string(),
            Self::I64(values) => values[k].to_string(),
            Self::Usize(values) => values[k].to_string(),
        }
    }
}

/// The stored values of a [`Csr`], in the precision that the caller has.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision.
    F64(&'a [f64]),
}

impl<'a> From<&'a [f32]> for Values<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a [f64]> for Values<'a> {
    fn from(values: &'a [f64]) -> Self {
        Self::F64(values)
    }
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    #[inline(always)]
    fn get(&self, k: usize) -> f64 {
        match self {
            Self::F32(values) => f64::from(values[k]),
            Self::F64(values) => values[k],
        }
    }
}

/// A borrowed sparse matrix in compressed rows: row i has `values[k]` in column `indices[k]` for k from
/// `indptr[i]` to `indptr[i + 1]`, columns ascending, and 0 elsewhere.
///
/// ```
/// use kernelpath::{Classifier, Csr, Kernel};
///
/// // Two words, of which each text has one; the label says which.
/// let indptr: Vec<usize> = (0..=20).collect();
/// let indices: Vec<usize> = (0..20).map(|i| if i % 2 == 0 { 7 } else { 400_000 }).collect();
/// let counts: Vec<f64> = (0..20).map(|i| 1.0 + f64::from(i % 3)).collect();
/// let x = Csr::new(1_000_000, &indptr[..], &indices[..], &counts[..])?;
/// let y: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
///
/// let svc = Classifier::svm().kernel(Kernel::linear()).cs([1.0, 10.0]).fit(x, &y)?;
/// assert_eq!(svc.predict(x)?, y);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Csr<'a> {
    columns: usize,
    indptr: Indices<'a>,
    indices: Indices<'a>,
    values: Values<'a>,
}

impl<'a> Csr<'a> {
    /// Checks the structure. Whether the values are finite is checked later, as for all data.
    pub fn new(
        columns: usize,
        indptr: impl Into<Indices<'a>>,
        indices: impl Into<Indices<'a>>,
        values: impl Into<Values<'a>>,
    ) -> Result<Self> {
        let x = Self { columns, indptr: indptr.into(), indices: indices.into(), values: values.into() };
        x.check_structure().map_err(|problem| Error::Sparse { problem })?;
        Ok(x)
    }

    fn check_structure(&self) -> std::result::Result<(), String> {
        let Self { columns, indptr, indices, values } = self;
        if indptr.len() == 0 {
            return Err("indptr is empty, but it has one entry more than there are rows".into());
        }
        if indices.len() != values.len() {
            return Err(format!("{} column indices for {} values", indices.len(), values.len()));
        }
        if indptr.get(0) != 0 {
            return Err(format!("indptr starts with {}, not 0", indptr.shown(0)));
        }
        for i in 0..self.nrows() {
            let (start, end) = (indptr.get(i), indptr.get(i + 1));
            if start > end || end > indices.len() {
                let (start, end) = (indptr.shown(i), indptr.shown(i + 1));
                return Err(format!("row {i} goes from {start} to {end} of {} entries (indptr)", indices.len()));
            }
            for k in start..end {
                if indices.get(k) >= *columns {
                    let index = indices.shown(k);
                    return Err(format!("row {i} has column index {index}, out of range for {columns} columns"));
                }
                if k > start && indices.get(k - 1) >= indices.get(k) {
                    let (before, index) = (indices.get(k - 1), indices.get(k));
                    return Err(format!(
                        "row {i} has column index {index} after {before}: sort the indices and add up duplicates"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.columns
    }

    /// Number of stored entries.
    pub(crate) fn stored(&self) -> usize {
        self.values.len()
    }

    /// The stored entries of row `i`: columns, ascending, and values. There are none beyond the last row.
    #[inline(always)]
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + use<'a> {
        let (indices, values) = (self.indices, self.values);
        let stored = if i < self.nrows() { self.indptr.get(i)..self.indptr.get(i + 1) } else { 0..0 };
        stored.map(move |k| (indices.get(k), values.get(k)))
    }

    /// One entry, which must be there.
    pub(crate) fn get(&self, i: usize, j: usize) -> f64 {
        let (mut low, mut high) = (self.indptr.get(i), self.indptr.get(i + 1));
        while low < high {
            let middle = low.midpoint(high);
            match self.indices.get(middle).cmp(&j) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return self.values.get(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        0.0
    }

    /// The rows with each column multiplied by its factor.
    pub(crate) fn scaled(&self, factor: &[f64]) -> CsrBuf {
        let mut scaled = CsrBuf::from_rows(self, &(0..self.nrows()).collect::<Vec<_>>());
        for (column, value) in scaled.indices.iter().zip(&mut scaled.values) {
            *value *= factor[*column];
        }
        scaled
    }

    /// xₖ − zₖ, columns ascending, for every column k in which row `a` of this matrix or row `b` of `other` has an
    /// entry.
    pub(crate) fn differences(&self, a: usize, other: &Self, b: usize) -> impl Iterator<Item = f64> {
        let (mut left, mut right) = (self.row(a).peekable(), other.row(b).peekable());
        std::iter::from_fn(move || {
            let column = left.peek().into_iter().chain(right.peek()).map(|&(column, _)| column).min()?;
            let at_column = |entry: &(usize, f64)| entry.0 == column;
            let x = left.next_if(at_column).map_or(0.0, |(_, value)| value);
            let z = right.next_if(at_column).map_or(0.0, |(_, value)| value);
            Some(x - z)
        })
    }
}

impl<'a> From<Csr<'a>> for Rows<'a> {
    fn from(x: Csr<'a>) -> Self {
        Self::Csr(x)
    }
}

/// Some rows of a [`Csr`], copied.
#[derive(Debug, Clone)]
pub struct CsrBuf {
    columns: usize,
    indptr: Vec<usize>,
    indices: Vec<usize>,
    values: Vec<f64>,
}

impl CsrBuf {
    pub(crate) fn from_rows(x: &Csr, rows: &[usize]) -> Self {
        let mut copy = Self { columns: x.columns, indptr: vec![0], indices: Vec::new(), values: Vec::new() };
        for &i in rows {
            for (column, value) in x.row(i) {
                copy.indices.push(column);
                copy.values.push(value);
            }
            copy.indptr.push(copy.indices.len());
        }
        copy
    }

    /// A copy of the entries of `x` that are not 0, in rows of `columns` columns; those that `x` does not have are 0.
    pub(crate) fn widened(x: &Rows, columns: usize) -> Self {
        let mut copy = Self { columns, indptr: vec![0], indices: Vec::new(), values: Vec::new() };
        for i in 0..x.nrows() {
            x.for_each_nonzero(i, |column, value| {
                copy.indices.push(column);
                copy.values.push(value);
            });
            copy.indptr.push(copy.indices.len());
        }
        copy
    }

    /// Rows that take over the memory: row i has `values[k]` in column `indices[k]` for k from `indptr[i]` to
    /// `indptr[i + 1]`, columns ascending.
    pub fn new(columns: usize, indptr: Vec<usize>, indices: Vec<usize>, values: Vec<f64>) -> Result<Self> {
        Csr::new(columns, &indptr[..], &indices[..], &values[..])?;
        Ok(Self { columns, indptr, indices, values })
    }

    /// The parts: where rows begin, columns, values.
    pub fn parts(&self) -> (&[usize], &[usize], &[f64]) {
        (&self.indptr, &self.indices, &self.values)
    }

    /// The rows.
    pub fn view(&self) -> Csr<'_> {
        Csr {
            columns: self.columns,
            indptr: Indices::Usize(&self.indptr),
            indices: Indices::Usize(&self.indices),
            values: Values::F64(&self.values),
        }
    }
}

/// A block of rows turned into columns, to be combined with other rows:
///
/// ```text
/// Σₖ t(xₖ, zₖ)     over the columns k where both x and z have an entry.
/// ```
///
/// With t(x, z) = xz this is ⟨x, z⟩; with t(x, z) = |x − z| − |x| − |z| it is ‖x − z‖₁ − ‖x‖₁ − ‖z‖₁. A column in which
/// many rows have an entry is kept with its zeros, for SIMD; the other columns are kept as lists. Memory grows with the
/// entries of the block, never with the number of columns.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    rows: usize,
    /// The columns of the block, in a table with open addressing whose size is a power of two: the column, and its
    /// number in `columns`.
    places: Vec<(usize, u32)>,
    columns: Vec<Column>,
    /// Entries of the block in the order in which they are found: number of the column, row, value.
    found: Vec<(u32, u32, f64)>,
    /// Rows and values of the columns in which few rows have an entry.
    listed: Vec<(u32, f64)>,
    /// The other columns, `rows` values each.
    full: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Column {
    entries: usize,
    is_full: bool,
    /// Where the column starts in `full` or `listed`.
    start: usize,
}

/// Marks a vacant place. No column has this number, since columns are below the number of columns.
const VACANT: usize = usize::MAX;

/// A column is kept with its zeros if at least one row in `FULL` has an entry in it.
const FULL: usize = 8;

impl Panel {
    /// Reads the given rows of `z` into the panel.
    fn pack(&mut self, z: &Csr, rows: &[usize]) {
        self.rows = rows.len();
        self.columns.clear();
        self.found.clear();
        self.listed.clear();
        self.full.clear();
        self.places.clear();
        let entries: usize = rows.iter().map(|&i| z.row(i).size_hint().0).sum();
        self.places.resize((2 * entries.min(z.ncols())).next_power_of_two().max(2), (VACANT, 0));
        for (row, &i) in rows.iter().enumerate() {
            for (k, value) in z.row(i) {
                let place = self.place(k);
                if self.places[place].0 == VACANT {
                    // A full table would be searched forever. Rows that other code changes meanwhile could fill it.
                    assert!(self.columns.len() + 1 < self.places.len(), "the sparse rows changed while they were read");
                    self.places[place] = (k, self.columns.len() as u32);
                    self.columns.push(Column { entries: 0, is_full: false, start: 0 });
                }
                let number = self.places[place].1;
                self.columns[number as usize].entries += 1;
                self.found.push((number, row as u32, value));
            }
        }
        let (mut in_full, mut in_listed) = (0, 0);
        for column in &mut self.columns {
            column.is_full = FULL * column.entries >= self.rows;
            let (next, length) =
                if column.is_full { (&mut in_full, self.rows) } else { (&mut in_listed, column.entries) };
            column.start = *next;
            *next += length;
            column.entries = 0; // counted again as entries come in
        }
        self.full.resize(in_full, 0.0);
        self.listed.resize(in_listed, (0, 0.0));
        for &(number, row, value) in &self.found {
            let column = &mut self.columns[number as usize];
            if column.is_full {
                self.full[column.start + row as usize] = value;
            } else {
                self.listed[column.start + column.entries] = (row, value);
            }
            column.entries += 1;
        }
    }

    /// The place of column `k`, or the vacant place where it would go.
    #[inline(always)]
    fn place(&self, k: usize) -> usize {
        let mask = self.places.len() - 1;
        // Multiplying by the golden ratio spreads neighbours; the high bits are the well mixed ones.
        let mut place = ((k as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        while self.places[place].0 != k && self.places[place].0 != VACANT {
            place = (place + 1) & mask;
        }
        place
    }

    /// Writes the sums of t, for ⟨x, z⟩ or for L1 distances, of rows `a` of `x` with rows `b` of `z` into `out`,
    /// `b.len()` per row.
    pub(crate) fn sums(&mut self, z: &Csr, b: &[usize], x: &Rows, a: &[usize], l1: bool, out: &mut [f64]) {
        self.pack(z, b);
        out.fill(0.0);
        vectorise(
            #[inline(always)]
            || {
                if l1 {
                    self.meet(
                        x,
                        a,
                        out,
                        #[inline(always)]
                        |x, z| (x - z).abs() - x.abs() - z.abs(),
                    );
                } else {
                    self.meet(
                        x,
                        a,
                        out,
                        #[inline(always)]
                        |x, z| x * z,
                    );
                }
            },
        );
    }

    /// Adds the sums of t of the given rows of `x` with the rows of the panel to `out`.
    #[inline(always)]
    fn meet(&self, x: &Rows, rows: &[usize], out: &mut [f64], t: impl Fn(f64, f64) -> f64) {
        // Sums over many columns are taken in parts, so that fewer roundings follow one another.
        let mut part = vec![0.0; self.rows];
        for (&i, sums) in rows.iter().zip(out.chunks_exact_mut(self.rows)) {
            let mut summed = 0;
            x.for_each_nonzero(
                i,
                #[inline(always)]
                |k, value| {
                    let (column, number) = self.places[self.place(k)];
                    if column == VACANT {
                        return;
                    }
                    if summed > 0 && summed % SumInParts::PART == 0 {
                        add_part(sums, &mut part);
                    }
                    let out = if summed < SumInParts::PART { &mut *sums } else { &mut part };
                    summed += 1;
                    let Column { entries, is_full, start } = self.columns[number as usize];
                    if is_full {
                        for (o, z) in out.iter_mut().zip(&self.full[start..start + self.rows]) {
                            *o += t(value, *z);
                        }
                    } else {
                        for &(row, z) in &self.listed[start..start + entries] {
                            out[row as usize] += t(value, z);
                        }
                    }
                },
            );
            if summed > SumInParts::PART {
                add_part(sums, &mut part);
            }
        }
    }
}

/// Adds a part to the sums, and starts the next one.
#[inline(always)]
fn add_part(sums: &mut [f64], part: &mut [f64]) {
    for (sum, part) in sums.iter_mut().zip(part) {
        *sum += *part;
        *part = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_is_checked() {
        let problem = |columns: usize, indptr: &[i32], indices: &[i32], values: &[f64]| {
            Csr::new(columns, indptr, indices, values).unwrap_err().to_string()
        };
        let cases: [(String, &str); 7] = [
            (problem(3, &[], &[], &[]), "indptr is empty"),
            (problem(3, &[0, 1], &[0], &[1.0, 2.0]), "1 column indices for 2 values"),
            (problem(3, &[1, 1], &[0], &[1.0]), "indptr starts with 1, not 0"),
            (problem(3, &[0, 2, 1], &[0, 1], &[1.0, 2.0]), "row 1 goes from 2 to 1 of 2 entries"),
            (problem(3, &[0, 3], &[0, 1], &[1.0, 2.0]), "row 0 goes from 0 to 3 of 2 entries"),
            (problem(3, &[0, 0, 1], &[-1], &[1.0]), "row 1 has column index -1, out of range for 3 columns"),
            (problem(3, &[0, 2], &[2, 2], &[1.0, 2.0]), "row 0 has column index 2 after 2: sort the indices"),
        ];
        for (message, expected) in cases {
            assert!(message.contains(expected), "{message:?} does not say {expected:?}");
        }
    }

    #[test]
    fn entries_are_found() {
        let x = Csr::new(5, &[0i64, 2, 2, 3][..], &[1i64, 4, 0][..], &[0.5f32, -2.0, 0.0][..]).unwrap();
        let dense: Vec<f64> = (0..3).flat_map(|i| (0..5).map(move |j| x.get(i, j))).collect();
        assert_eq!(dense, [0.0, 0.5, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(x.differences(0, &x, 2).collect::<Vec<_>>(), [0.0, 0.5, -2.0]);
    }

    #[test]
    #[should_panic(expected = "changed while they were read")]
    fn rows_that_gain_columns_while_they_are_read_are_not_searched_forever() {
        // What another thread may have made of two columns after they were checked.
        let (indices, values): (Vec<i32>, Vec<f64>) = ((0..100).map(|k| 3 * k).collect(), vec![1.0; 100]);
        let x = Csr {
            columns: 2,
            indptr: (&[0i32, 100][..]).into(),
            indices: (&indices[..]).into(),
            values: (&values[..]).into(),
        };
        Panel::default().sums(&x, &[0], &Rows::Csr(x), &[0], false, &mut [0.0]);
    }
}
