//! Folds × path on low-rank features, K = ZZᵀ: the same models as on a kernel matrix, in rank dimensions.
//!
//! The features are made once, from the rows alone, outside the path and the folds.

use std::time::Instant;

use faer::linalg::matmul::matmul;
use faer::{Accum, Par};

use crate::cv::{
    Folds, PathFit, Placed, Precision, Record, Request, Task, check, counts, fit_paths_on, path_fit, pool,
    single_proves, units,
};
use crate::data::{Rows, Units};
use crate::design::{Accuracy, Design, Gathered};
use crate::device::{Cpu, Device, eigen_bytes};
use crate::error::{Error, Result};
use crate::features::{Features, Storage};
use crate::grid::each_once;
use crate::kernel::{KernelFn, Shape};
use crate::ledger::{Keeps, Plan};
use crate::memory::{self, available_memory};
use crate::nystrom::Nystrom;
use crate::observe::{Control, Phase};
use crate::solver::{Engine, Preconditioner, Primal, Reduced, Solver, Working, spectral};
use crate::spread::in_units;

/// One task on the features of its units, from which `mean` was taken.
fn fit_task<T: Working>(
    request: &Request,
    task: &Task,
    (design, errors, units): (Design<T>, &[f64], &Units),
    copied: usize,
    mean: &[f64],
    nystrom: &Nystrom,
    control: &Control,
) -> Result<PathFit> {
    let started = Instant::now();
    let placed = Placed::new(task, units);
    let y = placed.targets(task);
    let gathered = (y.len() < design.n()).then(|| design.gather(&placed.own, Accuracy::Double)).transpose()?;
    let own = gathered.as_ref().map_or(design, Gathered::design);
    let splits = request.folds.splits();
    let plan = |count: &dyn Fn(usize) -> f64| Plan { weight: placed.weights(task, count), keeps: Keeps::Coefficients };
    let mut plans = vec![plan(&|_| 1.0)];
    plans.extend(splits.iter().map(|fold| {
        let count = counts(request.x.nrows(), &fold.train);
        plan(&|i| count[i])
    }));
    let (loss, settings, accuracy) = (task.loss, request.settings, Accuracy::Working);
    let primal =
        Primal { device: &Cpu, design: own, errors, rows: None, copied, loss, y: &y, settings, accuracy, control };
    let (engine, mut kept) = match request.solver {
        Solver::Spectral => (Engine::Spectral, spectral::sweep_features(&primal, &plans, request.cs)?),
        _ => (Engine::Newton, primal.sweep(&plans, request.cs)?),
    };
    let refit = kept.remove(0);
    let mut records: Vec<Vec<Record>> = Vec::with_capacity(splits.len() + 1);
    let mut oof: Vec<Vec<Vec<f64>>> = Vec::with_capacity(splits.len());
    for (reduced, fold) in kept.into_iter().zip(splits) {
        oof.push(decisions(design, &reduced, &units.of(&fold.test), control)?);
        records.push(uncentred(reduced.records, &reduced.w, mean));
    }
    let coef = refit.w.iter().map(|w| if w.is_empty() { Vec::new() } else { nystrom.coefficients(w) }).collect();
    records.push(uncentred(refit.records, &refit.w, mean));
    let bytes = Features::<T>::bytes(design.n(), design.rank());
    Ok(path_fit(request, task, engine, records, oof, coef, bytes, started.elapsed().as_secs_f64()))
}

/// The records with b as it is for features that keep their mean.
fn uncentred(mut records: Vec<Record>, w: &[Vec<f64>], mean: &[f64]) -> Vec<Record> {
    for (record, w) in records.iter_mut().zip(w) {
        record.b -= w.iter().zip(mean).map(|(w, mean)| w * mean).sum::<f64>();
    }
    records
}

/// f at some rows of the design, for each C; NaN where not run.
fn decisions<T: Working>(
    design: Design<T>,
    reduced: &Reduced,
    rows: &[usize],
    control: &Control,
) -> Result<Vec<Vec<f64>>> {
    let run: Vec<usize> = (0..reduced.w.len()).filter(|&c| !reduced.w[c].is_empty()).collect();
    let w: Vec<&[f64]> = run.iter().map(|&c| &reduced.w[c][..]).collect();
    let gathered = design.gather(rows, Accuracy::Double)?;
    let products = Cpu.pass(gathered.design(), &w, Accuracy::Double, control)?;
    let mut f = vec![vec![f64::NAN; rows.len()]; reduced.w.len()];
    for (&c, product) in run.iter().zip(products) {
        f[c] = product.into_iter().map(|f| f + reduced.records[c].b).collect();
    }
    Ok(f)
}

