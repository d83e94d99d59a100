//! What a fit found, for people and for programs.

use std::fmt::Write as _;
use std::ops::Range;

use kernelpath::{Attribute, Outputs, SavedModel, Scores, Status, Surface, json_of_float, shown};
use serde_json::{Value, json};

use crate::fitted::Fitted;
use crate::labels;
use crate::table::{Table, short};

/// One C and γ of machines that are chosen together.
#[derive(Debug)]
struct Place {
    gamma: f64,
    c: f64,
    /// The mean over the folds, and its standard error; NaN without folds.
    score: f64,
    error: f64,
    n_support: usize,
    /// The largest gap of the models on all rows.
    gap: f64,
    status: Status,
    is_chosen: bool,
}

/// Machines that are chosen together: their paths, γ after γ.
#[derive(Debug)]
struct Unit {
    /// What sets them apart; `None` if there are no others.
    name: Option<String>,
    places: Vec<Place>,
}

/// What a fit found.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    fitted: &'a Fitted,
    saved: &'a SavedModel,
    tol: f64,
    scoring: String,
    units: Vec<Unit>,
}

impl<'a> Summary<'a> {
    pub fn new(fitted: &'a Fitted, saved: &'a SavedModel, tol: f64, scoring: String) -> Self {
        let machines = fitted.paths()[0].len();
        let names = machine_names(saved);
        let units = match fitted.scores() {
            scores if scores.len() < 2 && machines > 0 => {
                vec![unit(fitted, None, 0..machines, scores.first())]
            }
            scores => {
                let of = |(m, scores)| unit(fitted, names.get(m).cloned(), m..m + 1, Some(scores));
                scores.iter().enumerate().map(of).collect()
            }
        };
        Self { fitted, saved, tol, scoring, units }
    }

    /// Whether every machine of the returned model reached the tolerance, with a proof.
    pub fn is_certified(&self) -> bool {
        self.saved.machines.iter().all(|machine| machine.status == Status::Converged.name())
    }

