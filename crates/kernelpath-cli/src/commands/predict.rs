//! `kernelpath predict`: a line for each row.

use std::fmt::Write as _;

use kernelpath::{
    Control, DeviceChoice, Hardware, LabelValue, Loss, Outputs, Predicted, Rows, SavedModel, write_whole,
};
use kernelpath_data::{Labels, Table};

use crate::arguments::predict::PredictArguments;
use crate::failure::Failure;
use crate::table::{exact, short};
use crate::{data, labels, models, output};

pub(crate) fn run(arguments: &PredictArguments, control: &Control) -> Result<(), Failure> {
    let hardware = Hardware::threads(arguments.threads).device(DeviceChoice::from_name(&arguments.device)?);
    models::check_inputs(&arguments.model, Some(&arguments.data))?;
    if let Some(path) = &arguments.output {
        models::check_output(path, &[&arguments.model, &arguments.data])?;
    }
    let mut model = models::load(&arguments.model)?;
    let read = data::read_for(&mut model, &arguments.data, &arguments.data_options, arguments.threads, control)?;
    if !arguments.quiet {
        read.notes.iter().for_each(|note| output::tell(&format!("note: {note}")));
    }
    let table = &read.table;
    let x = table.rows.view()?;
    // A file has the labels as they are; what is printed is escaped.
    let is_file = arguments.output.is_some();
    let (text, verdict) = match &model.predictor.outputs {
        Outputs::Classes { .. } => classes(arguments, &model, &x, hardware, table, is_file)?,
        _ => numbers(arguments, &model, &x, hardware, table)?,
    };
    control.check()?;
    let text = with_gaps(text, &read.kept, read.rows);
    match &arguments.output {
        Some(path) => write_whole(path, text.as_bytes())?,
        None => output::print(&text)?,
    }
    if let Some(verdict) = verdict.filter(|_| !arguments.quiet) {
        output::tell(&verdict);
    }
    Ok(())
}

/// The line of a row that has no prediction, since a value of it is missing.
const NONE: &str = "NA\n";

/// The lines of all rows of the file: a line stands where its row stands.
fn with_gaps(text: String, kept: &[usize], rows: usize) -> String {
    if kept.len() == rows {
        return text;
    }
    let mut lines = Lines { rest: &text };
    let mut kept = kept.iter().peekable();
    (0..rows).map(|row| if kept.next_if(|next| **next == row).is_some() { lines.next_line() } else { NONE }).collect()
}

/// The lines of predictions, whose labels may have line feeds in quotes.
struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Lines<'a> {
    fn next_line(&mut self) -> &'a str {
        let mut is_inside = false;
        let end = self.rest.find(|c| {
            is_inside ^= c == '"';
            c == '\n' && !is_inside
        });
        let (line, rest) = self.rest.split_at(end.map_or(self.rest.len(), |end| end + 1));
        self.rest = rest;
        line
    }
}

/// The lines of a classifier, and how they compare with the labels.
fn classes(
    arguments: &PredictArguments,
    model: &SavedModel,
    x: &Rows,
    hardware: Hardware,
    table: &Table,
    is_file: bool,
) -> Result<(String, Option<String>), Failure> {
    let Outputs::Classes { labels: known, arrangement, odds } = &model.predictor.outputs else {
        return Err(Failure::input("the model has no classes"));
    };
    let values = model.predictor.values(*x, hardware)?;
    let probabilities = match odds {
        Some(odds) if arguments.proba => Some(odds.probabilities(arrangement, &values)),
        None if arguments.proba => {
            let message = "--proba: the model has no probabilities; train with --probability, or --task logistic";
            return Err(Failure::input(message));
        }
        _ => None,
    };
    let decision = arrangement.decision(values)?;
    let predicted = arrangement.predicted(&decision);
    let blocks: Vec<&[f64]> =
        probabilities.iter().map(Vec::as_slice).chain(arguments.decision.then_some(&decision[..])).collect();
    let field = |label| if is_file { labels::field(label) } else { labels::printed(label) };
    let fields: Vec<String> = known.iter().map(field).collect();
    let mut text = String::new();
    for (i, class) in predicted.iter().enumerate() {
        text.push_str(&fields[*class]);
        for block in &blocks {
            let width = block.len() / predicted.len();
            for value in &block[i * width..(i + 1) * width] {
                let _ = write!(text, "\t{}", exact(*value));
            }
        }
        text.push('\n');
    }
    let truth = table.labels.as_ref().map(data::classes);
    Ok((text, truth.map(|truth| accuracy(&predicted, &truth, known, table.weights.as_deref()))))
}

