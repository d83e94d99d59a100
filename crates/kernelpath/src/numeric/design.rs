//! Products with the features Z of a low-rank kernel, K = ZZᵀ, in bands of rows, on all threads.
//!
//! The order of summation depends on the bands alone, so the answer does not depend on the threads.

use faer::linalg::matmul::triangular::BlockStructure;
use faer::linalg::matmul::{matmul, triangular};
use faer::{Accum, Mat, MatRef, Par};
use std::borrow::Cow;
use std::ops::Range;

use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::entry::corrected;
use crate::numeric::memory::Zeroable;
use crate::numeric::parallel;
use crate::numeric::remote::Remote;
use crate::numeric::simd::{dot_in_lanes, vectorise};
use crate::numeric::{memory, skinny};
use crate::observe::Control;

/// Rows of a band, which one thread works on.
const DESIGN_BAND: usize = 512;

/// The precision in which a product is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accuracy {
    /// The precision of Z: for a step, which the next one corrects.
    Working,
    /// f64: for a certificate.
    Double,
}

/// Features of some rows, row after row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Design<'a, T> {
    values: &'a [T],
    /// [Corrections](crate::numeric::entry::residue) of the values, for products in double precision; empty if there are none.
    residues: &'a [i16],
    n: usize,
    rank: usize,
    /// The features on a device, where passes over all rows run.
    remote: Option<&'a dyn Remote>,
}

/// A copy of the features of some rows.
#[derive(Debug)]
pub(crate) struct Gathered<T> {
    values: Vec<T>,
    residues: Vec<i16>,
    n: usize,
    rank: usize,
}

impl<T: Working> Gathered<T> {
    pub fn design(&self) -> Design<'_, T> {
        Design::new(&self.values, &self.residues, self.n, self.rank)
    }

    /// The values, row after row.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }
}

impl<'a, T: Working> Design<'a, T> {
    /// `values` holds `rank` numbers for each of `n` rows.
    pub fn new(values: &'a [T], residues: &'a [i16], n: usize, rank: usize) -> Self {
        Self { values, residues, n, rank, remote: None }
    }

    /// The same features, with passes over all rows on a device.
    pub fn with_remote(self, remote: Option<&'a dyn Remote>) -> Self {
        Self { remote, ..self }
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

    fn band(&self, rows: Range<usize>) -> &'a [T] {
        &self.values[rows.start * self.rank..rows.end * self.rank]
    }

    /// Some rows in double precision.
    fn wide_band(&self, rows: Range<usize>) -> Vec<f64> {
        let at = rows.start * self.rank..rows.end * self.rank;
        widened(&self.values[at.clone()], if self.residues.is_empty() { &[] } else { &self.residues[at] })
    }

    fn bands(&self) -> impl Iterator<Item = Range<usize>> {
        let n = self.n;
        (0..n).step_by(DESIGN_BAND).map(move |start| start..n.min(start + DESIGN_BAND))
    }

    /// A copy of some rows, for products of this accuracy.
    pub fn gather(&self, rows: &[usize], accuracy: Accuracy) -> Result<Gathered<T>> {
        let (n, rank) = (rows.len(), self.rank);
        let residues = match accuracy {
            Accuracy::Double if !self.residues.is_empty() => gathered(self.residues, rows, rank)?,
            _ => Vec::new(),
        };
        Ok(Gathered { values: gathered(self.values, rows, rank)?, residues, n, rank })
    }

    /// The first `features` features of all rows, in f64, row after row.
    pub fn first(&self, features: usize) -> Vec<f64> {
        (0..self.n).flat_map(|i| self.row(i)[..features].iter().map(|value| value.wide())).collect()
    }

    /// The diagonal of ZZᵀ.
    pub fn squared_lengths(&self) -> Vec<f64> {
        (0..self.n).map(|i| self.row(i).iter().map(|value| value.wide().powi(2)).sum()).collect()
    }

