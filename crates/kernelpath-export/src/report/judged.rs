//! What the model says of rows, beside what is true of them.

use kernelpath::{Arrangement, Error, LabelValue, Odds, Outputs, Result, Rows, Shape};

use crate::report::found::Found;
use crate::report::request::{Labelled, Options, Truth};
use crate::report::text::label;

/// Most support vectors that are compared with the rows.
const COMPARED: usize = 64;

/// Where the predictions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The rows are not those of the fit, as far as can be told.
    New,
    /// The rows are those of the fit, and each prediction is of models that did not see the row.
    OutOfFold,
    /// The rows are those of the fit, and the model saw them.
    Seen,
}

/// Predictions of classes.
pub(crate) struct JudgedClasses {
    pub origin: Origin,
    /// The classes of the model, then the labels that are none of them, in their order.
    pub names: Vec<String>,
    /// How many of the names are classes of the model.
    pub classes: usize,
    /// The true name of each row.
    pub truth: Vec<usize>,
    /// The predicted class of each row.
    pub predicted: Vec<usize>,
    /// One for each class, row after row.
    pub probabilities: Option<Vec<f64>>,
    /// Rows without a prediction, which are left out.
    pub left_out: usize,
}

/// Predictions of numbers.
pub(crate) struct JudgedNumbers {
    pub origin: Origin,
    /// What is true of each row, for each output.
    pub truth: Vec<Vec<f64>>,
    /// What is predicted.
    pub predicted: Vec<Vec<f64>>,
    /// Rows without a prediction, which are left out.
    pub left_out: usize,
}

/// Predictions of either kind.
pub(crate) enum Judged {
    Classes(JudgedClasses),
    Numbers(JudgedNumbers),
}

impl Judged {
    pub fn new(found: &Found, data: &Labelled, options: &Options) -> Result<Self> {
        let rows = data.x.nrows();
        match (&found.model.predictor.outputs, data.truth) {
            (Outputs::Classes { labels, arrangement, odds }, Truth::Labels(truth)) => {
                same_length(truth.len(), rows)?;
                classes(found, data, options, (labels, arrangement, odds.as_ref()), truth).map(Self::Classes)
            }
            (Outputs::Numbers { rising, .. }, Truth::Numbers { columns, values }) => {
                let outputs = found.model.predictor.n_values();
                if columns != outputs && columns != 1 {
                    let why = "one for each output of the model, or one";
                    return Err(Error::Length { what: "the truth of a row", got: columns, expected: outputs, why });
                }
                same_length(values.len(), rows * columns)?;
                if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                    let (row, column) = (at / columns, at % columns);
                    return Err(Error::NotFinite { what: "the truth", value: values[at], row, column });
                }
                numbers(found, data, options, rising.as_deref(), (columns, values)).map(Self::Numbers)
            }
            (Outputs::Classes { .. }, Truth::Numbers { .. }) => wrong("the model predicts labels; give a label a row"),
            _ => wrong("the model predicts numbers; give numbers"),
        }
    }
}

fn wrong<T>(problem: impl Into<String>) -> Result<T> {
    Err(Error::Setting { call: "report(model, data)".into(), problem: problem.into() })
}

fn same_length(got: usize, expected: usize) -> Result<()> {
    let what = "what is true of the rows";
    if got == expected { Ok(()) } else { Err(Error::Length { what, got, expected, why: "the rows of the data" }) }
}

