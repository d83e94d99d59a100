//! Folds × path on one Gram: cross-validation inside the algorithm.
//!
//! A held-out row is a row of weight 0, so every fold is (P) on the same kernel matrix, and the
//! fold's out-of-fold scores are the f of its held-out rows.

use std::cell::OnceCell;
use std::time::Instant;

use rayon::prelude::*;

use crate::certificate::{Certificate, STANDARD_ERRORS, worst};
use crate::data::{Rows, Units};
use crate::definite::{epsilon, negative_eigenvalue};
use crate::device::{Cpu, Decomposition};
use crate::error::{Error, Result};
use crate::features::LowRankSize;
use crate::gram::{Entry, Gram, check_plan, single_is_enough};
use crate::grid::{Distinct, OfEachC, Scales, check_products, each_once, largest_diagonal};
use crate::held_out::{groups, held_out};
use crate::kernel::{KernelFn, Shape};
use crate::ledger::{Keeps, Kept, Ledger, Plan};
use crate::loo;
use crate::loss::Loss;
use crate::low_rank;
use crate::memory;
use crate::observe::{Control, Phase};
use crate::pairs::Pairs;
use crate::path::check_cs;
use crate::problem::{Settings, Shared, Status};
use crate::solver::{ClosedForm, Engine, Newton, Size, Solver, Working, spectral};
use crate::spread::in_units;
use crate::walk::walk;

/// One split of the rows. A training row named twice counts twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// Rows to train on.
    pub train: Vec<usize>,
    /// Rows to score.
    pub test: Vec<usize>,
}

/// Which models besides the one on all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folds {
    /// None.
    None,
    /// These splits.
    Splits(Vec<Fold>),
    /// Each row held out once, exactly.
    LeaveOneOut,
}

impl Folds {
    /// `k` folds with the classes of `y` spread evenly, shuffled reproducibly.
    pub fn stratified(y: &[f64], k: usize, seed: u64) -> Result<Self> {
        if k < 2 || k > y.len() {
            return Err(Error::Parameter { name: "cv", expected: "between 2 and the number of rows", value: k as f64 });
        }
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut order: Vec<usize> = (0..y.len()).collect();
        rng.shuffle(&mut order);
        order.sort_by(|&a, &b| y[a].total_cmp(&y[b]));
        let mut fold_of = vec![0; y.len()];
        for (position, &row) in order.iter().enumerate() {
            fold_of[row] = position % k;
        }
        let rows = |wanted: bool, fold: usize| (0..y.len()).filter(|&i| (fold_of[i] == fold) == wanted).collect();
        Ok(Self::Splits((0..k).map(|fold| Fold { train: rows(false, fold), test: rows(true, fold) }).collect()))
    }

    /// The splits, if there are any.
    pub(crate) fn splits(&self) -> &[Fold] {
        if let Self::Splits(folds) = self { folds } else { &[] }
    }

    fn len(&self, n: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Splits(folds) => folds.len(),
            Self::LeaveOneOut => n,
        }
    }
}

/// Precision of the kernel matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Single where rounding stays far below the tolerance; double where the kernel matrix is nearly
    /// singular, as for kernels of ⟨x, z⟩ and smooth kernels in few dimensions, because rounding
    /// would make it indefinite, and where C is so large that its corrections would not do. A precomputed matrix
    /// keeps its own precision.
    #[default]
    Auto,
    /// f32 with 16-bit corrections: three quarters of the memory, and faster steps. Certificates are as true.
    Single,
    /// f64.
    Double,
}

impl Precision {
    /// The names, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["auto", "float32", "float64"];

    /// The precision of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "float32" => Ok(Self::Single),
            "float64" => Ok(Self::Double),
            _ => Err(Error::Unknown { what: "dtype", name: name.into(), known: Self::NAMES }),
        }
    }

    pub(crate) fn is_single(self, kernel: &KernelFn, x: &Rows, rows: &[usize], control: &Control) -> Result<bool> {
        Ok(match self {
            Self::Single => true,
            Self::Double => false,
            Self::Auto if kernel.shape == Shape::Precomputed => matches!(x, Rows::F32(_)),
            Self::Auto => kernel.shape.is_shift_invariant() && single_is_enough(x, rows, kernel, control)?,
        })
    }
}

/// One machine: a loss and the targets and weights of its rows.
#[derive(Debug, Clone)]
pub struct Task {
    /// The loss.
    pub loss: Loss,
    /// The rows of X it learns from, in rising order; `None`: all.
    pub rows: Option<Vec<usize>>,
    /// A target for each of these rows.
    pub y: Vec<f64>,
    /// A weight for each of these rows in the loss, > 0 or 0; `None`: all 1.
    pub weight: Option<Vec<f64>>,
    /// The same for the scores of held-out rows; `None`: as in the loss.
    pub score_weight: Option<Vec<f64>>,
    /// The factor of C for this task, > 0. Tasks whose targets have different units can share one grid of C's with it.
    pub c_factor: f64,
}

