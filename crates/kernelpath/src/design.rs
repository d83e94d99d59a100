//! Products with the features Z of a low-rank kernel, K = ZZᵀ, in bands of rows, on all threads.
//!
//! The order of summation depends on the bands alone, so the answer does not depend on the threads.

use std::ops::Range;

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatRef, Par, linalg::matmul::matmul};
use rayon::prelude::*;

use crate::error::Result;
use crate::observe::Control;
use crate::solver::Working;

/// Rows of a band.
const BAND: usize = 512;

/// Groups of bands whose ZᵀSZ are summed apart.
const GROUPS: usize = 4;

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

    /// The lower triangle of [Z 1]ᵀ S [Z 1], in f64.
    pub fn curvature(&self, s: &[f64], control: &Control) -> Result<Mat<f64>> {
        let order = self.rank + 1;
        let rows: Vec<usize> = (0..self.n).filter(|&i| s[i] > 0.0).collect();
        let groups: Vec<&[usize]> = rows.chunks(rows.len().div_ceil(GROUPS).max(1)).collect();
        let parts = groups
            .into_par_iter()
            .map(|group| {
                let mut part = Mat::<f64>::zeros(order, order);
                for rows in group.chunks(BAND) {
                    control.check()?;
                    let mut scaled = Mat::<f64>::zeros(order, rows.len());
                    for (c, &i) in rows.iter().enumerate() {
                        let root = s[i].sqrt();
                        let column = scaled.col_as_slice_mut(c);
                        column[self.rank] = root;
                        for (scaled, z) in column.iter_mut().zip(self.row(i)) {
                            *scaled = root * z.wide();
                        }
                    }
                    triangular::matmul(
                        part.as_mut(),
                        BlockStructure::TriangularLower,
                        Accum::Add,
                        scaled.as_ref(),
                        BlockStructure::Rectangular,
                        scaled.transpose(),
                        BlockStructure::Rectangular,
                        1.0,
                        Par::Seq,
                    );
                }
                Ok(part)
            })
            .collect::<Result<Vec<Mat<f64>>>>()?;
        let mut sum = Mat::<f64>::zeros(order, order);
        for part in &parts {
            sum += part;
        }
        Ok(sum)
    }
}

fn product<R: Working>(a: MatRef<R>, b: MatRef<R>) -> Mat<R> {
    let mut out = Mat::<R>::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, R::narrow(1.0), Par::Seq);
    out
}

/// The columns, widened.
fn columns<R: Working>(a: &Mat<R>) -> Vec<Vec<f64>> {
    (0..a.ncols()).map(|c| a.col_as_slice(c).iter().map(|v| v.wide()).collect()).collect()
}
