//! The proof of a model by itself, such as a file holds it, recomputed from the rows of its fit.

use serde_json::Value;

use crate::certify::certificate::{Certificate, worst};
use crate::certify::record::Settings;
use crate::data::rows::{IntoRows, Rows, RowsBuf};
use crate::error::{Error, Result};
use crate::estimator::class_weights::{ClassWeights, machines_of};
use crate::estimator::counted::Counted;
use crate::estimator::label::Label;
use crate::estimator::options::setting;
use crate::fit::request::{KernelChoice, Task};
use crate::fit::verify::{Returned, verify};
use crate::kernel::shape::Shape;
use crate::loss::objective::Objective;
use crate::loss::scalar::Loss;
use crate::model::arrangement::Arrangement;
use crate::model::attributes::Attribute;
use crate::model::file::document::label_of_json;
use crate::model::label_value::LabelValue;
use crate::model::predictor::{Outputs, Predictor};
use crate::model::saved::{Machine, SavedModel};
use crate::model::training_rows::{TrainingRows, Truth};
use crate::nystrom::approximation::Nystrom;
use crate::nystrom::build::LowRank;
use crate::nystrom::landmarks::Landmarks;
use crate::observe::Control;

/// How far the rows of a fit may be from its support vectors, relative to these: roundings of a scaling that another
/// program applied.
const SAME_ROW: f64 = 1e-12;

/// What came of an attempt to prove a model anew.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Verification {
    /// These are the rows of the fit: P and D were recomputed from them.
    Recomputed(Recomputed),
    /// These are not the rows of the fit, with what differs. There is no verdict.
    OtherRows(String),
    /// Nothing can be proved of this model, whatever the rows, with the reason. There is no verdict.
    Impossible(String),
}

/// The certificates of a model, recomputed from the rows of its fit.
#[derive(Debug, Clone)]
pub struct Recomputed {
    /// The certificate of each machine.
    pub certificates: Vec<Certificate>,
    /// The tolerance that the model states.
    pub tol: f64,
    /// What contradicts the rows, so that no certificate was computed.
    pub contradiction: Option<String>,
    /// The largest gap that each machine may have: the tolerance, and what rounding and, at low rank, the new dual point
    /// add to it.
    allowed: Vec<f64>,
}

impl Recomputed {
    fn contradicted(tol: f64, contradiction: impl Into<String>) -> Self {
        Self { certificates: Vec::new(), tol, contradiction: Some(contradiction.into()), allowed: Vec::new() }
    }

    /// Whether machine `m` is proved optimal to the tolerance, up to rounding.
    pub fn is_proved(&self, m: usize) -> bool {
        let (Some(certificate), Some(allowed)) = (self.certificates.get(m), self.allowed.get(m)) else { return false };
        certificate.gap() <= *allowed
    }

    /// Whether every machine is proved optimal to the tolerance, up to rounding.
    pub fn is_verified(&self) -> bool {
        let machines = self.certificates.len();
        self.contradiction.is_none() && machines > 0 && (0..machines).all(|m| self.is_proved(m))
    }

    /// The largest gap; NaN if one is unknown.
    pub fn worst_gap(&self) -> f64 {
        worst(self.certificates.iter().map(Certificate::gap))
    }
}

