//! Checked views of the data. Nothing is copied: any strides, either precision.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::observe::Control;
use crate::sparse::{Csr, CsrBuf};
use crate::threads;

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

impl<'a> Rows<'a> {
    /// A view of `columns` numbers a row, row after row.
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

    /// The sparse matrix, if it is one.
    pub(crate) fn as_csr(&self) -> Option<&Csr<'a>> {
        if let Self::Csr(x) = self { Some(x) } else { None }
    }

    /// One entry, widened.
    #[inline]
    pub fn get(&self, i: usize, j: usize) -> f64 {
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

    /// ‖x − z‖² of row `a` of this and row `b` of `other`.
    pub(crate) fn squared_distance(&self, a: usize, other: &Self, b: usize) -> f64 {
        self.sum_over_differences(a, other, b, |d| d * d)
    }

    /// ‖x − z‖₁ of row `a` of this and row `b` of `other`.
    pub(crate) fn l1_distance(&self, a: usize, other: &Self, b: usize) -> f64 {
        self.sum_over_differences(a, other, b, f64::abs)
    }

    fn sum_over_differences(&self, a: usize, other: &Self, b: usize, of: impl Fn(f64) -> f64) -> f64 {
        match (self, other) {
            (Self::Csr(x), Self::Csr(z)) => x.differences(a, z, b).map(of).sum(),
            _ => (0..self.ncols()).map(|j| of(self.get(a, j) - other.get(b, j))).sum(),
        }
    }

    /// The order of two rows by their first column that differs.
    fn compare_rows(&self, a: usize, b: usize) -> Ordering {
        let sign = |d: f64| d.partial_cmp(&0.0).filter(|order| order.is_ne());
        let first = match self {
            Self::Csr(x) => x.differences(a, x, b).find_map(sign),
            _ => (0..self.ncols()).find_map(|j| sign(self.get(a, j) - self.get(b, j))),
        };
        first.unwrap_or(Ordering::Equal)
    }

    /// Sum over the entries of row `i`, zeros among them.
    pub(crate) fn sum_over_row(&self, i: usize, of: impl Fn(f64) -> f64) -> f64 {
        match self {
            Self::Csr(x) => {
                let zeros = x.ncols() - x.row(i).count();
                x.row(i).map(|(_, value)| of(value)).sum::<f64>() + zeros as f64 * of(0.0)
            }
            _ => (0..self.ncols()).map(|j| of(self.get(i, j))).sum(),
        }
    }

    /// Feeds row `i` to `hasher`, equal rows alike.
    fn hash_row(&self, i: usize, hasher: &mut impl Hasher) {
        if let Self::Csr(_) = self {
            // Zeros may be stored or not.
            self.for_each_nonzero(i, |j, value| (j, value.to_bits()).hash(hasher));
        } else {
            // 0.0 and -0.0 are equal but differ in bits: adding 0.0 makes both +0.0.
            (0..self.ncols()).for_each(|j| (self.get(i, j) + 0.0).to_bits().hash(hasher));
        }
    }

    /// A copy of some rows, sparse if these are.
    pub(crate) fn copy_rows(&self, rows: &[usize]) -> RowsBuf {
        match self {
            Self::Csr(x) => RowsBuf::Csr(CsrBuf::from_rows(x, rows)),
            _ => RowsBuf::Dense(Mat::from_fn(rows.len(), self.ncols(), |i, j| self.get(rows[i], j))),
        }
    }

    /// Fails on the first value that is not finite, and on a matrix without entries. Looks on all threads of
    /// the current pool.
    pub fn check(&self, what: &'static str) -> Result<()> {
        let (rows, columns) = (self.nrows(), self.ncols());
        if rows == 0 || columns == 0 {
            return Err(Error::Empty { rows, columns });
        }
        let first = |count: usize, least: usize, bad: &(dyn Fn(usize) -> Option<Error> + Sync)| {
            let found = if threads::is_alone() {
                (0..count).find_map(bad)
            } else {
                (0..count).into_par_iter().with_min_len(least).find_map_first(bad)
            };
            found.map_or(Ok(()), Err)
        };
        // Column by column when that is how the memory lies.
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
            // A sum is finite only if its terms are: one pass without a branch an entry.
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

    /// Column means of some rows: shifting by them leaves distances alone and saves their digits.
    pub(crate) fn column_means(&self, rows: &[usize]) -> Vec<f64> {
        let n = rows.len() as f64;
        (0..self.ncols()).map(|j| rows.iter().map(|&i| self.get(i, j) / n).sum()).collect()
    }
}

/// Rows of one's own.
#[derive(Debug, Clone)]
pub enum RowsBuf {
    /// Dense.
    Dense(Mat<f64>),
    /// Sparse.
    Csr(CsrBuf),
}

impl RowsBuf {
    /// A copy of all rows of `x`, sparse if they are.
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

/// Rows that are equal in every column and in their keys, such as targets, merged into one unit.
///
/// The loss of a unit is the sum of its rows' losses, so the weights add up and (P) is unchanged. Units are sorted, so
/// that what is computed from them depends neither on the order of the rows nor on how often one is repeated, but on
/// its weight.
#[derive(Debug, Clone)]
pub struct Units {
    /// A row of each unit.
    pub representative: Vec<usize>,
    /// The unit of each row.
    pub of_row: Vec<usize>,
}

impl Units {
    /// Every row for itself.
    pub fn separate(n: usize) -> Self {
        Self { representative: (0..n).collect(), of_row: (0..n).collect() }
    }

    /// The units of these rows.
    pub(crate) fn of(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&i| self.of_row[i]).collect()
    }

    /// Finds equal rows, which have equal keys too, by a hash of their bits, confirmed by comparison.
    pub(crate) fn merge<K: Iterator<Item = f64>>(
        x: &Rows,
        keys: impl Fn(usize) -> K + Sync,
        control: &Control,
    ) -> Result<Self> {
        use std::collections::HashMap;
        use std::hash::DefaultHasher;
        let n = x.nrows();
        let hash = |i: usize| {
            control.check()?;
            let mut hasher = DefaultHasher::new();
            for key in keys(i) {
                key.to_bits().hash(&mut hasher);
            }
            x.hash_row(i, &mut hasher);
            Ok(hasher.finish())
        };
        let hashes = (0..n).into_par_iter().map(hash).collect::<Result<Vec<u64>>>()?;
        let mut seen: HashMap<u64, Vec<usize>> = HashMap::with_capacity(n);
        let mut units = Self { representative: Vec::new(), of_row: Vec::with_capacity(n) };
        for (i, hash) in hashes.into_iter().enumerate() {
            control.check()?;
            let bucket = seen.entry(hash).or_default();
            let same = |&u: &usize| {
                let r = units.representative[u];
                keys(r).eq(keys(i)) && x.compare_rows(r, i).is_eq()
            };
            let unit = bucket.iter().copied().find(same).unwrap_or_else(|| {
                bucket.push(units.representative.len());
                units.representative.push(i);
                units.representative.len() - 1
            });
            units.of_row.push(unit);
        }
        units.sort(|i| keys(i).collect(), |a, b| x.compare_rows(a, b), control)?;
        Ok(units)
    }

    /// Brings the units into the order of their keys, so that the units of a class are neighbours, and then of their rows.
    fn sort(
        &mut self,
        keys: impl Fn(usize) -> Vec<f64>,
        compare: impl Fn(usize, usize) -> Ordering + Sync,
        control: &Control,
    ) -> Result<()> {
        let keys: Vec<Vec<f64>> = self.representative.iter().map(|&i| keys(i)).collect();
        let by_keys = |u: usize, v: usize| {
            let unequal = keys[u].iter().zip(&keys[v]).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
            unequal.unwrap_or(keys[u].len().cmp(&keys[v].len()))
        };
        let rows = &self.representative;
        let mut order: Vec<usize> = (0..self.len()).collect();
        sort_in_parts(&mut order, &|&u, &v| by_keys(u, v).then_with(|| compare(rows[u], rows[v])), control)?;
        let mut place = vec![0; self.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        self.representative = order.iter().map(|&u| self.representative[u]).collect();
        for unit in &mut self.of_row {
            *unit = place[*unit];
        }
        Ok(())
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.representative.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.representative.is_empty()
    }
}

/// Sorts on all threads, in parts between which an interruption is seen: two sorted halves are two runs, which the
/// sort of the whole only has to merge.
fn sort_in_parts<T: Send>(
    values: &mut [T],
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
    control: &Control,
) -> Result<()> {
    const PART: usize = 8192;
    control.check()?;
    if values.len() > PART {
        let (left, right) = values.split_at_mut(values.len() / 2);
        let (left, right) =
            rayon::join(|| sort_in_parts(left, compare, control), || sort_in_parts(right, compare, control));
        left.and(right)?;
        control.check()?;
    }
    values.sort_by(compare);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 30 000 rows of 300 kinds, in no order.
    fn repeated() -> Mat<f64> {
        Mat::from_fn(30_000, 2, |i, j| if j == 0 { (i * 7919 % 300) as f64 } else { 1.0 })
    }

    #[test]
    fn equal_rows_are_one_unit_and_units_are_sorted() {
        let x = repeated();
        let even = |i: usize| std::iter::once((x[(i, 0)] % 2.0).abs());
        let units = Units::merge(&Rows::F64(x.as_ref()), even, &Control::default()).unwrap();
        assert_eq!(units.len(), 300);
        for (i, &u) in units.of_row.iter().enumerate() {
            assert_eq!(x[(units.representative[u], 0)], x[(i, 0)]);
        }
        let order: Vec<f64> = units.representative.iter().map(|&i| x[(i, 0)]).collect();
        let expected: Vec<f64> = (0..300).step_by(2).chain((1..300).step_by(2)).map(f64::from).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn many_values_are_sorted_in_parts() {
        let mut values: Vec<usize> = (0..100_000).map(|i| i * 7919 % 100_003).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        sort_in_parts(&mut values, &usize::cmp, &Control::default()).unwrap();
        assert_eq!(values, expected);
    }

    #[test]
    fn an_interruption_is_heard_while_rows_are_compared() {
        let x = repeated();
        let control = Control::default();
        let cancel = |_| {
            control.cancel();
            std::iter::empty()
        };
        assert!(matches!(Units::merge(&Rows::F64(x.as_ref()), cancel, &control), Err(Error::Interrupted)));
        assert!(sort_in_parts(&mut [2, 1], &i32::cmp, &control).is_err());
    }
}
