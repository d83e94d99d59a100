//! Folds × path on one Gram: cross-validation inside the algorithm.
//!
//! A held-out row is a row of weight 0, so every fold is (P) on the same kernel matrix, and the
//! fold's out-of-fold scores are the f of its held-out rows.

use std::sync::Mutex;
use std::time::Instant;

use rayon::prelude::*;

use crate::certificate::{Certificate, certify};
use crate::data::{Rows, Units};
use crate::error::{Error, Result};
use crate::gram::{Entry, Gram, check_plan, padded, single_is_enough};
use crate::kernel::{KernelFn, Shape};
use crate::loss::Loss;
use crate::observe::{Control, Phase};
use crate::path::{LeaveOut, Path, Shared, Step, check_cs, constant_starts};
use crate::problem::{Outcome, Point, Settings, Status};
use crate::solver::Working;

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
    /// The loss.
    pub loss: Loss,
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
    const NOT_RUN: Self = Self { status: Status::NotRun, steps: 0, certificate: Certificate::NONE, b: f64::NAN };
}

/// Every model of a fit: folds × C's and the refit.
#[derive(Debug, Clone)]
pub struct PathFit {
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

    /// Mean over the test rows of `score(y, f)`, for every fold and C; NaN where not run.
    pub fn scores(&self, y: &[f64], score: impl Fn(f64, f64) -> f64) -> Vec<Vec<f64>> {
        let mean = |test: &[usize], f: &[f64]| {
            test.iter().zip(f).map(|(&i, &f)| if f.is_nan() { f } else { score(y[i], f) }).sum::<f64>()
                / test.len() as f64
        };
        self.oof.iter().zip(&self.test).map(|(oof, test)| oof.iter().map(|f| mean(test, f)).collect()).collect()
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

/// Fits every fold and the whole data at every C, each model with its certificate.
pub fn fit_path(request: &Request, control: &Control) -> Result<PathFit> {
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
    request.loss.check()?;
    check_cs(request.cs)?;
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
    if request.loss == Loss::Hinge {
        if let Some(row) = request.y.iter().position(|y| y.abs() != 1.0) {
            return Err(Error::Label { value: request.y[row], row });
        }
        check_classes(request.y, 0..n, None)?;
    }
    match &request.folds {
        Folds::None => {}
        Folds::LeaveOneOut => {
            if request.loss == Loss::Hinge {
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
                if request.loss == Loss::Hinge {
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

fn fit_with<T: Working>(request: &Request, units: &Units, control: &Control) -> Result<PathFit> {
    let started = Instant::now();
    let n = request.x.nrows();
    check_plan::<T>(units.len(), request.cs.len(), rayon::current_num_threads())?;
    let gram = Gram::<T>::compute(&request.x, &units.representative, &request.kernel, control)?;
    let kernel_seconds = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let diagonal = gram.diagonal();
    let mean_diagonal = diagonal.iter().sum::<f64>() / gram.n() as f64;
    let shared = Shared {
        gram: &gram,
        easy_c: 1.0 / mean_diagonal.abs().max(f64::MIN_POSITIVE),
        diagonal,
        loss: request.loss,
        y: units.representative.iter().map(|&i| request.y[i]).collect(),
        settings: request.settings,
    };
    let mut order: Vec<usize> = (0..request.cs.len()).collect();
    order.sort_by(|&a, &b| request.cs[a].total_cmp(&request.cs[b]));

    let all = weights(units, 0..n);
    let splits: &[Fold] = if let Folds::Splits(folds) = &request.folds { folds } else { &[] };
    // The refit first: it is the longest.
    let mut plans = vec![Plan { weight: all.clone(), scored: None }];
    plans.extend(splits.iter().map(|fold| Plan {
        weight: weights(units, fold.train.iter().copied()),
        scored: Some(fold.test.iter().map(|&i| units.of_row[i]).collect()),
    }));
    let models = request.cs.len() * (1 + request.folds.len(n));
    control.begin(Phase::Path, models);
    let mut walked = walk(&shared, plans, request.cs, &order, control)?;

    let refit = walked.remove(0);
    let mut records: Vec<Vec<Record>> = Vec::with_capacity(request.folds.len(n) + 1);
    let mut oof = Vec::with_capacity(request.folds.len(n));
    let test: Vec<Vec<usize>> = if request.folds == Folds::LeaveOneOut {
        (records, oof) = leave_one_out(&shared, units, &all, request.cs, &refit, control)?;
        (0..n).map(|i| vec![i]).collect()
    } else {
        for (walked, fold) in walked.into_iter().zip(splits) {
            let decision = |(record, f): (&Record, &Vec<f64>)| match f.len() {
                0 => vec![f64::NAN; fold.test.len()],
                _ => f.iter().map(|f| f + record.b).collect(),
            };
            oof.push(walked.records.iter().zip(&walked.f).map(decision).collect());
            records.push(walked.records);
        }
        splits.iter().map(|fold| fold.test.clone()).collect()
    };
    records.push(refit.records);
    // A unit's β goes to its rows in equal parts.
    let coef = refit
        .beta
        .iter()
        .map(|beta| units.of_row.iter().map(|&u| if beta.is_empty() { 0.0 } else { beta[u] / all[u] }).collect())
        .collect();
    let timed_out = records.iter().flatten().any(|r| matches!(r.status, Status::NotRun | Status::TimeLimit));
    Ok(PathFit {
        cs: request.cs.to_vec(),
        n,
        records,
        oof,
        test,
        coef,
        gram_bytes: Gram::<T>::bytes(units.len()),
        kernel_seconds,
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

/// A path to walk: the weight of each unit, and the units whose f is wanted (`None`: β and all of f).
struct Plan {
    weight: Vec<f64>,
    scored: Option<Vec<usize>>,
}

/// A finished path: per C (as given) the record, and of β and the certified f = Kβ what is needed
/// later: all of the refit's, of a fold's only f at its test rows; empty where not run.
struct Walked {
    records: Vec<Record>,
    beta: Vec<Vec<f64>>,
    f: Vec<Vec<f64>>,
}

/// A path in work and what it has produced.
struct Chain<T> {
    index: usize,
    scored: Option<Vec<usize>>,
    path: Path<T>,
    steps: Vec<Step>,
}

/// A path at its end: its factor is gone.
struct Solved {
    index: usize,
    scored: Option<Vec<usize>>,
    weight: Vec<f64>,
    steps: Vec<Step>,
}

/// So many paths are certified at once: one pass over the Gram matrix serves them all.
pub(crate) const CERTIFIED_AT_ONCE: usize = 4;

/// Chains not in any worker's hands.
struct Queue<T> {
    waiting: Vec<Chain<T>>,
    /// Not begun; the next is the last.
    fresh: Vec<Chain<T>>,
    open: usize,
    /// Walked to the end, but not certified yet.
    solved: Vec<Solved>,
    failed: Option<Error>,
    finished: Vec<(usize, Walked)>,
}

/// Below this many bytes of Gram matrix, the factor of one more open path does not matter.
const SMALL_GRAM: u64 = 256 << 20;

/// Walks all paths on the threads of the pool, C by C.
///
/// One more path is open than there are workers (if their factors are small), and a worker takes the open
/// path that is furthest behind: so the last paths end together. With a time budget all
/// paths are open, so that every fold gets as far as the others. Each path is computed by one worker
/// at a time in the order of its C's: the answer does not depend on who does it. A worker that finds
/// no path is not needed again, and helps with the products of the others.
fn walk<T: Working>(
    shared: &Shared<T>,
    plans: Vec<Plan>,
    cs: &[f64],
    order: &[usize],
    control: &Control,
) -> Result<Vec<Walked>> {
    let workers = rayon::current_num_threads();
    let small = Gram::<T>::bytes(shared.gram.n()) < SMALL_GRAM;
    let most_open = if control.budget_seconds().is_some() { plans.len() } else { workers + usize::from(small) };
    let weights: Vec<&[f64]> = plans.iter().map(|plan| &plan.weight[..]).collect();
    let starts = constant_starts(shared, &weights, control)?;
    let fresh = plans.into_iter().zip(starts).enumerate().map(|(index, (plan, start))| Chain {
        index,
        scored: plan.scored,
        path: Path::new(plan.weight, start),
        steps: Vec::new(),
    });
    let mut fresh: Vec<Chain<T>> = fresh.collect();
    fresh.reverse();
    let queue = Mutex::new(Queue {
        waiting: Vec::new(),
        fresh,
        open: 0,
        solved: Vec::new(),
        failed: None,
        finished: Vec::new(),
    });
    let lock = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);

    let take = || {
        let mut queue = lock();
        if queue.failed.is_some() {
            return None;
        }
        if queue.open < most_open
            && let Some(chain) = queue.fresh.pop()
        {
            queue.open += 1;
            return Some(chain);
        }
        let progress = |k: &usize| (queue.waiting[*k].steps.len(), queue.waiting[*k].index);
        let behind = (0..queue.waiting.len()).min_by_key(progress)?;
        Some(queue.waiting.swap_remove(behind))
    };
    let work = || {
        while let Some(mut chain) = take() {
            let out_of_time = !chain.steps.is_empty() && control.out_of_time();
            if chain.steps.len() == order.len() || out_of_time {
                let Chain { index, scored, path, steps } = chain;
                let solved = Solved { index, scored, weight: path.into_weight(), steps };
                let mut queue = lock();
                queue.open -= 1;
                queue.solved.push(solved);
                let last = queue.open == 0 && queue.fresh.is_empty();
                if queue.solved.len() == CERTIFIED_AT_ONCE || last {
                    let batch = std::mem::take(&mut queue.solved);
                    drop(queue);
                    let walked = certify_paths(shared, batch, cs, order, control);
                    let mut queue = lock();
                    match walked {
                        Ok(walked) => queue.finished.extend(walked),
                        Err(error) => queue.failed = Some(error),
                    }
                }
            } else {
                let step = chain.path.advance(shared, cs[order[chain.steps.len()]], control);
                control.advance(1);
                let mut queue = lock();
                match step {
                    Ok(step) => {
                        chain.steps.push(step);
                        queue.waiting.push(chain);
                    }
                    Err(error) => queue.failed = Some(error),
                }
            }
        }
    };
    rayon::broadcast(|_| work());

    let mut queue = queue.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(error) = queue.failed {
        return Err(error);
    }
    queue.finished.sort_by_key(|(index, _)| *index);
    Ok(queue.finished.into_iter().map(|(_, walked)| walked).collect())
}

/// Recomputes Kβ of all models of these paths in one product and judges them.
fn certify_paths<T: Entry>(
    shared: &Shared<T>,
    paths: Vec<Solved>,
    cs: &[f64],
    order: &[usize],
    control: &Control,
) -> Result<Vec<(usize, Walked)>> {
    // Solutions repeat at large C, once no row is at its bound any more, and are multiples of each
    // other at small C, while all rows are: one product serves them all.
    let mut distinct: Vec<&[f64]> = Vec::new();
    let mut product_of = Vec::new();
    for step in paths.iter().flat_map(|path| &path.steps) {
        let ratio = distinct.last().and_then(|last| multiple(&step.beta, last));
        if ratio.is_none() {
            distinct.push(&step.beta);
        }
        product_of.push((distinct.len() - 1, ratio.unwrap_or(1.0)));
    }
    let products = shared.gram.times(&distinct, control)?;
    let mut product_of = product_of.into_iter();
    let judged = |path: &Solved| {
        let mut walked = Walked {
            records: vec![Record::NOT_RUN; cs.len()],
            beta: vec![Vec::new(); cs.len()],
            f: vec![Vec::new(); cs.len()],
        };
        for ((step, &k), (product, ratio)) in path.steps.iter().zip(order).zip(&mut product_of) {
            let f: Vec<f64> = products[product].iter().map(|f| ratio * f).collect();
            let weight: Vec<f64> = path.weight.iter().map(|w| w * cs[k]).collect();
            let certificate = certify(shared.loss, &shared.y, &weight, &step.beta, step.b, &f, |theta| {
                shared.gram.times(&[theta], control).map_or_else(|_| vec![f64::NAN; theta.len()], |mut p| p.remove(0))
            });
            walked.records[k] = record(step.outcome, certificate, step.b, shared.settings.tol);
            match &path.scored {
                Some(units) => walked.f[k] = units.iter().map(|&u| f[u]).collect(),
                None => walked.f[k] = f,
            }
        }
        walked
    };
    let walked: Vec<Walked> = paths.iter().map(judged).collect();
    let with_beta = |(path, mut walked): (Solved, Walked)| {
        if path.scored.is_none() {
            for (step, &k) in path.steps.into_iter().zip(order) {
                walked.beta[k] = step.beta;
            }
        }
        (path.index, walked)
    };
    Ok(paths.into_iter().zip(walked).map(with_beta).collect())
}

/// The factor that makes `b` into `a`, if one does to rounding.
fn multiple(a: &[f64], b: &[f64]) -> Option<f64> {
    let at = b.iter().position(|b| *b != 0.0)?;
    let ratio = a[at] / b[at];
    let is_multiple = |(a, b): (&f64, &f64)| (a - ratio * b).abs() <= 4.0 * f64::EPSILON * a.abs();
    a.iter().zip(b).all(is_multiple).then_some(ratio)
}

/// The certificate has the last word on whether a model converged.
fn record(outcome: Outcome, certificate: Certificate, b: f64, tol: f64) -> Record {
    let proved = certificate.gap() <= tol;
    let status = match outcome.status {
        _ if proved => Status::Converged,
        Status::Converged => Status::Stalled,
        other => other,
    };
    Record { status, steps: outcome.steps, certificate, b }
}

/// Exact leave-one-out at every C, from the refit's path: `[row][c]`.
#[allow(clippy::type_complexity)]
fn leave_one_out<T: Working>(
    shared: &Shared<T>,
    units: &Units,
    weight: &[f64],
    cs: &[f64],
    refit: &Walked,
    control: &Control,
) -> Result<(Vec<Vec<Record>>, Vec<Vec<Vec<f64>>>)> {
    let m = units.len();
    let by_c: Vec<Vec<(Record, f64)>> = (0..cs.len())
        .into_par_iter()
        .with_max_len(1)
        .map(|k| {
            let mut results = vec![(Record::NOT_RUN, f64::NAN); m];
            if refit.beta[k].is_empty() {
                return Ok(results);
            }
            let mut full = Point {
                beta: refit.beta[k].clone(),
                f: refit.f[k].clone(),
                b: refit.records[k].b,
                noise: 0.0,
                eager: Vec::new(),
            };
            full.beta.resize(padded(m), 0.0);
            full.f.resize(padded(m), 0.0);
            let mut weight_c: Vec<f64> = weight.iter().map(|w| w * cs[k]).collect();
            let mut leave_out = LeaveOut::new(shared, weight, cs[k], full.clone());
            for (u, result) in results.iter_mut().enumerate() {
                control.check()?;
                if control.out_of_time() {
                    break;
                }
                let (solved, b, outcome) = leave_out.solve(u, weight[u] - 1.0, control)?;
                let point = solved.as_ref().unwrap_or(&full);
                weight_c[u] = (weight[u] - 1.0) * cs[k];
                let certificate =
                    certify(shared.loss, &shared.y, &weight_c, &point.beta[..m], b, &point.f[..m], |theta| {
                        shared.gram.times(&[theta], control).map_or_else(|_| vec![f64::NAN; m], |mut p| p.remove(0))
                    });
                weight_c[u] = weight[u] * cs[k];
                let record = record(outcome, certificate, b, shared.settings.tol);
                *result = (record, point.f[u] + b);
                control.advance(1);
            }
            Ok(results)
        })
        .collect::<Result<_>>()?;
    let row = |i: usize| by_c.iter().map(move |results| &results[units.of_row[i]]);
    let records = (0..units.of_row.len()).map(|i| row(i).map(|(record, _)| record.clone()).collect()).collect();
    let f = (0..units.of_row.len()).map(|i| row(i).map(|(_, f)| vec![*f]).collect()).collect();
    Ok((records, f))
}
