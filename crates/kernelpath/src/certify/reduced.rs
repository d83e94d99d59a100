//! The certificates of one loss on features, K = ZZᵀ.

use crate::certify::certificate::{FeatureClaim, certify_features, feasible};
use crate::certify::ledger::{Judge, Judged, Model};
use crate::certify::record::{Settings, record};
use crate::error::Result;
use crate::loss::intercept::{constant_intercept, middle_intercept};
use crate::loss::scalar::Loss;
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design};
use crate::numeric::parallel;
use crate::observe::Control;

/// What all problems of one loss on one set of features share.
pub(crate) struct OnFeatures<'a, T> {
    pub design: Design<'a, T>,
    /// How far each feature may be from its exact value.
    pub errors: &'a [f64],
    pub loss: Loss,
    pub y: &'a [f64],
    pub settings: Settings,
}

impl<T: Working> OnFeatures<'_, T> {
    /// The record of a model, with the image Zᵀθ of its dual point; or that of the best constant model, if more is known
    /// of it.
    fn judged(&self, model: &Model, weight: &[f64], theta: &[f64], image: Vec<f64>) -> Judged {
        let recorded = |claim: &FeatureClaim| {
            let certificate = certify_features(self.loss, self.y, claim, self.errors);
            record(model.outcome, certificate, vec![claim.b], self.settings.tol)
        };
        let first = recorded(&FeatureClaim { weight, w: model.coef, b: model.b[0], f: model.f, theta, image: &image });
        let known = first.is_known();
        let judged = Judged { image, ..Judged::model(first) };
        if known {
            return judged;
        }
        let b = constant_intercept(self.loss, self.y, weight);
        let (zeros, none) = (vec![0.0; self.y.len()], vec![0.0; model.coef.len()]);
        judged.or_constant(recorded(&FeatureClaim { weight, w: &none, b, f: &zeros, theta: &zeros, image: &none }))
    }
}

impl<T: Working> Judge for OnFeatures<'_, T> {
    fn n(&self) -> usize {
        self.y.len()
    }

    fn tol(&self) -> f64 {
        self.settings.tol
    }

    fn values(&self, coefs: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        self.design.times(coefs, Accuracy::Double, control)
    }

    fn intercepts(&self, weight: &[f64], f: &[f64], b: Vec<f64>) -> Vec<f64> {
        vec![middle_intercept(self.loss, self.y, weight, f, b[0])]
    }

    fn judge(&self, models: &[Model], control: &Control) -> Result<Vec<Judged>> {
        let points = parallel::map(models, |model| {
            let weight: Vec<f64> = model.weight.iter().map(|w| w * model.c).collect();
            let theta = feasible(self.loss, self.y, &weight, model.theta);
            (weight, theta)
        });
        let thetas: Vec<&[f64]> = points.iter().map(|(_, theta)| &theta[..]).collect();
        let images = self.design.transposed_times(&thetas, Accuracy::Double, control)?;
        let points = models.iter().zip(&points).zip(images);
        Ok(parallel::map(points, |((model, (weight, theta)), image)| self.judged(model, weight, theta, image)))
    }
}
