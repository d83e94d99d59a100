//! Folds × path on one Gram: cross-validation inside the algorithm.
//!
//! A held-out row is a row of weight 0, so every fold is (P) on the same kernel matrix, and the
//! fold's out-of-fold scores are the f of its held-out rows.

use std::cell::OnceCell;
use std::time::Instant;

use crate::certificate::Certificate;
use crate::data::{Rows, Units};
use crate::device::{Cpu, Decomposition};
use crate::error::{Error, Result};
use crate::gram::{Gram, check_plan, single_is_enough};
use crate::kernel::{KernelFn, Shape};
use crate::ledger::{Ledger, Plan};
use crate::loo;
use crate::loss::Loss;
use crate::observe::{Control, Phase};
use crate::path::check_cs;
use crate::problem::{Settings, Shared, Status};
use crate::solver::{ClosedForm, Engine, Newton, Solver, Spectral, Working};
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
    /// would make it indefinite. A precomputed matrix keeps its own precision.
    #[default]
    Auto,
    /// f32: half the memory and twice the speed.
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

    fn is_single(self, kernel: &KernelFn, x: &Rows, rows: &[usize], control: &Control) -> Result<bool> {
        Ok(match self {
            Self::Single => true,
            Self::Double => false,
            Self::Auto if kernel.shape == Shape::Precomputed => matches!(x, Rows::F32(_)),
            Self::Auto => kernel.shape.is_shift_invariant() && single_is_enough(x, rows, kernel, control)?,
        })
    }
}

/// What to fit.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The rows, or the kernel matrix for [`Shape::Precomputed`].
    pub x: Rows<'a>,
    /// A target a row.
    pub y: &'a [f64],
    /// The losses; each gives a fit of its own, on the same kernel matrix.
    pub losses: Vec<Loss>,
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
    /// Threads; 0 takes one a core. The answer does not depend on it.
    pub threads: usize,
}

/// One model of the path, as far as it is kept.
#[derive(Debug, Clone)]
pub struct Record {
    /// How its solve ended.
    pub status: Status,
    /// Steps it took.
    pub steps: usize,
    /// Its proof.
    pub certificate: Certificate,
    /// Intercept.
    pub b: f64,
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
    /// `records[fold][c]`; the last "fold" is the refit on all rows.
    pub records: Vec<Vec<Record>>,
    /// `oof[fold][c]`: decision values of the fold's test rows, in their order; NaN where not run.
    pub oof: Vec<Vec<Vec<f64>>>,
    /// Test rows of each fold.
    pub test: Vec<Vec<usize>>,
    /// `coef[c]`: β of the refit.
    pub coef: Vec<Vec<f64>>,
    /// Bytes of the kernel matrix.
    pub gram_bytes: u64,
    /// Seconds spent on the kernel matrix.
    pub kernel_seconds: f64,
    /// Seconds spent on the paths.
    pub path_seconds: f64,
    /// Whether the time budget ended the fit.
    pub timed_out: bool,
}

impl PathFit {
    /// Number of folds, the refit not counted.
    pub fn n_folds(&self) -> usize {
        self.test.len()
    }

