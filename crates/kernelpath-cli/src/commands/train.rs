//! `kernelpath train`: from a file to a tuned model with its proof.

use kernelpath::{
    Classifier, Control, Encoding, Extent, LabelValue, Method, Missing, MultiClass, Quantiles, Regressor, RowsBuf,
    SavedModel, Scoring, Tune,
};
use kernelpath_data::Table;
use serde_json::{Value, json};

use crate::arguments::grid::Length;
use crate::arguments::list;
use crate::arguments::train::{ModelArguments, MultiClassChoice, Task, TrainArguments, TuneChoice};
use crate::failure::{Failure, NOT_CERTIFIED};
use crate::fitted::Fitted;
use crate::models::{self, Kind};
use crate::settings::{Settings, set};
use crate::summary::Summary;
use crate::{data, labels, output, progress, scaling};

pub(crate) fn run(arguments: &TrainArguments, control: &Control) -> Result<u8, Failure> {
    check(arguments)?;
    let settings = Settings::new(arguments)?;
    let target = arguments.output.as_deref().map(|path| Ok::<_, Failure>((path, Kind::of(path)?))).transpose()?;
    if let Some((path, kind)) = target {
        models::check_output(path, &[&arguments.data])?;
        if kind == Kind::Libsvm && arguments.model.scale.is_some() {
            let message = "--scale: a .model file of LIBSVM has no place for a scaling; write a .kpath or .onnx file";
            return Err(Failure::input(message));
        }
    }
    let read = data::read(&arguments.data, &arguments.data_options, &arguments.table, settings.threads, control)?;
    let (table, encoding) = encoded(arguments, read)?;
    let labels = data::needed(&table, &arguments.data)?;
    let (rows, weights) = (table.rows.view()?, table.weights.as_deref());
    let choice = arguments.model.scale;
    let scaling = choice.map(|choice| scaling::fitted(choice, &rows, weights, settings.kernel.shape)).transpose()?;
    let scaled = scaling.as_ref().map(|scaling| scaling.apply(&rows)).transpose()?;
    let rows = scaled.as_ref().map_or(rows, RowsBuf::view);
    let work = || -> Result<Fitted, Failure> {
        let model = &arguments.model;
        match arguments.task {
            Task::Quantile => {
                let mut builder = Quantiles::at(if model.tau.is_empty() { vec![0.5] } else { model.tau.clone() });
                if model.noncrossing {
                    builder = builder.noncrossing();
                }
                let y = data::numbers(labels, &arguments.data)?;
                let fitted = set!(builder, &settings, weights).fit_with(rows, &y, control)?;
                Ok(Fitted::Quantiles(Box::new(fitted)))
            }
            task if task.is_of_classes() => {
                let y = data::classes(labels);
                let builder = set!(classifier(arguments, &y)?, &settings, weights);
                Ok(Fitted::Classes(Box::new(builder.fit_with(rows, &y, control)?)))
            }
            _ => {
                let y = data::numbers(labels, &arguments.data)?;
                let builder = set!(regressor(arguments)?, &settings, weights);
                Ok(Fitted::Numbers(Box::new(builder.fit_with(rows, &y, control)?)))
            }
        }
    };
    let fitted = progress::shown(control, arguments.quiet, work)?;
    // What was interrupted leaves nothing behind.
    control.check()?;
    let mut saved = fitted.saved();
    if scaling.is_some() {
        // The digests are of the rows as they are given to `verify`.
        saved.training = Some(data::training(&table, arguments.task.is_of_classes(), &arguments.data)?);
    }
    saved.columns = encoding.as_ref().and_then(Encoding::feature_names).or_else(|| table.columns.clone());
    saved.encoding = encoding;
    saved.label_type = arguments.task.is_of_classes().then(|| labels::type_of(labels));
    saved.predictor.scaling = scaling;
    if let Some((path, kind)) = target {
        models::keep(&saved, path, kind)?;
    }
    let summary = Summary::new(&fitted, &saved, settings.tol, scoring(arguments, &settings).into());
    tell(arguments, &summary, &saved, &table)?;
    Ok(if summary.is_certified() { 0 } else { NOT_CERTIFIED })
}

/// The table with numbers alone, and how it became so; its columns are still those of the file.
fn encoded(arguments: &TrainArguments, mut table: Table) -> Result<(Table, Option<Encoding>), Failure> {
    if table.format == kernelpath_data::Format::Libsvm {
        return Ok((table, None));
    }
    let missing = data::missing(&arguments.table)?;
    let rows = table.rows.nrows();
    let kept = if missing == Missing::Drop { data::complete(&mut table).len() } else { rows };
    if kept == 0 {
        return Err(Failure::input(format!("{}: every row has a missing value", arguments.data.display())));
    }
    if kept < rows && !arguments.quiet {
        output::tell(&format!("note: {} of {rows} rows have missing values and are left out", rows - kept));
    }
    let texts = std::mem::take(&mut table.texts);
    let (x, names, weights) = (table.rows.view()?, table.columns.as_deref(), table.weights.as_deref());
    let columns = Encoding::columns_of(&x, names, texts, weights, missing)?;
    let decimal_comma = arguments.data_options.decimal.as_deref() == Some(",");
    let encoding = Encoding { columns, missing, decimal_comma, label: table.label_name.clone() };
    if !encoding.is_plain() {
        table.rows = data::encoded(&encoding, &table)?;
    }
    Ok((table, Some(encoding)))
}

