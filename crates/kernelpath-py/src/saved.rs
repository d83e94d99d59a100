//! Fitted models by themselves: to files, from files, and to what other programs read.

use std::path::PathBuf;

use faer::Mat;
use kernelpath::{
    Calibration as Calibrated, Encoding, Hardware, LabelValue, Machine, Odds, Outputs, Predictor, Rows, RowsBuf,
    SavedModel, Scaling,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

use crate::arrangement::Arrangement;
use crate::attributes;
use crate::boundary::{Matrix, Table, Vector, run_here, unwrap};
use crate::calibration::Calibration;
use crate::kernels::{PyCentre, kernel_fn, read_centre};
use crate::training::read_training;

/// A label as Python has it: bool, int, float or str.
pub(crate) fn read_label(label: &Bound<'_, PyAny>) -> PyResult<LabelValue> {
    if label.is_instance_of::<PyBool>() {
        Ok(LabelValue::Truth(label.extract()?))
    } else if label.is_instance_of::<PyInt>() {
        Ok(LabelValue::Whole(label.extract()?))
    } else if label.is_instance_of::<PyFloat>() {
        let value: f64 = label.extract()?;
        // Integers up to 2^53 are floats.
        let is_whole = value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0;
        Ok(if is_whole { LabelValue::Whole(value as i128) } else { LabelValue::Fraction(value) })
    } else if label.is_instance_of::<PyString>() {
        Ok(LabelValue::Text(label.extract()?))
    } else {
        let kind = label.get_type().name()?;
        Err(PyTypeError::new_err(format!("a label of a model file is a bool, int, float or str, not {kind}: {label}")))
    }
}

fn label<'py>(py: Python<'py>, value: &LabelValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        LabelValue::Truth(value) => PyBool::new(py, *value).to_owned().into_any(),
        LabelValue::Whole(value) => value.into_pyobject(py)?.into_any(),
        LabelValue::Fraction(value) => value.into_pyobject(py)?.into_any(),
        LabelValue::Text(value) => value.into_pyobject(py)?.into_any(),
        _ => return Err(PyValueError::new_err("a label of a type that Python does not have")),
    })
}

/// Loss, constant, C, P, D, gap, noise, status.
type MachineParts = (String, f64, f64, f64, f64, f64, f64, String);

/// Decision values and probabilities, row after row.
type Answers<'py> = (Bound<'py, PyArray1<f64>>, Option<Bound<'py, PyArray1<f64>>>);

/// Two numbers for each column.
type Columns<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A fitted model by itself, as a file holds it.
#[pyclass(frozen, module = "kernelpath._core")]
pub(crate) struct Saved(pub SavedModel);