    /// Mean over the test rows of the [score](Loss::score) of the loss, for every fold and C; NaN where not run.
    pub fn scores(&self, y: &[f64]) -> Vec<Vec<f64>> {
        let mean = |test: &[usize], f: &[f64]| {
            test.iter().zip(f).map(|(&i, &f)| if f.is_nan() { f } else { self.loss.score(y[i], f) }).sum::<f64>()
                / test.len() as f64
        };
        self.oof.iter().zip(&self.test).map(|(oof, test)| oof.iter().map(|f| mean(test, f)).collect()).collect()
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

    /// Largest gap of all models.
    pub fn worst_gap(&self) -> f64 {
        self.records.iter().flatten().map(|r| r.certificate.gap()).fold(0.0, f64::max)
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

/// Fits every fold and the whole data at every C, each model with its certificate; one fit a loss.
pub fn fit_paths(request: &Request, control: &Control) -> Result<Vec<PathFit>> {
    check(request)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(request.threads)
        .build()
        .map_err(|e| Error::Threads { threads: request.threads, reason: e.to_string() })?;
    pool.install(|| {
        let precomputed = request.kernel.shape == Shape::Precomputed;
        let n = request.x.nrows();
        let units = if precomputed { Units::separate(n) } else { Units::merge(&request.x, request.y) };
        if request.precision.is_single(&request.kernel, &request.x, &units.representative, control)? {
            fit_with::<f32>(request, &units, control)
        } else {
            fit_with::<f64>(request, &units, control)
        }
    })
}

fn check(request: &Request) -> Result<()> {
    let n = request.x.nrows();
    request.x.check("X")?;
    check_cs(request.cs)?;
    if request.losses.is_empty() {
        return Err(Error::NoLoss);
    }
    for loss in &request.losses {
        loss.check()?;
        request.solver.engine(*loss, n)?;
    }
    let classifies = request.losses.iter().any(|loss| loss.is_classification());
    if request.y.len() != n {
        return Err(Error::Length { what: "y", got: request.y.len(), expected: n, why: "one target a row of X" });
    }
    if let Some(row) = request.y.iter().position(|y| !y.is_finite()) {
        return Err(Error::NotFinite { what: "y", value: request.y[row], row, column: 0 });
    }
    if !(request.settings.tol > 0.0 && request.settings.tol < 1.0) {
        return Err(Error::Parameter { name: "tol", expected: "between 0 and 1", value: request.settings.tol });
    }
    if request.settings.max_iter == 0 {
        return Err(Error::Parameter { name: "max_iter", expected: ">= 1", value: 0.0 });
    }
    if classifies {
        if let Some(row) = request.y.iter().position(|y| y.abs() != 1.0) {
            return Err(Error::Label { value: request.y[row], row });
        }
        check_classes(request.y, 0..n, None)?;
    }
    match &request.folds {
        Folds::None => {}
        Folds::LeaveOneOut => {
            if classifies {
                for class in [-1.0, 1.0] {
                    let mut of_class = request.y.iter().enumerate().filter(|(_, y)| **y == class);
                    if let (Some((row, _)), None) = (of_class.next(), of_class.next()) {
                        return Err(Error::OneClass { fold: Some(row), rows: n - 1 });
                    }
                }
            }
        }
        Folds::Splits(folds) => {
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
                if classifies {
                    check_classes(request.y, fold.train.iter().copied(), Some(k))?;
                }
            }
        }
    }
    Ok(())
}

fn check_classes(y: &[f64], rows: impl Iterator<Item = usize> + Clone, fold: Option<usize>) -> Result<()> {
    let first = rows.clone().next().map(|i| y[i]);
    if rows.clone().all(|i| Some(y[i]) == first) {
        return Err(Error::OneClass { fold, rows: rows.count() });
    }
    Ok(())
}

fn fit_with<T: Working>(request: &Request, units: &Units, control: &Control) -> Result<Vec<PathFit>> {
    let started = Instant::now();
    let mut extra = 0;
    for &loss in &request.losses {
        extra = extra.max(request.solver.engine(loss, units.len())?.extra_bytes(units.len(), size_of::<T>()));
    }
    check_plan::<T>(units.len(), request.cs.len(), rayon::current_num_threads(), extra)?;
    let gram = Gram::<T>::compute(&request.x, &units.representative, &request.kernel, control)?;
    let kernel_seconds = started.elapsed().as_secs_f64();

    let n = request.x.nrows();
    let splits: &[Fold] = if let Folds::Splits(folds) = &request.folds { folds } else { &[] };
    // The refit first: it is the longest.
    let mut plans = vec![Plan { weight: weights(units, 0..n), scored: None }];
    plans.extend(splits.iter().map(|fold| Plan {
        weight: weights(units, fold.train.iter().copied()),
        scored: Some(fold.test.iter().map(|&i| units.of_row[i]).collect()),
    }));
    let models = request.losses.len() * request.cs.len() * (1 + request.folds.len(n));
    control.begin(Phase::Path, models);
    let y: Vec<f64> = units.representative.iter().map(|&i| request.y[i]).collect();
    let decomposition = OnceCell::new();
    let fit_loss = |&loss: &Loss| {
        let shared = Shared::new(&gram, loss, y.clone(), request.settings);
        let mut fit = fit_plans(request, &shared, units, &plans, &decomposition, control)?;
        fit.kernel_seconds = kernel_seconds;
        Ok(fit)
    };
    request.losses.iter().map(fit_loss).collect()
}

/// All plans of one loss, and leave-one-out.
fn fit_plans<T: Working>(
    request: &Request,
    shared: &Shared<T>,
    units: &Units,
    plans: &[Plan],
    decomposition: &OnceCell<Decomposition<faer::Mat<f64>>>,
    control: &Control,
) -> Result<PathFit> {
    let started = Instant::now();
    let n = request.x.nrows();
    let mut engine = request.solver.engine(shared.loss, shared.gram.n())?;
    // The closed form knows rows that are there or not.
    let counted = plans.iter().flat_map(|plan| &plan.weight).any(|w| *w != 0.0 && *w != 1.0);
    if engine == Engine::ClosedForm && counted {
        engine = Engine::Newton;
    }
    let decomposed = || match decomposition.get() {
        Some(made) => Ok(made),
        None => Decomposition::new(&Cpu, shared.gram, control).map(|made| decomposition.get_or_init(|| made)),
    };
    let ledger = Ledger::new(shared, plans, request.cs, control);
    match engine {
        Engine::ActiveSet => walk(shared, &ledger, control)?,
        Engine::Newton => Newton::new(shared, control)?.sweep(&ledger)?,
        Engine::Spectral => Spectral::new(shared, &Cpu, decomposed()?, control).sweep(&ledger)?,
        Engine::ClosedForm => ClosedForm::new(&shared.y, decomposed()?, control).sweep(&ledger)?,
    }
    let mut kept = ledger.close();
    let refit = kept.remove(0);

    let mut records: Vec<Vec<Record>> = Vec::with_capacity(request.folds.len(n) + 1);
    let mut oof = Vec::with_capacity(request.folds.len(n));
    let mut test: Vec<Vec<usize>> = Vec::new();
    match &request.folds {
        Folds::None => {}
        Folds::LeaveOneOut => {
            let all = &plans[0].weight;
            let by_c = match engine {
                Engine::ClosedForm => {
                    let closed_form = ClosedForm::new(&shared.y, decomposed()?, control);
                    loo::by_closed_form(shared, &closed_form, request.cs, control)?
                }
                _ if shared.kinks.is_empty() => loo::by_newton(shared, all, request.cs, &refit, control)?,
                _ => loo::by_active_set(shared, all, request.cs, &refit, control)?,
            };
            (records, oof) = loo::by_row(units, &by_c);
            test = (0..n).map(|i| vec![i]).collect();
        }
        Folds::Splits(splits) => {
            for (kept, fold) in kept.into_iter().zip(splits) {
                let decision = |(record, f): (&Record, &Vec<f64>)| match f.len() {
                    0 => vec![f64::NAN; fold.test.len()],
                    _ => f.iter().map(|f| f + record.b).collect(),
                };
                oof.push(kept.records.iter().zip(&kept.f).map(decision).collect());
                records.push(kept.records);
                test.push(fold.test.clone());
            }
        }
    }
    records.push(refit.records);
    // A unit's β goes to its rows in equal parts.
    let all = &plans[0].weight;
    let per_row =
        |beta: &Vec<f64>| units.of_row.iter().map(|&u| if beta.is_empty() { 0.0 } else { beta[u] / all[u] }).collect();
    let timed_out = records.iter().flatten().any(|r| matches!(r.status, Status::NotRun | Status::TimeLimit));
    Ok(PathFit {
        loss: shared.loss,
        solver: engine.name(),
        cs: request.cs.to_vec(),
        n,
        records,
        oof,
        test,
        coef: refit.beta.iter().map(per_row).collect(),
        gram_bytes: Gram::<T>::bytes(units.len()),
        kernel_seconds: 0.0,
        path_seconds: started.elapsed().as_secs_f64(),
        timed_out,
    })
}

/// Weight of each unit: how many of the given rows it holds.
fn weights(units: &Units, rows: impl Iterator<Item = usize>) -> Vec<f64> {
    let mut weight = vec![0.0; units.len()];
    for i in rows {
        weight[units.of_row[i]] += 1.0;
    }
    weight
}
