//! From settings and machines to the models of every γ, and the choice among them.

use crate::error::{Error, Result};
use crate::estimator::counted::Counted;
use crate::estimator::options::{Options, setting};
use crate::fit::folds::Folds;
use crate::fit::request::{Request, Task};
use crate::fit::search::{Search, Trained};
use crate::fit::surface::Scores;
use crate::fit::tune::{ChooseBy, Tuned};
use crate::kernel::shape::KernelFn;
use crate::observe::Control;

/// Fits all machines with every γ.
pub(crate) fn train(
    options: &Options,
    counted: &Counted,
    tasks: &[Task],
    folds: &Folds,
    control: &Control,
) -> Result<Trained> {
    let (x, weight) = (counted.x(), counted.weight.as_deref());
    let cs = options.cs(counted.n())?;
    let gammas = options.tried_gammas(&x, weight)?;
    options.check_tunable(folds, (cs.len(), gammas.len()), counted.n())?;
    let kernel = KernelFn::new(options.kernel.shape, gammas[0])?;
    let mut request = Request::new(x, tasks.to_vec(), kernel, &cs);
    (request.solver, request.settings, request.folds) = (options.solver, options.settings, folds.clone());
    (request.precision, request.device, request.threads) = (options.precision, options.device, options.threads);
    let low_rank = options.low_rank.as_ref().map(|low_rank| counted.low_rank(low_rank)).transpose()?;
    let (seed, time_budget) = (options.seed, options.time_budget);
    Search { request, gammas, low_rank, weight, seed, time_budget }.run(control, &())
}

/// The places that the scores choose, or why none can be chosen. `scores` take the place of those of the losses.
pub(crate) fn tuned(
    options: &Options,
    trained: &Trained,
    by: ChooseBy,
    scores: Option<Vec<Scores>>,
    control: &Control,
) -> Result<Tuned> {
    if let Some(tuned) = trained.choose(by, options.selection, scores)? {
        return Ok(tuned);
    }
    if trained.is_timed_out() {
        let what = "any C was both scored on every fold and fitted on all rows";
        let budget = options.time_budget.map(|budget| budget.as_secs_f64()).or(control.budget_seconds());
        return Err(Error::TimeBudget { budget: budget.unwrap_or(f64::NAN), what, rows: trained.fits[0][0].n });
    }
    match options.scoring {
        Some(scoring) => {
            let problem = "gave no finite score for any C; use another score, or other folds";
            setting(format!(".scoring(Scoring::{scoring:?})"), problem)
        }
        None => setting(".fit(x, y)", "no C has a finite score: the loss of some held-out rows overflows; scale y"),
    }
}
