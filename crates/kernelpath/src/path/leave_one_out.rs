//! Leave-one-out: the problems that leave out one row each, solved from the solution with all rows.
//!
//! That solution is a start that is mostly near. A problem that does not converge from there is solved once more like a
//! fold: along the path, starting from the constant model.

use crate::certify::ledger::{Judge, Keeps, Kept, Ledger, Problem, Solution};
use crate::certify::record::{Record, Status};
use crate::error::Result;
use crate::numeric::parallel;
use crate::observe::Control;
use crate::path::schedule::{Workers, solve};
use crate::solver::choice::Visit;
use crate::solver::engine::{Engine, LeftOutRows, Rebalance, Whole};

/// A model of the path, and its value f + b at the row it leaves out.
pub(crate) type LeftOut = (Record, f64);

/// Problems that are solved at once.
pub(crate) const LEFT_OUT_AT_ONCE: usize = 64;

/// Leaves a row out of each unit by whatever engine it is given. The models are `[c][unit]`.
pub(crate) struct LeaveEachOut<'a, J> {
    pub judge: &'a J,
    pub rows: LeftOutRows<'a>,
    /// The units to leave a row out of. The models of the others are marked as not run.
    pub units: &'a [usize],
    pub cs: &'a [f64],
    /// The solutions with all rows.
    pub refit: &'a Kept,
    pub workers: Workers,
    pub control: &'a Control,
}

impl<J: Judge> Visit for LeaveEachOut<'_, J> {
    type Out = Vec<Vec<LeftOut>>;

    fn with<E: Engine>(self, engines: impl Fn(&[Problem]) -> Result<Vec<E>> + Sync) -> Result<Self::Out> {
        let all = [Problem { weight: self.rows.weight.into(), keeps: Keeps::All }];
        let mut by_c = if E::ALONE {
            parallel::try_map(0..self.cs.len(), |k| self.at_c(&mut engines(&all)?[0], k))?
        } else {
            let mut engines = engines(&all)?;
            (0..self.cs.len()).map(|k| self.at_c(&mut engines[0], k)).collect::<Result<Vec<_>>>()?
        };
        self.as_folds(engines, &mut by_c)?;
        Ok(by_c)
    }
}

impl<J: Judge> LeaveEachOut<'_, J> {
    /// The models at one C.
    fn at_c<E: Engine>(&self, engine: &mut E, k: usize) -> Result<Vec<LeftOut>> {
        let Self { rows, refit, control, .. } = self;
        let mut results = vec![(Record::not_run(1), f64::NAN); rows.weight.len()];
        if refit.coef[k].is_empty() {
            return Ok(results);
        }
        let (c, b) = (self.cs[k], refit.records[k].b[0]);
        let parts = self.parts(&refit.coef[k])?;
        let whole = Whole { beta: &refit.coef[k], f: &refit.f[k], b, parts: &parts };
        let solve = |units: &[usize], ledger: &Ledger<J>| {
            let points = engine.leave_out(c, &whole, rows, units)?;
            let solution = |(problem, point): (usize, &E::Point)| {
                let ((coef, b), outcome) = (engine.solution(point), engine.outcome(point));
                Solution { problem, c: 0, coef, b, f: engine.product(point).map(<[f64]>::to_vec), outcome }
            };
            let solutions = points.iter().enumerate().map(solution).collect();
            control.advance(units.len());
            ledger.settle(ledger.recomputed(solutions)?, |_, _| {})
        };
        self.in_blocks(self.units, &[c], solve, |u, mut kept| {
            results[u] = (kept.records.remove(0), kept.values[0].first().copied().unwrap_or(f64::NAN));
            true
        })?;
        // A C with a model of each row that is left out can be chosen, whichever it is.
        control.first_models(1);
        Ok(results)
    }

    /// The part of Kβ that comes from each class, if the weights are balanced anew.
    fn parts(&self, beta: &[f64]) -> Result<Vec<Vec<f64>>> {
        let Some(Rebalance { class, classes, .. }) = self.rows.rebalance else { return Ok(Vec::new()) };
        let part = |c: usize| -> Vec<f64> {
            beta.iter().zip(class).map(|(beta, own)| if *own == c { *beta } else { 0.0 }).collect()
        };
        let parts: Vec<Vec<f64>> = (0..*classes).map(part).collect();
        self.judge.values(&parts.iter().map(|part| &part[..]).collect::<Vec<_>>(), self.control)
    }

    /// Solves the problems that did not converge as folds. For each C, the model with the smaller gap is kept. The loop
    /// ends when no model of a block converges: then the start was not the reason.
    fn as_folds<E: Engine>(
        &self,
        engines: impl Fn(&[Problem]) -> Result<Vec<E>>,
        by_c: &mut [Vec<LeftOut>],
    ) -> Result<()> {
        let short =
            |(record, _): &LeftOut| !matches!(record.status, Status::Converged | Status::TimeLimit | Status::NotRun);
        let is_short = |u: &usize| by_c.iter().any(|of_c| short(&of_c[*u]));
        let units: Vec<usize> = self.units.iter().copied().filter(is_short).collect();
        // No path needs to go beyond the largest C that is missing.
        let is_missing = |k: &usize| by_c[*k].iter().any(short);
        let last = (0..self.cs.len()).filter(is_missing).map(|k| self.cs[k]).fold(0.0, f64::max);
        let (places, cs): (Vec<usize>, Vec<f64>) =
            self.cs.iter().copied().enumerate().filter(|(_, c)| *c <= last).unzip();
        let along_path = |units: &[usize], ledger: &Ledger<J>| {
            self.control.extend(units.len() * cs.len());
            solve(engines(ledger.problems)?, ledger, self.workers, self.control)
        };
        self.in_blocks(&units, &cs, along_path, |u, kept| {
            let mut converged = false;
            for ((&k, record), value) in places.iter().zip(kept.records).zip(kept.values) {
                let known = &mut by_c[k][u];
                let (gap, known_gap) = (record.certificate.gap(), known.0.certificate.gap());
                if let Some(value) = value.first().filter(|_| short(known) && (gap < known_gap || known_gap.is_nan())) {
                    converged |= record.status == Status::Converged;
                    *known = (record, *value);
                }
            }
            converged
        })
    }

    /// Solves the problems that leave a row out of these units, block by block, and hands on each unit with what was
    /// kept of its problem. Ends after a block for none of whose units `found` returns true.
    fn in_blocks(
        &self,
        units: &[usize],
        cs: &[f64],
        mut solve: impl FnMut(&[usize], &Ledger<J>) -> Result<()>,
        mut found: impl FnMut(usize, Kept) -> bool,
    ) -> Result<()> {
        for units in units.chunks(LEFT_OUT_AT_ONCE) {
            self.control.check()?;
            if self.control.out_of_time() {
                break;
            }
            let problem = |&u: &usize| Problem { weight: self.rows.without(u).into(), keeps: Keeps::Values(vec![u]) };
            let problems: Vec<Problem> = units.iter().map(problem).collect();
            let ledger = Ledger::new(self.judge, &problems, cs, self.control);
            solve(units, &ledger)?;
            let kept = units.iter().zip(ledger.close());
            if !kept.fold(false, |any, (&u, kept)| found(u, kept) | any) {
                break;
            }
        }
        Ok(())
    }
}
