//! A fit on a kernel matrix: that of the rows, or K = ZZᵀ where the features are nearly as many as the rows.

use crate::certify::exact::Shared;
use crate::certify::ledger::Kept;
use crate::certify::record::{Record, Status};
use crate::data::units::Units;
use crate::device::{Decompositions, Device};
use crate::error::Result;
use crate::fit::folds::Folds;
use crate::fit::held_out::held_out;
use crate::fit::left_out::Leaving;
use crate::fit::placed::Placed;
use crate::fit::request::{Request, Task};
use crate::fit::run::Ground;
use crate::fit::solved::{Found, Posed, SolveAll, Solved, solve_classes};
use crate::kernel::gram::{CERTIFIED_AT_ONCE, Gram};
use crate::loss::scalar::Loss;
use crate::numeric::cholesky::Working;
use crate::numeric::simd::dot;
use crate::nystrom::approximation::Nystrom;
use crate::nystrom::features::Features;
use crate::observe::Control;
use crate::path::leave_one_out::{LEFT_OUT_AT_ONCE, LeaveEachOut, LeftOut};
use crate::path::schedule::Workers;
use crate::solver::choice::{Method, OnGram, Solver};
use crate::solver::engine::LeftOutRows;

/// Below this many bytes of Gram matrix, the memory of one more open path's factor does not matter.
const SMALL_GRAM: u64 = 256 << 20;

fn workers<T: Working>(gram: &Gram<T>, all_threads: bool) -> Workers {
    let groups_are_small = Gram::<T>::bytes(gram.n()) < SMALL_GRAM;
    Workers { all_threads, groups_are_small, certified_at_once: CERTIFIED_AT_ONCE }
}

/// The features that a matrix ZZᵀ was made from, and the landmarks behind them.
pub(crate) struct Origin<'a, T> {
    pub features: &'a Features<T>,
    /// What was subtracted from each feature.
    pub mean: &'a [f64],
    pub nystrom: &'a Nystrom,
}

impl<T: Working> Origin<'_, T> {
    /// The weights of the features of a model with coefficients for these units.
    fn weights(&self, own: &[usize], beta: &[f64]) -> Vec<f64> {
        let mut w = vec![0.0; self.features.rank()];
        for (&u, beta) in own.iter().zip(beta).filter(|(_, beta)| **beta != 0.0) {
            w.iter_mut().zip(self.features.wide_row(u)).for_each(|(w, z)| *w += beta * z);
        }
        w
    }
}

/// The kernel matrix of all units, on a device.
pub(crate) struct WithMatrix<'a, T, F> {
    pub device: &'a dyn Device,
    pub gram: &'a Gram<T>,
    pub units: &'a Units,
    pub solver: Solver,
    /// Of the whole matrix.
    pub decompositions: &'a Decompositions,
    /// If the matrix is ZZᵀ.
    pub origin: Option<Origin<'a, F>>,
    pub control: &'a Control,
}

impl<T: Working, F: Working> WithMatrix<'_, T, F> {
    fn solve_loss(
        &self,
        request: &Request,
        loss: Loss,
        y: Vec<f64>,
        gram: &Gram<T>,
        (posed, whole): (&Posed, bool),
    ) -> Result<Found> {
        let (control, cs, problems) = (self.control, request.cs, &posed.problems[..]);
        let shared = Shared::new(gram, loss, y, request.settings);
        let mut method = self.solver.method(loss, gram.n(), self.device.decomposed_rows())?;
        // The closed form knows only weights 0 and 1, and in the refit no row may be left out.
        let counted = problems.iter().flat_map(|problem| problem.weight.iter()).any(|w| *w != 0.0 && *w != 1.0);
        let changing = posed.leaving.as_ref().is_some_and(|leaving| leaving.rebalance.is_some());
        if method == Method::ClosedForm && (counted || changing || problems[0].weight.contains(&0.0)) {
            method = Method::Newton;
        }
        let of_part = Decompositions::default();
        let decompositions = if whole { self.decompositions } else { &of_part };
        let workers = workers(gram, whole);
        let judge = &shared;
        let solve = |in_single: bool| -> Result<(Vec<Kept>, Vec<Vec<LeftOut>>)> {
            let on = OnGram { shared: &shared, device: self.device, decompositions, in_single, control };
            let mut kept = Vec::with_capacity(problems.len());
            for problems in problems.chunks(if posed.leaving.is_some() { LEFT_OUT_AT_ONCE } else { problems.len() }) {
                kept.extend(method.on_matrix(&on, SolveAll { judge, problems, cs, workers, control })?);
            }
            let left_out = match &posed.leaving {
                None => Vec::new(),
                Some(Leaving { of_row, units, rebalance, .. }) => {
                    let rows = LeftOutRows { weight: &problems[0].weight, of_row, rebalance: rebalance.as_ref() };
                    method.on_matrix(&on, LeaveEachOut { judge, rows, units, cs, refit: &kept[0], workers, control })?
                }
            };
            Ok((kept, left_out))
        };
        // A matrix that was asked for in double precision is decomposed in it, too.
        let in_single = method == Method::Spectral && T::IS_ROUGH && self.device.decomposes_in_single(gram.n());
        let (kept, left_out) = solve(in_single)?;
        let records = kept.iter().flat_map(|kept| &kept.records);
        let records = records.chain(left_out.iter().flatten().map(|(record, _)| record));
        // Single precision may not be enough to get there. Then all is solved once more, in double precision, as far as the
        // time allows. Of each model the better one is kept.
        let is_short = |record: &Record| matches!(record.status, Status::Stalled | Status::Inaccurate);
        if in_single && records.into_iter().any(is_short) && !control.out_of_time() {
            control.extend(cs.len() * request.problems());
            let (again, left_out_again) = solve(false)?;
            let kept = kept.into_iter().zip(again).map(|(kept, again)| kept.or_better(again)).collect();
            let better =
                |(known, other): (LeftOut, LeftOut)| if other.0.is_better_than(&known.0) { other } else { known };
            let of_c =
                |(known, other): (Vec<LeftOut>, Vec<LeftOut>)| known.into_iter().zip(other).map(better).collect();
            return Ok((method, kept, left_out.into_iter().zip(left_out_again).map(of_c).collect()));
        }
        Ok((method, kept, left_out))
    }
}

