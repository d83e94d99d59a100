//! The certificate of a returned model, recomputed from the rows in double precision: nothing of the fit is trusted but
//! the coefficients.

use rayon::prelude::*;

use crate::certificate::{Certificate, Claim, KernelError, certify, losses};
use crate::cv::{Task, pool};
use crate::data::Rows;
use crate::definite::{epsilon, negative_eigenvalue};
use crate::design::Accuracy;
use crate::device::Cpu;
use crate::error::{Error, Result};
use crate::features::{Features, Storage};
use crate::gram::{Gram, TILE, Tile, shift_for};
use crate::kernel::{KernelFn, Shape};
use crate::ledger::{Keeps, Plan};
use crate::multinomial::{Multinomial, fit_multinomial_low_rank};
use crate::nystrom::Nystrom;
use crate::observe::Control;
use crate::problem::Settings;
use crate::simd::dot;
use crate::softmax::Softmax;
use crate::solver::Primal;

/// A model as a fit returns it.
#[derive(Debug, Clone, Copy)]
pub struct Returned<'a> {
    /// The C it was fitted at.
    pub c: f64,
    /// A coefficient for each row it learned from, or with low rank for each landmark; of the multinomial loss, class
    /// after class.
    pub coef: &'a [f64],
    /// The intercept; of the multinomial loss one a class.
    pub b: &'a [f64],
}

/// P, D, their gap and its noise for the model of a task on all of `x`, from scratch: kernel values are computed from the
/// rows in double precision and not kept, so that memory stays bounded (but for kernels that may be indefinite); time is
/// that of a few kernel matrices.
///
/// ```
/// use kernelpath::{Bandwidth, Control, Folds, Kernel, Loss, Returned, Rows, Svc, Task, verify};
///
/// let x: Vec<f64> = (0..400).map(|i| (0.37 * i as f64).sin()).collect();
/// let y: Vec<f64> = x.chunks(2).map(|r| if r[0] * r[1] > 0.1 { 1.0 } else { -1.0 }).collect();
/// let rows = Rows::from_slice(&x, 2)?;
/// let svc = Svc::builder().kernel(Kernel::rbf(Bandwidth::Sigest)).cs([10.0]).folds(Folds::None).fit(rows, &y)?;
/// let fit = svc.path();
/// let model = Returned { c: 10.0, coef: &fit.coef[0], b: &[fit.records[0][0].b] };
/// let kernel = svc.model().kernel();
/// let proof = verify(&rows, &kernel, &Task::new(Loss::Hinge, &y), model, 0, &Control::default())?;
/// assert!(proof.gap() <= 1e-6 && proof.relative_noise() < 1e-9);
/// assert_eq!(svc.verify(rows, &y)?.gap(), proof.gap());
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub fn verify(
    x: &Rows,
    kernel: &KernelFn,
    task: &Task,
    model: Returned,
    threads: usize,
    control: &Control,
) -> Result<Certificate> {
    let rows = rows_of(x, task)?;
    check_length("the coefficients", model.coef, rows.len())?;
    check_length("the intercepts", model.b, 1)?;
    pool(threads)?.install(|| {
        x.check("X")?;
        let times = |columns: &[&[f64]]| expansions(x, &rows, x, &rows, kernel, columns, control);
        let f = times(&[model.coef])?.remove(0);
        let diagonal: Vec<f64> = rows.iter().map(|&i| kernel.diagonal(x, i)).collect();
        let weight: Vec<f64> = (0..rows.len()).map(|k| model.c * task.weight(k)).collect();
        let claim = Claim { weight: &weight, beta: model.coef, b: model.b[0], k_beta: &f };
        let nothing = |columns: &[&[f64]]| vec![vec![f64::NAN; rows.len()]; columns.len()];
        let k_times = |columns: &[&[f64]]| times(columns).unwrap_or_else(|_| nothing(columns));
        let error = KernelError::new(0.0, &diagonal);
        let certificate = certify(task.loss, &task.y, &[claim], &error, 0.0, k_times)[0];
        control.check()?;
        if is_indefinite(x, &rows, kernel, control)? { Ok(certificate.withdrawn()) } else { Ok(certificate) }
    })
}

