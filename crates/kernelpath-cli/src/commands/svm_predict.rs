//! `kernelpath svm-predict`: LIBSVM's letters, messages and output file.

use std::ffi::OsString;
use std::fmt::Write as _;

use faer::Mat;
use kernelpath::{Control, Hardware, LabelValue, Outputs, Predicted, Predictor, Rows, Shape, write_whole};
use kernelpath_data::{Base, Format, LibsvmOptions, Options, Table};

use crate::failure::{FAILED, Failure};
use crate::libsvm::{PREDICT_USAGE, PredictLetters, errors, general};
use crate::models::{self, Loaded, Opened};
use crate::{data, labels, output};

pub(crate) fn run(words: &[OsString], control: &Control) -> Result<u8, Failure> {
    if words.is_empty() || words == ["--help"] {
        output::print(PREDICT_USAGE)?;
        return Ok(if words.is_empty() { FAILED } else { 0 });
    }
    let letters = PredictLetters::parse(words)?;
    models::check_inputs(&letters.model, Some(&letters.test))?;
    models::check_output(&letters.output, &[&letters.model, &letters.test])?;
    let Loaded { model, text: written } = Opened::new(&letters.model)?.load()?;
    if model.encoding.as_ref().is_some_and(|encoding| !encoding.is_plain()) {
        let message = "the model reads the columns of a CSV file (--one-hot, --missing); use kernelpath predict";
        return Err(Failure::input(message));
    }
    let is_precomputed = model.predictor.kernel().shape == Shape::Precomputed;
    let mut table = read(&letters, &model.predictor, is_precomputed, control)?;
    if model.predictor.scaling.is_some() {
        // What was constant in training is dropped.
        table.rows = table.rows.narrowed(model.predictor.width());
    }
    let view = table.rows.view()?;
    let matrix;
    let rows = if is_precomputed {
        let width = model.predictor.width();
        // Column 0 has the numbers of the rows.
        matrix = Mat::from_fn(view.nrows(), width, |i, j| view.entry(i, j + 1).unwrap_or(0.0));
        Rows::from(&matrix)
    } else {
        view
    };
    let predictor = model.predictor.widened(rows.ncols())?;
    let (text, said) = match &predictor.outputs {
        Outputs::Classes { labels, .. } => classes(&letters, &predictor, (labels, written.as_deref()), &rows, &table)?,
        _ => numbers(&letters, &predictor, &rows, &table)?,
    };
    control.check()?;
    write_whole(&letters.output, text.as_bytes())?;
    if !letters.is_quiet {
        output::print(&said)?;
    }
    Ok(0)
}

/// The test data. It may have fewer columns than the model, or more: LIBSVM knows no number of columns.
fn read(
    letters: &PredictLetters,
    predictor: &Predictor,
    is_precomputed: bool,
    control: &Control,
) -> Result<Table, Failure> {
    let base = if is_precomputed { Base::Zero } else { Base::One };
    let options = |columns: Option<usize>| {
        let libsvm = LibsvmOptions { base, columns, ..LibsvmOptions::default() };
        Options { format: Format::Libsvm, libsvm, ..Options::default() }
    };
    let mut table = kernelpath_data::read(&letters.test, &options(None), control)?;
    let width = predictor.width();
    if let kernelpath_data::TableRows::Sparse { columns, .. } = &mut table.rows
        && *columns < width
    {
        *columns = width;
    }
    Ok(table)
}

/// The lines of the output, and what is said of them.
fn classes(
    letters: &PredictLetters,
    predictor: &Predictor,
    (known, written): (&[LabelValue], Option<&[u8]>),
    rows: &Rows,
    table: &Table,
) -> Result<(String, String), Failure> {
    let Outputs::Classes { odds, .. } = &predictor.outputs else {
        return Err(Failure::input("the model has no classes"));
    };
    let (mut text, mut said) = (String::new(), String::new());
    let predicted: Vec<LabelValue> = if letters.has_probability {
        if odds.is_none() {
            return Err(Failure::new(FAILED, "Model does not support probabiliy estimates"));
        }
        let probabilities = predictor.predict_proba(*rows, Hardware::default())?;
        let names: Vec<String> = known.iter().map(labels::text).collect();
        let order = order(written, &names);
        let ordered: Vec<&str> = order.iter().map(|c| &*names[*c]).collect();
        let _ = writeln!(text, "labels {}", ordered.join(" "));
        let mut predicted = Vec::with_capacity(rows.nrows());
        for row in probabilities.chunks_exact(known.len()) {
            // Of equal probabilities, the first.
            let best = order.iter().fold(order[0], |best, c| if row[*c] > row[best] { *c } else { best });
            let each: Vec<String> = order.iter().map(|c| general(row[*c], 6)).collect();
            let _ = writeln!(text, "{} {}", names[best], each.join(" "));
            predicted.push(known[best].clone());
        }
        predicted
    } else {
        if odds.is_some() {
            said.push_str("Model supports probability estimates, but disabled in prediction.\n");
        }
        let Predicted::Labels(predicted) = predictor.predict(*rows, Hardware::default())? else {
            return Err(Failure::input("the model has no classes"));
        };
        for label in &predicted {
            let _ = writeln!(text, "{}", labels::text(label));
        }
        predicted
    };
    let truth = data::classes(data::needed(table, &letters.test)?);
    let (total, correct) = (truth.len(), predicted.iter().zip(&truth).filter(|(a, b)| a == b).count());
    let percent = general(100.0 * correct as f64 / total as f64, 6);
    let _ = writeln!(said, "Accuracy = {percent}% ({correct}/{total}) (classification)");
    Ok((text, said))
}

/// The places of the classes in the order of the model file: a file of LIBSVM has that of its training data.
fn order(written: Option<&[u8]>, names: &[String]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    if let Some(text) = written {
        let text = String::from_utf8_lossy(text);
        let written: Vec<&str> = text
            .lines()
            .take_while(|line| line.trim() != "SV")
            .find_map(|line| line.strip_prefix("label "))
            .map(|line| line.split_whitespace().collect())
            .unwrap_or_default();
        order.sort_by_key(|c| written.iter().position(|label| *label == names[*c]));
    }
    order
}

fn numbers(
    letters: &PredictLetters,
    predictor: &Predictor,
    rows: &Rows,
    table: &Table,
) -> Result<(String, String), Failure> {
    let Predicted::Numbers { columns: 1, values } = predictor.predict(*rows, Hardware::default())? else {
        return Err(Failure::input("the model predicts several numbers for each row; use kernelpath predict"));
    };
    if letters.has_probability {
        output::tell("WARNING: -b 1: no width of errors is known of a regression");
    }
    let mut text = String::new();
    for value in &values {
        let _ = writeln!(text, "{}", general(*value, 17));
    }
    let (mean, squared) = errors(&data::numbers(data::needed(table, &letters.test)?, &letters.test)?, &values);
    let said = format!(
        "Mean squared error = {} (regression)\nSquared correlation coefficient = {} (regression)\n",
        general(mean, 6),
        general(squared, 6)
    );
    Ok((text, said))
}
