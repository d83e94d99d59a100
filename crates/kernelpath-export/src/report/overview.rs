//! What was fitted, in a few words and figures.

use kernelpath::{Arrangement, KernelFn, Outputs, Rows, Shape};
use serde_json::Value;

use crate::report::found::{Found, mean_and_error};
use crate::report::html::{Html, html};
use crate::report::proofs::{returned_gap, status_of_returned};
use crate::report::proved::Proof;
use crate::report::scores::Means;
use crate::report::section::Section;
use crate::report::table::Table;
use crate::report::text::{count, counted, label, number, percent, rough, seconds, shortened};

/// Most classes, or columns, that are named.
const MOST_NAMED: usize = 20;

/// The sentence below the heading.
pub(crate) fn lead(found: &Found) -> Html {
    let (name, _) = loss(found);
    let kernel = kernel(found.model.predictor.kernel());
    let (cs, gammas) = (found.cs(0).len(), found.gammas.len());
    let tuned = match (cs, gammas) {
        (0 | 1, 1) => String::new(),
        (cs, 1) => format!(", tuned over {} values of C", count(cs)),
        (cs, gammas) => format!(", tuned over {} values of C and {} of γ", count(cs), count(gammas)),
    };
    let rows = found.rows().map_or_else(String::new, |n| format!(", trained on {}", counted(n, "row", "rows")));
    Html::text(&format!("A {name} with {kernel}{tuned}{rows}."))
}

/// The badge and the figures below the heading.
pub(crate) fn key_figures(found: &Found, proof: &Proof) -> Html {
    let mut figures = Html::default();
    let mut add = |name: &str, value: String, more: String| {
        let more = if more.is_empty() { Html::default() } else { html!("<small>{}</small>", Html::text(&more)) };
        figures += html!("<div><dt>{}</dt><dd>{}{}</dd></div>", Html::text(name), Html::text(&value), more);
    };
    let machines = &found.model.machines;
    if let Some((mean, error)) = best_score(found) {
        let several = if found.tables() > 1 { format!("mean over {} machines", found.tables()) } else { String::new() };
        let more = if error.is_nan() { several } else { format!("± {}", rough(error)) };
        add(&format!("Cross-validated {}", found.score_name()), number(mean), more);
    }
    let same_c = machines.windows(2).all(|pair| pair[0].c == pair[1].c);
    if let Some(first) = machines.first().filter(|first| !first.c.is_nan()) {
        let more = if same_c { String::new() } else { format!("of {} machines with their own", count(machines.len())) };
        add("Chosen C", number(first.c), more);
    }
    if let Some(gamma) = found.gamma() {
        add("Bandwidth γ", number(gamma), String::new());
    }
    let vectors = basis(found);
    let share = found.rows().filter(|_| !is_low_rank(found)).map(|n| percent(vectors as f64 / n as f64));
    let name = if is_low_rank(found) { "Landmarks" } else { "Support vectors" };
    add(name, count(vectors), share.map(|share| format!("{share} of the rows")).unwrap_or_default());
    let gap = returned_gap(found);
    if !gap.is_nan() {
        add("Gap of the returned model", rough(gap), status_of_returned(found));
    }
    let parts = || Some(found.float("kernel_seconds_")? + found.float("path_seconds_")?);
    if let Some(time) = found.float("fit_seconds_").or_else(parts) {
        add("Time of the fit", seconds(time), String::new());
    }
    html!("{}<dl class=\"figures\">{}</dl>", proof.badge(found), figures)
}

/// Rows or landmarks that the model predicts from.
fn basis(found: &Found) -> usize {
    let predictor = &found.model.predictor;
    if predictor.kernel().shape == Shape::Precomputed { predictor.support().len() } else { predictor.vectors().nrows() }
}

fn is_low_rank(found: &Found) -> bool {
    found.parameter("low_rank").and_then(Value::as_bool) == Some(true)
}

