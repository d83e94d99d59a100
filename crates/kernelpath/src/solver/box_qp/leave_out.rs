//! One row left out: the problem without it, solved from the solution with all rows.

use crate::certify::exact::Shared;
use crate::certify::record::{Outcome, Status};
use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::simd::within;
use crate::observe::Control;
use crate::solver::box_qp::problem::{BoxQp, Point};
use crate::solver::box_qp::turns::{BoxSolver, holds};

/// Solves anew at one C after the weight of one unit fell, starting from the solution with all rows.
pub(crate) struct LeaveOut<'a, T> {
    shared: &'a Shared<'a, T>,
    qp: BoxQp<'a, T>,
    full: Point,
    solver: BoxSolver<T>,
    c: f64,
}

impl<'a, T: Working> LeaveOut<'a, T> {
    /// `full` is the solution at `c` with these weights, with f = Kβ.
    pub fn new(shared: &'a Shared<'a, T>, weight: &[f64], c: f64, full: Point) -> Self {
        let qp = BoxQp::new(shared.gram, &shared.diagonal, &shared.kinks, weight, c);
        Self { shared, qp, full, solver: BoxSolver::default(), c }
    }

    /// Solves with unit `i` at weight `remaining`. The point is `None` if β of the full solution is still optimal,
    /// because βᵢ fits into the smaller box. The intercept is returned in any case.
    pub fn solve(&mut self, i: usize, remaining: f64, control: &Control) -> Result<(Option<Point>, f64, Outcome)> {
        let old = (self.qp.lo[i], self.qp.mid[i], self.qp.hi[i]);
        self.qp.set_box(i, self.c * remaining, &self.shared.kinks[i]);
        let solved = self.resolve(i, old, control);
        (self.qp.lo[i], self.qp.mid[i], self.qp.hi[i]) = old;
        solved
    }

    fn resolve(&mut self, i: usize, old: (f64, f64, f64), control: &Control) -> Result<(Option<Point>, f64, Outcome)> {
        let beta = self.full.beta[i];
        let new = if beta == old.0 {
            self.qp.lo[i]
        } else if beta == old.1 {
            self.qp.mid[i]
        } else if beta == old.2 {
            self.qp.hi[i]
        } else {
            within(beta, self.qp.lo[i], self.qp.hi[i])
        };
        // (If no row is free, the row left out may have been the one that determined b.)
        if new == beta && holds(&self.qp, &mut self.full, self.shared.settings.tol) {
            return Ok((None, self.full.b, Outcome { status: Status::Converged, steps: 0 }));
        }
        let mut point = self.full.clone();
        if new != beta {
            point.beta[i] = new;
            point.add(&self.qp, &[i], &[new - beta]);
        }
        point.restore_sum(&self.qp);
        let outcome = self.solver.solve(&self.qp, &mut point, &self.shared.settings, control)?;
        self.solver.reset();
        let b = point.b;
        Ok((Some(point), b, outcome))
    }
}
