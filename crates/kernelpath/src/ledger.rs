//! Where solutions go: certified in batches, and of each what is needed later is kept.

use std::sync::Mutex;

use crate::certificate::{Certificate, Claim, KernelError, certify};
use crate::cv::Record;
use crate::error::Result;
use crate::gram::{Entry, LANES};
use crate::loss::{Loss, best_intercept, middle_intercept};
use crate::observe::Control;
use crate::problem::{Outcome, Shared, Status};

/// A fold, or all rows.
pub(crate) struct Plan {
    /// Weight of each unit; 0 holds it out.
    pub weight: Vec<f64>,
    pub keeps: Keeps,
}

/// What is needed of a plan's solutions later.
pub(crate) enum Keeps {
    /// β and f.
    All,
    /// β.
    Coefficients,
    /// f at these units.
    Values(Vec<usize>),
}

/// A solver's answer for one plan at one C.
pub(crate) struct Solution {
    pub plan: usize,
    /// Position of C in the grid.
    pub c: usize,
    pub beta: Vec<f64>,
    pub b: f64,
    pub outcome: Outcome,
}

/// What is kept of a plan: per C the record, and of β and the certified f = Kβ what is needed later; empty where not run.
pub(crate) struct Kept {
    pub records: Vec<Record>,
    pub beta: Vec<Vec<f64>>,
    pub f: Vec<Vec<f64>>,
}

/// All plans of a fit, and what is known of their solutions.
pub(crate) struct Ledger<'a, T> {
    shared: &'a Shared<'a, T>,
    pub plans: &'a [Plan],
    pub cs: &'a [f64],
    control: &'a Control,
    kept: Mutex<Vec<Kept>>,
}

impl<'a, T: Entry> Ledger<'a, T> {
    pub fn new(shared: &'a Shared<'a, T>, plans: &'a [Plan], cs: &'a [f64], control: &'a Control) -> Self {
        let nothing = || Kept {
            records: vec![Record::NOT_RUN; cs.len()],
            beta: vec![Vec::new(); cs.len()],
            f: vec![Vec::new(); cs.len()],
        };
        let kept = Mutex::new(plans.iter().map(|_| nothing()).collect());
        Self { shared, plans, cs, control, kept }
    }

    /// Recomputes Kβ of all solutions in one product, judges them and keeps them; a later solution of the
    /// same problem replaces an earlier one. `seen` gets each certified gap with Kβ.
    pub fn settle(&self, batch: Vec<Solution>, mut seen: impl FnMut(usize, f64, &[f64])) -> Result<()> {
        let betas: Vec<&[f64]> = batch.iter().map(|solution| &solution.beta[..]).collect();
        let (distinct, product_of) = distinct(&betas);
        let products = self.shared.gram.times(&distinct, self.control)?;
        let scaled = |&(product, ratio): &(usize, f64)| products[product].iter().map(|f| ratio * f).collect();
        let fs: Vec<Vec<f64>> = product_of.iter().map(scaled).collect();
        let models: Vec<Model> = (batch.iter().zip(&fs))
            .map(|(Solution { plan, c, beta, b, outcome }, f)| {
                let weight = &self.plans[*plan].weight;
                let b = middle_intercept(self.shared.loss, &self.shared.y, weight, f, *b);
                Model { weight, c: self.cs[*c], beta, b, f, outcome: *outcome }
            })
            .collect();
        let judged = judge(self.shared, &models, self.control);
        for (at, ((mut solution, mut f), Judged { record, is_constant })) in
            batch.into_iter().zip(fs).zip(judged).enumerate()
        {
            let plan = &self.plans[solution.plan];
            if is_constant {
                solution.beta.fill(0.0);
                f.fill(0.0);
            }
            seen(at, record.certificate.gap(), &f);
            let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let kept = &mut kept[solution.plan];
            kept.records[solution.c] = record;
            match &plan.keeps {
                Keeps::All => (kept.beta[solution.c], kept.f[solution.c]) = (solution.beta, f),
                Keeps::Coefficients => kept.beta[solution.c] = solution.beta,
                Keeps::Values(units) => kept.f[solution.c] = units.iter().map(|&u| f[u]).collect(),
            }
        }
        Ok(())
    }

