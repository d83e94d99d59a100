//! The digests of the rows that a model was trained on, as the text in which a model file holds them.

use kernelpath::{LabelValue, TrainingRows, Truth};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::{Matrix, Table, Vector, run_here};
use crate::saved::read_label;

/// The digests of rows. What is true of them is either `labels` or `numbers`, with a column for each target.
#[pyfunction]
#[pyo3(signature = (X, *, labels=None, numbers=None, weight=None))]
#[allow(non_snake_case)]
pub(crate) fn training_rows<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    labels: Option<Vec<Bound<'py, PyAny>>>,
    numbers: Option<Table<'py, f64>>,
    weight: Option<Vector<'py, f64>>,
) -> PyResult<String> {
    let x = Matrix::borrow(X, "X")?;
    let x = x.rows()?;
    let labels: Option<Vec<LabelValue>> =
        labels.map(|labels| labels.iter().map(read_label).collect::<PyResult<_>>()).transpose()?;
    let numbers: Option<(usize, Vec<f64>)> =
        numbers.map(|numbers| (numbers.view().ncols(), numbers.view().iter().copied().collect()));
    let weight: Option<Vec<f64>> = weight.map(|weight| weight.to_vec());
    run_here(py, || {
        let truth = match (&labels, &numbers) {
            (Some(labels), _) => Truth::Labels(labels),
            (None, Some((columns, values))) => Truth::Numbers { columns: *columns, values },
            (None, None) => Truth::Labels(&[]),
        };
        Ok(TrainingRows::of(x, truth, weight.as_deref()).to_json().to_string())
    })
}

/// What differs between some rows and those of a fit, in words; None if nothing does.
#[pyfunction]
pub(crate) fn training_difference(found: &str, trained: &str) -> PyResult<Option<String>> {
    Ok(read_training(found)?.difference(&read_training(trained)?))
}

/// The digests that a text holds.
pub(crate) fn read_training(text: &str) -> PyResult<TrainingRows> {
    let value = serde_json::from_str(text).ok();
    let known = value.as_ref().and_then(TrainingRows::of_json);
    known.ok_or_else(|| PyValueError::new_err("the digests of the training rows are none"))
}