fn classes(
    found: &Found,
    data: &Labelled,
    options: &Options,
    (labels, arrangement, odds): (&[LabelValue], &Arrangement, Option<&Odds>),
    truth: &[LabelValue],
) -> Result<JudgedClasses> {
    let mut names: Vec<String> = labels.iter().map(label).collect();
    let mut sorted: Vec<(&LabelValue, usize)> = labels.iter().enumerate().map(|(c, value)| (value, c)).collect();
    sorted.sort();
    let mut unknown = Vec::<&LabelValue>::new();
    let mut place = |value| match sorted.binary_search_by(|(known, _)| (*known).cmp(value)) {
        Ok(at) => sorted[at].1,
        Err(_) => match unknown.iter().position(|known| *known == value) {
            Some(at) => labels.len() + at,
            None if unknown.len() < 100 => {
                unknown.push(value);
                labels.len() + unknown.len() - 1
            }
            None => labels.len() + unknown.len() - 1,
        },
    };
    let mut truth: Vec<usize> = truth.iter().map(&mut place).collect();
    if truth.iter().all(|c| *c >= labels.len()) {
        let example = unknown.first().map(ToString::to_string).unwrap_or_default();
        let known = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        return wrong(format!("no label is a class of the model: {example} is not among {known}"));
    }
    names.extend(unknown.into_iter().map(|value| format!("{} (no class of the model)", label(value))));

    let held_out = if is_training(found, data) { held_out(found, data.x.nrows(), arrangement) } else { None };
    let (decision, mut probabilities, origin) = if let Some((decision, probabilities)) = held_out {
        (decision, probabilities, Origin::OutOfFold)
    } else {
        let values = found.model.predictor.values(data.x, options.hardware)?;
        let probabilities = odds.map(|odds| odds.probabilities(arrangement, &values));
        let origin = if is_training(found, data) { Origin::Seen } else { Origin::New };
        (arrangement.decision(values)?, probabilities, origin)
    };
    let width = decision.len() / truth.len().max(1);
    let known: Vec<bool> = decision.chunks_exact(width.max(1)).map(|row| row.iter().all(|f| !f.is_nan())).collect();
    let mut predicted = arrangement.predicted(&decision);
    let left_out = known.iter().filter(|known| !**known).count();
    if left_out > 0 {
        truth = kept(&truth, &known, 1);
        predicted = kept(&predicted, &known, 1);
        probabilities = probabilities.map(|p| kept(&p, &known, labels.len()));
    }
    Ok(JudgedClasses { origin, names, classes: labels.len(), truth, predicted, probabilities, left_out })
}

/// The rows that are known, of values with `width` numbers a row.
fn kept<T: Copy>(values: &[T], known: &[bool], width: usize) -> Vec<T> {
    let rows = values.chunks_exact(width).zip(known).filter(|(_, known)| **known);
    rows.flat_map(|(row, _)| row.iter().copied()).collect()
}

/// The out-of-fold decision values of the rows of the fit, and their probabilities.
fn held_out(found: &Found, rows: usize, arrangement: &Arrangement) -> Option<(Vec<f64>, Option<Vec<f64>>)> {
    let (shape, decision) = found.array("oof_decision_")?;
    let classes = arrangement.classes();
    let is_right = match shape {
        [n] => *n == rows && *arrangement == Arrangement::Two,
        [n, width] => *n == rows && *width == classes && *arrangement != Arrangement::Two,
        _ => false,
    };
    if !is_right || decision.iter().all(|f| f.is_nan()) {
        return None;
    }
    let probabilities = found.array("oof_proba_").filter(|(shape, _)| *shape == [rows, classes]);
    Some((decision, probabilities.map(|(_, values)| values)))
}

