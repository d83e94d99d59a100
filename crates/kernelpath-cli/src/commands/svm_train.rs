//! `kernelpath svm-train`: LIBSVM's letters, messages and model files.

use std::ffi::OsString;
use std::fmt::Write as _;

use faer::Mat;
use kernelpath::{
    Attribute, Bandwidth, Classifier, Control, Folds, Kernel, LabelValue, Method, Outputs, Regressor, Rows, SavedModel,
    Shape,
};
use kernelpath_data::{Base, Format, Labels, LibsvmOptions, Options, Table};

use crate::failure::{FAILED, Failure, NOT_CERTIFIED};
use crate::fitted::Fitted;
use crate::libsvm::{TRAIN_USAGE, TrainLetters, errors, general};
use crate::models::{self, Kind};
use crate::{data, output, progress};

/// Folds that choose C, and that calibrate probabilities, as in LIBSVM.
const FOLDS: usize = 5;

/// LIBSVM's tolerance is about slopes; a thousandth of it is asked of the relative gap.
const GAP: f64 = 1e-3;

pub(crate) fn run(words: &[OsString], control: &Control) -> Result<u8, Failure> {
    if words.is_empty() || words == ["--help"] {
        output::print(TRAIN_USAGE)?;
        return Ok(if words.is_empty() { FAILED } else { 0 });
    }
    let mut letters = TrainLetters::parse(words)?;
    let target = if letters.folds.is_some() { None } else { Some(letters.model_file()?) };
    if let Some(path) = &target {
        models::check_output(path, &[&letters.data])?;
    }
    let libsvm = LibsvmOptions { base: if letters.kernel == 4 { Base::Zero } else { Base::One }, ..Default::default() };
    let options = Options { format: Format::Libsvm, libsvm, ..Options::default() };
    let table = kernelpath_data::read(&letters.data, &options, control)?;
    let most = table.rows.nrows();
    if letters.folds.is_some_and(|folds| folds > most) {
        output::tell(
            "WARNING: # folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross validation)",
        );
        letters.folds = Some(most);
    }
    let precomputed = if letters.kernel == 4 { Some(square(&table)?) } else { None };
    let rows = match &precomputed {
        Some(matrix) => Rows::from(matrix),
        None => table.rows.view()?,
    };
    let fitted = progress::shown(control, letters.is_quiet, || fit(&letters, &table, &rows, control))?;
    // What was interrupted leaves nothing behind.
    control.check()?;
    let mut saved = fitted.saved();
    saved.label_type = table.labels.as_ref().filter(|_| !letters.is_regression).map(crate::labels::type_of);
    let said = said(&letters, &fitted, &saved, &table)?;
    if !letters.is_quiet {
        output::print(&said)?;
    }
    if letters.folds.is_some() {
        output::print(&crossed(&saved, &table, &letters)?)?;
    }
    if let Some(path) = target {
        let kind = if path.extension().is_some_and(|end| end == "kpath") { Kind::Kernelpath } else { Kind::Libsvm };
        models::keep(&saved, &path, kind)?;
    }
    let Some(machine) = saved.machines.iter().find(|machine| machine.status != "converged") else { return Ok(0) };
    let why = if machine.gap.is_nan() {
        "no bound of the objective is known, since the kernel matrix has negative eigenvalues".into()
    } else {
        format!("gap {}", general(machine.gap, 2))
    };
    output::tell(&format!("WARNING: not proved to be solved to the tolerance ({}, {why})", machine.status));
    Ok(NOT_CERTIFIED)
}

/// The kernel matrix in a file whose rows begin with their own number, `0:1`, `0:2` and so on.
fn square(table: &Table) -> Result<Mat<f64>, Failure> {
    let x = table.rows.view()?;
    let n = x.nrows();
    if let Some(row) = (0..n).find(|&i| x.entry(i, 0).unwrap_or(f64::NAN) != (i + 1) as f64) {
        let message = format!(
            "-t 4: row {} has the number {} (0:…), and {} is needed: the rows of a precomputed kernel are numbered from 1 on",
            row + 1,
            x.entry(row, 0).unwrap_or(f64::NAN),
            row + 1
        );
        return Err(Failure::input(message));
    }
    if x.ncols() != n + 1 {
        let message = format!("-t 4: {n} rows need {n} kernel values each, but there are {}", x.ncols() - 1);
        return Err(Failure::input(message));
    }
    Ok(Mat::from_fn(n, n, |i, j| x.entry(i, j + 1).unwrap_or(f64::NAN)))
}

