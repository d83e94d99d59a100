//! Kernels of rows: bandwidth rules, kernel matrices, and functions made of kernels.

use kernelpath::threads::are_few;
use kernelpath::{
    Bandwidth, Centre, Control, DeviceChoice, Error, Hardware, Kernel, KernelFn, Plane, Rows, Shape, kernel_flops,
    kernel_matrix as compute_kernel_matrix,
};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::{Matrix, Table, Vector, matrix, pool, run, run_here, threads, unwrap};

pub(crate) fn kernel_fn(kernel: &str, gamma: f64, degree: u32, coef0: f64) -> PyResult<KernelFn> {
    unwrap(Shape::from_name(kernel, degree, coef0).and_then(|shape| KernelFn::new(shape, gamma)))
}

/// γ by a rule ("auto", which is 1 / n_features, "scale" or "sigest").
#[pyfunction]
#[pyo3(signature = (X, kernel, rule, seed, weight=None, n_threads=0))]
#[allow(non_snake_case)]
pub(crate) fn bandwidth(
    py: Python<'_>,
    X: &Bound<'_, PyAny>,
    kernel: &str,
    rule: &str,
    seed: u64,
    weight: Option<Vector<'_, f64>>,
    n_threads: i64,
) -> PyResult<f64> {
    let x = Matrix::borrow(X, "X")?;
    let rows = x.rows()?;
    let shape = unwrap(Shape::from_name(kernel, 3, 0.0))?;
    let bandwidth = match rule {
        "auto" => Bandwidth::Value(1.0 / rows.ncols() as f64),
        "scale" => Bandwidth::Scale,
        "sigest" => Bandwidth::Sigest,
        _ => return Err(PyValueError::new_err(format!("unknown gamma {rule:?}: a number, \"sigest\" or \"scale\""))),
    };
    let weight = weight.map(|weight| weight.to_vec());
    if weight.as_ref().is_some_and(|weight| weight.len() != rows.nrows()) {
        return Err(PyValueError::new_err("weight must have one entry a row of X"));
    }
    let (pool, control) = (pool(n_threads)?, Control::default());
    run(py, &control, || {
        pool.install(|| {
            rows.check("X")?;
            Ok(Kernel { shape, bandwidth }.resolve(&rows, weight.as_deref(), seed)?.gamma)
        })
    })
}

/// The kernel between the rows of X and of Z.
#[pyfunction]
#[pyo3(signature = (X, Z, *, kernel, gamma, degree, coef0, n_threads=0))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub(crate) fn kernel_matrix<'py>(
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
    let values = run(py, &control, || compute_kernel_matrix(&x, &z, &kernel, threads, &control))?;
    matrix(py, values, z.nrows())
}

/// A point, and the values of all machines there.
pub(crate) type PyCentre<'py> = (Vector<'py, f64>, Vector<'py, f64>);

pub(crate) fn read_centre(centre: Option<PyCentre<'_>>) -> Option<Centre> {
    let (point, values) = centre?;
    Some(Centre { point: point.to_vec(), values: values.to_vec() })
}

/// The plane of these machines, once their parts are known to fit together.
fn plane_of(
    vectors: &Rows,
    coef: faer::MatRef<f64>,
    intercepts: &[f64],
    centre: Option<&Centre>,
) -> kernelpath::Result<Plane> {
    let length = |what, got: usize, expected: usize, why| {
        if got == expected { Ok(()) } else { Err(Error::Length { what, got, expected, why }) }
    };
    length("the coefficients", coef.nrows(), vectors.nrows(), "one a support vector")?;
    length("the intercepts", intercepts.len(), coef.ncols(), "one a machine")?;
    if let Some(centre) = centre {
        length("the centre", centre.point.len(), vectors.ncols(), "one number a column")?;
        length("the values at the centre", centre.values.len(), coef.ncols(), "one a machine")?;
    }
    Plane::new(vectors, coef, intercepts, centre)
}

/// Weights, a line a machine, and intercepts.
type PyPlane<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// With the linear kernel, the coefficients of the columns, a line a machine, and the intercepts. `centre` is the point that
/// rows are centred at, with the values there; without it, the intercepts are as given.
#[pyfunction]
#[pyo3(signature = (support_vectors, coef, intercept, centre=None))]
pub(crate) fn plane<'py>(
    py: Python<'py>,
    support_vectors: &Bound<'py, PyAny>,
    coef: Table<'py, f64>,
    intercept: Vector<'py, f64>,
    centre: Option<PyCentre<'py>>,
) -> PyResult<PyPlane<'py>> {
    let vectors = Matrix::borrow(support_vectors, "support_vectors")?;
    let (vectors, intercepts, centre) = (vectors.rows()?, intercept.to_vec(), read_centre(centre));
    let coef = coef.matrix().transpose();
    let plane = run_here(py, || plane_of(&vectors, coef, &intercepts, centre.as_ref()))?;
    let weights = plane.weights();
    let lines = (0..weights.ncols()).flat_map(|k| weights.col(k).iter().copied().collect::<Vec<f64>>()).collect();
    Ok((matrix(py, lines, weights.nrows())?, plane.intercepts().into_pyarray(py)))
}

/// Decision values of the rows of X, one column per machine. `coef` has one row per machine and one column per support
/// vector. `centre` is the point that rows of the linear kernel are centred at, with the values there.
#[pyfunction]
#[pyo3(signature = (X, support_vectors, coef, intercept, *, kernel, gamma, degree, coef0, centre=None, device="cpu",
    n_threads=0))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub(crate) fn decision<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    support_vectors: &Bound<'py, PyAny>,
    coef: Table<'py, f64>,
    intercept: Vector<'py, f64>,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    centre: Option<PyCentre<'py>>,
    device: &str,
    n_threads: i64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (x, vectors) = (Matrix::borrow(X, "X")?, Matrix::borrow(support_vectors, "support_vectors")?);
    let (x, vectors, intercepts) = (x.rows()?, vectors.rows()?, intercept.to_vec());
    let kernel = kernel_fn(kernel, gamma, degree, coef0)?;
    let coef = coef.matrix().transpose();
    let (machines, control) = (coef.ncols(), Control::default());
    let device = unwrap(DeviceChoice::from_name(device))?;
    let centre = read_centre(centre);
    let work = |threads| {
        let hardware = Hardware::threads(threads).device(device);
        if kernel.shape == Shape::Linear && Plane::is_small(&vectors, coef) {
            return plane_of(&vectors, coef, &intercepts, centre.as_ref())?.decision(&x, threads);
        }
        kernelpath::decision(&x, &vectors, coef, &intercepts, &kernel, hardware, &control)
    };
    let f = if are_few(kernel_flops(&x, &vectors, machines)) {
        run_here(py, || work(1))?
    } else {
        let threads = threads(n_threads);
        run(py, &control, || work(threads))?
    };
    matrix(py, f, machines)
}