fn numbers(
    found: &Found,
    data: &Labelled,
    options: &Options,
    rising: Option<&[usize]>,
    (columns, truth): (usize, &[f64]),
) -> Result<JudgedNumbers> {
    let (rows, outputs) = (data.x.nrows(), found.model.predictor.n_values());
    let is_training = is_training(found, data);
    let held_out = found.array("oof_decision_").filter(|(shape, values)| {
        let is_right = *shape == [outputs, rows] || (outputs == 1 && *shape == [rows]);
        is_right && is_training && values.iter().any(|f| !f.is_nan())
    });
    let (mut predicted, origin): (Vec<f64>, Origin) = if let Some((_, values)) = held_out {
        // One output after the other.
        let row = |i: usize| (0..outputs).map(move |m| m * rows + i);
        ((0..rows).flat_map(row).map(|at| values[at]).collect(), Origin::OutOfFold)
    } else {
        let origin = if is_training { Origin::Seen } else { Origin::New };
        (found.model.predictor.values(data.x, options.hardware)?, origin)
    };
    if let Some(rising) = rising {
        for row in predicted.chunks_exact_mut(outputs) {
            let mut sorted = row.to_vec();
            sorted.sort_by(f64::total_cmp);
            rising.iter().zip(sorted).for_each(|(&k, value)| row[k] = value);
        }
    }
    let known: Vec<usize> =
        (0..rows).filter(|i| predicted[i * outputs..(i + 1) * outputs].iter().all(|f| f.is_finite())).collect();
    let of = |m: usize| -> Vec<f64> { known.iter().map(|i| predicted[i * outputs + m]).collect() };
    let true_of = |m: usize| -> Vec<f64> { known.iter().map(|i| truth[i * columns + m.min(columns - 1)]).collect() };
    Ok(JudgedNumbers {
        origin,
        truth: (0..outputs).map(true_of).collect(),
        predicted: (0..outputs).map(of).collect(),
        left_out: rows - known.len(),
    })
}

/// Whether these are the rows that the model was trained on, by their digest. Without one, the support vectors must be
/// rows of the fit, and all of them stand where they stood.
fn is_training(found: &Found, data: &Labelled) -> bool {
    if let Some(trained) = &found.model.training {
        return trained.are_values_of(data.x);
    }
    let predictor = &found.model.predictor;
    let (vectors, support, x) = (predictor.vectors(), predictor.support(), &data.x);
    let has_rows = found.array("oof_decision_").is_none_or(|(shape, _)| shape.contains(&x.nrows()));
    if predictor.kernel().shape == Shape::Precomputed
        || support.is_empty()
        || support.len() != vectors.nrows()
        || x.ncols() != vectors.ncols()
        || !has_rows
        || support.iter().any(|row| *row >= x.nrows())
    {
        return false;
    }
    let entry = |rows: &Rows, row: usize, column: usize| rows.entry(row, column).unwrap_or(f64::NAN);
    let is_same = |value: f64, column: usize, vector: f64| match &predictor.scaling {
        None => value == vector,
        // What is dropped is 0, whatever it was.
        Some(scaling) if scaling.factor[column] == 0.0 => vector == 0.0,
        // The fit may have scaled with other roundings, and in single precision.
        Some(scaling) => {
            let (shift, factor) = (scaling.shift[column], scaling.factor[column]);
            let slack = 4.0 * f64::from(f32::EPSILON) * (value.abs() + shift.abs()) * factor.abs();
            ((value - shift) * factor - vector).abs() <= slack
        }
    };
    let is_shifted = predictor.scaling.iter().any(|scaling| scaling.shift.iter().any(|shift| *shift != 0.0));
    let stride = support.len().div_ceil(COMPARED);
    (0..support.len()).step_by(stride).all(|k| match (x, &vectors) {
        // Entries that are stored alone: there may be many millions of columns.
        (Rows::Csr(x), Rows::Csr(vectors)) if !is_shifted => {
            let nonzero = |(column, value): &(usize, f64)| {
                *value != 0.0 && predictor.scaling.as_ref().is_none_or(|scaling| scaling.factor[*column] != 0.0)
            };
            let (mut own, mut other) =
                (x.row(support[k]).filter(nonzero), vectors.row(k).filter(|entry| entry.1 != 0.0));
            loop {
                match (own.next(), other.next()) {
                    (None, None) => return true,
                    (Some((a, value)), Some((b, vector))) if a == b && is_same(value, a, vector) => {}
                    _ => return false,
                }
            }
        }
        _ => (0..x.ncols()).all(|column| is_same(entry(x, support[k], column), column, entry(&vectors, k, column))),
    })
}
