//! Weights of classes, which multiply the weights of their rows in the loss. Scores do not see them.

use std::sync::Arc;

use crate::error::Result;
use crate::estimator::options::setting;
use crate::fit::request::Task;
use crate::fit::row_classes::RowClasses;
use crate::loss::objective::Objective;
use crate::model::arrangement::Arrangement;
use crate::model::label_value::LabelValue;

/// Weights of classes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum ClassWeights {
    /// All 1.
    #[default]
    Equal,
    /// All classes have the same total, in each fold.
    Balanced,
    /// These; 1 for classes that are not named.
    Named(Vec<(LabelValue, f64)>),
}

impl ClassWeights {
    /// Rows of these classes, by their places among `values`, with these weights.
    pub fn of_rows(&self, values: &[LabelValue], class: &[usize], weight: Option<&Vec<f64>>) -> Result<RowClasses> {
        let rows = RowClasses::new(class.to_vec(), weight.cloned());
        Ok(match self {
            Self::Equal => rows,
            Self::Balanced => rows.balanced(),
            Self::Named(named) => rows.weighing(self::named(named, values)?),
        })
    }
}

/// The machines of an arrangement for the rows of these classes, each with its objective.
pub(crate) fn machines_of(
    arrangement: &Arrangement,
    classes: RowClasses,
    objective: impl Fn(usize) -> Objective,
) -> Vec<Task> {
    let classes = Arc::new(classes);
    let task = |m: usize| {
        let (y, rows) = arrangement.targets(m, classes.class());
        let weight = match (classes.weight(), &rows) {
            (Some(weight), Some(rows)) => Some(rows.iter().map(|&i| weight[i]).collect()),
            (weight, _) => weight.map(<[f64]>::to_vec),
        };
        Task::new(objective(m), &y).with_weight(weight).of_classes(Some(classes.clone())).on_rows(rows)
    };
    (0..arrangement.machines()).map(task).collect()
}

fn named(named: &[(LabelValue, f64)], values: &[LabelValue]) -> Result<Vec<f64>> {
    let mut weights = vec![1.0; values.len()];
    for (label, weight) in named {
        let call = format!(".class_weight({label}, {weight})");
        let Some(class) = values.iter().position(|value| value == label) else {
            let known: Vec<String> = values.iter().map(ToString::to_string).collect();
            return setting(call, format!("{label} is not a class of y, which are {}", known.join(", ")));
        };
        if !(*weight > 0.0 && weight.is_finite()) {
            return setting(call, "the weight of a class must be a finite number > 0");
        }
        weights[class] = *weight;
    }
    Ok(weights)
}
