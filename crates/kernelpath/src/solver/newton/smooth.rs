//! Newton's method as an engine: all folds of a smooth loss at one C.

use std::sync::Arc;

use crate::certify::ledger::{Judged, Taken};
use crate::certify::record::Outcome;
use crate::error::Result;
use crate::loss::intercept::best_intercept;
use crate::numeric::cholesky::Working;
use crate::solver::engine::{Engine, Goal, Job, Leap, LeftOutRows, Whole, WithoutOne};
use crate::solver::newton::descent::{Column, Newton};
use crate::solver::newton::starts::{GAP_BETWEEN, LONGEST_LEAP, mixtures};

/// How often problems are solved and certified at one C.
pub(crate) const NEWTON_ATTEMPTS: usize = 3;

impl<T: Working> Newton<'_, T> {
    /// The best constant model.
    fn constant(&self, weight: &Arc<[f64]>) -> Column {
        let zeros = vec![0.0; self.shared.y.len()];
        let b = best_intercept(self.shared.loss, &self.shared.y, weight, &zeros, 0.0);
        Column::new(weight.clone(), zeros.clone(), zeros, b)
    }
}

impl<T: Working> Engine for Newton<'_, T> {
    type Point = Column;

    fn remembers(&self) -> usize {
        3
    }

    fn leap(&self, last: f64) -> Option<Leap> {
        // Below this C, every row stands close to the constant model.
        let n = self.shared.gram.n();
        let easy = 1.0 / self.shared.diagonal[..n].iter().fold(f64::MIN_POSITIVE, |a, d| a.max(*d));
        Some(Leap { from: last.max(easy), longest: LONGEST_LEAP })
    }

    fn constants(&mut self) -> Result<Vec<Column>> {
        Ok(self.weights.iter().map(|weight| self.constant(weight)).collect())
    }

    fn start(&self, past: &[(f64, &Column)], c: f64) -> Column {
        let (cs, known): (Vec<f64>, Vec<&Column>) = past.iter().copied().unzip();
        self.mixed(&known, &mixtures(&cs, c), c)
    }

    fn solve(&mut self, jobs: &mut [Job<Column>], goal: Goal) -> Result<()> {
        let tol = self.shared.settings.tol;
        let tol = if goal == Goal::Answer { tol } else { tol.max(GAP_BETWEEN) };
        for of_c in jobs.chunk_by_mut(|a, b| a.c == b.c) {
            let c = of_c[0].c;
            let mut columns: Vec<&mut Column> = of_c.iter_mut().map(|job| &mut job.point).collect();
            self.descend(&mut columns, c, tol)?;
        }
        Ok(())
    }

    fn outcome(&self, column: &Column) -> Outcome {
        column.outcome
    }

    fn solution(&self, column: &Column) -> (Vec<f64>, Vec<f64>) {
        (column.beta.clone(), vec![column.b])
    }

    fn take(&self, column: &mut Column, _: f64, f: &[f64], _: &[f64]) -> Option<Taken> {
        column.f.copy_from_slice(f);
        None
    }

    fn learn(&self, column: &mut Column, judged: &Judged) {
        if judged.is_constant {
            column.f.fill(0.0);
        }
    }

    fn attempts(&self) -> usize {
        NEWTON_ATTEMPTS
    }

    fn leave_out(&mut self, c: f64, whole: &Whole, rows: &LeftOutRows, units: &[usize]) -> Result<Vec<WithoutOne>> {
        let start = |&u: &usize| {
            let (mut beta, mut f) = (whole.beta.to_vec(), whole.f.to_vec());
            let weight = rows.weight[u];
            let change = if weight > 0.0 { beta[u] * (rows.remaining(u) / weight - 1.0) } else { 0.0 };
            beta[u] += change;
            self.shared.gram.add_rows(&[u], &[change], &mut f);
            Column::new(rows.without(u).into(), beta, f, whole.b)
        };
        let mut columns: Vec<Column> = units.iter().map(start).collect();
        self.descend(&mut columns.iter_mut().collect::<Vec<_>>(), c, self.shared.settings.tol)?;
        let answer = |Column { beta, b, outcome, .. }| WithoutOne { beta, f: None, b, outcome };
        Ok(columns.into_iter().map(answer).collect())
    }
}
