//! The call of the command line that fits the same model again.

use serde_json::Value;

use crate::report::found::Found;
use crate::report::reproduce::{is_default, steps};

/// Most values of a list.
const MOST_VALUES: usize = 60;

/// The command, if it can express the model.
pub(crate) fn command(found: &Found) -> Option<String> {
    let mut options = vec![format!("--task {}", task(found)?)];
    for (name, value) in &found.model.parameters {
        if is_default(name, value) || name == "loss" {
            continue;
        }
        options.push(option(name, value)?);
    }
    Some(format!("kernelpath train DATA -o model.kpath {}", options.join(" \\\n  ")))
}

fn task(found: &Found) -> Option<&'static str> {
    let loss = found.model.machines.first().map(|machine| machine.loss.as_str())?;
    Some(match (found.model.estimator.as_str(), loss) {
        ("KernelSVC", "hinge") => "svm",
        ("KernelSVC", "squared_hinge") => "squared-svm",
        ("KernelLogistic", _) => "logistic",
        ("KernelDWD", _) => "dwd",
        ("KernelQuantile", _) => "quantile",
        ("KernelSVR", _) => "svr",
        ("KernelRegressor", "squared") => "ridge",
        ("KernelRegressor", "huber") => "huber",
        ("KernelRegressor", "expectile") => "expectile",
        _ => return None,
    })
}

/// One parameter as an option; `None` if there is none for it.
fn option(name: &str, value: &Value) -> Option<String> {
    Some(match (name, value) {
        ("kernel", Value::String(kernel)) if kernel == "precomputed" => return None,
        ("Cs", Value::Number(count)) => format!("--n-cs {count}"),
        ("Cs", Value::Array(values)) => match steps(values) {
            Some((first, last, count)) => format!("--cs {first}:{last}:{count}"),
            None => format!("--cs {}", list(values)?),
        },
        ("cv", Value::Null) => "--folds 0".into(),
        ("cv", Value::String(loo)) if loo == "loo" => "--loo".into(),
        ("cv", Value::Number(count)) => format!("--folds {count}"),
        ("low_rank", Value::Bool(true)) => "--low-rank".into(),
        ("noncrossing", Value::String(_)) => "--noncrossing".into(),
        ("probability", Value::String(method)) => format!("--probability={}", word(method)?),
        ("probability", Value::Bool(true)) => "--probability".into(),
        ("random_state", Value::Number(seed)) => format!("--seed {seed}"),
        ("n_jobs", Value::Number(threads)) if threads.as_u64().is_some() => format!("--threads {threads}"),
        ("class_weight", Value::String(balanced)) => format!("--class-weight {}", word(balanced)?),
        ("gamma" | "tau", Value::Array(values)) => format!("--{name} {}", list(values)?),
        (
            "kernel" | "gamma" | "degree" | "coef0" | "tau" | "epsilon" | "delta" | "landmarks" | "n_landmarks"
            | "rank" | "scoring" | "selection" | "multi_class" | "tune" | "tol" | "max_iter" | "solver" | "dtype"
            | "device" | "time_budget",
            Value::Number(_) | Value::String(_),
        ) => format!("--{} {}", name.replace('_', "-"), scalar(value)?),
        _ => return None,
    })
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => word(text).map(String::from),
        _ => None,
    }
}

fn list(values: &[Value]) -> Option<String> {
    let is_short = !values.is_empty() && values.len() <= MOST_VALUES;
    let values: Option<Vec<String>> = values.iter().map(|value| value.is_number().then(|| value.to_string())).collect();
    values.filter(|_| is_short).map(|values| values.join(","))
}

/// A text that a shell takes as it is; others could be anything.
fn word(text: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-:.".contains(c);
    (!text.is_empty() && text.len() < 60 && !text.starts_with('-') && text.chars().all(is_plain)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_are_options() {
        let cases = [
            ("Cs", json!([0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]), Some("--cs 0.01:1000.0:6")),
            ("Cs", json!([1.0, 3.0]), Some("--cs 1.0,3.0")),
            ("cv", json!("loo"), Some("--loo")),
            ("cv", json!({ "repr": "KFold(3)" }), None),
            ("gamma", json!("auto-grid"), Some("--gamma auto-grid")),
            ("multi_class", json!("ovr"), Some("--multi-class ovr")),
            ("probability", json!("isotonic"), Some("--probability=isotonic")),
            ("scoring", json!("accuracy; rm -r"), None),
            ("kernel", json!("precomputed"), None),
            ("lambdas", json!([0.1]), None),
        ];
        for (name, value, expected) in cases {
            assert_eq!(option(name, &value).as_deref(), expected, "{name}");
        }
    }
}
