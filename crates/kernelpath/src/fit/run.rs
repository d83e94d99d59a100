//! The one driver: from a request to every model of a fit.
//!
//! A held-out row is a row of weight 0, so every fold is (P) on the same kernel matrix, and the fold's out-of-fold scores
//! are the f of its held-out rows.

use std::time::Instant;

use crate::certify::ledger::Kept;
use crate::certify::record::Record;
use crate::data::units::Units;
use crate::device::{Decompositions, Device};
use crate::error::Result;
use crate::fit::absent;
use crate::fit::check::check;
use crate::fit::folds::Folds;
use crate::fit::grid::each_once;
use crate::fit::memory_plan;
use crate::fit::placed::{Placed, units};
use crate::fit::precision::is_single;
use crate::fit::request::{KernelChoice, Request, Task};
use crate::fit::result::{PathFit, path_fit};
use crate::fit::solved::{Found, Posed, Solved};
use crate::fit::spread::in_units;
use crate::fit::with_features::WithFeatures;
use crate::fit::with_matrix::{Origin, WithMatrix};
use crate::kernel::definite::{examine, is_in_doubt};
use crate::kernel::gram::Gram;
use crate::kernel::shape::KernelFn;
use crate::kernel::tilt::centre_of;
use crate::numeric::cholesky::Working;
use crate::numeric::memory;
use crate::numeric::parallel;
use crate::nystrom::approximation::Nystrom;
use crate::nystrom::features::Features;
use crate::observe::{Control, Phase};
use crate::path::leave_one_out::LeftOut;
use crate::solver::choice::Solver;

/// K of a fit, and how the problems of one task are solved on it.
pub(crate) trait Ground: Sync {
    /// Whether the task is small: it is solved on one thread, side by side with others.
    fn is_alone(&self, task: &Task) -> bool;
    /// Whether the folds of the task keep the values of their test rows. The others keep coefficients, from which
    /// [`held_out`](Self::held_out) computes these values.
    fn keeps_values(&self, task: &Task) -> bool;
    /// Solves the problems of a task.
    fn solve(&self, request: &Request, task: &Task, placed: &Placed, posed: &Posed) -> Result<Found>;
    /// `[fold][c]`: the values at the folds' test rows, NaN where not run. If rows are left out one by one, there is a
    /// "fold" for each group of rows that the task does not learn from, and its values are those at these rows.
    fn held_out(&self, request: &Request, solved: &Solved) -> Result<Vec<Vec<Vec<f64>>>>;
    /// The coefficients of the refit, one for each row or landmark.
    fn coefficients(&self, task: &Task, solved: &Solved) -> Result<Vec<Vec<f64>>>;
    /// Makes the records of a problem hold for the kernel that was asked for.
    fn finish_records(&self, _placed: &Placed, _kept: &mut Kept) {}
}

/// Fits every fold and the whole data at every C, each model with its certificate. Returns one fit per task.
///
/// ```
/// use kernelpath::{Control, Folds, KernelFn, Loss, LowRank, Nystrom, Objective, Request, Rows, Shape, Task, fit, logspace};
///
/// let x: Vec<f64> = (0..2000).map(|i| (0.37 * i as f64).sin()).collect();
/// let y: Vec<f64> = x.chunks(2).map(|r| if r[0] * r[1] > 0.1 { 1.0 } else { -1.0 }).collect();
/// let (rows, control) = (Rows::from_slice(&x, 2)?, Control::default());
/// let (kernel, cs) = (KernelFn::new(Shape::Rbf, 1.0)?, logspace(1e-2, 1e2, 10)?);
/// let mut request = Request::new(rows, vec![Task::new(Loss::Hinge, &y)], kernel, &cs);
/// request.folds = Folds::stratified(&y, 5, 0)?;
/// assert!(fit(&request, &control)?[0].worst_gap() <= 1e-6);
///
/// // The same at low rank, in which case a model has one coefficient per landmark.
/// let nystrom = Nystrom::builder(kernel).low_rank(LowRank::rp_cholesky(30)).build(&rows)?;
/// request.kernel = (&nystrom).into();
/// let low_rank = &fit(&request, &control)?[0];
/// assert!(low_rank.worst_gap() <= 1e-6 && low_rank.coef[0].len() == 30);
///
/// // Classes that are learned together.
/// let classes: Vec<f64> = x.chunks(2).map(|r| f64::from(r[0] > 0.0) + f64::from(r[1] > 0.5)).collect();
/// let request = Request::new(rows, vec![Task::new(Objective::Multinomial, &classes)], kernel, &[1.0]);
/// assert_eq!(fit(&request, &control)?[0].intercepts(0).len(), 3);
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub fn fit(request: &Request, control: &Control) -> Result<Vec<PathFit>> {
    each_once(request.cs, |cs| fit_each_once(&Request { cs, ..request.clone() }, control))
}

