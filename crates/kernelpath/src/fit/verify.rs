//! The certificate of a returned model, recomputed from the rows in double precision. Of the fit, only the coefficients
//! are trusted.

use crate::certify::certificate::{Certificate, Claim, certify, losses};
use crate::certify::record::Settings;
use crate::data::rows::Rows;
use crate::error::{Error, Result};
use crate::fit::check::check_targets;
use crate::fit::precision::Precision;
use crate::fit::request::{KernelChoice, Request, Task};
use crate::fit::run::fit;
use crate::fit::spread::Scale;
use crate::kernel::accuracy::KernelError;
use crate::kernel::definite::{Sign, examination_bytes, examine, is_in_doubt};
use crate::kernel::gram::Gram;
use crate::kernel::shape::{KernelFn, Shape};
use crate::kernel::tile::{Side, TILE, Tile, shift_for};
use crate::kernel::tilt::{Tilt, centre_of};
use crate::loss::objective::Objective;
use crate::loss::scalar::Loss;
use crate::loss::softmax::Softmax;
use crate::numeric::memory::{self, FEWER_ROWS, pool};
use crate::numeric::parallel;
use crate::numeric::simd::dot;
use crate::nystrom::approximation::Nystrom;
use crate::observe::Control;

/// A model as a fit returns it.
#[derive(Debug, Clone, Copy)]
pub struct Returned<'a> {
    /// The C that the model was fitted at, times the factor of C of its task.
    pub c: f64,
    /// One coefficient for each row that the model learned from, or with low rank for each landmark. For the
    /// multinomial loss, class after class.
    pub coef: &'a [f64],
    /// The intercept; for the multinomial loss, one per class.
    pub b: &'a [f64],
}

/// P, D, their gap and its noise for the model of a task on all of `x`, computed from scratch.
///
/// Kernel values are computed from the rows in double precision and not kept, so that memory stays bounded (except for
/// kernels that may be indefinite). It takes the time of a few kernel matrices. For a model on landmarks, f and ½‖f‖² are
/// those of the landmarks' kernel functions, and the dual point is found anew, by a fit at this one C on features in
/// double precision.
///
/// ```
/// use kernelpath::{Control, KernelFn, Loss, Request, Returned, Rows, Settings, Shape, Task, fit, verify};
///
/// let x: Vec<f64> = (0..400).map(|i| (0.37 * i as f64).sin()).collect();
/// let y: Vec<f64> = x.chunks(2).map(|r| if r[0] * r[1] > 0.1 { 1.0 } else { -1.0 }).collect();
/// let (rows, kernel, task) = (Rows::from_slice(&x, 2)?, KernelFn::new(Shape::Rbf, 1.0)?, Task::new(Loss::Hinge, &y));
/// let control = Control::default();
/// let found = &fit(&Request::new(rows, vec![task.clone()], kernel, &[10.0]), &control)?[0];
/// let model = Returned { c: 10.0, coef: &found.coef[0], b: found.intercepts(0) };
/// let proof = verify(&rows, kernel.into(), &task, model, Settings::default(), 0, &control)?;
/// assert!(proof.gap() <= 1e-6 && proof.relative_noise() < 1e-9);
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub fn verify(
    x: &Rows,
    kernel: KernelChoice,
    task: &Task,
    model: Returned,
    settings: Settings,
    threads: usize,
    control: &Control,
) -> Result<Certificate> {
    check_targets(task, x.nrows())?;
    // Targets are counted from their centre, and so is b: the differences f − y stay as they are.
    let scale = Scale::of(task).of_centre();
    let task = &Task { y: task.y.iter().map(|y| scale.down(*y)).collect(), ..task.clone() };
    let b: Vec<f64> = model.b.iter().map(|b| scale.down(*b)).collect();
    let model = Returned { b: &b, ..model };
    let rows: Vec<usize> = task.rows.clone().unwrap_or_else(|| (0..x.nrows()).collect());
    let outputs = task.outputs();
    check_length("the intercepts", model.b, outputs)?;
    let length = if let KernelChoice::LowRank(nystrom) = kernel { nystrom.map().nrows() } else { rows.len() };
    check_length("the coefficients", model.coef, length * outputs)?;
    let weight: Vec<f64> = task.weights(&|_| 1.0).iter().map(|w| model.c * w).collect();
    pool(threads)?.install(|| {
        x.check("X")?;
        let centre = if let KernelChoice::Exact(kernel) = kernel { centre_of(&kernel, x) } else { Vec::new() };
        let tilt = Tilt::new(&centre, x, &rows);
        // The intercepts for rows less the centre.
        let mut moved = vec![0.0; outputs];
        tilt.intercepts(model.coef, &mut moved);
        let b: Vec<f64> = model.b.iter().zip(moved).map(|(b, moved)| b - moved).collect();
        let model = Returned { b: &b, ..model };
        let proof = Proof { x, rows: &rows, centre: &centre, tilt: &tilt, weight: &weight, task, model, control };
        match kernel {
            KernelChoice::LowRank(nystrom) => proof.on_landmarks(nystrom, settings, threads),
            KernelChoice::Exact(kernel) => {
                let sign = proof.sign(&kernel, settings.assume_definite)?;
                let certificate = match task.objective {
                    Objective::Scalar(loss) => proof.on_rows(&kernel, loss, sign.shift())?,
                    Objective::Multinomial => proof.classes_on_rows(&kernel, sign.shift())?,
                };
                Ok(if sign.negative().is_some() { certificate.withdrawn() } else { certificate })
            }
        }
    })
}