impl Task {
    /// All rows, of weight 1.
    pub fn new(loss: Loss, y: &[f64]) -> Self {
        Self { loss, rows: None, y: y.to_vec(), weight: None, score_weight: None, c_factor: 1.0 }
    }

    /// The place of row `i` of X among its rows.
    pub(crate) fn position(&self, i: usize) -> Option<usize> {
        self.rows.as_ref().map_or(Some(i), |rows| rows.binary_search(&i).ok())
    }

    /// Its `k`-th row among those of X.
    pub(crate) fn row(&self, k: usize) -> usize {
        self.rows.as_ref().map_or(k, |rows| rows[k])
    }

    /// Weight of its `k`-th row.
    pub(crate) fn weight(&self, k: usize) -> f64 {
        self.weight.as_ref().map_or(1.0, |weight| weight[k])
    }

    /// Weight of its `k`-th row in a score.
    fn score_weight(&self, k: usize) -> f64 {
        self.score_weight.as_ref().map_or_else(|| self.weight(k), |weight| weight[k])
    }
}

/// What to fit.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The rows, or the kernel matrix for [`Shape::Precomputed`].
    pub x: Rows<'a>,
    /// The machines; each gives a fit of its own, on the same kernel matrix.
    pub tasks: Vec<Task>,
    /// How the problems are solved.
    pub solver: Solver,
    /// The kernel.
    pub kernel: KernelFn,
    /// Values of C in any order; results keep it.
    pub cs: &'a [f64],
    /// Cross-validation.
    pub folds: Folds,
    /// Tolerance and limits.
    pub settings: Settings,
    /// Precision of the kernel matrix.
    pub precision: Precision,
    /// Threads, as [`threads::count`](crate::threads::count) counts them. The answer does not depend on it.
    pub threads: usize,
    /// Shared with fits of other bandwidths on the same rows; used if memory allows.
    pub pairs: Option<&'a Pairs>,
    /// The fit at low rank whose size is named where the kernel matrix finds no memory.
    pub instead: LowRankSize,
}

/// One model of the path, as far as it is kept.
#[derive(Debug, Clone)]
pub struct Record<B = f64> {
    /// How its solve ended.
    pub status: Status,
    /// Steps it took.
    pub steps: usize,
    /// Its proof.
    pub certificate: Certificate,
    /// Intercept; of the multinomial loss one a class, which sum to 0.
    pub b: B,
}

impl Record {
    pub(crate) const NOT_RUN: Self =
        Self { status: Status::NotRun, steps: 0, certificate: Certificate::NONE, b: f64::NAN };
}

/// Every model of a fit: folds × C's and the refit.
#[derive(Debug, Clone)]
pub struct PathFit {
    /// The loss.
    pub loss: Loss,
    /// The solver that was used.
    pub solver: &'static str,
    /// The values of C, as given.
    pub cs: Vec<f64>,
    /// Rows of the data.
    pub n: usize,
    /// The rows it learned from; `None`: all.
    pub rows: Option<Vec<usize>>,
    /// Weighted mean over the fold's test rows among them of the [score](Loss::score) of the loss, for every fold
    /// and C; NaN where not run or without such rows.
    pub scores: Vec<Vec<f64>>,
    /// `records[fold][c]`; the last "fold" is the refit on all rows.
    pub records: Vec<Vec<Record>>,
    /// `oof[fold][c]`: decision values of the fold's test rows, in their order; NaN where not run.
    pub oof: Vec<Vec<Vec<f64>>>,
    /// Test rows of each fold.
    pub test: Vec<Vec<usize>>,
    /// `coef[c]`: β of the refit, one for each row it learned from.
    pub coef: Vec<Vec<f64>>,
    /// Bytes of the kernel matrix.
    pub gram_bytes: u64,
    /// Bytes that the fit was planned to take at its peak.
    pub planned_bytes: u64,
    /// Seconds spent on the kernel matrix.
    pub kernel_seconds: f64,
    /// Seconds spent on the paths.
    pub path_seconds: f64,
    /// Whether the time budget ended the fit.
    pub timed_out: bool,
    /// The smallest eigenvalue of the kernel matrix, or of that of the landmarks, if it is so far below 0 that the
    /// models have no certificate; `None`: the matrix is positive semi-definite, up to rounding.
    pub smallest_eigenvalue: Option<f64>,
}

impl PathFit {
    /// Number of folds, the refit not counted.
    pub fn n_folds(&self) -> usize {
        self.test.len()
    }

