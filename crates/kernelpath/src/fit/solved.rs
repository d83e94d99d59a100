//! The problems of one task: which they are, and what was found.

use crate::certify::classes::Classes;
use crate::certify::ledger::{Judge, Keeps, Kept, Ledger, Problem};
use crate::data::units::Units;
use crate::error::Result;
use crate::fit::absent;
use crate::fit::folds::{Folds, counts};
use crate::fit::left_out::Leaving;
use crate::fit::placed::Placed;
use crate::fit::request::{Request, Task};
use crate::kernel::operator::Operator;
use crate::observe::Control;
use crate::path::leave_one_out::LeftOut;
use crate::path::schedule::{Workers, solve};
use crate::solver::choice::{Method, Visit, weights};
use crate::solver::engine::Engine;
use crate::solver::newton::multiclass::SoftmaxNewton;

/// The models of a task.
pub(crate) struct Solved {
    pub placed: Placed,
    /// Weight of each unit in the refit.
    pub weight: Vec<f64>,
    pub method: Method,
    pub refit: Kept,
    /// Of each fold; if rows are left out one by one, of balanced classes, of the models without rows of other tasks.
    pub folds: Vec<Kept>,
    /// `[c][unit]`, if rows are left out one by one.
    pub left_out: Vec<Vec<LeftOut>>,
    /// The rows of X that the task does not learn from, by the model without them, if rows are left out one by one.
    pub outside: Vec<Vec<usize>>,
    /// For each fold, or row that is left out, the constant that is its model, if there is one.
    pub constants: Vec<Option<f64>>,
    pub seconds: f64,
}

/// The method that solved the problems of a task, what was kept of them, and the models of rows left out one by one.
pub(crate) type Found = (Method, Vec<Kept>, Vec<Vec<LeftOut>>);

/// What is to be solved of a task.
pub(crate) struct Posed {
    /// The refit first, as it takes longest, then the folds that are no constants. If rows are left out one by one, the
    /// refit, and of balanced classes the models without rows that the task does not learn from.
    pub problems: Vec<Problem>,
    /// For each fold, the constant that is its model, if it is trained on one class.
    pub constants: Vec<Option<f64>>,
    /// If rows are left out one by one.
    pub leaving: Option<Leaving>,
}

impl Posed {
    /// If `keeps_values`, the folds keep the values of their test rows, else their coefficients.
    pub fn new(request: &Request, task: &Task, (placed, units): (&Placed, &Units), keeps_values: bool) -> Self {
        let n = request.x.nrows();
        let weights = |count: &dyn Fn(usize) -> f64| task.weights(count);
        let (whole, is_loo) = (weights(&|_| 1.0), request.folds == Folds::LeaveOneOut);
        let problem = |weight: &[f64], keeps| Problem { weight: placed.weights(weight).into(), keeps };
        let mut problems = vec![problem(&whole, if is_loo { Keeps::All } else { Keeps::Coefficients })];
        if is_loo {
            let leaving = Leaving::new(task, placed, n, &problems[0].weight, &whole);
            if leaving.rebalance.is_some() {
                let without = |row: usize| weights(&|i| f64::from(u8::from(i != row)));
                let others = leaving.outside.iter().map(|rows| problem(&without(rows[0]), Keeps::Coefficients));
                problems.extend(others);
            }
            return Self { problems, constants: leaving.constants.clone(), leaving: Some(leaving) };
        }
        let mut constants = Vec::new();
        for fold in request.folds.splits() {
            let count = counts(n, &fold.train);
            let weight = weights(&|i| count[i]);
            constants.push(absent::constant(task, &weight));
            if constants.last() == Some(&None) {
                let keeps = if keeps_values { Keeps::Values(units.of(&fold.test)) } else { Keeps::Coefficients };
                problems.push(problem(&weight, keeps));
            }
        }
        Self { problems, constants, leaving: None }
    }

