//! The extension module `kernelpath._core`: functions over arrays, no policy.

// PyO3 hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod boundary;

use std::time::Duration;

use boundary::{Matrix, copied, run, run_here, unwrap, view};
use faer::MatRef;
use kernelpath::threads::{self, are_few};
use kernelpath::{
    Bandwidth, Calibration as Calibrated, Control, DeviceChoice, Entry, Fold, Folds, Kernel, KernelChoice, KernelFn,
    Landmarks, Loss, LowRankSize, Method, Nystrom, Objective, PathFit as Fit, Precision, Record, Request, Rows,
    RowsBuf, Selection, Settings, Shape, Solver, Status, Task, available_memory, kernel_flops,
    kernel_matrix as compute_kernel_matrix, transform,
};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

fn kernel_fn(kernel: &str, gamma: f64, degree: u32, coef0: f64) -> PyResult<KernelFn> {
    unwrap(Shape::from_name(kernel, degree, coef0).and_then(|shape| KernelFn::new(shape, gamma)))
}

/// The number of threads as joblib counts: −1 is one per core that the process may use, −2 one less; 0 is the library's
/// default.
pub(crate) fn threads(n: i64) -> usize {
    let below = |_| threads::cores().saturating_sub((n + 1).unsigned_abs() as usize).max(1);
    usize::try_from(n).unwrap_or_else(below)
}

fn pool(n_threads: i64) -> PyResult<rayon::ThreadPool> {
    unwrap(kernelpath::memory::pool(threads(n_threads)))
}

/// A matrix with `columns` numbers per row, from a flat vector.
fn matrix<T: Element>(py: Python<'_>, values: Vec<T>, columns: usize) -> PyResult<Bound<'_, PyArray2<T>>> {
    let rows = values.len().checked_div(columns).unwrap_or(0);
    values.into_pyarray(py).reshape([rows, columns])
}

/// Values of a fold's test rows at the k-th C.
fn held_out(oof: &[Vec<Vec<f64>>], fold: usize, k: usize) -> PyResult<&[f64]> {
    let values = oof.get(fold).and_then(|by_c| by_c.get(k));
    values.map(Vec::as_slice).ok_or_else(|| PyIndexError::new_err(format!("no fold number {fold} or no C number {k}")))
}

/// γ by a rule ("scale" or "sigest").
#[pyfunction]
#[pyo3(signature = (X, kernel, rule, seed, weight=None, n_threads=0))]
#[allow(non_snake_case)]
fn bandwidth(
    py: Python<'_>,
    X: &Bound<'_, PyAny>,
    kernel: &str,
    rule: &str,
    seed: u64,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    n_threads: i64,
) -> PyResult<f64> {
    let x = Matrix::borrow(X, "X")?;
    let rows = x.rows()?;
    let shape = unwrap(Shape::from_name(kernel, 3, 0.0))?;
    let bandwidth = match rule {
        "scale" => Bandwidth::Scale,
        "sigest" => Bandwidth::Sigest,
        _ => return Err(PyValueError::new_err(format!("unknown gamma {rule:?}: a number, \"sigest\" or \"scale\""))),
    };
    let weight = weight.map(|weight| weight.as_array().to_vec());
    if weight.as_ref().is_some_and(|weight| weight.len() != rows.nrows()) {
        return Err(PyValueError::new_err("weight must have one entry a row of X"));
    }
    let (pool, control) = (pool(n_threads)?, Control::default());
    run(py, &control, None, || {
        pool.install(|| {
            rows.check("X")?;
            Ok(Kernel { shape, bandwidth }.resolve(&rows, weight.as_deref(), seed)?.gamma)
        })
    })
}

/// A robust spread of targets, > 0; `weight` counts rows.
#[pyfunction]
#[pyo3(signature = (y, weight=None))]
fn spread(y: PyReadonlyArray1<'_, f64>, weight: Option<PyReadonlyArray1<'_, f64>>) -> PyResult<f64> {
    let (y, weight) = (y.as_array().to_vec(), weight.map(|weight| weight.as_array().to_vec()));
    if weight.as_ref().is_some_and(|weight| weight.len() != y.len()) {
        return Err(PyValueError::new_err("weight must have one entry a target"));
    }
    Ok(kernelpath::spread(&y, weight.as_deref()))
}

/// The kernel between the rows of X and of Z.
#[pyfunction]
#[pyo3(signature = (X, Z, *, kernel, gamma, degree, coef0, n_threads=0))]
#[allow(non_snake_case, clippy::too_many_arguments)]
fn kernel_matrix<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    Z: &Bound<'py, PyAny>,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    n_threads: i64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (x, z) = (Matrix::borrow(X, "X")?, Matrix::borrow(Z, "Z")?);
    let (x, z) = (x.rows()?, z.rows()?);
    let kernel = kernel_fn(kernel, gamma, degree, coef0)?;
    if kernel.shape == Shape::Precomputed {
        return Err(PyValueError::new_err("a precomputed kernel matrix is not computed from rows"));
    }
    let (threads, control) = (threads(n_threads), Control::default());
    let values = run(py, &control, None, || compute_kernel_matrix(&x, &z, &kernel, threads, &control))?;
    matrix(py, values, z.nrows())
}

