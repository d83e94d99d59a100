//! Maps from scores to probabilities.

use kernelpath::{Calibration as Calibrated, Control, Method};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::boundary::{Vector, matrix, run, unwrap};

/// A fitted map from scores to probabilities.
#[pyclass(frozen, module = "kernelpath._core")]
pub(crate) struct Calibration(pub Calibrated);

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
        scores: Vector<'_, f64>,
        positive: Vector<'_, bool>,
        weights: Option<Vector<'_, f64>>,
    ) -> PyResult<Self> {
        let method = unwrap(Method::from_name(method))?;
        let (scores, positive) = (scores.to_vec(), positive.to_vec());
        let weights = weights.map(|w| w.to_vec());
        let fit = || Calibrated::fit(method, &scores, &positive, weights.as_deref());
        run(py, &Control::default(), fit).map(Self)
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
    fn probability<'py>(&self, py: Python<'py>, scores: Vector<'py, f64>) -> Bound<'py, PyArray1<f64>> {
        scores.view().iter().map(|f| self.0.probability(*f)).collect::<Vec<_>>().into_pyarray(py)
    }

    /// log(P(y = +1) / P(y = −1)) at each score.
    fn log_odds<'py>(&self, py: Python<'py>, scores: Vector<'py, f64>) -> Bound<'py, PyArray1<f64>> {
        scores.view().iter().map(|f| self.0.log_odds(*f)).collect::<Vec<_>>().into_pyarray(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, CalibrationState) {
        let points = if let Calibrated::Isotonic { points } = &self.0 { points.clone() } else { Vec::new() };
        let (slope, intercept) = (self.slope().unwrap_or(0.0), self.intercept().unwrap_or(0.0));
        (py.get_type::<Self>(), (self.method(), slope, intercept, points))
    }
}
