//! From settings and machines to the models of every γ.

use crate::error::{Error, Result};
use crate::estimator::counted::Counted;
use crate::estimator::options::{Options, setting};
use crate::fit::folds::Folds;
use crate::fit::request::{KernelChoice, Request, Task};
use crate::fit::result::PathFit;
use crate::fit::run::fit;
use crate::fit::surface::Surface;
use crate::fit::tune::{Tuned, Tuner};
use crate::kernel::pairs::Pairs;
use crate::kernel::shape::KernelFn;
use crate::numeric::threads::pooled;
use crate::nystrom::approximation::Nystrom;
use crate::observe::Control;

/// The models of every γ.
pub(crate) struct Trained {
    /// The kernel with each γ.
    pub kernels: Vec<KernelFn>,
    /// The landmarks of each γ, with low rank.
    pub bases: Vec<Option<Nystrom>>,
    /// `fits[gamma][machine]`.
    pub fits: Vec<Vec<PathFit>>,
    /// The values of C, before the factors of machines.
    pub cs: Vec<f64>,
    /// Seconds that the fit was allowed.
    budget: Option<f64>,
}

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
    let kernels = options.kernels(&x, weight)?;
    options.check_tunable(folds, cs.len() * kernels.len(), counted.n())?;
    let low_rank = options.low_rank.as_ref().map(|low_rank| counted.low_rank(low_rank)).transpose()?;
    // The inner products of rows are the same for every γ.
    let pairs = (kernels.len() > 1 && low_rank.is_none()).then(Pairs::default);
    let (mut bases, mut fits) = (Vec::new(), Vec::new());
    for kernel in &kernels {
        let limited = options.time_budget.map(|budget| control.limited(budget / kernels.len() as u32));
        let control = limited.as_ref().unwrap_or(control);
        let find = |low_rank| {
            let builder = Nystrom::builder(*kernel).low_rank(low_rank).weights(weight).seed(options.seed);
            pooled(options.threads, || builder.build_with(&x, control))
        };
        let late = || {
            let budget = control.budget_seconds().unwrap_or(f64::NAN);
            let what = "the landmarks of one gamma were chosen (LowRank::uniform is the fastest rule)";
            Err(Error::TimeBudget { budget, what, rows: counted.n() })
        };
        let basis = match low_rank.clone().map(find).transpose() {
            Err(Error::TimeBudget { .. }) => return late(),
            Ok(Some(_)) if control.out_of_time() => return late(),
            found => found?,
        };
        let choice = basis.as_ref().map_or(KernelChoice::Exact(*kernel), KernelChoice::LowRank);
        let mut request = Request::new(x, tasks.to_vec(), choice, &cs);
        (request.solver, request.settings, request.folds) = (options.solver, options.settings, folds.clone());
        (request.precision, request.device, request.threads) = (options.precision, options.device, options.threads);
        request.pairs = pairs.as_ref();
        fits.push(fit(&request, control)?);
        bases.push(basis);
    }
    let budget = options.time_budget.map(|budget| budget.as_secs_f64()).or(control.budget_seconds());
    Ok(Trained { kernels, bases, fits, cs, budget })
}

impl Trained {
    /// The choice among the models.
    pub fn tuner(&self, options: &Options) -> Tuner<'_> {
        Tuner { surface: Surface::new(&self.fits), cs: &self.cs, selection: options.selection }
    }

    /// What was chosen, or why nothing could be.
    pub fn chosen(&self, options: &Options, tuned: Option<Tuned>) -> Result<Tuned> {
        match (tuned, options.scoring) {
            (Some(tuned), _) => Ok(tuned),
            (None, _) if Surface::new(&self.fits).is_timed_out() => {
                let what = "any C was both scored on every fold and fitted on all rows";
                let (budget, rows) = (self.budget.unwrap_or(f64::NAN), self.fits[0][0].n);
                Err(Error::TimeBudget { budget, what, rows })
            }
            (None, Some(scoring)) => {
                let problem = "gave no finite score for any C; use another score, or other folds";
                setting(format!(".scoring(Scoring::{scoring:?})"), problem)
            }
            (None, None) => {
                setting(".fit(x, y)", "no C has a finite score: the loss of some held-out rows overflows; scale y")
            }
        }
    }
}