impl<T: Working, F: Working> Ground for WithMatrix<'_, T, F> {
    fn is_alone(&self, task: &Task) -> bool {
        task.rows.is_some()
    }

    fn keeps_values(&self, task: &Task) -> bool {
        task.rows.is_none()
    }

    /// If the task has all rows, it is solved on the whole matrix. Otherwise it is solved on its rows' part of the
    /// matrix, on this thread.
    fn solve(&self, request: &Request, task: &Task, placed: &Placed, posed: &Posed) -> Result<Found> {
        let (whole, y) = (task.rows.is_none(), placed.targets(task));
        let part = if whole { None } else { Some(self.gram.part(&placed.own)?) };
        let gram = part.as_ref().unwrap_or(self.gram);
        match task.loss() {
            None => {
                let targets = (&y[..], task.outputs());
                solve_classes(gram, request, targets, &posed.problems, workers(gram, true), self.control)
            }
            Some(loss) => self.solve_loss(request, loss, y, gram, (posed, whole)),
        }
    }

    fn held_out(&self, request: &Request, solved: &Solved) -> Result<Vec<Vec<Vec<f64>>>> {
        let at = |kept: &Kept, units: &[usize]| held_out(self.gram, &solved.placed.own, kept, units, self.control);
        if request.folds == Folds::LeaveOneOut {
            let models = if solved.folds.is_empty() { std::slice::from_ref(&solved.refit) } else { &solved.folds[..] };
            return models.iter().zip(&solved.outside).map(|(kept, rows)| at(kept, &self.units.of(rows))).collect();
        }
        let splits = solved.folds.iter().zip(request.folds.splits());
        splits.map(|(kept, fold)| at(kept, &self.units.of(&fold.test))).collect()
    }

    /// A unit's β is divided among its rows in proportion to their weights. If the matrix is ZZᵀ, the coefficients are
    /// those of the landmarks.
    fn coefficients(&self, task: &Task, solved: &Solved) -> Result<Vec<Vec<f64>>> {
        let Solved { placed: Placed { own, place }, weight, refit, .. } = solved;
        let (outputs, of_row) = (task.outputs(), task.weights(&|_| 1.0));
        let share = |beta: &[f64], (k, &u): (usize, &usize)| {
            if weight[u] > 0.0 { beta[u] * of_row[k] / weight[u] } else { 0.0 }
        };
        let to_rows = |beta: &[f64]| place.iter().enumerate().map(|row| share(beta, row)).collect::<Vec<f64>>();
        let to_landmarks = |beta: &[f64], origin: &Origin<F>| origin.nystrom.coefficients(&origin.weights(own, beta));
        let of_model = |beta: &Vec<f64>| match (&self.origin, beta.len()) {
            (Some(origin), 0) => vec![0.0; origin.nystrom.map().nrows() * outputs],
            (None, 0) => vec![0.0; place.len() * outputs],
            (Some(origin), _) => beta.chunks_exact(own.len()).flat_map(|beta| to_landmarks(beta, origin)).collect(),
            (None, _) => beta.chunks_exact(own.len()).flat_map(to_rows).collect(),
        };
        Ok(refit.coef.iter().map(of_model).collect())
    }

    /// The intercepts become those for rows as they are. (Problems that keep values have these already.)
    fn finish_records(&self, placed: &Placed, kept: &mut Kept) {
        let tilt = self.gram.tilt.part(&placed.own);
        for (record, coef) in kept.records.iter_mut().zip(&kept.coef) {
            tilt.intercepts(coef, &mut record.b);
            if let Some(origin) = &self.origin
                && !coef.is_empty()
            {
                record.b[0] -= dot(&origin.weights(&placed.own, coef), origin.mean);
            }
        }
    }
}
