//! Whether K is positive semi-definite: without that, no duality gap proves anything.
//!
//! P(β, b) ≥ D(θ) rests on ½ (β − θ)ᵀK(β − θ) ≥ 0. With an eigenvalue below
//! 0, P has no lower bound at all, or one far below the point where P = D. That point is then a stationary point and no
//! more.
//!
//! Many kernels are semi-definite by their formula ([`Shape::is_definite`]). For the others K counts as indefinite unless
//! K + τI has a Cholesky factor, with
//!
//! ```text
//! τ = 16 √n ε max K_ii
//! ```
//!
//! where ε is that of the coarser of the precisions in which K was given and computed. Rounding the entries of a
//! semi-definite matrix, and those of its factor, moves eigenvalues by about √n ε max K_ii. If there is a factor, the
//! certificates are those of K + τI, and what τ changes in them is part of their noise
//! (`KernelError::of_shift`). A matrix that was given in single precision is
//! exact for a factor in double precision: if it has one with the τ of double precision, that is the one that counts.
//!
//! A factor takes n³/3 multiplications (`numeric/positive.rs`). A negative eigenvalue is often found sooner by a few
//! products with K: Lanczos, *An iteration method for the solution of the eigenvalue problem* (1950), with full
//! reorthogonalisation. After k products, from v₁ at random,
//!
//! ```text
//! K V_k = V_k T_k + β_k v_{k+1} eₖᵀ        V_kᵀV_k = I,  T_k tridiagonal
//! ```
//!
//! The eigenvalues of T_k lie between those of K, and the ones at the ends are the first to agree with K's. With T_k s
//! = θs, K has an eigenvalue within β_k |s_k| of θ. A θ below −τ, by more than the products round, proves that K is
//! indefinite; the lack of one proves nothing, and the factor decides. Where it breaks down, it leaves a direction z with
//! zᵀ(K + τI)z ≤ 0, and the iteration starts from there to find the smallest eigenvalue.

use faer::Mat;

use crate::data::rows::Rows;
use crate::error::Result;
use crate::kernel::gram::{Gram, given_epsilon};
use crate::kernel::shape::{KernelFn, Shape};
use crate::numeric::cholesky::Working;
use crate::numeric::eigen::{eigen, eigenvalues};
use crate::numeric::memory;
use crate::numeric::positive::{direction_not_positive, factor_bytes};
use crate::numeric::simd::{dot, vectorise};
use crate::observe::Control;

/// Most rows for which the smallest eigenvalue is found among all of them. With more, their cost, of order n³, is many
/// times that of a factor.
const ALL_EIGENVALUES: usize = 256;

/// How far below 0 an eigenvalue counts as rounding, in units of √n ε max K_ii. Factors of smooth kernels break down at 1,
/// whose smallest eigenvalues are 0 but for rounding. With more, indefinite kernels pass, and noise hides more gaps.
const ROUNDINGS: f64 = 16.0;

/// What the products of the iteration round, in units of √n ε λmax, at most.
const PRODUCT_ROUNDINGS: f64 = 16.0;

/// Products with K that may find no negative eigenvalue before the factor decides. Most indefinite kernels show one in the
/// first dozen products.
const FEW_STEPS: usize = 48;

/// Most products with K, once there is a negative eigenvalue, to find the smallest one.
const MOST_LANCZOS: usize = 128;

/// Steps between two looks at the eigenvalues of T_k, whose cost is of order k³.
const LOOK: usize = 8;

/// The smallest eigenvalue counts as found when its residual is this share of it. Its error is of the order of the
/// square of that.
const RESIDUAL: f64 = 1e-3;

/// What errors call the copy of K whose eigenvalues are computed.
const COPY: &str = "a copy of the kernel matrix";

/// What had not happened when the time was over.
const KNOWN: &str = "the sign of the kernel was known";

/// The two ends of a spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ends {
    smallest: f64,
    largest: f64,
}

/// What is known of the eigenvalues of K.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sign {
    /// K + `shift`·I is positive semi-definite, and `shift` is no more than rounding.
    Definite { shift: f64 },
    /// K has an eigenvalue below that: `smallest`, or one below it.
    Indefinite { smallest: f64 },
}