/// The mean score at the chosen place; of several tables, the mean over them, without an error.
fn best_score(found: &Found) -> Option<(f64, f64)> {
    let best = found.best();
    if let (Some(means), [only]) = (Means::of(found), &best[..]) {
        let (mean, error) = means.at(0, found.gamma_at, *only);
        return (!mean.is_nan()).then_some((mean, error));
    }
    let scores = found.floats("best_score_")?;
    let (mean, _) = mean_and_error(scores.into_iter().map(|score| (1.0, score)));
    (!mean.is_nan()).then_some((mean, f64::NAN))
}

/// What was fitted.
pub(crate) fn section(found: &Found) -> Section {
    let model = found.model;
    let mut section = Section::new("model", "What was fitted");
    let (name, formula) = loss(found);
    section.say_html(html!(
        "A {} minimises C&nbsp;·&nbsp;Σ&nbsp;w<sub>i</sub>&nbsp;L(y<sub>i</sub>,&nbsp;f<sub>i</sub>) + \
         ½&nbsp;β<sup>T</sup>Kβ over the coefficients β and the intercept b, where f = Kβ + b, with the loss {}.",
        Html::text(&name),
        Html::isolated(&formula)
    ));
    let mut facts = Table::facts("The model");
    let mut add = |name: &str, text: String| facts.line([name.to_string(), text]);
    add("estimator", model.estimator.clone());
    add("kernel", kernel_formula(model.predictor.kernel()));
    if let Some(n) = found.rows() {
        add("training rows", count(n));
    }
    let is_precomputed = model.predictor.kernel().shape == Shape::Precomputed;
    if !is_precomputed {
        let width = model.predictor.width();
        add("columns", named(model.columns.as_deref().unwrap_or(&[]), width));
        if matches!(model.predictor.vectors(), Rows::Csr(_)) {
            add("storage of rows", "sparse".into());
        }
    }
    match &model.predictor.outputs {
        Outputs::Classes { labels, arrangement, .. } => {
            add("classes", named(&labels.iter().map(label).collect::<Vec<_>>(), labels.len()));
            add("machines", arranged(arrangement));
        }
        _ => add("outputs", count(model.predictor.n_values())),
    }
    if let Some(rank) = found.float("rank_") {
        add("rank", number(rank));
    }
    if let Some(error) = found.float("approximation_.trace_error") {
        add("error of the kernel at low rank", format!("{} of its trace", percent(error)));
    }
    if let Some(scaling) = &model.predictor.scaling {
        let shifted = scaling.shift.iter().any(|shift| *shift != 0.0);
        let how = if shifted { "columns are shifted and scaled" } else { "columns are scaled" };
        add("scaling", how.into());
    }
    section.words += facts.html();
    section.words += parameters(found).folded("All parameters");
    if model.machines.len() > 1 {
        section.words += machines(found).folded("Each machine");
    }
    section
}

fn parameters(found: &Found) -> Table {
    let mut table = Table::facts("All parameters");
    for (name, value) in &found.model.parameters {
        let text = match value {
            Value::Null => "None".to_string(),
            Value::Object(object) => match object.get("repr").and_then(Value::as_str) {
                Some(repr) => repr.to_string(),
                None => value.to_string(),
            },
            Value::String(text) => text.clone(),
            Value::Array(values) if values.len() > 8 => {
                format!("{} values from {} to {}", count(values.len()), values[0], values[values.len() - 1])
            }
            other => other.to_string(),
        };
        table.line([name.clone(), text]);
    }
    table
}

fn machines(found: &Found) -> Table {
    let mut table = Table::new("Each machine", ["machine", "loss", "τ, ε or δ", "C"]);
    for (m, machine) in found.model.machines.iter().enumerate() {
        let constant = if machine.constant == 0.0 { String::new() } else { number(machine.constant) };
        table.line([found.machine_name(m), machine.loss.replace('_', " "), constant, number(machine.c)]);
    }
    table
}

