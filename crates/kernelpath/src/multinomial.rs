//! Multinomial kernel logistic regression: several classes in one problem, with its path, folds and certificates.
//!
//! ```text
//! minimise over B ∈ Rⁿˣᵏ, b ∈ Rᵏ:   C · Σᵢ wᵢ (log Σ_c exp f_ic − f_iyᵢ)  +  ½ Σ_c B_cᵀKB_c        f = KB + 1bᵀ
//! ```
//!
//! The probability of class c is exp f_c / Σ exp f. A shift common to all b changes nothing: Σb = 0 is chosen. At the
//! optimum the rows of B sum to 0, and so do its columns. For two classes, f₁ − f₀ is the decision value of
//! [`Loss::Logistic`](crate::Loss::Logistic) at 2C.
//!
//! ```
//! use kernelpath::{Control, Folds, KernelFn, Multinomial, Rows, Shape, fit_multinomial};
//!
//! // Three clusters on a circle.
//! let y: Vec<usize> = (0..90).map(|i| i % 3).collect();
//! let angle = |i: usize| 2.1 * y[i] as f64 + 0.4 * (7.0 * i as f64).sin();
//! let x: Vec<f64> = (0..90).flat_map(|i| [angle(i).cos(), angle(i).sin()]).collect();
//! let targets: Vec<f64> = y.iter().map(|y| *y as f64).collect();
//! let mut request = Multinomial::new(Rows::from_slice(&x, 2)?, &y, KernelFn::new(Shape::Rbf, 1.0)?, &[0.1, 1.0, 10.0]);
//! request.folds = Folds::stratified(&targets, 5, 0)?;
//! let fit = fit_multinomial(&request, &Control::default())?;
//! assert!(fit.worst_gap() <= 1e-6);
//! assert!(fit.scores[0][2] > 0.9); // accuracy of the first fold at C = 10
//! # Ok::<(), kernelpath::Error>(())
//! ```

use std::time::Instant;

use crate::certificate::{Certificate, worst};
use crate::cv::{Folds, Precision, check_rows, check_setup, counts, pool};
use crate::data::{Rows, Units};
use crate::definite::{epsilon, negative_eigenvalue};
use crate::device::Cpu;
use crate::error::{Error, Result};
use crate::features::{Features, LowRankSize, Storage};
use crate::gram::{Gram, check_plan};
use crate::grid::{Distinct, OfEachC, Scales, check_products, each_once, largest_diagonal};
use crate::kernel::{KernelFn, Shape};
use crate::ledger::{Keeps, Plan, record};
use crate::nystrom::Nystrom;
use crate::observe::{Control, Phase};
use crate::pairs::Pairs;
use crate::problem::{Settings, Status};
use crate::simd::largest;
use crate::softmax::Softmax;
use crate::solver::{FeatureKernel, Operator, SoftmaxColumn, SoftmaxNewton, Working, softmax_bytes};

/// What to fit.
#[derive(Debug, Clone)]
pub struct Multinomial<'a> {
    /// The rows, or the kernel matrix for [`Shape::Precomputed`].
    pub x: Rows<'a>,
    /// The class of each row, from 0.
    pub y: &'a [usize],
    /// A weight for each row in the loss, > 0 or 0; `None`: all 1.
    pub weight: Option<&'a [f64]>,
    /// The same for the scores of held-out rows; `None`: as in the loss.
    pub score_weight: Option<&'a [f64]>,
    /// The kernel.
    pub kernel: KernelFn,
    /// Values of C in any order; results keep it.
    pub cs: &'a [f64],
    /// Cross-validation; not [`Folds::LeaveOneOut`].
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

impl<'a> Multinomial<'a> {
    /// Rows of weight 1, no folds, default settings.
    pub fn new(x: Rows<'a>, y: &'a [usize], kernel: KernelFn, cs: &'a [f64]) -> Self {
        Self {
            x,
            y,
            weight: None,
            score_weight: None,
            kernel,
            cs,
            folds: Folds::None,
            settings: Settings::default(),
            precision: Precision::default(),
            threads: 0,
            pairs: None,
            instead: LowRankSize::default(),
        }
    }

    fn weight(&self, i: usize) -> f64 {
        self.weight.map_or(1.0, |weight| weight[i])
    }
}

/// A model with an intercept a class.
pub type Record = crate::cv::Record<Vec<f64>>;

