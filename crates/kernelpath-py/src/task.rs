//! Machines, the classes of their rows, and folds, as Python gives them.

use std::sync::Arc;

use kernelpath::{Fold, Folds, Objective, Task};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrangement::read_classes;
use crate::boundary::{Vector, copied, unwrap};

/// The class of each row, and what the classes weigh in the loss. All machines of a classifier share it.
#[pyclass(frozen, module = "kernelpath._core")]
pub(crate) struct RowClasses(pub Arc<kernelpath::RowClasses>);

#[pymethods]
impl RowClasses {
    /// `index` has the class of each row, and `weight` its weight (None: all 1). `factors` are None, "balanced", or a
    /// number that the weights of each class are multiplied by in the loss.
    #[new]
    #[pyo3(signature = (index, n_classes, weight=None, factors=None))]
    fn new(
        index: Vector<'_, i64>,
        n_classes: usize,
        weight: Option<Vector<'_, f64>>,
        factors: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let weight = weight.map(|weight| weight.to_vec());
        let classes = kernelpath::RowClasses::new(read_classes(&index, n_classes)?, weight);
        let classes = match factors {
            None => classes,
            Some(factors) => match factors.extract::<Vec<f64>>() {
                Ok(factors) => classes.weighing(factors),
                Err(_) if factors.extract::<&str>().is_ok_and(|rule| rule == "balanced") => classes.balanced(),
                Err(_) => return Err(PyValueError::new_err(format!("unknown weights of classes {factors:?}"))),
            },
        };
        Ok(Self(Arc::new(classes)))
    }
}

/// A task as Python gives it.
#[derive(FromPyObject)]
pub(crate) struct PyTask<'py> {
    loss: String,
    /// The constant of the loss (τ, ε or δ); 0 if it has none.
    constant: f64,
    y: Vector<'py, f64>,
    weight: Option<Vector<'py, f64>>,
    rows: Option<Vector<'py, i64>>,
    classes: Option<Bound<'py, RowClasses>>,
    c_factor: f64,
}

pub(crate) fn read_task(task: &PyTask<'_>) -> PyResult<Task> {
    let PyTask { loss, constant, y, weight, rows, classes, c_factor } = task;
    let row = |i: &i64| usize::try_from(*i).map_err(|_| PyValueError::new_err(format!("negative row index {i}")));
    let rows = rows.as_ref().map(|rows| rows.view().iter().map(row).collect::<PyResult<_>>()).transpose()?;
    let objective = unwrap(Objective::from_name(loss, *constant))?;
    Ok(Task::new(objective, &y.to_vec())
        .with_weight(weight.as_ref().map(Vector::to_vec))
        .of_classes(classes.as_ref().map(|classes| classes.get().0.clone()))
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
