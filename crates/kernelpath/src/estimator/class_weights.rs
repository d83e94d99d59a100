//! Weights of classes, which multiply the weights of their rows in the loss. Scores do not see them.

use crate::error::Result;
use crate::estimator::options::setting;
use crate::model::label_value::LabelValue;

/// Weights of classes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum ClassWeights {
    /// All 1.
    #[default]
    Equal,
    /// (sum of all weights) / (number of classes · sum of the weights of the class).
    Balanced,
    /// These; 1 for classes that are not named.
    Named(Vec<(LabelValue, f64)>),
}

impl ClassWeights {
    /// The weight of each row in the loss, given its class and its own weight; `None`: all 1.
    pub fn in_loss(
        &self,
        values: &[LabelValue],
        class: &[usize],
        weight: Option<&Vec<f64>>,
    ) -> Result<Option<Vec<f64>>> {
        let own = |i: usize| weight.map_or(1.0, |weight| weight[i]);
        let of_class = match self {
            Self::Equal => return Ok(weight.cloned()),
            Self::Balanced => {
                let mut totals = vec![0.0; values.len()];
                class.iter().enumerate().for_each(|(i, c)| totals[*c] += own(i));
                let all: f64 = totals.iter().sum();
                totals.iter().map(|total| all / (values.len() as f64 * total)).collect()
            }
            Self::Named(named) => self::named(named, values)?,
        };
        Ok(Some(class.iter().enumerate().map(|(i, c)| own(i) * of_class[*c]).collect()))
    }
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