    /// Mean decision value of each row over the folds that held it out, at the C of index `c`; NaN if none did.
    pub fn out_of_fold(&self, c: usize) -> Vec<f64> {
        let mut mean = vec![0.0; self.n];
        let mut count = vec![0.0; self.n];
        for (by_c, test) in self.oof.iter().zip(&self.test) {
            for (&row, f) in test.iter().zip(&by_c[c]) {
                mean[row] += f;
                count[row] += 1.0;
            }
        }
        mean.iter_mut().zip(&count).for_each(|(f, count)| *f /= count);
        mean
    }

    /// Largest gap of all models; NaN if the kernel is indefinite.
    pub fn worst_gap(&self) -> f64 {
        worst(self.records.iter().flatten().map(|r| r.certificate.gap()))
    }
}

/// Which C the scores choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection {
    /// The highest mean score; of equals the smallest C.
    #[default]
    Best,
    /// The smallest C whose mean is within one standard error of the best.
    OneStandardError,
}

/// Index of the chosen C, for `scores[fold][c]`; C's without a score (NaN) are left out.
pub fn select(scores: &[Vec<f64>], cs: &[f64], rule: Selection) -> Option<usize> {
    let column = |c: usize| scores.iter().map(move |fold| fold[c]);
    let folds = scores.len() as f64;
    let mean = |c: usize| column(c).sum::<f64>() / folds;
    let smallest = |candidates: &mut dyn Iterator<Item = usize>| candidates.min_by(|&a, &b| cs[a].total_cmp(&cs[b]));
    let top = (0..cs.len()).map(mean).filter(|m| !m.is_nan()).max_by(f64::total_cmp)?;
    // Means that differ by rounding only are equal.
    let slack = 1e-12 * top.abs();
    let best = smallest(&mut (0..cs.len()).filter(|&c| mean(c) >= top - slack))?;
    match rule {
        Selection::Best => Some(best),
        Selection::OneStandardError => {
            let variance = column(best).map(|s| (s - top) * (s - top)).sum::<f64>() / (folds - 1.0).max(1.0);
            let bar = top - (variance / folds).sqrt();
            smallest(&mut (0..cs.len()).filter(|&c| mean(c) >= bar - slack))
        }
    }
}

/// Fits every fold and the whole data at every C, each model with its certificate; one fit a task.
pub fn fit_paths(request: &Request, control: &Control) -> Result<Vec<PathFit>> {
    fit_paths_on(request, request.kernel.shape.is_definite(), control)
}

/// As [`fit_paths`]; a kernel that is not known to be positive semi-definite is examined.
pub(crate) fn fit_paths_on(request: &Request, definite: bool, control: &Control) -> Result<Vec<PathFit>> {
    let fit = |request: &Request| {
        // In a pool of its own: the global one does not survive a fork, and does not say where threads are short.
        pool(request.threads)?.install(|| {
            check(request)?;
            in_units(request, |request| {
                for task in &request.tasks {
                    request.solver.engine(task.loss, task.y.len())?;
                }
                let units = units(request, control)?;
                let may_be_single = request.precision != Precision::Auto || single_proves(request);
                let (kernel, rows) = (&request.kernel, &units.representative);
                if may_be_single && request.precision.is_single(kernel, &request.x, rows, control)? {
                    fit_with::<f32>(request, &units, definite, control)
                } else {
                    fit_with::<f64>(request, &units, definite, control)
                }
            })
        })
    };
    each_once(request.cs, |cs| match cs {
        None => fit(request),
        Some(cs) => fit(&Request { cs, ..request.clone() }),
    })
}

impl OfEachC for PathFit {
    fn spread(self, distinct: &Distinct) -> Self {
        Self {
            cs: distinct.spread(&self.cs),
            scores: distinct.spread_folds(&self.scores),
            records: distinct.spread_folds(&self.records),
            oof: distinct.spread_folds(&self.oof),
            coef: distinct.spread(&self.coef),
            ..self
        }
    }
}

/// Whether a matrix stored in single precision with its corrections can prove the tolerance at the largest C: there, f of a
/// piecewise-linear loss, whose rows all stand at a bound, is off by a standard error of √n·C·w times that of an entry.
pub(crate) fn single_proves(request: &Request) -> bool {
    let largest = request.cs.iter().fold(0.0, |a: f64, c| a.max(*c));
    request.tasks.iter().filter(|task| task.loss.curvature_bound().is_none()).all(|task| {
        let weight = (0..task.y.len()).map(|k| task.weight(k)).fold(0.0, f64::max);
        let error = Gram::<f32>::storage_error() * (task.y.len() as f64).sqrt() * largest * weight;
        STANDARD_ERRORS * error <= request.settings.tol * task.loss.scale(&task.y)
    })
}