/// Decision values of the rows of X, one column per machine. `coef` has one row per machine and one column per support
/// vector.
#[pyfunction]
#[pyo3(signature = (X, support_vectors, coef, intercept, *, kernel, gamma, degree, coef0, n_threads=0))]
#[allow(non_snake_case, clippy::too_many_arguments)]
fn decision<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    support_vectors: &Bound<'py, PyAny>,
    coef: PyReadonlyArray2<'py, f64>,
    intercept: PyReadonlyArray1<'py, f64>,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    n_threads: i64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (x, vectors) = (Matrix::borrow(X, "X")?, Matrix::borrow(support_vectors, "support_vectors")?);
    let (x, vectors, intercepts) = (x.rows()?, vectors.rows()?, intercept.as_array().to_vec());
    let kernel = kernel_fn(kernel, gamma, degree, coef0)?;
    let coef = view(&coef).transpose();
    let (machines, control) = (coef.ncols(), Control::default());
    let work = |threads| kernelpath::decision(&x, &vectors, coef, &intercepts, &kernel, threads, &control);
    let f = if are_few(kernel_flops(&x, &vectors, machines)) {
        run_here(py, || work(1))?
    } else {
        let threads = threads(n_threads);
        run(py, &control, None, || work(threads))?
    };
    matrix(py, f, machines)
}

/// Landmarks as Python gives them: the name of a rule, indices of rows, or points.
fn read_landmarks(landmarks: &Bound<'_, PyAny>) -> PyResult<Landmarks> {
    if let Ok(name) = landmarks.extract::<String>() {
        return unwrap(Landmarks::from_name(&name));
    }
    if let Ok(indices) = landmarks.extract::<PyReadonlyArray1<'_, i64>>() {
        let index = |i: &i64| {
            usize::try_from(*i).map_err(|_| PyValueError::new_err(format!("landmarks: negative row index {i}")))
        };
        return Ok(Landmarks::Rows(indices.as_array().iter().map(index).collect::<PyResult<_>>()?));
    }
    Ok(Landmarks::Given(RowsBuf::copy_of(&Matrix::borrow(landmarks, "landmarks")?.rows()?)))
}

/// Landmarks and the map from their kernel to features.
#[pyclass(frozen, name = "Nystrom", module = "kernelpath._core")]
struct Found {
    found: Nystrom,
    /// Whether the landmarks are points that the caller gave.
    given: bool,
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
        let value = |at: usize| points.get(at / points.ncols(), at % points.ncols());
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
fn nystrom<'py>(
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
    weight: Option<PyReadonlyArray1<'py, f64>>,
    n_threads: i64,
) -> PyResult<Found> {
    let x = Matrix::borrow(X, "X")?;
    let x = x.rows()?;
    let kernel = kernel_fn(kernel, gamma, degree, coef0)?;
    let landmarks = read_landmarks(landmarks)?;
    let weight = weight.map(|weight| weight.as_array().to_vec());
    let pool = pool(n_threads)?;
    let control = Control::default();
    let found = run(py, &control, None, || {
        let weight = weight.as_deref();
        pool.install(|| Nystrom::new(&x, weight, kernel, &landmarks, n_landmarks, rank, seed, &control))
    })?;
    Ok(Found { found, given: matches!(landmarks, Landmarks::Given(_)) })
}