impl Sign {
    /// The smallest eigenvalue, if it makes K indefinite.
    pub fn negative(self) -> Option<f64> {
        if let Self::Indefinite { smallest } = self { Some(smallest) } else { None }
    }

    /// What makes K positive semi-definite, if it is added to the diagonal, as far as that is known.
    pub fn shift(self) -> f64 {
        if let Self::Definite { shift } = self { shift } else { 0.0 }
    }
}

/// Whether K has to be examined: kernels that are semi-definite by their formula need no look.
pub(crate) fn is_in_doubt(kernel: &KernelFn, assume_definite: bool) -> bool {
    !(assume_definite || kernel.shape.is_definite())
}

/// Bytes that examining K takes beside it.
pub(crate) fn examination_bytes(n: usize) -> u64 {
    factor_bytes(n)
}

/// Finds out whether K, of rows of `x`, is positive semi-definite up to rounding.
pub(crate) fn examine<T: Working>(gram: &Gram<T>, kernel: &KernelFn, x: &Rows, control: &Control) -> Result<Sign> {
    let computed = f64::EPSILON.max(Gram::<T>::storage_error());
    let given = if kernel.shape == Shape::Precomputed { given_epsilon(x) } else { computed };
    sign(gram, computed, given.max(computed), control)
}

/// τ of a matrix of `n` rows.
fn resolution(n: usize, epsilon: f64, largest_diagonal: f64) -> f64 {
    ROUNDINGS * (n as f64).sqrt() * epsilon * largest_diagonal
}

/// The sign of K, whose entries were computed to a relative `fine`, and are known to a relative `coarse`.
fn sign<T: Working>(gram: &Gram<T>, fine: f64, coarse: f64, control: &Control) -> Result<Sign> {
    let n = gram.n();
    let top = gram.diagonal().into_iter().fold(0.0, f64::max);
    let tau = resolution(n, coarse, top);
    let times = |v: &[f64]| Ok(gram.times(&[v], control)?.remove(0));
    let is_negative =
        |ends: Ends| ends.smallest < -tau - PRODUCT_ROUNDINGS * (n as f64).sqrt() * f64::EPSILON * ends.largest.abs();
    if n > ALL_EIGENVALUES {
        let ends = lanczos(random(n), tau, (FEW_STEPS, &is_negative), times, control)?;
        if is_negative(ends) {
            return Ok(Sign::Indefinite { smallest: ends.smallest });
        }
    }
    if top == 0.0 && (0..n).all(|i| gram.row(i).iter().all(|v| v.wide() == 0.0)) {
        return Ok(Sign::Definite { shift: 0.0 });
    }
    let mut direction = Vec::new();
    for epsilon in if fine < coarse { vec![fine, coarse] } else { vec![coarse] } {
        let shift = resolution(n, epsilon, top);
        let fill = |c: usize, start: usize, out: &mut [f64]| {
            gram.copy_row(c, start, out);
            if let Some(diagonal) = c.checked_sub(start).and_then(|at| out.get_mut(at)) {
                *diagonal += shift;
            }
        };
        match direction_not_positive(n, fill, control, || control.check_time(KNOWN, n))? {
            None => return Ok(Sign::Definite { shift }),
            Some(found) => direction = found,
        }
    }
    let smallest = if n <= ALL_EIGENVALUES {
        eigenvalues(memory::matrix(n, n, COPY, |i, j| gram.get(i, j))?, control)?[0]
    } else {
        let start = if dot(&direction, &direction).is_finite() { direction } else { random(n) };
        lanczos(start, tau, (MOST_LANCZOS, &is_negative), times, control)?.smallest
    };
    // The factor is more accurate than a computed eigenvalue, which is off by about 10 ε λmax.
    Ok(Sign::Indefinite { smallest: smallest.min(-tau) })
}

/// A vector to start with.
fn random(n: usize) -> Vec<f64> {
    let mut rng = fastrand::Rng::with_seed(0);
    (0..n).map(|_| rng.f64() - 0.5).collect()
}

