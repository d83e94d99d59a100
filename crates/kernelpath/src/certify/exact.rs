//! The certificates of one loss on a kernel matrix, and what all problems of the loss share.

use crate::certify::certificate::{Claim, certify};
use crate::certify::ledger::{Judge, Judged, Model};
use crate::certify::record::{Record, Settings, Status, record};
use crate::error::Result;
use crate::kernel::accuracy::KernelError;
use crate::kernel::gram::{Gram, PADDING};
use crate::loss::intercept::{constant_intercept, middle_intercept};
use crate::loss::scalar::{Kinks, Loss};
use crate::numeric::entry::Entry;
use crate::observe::Control;

/// What all problems of one loss on one Gram matrix share.
pub(crate) struct Shared<'a, T> {
    pub gram: &'a Gram<T>,
    pub diagonal: Vec<f64>,
    pub loss: Loss,
    /// Target of each unit.
    pub y: Vec<f64>,
    /// The loss of each unit in the form that the box QP needs; empty unless the loss is piecewise linear.
    pub kinks: Vec<Kinks>,
    pub settings: Settings,
    /// How well the kernel matrix is known.
    pub error: KernelError,
}

impl<'a, T: Entry> Shared<'a, T> {
    pub fn new(gram: &'a Gram<T>, loss: Loss, y: Vec<f64>, settings: Settings) -> Self {
        let diagonal = gram.diagonal();
        let kinks = y.iter().map_while(|&y| loss.kinks(y)).collect();
        Self { gram, diagonal, loss, y, kinks, settings, error: gram.error() }
    }

    fn records(&self, models: &[Model], error: &KernelError, control: &Control) -> Result<Vec<Record>> {
        let weights: Vec<Vec<f64>> =
            models.iter().map(|model| model.weight.iter().map(|w| w * model.c).collect()).collect();
        let claims: Vec<Claim> = (models.iter().zip(&weights))
            .map(|(&Model { coef, b, f, .. }, weight)| Claim { weight, beta: coef, b: b[0], k_beta: f })
            .collect();
        let k_times = |thetas: &[&[f64]]| self.gram.times(thetas, control);
        let certificates = certify(self.loss, &self.y, &claims, error, self.settings.tol, k_times)?;
        let recorded =
            |(model, certificate): (&Model, _)| record(model.outcome, certificate, model.b.to_vec(), self.settings.tol);
        Ok(models.iter().zip(certificates).map(recorded).collect())
    }

    /// The record of a model whose gap is not known at first.
    fn judge_again(&self, record: Record, model: &Model, control: &Control) -> Result<Judged> {
        // The gap may be hidden by the rounding noise of f alone: summed once more, in lanes, f has less noise.
        let lanes = KernelError { lanes: PADDING, ..self.error.clone() };
        let f = self.gram.times_in_lanes(model.coef, control)?;
        let again = self.records(&[Model { f: &f, ..*model }], &lanes, control)?.remove(0);
        if again.status == Status::Converged {
            return Ok(Judged::model(again));
        }
        let zeros = vec![0.0; self.y.len()];
        let b = [constant_intercept(self.loss, &self.y, model.weight)];
        let constant = Model { coef: &zeros, f: &zeros, b: &b, ..*model };
        let other = self.records(&[constant], &self.error, control)?.remove(0);
        Ok(Judged::model(record).or_constant(other))
    }
}

impl<T: Entry> Judge for Shared<'_, T> {
    fn n(&self) -> usize {
        self.gram.n()
    }

    fn tol(&self) -> f64 {
        self.settings.tol
    }

    fn values(&self, coefs: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        let (distinct, product_of) = distinct(coefs);
        let products = self.gram.times(&distinct, control)?;
        let scaled = |&(product, ratio): &(usize, f64)| products[product].iter().map(|f| ratio * f).collect();
        Ok(product_of.iter().map(scaled).collect())
    }

    fn intercepts(&self, weight: &[f64], f: &[f64], b: Vec<f64>) -> Vec<f64> {
        vec![middle_intercept(self.loss, &self.y, weight, f, b[0])]
    }

    fn given_intercepts(&self, coef: &[f64], b: &mut [f64]) {
        self.gram.tilt.intercepts(coef, b);
    }

    fn judge(&self, models: &[Model], control: &Control) -> Result<Vec<Judged>> {
        let judged = |(record, model): (Record, &Model)| {
            if record.is_known() { Ok(Judged::model(record)) } else { self.judge_again(record, model, control) }
        };
        self.records(models, &self.error, control)?.into_iter().zip(models).map(judged).collect()
    }
}

/// Finds out which products Kβ are needed. Returns the vectors to multiply and, for each of `betas`, the position of
/// one of these vectors and the factor that turns it into this β.
///
/// Solutions repeat at large C, once no row is at its bound any more. They are multiples of each other at small C,
/// while all rows are at their bounds. In both cases one product serves them all.
pub(crate) fn distinct<'a>(betas: &[&'a [f64]]) -> (Vec<&'a [f64]>, Vec<(usize, f64)>) {
    let mut distinct: Vec<&[f64]> = Vec::new();
    let mut source = Vec::with_capacity(betas.len());
    for beta in betas {
        let ratio = distinct.last().and_then(|last| multiple(beta, last));
        if ratio.is_none() {
            distinct.push(beta);
        }
        source.push((distinct.len() - 1, ratio.unwrap_or(1.0)));
    }
    (distinct, source)
}

/// The factor that turns `b` into `a` up to rounding, if there is one.
fn multiple(a: &[f64], b: &[f64]) -> Option<f64> {
    let at = b.iter().position(|b| *b != 0.0)?;
    let ratio = a[at] / b[at];
    let is_multiple = |(a, b): (&f64, &f64)| (a - ratio * b).abs() <= 4.0 * f64::EPSILON * a.abs();
    a.iter().zip(b).all(is_multiple).then_some(ratio)
}