/// Features K(X, landmarks)·map. With a precomputed kernel, X has a column for each landmark.
#[pyfunction]
#[pyo3(signature = (X, landmarks, map, *, kernel, gamma, degree, coef0, dtype, n_threads=0))]
#[allow(non_snake_case, clippy::too_many_arguments)]
fn nystrom_features<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    landmarks: &Bound<'py, PyAny>,
    map: PyReadonlyArray2<'py, f64>,
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
    let map = view(&map);
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
        run(py, &control, None, || work(threads))?
    };
    Ok(matrix(py, values, map.ncols())?.into_any())
}

/// The library's defaults, for the test that compares them with the estimators'.
#[pyfunction]
fn default_settings(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let settings = Settings::default();
    let grid = kernelpath::default_cs(kernelpath::DEFAULT_CS);
    let dict = PyDict::new(py);
    dict.set_item("tol", settings.tol)?;
    dict.set_item("max_iter", settings.max_iter)?;
    dict.set_item("dtype", Precision::NAMES[Precision::default() as usize])?;
    dict.set_item("n_cs", grid.len())?;
    dict.set_item("c_min", grid.first())?;
    dict.set_item("c_max", grid.last())?;
    dict.set_item("folds", kernelpath::DEFAULT_FOLDS)?;
    Ok(dict)
}

/// Bytes of memory that this process may still take, or None where the system does not tell.
#[pyfunction]
#[pyo3(name = "available_memory")]
fn available_memory_py() -> Option<u64> {
    available_memory()
}

/// The number of threads that a call takes if it is given `n_threads`.
#[pyfunction]
fn count_threads(n_threads: i64) -> usize {
    threads::count(threads(n_threads))
}

/// One value per class, from the values of machines for pairs of classes, one column per machine. `pairs` has the
/// indices of the two classes of each machine.
#[pyfunction]
fn votes<'py>(
    py: Python<'py>,
    values: PyReadonlyArray2<'py, f64>,
    pairs: PyReadonlyArray2<'py, i64>,
    n_classes: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let values = values.as_array();
    let columns = values.t();
    let columns = columns.as_standard_layout();
    let columns: Vec<&[f64]> = columns.outer_iter().filter_map(|column| column.to_slice()).collect();
    let class = |class: i64| {
        let below = |class: &usize| *class < n_classes;
        let known = usize::try_from(class).ok().filter(below);
        known.ok_or_else(|| PyValueError::new_err(format!("pairs must be of classes below {n_classes}, not {class}")))
    };
    let pairs: Vec<(usize, usize)> = match pairs.as_array().ncols() {
        2 => {
            pairs.as_array().outer_iter().map(|pair| Ok((class(pair[0])?, class(pair[1])?))).collect::<PyResult<_>>()?
        }
        other => return Err(PyValueError::new_err(format!("pairs must have 2 columns, not {other}"))),
    };
    matrix(py, unwrap(kernelpath::votes(&columns, &pairs, n_classes))?, n_classes)
}

/// Decision values of a fold's test rows at the k-th C, one column per machine; NaN where not run.
#[pyfunction]
#[pyo3(name = "held_out")]
fn held_out_of_all<'py>(
    py: Python<'py>,
    paths: Vec<PyRef<'py, PathFit>>,
    fold: usize,
    k: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let columns = paths.iter().map(|path| held_out(&path.fit.oof, fold, k)).collect::<PyResult<Vec<_>>>()?;
    matrix(py, columns.concat(), columns.first().map_or(0, |column| column.len()))?.transpose()
}

/// Index of the C that the scores choose.
#[pyfunction]
fn select(scores: PyReadonlyArray2<'_, f64>, cs: PyReadonlyArray1<'_, f64>, rule: &str) -> PyResult<usize> {
    let rule = match rule {
        "best" => Selection::Best,
        "1se" => Selection::OneStandardError,
        _ => return Err(PyValueError::new_err(format!("unknown selection {rule:?}: known are best, 1se"))),
    };
    let scores: Vec<Vec<f64>> = scores.as_array().outer_iter().map(|fold| fold.to_vec()).collect();
    let cs = cs.as_array().to_vec();
    if scores.iter().any(|fold| fold.len() != cs.len()) {
        return Err(PyValueError::new_err("scores must have a column for each C"));
    }
    kernelpath::select(&scores, &cs, rule).ok_or_else(|| PyValueError::new_err("no C has a score in every fold"))
}

