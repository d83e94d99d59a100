//! `kernelpath inspect`: what a model file says of itself.

use kernelpath::SavedModel;
use serde_json::Value;

use crate::arguments::small::InspectArguments;
use crate::failure::Failure;
use crate::models;
use crate::output;
use crate::table::Table;

pub(crate) fn run(arguments: &InspectArguments) -> Result<(), Failure> {
    let path = &arguments.model;
    if models::is_text(path) {
        let way_out = "convert it first: kernelpath convert FILE.model FILE.kpath";
        return Err(Failure::input(format!(
            "{}: inspect reads .kpath files, and this is text; {way_out}",
            path.display()
        )));
    }
    let document = SavedModel::inspect(path)?;
    output::print(&if arguments.json { format!("{document:#}\n") } else { text(&document) })
}

/// The heads of the document, then what the fit found out, then the arrays.
fn text(document: &Value) -> String {
    let mut heads = Table::plain();
    let mut push = |name: &str, value: String| {
        if !value.is_empty() {
            heads.push([name.to_string(), value]);
        }
    };
    push("estimator", shown(&document["estimator"]));
    push("written by", format!("kernelpath {}, format {}", shown(&document["library"]), shown(&document["format"])));
    push("kernel", shown(&document["kernel"]));
    push("columns", shown(&document["width"]));
    push("outputs", shown(&document["outputs"]));
    for (name, value) in document["parameters"].as_object().into_iter().flatten() {
        push(name, shown(value));
    }
    for (name, value) in document["attributes"].as_object().into_iter().flatten() {
        push(name, shown(value));
    }
    let mut arrays = Table::new(["array", "type", "shape"]);
    for (name, array) in document["arrays"].as_object().into_iter().flatten() {
        let shape: Vec<String> = array["shape"].as_array().into_iter().flatten().map(shown).collect();
        arrays.push([name.clone(), shown(&array["type"]), shape.join(" × ")]);
    }
    format!("{}\n{}", heads.text(), arrays.text())
}

/// A value on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(object) => {
            let parts = object.iter().filter(|(_, value)| !value.is_null());
            parts.map(|(name, value)| format!("{name} {}", shown(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