/// Rows that are the same in every task.
pub(crate) fn units(request: &Request, control: &Control) -> Result<Units> {
    check_rows(request.x.nrows(), request.tasks.iter().map(|task| task.y.len()).sum())?;
    if request.kernel.shape == Shape::Precomputed {
        return Ok(Units::separate(request.x.nrows()));
    }
    // Of a unit, leave-one-out leaves out one row: then they must be equal in their weights, too.
    let alone = request.folds == Folds::LeaveOneOut;
    let (whole, small): (Vec<usize>, Vec<usize>) =
        (0..request.tasks.len()).partition(|&t| request.tasks[t].rows.is_none());
    // Of each row the small tasks that learn from it, and its place in them.
    let mut learners: Vec<Vec<(usize, usize)>> = vec![Vec::new(); if small.is_empty() { 0 } else { request.x.nrows() }];
    for t in small {
        for (k, &row) in request.tasks[t].rows.iter().flatten().enumerate() {
            learners[row].push((t, k));
        }
    }
    let key = |(t, k): (usize, usize)| {
        let task = &request.tasks[t];
        [t as f64, task.y[k], if alone { task.weight(k) } else { 1.0 }]
    };
    let keys = |i: usize| {
        let in_small = learners.get(i).into_iter().flatten().copied();
        whole.iter().map(move |&t| (t, i)).chain(in_small).flat_map(key)
    };
    Units::merge(&request.x, keys, control)
}

/// Fails if there is no memory for what every fit takes before it can be planned: a hash and a place of each of `n`
/// rows, and a key of each of the `targets` of all machines.
pub(crate) fn check_rows(n: usize, targets: usize) -> Result<()> {
    let numbers = 24 * n as u64 + 8 * targets as u64;
    memory::check(8 * numbers + (8 << 20), "the rows", memory::FEWER_ROWS)
}

/// Threads to work on.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    memory::pool(threads)
}

/// Refuses rows, C's, folds and settings that no fit can use, whatever its machines are.
pub(crate) fn check_setup(x: &Rows, cs: &[f64], folds: &Folds, settings: Settings) -> Result<()> {
    let n = x.nrows();
    x.check("X")?;
    check_cs(cs)?;
    if !(settings.tol > 0.0 && settings.tol < 1.0) {
        return Err(Error::Parameter { name: "tol", expected: "between 0 and 1", value: settings.tol });
    }
    if settings.max_iter == 0 {
        return Err(Error::Parameter { name: "max_iter", expected: ">= 1", value: 0.0 });
    }
    if let Folds::Splits(folds) = folds {
        for (k, fold) in folds.iter().enumerate() {
            let problem = |problem: String| Err(Error::Fold { fold: k, problem });
            if fold.train.is_empty() || fold.test.is_empty() {
                return problem(format!(
                    "{} training and {} test rows; both must be there",
                    fold.train.len(),
                    fold.test.len()
                ));
            }
            if let Some(i) = fold.train.iter().chain(&fold.test).find(|i| **i >= n) {
                return problem(format!("row {i} is out of range for {n} rows"));
            }
        }
    }
    Ok(())
}

pub(crate) fn check(request: &Request) -> Result<()> {
    check_setup(&request.x, request.cs, &request.folds, request.settings)?;
    if request.tasks.is_empty() {
        return Err(Error::NoLoss);
    }
    request.tasks.iter().try_for_each(|task| check_task(task, request))?;
    let diagonal = largest_diagonal(&request.x, &request.kernel);
    request.tasks.iter().try_for_each(|task| {
        let (slope, value) = task.loss.steepness(&task.y);
        let weights = (0..task.y.len()).map(|k| task.weight(k) * task.c_factor);
        check_products(request.cs, weights, &Scales { slope, value, diagonal })
    })
}

