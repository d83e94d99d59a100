//! Data from files, as arrays.

use std::path::PathBuf;

use kernelpath::Control;
use kernelpath_data::{Base, ColumnIndices, Error, Format, Labels, LibsvmOptions, Options, Source, Table, TableRows};
use numpy::IntoPyArray;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyBytesMethods};

use crate::boundary::{run, threads, unwrap};

/// Values, columns, where rows begin, the number of columns, labels.
type Parts<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, usize, Bound<'py, PyAny>);

/// The parts of a file of LIBSVM. `base` is the index of the first
/// column, 0 or 1; None: 0 if the file has one.
#[pyfunction]
#[pyo3(signature = (source, *, n_features=None, base=None, ignore_qid=false, n_threads=0))]
pub(crate) fn read_libsvm<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    n_features: Option<usize>,
    base: Option<u8>,
    ignore_qid: bool,
    n_threads: i64,
) -> PyResult<Parts<'py>> {
    let base = match base {
        None => Base::Auto,
        Some(0) => Base::Zero,
        Some(_) => Base::One,
    };
    let libsvm = LibsvmOptions { columns: n_features, base, ignore_qid };
    let options = Options { format: Format::Libsvm, threads: threads(n_threads), libsvm, ..Options::default() };
    let bytes = source.cast::<PyBytes>().ok().map(PyBytesMethods::as_bytes);
    let path: PathBuf = if bytes.is_some() { PathBuf::new() } else { source.extract()? };
    let source = bytes.map_or(Source::Path(&path), Source::Bytes);
    let control = Control::default();
    let table = run(py, &control, || Ok(kernelpath_data::read(source, &options, &control)))?.or_else(raised)?;
    let Table { rows, labels, .. } = table;
    let TableRows::Sparse { indptr, indices, values, columns } = rows else {
        return Err(PyValueError::new_err("the file has no sparse rows"));
    };
    let starts: Vec<i64> = indptr.into_iter().map(|start| start as i64).collect();
    let indices = match indices {
        ColumnIndices::I32(indices) => indices.into_pyarray(py).into_any(),
        ColumnIndices::I64(indices) => indices.into_pyarray(py).into_any(),
    };
    let labels = match labels {
        Some(Labels::Integers(labels)) => labels.into_pyarray(py).into_any(),
        Some(Labels::Floats(labels)) => labels.into_pyarray(py).into_any(),
        _ => return Err(PyValueError::new_err("the labels of the file are no numbers")),
    };
    Ok((values.into_pyarray(py).into_any(), indices, starts.into_pyarray(py).into_any(), columns, labels))
}

/// The error as the Python exception that a caller would expect.
fn raised<T>(error: Error) -> PyResult<T> {
    Err(match error {
        Error::Io { ref source, .. } if source.raw_os_error().is_none() => PyValueError::new_err(error.to_string()),
        // The subclass of OSError for this kind of failure.
        Error::Io { ref source, .. } => std::io::Error::new(source.kind(), error.to_string()).into(),
        Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Library(error) => return unwrap(Err(error)),
        other => PyValueError::new_err(other.to_string()),
    })
}
