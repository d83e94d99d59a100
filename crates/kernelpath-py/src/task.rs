//! Machines and folds, as Python gives them.

use kernelpath::{Fold, Folds, Objective, Task};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::{Vector, copied, unwrap};

/// A task as Python gives it.
#[derive(FromPyObject)]
pub(crate) struct PyTask<'py> {
    loss: String,
    /// The constant of the loss (τ, ε or δ); 0 if it has none.
    constant: f64,
    y: Vector<'py, f64>,
    weight: Option<Vector<'py, f64>>,
    rows: Option<Vector<'py, i64>>,
    score_weight: Option<Vector<'py, f64>>,
    c_factor: f64,
}

pub(crate) fn read_task(task: &PyTask<'_>) -> PyResult<Task> {
    let PyTask { loss, constant, y, weight, rows, score_weight, c_factor } = task;
    let numbers = |values: &Option<Vector<'_, f64>>| values.as_ref().map(|v| v.to_vec());
    let row = |i: &i64| usize::try_from(*i).map_err(|_| PyValueError::new_err(format!("negative row index {i}")));
    let rows = rows.as_ref().map(|rows| rows.view().iter().map(row).collect::<PyResult<_>>()).transpose()?;
    let objective = unwrap(Objective::from_name(loss, *constant))?;
    Ok(Task::new(objective, &y.to_vec())
        .with_weight(numbers(weight))
        .with_score_weight(numbers(score_weight))
        .with_c_factor(*c_factor)
        .on_rows(rows))
}

/// Folds as Python gives them: None, "loo", or pairs of row indices.
pub(crate) fn read_folds(folds: &Bound<'_, PyAny>) -> PyResult<Folds> {
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
        let (train, test): (Vector<'_, i64>, Vector<'_, i64>) = item?.extract()?;
        let rows = |indices: &Vector<'_, i64>| {
            let index = |i: &i64| {
                usize::try_from(*i).map_err(|_| PyValueError::new_err(format!("fold {k}: negative row index {i}")))
            };
            copied(indices.view().iter().map(index))
        };
        splits.push(Fold { train: rows(&train)?, test: rows(&test)? });
    }
    Ok(Folds::Splits(splits))
}