    /// What was kept, plan by plan.
    pub fn close(self) -> Vec<Kept> {
        self.kept.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A solution with f = Kβ.
#[derive(Clone, Copy)]
pub(crate) struct Model<'a> {
    pub weight: &'a [f64],
    pub c: f64,
    pub beta: &'a [f64],
    pub b: f64,
    pub f: &'a [f64],
    pub outcome: Outcome,
}

/// The record of a model, or of the constant model in its place.
pub(crate) struct Judged {
    pub record: Record,
    /// Whether the record is that of the best constant model, β = 0.
    pub is_constant: bool,
}

/// The records of some models.
///
/// Where the objective of a model is no number, or its gap is lost in rounding, the best constant model takes its place if
/// more is known of that one: so a model that was run has a finite gap, and one of constant targets is exact.
pub(crate) fn judge<T: Entry>(shared: &Shared<T>, models: &[Model], control: &Control) -> Vec<Judged> {
    let judged = |(record, model): (Record, &Model)| {
        if record.status != Status::Inaccurate && record.certificate.is_finite() {
            return Judged { record, is_constant: false };
        }
        // Where it is noise that hides the gap, f is summed once more, with less of it.
        let lanes = KernelError { lanes: LANES, ..shared.error.clone() };
        let again = shared.gram.times_in_lanes(model.beta, control).ok();
        let again = again.map(|f| records(shared, &[Model { f: &f, ..*model }], &lanes, control).remove(0));
        if let Some(record) = again.filter(|record| record.status == Status::Converged) {
            return Judged { record, is_constant: false };
        }
        let zeros = vec![0.0; shared.y.len()];
        let b = constant_intercept(shared.loss, &shared.y, model.weight);
        let constant = Model { beta: &zeros, f: &zeros, b, ..*model };
        let other = records(shared, &[constant], &shared.error, control).remove(0);
        let is_constant =
            other.status == Status::Converged || other.certificate.is_finite() && !record.certificate.is_finite();
        Judged { record: if is_constant { other } else { record }, is_constant }
    };
    records(shared, models, &shared.error, control).into_iter().zip(models).map(judged).collect()
}

/// The b of the best constant model; of targets that are all the same, their value to the bit.
pub(crate) fn constant_intercept(loss: Loss, y: &[f64], weight: &[f64]) -> f64 {
    let mut known = y.iter().zip(weight).filter(|(_, w)| **w > 0.0).map(|(y, _)| *y);
    let first = known.next().unwrap_or(0.0);
    if !loss.is_classification() && known.all(|y| y == first) {
        return first;
    }
    best_intercept(loss, y, weight, &vec![0.0; y.len()], 0.0)
}

fn records<T: Entry>(shared: &Shared<T>, models: &[Model], error: &KernelError, control: &Control) -> Vec<Record> {
    let weights: Vec<Vec<f64>> =
        models.iter().map(|model| model.weight.iter().map(|w| w * model.c).collect()).collect();
    let claims: Vec<Claim> = (models.iter().zip(&weights))
        .map(|(&Model { beta, b, f, .. }, weight)| Claim { weight, beta, b, k_beta: f })
        .collect();
    let nothing = |thetas: &[&[f64]]| thetas.iter().map(|theta| vec![f64::NAN; theta.len()]).collect();
    let k_times = |thetas: &[&[f64]]| shared.gram.times(thetas, control).unwrap_or_else(|_| nothing(thetas));
    let certificates = certify(shared.loss, &shared.y, &claims, error, shared.settings.tol, k_times);
    let recorded = |(model, certificate): (&Model, _)| record(model.outcome, certificate, model.b, shared.settings.tol);
    models.iter().zip(certificates).map(recorded).collect()
}

/// Which of the vectors are needed to have all, and for each of all which of these and how many times it.
///
/// Solutions repeat at large C, once no row is at its bound any more, and are multiples of each other at small C, while
/// all rows are: one product serves them all.
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

/// The factor that makes `b` into `a`, if one does to rounding.
fn multiple(a: &[f64], b: &[f64]) -> Option<f64> {
    let at = b.iter().position(|b| *b != 0.0)?;
    let ratio = a[at] / b[at];
    let is_multiple = |(a, b): (&f64, &f64)| (a - ratio * b).abs() <= 4.0 * f64::EPSILON * a.abs();
    a.iter().zip(b).all(is_multiple).then_some(ratio)
}

/// The certificate has the last word on whether a model converged: its gap is at most the tolerance, and so is the noise of
/// the gap, which is below 0 by no more than that.
pub(crate) fn record<B>(outcome: Outcome, certificate: Certificate, b: B, tol: f64) -> Record<B> {
    let (gap, noise) = (certificate.gap(), certificate.relative_noise());
    let status = match outcome.status {
        _ if gap <= tol && gap >= -noise && noise <= tol => Status::Converged,
        _ if gap <= tol || noise > tol => Status::Inaccurate,
        Status::Converged => Status::Stalled,
        other => other,
    };
    Record { status, steps: outcome.steps, certificate, b }
}
