//! The certificates: how far each model may be from its optimum.

use std::fmt::Write as _;

use kernelpath::{Machine, Status};

use crate::report::chart::{Cell, Figure, HeatMap};
use crate::report::found::{Found, Grid};
use crate::report::proved::Proof;
use crate::report::section::Section;
use crate::report::table::Table;
use crate::report::text::{count, counted, digits, number, rough};

/// Most rows and columns of the heat map. Beyond that, a cell shows the worst of several models.
const MOST_ROWS: usize = 36;
const MOST_COLUMNS: usize = 60;

/// Characters of a class in the name of a row.
const IN_ROW: usize = 4;

/// Most machines of the table; of more, those with the largest gaps.
const MOST_MACHINES: usize = 12;

/// The upper ends of the shades, as shares of `tol`.
const STEPS: [f64; 4] = [1e-6, 1e-3, 1e-1, 1.0];

/// What is known of all models together.
pub(crate) struct Verdict {
    pub models: usize,
    pub converged: usize,
    pub not_run: usize,
    pub indefinite: usize,
    /// The largest gap of the models that have one.
    pub worst: f64,
}

impl Verdict {
    pub fn of(found: &Found) -> Option<Self> {
        let (gaps, status) = (found.gaps()?, found.status()?);
        if gaps.values().len() != status.values().len() {
            return None;
        }
        let ended = |name: &str| {
            let place = Status::NAMES.iter().position(|known| *known == name);
            status.values().iter().filter(|value| place == Some(**value as usize)).count()
        };
        Some(Self {
            models: gaps.values().len(),
            converged: ended("converged"),
            not_run: ended("not_run"),
            indefinite: ended("indefinite"),
            worst: gaps.values().iter().copied().filter(|gap| gap.is_finite()).fold(f64::NAN, f64::max),
        })
    }

    /// Whether every model reached the tolerance.
    pub fn is_proved(&self) -> bool {
        self.models > 0 && self.converged == self.models
    }
}

/// The certificates.
pub(crate) fn section(found: &Found, proof: &Proof) -> Section {
    let mut section = Section::new("certificates", "Certificates");
    section.say(
        "Every model comes with two numbers: the value P of its objective, and a bound D that no choice of coefficients \
         and intercept can get below. The gap (P − D) / max(|P|, |D|) is therefore at least the \
         distance to the optimum, relative to the objective. It is computed in double precision, for the loss itself, by \
         code that knows nothing of the solver, and it holds for whatever the solver returned. It proves that the \
         optimisation is finished; it says nothing about how well the model predicts, which the scores of held-out rows \
         estimate.",
    );
    match Verdict::of(found) {
        None => section.say("The gaps of the path are not in this model; the table has those of the returned model."),
        Some(verdict) => section.say(&in_words(&verdict, found.tol())),
    }
    section.words += machines(found).html();
    proof.explain(found, &mut section);
    if let (Some(gaps), Some(status)) = (found.gaps(), found.status())
        && gaps.values().len() == status.values().len()
    {
        section.figures.push(map(found, &gaps, &status));
    }
    section
}

fn in_words(verdict: &Verdict, tol: f64) -> String {
    let (models, tol) = (counted(verdict.models, "model was", "models were"), number(tol));
    if verdict.is_proved() {
        return format!("{models} trained, and the gap of each is at most the tolerance of {tol}.");
    }
    if verdict.indefinite > 0 {
        return format!(
            "{models} trained. The kernel has a negative eigenvalue, so the models are stationary points at best, and no \
             bound exists: {} without a proof.",
            counted(verdict.indefinite, "model is", "models are")
        );
    }
    let short = verdict.models - verdict.converged - verdict.not_run;
    let not_run = match verdict.not_run {
        0 => String::new(),
        left => format!(", and {} not run", counted(left, "was", "were")),
    };
    format!(
        "Of {}, {} within the tolerance of {tol}; {} not reach it{not_run}. The largest gap is {}.",
        counted(verdict.models, "model", "models"),
        counted(verdict.converged, "is", "are"),
        counted(short, "did", "did"),
        rough(verdict.worst)
    )
}

/// The certificate of each machine of the returned model, as it is recorded.
fn machines(found: &Found) -> Table {
    let parts = |m: &Machine| (m.primal, m.dual, m.gap, m.noise, m.status.replace('_', " "));
    let rows: Vec<_> = found.model.machines.iter().map(parts).collect();
    machine_table(found, "The returned model, as recorded", &rows)
}