fn check_task(task: &Task, request: &Request) -> Result<()> {
    let n = request.x.nrows();
    task.loss.check()?;
    let rows = task.rows.as_ref().map_or(n, Vec::len);
    if let Some(rows) = &task.rows {
        if let Some(at) = rows.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(Error::Rows { row: rows[at + 1], problem: "does not come after the one before it" });
        }
        if let Some(&row) = rows.iter().find(|row| **row >= n) {
            return Err(Error::Rows { row, problem: "is out of range" });
        }
    }
    if task.y.len() != rows {
        return Err(Error::Length { what: "y", got: task.y.len(), expected: rows, why: "one target a row of X" });
    }
    if let Some(k) = task.y.iter().position(|y| !y.is_finite()) {
        return Err(Error::NotFinite { what: "y", value: task.y[k], row: task.row(k), column: 0 });
    }
    for weight in [&task.weight, &task.score_weight].into_iter().flatten() {
        if weight.len() != rows {
            let why = "one weight a row of X";
            return Err(Error::Length { what: "the weights", got: weight.len(), expected: rows, why });
        }
        if let Some(k) = weight.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
            return Err(Error::Weight { value: weight[k], row: task.row(k) });
        }
    }
    if !(task.c_factor > 0.0 && task.c_factor.is_finite()) {
        return Err(Error::Parameter { name: "c_factor", expected: "a finite number > 0", value: task.c_factor });
    }
    if !task.loss.is_classification() {
        return if (0..rows).any(|k| task.weight(k) > 0.0) { Ok(()) } else { Err(Error::NoWeight) };
    }
    if let Some(k) = task.y.iter().position(|y| y.abs() != 1.0) {
        return Err(Error::Label { value: task.y[k], row: task.row(k) });
    }
    let both = |count: &dyn Fn(usize) -> f64, fold: Option<usize>| {
        let learned = || (0..rows).filter(|&k| task.weight(k) * count(k) > 0.0);
        match learned().next() {
            None => Err(Error::NoWeight),
            Some(first) if learned().all(|k| task.y[k] == task.y[first]) => {
                Err(Error::OneClass { fold, rows: learned().count() })
            }
            Some(_) => Ok(()),
        }
    };
    both(&|_| 1.0, None)?;
    match &request.folds {
        Folds::None => Ok(()),
        Folds::LeaveOneOut => {
            for class in [-1.0, 1.0] {
                let mut of_class = (0..rows).filter(|&k| task.y[k] == class && task.weight(k) > 0.0);
                if let (Some(k), None) = (of_class.next(), of_class.next()) {
                    return Err(Error::OneClass { fold: Some(task.row(k)), rows: rows - 1 });
                }
            }
            Ok(())
        }
        Folds::Splits(folds) => {
            for (f, fold) in folds.iter().enumerate() {
                let count = counts(n, &fold.train);
                both(&|k| count[task.row(k)], Some(f))?;
            }
            Ok(())
        }
    }
}

/// How often each of `n` rows is named.
pub(crate) fn counts(n: usize, rows: &[usize]) -> Vec<f64> {
    let mut counts = vec![0.0; n];
    for &i in rows {
        counts[i] += 1.0;
    }
    counts
}

fn fit_with<T: Working>(request: &Request, units: &Units, definite: bool, control: &Control) -> Result<Vec<PathFit>> {
    let started = Instant::now();
    let extra = extra_bytes::<T>(request, units.len())?;
    let threads = rayon::current_num_threads();
    let low_rank = || low_rank::planned_bytes::<T>(request, units.len());
    let plan = |pairs: u64| check_plan::<T>(units.len(), request.cs.len(), threads, extra + pairs, low_rank);
    let (pairs, planned_bytes) = Pairs::planned(request.pairs, units.len(), plan)?;
    let gram = Gram::<T>::compute(&request.x, &units.representative, &request.kernel, pairs, control)?;
    let precision = epsilon::<T>(&request.kernel, &request.x);
    let negative = if definite { None } else { negative_eigenvalue(&gram, precision, control)? };
    let kernel_seconds = started.elapsed().as_secs_f64();

    let models = request.tasks.len() * request.cs.len() * (1 + request.folds.len(request.x.nrows()));
    control.begin(Phase::Path, models);
    let decomposition = OnceCell::new();
    // Tasks on all rows one after the other, each on all threads; the small ones side by side.
    let (whole, small): (Vec<usize>, Vec<usize>) =
        (0..request.tasks.len()).partition(|&k| request.tasks[k].rows.is_none());
    let mut fits: Vec<(usize, PathFit)> = Vec::with_capacity(request.tasks.len());
    for k in whole {
        let task = &request.tasks[k];
        let solved = solve_task(request, task, &gram, units, Some(&decomposition), control)?;
        fits.push((k, assemble::<T>(request, task, units, solved, None)));
    }
    let solved = (small.par_iter())
        .map(|&k| solve_task(request, &request.tasks[k], &gram, units, None, control))
        .collect::<Result<Vec<_>>>()?;
    let values = held_out_values(request, &gram, units, &solved, control)?;
    let assembled = (small.into_par_iter().zip(solved).zip(values))
        .map(|((k, solved), values)| (k, assemble::<T>(request, &request.tasks[k], units, solved, Some(values))));
    fits.extend(assembled.collect::<Vec<_>>());
    fits.sort_by_key(|(k, _)| *k);
    let timed = |fit: PathFit| PathFit { planned_bytes, kernel_seconds, ..fit };
    Ok(fits.into_iter().map(|(_, fit)| timed(fit).with_negative_eigenvalue(negative)).collect())
}

/// Numbers of a row left out at one C: a record twice, and its value in vectors of their own.
const LEFT_OUT: u64 = 32;

