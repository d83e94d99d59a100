//! Kernel values of a few rows with a few others, which everything else is made of.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::data::rows::{Rows, SumInParts};
use crate::data::sparse::Panel;
use crate::error::{Cell, Error, Result};
use crate::kernel::shape::{KernelFn, Measure, Shape};
use crate::numeric::entry::Entry;
use crate::numeric::simd::{dot, vectorise};

/// Side of the tiles the matrix is computed in.
pub(crate) const TILE: usize = 128;

/// Squared distances below 1/`SUMMED_ANEW` of the rows' squared norms are summed anew. A relative error ε of a distance is
/// one of at most ε/e in the kernel, so that an entry of the kernel matrix is then off by at most `SUMMED_ANEW`/e times the
/// error of a product of two rows. With 64, entries between tight clusters were off by more than the noise of certificates
/// allows for (`ENTRY_ROUNDINGS`); a smaller value takes longer.
const SUMMED_ANEW: f64 = 8.0;

/// Most columns for which squared distances of dense rows are sums of differences from the start: that is as fast as
/// products, and in few columns many rows are near to each other.
const FEW_COLUMNS: usize = 4;

/// If more than one distance in `MANY_ANEW` of a dense tile is to be summed anew, all are, side by side: that takes as
/// long as this share one by one.
const MANY_ANEW: usize = 16;

/// Columns over which differences are summed before these sums are added: fewer roundings follow one another.
const COLUMNS_AT_ONCE: usize = SumInParts::PART;

/// In products of sparse rows, one side of a tile is packed to meet the other. The left side is packed if the right
/// side has at least this many times its rows. With a smaller value, tiles of the kernel matrix, whose sides are nearly
/// equal, would be transposed for nothing.
const FEW_TO_PACK: usize = 8;

pub(crate) fn chunk(rows: &[usize], tile: usize) -> &[usize] {
    &rows[tile * TILE..rows.len().min((tile + 1) * TILE)]
}

/// Scratch space for the kernel of one block of rows with another.
#[derive(Default)]
pub(crate) struct Tile {
    left: Vec<f64>,
    right: Vec<f64>,
    /// Squared norms of the rows on both sides; L1 norms, if the rows are sparse and L1 distances are asked for.
    left2: Vec<f64>,
    right2: Vec<f64>,
    panel: Panel,
    /// Sums over some of the columns.
    part: Vec<f64>,
    /// Kernel values, `a.len()` rows of `b.len()`.
    pub(crate) values: Vec<f64>,
}