fn read_folds(folds: &Bound<'_, PyAny>) -> PyResult<Folds> {
    if folds.is_none() {
        return Ok(Folds::None);
    }
    if let Ok(name) = folds.extract::<String>() {
        return if name == "loo" {
            Ok(Folds::LeaveOneOut)
        } else {
            Err(PyValueError::new_err(format!("unknown folds {name:?}: known is \"loo\"")))
        };
    }
    let mut splits = Vec::new();
    for (k, item) in folds.try_iter()?.enumerate() {
        let (train, test): (PyReadonlyArray1<'_, i64>, PyReadonlyArray1<'_, i64>) = item?.extract()?;
        let rows = |indices: &PyReadonlyArray1<'_, i64>| {
            let index = |i: &i64| {
                usize::try_from(*i).map_err(|_| PyValueError::new_err(format!("fold {k}: negative row index {i}")))
            };
            copied(indices.as_array().iter().map(index))
        };
        splits.push(Fold { train: rows(&train)?, test: rows(&test)? });
    }
    Ok(Folds::Splits(splits))
}

/// A control with the time budget given in seconds.
fn control(time_budget: Option<f64>) -> PyResult<Control> {
    let seconds = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|d| !d.is_zero())
            .ok_or_else(|| PyValueError::new_err(format!("time_budget must be a number of seconds > 0, got {seconds}")))
    };
    Ok(Control::new(time_budget.map(seconds).transpose()?))
}

/// A task as Python gives it.
#[derive(FromPyObject)]
struct PyTask<'py> {
    loss: String,
    /// The constant of the loss (τ, ε or δ); 0 if it has none.
    constant: f64,
    y: PyReadonlyArray1<'py, f64>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    rows: Option<PyReadonlyArray1<'py, i64>>,
    score_weight: Option<PyReadonlyArray1<'py, f64>>,
    c_factor: f64,
}

fn read_task(task: &PyTask<'_>) -> PyResult<Task> {
    let PyTask { loss, constant, y, weight, rows, score_weight, c_factor } = task;
    let numbers = |values: &Option<PyReadonlyArray1<'_, f64>>| values.as_ref().map(|v| v.as_array().to_vec());
    let row = |i: &i64| usize::try_from(*i).map_err(|_| PyValueError::new_err(format!("negative row index {i}")));
    let rows = rows.as_ref().map(|rows| rows.as_array().iter().map(row).collect::<PyResult<_>>()).transpose()?;
    let objective = unwrap(Objective::from_name(loss, *constant))?;
    Ok(Task::new(objective, &y.as_array().to_vec())
        .with_weight(numbers(weight))
        .with_score_weight(numbers(score_weight))
        .with_c_factor(*c_factor)
        .on_rows(rows))
}

/// What fits of several bandwidths on the same rows share: products or distances of pairs of rows.
#[pyclass(frozen, module = "kernelpath._core")]
#[derive(Default)]
struct Pairs {
    pairs: kernelpath::Pairs,
}