/// P, D, gap, noise and status of each machine, the worst first.
pub(crate) fn machine_table(found: &Found, caption: &str, machines: &[(f64, f64, f64, f64, String)]) -> Table {
    let parts = |(primal, dual, gap, noise, status): &(f64, f64, f64, f64, String)| {
        [digits(*primal, 7), digits(*dual, 7), rough(*gap), rough(*noise), status.clone()]
    };
    let names = ["objective P", "lower bound D", "gap", "noise of the gap", "status"];
    if let [only] = machines {
        let mut table = Table::facts(caption);
        names.into_iter().zip(parts(only)).for_each(|(name, text)| table.line([name.to_string(), text]));
        return table;
    }
    let mut table = Table::new(caption, [&["machine"], &names[..]].concat());
    let mut order: Vec<usize> = (0..machines.len()).collect();
    if machines.len() > MOST_MACHINES {
        let badness = |m: &usize| if machines[*m].2.is_nan() { f64::INFINITY } else { machines[*m].2 };
        order.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
        order.truncate(MOST_MACHINES);
    }
    for m in order {
        table.line([&[found.machine_name(m)][..], &parts(&machines[m])].concat());
    }
    table.leave_out(machines.len().saturating_sub(MOST_MACHINES));
    table
}

/// A row of the map: its name, and the models in it as (machine, γ, problem).
type Row = (String, Vec<(usize, usize, usize)>);

/// A row for each fold and the refit of each machine and γ; of too many, one for each γ of each machine, one for each
/// machine, or one for several machines.
fn rows(found: &Found, gaps: &Grid) -> (Vec<Row>, &'static str) {
    let problem = |k: usize| if k + 1 == gaps.problems { "refit".to_string() } else { format!("fold {k}") };
    let gamma = |g: usize| (gaps.gammas > 1).then(|| format!("γ = {}", rough(found.gammas[g])));
    let all = |m: usize, g: usize| (0..gaps.problems).map(move |k| (m, g, k));
    let joined = |parts: [Option<String>; 3]| {
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let (machines, gammas) = (gaps.machines, gaps.gammas);
    let name = |m: usize| Some(found.short_name(m, IN_ROW));
    if machines * gammas * gaps.problems <= MOST_ROWS {
        let each = (0..machines).flat_map(|m| (0..gammas).flat_map(move |g| all(m, g)));
        let rows = each.map(|(m, g, k)| (joined([name(m), gamma(g), Some(problem(k))]), vec![(m, g, k)])).collect();
        return (rows, "");
    }
    if machines * gammas <= MOST_ROWS {
        let each = (0..machines).flat_map(|m| (0..gammas).map(move |g| (m, g)));
        let whole = |text: String| if text.is_empty() { "all".to_string() } else { text };
        let rows = each.map(|(m, g)| (whole(joined([name(m), gamma(g), None])), all(m, g).collect())).collect();
        return (rows, "A row is the worst of its folds and the refit. ");
    }
    let stride = machines.div_ceil(MOST_ROWS);
    let row = |first: usize| {
        let group = first..(first + stride).min(machines);
        let models = group.clone().flat_map(|m| (0..gammas).flat_map(move |g| all(m, g))).collect();
        let name = found.short_name(first, IN_ROW);
        (if group.len() > 1 { format!("{name} …") } else { name }, models)
    };
    let rows = (0..machines).step_by(stride).map(row).collect();
    (rows, "A row is the worst of one or several machines, with all their folds, refits and values of γ. ")
}

/// What a cell says of its models.
struct Worst {
    gap: f64,
    status: usize,
    models: usize,
}

fn map(found: &Found, gaps: &Grid, status: &Grid) -> Figure {
    let (rising, tol) = (found.rising(), found.tol());
    let (rows, mut note) = {
        let (rows, note) = rows(found, gaps);
        (rows, note.to_string())
    };
    let stride = rising.len().div_ceil(MOST_COLUMNS).max(1);
    if stride > 1 {
        let _ = write!(note, "A column is the worst of up to {} neighbouring values of C.", count(stride));
    }
    let columns: Vec<&[usize]> = rising.chunks(stride).collect();
    let mut cells = Vec::new();
    let mut table = Table::new("Gaps", ["model", "C", "gap", "status"]);
    for (name, models) in &rows {
        let mut line = Vec::new();
        for group in &columns {
            let worst = worst(gaps, status, models, group);
            let (first, last) = (found.cs(0)[group[0]], found.cs(0)[group[group.len() - 1]]);
            let c = if first == last { number(first) } else { format!("{} to {}", number(first), number(last)) };
            let ended = Status::NAMES.get(worst.status).copied().unwrap_or("unknown").replace('_', " ");
            let of =
                if worst.models > 1 { format!(" (worst of {} models)", count(worst.models)) } else { String::new() };
            let gap = if worst.gap.is_finite() { rough(worst.gap) } else { "–".into() };
            table.line([name.clone(), c.clone(), gap.clone(), ended.clone()]);
            let (class, mark) = look(&worst, tol);
            line.push(Cell {
                class: class.into(),
                tip: format!("{name}, C = {c}\ngap {gap}, {ended}{of}"),
                text: mark,
            });
        }
        cells.push(line);
    }
    // A mark in each of many small cells could not be read.
    if rows.len() > 16 || columns.len() > 24 {
        cells.iter_mut().flatten().for_each(|cell| cell.text.clear());
    }
    let title = "Gap of every model".to_string();
    let map = HeatMap {
        title: title.clone(),
        x_name: if found.has_shared_cs() { "C".into() } else { "C of the first machine".into() },
        columns: columns.iter().map(|group| rough(found.cs(0)[group[0]])).collect(),
        rows: rows.into_iter().map(|(name, _)| name).collect(),
        cells,
        ..HeatMap::default()
    };
    let summary = Verdict::of(found).map(|verdict| in_words(&verdict, tol)).unwrap_or_default();
    let legend = legend(&map, tol);
    Figure { title, drawing: map.draw(&summary), legend, note, table }
}

/// The worst of some models: one that has no gap within the tolerance before the others.
fn worst(gaps: &Grid, status: &Grid, models: &[(usize, usize, usize)], cs: &[usize]) -> Worst {
    let converged = Status::NAMES.iter().position(|name| *name == "converged").unwrap_or(0);
    let mut worst = Worst { gap: f64::NEG_INFINITY, status: converged, models: models.len() * cs.len() };
    let badness = |gap: f64, status: usize| (status != converged, if gap.is_nan() { f64::INFINITY } else { gap });
    for &(m, g, k) in models {
        for &c in cs {
            let (gap, status) = (gaps.at(m, k, g, c), status.at(m, k, g, c) as usize);
            let (a, b) = (badness(gap, status), badness(worst.gap, worst.status));
            if a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).is_gt() {
                (worst.gap, worst.status) = (gap, status);
            }
        }
    }
    worst
}

