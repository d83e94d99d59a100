//! What a fit takes of memory, before anything is allocated: the sum of what its parts declare.

use crate::device::Device;
use crate::error::Result;
use crate::fit::folds::Folds;
use crate::fit::left_out::most_outside;
use crate::fit::request::{Request, Task};
use crate::kernel::definite::{examination_bytes, is_in_doubt};
use crate::kernel::gram::{Gram, check_plan};
use crate::kernel::pairs::Pairs;
use crate::loss::scalar::Loss;
use crate::numeric::cholesky::Working;
use crate::numeric::eigen::eigen_bytes;
use crate::numeric::entry::Entry;
use crate::numeric::memory::available_memory;
use crate::nystrom::approximation::Nystrom;
use crate::nystrom::features::{Features, Storage};
use crate::observe::Control;
use crate::path::leave_one_out::LEFT_OUT_AT_ONCE;
use crate::solver::choice::{Method, Solver};
use crate::solver::engine::Size;
use crate::solver::low_rank::directions::Preconditioner;
use crate::solver::newton::multiclass::softmax_bytes;
use crate::solver::spectral::neighbours;

/// Numbers per C for a row left out: a record twice, and its value in vectors of their own.
const LEFT_OUT: u64 = 32;

/// Numbers per row beside the features, for each problem in work: the weights; at the C at hand and at the two before
/// it, the values f, the slopes, the centre and the curvature; and the changes of the slopes.
const STATE: usize = 21;

/// Further numbers per row in the spectral engine, for each C at hand: the weights twice, and f and the slopes, on the
/// device and off it.
const STATE_ON_DEVICE: usize = 8;

/// Plans a fit on the kernel matrix of `n` units. Returns the pairs to use, and the bytes of the whole fit.
pub(crate) fn on_matrix<'a, T: Working>(
    request: &Request<'a>,
    device: &dyn Device,
    n: usize,
    control: &Control,
) -> Result<(Option<&'a Pairs>, u64)> {
    device.survey()?;
    check_device::<T>(request, device, n, control)?;
    let kernel = request.kernel.function();
    let examination = if is_in_doubt(&kernel, request.settings.assume_definite) { examination_bytes(n) } else { 0 };
    // The matrix is examined before a solver takes anything.
    let extra = beside_matrix::<T>(request, device, n)?.max(examination);
    let outputs = request.tasks.iter().map(Task::outputs).max().unwrap_or(1);
    let threads = if outputs > 1 { 1 } else { rayon::current_num_threads() };
    let low_rank = || planned_at_low_rank::<T>(request, device, n);
    let plan = |pairs: u64| check_plan::<T>(n, outputs * request.cs.len(), threads, extra + pairs, low_rank);
    Pairs::planned(request.pairs, n, plan)
}

/// Fails, before anything is allocated, if a device has no room for a fit on the kernel matrix of `n` units: the matrix as
/// it is stored and, for the engines that decompose it, what that takes, and the columns of a block. Small tasks, each on
/// its own part of the matrix, are solved side by side.
fn check_device<T: Entry>(request: &Request, device: &dyn Device, n: usize, control: &Control) -> Result<()> {
    let (mut whole, mut part, mut small) = (0, 0, 0);
    for task in &request.tasks {
        let Some(loss) = task.loss() else { continue };
        let rows = task.rows.as_ref().map_or(n, |rows| rows.len().min(n));
        let method = request.solver.method(loss, rows, device.decomposed_rows())?;
        small += u64::from(task.rows.is_some());
        if matches!(method, Method::Spectral | Method::ClosedForm) {
            let columns = columns_at_once(request, device) as u64;
            let bytes = device.decomposition_bytes(rows) + 8 * COLUMN_ON_DEVICE * rows as u64 * columns;
            if task.rows.is_some() { part = bytes.max(part) } else { whole = bytes.max(whole) }
        }
    }
    let side_by_side = small.min(rayon::current_num_threads() as u64);
    device.check_room(Gram::<T>::bytes(n) + whole.max(side_by_side * part), control)
}

/// Problems in work at once: the folds and all rows; leave-one-out solves a block of them.
fn problems_at_once(request: &Request) -> usize {
    let folds = request.folds.splits().len();
    1 + if request.folds == Folds::LeaveOneOut { LEFT_OUT_AT_ONCE } else { folds }
}

/// Columns of a block of the spectral engine.
fn columns_at_once(request: &Request, device: &dyn Device) -> usize {
    let problems = problems_at_once(request);
    problems * neighbours(problems, device.columns())
}

/// Numbers per row of a column in work on a device: weights, coordinates, slopes, f, and what they are made from.
const COLUMN_ON_DEVICE: u64 = 10;