#[pymethods]
impl Pairs {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

/// Fits every fold and the whole data at every C, each model with its certificate. Returns one fit per task, all on one
/// kernel matrix, or on the features of `low_rank`. If there is no memory for the matrix, the error names what a fit
/// with `n_landmarks` landmarks and `rank` features would take.
#[pyfunction]
#[pyo3(signature = (X, tasks, *, solver, kernel, gamma, degree, coef0, cs, folds, tol, max_iter, dtype, device="cpu", n_threads=0, time_budget=None, progress=None, low_rank=None, pairs=None, n_landmarks=2000, rank=None))]
#[allow(non_snake_case, clippy::too_many_arguments)]
fn fit_paths<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    tasks: Vec<PyTask<'py>>,
    solver: &str,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    cs: PyReadonlyArray1<'py, f64>,
    folds: &Bound<'py, PyAny>,
    tol: f64,
    max_iter: usize,
    dtype: &str,
    device: &str,
    n_threads: i64,
    time_budget: Option<f64>,
    progress: Option<&Bound<'py, PyAny>>,
    low_rank: Option<&Bound<'py, Found>>,
    pairs: Option<&Bound<'py, Pairs>>,
    n_landmarks: usize,
    rank: Option<usize>,
) -> PyResult<Vec<PathFit>> {
    let x = Matrix::borrow(X, "X")?;
    let cs = cs.as_array().to_vec();
    let control = control(time_budget)?;
    let nystrom = low_rank.map(|low_rank| &low_rank.get().found);
    let kernel = match nystrom {
        Some(nystrom) => KernelChoice::LowRank(nystrom),
        None => KernelChoice::Exact(kernel_fn(kernel, gamma, degree, coef0)?),
    };
    let tasks = tasks.iter().map(read_task).collect::<PyResult<_>>()?;
    let mut request = Request::new(x.rows()?, tasks, kernel, &cs);
    request.solver = unwrap(Solver::from_name(solver))?;
    request.folds = read_folds(folds)?;
    request.settings = Settings { tol, max_iter };
    request.precision = unwrap(Precision::from_name(dtype))?;
    request.device = unwrap(DeviceChoice::from_name(device))?;
    request.threads = threads(n_threads);
    request.pairs = pairs.map(|pairs| &pairs.get().pairs);
    request.instead = LowRankSize { landmarks: n_landmarks, rank };
    let fits = run(py, &control, progress, || kernelpath::fit(&request, &control))?;
    Ok(fits.into_iter().map(|fit| PathFit { fit }).collect())
}

/// P, D, the relative gap and its relative noise of a returned model, recomputed from X in double precision. `coef` has
/// a number for each row that the task learns from, or for each landmark of `low_rank`. For the multinomial loss, whose
/// targets are classes counted from 0, it has one row per class.
#[pyfunction]
#[pyo3(signature = (X, task, *, coef, intercepts, C, kernel, gamma, degree, coef0, tol, max_iter, n_threads=0, low_rank=None))]
#[allow(non_snake_case, clippy::too_many_arguments)]
fn verify<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    task: PyTask<'py>,
    coef: PyReadonlyArray2<'py, f64>,
    intercepts: PyReadonlyArray1<'py, f64>,
    C: f64,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    tol: f64,
    max_iter: usize,
    n_threads: i64,
    low_rank: Option<&Bound<'py, Found>>,
) -> PyResult<(f64, f64, f64, f64)> {
    let x = Matrix::borrow(X, "X")?;
    let x = x.rows()?;
    let kernel = kernel_fn(kernel, gamma, degree, coef0)?;
    let (coef, b): (Vec<f64>, Vec<f64>) = (coef.as_array().iter().copied().collect(), intercepts.as_array().to_vec());
    let model = kernelpath::Returned { c: C, coef: &coef, b: &b };
    let settings = Settings { tol, max_iter };
    let nystrom = low_rank.map(|low_rank| &low_rank.get().found);
    let (threads, control) = (threads(n_threads), Control::default());
    let kernel = nystrom.map_or(KernelChoice::Exact(kernel), KernelChoice::LowRank);
    let task = read_task(&task)?;
    let certificate =
        run(py, &control, None, || kernelpath::verify(&x, kernel, &task, model, settings, threads, &control))?;
    Ok((certificate.primal, certificate.dual, certificate.gap(), certificate.relative_noise()))
}

/// Every model of a fit.
#[pyclass(frozen, module = "kernelpath._core")]
struct PathFit {
    fit: Fit,
}

/// Something of every model: one row per fold and last the refit, one column per C.
fn of_records<'py, T: Element>(
    py: Python<'py>,
    records: &[Vec<Record>],
    of: impl Fn(&Record) -> T,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let columns = records.first().map_or(0, Vec::len);
    records.iter().flatten().map(of).collect::<Vec<T>>().into_pyarray(py).reshape([records.len(), columns])
}

#[pymethods]
impl PathFit {
    /// Weighted mean score of each fold's test rows (accuracy, or for regression the negative loss), shape (n_folds,
    /// n_C); NaN where not run.
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

