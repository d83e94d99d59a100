//! Tables from files, and what their labels are to a model.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use kernelpath::{Control, Encoding, LabelValue, Missing, Outputs, SavedModel, TrainingRows, Truth};
use kernelpath_data::{Format, Labels, Options, Table, TableRows, Texts, Wanted};

use crate::arguments::data::DataArguments;
use crate::arguments::train::TableArguments;
use crate::arguments::verify::WeightsArguments;
use crate::failure::{FAILED, Failure};
use crate::labels;

/// Reads a table that is trained on.
pub(crate) fn read(
    path: &Path,
    arguments: &DataArguments,
    table: &TableArguments,
    threads: usize,
    control: &Control,
) -> Result<Table, Failure> {
    let mut options = arguments.options(threads, None)?;
    options.libsvm.columns = table.columns;
    options.csv.missing_as_nan = missing(table)? != Missing::Error;
    if table.one_hot {
        options.csv.texts = Texts::Found;
    }
    let given = [("--missing", table.missing.is_some()), ("--one-hot", table.one_hot)];
    let of_csv = given.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option);
    let of_libsvm = table.columns.map(|_| "--columns");
    read_as(path, &options, arguments.of_csv().or(of_csv), arguments.of_libsvm().or(of_libsvm), control)
}

/// What becomes of missing values.
pub(crate) fn missing(table: &TableArguments) -> Result<Missing, Failure> {
    Ok(table.missing.as_deref().map_or(Ok(Missing::Error), Missing::from_name)?)
}

