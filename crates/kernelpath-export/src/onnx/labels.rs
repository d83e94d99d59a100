//! The labels of classes as an array.

use kernelpath::LabelValue;

use crate::error::Result;
use crate::onnx::graph::{Graph, Value, refused};
use crate::onnx::proto::{Element, TensorProto};

/// The labels in an array of their own type: texts, 64-bit integers, truth values, or floats.
pub(crate) fn labels(graph: &mut Graph, labels: &[LabelValue], label_type: Option<&str>) -> Result<(Value, Element)> {
    let are_floats = label_type.is_some_and(|name| name.starts_with("float"));
    let (element, tensor) = match labels.first() {
        Some(LabelValue::Text(_)) => {
            let texts = each(labels, |label| match label {
                LabelValue::Text(text) => Some(text.as_bytes().to_vec()),
                _ => None,
            })?;
            (Element::Text, TensorProto { string_data: texts, ..TensorProto::default() })
        }
        Some(LabelValue::Truth(_)) => {
            let truths = each(labels, |label| match label {
                LabelValue::Truth(value) => Some(u8::from(*value)),
                _ => None,
            })?;
            (Element::Bool, raw(truths))
        }
        Some(LabelValue::Whole(_)) if !are_floats && !labels.iter().any(is_fraction) => {
            let integers = each(labels, |label| match label {
                LabelValue::Whole(value) => i64::try_from(*value).ok(),
                _ => None,
            })?;
            (Element::Int64, raw(integers.into_iter().flat_map(i64::to_le_bytes).collect()))
        }
        _ => {
            let floats = each(labels, |label| match label {
                LabelValue::Whole(value) => Some(*value as f64),
                LabelValue::Fraction(value) => Some(*value),
                _ => None,
            })?;
            (Element::Double, raw(floats.into_iter().flat_map(f64::to_le_bytes).collect()))
        }
    };
    Ok((graph.constant("labels", element, &[labels.len()], tensor), element))
}

fn is_fraction(label: &LabelValue) -> bool {
    matches!(label, LabelValue::Fraction(_))
}

fn raw(bytes: Vec<u8>) -> TensorProto {
    TensorProto { raw_data: Some(bytes), ..TensorProto::default() }
}

/// Each label in the type of the first.
fn each<T>(labels: &[LabelValue], of: impl Fn(&LabelValue) -> Option<T>) -> Result<Vec<T>> {
    let one = |label: &LabelValue| match of(label) {
        Some(value) => Ok(value),
        None => refused(format!(
            "its label {label} does not go into one array with {}, which has one type, and integers of 64 bits; use \
             labels of one type",
            labels[0]
        )),
    };
    labels.iter().map(one).collect()
}