    /// The path of the chosen γ, the choice, and the proof.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let gamma = self.fitted.gammas()[self.fitted.gamma_place()];
        for unit in &self.units {
            if let Some(name) = &unit.name {
                let _ = writeln!(out, "{}", shown(name));
            }
            if self.fitted.gammas().len() > 1 {
                out.push_str(&self.gamma_table(unit).text());
                out.push('\n');
            }
            let mut table = Table::new(["C", &self.scoring, "± error", "support", "gap", "status", ""]);
            for place in unit.places.iter().filter(|place| place.gamma == gamma) {
                table.push([
                    short(place.c, 4),
                    short(place.score, 4),
                    short(place.error, 2),
                    place.n_support.to_string(),
                    short(place.gap, 2),
                    place.status.name().into(),
                    if place.is_chosen { "← chosen".into() } else { String::new() },
                ]);
            }
            out.push_str(&table.text());
            out.push('\n');
        }
        out.push_str(&self.choice());
        out
    }

    /// The best C of each γ.
    fn gamma_table(&self, unit: &Unit) -> Table {
        let mut table = Table::new(["gamma", "best C", &self.scoring, "± error", ""]);
        for gamma in self.fitted.gammas() {
            let own = unit.places.iter().filter(|place| place.gamma == gamma && !place.score.is_nan());
            let Some(best) = own.max_by(|a, b| a.score.total_cmp(&b.score)) else { continue };
            let is_chosen = unit.places.iter().any(|place| place.gamma == gamma && place.is_chosen);
            let mark = if is_chosen { "← chosen" } else { "" };
            table.push([short(gamma, 4), short(best.c, 4), short(best.score, 4), short(best.error, 2), mark.into()]);
        }
        table
    }

    /// What was chosen, with its proof.
    fn choice(&self) -> String {
        let (saved, mut table) = (self.saved, Table::plain());
        let kernel = saved.predictor.kernel();
        let gamma = if self.fitted.has_gamma() { format!(", gamma {}", short(kernel.gamma, 6)) } else { String::new() };
        table.push(["model", &format!("{}, kernel {}{gamma}", saved.estimator, kernel.shape.name())]);
        if let Outputs::Classes { labels, .. } = &saved.predictor.outputs {
            table.push(["classes", &labels.iter().map(labels::text).collect::<Vec<_>>().join(", ")]);
        }
        for (unit, score) in self.units.iter().zip(self.fitted.best_scores()) {
            if let (Some(place), false) = (unit.places.iter().find(|place| place.is_chosen), score.is_nan()) {
                let of = unit.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
                let text = format!("{} ± {}", short(score, 4), short(place.error, 2));
                table.push([&format!("{}{of}", self.scoring), &text]);
            }
        }
        let names = machine_names(saved);
        for (m, machine) in saved.machines.iter().enumerate() {
            let of = names.get(m).map_or_else(String::new, |name| format!(" ({name})"));
            let text = format!(
                "{}: objective {}, lower bound {}, gap {} ({})",
                short(machine.c, 6),
                short(machine.primal, 8),
                short(machine.dual, 8),
                short(machine.gap, 2),
                machine.status
            );
            table.push([&format!("C{of}"), &text]);
        }
        let (models, worst) = (self.n_models(), self.fitted.worst_gap());
        table.push([
            "proof",
            &format!("largest gap of all {models} models {}, tol {}", short(worst, 2), short(self.tol, 2)),
        ]);
        table.text()
    }

    /// Models that were fitted: folds and refits, for every C, γ and machine.
    fn n_models(&self) -> usize {
        let records = self.fitted.paths().iter().flatten().flat_map(|fit| fit.records.iter().flatten());
        records.filter(|record| record.status != Status::NotRun).count()
    }

    /// One document with everything.
    pub fn json(&self) -> Value {
        let (saved, kernel) = (self.saved, self.saved.predictor.kernel());
        let classes = match &saved.predictor.outputs {
            Outputs::Classes { labels, .. } => json!(labels.iter().map(labels::json_of).collect::<Vec<_>>()),
            _ => Value::Null,
        };
        let names = machine_names(saved);
        let machine = |(m, machine): (usize, &kernelpath::Machine)| {
            json!({
                "name": names.get(m),
                "loss": machine.loss,
                "constant": json_of_float(machine.constant),
                "C": json_of_float(machine.c),
                "objective": number(machine.primal),
                "dual_objective": number(machine.dual),
                "gap": number(machine.gap),
                "noise": number(machine.noise),
                "status": machine.status,
            })
        };
        let place = |unit: &Unit, place: &Place| {
            json!({
                "machine": unit.name,
                "gamma": if self.fitted.has_gamma() { number(place.gamma) } else { Value::Null },
                "C": number(place.c),
                "score": number(place.score),
                "standard_error": number(place.error),
                "n_support": place.n_support,
                "gap": number(place.gap),
                "status": place.status.name(),
                "chosen": place.is_chosen,
            })
        };
        let path = self.units.iter().flat_map(|unit| unit.places.iter().map(move |at| place(unit, at)));
        let seconds =
            |of: fn(&kernelpath::PathFit) -> f64| -> f64 { self.fitted.paths().iter().flatten().map(of).sum() };
        json!({
            "estimator": saved.estimator,
            "kernel": kernel.shape.name(),
            "gamma": if self.fitted.has_gamma() { number(kernel.gamma) } else { Value::Null },
            "classes": classes,
            "C": self.fitted.chosen_cs().iter().map(|c| number(*c)).collect::<Vec<_>>(),
            "scoring": self.scoring,
            "score": self.fitted.best_scores().iter().map(|score| number(*score)).collect::<Vec<_>>(),
            "n_support": saved.predictor.coef().nrows(),
            "machines": saved.machines.iter().enumerate().map(machine).collect::<Vec<_>>(),
            "tol": number(self.tol),
            "certified": self.is_certified(),
            "timed_out": self.fitted.is_timed_out(),
            "n_models": self.n_models(),
            "worst_gap": number(self.fitted.worst_gap()),
            "path_seconds": number(seconds(|fit| fit.path_seconds)),
            "path": path.collect::<Vec<_>>(),
        })
    }

    /// What a user may want to know: a chosen C at the end of its grid, a fit that ran out of time.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.fitted.is_timed_out() {
            notes.push("the time budget ended the fit: what was not fitted by then was not compared".into());
        }
        for unit in &self.units {
            let cs = || unit.places.iter().map(|place| place.c);
            let (least, most) = (cs().fold(f64::INFINITY, f64::min), cs().fold(0.0, f64::max));
            let Some(chosen) = unit.places.iter().find(|place| place.is_chosen) else { continue };
            let next = |is_next: &dyn Fn(f64) -> bool, pick: fn(f64, f64) -> f64| {
                let c = cs().filter(|c| is_next(*c)).reduce(pick);
                unit.places.iter().find(|place| Some(place.c) == c && place.gamma == chosen.gamma)
            };
            let edge = if least == most || chosen.score.is_nan() {
                None
            } else if chosen.c == most {
                next(&|c| c < most, f64::max).map(|place| (place, "largest", "higher"))
            } else if chosen.c == least {
                next(&|c| c > least, f64::min).map(|place| (place, "smallest", "lower"))
            } else {
                None
            };
            if let Some((place, which, way)) = edge
                && chosen.score - place.score > chosen.error
            {
                let c = short(chosen.c, 4);
                notes.push(format!(
                    "C = {c} is the {which} that was tried, and the score still rises there: go {way} with --cs"
                ));
            }
        }
        notes
    }
}

/// A number; null if it is none.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}

/// What sets each machine apart, if there are several.
fn machine_names(saved: &SavedModel) -> Vec<String> {
    let Some(Attribute::Value(parts)) = saved.attributes.get("parts_") else { return Vec::new() };
    let names = parts.get("names").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_string())).collect()
}

fn unit(fitted: &Fitted, name: Option<String>, machines: Range<usize>, scores: Option<&Scores>) -> Unit {
    let (gammas, chosen_gamma) = (fitted.gammas(), fitted.gamma_place());
    let means = scores.map(|scores| Surface::new(fitted.paths()).mean_scores(machines.clone(), scores));
    let mut places = Vec::new();
    for (g, (of_gamma, gamma)) in fitted.paths().iter().zip(&gammas).enumerate() {
        let fits = &of_gamma[machines.clone()];
        let cs = &fits[0].cs;
        // Equal values of C have equal results: the first is marked.
        let chosen = cs.iter().position(|c| *c == fitted.chosen_cs()[machines.start]).filter(|_| g == chosen_gamma);
        for c in 0..cs.len() {
            let known = means.as_ref().and_then(|means| means.get(g * cs.len() + c));
            let (score, error) = known.copied().unwrap_or((f64::NAN, f64::NAN));
            let refits = || fits.iter().filter_map(|fit| fit.records.last()).map(|refit| &refit[c]);
            let gap = refits().map(|refit| refit.certificate.gap()).fold(f64::NEG_INFINITY, largest);
            let status = refits().map(|refit| refit.status).find(|status| *status != Status::Converged);
            places.push(Place {
                gamma: *gamma,
                c: cs[c],
                score,
                error,
                n_support: fits.iter().map(|fit| fit.n_support(c)).sum(),
                gap,
                status: status.unwrap_or(Status::Converged),
                is_chosen: chosen == Some(c),
            });
        }
    }
    Unit { name, places }
}

/// The larger of two; NaN if one is.
fn largest(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}