/// A model, and what it learned from.
struct Proof<'a> {
    x: &'a Rows<'a>,
    rows: &'a [usize],
    /// What is subtracted from rows of the linear kernel, and what that does to the kernel matrix.
    centre: &'a [f64],
    tilt: &'a Tilt,
    /// C·w of each row.
    weight: &'a [f64],
    task: &'a Task,
    model: Returned<'a>,
    control: &'a Control,
}

impl Proof<'_> {
    fn on_rows(&self, kernel: &KernelFn, loss: Loss, shift: f64) -> Result<Certificate> {
        let Self { weight, model, .. } = *self;
        let times = |columns: &[&[f64]]| self.times(kernel, columns);
        let f = times(&[model.coef])?.remove(0);
        let claim = Claim { weight, beta: model.coef, b: model.b[0], k_beta: &f };
        let error = self.error(kernel).with_shift(shift);
        Ok(certify(loss, &self.task.y, &[claim], &error, 0.0, times)?[0])
    }

    fn classes_on_rows(&self, kernel: &KernelFn, shift: f64) -> Result<Certificate> {
        let Self { weight, model: Returned { coef, b, .. }, .. } = *self;
        let softmax = self.softmax();
        let times = |values: &[f64]| -> Result<Vec<f64>> {
            Ok(self.times(kernel, &values.chunks_exact(weight.len()).collect::<Vec<_>>())?.concat())
        };
        let (f, error) = (times(coef)?, self.error(kernel));
        let largest = error.roots.iter().fold(0.0_f64, |a, root| a.max(root * root));
        let size = (largest, shift);
        let Certificate { primal, dual, noise } = softmax.certify(weight, coef, b, &f, size, 0.0, times)?;
        let errors: Vec<f64> = coef.chunks_exact(weight.len()).map(|beta| error.of_product(beta)).collect();
        let of_f = softmax.noise(weight, coef, b, &f, (&error.roots, &errors, shift));
        Ok(Certificate::new(primal, dual, noise + of_f))
    }

    /// P of a model on landmarks, and the D of a fit in double precision.
    fn on_landmarks(&self, nystrom: &Nystrom, settings: Settings, threads: usize) -> Result<Certificate> {
        let Self { x, rows, weight, task, model, control, .. } = *self;
        let (kernel, points, columns) = (nystrom.kernel(), nystrom.landmarks(), nystrom.columns());
        let coefs: Vec<&[f64]> = model.coef.chunks_exact(nystrom.map().nrows()).collect();
        let f = expansions((x, rows), (&points, columns), &kernel, None, &coefs, control)?.concat();
        let from = if kernel.shape == Shape::Precomputed { x } else { &points };
        let at_landmarks = expansions((from, columns), (&points, columns), &kernel, None, &coefs, control)?;
        let square: f64 = coefs.iter().zip(&at_landmarks).map(|(coef, f)| dot(coef, f)).sum();
        let losses = match task.objective {
            Objective::Scalar(loss) => losses(loss, &task.y, weight, model.b[0], &f),
            Objective::Multinomial => self.softmax().losses(weight, &f, model.b),
        };
        let cs = [model.c / task.c_factor];
        let mut request = Request::new(*x, vec![task.clone()], nystrom, &cs);
        (request.precision, request.settings, request.threads) = (Precision::Double, settings, threads);
        let found = fit(&request, control)?;
        Ok(Certificate { primal: losses + 0.5 * square, ..found[0].records[0][0].certificate })
    }

    /// Whether the kernel matrix is positive semi-definite, without which no gap proves anything.
    fn sign(&self, kernel: &KernelFn, assume_definite: bool) -> Result<Sign> {
        if !is_in_doubt(kernel, assume_definite) {
            return Ok(Sign::Definite { shift: 0.0 });
        }
        let n = self.rows.len();
        memory::check(Gram::<f64>::bytes(n) + examination_bytes(n), "the kernel matrix and its factor", FEWER_ROWS)?;
        let gram = Gram::<f64>::compute(self.x, self.rows, kernel, None, self.control)?;
        examine(&gram, kernel, self.x, self.control)
    }

    /// K times each column.
    fn times(&self, kernel: &KernelFn, columns: &[&[f64]]) -> Result<Vec<Vec<f64>>> {
        expansions(
            (self.x, self.rows),
            (self.x, self.rows),
            kernel,
            Some((self.centre, self.tilt)),
            columns,
            self.control,
        )
    }

    fn error(&self, kernel: &KernelFn) -> KernelError {
        let diagonal = |&i: &usize| match self.centre {
            [] => kernel.diagonal(self.x, i),
            centre => centre.iter().enumerate().map(|(j, m)| (self.x.get(i, j) - m).powi(2)).sum(),
        };
        let error = KernelError::new(0.0, &self.rows.iter().map(diagonal).collect::<Vec<_>>());
        match self.tilt.roots() {
            Some(roots) => KernelError { roots: roots.to_vec(), ..error },
            None => error,
        }
    }

    fn softmax(&self) -> Softmax {
        Softmax { y: self.task.y.iter().map(|y| *y as usize).collect(), classes: self.task.outputs() }
    }
}

