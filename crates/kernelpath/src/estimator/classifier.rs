//! Classifiers: settings, and training.

use serde_json::{Value, json};

use crate::data::rows::IntoRows;
use crate::error::Result;
use crate::estimator::class_weights::{ClassWeights, machines_of};
use crate::estimator::fitted::Fitted;
use crate::estimator::fitted_classifier::FittedClassifier;
use crate::estimator::label::{Encoded, Label, encoded};
use crate::estimator::options::{Cv, Options, Tune, setting};
use crate::estimator::saving::tune_name;
use crate::estimator::setters::shared_settings;
use crate::estimator::training::{train, tuned};
use crate::fit::folds::Folds;
use crate::fit::request::Task;
use crate::fit::scoring::Scoring;
use crate::fit::tune::ChooseBy;
use crate::fit::tune_classes::Classes;
use crate::loss::objective::Objective;
use crate::loss::scalar::Loss;
use crate::model::arrangement::{Arrangement, MultiClass};
use crate::model::calibrate::Method;
use crate::model::file::document::json_of_label;
use crate::model::label_value::LabelValue;
use crate::model::probabilities::Odds;
use crate::model::training_rows::{TrainingRows, Truth};
use crate::observe::Control;

/// A classifier of two or more classes, to be trained and tuned in one call.
///
/// ```
/// use kernelpath::{Classifier, Method, Selection, logspace};
///
/// // Three rings.
/// let (mut x, mut labels) = (Vec::new(), Vec::new());
/// for i in 0..240 {
///     let (angle, ring) = (0.37 * f64::from(i), i % 3);
///     let radius = f64::from(1 + ring) + 0.2 * (7.0 * f64::from(i)).sin();
///     x.extend([radius * angle.cos(), radius * angle.sin()]);
///     labels.push(["inner", "middle", "outer"][ring as usize]);
/// }
/// let model = Classifier::svm()
///     .cs(logspace(1e-2, 1e3, 20)?)
///     .cv(5)
///     .selection(Selection::OneStandardError)
///     .probability(Method::Sigmoid)
///     .fit((&x[..], 2), &labels)?;
/// assert_eq!(model.classes(), ["inner", "middle", "outer"]);
/// assert_eq!(model.predict((&[0.0, 3.0][..], 2))?, ["outer"]);
/// assert!(model.predict_proba((&[0.0, 3.0][..], 2))?[2] > 0.8);
/// assert!(model.worst_gap() <= 1e-6); // 3 machines × 20 C's × 6 models, all proved
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Classifier {
    pub(crate) options: Options,
    objective: Objective,
    multi_class: Option<MultiClass>,
    tune: Tune,
    class_weights: ClassWeights,
    probability: Option<Method>,
}

shared_settings!(Classifier);

impl Classifier {
    /// The support vector machine: the hinge loss max(0, 1 − yf).
    pub fn svm() -> Self {
        Self::of(Loss::Hinge)
    }

    /// The support vector machine with squared hinge loss max(0, 1 − yf)².
    pub fn squared_svm() -> Self {
        Self::of(Loss::SquaredHinge)
    }

    /// Distance-weighted discrimination.
    pub fn dwd() -> Self {
        Self::of(Loss::Dwd)
    }

    /// Logistic regression, which has probabilities without calibration.
    pub fn logistic() -> Self {
        Self::of(Loss::Logistic)
    }

    /// Logistic regression of all classes in one problem, which has probabilities without calibration. Two classes are
    /// those of [`logistic`](Self::logistic).
    pub fn multinomial() -> Self {
        Self::of(Objective::Multinomial)
    }

    fn of(objective: impl Into<Objective>) -> Self {
        Self {
            options: Options::default(),
            objective: objective.into(),
            multi_class: None,
            tune: Tune::default(),
            class_weights: ClassWeights::default(),
            probability: None,
        }
    }

    /// How machines of two classes tell several apart; one against one unless set.
    #[must_use]
    pub fn multi_class(mut self, multi_class: MultiClass) -> Self {
        self.multi_class = Some(multi_class);
        self
    }

    /// Whether the machines of several classes choose one C together, as they do unless set, or one each.
    #[must_use]
    pub fn tune(mut self, tune: Tune) -> Self {
        self.tune = tune;
        self
    }

    /// Weights of classes in the loss that make all classes count the same: a row is multiplied by (sum of all weights) /
    /// (number of classes · sum of the weights of its class). Each fold balances its own training rows.
    #[must_use]
    pub fn balanced(mut self) -> Self {
        self.class_weights = ClassWeights::Balanced;
        self
    }

