//! Products with the features Z of a low-rank kernel, K = ZZᵀ, in bands of rows, on all threads.
//!
//! The order of summation depends on the bands alone, so the answer does not depend on the threads.

use std::ops::Range;

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatRef, Par, linalg::matmul::matmul};
use rayon::prelude::*;

use crate::error::Result;
use crate::observe::Control;
use crate::simd::{dot_in_lanes, vectorise};
use crate::solver::Working;

/// Rows of a band.
const BAND: usize = 512;

/// In which precision a product is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accuracy {
    /// That of Z: for a step, which the next one corrects.
    Working,
    /// f64: for a certificate.
    Double,
}

/// Features of some rows, row after row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Design<'a, T> {
    values: &'a [T],
    n: usize,
    rank: usize,
}

impl<'a, T: Working> Design<'a, T> {
    /// `values` holds `rank` numbers for each of `n` rows.
    pub fn new(values: &'a [T], n: usize, rank: usize) -> Self {
        Self { values, n, rank }
    }

    pub fn n(&self) -> usize {
        self.n
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    fn row(&self, i: usize) -> &'a [T] {
        &self.values[i * self.rank..(i + 1) * self.rank]
    }

    fn band(&self, rows: Range<usize>) -> MatRef<'a, T> {
        let height = rows.len();
        MatRef::from_row_major_slice(&self.values[rows.start * self.rank..rows.end * self.rank], height, self.rank)
    }

    fn bands(&self) -> impl IndexedParallelIterator<Item = Range<usize>> {
        let n = self.n;
        (0..n.div_ceil(BAND)).into_par_iter().map(move |band| band * BAND..n.min((band + 1) * BAND))
    }

    /// A copy of some rows.
    pub fn gather(&self, rows: &[usize]) -> Vec<T> {
        let mut values = Vec::with_capacity(rows.len() * self.rank);
        for &i in rows {
            values.extend_from_slice(self.row(i));
        }
        values
    }

    /// A band in f64, row after row.
    fn wide_band(&self, rows: Range<usize>) -> Vec<f64> {
        self.values[rows.start * self.rank..rows.end * self.rank].iter().map(|v| v.wide()).collect()
    }

    /// Z·W, column by column.
    pub fn times(&self, w: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>> {
        let narrow = Mat::<T>::from_fn(self.rank, w.len(), |j, c| T::narrow(w[c][j]));
        let wide = Mat::<f64>::from_fn(self.rank, w.len(), |j, c| w[c][j]);
        let tiles = self
            .bands()
            .map(|rows| {
                control.check()?;
                Ok(match accuracy {
                    Accuracy::Working => columns(&product(self.band(rows), narrow.as_ref())),
                    Accuracy::Double => {
                        let band = self.wide_band(rows.clone());
                        let left = MatRef::from_row_major_slice(&band, rows.len(), self.rank);
                        columns(&product(left, wide.as_ref()))
                    }
                })
            })
            .collect::<Result<Vec<Vec<Vec<f64>>>>>()?;
        let column = |c: usize| {
            let mut column = Vec::with_capacity(self.n);
            for tile in &tiles {
                column.extend_from_slice(&tile[c]);
            }
            column
        };
        Ok((0..w.len()).into_par_iter().map(column).collect())
    }

    /// Zᵀ·V, column by column.
    pub fn transposed_times(&self, v: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>> {
        let parts = self
            .bands()
            .map(|rows| {
                control.check()?;
                Ok(match accuracy {
                    Accuracy::Working => {
                        let right: Vec<T> =
                            v.iter().flat_map(|v| &v[rows.clone()]).map(|value| T::narrow(*value)).collect();
                        let right = MatRef::from_column_major_slice(&right, rows.len(), v.len());
                        columns(&product(self.band(rows).transpose(), right))
                    }
                    Accuracy::Double => {
                        let right: Vec<f64> = v.iter().flat_map(|v| &v[rows.clone()]).copied().collect();
                        let right = MatRef::from_column_major_slice(&right, rows.len(), v.len());
                        let band = self.wide_band(rows.clone());
                        let left = MatRef::from_row_major_slice(&band, rows.len(), self.rank);
                        columns(&product(left.transpose(), right))
                    }
                })
            })
            .collect::<Result<Vec<Vec<Vec<f64>>>>>()?;
        let mut sum = vec![vec![0.0; self.rank]; v.len()];
        for part in parts {
            for (sum, part) in sum.iter_mut().zip(part) {
                for (sum, value) in sum.iter_mut().zip(part) {
                    *sum += value;
                }
            }
        }
        Ok(sum)
    }

    /// ZᵀS(Zp + 1·shift) and the sum of S(Zp + 1·shift), in one pass over Z on this thread.
    pub fn curved_times(&self, s: &[f64], p: &[f64], shift: f64, accuracy: Accuracy) -> (Vec<f64>, f64) {
        match accuracy {
            Accuracy::Working => self.curved_times_in::<T>(s, p, shift),
            Accuracy::Double => self.curved_times_in::<f64>(s, p, shift),
        }
    }

    fn curved_times_in<R: Working>(&self, s: &[f64], p: &[f64], shift: f64) -> (Vec<f64>, f64) {
        let p: Vec<R> = p.iter().map(|p| R::narrow(*p)).collect();
        let (mut product, mut sum) = (vec![R::default(); self.rank], 0.0);
        vectorise(
            #[inline(always)]
            || {
                for (row, s) in self.values.chunks_exact(self.rank).zip(s) {
                    let u = s * (dot_in_lanes(row, &p).wide() + shift);
                    sum += u;
                    let u = R::narrow(u);
                    for (product, z) in product.iter_mut().zip(row) {
                        *product += u * R::narrow(z.wide());
                    }
                }
            },
        );
        (product.into_iter().map(R::wide).collect(), sum)
    }

    /// The upper triangle of [Z 1]ᵀ S [Z 1], in the precision of R, summed over `groups` of rows side by side.
    pub fn curvature<R: Working>(&self, s: &[f64], groups: usize, control: &Control) -> Result<Mat<R>> {
        let order = self.rank + 1;
        let rows: Vec<usize> = (0..self.n).filter(|&i| s[i] > 0.0).collect();
        let chunks: Vec<&[usize]> = rows.chunks(rows.len().div_ceil(groups).max(1)).collect();
        let parts = chunks
            .into_par_iter()
            .map(|chunk| {
                let mut part = Mat::<R>::zeros(order, order);
                for rows in chunk.chunks(BAND) {
                    control.check()?;
                    let mut scaled = Mat::<R>::zeros(order, rows.len());
                    for (c, &i) in rows.iter().enumerate() {
                        let root = s[i].sqrt();
                        let column = scaled.col_as_slice_mut(c);
                        column[self.rank] = R::narrow(root);
                        for (scaled, z) in column.iter_mut().zip(self.row(i)) {
                            *scaled = R::narrow(root * z.wide());
                        }
                    }
                    triangular::matmul(
                        part.as_mut(),
                        BlockStructure::TriangularUpper,
                        Accum::Add,
                        scaled.as_ref(),
                        BlockStructure::Rectangular,
                        scaled.transpose(),
                        BlockStructure::Rectangular,
                        R::narrow(1.0),
                        Par::Seq,
                    );
                }
                Ok(part)
            })
            .collect::<Result<Vec<Mat<R>>>>()?;
        let add = |mut sum: Mat<R>, part: Mat<R>| {
            sum += part;
            sum
        };
        Ok(parts.into_iter().reduce(add).unwrap_or_else(|| Mat::zeros(order, order)))
    }
}

/// A·B, on this thread.
pub(crate) fn product<R: Working>(a: MatRef<R>, b: MatRef<R>) -> Mat<R> {
    let mut out = Mat::<R>::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, R::narrow(1.0), Par::Seq);
    out
}

/// The columns, widened.
fn columns<R: Working>(a: &Mat<R>) -> Vec<Vec<f64>> {
    (0..a.ncols()).map(|c| a.col_as_slice(c).iter().map(|v| v.wide()).collect()).collect()
}