/// The ends of the spectrum of a symmetric matrix, from its products with vectors. The largest eigenvalue is right to a
/// few digits. The smallest is right if it is negative, or as good as `patience` products allow. Residuals below
/// `rounding` are rounding.
fn lanczos(
    start: Vec<f64>,
    rounding: f64,
    (patience, is_negative): (usize, &dyn Fn(Ends) -> bool),
    times: impl Fn(&[f64]) -> Result<Vec<f64>>,
    control: &Control,
) -> Result<Ends> {
    let (n, mut next) = (start.len(), start);
    let mut norm = dot(&next, &next).sqrt();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    let mut agreed = false;
    loop {
        control.check_time(KNOWN, n)?;
        for value in &mut next {
            *value /= norm;
        }
        basis.push(std::mem::take(&mut next));
        let last = &basis[basis.len() - 1];
        next = times(last)?;
        diagonal.push(dot(last, &next));
        // One pass leaves components along the basis as large as the rounding of the product. A second pass leaves only
        // the rounding of these.
        for _ in 0..2 {
            for v in &basis {
                let part = dot(v, &next);
                subtract(&mut next, part, v);
            }
        }
        norm = dot(&next, &next).sqrt();

        let k = basis.len();
        let ended = k == n || norm <= f64::MIN_POSITIVE;
        if k.is_multiple_of(LOOK) || ended {
            let (ends, last_entry) = ends_of_tridiagonal(&diagonal, &beside, control)?;
            let found = norm * last_entry <= rounding.max(RESIDUAL * ends.smallest.abs());
            let most = if is_negative(ends) { MOST_LANCZOS } else { patience };
            // Twice in a row: a θ on its way down may rest for a while at an eigenvalue that is not the smallest.
            if ended || k >= most || found && agreed {
                return Ok(ends);
            }
            agreed = found;
        }
        beside.push(norm);
    }
}

/// The ends of the spectrum of a symmetric tridiagonal matrix, and the magnitude of the last entry of the unit
/// eigenvector of the smallest eigenvalue.
fn ends_of_tridiagonal(diagonal: &[f64], beside: &[f64], control: &Control) -> Result<(Ends, f64)> {
    let k = diagonal.len();
    let entry = |i: usize, j: usize| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => beside[i.min(j)],
        _ => 0.0,
    };
    let (values, vectors) = eigen(Mat::from_fn(k, k, entry), control)?;
    Ok((Ends { smallest: values[0], largest: values[k - 1] }, vectors[(k - 1, 0)].abs()))
}