/// Every model of a fit: folds × C's and the refit.
#[derive(Debug, Clone)]
pub struct MultinomialFit {
    /// Number of classes.
    pub classes: usize,
    /// The values of C, as given.
    pub cs: Vec<f64>,
    /// Rows of the data.
    pub n: usize,
    /// Weighted accuracy of each fold's test rows at each C; NaN where not run.
    pub scores: Vec<Vec<f64>>,
    /// `records[fold][c]`; the last "fold" is the refit on all rows.
    pub records: Vec<Vec<Record>>,
    /// `oof[fold][c]`: the values f of the fold's test rows, row after row, one a class; NaN where not run.
    pub oof: Vec<Vec<Vec<f64>>>,
    /// Test rows of each fold.
    pub test: Vec<Vec<usize>>,
    /// `coef[c]`: B of the refit, class after class, a coefficient a row, or with low rank a landmark; 0 where not run.
    pub coef: Vec<Vec<f64>>,
    /// Bytes of the kernel matrix, or of the features.
    pub gram_bytes: u64,
    /// Bytes that the fit was planned to take at its peak.
    pub planned_bytes: u64,
    /// Seconds spent on the kernel matrix, or on the features.
    pub kernel_seconds: f64,
    /// Seconds spent on the paths.
    pub path_seconds: f64,
    /// Whether the time budget ended the fit.
    pub timed_out: bool,
    /// The smallest eigenvalue of the kernel matrix, or of that of the landmarks, if it is so far below 0 that the
    /// models have no certificate; `None`: the matrix is positive semi-definite, up to rounding.
    pub smallest_eigenvalue: Option<f64>,
}

impl MultinomialFit {
    /// Mean values f of each row over the folds that held it out, at the C of index `c`, row after row; NaN if none did.
    pub fn out_of_fold(&self, c: usize) -> Vec<f64> {
        let mut mean = vec![0.0; self.n * self.classes];
        let mut count = vec![0.0; self.n];
        for (by_c, test) in self.oof.iter().zip(&self.test) {
            for (&row, f) in test.iter().zip(by_c[c].chunks_exact(self.classes)) {
                mean[row * self.classes..].iter_mut().zip(f).for_each(|(mean, f)| *mean += f);
                count[row] += 1.0;
            }
        }
        for (mean, count) in mean.chunks_exact_mut(self.classes).zip(count) {
            for f in mean {
                *f /= count;
            }
        }
        mean
    }

    /// Largest gap of all models; NaN if the kernel is indefinite.
    pub fn worst_gap(&self) -> f64 {
        worst(self.records.iter().flatten().map(|r| r.certificate.gap()))
    }
}

/// Fits every fold and the whole data at every C, each model with its certificate.
pub fn fit_multinomial(request: &Multinomial, control: &Control) -> Result<MultinomialFit> {
    on_each_c(request, |request| {
        let classes = check(request)?;
        let units = units(request, control)?;
        if request.precision.is_single(&request.kernel, &request.x, &units.representative, control)? {
            fit_gram::<f32>(request, classes, &units, control)
        } else {
            fit_gram::<f64>(request, classes, &units, control)
        }
    })
}

/// As [`fit_multinomial`] with the kernel at low rank, each model with its certificate for the low-rank problem, unless the
/// kernel matrix of the landmarks is indefinite.
pub fn fit_multinomial_low_rank(request: &Multinomial, nystrom: &Nystrom, control: &Control) -> Result<MultinomialFit> {
    on_each_c(request, |request| {
        let classes = check(request)?;
        let units = units(request, control)?;
        match request.precision {
            Precision::Double => fit_features::<f64>(request, nystrom, classes, &units, control),
            Precision::Auto | Precision::Single => fit_features::<f32>(request, nystrom, classes, &units, control),
        }
    })
}

/// Fits every distinct C once, on the threads asked for.
fn on_each_c(
    request: &Multinomial,
    fit: impl Fn(&Multinomial) -> Result<MultinomialFit> + Sync,
) -> Result<MultinomialFit> {
    let pool = pool(request.threads)?;
    each_once(request.cs, |cs| match cs {
        None => pool.install(|| fit(request)),
        Some(cs) => pool.install(|| fit(&Multinomial { cs, ..request.clone() })),
    })
}

