//! Landmarks, and the features that they give rows.

use faer::MatRef;
use kernelpath::threads::are_few;
use kernelpath::{
    Control, Entry, KernelFn, Landmarks, LowRank, Nystrom, Precision, Rows, RowsBuf, kernel_flops, transform,
};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::{Matrix, Table, Vector, matrix, pool, run, run_here, threads, unwrap};
use crate::kernels::kernel_fn;

/// Landmarks as Python gives them: the name of a rule, indices of rows, or points.
pub(crate) fn read_landmarks(landmarks: &Bound<'_, PyAny>) -> PyResult<Landmarks> {
    if let Ok(name) = landmarks.extract::<String>() {
        return unwrap(Landmarks::from_name(&name));
    }
    if let Ok(indices) = landmarks.extract::<Vector<'_, i64>>() {
        let index = |i: &i64| {
            usize::try_from(*i).map_err(|_| PyValueError::new_err(format!("landmarks: negative row index {i}")))
        };
        return Ok(Landmarks::Rows(indices.view().iter().map(index).collect::<PyResult<_>>()?));
    }
    Ok(Landmarks::Given(RowsBuf::copy_of(&Matrix::borrow(landmarks, "landmarks")?.rows()?)))
}

/// Whether the landmarks are points that the caller gave.
pub(crate) fn is_given(low_rank: &LowRank) -> bool {
    matches!(low_rank.landmarks(), Landmarks::Given(_))
}

/// Landmarks and the map from their kernel to features.
#[pyclass(frozen, name = "Nystrom", module = "kernelpath._core")]
pub(crate) struct Found {
    pub found: Nystrom,
    /// Whether the landmarks are points that the caller gave.
    pub given: bool,
}

#[pymethods]
impl Found {
    /// The rows of X that are the landmarks; None if the landmarks are not rows of X.
    #[getter]
    fn indices<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        let chosen = self.found.chosen()?;
        Some(chosen.iter().map(|&i| i as i64).collect::<Vec<_>>().into_pyarray(py))
    }

    /// The landmarks if a rule made them up, else None.
    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        if self.given || self.found.chosen().is_some() {
            return Ok(None);
        }
        let points = self.found.landmarks();
        let value = |at: usize| points.entry(at / points.ncols(), at % points.ncols()).unwrap_or(f64::NAN);
        matrix(py, (0..points.nrows() * points.ncols()).map(value).collect(), points.ncols()).map(Some)
    }

    /// The map, with one row per landmark and one column per feature.
    #[getter]
    fn map<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let map = self.found.map();
        let values = (0..map.nrows()).flat_map(|i| (0..map.ncols()).map(move |j| map[(i, j)])).collect();
        matrix(py, values, map.ncols())
    }

    /// Share of the trace of the kernel matrix that the features miss.
    #[getter]
    fn trace_error(&self) -> f64 {
        self.found.approximation().trace_error
    }

    /// Number of rows that `trace_error` was measured on.
    #[getter]
    fn sampled_rows(&self) -> usize {
        self.found.approximation().sampled_rows
    }

    /// Eigenvalues of the landmarks' kernel matrix that were kept.
    #[getter]
    fn spectrum<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.found.approximation().spectrum.clone().into_pyarray(py)
    }

    /// Share of the eigenvalues that were dropped.
    #[getter]
    fn tail(&self) -> f64 {
        self.found.approximation().tail
    }
}

/// Landmarks and the map from their kernel to features.
#[pyfunction]
#[pyo3(signature = (X, landmarks, n_landmarks, rank, seed, *, kernel, gamma, degree, coef0, weight=None, n_threads=0))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub(crate) fn nystrom<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    landmarks: &Bound<'py, PyAny>,
    n_landmarks: usize,
    rank: Option<usize>,
    seed: u64,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    weight: Option<Vector<'py, f64>>,
    n_threads: i64,
) -> PyResult<Found> {
    let x = Matrix::borrow(X, "X")?;
    let x = x.rows()?;
    let kernel = kernel_fn(kernel, gamma, degree, coef0)?;
    let landmarks = read_landmarks(landmarks)?;
    let given = matches!(landmarks, Landmarks::Given(_));
    let weight = weight.map(|weight| weight.to_vec());
    let pool = pool(n_threads)?;
    let control = Control::default();
    let found = run(py, &control, || {
        let weight = weight.as_deref();
        let low_rank = LowRank::new(landmarks, n_landmarks);
        let low_rank = if let Some(rank) = rank { low_rank.rank(rank) } else { low_rank };
        let builder = Nystrom::builder(kernel).low_rank(low_rank).weights(weight).seed(seed);
        pool.install(|| builder.build_with(&x, &control))
    })?;
    Ok(Found { found, given })
}

/// Features K(X, landmarks)·map. With a precomputed kernel, X has a column for each landmark.
#[pyfunction]
#[pyo3(signature = (X, landmarks, map, *, kernel, gamma, degree, coef0, dtype, n_threads=0))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub(crate) fn nystrom_features<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    landmarks: &Bound<'py, PyAny>,
    map: Table<'py, f64>,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    dtype: &str,
    n_threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (x, landmarks) = (Matrix::borrow(X, "X")?, Matrix::borrow(landmarks, "landmarks")?);
    let (x, landmarks) = (x.rows()?, landmarks.rows()?);
    let kernel = kernel_fn(kernel, gamma, degree, coef0)?;
    let map = map.matrix();
    if unwrap(Precision::from_name(dtype))? == Precision::Single {
        features_in::<f32>(py, &x, &landmarks, map, &kernel, n_threads)
    } else {
        features_in::<f64>(py, &x, &landmarks, map, &kernel, n_threads)
    }
}

fn features_in<'py, T: Entry + Element>(
    py: Python<'py>,
    x: &Rows<'_>,
    landmarks: &Rows<'_>,
    map: MatRef<'_, f64>,
    kernel: &KernelFn,
    n_threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let control = Control::default();
    let work = |threads| transform::<T>(x, landmarks, map, kernel, threads, &control);
    let values = if are_few(kernel_flops(x, landmarks, map.ncols())) {
        run_here(py, || work(1))?
    } else {
        let threads = threads(n_threads);
        run(py, &control, || work(threads))?
    };
    Ok(matrix(py, values, map.ncols())?.into_any())
}