/// Bytes that a fit takes beside the matrix and one task on all rows: what the solvers ask for, the parts of the matrix
/// that small tasks work on side by side, and what is kept of all tasks.
fn extra_bytes<T: Entry>(request: &Request, n_units: usize) -> Result<u64> {
    let (n, cs, threads) = (request.x.nrows(), request.cs.len(), rayon::current_num_threads() as u64);
    let splits = request.folds.splits();
    let tested = if request.folds == Folds::LeaveOneOut { n } else { splits.iter().map(|fold| fold.test.len()).sum() };
    let largest_test = splits.iter().map(|fold| fold.test.len()).max().unwrap_or(0);
    let (mut whole, mut part, mut numbers) = (0, 0, 0_u64);
    for task in &request.tasks {
        let rows = task.rows.as_ref().map_or(n_units, Vec::len);
        // Leave-one-out solves a block of problems at once.
        let problems = if request.folds == Folds::LeaveOneOut { 1 + loo::BLOCK } else { 1 + splits.len() };
        let size = Size { rows, entry: size_of::<T>(), problems, held_out: largest_test.min(rows) };
        let mut solver = request.solver.engine(task.loss, rows)?.extra_bytes(&size);
        if request.solver == Solver::Auto && task.loss == Loss::Squared {
            // Rows that repeat make Newton's method of the closed form.
            solver = solver.max(Engine::Newton.extra_bytes(&size));
        }
        // Coefficients of the refit and held-out values.
        numbers += (rows + tested) as u64 * cs as u64;
        if request.folds == Folds::LeaveOneOut {
            numbers += (n * cs) as u64 * LEFT_OUT;
        }
        if task.rows.is_none() {
            whole = whole.max(solver);
        } else {
            part = part.max(solver + Gram::<T>::work_bytes(rows, cs, 1));
            // Until all small tasks are solved, the coefficients of each model; and a fold's products with the matrix.
            numbers += (rows * (splits.len() + 2) + largest_test) as u64 * cs as u64;
        }
    }
    Ok(whole.max(threads * part) + 8 * numbers)
}

/// A task's units, and the place of each of its rows among them.
pub(crate) struct Placed {
    pub own: Vec<usize>,
    pub place: Vec<usize>,
}

impl Placed {
    pub fn new(task: &Task, units: &Units) -> Self {
        let unit = |k: usize| units.of_row[task.row(k)];
        let mut own: Vec<usize> = (0..task.y.len()).map(unit).collect();
        own.sort_unstable();
        own.dedup();
        let place = (0..task.y.len()).map(|k| own.partition_point(|&u| u < unit(k))).collect();
        Self { own, place }
    }

    /// The target of each unit.
    pub fn targets(&self, task: &Task) -> Vec<f64> {
        let mut y = vec![0.0; self.own.len()];
        for (y_k, &u) in task.y.iter().zip(&self.place) {
            y[u] = *y_k;
        }
        y
    }

    /// The weight of each unit, with each of all rows counted so often.
    pub fn weights(&self, task: &Task, count: &dyn Fn(usize) -> f64) -> Vec<f64> {
        let mut weight = vec![0.0; self.own.len()];
        for (k, &u) in self.place.iter().enumerate() {
            weight[u] += task.weight(k) * count(task.row(k));
        }
        weight
    }
}

/// The models of a task.
struct Solved {
    placed: Placed,
    /// Of each unit in the refit.
    weight: Vec<f64>,
    engine: Engine,
    refit: Kept,
    folds: Vec<Kept>,
    /// `[c][unit]`, if rows are left out one by one.
    left_out: Vec<Vec<loo::LeftOut>>,
    seconds: f64,
}

/// One task. If it has all rows, it is solved on the whole matrix, whose decomposition is given; else on its rows' part
/// of it, on this thread.
fn solve_task<T: Working>(
    request: &Request,
    task: &Task,
    gram: &Gram<T>,
    units: &Units,
    decomposition: Option<&Decomposed>,
    control: &Control,
) -> Result<Solved> {
    let started = Instant::now();
    let whole = task.rows.is_none();
    let placed = Placed::new(task, units);
    let y = placed.targets(task);
    let part = if whole { None } else { Some(gram.part(&placed.own)?) };
    let shared = Shared::new(part.as_ref().unwrap_or(gram), task.loss, y, request.settings);

    // The refit first: it is the longest.
    let mut plans = vec![Plan { weight: placed.weights(task, &|_| 1.0), keeps: Keeps::All }];
    plans.extend(request.folds.splits().iter().map(|fold| {
        let count = counts(request.x.nrows(), &fold.train);
        let keeps = if whole { Keeps::Values(units.of(&fold.test)) } else { Keeps::Coefficients };
        Plan { weight: placed.weights(task, &|i| count[i]), keeps }
    }));
    let of_part = OnceCell::new();
    let decomposition = decomposition.unwrap_or(&of_part);
    let (engine, mut folds) = solve(request, &shared, &plans, decomposition, whole, control)?;
    let refit = folds.remove(0);
    let weight = plans.swap_remove(0).weight;
    let mut left_out = Vec::new();
    if request.folds == Folds::LeaveOneOut {
        let mut of_row = vec![0.0; placed.own.len()];
        for (k, &u) in placed.place.iter().enumerate() {
            of_row[u] = task.weight(k);
        }
        left_out = leave_one_out(request, &shared, engine, &weight, &of_row, &refit, decomposition, whole, control)?;
    }
    Ok(Solved { placed, weight, engine, refit, folds, left_out, seconds: started.elapsed().as_secs_f64() })
}

