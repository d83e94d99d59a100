//! A document with arrays becomes a model, if everything in it fits together.

use faer::Mat;
use serde_json::{Map, Value};

use crate::data::rows::RowsBuf;
use crate::data::sparse::CsrBuf;
use crate::error::Result;
use crate::kernel::plane::Centre;
use crate::kernel::shape::{KernelFn, Shape};
use crate::model::arrangement::{Arrangement, MultiClass};
use crate::model::attributes::{Array, Attribute, Entries};
use crate::model::calibrate::{Calibration, Method};
use crate::model::file::container::{Container, not_a_model, wrong};
use crate::model::file::document::{ALL_TOGETHER, ATTRIBUTE, FORMAT, PAIRS, REST, TWO, label_of_json};
use crate::model::file::table::{ENCODING, encoding_of_json};
use crate::model::predictor::{Outputs, Predictor};
use crate::model::probabilities::Odds;
use crate::model::saved::{Machine, SavedModel};
use crate::model::scaling::Scaling;
use crate::model::training_rows::TrainingRows;

/// The most columns of a dense matrix without rows. One row of such a matrix would take a gigabyte.
const LARGEST_EMPTY: usize = 1 << 27;

/// What is wrong with the part of the document that names the rows of the fit.
const NO_DIGESTS: &str = "the \"training\" of its document is no number of rows with three digests";

/// Refuses a document of a format that this version cannot read.
pub(crate) fn check_format(document: &Map<String, Value>) -> Result<()> {
    let library = document.get("library").and_then(Value::as_str).unwrap_or("unknown");
    match document.get("format").and_then(Value::as_u64) {
        Some(1..=FORMAT) => Ok(()),
        Some(newer) if newer > FORMAT => wrong(format!(
            "it has format {newer}, written by kernelpath {library}; this is kernelpath {}, which reads formats up to \
             {FORMAT}: install a newer version",
            env!("CARGO_PKG_VERSION")
        )),
        _ => wrong("its document has no \"format\""),
    }
}

/// The model in a file.
pub(crate) fn model(contents: Container) -> Result<SavedModel> {
    check_format(&contents.document)?;
    let mut parts = Parts(contents);
    let estimator = parts.text("estimator")?;
    let parameters = parts.object("parameters")?;
    let label_type = match parts.value("label_type") {
        Some(Value::String(name)) => Some(name),
        None | Some(Value::Null) => None,
        Some(_) => return wrong("the \"label_type\" of its document is not a text"),
    };
    let training = match parts.value("training") {
        None | Some(Value::Null) => None,
        Some(value) => Some(TrainingRows::of_json(&value).ok_or_else(|| not_a_model(NO_DIGESTS))?),
    };
    let columns = match parts.0.arrays.remove("columns") {
        None => None,
        Some(array) => Some(texts("columns", array)?),
    };
    let machines = parts.machines()?;
    let mut predictor = parts.predictor()?;
    let expected = match &predictor.outputs {
        Outputs::Classes { arrangement, .. } => arrangement.machines(),
        Outputs::Numbers { .. } => predictor.n_values(),
    };
    // A model that another program trained has no proofs.
    if !machines.is_empty() && machines.len() != expected {
        return wrong(format!("it describes {} machines, but its functions are those of {expected}", machines.len()));
    }
    predictor.scaling = parts.scaling(predictor.width())?;
    if let Some(columns) = columns.as_ref().filter(|columns| columns.len() != predictor.width()) {
        return wrong(format!("it names {} columns, but its rows have {}", columns.len(), predictor.width()));
    }
    let encoding = match parts.value(ENCODING) {
        None | Some(Value::Null) => None,
        Some(value) => Some(encoding_of_json(&value, predictor.width()).or_else(wrong)?),
    };
    let mut attributes: std::collections::BTreeMap<_, _> =
        parts.object("attributes")?.into_iter().map(|(name, value)| (name, Attribute::Value(value))).collect();
    for (name, array) in std::mem::take(&mut parts.0.arrays) {
        if let Some(name) = name.strip_prefix(ATTRIBUTE) {
            attributes.insert(name.into(), Attribute::Array(array));
        }
    }
    Ok(SavedModel { estimator, parameters, columns, encoding, label_type, machines, predictor, training, attributes })
}

