//! Tables from files, and what their labels are to a model.

use std::path::Path;

use kernelpath::{Control, LabelValue, SavedModel};
use kernelpath_data::{Format, Labels, Table};

use crate::arguments::data::DataArguments;
use crate::failure::Failure;
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