    /// Z·W, column by column.
    pub fn times(&self, w: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>> {
        if self.rank == 0 {
            return Ok(vec![vec![0.0; self.n]; w.len()]);
        }
        if let Some(remote) = self.remote {
            return remote.times(w, accuracy, control);
        }
        let w: Vec<f64> = w.concat();
        match accuracy {
            Accuracy::Working => {
                let w: Vec<T> = w.into_iter().map(T::narrow).collect();
                self.times_in(&w, |rows| self.band(rows).into(), control)
            }
            Accuracy::Double => self.times_in(&w, |rows| self.wide_band(rows).into(), control),
        }
    }

    /// Z·W in the precision of R. `band` gives some rows of Z in that precision.
    fn times_in<R: Working>(
        &self,
        w: &[R],
        band: impl Fn(Range<usize>) -> Cow<'a, [R]> + Sync,
        control: &Control,
    ) -> Result<Vec<Vec<f64>>> {
        let columns = w.len() / self.rank;
        let tiles = parallel::try_map(self.bands(), |rows| {
            control.check()?;
            Ok(rows_times(&band(rows), self.rank, w))
        })?;
        let column = |c: usize| {
            let mut column = Vec::with_capacity(self.n);
            skinny::column(&tiles, c, columns).for_each(|part| column.extend(part.iter().map(|value| value.wide())));
            column
        };
        Ok(parallel::map(0..columns, column))
    }

    /// Zᵀ·V, column by column. If many rows of V are 0 in all columns, these rows of Z are not read.
    pub fn transposed_times(&self, v: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>> {
        if self.rank == 0 {
            return Ok(vec![Vec::new(); v.len()]);
        }
        if let Some(remote) = self.remote {
            return remote.transposed_times(v, accuracy, control);
        }
        let mut rows = with_numbers(v);
        let most = 4 * rows.len() > 3 * self.n;
        if most {
            rows = (0..self.n).collect();
        }
        let parts = parallel::try_map(rows.chunks(DESIGN_BAND), |rows| {
            control.check()?;
            let gathered = if most { None } else { Some(self.gather(rows, accuracy)?) };
            let (from, range) = match &gathered {
                None => (*self, rows[0]..rows[0] + rows.len()),
                Some(gathered) => (gathered.design(), 0..rows.len()),
            };
            Ok(match accuracy {
                Accuracy::Working => widened(&columns_times(from.band(range), self.rank, &parts_of(v, rows)), &[]),
                Accuracy::Double => columns_times(&from.wide_band(range), self.rank, &parts_of(v, rows)),
            })
        })?;
        let mut sum = vec![0.0; self.rank * v.len()];
        for part in parts {
            sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
        Ok((0..v.len()).map(|c| sum[c * self.rank..(c + 1) * self.rank].to_vec()).collect())
    }

    /// ZᵀS(Zp + 1·shift) and the sum of S(Zp + 1·shift), in one pass over Z on this thread.
    pub fn curved_times(&self, s: &[f64], p: &[f64], shift: f64, accuracy: Accuracy) -> (Vec<f64>, f64) {
        match accuracy {
            Accuracy::Working => curved_times::<T, T>(self.values, s, p, shift),
            Accuracy::Double if self.residues.is_empty() => curved_times::<T, f64>(self.values, s, p, shift),
            Accuracy::Double => {
                let (mut product, mut sum) = (vec![0.0; self.rank], 0.0);
                for start in (0..self.n).step_by(DESIGN_BAND) {
                    let rows = start..self.n.min(start + DESIGN_BAND);
                    let (part, part_sum) = curved_times::<f64, f64>(&self.wide_band(rows.clone()), &s[rows], p, shift);
                    product.iter_mut().zip(part).for_each(|(product, part)| *product += part);
                    sum += part_sum;
                }
                (product, sum)
            }
        }
    }

    /// The upper triangle of [Z 1]ᵀ S [Z 1], in the precision of R. The sums over `groups` groups of rows are taken
    /// side by side.
    pub fn curvature<R: Working>(&self, s: &[f64], groups: usize, control: &Control) -> Result<Mat<R>> {
        let order = self.rank + 1;
        if let Some(remote) = self.remote {
            let accuracy = if R::IS_ROUGH { Accuracy::Working } else { Accuracy::Double };
            let sum = remote.curvature(s, accuracy, control)?;
            return memory::matrix(order, order, "a curvature of the features", |i, j| R::narrow(sum[(i, j)]));
        }
        let rows: Vec<usize> = (0..self.n).filter(|&i| s[i] > 0.0).collect();
        let chunks = rows.chunks(rows.len().div_ceil(groups).max(1));
        let parts = parallel::try_map(chunks, |chunk| {
            let mut part = memory::matrix(order, order, "a curvature of the features", |_, _| R::default())?;
            for rows in chunk.chunks(DESIGN_BAND) {
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
        })?;
        let add = |mut sum: Mat<R>, part: Mat<R>| {
            sum += part;
            sum
        };
        Ok(parts.into_iter().reduce(add).unwrap_or_else(|| Mat::zeros(order, order)))
    }
}

/// [`Design::curved_times`] on rows stored as T, in the precision of R.
fn curved_times<T: Working, R: Working>(values: &[T], s: &[f64], p: &[f64], shift: f64) -> (Vec<f64>, f64) {
    let rank = p.len();
    let p: Vec<R> = p.iter().map(|p| R::narrow(*p)).collect();
    let (mut product, mut sum) = (vec![R::default(); rank], 0.0);
    vectorise(
        #[inline(always)]
        || {
            for (row, s) in values.chunks_exact(rank).zip(s) {
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

/// A copy of the given rows, `length` numbers each.
fn gathered<V: Zeroable + Send + Sync>(values: &[V], rows: &[usize], length: usize) -> Result<Vec<V>> {
    let mut copy: Vec<V> = memory::zeros(rows.len() * length, "a copy of the features of some rows")?;
    let length = length.max(1);
    let bands = copy.chunks_mut(DESIGN_BAND * length).zip(rows.chunks(DESIGN_BAND));
    parallel::for_each(bands, |(copy, rows)| {
        for (target, &i) in copy.chunks_exact_mut(length).zip(rows) {
            target.copy_from_slice(&values[i * length..(i + 1) * length]);
        }
    });
    Ok(copy)
}

/// A·B, on this thread.
pub(crate) fn product<R: Working>(a: MatRef<R>, b: MatRef<R>) -> Mat<R> {
    let mut out = Mat::<R>::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, R::narrow(1.0), Par::Seq);
    out
}

/// A·B, column after column. `a` holds the rows of A and `b` the columns of B, `length` numbers each.
fn rows_times<R: Working>(a: &[R], length: usize, b: &[R]) -> Vec<R> {
    let (height, columns) = (a.len() / length, b.len() / length);
    if columns <= skinny::FEW {
        return skinny::product(a, length, height, b, length);
    }
    let right = MatRef::from_column_major_slice(b, length, columns);
    by_columns(&product(MatRef::from_row_major_slice(a, height, length), right))
}

/// Aᵀ·B, column after column. `a` holds the rows of A, `length` numbers each, and `b` the columns of B.
fn columns_times<R: Working>(a: &[R], length: usize, b: &[R]) -> Vec<R> {
    let height = a.len() / length;
    let columns = b.len() / height;
    if columns <= skinny::FEW {
        return skinny::transposed(a, length, height, 0, b, height);
    }
    let right = MatRef::from_column_major_slice(b, height, columns);
    by_columns(&product(MatRef::from_column_major_slice(a, length, height), right))
}

fn by_columns<R: Working>(a: &Mat<R>) -> Vec<R> {
    (0..a.ncols()).flat_map(|c| a.col_as_slice(c)).copied().collect()
}

/// Some rows of all columns, column after column.
fn parts_of<R: Working>(columns: &[&[f64]], rows: &[usize]) -> Vec<R> {
    let mut parts = Vec::with_capacity(columns.len() * rows.len());
    for column in columns {
        parts.extend(rows.iter().map(|&i| R::narrow(column[i])));
    }
    parts
}

/// Rows that are not 0 in every column.
pub(crate) fn with_numbers(columns: &[&[f64]]) -> Vec<usize> {
    let mut numbers = vec![false; columns.first().map_or(0, |column| column.len())];
    parallel::for_each(numbers.chunks_mut(DESIGN_BAND).enumerate(), |(band, numbers)| {
        for column in columns {
            numbers.iter_mut().zip(&column[band * DESIGN_BAND..]).for_each(|(number, value)| *number |= *value != 0.0);
        }
    });
    (0..numbers.len()).filter(|&i| numbers[i]).collect()
}

/// The values in double precision, with corrections if there are any.
fn widened<R: Working>(values: &[R], residues: &[i16]) -> Vec<f64> {
    if residues.is_empty() {
        return values.iter().map(|value| value.wide()).collect();
    }
    let mut wide = vec![0.0; values.len()];
    vectorise(
        #[inline(always)]
        || {
            for ((wide, value), residue) in wide.iter_mut().zip(values).zip(residues) {
                *wide = corrected(*value, *residue);
            }
        },
    );
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with Zᵀ·V summed row by row, where V has nonzero numbers in all rows, in half of them, in few and in
    /// none.
    #[test]
    fn rows_without_numbers_are_left_out() {
        let (n, rank, columns) = (3 * DESIGN_BAND + 7, 5, 3);
        let mut rng = fastrand::Rng::with_seed(1);
        let z: Vec<f32> = (0..n * rank).map(|_| rng.f32() - 0.5).collect();
        let design = Design::new(&z, &[], n, rank);
        for share in [1.0, 0.5, 0.01, 0.0] {
            let mut entry = || if rng.f64() < share { rng.f64() - 0.5 } else { 0.0 };
            let v: Vec<Vec<f64>> = (0..columns).map(|_| (0..n).map(|_| entry()).collect()).collect();
            let parts: Vec<&[f64]> = v.iter().map(|v| &v[..]).collect();
            for (accuracy, error) in [(Accuracy::Working, 1e-4), (Accuracy::Double, 1e-12)] {
                let products = design.transposed_times(&parts, accuracy, &Control::default()).unwrap();
                assert_eq!(products.len(), columns);
                for (product, v) in products.iter().zip(&v) {
                    for (j, value) in product.iter().enumerate() {
                        let sum: f64 = (0..n).map(|i| f64::from(z[i * rank + j]) * v[i]).sum();
                        assert!((value - sum).abs() < error, "{share} of the rows: {value} is not {sum}");
                    }
                }
            }
        }
    }
}
