//! The processor: faer products, shared out among the threads in fixed bands.

use faer::{Mat, MatRef};

use crate::device::{Block, Device, Spectrum};
use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::loss::smoothed::Smoothed;
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design, product};
use crate::numeric::eigen::eigen;
use crate::numeric::entry::Entry;
use crate::numeric::memory;
use crate::numeric::parallel;
use crate::numeric::simd::{dot, vectorise};
use crate::observe::Control;

/// Rows of a product that one thread computes.
const ROWS_PER_THREAD: usize = 128;

/// The processor.
pub(crate) struct Cpu;

/// A product in the precision of its factors, whose rows are shared out among the threads.
fn banded<R: Working>(a: MatRef<R>, b: MatRef<R>) -> Result<Mat<f64>> {
    let (rows, columns) = (a.nrows(), b.ncols());
    let mut out = zeros(rows, columns)?;
    // Room for the bands.
    memory::check_block(rows * columns * size_of::<R>(), PRODUCT)?;
    let bands = parallel::map((0..rows).step_by(ROWS_PER_THREAD), |start| {
        product(a.subrows(start, ROWS_PER_THREAD.min(rows - start)), b)
    });
    for c in 0..columns {
        let column = out.col_as_slice_mut(c);
        for (part, band) in column.chunks_mut(ROWS_PER_THREAD).zip(&bands) {
            part.iter_mut().zip(band.col_as_slice(c)).for_each(|(out, value)| *out = value.wide());
        }
    }
    Ok(out)
}

/// What errors call the matrices of a step.
const PRODUCT: &str = "a product with the eigenvectors";

pub(crate) fn zeros(rows: usize, columns: usize) -> Result<Mat<f64>> {
    memory::matrix(rows, columns, PRODUCT, |_, _| 0.0)
}

fn narrow(a: &Mat<f64>) -> Result<Mat<f32>> {
    memory::matrix(a.nrows(), a.ncols(), "the eigenvectors in single precision", |i, j| a[(i, j)] as f32)
}

impl Device for Cpu {
    type Matrix = Mat<f64>;
    type Narrow = Mat<f32>;

    fn upload(&self, rows: usize, columns: &[Vec<f64>]) -> Result<Mat<f64>> {
        memory::matrix(rows, columns.len(), PRODUCT, |i, c| columns[c][i])
    }

    fn download(&self, matrix: &Mat<f64>) -> Result<Vec<Vec<f64>>> {
        Ok((0..matrix.ncols()).map(|c| matrix.col_as_slice(c).to_vec()).collect())
    }

    fn narrow(&self, matrix: &Mat<f64>) -> Result<Mat<f32>> {
        narrow(matrix)
    }

    fn gram<T: Entry>(&self, gram: &Gram<T>) -> Result<Mat<f64>> {
        memory::matrix(gram.n(), gram.n(), "the kernel matrix in double precision", |i, j| gram.get(i, j))
    }

    fn eigh(&self, k: Mat<f64>, control: &Control) -> Result<(Vec<f64>, Mat<f64>)> {
        let (values, basis) = eigen(k, control)?;
        Ok((values.into_iter().map(|v| v.max(0.0)).collect(), basis))
    }

    fn times(&self, a: &Mat<f64>, b: &Mat<f64>) -> Result<Mat<f64>> {
        banded(a.as_ref(), b.as_ref())
    }

    fn transposed_times(&self, a: &Mat<f64>, b: &Mat<f64>) -> Result<Mat<f64>> {
        banded(a.as_ref().transpose(), b.as_ref())
    }

    fn narrow_times(&self, a: &Mat<f32>, b: &Mat<f64>) -> Result<Mat<f64>> {
        banded(a.as_ref(), narrow(b)?.as_ref())
    }

    fn narrow_transposed_times(&self, a: &Mat<f32>, b: &Mat<f64>) -> Result<Mat<f64>> {
        banded(a.as_ref().transpose(), narrow(b)?.as_ref())
    }