/// As [`verify`], for a model on landmarks: f and ½‖f‖² are those of the landmarks' kernel functions, and the dual point is
/// found anew, by a fit at this one C on features in double precision.
#[allow(clippy::too_many_arguments)]
pub fn verify_low_rank(
    x: &Rows,
    nystrom: &Nystrom,
    task: &Task,
    model: Returned,
    settings: Settings,
    threads: usize,
    control: &Control,
) -> Result<Certificate> {
    let rows = rows_of(x, task)?;
    check_length("the coefficients", model.coef, nystrom.map().nrows())?;
    check_length("the intercepts", model.b, 1)?;
    pool(threads)?.install(|| {
        x.check("X")?;
        let (f, square) = on_landmarks(x, &rows, nystrom, model.coef, control)?;
        let weight: Vec<f64> = (0..rows.len()).map(|k| task.weight(k)).collect();
        let mut features = Features::<f64>::of_rows(&Cpu, nystrom, x, &rows, Storage::Memory, control)?;
        features.centre();
        let primal = Primal {
            device: &Cpu,
            design: features.design(),
            errors: features.errors(),
            rows: None,
            copied: rows.len(),
            loss: task.loss,
            y: &task.y,
            settings,
            accuracy: Accuracy::Double,
            control,
        };
        let scaled: Vec<f64> = weight.iter().map(|w| model.c * w).collect();
        let solved = primal.sweep(&[Plan { weight, keeps: Keeps::Coefficients }], &[model.c])?;
        let primal = losses(task.loss, &task.y, &scaled, model.b[0], &f) + 0.5 * square;
        let certificate = Certificate { primal, ..solved[0].records[0].certificate };
        Ok(if nystrom.smallest_eigenvalue().is_some() { certificate.withdrawn() } else { certificate })
    })
}

/// As [`verify`], for the multinomial loss; `classes` holds the class of each row, counted from 0.
pub fn verify_multinomial(
    x: &Rows,
    kernel: &KernelFn,
    classes: &[usize],
    weight: Option<&[f64]>,
    model: Returned,
    threads: usize,
    control: &Control,
) -> Result<Certificate> {
    let n = x.nrows();
    let rows: Vec<usize> = (0..n).collect();
    let softmax = softmax_of(x, classes, model)?;
    check_length("the coefficients", model.coef, n * softmax.classes)?;
    pool(threads)?.install(|| {
        x.check("X")?;
        let times = |values: &[f64]| -> Result<Vec<f64>> {
            let columns: Vec<&[f64]> = values.chunks_exact(n).collect();
            Ok(expansions(x, &rows, x, &rows, kernel, &columns, control)?.concat())
        };
        let f = times(model.coef)?;
        let error = KernelError::new(0.0, &rows.iter().map(|&i| kernel.diagonal(x, i)).collect::<Vec<_>>());
        let weight: Vec<f64> = rows.iter().map(|&i| model.c * weight.map_or(1.0, |weight| weight[i])).collect();
        let largest = error.roots.iter().fold(0.0_f64, |a, root| a.max(root * root));
        let k_times = |theta: &[f64]| times(theta).unwrap_or_else(|_| vec![f64::NAN; theta.len()]);
        let Certificate { primal, dual, .. } = softmax.certify(&weight, model.coef, model.b, &f, largest, 0.0, k_times);
        let errors: Vec<f64> = model.coef.chunks_exact(n).map(|beta| error.of_product(beta)).collect();
        let noise = softmax.noise(&weight, model.coef, model.b, &f, &error.roots, &errors);
        let certificate = Certificate::new(primal, dual, noise);
        control.check()?;
        if is_indefinite(x, &rows, kernel, control)? { Ok(certificate.withdrawn()) } else { Ok(certificate) }
    })
}

/// As [`verify_low_rank`], for the multinomial loss. `request` must be the fit's on these rows, at this one C, in double
/// precision and without folds.
pub fn verify_multinomial_low_rank(
    request: &Multinomial,
    nystrom: &Nystrom,
    model: Returned,
    control: &Control,
) -> Result<Certificate> {
    let softmax = softmax_of(&request.x, request.y, model)?;
    let (n, landmarks) = (request.x.nrows(), nystrom.map().nrows());
    check_length("the coefficients", model.coef, landmarks * softmax.classes)?;
    let rows: Vec<usize> = (0..n).collect();
    let (mut f, mut square) = (Vec::with_capacity(n * softmax.classes), 0.0);
    pool(request.threads)?.install(|| {
        request.x.check("X")?;
        for coef in model.coef.chunks_exact(landmarks) {
            let (of_class, square_of_class) = on_landmarks(&request.x, &rows, nystrom, coef, control)?;
            f.extend(of_class);
            square += square_of_class;
        }
        Ok::<(), Error>(())
    })?;
    let weight: Vec<f64> = rows.iter().map(|&i| model.c * request.weight.map_or(1.0, |weight| weight[i])).collect();
    let found = fit_multinomial_low_rank(request, nystrom, control)?;
    let certificate = found.records[0][0].certificate;
    Ok(Certificate { primal: softmax.losses(&weight, &f, model.b) + 0.5 * square, ..certificate })
}