impl OfEachC for MultinomialFit {
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

/// Equal rows of a class are one row with their weights.
fn units(request: &Multinomial, control: &Control) -> Result<Units> {
    check_rows(request.x.nrows(), request.y.len())?;
    if request.kernel.shape == Shape::Precomputed {
        return Ok(Units::separate(request.x.nrows()));
    }
    Units::merge(&request.x, |i| std::iter::once(request.y[i] as f64), control)
}

/// The number of classes, if the request is sound.
fn check(request: &Multinomial) -> Result<usize> {
    check_setup(&request.x, request.cs, &request.folds, request.settings)?;
    let n = request.x.nrows();
    if request.y.len() != n {
        return Err(Error::Length { what: "y", got: request.y.len(), expected: n, why: "one class a row of X" });
    }
    for weight in [request.weight, request.score_weight].into_iter().flatten() {
        if weight.len() != n {
            let why = "one weight a row of X";
            return Err(Error::Length { what: "the weights", got: weight.len(), expected: n, why });
        }
        if let Some(row) = weight.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
            return Err(Error::Weight { value: weight[row], row });
        }
    }
    let classes = request.y.iter().max().map_or(0, |y| y.saturating_add(1));
    if classes > n {
        let mut there: Vec<bool> = vec![false; n];
        request.y.iter().filter(|y| **y < n).for_each(|&y| there[y] = true);
        let class = there.iter().position(|there| !there).unwrap_or(n);
        return Err(Error::NoClass { fold: None, class, classes });
    }
    // Without a row of a class its intercept would go to −∞: there would be no optimum.
    let each_class = |fold: Option<usize>, count: &dyn Fn(usize) -> f64| {
        let mut total = vec![0.0; classes];
        (0..n).for_each(|i| total[request.y[i]] += request.weight(i) * count(i));
        match total.iter().position(|w| *w == 0.0) {
            Some(class) => Err(Error::NoClass { fold, class, classes }),
            None => Ok(()),
        }
    };
    each_class(None, &|_| 1.0)?;
    if classes < 2 {
        return Err(Error::OneClass { fold: None, rows: n });
    }
    let weights = (0..n).map(|i| request.weight(i));
    let diagonal = largest_diagonal(&request.x, &request.kernel);
    check_products(request.cs, weights, &Scales { slope: 1.0, value: (classes as f64).ln(), diagonal })?;
    match &request.folds {
        Folds::None => {}
        Folds::LeaveOneOut => return Err(Error::NoLeaveOneOut),
        Folds::Splits(folds) => {
            for (k, fold) in folds.iter().enumerate() {
                let count = counts(n, &fold.train);
                each_class(Some(k), &|i| count[i])?;
            }
        }
    }
    Ok(classes)
}

/// What all problems of a fit share.
pub(crate) struct Problem<'a, K> {
    pub kernel: &'a K,
    pub softmax: Softmax,
    pub settings: Settings,
    pub largest_diagonal: f64,
    /// What errors of products with K grow with.
    pub roots: Vec<f64>,
}

fn fit_gram<T: Working>(
    request: &Multinomial,
    classes: usize,
    units: &Units,
    control: &Control,
) -> Result<MultinomialFit> {
    let started = Instant::now();
    let extra = softmax_bytes(units.len(), classes, request.folds.splits().len() + 1);
    let beside = |_| beside(request, classes, units.len());
    let low_rank = || Some(request.instead.planned_bytes::<T>(units.len(), beside));
    let plan = |pairs: u64| check_plan::<T>(units.len(), classes * request.cs.len(), 1, extra + pairs, low_rank);
    let (pairs, planned_bytes) = Pairs::planned(request.pairs, units.len(), plan)?;
    let gram = Gram::<T>::compute(&request.x, &units.representative, &request.kernel, pairs, control)?;
    let precision = epsilon::<T>(&request.kernel, &request.x);
    let definite = request.kernel.shape.is_definite();
    let negative = if definite { None } else { negative_eigenvalue(&gram, precision, control)? };
    let kernel_seconds = started.elapsed().as_secs_f64();
    let mut fit = fit_with(request, classes, units, &gram, control)?;
    let n = request.x.nrows();
    let all = weights(request, units, |_| 1.0);
    // A unit's B goes to its rows by their weights.
    let share = |beta: &[f64], i: usize| {
        let u = units.of_row[i];
        if all[u] > 0.0 { beta[u] * request.weight(i) / all[u] } else { 0.0 }
    };
    for coef in &mut fit.coef {
        *coef = match coef.len() {
            0 => vec![0.0; n * classes],
            _ => coef.chunks_exact(units.len()).flat_map(|beta| (0..n).map(|i| share(beta, i))).collect(),
        };
    }
    let gram_bytes = Gram::<T>::bytes(units.len());
    Ok(MultinomialFit { gram_bytes, planned_bytes, kernel_seconds, ..fit }.with_negative_eigenvalue(negative))
}

