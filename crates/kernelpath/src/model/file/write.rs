//! A model becomes a document with arrays.

use serde_json::{Map, Value, json};

use crate::data::rows::Rows;
use crate::error::Result;
use crate::kernel::shape::{KernelFn, Shape};
use crate::model::arrangement::{Arrangement, MultiClass};
use crate::model::attributes::{Array, Attribute, Entries};
use crate::model::calibrate::Calibration;
use crate::model::file::container::{Container, wrong};
use crate::model::file::document::{ALL_TOGETHER, ATTRIBUTE, FORMAT, PAIRS, REST, TWO, json_of_label};
use crate::model::file::table::{ENCODING, json_of_encoding};
use crate::model::predictor::{Outputs, Predictor};
use crate::model::probabilities::Odds;
use crate::model::saved::{Machine, SavedModel};

/// The model as a file holds it.
pub(crate) fn container(model: &SavedModel) -> Result<Container> {
    let mut out = Container::default();
    let document = &mut out.document;
    document.insert("format".into(), json!(FORMAT));
    document.insert("library".into(), json!(env!("CARGO_PKG_VERSION")));
    document.insert("estimator".into(), json!(model.estimator));
    document.insert("parameters".into(), Value::Object(model.parameters.clone()));
    document.insert("label_type".into(), json!(model.label_type));
    if let Some(training) = &model.training {
        document.insert("training".into(), training.to_json());
    }
    if let Some(encoding) = &model.encoding {
        document.insert(ENCODING.into(), json_of_encoding(encoding));
    }
    if let Some(columns) = &model.columns {
        let names = columns.iter().map(String::as_str);
        out.insert("columns", Array::of_texts([columns.len()], names));
    }
    write_machines(&mut out, &model.machines);
    write_predictor(&mut out, &model.predictor)?;
    let mut small = Map::new();
    for (name, attribute) in &model.attributes {
        match attribute {
            Attribute::Value(value) => drop(small.insert(name.clone(), value.clone())),
            Attribute::Array(array) => out.insert(&format!("{ATTRIBUTE}{name}"), array.clone()),
        }
    }
    out.document.insert("attributes".into(), Value::Object(small));
    Ok(out)
}

/// A number, or a text, of a machine.
type Number = fn(&Machine) -> f64;

type Text = fn(&Machine) -> &str;

fn write_machines(out: &mut Container, machines: &[Machine]) {
    let shape = [machines.len()];
    let numbers: [(&str, Number); 6] = [
        ("constant", |m| m.constant),
        ("c", |m| m.c),
        ("primal", |m| m.primal),
        ("dual", |m| m.dual),
        ("gap", |m| m.gap),
        ("noise", |m| m.noise),
    ];
    for (name, of) in numbers {
        let array = Array::of_f64(shape, machines.iter().map(of).collect());
        out.insert(&format!("machines.{name}"), array);
    }
    let texts: [(&str, Text); 2] = [("loss", |m| &m.loss), ("status", |m| &m.status)];
    for (name, of) in texts {
        out.insert(&format!("machines.{name}"), Array::of_texts(shape, machines.iter().map(of)));
    }
}

fn write_predictor(out: &mut Container, predictor: &Predictor) -> Result<()> {
    out.document.insert("kernel".into(), json_of_kernel(predictor.kernel()));
    out.document.insert("width".into(), json!(predictor.width()));
    out.document.insert("outputs".into(), json_of_outputs(&predictor.outputs)?);
    let vectors = predictor.vectors();
    match vectors {
        _ if predictor.kernel().shape == Shape::Precomputed => {}
        Rows::Csr(sparse) => {
            let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in 0..sparse.nrows() {
                for (column, value) in sparse.row(row) {
                    columns.push(column as i64);
                    values.push(value);
                }
                starts.push(columns.len() as i64);
            }
            out.insert("vectors.starts", integers(starts));
            out.insert("vectors.columns", integers(columns));
            out.insert("vectors.values", Array { shape: vec![values.len()], entries: narrowed(values) });
        }
        _ => {
            let (rows, columns) = (vectors.nrows(), vectors.ncols());
            let values = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|(i, j)| vectors.get(i, j));
            out.insert("vectors", Array { shape: vec![rows, columns], entries: narrowed(values.collect()) });
        }
    }
    out.insert("support", integers(predictor.support().iter().map(|row| *row as i64).collect()));
    let coef = predictor.coef();
    let entries = (0..coef.nrows()).flat_map(|i| coef.row(i).iter().copied().collect::<Vec<_>>()).collect();
    out.insert("coef", Array::of_f64([coef.nrows(), coef.ncols()], entries));
    out.insert("intercepts", Array::of_f64([coef.ncols()], predictor.intercepts().to_vec()));
    if let Some(centre) = predictor.centre() {
        out.insert("centre.point", Array::of_f64([centre.point.len()], centre.point.clone()));
        out.insert("centre.values", Array::of_f64([centre.values.len()], centre.values.clone()));
    }
    if let Some(scaling) = &predictor.scaling {
        out.insert("scaling.shift", Array::of_f64([scaling.shift.len()], scaling.shift.clone()));
        out.insert("scaling.factor", Array::of_f64([scaling.factor.len()], scaling.factor.clone()));
    }
    if let Outputs::Classes { odds: Some(Odds::Calibrated(maps)), .. } = &predictor.outputs {
        write_calibrations(out, maps);
    }
    Ok(())
}