/// What of a file is not read yet.
struct Parts(Container);

impl Parts {
    fn value(&mut self, name: &str) -> Option<Value> {
        self.0.document.remove(name)
    }

    fn text(&mut self, name: &str) -> Result<String> {
        match self.value(name) {
            Some(Value::String(text)) => Ok(text),
            _ => wrong(format!("its document has no text {name:?}")),
        }
    }

    fn object(&mut self, name: &str) -> Result<Map<String, Value>> {
        match self.value(name) {
            Some(Value::Object(object)) => Ok(object),
            _ => wrong(format!("its document has no object {name:?}")),
        }
    }

    fn array(&mut self, name: &str) -> Result<Array> {
        self.0.arrays.remove(name).ok_or_else(|| not_a_model(format!("the array {name:?} is missing")))
    }

    /// Floats of either precision; `axes` axes.
    fn floats(&mut self, name: &str, axes: usize) -> Result<(Vec<usize>, Vec<f64>)> {
        let Array { shape, entries } = self.array(name)?;
        match entries {
            _ if shape.len() != axes => wrong(format!("the array {name:?} has {} axes, not {axes}", shape.len())),
            Entries::F64(entries) => Ok((shape, entries)),
            Entries::F32(entries) => Ok((shape, entries.into_iter().map(f64::from).collect())),
            _ => wrong(format!("the array {name:?} does not hold floats")),
        }
    }

    /// Floats in a list, none of them NaN or infinite.
    fn finite(&mut self, name: &str) -> Result<Vec<f64>> {
        let (_, entries) = self.floats(name, 1)?;
        finite(name, &entries)?;
        Ok(entries)
    }

    /// A matrix of floats, none of them NaN or infinite, with that many columns.
    fn matrix(&mut self, name: &str, columns: usize) -> Result<Mat<f64>> {
        let (shape, entries) = self.floats(name, 2)?;
        finite(name, &entries)?;
        // An axis of length 0 lets the other one have any length, and a matrix walks along its columns.
        let is_endless = shape[0] == 0 && columns > LARGEST_EMPTY;
        if shape[1] != columns || columns == 0 || is_endless {
            return wrong(format!("the array {name:?} has the shape {shape:?}, but {columns} columns are needed"));
        }
        Ok(Mat::from_fn(shape[0], columns, |i, j| entries[i * columns + j]))
    }

    /// Integers in a list, none of them negative.
    fn places(&mut self, name: &str) -> Result<Vec<usize>> {
        let Array { shape, entries: Entries::I64(entries) } = self.array(name)? else {
            return wrong(format!("the array {name:?} does not hold integers of 64 bits"));
        };
        if shape.len() != 1 {
            return wrong(format!("the array {name:?} has {} axes, not 1", shape.len()));
        }
        let place = |entry: i64| {
            usize::try_from(entry).or_else(|_| wrong(format!("the array {name:?} has {entry}, a negative number")))
        };
        entries.into_iter().map(place).collect()
    }

    fn machines(&mut self) -> Result<Vec<Machine>> {
        let losses = texts("machines.loss", self.array("machines.loss")?)?;
        let status = texts("machines.status", self.array("machines.status")?)?;
        let count = losses.len();
        let mut numbers = Vec::new();
        for name in ["constant", "c", "primal", "dual", "gap", "noise"] {
            numbers.push(self.floats(&format!("machines.{name}"), 1)?.1);
        }
        if status.len() != count || numbers.iter().any(|numbers| numbers.len() != count) {
            return wrong("the arrays of its machines differ in length");
        }
        let machine = |(m, (loss, status)): (usize, (String, String))| {
            let [constant, c, primal, dual, gap, noise] = std::array::from_fn(|k| numbers[k][m]);
            Machine { loss, constant, c, primal, dual, gap, noise, status }
        };
        Ok(losses.into_iter().zip(status).enumerate().map(machine).collect())
    }