/// Reads a table, and refuses options that its format has no use for.
fn read_as(
    path: &Path,
    options: &Options,
    of_csv: Option<&str>,
    of_libsvm: Option<&str>,
    control: &Control,
) -> Result<Table, Failure> {
    let table = kernelpath_data::read(path, options, control)?;
    let (is_libsvm, file) = (table.format == Format::Libsvm, path.display());
    match if is_libsvm { of_csv } else { of_libsvm } {
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

/// Names that a note lists.
const LISTED: usize = 5;

/// A table for a model: its rows are what the model's predictor takes.
pub(crate) struct ForModel {
    pub table: Table,
    /// Rows of the file, and which of them are in the table: a model may leave out those with missing values.
    pub rows: usize,
    pub kept: Vec<usize>,
    /// What the user may want to know.
    pub notes: Vec<String>,
}

/// Reads a table that a model is to predict. Columns with names are found by these. Those that a LIBSVM file has and the
/// model has not seen were 0 in all rows of the training: the model is widened by them.
pub(crate) fn read_for(
    model: &mut SavedModel,
    path: &Path,
    arguments: &DataArguments,
    threads: usize,
    control: &Control,
) -> Result<ForModel, Failure> {
    let (width, mut notes) = (model.predictor.width(), Vec::new());
    let plain = Encoding::default();
    let encoding = model.encoding.as_ref().unwrap_or(&plain);
    let raw_width = if encoding.is_plain() { width } else { encoding.columns.len() };
    let names: Option<Vec<String>> = if encoding.is_plain() {
        model.columns.clone()
    } else {
        encoding.columns.iter().map(|column| column.name.clone()).collect()
    };
    let mut options = arguments.options(threads, Some(raw_width))?;
    options.libsvm.columns = None;
    options.csv.decimal_comma = arguments.decimal.as_ref().map_or(encoding.decimal_comma, |decimal| decimal == ",");
    options.csv.missing_as_nan = encoding.missing != Missing::Error;
    let texts = || encoding.columns.iter().map(|column| column.texts.clone()).collect();
    options.csv.texts = if encoding.is_plain() { Texts::Refused } else { Texts::Known(texts()) };
    // Equal names say nothing: such files must have the columns in order.
    let are_unique = |names: &&Vec<String>| names.iter().collect::<HashSet<_>>().len() == names.len();
    options.csv.wanted = names
        .as_ref()
        .filter(are_unique)
        .map(|names| Wanted { features: names.clone(), label: encoding.label.clone() });
    let mut table = read_as(path, &options, arguments.of_csv(), arguments.of_libsvm(), control)?;
    let file = path.display();
    if !table.unneeded.is_empty() {
        let named: Vec<String> = table.unneeded.iter().take(LISTED).map(|name| format!("{name:?}")).collect();
        let more = if table.unneeded.len() > LISTED { ", …" } else { "" };
        notes.push(format!("{file}: columns that the model does not have are ignored: {}{more}", named.join(", ")));
    }
    if table.format == Format::Libsvm {
        if !encoding.is_plain() {
            let message = format!(
                "{file} is a LIBSVM file, and the model reads the columns of a CSV file (--one-hot, --missing)"
            );
            return Err(Failure::input(message));
        }
        notes.extend(as_wide(model, &mut table, path)?);
        let rows = table.rows.nrows();
        return Ok(ForModel { table, rows, kept: (0..rows).collect(), notes });
    }
    if table.rows.ncols() != raw_width {
        let found = table.rows.ncols();
        let message = format!(
            "{file} has {found} features, but the model has {raw_width}; name what is none with --label, --weight or --ignore"
        );
        return Err(Failure::input(message));
    }
    match (&names, &table.columns) {
        (Some(_), None) => {
            notes.push(format!("{file} has no header: its columns are taken in the order of the training data"));
        }
        (Some(known), Some(found)) if known != found => {
            let message =
                "the names of the columns are not those of the model, of which some are equal (kernelpath inspect)";
            return Err(Failure::input(format!("{file}: {message}")));
        }
        _ => {}
    }
    let rows = table.rows.nrows();
    let kept = if encoding.missing == Missing::Drop { complete(&mut table) } else { (0..rows).collect() };
    if kept.len() < rows {
        notes.push(format!("{file}: {} of {rows} rows have missing values and are left out", rows - kept.len()));
    }
    if table.rows.nrows() == 0 {
        return Err(Failure::input(format!("{file}: every row has a missing value")));
    }
    if !encoding.is_plain() {
        table.rows = encoded(encoding, &table)?;
        table.columns.clone_from(&model.columns);
    }
    Ok(ForModel { table, rows, kept, notes })
}

/// Makes a LIBSVM file and a model equally wide, and says so.
fn as_wide(model: &mut SavedModel, table: &mut Table, path: &Path) -> Result<Option<String>, Failure> {
    let (width, found, file) = (model.predictor.width(), table.rows.ncols(), path.display());
    if let TableRows::Sparse { columns, .. } = &mut table.rows
        && *columns < width
    {
        // A file does not name the columns behind its last entry.
        *columns = width;
    }
    if found <= width {
        return Ok(None);
    }
    // A table of training had exactly these columns.
    let is_of_table = model.columns.is_some() || model.encoding.is_some();
    if is_of_table || model.predictor.kernel().shape == kernelpath::Shape::Precomputed {
        let message = format!("{file} has {found} features, but the model has {width}");
        return Err(Failure::input(message));
    }
    let (which, is_one) = if found == width + 1 {
        (format!("column {found}"), true)
    } else {
        (format!("columns {} to {found}", width + 1), false)
    };
    if model.predictor.scaling.is_some() {
        let rows = std::mem::replace(&mut table.rows, TableRows::Dense { values: Vec::new(), rows: 0, columns: 0 });
        table.rows = rows.narrowed(width);
        let (was, is) = if is_one { ("was", "is") } else { ("were", "are") };
        return Ok(Some(format!(
            "{file}: {which} {was} constant in the training data, and {is} dropped, as --scale does"
        )));
    }
    model.predictor = model.predictor.widened(found)?;
    let is = if is_one { "is" } else { "are" };
    Ok(Some(format!("{file}: the training data had {width} columns; {which} {is} taken as 0 there")))
}

/// Leaves out the rows with missing values, and returns the places of the others.
pub(crate) fn complete(table: &mut Table) -> Vec<usize> {
    let TableRows::Dense { values, rows, columns } = &mut table.rows else { return (0..table.rows.nrows()).collect() };
    let is_whole = |i: &usize| values[i * *columns..(i + 1) * *columns].iter().all(|value| !value.is_nan());
    let kept: Vec<usize> = (0..*rows).filter(is_whole).collect();
    if kept.len() < *rows {
        *values = kept.iter().flat_map(|i| values[i * *columns..(i + 1) * *columns].iter().copied()).collect();
        *rows = kept.len();
        table.labels = table.labels.as_ref().map(|labels| labels.among(&kept));
        table.weights = table.weights.as_ref().map(|weights| kept.iter().map(|i| weights[*i]).collect());
    }
    kept
}

/// The features of a table.
pub(crate) fn encoded(encoding: &Encoding, table: &Table) -> Result<TableRows, Failure> {
    let features = encoding.apply(&table.rows.view()?)?;
    let view = features.view();
    let (rows, columns) = (view.nrows(), view.ncols());
    let values = (0..rows).flat_map(|i| (0..columns).map(move |j| view.entry(i, j).unwrap_or(f64::NAN))).collect();
    Ok(TableRows::Dense { values, rows, columns })
}

/// Rows with what is true of them, and the weights of a fit.
pub(crate) struct Known {
    pub table: Table,
    pub weights: Option<Vec<f64>>,
    /// What the user may want to know.
    pub notes: Vec<String>,
    truth: Truths,
}

enum Truths {
    Labels(Vec<LabelValue>),
    Numbers(Vec<f64>),
}

impl Known {
    /// Reads rows that a model is compared with.
    pub fn read(
        model: &mut SavedModel,
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
        let ForModel { mut table, rows, kept, notes } = read_for(model, path, &arguments, threads, control)?;
        let weights = match file {
            // A line for each row of the file, of which some may be left out.
            Some(file) => {
                let weights = weights_of(Path::new(file), rows)?;
                Some(kept.iter().map(|row| weights[*row]).collect())
            }
            None => table.weights.take(),
        };
        let labels = needed(&table, path)?;
        let truth = match &model.predictor.outputs {
            Outputs::Classes { .. } => Truths::Labels(classes(labels)),
            _ => Truths::Numbers(numbers(labels, path)?),
        };
        Ok(Self { table, weights, notes, truth })
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
