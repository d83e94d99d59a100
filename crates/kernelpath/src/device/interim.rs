//! What the engines ask of a device, as an object.

use faer::Mat;

use crate::device::matrix::Matrix;
use crate::device::{Block as Columns, Device as Typed, Spectrum, cpu::Cpu};
use crate::error::Result;
use crate::kernel::elsewhere::Kernels;
use crate::loss::smoothed::Smoothed;
use crate::numeric::parallel;
use crate::numeric::remote::{Remote, Stored};
use crate::observe::Control;

/// Problems in work on a device: columns, each with its own C and its own weights.
pub(crate) struct Block {
    /// Uᵀβ of the last step.
    pub coordinates: Matrix,
    /// Where the next step starts: the last step, carried on by its momentum.
    pub ahead: Matrix,
    /// Intercepts of the last step, and of where the next one starts.
    pub b: Vec<f64>,
    pub b_ahead: Vec<f64>,
    /// Nesterov's t of each column.
    pub momentum: Vec<f64>,
}

/// What the engines ask of a device.
pub(crate) trait Device: Send + Sync {
    /// From the host, column after column, in double precision.
    fn upload(&self, rows: usize, columns: &[Vec<f64>]) -> Result<Matrix>;
    /// To the host.
    fn download(&self, matrix: &Matrix) -> Result<Vec<Vec<f64>>>;
    /// The symmetric matrix whose row i `fill(i, row)` writes, in double precision.
    fn symmetric(&self, n: usize, fill: &(dyn Fn(usize, &mut [f64]) + Sync)) -> Result<Matrix>;
    /// A copy in single precision.
    fn narrow(&self, matrix: &Matrix) -> Result<Matrix>;
    /// K = UΛUᵀ: the eigenvalues (negative ones as 0) and U.
    fn eigh(&self, k: Matrix, control: &Control) -> Result<(Vec<f64>, Matrix)>;
    /// A·B in the precision of A. B and the result are in double precision.
    fn times(&self, a: &Matrix, b: &Matrix) -> Result<Matrix>;
    /// Aᵀ·B, likewise.
    fn transposed_times(&self, a: &Matrix, b: &Matrix) -> Result<Matrix>;
    /// diag(scale)·A.
    fn scale_rows(&self, scale: &[f64], a: &Matrix) -> Result<Matrix>;
    /// The columns of A with these numbers.
    fn select(&self, a: &Matrix, columns: &[usize]) -> Result<Matrix>;
    /// The rows of A with these numbers, as columns.
    fn rows(&self, a: &Matrix, rows: &[usize]) -> Result<Matrix>;
    /// weight · a(f + b), row by row; 0 where the weight is 0.
    fn pulls(&self, loss: Smoothed, y: &[f64], weight: &Matrix, f: &Matrix, b: &[f64]) -> Result<Matrix>;
    /// 1 / (1 + cm·λ): a row for each of `values`, a column for each of `curvature`.
    fn resolvent(&self, values: &[f64], curvature: &[f64]) -> Result<Matrix>;
    /// The sum of matrices, each with its columns multiplied by numbers.
    fn combine(&self, terms: &[(&Matrix, &[f64])]) -> Result<Matrix>;
    /// The products of entries.
    fn hadamard(&self, a: &Matrix, b: &Matrix) -> Result<Matrix>;
    /// The inner product of each column of A with that of B.
    fn column_dots(&self, a: &Matrix, b: &Matrix) -> Result<Vec<f64>>;
    /// The step of the spectral engine as one operation, if the device has one.
    fn fused_step(
        &self,
        _block: &mut Block,
        _pulls: &Matrix,
        _spectrum: &Spectrum,
        _curvature: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }
    /// The matrix of an operator, put on the device, where its products run from now on; `None`: the host multiplies it
    /// itself.
    fn hold(&self, _matrix: Stored) -> Result<Option<Box<dyn Remote>>> {
        Ok(None)
    }
    /// Kernels between rows, if the device computes them.
    fn kernels(&self) -> Option<&dyn Kernels> {
        None
    }
}

/// The numbers of a matrix of the processor.
enum Held {
    Wide(Mat<f64>),
    Narrow(Mat<f32>),
}

fn wrap(matrix: Mat<f64>) -> Matrix {
    Matrix::new(matrix.nrows(), matrix.ncols(), Held::Wide(matrix))
}

