//! Attributes of a fitted model between Python and a file: numpy arrays, lists of texts, and small things as JSON.

use kernelpath::{Array, Attribute, Attributes, Entries};
use numpy::{Element, IntoPyArray, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::boundary::Tensor;

/// The document that a text holds.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("not JSON: {error}")))
}

/// Entries row after row.
fn entries<T: Element + Copy>(array: &Tensor<'_, T>) -> (Vec<usize>, Vec<T>) {
    (array.shape().to_vec(), array.view().iter().copied().collect())
}

/// A numpy array, a tuple (names, codes) of texts, or a text of JSON.
fn read_one(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Attribute> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Attribute::Value(parsed(text.to_str()?)?));
    }
    if let Ok((names, codes)) = value.extract::<(Vec<String>, Tensor<'_, u32>)>() {
        let (shape, codes) = entries(&codes);
        return Ok(Attribute::Array(Array { shape, entries: Entries::Text { names, codes } }));
    }
    let found = typed(value, Entries::F64)
        .or_else(|| typed(value, Entries::F32))
        .or_else(|| typed(value, Entries::I64))
        .or_else(|| typed(value, Entries::I32))
        .or_else(|| typed(value, Entries::U8))
        .or_else(|| typed(value, Entries::Bool));
    let Some(array) = found else {
        return Err(PyTypeError::new_err(format!("{name} is of no type that a model file holds")));
    };
    Ok(Attribute::Array(array))
}

/// The array, if its entries are of that type.
fn typed<T: Element + Copy>(value: &Bound<'_, PyAny>, hold: fn(Vec<T>) -> Entries) -> Option<Array> {
    let array = value.extract().ok()?;
    let (shape, values) = entries::<T>(&array);
    Some(Array { shape, entries: hold(values) })
}

/// Attributes by name.
pub(crate) fn read(attributes: &Bound<'_, PyDict>) -> PyResult<Attributes> {
    let one = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let attribute = read_one(&name, &value)?;
        Ok((name, attribute))
    };
    attributes.iter().map(one).collect()
}

fn array<'py, T: Element>(py: Python<'py>, shape: &[usize], entries: Vec<T>) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    entries.into_pyarray(py).reshape(shape)
}

/// The attributes as [`read`] takes them.
pub(crate) fn written<'py>(py: Python<'py>, attributes: &Attributes) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, attribute) in attributes {
        let Array { shape, entries } = match attribute {
            Attribute::Value(value) => {
                dict.set_item(name, value.to_string())?;
                continue;
            }
            Attribute::Array(array) => array,
            _ => continue,
        };
        match entries {
            Entries::F64(entries) => dict.set_item(name, array(py, shape, entries.clone())?)?,
            Entries::F32(entries) => dict.set_item(name, array(py, shape, entries.clone())?)?,
            Entries::I64(entries) => dict.set_item(name, array(py, shape, entries.clone())?)?,
            Entries::I32(entries) => dict.set_item(name, array(py, shape, entries.clone())?)?,
            Entries::U8(entries) => dict.set_item(name, array(py, shape, entries.clone())?)?,
            Entries::Bool(entries) => dict.set_item(name, array(py, shape, entries.clone())?)?,
            Entries::Text { names, codes } => dict.set_item(name, (names, array(py, shape, codes.clone())?))?,
            _ => {}
        }
    }
    Ok(dict)
}