/// A fit whose C's are all different.
fn fit_each_once(request: &Request, control: &Control) -> Result<Vec<PathFit>> {
    let device = request.device.open()?;
    // In a pool of its own: the global one does not survive a fork, and does not report a lack of threads.
    memory::pool(request.threads)?.install(|| {
        check(request)?;
        in_units(request, |request| {
            // Equal rows are merged into one row with the sum of their weights: repeated rows often make a problem
            // degenerate.
            let units = units(request, control)?;
            if is_single(request, &units, control)? {
                fit_in::<f32>(&*device, request, &units, control)
            } else {
                fit_in::<f64>(&*device, request, &units, control)
            }
        })
    })
}

fn fit_in<T: Working>(
    device: &dyn Device,
    request: &Request,
    units: &Units,
    control: &Control,
) -> Result<Vec<PathFit>> {
    match request.kernel {
        KernelChoice::Exact(kernel) => fit_matrix::<T>(device, request, kernel, units, control),
        KernelChoice::LowRank(nystrom) => fit_features::<T>(device, request, nystrom, units, control),
    }
}

fn fit_matrix<T: Working>(
    device: &dyn Device,
    request: &Request,
    kernel: KernelFn,
    units: &Units,
    control: &Control,
) -> Result<Vec<PathFit>> {
    let started = Instant::now();
    let (pairs, planned_bytes) = memory_plan::on_matrix::<T>(request, device, units.len(), control)?;
    let kernels = device.kernels();
    let (rows, centre) = (&units.representative, centre_of(&kernel, &request.x));
    let mut gram = Gram::<T>::compute_on(kernels, &request.x, rows, &kernel, &centre, pairs, control)?;
    gram.remote = device.hold(&gram.stored(), control)?;
    let mut negative = None;
    if is_in_doubt(&kernel, request.settings.assume_definite) {
        let sign = examine(&gram, &kernel, &request.x, control)?;
        (gram.shift, negative) = (sign.shift(), sign.negative());
    }
    let kernel_seconds = started.elapsed().as_secs_f64();
    let (gram, solver, decompositions) = (&gram, request.solver, &Decompositions::default());
    let ground = WithMatrix::<T, T> { device, gram, units, solver, decompositions, origin: None, control };
    let made =
        |fit: PathFit| PathFit { gram_bytes: Gram::<T>::bytes(units.len()), planned_bytes, kernel_seconds, ..fit };
    let fits = fit_tasks(request, units, &ground, control)?;
    Ok(fits.into_iter().map(|fit| made(fit).centred(&centre).with_negative_eigenvalue(negative)).collect())
}

/// When a fit works on the matrix ZZᵀ instead of on features: from rank `LARGE_RANK` on a factor in rank dimensions is
/// expensive, and up to `FEW_FOR_PRODUCT` rows the matrix is small.
const LARGE_RANK: usize = 256;

const FEW_FOR_PRODUCT: usize = 8192;

