//! The certificates of one loss on features, K = ZZᵀ.

use crate::certify::certificate::{Certificate, dual_losses, feasible, losses, noise, or_zero};
use crate::certify::ledger::{Judge, Judged, Model};
use crate::certify::record::{Record, Settings, record};
use crate::error::Result;
use crate::kernel::accuracy::{STANDARD_ERRORS, feature_error};
use crate::loss::intercept::{constant_intercept, middle_intercept};
use crate::loss::scalar::Loss;
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design};
use crate::numeric::parallel;
use crate::numeric::simd::dot;
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
        let first = self.recorded(model, weight, theta, &image);
        let known = first.is_known();
        let judged = Judged { image, ..Judged::model(first) };
        if known {
            return judged;
        }
        let b = [constant_intercept(self.loss, self.y, weight)];
        let (zeros, none) = (vec![0.0; self.y.len()], vec![0.0; model.coef.len()]);
        let constant = Model { coef: &none, f: &zeros, b: &b, ..*model };
        judged.or_constant(self.recorded(&constant, weight, &zeros, &none))
    }

    /// The record of a model: f = Zw and ½‖w‖² take the place of Kβ and ½βᵀKβ. θ must be [feasible].
    fn recorded(&self, model: &Model, weight: &[f64], theta: &[f64], image: &[f64]) -> Record {
        let (&Self { loss, y, errors, .. }, &Model { coef: w, f, outcome, .. }) = (self, model);
        let b = model.b[0];
        let primal = losses(loss, y, weight, b, f) + 0.5 * dot(w, w);
        let dual = or_zero(dual_losses(loss, y, weight, theta) - 0.5 * dot(image, image));
        let spread = feature_error(w, errors);
        let ones = vec![1.0; y.len()];
        // To first order errors of the features change P and D alike, by Σ θᵢ times that of (Zw)ᵢ: their difference does
        // not show it.
        let of_both = STANDARD_ERRORS * dot(theta, theta).sqrt() * spread;
        let noise = noise(loss, [y, weight, theta, theta, f, &ones], b, spread, 0.0) + of_both;
        record(outcome, Certificate::new(primal, dual, noise), vec![b], self.settings.tol)
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
