//! What all builders can be asked for: settings that live once, and the methods that set them.

use std::time::Duration;

use crate::certify::record::Settings;
use crate::data::rows::Rows;
use crate::device::place::{DeviceChoice, Hardware};
use crate::error::{Error, Result};
use crate::estimator::counted::Counted;
use crate::estimator::function::Function;
use crate::fit::folds::Folds;
use crate::fit::precision::Precision;
use crate::fit::scoring::Scoring;
use crate::fit::select::Selection;
use crate::kernel::bandwidth::{Bandwidth, Kernel};
use crate::kernel::gammas::Gammas;
use crate::kernel::shape::Shape;
use crate::numeric::steps::logspace;
use crate::numeric::threads::pooled;
use crate::nystrom::build::LowRank;
use crate::observe::Control;
use crate::solver::choice::Solver;

/// Number of folds, unless another one is set.
pub const DEFAULT_FOLDS: usize = 5;

/// Number of values of C, unless others are set.
pub const DEFAULT_CS: usize = 50;

/// Most values of C, or of γ, of a fit. Each is a model on every fold: more than this many say that something else was
/// meant, and counts beyond all memory would end the process.
pub const MOST_CS: usize = 10_000;

/// The smallest and the largest C, unless others are set.
const DEFAULT_RANGE: (f64, f64) = (1e-3, 1e3);

/// The values of C, unless others are set: `count` of them from 1e-3 to 1e3.
///
/// ```
/// assert_eq!(kernelpath::default_cs(3)?[2], 1e3);
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub fn default_cs(count: usize) -> Result<Vec<f64>> {
    logspace(DEFAULT_RANGE.0, DEFAULT_RANGE.1, count)
}

/// Whether the machines of several classes, or of several targets, choose their C together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Tune {
    /// One C for all, by the score of the model that they make together.
    #[default]
    Joint,
    /// A C for each, by its own score. γ is one for all.
    Each,
}

/// The values of C.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Grid {
    /// This many from 1e-3 to 1e3, for some losses times the spread of the targets.
    Default(usize),
    Cs(Vec<f64>),
    /// C = 1 / (2nλ).
    Lambdas(Vec<f64>),
}

/// Which folds to use, before the data is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cv {
    Count(usize),
    Given(Folds),
}

/// What every builder holds.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub kernel: Kernel,
    /// What computes the precomputed kernel.
    pub function: Option<Function>,
    pub gammas: Option<Gammas>,
    pub grid: Grid,
    pub cv: Cv,
    pub scoring: Option<Scoring>,
    pub selection: Selection,
    pub weights: Option<Vec<f64>>,
    pub low_rank: Option<LowRank>,
    pub solver: Solver,
    pub settings: Settings,
    pub precision: Precision,
    pub device: DeviceChoice,
    pub threads: usize,
    pub seed: u64,
    pub time_budget: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kernel: Kernel::rbf(Bandwidth::Sigest),
            function: None,
            gammas: None,
            grid: Grid::Default(DEFAULT_CS),
            cv: Cv::Count(DEFAULT_FOLDS),
            scoring: None,
            selection: Selection::Best,
            weights: None,
            low_rank: None,
            solver: Solver::Auto,
            settings: Settings::default(),
            precision: Precision::Auto,
            device: DeviceChoice::default(),
            threads: 0,
            seed: 0,
            time_budget: None,
        }
    }
}

/// An error about a setting, as it is written.
pub(crate) fn setting<T>(call: impl Into<String>, problem: impl Into<String>) -> Result<T> {
    Err(Error::Setting { call: call.into(), problem: problem.into() })
}

impl Options {
    /// Refuses settings that no data could make right.
    pub fn check(&self) -> Result<()> {
        let Settings { tol, max_iter, .. } = self.settings;
        if !(tol > 0.0 && tol < 1.0) {
            return setting(format!(".tol({tol})"), "a relative gap lies between 0 and 1; use a number such as 1e-6");
        }
        if max_iter == 0 {
            return setting(".max_iter(0)", "a solve takes at least 1 step");
        }
        let is_good = |value: &f64| *value > 0.0 && value.is_finite();
        let (call, symbol, values) = match &self.grid {
            Grid::Default(count) if *count < 2 => {
                return setting(format!(".n_cs({count})"), "a grid has at least 2 values; for one C use `.cs([1.0])`");
            }
            Grid::Default(count) if *count > MOST_CS => {
                return setting(format!(".n_cs({count})"), format!("a grid has at most {MOST_CS} values"));
            }
            Grid::Default(_) => (".cs", "C", &[][..]),
            Grid::Cs(values) => (".cs", "C", &values[..]),
            Grid::Lambdas(values) => (".lambdas", "lambda", &values[..]),
        };
        if values.is_empty() && !matches!(self.grid, Grid::Default(_)) {
            return setting(format!("{call}([])"), format!("no {symbol} is given; give at least one"));
        }
        if values.len() > MOST_CS {
            return setting(
                format!("{call}(…)"),
                format!("{} values are given, and {MOST_CS} are the most", values.len()),
            );
        }
        if let Some(at) = values.iter().position(|value| !is_good(value)) {
            let problem = format!("{symbol} must be a finite number > 0, got {} at place {at}", values[at]);
            return setting(format!("{call}(…)"), problem);
        }
        let Some(Gammas::Values(gammas)) = &self.gammas else { return Ok(()) };
        if gammas.is_empty() {
            return setting(".gammas([])", "no gamma is given; give at least one, or leave the rule of the kernel");
        }
        if gammas.len() > MOST_CS {
            return setting(".gammas(…)", format!("{} values are given, and {MOST_CS} are the most", gammas.len()));
        }
        if let Some(at) = gammas.iter().position(|gamma| !is_good(gamma)) {
            let problem = format!("gamma must be a finite number > 0, got {} at place {at}", gammas[at]);
            return setting(".gammas(…)", problem);
        }
        if let Some(at) = (1..gammas.len()).find(|&at| gammas[..at].contains(&gammas[at])) {
            return setting(".gammas(…)", format!("{} is given twice, at place {at} for the second time", gammas[at]));
        }
        Ok(())
    }