/// From this rank on a factor in rank dimensions is dear, and up to so many rows the matrix ZZᵀ is small.
const LARGE_RANK: usize = 256;
const FEW_ROWS: usize = 8192;

/// Numbers a row beside the features, for each problem in work: weights, and at the C's at hand and the two before it
/// the values f, the slopes, the centre and the curvature, and how the slopes change.
const STATE: usize = 21;

/// More of them in the spectral engine, at each of the C's at hand: weights twice, f and the slopes on the device and
/// off it.
const STATE_OF_A_STEP: usize = 8;

/// As [`fit_paths`](crate::fit_paths) with the kernel at low rank: every fold and all rows at every C, each model with
/// its certificate for the low-rank problem; of each model, [`PathFit::coef`] holds a coefficient a landmark.
///
/// If the kernel matrix of the landmarks is indefinite, ZZᵀ leaves out its negative part, and no model has a certificate.
///
/// ```
/// use kernelpath::{Control, Folds, KernelFn, Landmarks, Loss, Nystrom, Rows, Shape, Task, fit_low_rank, logspace};
///
/// let x: Vec<f64> = (0..2000).map(|i| (0.37 * i as f64).sin()).collect();
/// let y: Vec<f64> = x.chunks(2).map(|r| if r[0] * r[1] > 0.1 { 1.0 } else { -1.0 }).collect();
/// let (rows, control) = (Rows::from_slice(&x, 2)?, Control::default());
/// let kernel = KernelFn::new(Shape::Rbf, 1.0)?;
/// let nystrom = Nystrom::new(&rows, None, kernel, &Landmarks::RpCholesky, 30, None, 0, &control)?;
/// let request = kernelpath::Request {
///     x: rows,
///     tasks: vec![Task::new(Loss::Hinge, &y)],
///     solver: Default::default(),
///     kernel,
///     cs: &logspace(1e-2, 1e2, 10),
///     folds: Folds::stratified(&y, 5, 0)?,
///     settings: Default::default(),
///     precision: Default::default(),
///     threads: 0,
///     pairs: None,
///     instead: Default::default(),
/// };
/// let fit = &fit_low_rank(&request, &nystrom, &control)?[0];
/// assert!(fit.worst_gap() <= 1e-6);
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub fn fit_low_rank(request: &Request, nystrom: &Nystrom, control: &Control) -> Result<Vec<PathFit>> {
    let fit = |request: &Request| {
        let fits = pool(request.threads)?.install(|| {
            check_low_rank(request)?;
            in_units(request, |request| match request.precision {
                Precision::Auto if !single_proves(request) => fit_with::<f64>(request, nystrom, control),
                Precision::Double => fit_with::<f64>(request, nystrom, control),
                Precision::Auto | Precision::Single => fit_with::<f32>(request, nystrom, control),
            })
        })?;
        let negative = nystrom.smallest_eigenvalue();
        Ok(fits.into_iter().map(|fit| fit.with_negative_eigenvalue(negative)).collect())
    };
    each_once(request.cs, |cs| match cs {
        None => fit(request),
        Some(cs) => fit(&Request { cs, ..request.clone() }),
    })
}

fn fit_with<T: Working>(request: &Request, nystrom: &Nystrom, control: &Control) -> Result<Vec<PathFit>> {
    let started = Instant::now();
    let folds = if let Folds::Splits(folds) = &request.folds { folds.len() } else { 0 };
    // Equal rows are one row with their weights: it is often their number that makes a problem degenerate.
    let units = units(request, control)?;
    let copied = copies::<T>(units.len(), nystrom.rank()) / Features::<T>::bytes(1, nystrom.rank());
    let beside = beside_features::<T>(request, folds, units.len(), nystrom.rank());
    let (storage, planned_bytes) = Storage::planned::<T>(units.len(), nystrom, beside)?;
    let mut features = Features::<T>::of_rows(&Cpu, nystrom, &request.x, &units.representative, storage, control)?;
    if features.rank() >= LARGE_RANK && request.x.nrows() <= FEW_ROWS.min(2 * features.rank()) {
        return fit_product(request, nystrom, (&features, &units), control);
    }
    let mean = features.centre();
    let (design, errors) = (features.design(), features.errors());
    let kernel_seconds = started.elapsed().as_secs_f64();
    control.begin(Phase::Path, request.tasks.len() * request.cs.len() * (1 + folds));
    let fit = |task: &Task| {
        let fit = fit_task(request, task, (design, errors, &units), copied as usize, &mean, nystrom, control)?;
        Ok(PathFit { rows: None, planned_bytes, kernel_seconds, ..fit })
    };
    request.tasks.iter().map(fit).collect()
}