fn kernel(letters: &TrainLetters, rows: &Rows) -> Kernel {
    let gamma = letters.gamma.unwrap_or(1.0 / rows.ncols().max(1) as f64);
    let shape = match letters.kernel {
        0 => Shape::Linear,
        1 => Shape::Poly { degree: letters.degree, coef0: letters.coef0 },
        2 => Shape::Rbf,
        3 => Shape::Sigmoid { coef0: letters.coef0 },
        _ => Shape::Precomputed,
    };
    Kernel { shape, bandwidth: Bandwidth::Value(gamma) }
}

/// The builder with what both kinds are told.
macro_rules! with_letters {
    ($builder:expr, $letters:expr, $rows:expr, $needs_folds:expr) => {{
        let letters: &TrainLetters = $letters;
        let builder = $builder.kernel(kernel(letters, $rows)).tol(letters.tolerance * GAP);
        let builder = match letters.c {
            Some(c) => builder.cs([c]),
            None => builder,
        };
        match (letters.folds, letters.c) {
            (Some(folds), _) => builder.cv(folds),
            (None, Some(_)) if !$needs_folds => builder.folds(Folds::None),
            _ => builder.cv(FOLDS),
        }
    }};
}

fn fit(letters: &TrainLetters, table: &Table, rows: &Rows, control: &Control) -> Result<Fitted, Failure> {
    let labels = data::needed(table, &letters.data)?;
    if letters.is_regression {
        if letters.has_probability {
            output::tell("WARNING: -b 1 is for C-SVC: no width of errors is estimated for a regression");
        }
        let y = data::numbers(labels, &letters.data)?;
        let builder = with_letters!(Regressor::svr(letters.epsilon), letters, rows, false);
        return Ok(Fitted::Numbers(Box::new(builder.fit_with(*rows, &y, control)?)));
    }
    let y = data::classes(labels);
    // In cross validation LIBSVM predicts by votes with and without probabilities, up to ties.
    let needs_folds = letters.has_probability && letters.folds.is_none();
    let mut builder = with_letters!(Classifier::svm(), letters, rows, needs_folds);
    if needs_folds {
        builder = builder.probability(Method::Sigmoid);
    }
    for (class, weight) in &letters.weights {
        let label = LabelValue::Whole((*class).into());
        if y.contains(&label) {
            builder = builder.class_weight(label, *weight);
        } else {
            output::tell(&format!("WARNING: class label {class} specified in weight is not found"));
        }
    }
    Ok(Fitted::Classes(Box::new(builder.fit_with(*rows, &y, control)?)))
}