fn check_length(what: &'static str, values: &[f64], expected: usize) -> Result<()> {
    if values.len() == expected {
        return Ok(());
    }
    Err(Error::Length { what, got: values.len(), expected, why: "one for each that the fit returned" })
}

/// Σⱼ cⱼ k(x, zⱼ) for each column of coefficients c, at rows `a` of `x`, over rows `b` of `z` (over columns `b` of `x`,
/// if the kernel is precomputed). With a centre, the kernel is that of rows less the centre.
fn expansions(
    (x, a): (&Rows, &[usize]),
    (z, b): (&Rows, &[usize]),
    kernel: &KernelFn,
    centred: Option<(&[f64], &Tilt)>,
    columns: &[&[f64]],
    control: &Control,
) -> Result<Vec<Vec<f64>>> {
    let all: Vec<usize> = (0..z.nrows()).collect();
    let shift = match centred {
        Some((centre, _)) if !centre.is_empty() && x.as_csr().is_none() => centre.to_vec(),
        _ => shift_for(kernel, x, z, &all),
    };
    let side = if kernel.shape == Shape::Precomputed { Side::Given } else { Side::Rows("X", z) };
    let blocks = parallel::try_map_with(a.chunks(TILE).enumerate(), |tile: &mut Tile, (at, rows)| {
        let mut sums = vec![vec![0.0; rows.len()]; columns.len()];
        for (k, others) in b.chunks(TILE).enumerate() {
            control.check()?;
            tile.evaluate(x, rows, z, others, &shift, kernel);
            if let Some((_, tilt)) = centred {
                for (i, values) in tile.values.chunks_exact_mut(others.len()).enumerate() {
                    let entry = |j: usize| tilt.of_entry(at * TILE + i, k * TILE + j);
                    values.iter_mut().enumerate().for_each(|(j, value)| *value -= entry(j));
                }
            }
            tile.check::<f64>((Side::x(kernel, x), rows), (side, others))?;
            for (sums, column) in sums.iter_mut().zip(columns) {
                let column = &column[k * TILE..k * TILE + others.len()];
                for (sum, values) in sums.iter_mut().zip(tile.values.chunks_exact(others.len())) {
                    *sum += dot(values, column);
                }
            }
        }
        Ok(sums)
    })?;
    Ok((0..columns.len()).map(|c| blocks.iter().flat_map(|block| block[c].iter().copied()).collect()).collect())
}
