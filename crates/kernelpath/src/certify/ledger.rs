//! Where solutions go: a ledger certifies them in batches, and keeps of each one only what is needed later.

use std::sync::{Arc, Mutex, PoisonError};

use crate::certify::record::{Outcome, Record, Status};
use crate::error::Result;
use crate::observe::Control;

/// One problem of a fit at every C: a fold, or all rows.
pub(crate) struct Problem {
    /// Weight of each unit; 0 holds it out.
    pub weight: Arc<[f64]>,
    pub keeps: Keeps,
}

/// What is needed of a problem's solutions later.
#[derive(Clone)]
pub(crate) enum Keeps {
    /// The coefficients, and f at all units without the intercept.
    All,
    /// The coefficients.
    Coefficients,
    /// The values f + b at these units.
    Values(Vec<usize>),
}

/// A solver's answer to one problem at one C.
pub(crate) struct Solution {
    /// Position of the problem in the ledger.
    pub problem: usize,
    /// Position of C in the grid.
    pub c: usize,
    /// β, or the weights w of features; for several classes, class after class.
    pub coef: Vec<f64>,
    /// The intercept of each output.
    pub b: Vec<f64>,
    /// f without the intercepts, if the solver knows it in double precision.
    pub f: Option<Vec<f64>>,
    pub outcome: Outcome,
}

/// A solution whose f was recomputed, to be certified.
#[derive(Clone, Copy)]
pub(crate) struct Model<'a> {
    pub weight: &'a [f64],
    pub c: f64,
    pub coef: &'a [f64],
    pub b: &'a [f64],
    /// f without the intercepts, class after class.
    pub f: &'a [f64],
    /// The solver's dual point at this f; empty if the judge finds one by itself.
    pub theta: &'a [f64],
    pub outcome: Outcome,
}

/// The record of a model, or of the constant model that takes its place.
pub(crate) struct Judged {
    pub record: Record,
    /// Whether the record is that of the best constant model, whose coefficients are 0.
    pub is_constant: bool,
    /// On features, Zᵀθ of the θ that was judged; else empty.
    pub image: Vec<f64>,
}

impl Judged {
    /// The record of the model itself.
    pub fn model(record: Record) -> Self {
        Self { record, is_constant: false, image: Vec::new() }
    }

    /// If nothing bounds the gap of a model, or rounding noise hides it, the best constant model takes its place,
    /// provided that the constant model converged or that only its objective is finite. So every model that was run has a
    /// finite gap, and a model of constant targets is exact.
    pub fn or_constant(self, constant: Record) -> Self {
        let is_known = constant.certificate.is_finite() && !self.record.certificate.is_finite();
        let is_constant = constant.status == Status::Converged || is_known;
        if is_constant { Self { record: constant, is_constant, ..self } } else { self }
    }
}

/// The certificate of one kind of problem on one operator. It knows nothing of solvers.
pub(crate) trait Judge: Sync {
    /// Units.
    fn n(&self) -> usize;
    /// Values per unit: 1, or one per class.
    fn outputs(&self) -> usize {
        1
    }
    /// The tolerance of the gap.
    fn tol(&self) -> f64;
    /// f of models with these coefficients, in double precision.
    fn values(&self, coefs: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>>;
    /// The intercepts that are reported, near those of the solver.
    fn intercepts(&self, _weight: &[f64], _f: &[f64], b: Vec<f64>) -> Vec<f64> {
        b
    }
    /// Turns the intercepts of a model into those for rows as they are given, if the operator is one of other rows.
    fn given_intercepts(&self, _coef: &[f64], _b: &mut [f64]) {}
    fn judge(&self, models: &[Model], control: &Control) -> Result<Vec<Judged>>;
}

/// Solutions whose f was recomputed.
pub(crate) struct Batch {
    solutions: Vec<Solution>,
    fs: Vec<Vec<f64>>,
    thetas: Vec<Vec<f64>>,
}

impl Batch {
    /// f of the solution at position `k`, without the intercepts.
    pub fn f(&self, k: usize) -> &[f64] {
        &self.fs[k]
    }

    /// The intercepts of the solution at position `k`.
    pub fn b(&self, k: usize) -> &[f64] {
        &self.solutions[k].b
    }

    /// Puts the solver's intercepts and its dual point in the place of those at position `k`.
    pub fn replace(&mut self, k: usize, taken: Taken) {
        (self.solutions[k].b, self.thetas[k]) = (taken.b, taken.theta);
    }
}

/// What a solver makes of f as the ledger recomputed it: other intercepts, and a dual point.
pub(crate) struct Taken {
    pub b: Vec<f64>,
    pub theta: Vec<f64>,
}

/// What is kept of a problem. Every vector has one entry per C, which is empty where it is not kept, or where the
/// problem was not run.
pub(crate) struct Kept {
    pub records: Vec<Record>,
    pub coef: Vec<Vec<f64>>,
    /// f at all units, without the intercept.
    pub f: Vec<Vec<f64>>,
    /// f + b at the wanted units, unit after unit.
    pub values: Vec<Vec<f64>>,
}

impl Kept {
    /// At each C, what was kept of the better of two solutions.
    pub fn or_better(mut self, other: Self) -> Self {
        let Self { records, coef, f, values } = other;
        for (c, (((record, coef), f), values)) in records.into_iter().zip(coef).zip(f).zip(values).enumerate() {
            if record.is_better_than(&self.records[c]) {
                (self.records[c], self.coef[c], self.f[c], self.values[c]) = (record, coef, f, values);
            }
        }
        self
    }
}

/// All problems of a task, and what is known of their solutions.
pub(crate) struct Ledger<'a, J> {
    judge: &'a J,
    pub problems: &'a [Problem],
    pub cs: &'a [f64],
    control: &'a Control,
    kept: Mutex<Vec<Kept>>,
}

