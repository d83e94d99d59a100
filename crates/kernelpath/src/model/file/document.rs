//! The names in a model file, shared by what writes and what reads one.

use serde_json::{Value, json};

use crate::model::label_value::LabelValue;

/// The version of the format that this library writes. It reads this one and all before it.
pub(crate) const FORMAT: u64 = 2;

/// What stands before the name of an array that is an attribute.
pub(crate) const ATTRIBUTE: &str = "attributes/";

/// The names of the arrangements in a file.
pub(crate) const TWO: &str = "two";
pub(crate) const PAIRS: &str = "one against one";
pub(crate) const REST: &str = "one against the rest";
pub(crate) const ALL_TOGETHER: &str = "together";

/// A label: a truth value, an integer, a float or a text; integers that JSON cannot hold are `{"integer": "…"}`.
pub(crate) fn json_of_label(label: &LabelValue) -> Value {
    match label {
        LabelValue::Truth(value) => json!(value),
        LabelValue::Whole(value) => {
            i64::try_from(*value).map_or_else(|_| json!({ "integer": value.to_string() }), |value| json!(value))
        }
        LabelValue::Fraction(value) => json!(value),
        LabelValue::Text(value) => json!(value),
    }
}

/// The label that [`json_of_label`] wrote; `None` if it is something else.
pub(crate) fn label_of_json(value: &Value) -> Option<LabelValue> {
    Some(match value {
        Value::Bool(value) => LabelValue::Truth(*value),
        Value::String(value) => LabelValue::Text(value.clone()),
        Value::Number(number) => match number.as_i64() {
            Some(value) => LabelValue::Whole(value.into()),
            None => LabelValue::Fraction(number.as_f64()?),
        },
        Value::Object(object) => LabelValue::Whole(object.get("integer")?.as_str()?.parse().ok()?),
        _ => return None,
    })
}