/// Whether no gap proves anything; kernels that are semi-definite by their formula need no look.
fn is_indefinite(x: &Rows, rows: &[usize], kernel: &KernelFn, control: &Control) -> Result<bool> {
    if kernel.shape.is_definite() {
        return Ok(false);
    }
    let gram = Gram::<f64>::compute(x, rows, kernel, None, control)?;
    Ok(negative_eigenvalue(&gram, epsilon::<f64>(kernel, x), control)?.is_some())
}

fn softmax_of(x: &Rows, classes: &[usize], model: Returned) -> Result<Softmax> {
    if classes.len() != x.nrows() {
        let why = "one class a row of X";
        return Err(Error::Length { what: "y", got: classes.len(), expected: x.nrows(), why });
    }
    check_length("the intercepts", model.b, classes.iter().max().map_or(0, |y| y + 1))?;
    Ok(Softmax { y: classes.to_vec(), classes: model.b.len() })
}

fn rows_of(x: &Rows, task: &Task) -> Result<Vec<usize>> {
    let rows: Vec<usize> = task.rows.clone().unwrap_or_else(|| (0..x.nrows()).collect());
    if let Some(&row) = rows.iter().find(|row| **row >= x.nrows()) {
        return Err(Error::Rows { row, problem: "is out of range" });
    }
    if task.y.len() != rows.len() {
        return Err(Error::Length { what: "y", got: task.y.len(), expected: rows.len(), why: "one target a row of X" });
    }
    Ok(rows)
}

fn check_length(what: &'static str, values: &[f64], expected: usize) -> Result<()> {
    if values.len() == expected {
        return Ok(());
    }
    Err(Error::Length { what, got: values.len(), expected, why: "as many as the fit returned" })
}

/// f at some rows, without the intercept, and its squared norm, of an expansion in the kernel functions of landmarks.
fn on_landmarks(
    x: &Rows,
    rows: &[usize],
    nystrom: &Nystrom,
    coef: &[f64],
    control: &Control,
) -> Result<(Vec<f64>, f64)> {
    let (kernel, points) = (nystrom.kernel(), nystrom.landmarks());
    let columns = nystrom.columns();
    let f = expansions(x, rows, &points, columns, &kernel, &[coef], control)?.remove(0);
    let from = if kernel.shape == Shape::Precomputed { x } else { &points };
    let at_landmarks = expansions(from, columns, &points, columns, &kernel, &[coef], control)?.remove(0);
    Ok((f, dot(coef, &at_landmarks)))
}

/// Σⱼ aⱼ k(x, zⱼ) for rows `a` of `x` and rows `b` of `z` (of a precomputed kernel, columns of `x`), for each column of
/// coefficients.
fn expansions(
    x: &Rows,
    a: &[usize],
    z: &Rows,
    b: &[usize],
    kernel: &KernelFn,
    columns: &[&[f64]],
    control: &Control,
) -> Result<Vec<Vec<f64>>> {
    let all: Vec<usize> = (0..z.nrows()).collect();
    let shift = shift_for(kernel, x, z, &all);
    let blocks = a
        .par_chunks(TILE)
        .map_init(Tile::default, |tile, rows| {
            let mut sums = vec![vec![0.0; rows.len()]; columns.len()];
            for (k, others) in b.chunks(TILE).enumerate() {
                control.check()?;
                tile.evaluate(x, rows, z, others, &shift, kernel);
                for (sums, column) in sums.iter_mut().zip(columns) {
                    let column = &column[k * TILE..k * TILE + others.len()];
                    for (sum, values) in sums.iter_mut().zip(tile.values.chunks_exact(others.len())) {
                        *sum += dot(values, column);
                    }
                }
            }
            Ok(sums)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok((0..columns.len()).map(|c| blocks.iter().flat_map(|block| block[c].iter().copied()).collect()).collect())
}