/// `[task][fold][c]`: values at the folds' test rows of tasks that learn from a part of the rows; if rows are left out
/// one by one, the only "fold" is the refit at all rows.
fn held_out_values<T: Working>(
    request: &Request,
    gram: &Gram<T>,
    units: &Units,
    solved: &[Solved],
    control: &Control,
) -> Result<Vec<Vec<Vec<Vec<f64>>>>> {
    let mut values = vec![Vec::new(); solved.len()];
    let owns: Vec<&[usize]> = solved.iter().map(|solved| &solved.placed.own[..]).collect();
    let groups = groups(&owns);
    let mut add = |kept: &dyn Fn(&Solved) -> &Kept, wanted: &[usize]| -> Result<()> {
        let machines: Vec<&Kept> = solved.iter().map(kept).collect();
        let of_fold = held_out(gram, &groups, &machines, wanted, control)?;
        values.iter_mut().zip(of_fold).for_each(|(values, of_fold)| values.push(of_fold));
        Ok(())
    };
    if request.folds == Folds::LeaveOneOut {
        add(&|solved| &solved.refit, &units.of_row)?;
    }
    for (k, fold) in request.folds.splits().iter().enumerate() {
        add(&|solved| &solved.folds[k], &units.of(&fold.test))?;
    }
    Ok(values)
}

/// `values` are those of [`held_out_values`], if the task learns from a part of the rows.
fn assemble<T: Entry>(
    request: &Request,
    task: &Task,
    units: &Units,
    solved: Solved,
    values: Option<Vec<Vec<Vec<f64>>>>,
) -> PathFit {
    let Solved { placed: Placed { place, .. }, weight, engine, refit, folds, left_out, seconds } = solved;
    let mut records: Vec<Vec<Record>> = Vec::new();
    let mut oof: Vec<Vec<Vec<f64>>> = Vec::new();
    if request.folds == Folds::LeaveOneOut {
        for i in 0..request.x.nrows() {
            if let Some(k) = task.position(i) {
                records.push(left_out.iter().map(|of_c| of_c[place[k]].0.clone()).collect());
                oof.push(left_out.iter().map(|of_c| vec![of_c[place[k]].1]).collect());
            } else {
                // It was not learned from in the first place.
                records.push(refit.records.clone());
                oof.push(values.iter().flatten().flatten().map(|f| vec![f[i]]).collect());
            }
        }
    } else {
        let decision = |record: &Record, f: &[f64], test: usize| match f.len() {
            0 => vec![f64::NAN; test],
            _ => f.iter().map(|f| f + record.b).collect(),
        };
        let decisions = |(kept, fold): (&Kept, &Fold)| {
            kept.records.iter().zip(&kept.f).map(|(record, f)| decision(record, f, fold.test.len())).collect()
        };
        oof = values.unwrap_or_else(|| folds.iter().zip(request.folds.splits()).map(decisions).collect());
        records.extend(folds.into_iter().map(|kept| kept.records));
    }
    records.push(refit.records);
    // A unit's β goes to its rows by their weights.
    let share = |beta: &[f64], (k, &u): (usize, &usize)| {
        if weight[u] > 0.0 { beta[u] * task.weight(k) / weight[u] } else { 0.0 }
    };
    let per_row = |beta: &Vec<f64>| match beta.len() {
        0 => vec![0.0; place.len()],
        _ => place.iter().enumerate().map(|row| share(beta, row)).collect(),
    };
    let coef = refit.beta.iter().map(per_row).collect();
    path_fit(request, task, engine, records, oof, coef, Gram::<T>::bytes(units.len()), seconds)
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn path_fit(
    request: &Request,
    task: &Task,
    engine: Engine,
    records: Vec<Vec<Record>>,
    oof: Vec<Vec<Vec<f64>>>,
    coef: Vec<Vec<f64>>,
    gram_bytes: u64,
    path_seconds: f64,
) -> PathFit {
    let n = request.x.nrows();
    let test: Vec<Vec<usize>> = match &request.folds {
        Folds::None => Vec::new(),
        Folds::LeaveOneOut => (0..n).map(|i| vec![i]).collect(),
        Folds::Splits(folds) => folds.iter().map(|fold| fold.test.clone()).collect(),
    };
    // The task's own rows among those of a test set.
    let mut places = vec![None; if task.rows.is_some() { n } else { 0 }];
    for (k, &row) in task.rows.iter().flatten().enumerate() {
        places[row] = Some(k);
    }
    let place = |i: usize| if task.rows.is_some() { places[i] } else { Some(i) };
    let own = |test: &Vec<usize>| -> Vec<(usize, usize)> {
        test.iter().enumerate().filter_map(|(at, &i)| Some((at, place(i)?))).collect()
    };
    let mean = |own: &[(usize, usize)], f: &[f64]| {
        let (mut sum, mut total) = (0.0, 0.0);
        for &(at, k) in own {
            let weight = task.score_weight(k);
            if weight > 0.0 {
                sum += weight * if f[at].is_nan() { f[at] } else { task.loss.score(task.y[k], f[at]) };
                total += weight;
            }
        }
        sum / total
    };
    let of_fold = |(oof, test): (&Vec<Vec<f64>>, &Vec<usize>)| {
        let own = own(test);
        oof.iter().map(|f| mean(&own, f)).collect()
    };
    let scores = oof.iter().zip(&test).map(of_fold).collect();
    let timed_out = records.iter().flatten().any(|r| matches!(r.status, Status::NotRun | Status::TimeLimit));
    PathFit {
        loss: task.loss,
        solver: engine.name(),
        cs: request.cs.to_vec(),
        n,
        rows: task.rows.clone(),
        scores,
        records,
        oof,
        test,
        coef,
        gram_bytes,
        planned_bytes: 0,
        kernel_seconds: 0.0,
        path_seconds,
        timed_out,
        smallest_eigenvalue: None,
    }
}

type Decomposed = OnceCell<Decomposition<faer::Mat<f64>>>;

fn decomposed<'a, T: Working>(
    cell: &'a Decomposed,
    gram: &Gram<T>,
    control: &Control,
) -> Result<&'a Decomposition<faer::Mat<f64>>> {
    match cell.get() {
        Some(made) => Ok(made),
        None => Decomposition::new(&Cpu, gram, control).map(|made| cell.get_or_init(|| made)),
    }
}

