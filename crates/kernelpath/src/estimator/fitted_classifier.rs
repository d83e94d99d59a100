//! A trained and tuned classifier.

use crate::certify::certificate::Certificate;
use crate::data::rows::IntoRows;
use crate::error::Result;
use crate::estimator::classifier::{Classifier, listed};
use crate::estimator::fitted::{Fitted, shared_results};
use crate::estimator::label::{Label, encoded};
use crate::estimator::options::{Tune, setting};
use crate::estimator::saving::{Layout, Particulars};
use crate::fit::metrics::{accuracy, balanced_accuracy, neg_log_loss, roc_auc};
use crate::fit::scoring::Scoring;
use crate::model::arrangement::Arrangement;
use crate::model::attributes::{Array, Entries};
use crate::model::calibrate::Calibration;
use crate::model::label_value::LabelValue;
use crate::model::predictor::Outputs;
use crate::model::probabilities::Odds;
use crate::model::saved::SavedModel;

/// A trained and tuned classifier, made by [`Classifier::fit`].
///
/// ```
/// use kernelpath::Classifier;
///
/// let x: Vec<f64> = (0..60).map(|i| (0.37 * f64::from(i)).sin()).collect();
/// let labels: Vec<i32> = x.iter().map(|x| if *x > 0.3 { 7 } else { -2 }).collect();
/// let model = Classifier::logistic().cs([0.1, 1.0, 10.0]).fit((&x[..], 1), &labels)?;
/// assert_eq!(model.classes(), [-2, 7]);
/// assert_eq!(model.predict((&[0.9][..], 1))?, [7]);
/// let p = model.predict_proba((&[0.9][..], 1))?;
/// assert!(p[1] > 0.5 && (p[0] + p[1] - 1.0).abs() < 1e-12);
/// assert!(model.verify((&x[..], 1), &labels)?[0].gap() <= 1e-6);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FittedClassifier<L> {
    pub(crate) builder: Classifier,
    pub(crate) fitted: Fitted,
    pub(crate) classes: Vec<L>,
    pub(crate) values: Vec<LabelValue>,
    pub(crate) arrangement: Arrangement,
    pub(crate) odds: Option<Odds>,
    /// Out-of-fold values of the machines, row after row.
    pub(crate) held_out: Vec<f64>,
    /// Support vectors of each class.
    pub(crate) support_counts: Vec<i32>,
}

shared_results!([L] FittedClassifier<L>);

impl<L: Clone> FittedClassifier<L> {
    /// The classes, sorted.
    pub fn classes(&self) -> &[L] {
        &self.classes
    }

    /// The label of every row: of two classes the second where the decision value is > 0, of more classes that with the
    /// largest decision value.
    pub fn predict<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<L>> {
        let decision = self.decision_function(x)?;
        Ok(self.arrangement.predicted(&decision).into_iter().map(|c| self.classes[c].clone()).collect())
    }
}