fn accuracy(predicted: &[usize], truth: &[LabelValue], known: &[LabelValue], weights: Option<&[f64]>) -> String {
    if truth.iter().all(|label| !known.contains(label)) {
        return "no accuracy: none of the labels in the file is a class of the model".into();
    }
    let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
    let is_right = |i: &usize| known[predicted[*i]] == truth[*i];
    let right: f64 = (0..truth.len()).filter(is_right).map(weight).sum();
    let total: f64 = (0..truth.len()).map(weight).sum();
    format!("accuracy {} ({} of {})", short(right / total, 4), exact(right), exact(total))
}

/// The lines of a regression, and how they compare with the labels.
fn numbers(
    arguments: &PredictArguments,
    model: &SavedModel,
    x: &Rows,
    hardware: Hardware,
    table: &Table,
) -> Result<(String, Option<String>), Failure> {
    if arguments.proba {
        return Err(Failure::input("--proba: a regression has no probabilities of classes; leave it out"));
    }
    if arguments.decision {
        return Err(Failure::input("--decision: what a regression predicts are its values; leave it out"));
    }
    let Predicted::Numbers { columns, values } = model.predictor.predict(*x, hardware)? else {
        return Err(Failure::input("the model has no numbers"));
    };
    let mut text = String::new();
    for row in values.chunks_exact(columns) {
        let fields: Vec<String> = row.iter().map(|value| exact(*value)).collect();
        let _ = writeln!(text, "{}", fields.join("\t"));
    }
    let verdict = match table.labels.as_ref().and_then(Labels::to_floats) {
        Some(truth) => Some(losses(model, &truth, &values, columns, table.weights.as_deref())?),
        None => None,
    };
    Ok((text, verdict))
}

/// The mean loss of each machine, and of one machine the share of the variance that it explains.
fn losses(
    model: &SavedModel,
    truth: &[f64],
    values: &[f64],
    columns: usize,
    weights: Option<&[f64]>,
) -> Result<String, Failure> {
    let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
    let total: f64 = (0..truth.len()).map(weight).sum();
    let mean = |of: &dyn Fn(usize) -> f64| -> f64 { (0..truth.len()).map(|i| weight(i) * of(i)).sum::<f64>() / total };
    let mut parts = Vec::new();
    for (m, machine) in model.machines.iter().enumerate().take(columns) {
        let loss = Loss::from_name(&machine.loss, machine.constant)?;
        // A score is a negative loss.
        let score = mean(&|i| loss.score(truth[i], values[i * columns + m]));
        let which = if columns > 1 { format!(" at {}", exact(machine.constant)) } else { String::new() };
        // The score of the ε-insensitive loss does not depend on ε.
        let name = match loss {
            Loss::EpsilonInsensitive { .. } => "absolute error".into(),
            loss => format!("{} loss", loss.name()),
        };
        parts.push(format!("mean {name}{which} {}", short(-score, 4)));
    }
    if columns == 1 {
        let middle = mean(&|i| truth[i]);
        let (rest, all) = (mean(&|i| (truth[i] - values[i]).powi(2)), mean(&|i| (truth[i] - middle).powi(2)));
        parts.push(format!("R² {}", short(1.0 - rest / all, 4)));
    }
    Ok(parts.join(", "))
}