    fn predictor(&mut self) -> Result<Predictor> {
        let kernel = kernel(&self.object("kernel")?)?;
        let width = self.value("width").and_then(|width| usize::try_from(width.as_u64()?).ok());
        let Some(width) = width.filter(|width| *width > 0) else {
            return wrong("the \"width\" of its document is not a number of columns");
        };
        let vectors = self.vectors(kernel, width)?;
        let support = self.places("support")?;
        let intercepts = self.finite("intercepts")?;
        let coef = self.matrix("coef", intercepts.len())?;
        let outputs = self.outputs(intercepts.len())?;
        let centre = self.centre()?;
        Predictor::new(kernel, (vectors, support), width, coef, intercepts, outputs)
            .and_then(|predictor| predictor.centred(centre))
            .or_else(|error| wrong(format!("its parts do not fit together: {error}")))
    }

    fn vectors(&mut self, kernel: KernelFn, width: usize) -> Result<RowsBuf> {
        if kernel.shape == Shape::Precomputed {
            return Ok(RowsBuf::Dense(Mat::zeros(0, 0)));
        }
        if self.0.arrays.contains_key("vectors") {
            return self.matrix("vectors", width).map(RowsBuf::Dense);
        }
        let (starts, columns) = (self.places("vectors.starts")?, self.places("vectors.columns")?);
        let values = self.finite("vectors.values")?;
        let end = starts.last().copied().unwrap_or(0);
        if end != values.len() {
            return wrong(format!("the rows of \"vectors\" end at entry {end} of {}", values.len()));
        }
        let sparse = CsrBuf::new(width, starts, columns, values)
            .or_else(|error| wrong(format!("its support vectors are {error}")))?;
        Ok(RowsBuf::Csr(sparse))
    }

    fn centre(&mut self) -> Result<Option<Centre>> {
        if !self.0.arrays.contains_key("centre.point") {
            return Ok(None);
        }
        Ok(Some(Centre { point: self.finite("centre.point")?, values: self.finite("centre.values")? }))
    }

    fn scaling(&mut self, width: usize) -> Result<Option<Scaling>> {
        if !self.0.arrays.contains_key("scaling.shift") {
            return Ok(None);
        }
        let (shift, factor) = (self.finite("scaling.shift")?, self.finite("scaling.factor")?);
        if shift.len() != width || factor.len() != width {
            return wrong(format!("its scaling is of {} columns, but its rows have {width}", shift.len()));
        }
        Ok(Some(Scaling { shift, factor }))
    }

    fn outputs(&mut self, functions: usize) -> Result<Outputs> {
        let mut outputs = self.object("outputs")?;
        let Some(classes) = outputs.remove("classes") else {
            let Some(Value::Bool(is_one)) = outputs.remove("is_one") else {
                return wrong("its outputs are neither \"classes\" nor numbers");
            };
            return Ok(Outputs::Numbers { is_one, rising: rising(outputs.remove("rising"), functions)? });
        };
        let labels = classes.as_array().and_then(|labels| labels.iter().map(label_of_json).collect::<Option<Vec<_>>>());
        let Some(labels) = labels else { return wrong("a class of its document is no label") };
        if labels.len() < 2 || labels.windows(2).any(|pair| pair[0] >= pair[1]) {
            return wrong("its classes are not two or more labels in rising order");
        }
        let classes = labels.len();
        let arrangement = match outputs.get("arrangement").and_then(Value::as_str) {
            Some(TWO) if classes == 2 => Arrangement::Two,
            // Pairs are listed one by one; the file has a machine for each.
            Some(PAIRS) if classes > 2 && classes * (classes - 1) / 2 == functions => {
                Arrangement::new(MultiClass::OneVsOne, classes)
            }
            Some(REST) if classes > 2 => Arrangement::Rest { classes },
            Some(ALL_TOGETHER) if classes > 2 => Arrangement::Together { classes },
            _ => return wrong(format!("its {functions} functions do not tell {classes} classes apart")),
        };
        let odds = match outputs.get("odds").and_then(Value::as_str) {
            Some("native") => Some(Odds::Native),
            Some("calibrated") => Some(Odds::Calibrated(self.calibrations(arrangement.machines())?)),
            _ => None,
        };
        Ok(Outputs::Classes { labels, arrangement, odds })
    }