/// Bytes that a fit at low rank on `n` distinct rows takes beside its features.
fn beside(request: &Multinomial, classes: usize, n: usize) -> u64 {
    let folds = request.folds.splits().len();
    let held_out = if folds > 0 { classes * request.cs.len() * request.x.nrows() } else { 0 };
    softmax_bytes(n, classes, folds + 1) + 8 * held_out as u64
}

fn fit_features<T: Working>(
    request: &Multinomial,
    nystrom: &Nystrom,
    classes: usize,
    units: &Units,
    control: &Control,
) -> Result<MultinomialFit> {
    let started = Instant::now();
    let beside = beside(request, classes, units.len());
    let (storage, planned_bytes) = Storage::planned::<T>(units.len(), nystrom, beside)?;
    let features = Features::<T>::of_rows(&Cpu, nystrom, &request.x, &units.representative, storage, control)?;
    let kernel_seconds = started.elapsed().as_secs_f64();
    let design = features.design();
    let kernel = FeatureKernel { design, errors: features.errors() };
    let mut fit = fit_with(request, classes, units, &kernel, control)?;
    for coef in &mut fit.coef {
        *coef = match coef.len() {
            0 => vec![0.0; nystrom.map().nrows() * classes],
            _ => coef.chunks_exact(features.rank()).flat_map(|w| nystrom.coefficients(w)).collect(),
        };
    }
    let gram_bytes = Features::<T>::bytes(features.n(), features.rank());
    let fit = MultinomialFit { gram_bytes, planned_bytes, kernel_seconds, ..fit };
    Ok(fit.with_negative_eigenvalue(nystrom.smallest_eigenvalue()))
}

/// The weight of each unit, each row counted so often.
fn weights(request: &Multinomial, units: &Units, count: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut weight = vec![0.0; units.len()];
    for (i, &u) in units.of_row.iter().enumerate() {
        weight[u] += request.weight(i) * count(i);
    }
    weight
}

/// All models on one K; `coef` holds what predicts other rows, nothing where not run.
fn fit_with<K: Operator>(
    request: &Multinomial,
    classes: usize,
    units: &Units,
    kernel: &K,
    control: &Control,
) -> Result<MultinomialFit> {
    let started = Instant::now();
    let n = request.x.nrows();
    let splits = request.folds.splits();
    let mut y = vec![0; units.len()];
    for (&u, &class) in units.of_row.iter().zip(request.y) {
        y[u] = class;
    }
    let softmax = Softmax { y, classes };
    let largest_diagonal = largest(&kernel.diagonal());
    let problem = Problem { kernel, softmax, settings: request.settings, largest_diagonal, roots: kernel.roots() };
    let mut plans = vec![Plan { weight: weights(request, units, |_| 1.0), keeps: Keeps::Coefficients }];
    plans.extend(splits.iter().map(|fold| {
        let count = counts(n, &fold.train);
        Plan { weight: weights(request, units, |i| count[i]), keeps: Keeps::Values(units.of(&fold.test)) }
    }));
    control.begin(Phase::Path, request.cs.len() * plans.len());
    let mut ledger = Ledger::new(&problem, &plans, request.cs, control);
    SoftmaxNewton::new(&problem, control)?.sweep(&mut ledger)?;

    let mut kept = ledger.kept;
    let refit = kept.remove(0);
    let test: Vec<Vec<usize>> = splits.iter().map(|fold| fold.test.clone()).collect();
    let (mut oof, mut records) = (Vec::new(), Vec::new());
    for (kept, test) in kept.into_iter().zip(&test) {
        let or_nan = |f: Vec<f64>| if f.is_empty() { vec![f64::NAN; test.len() * classes] } else { f };
        oof.push(kept.values.into_iter().map(or_nan).collect::<Vec<_>>());
        records.push(kept.records);
    }
    records.push(refit.records);
    let scores = oof.iter().zip(&test).map(|(oof, test)| oof.iter().map(|f| accuracy(request, test, f)).collect());
    Ok(MultinomialFit {
        classes,
        cs: request.cs.to_vec(),
        n,
        scores: scores.collect(),
        timed_out: records.iter().flatten().any(|r| matches!(r.status, Status::NotRun | Status::TimeLimit)),
        records,
        oof,
        test,
        coef: refit.values,
        gram_bytes: 0,
        planned_bytes: 0,
        kernel_seconds: 0.0,
        path_seconds: started.elapsed().as_secs_f64(),
        smallest_eigenvalue: None,
    })
}