impl Tile {
    /// Evaluates the kernel of rows `a` of `x` with rows `b` of `z`, both shifted. A precomputed `x` has the kernel in
    /// its columns `b`.
    pub(crate) fn evaluate(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], shift: &[f64], kernel: &KernelFn) {
        if kernel.shape == Shape::Precomputed {
            self.values.clear();
            self.values.extend(a.iter().flat_map(|&i| b.iter().map(move |&j| x.get(i, j))));
            return;
        }
        self.compare(x, a, z, b, shift, kernel.shape.measure());
        self.map(kernel);
    }

    /// Evaluates the kernel from what its shape measured between the rows.
    pub(crate) fn recall(&mut self, measured: &Vec<f64>, kernel: &KernelFn) {
        self.values.clone_from(measured);
        self.map(kernel);
    }

    /// Turns what the shape measured between pairs of rows into kernel values.
    fn map(&mut self, kernel: &KernelFn) {
        vectorise(
            #[inline(always)]
            || kernel.map(&mut self.values),
        );
    }

    /// Measures rows `a` of `x` against rows `b` of `z`.
    pub(crate) fn compare(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], shift: &[f64], measure: Measure) {
        self.values.clear();
        self.values.resize(a.len() * b.len(), 0.0);
        let is_sparse = x.as_csr().or(z.as_csr()).is_some();
        match measure {
            _ if is_sparse => self.meet(x, a, z, b, measure),
            Measure::Products => self.multiply(x, a, z, b, shift),
            Measure::SquaredDistances if x.ncols() > FEW_COLUMNS => self.multiply(x, a, z, b, shift),
            Measure::SquaredDistances | Measure::AbsoluteDistances => return self.subtract(x, a, z, b, measure),
        }
        match measure {
            Measure::Products => return,
            Measure::SquaredDistances => self.add_norms(-2.0),
            Measure::AbsoluteDistances => self.add_norms(1.0),
        }
        let lost = self.lost();
        if !is_sparse && MANY_ANEW * lost.len() > self.values.len() {
            return self.subtract(x, a, z, b, measure);
        }
        for at in lost {
            let (i, j) = (a[at / b.len()], b[at % b.len()]);
            self.values[at] = match measure {
                Measure::AbsoluteDistances => x.l1_distance(i, z, j),
                _ => x.squared_distance(i, z, j),
            };
        }
    }

    /// Turns what two rows have in common into their distance, from their norms.
    fn add_norms(&mut self, factor: f64) {
        let Self { values, left2, right2, .. } = self;
        vectorise(
            #[inline(always)]
            || {
                for (row, x2) in values.chunks_exact_mut(right2.len()).zip(left2.iter()) {
                    for (value, z2) in row.iter_mut().zip(right2.iter()) {
                        *value = x2 + z2 + factor * *value;
                    }
                }
            },
        );
    }

    /// Places of the distances that are to be summed anew, from the differences of the rows. These rows are near to each
    /// other compared with their norms, so that their distance has lost digits; or a norm is infinite.
    fn lost(&self) -> Vec<usize> {
        let Self { values, left2, right2, .. } = self;
        let n = right2.len();
        let mut lost = Vec::new();
        vectorise(
            #[inline(always)]
            || {
                for (i, (row, x2)) in values.chunks_exact(n).zip(left2).enumerate() {
                    let mut all = true;
                    for (value, z2) in row.iter().zip(right2) {
                        all &= is_kept(*value, *x2, *z2);
                    }
                    if !all {
                        lost.extend((0..n).filter(|&j| !is_kept(row[j], *x2, right2[j])).map(|j| i * n + j));
                    }
                }
            },
        );
        lost
    }

    /// Inner products of dense rows, and their squared norms.
    fn multiply(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], shift: &[f64]) {
        pack(x, a, shift, &mut self.left, &mut self.left2);
        pack(z, b, shift, &mut self.right, &mut self.right2);
        let (m, n, p) = (a.len(), b.len(), shift.len());
        let Self { left, right, values, .. } = self;
        matmul(
            MatMut::from_row_major_slice_mut(values, m, n),
            Accum::Replace,
            MatRef::from_row_major_slice(left, m, p),
            MatRef::from_row_major_slice(right, n, p).transpose(),
            1.0,
            Par::Seq,
        );
    }

    /// Distances of dense rows, summed over the differences of their numbers as they are given.
    fn subtract(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], measure: Measure) {
        let zeros = vec![0.0; x.ncols()];
        pack(x, a, &zeros, &mut self.left, &mut self.left2);
        pack(z, b, &zeros, &mut self.right, &mut self.right2);
        let Self { left, right, part, values, .. } = self;
        let sides = (&left[..], &right[..], x.ncols());
        vectorise(
            #[inline(always)]
            || {
                if measure == Measure::AbsoluteDistances {
                    sum_differences(
                        sides,
                        part,
                        values,
                        #[inline(always)]
                        |x, z| (x - z).abs(),
                    );
                } else {
                    sum_differences(
                        sides,
                        part,
                        values,
                        #[inline(always)]
                        |x, z| (x - z) * (x - z),
                    );
                }
            },
        );
    }

    /// An error if a kernel value of some rows of each side is no number, or none of the precision T.
    pub(crate) fn check<T: Entry>(&self, (x, a): (Side, &[usize]), (z, b): (Side, &[usize])) -> Result<()> {
        match self.values.iter().position(|value| !T::narrow(*value).wide().is_finite()) {
            None => Ok(()),
            Some(at) => Err(overflow::<T>((x, a[at / b.len()]), (z, b[at % b.len()]), self.values[at])),
        }
    }

    /// The same where one side or both are sparse, from the columns that both rows have. For L1 distances, this is what
    /// is to be added to the norms,
    ///
    /// ```text
    /// ‖x − z‖₁ = ‖x‖₁ + ‖z‖₁ + Σₖ (|xₖ − zₖ| − |xₖ| − |zₖ|).
    /// ```
    fn meet(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], measure: Measure) {
        let Self { left2, right2, panel, values, .. } = self;
        let l1 = measure == Measure::AbsoluteDistances;
        // The side with few rows is packed sooner.
        let pack_x = z.as_csr().is_none() || FEW_TO_PACK * a.len() <= b.len();
        if let Some(sparse) = z.as_csr().filter(|_| x.as_csr().is_none() || !pack_x) {
            panel.sums(sparse, b, x, a, l1, values);
        } else if let Some(sparse) = x.as_csr() {
            let mut transposed = vec![0.0; values.len()];
            panel.sums(sparse, a, z, b, l1, &mut transposed);
            for (i, row) in values.chunks_exact_mut(b.len()).enumerate() {
                for (value, column) in row.iter_mut().zip(transposed.chunks_exact(a.len())) {
                    *value = column[i];
                }
            }
        }
        norms(x, a, l1, left2);
        norms(z, b, l1, right2);
    }
}

