//! `kernelpath inspect`: what a model file says of itself.

use serde_json::Value;

use crate::arguments::small::InspectArguments;
use crate::failure::Failure;
use crate::models::Opened;
use crate::output;
use crate::table::Table;

pub(crate) fn run(arguments: &InspectArguments) -> Result<(), Failure> {
    let opened = Opened::new(&arguments.model)?;
    if opened.is_text() {
        let way_out = "convert it first: kernelpath convert FILE.model FILE.kpath";
        return Err(Failure::input(format!(
            "{}: inspect reads .kpath files, and this is text; {way_out}",
            opened.name().display()
        )));
    }
    let document = opened.inspect()?;
    if arguments.json { output::print_json(&document) } else { output::print(&text(&document)) }
}

/// What the model is, its parameters, what the fit found out, and the arrays.
fn text(document: &Value) -> String {
    let mut heads = Table::plain();
    heads.push(["estimator".to_string(), in_words(&document["estimator"])]);
    let written = format!("kernelpath {}, format {}", in_words(&document["library"]), in_words(&document["format"]));
    heads.push(["written by".to_string(), written]);
    for (name, key) in [("kernel", "kernel"), ("columns", "width"), ("outputs", "outputs")] {
        heads.push([name.to_string(), in_words(&document[key])]);
    }
    let training = &document["training"];
    let rows = match training["rows"].as_u64() {
        Some(rows) => {
            format!("{rows}, known by the digest {}", in_words(&training["values"]).get(..16).unwrap_or_default())
        }
        None => "not recorded in the file".into(),
    };
    heads.push(["training rows".to_string(), rows]);
    let proofs = "as recorded in the file; kernelpath verify MODEL DATA recomputes those of the model";
    heads.push(["proofs", proofs]);
    if let Some(table) = document.get("table") {
        heads.push(["table".to_string(), in_words(table)]);
    }
    let mut arrays = Table::new(["array", "type", "shape"]);
    for (name, array) in document["arrays"].as_object().into_iter().flatten() {
        let shape: Vec<String> = array["shape"].as_array().into_iter().flatten().map(in_words).collect();
        arrays.push([name.clone(), in_words(&array["type"]), shape.join(" × ")]);
    }
    let parts = [
        named("parameter", &document["parameters"]),
        named("attribute, as recorded in the file", &document["attributes"]),
        arrays,
    ];
    parts.iter().fold(heads.text(), |text, part| format!("{text}\n{}", part.text()))
}

/// The entries of an object that have a value.
fn named(what: &str, object: &Value) -> Table {
    let mut table = Table::new([what, "value"]);
    for (name, value) in object.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        table.push([name.clone(), in_words(value)]);
    }
    table
}

/// A value on one line.
fn in_words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Object(object) => {
            let parts = object.iter().filter(|(_, value)| !value.is_null());
            parts.map(|(name, value)| format!("{name} {}", in_words(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
