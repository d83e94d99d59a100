//! Exact leave-one-out: every row held out once, at every C, from the solution with all rows.
//!
//! The solution with all rows is a start that mostly is near. A problem that does not converge from there is solved once
//! more as a fold is: along the path, from the constant model on.
//!
//! `weight` is that of each unit, `of_row` that of one of its rows.

use rayon::prelude::*;

use crate::cv::Record;
use crate::error::Result;
use crate::gram::padded;
use crate::ledger::{Judged, Keeps, Kept, Ledger, Model, Plan, judge};
use crate::observe::Control;
use crate::path::LeaveOut;
use crate::problem::{Outcome, Point, Shared, Status};
use crate::solver::{ClosedForm, Column, Fitted, Newton, Working};
use crate::walk::walk;

/// A model of the path, and f at the row it leaves out.
pub(crate) type LeftOut = (Record, f64);

/// The record, and the value at the row left out: that of the model, unless the constant one took its place.
fn left_out(judged: Judged, value: f64) -> LeftOut {
    let Judged { record, is_constant } = judged;
    let value = if is_constant { record.b } else { value };
    (record, value)
}

/// `[c][unit]` for a piecewise-linear loss: units whose β is 0 need no solve.
pub(crate) fn by_active_set<T: Working>(
    shared: &Shared<T>,
    weight: &[f64],
    of_row: &[f64],
    cs: &[f64],
    refit: &Kept,
    all_threads: bool,
    control: &Control,
) -> Result<Vec<Vec<LeftOut>>> {
    let m = weight.len();
    let at_c = |k: usize| {
        let mut results = vec![(Record::NOT_RUN, f64::NAN); m];
        if refit.beta[k].is_empty() {
            return Ok(results);
        }
        let mut full = Point {
            beta: refit.beta[k].clone(),
            f: refit.f[k].clone(),
            b: refit.records[k].b,
            noise: 0.0,
            eager: Vec::new(),
        };
        full.beta.resize(padded(m), 0.0);
        full.f.resize(padded(m), 0.0);
        let mut remaining = weight.to_vec();
        let mut leave_out = LeaveOut::new(shared, weight, cs[k], full.clone());
        for (u, result) in results.iter_mut().enumerate() {
            control.check()?;
            if control.out_of_time() {
                break;
            }
            remaining[u] = (weight[u] - of_row[u]).max(0.0);
            let (solved, b, outcome) = leave_out.solve(u, remaining[u], control)?;
            let point = solved.as_ref().unwrap_or(&full);
            let (beta, f) = (&point.beta[..m], &point.f[..m]);
            let model = Model { weight: &remaining, c: cs[k], beta, b, f, outcome };
            *result = left_out(judge(shared, &[model], control).remove(0), f[u] + b);
            remaining[u] = weight[u];
            control.advance(1);
        }
        Ok(results)
    };
    let mut by_c = (0..cs.len()).into_par_iter().with_max_len(1).map(at_c).collect::<Result<Vec<_>>>()?;
    let sweep = |ledger: &Ledger<T>| walk(shared, ledger, all_threads, control);
    as_folds(shared, weight, of_row, cs, &mut by_c, sweep, control)?;
    Ok(by_c)
}

/// Problems that Newton solves at once, and that are solved as folds at once.
pub(crate) const BLOCK: usize = 64;

/// The weights without a row of unit `u`.
fn without(u: usize, weight: &[f64], of_row: &[f64]) -> Vec<f64> {
    let mut remaining = weight.to_vec();
    remaining[u] = (weight[u] - of_row[u]).max(0.0);
    remaining
}

/// Solves the problems that did not converge as folds, by `sweep`, and keeps of the two models of a C the one with the
/// smaller gap. It ends when a block of them brings no model that converges: then the start was not the reason.
fn as_folds<T: Working>(
    shared: &Shared<T>,
    weight: &[f64],
    of_row: &[f64],
    cs: &[f64],
    by_c: &mut [Vec<LeftOut>],
    sweep: impl Fn(&Ledger<T>) -> Result<()>,
    control: &Control,
) -> Result<()> {
    let short =
        |(record, _): &LeftOut| !matches!(record.status, Status::Converged | Status::TimeLimit | Status::NotRun);
    let units: Vec<usize> = (0..weight.len()).filter(|&u| by_c.iter().any(|of_c| short(&of_c[u]))).collect();
    // Beyond the largest C that is missing no path needs to go.
    let last = (0..cs.len()).filter(|&k| by_c[k].iter().any(short)).map(|k| cs[k]).fold(0.0, f64::max);
    let (places, cs): (Vec<usize>, Vec<f64>) = (0..cs.len()).map(|k| (k, cs[k])).filter(|(_, c)| *c <= last).unzip();
    for units in units.chunks(BLOCK) {
        control.check()?;
        if control.out_of_time() {
            break;
        }
        let plan = |&u: &usize| Plan { weight: without(u, weight, of_row), keeps: Keeps::Values(vec![u]) };
        let plans: Vec<Plan> = units.iter().map(plan).collect();
        control.extend(plans.len() * cs.len());
        let ledger = Ledger::new(shared, &plans, &cs, control);
        sweep(&ledger)?;
        let mut converged = false;
        for (&u, kept) in units.iter().zip(ledger.close()) {
            for ((&k, record), f) in places.iter().zip(kept.records).zip(kept.f) {
                let known = &mut by_c[k][u];
                let (gap, known_gap) = (record.certificate.gap(), known.0.certificate.gap());
                if let Some(f) = f.first().filter(|_| short(known) && (gap < known_gap || known_gap.is_nan())) {
                    converged |= record.status == Status::Converged;
                    let value = f + record.b;
                    *known = (record, value);
                }
            }
        }
        if !converged {
            break;
        }
    }
    Ok(())
}

