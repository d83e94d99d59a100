//! The problems of one task: which they are, and what was found.

use crate::certify::classes::Classes;
use crate::certify::ledger::{Judge, Keeps, Kept, Ledger, Problem};
use crate::data::units::Units;
use crate::error::Result;
use crate::fit::folds::{Folds, counts};
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
    pub folds: Vec<Kept>,
    /// `[c][unit]`, if rows are left out one by one.
    pub left_out: Vec<Vec<LeftOut>>,
    pub seconds: f64,
}

/// The method that solved the problems of a task, what was kept of them, and the models of rows left out one by one.
pub(crate) type Found = (Method, Vec<Kept>, Vec<Vec<LeftOut>>);

/// The problems of a task: the refit first, as it takes longest, then the folds. If `keeps_values`, the folds keep the
/// values of their test rows, else their coefficients.
pub(crate) fn problems(
    request: &Request,
    task: &Task,
    (placed, units): (&Placed, &Units),
    keeps_values: bool,
) -> Vec<Problem> {
    let refit = if request.folds == Folds::LeaveOneOut { Keeps::All } else { Keeps::Coefficients };
    let mut problems = vec![Problem { weight: placed.weights(task, &|_| 1.0).into(), keeps: refit }];
    problems.extend(request.folds.splits().iter().map(|fold| {
        let count = counts(request.x.nrows(), &fold.train);
        let keeps = if keeps_values { Keeps::Values(units.of(&fold.test)) } else { Keeps::Coefficients };
        Problem { weight: placed.weights(task, &|i| count[i]).into(), keeps }
    }));
    problems
}

/// Solves the problems of classes that are learned together. `y` holds the class of each unit, counted from 0.
pub(crate) fn solve_classes<K: Operator>(
    kernel: &K,
    request: &Request,
    (y, outputs): (&[f64], usize),
    problems: &[Problem],
    workers: Workers,
    control: &Control,
) -> Result<Found> {
    let classes = Classes::new(kernel, y, outputs, request.settings);
    let visit = SolveAll { judge: &classes, problems, cs: request.cs, workers, control };
    let kept = visit.with(|problems| Ok(vec![SoftmaxNewton::new(&classes, weights(problems), control)?]))?;
    Ok((request.solver.method_of_classes()?, kept, Vec::new()))
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
