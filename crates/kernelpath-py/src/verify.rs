//! The certificate of a returned model, recomputed.

use kernelpath::{Control, KernelChoice, Settings};
use pyo3::prelude::*;

use crate::boundary::{Matrix, Table, Vector, run, threads};
use crate::kernels::kernel_fn;
use crate::landmarks::Found;
use crate::task::{PyTask, read_task};

/// P, D, the relative gap and its relative noise of a returned model, recomputed from X in double precision. `coef` has
/// a number for each row that the task learns from, or for each landmark of `low_rank`. For the multinomial loss, whose
/// targets are classes counted from 0, it has one row per class.
#[pyfunction]
#[pyo3(signature = (X, task, *, coef, intercepts, C, kernel, gamma, degree, coef0, tol, max_iter,
    assume_definite=false, n_threads=0, low_rank=None))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    task: PyTask<'py>,
    coef: Table<'py, f64>,
    intercepts: Vector<'py, f64>,
    C: f64,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    tol: f64,
    max_iter: usize,
    assume_definite: bool,
    n_threads: i64,
    low_rank: Option<&Bound<'py, Found>>,
) -> PyResult<(f64, f64, f64, f64)> {
    let x = Matrix::borrow(X, "X")?;
    let x = x.rows()?;
    let kernel = kernel_fn(kernel, gamma, degree, coef0)?;
    let (coef, b): (Vec<f64>, Vec<f64>) = (coef.view().iter().copied().collect(), intercepts.to_vec());
    let model = kernelpath::Returned { c: C, coef: &coef, b: &b };
    let settings = Settings { tol, max_iter, assume_definite };
    let nystrom = low_rank.map(|low_rank| &low_rank.get().found);
    let (threads, control) = (threads(n_threads), Control::default());
    let kernel = nystrom.map_or(KernelChoice::Exact(kernel), KernelChoice::LowRank);
    let task = read_task(&task)?;
    let certificate = run(py, &control, || kernelpath::verify(&x, kernel, &task, model, settings, threads, &control))?;
    Ok((certificate.primal, certificate.dual, certificate.gap(), certificate.relative_noise()))
}