/// ‖x‖² of the given rows, or ‖x‖₁ if `l1` is true.
fn norms(x: &Rows, rows: &[usize], l1: bool, out: &mut Vec<f64>) {
    out.clear();
    for &i in rows {
        let mut sum = SumInParts::default();
        x.for_each_nonzero(i, |_, v| sum.add(if l1 { v.abs() } else { v * v }));
        out.push(sum.total());
    }
}

/// Copies rows in double precision, shifted, with their squared norms.
pub(crate) fn pack(x: &Rows, rows: &[usize], shift: &[f64], out: &mut Vec<f64>, norms: &mut Vec<f64>) {
    let p = shift.len();
    out.resize(rows.len() * p, 0.0);
    norms.clear();
    for (&i, row) in rows.iter().zip(out.chunks_exact_mut(p)) {
        x.copy_row(i, shift, row);
        norms.push(dot(row, row));
    }
}

/// Whether a distance of two rows of these squared norms keeps its digits. (∞ − ∞ is NaN, which is not above 0.)
#[inline(always)]
fn is_kept(value: f64, x2: f64, z2: f64) -> bool {
    SUMMED_ANEW * value - (x2 + z2) >= 0.0
}

/// Σₖ of(xₖ, zₖ) over p columns, for all pairs of rows of two sides.
#[inline(always)]
fn sum_differences(
    (left, right, p): (&[f64], &[f64], usize),
    part: &mut Vec<f64>,
    out: &mut [f64],
    of: impl Fn(f64, f64) -> f64,
) {
    let n = right.len() / p;
    let mut column = vec![0.0; n];
    out.fill(0.0);
    part.resize(out.len(), 0.0);
    for start in (0..p).step_by(COLUMNS_AT_ONCE) {
        part.fill(0.0);
        // Column by column, so that the inner loop runs along a contiguous row of sums.
        for k in start..p.min(start + COLUMNS_AT_ONCE) {
            for (c, row) in column.iter_mut().zip(right.chunks_exact(p)) {
                *c = row[k];
            }
            for (sums, row) in part.chunks_exact_mut(n).zip(left.chunks_exact(p)) {
                let value = row[k];
                for (sum, c) in sums.iter_mut().zip(&column) {
                    *sum += of(value, *c);
                }
            }
        }
        for (out, part) in out.iter_mut().zip(part.iter()) {
            *out += part;
        }
    }
}

/// One side of kernel values, as errors call it.
#[derive(Clone, Copy)]
pub(crate) enum Side<'a> {
    /// Rows of this name.
    Rows(&'static str, &'a Rows<'a>),
    /// Rows or columns of a given kernel matrix.
    Given,
}

impl<'a> Side<'a> {
    /// Rows of X.
    pub fn x(kernel: &KernelFn, x: &'a Rows<'a>) -> Self {
        if kernel.shape == Shape::Precomputed { Self::Given } else { Self::Rows("X", x) }
    }