fn fit_features<T: Working>(
    device: &dyn Device,
    request: &Request,
    nystrom: &Nystrom,
    units: &Units,
    control: &Control,
) -> Result<Vec<PathFit>> {
    let started = Instant::now();
    let (storage, planned_bytes) = memory_plan::on_features::<T>(request, device, units.len(), nystrom, control)?;
    let (rows, centre) = (&units.representative, centre_of(&nystrom.kernel(), &request.x));
    let mut features = Features::<T>::of_rows(nystrom, &request.x, rows, storage, device.kernels(), &centre, control)?;
    let scalar = request.tasks.iter().all(|task| task.loss().is_some());
    let rank = features.rank();
    // What φ(x) − φ(m) misses of φ(x).
    let mut mean = if centre.is_empty() { vec![0.0; rank] } else { nystrom.plane(&[])?.at(&centre) };
    let as_product = scalar && rank >= LARGE_RANK && request.x.nrows() <= FEW_FOR_PRODUCT.min(2 * rank);
    let (fits, kernel_seconds) = if as_product {
        let mut gram = features.product(control)?;
        gram.remote = device.hold(&gram.stored(), control)?;
        let solver = if request.solver == Solver::Spectral { Solver::Spectral } else { Solver::Auto };
        let (gram, decompositions) = (&gram, &Decompositions::default());
        let origin = Some(Origin { features: &features, mean: &mean, nystrom });
        let ground = WithMatrix { device, gram, units, solver, decompositions, origin, control };
        let kernel_seconds = started.elapsed().as_secs_f64();
        (fit_tasks(request, units, &ground, control)?, kernel_seconds)
    } else {
        // Features far from 0 would hide b.
        if scalar {
            mean.iter_mut().zip(features.centre()).for_each(|(mean, rest)| *mean += rest);
        }
        features.remote = device.hold(&features.stored(), control)?;
        let copied = memory_plan::copied_rows::<T>(units.len(), rank);
        let (design, errors, mean) = (features.design(), features.errors(), &mean[..]);
        let ground = WithFeatures { device, design, errors, mean, nystrom, units, copied, control };
        let kernel_seconds = started.elapsed().as_secs_f64();
        (fit_tasks(request, units, &ground, control)?, kernel_seconds)
    };
    let gram_bytes = Features::<T>::bytes(units.len(), rank);
    let made = |fit: PathFit| PathFit { rows: None, gram_bytes, planned_bytes, kernel_seconds, ..fit };
    let negative = nystrom.smallest_eigenvalue().filter(|_| !request.settings.assume_definite);
    Ok(fits.into_iter().map(|fit| made(fit).centred(&[]).with_negative_eigenvalue(negative)).collect())
}