fn wide(matrix: &Matrix) -> &Mat<f64> {
    match matrix.of::<Held>() {
        Held::Wide(matrix) => matrix,
        Held::Narrow(_) => unreachable!("only products take a matrix in single precision"),
    }
}

impl Device for Cpu {
    fn upload(&self, rows: usize, columns: &[Vec<f64>]) -> Result<Matrix> {
        Ok(wrap(Typed::upload(self, rows, columns)?))
    }

    fn download(&self, matrix: &Matrix) -> Result<Vec<Vec<f64>>> {
        Typed::download(self, wide(matrix))
    }

    fn symmetric(&self, n: usize, fill: &(dyn Fn(usize, &mut [f64]) + Sync)) -> Result<Matrix> {
        let mut columns = vec![vec![0.0; n]; n];
        parallel::for_each(columns.iter_mut().enumerate(), |(i, column)| fill(i, column));
        Device::upload(self, n, &columns)
    }

    fn narrow(&self, matrix: &Matrix) -> Result<Matrix> {
        Ok(Matrix::new(matrix.rows, matrix.columns, Held::Narrow(Typed::narrow(self, wide(matrix))?)))
    }

    fn eigh(&self, k: Matrix, control: &Control) -> Result<(Vec<f64>, Matrix)> {
        let (values, basis) = Typed::eigh(self, wide(&k).clone(), control)?;
        Ok((values, wrap(basis)))
    }

    fn times(&self, a: &Matrix, b: &Matrix) -> Result<Matrix> {
        Ok(wrap(match a.of::<Held>() {
            Held::Wide(a) => Typed::times(self, a, wide(b))?,
            Held::Narrow(a) => self.narrow_times(a, wide(b))?,
        }))
    }

    fn transposed_times(&self, a: &Matrix, b: &Matrix) -> Result<Matrix> {
        Ok(wrap(match a.of::<Held>() {
            Held::Wide(a) => Typed::transposed_times(self, a, wide(b))?,
            Held::Narrow(a) => self.narrow_transposed_times(a, wide(b))?,
        }))
    }

    fn scale_rows(&self, scale: &[f64], a: &Matrix) -> Result<Matrix> {
        Ok(wrap(Typed::scale_rows(self, scale, wide(a))?))
    }

    fn select(&self, a: &Matrix, columns: &[usize]) -> Result<Matrix> {
        Ok(wrap(Typed::select(self, wide(a), columns)?))
    }

    fn rows(&self, a: &Matrix, rows: &[usize]) -> Result<Matrix> {
        Ok(wrap(Typed::rows(self, wide(a), rows)?))
    }

    fn pulls(&self, loss: Smoothed, y: &[f64], weight: &Matrix, f: &Matrix, b: &[f64]) -> Result<Matrix> {
        Ok(wrap(Typed::pulls(self, loss, y, wide(weight), wide(f), b)?))
    }

    fn resolvent(&self, values: &[f64], curvature: &[f64]) -> Result<Matrix> {
        Ok(wrap(Typed::resolvent(self, values, curvature)?))
    }

    fn combine(&self, terms: &[(&Matrix, &[f64])]) -> Result<Matrix> {
        let terms: Vec<(&Mat<f64>, &[f64])> = terms.iter().map(|(a, scale)| (wide(a), *scale)).collect();
        Ok(wrap(Typed::combine(self, &terms)?))
    }

    fn hadamard(&self, a: &Matrix, b: &Matrix) -> Result<Matrix> {
        Ok(wrap(Typed::hadamard(self, wide(a), wide(b))?))
    }

    fn column_dots(&self, a: &Matrix, b: &Matrix) -> Result<Vec<f64>> {
        Typed::column_dots(self, wide(a), wide(b))
    }

    fn fused_step(
        &self,
        block: &mut Block,
        pulls: &Matrix,
        spectrum: &Spectrum,
        curvature: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        let take = std::mem::take::<Vec<f64>>;
        let mut columns = Columns {
            coordinates: wide(&block.coordinates).clone(),
            ahead: wide(&block.ahead).clone(),
            b: take(&mut block.b),
            b_ahead: take(&mut block.b_ahead),
            momentum: take(&mut block.momentum),
        };
        let gaps = Typed::fused_step(self, &mut columns, wide(pulls), spectrum, curvature)?;
        let Columns { coordinates, ahead, b, b_ahead, momentum } = columns;
        *block = Block { coordinates: wrap(coordinates), ahead: wrap(ahead), b, b_ahead, momentum };
        Ok(gaps)
    }
}