impl SavedModel {
    /// The certificate of each machine, recomputed from the rows of the fit as [`verify`](crate::verify()) does: of the
    /// model, only coefficients, intercepts and the stated problem are taken, which are kernel, loss, C and class
    /// weights. `x` are the rows as they were given, before any scaling that the model has.
    ///
    /// The rows are known by their [digests](TrainingRows). A model without digests is proved by any rows to which it
    /// is optimal; other rows are then told by its support vectors.
    ///
    /// ```
    /// use kernelpath::{Classifier, Control, Label, LabelValue, Settings, Truth, Verification};
    ///
    /// let x: Vec<f64> = (0..60).map(|i| (0.37 * f64::from(i)).sin()).collect();
    /// let labels: Vec<&str> = x.iter().map(|x| if *x > 0.3 { "high" } else { "low" }).collect();
    /// let model = Classifier::svm().cs([0.1, 1.0, 10.0]).fit((&x[..], 1), &labels)?.saved();
    /// let values: Vec<LabelValue> = labels.iter().map(Label::value).collect();
    /// let found = model.verify((&x[..], 1), Truth::Labels(&values), None, None, 0, &Control::default())?;
    /// assert!(matches!(found, Verification::Recomputed(proof) if proof.is_verified()));
    /// let found = model.verify((&x[1..], 1), Truth::Labels(&values[1..]), None, None, 0, &Control::default())?;
    /// assert!(matches!(found, Verification::OtherRows(_)));
    /// # Ok::<(), kernelpath::Error>(())
    /// ```
    ///
    /// `tol` goes before the tolerance that the model states.
    pub fn verify<'a>(
        &self,
        x: impl IntoRows<'a>,
        truth: Truth<'_>,
        weights: Option<&[f64]>,
        tol: Option<f64>,
        threads: usize,
        control: &Control,
    ) -> Result<Verification> {
        let x = x.into_rows()?;
        check_lengths(&x, truth)?;
        let settings = Settings { tol: tol.unwrap_or_else(|| self.tol()), ..Settings::default() };
        if !(settings.tol > 0.0 && settings.tol < 1.0) {
            return setting(".verify(…)", format!("a relative gap lies between 0 and 1, got tol = {}", settings.tol));
        }
        let objectives = match self.objectives() {
            Ok(objectives) => objectives,
            Err(reason) => return Ok(Verification::Impossible(reason)),
        };
        let class_weights = match class_weights(self.parameters.get("class_weight")) {
            Ok(weights) => weights,
            Err(reason) => return Ok(Verification::Impossible(reason)),
        };
        if let Some(trained) = &self.training
            && let Some(difference) = TrainingRows::of(x, truth, weights).difference(trained)
        {
            return Ok(Verification::OtherRows(difference));
        }
        let contradiction = |reason: String| {
            Ok(match &self.training {
                Some(_) => Verification::Recomputed(Recomputed::contradicted(settings.tol, reason)),
                None => Verification::OtherRows(reason),
            })
        };
        let predictor = &self.predictor;
        let scaled = match &predictor.scaling {
            Some(scaling) if scaling.factor.len() == x.ncols() => Some(scaling.apply(&x)?),
            _ => None,
        };
        let seen = scaled.as_ref().map_or(x, RowsBuf::view);
        if let Some(reason) = other_vectors(predictor, &seen) {
            return contradiction(reason);
        }
        let counted = Counted::new(seen, x.nrows(), weights, predictor.kernel().shape)?;
        let tasks = match self.tasks(&objectives, &class_weights, truth, &counted)? {
            Ok(tasks) => tasks,
            Err(reason) => return contradiction(reason),
        };
        let basis = if self.attributes.contains_key("rank_") { Some(self.basis(&counted, control)?) } else { None };
        let (x, choice) = match &basis {
            Some(basis) => (counted.x(), KernelChoice::LowRank(basis)),
            None => (counted.x(), KernelChoice::Exact(predictor.kernel())),
        };
        let (mut certificates, mut allowed) = (Vec::new(), Vec::new());
        for (m, task) in tasks.iter().enumerate() {
            let functions = self.functions(m, tasks.len());
            let coef = match coefficients(predictor, functions.clone(), task, &counted, basis.as_ref()) {
                Ok(coef) => coef,
                Err(reason) => return contradiction(reason),
            };
            let machine = &self.machines[m];
            let model = Returned { c: machine.c, coef: &coef, b: &predictor.intercepts()[functions] };
            let certificate = verify(&x, choice, task, model, settings, threads, control)?;
            // The recorded gap was within its own noise of the tolerance. What a file states of that is not believed
            // beyond the tolerance.
            let noise = certificate.relative_noise() + machine.noise.clamp(0.0, settings.tol).max(0.0);
            let points = if basis.is_some() { 2.0 } else { 1.0 };
            allowed.push(points * settings.tol + noise);
            certificates.push(certificate);
        }
        Ok(Verification::Recomputed(Recomputed { certificates, tol: settings.tol, contradiction: None, allowed }))
    }

    /// The largest gap of a converged model, as the parameters have it.
    fn tol(&self) -> f64 {
        let stated = self.parameters.get("tol").and_then(Value::as_f64);
        stated.filter(|tol| *tol > 0.0 && *tol < 1.0).unwrap_or(Settings::default().tol)
    }

    /// What each machine minimises, or why that is not known.
    fn objectives(&self) -> std::result::Result<Vec<Objective>, String> {
        if self.machines.is_empty() || self.machines.iter().any(|machine| !(machine.c > 0.0 && machine.c.is_finite())) {
            return Err("the model states no C, so that there is no objective to verify".into());
        }
        let objective = |machine: &Machine| match &machine.loss[..] {
            "multinomial" => Ok(Objective::Multinomial),
            name => Loss::from_name(name, machine.constant).map(Objective::Scalar).map_err(|error| error.to_string()),
        };
        self.machines.iter().map(objective).collect()
    }

    /// The functions of machine `m` among those of the predictor.
    fn functions(&self, m: usize, machines: usize) -> std::ops::Range<usize> {
        let functions = self.predictor.n_values();
        if machines == 1 { 0..functions } else { m..m + 1 }
    }

    /// What each machine learns from the rows that count, or what of them contradicts the model.
    fn tasks(
        &self,
        objectives: &[Objective],
        class_weights: &ClassWeights,
        truth: Truth,
        counted: &Counted,
    ) -> Result<std::result::Result<Vec<Task>, String>> {
        let weight = counted.weight.as_ref();
        match (&self.predictor.outputs, truth) {
            (Outputs::Classes { labels: known, arrangement, .. }, Truth::Labels(labels)) => {
                if objectives.len() != arrangement.machines() {
                    return Ok(Err("the model has not a machine for each that its classes need".into()));
                }
                let is_together = matches!(arrangement, Arrangement::Together { .. });
                if objectives.iter().any(|objective| (*objective == Objective::Multinomial) != is_together) {
                    return Ok(Err("the losses of the model are not those of its classes".into()));
                }
                let place = |row: usize| known.iter().position(|label| is_same_label(label, &labels[row]));
                let Some(class) = counted.rows().map(place).collect::<Option<Vec<usize>>>() else {
                    return Ok(Err("the rows have labels that are no classes of the model".into()));
                };
                if (0..known.len()).any(|c| !class.contains(&c)) {
                    return Ok(Err("the model has classes that the rows do not have".into()));
                }
                let classes = named_as(class_weights, known).of_rows(known, &class, weight)?;
                Ok(Ok(machines_of(arrangement, classes, |m| objectives[m])))
            }
            (Outputs::Numbers { .. }, Truth::Numbers { columns, values }) => {
                let machines = objectives.len();
                let is_one =
                    columns == 1 && objectives.iter().all(|o| matches!(o, Objective::Scalar(Loss::Quantile { .. })));
                if machines != self.predictor.n_values() || objectives.contains(&Objective::Multinomial) {
                    return Ok(Err("the model has not a machine for each of its outputs".into()));
                }
                if columns != machines && !is_one {
                    return Ok(Err(format!("the model has {machines} targets, and these rows have {columns}")));
                }
                let task = |(m, objective): (usize, &Objective)| {
                    let column = if columns == 1 { 0 } else { m };
                    let y: Vec<f64> = counted.rows().map(|row| values[row * columns + column]).collect();
                    Task::new(*objective, &y).with_weight(weight.cloned())
                };
                Ok(Ok(objectives.iter().enumerate().map(task).collect()))
            }
            (Outputs::Classes { .. }, _) => setting(".verify(…)", "the model predicts labels; give a label a row"),
            _ => setting(".verify(…)", "the model predicts numbers; give numbers"),
        }
    }

    /// The landmarks of the model, and the map from their kernel to features, made anew.
    fn basis(&self, counted: &Counted, control: &Control) -> Result<Nystrom> {
        let predictor = &self.predictor;
        let rows = |support: &[usize]| support.iter().filter_map(|row| counted.place(*row)).collect::<Vec<_>>();
        let landmarks = if predictor.kernel().shape == Shape::Precomputed {
            Landmarks::Rows(rows(predictor.support()))
        } else {
            let vectors = predictor.vectors();
            Landmarks::Given(vectors.copy_rows(&(0..vectors.nrows()).collect::<Vec<_>>()))
        };
        let low_rank = LowRank::new(landmarks, predictor.coef().nrows());
        let rank = match self.attributes.get("rank_") {
            Some(Attribute::Value(value)) => value.as_u64().and_then(|rank| usize::try_from(rank).ok()),
            _ => None,
        };
        let low_rank = if let Some(rank) = rank.filter(|rank| *rank > 0) { low_rank.rank(rank) } else { low_rank };
        Nystrom::builder(predictor.kernel()).low_rank(low_rank).build_with(&counted.x(), control)
    }
}

