//! The builder, and the trained and tuned machine: a support vector classifier unless another loss is set.

use crate::cv::{Folds, PathFit, Precision, Request, Selection, Task, fit_paths, select};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernel::{Bandwidth, Kernel};
use crate::loss::Loss;
use crate::model::Model;
use crate::observe::Control;
use crate::path::logspace;
use crate::problem::Settings;
use crate::solver::Solver;

/// Number of folds unless set.
pub const DEFAULT_FOLDS: usize = 5;

/// Which folds to use, before the data is known.
#[derive(Debug, Clone)]
enum Cv {
    Stratified(usize),
    Folds(Folds),
}

/// Settings of a kernel machine; see [`Svc::builder`].
#[derive(Debug, Clone)]
pub struct SvcBuilder {
    loss: Loss,
    solver: Solver,
    kernel: Kernel,
    cs: Vec<f64>,
    cv: Cv,
    selection: Selection,
    settings: Settings,
    precision: Precision,
    threads: usize,
    seed: u64,
    weight: Option<Vec<f64>>,
}

impl Default for SvcBuilder {
    fn default() -> Self {
        Self {
            loss: Loss::Hinge,
            solver: Solver::Auto,
            kernel: Kernel::rbf(Bandwidth::Sigest),
            cs: logspace(1e-3, 1e3, 50),
            cv: Cv::Stratified(DEFAULT_FOLDS),
            selection: Selection::Best,
            settings: Settings::default(),
            precision: Precision::Auto,
            threads: 0,
            seed: 0,
            weight: None,
        }
    }
}

impl SvcBuilder {
    /// The values of C in force.
    pub fn grid(&self) -> &[f64] {
        &self.cs
    }

    /// The loss; the hinge unless set. Regression losses take any targets, the others ±1.
    #[must_use]
    pub fn loss(mut self, loss: Loss) -> Self {
        self.loss = loss;
        self
    }

    /// The solver; the fastest that fits the loss unless set.
    #[must_use]
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// The kernel; RBF with the `sigest` bandwidth unless set.
    #[must_use]
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// The values of C to try; 50 from 1e-3 to 1e3 unless set.
    #[must_use]
    pub fn cs(mut self, cs: impl Into<Vec<f64>>) -> Self {
        self.cs = cs.into();
        self
    }

    /// The number of stratified folds; 5 unless set.
    #[must_use]
    pub fn cv(mut self, folds: usize) -> Self {
        self.cv = Cv::Stratified(folds);
        self
    }

    /// Folds of one's own, leave-one-out, or none.
    #[must_use]
    pub fn folds(mut self, folds: Folds) -> Self {
        self.cv = Cv::Folds(folds);
        self
    }

    /// How C is chosen from the scores.
    #[must_use]
    pub fn selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Largest relative duality gap; 1e-6 unless set.
    #[must_use]
    pub fn tol(mut self, tol: f64) -> Self {
        self.settings.tol = tol;
        self
    }

    /// Most steps a solve may take.
    #[must_use]
    pub fn max_iter(mut self, max_iter: usize) -> Self {
        self.settings.max_iter = max_iter;
        self
    }

    /// Precision of the kernel matrix.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Threads; 0, the default, takes one a core.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// A weight for each row, ≥ 0: the loss of a row counts so often. All 1 unless set.
    #[must_use]
    pub fn weights(mut self, weight: impl Into<Vec<f64>>) -> Self {
        self.weight = Some(weight.into());
        self
    }

    /// Seed of the bandwidth's sample and of the folds.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Trains and tunes: all folds and all C's on one kernel matrix.
    pub fn fit<'a>(&self, x: impl Into<Rows<'a>>, y: &[f64]) -> Result<Svc> {
        self.fit_with(x, y, &Control::default())
    }

    /// As [`fit`](Self::fit), watched and stopped through `control`.
    pub fn fit_with<'a>(&self, x: impl Into<Rows<'a>>, y: &[f64], control: &Control) -> Result<Svc> {
        let x = x.into();
        x.check("X")?;
        let folds = match &self.cv {
            Cv::Folds(folds) => folds.clone(),
            Cv::Stratified(k) => Folds::stratified(y, *k, self.seed)?,
        };
        if folds == Folds::None && self.cs.len() > 1 {
            return Err(Error::Parameter {
                name: "the number of C's",
                expected: "1 without cross-validation, which is what chooses among several",
                value: self.cs.len() as f64,
            });
        }
        if let Some(weight) = self.weight.as_ref().filter(|weight| weight.len() != y.len()) {
            let why = "one weight a row of X";
            return Err(Error::Length { what: "the weights", got: weight.len(), expected: y.len(), why });
        }
        let kernel = self.kernel.resolve(&x, self.weight.as_deref(), self.seed)?;
        let request = Request {
            x,
            tasks: vec![Task { weight: self.weight.clone(), ..Task::new(self.loss, y) }],
            solver: self.solver,
            kernel,
            cs: &self.cs,
            folds,
            settings: self.settings,
            precision: self.precision,
            threads: self.threads,
        };
        let path = fit_paths(&request, control)?.remove(0);
        let best = if self.cs.len() == 1 { Some(0) } else { select(&path.scores, &self.cs, self.selection) };
        let refit = path.records.last().zip(best).map(|(refit, best)| (best, refit[best].b));
        let Some((best, b)) = refit.filter(|(_, b)| b.is_finite()) else {
            let budget = control.budget_seconds().unwrap_or(f64::NAN);
            return Err(Error::TimeBudget {
                budget,
                what: "any C was tried on every fold and on all rows",
                rows: y.len(),
            });
        };
        let model = Model::new(&x, kernel, &path.coef[best], b);
        Ok(Svc { model, path, best })
    }
}

/// A trained and tuned kernel machine: a support vector classifier unless another loss was set.
///
/// ```
/// use kernelpath::{Loss, Svc};
///
/// let x: Vec<f64> = (0..60).map(|i| f64::from(i) / 10.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let median = Svc::builder().loss(Loss::Quantile { tau: 0.5 }).fit((x.as_slice(), 1), &y)?;
/// assert!((median.predict((&[1.55][..], 1))?[0] - 1.0).abs() < 0.1);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Svc {
    model: Model,
    path: PathFit,
    best: usize,
}

impl Svc {
    /// Starts from the defaults.
    pub fn builder() -> SvcBuilder {
        SvcBuilder::default()
    }

    /// The chosen C.
    pub fn c(&self) -> f64 {
        self.path.cs[self.best]
    }

    /// Weighted mean [score](Loss::score) of every fold at every C.
    pub fn scores(&self) -> &[Vec<f64>] {
        &self.path.scores
    }

    /// All models of the path with their certificates.
    pub fn path(&self) -> &PathFit {
        &self.path
    }

    /// The model at the chosen C.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// f at every row; see [`Model::decision_function`].
    pub fn decision_function<'a>(&self, x: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        self.model.decision_function(x)
    }

    /// The class of every row, see [`Model::predict`]; for a regression loss f itself.
    pub fn predict<'a>(&self, x: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        if self.path.loss.is_classification() { self.model.predict(x) } else { self.model.decision_function(x) }
    }
}
