//! What to fit.

use std::sync::Arc;

use crate::certify::record::Settings;
use crate::data::rows::Rows;
use crate::device::place::DeviceChoice;
use crate::fit::folds::Folds;
use crate::fit::precision::Precision;
use crate::fit::row_classes::RowClasses;
use crate::kernel::pairs::Pairs;
use crate::kernel::shape::KernelFn;
use crate::loss::objective::Objective;
use crate::loss::scalar::Loss;
use crate::nystrom::approximation::Nystrom;
use crate::nystrom::features::LowRankSize;
use crate::solver::choice::Solver;

/// One machine: what it minimises, and the targets and weights of its rows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Task {
    /// The loss, or the multinomial loss of several classes.
    pub objective: Objective,
    /// The rows of X that the machine learns from, in rising order; `None`: all.
    pub rows: Option<Vec<usize>>,
    /// A target for each of these rows: a number, ±1, or for the multinomial loss a class counted from 0.
    pub y: Vec<f64>,
    /// A weight for each of these rows in the loss, ≥ 0; `None`: all 1. What its class weighs comes on top.
    pub weight: Option<Vec<f64>>,
    /// The same for the scores of held-out rows; `None`: as in `weight`.
    pub score_weight: Option<Vec<f64>>,
    /// The classes of all rows of X, if this is a machine of a classifier: their weights in the loss, and whether there
    /// are others than those of this machine.
    pub classes: Option<Arc<RowClasses>>,
    /// A factor of C for this task, > 0. With it, tasks whose targets have different units can share one grid of C's.
    pub c_factor: f64,
}

impl Task {
    /// All rows, of weight 1.
    pub fn new(objective: impl Into<Objective>, y: &[f64]) -> Self {
        let objective = objective.into();
        Self { objective, rows: None, y: y.to_vec(), weight: None, score_weight: None, classes: None, c_factor: 1.0 }
    }

    /// These weights of the rows in the loss.
    #[must_use]
    pub fn with_weight(self, weight: Option<Vec<f64>>) -> Self {
        Self { weight, ..self }
    }

    /// These weights of held-out rows in the scores.
    #[must_use]
    pub fn with_score_weight(self, score_weight: Option<Vec<f64>>) -> Self {
        Self { score_weight, ..self }
    }

    /// A machine that learns from these rows of X alone, in rising order.
    #[must_use]
    pub fn on_rows(self, rows: Option<Vec<usize>>) -> Self {
        Self { rows, ..self }
    }

    /// A machine of a classifier of these classes.
    #[must_use]
    pub fn of_classes(self, classes: Option<Arc<RowClasses>>) -> Self {
        Self { classes, ..self }
    }

    /// C's multiplied by a factor.
    #[must_use]
    pub fn with_c_factor(self, c_factor: f64) -> Self {
        Self { c_factor, ..self }
    }

    /// The loss of one value per row, if it is one.
    pub(crate) fn loss(&self) -> Option<Loss> {
        match self.objective {
            Objective::Scalar(loss) => Some(loss),
            Objective::Multinomial => None,
        }
    }

    /// The number of values that a model gives a row.
    pub(crate) fn outputs(&self) -> usize {
        self.objective.outputs(&self.y)
    }

    /// The place of row `i` of X among the rows of the task.
    pub(crate) fn position(&self, i: usize) -> Option<usize> {
        self.rows.as_ref().map_or(Some(i), |rows| rows.binary_search(&i).ok())
    }

    /// The row of X that is the `k`-th row of the task.
    pub(crate) fn row(&self, k: usize) -> usize {
        self.rows.as_ref().map_or(k, |rows| rows[k])
    }

    /// The weight in the loss of each row of the task, in the problem in which row i of X counts `count(i)` times: its
    /// own weight times that of its class.
    pub(crate) fn weights(&self, count: &dyn Fn(usize) -> f64) -> Vec<f64> {
        let factors = self.classes.as_ref().map(|classes| (classes.class(), classes.factors(count)));
        let factor = |row: usize| factors.as_ref().map_or(1.0, |(class, factors)| factors[class[row]]);
        let weight = |k: usize| self.weight(k) * factor(self.row(k)) * count(self.row(k));
        (0..self.y.len()).map(weight).collect()
    }

    /// Whether the task is one of several machines that tell more than two classes apart.
    pub(crate) fn is_one_of_several(&self) -> bool {
        self.classes.as_ref().is_some_and(|classes| classes.number() > 2)
    }

    /// Weight of the `k`-th row of the task, without that of its class.
    pub(crate) fn weight(&self, k: usize) -> f64 {
        self.weight.as_ref().map_or(1.0, |weight| weight[k])
    }

    /// Weight of the `k`-th row of the task in a score.
    pub(crate) fn score_weight(&self, k: usize) -> f64 {
        self.score_weight.as_ref().map_or_else(|| self.weight(k), |weight| weight[k])
    }
}

/// The kernel, and whether it is exact or at low rank.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum KernelChoice<'a> {
    /// The kernel matrix of all rows.
    Exact(KernelFn),
    /// K = ZZᵀ with the features of these landmarks.
    LowRank(&'a Nystrom),
}

impl KernelChoice<'_> {
    /// The kernel function.
    pub fn function(&self) -> KernelFn {
        match self {
            Self::Exact(kernel) => *kernel,
            Self::LowRank(nystrom) => nystrom.kernel(),
        }
    }
}

impl From<KernelFn> for KernelChoice<'_> {
    fn from(kernel: KernelFn) -> Self {
        Self::Exact(kernel)
    }
}

impl<'a> From<&'a Nystrom> for KernelChoice<'a> {
    fn from(nystrom: &'a Nystrom) -> Self {
        Self::LowRank(nystrom)
    }
}

/// What to fit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The rows, or the kernel matrix for [`Shape::Precomputed`](crate::Shape::Precomputed).
    pub x: Rows<'a>,
    /// The machines; each gives a fit of its own, on the same kernel matrix.
    pub tasks: Vec<Task>,
    /// How the problems are solved.
    pub solver: Solver,
    /// The kernel.
    pub kernel: KernelChoice<'a>,
    /// Values of C in any order; results are in the same order.
    pub cs: &'a [f64],
    /// Cross-validation.
    pub folds: Folds,
    /// Tolerance and limits.
    pub settings: Settings,
    /// Precision of the kernel matrix.
    pub precision: Precision,
    /// Where the linear algebra runs.
    pub device: DeviceChoice,
    /// Threads, as [`threads::count`](crate::threads::count) counts them. The answer does not depend on it.
    pub threads: usize,
    /// Shared with fits of other bandwidths on the same rows; used if memory allows.
    pub pairs: Option<&'a Pairs>,
    /// The fit at low rank whose size an error names if there is no memory for the kernel matrix.
    pub instead: LowRankSize,
}

impl<'a> Request<'a> {
    /// These machines with this kernel at these C's: no folds, default settings.
    pub fn new(x: impl Into<Rows<'a>>, tasks: Vec<Task>, kernel: impl Into<KernelChoice<'a>>, cs: &'a [f64]) -> Self {
        Self {
            x: x.into(),
            tasks,
            solver: Solver::default(),
            kernel: kernel.into(),
            cs,
            folds: Folds::None,
            settings: Settings::default(),
            precision: Precision::default(),
            device: DeviceChoice::default(),
            threads: 0,
            pairs: None,
            instead: LowRankSize::default(),
        }
    }

    /// The number of models of each machine at each C: the folds and the refit.
    pub(crate) fn problems(&self) -> usize {
        1 + self.folds.len(self.x.nrows())
    }
}