    /// The values of C for `n` rows.
    pub fn cs(&self, n: usize) -> Result<Vec<f64>> {
        match &self.grid {
            Grid::Default(count) => default_cs(*count),
            Grid::Cs(cs) => Ok(cs.clone()),
            Grid::Lambdas(lambdas) => {
                let cs: Vec<f64> = lambdas.iter().map(|lambda| 1.0 / (2.0 * n as f64 * lambda)).collect();
                match cs.iter().position(|c| !(*c > 0.0 && c.is_finite())) {
                    None => Ok(cs),
                    Some(at) => {
                        let (lambda, c) = (lambdas[at], cs[at]);
                        let problem = format!("lambda = {lambda} at place {at} gives C = 1 / (2 n lambda) = {c}");
                        setting(".lambdas(…)", format!("{problem}, which must be a finite number > 0"))
                    }
                }
            }
        }
    }

    /// Whether the values of C are the default ones, in units that a loss may choose.
    pub fn is_default_grid(&self) -> bool {
        matches!(self.grid, Grid::Default(_))
    }

    /// What computes.
    pub fn hardware(&self) -> Hardware {
        Hardware::threads(self.threads).device(self.device)
    }

    /// The rows that count, or the values of the kernel function between them.
    pub fn counted<'a>(&self, x: Rows<'a>, targets: usize, control: &Control) -> Result<Counted<'a>> {
        let weights = self.weights.as_deref();
        let Some(function) = &self.function else { return Counted::new(x, targets, weights, self.kernel.shape) };
        // The function takes rows, so that these are no kernel matrix yet.
        let counted = Counted::new(x, targets, weights, Shape::Linear)?;
        let matrix = function.matrix(&counted.x(), &counted.x(), self.threads, control)?;
        Ok(counted.with_matrix(matrix))
    }

    /// The values of γ to try, in the order given.
    pub fn tried_gammas(&self, x: &Rows, weight: Option<&[f64]>) -> Result<Vec<f64>> {
        pooled(self.threads, || self.kernel.gammas(self.gammas.as_ref(), x, weight, self.seed))
    }

    pub fn is_leave_one_out(&self) -> bool {
        self.cv == Cv::Given(Folds::LeaveOneOut)
    }

    /// The folds of the rows that count, shuffled; with classes, stratified.
    pub fn folds(&self, counted: &Counted, class: Option<&[usize]>) -> Result<Folds> {
        let n = counted.n();
        let k = match &self.cv {
            Cv::Given(Folds::Splits(folds)) if folds.is_empty() => {
                return setting(".folds(Folds::Splits([]))", "no fold is given; `.folds(Folds::None)` does without");
            }
            Cv::Given(folds) => return counted.folds(folds.clone()),
            Cv::Count(k) => *k,
        };
        if k < 2 || k > n {
            let way_out = "or `.folds(Folds::None)` with one C to do without";
            let problem = format!("the number of folds must be between 2 and {n}, the rows of weight > 0; {way_out}");
            return setting(format!(".cv({k})"), problem);
        }
        match class {
            Some(class) => Folds::stratified(&class.iter().map(|c| *c as f64).collect::<Vec<_>>(), k, self.seed),
            None => Folds::shuffled(n, k, self.seed),
        }
    }

    /// Refuses, before any work, folds whose scores could not choose among so many values of C and of γ.
    pub fn check_tunable(&self, folds: &Folds, (cs, gammas): (usize, usize), n: usize) -> Result<()> {
        let (one_c, one_gamma) = ("`.cs([1.0])`", "`.gammas([0.1])`");
        let choice = match (cs, gammas) {
            (1, 1) => None,
            (cs, 1) => Some((format!("{cs} values of C"), one_c.to_owned())),
            (1, gammas) => Some((format!("{gammas} values of gamma"), one_gamma.to_owned())),
            _ => Some((format!("{cs} values of C and {gammas} of gamma"), format!("{one_c} and {one_gamma}"))),
        };
        if let Some((values, one)) = choice.filter(|_| *folds == Folds::None) {
            let problem =
                format!("no fold can choose among {values}; give one, such as {one}, or folds, such as `.cv(5)`");
            return setting(".folds(Folds::None)", problem);
        }
        if *folds == Folds::LeaveOneOut && self.low_rank.is_some() {
            let problem = "needs the whole kernel matrix, which `.low_rank(…)` does without; use `.cv(10)`";
            return setting(".leave_one_out()", problem);
        }
        let scores = match folds {
            Folds::LeaveOneOut if self.scoring.is_some() => 1,
            folds => folds.len(n),
        };
        if *folds != Folds::None && self.selection == Selection::OneStandardError && scores < 2 {
            let problem = "needs the scores of at least 2 folds; use `.selection(Selection::Best)`, or more folds";
            return setting(".selection(Selection::OneStandardError)", problem);
        }
        Ok(())
    }
}
