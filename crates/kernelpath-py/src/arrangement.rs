//! The machines of a classifier.

use kernelpath::{Arrangement as Arranged, MultiClass, Odds};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::boundary::{Table, Vector, matrix, unwrap};
use crate::calibration::Calibration;

/// The ways to tell classes apart, in the order of what `new` makes of them.
pub(crate) const NAMES: [&str; 3] = ["ovo", "ovr", "multinomial"];

/// How several classes become machines, and how the values of the machines become a class.
#[pyclass(frozen, module = "kernelpath._core")]
pub(crate) struct Arrangement {
    pub arranged: Arranged,
    name: &'static str,
}

/// The classes of rows, as Python counts them.
pub(crate) fn read_classes(index: &Vector<'_, i64>, n_classes: usize) -> PyResult<Vec<usize>> {
    let class = |class: &i64| {
        let known = usize::try_from(*class).ok().filter(|class| *class < n_classes);
        known.ok_or_else(|| PyValueError::new_err(format!("a class must be below {n_classes}, not {class}")))
    };
    index.view().iter().map(class).collect()
}

/// Targets of a machine, and the rows that they are of (None: all).
type Targets<'py> = (Bound<'py, PyArray1<f64>>, Option<Bound<'py, PyArray1<i64>>>);

#[pymethods]
impl Arrangement {
    /// "ovo", "ovr" or "multinomial"; two classes are one machine in each case.
    #[new]
    fn new(name: &str, n_classes: usize) -> PyResult<Self> {
        let known = NAMES.into_iter().find(|known| *known == name);
        let name = known.ok_or_else(|| PyValueError::new_err(format!("unknown arrangement {name:?}")))?;
        if n_classes < 2 {
            return Err(PyValueError::new_err(format!("at least 2 classes are needed, not {n_classes}")));
        }
        let arranged = match name {
            "ovo" => Arranged::new(MultiClass::OneVsOne, n_classes),
            "ovr" => Arranged::new(MultiClass::OneVsRest, n_classes),
            _ => Arranged::together(n_classes),
        };
        Ok(Self { arranged, name })
    }

    /// Number of classes.
    #[getter]
    fn n_classes(&self) -> usize {
        self.arranged.classes()
    }

    /// Number of machines.
    #[getter]
    fn n_machines(&self) -> usize {
        self.arranged.machines()
    }

    /// The class that each machine of two is positive for, and the one that it is negative for (None: all others). Empty
    /// for one machine of all classes, and for two classes.
    #[getter]
    fn pairs(&self) -> Vec<(usize, Option<usize>)> {
        match &self.arranged {
            Arranged::Pairs { pairs, .. } => pairs.iter().map(|(first, second)| (*first, Some(*second))).collect(),
            Arranged::Rest { classes } => (0..*classes).map(|class| (class, None)).collect(),
            _ => Vec::new(),
        }
    }

    /// The targets of machine `m`, for rows of classes `index`.
    fn targets<'py>(&self, py: Python<'py>, m: usize, index: Vector<'py, i64>) -> PyResult<Targets<'py>> {
        let (y, rows) = self.arranged.targets(m, &read_classes(&index, self.arranged.classes())?);
        let rows = rows.map(|rows| rows.into_iter().map(|row| row as i64).collect::<Vec<_>>().into_pyarray(py));
        Ok((y.into_pyarray(py), rows))
    }

    /// What a user compares, from the values of the machines, a column each: for two classes one value a row, else one a
    /// class, the largest of which is the prediction.
    fn decision<'py>(&self, py: Python<'py>, values: Table<'py, f64>) -> PyResult<Bound<'py, PyAny>> {
        let decision = unwrap(self.arranged.decision(self.read(&values)?))?;
        match self.arranged {
            Arranged::Two => Ok(decision.into_pyarray(py).into_any()),
            _ => Ok(matrix(py, decision, self.arranged.classes())?.into_any()),
        }
    }

    /// The probability of each class, from the values of the machines, a column each. Without `maps` the values are the
    /// logarithms of odds.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        values: Table<'py, f64>,
        maps: Vec<PyRef<'py, Calibration>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let probabilities = self.odds(&maps)?.probabilities(&self.arranged, &self.read(&values)?);
        Ok(matrix(py, probabilities, self.arranged.classes())?.into_any())
    }

    /// The logarithms of these probabilities.
    fn log_probabilities<'py>(
        &self,
        py: Python<'py>,
        values: Table<'py, f64>,
        maps: Vec<PyRef<'py, Calibration>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let logarithms = self.odds(&maps)?.log_probabilities(&self.arranged, &self.read(&values)?);
        Ok(matrix(py, logarithms, self.arranged.classes())?.into_any())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (&'static str, usize)) {
        (py.get_type::<Self>(), (self.name, self.arranged.classes()))
    }
}

impl Arrangement {
    /// With its name in Python.
    pub fn of(arranged: Arranged) -> Self {
        let name = match arranged {
            Arranged::Rest { .. } => NAMES[1],
            Arranged::Together { .. } => NAMES[2],
            _ => NAMES[0],
        };
        Self { arranged, name }
    }

    /// The values of the machines, row after row.
    fn read(&self, values: &Table<'_, f64>) -> PyResult<Vec<f64>> {
        let (found, expected) = (values.view().ncols(), self.arranged.outputs());
        if found != expected {
            return Err(PyValueError::new_err(format!("the values must have {expected} columns, not {found}")));
        }
        Ok(values.view().iter().copied().collect())
    }

    fn odds(&self, maps: &[PyRef<'_, Calibration>]) -> PyResult<Odds> {
        match maps.len() {
            0 => Ok(Odds::Native),
            found if found == self.arranged.machines() => {
                Ok(Odds::Calibrated(maps.iter().map(|map| map.0.clone()).collect()))
            }
            found => {
                let machines = self.arranged.machines();
                Err(PyValueError::new_err(format!("{machines} machines have one map each, not {found} in all")))
            }
        }
    }
}