/// Slope, intercept and points of each map; 0 and no point where a method has none.
fn write_calibrations(out: &mut Container, maps: &[Calibration]) {
    let (mut slopes, mut intercepts, mut starts, mut points) = (Vec::new(), Vec::new(), vec![0], Vec::new());
    for map in maps {
        let (slope, intercept) = match map {
            Calibration::Sigmoid { slope, intercept } => (*slope, *intercept),
            Calibration::Temperature { slope } => (*slope, 0.0),
            Calibration::Isotonic { points: own } => {
                points.extend(own.iter().flat_map(|(f, p)| [*f, *p]));
                (0.0, 0.0)
            }
        };
        slopes.push(slope);
        intercepts.push(intercept);
        starts.push((points.len() / 2) as i64);
    }
    out.insert("calibration.method", Array::of_texts([maps.len()], maps.iter().map(|map| map.method().name())));
    out.insert("calibration.slope", Array::of_f64([maps.len()], slopes));
    out.insert("calibration.intercept", Array::of_f64([maps.len()], intercepts));
    out.insert("calibration.starts", integers(starts));
    out.insert("calibration.points", Array::of_f64([points.len() / 2, 2], points));
}

fn json_of_kernel(kernel: KernelFn) -> Value {
    let mut object = json!({ "name": kernel.shape.name(), "gamma": kernel.gamma });
    match kernel.shape {
        Shape::Poly { degree, coef0 } => {
            object["degree"] = json!(degree);
            object["coef0"] = json!(coef0);
        }
        Shape::Sigmoid { coef0 } => object["coef0"] = json!(coef0),
        _ => {}
    }
    object
}

fn json_of_outputs(outputs: &Outputs) -> Result<Value> {
    Ok(match outputs {
        Outputs::Numbers { is_one, rising } => json!({ "is_one": is_one, "rising": rising }),
        Outputs::Classes { labels, arrangement, odds } => {
            let name = match arrangement {
                Arrangement::Two => TWO,
                Arrangement::Rest { .. } => REST,
                Arrangement::Together { .. } => ALL_TOGETHER,
                // A file does not list the pairs.
                Arrangement::Pairs { classes, .. }
                    if *arrangement == Arrangement::new(MultiClass::OneVsOne, *classes) =>
                {
                    PAIRS
                }
                Arrangement::Pairs { .. } => {
                    return wrong("the pairs of classes are not in the order (0, 1), (0, 2), …");
                }
            };
            let odds = match odds {
                None => Value::Null,
                Some(Odds::Native) => json!("native"),
                Some(Odds::Calibrated(_)) => json!("calibrated"),
            };
            let labels: Vec<Value> = labels.iter().map(json_of_label).collect();
            json!({ "classes": labels, "arrangement": name, "odds": odds })
        }
    })
}

fn integers(entries: Vec<i64>) -> Array {
    Array { shape: vec![entries.len()], entries: Entries::I64(entries) }
}

/// In single precision if that loses nothing, which halves the file of a model of such data.
fn narrowed(values: Vec<f64>) -> Entries {
    if values.iter().all(|value| f64::from(*value as f32) == *value) {
        Entries::F32(values.iter().map(|value| *value as f32).collect())
    } else {
        Entries::F64(values)
    }
}
