//! What Newton's method needs of a loss on K, and the problems that it works on.

use std::sync::Arc;

use crate::certify::ledger::Judge;
use crate::certify::record::{Outcome, Settings};
use crate::error::{Error, Result};
use crate::observe::Control;
use crate::solver::engine::{LeftOutRows, Whole};

/// A problem in work: β, f = Kβ to working precision, b. A loss of several classes has β and f class after class, and
/// one b for each.
#[derive(Clone)]
pub(crate) struct Column {
    pub weight: Arc<[f64]>,
    pub beta: Vec<f64>,
    pub f: Vec<f64>,
    pub b: Vec<f64>,
    pub outcome: Outcome,
    /// The relative gap, where β is dual feasible.
    pub gap: f64,
    /// The sum of the rows' Fenchel–Young terms, and the objective, as they were when last computed.
    pub mismatch: f64,
    pub primal: f64,
    /// Best gap so far, and steps since it halved.
    pub best: (f64, usize),
    /// Whether the last direction led nowhere. The next one then uses the bound on the curvature, with which a
    /// direction always leads down.
    pub majorise: bool,
}

impl Column {
    pub fn new(weight: Arc<[f64]>, beta: Vec<f64>, f: Vec<f64>, b: Vec<f64>) -> Self {
        let (gap, best) = (f64::INFINITY, (f64::INFINITY, 0));
        Self {
            weight,
            beta,
            f,
            b,
            outcome: Outcome::default(),
            gap,
            mismatch: f64::INFINITY,
            primal: 0.0,
            best,
            majorise: false,
        }
    }

    /// Moves t of the way along a direction.
    pub fn advance(&mut self, direction: &Direction, t: f64) {
        let add = |values: &mut [f64], along: &[f64]| {
            values.iter_mut().zip(along).for_each(|(value, d)| *value += t * d);
        };
        add(&mut self.beta, &direction.beta);
        add(&mut self.f, &direction.f);
        add(&mut self.b, &direction.b);
    }
}

/// A, with AAᵀ the curvature of the loss at every row.
pub(crate) trait CurvatureRoot: Send + Sync {
    /// Av.
    fn times(&self, v: &[f64]) -> Vec<f64>;
    /// Aᵀf.
    fn transposed_times(&self, f: &[f64]) -> Vec<f64>;
}

/// The Newton system of a column.
pub(crate) struct System<A> {
    pub root: A,
    /// θ − β.
    pub residual: Vec<f64>,
    /// −Σθ, for each class.
    pub constraint: Vec<f64>,
    /// The gap that is small enough.
    pub enough: f64,
}

/// A direction: Δβ, KΔβ, Δb.
pub(crate) struct Direction {
    pub beta: Vec<f64>,
    pub f: Vec<f64>,
    pub b: Vec<f64>,
    pub passes: usize,
}

/// A smooth loss on K. Every `c` is the C at which problems are solved.
pub(crate) trait Smooth: Judge + Send + Sync + Sized {
    type Root: CurvatureRoot;
    /// The preconditioners, and how strong they had to be so far.
    type Preconditioners: Send + Sync;

    /// A Newton step is solved until its gap is at most `STEP_GAP` times the gap before it, or `LAST_GAP` times the
    /// wanted gap.
    const STEP_GAP: f64;
    const LAST_GAP: f64;
    /// From how many of the last solutions the next start is made.
    const REMEMBERS: usize;

    fn settings(&self) -> Settings;
    fn largest_diagonal(&self) -> f64;
    fn preconditioners(&self, control: &Control) -> Result<Self::Preconditioners>;

    /// The intercepts of the best constant model.
    fn constant(&self, weight: &[f64]) -> Vec<f64>;
    /// The best intercepts for f as it stands.
    fn best_intercepts(&self, column: &Column, c: f64) -> Vec<f64>;
    /// The objective.
    fn primal(&self, column: &Column, c: f64) -> f64;
    /// The sum of the rows' Fenchel–Young terms, t of the way along a direction. It is the gap where β is dual feasible.
    /// Elsewhere β is made feasible, and the sum includes a price for that.
    fn mismatch(&self, column: &Column, direction: &Direction, c: f64, t: f64) -> f64;
    /// How fast the losses fall along a direction, t of the way along it.
    fn pull(&self, column: &Column, direction: &Direction, c: f64, t: f64) -> f64;
    /// Computes the mismatch where the column stands, and its objective unless [`find_gap`](Self::find_gap) does.
    fn measure(&self, column: &mut Column, c: f64);
    /// Computes the relative gap. May change β by its rounding error, and if the gap is at most `tol` by what makes β dual
    /// feasible.
    fn find_gap(&self, column: &mut Column, c: f64, tol: f64);

    /// The root of the curvature, and θ.
    fn linearised(&self, column: &Column, c: f64) -> (Self::Root, Vec<f64>);
    /// Solves the systems. `is_first` is true in the first step at a C.
    fn directions(
        &self,
        preconditioners: &mut Self::Preconditioners,
        systems: &[System<Self::Root>],
        is_first: bool,
        control: &Control,
    ) -> Result<Vec<Direction>>;

    /// Where the problem starts that leaves out a row of unit `u`.
    fn without(&self, _whole: &Whole, _rows: &LeftOutRows, _u: usize) -> Result<Column> {
        Err(Error::NoLeaveOneOut)
    }
}
