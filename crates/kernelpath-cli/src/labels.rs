//! Labels of classes: from files, and as text.

use kernelpath::{Label, LabelValue, shown};
use kernelpath_data::{LabelRef, Labels};
use serde_json::{Value, json};

/// What a label of a file is compared by.
pub(crate) fn value(label: LabelRef<'_>) -> LabelValue {
    match label {
        LabelRef::Integer(value) => value.value(),
        LabelRef::Float(value) => value.value(),
        LabelRef::Boolean(value) => value.value(),
        LabelRef::Text(value) => value.value(),
    }
}

/// The label as a file has it.
pub(crate) fn text(label: &LabelValue) -> String {
    match label {
        LabelValue::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The label as one field of a line: in quotes if it has a tab, a quote or a line feed.
pub(crate) fn field(label: &LabelValue) -> String {
    quoted(&text(label))
}

/// The label as one field of a line that is printed: [`shown`], so that it is one line, and moves nothing.
pub(crate) fn printed(label: &LabelValue) -> String {
    quoted(&shown(&text(label)))
}

fn quoted(text: &str) -> String {
    if text.contains(['\t', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

pub(crate) fn json_of(label: &LabelValue) -> Value {
    match label {
        LabelValue::Truth(value) => json!(value),
        LabelValue::Whole(value) => {
            i64::try_from(*value).map_or_else(|_| json!(value.to_string()), |value| json!(value))
        }
        LabelValue::Fraction(value) => json!(value),
        other => json!(text(other)),
    }
}

/// NumPy's name of the type of the labels, with which Python predicts the same labels.
pub(crate) fn type_of(labels: &Labels) -> String {
    match labels {
        Labels::Integers(_) => "int64".into(),
        Labels::Floats(_) => "float64".into(),
        Labels::Booleans(_) => "bool".into(),
        Labels::Strings(texts) => {
            let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
            format!("<U{}", longest.max(1))
        }
    }
}

/// The label that a user writes on the command line: the class whose text it is, or else a number or a text.
pub(crate) fn named(text: &str, classes: &[LabelValue]) -> LabelValue {
    let is_it = |class: &&LabelValue| self::text(class) == text;
    let number = |text: &str| text.parse::<f64>().ok().map(|number| number.value());
    classes.iter().find(is_it).cloned().or_else(|| number(text)).unwrap_or_else(|| LabelValue::Text(text.into()))
}
