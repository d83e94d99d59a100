//! Leave-one-out: the problems that leave out one row each, solved from the solution with all rows.
//!
//! That solution is a start that is mostly near. A problem that does not converge from there is solved once more like a
//! fold: along the path, starting from the constant model.

use crate::certify::ledger::{Judge, Judged, Keeps, Kept, Ledger, Model, Problem};
use crate::certify::record::{Record, Status};
use crate::error::Result;
use crate::numeric::parallel;
use crate::observe::Control;
use crate::path::schedule::{Workers, solve};
use crate::solver::engine::{Engine, LeftOutRows, Whole, WithoutOne};

/// A model of the path, and its value f + b at the row it leaves out.
pub(crate) type LeftOut = (Record, f64);

/// Problems that are solved at once, and problems that are solved as folds at once.
pub(crate) const LEFT_OUT_AT_ONCE: usize = 64;

/// `[c][unit]`: the models that leave a row out of each unit. `refit` holds the solutions with all rows. `engines`
/// makes the engines of some problems.
pub(crate) fn leave_one_out<E: Engine, J: Judge>(
    engines: impl Fn(&[Problem]) -> Result<Vec<E>> + Sync,
    judge: &J,
    rows: &LeftOutRows,
    cs: &[f64],
    refit: &Kept,
    workers: Workers,
    control: &Control,
) -> Result<Vec<Vec<LeftOut>>> {
    let n = rows.weight.len();
    let at_c = |engine: &mut E, k: usize| -> Result<Vec<LeftOut>> {
        let mut results = vec![(Record::not_run(1), f64::NAN); n];
        if refit.coef[k].is_empty() {
            return Ok(results);
        }
        let whole = Whole { beta: &refit.coef[k], f: &refit.f[k], b: refit.records[k].b[0] };
        let units: Vec<usize> = (0..n).collect();
        for units in units.chunks(LEFT_OUT_AT_ONCE) {
            control.check()?;
            if control.out_of_time() {
                break;
            }
            let answers = engine.leave_out(cs[k], &whole, rows, units)?;
            for (&u, result) in units.iter().zip(judged(judge, answers, rows, units, cs[k], control)?) {
                results[u] = result;
            }
            control.advance(units.len());
        }
        Ok(results)
    };
    let all = [Problem { weight: rows.weight.into(), keeps: Keeps::All }];
    let of_c = |k: usize| engines(&all)?.iter_mut().next().map_or_else(|| Ok(Vec::new()), |engine| at_c(engine, k));
    let mut by_c = if E::ALONE {
        parallel::try_map(0..cs.len(), of_c)?
    } else {
        let mut engines = engines(&all)?;
        (0..cs.len()).map(|k| at_c(&mut engines[0], k)).collect::<Result<Vec<_>>>()?
    };
    as_folds(engines, judge, rows, cs, &mut by_c, workers, control)?;
    Ok(by_c)
}

/// Certifies the answers of a block.
fn judged<J: Judge>(
    judge: &J,
    mut answers: Vec<WithoutOne>,
    rows: &LeftOutRows,
    units: &[usize],
    c: f64,
    control: &Control,
) -> Result<Vec<LeftOut>> {
    let unknown: Vec<&[f64]> = answers.iter().filter(|answer| answer.f.is_none()).map(|a| &a.beta[..]).collect();
    let mut products = judge.values(&unknown, control)?.into_iter();
    let weights: Vec<Vec<f64>> = units.iter().map(|&u| rows.without(u)).collect();
    for answer in answers.iter_mut().filter(|answer| answer.f.is_none()) {
        answer.f = products.next();
    }
    let mut models = Vec::with_capacity(answers.len());
    for (WithoutOne { beta, f, b, outcome }, weight) in answers.iter().zip(&weights) {
        let (b, f) = (std::slice::from_ref(b), f.as_deref().unwrap_or_default());
        models.push(Model { weight, c, coef: beta, b, f, theta: &[], outcome: *outcome });
    }
    let left_out = |((judged, model), &u): ((Judged, &Model), &usize)| {
        // If the constant model took the model's place, its value is the intercept.
        let value = if judged.is_constant { judged.record.b[0] } else { model.f[u] + model.b[0] };
        (judged.record, value)
    };
    Ok(judge.judge(&models, control)?.into_iter().zip(&models).zip(units).map(left_out).collect())
}

/// Solves the problems that did not converge as folds. For each C, the model with the smaller gap is kept. The loop ends
/// when no model of a block converges: then the start was not the reason.
fn as_folds<E: Engine, J: Judge>(
    engines: impl Fn(&[Problem]) -> Result<Vec<E>>,
    judge: &J,
    rows: &LeftOutRows,
    cs: &[f64],
    by_c: &mut [Vec<LeftOut>],
    workers: Workers,
    control: &Control,
) -> Result<()> {
    let short =
        |(record, _): &LeftOut| !matches!(record.status, Status::Converged | Status::TimeLimit | Status::NotRun);
    let units: Vec<usize> = (0..rows.weight.len()).filter(|&u| by_c.iter().any(|of_c| short(&of_c[u]))).collect();
    // No path needs to go beyond the largest C that is missing.
    let last = (0..cs.len()).filter(|&k| by_c[k].iter().any(short)).map(|k| cs[k]).fold(0.0, f64::max);
    let (places, cs): (Vec<usize>, Vec<f64>) = (0..cs.len()).map(|k| (k, cs[k])).filter(|(_, c)| *c <= last).unzip();
    for units in units.chunks(LEFT_OUT_AT_ONCE) {
        control.check()?;
        if control.out_of_time() {
            break;
        }
        let problem = |&u: &usize| Problem { weight: rows.without(u).into(), keeps: Keeps::Values(vec![u]) };
        let problems: Vec<Problem> = units.iter().map(problem).collect();
        control.extend(problems.len() * cs.len());
        let ledger = Ledger::new(judge, &problems, &cs, control);
        solve(engines(&problems)?, &ledger, workers, control)?;
        let mut converged = false;
        for (&u, kept) in units.iter().zip(ledger.close()) {
            for ((&k, record), value) in places.iter().zip(kept.records).zip(kept.values) {
                let known = &mut by_c[k][u];
                let (gap, known_gap) = (record.certificate.gap(), known.0.certificate.gap());
                if let Some(value) = value.first().filter(|_| short(known) && (gap < known_gap || known_gap.is_nan())) {
                    converged |= record.status == Status::Converged;
                    *known = (record, *value);
                }
            }
        }
        if !converged {
            break;
        }
    }
    Ok(())
}
