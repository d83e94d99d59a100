//! Classes that are missing from the training rows of a fold, of more than two.
//!
//! The fold's model is then the one that its rows alone have. A machine of two classes that learns from one of them is a
//! constant, which votes for that class. Its loss falls to 0, so that P = D = 0 is the proof. The constant is 1 for losses
//! that are 0 from there on. The logistic loss is 0, to double precision, from 745 on, and that of distance-weighted
//! discrimination at infinity only: there, 1 stands for the limit. A machine that learns from neither class says 0.
//!
//! One against the rest, the class whose machine has the largest value is the prediction, and a missing class must not
//! win. So its machine's value is below those of all others.

use crate::certify::certificate::Certificate;
use crate::certify::ledger::Kept;
use crate::certify::record::{Record, Status};
use crate::fit::request::{Request, Task};
use crate::fit::result::PathFit;
use crate::loss::objective::Objective;
use crate::loss::scalar::Loss;
use crate::loss::softmax::CERTAIN;

/// How far the machine of a missing class stays below the others, one against the rest.
const BELOW: f64 = 1.0;

/// The constant that a machine of two classes is, if one of them has no weight; `weight` has that of each row.
pub(crate) fn constant(task: &Task, weight: &[f64]) -> Option<f64> {
    let loss = match task.objective {
        Objective::Scalar(loss) if loss.is_classification() => loss,
        _ => return None,
    };
    let has = |side: f64| task.y.iter().zip(weight).any(|(y, w)| *y == side && *w > 0.0);
    let size = if loss == Loss::Logistic { CERTAIN } else { 1.0 };
    match (has(1.0), has(-1.0)) {
        (true, true) => None,
        (true, false) => Some(size),
        (false, true) => Some(-size),
        (false, false) => Some(0.0),
    }
}

/// The record of such a constant.
pub(crate) fn record(constant: f64) -> Record {
    let certificate = Certificate { primal: 0.0, dual: 0.0, noise: 0.0 };
    Record { status: Status::Converged, steps: 0, certificate, b: vec![constant] }
}

/// What would be kept of a fold with such a constant, at that many C's: no coefficients.
pub(crate) fn kept(constant: f64, cs: usize) -> Kept {
    let nothing = || vec![Vec::new(); cs];
    Kept { records: vec![record(constant); cs], coef: nothing(), f: nothing(), values: nothing() }
}

/// What was kept of the values of some classes, as that of all `outputs` classes: the value of another class is so far below
/// the largest that its probability is 0. The objective is divided by `factor`.
pub(crate) fn among_all(kept: Kept, classes: &[usize], outputs: usize, factor: f64) -> Kept {
    if classes.len() == outputs {
        return kept;
    }
    let spread = |own: &[f64], missing: f64| {
        let mut all = vec![missing; outputs];
        classes.iter().zip(own).for_each(|(&c, value)| all[c] = *value);
        all
    };
    let row = |own: &[f64]| spread(own, own.iter().fold(f64::NEG_INFINITY, |top, f| top.max(*f)) - CERTAIN);
    let values = |of_c: &Vec<f64>| of_c.chunks_exact(classes.len()).flat_map(row).collect();
    let record = |record: Record| {
        let Certificate { primal, dual, noise } = record.certificate;
        let certificate = Certificate { primal: primal / factor, dual: dual / factor, noise: noise / factor };
        let missing = if record.status == Status::NotRun { f64::NAN } else { f64::NEG_INFINITY };
        Record { certificate, b: spread(&record.b, missing), ..record }
    };
    Kept {
        values: kept.values.iter().map(values).collect(),
        records: kept.records.into_iter().map(record).collect(),
        ..kept
    }
}

/// One against the rest, lowers the held-out values of machines whose class is missing from a fold below those of the
/// others. `constants[machine][fold]` has the constants among the models.
pub(crate) fn lower(request: &Request, constants: &[Vec<Option<f64>>], fits: &mut [PathFit]) {
    let is_against_the_rest = |task: &Task| task.rows.is_none() && task.is_one_of_several() && task.loss().is_some();
    let machines: Vec<usize> = (0..fits.len()).filter(|&m| is_against_the_rest(&request.tasks[m])).collect();
    let is_missing = |m: usize, fold: usize| constants[m][fold].is_some_and(|constant| constant < 0.0);
    for fold in 0..constants.first().map_or(0, Vec::len) {
        let (missing, there): (Vec<usize>, Vec<usize>) = machines.iter().partition(|m| is_missing(**m, fold));
        for m in missing {
            let is_beside = |o: &usize| request.tasks[*o].classes == request.tasks[m].classes;
            let others: Vec<usize> = there.iter().copied().filter(is_beside).collect();
            lower_machine(m, &others, fold, fits);
        }
    }
}

/// Lowers the values of a machine below those of the others.
fn lower_machine(m: usize, others: &[usize], fold: usize, fits: &mut [PathFit]) {
    let mut values = std::mem::take(&mut fits[m].oof[fold]);
    for (c, values) in values.iter_mut().enumerate() {
        for (at, value) in values.iter_mut().enumerate() {
            let least = others.iter().map(|&o| fits[o].oof[fold][c][at]).fold(f64::INFINITY, f64::min);
            *value = value.min(least - BELOW);
        }
    }
    fits[m].oof[fold] = values;
}
