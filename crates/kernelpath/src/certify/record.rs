//! How a solve ended, and what is kept of its model.

use crate::certify::certificate::Certificate;

/// How a solve ended. Stopping early is a status with a valid gap, never an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// The certified gap is at most the tolerance.
    Converged,
    /// `max_iter` steps were not enough.
    MaxIter,
    /// No step improves the solution any more.
    Stalled,
    /// The time budget ended during this solve.
    TimeLimit,
    /// The time budget ended before this solve.
    #[default]
    NotRun,
    /// The gap is lost in rounding: its noise is larger than the tolerance, or it is below 0 by more than its noise.
    Inaccurate,
    /// The kernel matrix has a negative eigenvalue: the model is a stationary point at best, and no gap bounds how far
    /// it is from an optimum.
    Indefinite,
}

impl Status {
    /// The names, in the order of the variants.
    pub const NAMES: &'static [&'static str] =
        &["converged", "max_iter", "stalled", "time_limit", "not_run", "inaccurate", "indefinite"];

    /// The name of the status.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// What every solve of a fit has in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Largest relative duality gap (P − D) / max(|P|, |D|) of a converged model.
    pub tol: f64,
    /// Most steps a solve may take.
    pub max_iter: usize,
    /// Whether the caller vouches that the kernel matrix is positive semi-definite: then nobody looks, and certificates
    /// are as true as that.
    pub assume_definite: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tol: 1e-6, max_iter: 1_000_000, assume_definite: false }
    }
}

/// What a solver returns besides the point.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    pub status: Status,
    pub steps: usize,
}

/// One model of the path, as far as it is kept.
#[derive(Debug, Clone)]
pub struct Record {
    /// How its solve ended.
    pub status: Status,
    /// Steps it took.
    pub steps: usize,
    /// Its proof.
    pub certificate: Certificate,
    /// The intercept; for the multinomial loss, one per class, with sum 0. NaN where not run.
    pub b: Vec<f64>,
}

impl Record {
    /// Whether the gap is known.
    pub(crate) fn is_known(&self) -> bool {
        self.status != Status::Inaccurate && self.certificate.is_finite()
    }

    /// Whether this record of a model is worth more than another one: it converged, or neither did and its gap is at most
    /// that of the other.
    pub(crate) fn is_better_than(&self, other: &Self) -> bool {
        let converged = |record: &Self| record.status == Status::Converged;
        converged(self) || !converged(other) && self.certificate.gap() <= other.certificate.gap()
    }

    /// Of a model with that many values per row that was not run.
    pub(crate) fn not_run(outputs: usize) -> Self {
        Self { status: Status::NotRun, steps: 0, certificate: Certificate::NONE, b: vec![f64::NAN; outputs] }
    }
}

/// The certificate has the last word on whether a model converged. A model converged if its gap and the noise of the
/// gap are both at most the tolerance, and the gap is below 0 by no more than the noise.
pub(crate) fn record(outcome: Outcome, certificate: Certificate, b: Vec<f64>, tol: f64) -> Record {
    let (gap, noise) = (certificate.gap(), certificate.relative_noise());
    let status = match outcome.status {
        _ if gap <= tol && gap >= -noise && noise <= tol => Status::Converged,
        // The time was over before the gap was small, whatever its noise is.
        Status::TimeLimit if gap > tol => Status::TimeLimit,
        _ if gap <= tol || noise > tol => Status::Inaccurate,
        Status::Converged => Status::Stalled,
        other => other,
    };
    Record { status, steps: outcome.steps, certificate, b }
}

/// Takes the proof away from every model that was run. The primal value stays.
pub(crate) fn withdraw(records: &mut [Vec<Record>]) {
    for record in records.iter_mut().flatten().filter(|record| record.status != Status::NotRun) {
        record.status = Status::Indefinite;
        record.certificate = record.certificate.withdrawn();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_does_not_hide_that_the_time_was_over() {
        let of = |status, gap: f64, noise: f64| {
            let certificate = Certificate { primal: 1.0, dual: 1.0 - gap, noise };
            record(Outcome { status, steps: 1 }, certificate, vec![0.0], 1e-6).status
        };
        assert_eq!(of(Status::TimeLimit, 0.3, 1e-3), Status::TimeLimit);
        assert_eq!(of(Status::TimeLimit, 0.3, 0.0), Status::TimeLimit);
        assert_eq!(of(Status::TimeLimit, 1e-7, 0.0), Status::Converged);
        assert_eq!(of(Status::TimeLimit, 1e-7, 1e-3), Status::Inaccurate);
        assert_eq!(of(Status::Stalled, 0.3, 1e-3), Status::Inaccurate);
        assert_eq!(of(Status::Converged, 0.3, 0.0), Status::Stalled);
    }
}