/// Fits all tasks: those on all rows one after the other, each on all threads, then the small ones side by side.
fn fit_tasks(request: &Request, units: &Units, ground: &impl Ground, control: &Control) -> Result<Vec<PathFit>> {
    control.begin(Phase::Path, request.tasks.len() * request.cs.len() * request.problems());
    let tasks = &request.tasks;
    // Rows that are left out one by one count as one problem more.
    let of_task = 1 + if request.folds == Folds::LeaveOneOut { 1 } else { request.folds.splits().len() };
    control.expect_models(tasks.len() * of_task);
    let (alone, together): (Vec<usize>, Vec<usize>) = (0..tasks.len()).partition(|&k| ground.is_alone(&tasks[k]));
    let fit_task = |k: usize| {
        let (task, started) = (&tasks[k], Instant::now());
        let (placed, keeps_values) = (Placed::new(task, units), ground.keeps_values(task));
        let posed = Posed::new(request, task, (&placed, units), keeps_values);
        let (method, mut kept, left_out) = ground.solve(request, task, &placed, &posed)?;
        let (refit, weight) = (kept.remove(0), posed.problems[0].weight.to_vec());
        let folds = posed.folds(kept, request.cs.len());
        let seconds = started.elapsed().as_secs_f64();
        let Posed { constants, leaving, .. } = posed;
        let outside = leaving.map(|leaving| leaving.outside).unwrap_or_default();
        let of_task = constants.clone();
        let solved = Solved { placed, weight, method, refit, folds, left_out, outside, constants, seconds };
        let values = if keeps_values { None } else { Some(ground.held_out(request, &solved)?) };
        control.advance(of_task.iter().flatten().count() * request.cs.len());
        Ok((k, assemble(request, task, ground, solved, values)?, of_task))
    };
    let mut found = together.into_iter().map(fit_task).collect::<Result<Vec<_>>>()?;
    let started = Instant::now();
    let mut side_by_side = parallel::try_map(alone, fit_task)?;
    // Seconds side by side pass at once.
    let seconds: f64 = side_by_side.iter().map(|(_, fit, _)| fit.path_seconds).sum();
    let share = (started.elapsed().as_secs_f64() / seconds).min(1.0);
    for (_, fit, _) in &mut side_by_side {
        fit.path_seconds *= share;
    }
    found.extend(side_by_side);
    found.sort_by_key(|(k, ..)| *k);
    let (mut fits, constants): (Vec<PathFit>, Vec<_>) = found.into_iter().map(|(_, fit, of_fit)| (fit, of_fit)).unzip();
    absent::lower(request, &constants, &mut fits);
    Ok(fits)
}

/// Makes the fit of a task. `values` are those of [`Ground::held_out`], if the folds did not keep theirs.
fn assemble(
    request: &Request,
    task: &Task,
    ground: &impl Ground,
    mut solved: Solved,
    values: Option<Vec<Vec<Vec<f64>>>>,
) -> Result<PathFit> {
    let coef = ground.coefficients(task, &solved)?;
    let at_centre = solved.refit.records.iter().map(|record| record.b.clone()).collect();
    for kept in solved.folds.iter_mut().chain([&mut solved.refit]) {
        ground.finish_records(&solved.placed, kept);
    }
    let Solved { placed: Placed { place, .. }, method, refit, folds, left_out, outside, constants, seconds, .. } =
        solved;
    let mut records: Vec<Vec<Record>> = Vec::new();
    let mut oof: Vec<Vec<Vec<f64>>> = Vec::new();
    if request.folds == Folds::LeaveOneOut {
        for i in 0..request.x.nrows() {
            // Rows that the task does not learn from follow.
            let of_row: Vec<&LeftOut> = match task.position(i) {
                Some(k) => left_out.iter().map(|of_c| &of_c[place[k]]).collect(),
                None => Vec::new(),
            };
            records.push(of_row.iter().map(|(record, _)| record.clone()).collect());
            oof.push(of_row.iter().map(|(_, value)| vec![*value]).collect());
        }
        for (g, (rows, values)) in outside.iter().zip(values.iter().flatten()).enumerate() {
            for (at, &row) in rows.iter().enumerate() {
                records[row].clone_from(&folds.get(g).unwrap_or(&refit).records);
                oof[row] = values.iter().map(|f| vec![f[at]]).collect();
            }
        }
    } else {
        let outputs = task.outputs();
        let or_nan =
            |values: Vec<f64>, rows: usize| if values.is_empty() { vec![f64::NAN; rows * outputs] } else { values };
        for (kept, fold) in folds.into_iter().zip(request.folds.splits()) {
            oof.push(kept.values.into_iter().map(|values| or_nan(values, fold.test.len())).collect());
            records.push(kept.records);
        }
        oof = values.unwrap_or(oof);
    }
    for ((records, oof), constant) in records.iter_mut().zip(&mut oof).zip(constants) {
        if let Some(constant) = constant {
            records.fill(absent::record(constant));
            oof.iter_mut().flatten().for_each(|value| *value = constant);
        }
    }
    records.push(refit.records);
    let made = path_fit(request, task, method.name(), records, oof, coef);
    Ok(PathFit { path_seconds: seconds, at_centre, ..made })
}