fn check_lengths(x: &Rows, truth: Truth) -> Result<()> {
    let rows = x.nrows();
    let (what, got, expected) = match truth {
        Truth::Labels(labels) => ("the labels", labels.len(), rows),
        Truth::Numbers { columns, values } => ("the targets", values.len(), rows * columns),
    };
    if got != expected {
        return Err(Error::Length { what, got, expected, why: "what is true of each row of X" });
    }
    if let Truth::Numbers { columns, values } = truth
        && let Some(at) = values.iter().position(|value| !value.is_finite())
    {
        return Err(Error::NotFinite { what: "y", value: values[at], row: at / columns, column: at % columns });
    }
    x.check("X")
}

/// Labels are equal as Python has it: a truth value is 0 or 1, and a whole float an integer.
fn is_same_label(a: &LabelValue, b: &LabelValue) -> bool {
    let number = |label: &LabelValue| match label {
        LabelValue::Truth(value) => Some(LabelValue::Whole((*value).into())),
        LabelValue::Fraction(value) => Some(value.value()),
        LabelValue::Whole(_) => Some(label.clone()),
        LabelValue::Text(_) => None,
    };
    a == b || (number(a).is_some() && number(a) == number(b))
}

/// The weights of classes as the parameters have them, or why they are not known.
fn class_weights(value: Option<&Value>) -> std::result::Result<ClassWeights, String> {
    let unknown = || "the file holds the class weights of the fit as a text only".to_string();
    match value {
        None | Some(Value::Null) => Ok(ClassWeights::Equal),
        Some(Value::String(name)) if name == "balanced" => Ok(ClassWeights::Balanced),
        Some(Value::Object(object)) => {
            let items = object.get("items").and_then(Value::as_array).ok_or_else(unknown)?;
            let item = |item: &Value| Some((label_of_json(item.get(0)?)?, item.get(1)?.as_f64()?));
            let named = items.iter().map(item).collect::<Option<Vec<_>>>().ok_or_else(unknown)?;
            Ok(ClassWeights::Named(named))
        }
        Some(_) => Err(unknown()),
    }
}

