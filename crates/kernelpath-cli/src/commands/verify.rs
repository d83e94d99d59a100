//! `kernelpath verify`: the proof of a model, recomputed from the rows of its fit.

use kernelpath::{Attribute, Control, Recomputed, SavedModel, Verification};
use serde_json::{Value, json};

use crate::arguments::verify::VerifyArguments;
use crate::data::Known;
use crate::failure::{Failure, NOT_CERTIFIED};
use crate::table::{Table, short};
use crate::{models, output};

pub(crate) fn run(arguments: &VerifyArguments, control: &Control) -> Result<u8, Failure> {
    models::check_inputs(&arguments.model, Some(&arguments.data))?;
    let mut model = models::load(&arguments.model)?;
    let (path, options) = (&arguments.data, &arguments.data_options);
    let known = Known::read(&mut model, path, &arguments.weights, options, arguments.threads, control)?;
    known.notes.iter().for_each(|note| output::tell(&format!("note: {note}")));
    let (x, weights) = (known.table.rows.view()?, known.weights.as_deref());
    let found = model.verify(x, known.truth(), weights, arguments.tol, arguments.threads, control)?;
    if arguments.json {
        output::print_json(&document(&found, &model, known.table.rows.nrows()))?;
    }
    match found {
        Verification::Recomputed(proof) => {
            if !arguments.json {
                output::print(&text(&proof, &model, &arguments.data.to_string_lossy(), known.table.rows.nrows()))?;
            }
            Ok(if proof.is_verified() { 0 } else { NOT_CERTIFIED })
        }
        Verification::OtherRows(difference) => Err(Failure::input(format!(
            "{}: these are not the training rows: {difference}; there is no verdict",
            path.display()
        ))),
        Verification::Impossible(reason) => {
            Err(Failure::input(format!("{}: {reason}; there is no verdict", arguments.model.display())))
        }
        _ => Err(Failure::input("there is no verdict")),
    }
}

/// What sets each machine apart, if there are several.
fn names(model: &SavedModel) -> Vec<String> {
    let Some(Attribute::Value(parts)) = model.attributes.get("parts_") else { return Vec::new() };
    let names = parts.get("names").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_string())).collect()
}

fn text(proof: &Recomputed, model: &SavedModel, data: &str, rows: usize) -> String {
    let (mut table, names) = (Table::plain(), names(model));
    table.push(["model", &format!("{}, kernel {}", model.estimator, model.predictor.kernel().shape.name())]);
    let recorded =
        if model.training.is_some() { "the rows of the fit" } else { "the file does not say of which rows it is" };
    table.push(["data", &format!("{data}: {rows} rows, {recorded}")]);
    for (m, (certificate, machine)) in proof.certificates.iter().zip(&model.machines).enumerate() {
        let of = names.get(m).map_or_else(String::new, |name| format!(" ({name})"));
        let text = format!(
            "{}: objective {}, lower bound {}, gap {}, noise {} ({})",
            short(machine.c, 6),
            short(certificate.primal, 8),
            short(certificate.dual, 8),
            short(certificate.gap(), 2),
            short(certificate.relative_noise(), 2),
            if proof.is_proved(m) { "verified" } else { "failed" }
        );
        table.push([&format!("C{of}"), &text]);
    }
    table.push(["verdict", &verdict(proof)]);
    table.text()
}

fn verdict(proof: &Recomputed) -> String {
    let (worst, tol) = (short(proof.worst_gap(), 2), short(proof.tol, 2));
    match &proof.contradiction {
        Some(contradiction) => format!("failed: {contradiction}"),
        None if proof.is_verified() => format!("verified: largest gap {worst}, tol {tol}"),
        None if proof.worst_gap().is_nan() => "failed: the kernel is indefinite, so that nothing bounds the gap".into(),
        None => format!("failed: largest gap {worst}, above tol {tol}"),
    }
}

fn document(found: &Verification, model: &SavedModel, rows: usize) -> Value {
    let number = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
    let names = names(model);
    let (verdict, reason, proof) = match found {
        Verification::Recomputed(proof) if proof.is_verified() => ("verified", None, Some(proof)),
        Verification::Recomputed(proof) => ("failed", Some(self::verdict(proof)), Some(proof)),
        Verification::OtherRows(difference) => ("other-rows", Some(difference.clone()), None),
        Verification::Impossible(reason) => ("impossible", Some(reason.clone()), None),
        _ => ("impossible", None, None),
    };
    let machine = |(m, certificate): (usize, &kernelpath::Certificate)| {
        json!({
            "name": names.get(m),
            "C": number(model.machines[m].c),
            "objective": number(certificate.primal),
            "dual_objective": number(certificate.dual),
            "gap": number(certificate.gap()),
            "noise": number(certificate.relative_noise()),
            "verified": proof.is_some_and(|proof| proof.is_proved(m)),
        })
    };
    json!({
        "verdict": verdict,
        "reason": reason,
        "rows": rows,
        "tol": proof.map(|proof| number(proof.tol)),
        "worst_gap": proof.map(|proof| number(proof.worst_gap())),
        "machines": proof.map(|proof| proof.certificates.iter().enumerate().map(machine).collect::<Vec<_>>()),
    })
}