/// Bytes that a fit at low rank on `n` distinct rows would take; leave-one-out has none.
pub(crate) fn planned_bytes<T: Working>(request: &Request, n: usize) -> Option<u64> {
    let folds = match &request.folds {
        Folds::LeaveOneOut => return None,
        folds => folds.splits().len(),
    };
    Some(request.instead.planned_bytes::<T>(n, |rank| beside_features::<T>(request, folds, n, rank)))
}

/// Bytes that a fit on `n` distinct rows takes beside their features.
fn beside_features<T: Working>(request: &Request, folds: usize, n: usize, rank: usize) -> u64 {
    let factors = Preconditioner::<T>::bytes(n, rank, folds + 1);
    // Copies mostly take less than they may.
    beside(request, folds) + copies::<T>(n, rank) * 2 / 3 + factors + curvatures(request, rank)
}

/// Fits on the kernel matrix ZZᵀ, where it is not much larger than Z and a factor in rank dimensions would cost more.
fn fit_product<T: Working>(
    request: &Request,
    nystrom: &Nystrom,
    (features, units): (&Features<T>, &Units),
    control: &Control,
) -> Result<Vec<PathFit>> {
    let of_row = |i: usize| features.wide_row(units.of_row[i]);
    let n = request.x.nrows();
    let mut z = memory::matrix(features.rank(), n, "the features", |_, _| 0.0)?;
    for i in 0..n {
        z.col_as_slice_mut(i).copy_from_slice(&of_row(i));
    }
    let mut product = memory::matrix(n, n, "the kernel matrix of the features", |_, _| 0.0)?;
    matmul(product.as_mut(), Accum::Replace, z.transpose(), z.as_ref(), 1.0, Par::Seq);
    drop(z);
    let kernel = KernelFn::new(Shape::Precomputed, 1.0)?;
    let solver = if request.solver == Solver::Spectral { Solver::Spectral } else { Solver::Auto };
    let exact = Request { x: Rows::from(&product), kernel, solver, precision: Precision::Double, ..request.clone() };
    let mut fits = fit_paths_on(&exact, true, control)?;
    for (fit, task) in fits.iter_mut().zip(&request.tasks) {
        fit.rows = None;
        for beta in fit.coef.iter_mut().filter(|beta| !beta.is_empty()) {
            let mut w = vec![0.0; features.rank()];
            for (k, beta) in beta.iter().enumerate().filter(|(_, beta)| **beta != 0.0) {
                w.iter_mut().zip(of_row(task.row(k))).for_each(|(w, z)| *w += beta * z);
            }
            *beta = nystrom.coefficients(&w);
        }
    }
    Ok(fits)
}

/// Bytes that copies of features of some rows may take: those of half of the rows, where there is the memory.
fn copies<T: Working>(n: usize, rank: usize) -> u64 {
    let available = available_memory().unwrap_or(u64::MAX);
    (Features::<T>::bytes(n, rank) / 2).min(available / 4)
}

/// Bytes of the matrices of all pairs of features: one a thread, with its factor, and for the spectral engine those of
/// an eigendecomposition.
fn curvatures(request: &Request, rank: usize) -> u64 {
    let square = 8 * (rank as u64 + 1).pow(2);
    let decomposed = if request.solver == Solver::Spectral { 3 * square + eigen_bytes(rank) } else { 0 };
    2 * square * rayon::current_num_threads() as u64 + decomposed
}

/// Bytes that a fit takes beside the features and what its steps make of them: its problems in work, and the held-out
/// values of every machine.
fn beside(request: &Request, folds: usize) -> u64 {
    let most = request.tasks.iter().map(|task| task.y.len()).max().unwrap_or(0);
    let held_out = if folds > 0 { request.tasks.len() * request.cs.len() * request.x.nrows() } else { 0 };
    let state = if request.solver == Solver::Spectral { STATE + STATE_OF_A_STEP * spectral::NEIGHBOURS } else { STATE };
    8 * (most * (folds + 1) * state + held_out) as u64 + (56 << 20)
}

fn check_low_rank(request: &Request) -> Result<()> {
    if request.folds == Folds::LeaveOneOut {
        return Err(Error::LowRank { what: "leave-one-out", instead: "folds, such as cv=10" });
    }
    match request.solver {
        // In rank dimensions Newton's method serves every loss, too.
        Solver::Auto | Solver::Newton | Solver::Spectral => check(request),
        _ => Err(Error::LowRank { what: "this solver", instead: "solver=\"auto\", \"newton\" or \"spectral\"" }),
    }
}