/// The same weights, of labels as the model writes them.
fn named_as(class_weights: &ClassWeights, known: &[LabelValue]) -> ClassWeights {
    let ClassWeights::Named(named) = class_weights else { return class_weights.clone() };
    let own = |label: &LabelValue| known.iter().find(|known| is_same_label(known, label)).unwrap_or(label).clone();
    ClassWeights::Named(named.iter().map(|(label, weight)| (own(label), *weight)).collect())
}

/// Where the vectors of the model are not the rows that it says they are; `None` if they are.
fn other_vectors(predictor: &Predictor, x: &Rows) -> Option<String> {
    let (support, n) = (predictor.support(), x.nrows());
    if let Some(row) = support.iter().find(|row| **row >= n) {
        return Some(format!("the model has a coefficient for row {row}, and these are {n} rows"));
    }
    if predictor.kernel().shape == Shape::Precomputed {
        let columns = x.ncols();
        return (columns != n || predictor.width() != n).then(|| {
            format!("the model needs the kernel matrix of its fit, and this one has {n} rows and {columns} columns")
        });
    }
    let vectors = predictor.vectors();
    if vectors.ncols() != x.ncols() {
        return Some(format!("the model has {} columns, and these rows have {}", vectors.ncols(), x.ncols()));
    }
    // Landmarks need not be rows.
    if support.len() != vectors.nrows() {
        return None;
    }
    let differs = |(k, row): &(usize, &usize)| {
        let mut norm = 0.0;
        vectors.for_each_nonzero(*k, |_, value| norm += value * value);
        // NaN differs, too.
        !matches!(x.squared_distance(**row, &vectors, *k), distance if distance <= SAME_ROW * SAME_ROW * norm)
    };
    let (k, row) = support.iter().enumerate().find(differs)?;
    Some(format!("support vector {k} of the model is not row {row}"))
}

/// The coefficients of a machine: one for each row of its task, or for each landmark, function after function. Or what of
/// them belongs to no such row.
fn coefficients(
    predictor: &Predictor,
    functions: std::ops::Range<usize>,
    task: &Task,
    counted: &Counted,
    basis: Option<&Nystrom>,
) -> std::result::Result<Vec<f64>, String> {
    let coef = predictor.coef();
    if let Some(basis) = basis {
        if basis.map().nrows() != coef.nrows() {
            return Err(format!("{} landmarks of the model have features, not {}", basis.map().nrows(), coef.nrows()));
        }
        return Ok(functions.flat_map(|m| coef.col(m).iter().copied().collect::<Vec<_>>()).collect());
    }
    if predictor.support().len() != coef.nrows() {
        return Err("the model does not say which rows its support vectors are".into());
    }
    let rows = task.rows.as_ref().map_or(counted.n(), Vec::len);
    let mut all = Vec::with_capacity(rows * functions.len());
    for m in functions {
        let mut spread = vec![0.0; rows];
        for (k, row) in predictor.support().iter().enumerate().filter(|(k, _)| coef[(*k, m)] != 0.0) {
            let place = counted.place(*row).and_then(|place| task.position(place));
            let Some(place) = place else {
                return Err(format!("a machine has a coefficient for row {row}, which it did not learn from"));
            };
            // A row that is named twice has both.
            spread[place] += coef[(k, m)];
        }
        all.extend(spread);
    }
    Ok(all)
}