/// Weighted share of the rows whose class has the largest value; NaN where there is none or it was not run.
fn accuracy(request: &Multinomial, rows: &[usize], f: &[f64]) -> f64 {
    let (mut right, mut total) = (0.0, 0.0);
    for (&i, f) in rows.iter().zip(f.chunks_exact(f.len() / rows.len())) {
        // Of equal values the first is the prediction.
        let best = f.iter().enumerate().fold(0, |best, (c, value)| if *value > f[best] { c } else { best });
        let weight = request.score_weight.map_or_else(|| request.weight(i), |weight| weight[i]);
        right += if f[0].is_nan() { f64::NAN } else { weight * f64::from(best == request.y[i]) };
        total += weight;
    }
    right / total
}

/// What is kept of a plan: per C the record, and of the refit what predicts (class after class), of a fold the values f
/// of its test rows (row after row); empty where not run.
pub(crate) struct Kept {
    records: Vec<Record>,
    values: Vec<Vec<f64>>,
}

/// All plans of a fit, and what is known of their solutions.
pub(crate) struct Ledger<'a, K> {
    problem: &'a Problem<'a, K>,
    pub plans: &'a [Plan],
    pub cs: &'a [f64],
    control: &'a Control,
    kept: Vec<Kept>,
}

impl<'a, K: Operator> Ledger<'a, K> {
    fn new(problem: &'a Problem<'a, K>, plans: &'a [Plan], cs: &'a [f64], control: &'a Control) -> Self {
        let b = vec![f64::NAN; problem.softmax.classes];
        let not_run = Record { status: Status::NotRun, steps: 0, certificate: Certificate::NONE, b };
        let nothing = || Kept { records: vec![not_run.clone(); cs.len()], values: vec![Vec::new(); cs.len()] };
        Self { problem, plans, cs, control, kept: plans.iter().map(|_| nothing()).collect() }
    }

    /// Recomputes f = KB of the columns of these plans at the C of index `c` in one product, judges and keeps them; a
    /// later solution of the same problem replaces an earlier one. The gap of each.
    pub fn settle(&mut self, c: usize, plans: &[usize], columns: &mut [SoftmaxColumn]) -> Result<Vec<f64>> {
        let Problem { kernel, softmax, settings, largest_diagonal, roots } = self.problem;
        let betas: Vec<&[f64]> = plans.iter().flat_map(|&plan| columns[plan].beta.chunks_exact(kernel.n())).collect();
        let products = kernel.times(&betas, self.control)?;
        let errors = kernel.errors(&betas, self.control)?;
        let mut gaps = Vec::with_capacity(plans.len());
        let of_plans = products.chunks_exact(softmax.classes).zip(errors.chunks_exact(softmax.classes));
        for (&plan, (f, errors)) in plans.iter().zip(of_plans) {
            let column = &mut columns[plan];
            column.f = f.concat();
            let weight: Vec<f64> = column.weight.iter().map(|w| w * self.cs[c]).collect();
            let k_times = |theta: &[f64]| {
                let classes: Vec<&[f64]> = theta.chunks_exact(kernel.n()).collect();
                kernel.times(&classes, self.control).map_or_else(|_| vec![f64::NAN; theta.len()], |f| f.concat())
            };
            let SoftmaxColumn { beta, b, f, outcome, .. } = column;
            let Certificate { primal, dual, .. } =
                softmax.certify(&weight, beta, b, f, *largest_diagonal, settings.tol, k_times);
            let certificate = Certificate::new(primal, dual, softmax.noise(&weight, beta, b, f, roots, errors));
            gaps.push(certificate.gap());
            let kept = &mut self.kept[plan];
            kept.records[c] = record(*outcome, certificate, b.clone(), settings.tol);
            kept.values[c] = match &self.plans[plan].keeps {
                Keeps::All | Keeps::Coefficients => {
                    let classes: Vec<&[f64]> = beta.chunks_exact(kernel.n()).collect();
                    kernel.predictors(&classes, self.control)?.concat()
                }
                Keeps::Values(units) => {
                    let row = |&u: &usize| b.iter().enumerate().map(move |(c, b)| (c * kernel.n() + u, b));
                    units.iter().flat_map(row).map(|(at, b)| f[at] + b).collect()
                }
            };
        }
        Ok(gaps)
    }
}
