//! What the fit took.

use crate::report::chart::{Figure, strip};
use crate::report::found::Found;
use crate::report::proofs::Verdict;
use crate::report::section::Section;
use crate::report::table::Table;
use crate::report::text::{bytes, count, number, percent, seconds};

/// Times and memory; `None` if the model has neither.
pub(crate) fn section(found: &Found) -> Option<Section> {
    let (kernel, path) = (found.float("kernel_seconds_"), found.float("path_seconds_"));
    let mut table = Table::facts("Time and memory");
    let mut add = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            table.line([name.to_string(), text]);
        }
    };
    add("whole fit", found.float("fit_seconds_").map(seconds));
    add("kernel", kernel.map(seconds));
    add("path", path.map(seconds));
    if let (Some(path), Some(verdict)) = (path, Verdict::of(found)) {
        let run = verdict.models - verdict.not_run;
        add("models", Some(count(run)));
        add("time per model", (run > 0).then(|| seconds(path / run as f64)));
    }
    let steps = found.steps().map(|steps| steps.values().iter().sum::<f64>());
    add("steps of the solver", steps.map(number));
    add("solver", found.text("solver_").map(|name| name.replace('_', " ")));
    add("device", found.parameter("device").and_then(|device| Some(device.as_str()?.to_string())));
    add("kernel matrix", found.float("gram_bytes_").filter(|size| *size > 0.0).map(bytes));
    add("memory planned", found.float("planned_bytes_").filter(|size| *size > 0.0).map(bytes));
    if table.is_empty() {
        return None;
    }
    let mut section = Section::new("time", "Time and memory");
    if found.is_true("timed_out_") {
        section.note("warn", "The time budget ended the fit: some models were not run.");
    }
    section.words += table.html();
    section.figures.extend(chart(found, kernel, path));
    Some(section)
}

/// Where the time went.
fn chart(found: &Found, kernel: Option<f64>, path: Option<f64>) -> Option<Figure> {
    let (kernel, path) = (kernel?, path?);
    let rest = found.float("fit_seconds_").map_or(0.0, |all| (all - kernel - path).max(0.0));
    let parts = [("kernel", kernel), ("path", path), ("rest", rest)];
    let total: f64 = parts.iter().map(|(_, time)| time).sum();
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let mut table = Table::new("Where the time went", ["part", "time", "share"]);
    let mut shares = Vec::new();
    for (name, time) in parts {
        table.line([name.to_string(), seconds(time), percent(time / total)]);
        shares.push((name, time / total, format!("{name}: {} ({})", seconds(time), percent(time / total))));
    }
    let title = "Where the time went".to_string();
    let (drawing, legend) = strip(&title, &shares);
    let note =
        "The kernel is the matrix between rows, or the features at low rank. The path is every C, fold and γ. The \
                rest is checks, the choice and the calibration."
            .into();
    Some(Figure { title, drawing, legend, note, table })
}