/// Bytes that a fit takes beside the matrix and one task on all rows: what the solvers ask for, the parts of the matrix
/// that small tasks work on side by side, and what is kept of all tasks.
fn beside_matrix<T: Entry>(request: &Request, device: &dyn Device, n_units: usize) -> Result<u64> {
    let (n, cs, threads) = (request.x.nrows(), request.cs.len(), rayon::current_num_threads() as u64);
    let splits = request.folds.splits();
    let tested = if request.folds == Folds::LeaveOneOut { n } else { splits.iter().map(|fold| fold.test.len()).sum() };
    let largest_test = splits.iter().map(|fold| fold.test.len()).max().unwrap_or(0);
    let (mut whole, mut part, mut numbers) = (0, 0, 0_u64);
    for task in &request.tasks {
        let rows = task.rows.as_ref().map_or(n_units, Vec::len);
        let Some(loss) = task.loss() else {
            whole = whole.max(softmax_bytes(rows, task.outputs(), splits.len() + 1));
            continue;
        };
        let problems = problems_at_once(request);
        let (held_out, columns) = (largest_test.min(rows), device.columns());
        let decomposition = device.host_decomposition_bytes(rows);
        let size = Size { rows, entry: size_of::<T>(), problems, held_out, columns, decomposition };
        let mut solver = request.solver.method(loss, rows, device.decomposed_rows())?.extra_bytes(&size);
        if request.solver == Solver::Auto && loss == Loss::Squared {
            // If rows repeat, Newton's method takes the place of the closed form.
            solver = solver.max(Method::Newton.extra_bytes(&size));
        }
        // Coefficients of the refit and held-out values.
        numbers += (rows + tested) as u64 * cs as u64;
        if request.folds == Folds::LeaveOneOut {
            numbers += (n * cs) as u64 * LEFT_OUT;
        }
        if task.rows.is_none() {
            whole = whole.max(solver);
        } else {
            // The coefficients of a task's models are kept until its held-out values are computed, and so are a fold's
            // products with the matrix.
            let without = if request.folds == Folds::LeaveOneOut { most_outside(task, n) } else { 0 };
            let kept = 8 * (rows * (splits.len() + without + 2) + largest_test) as u64 * cs as u64;
            part = part.max(solver + Gram::<T>::work_bytes(rows, cs, 1) + kept);
        }
    }
    Ok(whole.max(threads * part) + 8 * numbers)
}

/// Plans a fit on the features of `n` units. Returns where the features go, and the bytes of the whole fit.
pub(crate) fn on_features<T: Working>(
    request: &Request,
    device: &dyn Device,
    n: usize,
    nystrom: &Nystrom,
    control: &Control,
) -> Result<(Storage, u64)> {
    device.survey()?;
    let (rank, n64) = (nystrom.rank() as u64, n as u64);
    let columns = if request.solver == Solver::Spectral {
        COLUMN_ON_DEVICE * columns_at_once(request, device) as u64
    } else {
        2 * problems_at_once(request) as u64
    };
    let bytes = Features::<T>::bytes(n, nystrom.rank()) + 8 * (2 * (rank + 1).pow(2) + n64 * columns);
    device.check_room(bytes, control)?;
    Storage::planned::<T>(n, nystrom, beside_features::<T>(request, device, n, nystrom.rank()))
}

/// Bytes that a fit at low rank on `n` units would take; `None` for leave-one-out, which has no fit at low rank.
fn planned_at_low_rank<T: Working>(request: &Request, device: &dyn Device, n: usize) -> Option<u64> {
    if request.folds == Folds::LeaveOneOut {
        return None;
    }
    Some(request.instead.planned_bytes::<T>(n, |rank| beside_features::<T>(request, device, n, rank)))
}

/// Bytes that a fit on `n` units takes beside their features: its problems in work, the held-out values of every
/// machine, copies of some rows, factors, and the matrices over all pairs of features.
fn beside_features<T: Working>(request: &Request, device: &dyn Device, n: usize, rank: usize) -> u64 {
    let folds = request.folds.splits().len();
    let held_out = |outputs: usize| if folds > 0 { outputs * request.cs.len() * request.x.nrows() } else { 0 };
    let (mut of_classes, mut scalar) = (0, false);
    for task in &request.tasks {
        if task.loss().is_some() {
            scalar = true;
        } else {
            of_classes += softmax_bytes(n, task.outputs(), folds + 1) + 8 * held_out(task.outputs()) as u64;
        }
    }
    if !scalar {
        return of_classes;
    }
    let most = request.tasks.iter().map(|task| task.y.len()).max().unwrap_or(0);
    let is_spectral = request.solver == Solver::Spectral;
    let state = if is_spectral { STATE + STATE_ON_DEVICE * neighbours(folds + 1, device.columns()) } else { STATE };
    let beside = 8 * (most * (folds + 1) * state + held_out(request.tasks.len())) as u64 + (56 << 20);
    let factors = Preconditioner::<T>::bytes(n, rank, folds + 1);
    // One matrix per thread with its factor, and for the spectral engine those of an eigendecomposition.
    let square = 8 * (rank as u64 + 1).pow(2);
    let decomposed = if is_spectral { 3 * square + eigen_bytes(rank) } else { 0 };
    let curvatures = 2 * square * rayon::current_num_threads() as u64 + decomposed;
    // Copies mostly take less than they are allowed to.
    of_classes + beside + copies::<T>(n, rank) * 2 / 3 + factors + curvatures
}

/// Bytes that copies of the features of some rows may take: those of half of the rows, if there is enough memory.
fn copies<T: Working>(n: usize, rank: usize) -> u64 {
    let available = available_memory().unwrap_or(u64::MAX);
    (Features::<T>::bytes(n, rank) / 2).min(available / 4)
}

/// Most rows whose features may be copied at once.
pub(crate) fn copied_rows<T: Working>(n: usize, rank: usize) -> usize {
    (copies::<T>(n, rank) / Features::<T>::bytes(1, rank)) as usize
}
