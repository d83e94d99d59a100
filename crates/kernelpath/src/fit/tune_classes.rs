//! Scores of classifiers, from the values of held-out rows.

use crate::error::Result;
use crate::fit::metrics::{accuracy, balanced_accuracy, neg_log_loss, roc_auc};
use crate::fit::request::Task;
use crate::fit::scoring::Scoring;
use crate::fit::surface::{Scores, Surface};
use crate::fit::tune_numbers::at_every_place;
use crate::model::arrangement::Arrangement;
use crate::model::calibrate::{Calibration, Method};
use crate::model::probabilities::Odds;

/// The rows of a classifier, and how its machines make a class of them.
pub struct Classes<'a> {
    /// The machines' part in the classes.
    pub arrangement: &'a Arrangement,
    /// The class of each row.
    pub class: &'a [usize],
    /// The weight of each row in scores.
    pub weight: &'a [f64],
    /// The machines.
    pub tasks: &'a [Task],
    /// How values are calibrated; `None`: they are log odds themselves, or have no probabilities.
    pub method: Option<Method>,
}

impl Classes<'_> {
    /// What gives probabilities, from the values of all held-out rows, row after row.
    pub fn odds(&self, values: &[f64]) -> Result<Odds> {
        let Some(method) = self.method else { return Ok(Odds::Native) };
        let machines = self.tasks.len();
        let map = |(m, task): (usize, &Task)| calibrated(method, task, |row| values[row * machines + m]);
        Ok(Odds::Calibrated(self.tasks.iter().enumerate().map(map).collect::<Result<_>>()?))
    }

    /// The scores of all machines as one model.
    pub fn scores(&self, surface: &Surface, scoring: Scoring, all_at_once: bool) -> Result<Scores> {
        let all = || surface.machines();
        let mut odds: Vec<Option<Odds>> = vec![None; surface.places()];
        at_every_place(surface, all(), all_at_once, |rows, place, values| {
            let truth: Vec<usize> = rows.iter().map(|&i| self.class[i]).collect();
            let weight: Vec<f64> = rows.iter().map(|&i| self.weight[i]).collect();
            let classes = self.arrangement.classes();
            if scoring == Scoring::NegLogLoss {
                let odds = match &mut odds[place] {
                    Some(made) => made,
                    empty => empty.insert(self.odds(&surface.out_of_fold(all().map(|m| (m, place))))?),
                };
                let probabilities = odds.probabilities(self.arrangement, &values);
                return Ok(neg_log_loss(&truth, &probabilities, &weight, classes));
            }
            let decision = self.arrangement.decision(values)?;
            if scoring == Scoring::RocAuc {
                return Ok(roc_auc(&truth, &decision, &weight));
            }
            let predicted = self.arrangement.predicted(&decision);
            Ok(match scoring {
                Scoring::BalancedAccuracy => balanced_accuracy(&truth, &predicted, &weight, classes),
                _ => accuracy(&truth, &predicted, &weight),
            })
        })
    }
}

/// The map from the values of a machine to the probability of its positive class. Rows that no fold held out have no
/// value, and do not count.
fn calibrated(method: Method, task: &Task, value: impl Fn(usize) -> f64) -> Result<Calibration> {
    let scores: Vec<f64> = (0..task.y.len()).map(|k| value(task.row(k))).collect();
    let positive: Vec<bool> = task.y.iter().map(|y| *y > 0.0).collect();
    let counted = |(k, score): (usize, &f64)| if score.is_nan() { 0.0 } else { task.score_weight(k) };
    let weights: Vec<f64> = scores.iter().enumerate().map(counted).collect();
    Calibration::fit(method, &scores, &positive, Some(&weights))
}
