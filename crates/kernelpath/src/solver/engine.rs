//! What a solver does at one C. The loop over C, warm starts, certificates and retries are those of `path`.

use crate::certify::ledger::{Judged, Taken};
use crate::certify::record::Outcome;
use crate::error::{Error, Result};
use crate::loss::scalar::Loss;

/// What there is to say of a solver before it runs.
pub(crate) struct Description {
    pub name: &'static str,
    /// What the solver misses in a loss, if anything.
    pub lacks: fn(Loss) -> Option<&'static str>,
    /// Bytes that the solver takes beside the Gram matrix, not counting the factors of paths.
    pub bytes: fn(&Size) -> u64,
}

/// What the memory of a solver depends on.
pub(crate) struct Size {
    /// Rows of the Gram matrix.
    pub rows: usize,
    /// Bytes of an entry.
    pub entry: usize,
    /// Problems in work at once: the folds and all rows.
    pub problems: usize,
    /// Rows that the largest fold holds out.
    pub held_out: usize,
    /// Columns that a product on the device should have.
    pub columns: usize,
    /// Bytes of the host for the decomposition of the matrix.
    pub decomposition: u64,
}

/// How well a problem is to be solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// To the tolerance of the fit.
    Answer,
    /// Roughly: the problem lies on the way to a larger C.
    OnTheWay,
}

/// A problem in work at one C.
#[derive(Clone)]
pub(crate) struct Job<P> {
    pub c: f64,
    pub point: P,
}

/// Hands the problems of each C to `solve`.
pub(crate) fn each_c<P>(jobs: &mut [Job<P>], mut solve: impl FnMut(f64, &mut [&mut P]) -> Result<()>) -> Result<()> {
    let mut of_c = jobs.chunk_by_mut(|a, b| a.c == b.c);
    of_c.try_for_each(|jobs| solve(jobs[0].c, &mut jobs.iter_mut().map(|job| &mut job.point).collect::<Vec<_>>()))
}

/// The way to a distant C, by way of C's in between.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leap {
    /// The C that the way starts from.
    pub from: f64,
    /// The largest ratio of two neighbouring C's.
    pub longest: f64,
}

/// The solution with all rows at one C, from which problems start that leave one row out.
pub(crate) struct Whole<'a> {
    pub beta: &'a [f64],
    /// Kβ.
    pub f: &'a [f64],
    pub b: f64,
    /// The part of Kβ that comes from each class, if the weights are balanced anew; else none.
    pub parts: &'a [Vec<f64>],
}

/// What leaving out a row does to the weights of all others, where classes are balanced.
pub(crate) struct Rebalance {
    /// The class of each unit.
    pub class: Vec<usize>,
    /// The number of these classes.
    pub classes: usize,
    /// For each unit, what the weights of each class are multiplied by when one of its rows is left out.
    pub factors: Vec<Vec<f64>>,
}

/// What a problem that leaves one row out has for weights, and where it starts.
pub(crate) struct LeftOutRows<'a> {
    /// Weight of each unit, with all of its rows.
    pub weight: &'a [f64],
    /// Weight of one row of each unit.
    pub of_row: &'a [f64],
    pub rebalance: Option<&'a Rebalance>,
}

