//! Tables from files, and what their labels are to a model.

use std::fs;
use std::path::Path;

use kernelpath::{Control, LabelValue, Outputs, SavedModel, TrainingRows, Truth};
use kernelpath_data::{Format, Labels, Table};

use crate::arguments::data::DataArguments;
use crate::arguments::verify::WeightsArguments;
use crate::failure::{FAILED, Failure};
use crate::labels;

/// Reads a table. `width` is the number of features, if a model says so.
pub(crate) fn read(
    path: &Path,
    arguments: &DataArguments,
    threads: usize,
    width: Option<usize>,
    control: &Control,
) -> Result<Table, Failure> {
    let table = kernelpath_data::read(path, &arguments.options(threads, width)?, control)?;
    let (is_libsvm, file) = (table.format == Format::Libsvm, path.display());
    match if is_libsvm { arguments.of_csv() } else { arguments.of_libsvm() } {
        None => Ok(table),
        Some(option) => {
            let (one, other) = if is_libsvm { ("CSV", "LIBSVM") } else { ("LIBSVM", "CSV") };
            let message = format!(
                "{option} is for {one} files, and {file} was read as {other}; leave it out, or name the --format"
            );
            Err(Failure::input(message))
        }
    }
}

/// Reads a table that a model is to predict: its columns must be those of the model.
pub(crate) fn read_for(
    model: &SavedModel,
    path: &Path,
    arguments: &DataArguments,
    threads: usize,
    control: &Control,
) -> Result<Table, Failure> {
    let width = model.predictor.width();
    let table = read(path, arguments, threads, Some(width), control)?;
    let (Some(known), Some(found)) = (&model.columns, &table.columns) else {
        if table.rows.ncols() != width {
            let found = table.rows.ncols();
            let message = format!(
                "{} has {found} features, but the model has {width}; name what is none with --label, --weight or --ignore",
                path.display()
            );
            return Err(Failure::input(message));
        }
        return Ok(table);
    };
    let differs = |k: &usize| known.get(*k) != found.get(*k);
    let Some(k) = (0..known.len().max(found.len())).find(differs) else { return Ok(table) };
    let name = |names: &[String]| names.get(k).map_or_else(|| "none".to_string(), |name| format!("{name:?}"));
    Err(Failure::input(format!(
        "{}: feature {k} (counted from 0) is {} in the file and {} in the model; name the column of the labels with \
         --label, leave out columns with --ignore, or put the columns into the order of the model (kernelpath inspect)",
        path.display(),
        name(found),
        name(known)
    )))
}

/// Rows with what is true of them, and the weights of a fit.
pub(crate) struct Known {
    pub table: Table,
    pub weights: Option<Vec<f64>>,
    truth: Truths,
}

enum Truths {
    Labels(Vec<LabelValue>),
    Numbers(Vec<f64>),
}

impl Known {
    /// Reads rows that a model is compared with.
    pub fn read(
        model: &SavedModel,
        path: &Path,
        weights: &WeightsArguments,
        arguments: &DataArguments,
        threads: usize,
        control: &Control,
    ) -> Result<Self, Failure> {
        let mut arguments = arguments.clone();
        let file = weights.weights.as_ref().filter(|name| Path::new(name).is_file());
        if let (Some(column), None) = (&weights.weights, file) {
            arguments.weight = Some(column.clone());
        }
        let mut table = read_for(model, path, &arguments, threads, control)?;
        let weights = match file {
            Some(file) => Some(weights_of(Path::new(file), table.rows.nrows())?),
            None => table.weights.take(),
        };
        let labels = needed(&table, path)?;
        let truth = match &model.predictor.outputs {
            Outputs::Classes { .. } => Truths::Labels(classes(labels)),
            _ => Truths::Numbers(numbers(labels, path)?),
        };
        Ok(Self { table, weights, truth })
    }

    /// What is true of the rows.
    pub fn truth(&self) -> Truth<'_> {
        match &self.truth {
            Truths::Labels(labels) => Truth::Labels(labels),
            Truths::Numbers(values) => Truth::Numbers { columns: 1, values },
        }
    }
}

/// The digests of rows as they are in their file.
pub(crate) fn training(table: &Table, is_of_classes: bool, path: &Path) -> Result<TrainingRows, Failure> {
    let (x, labels, weights) = (table.rows.view()?, needed(table, path)?, table.weights.as_deref());
    Ok(if is_of_classes {
        TrainingRows::of(x, Truth::Labels(&classes(labels)), weights)
    } else {
        TrainingRows::of(x, Truth::Numbers { columns: 1, values: &numbers(labels, path)? }, weights)
    })
}

/// The weights in a file: a number in each line.
fn weights_of(path: &Path, rows: usize) -> Result<Vec<f64>, Failure> {
    let name = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(FAILED, format!("cannot read the weights in {name}: {error}")))?;
    let weight = |(at, word): (usize, &str)| {
        let weight = word.parse::<f64>().ok().filter(|weight| *weight >= 0.0 && weight.is_finite());
        weight.ok_or_else(|| Failure::input(format!("{name}: weight {at} is {word:?}, not a number of at least 0")))
    };
    let weights = text.split_whitespace().enumerate().map(weight).collect::<Result<Vec<_>, _>>()?;
    if weights.len() != rows {
        return Err(Failure::input(format!("{name} has {} weights, but there are {rows} rows", weights.len())));
    }
    Ok(weights)
}

/// The labels of a table that is trained on.
pub(crate) fn needed<'a>(table: &'a Table, path: &Path) -> Result<&'a Labels, Failure> {
    table.labels.as_ref().ok_or_else(|| Failure::input(format!("{} has no labels", path.display())))
}

/// The labels as numbers.
pub(crate) fn numbers(labels: &Labels, path: &Path) -> Result<Vec<f64>, Failure> {
    labels.to_floats().ok_or_else(|| {
        let first = (0..labels.len()).map(|i| labels.get(i).to_string()).find(|text| text.parse::<f64>().is_err());
        let found = first.unwrap_or_default();
        let what = "the labels must be numbers for a regression; name their column with --label, or use --task svm";
        Failure::input(format!("{}: the label {found:?} is no number: {what}", path.display()))
    })
}

/// The labels as classes.
pub(crate) fn classes(table: &Labels) -> Vec<LabelValue> {
    (0..table.len()).map(|i| labels::value(table.get(i))).collect()
}