    /// The number of row `i` that is largest in size.
    pub fn largest(self, i: usize) -> Option<Cell> {
        let Self::Rows(what, rows) = self else { return None };
        let mut cell = Cell { what, row: i, column: 0, value: 0.0 };
        rows.for_each_nonzero(i, |column, value| {
            if value.abs() > cell.value.abs() {
                (cell.column, cell.value) = (column, value);
            }
        });
        Some(cell)
    }
}

/// The name of a precision.
fn name_of<T: Entry>() -> &'static str {
    if size_of::<T>() == 4 { "float32" } else { "float64" }
}

/// The error about the kernel value of two rows, which the precision T cannot hold. It names their largest number.
pub(crate) fn overflow<T: Entry>((x, row): (Side, usize), (z, column): (Side, usize), value: f64) -> Error {
    let cells = x.largest(row).into_iter().chain(z.largest(column));
    let cell = cells.reduce(|a, b| if b.value.abs() > a.value.abs() { b } else { a });
    Error::Overflow { row, column, value, precision: name_of::<T>(), cell }
}

/// An error if the precision T cannot hold one of the sums of kernel values, of which row `row_of(k)` of x has those from
/// k·`width` on. `what` is what one of them is called.
pub(crate) fn check_sums<T: Entry>(
    what: &'static str,
    x: Side,
    row_of: impl Fn(usize) -> usize,
    width: usize,
    sums: &[f64],
) -> Result<()> {
    match sums.iter().position(|sum| !T::narrow(*sum).wide().is_finite()) {
        None => Ok(()),
        Some(at) => {
            let row = row_of(at / width);
            Err(Error::SumOverflow { what, row, value: sums[at], precision: name_of::<T>(), cell: x.largest(row) })
        }
    }
}

/// What is subtracted from all rows before squared distances are measured: the medians of the given rows of `z`, so that
/// no single number makes all rows long. It is empty for sparse rows, which it would fill.
pub(crate) fn shift_for(kernel: &KernelFn, x: &Rows, z: &Rows, rows: &[usize]) -> Vec<f64> {
    if x.as_csr().or(z.as_csr()).is_some() {
        Vec::new()
    } else if kernel.shape.measure() == Measure::SquaredDistances {
        z.column_medians(rows)
    } else {
        vec![0.0; z.ncols()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances that are summed anew when the kernel matrix of rows is made.
    fn summed_anew(x: &[f64], p: usize) -> usize {
        let x = Rows::from_slice(x, p).unwrap();
        let rows: Vec<usize> = (0..x.nrows()).collect();
        let shift = shift_for(&KernelFn::new(Shape::Rbf, 1.0).unwrap(), &x, &x, &rows);
        let blocks = rows.len().div_ceil(TILE);
        let mut tile = Tile::default();
        let tiles = (0..blocks).flat_map(|i| (0..=i).map(move |j| (i, j)));
        tiles
            .map(|(i, j)| {
                let (a, b) = (chunk(&rows, i), chunk(&rows, j));
                tile.compare(&x, a, &x, b, &shift, Measure::SquaredDistances);
                tile.lost().len()
            })
            .sum()
    }

    #[test]
    fn a_cell_of_another_size_leaves_the_digits_of_all_other_rows() {
        let (n, p) = (700, 6);
        let mut rng = fastrand::Rng::with_seed(0);
        let mut x: Vec<f64> = (0..n * p).map(|_| rng.f64() - 0.5).collect();
        let before = summed_anew(&x, p);
        for cell in [1e3, 999_999_999.0, 1e100] {
            for at in [0, 7 * p, 7 * p + 3, n * p - 1] {
                let old = std::mem::replace(&mut x[at], cell);
                let after = summed_anew(&x, p);
                // (In a row of the sample it may move a median to the next number.)
                assert!(after <= before + before / 10, "{cell} at {at}: {after} distances, not {before}");
                x[at] = old;
            }
        }
        // One that no double can square: the distances from its row are summed anew, no others.
        x[7 * p] = 1e200;
        assert!(summed_anew(&x, p) <= before + before / 10 + 2 * n);
    }
}
