//! The call that fits the same model again.

use serde_json::{Value, json};

use crate::report::command::command;
use crate::report::found::Found;
use crate::report::html::{Html, html};
use crate::report::section::Section;

/// Most values of a list that is written out.
const MOST_VALUES: usize = 100;

/// What parameters are in Python unless they are set. One name may have several: each estimator has one of them.
pub(crate) fn is_default(name: &str, value: &Value) -> bool {
    let default = match name {
        "kernel" => json!("rbf"),
        "gamma" => json!("sigest"),
        "degree" => json!(3),
        "Cs" => json!(50),
        "cv" => json!(5),
        "selection" => json!("best"),
        "landmarks" | "solver" | "dtype" | "epsilon" | "delta" => json!("auto"),
        "n_landmarks" => json!(2000),
        "device" => json!("cpu"),
        "tol" => json!(1e-6),
        "max_iter" => json!(1_000_000),
        "verbose" => json!(0),
        "keep_path" => json!(true),
        "multi_class" => json!("ovo"),
        "tune" => json!("joint"),
        "loss" => return *value == json!("hinge") || *value == json!("squared"),
        "tau" => json!(0.5),
        "low_rank" | "probability" | "assume_definite" => json!(false),
        "coef0" => json!(0.0),
        "lambdas" | "scoring" | "rank" | "time_budget" | "n_jobs" | "class_weight" | "noncrossing" => Value::Null,
        // Written even where it is the default: it decides the folds.
        _ => return false,
    };
    *value == default || (value.as_f64().is_some() && value.as_f64() == default.as_f64())
}

/// How to fit the same model again.
pub(crate) fn section(found: &Found) -> Section {
    let mut section = Section::new("reproduce", "Fit it again");
    section.say(
        "X and y, or DATA, are the data of the fit. The same data and parameters give the same model. Folds and bandwidths \
         are drawn from the seed, by Python and by the command line in their own ways: use the one that made the model.",
    );
    let (code, unknown) = python(found);
    section.words += html!("<h3>Python</h3><pre><code>{}</code></pre>", Html::text(&code));
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        section.note("note", &format!("Not known to this file, but for their texts: {names}. Set them as they were."));
    }
    if let Some(command) = command(found) {
        section.words += html!("<h3>Command line</h3><pre><code>{}</code></pre>", Html::text(&command));
    }
    if found.model.predictor.scaling.is_some() {
        section.note("note", "The model scales the columns itself: add --scale as it was.");
    }
    section
}

/// A call in Python, and the parameters that it cannot have.
pub(crate) fn python(found: &Found) -> (String, Vec<String>) {
    let (mut arguments, mut unknown) = (Vec::new(), Vec::new());
    for (name, value) in &found.model.parameters {
        if is_default(name, value) || !is_name(name) {
            continue;
        }
        match value.get("repr") {
            Some(repr) => unknown.push(format!("{name} = {}", repr.as_str().unwrap_or_default())),
            None => match literal(value) {
                Some(text) => arguments.push(format!("    {name}={text},\n")),
                None => unknown.push(format!("{name} (a long list)")),
            },
        }
    }
    let estimator = if is_name(&found.model.estimator) { &found.model.estimator } else { "Estimator" };
    let arguments: String = arguments.concat();
    let numpy = if arguments.contains("np.") { "import numpy as np\n\n" } else { "" };
    let arguments = if arguments.is_empty() { arguments } else { format!("\n{arguments}") };
    (format!("{numpy}import kernelpath\n\nmodel = kernelpath.{estimator}({arguments})\nmodel.fit(X, y)\n"), unknown)
}

/// Whether it is a name in Python, so that a text from a file is no code.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text.len() < 60
}

/// A value as Python writes it; `None` if it is too long.
fn literal(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => value.to_string(),
        Value::Array(values) => {
            if let Some((first, last, count)) = steps(values) {
                return Some(format!("np.geomspace({first}, {last}, {count})"));
            }
            if values.len() > MOST_VALUES {
                return None;
            }
            format!("[{}]", values.iter().map(literal).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Object(object) => match object.get("float").and_then(Value::as_str) {
            Some(name @ ("nan" | "inf" | "-inf")) => format!("float(\"{name}\")"),
            _ => entries(object.get("items")?.as_array()?)?,
        },
    })
}

/// A dictionary, such as the weights of classes.
fn entries(items: &[Value]) -> Option<String> {
    if items.len() > MOST_VALUES {
        return None;
    }
    let entry = |item: &Value| Some(format!("{}: {}", literal(item.get(0)?)?, literal(item.get(1)?)?));
    Some(format!("{{{}}}", items.iter().map(entry).collect::<Option<Vec<_>>>()?.join(", ")))
}

/// The first, the last and the number of values, if these rise or fall by the same factor up to the last digits.
pub(crate) fn steps(values: &[Value]) -> Option<(Value, Value, usize)> {
    let values: Vec<f64> = values.iter().map(Value::as_f64).collect::<Option<_>>()?;
    let (first, last, n) = (*values.first()?, *values.last()?, values.len());
    if n < 6 || first <= 0.0 || last <= 0.0 {
        return None;
    }
    let at = |k: usize| first * (last / first).powf(k as f64 / (n - 1) as f64);
    let is_same = values.iter().enumerate().all(|(k, value)| (at(k) - value).abs() <= 1e-12 * value.abs());
    is_same.then(|| (json!(first), json!(last), n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_python_has_them() {
        let grid: Vec<f64> = (0..7).map(|k| 10_f64.powi(k - 3)).collect();
        assert_eq!(literal(&json!(grid)).unwrap(), "np.geomspace(0.001, 1000.0, 7)");
        assert_eq!(literal(&json!([1.0, 2.0, 4.5])).unwrap(), "[1.0, 2.0, 4.5]");
        assert_eq!(literal(&json!({ "float": "inf" })).unwrap(), "float(\"inf\")");
        assert_eq!(literal(&json!("a\"b")).unwrap(), "\"a\\\"b\"");
        assert_eq!(literal(&json!({ "items": [[1, 2.5], ["a", 1]] })).unwrap(), "{1: 2.5, \"a\": 1}");
        assert_eq!(literal(&json!(true)).unwrap(), "True");
        assert_eq!(literal(&json!((0..1000).map(|k| k * k).collect::<Vec<_>>())), None);
    }

    #[test]
    fn a_text_from_a_file_is_no_code() {
        assert!(is_name("KernelSVC") && is_name("coef0"));
        assert!(!is_name("a; import os") && !is_name("1a") && !is_name(""));
    }

    #[test]
    fn defaults_are_left_out_and_the_seed_is_not() {
        assert!(is_default("tol", &json!(1e-6)) && is_default("coef0", &json!(0)) && is_default("cv", &json!(5)));
        assert!(!is_default("random_state", &json!(0)) && !is_default("cv", &json!(10)));
    }
}
