//! By what the models of held-out rows are compared.

use crate::error::{Result, named};

/// By what C and γ are chosen. Higher is better. The score of a place in the grid is its mean over the folds.
///
/// ```
/// use kernelpath::{Classifier, Method, Scoring};
///
/// let x: Vec<f64> = (0..80).map(|i| (0.37 * f64::from(i)).sin()).collect();
/// let labels: Vec<bool> = x.iter().map(|x| *x > 0.2).collect();
/// let model = Classifier::svm()
///     .cs([0.1, 1.0, 10.0])
///     .probability(Method::Sigmoid)
///     .scoring(Scoring::NegLogLoss)
///     .fit((&x[..], 1), &labels)?;
/// assert!(model.scores().iter().flatten().all(|score| *score < 0.0));
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scoring {
    /// The share of rows whose class is predicted: what classifiers use unless another score is set.
    Accuracy,
    /// The mean over the classes of the share of their rows that are predicted.
    BalancedAccuracy,
    /// The mean log probability of the true class.
    NegLogLoss,
    /// The area under the ROC curve, of two classes.
    RocAuc,
    /// The negative mean loss of a regression: what regressors use unless another score is set. For the ε-insensitive
    /// loss, it is the negative mean absolute error.
    NegLoss,
    /// The share of the variance of the targets that is explained.
    R2,
}

impl Scoring {
    /// The names, in the order of the variants.
    pub const NAMES: &'static [&'static str] =
        &["accuracy", "balanced_accuracy", "neg_log_loss", "roc_auc", "neg_loss", "r2"];

    /// The score of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        let of_classes = [Self::Accuracy, Self::BalancedAccuracy, Self::NegLogLoss, Self::RocAuc];
        named("scoring", name, Self::NAMES, &[&of_classes[..], &[Self::NegLoss, Self::R2]].concat())
    }

    /// The name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether it compares classes; else it compares numbers.
    pub fn is_of_classes(self) -> bool {
        !matches!(self, Self::NegLoss | Self::R2)
    }
}
