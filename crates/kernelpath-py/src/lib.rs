//! The extension module `kernelpath._core`: functions over arrays, no policy.

// PyO3 hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod arrangement;
mod attributes;
mod boundary;
mod calibration;
mod command;
mod data;
mod fit;
mod kernels;
mod landmarks;
mod report;
mod saved;
mod task;
mod training;
mod verify;

use boundary::Vector;
use kernelpath::{DeviceChoice, Landmarks, Loss, Method, Precision, Settings, Shape, Solver, Status};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A robust spread of targets, > 0; `weight` counts rows.
#[pyfunction]
#[pyo3(signature = (y, weight=None))]
fn spread(y: Vector<'_, f64>, weight: Option<Vector<'_, f64>>) -> PyResult<f64> {
    let (y, weight) = (y.to_vec(), weight.map(|weight| weight.to_vec()));
    if weight.as_ref().is_some_and(|weight| weight.len() != y.len()) {
        return Err(PyValueError::new_err("weight must have one entry a target"));
    }
    Ok(kernelpath::spread(&y, weight.as_deref()))
}

/// The library's defaults, for the test that compares them with the estimators'.
#[pyfunction]
fn default_settings(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let settings = Settings::default();
    let grid = boundary::unwrap(kernelpath::default_cs(kernelpath::DEFAULT_CS))?;
    let dict = PyDict::new(py);
    dict.set_item("tol", settings.tol)?;
    dict.set_item("max_iter", settings.max_iter)?;
    dict.set_item("assume_definite", settings.assume_definite)?;
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
    kernelpath::available_memory()
}

/// What a device that this process has opened was asked to do so far: launches, bytes up, bytes down.
#[pyfunction]
fn device_traffic(name: &str) -> PyResult<Option<(u64, u64, u64)>> {
    let choice = boundary::unwrap(DeviceChoice::from_name(name))?;
    Ok(kernelpath::device_traffic(choice).map(|traffic| (traffic.launches, traffic.up, traffic.down)))
}

/// A text from elsewhere as a terminal may show it.
#[pyfunction]
fn shown(text: &str) -> String {
    kernelpath::shown(text).into_owned()
}

/// Whether a device can have this name.
#[pyfunction]
fn is_device(name: &str) -> bool {
    DeviceChoice::from_name(name).is_ok()
}

/// What is known of each device, by name.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let told = |device: kernelpath::DeviceInfo| {
        let dict = PyDict::new(py);
        dict.set_item("name", device.choice.to_string())?;
        dict.set_item("description", device.name)?;
        dict.set_item("driver", device.driver)?;
        dict.set_item("memory", device.memory)?;
        dict.set_item("float64", device.double)?;
        dict.set_item("is_processor", device.is_processor)?;
        dict.set_item("problem", device.problem)?;
        Ok(dict)
    };
    py.detach(kernelpath::devices).into_iter().map(told).collect()
}

/// The number of threads that a call takes if it is given `n_threads`.
#[pyfunction]
fn count_threads(n_threads: i64) -> usize {
    kernelpath::threads::count(boundary::threads(n_threads))
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
    module.add_class::<arrangement::Arrangement>()?;
    module.add_class::<calibration::Calibration>()?;
    module.add_class::<fit::Fit>()?;
    module.add_class::<landmarks::Found>()?;
    module.add_class::<saved::Saved>()?;
    module.add_class::<task::RowClasses>()?;
    module.add_function(wrap_pyfunction!(command::run_command, module)?)?;
    module.add_function(wrap_pyfunction!(saved::encode, module)?)?;
    module.add("MOST_THREADS", kernelpath::threads::MOST)?;
    module.add("MOST_CS", kernelpath::MOST_CS)?;
    module.add_function(wrap_pyfunction!(data::read_libsvm, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fit::ranks, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::bandwidth, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::kernel_matrix, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::decision, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::plane, module)?)?;
    module.add_function(wrap_pyfunction!(landmarks::nystrom, module)?)?;
    module.add_function(wrap_pyfunction!(landmarks::nystrom_features, module)?)?;
    module.add_function(wrap_pyfunction!(report::write_report, module)?)?;
    module.add_function(wrap_pyfunction!(training::training_rows, module)?)?;
    module.add_function(wrap_pyfunction!(training::training_difference, module)?)?;
    module.add_function(wrap_pyfunction!(verify::verify, module)?)?;
    module.add_function(wrap_pyfunction!(shown, module)?)?;
    module.add_function(wrap_pyfunction!(spread, module)?)?;
    module.add_function(wrap_pyfunction!(default_settings, module)?)?;
    module.add_function(wrap_pyfunction!(available_memory_py, module)?)?;
    module.add_function(wrap_pyfunction!(count_threads, module)?)?;
    module.add_function(wrap_pyfunction!(is_device, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(device_traffic, module)?)?;
    Ok(())
}