    fn features_times<T: Working>(
        &self,
        z: Design<T>,
        b: &Mat<f64>,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Mat<f64>> {
        let w: Vec<&[f64]> = (0..b.ncols()).map(|c| &b.col_as_slice(c)[..z.rank()]).collect();
        let products = z.times(&w, accuracy, control)?;
        let mut out = zeros(z.n(), b.ncols())?;
        for (c, product) in products.iter().enumerate() {
            let shift = b[(z.rank(), c)];
            out.col_as_slice_mut(c).iter_mut().zip(product).for_each(|(out, value)| *out = value + shift);
        }
        Ok(out)
    }

    fn features_transposed_times<T: Working>(
        &self,
        z: Design<T>,
        b: &Mat<f64>,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Mat<f64>> {
        let columns: Vec<&[f64]> = (0..b.ncols()).map(|c| b.col_as_slice(c)).collect();
        let mut products = z.transposed_times(&columns, accuracy, control)?;
        products.iter_mut().zip(columns).for_each(|(product, column)| product.push(column.iter().sum()));
        self.upload(z.rank() + 1, &products)
    }

    fn pass<T: Working>(
        &self,
        z: Design<T>,
        w: &[&[f64]],
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Vec<Vec<f64>>> {
        z.times(w, accuracy, control)
    }

    fn pass_back<T: Working>(
        &self,
        z: Design<T>,
        v: &[&[f64]],
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Vec<Vec<f64>>> {
        z.transposed_times(v, accuracy, control)
    }

    fn curvature<T: Working, R: Working>(
        &self,
        z: Design<T>,
        s: &[f64],
        groups: usize,
        control: &Control,
    ) -> Result<Mat<R>> {
        z.curvature(s, groups, control)
    }

    fn scale_rows(&self, scale: &[f64], a: &Mat<f64>) -> Result<Mat<f64>> {
        let mut out = memory::matrix(a.nrows(), a.ncols(), PRODUCT, |i, j| a[(i, j)])?;
        for c in 0..out.ncols() {
            for (value, scale) in out.col_as_slice_mut(c).iter_mut().zip(scale) {
                *value *= scale;
            }
        }
        Ok(out)
    }

    fn select(&self, a: &Mat<f64>, columns: &[usize]) -> Result<Mat<f64>> {
        memory::matrix(a.nrows(), columns.len(), PRODUCT, |i, c| a[(i, columns[c])])
    }

    fn rows(&self, a: &Mat<f64>, rows: &[usize]) -> Result<Mat<f64>> {
        memory::matrix(a.ncols(), rows.len(), "the rows of a fold", |k, i| a[(rows[i], k)])
    }

    fn pulls(&self, loss: Smoothed, y: &[f64], weight: &Mat<f64>, f: &Mat<f64>, b: &[f64]) -> Result<Mat<f64>> {
        let mut out = zeros(f.nrows(), f.ncols())?;
        parallel::for_each(columns_mut(&mut out).enumerate(), |(c, out)| {
            let (f, weight, b) = (f.col_as_slice(c), weight.col_as_slice(c), b[c]);
            loss.vectorised(
                #[inline(always)]
                |loss| {
                    for (((out, &y), &cw), &f) in out.iter_mut().zip(y).zip(weight).zip(f) {
                        *out = cw * loss.pull(y, f + b);
                    }
                },
            );
        });
        Ok(out)
    }

    fn resolvent(&self, values: &[f64], curvature: &[f64]) -> Result<Mat<f64>> {
        memory::matrix(values.len(), curvature.len(), PRODUCT, |k, c| 1.0 / (1.0 + curvature[c] * values[k]))
    }

    fn combine(&self, terms: &[(&Mat<f64>, &[f64])]) -> Result<Mat<f64>> {
        let (rows, columns) = terms.first().map_or((0, 0), |(a, _)| (a.nrows(), a.ncols()));
        memory::matrix(rows, columns, PRODUCT, |i, c| terms.iter().map(|(a, scale)| scale[c] * a[(i, c)]).sum())
    }

    fn hadamard(&self, a: &Mat<f64>, b: &Mat<f64>) -> Result<Mat<f64>> {
        memory::matrix(a.nrows(), a.ncols(), PRODUCT, |i, c| a[(i, c)] * b[(i, c)])
    }

    fn column_dots(&self, a: &Mat<f64>, b: &Mat<f64>) -> Result<Vec<f64>> {
        Ok((0..a.ncols()).map(|c| dot(a.col_as_slice(c), b.col_as_slice(c))).collect())
    }

    fn fused_step(
        &self,
        block: &mut Block<Mat<f64>>,
        pulls: &Mat<f64>,
        spectrum: &Spectrum,
        curvature: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        let Block { coordinates, ahead, b, b_ahead, momentum } = block;
        let columns = (columns_mut(coordinates).zip(columns_mut(ahead)))
            .zip(b.iter_mut().zip(b_ahead).zip(momentum))
            .map(|((last, ahead), ((b, b_ahead), momentum))| Moving { last, ahead, b, b_ahead, momentum });
        let gap = |(c, (column, &cm)): (usize, (Moving, &f64))| {
            let pulls = pulls.col_as_slice(c);
            vectorise(
                #[inline(always)]
                || column.advance(pulls, spectrum, cm),
            )
        };
        Ok(Some(parallel::map(columns.zip(curvature).enumerate(), gap)))
    }
}

/// The columns of a matrix, to be written in parallel.
fn columns_mut(matrix: &mut Mat<f64>) -> impl Iterator<Item = &mut [f64]> {
    matrix.col_iter_mut().filter_map(|column| Some(column.try_as_col_major_mut()?.as_slice_mut()))
}

/// A column of a block.
struct Moving<'a> {
    last: &'a mut [f64],
    ahead: &'a mut [f64],
    b: &'a mut f64,
    b_ahead: &'a mut f64,
    momentum: &'a mut f64,
}

impl Moving<'_> {
    #[inline(always)]
    fn advance(self, pulls: &[f64], spectrum: &Spectrum, cm: f64) -> f64 {
        let Spectrum { values, ones } = spectrum;
        let n = values.len();
        let Self { last, ahead, b, b_ahead, momentum } = self;
        let (last, ahead, pulls, ones) = (&mut last[..n], &mut ahead[..n], &pulls[..n], &ones[..n]);
        // q = 1 / (1 + CMλ), r = Uᵀθ − ahead; Δb makes Σβ = 0.
        let (mut up, mut down, mut gap) = (0.0, 0.0, 0.0);
        for k in 0..n {
            let q = 1.0 / (1.0 + cm * values[k]);
            let r = pulls[k] - ahead[k];
            gap += 0.5 * values[k] * r * r;
            up += ones[k] * (q * r + ahead[k]);
            down += ones[k] * ones[k] * q;
        }
        let shift = if down > 0.0 { up / (cm * down) } else { 0.0 };
        let b_new = *b_ahead + shift;
        let next = 0.5 * (1.0 + (1.0 + 4.0 * *momentum * *momentum).sqrt());
        let carry = (*momentum - 1.0) / next;
        let mut uphill = 0.0;
        for k in 0..n {
            let q = 1.0 / (1.0 + cm * values[k]);
            let new = ahead[k] + q * (pulls[k] - ahead[k] - cm * shift * ones[k]);
            uphill += values[k] * (ahead[k] - new) * (new - last[k]);
            ahead[k] = new + carry * (new - last[k]);
            last[k] = new;
        }
        *b_ahead = b_new + carry * (b_new - *b);
        *b = b_new;
        *momentum = next;
        if uphill > 0.0 {
            ahead.copy_from_slice(last);
            *b_ahead = b_new;
            *momentum = 1.0;
        }
        gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_of_the_host_equal_those_of_matrices_on_the_device() {
        let (n, rank, control) = (700, 5, Control::default());
        let z: Vec<f64> = (0..n * rank).map(|i| (0.37 * i as f64).sin()).collect();
        let z = Design::new(&z, &[], n, rank);
        let columns = |length: usize| -> Vec<Vec<f64>> {
            (0..3).map(|c| (0..length).map(|i| (0.1 * (i * (c + 1)) as f64).cos()).collect()).collect()
        };
        let close = |a: &[Vec<f64>], b: &[Vec<f64>]| {
            assert_eq!(a.len(), b.len());
            for (a, b) in a.iter().zip(b) {
                assert_eq!(a.len(), b.len());
                assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-10));
            }
        };
        // The last row, which belongs to the intercept, is 0.
        let mut w = columns(rank + 1);
        for w in &mut w {
            w[rank] = 0.0;
        }
        let on_device = Cpu.features_times(z, &Cpu.upload(rank + 1, &w).unwrap(), Accuracy::Double, &control).unwrap();
        let w: Vec<&[f64]> = w.iter().map(|w| &w[..rank]).collect();
        close(&Cpu.pass(z, &w, Accuracy::Double, &control).unwrap(), &Cpu.download(&on_device).unwrap());

        let v = columns(n);
        let uploaded = Cpu.upload(n, &v).unwrap();
        let on_device = Cpu.features_transposed_times(z, &uploaded, Accuracy::Double, &control).unwrap();
        let mut expected = Cpu.download(&on_device).unwrap();
        for column in &mut expected {
            column.truncate(rank);
        }
        let v: Vec<&[f64]> = v.iter().map(|v| &v[..]).collect();
        close(&Cpu.pass_back(z, &v, Accuracy::Double, &control).unwrap(), &expected);
    }
}