/// a ← a − factor · b.
fn subtract(a: &mut [f64], factor: f64, b: &[f64]) {
    vectorise(
        #[inline(always)]
        || a.iter_mut().zip(b).for_each(|(a, b)| *a -= factor * b),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H diag(values) H with H = I − 2uuᵀ: a full symmetric matrix with these eigenvalues, row after row.
    fn with_spectrum(values: &[f64]) -> Vec<f64> {
        let n = values.len();
        let mut rng = fastrand::Rng::with_seed(3);
        let mut u: Vec<f64> = (0..n).map(|_| rng.f64() - 0.5).collect();
        let norm = dot(&u, &u).sqrt();
        for u in &mut u {
            *u /= norm;
        }
        let middle: f64 = u.iter().zip(values).map(|(u, v)| u * u * v).sum();
        let entry = |i: usize, j: usize| {
            let outer = 4.0 * middle * u[i] * u[j] - 2.0 * (values[i] + values[j]) * u[i] * u[j];
            outer + if i == j { values[i] } else { 0.0 }
        };
        (0..n * n).map(|at| entry(at / n, at % n)).collect()
    }

    fn gram<T: Working>(matrix: &[f64], n: usize) -> Gram<T> {
        let (rows, all) = (Rows::from_slice(matrix, n).unwrap(), (0..n).collect::<Vec<_>>());
        let kernel = KernelFn::new(Shape::Precomputed, 1.0).unwrap();
        Gram::compute(&rows, &all, &kernel, None, &Control::default()).unwrap()
    }

    /// As if the entries were known to a relative `epsilon`.
    fn found<T: Working>(matrix: &[f64], n: usize, epsilon: f64) -> Option<f64> {
        sign(&gram::<T>(matrix, n), epsilon, epsilon, &Control::default()).unwrap().negative()
    }

    /// Spectra like those of kernels: a few large eigenvalues and a tail, which ends at `smallest`.
    fn spectra(n: usize, smallest: f64) -> [Vec<f64>; 3] {
        let ending = |value: &dyn Fn(usize) -> f64| (1..n).map(value).chain([smallest]).collect();
        [
            ending(&|i| 50.0 * 0.8_f64.powi(i as i32)),
            ending(&|i| 50.0 / (i * i) as f64),
            ending(&|i| if i <= 5 { 50.0 } else { 1.0 + i as f64 / n as f64 }),
        ]
    }

    /// τ of a matrix by its formula.
    fn tau(matrix: &[f64], n: usize, epsilon: f64) -> f64 {
        let top = (0..n).map(|i| matrix[i * n + i]).fold(0.0, f64::max);
        16.0 * (n as f64).sqrt() * epsilon * top
    }

    #[test]
    fn both_sides_of_the_threshold_for_few_and_many_rows() {
        for epsilon in [f64::from(f32::EPSILON), f64::EPSILON] {
            for n in [2, 40, ALL_EIGENVALUES, ALL_EIGENVALUES + 1, 600] {
                for (at, positive) in spectra(n, 0.0).iter().enumerate() {
                    let matrix = with_spectrum(positive);
                    assert_eq!(found::<f64>(&matrix, n, epsilon), None, "spectrum {at} of {n} rows");
                    let tau = tau(&matrix, n, epsilon);
                    for (factor, indefinite) in [(0.3, false), (3.0, true)] {
                        let smallest = -factor * tau;
                        let found = found::<f64>(&with_spectrum(&spectra(n, smallest)[at]), n, epsilon);
                        assert_eq!(found.is_some(), indefinite, "spectrum {at} of {n} rows, {factor}: {found:?}");
                        // An eigenvalue near the rounding of double precision is computed to that alone.
                        let off = if epsilon > 1e-10 { 1e-2 } else { 1.0 };
                        assert!(found.is_none_or(|found| (found / smallest - 1.0).abs() < off), "{found:?} {smallest}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_spectrum_hides_a_negative_eigenvalue() {
        let n = 2100;
        for smallest in [0.0, -0.5, -1e-5] {
            let uniform = (1..n).map(|i| i as f64 / n as f64).chain([smallest]).collect();
            for (at, spectrum) in spectra(n, smallest).into_iter().chain([uniform]).enumerate() {
                let found = found::<f64>(&with_spectrum(&spectrum), n, f64::EPSILON);
                let (value, expected) = (found.unwrap_or(0.0), smallest);
                assert!((value - expected).abs() <= 5e-2 * expected.abs(), "spectrum {at}: {found:?} {expected}");
            }
        }
    }

    #[test]
    fn a_matrix_that_the_largest_eigenvalue_dwarfs() {
        // 11ᵀ + I − 1.004 uuᵀ with a unit vector u that is orthogonal to 1.
        for n in [100, 400] {
            let u = |i: usize| (if i.is_multiple_of(2) { 1.0 } else { -1.0 }) / (n as f64).sqrt();
            let entry = |i: usize, j: usize| 1.0 + f64::from(i == j) - 1.004 * u(i) * u(j);
            let matrix: Vec<f64> = (0..n * n).map(|at| f64::from(entry(at / n, at % n) as f32)).collect();
            let found = found::<f32>(&matrix, n, f64::from(f32::EPSILON)).unwrap();
            assert!((found + 0.004).abs() < 1e-4, "{n}: {found}");
        }
    }

    #[test]
    fn the_finest_shift_that_is_enough_counts() {
        let single = f64::from(f32::EPSILON);
        for n in [100, 500] {
            for (at, lowest) in [(0, 1e-2), (1, 0.0)] {
                let matrix: Vec<f64> =
                    with_spectrum(&spectra(n, 0.0)[0].iter().map(|v| v + lowest).collect::<Vec<_>>());
                let matrix: Vec<f64> = matrix.into_iter().map(|v| f64::from(v as f32)).collect();
                let epsilon = [f64::EPSILON, single][at];
                let gram = gram::<f64>(&matrix, n);
                let Sign::Definite { shift } = sign(&gram, f64::EPSILON, single, &Control::default()).unwrap() else {
                    panic!("{n} rows, lowest {lowest}");
                };
                assert!((shift / tau(&matrix, n, epsilon) - 1.0).abs() < 1e-12, "{n} rows, lowest {lowest}: {shift}");
            }
        }
    }

    #[test]
    fn a_matrix_stored_in_single_precision_is_judged_by_that_precision() {
        for n in [100, 500] {
            for spectrum in spectra(n, 0.0) {
                let matrix = with_spectrum(&spectrum);
                assert_eq!(found::<f32>(&matrix, n, f64::from(f32::EPSILON)), None);
                assert_eq!(found::<f32>(&matrix, n, Gram::<f32>::storage_error()), None);
            }
            let smallest = found::<f32>(&with_spectrum(&spectra(n, -0.5)[1]), n, f64::from(f32::EPSILON)).unwrap();
            assert!((smallest + 0.5).abs() < 1e-4, "{smallest}");
        }
    }

    #[test]
    fn the_verdict_on_kernels_is_that_of_all_eigenvalues() {
        let (n, p, control) = (700, 4, Control::default());
        let mut rng = fastrand::Rng::with_seed(8);
        let x: Vec<f64> = (0..n * p).map(|_| 3.0 * (rng.f64() - 0.5)).collect();
        let rows = Rows::from_slice(&x, p).unwrap();
        let all: Vec<usize> = (0..n).collect();
        let shapes = [
            Shape::Sigmoid { coef0: -1.0 },
            Shape::Sigmoid { coef0: 0.0 },
            Shape::Sigmoid { coef0: 1.0 },
            Shape::Poly { degree: 2, coef0: -1.0 },
            Shape::Poly { degree: 3, coef0: -0.1 },
            Shape::Poly { degree: 2, coef0: 0.0 },
            Shape::Rbf,
            Shape::Laplacian,
        ];
        for shape in shapes {
            let kernel = KernelFn::new(shape, 0.7).unwrap();
            let gram = Gram::<f64>::compute(&rows, &all, &kernel, None, &control).unwrap();
            let expected = eigenvalues(Mat::from_fn(n, n, |i, j| gram.get(i, j)), &control).unwrap()[0];
            let found = examine(&gram, &kernel, &rows, &control).unwrap();
            assert_eq!(found.negative().is_some(), !shape.is_definite(), "{shape:?}: {found:?} {expected}");
            if let Some(found) = found.negative() {
                assert!((found / expected - 1.0).abs() < 1e-3, "{shape:?}: {found} {expected}");
            }
        }
    }

    #[test]
    fn matrices_without_any_positive_eigenvalue() {
        for n in [1, 300] {
            assert_eq!(found::<f64>(&vec![0.0; n * n], n, f64::EPSILON), None);
            let negative: Vec<f64> = (0..n * n).map(|at| if at % (n + 1) == 0 { -2.0 } else { 0.0 }).collect();
            assert!((found::<f64>(&negative, n, f64::EPSILON).unwrap() + 2.0).abs() < 1e-12);
            let identity: Vec<f64> = negative.iter().map(|v| v.abs()).collect();
            assert_eq!(found::<f64>(&identity, n, f64::EPSILON), None);
        }
        // Nothing on the diagonal, and something beside it.
        assert!((found::<f64>(&[0.0, 3.0, 3.0, 0.0], 2, f64::EPSILON).unwrap() + 3.0).abs() < 1e-12);
    }

    #[test]
    fn an_interrupt_is_heard() {
        for n in [300, 600] {
            let gram = gram::<f64>(&with_spectrum(&spectra(n, 0.0)[1]), n);
            let control = Control::default();
            control.cancel();
            assert_eq!(sign(&gram, f64::EPSILON, f64::EPSILON, &control), Err(crate::error::Error::Interrupted));
        }
    }
}
