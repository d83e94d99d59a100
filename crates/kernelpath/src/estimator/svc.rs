//! A short name for the classifier that most users want.

use crate::estimator::classifier::Classifier;

/// The support vector classifier: [`Classifier::svm`].
#[derive(Debug, Clone, Copy)]
pub struct Svc;

impl Svc {
    /// Starts from the defaults of [`Classifier::svm`].
    pub fn builder() -> Classifier {
        Classifier::svm()
    }
}
