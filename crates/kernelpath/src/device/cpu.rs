//! The processor: faer products, shared out among the threads in fixed bands.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Side};
use rayon::prelude::*;

use super::{Block, Device, Spectrum};
use crate::error::{Error, Result};
use crate::gram::{Entry, Gram};
use crate::loss::Smoothed;
use crate::observe::Control;

/// Rows of a product that one thread computes.
const BAND: usize = 128;

/// The processor.
pub(crate) struct Cpu;

/// A product whose rows are shared out among the threads.
fn product(a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let (rows, columns) = (a.nrows(), b.ncols());
    let starts: Vec<usize> = (0..rows).step_by(BAND).collect();
    let bands: Vec<Mat<f64>> = starts
        .into_par_iter()
        .map(|start| {
            let height = BAND.min(rows - start);
            let mut band = Mat::zeros(height, columns);
            matmul(band.as_mut(), Accum::Replace, a.subrows(start, height), b, 1.0, Par::Seq);
            band
        })
        .collect();
    let mut out = Mat::zeros(rows, columns);
    for c in 0..columns {
        let column = out.col_as_slice_mut(c);
        for (part, band) in column.chunks_mut(BAND).zip(&bands) {
            part.copy_from_slice(band.col_as_slice(c));
        }
    }
    out
}

/// The eigenvalues of a symmetric matrix, ascending, and its eigenvectors.
///
/// In a thread of its own, since it cannot be interrupted: when the fit is, it is left behind.
pub(crate) fn eigen(k: Mat<f64>, control: &Control) -> Result<(Vec<f64>, Mat<f64>)> {
    let rows = k.nrows();
    let failed = |reason: &str| Error::Eigen { rows, reason: reason.to_string() };
    let (send, receive) = channel();
    std::thread::Builder::new()
        .spawn(move || {
            let decomposition = k.self_adjoint_eigen(Side::Lower).map(|eigen| {
                let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
                (values, eigen.U().to_owned())
            });
            let _ = send.send(decomposition);
        })
        .map_err(|error| failed(&error.to_string()))?;
    loop {
        match receive.recv_timeout(Duration::from_millis(50)) {
            Ok(Ok(decomposition)) => return Ok(decomposition),
            Ok(Err(_)) => return Err(failed("it did not converge")),
            Err(RecvTimeoutError::Timeout) => control.check()?,
            Err(RecvTimeoutError::Disconnected) => return Err(failed("its thread ended")),
        }
    }
}

impl Device for Cpu {
    type Matrix = Mat<f64>;

    fn upload(&self, rows: usize, columns: &[Vec<f64>]) -> Result<Mat<f64>> {
        Ok(Mat::from_fn(rows, columns.len(), |i, c| columns[c][i]))
    }

    fn download(&self, matrix: &Mat<f64>) -> Result<Vec<Vec<f64>>> {
        Ok((0..matrix.ncols()).map(|c| matrix.col_as_slice(c).to_vec()).collect())
    }

    fn gram<T: Entry>(&self, gram: &Gram<T>) -> Result<Mat<f64>> {
        Ok(Mat::from_fn(gram.n(), gram.n(), |i, j| gram.get(i, j)))
    }

    fn eigh(&self, k: Mat<f64>, control: &Control) -> Result<(Vec<f64>, Mat<f64>)> {
        let (values, basis) = eigen(k, control)?;
        Ok((values.into_iter().map(|v| v.max(0.0)).collect(), basis))
    }

    fn times(&self, a: &Mat<f64>, b: &Mat<f64>) -> Result<Mat<f64>> {
        Ok(product(a.as_ref(), b.as_ref()))
    }

    fn transposed_times(&self, a: &Mat<f64>, b: &Mat<f64>) -> Result<Mat<f64>> {
        Ok(product(a.as_ref().transpose(), b.as_ref()))
    }

    fn scale_rows(&self, scale: &[f64], a: &Mat<f64>) -> Result<Mat<f64>> {
        let mut out = a.to_owned();
        for c in 0..out.ncols() {
            for (value, scale) in out.col_as_slice_mut(c).iter_mut().zip(scale) {
                *value *= scale;
            }
        }
        Ok(out)
    }

    fn select(&self, a: &Mat<f64>, columns: &[usize]) -> Result<Mat<f64>> {
        Ok(Mat::from_fn(a.nrows(), columns.len(), |i, c| a[(i, columns[c])]))
    }

    fn pulls(&self, loss: Smoothed, y: &[f64], weight: &Mat<f64>, f: &Mat<f64>, b: &[f64]) -> Result<Mat<f64>> {
        let column = |c: usize| -> Vec<f64> {
            let (f, weight) = (f.col_as_slice(c), weight.col_as_slice(c));
            let pull = |i: usize| if weight[i] > 0.0 { weight[i] * loss.pull(y[i], f[i] + b[c]) } else { 0.0 };
            (0..f.len()).map(pull).collect()
        };
        let columns: Vec<Vec<f64>> = (0..f.ncols()).into_par_iter().map(column).collect();
        self.upload(f.nrows(), &columns)
    }

    fn advance(
        &self,
        block: &mut Block<Mat<f64>>,
        pulls: &Mat<f64>,
        spectrum: &Spectrum,
        curvature: &[f64],
    ) -> Result<()> {
        let Spectrum { values, ones } = spectrum;
        let n = values.len();
        for (c, &cm) in curvature.iter().enumerate() {
            let pulls = pulls.col_as_slice(c);
            let (last, ahead) = (block.coordinates.col_as_slice_mut(c), block.ahead.col_as_slice_mut(c));
            // q = 1 / (1 + CMλ), r = Uᵀθ − ahead; Δb makes Σβ = 0.
            let (mut up, mut down) = (0.0, 0.0);
            for k in 0..n {
                let q = 1.0 / (1.0 + cm * values[k]);
                up += ones[k] * (q * (pulls[k] - ahead[k]) + ahead[k]);
                down += ones[k] * ones[k] * q;
            }
            let shift = if down > 0.0 { up / (cm * down) } else { 0.0 };
            let b = block.b_ahead[c] + shift;
            let t = block.momentum[c];
            let next = 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt());
            let carry = (t - 1.0) / next;
            let mut uphill = 0.0;
            for k in 0..n {
                let q = 1.0 / (1.0 + cm * values[k]);
                let new = ahead[k] + q * (pulls[k] - ahead[k] - cm * shift * ones[k]);
                uphill += values[k] * (ahead[k] - new) * (new - last[k]);
                ahead[k] = new + carry * (new - last[k]);
                last[k] = new;
            }
            block.b_ahead[c] = b + carry * (b - block.b[c]);
            block.b[c] = b;
            block.momentum[c] = next;
            if uphill > 0.0 {
                ahead.copy_from_slice(last);
                block.b_ahead[c] = b;
                block.momentum[c] = 1.0;
            }
        }
        Ok(())
    }
}