    /// Intercepts of the refit, shape (n_C,), or for several classes (n_C, n_classes).
    #[getter]
    fn intercepts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let refit = self.fit.records.last().map_or(&[][..], Vec::as_slice);
        self.shaped(py, refit.iter().flat_map(|r| r.b.iter().copied()).collect())
    }

    /// The solver that solved the folds and the refit.
    #[getter]
    fn solver(&self) -> &'static str {
        self.fit.solver
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

    /// Number of rows (or landmarks) of the refit with a coefficient ≠ 0, shape (n_C,).
    #[getter]
    fn n_support<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let count = |beta: &Vec<f64>| {
            let length = beta.len() / self.fit.outputs;
            let any = |i: &usize| beta[*i..].iter().step_by(length.max(1)).any(|b| *b != 0.0);
            (0..length).filter(any).count() as i64
        };
        self.fit.coef.iter().map(count).collect::<Vec<_>>().into_pyarray(py)
    }

    /// Coefficients of the refit at the k-th C, one for each row or landmark, 0 for rows that it did not learn from; for
    /// several classes, shape (n_classes, n).
    fn coef<'py>(&self, py: Python<'py>, k: usize) -> PyResult<Bound<'py, PyAny>> {
        let beta = self.fit.coef.get(k).ok_or_else(|| PyIndexError::new_err(format!("no C number {k}")))?;
        if self.fit.outputs > 1 {
            return Ok(matrix(py, beta.clone(), beta.len() / self.fit.outputs)?.into_any());
        }
        let Some(rows) = &self.fit.rows else { return Ok(PyArray1::from_slice(py, beta).into_any()) };
        let mut all = vec![0.0; self.fit.n];
        for (&i, beta) in rows.iter().zip(beta) {
            all[i] = *beta;
        }
        Ok(all.into_pyarray(py).into_any())
    }

    /// Decision values of a fold's test rows at the k-th C, for several classes a column each; NaN where not run.
    fn oof<'py>(&self, py: Python<'py>, fold: usize, k: usize) -> PyResult<Bound<'py, PyAny>> {
        self.shaped(py, held_out(&self.fit.oof, fold, k)?.to_vec())
    }

    /// Mean decision value of each row over the folds that held it out, at the k-th C, for several classes a column each;
    /// NaN if no fold did.
    fn oof_at<'py>(&self, py: Python<'py>, k: usize) -> PyResult<Bound<'py, PyAny>> {
        if k >= self.fit.cs.len() {
            return Err(PyIndexError::new_err(format!("no C number {k}")));
        }
        self.shaped(py, self.fit.out_of_fold(k))
    }
}

impl PathFit {
    /// Values of rows: a vector, or for several classes a matrix with a column for each.
    fn shaped<'py>(&self, py: Python<'py>, values: Vec<f64>) -> PyResult<Bound<'py, PyAny>> {
        if self.fit.outputs == 1 {
            return Ok(values.into_pyarray(py).into_any());
        }
        Ok(matrix(py, values, self.fit.outputs)?.into_any())
    }
}

/// A fitted map from scores to probabilities.
#[pyclass(frozen, module = "kernelpath._core")]
struct Calibration(Calibrated);