    fn calibrations(&mut self, machines: usize) -> Result<Vec<Calibration>> {
        let methods = texts("calibration.method", self.array("calibration.method")?)?;
        let (slopes, intercepts) = (self.finite("calibration.slope")?, self.finite("calibration.intercept")?);
        let (starts, (shape, points)) = (self.places("calibration.starts")?, self.floats("calibration.points", 2)?);
        finite("calibration.points", &points)?;
        if [methods.len(), slopes.len(), intercepts.len(), starts.len().wrapping_sub(1)] != [machines; 4] {
            return wrong(format!("{machines} machines have one calibration each, not {}", methods.len()));
        }
        let goes_on = starts[0] == 0 && starts.is_sorted() && starts[machines] == shape[0] && shape[1] == 2;
        if !goes_on {
            return wrong("the points of its calibrations do not follow one another");
        }
        let of = |(m, method): (usize, &String)| {
            let method = Method::from_name(method).or_else(|error| wrong(error.to_string()))?;
            Ok(match method {
                Method::Sigmoid => Calibration::Sigmoid { slope: slopes[m], intercept: intercepts[m] },
                Method::Temperature => Calibration::Temperature { slope: slopes[m] },
                Method::Isotonic => {
                    let own = &points[2 * starts[m]..2 * starts[m + 1]];
                    let points: Vec<(f64, f64)> = own.as_chunks::<2>().0.iter().map(|[f, p]| (*f, *p)).collect();
                    let rises = points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
                    let are_odds = points.iter().all(|(_, p)| (0.0..=1.0).contains(p));
                    if points.is_empty() || !rises || !are_odds {
                        return wrong(format!("the points of calibration {m} are not those of a rising map to [0, 1]"));
                    }
                    Calibration::Isotonic { points }
                }
            })
        };
        methods.iter().enumerate().map(of).collect()
    }
}

fn kernel(object: &Map<String, Value>) -> Result<KernelFn> {
    let number = |name: &str| object.get(name).and_then(Value::as_f64);
    let (Some(name), Some(gamma)) = (object.get("name").and_then(Value::as_str), number("gamma")) else {
        return wrong("the kernel of its document has no name or no gamma");
    };
    let degree = object.get("degree").and_then(Value::as_u64).and_then(|degree| u32::try_from(degree).ok());
    let shape = Shape::from_name(name, degree.unwrap_or(0), number("coef0").unwrap_or(0.0));
    shape.and_then(|shape| KernelFn::new(shape, gamma)).or_else(|error| wrong(format!("its kernel: {error}")))
}

/// The places of sorted numbers: each of 0..functions once.
fn rising(value: Option<Value>, functions: usize) -> Result<Option<Vec<usize>>> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let Ok(places) = serde_json::from_value::<Vec<usize>>(value) else {
        return wrong("the order of its numbers is not a list of places");
    };
    let mut sorted = places.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..functions) {
        return wrong(format!("the order of its {functions} numbers does not name each place once"));
    }
    Ok(Some(places))
}

fn texts(name: &str, array: Array) -> Result<Vec<String>> {
    match array.entries {
        Entries::Text { names, codes } if array.shape.len() == 1 => {
            // Checked when the array was read.
            Ok(codes.iter().filter_map(|code| names.get(*code as usize)).cloned().collect())
        }
        _ => wrong(format!("the array {name:?} is not a list of texts")),
    }
}

fn finite(name: &str, entries: &[f64]) -> Result<()> {
    match entries.iter().position(|entry| !entry.is_finite()) {
        None => Ok(()),
        Some(at) => wrong(format!("the array {name:?} has {} at entry {at}", entries[at])),
    }
}