#[pymethods]
impl Saved {
    /// `parameters` are a JSON object. `coef` has a line for each function. `labels` are None for numbers, which
    /// `is_one` and `rising` are about. `odds` is None, "native" or a list of maps. `found` are attributes by name: numpy
    /// arrays, (names, codes) for texts, or JSON. `scaling` is what is subtracted from each column, and what each is
    /// then multiplied with. `centre` is the point that rows of the linear kernel were centred at, and the values there.
    #[new]
    #[pyo3(signature = (*, estimator, parameters, columns, label_type, machines, kernel, gamma, degree, coef0, vectors,
        support, width, coef, intercepts, labels, arrangement, odds, is_one, rising, found, scaling=None, training=None,
        centre=None, encoding=None))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)]
    fn new(
        estimator: String,
        parameters: &str,
        columns: Option<Vec<String>>,
        label_type: Option<String>,
        machines: Vec<MachineParts>,
        kernel: &str,
        gamma: f64,
        degree: u32,
        coef0: f64,
        vectors: Option<Bound<'_, PyAny>>,
        support: Vector<'_, i64>,
        width: usize,
        coef: Table<'_, f64>,
        intercepts: Vector<'_, f64>,
        labels: Option<Vec<Bound<'_, PyAny>>>,
        arrangement: Option<PyRef<'_, Arrangement>>,
        odds: Option<Bound<'_, PyAny>>,
        is_one: bool,
        rising: Option<Vec<usize>>,
        found: Bound<'_, PyDict>,
        scaling: Option<(Vector<'_, f64>, Vector<'_, f64>)>,
        training: Option<&str>,
        centre: Option<PyCentre<'_>>,
        encoding: Option<&str>,
    ) -> PyResult<Self> {
        let vectors = match vectors {
            None => RowsBuf::Dense(Mat::zeros(0, 0)),
            Some(vectors) => RowsBuf::copy_of(&Matrix::borrow(&vectors, "support_vectors_")?.rows()?),
        };
        let support = support.view().iter().map(|row| *row as usize).collect();
        let coef = coef.view();
        let coef = Mat::from_fn(coef.ncols(), coef.nrows(), |i, m| coef[(m, i)]);
        let outputs = match (labels, arrangement) {
            (Some(labels), Some(arrangement)) => Outputs::Classes {
                labels: labels.iter().map(read_label).collect::<PyResult<_>>()?,
                arrangement: arrangement.arranged.clone(),
                odds: odds.map(|odds| read_odds(&odds)).transpose()?,
            },
            _ => Outputs::Numbers { is_one, rising },
        };
        let kernel = kernel_fn(kernel, gamma, degree, coef0)?;
        let intercepts = intercepts.to_vec();
        let mut predictor = unwrap(Predictor::new(kernel, (vectors, support), width, coef, intercepts, outputs))?;
        predictor = unwrap(predictor.centred(read_centre(centre)))?;
        predictor.scaling = scaling.map(|(shift, factor)| Scaling { shift: shift.to_vec(), factor: factor.to_vec() });
        let encoding = encoding.map(|text| parsed_encoding(text, width)).transpose()?;
        let machine = |(loss, constant, c, primal, dual, gap, noise, status): MachineParts| Machine {
            loss,
            constant,
            c,
            primal,
            dual,
            gap,
            noise,
            status,
        };
        Ok(Self(SavedModel {
            estimator,
            parameters: attributes::parsed(parameters)?,
            columns,
            encoding,
            label_type,
            machines: machines.into_iter().map(machine).collect(),
            predictor,
            training: training.map(read_training).transpose()?,
            attributes: attributes::read(&found)?,
        }))
    }

    /// The bytes of a file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &run_here(py, || self.0.to_bytes())?))
    }

    /// The model in the bytes of a file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        run_here(py, || SavedModel::from_bytes(bytes)).map(Self)
    }

    /// Writes a file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        run_here(py, || self.0.save(path))
    }

    /// Reads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        run_here(py, || SavedModel::load(path)).map(Self)
    }

    /// What the Rust library answers for rows, to compare with the estimator's: decision values, or numbers, and
    /// probabilities if there are any.
    fn answers<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>) -> PyResult<Answers<'py>> {
        let x = Matrix::borrow(x, "X")?;
        let (rows, here) = (x.rows()?, Hardware::default());
        let values = run_here(py, || self.0.predictor.decision_function(rows, here))?;
        let has_odds = matches!(self.0.predictor.outputs, Outputs::Classes { odds: Some(_), .. });
        let odds = has_odds.then(|| run_here(py, || self.0.predictor.predict_proba(rows, here)));
        Ok((values.into_pyarray(py), odds.transpose()?.map(|odds| odds.into_pyarray(py))))
    }

    /// The bytes of an ONNX model, in single precision if asked for.
    #[pyo3(signature = (single=false))]
    fn to_onnx<'py>(&self, py: Python<'py>, single: bool) -> PyResult<Bound<'py, PyBytes>> {
        let options = kernelpath_export::onnx::Options { is_single: single };
        let bytes = converted(py, || kernelpath_export::onnx::to_onnx(&self.0, &options))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The text of LIBSVM's model file.
    fn to_libsvm(&self, py: Python<'_>) -> PyResult<String> {
        converted(py, || kernelpath_export::libsvm::to_libsvm(&self.0))
    }

    /// The model in a file that LIBSVM's `svm-train` wrote.
    #[staticmethod]
    fn from_libsvm(py: Python<'_>, text: &[u8]) -> PyResult<Self> {
        converted(py, || kernelpath_export::libsvm::from_libsvm(text)).map(Self)
    }

    /// The name of the estimator's class.
    #[getter]
    fn estimator(&self) -> &str {
        &self.0.estimator
    }

    /// The parameters as a JSON object.
    #[getter]
    fn parameters(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.parameters).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The names of the columns, or None.
    #[getter]
    fn columns(&self) -> Option<Vec<String>> {
        self.0.columns.clone()
    }

    /// NumPy's name of the type of the labels, or None.
    #[getter]
    fn label_type(&self) -> Option<&str> {
        self.0.label_type.as_deref()
    }

    /// Loss, constant, C, P, D, gap, noise and status of each machine.
    #[getter]
    fn machines(&self) -> Vec<MachineParts> {
        let parts = |m: &Machine| (m.loss.clone(), m.constant, m.c, m.primal, m.dual, m.gap, m.noise, m.status.clone());
        self.0.machines.iter().map(parts).collect()
    }

    /// Name, γ, degree and coef0; None for constants that the kernel does not have.
    #[getter]
    fn kernel(&self) -> (&'static str, f64, Option<u32>, Option<f64>) {
        use kernelpath::Shape::{Poly, Sigmoid};
        let kernel = self.0.predictor.kernel();
        let (degree, coef0) = match kernel.shape {
            Poly { degree, coef0 } => (Some(degree), Some(coef0)),
            Sigmoid { coef0 } => (None, Some(coef0)),
            _ => (None, None),
        };
        (kernel.shape.name(), kernel.gamma, degree, coef0)
    }

    /// The support vectors or landmarks: an array, or (values, columns, where rows begin) of a sparse matrix. None if the
    /// kernel is precomputed.
    #[getter]
    fn vectors<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let predictor = &self.0.predictor;
        if predictor.kernel().shape == kernelpath::Shape::Precomputed {
            return Ok(None);
        }
        let vectors = predictor.vectors();
        if let Rows::Csr(sparse) = vectors {
            let (mut starts, mut columns, mut values) = (vec![0_i64], Vec::new(), Vec::new());
            for row in 0..sparse.nrows() {
                sparse.row(row).for_each(|(column, value)| {
                    columns.push(column as i64);
                    values.push(value);
                });
                starts.push(columns.len() as i64);
            }
            let parts = (values.into_pyarray(py), columns.into_pyarray(py), starts.into_pyarray(py));
            return Ok(Some(parts.into_pyobject(py)?.into_any()));
        }
        let (rows, columns) = (vectors.nrows(), vectors.ncols());
        let values = (0..rows)
            .flat_map(|i| (0..columns).map(move |j| (i, j)))
            .map(|(i, j)| vectors.entry(i, j).unwrap_or(f64::NAN));
        let array = values.collect::<Vec<f64>>().into_pyarray(py);
        Ok(Some(numpy::PyArrayMethods::reshape(&array, [rows, columns])?.into_any()))
    }

    /// The training rows that the vectors are, or the columns of a precomputed kernel.
    #[getter]
    fn support<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.predictor.support().iter().map(|row| *row as i64).collect::<Vec<_>>().into_pyarray(py)
    }

    /// The number of columns that rows must have.
    #[getter]
    fn width(&self) -> usize {
        self.0.predictor.width()
    }

    /// The coefficients, a line for each function.
    #[getter]
    fn coef<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let coef = self.0.predictor.coef();
        let entries: Vec<f64> = (0..coef.ncols()).flat_map(|m| coef.col(m).iter().copied()).collect();
        let array = entries.into_pyarray(py);
        Ok(numpy::PyArrayMethods::reshape(&array, [coef.ncols(), coef.nrows()])?.into_any())
    }

    /// The intercept of each function.
    #[getter]
    fn intercepts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.0.predictor.intercepts().to_vec().into_pyarray(py)
    }

    /// The classes; None for numbers.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Outputs::Classes { labels, .. } = &self.0.predictor.outputs else { return Ok(None) };
        labels.iter().map(|value| label(py, value)).collect::<PyResult<_>>().map(Some)
    }

    /// How the machines tell the classes apart; None for numbers.
    #[getter]
    fn arrangement(&self) -> Option<Arrangement> {
        let Outputs::Classes { arrangement, .. } = &self.0.predictor.outputs else { return None };
        Some(Arrangement::of(arrangement.clone()))
    }

    /// The maps from values to probabilities; None if there are none, empty if values are the logarithms of odds.
    #[getter]
    fn calibrations(&self) -> Option<Vec<Calibration>> {
        match &self.0.predictor.outputs {
            Outputs::Classes { odds: Some(Odds::Calibrated(maps)), .. } => {
                Some(maps.iter().cloned().map(Calibration).collect())
            }
            Outputs::Classes { odds: Some(_), .. } => Some(Vec::new()),
            _ => None,
        }
    }

    /// Whether numbers come without an axis for several.
    #[getter]
    fn is_one(&self) -> bool {
        !matches!(self.0.predictor.outputs, Outputs::Numbers { is_one: false, .. })
    }

    /// The order of the functions by which their values are sorted; None if they are not.
    #[getter]
    fn rising(&self) -> Option<Vec<usize>> {
        let Outputs::Numbers { rising, .. } = &self.0.predictor.outputs else { return None };
        rising.clone()
    }

    /// What is subtracted from each column of rows, and what each is then multiplied with; None: nothing.
    #[getter]
    fn scaling<'py>(&self, py: Python<'py>) -> Option<Columns<'py>> {
        let scaling = self.0.predictor.scaling.as_ref()?;
        Some((scaling.shift.clone().into_pyarray(py), scaling.factor.clone().into_pyarray(py)))
    }

    /// The digests of the rows of the fit, or None.
    #[getter]
    fn training(&self) -> Option<String> {
        self.0.training.as_ref().map(|training| training.to_json().to_string())
    }

    /// The point that rows of the linear kernel were centred at, and the values of all functions there; None: they were not.
    #[getter]
    fn centre<'py>(&self, py: Python<'py>) -> Option<Columns<'py>> {
        let centre = self.0.predictor.centre()?;
        Some((centre.point.clone().into_pyarray(py), centre.values.clone().into_pyarray(py)))
    }

    /// How the columns of a table become features, as JSON; None: they are the features.
    #[getter]
    fn encoding(&self) -> Option<String> {
        let encoding = self.0.encoding.as_ref()?;
        Some(kernelpath::json_of_encoding(encoding).to_string())
    }

    /// The attributes, as the constructor takes them.
    #[getter]
    fn found<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        attributes::written(py, &self.0.attributes)
    }
}

