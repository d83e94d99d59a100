//! Newton's method in rank dimensions as an engine: all folds of any loss at one C.

use std::sync::Arc;

use crate::certify::certificate::feasible;
use crate::certify::ledger::{Judged, Taken};
use crate::certify::record::{Outcome, Status};
use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::design::Accuracy;
use crate::solver::engine::{Engine, Goal, Job, each_c};
use crate::solver::low_rank::column::Column;
use crate::solver::low_rank::directions::Preconditioner;
use crate::solver::low_rank::primal::Primal;
use crate::solver::low_rank::tuning::{FARTHEST_LINE, FEATURE_ATTEMPTS};

/// The engine for one loss on one set of features.
pub(crate) struct FeatureEngine<'a, T> {
    primal: Primal<'a, T>,
    weights: &'a [Arc<[f64]>],
    preconditioner: Preconditioner<T>,
}

impl<'a, T: Working> FeatureEngine<'a, T> {
    /// For problems with these weights.
    pub fn new(primal: Primal<'a, T>, weights: &'a [Arc<[f64]>]) -> Self {
        Self { primal, weights, preconditioner: Preconditioner::new(weights.len()) }
    }
}

impl<T: Working> Primal<'_, T> {
    /// Takes over Zw in double precision, and moves b and the slopes along.
    pub fn take(&self, column: &mut Column, c: f64, f: &[f64], b: &[f64]) -> Taken {
        column.g.copy_from_slice(f);
        column.b = b[0];
        self.look(column, c);
        let weight: Vec<f64> = column.weight.iter().map(|w| w * c).collect();
        column.a = feasible(self.loss, self.y, &weight, &column.a);
        Taken { b: vec![column.b], theta: column.a.clone() }
    }

    /// Takes over Zᵀa in double precision, or the constant model that was judged instead.
    pub fn learn(&self, column: &mut Column, judged: &Judged) {
        if judged.is_constant {
            let (none, zeros) = (vec![0.0; column.w.len()], vec![0.0; self.y.len()]);
            let b = judged.record.b[0];
            *column = self.column((column.plan, column.weight), none, b, zeros.clone(), zeros);
            column.outcome.status = Status::Stalled;
        } else {
            column.image.copy_from_slice(&judged.image);
        }
    }
}

impl<'a, T: Working> Engine for FeatureEngine<'a, T> {
    type Point = Column<'a>;

    fn constants(&mut self) -> Result<Vec<Column<'a>>> {
        Ok(self.weights.iter().enumerate().map(|(k, weight)| self.primal.constant(k, weight, 0.0)).collect())
    }

    fn start(&self, past: &[(f64, &Column<'a>)], c: f64) -> Column<'a> {
        let (c1, last) = past[0];
        match past.get(1) {
            None => self.primal.constant(last.plan, last.weight, c),
            Some((c0, _)) if *c0 == 0.0 => self.primal.scaled(last, c / c1),
            Some((c0, before)) => {
                let t = if c1 > *c0 { (c - c1) / (c1 - c0) } else { 0.0 };
                self.primal.extrapolated(last, before, if t <= FARTHEST_LINE { t } else { 0.0 }, c)
            }
        }
    }

    fn solve(&mut self, jobs: &mut [Job<Column<'a>>], _: Goal) -> Result<()> {
        each_c(jobs, |c, columns| self.primal.solve(columns, c, &mut self.preconditioner))
    }

    fn outcome(&self, column: &Column<'a>) -> Outcome {
        column.outcome
    }

    fn solution(&self, column: &Column<'a>) -> (Vec<f64>, Vec<f64>) {
        (column.w.clone(), vec![column.b])
    }

    fn take(&self, column: &mut Column<'a>, c: f64, f: &[f64], b: &[f64]) -> Option<Taken> {
        Some(self.primal.take(column, c, f, b))
    }

    fn learn(&self, column: &mut Column<'a>, judged: &Judged) {
        self.primal.learn(column, judged);
    }

    fn attempts(&self) -> usize {
        FEATURE_ATTEMPTS
    }

    /// Larger C's will need double precision, too.
    fn retry(&mut self) {
        self.primal.accuracy = Accuracy::Double;
    }
}
