//! The parts of a file become a model, its classes in rising order.

use faer::Mat;
use kernelpath::{
    Arrangement, Attributes, Calibration, CsrBuf, LabelValue, Machine, MultiClass, Odds, Outputs, Predictor, RowsBuf,
    SavedModel, Shape,
};
use serde_json::{Map, json};

use crate::error::Result;
use crate::libsvm::header::{Header, Kind};
use crate::libsvm::lines::wrong;
use crate::libsvm::parse::Parsed;
use crate::libsvm::{machine_of, place_of};

/// Coefficients that a model may have whatever the size of its file, and for each number in its file. A file has one a
/// vector and class, the model one a vector and machine: without a bound, a file of 1 MB could ask for gigabytes.
const COEFFICIENTS: (usize, usize) = (1 << 20, 64);

/// A machine of the model: that of the file it is, and whether its sign is turned.
#[derive(Clone, Copy)]
struct Source {
    machine: usize,
    is_turned: bool,
}

impl Source {
    fn sign(self) -> f64 {
        if self.is_turned { -1.0 } else { 1.0 }
    }
}

/// The model of a file.
pub(crate) fn model(parsed: &Parsed) -> Result<SavedModel> {
    let header = &parsed.header;
    let (outputs, sources) = match header.kind {
        Kind::Number => {
            let own = Source { machine: 0, is_turned: false };
            (Outputs::Numbers { is_one: true, rising: None }, vec![own])
        }
        Kind::Classes => classes(header),
    };
    // A vector without coefficients is there for its columns.
    let own = |vector: usize| &parsed.coef.0[vector * parsed.coef.1..(vector + 1) * parsed.coef.1];
    let kept: Vec<usize> = (0..header.vectors).filter(|&vector| own(vector).iter().any(|c| *c != 0.0)).collect();
    let numbers = parsed.coef.0.len() + parsed.values.len();
    if kept.len().saturating_mul(sources.len()) > COEFFICIENTS.0.max(COEFFICIENTS.1 * numbers) {
        return wrong(1, format!("{} vectors for {} pairs of classes are too many", kept.len(), sources.len()));
    }
    let of_class = class_of_each(header);
    let mut coef = Mat::zeros(kept.len(), sources.len());
    // Where the machine of a pair of the file went.
    let mut places = vec![(0, 1.0); sources.len()];
    for (m, source) in sources.iter().enumerate() {
        places[source.machine] = (m, source.sign());
    }
    for (row, &vector) in kept.iter().enumerate() {
        if header.kind == Kind::Number {
            coef[(row, 0)] = own(vector)[0];
            continue;
        }
        let (class, count) = (of_class[vector], header.labels.len());
        for other in (0..count).filter(|&other| other != class) {
            let (m, sign) = places[machine_of(class.min(other), class.max(other), count)];
            coef[(row, m)] = sign * own(vector)[place_of(other, class)];
        }
    }
    let intercepts = sources.iter().map(|source| 0.0 - source.sign() * header.rho[source.machine]).collect();
    let loss = if header.kind == Kind::Number { "epsilon_insensitive" } else { "hinge" };
    let machines = vec![unproved(loss); sources.len()];
    let (estimator, parameters) = (estimator(header), parameters(header));
    let label_type = (header.kind == Kind::Classes).then(|| "int64".to_string());
    let kernel = header.kernel;
    let width = parsed.width;
    let vectors = vectors(parsed, &kept)?;
    let predictor = Predictor::new(kernel, vectors, width, coef, intercepts, outputs)?;
    let attributes = Attributes::new();
    Ok(SavedModel {
        estimator: estimator.into(),
        parameters,
        columns: None,
        label_type,
        encoding: None,
        machines,
        predictor,
        training: None,
        attributes,
    })
}

/// The class of each vector.
fn class_of_each(header: &Header) -> Vec<usize> {
    header.of_class.iter().enumerate().flat_map(|(class, count)| std::iter::repeat_n(class, *count)).collect()
}