/// The number of things, and the names of the first ones.
fn named(names: &[String], number: usize) -> String {
    if names.is_empty() {
        return count(number);
    }
    let shown: Vec<String> = names.iter().take(MOST_NAMED).map(|name| shortened(name, 24)).collect();
    let more = if names.len() > shown.len() { ", …" } else { "" };
    shortened(&format!("{}: {}{more}", count(number), shown.join(", ")), 118)
}

fn arranged(arrangement: &Arrangement) -> String {
    let machines = counted(arrangement.machines(), "machine", "machines");
    match arrangement {
        Arrangement::Two => "1 machine".into(),
        Arrangement::Pairs { .. } => format!("{machines}, one against one"),
        Arrangement::Rest { .. } => format!("{machines}, one against the rest"),
        _ => "1 machine for all classes".into(),
    }
}

/// The method in words, and its loss in a formula.
fn loss(found: &Found) -> (String, String) {
    let first = found.model.machines.first();
    let (name, constant) = first.map_or(("", 0.0), |machine| (&machine.loss[..], machine.constant));
    let is_several = found.model.machines.windows(2).any(|pair| pair[0].constant != pair[1].constant);
    let with = |symbol: &str| if is_several { String::new() } else { format!(", {symbol} = {}", number(constant)) };
    let (name, formula) = match name {
        "hinge" => ("support vector machine", "max(0, 1 − y f)".to_string()),
        "squared_hinge" => ("support vector machine with squared hinge loss", "max(0, 1 − y f)²".into()),
        "logistic" => ("kernel logistic regression", "log(1 + exp(−y f))".into()),
        "multinomial" => ("multinomial kernel logistic regression", "log Σ exp(f of each class) − f of y".into()),
        "dwd" => ("distance-weighted discrimination", "1 − u if u = y f ≤ ½, else 1 / (4u)".into()),
        "quantile" => ("kernel quantile regression", format!("max(τ r, (τ − 1) r) with r = y − f{}", with("τ"))),
        "epsilon_insensitive" => ("support vector regression", format!("max(0, |y − f| − ε){}", with("ε"))),
        "squared" => ("kernel ridge regression", "(y − f)²".into()),
        "huber" => ("kernel Huber regression", format!("Huber’s of y − f{}", with("δ"))),
        "expectile" => ("kernel expectile regression", format!("|τ − [y < f]| (y − f)²{}", with("τ"))),
        other => return ("kernel machine".into(), other.into()),
    };
    (name.to_string(), formula)
}

fn kernel(kernel: KernelFn) -> String {
    match kernel.shape {
        Shape::Rbf => "a Gaussian (RBF) kernel".into(),
        Shape::Laplacian => "a Laplacian kernel".into(),
        Shape::Poly { degree, .. } => format!("a polynomial kernel of degree {degree}"),
        Shape::Linear => "a linear kernel".into(),
        Shape::Sigmoid { .. } => "a sigmoid kernel".into(),
        Shape::Matern32 => "a Matérn 3/2 kernel".into(),
        Shape::Matern52 => "a Matérn 5/2 kernel".into(),
        Shape::Precomputed => "a precomputed kernel".into(),
    }
}

fn kernel_formula(kernel: KernelFn) -> String {
    let gamma = number(kernel.gamma);
    match kernel.shape {
        Shape::Rbf => format!("exp(−γ‖x − z‖²), γ = {gamma}"),
        Shape::Laplacian => format!("exp(−γ‖x − z‖₁), γ = {gamma}"),
        Shape::Poly { degree, coef0 } => format!("(γ⟨x, z⟩ + {})^{degree}, γ = {gamma}", number(coef0)),
        Shape::Linear => "⟨x, z⟩".into(),
        Shape::Sigmoid { coef0 } => format!("tanh(γ⟨x, z⟩ + {}), γ = {gamma}", number(coef0)),
        Shape::Matern32 => format!("Matérn 3/2 with length scale 1/√(2γ), γ = {gamma}"),
        Shape::Matern52 => format!("Matérn 5/2 with length scale 1/√(2γ), γ = {gamma}"),
        Shape::Precomputed => "the matrix that was given".into(),
    }
}