/// Prints what was found.
fn tell(arguments: &TrainArguments, summary: &Summary, saved: &SavedModel, table: &Table) -> Result<(), Failure> {
    if arguments.json {
        output::print_json(&document(arguments, summary, saved, table))?;
    } else {
        output::print(&summary.text())?;
    }
    if !arguments.quiet {
        summary.notes().iter().for_each(|note| output::tell(&format!("note: {note}")));
    }
    if !summary.is_certified() {
        let status = saved.machines.iter().map(|machine| &machine.status).find(|status| *status != "converged");
        let status = status.map_or("", String::as_str);
        output::tell(&format!(
            "warning: the model did not reach --tol ({status}); the table has the gap that it reached"
        ));
    }
    Ok(())
}

fn document(arguments: &TrainArguments, summary: &Summary, saved: &SavedModel, table: &Table) -> Value {
    let mut document = json!({
        "kernelpath": env!("CARGO_PKG_VERSION"),
        "data": {
            "file": arguments.data.display().to_string(),
            "format": kernelpath_data::Format::NAMES[table.format as usize],
            "rows": table.rows.nrows(),
            "columns": table.columns.as_ref().map_or(table.rows.ncols(), Vec::len),
            "names": table.columns,
            "label": table.label_name,
        },
        "task": arguments.task.name(),
        "model": arguments.output.as_ref().map(|path| path.display().to_string()),
        "scaled": saved.predictor.scaling.is_some(),
    });
    if let (Value::Object(document), Value::Object(found)) = (&mut document, summary.json()) {
        document.extend(found);
    }
    document
}

/// The name of what chooses.
fn scoring(arguments: &TrainArguments, settings: &Settings) -> &'static str {
    let default = if arguments.task.is_of_classes() { Scoring::Accuracy } else { Scoring::NegLoss };
    settings.scoring.unwrap_or(default).name()
}

fn classifier(arguments: &TrainArguments, y: &[LabelValue]) -> Result<Classifier, Failure> {
    let model = &arguments.model;
    let is_multinomial = model.multi_class == Some(MultiClassChoice::Multinomial);
    let mut builder = match arguments.task {
        Task::Logistic if is_multinomial => Classifier::multinomial(),
        Task::Logistic => Classifier::logistic(),
        Task::SquaredSvm => Classifier::squared_svm(),
        Task::Dwd => Classifier::dwd(),
        _ => Classifier::svm(),
    };
    match model.multi_class {
        Some(MultiClassChoice::Ovo) => builder = builder.multi_class(MultiClass::OneVsOne),
        Some(MultiClassChoice::Ovr) => builder = builder.multi_class(MultiClass::OneVsRest),
        Some(MultiClassChoice::Multinomial) | None => {}
    }
    if arguments.tuning.tune == Some(TuneChoice::Each) {
        builder = builder.tune(Tune::Each);
    }
    if let Some(method) = &model.probability {
        builder = builder.probability(Method::from_name(method)?);
    }
    match model.class_weight.as_deref() {
        None => Ok(builder),
        Some("balanced") => Ok(builder.balanced()),
        Some(weights) => weighted(builder, weights, y),
    }
}

/// The weights of classes in `LABEL=WEIGHT,…`.
fn weighted(mut builder: Classifier, weights: &str, y: &[LabelValue]) -> Result<Classifier, Failure> {
    let mut classes = y.to_vec();
    classes.sort();
    classes.dedup();
    for (label, weight) in list::pairs(weights, "--class-weight")? {
        let Ok(weight) = weight.parse::<f64>() else {
            let message = format!("--class-weight: the weight {weight:?} of {label:?} is no number");
            return Err(Failure::input(message));
        };
        builder = builder.class_weight(labels::named(&label, &classes), weight);
    }
    Ok(builder)
}

fn regressor(arguments: &TrainArguments) -> Result<Regressor, Failure> {
    let model = &arguments.model;
    let extent = |length: Option<Length>| length.map_or(Extent::Auto, |Length(extent)| extent);
    Ok(match arguments.task {
        Task::Svr => Regressor::svr(extent(model.epsilon)),
        Task::Huber => Regressor::huber(extent(model.delta)),
        Task::Expectile => match model.tau[..] {
            [] => Regressor::expectile(0.5),
            [tau] => Regressor::expectile(tau),
            _ => return Err(Failure::input("--tau: an expectile has one level; for several use --task quantile")),
        },
        _ => Regressor::ridge(),
    })
}

/// Refuses options that the task has no use for.
fn check(arguments: &TrainArguments) -> Result<(), Failure> {
    let (ModelArguments { probability, multi_class, class_weight, tau, noncrossing, epsilon, delta, .. }, task) =
        (&arguments.model, arguments.task);
    let is_multinomial = *multi_class == Some(MultiClassChoice::Multinomial);
    let useless = [
        ("--probability", probability.is_some() && (!task.is_of_classes() || task == Task::Logistic), "svm or dwd"),
        ("--multi-class", multi_class.is_some() && !task.is_of_classes(), "svm, squared-svm, logistic or dwd"),
        ("--multi-class multinomial", is_multinomial && task != Task::Logistic, "logistic"),
        ("--class-weight", class_weight.is_some() && !task.is_of_classes(), "svm, squared-svm, logistic or dwd"),
        ("--tune", arguments.tuning.tune.is_some() && !task.is_of_classes(), "svm, squared-svm, logistic or dwd"),
        ("--tau", !tau.is_empty() && !matches!(task, Task::Quantile | Task::Expectile), "quantile or expectile"),
        ("--noncrossing", *noncrossing && task != Task::Quantile, "quantile"),
        ("--epsilon", epsilon.is_some() && task != Task::Svr, "svr"),
        ("--delta", delta.is_some() && task != Task::Huber, "huber"),
    ];
    match useless.iter().find(|(_, is_useless, _)| *is_useless) {
        None => Ok(()),
        Some((option, _, tasks)) => {
            let task = task.name();
            Err(Failure::input(format!("{option} means nothing to --task {task}; it is for --task {tasks}")))
        }
    }
}
