//! The processor: faer products, shared out among the threads in fixed bands.

use faer::{Mat, MatRef};

use crate::device::matrix::Matrix;
use crate::device::{Block, Device, Spectrum};
use crate::error::Result;
use crate::loss::smoothed::Smoothed;
use crate::numeric::cholesky::Working;
use crate::numeric::design::product;
use crate::numeric::eigen::eigen;
use crate::numeric::memory;
use crate::numeric::parallel;
use crate::numeric::simd::{dot, vectorise};
use crate::observe::Control;

/// Rows of a product that one thread computes.
const ROWS_PER_THREAD: usize = 128;

/// The processor.
pub(crate) struct Cpu;

/// A product in the precision of its factors, whose rows are shared out among the threads.
fn banded<R: Working>(a: MatRef<R>, b: MatRef<R>, control: &Control) -> Result<Mat<f64>> {
    let (rows, columns) = (a.nrows(), b.ncols());
    let mut out = zeros(rows, columns)?;
    // Room for the bands.
    memory::check_block(rows * columns * size_of::<R>(), PRODUCT)?;
    let bands = parallel::try_map((0..rows).step_by(ROWS_PER_THREAD), |start| {
        control.check()?;
        Ok(product(a.subrows(start, ROWS_PER_THREAD.min(rows - start)), b))
    })?;
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

/// A matrix of the processor, in double precision.
fn double(matrix: &Matrix) -> &Mat<f64> {
    matrix.of()
}

fn made(matrix: Mat<f64>) -> Matrix {
    Matrix::new(matrix.nrows(), matrix.ncols(), matrix)
}

impl Device for Cpu {
    fn upload(&self, rows: usize, columns: &[Vec<f64>]) -> Result<Matrix> {
        Ok(made(memory::matrix(rows, columns.len(), PRODUCT, |i, c| columns[c][i])?))
    }

    fn download(&self, matrix: &Matrix) -> Result<Vec<Vec<f64>>> {
        Ok((0..matrix.columns).map(|c| double(matrix).col_as_slice(c).to_vec()).collect())
    }

    fn symmetric(&self, n: usize, fill: &(dyn Fn(usize, &mut [f64]) + Sync), control: &Control) -> Result<Matrix> {
        let mut matrix = memory::matrix(n, n, "the kernel matrix in double precision", |_, _| 0.0)?;
        parallel::try_for_each(columns_mut(&mut matrix).enumerate(), |(i, column)| {
            control.check()?;
            fill(i, column);
            Ok(())
        })?;
        Ok(made(matrix))
    }

    fn narrow(&self, matrix: &Matrix) -> Result<Matrix> {
        Ok(Matrix::new(matrix.rows, matrix.columns, narrow(double(matrix))?))
    }

    fn eigh(&self, k: Matrix, control: &Control) -> Result<(Vec<f64>, Matrix)> {
        let (values, basis) = eigen(k.into_inner(), control)?;
        Ok((values.into_iter().map(|v| v.max(0.0)).collect(), made(basis)))
    }

    fn times(&self, a: &Matrix, b: &Matrix, control: &Control) -> Result<Matrix> {
        Ok(made(match a.get::<Mat<f32>>() {
            Some(a) => banded(a.as_ref(), narrow(double(b))?.as_ref(), control)?,
            None => banded(double(a).as_ref(), double(b).as_ref(), control)?,
        }))
    }

    fn transposed_times(&self, a: &Matrix, b: &Matrix, control: &Control) -> Result<Matrix> {
        Ok(made(match a.get::<Mat<f32>>() {
            Some(a) => banded(a.as_ref().transpose(), narrow(double(b))?.as_ref(), control)?,
            None => banded(double(a).as_ref().transpose(), double(b).as_ref(), control)?,
        }))
    }

    fn times_in_double(&self, a: &Matrix, b: &Matrix, transposed: bool, control: &Control) -> Result<Matrix> {
        let wide;
        let a = if let Some(a) = a.get::<Mat<f32>>() {
            wide = memory::matrix(a.nrows(), a.ncols(), PRODUCT, |i, j| f64::from(a[(i, j)]))?;
            &wide
        } else {
            double(a)
        };
        let a = if transposed { a.as_ref().transpose() } else { a.as_ref() };
        Ok(made(banded(a, double(b).as_ref(), control)?))
    }

    fn scale_rows(&self, scale: &[f64], a: &Matrix) -> Result<Matrix> {
        let a = double(a);
        let mut out = memory::matrix(a.nrows(), a.ncols(), PRODUCT, |i, j| a[(i, j)])?;
        for c in 0..out.ncols() {
            for (value, scale) in out.col_as_slice_mut(c).iter_mut().zip(scale) {
                *value *= scale;
            }
        }
        Ok(made(out))
    }

    fn select(&self, a: &Matrix, columns: &[usize]) -> Result<Matrix> {
        let a = double(a);
        Ok(made(memory::matrix(a.nrows(), columns.len(), PRODUCT, |i, c| a[(i, columns[c])])?))
    }

    fn rows(&self, a: &Matrix, rows: &[usize]) -> Result<Matrix> {
        let a = double(a);
        Ok(made(memory::matrix(a.ncols(), rows.len(), "the rows of a fold", |k, i| a[(rows[i], k)])?))
    }

    fn pulls(&self, loss: Smoothed, y: &[f64], weight: &Matrix, f: &Matrix, b: &[f64]) -> Result<Matrix> {
        let (weight, f) = (double(weight), double(f));
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
        Ok(made(out))
    }

    fn resolvent(&self, values: &[f64], curvature: &[f64]) -> Result<Matrix> {
        let entry = |k: usize, c: usize| 1.0 / (1.0 + curvature[c] * values[k]);
        Ok(made(memory::matrix(values.len(), curvature.len(), PRODUCT, entry)?))
    }

    fn combine(&self, terms: &[(&Matrix, &[f64])]) -> Result<Matrix> {
        let (rows, columns) = terms.first().map_or((0, 0), |(a, _)| (a.rows, a.columns));
        let terms: Vec<(&Mat<f64>, &[f64])> = terms.iter().map(|(a, scale)| (double(a), *scale)).collect();
        let entry = |i: usize, c: usize| terms.iter().map(|(a, scale)| scale[c] * a[(i, c)]).sum();
        Ok(made(memory::matrix(rows, columns, PRODUCT, entry)?))
    }

    fn hadamard(&self, a: &Matrix, b: &Matrix) -> Result<Matrix> {
        let (a, b) = (double(a), double(b));
        Ok(made(memory::matrix(a.nrows(), a.ncols(), PRODUCT, |i, c| a[(i, c)] * b[(i, c)])?))
    }

    fn column_dots(&self, a: &Matrix, b: &Matrix) -> Result<Vec<f64>> {
        let (a, b) = (double(a), double(b));
        Ok((0..a.ncols()).map(|c| dot(a.col_as_slice(c), b.col_as_slice(c))).collect())
    }

    fn fused_step(
        &self,
        block: &mut Block,
        pulls: &Matrix,
        spectrum: &Spectrum,
        curvature: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        let Block { coordinates, ahead, b, b_ahead, momentum } = block;
        let columns = (columns_mut(coordinates.of_mut()).zip(columns_mut(ahead.of_mut())))
            .zip(b.iter_mut().zip(b_ahead).zip(momentum))
            .map(|((last, ahead), ((b, b_ahead), momentum))| Moving { last, ahead, b, b_ahead, momentum });
        let gap = |(c, (column, &cm)): (usize, (Moving, &f64))| {
            let pulls = double(pulls).col_as_slice(c);
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