impl<'a, J: Judge> Ledger<'a, J> {
    pub fn new(judge: &'a J, problems: &'a [Problem], cs: &'a [f64], control: &'a Control) -> Self {
        let empty = || vec![Vec::new(); cs.len()];
        let nothing = || Kept {
            records: vec![Record::not_run(judge.outputs()); cs.len()],
            coef: empty(),
            f: empty(),
            values: empty(),
        };
        let kept = Mutex::new(problems.iter().map(|_| nothing()).collect());
        Self { judge, problems, cs, control, kept }
    }

    /// The gap that a model must reach.
    pub fn tol(&self) -> f64 {
        self.judge.tol()
    }

    /// Computes f for all solutions of the batch in one product, unless it is known.
    pub fn recomputed(&self, mut solutions: Vec<Solution>) -> Result<Batch> {
        let unknown = solutions.iter().filter(|solution| solution.f.is_none());
        let coefs: Vec<&[f64]> = unknown.map(|solution| &solution.coef[..]).collect();
        let mut products = self.judge.values(&coefs, self.control)?.into_iter();
        let fs: Vec<Vec<f64>> =
            solutions.iter_mut().filter_map(|solution| solution.f.take().or_else(|| products.next())).collect();
        for (solution, f) in solutions.iter_mut().zip(&fs) {
            let weight = &self.problems[solution.problem].weight;
            solution.b = self.judge.intercepts(weight, f, std::mem::take(&mut solution.b));
        }
        let thetas = vec![Vec::new(); solutions.len()];
        Ok(Batch { solutions, fs, thetas })
    }

    /// Judges and keeps each solution of a batch. A later solution of the same problem replaces an earlier one. `seen`
    /// gets each solution's position in the batch, and what was judged.
    pub fn settle(&self, batch: Batch, mut seen: impl FnMut(usize, &Judged)) -> Result<()> {
        let Batch { solutions, fs, thetas } = batch;
        let mut models = Vec::with_capacity(solutions.len());
        for ((Solution { problem, c, coef, b, outcome, .. }, f), theta) in solutions.iter().zip(&fs).zip(&thetas) {
            let (weight, c) = (&self.problems[*problem].weight, self.cs[*c]);
            models.push(Model { weight, c, coef, b, f, theta, outcome: *outcome });
        }
        let judged = self.judge.judge(&models, self.control)?;
        for (at, ((mut solution, mut f), judged)) in solutions.into_iter().zip(fs).zip(judged).enumerate() {
            if judged.is_constant {
                solution.coef.fill(0.0);
                f.fill(0.0);
            }
            seen(at, &judged);
            self.keep(solution, f, judged.record);
        }
        Ok(())
    }

    /// A problem that keeps values needs its intercepts no more: those of its record become the ones for rows as they are
    /// given.
    fn keep(&self, solution: Solution, f: Vec<f64>, mut record: Record) {
        let Solution { problem, c, coef, .. } = solution;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut kept[problem];
        match &self.problems[problem].keeps {
            Keeps::All => (kept.coef[c], kept.f[c]) = (coef, f),
            Keeps::Coefficients => kept.coef[c] = coef,
            Keeps::Values(units) => {
                let n = self.judge.n();
                let of_unit = |&u: &usize| {
                    let (f, u) = (&f, u);
                    record.b.iter().enumerate().map(move |(output, b)| f[output * n + u] + b)
                };
                kept.values[c] = units.iter().flat_map(of_unit).collect();
                self.judge.given_intercepts(&coef, &mut record.b);
            }
        }
        kept.records[c] = record;
    }

    /// What was kept, problem by problem.
    pub fn close(self) -> Vec<Kept> {
        self.kept.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::certify::certificate::Certificate;

    #[test]
    fn a_second_solve_that_ran_out_of_time_drops_no_model() {
        let record = |status, gap: f64| {
            let certificate = Certificate { primal: 1.0, dual: 1.0 - gap, noise: 0.0 };
            Record { status, steps: 1, certificate, b: vec![gap] }
        };
        let kept = |records: Vec<Record>, mark: f64| {
            let of = || vec![vec![mark]; records.len()];
            Kept { coef: of(), f: of(), values: of(), records }
        };
        let first = vec![record(Status::Stalled, 1e-3), record(Status::Converged, 1e-7), record(Status::Stalled, 1e-3)];
        let again = vec![record(Status::Converged, 1e-8), record(Status::TimeLimit, 0.5), Record::not_run(1)];
        let better = kept(first, 1.0).or_better(kept(again, 2.0));
        let statuses: Vec<Status> = better.records.iter().map(|record| record.status).collect();
        assert_eq!(statuses, [Status::Converged, Status::Converged, Status::Stalled]);
        for of in [&better.coef, &better.f, &better.values] {
            assert_eq!(*of, [[2.0], [1.0], [1.0]]);
        }
    }
}
