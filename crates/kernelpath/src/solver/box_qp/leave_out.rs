//! One row left out: the problem without it, solved from the solution with all rows.

use crate::certify::exact::Shared;
use crate::certify::record::{Outcome, Status};
use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::simd::within;
use crate::observe::Control;
use crate::solver::box_qp::problem::{BoxQp, Point};
use crate::solver::box_qp::turns::{BoxSolver, holds};
use crate::solver::engine::{Whole, WithoutOne};

/// Solves anew at one C after the weight of one unit fell, starting from the solution with all rows.
pub(crate) struct LeaveOut<'a, T> {
    shared: &'a Shared<'a, T>,
    qp: BoxQp<'a, T>,
    full: Point,
    solver: BoxSolver<T>,
    c: f64,
}

impl<'a, T: Working> LeaveOut<'a, T> {
    /// `whole` is the solution at `c` with these weights.
    pub fn new(shared: &'a Shared<'a, T>, weight: &[f64], c: f64, whole: &Whole) -> Self {
        let qp = BoxQp::new(shared.gram, &shared.diagonal, &shared.kinks, weight, c);
        let mut full = Point { b: whole.b, ..Point::origin(qp.n()) };
        full.beta[..qp.n()].copy_from_slice(whole.beta);
        full.f[..qp.n()].copy_from_slice(whole.f);
        Self { shared, qp, full, solver: BoxSolver::default(), c }
    }

    /// Whether the solution with all rows is that at `c`.
    pub fn is_at(&self, c: f64) -> bool {
        self.c == c
    }

    /// Solves with unit `i` at weight `remaining`.
    pub fn solve(&mut self, i: usize, remaining: f64, control: &Control) -> Result<WithoutOne> {
        let old = [self.qp.lo[i], self.qp.mid[i], self.qp.hi[i]];
        self.qp.set_box(i, self.c * remaining, &self.shared.kinks[i]);
        let solved = self.resolve(i, old, control);
        [self.qp.lo[i], self.qp.mid[i], self.qp.hi[i]] = old;
        let (Point { mut beta, mut f, b, .. }, outcome) = solved?;
        beta.truncate(self.qp.n());
        f.truncate(self.qp.n());
        Ok(WithoutOne { beta, f: Some(f), b, outcome })
    }

    fn resolve(&mut self, i: usize, old: [f64; 3], control: &Control) -> Result<(Point, Outcome)> {
        let beta = self.full.beta[i];
        let levels = [self.qp.lo[i], self.qp.mid[i], self.qp.hi[i]];
        let level = old.iter().position(|level| *level == beta);
        let new = level.map_or_else(|| within(beta, levels[0], levels[2]), |at| levels[at]);
        // β of all rows may still be optimal, because βᵢ fits into the smaller box. (If no row is free, the row left out
        // may have been the one that determined b.)
        if new == beta && holds(&self.qp, &mut self.full, self.shared.settings.tol) {
            return Ok((self.full.clone(), Outcome { status: Status::Converged, steps: 0 }));
        }
        let mut point = self.full.clone();
        if new != beta {
            point.beta[i] = new;
            point.add(&self.qp, &[i], &[new - beta]);
        }
        point.restore_sum(&self.qp);
        let outcome = self.solver.solve(&self.qp, &mut point, &self.shared.settings, control)?;
        self.solver.reset();
        Ok((point, outcome))
    }
}