impl LeftOutRows<'_> {
    /// The weight of unit `u` without one of its rows, before classes are balanced anew.
    pub fn remaining(&self, u: usize) -> f64 {
        (self.weight[u] - self.of_row[u]).max(0.0)
    }

    /// The part of the weight of unit `u` that is left without one of its rows.
    pub fn share(&self, u: usize) -> f64 {
        if self.weight[u] > 0.0 { self.remaining(u) / self.weight[u] } else { 1.0 }
    }

    /// The weights of all units without a row of unit `u`.
    pub fn without(&self, u: usize) -> Vec<f64> {
        let mut weight = self.weight.to_vec();
        weight[u] = self.remaining(u);
        self.rebalanced(u, &mut weight);
        weight
    }

    /// β of the solution with all rows, in the box of the problem without a row of unit `u`, where unit `u` itself keeps
    /// the part of all of its rows.
    pub fn beta(&self, whole: &Whole, u: usize) -> Vec<f64> {
        let mut beta = whole.beta.to_vec();
        self.rebalanced(u, &mut beta);
        beta
    }

    /// Kβ of this β.
    pub fn f(&self, whole: &Whole, u: usize) -> Vec<f64> {
        let Some(Rebalance { factors, .. }) = self.rebalance else { return whole.f.to_vec() };
        let mut f = vec![0.0; whole.f.len()];
        for (part, factor) in whole.parts.iter().zip(&factors[u]) {
            f.iter_mut().zip(part).for_each(|(f, part)| *f += factor * part);
        }
        f
    }

    /// Numbers of the units, each times the factor of its class in the problem without a row of unit `u`.
    fn rebalanced(&self, u: usize, values: &mut [f64]) {
        if let Some(Rebalance { class, factors, .. }) = self.rebalance {
            values.iter_mut().zip(class).for_each(|(value, c)| *value *= factors[u][*c]);
        }
    }
}

/// One solver for one loss on one operator, for the problems of one group: the folds and all rows, or one of them.
pub(crate) trait Engine: Send + Sync {
    /// Where a problem stands: all that the next start and the next step are made from.
    type Point: Clone + Send + Sync;

    /// Whether a group is one problem. Groups are then solved side by side, and certified when all C's are solved.
    const ALONE: bool = false;

    /// How many neighbouring C's are solved together.
    fn at_once(&self) -> usize {
        1
    }

    /// How many of the last solutions [`start`](Self::start) looks at.
    fn remembers(&self) -> usize {
        2
    }

    /// How a C is reached from `last`, the C before, which is 0 at first; `None` if in one step.
    fn leap(&self, _last: f64) -> Option<Leap> {
        None
    }

    /// Whether these solutions, at `c`, are also those of every larger C.
    fn is_final(&self, _c: f64, _points: &[Self::Point]) -> bool {
        false
    }

    /// The best constant model of each problem of the group: the solution as C goes to 0.
    fn constants(&mut self) -> Result<Vec<Self::Point>>;

    /// Where a problem starts at `c`, given its last solutions with their C's, the newest first. The last of all is that
    /// of [`constants`](Self::constants), at C = 0.
    fn start(&self, past: &[(f64, &Self::Point)], c: f64) -> Self::Point;

    /// Solves problems from where they stand. Those of one C are neighbours.
    fn solve(&mut self, jobs: &mut [Job<Self::Point>], goal: Goal) -> Result<()>;

    fn outcome(&self, point: &Self::Point) -> Outcome;

    /// Coefficients and intercepts of a point, as the certificate wants them.
    fn solution(&self, point: &Self::Point) -> (Vec<f64>, Vec<f64>);

    /// Takes over f as the certificate recomputed it, and the intercepts that it would report.
    fn take(&self, _point: &mut Self::Point, _c: f64, _f: &[f64], _b: &[f64]) -> Option<Taken> {
        None
    }

    /// Takes over what was judged.
    fn learn(&self, _point: &mut Self::Point, _judged: &Judged) {}

    /// How often a problem whose gap rounding hid is solved.
    fn attempts(&self) -> usize {
        1
    }

    /// Before problems are solved once more.
    fn retry(&mut self) {}

    /// Solves the problems at `c` that leave a row out of these units, one each, starting from the solution with all
    /// rows.
    fn leave_out(&mut self, _c: f64, _: &Whole, _: &LeftOutRows, _units: &[usize]) -> Result<Vec<Self::Point>> {
        Err(Error::NoLeaveOneOut)
    }

    /// Kβ of a left-out problem's point, if the engine knows it in double precision.
    fn product<'b>(&self, _point: &'b Self::Point) -> Option<&'b [f64]> {
        None
    }
}