    /// What was kept of the folds, with those that are constants in their places.
    pub fn folds(&self, solved: Vec<Kept>, cs: usize) -> Vec<Kept> {
        if self.leaving.is_some() {
            return solved;
        }
        let mut solved = solved.into_iter();
        let of_fold = |constant: &Option<f64>| match constant {
            Some(constant) => Some(absent::kept(*constant, cs)),
            None => solved.next(),
        };
        self.constants.iter().map_while(of_fold).collect()
    }
}

/// Solves the problems of classes that are learned together. `y` holds the class of each unit, counted from 0.
///
/// A fold in which a class has no weight is solved without that class, whose b would go to −∞: its probability is 0. If
/// two classes are left, they are the binary problem, like a fit of these two alone: that is the multinomial one at C/2,
/// whose objective is half of it (see [`Objective::Multinomial`](crate::loss::objective::Objective::Multinomial)).
pub(crate) fn solve_classes<K: Operator>(
    kernel: &K,
    request: &Request,
    (y, outputs): (&[f64], usize),
    problems: &[Problem],
    workers: Workers,
    control: &Control,
) -> Result<Found> {
    let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for (p, problem) in problems.iter().enumerate() {
        let there = classes_with_weight(y, outputs, &problem.weight);
        match groups.iter_mut().find(|(classes, _)| *classes == there) {
            Some((_, members)) => members.push(p),
            None => groups.push((there, vec![p])),
        }
    }
    let mut found: Vec<(usize, Kept)> = Vec::with_capacity(problems.len());
    for (classes, members) in groups {
        let is_binary = classes.len() == 2 && outputs > 2;
        let factor = if is_binary { 0.5 } else { 1.0 };
        let scaled = |p: &usize| {
            let Problem { weight, keeps } = &problems[*p];
            let weight = if is_binary { weight.iter().map(|w| factor * w).collect() } else { weight.clone() };
            Problem { weight, keeps: keeps.clone() }
        };
        let own: Vec<Problem> = members.iter().map(scaled).collect();
        // (Rows of other classes have no weight, so that any class will do for them.)
        let place = |y: &f64| classes.binary_search(&(*y as usize)).unwrap_or(0) as f64;
        let targets: Vec<f64> = y.iter().map(place).collect();
        let judge = Classes::new(kernel, &targets, classes.len(), request.settings);
        let visit = SolveAll { judge: &judge, problems: &own, cs: request.cs, workers, control };
        let kept = visit.with(|problems| Ok(vec![SoftmaxNewton::new(&judge, weights(problems), control)?]))?;
        let whole = |kept: Kept| absent::among_all(kept, &classes, outputs, factor);
        found.extend(members.into_iter().zip(kept.into_iter().map(whole)));
    }
    found.sort_by_key(|(p, _)| *p);
    let kept = found.into_iter().map(|(_, kept)| kept).collect();
    Ok((request.solver.method_of_classes()?, kept, Vec::new()))
}

/// The classes that have a row with a weight.
fn classes_with_weight(y: &[f64], outputs: usize, weight: &[f64]) -> Vec<usize> {
    let mut there = vec![false; outputs];
    y.iter().zip(weight).filter(|(_, w)| **w > 0.0).for_each(|(y, _)| there[*y as usize] = true);
    (0..outputs).filter(|&c| there[c]).collect()
}

/// Solves all problems by whatever engine it is given.
pub(crate) struct SolveAll<'a, J> {
    pub judge: &'a J,
    pub problems: &'a [Problem],
    pub cs: &'a [f64],
    pub workers: Workers,
    pub control: &'a Control,
}

impl<J: Judge> Visit for SolveAll<'_, J> {
    type Out = Vec<Kept>;

    fn with<E: Engine>(self, engines: impl Fn(&[Problem]) -> Result<Vec<E>> + Sync) -> Result<Vec<Kept>> {
        let ledger = Ledger::new(self.judge, self.problems, self.cs, self.control);
        solve(engines(self.problems)?, &ledger, self.workers, self.control)?;
        Ok(ledger.close())
    }
}