/// Classes in rising order, and which machine of the file tells each pair of them apart.
fn classes(header: &Header) -> (Outputs, Vec<Source>) {
    let count = header.labels.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&class| header.labels[class]);
    let arrangement = Arrangement::new(MultiClass::OneVsOne, count);
    let pairs: Vec<(usize, usize)> = match &arrangement {
        Arrangement::Pairs { pairs, .. } => pairs.clone(),
        // Positive for the second of two classes.
        _ => vec![(1, 0)],
    };
    let source = |&(a, b): &(usize, usize)| {
        let (i, j) = (order[a], order[b]);
        Source { machine: machine_of(i.min(j), i.max(j), count), is_turned: i > j }
    };
    let sources: Vec<Source> = pairs.iter().map(source).collect();
    // 1 / (1 + exp(A f + B)) for the first class of a pair is 1 / (1 + exp(A (−f) − B)) for the second.
    let sigmoid = |sigmoids: &[(f64, f64)], source: &Source| {
        let (a, b) = sigmoids[source.machine];
        Calibration::Sigmoid { slope: 0.0 - a, intercept: 0.0 - source.sign() * b }
    };
    let odds = header
        .sigmoids
        .as_ref()
        .map(|sigmoids| Odds::Calibrated(sources.iter().map(|source| sigmoid(sigmoids, source)).collect()));
    let labels = order.iter().map(|&class| LabelValue::Whole(header.labels[class].into())).collect();
    (Outputs::Classes { labels, arrangement, odds }, sources)
}

/// The vectors that are kept: dense if at least half of their entries are not 0, which takes no more memory.
fn vectors(parsed: &Parsed, kept: &[usize]) -> Result<(RowsBuf, Vec<usize>)> {
    if parsed.header.kernel.shape == Shape::Precomputed {
        let serials = kept.iter().map(|&vector| parsed.serials[vector]).collect();
        return Ok((RowsBuf::Dense(Mat::zeros(0, 0)), serials));
    }
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for &vector in kept {
        let own = parsed.starts[vector]..parsed.starts[vector + 1];
        columns.extend_from_slice(&parsed.columns[own.clone()]);
        values.extend_from_slice(&parsed.values[own]);
        starts.push(columns.len());
    }
    // Without a vector, a dense matrix would still be as wide as the file says.
    let rows = if !kept.is_empty() && kept.len().saturating_mul(parsed.width) <= 2 * values.len() {
        let mut dense = Mat::zeros(kept.len(), parsed.width);
        for (row, own) in starts.windows(2).enumerate() {
            (own[0]..own[1]).for_each(|k| dense[(row, columns[k])] = values[k]);
        }
        RowsBuf::Dense(dense)
    } else {
        RowsBuf::Csr(CsrBuf::new(parsed.width, starts, columns, values)?)
    };
    // Which rows of the training data they are is not known.
    Ok((rows, Vec::new()))
}

fn estimator(header: &Header) -> &'static str {
    if header.kind == Kind::Number { "KernelSVR" } else { "KernelSVC" }
}

/// The parameters of the estimator that the file tells.
fn parameters(header: &Header) -> Map<String, serde_json::Value> {
    let kernel = header.kernel;
    let mut parameters = Map::new();
    parameters.insert("kernel".into(), json!(kernel.shape.name()));
    if kernel.shape.uses_gamma() {
        parameters.insert("gamma".into(), json!(kernel.gamma));
    }
    if let Shape::Poly { degree, .. } = kernel.shape {
        parameters.insert("degree".into(), json!(degree));
    }
    if let Shape::Poly { coef0, .. } | Shape::Sigmoid { coef0 } = kernel.shape {
        parameters.insert("coef0".into(), json!(coef0));
    }
    if header.sigmoids.is_some() {
        parameters.insert("probability".into(), json!("sigmoid"));
    }
    parameters
}

/// A machine of which neither C nor the value of the objective is known.
fn unproved(loss: &str) -> Machine {
    Machine {
        loss: loss.into(),
        constant: if loss == "hinge" { 0.0 } else { f64::NAN },
        c: f64::NAN,
        primal: f64::NAN,
        dual: f64::NAN,
        gap: f64::NAN,
        noise: f64::NAN,
        status: "not_run".into(),
    }
}