/// An encoding in JSON, of a model with that many features.
fn parsed_encoding(text: &str, features: usize) -> PyResult<Encoding> {
    let value = serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    kernelpath::encoding_of_json(&value, features).map_err(PyValueError::new_err)
}

/// The features of a table whose texts are their places, in which NaN is missing. `encoding` is JSON.
#[pyfunction]
pub(crate) fn encode<'py>(
    py: Python<'py>,
    encoding: &str,
    table: Table<'_, f64>,
    features: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let encoding = parsed_encoding(encoding, features)?;
    let table = table.matrix();
    let encoded = run_here(py, || encoding.apply(&Rows::from(table)))?;
    let view = encoded.view();
    let values = (0..view.nrows())
        .flat_map(|i| (0..view.ncols()).map(move |j| (i, j)))
        .map(|(i, j)| view.entry(i, j).unwrap_or(f64::NAN));
    let array = values.collect::<Vec<f64>>().into_pyarray(py);
    Ok(numpy::PyArrayMethods::reshape(&array, [view.nrows(), view.ncols()])?.into_any())
}

/// What a conversion gives, without the GIL.
fn converted<R: Send>(py: Python<'_>, convert: impl FnOnce() -> kernelpath_export::Result<R> + Send) -> PyResult<R> {
    run_here(py, || Ok(convert()))?.or_else(|error| match error {
        kernelpath_export::Error::Library(error) => unwrap(Err(error)),
        other => Err(PyValueError::new_err(other.to_string())),
    })
}

fn read_odds(odds: &Bound<'_, PyAny>) -> PyResult<Odds> {
    if odds.is_instance_of::<PyString>() {
        return Ok(Odds::Native);
    }
    let maps: Vec<PyRef<'_, Calibration>> = odds.extract()?;
    Ok(Odds::Calibrated(maps.iter().map(|map| map.0.clone()).collect::<Vec<Calibrated>>()))
}