/// All plans of one task at every C; on all threads, or on this one.
fn solve<T: Working>(
    request: &Request,
    shared: &Shared<T>,
    plans: &[Plan],
    decomposition: &Decomposed,
    all_threads: bool,
    control: &Control,
) -> Result<(Engine, Vec<Kept>)> {
    let mut engine = request.solver.engine(shared.loss, shared.gram.n())?;
    // The closed form knows rows that are there or not, and all are there in the refit.
    let counted = plans.iter().flat_map(|plan| &plan.weight).any(|w| *w != 0.0 && *w != 1.0);
    if engine == Engine::ClosedForm && (counted || plans[0].weight.contains(&0.0)) {
        engine = Engine::Newton;
    }
    let ledger = Ledger::new(shared, plans, request.cs, control);
    match engine {
        Engine::ActiveSet => walk(shared, &ledger, all_threads, control)?,
        Engine::Newton => Newton::new(shared, control)?.sweep(&ledger)?,
        Engine::Spectral => {
            let decomposition = decomposed(decomposition, shared.gram, control)?;
            spectral::sweep(shared, &ledger, &Cpu, decomposition, control)?;
        }
        Engine::ClosedForm => {
            ClosedForm::new(&shared.y, decomposed(decomposition, shared.gram, control)?, control).sweep(&ledger)?;
        }
    }
    Ok((engine, ledger.close()))
}

/// `[c][unit]`: a row of weight `of_row` left out of each unit.
#[allow(clippy::too_many_arguments)]
fn leave_one_out<T: Working>(
    request: &Request,
    shared: &Shared<T>,
    engine: Engine,
    all: &[f64],
    of_row: &[f64],
    refit: &Kept,
    decomposition: &Decomposed,
    all_threads: bool,
    control: &Control,
) -> Result<Vec<Vec<loo::LeftOut>>> {
    if engine == Engine::ClosedForm {
        let closed_form = ClosedForm::new(&shared.y, decomposed(decomposition, shared.gram, control)?, control);
        loo::by_closed_form(shared, &closed_form, request.cs, control)
    } else if shared.kinks.is_empty() {
        loo::by_newton(shared, all, of_row, request.cs, refit, control)
    } else {
        loo::by_active_set(shared, all, of_row, request.cs, refit, all_threads, control)
    }
}