impl<L> FittedClassifier<L> {
    /// For two classes, f of every row. For more, one value for each class, row after row, the largest of which is the
    /// prediction: votes and a fraction that decides between equal votes (one against one), or the value of the class
    /// (one against the rest, multinomial).
    ///
    /// For a precomputed kernel, `x` holds the kernel between the new rows and all training rows.
    pub fn decision_function<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        self.arrangement.decision(self.fitted.values(&x.into_rows()?)?)
    }

    /// The values of the machines themselves, row after row. Machine m of one against one belongs to
    /// [`pairs`](Self::pairs)`[m]`.
    pub fn machine_values<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        self.fitted.values(&x.into_rows()?)
    }

    /// For one against one, the two classes of each machine, as places in [`classes`](Self::classes): a positive value
    /// is for the first. `None` for other arrangements.
    pub fn pairs(&self) -> Option<&[(usize, usize)]> {
        if let Arrangement::Pairs { pairs, .. } = &self.arrangement { Some(pairs) } else { None }
    }

    /// The probability of each class, in the order of [`classes`](Self::classes), row after row: calibrated as
    /// [`Classifier::probability`] says, or for logistic losses without calibration.
    ///
    /// [`predict`](Self::predict) goes by decision values. It may differ from the most probable class where that is
    /// close.
    pub fn predict_proba<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        let odds = self.known_odds()?;
        Ok(odds.probabilities(&self.arrangement, &self.fitted.values(&x.into_rows()?)?))
    }

    /// The logarithm of each probability. For two classes, and for the multinomial loss, it is finite even where a
    /// probability rounds to 0.
    pub fn predict_log_proba<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        let odds = self.known_odds()?;
        Ok(odds.log_probabilities(&self.arrangement, &self.fitted.values(&x.into_rows()?)?))
    }

    fn known_odds(&self) -> Result<&Odds> {
        let problem = "no probabilities were asked for; fit with `.probability(Method::Sigmoid)`";
        self.odds.as_ref().map_or_else(|| setting(".predict_proba(x)", problem), Ok)
    }

    /// The map from the values of each machine to the probability of its positive class, if
    /// [`Classifier::probability`] asked for it.
    pub fn calibrations(&self) -> &[Calibration] {
        if let Some(Odds::Calibrated(maps)) = &self.odds { maps } else { &[] }
    }

    /// Decision values of the training rows from models that did not see them, at the chosen place, in the shape of
    /// [`decision_function`](Self::decision_function). NaN for rows that were never held out, or have weight 0.
    pub fn out_of_fold(&self) -> Result<Vec<f64>> {
        self.arrangement.decision(self.held_out.clone())
    }

    /// The score of the predictions for `x`, with weights of 1: by [`Classifier::scoring`](Classifier::scoring), or
    /// else the accuracy. A label that is no class of the fit is an error.
    pub fn score<'a, M: Label>(&self, x: impl IntoRows<'a>, y: &[M]) -> Result<f64> {
        let values = self.fitted.values(&x.into_rows()?)?;
        let truth = y.iter().enumerate().map(|(row, label)| self.place(row, label)).collect::<Result<Vec<_>>>()?;
        let (weight, classes) = (vec![1.0; truth.len()], self.classes.len());
        let scoring = self.builder.options.scoring.unwrap_or(Scoring::Accuracy);
        if scoring == Scoring::NegLogLoss {
            let probabilities = self.known_odds()?.probabilities(&self.arrangement, &values);
            return Ok(neg_log_loss(&truth, &probabilities, &weight, classes));
        }
        let decision = self.arrangement.decision(values)?;
        let predicted = self.arrangement.predicted(&decision);
        Ok(match scoring {
            Scoring::RocAuc => roc_auc(&truth, &decision, &weight),
            Scoring::BalancedAccuracy => balanced_accuracy(&truth, &predicted, &weight, classes),
            _ => accuracy(&truth, &predicted, &weight),
        })
    }

    fn place(&self, row: usize, label: &impl Label) -> Result<usize> {
        let value = label.value();
        self.values.binary_search(&value).or_else(|_| {
            let problem = format!("y has {value} at row {row}, which is none of the classes {}", listed(&self.values));
            setting(".score(x, y)", problem)
        })
    }

    /// The certificate of each machine at the chosen place, [recomputed](crate::verify()) from the data of the fit in
    /// double precision. Of the fit, only the coefficients are trusted.
    pub fn verify<'a, M: Label>(&self, x: impl IntoRows<'a>, y: &[M]) -> Result<Vec<Certificate>> {
        let counted = self.fitted.counted(x.into_rows()?, y.len())?;
        let labels = encoded(y, counted.rows())?;
        if labels.values != self.values {
            let (found, known) = (listed(&labels.values), listed(&self.values));
            return setting(".verify(x, y)", format!("y has the classes {found}, but the model was fitted on {known}"));
        }
        let tasks = self.builder.tasks(&self.arrangement, &labels, counted.weight.as_ref())?;
        self.fitted.verify(&counted, &tasks)
    }

    /// The model by itself, as a file holds it.
    pub fn saved(&self) -> SavedModel {
        let builder = &self.builder;
        let (estimator, _) = builder.names();
        let names = (0..self.arrangement.machines()).map(|m| self.machine_name(m)).collect();
        let names = if matches!(self.arrangement, Arrangement::Two | Arrangement::Together { .. }) {
            Vec::new()
        } else {
            names
        };
        let layout =
            Layout { is_joint: !names.is_empty() && builder.tune_by() == Tune::Joint, names, has_own_grids: false };
        let mut attributes = Vec::new();
        let (n, outputs) = (self.held_out.len() / self.arrangement.outputs(), self.values.len());
        if let Ok(decision) = self.out_of_fold() {
            let shape = if self.arrangement == Arrangement::Two { vec![n] } else { vec![n, outputs] };
            attributes.push(("oof_decision_", Array::of_f64(shape, decision).into()));
        }
        if let Some(odds) = &self.odds {
            let probabilities = odds.probabilities(&self.arrangement, &self.held_out);
            attributes.push(("oof_proba_", Array::of_f64([n, outputs], probabilities).into()));
        }
        let counts = Array { shape: vec![outputs], entries: Entries::I32(self.support_counts.clone()) };
        attributes.push(("n_support_", counts.into()));
        let (labels, arrangement, odds) = (self.values.clone(), self.arrangement.clone(), self.odds.clone());
        let outputs = Outputs::Classes { labels, arrangement, odds };
        let parameters = builder.parameters();
        self.fitted.saved(Particulars { estimator, parameters, layout, outputs, attributes })
    }

    /// What a machine of two classes sets apart.
    fn machine_name(&self, m: usize) -> String {
        match &self.arrangement {
            Arrangement::Pairs { pairs, .. } => {
                format!("{} against {}", self.values[pairs[m].0], self.values[pairs[m].1])
            }
            _ => format!("{} against the rest", self.values[m]),
        }
    }
}
