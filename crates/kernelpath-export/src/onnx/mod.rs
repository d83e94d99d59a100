//! Models that ONNX Runtime predicts with.
//!
//! | name | type and shape | what |
//! |---|---|---|
//! | `X`, the input | float64, (rows, features) | what `predict` takes |
//! | `label` | that of the labels, (rows) | of a classifier: what `predict` returns |
//! | `decision` | float64, (rows) for two classes, (rows, classes) for more | `decision_function` |
//! | `probabilities` | float64, (rows, classes) | `predict_proba`, if the model has it |
//! | `values` | float64, (rows), or (rows, targets) | of other models: what `predict` returns |
//!
//! All operators are of the standard's core, none of `ai.onnx.ml`, and compute in double precision, or in single where
//! [`Options::is_single`] asks for it. The kernel between the rows and the vectors is in memory once.

mod classes;
mod coupling;
mod graph;
mod kernel;
mod labels;
mod odds;
mod proto;

use kernelpath::{Outputs, SavedModel};
use prost::Message;

use crate::encoded::encoded;
use crate::error::Result;
use crate::onnx::classes::{decision, predicted};
use crate::onnx::graph::{Graph, Value, refused};
use crate::onnx::odds::probabilities;
use crate::onnx::proto::{ModelProto, OperatorSetIdProto, StringStringEntryProto};

/// The version of the format of files: that of ONNX 1.8 (2020).
const IR_VERSION: i64 = 7;

/// The version of the operators: that of ONNX 1.8 and ONNX Runtime 1.6 (2020).
const OPSET: i64 = 13;

/// How the graph computes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// In single precision, input included.
    pub is_single: bool,
}

/// The bytes of an ONNX model.
///
/// Refused are models of more than 2 GiB, those that couple the probabilities of pairs of more than 10 classes, and labels
/// that are not of one type.
///
/// ```
/// use kernelpath::Regressor;
/// use kernelpath_export::onnx::{Options, to_onnx};
///
/// let x: Vec<f64> = (0..60).map(|i| f64::from(i) / 10.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let model = Regressor::ridge().cs([1.0, 10.0]).fit((&x[..], 1), &y)?;
/// let (double, single) = (Options::default(), Options { is_single: true });
/// assert!(to_onnx(&model.saved(), &single)?.len() < to_onnx(&model.saved(), &double)?.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_onnx(model: &SavedModel, options: &Options) -> Result<Vec<u8>> {
    let predictor = &model.predictor;
    if let Some(what) = encoded(model) {
        return refused(format!("{what}, and a graph has numbers only; encode the data first, and fit on numbers"));
    }
    let mut graph = Graph::new(&model.estimator, "", options.is_single);
    let x = graph.input("X", &[None, Some(predictor.width())], "what predict takes");
    let values = kernel::values(&mut graph, &x, predictor)?;
    match &predictor.outputs {
        Outputs::Classes { .. } => write_classes(&mut graph, model, &values)?,
        Outputs::Numbers { is_one, rising } => {
            write_numbers(&mut graph, &values, predictor.n_values(), *is_one, rising.as_deref());
        }
        _ => return refused("its outputs are neither classes nor numbers; install a newer version"),
    }
    let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.into()), value: Some(value) };
    let mut metadata_props = vec![
        entry("kernelpath.estimator", model.estimator.clone()),
        entry("kernelpath.kernel", predictor.kernel().shape.name().into()),
    ];
    if let Some(columns) = &model.columns {
        metadata_props.push(entry("kernelpath.columns", serde_json::json!(columns).to_string()));
    }
    let operators = OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) };
    let proto = ModelProto {
        ir_version: Some(IR_VERSION),
        producer_name: Some("kernelpath".into()),
        producer_version: Some(env!("CARGO_PKG_VERSION").into()),
        graph: Some(graph.finish()),
        opset_import: vec![operators],
        metadata_props,
        ..ModelProto::default()
    };
    Ok(proto.encode_to_vec())
}

fn write_classes(graph: &mut Graph, model: &SavedModel, values: &Value) -> Result<()> {
    let Outputs::Classes { labels, arrangement, odds } = &model.predictor.outputs else { return Ok(()) };
    let float = graph.float();
    let compared = decision(graph, values, arrangement)?;
    let class = predicted(graph, &compared, arrangement)?;
    let (labels, element) = labels::labels(graph, labels, model.label_type.as_deref())?;
    let label = graph.take(&labels, &class, 0);
    graph.output(&label, "label", element, &[None], "what predict returns");
    let (two, several) = ([None], [None, Some(arrangement.classes())]);
    let axes: &[Option<usize>] = if arrangement.classes() == 2 { &two } else { &several };
    graph.output(&compared, "decision", float, axes, "what decision_function returns");
    if let Some(odds) = odds {
        let p = probabilities(graph, values, arrangement, odds)?;
        graph.output(&p, "probabilities", float, &several, "what predict_proba returns");
    }
    Ok(())
}

/// The numbers of each row, sorted into the places of `rising` if there are such.
fn write_numbers(graph: &mut Graph, values: &Value, columns: usize, is_one: bool, rising: Option<&[usize]>) {
    let mut values = values.clone();
    if let Some(rising) = rising.filter(|_| columns > 1) {
        // The place in the sorted row of each number.
        let mut rank = vec![0; columns];
        for (place, &k) in rising.iter().enumerate() {
            rank[k] = place as i64;
        }
        let count = graph.integers("count", &[columns as i64]);
        let rank = graph.integers("rank", &rank);
        let sorted = graph.rising(&values, &count);
        values = graph.take(&sorted, &rank, 1);
    }
    let float = graph.float();
    if is_one && columns == 1 {
        let values = graph.without_axis(&values, 1);
        graph.output(&values, "values", float, &[None], "what predict returns");
    } else {
        graph.output(&values, "values", float, &[None, Some(columns)], "what predict returns");
    }
}

#[cfg(test)]
mod tests;
