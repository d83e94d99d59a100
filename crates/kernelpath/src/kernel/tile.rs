//! Kernel values of a few rows with a few others, which everything else is made of.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::data::rows::Rows;
use crate::data::sparse::Panel;
use crate::kernel::shape::{KernelFn, Measure, Shape};
use crate::numeric::simd::vectorise;

/// Side of the tiles the matrix is computed in.
pub(crate) const TILE: usize = 128;

/// Squared distances below 1/`SUMMED_ANEW` of the rows' squared norms are summed anew: an entry of the kernel matrix is then
/// off by at most about `SUMMED_ANEW` roundings of double precision. A larger value leaves larger errors, a smaller one takes
/// longer.
const SUMMED_ANEW: f64 = 64.0;

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
        if is_sparse {
            self.meet(x, a, z, b, measure);
        } else {
            self.multiply(x, a, z, b, shift, measure);
        }
        match measure {
            Measure::SquaredDistances => {
                let Self { values, left2, right2, .. } = self;
                vectorise(
                    #[inline(always)]
                    || {
                        for (row, x2) in values.chunks_exact_mut(right2.len()).zip(left2.iter()) {
                            for (value, z2) in row.iter_mut().zip(right2.iter()) {
                                *value = x2 + z2 - 2.0 * *value;
                            }
                        }
                    },
                );
                self.mend_near(|i, j| x.squared_distance(a[i], z, b[j]));
            }
            // Distances of dense rows are sums of differences already.
            Measure::AbsoluteDistances if is_sparse => {
                let Self { values, left2, right2, .. } = self;
                for (row, x1) in values.chunks_exact_mut(right2.len()).zip(left2.iter()) {
                    for (value, z1) in row.iter_mut().zip(right2.iter()) {
                        *value += x1 + z1;
                    }
                }
                self.mend_near(|i, j| x.l1_distance(a[i], z, b[j]));
            }
            Measure::AbsoluteDistances | Measure::Products => {}
        }
    }

    /// Where two rows are near to each other compared with their norms, their distance has lost digits. It is computed
    /// anew, from the differences of the rows.
    fn mend_near(&mut self, distance: impl Fn(usize, usize) -> f64) {
        let Self { values, left2, right2, .. } = self;
        for (i, (row, x2)) in values.chunks_exact_mut(right2.len()).zip(left2.iter()).enumerate() {
            let near = |value: f64, z2: f64| SUMMED_ANEW * value < x2 + z2;
            for (j, (value, z2)) in row.iter_mut().zip(right2.iter()).enumerate() {
                if near(*value, *z2) {
                    *value = distance(i, j);
                }
            }
        }
    }

    /// Inner products, or L1 distances, of dense rows, and their squared norms.
    fn multiply(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], shift: &[f64], measure: Measure) {
        pack(x, a, shift, &mut self.left, &mut self.left2);
        pack(z, b, shift, &mut self.right, &mut self.right2);
        let (m, n, p) = (a.len(), b.len(), shift.len());
        let Self { left, right, values, .. } = self;
        if measure == Measure::AbsoluteDistances {
            vectorise(
                #[inline(always)]
                || l1_distances(left, right, values, m, n),
            );
        } else {
            matmul(
                MatMut::from_row_major_slice_mut(values, m, n),
                Accum::Replace,
                MatRef::from_row_major_slice(left, m, p),
                MatRef::from_row_major_slice(right, n, p).transpose(),
                1.0,
                Par::Seq,
            );
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
        let mut sum = 0.0;
        x.for_each_nonzero(i, |_, v| sum += if l1 { v.abs() } else { v * v });
        out.push(sum);
    }
}

/// Copies rows in double precision, shifted, with their squared norms.
pub(crate) fn pack(x: &Rows, rows: &[usize], shift: &[f64], out: &mut Vec<f64>, norms: &mut Vec<f64>) {
    let p = shift.len();
    out.resize(rows.len() * p, 0.0);
    norms.clear();
    for (&i, row) in rows.iter().zip(out.chunks_exact_mut(p)) {
        x.copy_row(i, shift, row);
        norms.push(row.iter().map(|v| v * v).sum());
    }
}

#[inline(always)]
fn l1_distances(left: &[f64], right: &[f64], out: &mut [f64], m: usize, n: usize) {
    let p = left.len() / m;
    // Feature by feature, so that the inner loop runs along a contiguous row of `out`.
    let mut column = vec![0.0; n];
    for k in 0..p {
        for (c, row) in column.iter_mut().zip(right.chunks_exact(p)) {
            *c = row[k];
        }
        for (out, row) in out.chunks_exact_mut(n).zip(left.chunks_exact(p)) {
            let value = row[k];
            for (o, c) in out.iter_mut().zip(&column) {
                *o += (value - c).abs();
            }
        }
    }
}

/// What is subtracted from all rows before squared distances are measured: the mean of the given rows of `z`. It is
/// empty for sparse rows, which it would fill.
pub(crate) fn shift_for(kernel: &KernelFn, x: &Rows, z: &Rows, rows: &[usize]) -> Vec<f64> {
    if x.as_csr().or(z.as_csr()).is_some() {
        Vec::new()
    } else if kernel.shape.measure() == Measure::SquaredDistances {
        z.column_means(rows)
    } else {
        vec![0.0; z.ncols()]
    }
}
