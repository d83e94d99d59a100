//! The multinomial loss: several classes in one model.

use kernelpath::{LowRankSize, Multinomial, MultinomialFit as Fit, Precision, Settings};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::boundary::{Matrix, run, unwrap};
use crate::{Found, Pairs, control, held_out, kernel_fn, matrix, of_records, read_folds, threads};

/// Fits every fold and the whole data at every C with the multinomial loss, each model with its certificate; `y` has the
/// class of each row, from 0. On one kernel matrix, or on the features of `low_rank`.
#[pyfunction]
#[pyo3(signature = (X, y, weight, score_weight, *, kernel, gamma, degree, coef0, cs, folds, tol, max_iter, dtype, n_threads=0, time_budget=None, progress=None, low_rank=None, pairs=None, n_landmarks=2000, rank=None))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub fn fit_multinomial<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    y: PyReadonlyArray1<'py, i64>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    score_weight: Option<PyReadonlyArray1<'py, f64>>,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    cs: PyReadonlyArray1<'py, f64>,
    folds: &Bound<'py, PyAny>,
    tol: f64,
    max_iter: usize,
    dtype: &str,
    n_threads: i64,
    time_budget: Option<f64>,
    progress: Option<&Bound<'py, PyAny>>,
    low_rank: Option<&Bound<'py, Found>>,
    pairs: Option<&Bound<'py, Pairs>>,
    n_landmarks: usize,
    rank: Option<usize>,
) -> PyResult<MultinomialFit> {
    let x = Matrix::borrow(X, "X")?;
    let class = |y: &i64| usize::try_from(*y).map_err(|_| PyValueError::new_err(format!("negative class {y}")));
    let y = y.as_array().iter().map(class).collect::<PyResult<Vec<usize>>>()?;
    let [weight, score_weight] = [weight, score_weight].map(|weight| weight.map(|weight| weight.as_array().to_vec()));
    let cs = cs.as_array().to_vec();
    let control = control(time_budget)?;
    let request = Multinomial {
        x: x.rows()?,
        y: &y,
        weight: weight.as_deref(),
        score_weight: score_weight.as_deref(),
        kernel: kernel_fn(kernel, gamma, degree, coef0)?,
        cs: &cs,
        folds: read_folds(folds)?,
        settings: Settings { tol, max_iter },
        precision: unwrap(Precision::from_name(dtype))?,
        threads: threads(n_threads),
        pairs: pairs.map(|pairs| &pairs.get().pairs),
        instead: LowRankSize { landmarks: n_landmarks, rank },
    };
    let nystrom = low_rank.map(|low_rank| &low_rank.get().found);
    let fit = || match nystrom {
        Some(nystrom) => kernelpath::fit_multinomial_low_rank(&request, nystrom, &control),
        None => kernelpath::fit_multinomial(&request, &control),
    };
    let fit = run(py, &control, progress, fit)?;
    Ok(MultinomialFit { fit })
}

/// Every model of a fit with the multinomial loss.
#[pyclass(frozen, module = "kernelpath._core")]
pub struct MultinomialFit {
    fit: Fit,
}

#[pymethods]
impl MultinomialFit {
    /// Weighted accuracy of each fold's test rows, shape (n_folds, n_C); NaN where not run.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        matrix(py, self.fit.scores.concat(), self.fit.cs.len())
    }

    /// Relative duality gaps, shape (n_folds + 1, n_C), last row the refit; inf where not run, NaN if the kernel is
    /// indefinite.
    #[getter]
    fn gaps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        of_records(py, &self.fit.records, |r| r.certificate.gap())
    }

    /// Rounding noise of the gaps, shape (n_folds + 1, n_C); inf where not run.
    #[getter]
    fn gap_noise<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        of_records(py, &self.fit.records, |r| r.certificate.relative_noise())
    }

    /// Solver steps, shape (n_folds + 1, n_C).
    #[getter]
    fn n_iter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        of_records(py, &self.fit.records, |r| r.steps as i64)
    }

    /// Positions in STATUS_NAMES, shape (n_folds + 1, n_C).
    #[getter]
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u8>>> {
        of_records(py, &self.fit.records, |r| r.status as u8)
    }

    /// Primal objective values, shape (n_folds + 1, n_C).
    #[getter]
    fn primal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        of_records(py, &self.fit.records, |r| r.certificate.primal)
    }

    /// Dual objective values, shape (n_folds + 1, n_C); NaN if the kernel is indefinite.
    #[getter]
    fn dual<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        of_records(py, &self.fit.records, |r| r.certificate.dual)
    }

    /// Intercepts of the refit, shape (n_C, n_classes).
    #[getter]
    fn intercepts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let refit = self.fit.records.last().map_or(&[][..], Vec::as_slice);
        matrix(py, refit.iter().flat_map(|r| r.b.iter().copied()).collect(), self.fit.classes)
    }

    /// The solver that was used.
    #[getter]
    #[allow(clippy::unused_self)]
    fn solver(&self) -> &'static str {
        "newton"
    }

    /// Bytes of the kernel matrix, or of the features.
    #[getter]
    fn gram_bytes(&self) -> u64 {
        self.fit.gram_bytes
    }

    /// Bytes that the fit was planned to take at its peak.
    #[getter]
    fn planned_bytes(&self) -> u64 {
        self.fit.planned_bytes
    }

    /// Seconds spent on the kernel matrix, or on the features.
    #[getter]
    fn kernel_seconds(&self) -> f64 {
        self.fit.kernel_seconds
    }

    /// Seconds spent on the paths.
    #[getter]
    fn path_seconds(&self) -> f64 {
        self.fit.path_seconds
    }

    /// Whether the time budget ended the fit.
    #[getter]
    fn timed_out(&self) -> bool {
        self.fit.timed_out
    }

    /// The smallest eigenvalue of the kernel matrix, or of that of the landmarks, if it is indefinite; else None.
    #[getter]
    fn smallest_eigenvalue(&self) -> Option<f64> {
        self.fit.smallest_eigenvalue
    }

    /// Rows of the refit, or landmarks, with a B ≠ 0, shape (n_C,).
    #[getter]
    fn n_support<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let count = |beta: &Vec<f64>| {
            let length = beta.len() / self.fit.classes;
            let any = |i: &usize| beta[*i..].iter().step_by(length).any(|b| *b != 0.0);
            (0..length).filter(any).count() as i64
        };
        self.fit.coef.iter().map(count).collect::<Vec<_>>().into_pyarray(py)
    }

    /// B of the refit at the k-th C, shape (n_classes, n), or (n_classes, n_landmarks).
    fn coef<'py>(&self, py: Python<'py>, k: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let beta = self.fit.coef.get(k).ok_or_else(|| PyIndexError::new_err(format!("no C number {k}")))?;
        matrix(py, beta.clone(), beta.len() / self.fit.classes)
    }

    /// Values of a fold's test rows at the k-th C, shape (n_test, n_classes); NaN where not run.
    fn oof<'py>(&self, py: Python<'py>, fold: usize, k: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        matrix(py, held_out(&self.fit.oof, fold, k)?.to_vec(), self.fit.classes)
    }

    /// Mean values of each row over the folds that held it out, at the k-th C, shape (n, n_classes); NaN if none did.
    fn oof_at<'py>(&self, py: Python<'py>, k: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        if k >= self.fit.cs.len() {
            return Err(PyIndexError::new_err(format!("no C number {k}")));
        }
        matrix(py, self.fit.out_of_fold(k), self.fit.classes)
    }
}
