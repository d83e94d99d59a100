//! Checked views of the data. Nothing is copied: any strides, either precision.

use std::cmp::Ordering;

use faer::MatRef;

use crate::error::{Error, Result};

/// A borrowed matrix of rows, in the precision and memory order the caller has.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// Single precision.
    F32(MatRef<'a, f32>),
    /// Double precision.
    F64(MatRef<'a, f64>),
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

impl<'a> From<&'a faer::Mat<f64>> for Rows<'a> {
    fn from(x: &'a faer::Mat<f64>) -> Self {
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
        }
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        match self {
            Self::F32(x) => x.ncols(),
            Self::F64(x) => x.ncols(),
        }
    }

    /// One entry, widened.
    #[inline]
    pub fn get(&self, i: usize, j: usize) -> f64 {
        match self {
            Self::F32(x) => f64::from(x[(i, j)]),
            Self::F64(x) => x[(i, j)],
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
        }
    }

    /// Fails on the first value that is not finite, and on a matrix without entries.
    pub fn check(&self, what: &'static str) -> Result<()> {
        let (rows, columns) = (self.nrows(), self.ncols());
        if rows == 0 || columns == 0 {
            return Err(Error::Empty { rows, columns });
        }
        // Column by column when that is how the memory lies.
        let by_column = match self {
            Self::F32(x) => x.row_stride().unsigned_abs() < x.col_stride().unsigned_abs(),
            Self::F64(x) => x.row_stride().unsigned_abs() < x.col_stride().unsigned_abs(),
        };
        let (outer, inner) = if by_column { (columns, rows) } else { (rows, columns) };
        for a in 0..outer {
            // A sum is finite only if its terms are: one pass without a branch an entry.
            let at = |b: usize| if by_column { (b, a) } else { (a, b) };
            let sum: f64 = (0..inner).map(|b| self.get(at(b).0, at(b).1) * 0.0).sum();
            if sum != 0.0 {
                let b = (0..inner).find(|&b| !self.get(at(b).0, at(b).1).is_finite());
                let (row, column) = at(b.unwrap_or(0));
                return Err(Error::NotFinite { what, value: self.get(row, column), row, column });
            }
        }
        Ok(())
    }

    /// Column means of some rows: shifting by them leaves distances alone and saves their digits.
    pub(crate) fn column_means(&self, rows: &[usize]) -> Vec<f64> {
        let n = rows.len() as f64;
        (0..self.ncols()).map(|j| rows.iter().map(|&i| self.get(i, j) / n).sum()).collect()
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

    /// Finds equal rows, which have equal keys too, by a hash of their bits, confirmed by comparison.
    pub fn merge<K: Iterator<Item = f64>>(x: &Rows, keys: impl Fn(usize) -> K) -> Self {
        use std::collections::HashMap;
        use std::hash::{DefaultHasher, Hash, Hasher};
        let (n, p) = (x.nrows(), x.ncols());
        // 0.0 and -0.0 are equal but differ in bits: adding 0.0 makes both +0.0.
        let entry = |i: usize, j: usize| x.get(i, j) + 0.0;
        let mut seen: HashMap<u64, Vec<usize>> = HashMap::with_capacity(n);
        let mut units = Self { representative: Vec::new(), of_row: Vec::with_capacity(n) };
        for i in 0..n {
            let mut hasher = DefaultHasher::new();
            for key in keys(i) {
                key.to_bits().hash(&mut hasher);
            }
            for j in 0..p {
                entry(i, j).to_bits().hash(&mut hasher);
            }
            let bucket = seen.entry(hasher.finish()).or_default();
            let same = |&u: &usize| {
                let r = units.representative[u];
                keys(r).eq(keys(i)) && (0..p).all(|j| entry(r, j) == entry(i, j))
            };
            let unit = bucket.iter().copied().find(same).unwrap_or_else(|| {
                bucket.push(units.representative.len());
                units.representative.push(i);
                units.representative.len() - 1
            });
            units.of_row.push(unit);
        }
        units.sort(|a, b| {
            let columns = (0..p).map(|j| entry(a, j).total_cmp(&entry(b, j)));
            columns
                .chain(keys(a).zip(keys(b)).map(|(a, b)| a.total_cmp(&b)))
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        units
    }

    /// Brings the units into the order of their rows.
    fn sort(&mut self, compare: impl Fn(usize, usize) -> Ordering) {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|&u, &v| compare(self.representative[u], self.representative[v]));
        let mut place = vec![0; self.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        self.representative = order.iter().map(|&u| self.representative[u]).collect();
        for unit in &mut self.of_row {
            *unit = place[*unit];
        }
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