/// The class of a cell, and the mark in it: colour is not all that tells a gap that is too large.
fn look(worst: &Worst, tol: f64) -> (&'static str, String) {
    match Status::NAMES.get(worst.status) {
        Some(&"converged") => {
            let step = STEPS.iter().position(|step| worst.gap <= step * tol).unwrap_or(STEPS.len() - 1);
            (["g0", "g1", "g2", "g3"][step], String::new())
        }
        Some(&"not_run") => ("none", "–".into()),
        Some(&"indefinite") => ("unknown", "?".into()),
        _ => ("bad", "×".into()),
    }
}

fn legend(map: &HeatMap, tol: f64) -> Vec<(String, String)> {
    let has = |class: &str| map.cells.iter().flatten().any(|cell| cell.class == class);
    let mut names: Vec<(String, String)> = Vec::new();
    for (k, step) in STEPS.iter().enumerate() {
        if has(&format!("g{k}")) {
            names.push((format!("g{k}"), format!("at most {}", number(step * tol))));
        }
    }
    for (class, name) in [("bad", "not within the tolerance"), ("none", "not run"), ("unknown", "no proof")] {
        if has(class) {
            names.push((class.into(), name.into()));
        }
    }
    names
}

/// The verdict in a few words, and whether it is good.
pub(crate) fn badge(found: &Found) -> (String, bool) {
    match Verdict::of(found) {
        Some(verdict) if verdict.is_proved() => {
            let models = counted(verdict.models, "model is", "models are");
            let all = if verdict.models > 1 { "All " } else { "" };
            (format!("{all}{models} proved optimal to {}", number(found.tol())), true)
        }
        Some(verdict) if verdict.indefinite > 0 => ("No proof: the kernel is indefinite".into(), false),
        Some(verdict) => {
            let proved = format!("{} of {} models", count(verdict.converged), count(verdict.models));
            (format!("{proved} are proved optimal to {}", number(found.tol())), false)
        }
        None => {
            let machines = &found.model.machines;
            let is_proved = !machines.is_empty() && machines.iter().all(|machine| machine.status == "converged");
            let text = if is_proved {
                format!("The returned model is proved optimal to {}", number(found.tol()))
            } else if machines.iter().all(|machine| machine.gap.is_nan()) {
                "This model has no certificate".into()
            } else {
                format!("The returned model is not proved optimal to {}", number(found.tol()))
            };
            (text, is_proved)
        }
    }
}

/// The largest gap of the returned model.
pub(crate) fn returned_gap(found: &Found) -> f64 {
    found.model.machines.iter().map(|machine| machine.gap).fold(f64::NAN, f64::max)
}

/// How the solve of the returned model ended, or of the first machine that did not converge.
pub(crate) fn status_of_returned(found: &Found) -> String {
    let first = found.model.machines.iter().find(|machine| machine.status != "converged");
    first.map_or_else(|| "converged".into(), |machine| machine.status.replace('_', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_is_too_large_is_marked_and_not_only_coloured() {
        let of = |gap: f64, name: &str| {
            let status = Status::NAMES.iter().position(|known| *known == name).unwrap();
            look(&Worst { gap, status, models: 1 }, 1e-6)
        };
        assert_eq!(of(9e-10, "converged"), ("g1", String::new()));
        assert_eq!(of(0.0, "converged"), ("g0", String::new()));
        assert_eq!(of(-1e-15, "converged"), ("g0", String::new()));
        assert_eq!(of(1e-6, "converged"), ("g3", String::new()));
        assert_eq!(of(1e-3, "max_iter"), ("bad", "×".into()));
        assert_eq!(of(f64::NAN, "indefinite"), ("unknown", "?".into()));
        assert_eq!(of(f64::INFINITY, "not_run"), ("none", "–".into()));
    }
}
