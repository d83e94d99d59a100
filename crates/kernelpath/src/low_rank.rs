//! Folds × path on low-rank features, K = ZZᵀ: the same models as on a kernel matrix, in rank dimensions.
//!
//! The features are made once, from the rows alone, outside the path and the folds.

use std::time::Instant;

use crate::cv::{Fold, Folds, PathFit, Record, Request, Task, check, counts, path_fit, pool};
use crate::design::{Accuracy, Design};
use crate::error::{Error, Result};
use crate::ledger::Plan;
use crate::observe::{Control, Phase};
use crate::solver::{Engine, Primal, Reduced, Solver, Working};

/// One task on its rows' features. `coefficients` turns w into what the fit keeps as its β.
fn fit_task<T: Working>(
    request: &Request,
    task: &Task,
    design: Design<T>,
    coefficients: &dyn Fn(&[f64]) -> Vec<f64>,
    control: &Control,
) -> Result<PathFit> {
    let started = Instant::now();
    let n = design.n();
    let gathered = task.rows.as_ref().map(|rows| design.gather(rows));
    let own = gathered.as_ref().map_or(design, |values| Design::new(values, design.rank()));
    let splits: &[Fold] = if let Folds::Splits(folds) = &request.folds { folds } else { &[] };
    let row_of = |k: usize| task.rows.as_ref().map_or(k, |rows| rows[k]);
    let plan = |count: &dyn Fn(usize) -> f64| Plan {
        weight: (0..task.y.len()).map(|k| task.weight(k) * count(row_of(k))).collect(),
        scored: None,
    };
    let mut plans = vec![plan(&|_| 1.0)];
    plans.extend(splits.iter().map(|fold| {
        let count = counts(n, &fold.train);
        plan(&|i| count[i])
    }));
    let primal = Primal { design: own, loss: task.loss, y: &task.y, settings: request.settings, control };
    let mut kept = primal.sweep(&plans, request.cs)?;
    let refit = kept.remove(0);
    let mut records: Vec<Vec<Record>> = Vec::with_capacity(splits.len() + 1);
    let mut oof: Vec<Vec<Vec<f64>>> = Vec::with_capacity(splits.len());
    for (reduced, fold) in kept.into_iter().zip(splits) {
        oof.push(decisions(design, &reduced, &fold.test, control)?);
        records.push(reduced.records);
    }
    records.push(refit.records);
    let coef = refit.w.iter().map(|w| if w.is_empty() { Vec::new() } else { coefficients(w) }).collect();
    let bytes = (n * design.rank() * size_of::<T>()) as u64;
    Ok(path_fit(request, task, Engine::Newton, records, oof, coef, bytes, started))
}

/// f at some rows, for each C; NaN where not run.
fn decisions<T: Working>(
    design: Design<T>,
    reduced: &Reduced,
    rows: &[usize],
    control: &Control,
) -> Result<Vec<Vec<f64>>> {
    let run: Vec<usize> = (0..reduced.w.len()).filter(|&c| !reduced.w[c].is_empty()).collect();
    let w: Vec<&[f64]> = run.iter().map(|&c| &reduced.w[c][..]).collect();
    let values = design.gather(rows);
    let products = Design::new(&values, design.rank()).times(&w, Accuracy::Double, control)?;
    let mut f = vec![vec![f64::NAN; rows.len()]; reduced.w.len()];
    for (&c, product) in run.iter().zip(products) {
        f[c] = product.into_iter().map(|f| f + reduced.records[c].b).collect();
    }
    Ok(f)
}

/// Fits every fold and all rows at every C on features of one's own, `rank` numbers a row, in place of the kernel; of
/// each model, [`PathFit::coef`] holds w.
pub fn fit_features(request: &Request, features: &[f32], rank: usize, control: &Control) -> Result<Vec<PathFit>> {
    check_low_rank(request)?;
    pool(request.threads)?.install(|| {
        let design = Design::new(features, rank);
        fit_design(request, design, &<[f64]>::to_vec, control)
    })
}

fn fit_design<T: Working>(
    request: &Request,
    design: Design<T>,
    coefficients: &dyn Fn(&[f64]) -> Vec<f64>,
    control: &Control,
) -> Result<Vec<PathFit>> {
    let folds = if let Folds::Splits(folds) = &request.folds { folds.len() } else { 0 };
    control.begin(Phase::Path, request.tasks.len() * request.cs.len() * (1 + folds));
    request.tasks.iter().map(|task| fit_task(request, task, design, coefficients, control)).collect()
}

fn check_low_rank(request: &Request) -> Result<()> {
    check(request)?;
    if request.folds == Folds::LeaveOneOut {
        return Err(Error::LowRank { what: "leave-one-out", instead: "folds, such as cv=10" });
    }
    match request.solver {
        Solver::Auto | Solver::Newton => Ok(()),
        _ => Err(Error::LowRank { what: "this solver", instead: "solver=\"auto\" or \"newton\"" }),
    }
}