/// `[c][unit]` for a smooth loss: Newton from the solution with all rows, a block of units at once.
pub(crate) fn by_newton<T: Working>(
    shared: &Shared<T>,
    weight: &[f64],
    of_row: &[f64],
    cs: &[f64],
    refit: &Kept,
    control: &Control,
) -> Result<Vec<Vec<LeftOut>>> {
    let m = weight.len();
    let newton = Newton::new(shared, control)?;
    let mut by_c = vec![vec![(Record::NOT_RUN, f64::NAN); m]; cs.len()];
    for (k, results) in by_c.iter_mut().enumerate().filter(|(k, _)| !refit.beta[*k].is_empty()) {
        for units in (0..m).collect::<Vec<_>>().chunks(BLOCK) {
            if control.out_of_time() {
                return Ok(by_c);
            }
            let weights: Vec<Vec<f64>> = units.iter().map(|&u| without(u, weight, of_row)).collect();
            let start = |(weights, &u): (&'_ Vec<f64>, &usize)| {
                let (mut beta, mut f) = (refit.beta[k].clone(), refit.f[k].clone());
                let change = if weight[u] > 0.0 { beta[u] * (weights[u] / weight[u] - 1.0) } else { 0.0 };
                beta[u] += change;
                shared.gram.add_rows(&[u], &[change], &mut f);
                (beta, f)
            };
            let mut columns: Vec<Column> = weights
                .iter()
                .zip(units)
                .map(|(weight, u)| {
                    let (beta, f) = start((weight, u));
                    Column::new(weight, beta, f, refit.records[k].b)
                })
                .collect();
            newton.solve(&mut columns, cs[k], shared.settings.tol)?;
            let betas: Vec<&[f64]> = columns.iter().map(|column| &column.beta[..]).collect();
            let products = shared.gram.times(&betas, control)?;
            let models: Vec<Model> = (columns.iter().zip(&products))
                .map(|(Column { weight, beta, b, outcome, .. }, f)| Model {
                    weight,
                    c: cs[k],
                    beta,
                    b: *b,
                    f,
                    outcome: *outcome,
                })
                .collect();
            for ((&u, model), judged) in units.iter().zip(&models).zip(judge(shared, &models, control)) {
                results[u] = left_out(judged, model.f[u] + model.b);
            }
            control.advance(units.len());
        }
    }
    as_folds(shared, weight, of_row, cs, &mut by_c, |ledger| newton.sweep(ledger), control)?;
    Ok(by_c)
}

/// `[c][unit]` for the squared loss with unit weights.
pub(crate) fn by_closed_form<T: Working>(
    shared: &Shared<T>,
    closed_form: &ClosedForm,
    cs: &[f64],
    control: &Control,
) -> Result<Vec<Vec<LeftOut>>> {
    let n = shared.y.len();
    let mut by_c = vec![vec![(Record::NOT_RUN, f64::NAN); n]; cs.len()];
    let outcome = Outcome { status: Status::Converged, steps: 1 };
    for (&c, results) in cs.iter().zip(&mut by_c) {
        for rows in (0..n).collect::<Vec<_>>().chunks(BLOCK) {
            if control.out_of_time() {
                return Ok(by_c);
            }
            let sets: Vec<Vec<usize>> = rows.iter().map(|&i| vec![i]).collect();
            let models = closed_form.without(c, &sets)?;
            let betas: Vec<&[f64]> = models.iter().map(|model| &model.beta[..]).collect();
            let products = shared.gram.times(&betas, control)?;
            let weights: Vec<Vec<f64>> = rows.iter().map(|&i| (0..n).map(|j| f64::from(i != j)).collect()).collect();
            let models: Vec<Model> = (models.iter().zip(&products).zip(&weights))
                .map(|((Fitted { beta, b }, f), weight)| Model { weight, c, beta, b: *b, f, outcome })
                .collect();
            for ((&i, model), judged) in rows.iter().zip(&models).zip(judge(shared, &models, control)) {
                results[i] = left_out(judged, model.f[i] + model.b);
            }
            control.advance(rows.len());
        }
    }
    Ok(by_c)
}
