//! The report of a model, written to a file.

use std::path::PathBuf;

use kernelpath::{Control, DeviceChoice, Hardware, LabelValue};
use kernelpath_export::report::{Labelled, Options, Truth, report};
use pyo3::prelude::*;

use crate::boundary::{Matrix, Table, Vector, run, threads, unwrap};
use crate::saved::{Saved, read_label};

/// Writes a page that explains the model. `x` are rows, and what is true of them either `labels` or `numbers`, with a
/// column for each output of the model, or one.
#[pyfunction]
#[pyo3(signature = (saved, path, *, title=None, x=None, labels=None, numbers=None, weight=None, device="cpu", n_threads=0))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn write_report<'py>(
    py: Python<'py>,
    saved: &Bound<'py, Saved>,
    path: PathBuf,
    title: Option<String>,
    x: Option<&Bound<'py, PyAny>>,
    labels: Option<Vec<Bound<'py, PyAny>>>,
    numbers: Option<Table<'py, f64>>,
    weight: Option<Vector<'py, f64>>,
    device: &str,
    n_threads: i64,
) -> PyResult<()> {
    let model = &saved.get().0;
    let labels: Option<Vec<LabelValue>> =
        labels.map(|labels| labels.iter().map(read_label).collect::<PyResult<_>>()).transpose()?;
    let numbers: Option<(usize, Vec<f64>)> =
        numbers.map(|numbers| (numbers.view().ncols(), numbers.view().iter().copied().collect()));
    let truth = match (&labels, &numbers) {
        (Some(labels), _) => Some(Truth::Labels(labels)),
        (None, Some((columns, values))) => Some(Truth::Numbers { columns: *columns, values }),
        (None, None) => None,
    };
    let x = x.map(|x| Matrix::borrow(x, "X")).transpose()?;
    let rows = x.as_ref().map(Matrix::rows).transpose()?;
    let weight: Option<Vec<f64>> = weight.map(|weight| weight.to_vec());
    let weights = weight.as_deref();
    let data = rows.zip(truth).map(|(x, truth)| Labelled { x, truth, weights });
    let device = unwrap(DeviceChoice::from_name(device))?;
    let control = Control::default();
    let hardware = Hardware::threads(threads(n_threads)).device(device);
    let options = Options { title, data_name: None, hardware, control: control.clone() };
    run(py, &control, || kernelpath::write_whole(&path, report(model, data, &options)?.as_bytes()))
}