/// Method, slope, intercept, points: the arguments of the constructor.
type CalibrationState = (&'static str, f64, f64, Vec<(f64, f64)>);

#[pymethods]
impl Calibration {
    /// Takes what `__reduce__` returned. Parts that the method does not have are ignored.
    #[new]
    fn new(method: &str, slope: f64, intercept: f64, points: Vec<(f64, f64)>) -> PyResult<Self> {
        Ok(Self(match unwrap(Method::from_name(method))? {
            Method::Isotonic => Calibrated::Isotonic { points },
            Method::Temperature => Calibrated::Temperature { slope },
            _ => Calibrated::Sigmoid { slope, intercept },
        }))
    }

    /// Fits a map to scores of held-out rows; rows of weight 0 do not count.
    #[staticmethod]
    #[pyo3(signature = (method, scores, positive, weights=None))]
    fn fit(
        py: Python<'_>,
        method: &str,
        scores: PyReadonlyArray1<'_, f64>,
        positive: PyReadonlyArray1<'_, bool>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let method = unwrap(Method::from_name(method))?;
        let (scores, positive) = (scores.as_array().to_vec(), positive.as_array().to_vec());
        let weights = weights.map(|w| w.as_array().to_vec());
        let fit = || Calibrated::fit(method, &scores, &positive, weights.as_deref());
        run(py, &Control::default(), None, fit).map(Self)
    }

    /// The name of the method.
    #[getter]
    fn method(&self) -> &'static str {
        Method::NAMES[self.0.method() as usize]
    }

    /// The slope a of a sigmoid or a temperature, else None.
    #[getter]
    fn slope(&self) -> Option<f64> {
        match self.0 {
            Calibrated::Sigmoid { slope, .. } | Calibrated::Temperature { slope } => Some(slope),
            _ => None,
        }
    }

    /// The intercept b of a sigmoid, else None.
    #[getter]
    fn intercept(&self) -> Option<f64> {
        if let Calibrated::Sigmoid { intercept, .. } = self.0 { Some(intercept) } else { None }
    }

    /// The points (f, p) between which an isotonic map is straight, shape (n_points, 2); else None.
    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let Calibrated::Isotonic { points } = &self.0 else { return Ok(None) };
        matrix(py, points.iter().flat_map(|(f, p)| [*f, *p]).collect(), 2).map(Some)
    }

    /// P(y = +1) at each score.
    fn probability<'py>(&self, py: Python<'py>, scores: PyReadonlyArray1<'py, f64>) -> Bound<'py, PyArray1<f64>> {
        scores.as_array().iter().map(|f| self.0.probability(*f)).collect::<Vec<_>>().into_pyarray(py)
    }

    /// log(P(y = +1) / P(y = −1)) at each score.
    fn log_odds<'py>(&self, py: Python<'py>, scores: PyReadonlyArray1<'py, f64>) -> Bound<'py, PyArray1<f64>> {
        scores.as_array().iter().map(|f| self.0.log_odds(*f)).collect::<Vec<_>>().into_pyarray(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, CalibrationState) {
        let points = if let Calibrated::Isotonic { points } = &self.0 { points.clone() } else { Vec::new() };
        let (slope, intercept) = (self.slope().unwrap_or(0.0), self.intercept().unwrap_or(0.0));
        (py.get_type::<Self>(), (self.method(), slope, intercept, points))
    }
}

/// Native part of kernelpath.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("DEVICES", PyTuple::new(py, DeviceChoice::NAMES)?)?;
    module.add("CALIBRATIONS", PyTuple::new(py, Method::NAMES)?)?;
    module.add("KERNELS", PyTuple::new(py, Shape::NAMES)?)?;
    module.add("LANDMARKS", PyTuple::new(py, Landmarks::NAMES)?)?;
    module.add("LOSSES", PyTuple::new(py, Loss::NAMES)?)?;
    module.add("SOLVERS", PyTuple::new(py, Solver::NAMES)?)?;
    module.add("STATUS_NAMES", PyTuple::new(py, Status::NAMES)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Calibration>()?;
    module.add_class::<Found>()?;
    module.add_class::<Pairs>()?;
    module.add_class::<PathFit>()?;
    module.add_function(wrap_pyfunction!(bandwidth, module)?)?;
    module.add_function(wrap_pyfunction!(spread, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_matrix, module)?)?;
    module.add_function(wrap_pyfunction!(decision, module)?)?;
    module.add_function(wrap_pyfunction!(nystrom, module)?)?;
    module.add_function(wrap_pyfunction!(nystrom_features, module)?)?;
    module.add_function(wrap_pyfunction!(default_settings, module)?)?;
    module.add_function(wrap_pyfunction!(available_memory_py, module)?)?;
    module.add_function(wrap_pyfunction!(count_threads, module)?)?;
    module.add_function(wrap_pyfunction!(votes, module)?)?;
    module.add_function(wrap_pyfunction!(held_out_of_all, module)?)?;
    module.add_function(wrap_pyfunction!(select, module)?)?;
    module.add_function(wrap_pyfunction!(fit_paths, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    Ok(())
}