    /// The weight of one class in the loss, > 0, which multiplies the weights of its rows; 1 unless set. Scores do not
    /// see it.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)] // A reference would ask for `&` before literals.
    pub fn class_weight(mut self, label: impl Label, weight: f64) -> Self {
        let mut named = match self.class_weights {
            ClassWeights::Named(named) => named,
            ClassWeights::Equal | ClassWeights::Balanced => Vec::new(),
        };
        named.push((label.value(), weight));
        self.class_weights = ClassWeights::Named(named);
        self
    }

    /// Probabilities, calibrated on the values of held-out rows at the chosen C; none unless set, except for logistic
    /// losses.
    #[must_use]
    pub fn probability(mut self, method: Method) -> Self {
        self.probability = Some(method);
        self
    }

    /// Trains and tunes: every C, fold and γ, and the refit on all rows.
    pub fn fit<'a, L: Label>(&self, x: impl IntoRows<'a>, y: &[L]) -> Result<FittedClassifier<L::Owned>> {
        self.fit_with(x, y, &Control::default())
    }

    /// As [`fit`](Self::fit), watched and stopped through `control`.
    pub fn fit_with<'a, L: Label>(
        &self,
        x: impl IntoRows<'a>,
        y: &[L],
        control: &Control,
    ) -> Result<FittedClassifier<L::Owned>> {
        let options = &self.options;
        options.check()?;
        self.check()?;
        let x = x.into_rows()?;
        let counted = options.counted(x, y.len(), control)?;
        let labels = encoded(y, counted.rows())?;
        let arrangement = self.arrangement(labels.classes.len());
        self.check_scoring(&arrangement)?;
        let tasks = self.tasks(&arrangement, &labels, counted.weight.as_ref())?;
        let folds = options.folds(&counted, Some(&labels.class))?;
        let trained = train(options, &counted, &tasks, &folds, control)?;
        let weight = counted.weights();
        let classes = Classes {
            arrangement: &arrangement,
            class: &labels.class,
            weight: &weight,
            tasks: &tasks,
            method: self.probability,
        };
        let tuned = tuned(options, &trained, self.choose_by(&classes), None, control)?;
        let held_out = trained.out_of_fold(&tuned);
        let odds = match self.probability {
            None => self.has_native_odds().then_some(Odds::Native),
            Some(_) => Some(classes.odds(&held_out)?),
        };
        let held_out = counted.spread(held_out, arrangement.outputs());
        let values: Vec<LabelValue> = y.iter().map(Label::value).collect();
        let training = TrainingRows::of(x, Truth::Labels(&values), options.weights.as_deref());
        let fitted = Fitted::new(options, (&x, &counted), &tasks, trained, tuned, training);
        let mut support_counts = vec![0; labels.classes.len()];
        for place in fitted.support().iter().filter_map(|row| counted.place(*row)) {
            support_counts[labels.class[place]] += 1;
        }
        let Encoded { classes, values, .. } = labels;
        let builder = self.clone();
        Ok(FittedClassifier { builder, fitted, classes, values, arrangement, odds, held_out, support_counts })
    }

    /// The class in Python that fits the same, and its parameter `loss`, if it has one.
    pub(crate) fn names(&self) -> (&'static str, Option<&'static str>) {
        match self.objective {
            Objective::Scalar(Loss::Dwd) => ("KernelDWD", None),
            Objective::Scalar(Loss::Logistic) | Objective::Multinomial => ("KernelLogistic", None),
            Objective::Scalar(loss) => ("KernelSVC", Some(loss.name())),
        }
    }

    /// Whether machines choose their C together.
    pub(crate) fn tune_by(&self) -> Tune {
        self.tune
    }

    /// The parameters that only classifiers have, by their names in Python.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, Value)> {
        let multi_class = match (self.objective, self.multi_class) {
            (Objective::Multinomial, _) => "multinomial",
            (_, Some(MultiClass::OneVsRest)) => "ovr",
            _ => "ovo",
        };
        let class_weight = match &self.class_weights {
            ClassWeights::Equal => Value::Null,
            ClassWeights::Balanced => json!("balanced"),
            ClassWeights::Named(named) => {
                let items: Vec<Value> =
                    named.iter().map(|(label, weight)| json!([json_of_label(label), weight])).collect();
                json!({ "items": items })
            }
        };
        let (estimator, loss) = self.names();
        let mut parameters =
            vec![("class_weight", class_weight), ("multi_class", json!(multi_class)), ("tune", tune_name(self.tune))];
        parameters.extend(loss.map(|loss| ("loss", json!(loss))));
        if estimator != "KernelLogistic" {
            parameters.push(("probability", self.probability.map_or(json!(false), |method| json!(method.name()))));
        }
        parameters
    }

    fn has_native_odds(&self) -> bool {
        matches!(self.objective, Objective::Multinomial | Objective::Scalar(Loss::Logistic))
    }

    fn arrangement(&self, classes: usize) -> Arrangement {
        match self.objective {
            Objective::Multinomial => Arrangement::together(classes),
            Objective::Scalar(_) => Arrangement::new(self.multi_class.unwrap_or_default(), classes),
        }
    }

    /// Refuses settings that do not go together.
    fn check(&self) -> Result<()> {
        if self.objective == Objective::Multinomial {
            let use_instead = "or use `Classifier::logistic()`";
            if let Some(method) = self.probability {
                let problem =
                    format!("`Classifier::multinomial()` has probabilities already; leave it out, {use_instead}");
                return setting(format!(".probability(Method::{method:?})"), problem);
            }
            if let Some(multi_class) = self.multi_class {
                let problem =
                    format!("`Classifier::multinomial()` is one machine of all classes; leave it out, {use_instead}");
                return setting(format!(".multi_class(MultiClass::{multi_class:?})"), problem);
            }
            if self.tune == Tune::Each {
                let problem =
                    format!("`Classifier::multinomial()` is one machine with one C; leave it out, {use_instead}");
                return setting(".tune(Tune::Each)", problem);
            }
            if self.options.is_leave_one_out() {
                let problem = format!("`Classifier::multinomial()` has no leave-one-out; use `.cv(10)`, {use_instead}");
                return setting(".leave_one_out()", problem);
            }
        }
        if let (Some(method), Cv::Given(Folds::None)) = (self.probability, &self.options.cv) {
            let problem = "probabilities are fitted on values of held-out rows; use folds, such as `.cv(5)`";
            return setting(format!(".probability(Method::{method:?})"), problem);
        }
        Ok(())
    }

    fn check_scoring(&self, arrangement: &Arrangement) -> Result<()> {
        let Some(scoring) = self.options.scoring else { return Ok(()) };
        let wrong = |problem: String| setting(format!(".scoring(Scoring::{scoring:?})"), problem);
        if !scoring.is_of_classes() {
            return wrong("it scores numbers, and a classifier predicts classes; use `Scoring::Accuracy`".into());
        }
        if scoring == Scoring::NegLogLoss && self.probability.is_none() && !self.has_native_odds() {
            let way_out = "add `.probability(Method::Sigmoid)`, or use `Classifier::logistic()`";
            return wrong(format!("it scores probabilities, and this classifier has none; {way_out}"));
        }
        if scoring == Scoring::RocAuc && *arrangement != Arrangement::Two {
            let classes = arrangement.classes();
            return wrong(format!("it ranks two classes, but y has {classes}; use `Scoring::BalancedAccuracy`"));
        }
        if self.tune == Tune::Each && arrangement.machines() > 1 {
            return wrong("it scores all machines as one model; leave out `.tune(Tune::Each)`".into());
        }
        Ok(())
    }

    /// The machines, for the classes of the rows that count.
    pub(crate) fn tasks<L>(
        &self,
        arrangement: &Arrangement,
        labels: &Encoded<L>,
        weight: Option<&Vec<f64>>,
    ) -> Result<Vec<Task>> {
        let classes = self.class_weights.of_rows(&labels.values, &labels.class, weight)?;
        let objective = match (self.objective, arrangement) {
            (Objective::Multinomial, Arrangement::Two) => Objective::Scalar(Loss::Logistic),
            (objective, _) => objective,
        };
        Ok(machines_of(arrangement, classes, |_| objective))
    }

    /// How the machines choose.
    fn choose_by<'a>(&self, classes: &'a Classes<'a>) -> ChooseBy<'a> {
        let is_alone = classes.tasks.len() == 1 || self.tune == Tune::Each;
        match self.options.scoring {
            None if is_alone => ChooseBy::Apart { units: None },
            scoring => {
                let all_at_once = self.options.is_leave_one_out() && scoring.is_some();
                ChooseBy::Classes { classes, scoring: scoring.unwrap_or(Scoring::Accuracy), all_at_once }
            }
        }
    }
}

/// The values of the classes, for messages.
pub(crate) fn listed(values: &[LabelValue]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
