//! `kernelpath svm-predict`: LIBSVM's letters, messages and output file.

use std::ffi::OsString;
use std::fmt::Write as _;

use faer::Mat;
use kernelpath::{
    Control, CsrBuf, Hardware, LabelValue, Outputs, Predicted, Predictor, Rows, RowsBuf, SavedModel, Shape, write_whole,
};
use kernelpath_data::{Base, Format, LibsvmOptions, Options, Table};

use crate::failure::{FAILED, Failure};
use crate::libsvm::{PREDICT_USAGE, PredictLetters, errors, general};
use crate::{data, labels, models, output};

pub(crate) fn run(words: &[OsString], control: &Control) -> Result<u8, Failure> {
    if words.is_empty() || words == ["--help"] {
        output::print(PREDICT_USAGE)?;
        return Ok(if words.is_empty() { FAILED } else { 0 });
    }
    let letters = PredictLetters::parse(words)?;
    models::check_folder(&letters.output)?;
    let model = models::load(&letters.model)?;
    let is_precomputed = model.predictor.kernel().shape == Shape::Precomputed;
    let table = read(&letters, &model.predictor, is_precomputed, control)?;
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
    let predictor = widened(&model, rows.ncols())?;
    let (text, said) = match &predictor.outputs {
        Outputs::Classes { labels, .. } => classes(&letters, &predictor, labels, &rows, &table)?,
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

/// The predictor for rows of at least as many columns: what the model has not seen is 0 in its vectors.
fn widened(model: &SavedModel, columns: usize) -> Result<Predictor, Failure> {
    let own = &model.predictor;
    if columns <= own.width() || own.kernel().shape == Shape::Precomputed {
        return Ok(own.clone());
    }
    if own.scaling.is_some() {
        let message = format!("the test data has {columns} columns, but the model scales {}", own.width());
        return Err(Failure::input(message));
    }
    let vectors = match own.vectors() {
        Rows::Csr(sparse) => {
            let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in 0..sparse.nrows() {
                for (column, value) in sparse.row(row) {
                    indices.push(column);
                    values.push(value);
                }
                starts.push(indices.len());
            }
            RowsBuf::Csr(CsrBuf::new(columns, starts, indices, values)?)
        }
        dense => {
            let value = |i, j| if j < own.width() { dense.entry(i, j).unwrap_or(f64::NAN) } else { 0.0 };
            RowsBuf::Dense(Mat::from_fn(dense.nrows(), columns, value))
        }
    };
    let (coef, intercepts) = (own.coef().to_owned(), own.intercepts().to_vec());
    let (kernel, support) = (own.kernel(), own.support().to_vec());
    let centre = own.centre().map(|centre| {
        let mut centre = centre.clone();
        centre.point.resize(columns, 0.0);
        centre
    });
    let wide = Predictor::new(kernel, (vectors, support), columns, coef, intercepts, own.outputs.clone())?;
    Ok(wide.centred(centre)?)
}

/// The lines of the output, and what is said of them.
fn classes(
    letters: &PredictLetters,
    predictor: &Predictor,
    known: &[LabelValue],
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
        let order = order(letters, &names)?;
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
fn order(letters: &PredictLetters, names: &[String]) -> Result<Vec<usize>, Failure> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    if models::is_text(&letters.model) {
        let text = models::text(&letters.model)?;
        let text = String::from_utf8_lossy(&text);
        let written: Vec<&str> = text
            .lines()
            .take_while(|line| line.trim() != "SV")
            .find_map(|line| line.strip_prefix("label "))
            .map(|line| line.split_whitespace().collect())
            .unwrap_or_default();
        order.sort_by_key(|c| written.iter().position(|label| *label == names[*c]));
    }
    Ok(order)
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