/// What svm-train says of each machine, and the C if it was chosen.
fn said(letters: &TrainLetters, fitted: &Fitted, saved: &SavedModel, table: &Table) -> Result<String, Failure> {
    let mut out = String::new();
    let labels = data::needed(table, &letters.data)?;
    let paths = &fitted.paths()[0];
    for (m, is_turned) in in_their_order(saved, labels) {
        let (Some(fit), Some(machine)) = (paths.get(m), saved.machines.get(m)) else { continue };
        let Some(place) = fit.cs.iter().position(|c| *c == machine.c) else { continue };
        let Some(refit) = fit.records.last().map(|records| &records[place]) else { continue };
        let beta = &fit.coef[place];
        let n_support = beta.iter().filter(|beta| **beta != 0.0).count();
        let weight = |k: usize| -> f64 {
            let row = fit.rows.as_ref().map_or(k, |rows| rows[k]);
            let class = labels.get(row).to_string();
            let own = letters.weights.iter().filter(|(label, _)| label.to_string() == class);
            if letters.is_regression { 1.0 } else { own.map(|(_, weight)| weight).product() }
        };
        let at_bound = |(k, beta): (usize, &f64)| beta.abs() >= (1.0 - 1e-9) * machine.c * weight(k);
        let bounded = beta.iter().enumerate().filter(|(k, beta)| at_bound((*k, beta))).count();
        let _ = writeln!(out, "optimization finished, #iter = {}", refit.steps);
        if letters.weights.is_empty() {
            let share = beta.iter().map(|beta| beta.abs()).sum::<f64>() / (machine.c * beta.len() as f64);
            let _ = writeln!(out, "nu = {share:.6}");
        }
        let intercept = saved.predictor.intercepts()[m];
        let rho = if is_turned { intercept } else { -intercept };
        // Both values are the objective at a solution. An indefinite kernel leaves no bound, and the first one alone.
        let obj = if machine.dual.is_nan() { -machine.primal } else { -machine.dual };
        let _ = writeln!(out, "obj = {obj:.6}, rho = {rho:.6}");
        let _ = writeln!(out, "nSV = {n_support}, nBSV = {bounded}");
    }
    if !letters.is_regression {
        let _ = writeln!(out, "Total nSV = {}", saved.predictor.coef().nrows());
    }
    if letters.c.is_none() {
        let _ = writeln!(out, "C = {} chosen by cross validation", general(saved.machines[0].c, 6));
    }
    Ok(out)
}

/// The machines in LIBSVM's order, each with whether LIBSVM turns it around. Its classes are in the order in which they
/// first appear, except that +1 comes before −1, and of each pair the first is positive. Its decision value is Σ − ρ, so
/// that ρ is −b for a machine whose positive class is also ours, and b for the others.
fn in_their_order(saved: &SavedModel, labels: &Labels) -> Vec<(usize, bool)> {
    let Outputs::Classes { labels: known, arrangement, .. } = &saved.predictor.outputs else { return vec![(0, false)] };
    let mut order: Vec<usize> = Vec::new();
    for label in data::classes(labels) {
        if let Some(class) = known.iter().position(|known| *known == label).filter(|class| !order.contains(class)) {
            order.push(class);
        }
        if order.len() == known.len() {
            break;
        }
    }
    let is = |class: usize, value: i128| known[class] == LabelValue::Whole(value);
    if let [first, second] = order[..]
        && is(first, -1)
        && is(second, 1)
    {
        order.reverse();
    }
    let all = (0..order.len()).flat_map(|i| (i + 1..order.len()).map(move |j| (i, j)));
    let of_pair = |(i, j): (usize, usize)| {
        let (one, two) = (order[i], order[j]);
        match arrangement {
            // Of two classes, the second is positive here; of a pair, the first.
            kernelpath::Arrangement::Two => Some((0, one == 0)),
            kernelpath::Arrangement::Pairs { pairs, .. } => {
                let m = pairs.iter().position(|pair| *pair == (one.min(two), one.max(two)))?;
                Some((m, pairs[m].0 != one))
            }
            _ => None,
        }
    };
    all.filter_map(of_pair).collect()
}

/// The lines of cross validation: all held-out rows together.
fn crossed(saved: &SavedModel, table: &Table, letters: &TrainLetters) -> Result<String, Failure> {
    let labels = data::needed(table, &letters.data)?;
    let missing = || Failure::input("cross validation left no values");
    let Some(Attribute::Array(array)) = saved.attributes.get("oof_decision_") else { return Err(missing()) };
    let values = array.entries.to_f64().ok_or_else(missing)?;
    if let Outputs::Classes { labels: known, arrangement, .. } = &saved.predictor.outputs {
        let (predicted, truth) = (arrangement.predicted(&values), data::classes(labels));
        let correct = predicted.iter().zip(&truth).filter(|(class, truth)| known[**class] == **truth).count();
        let percent = general(100.0 * correct as f64 / truth.len() as f64, 6);
        return Ok(format!("Cross Validation Accuracy = {percent}%\n"));
    }
    let (mean, squared) = errors(&data::numbers(labels, &letters.data)?, &values);
    let (mean, squared) = (general(mean, 6), general(squared, 6));
    Ok(format!(
        "Cross Validation Mean squared error = {mean}\nCross Validation Squared correlation coefficient = {squared}\n"
    ))
}
