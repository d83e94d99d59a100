//! Whether K is positive semi-definite: without that, no duality gap proves anything.
//!
//! P(β, b) ≥ D(θ) rests on ½ (β − θ)ᵀK(β − θ) ≥ 0. With an eigenvalue below
//! 0, P has no lower bound at all, or one far below the point where P = D. That point is then a stationary point and no
//! more.
//!
//! Many kernels are semi-definite by their formula ([`Shape::is_definite`]). For the others, the two ends of the
//! spectrum are computed, and K counts as indefinite if
//!
//! ```text
//! λmin < −n ε λmax
//! ```
//!
//! where ε is that of the precision in which K was given or computed: rounding its entries moves eigenvalues by less.
//!
//! Lanczos, *An iteration method for the solution of the eigenvalue problem* (1950), with full reorthogonalisation:
//! after k products with K, from v₁ at random,
//!
//! ```text
//! K V_k = V_k T_k + β_k v_{k+1} eₖᵀ        V_kᵀV_k = I,  T_k tridiagonal
//! ```
//!
//! The eigenvalues of T_k lie between those of K, and the ones at the ends are the first to agree with K's. With T_k s
//! = θs, K has an eigenvalue within β_k |s_k| of θ. A θ < 0 proves that K is indefinite, but the lack of one does not
//! prove the contrary. So while n³/3 operations are few, a Cholesky factorisation of K + n ε λmax I decides.

use faer::Mat;

use crate::data::rows::Rows;
use crate::error::{Error, Result};
use crate::kernel::gram::Gram;
use crate::kernel::shape::{KernelFn, Shape};
use crate::numeric::cholesky::Working;
use crate::numeric::eigen::{eigen, eigenvalues, has_cholesky};
use crate::numeric::entry::Entry;
use crate::numeric::memory;
use crate::numeric::simd::{dot, vectorise};
use crate::observe::Control;

/// Most rows for which all eigenvalues are computed. With more, their cost, of order n³, soon is that of a fit.
const ALL_EIGENVALUES: usize = 256;

/// Most rows for which a Cholesky factorisation decides, if the iteration finds no negative eigenvalue: it takes at
/// most 3e9 operations. With more rows, it would cost as much as a fit.
const FACTORED: usize = 2048;

/// Products with K that may find no negative eigenvalue before a factorisation decides. Most indefinite kernels show
/// one in the first dozen products.
const FEW_STEPS: usize = 48;

/// The same if no factorisation follows. More products would find negative eigenvalues that are smaller beside the
/// others. For comparison, a fit of several C's and folds takes hundreds of products, of several columns each.
const MANY_STEPS: usize = 96;

/// Most products with K, once there is a negative eigenvalue, to find the smallest one.
const MOST_LANCZOS: usize = 128;

/// Steps between two looks at the eigenvalues of T_k, whose cost is of order k³.
const LOOK: usize = 8;

/// The smallest eigenvalue counts as found when its residual is this share of it. Its error is of the order of the
/// square of that.
const RESIDUAL: f64 = 1e-3;

/// What errors call the copy of K whose eigenvalues are computed.
const COPY: &str = "a copy of the kernel matrix";

/// The two ends of a spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ends {
    pub smallest: f64,
    pub largest: f64,
}

impl Ends {
    /// The smallest eigenvalue, if it makes the matrix indefinite: a matrix of `n` rows, with entries known to a
    /// relative `epsilon`.
    pub fn indefinite(self, n: usize, epsilon: f64) -> Option<f64> {
        (self.smallest < -resolution(n, epsilon, self.largest)).then_some(self.smallest)
    }
}

/// n ε λmax: how far below 0 rounding may take an eigenvalue.
fn resolution(n: usize, epsilon: f64, largest: f64) -> f64 {
    n as f64 * epsilon * largest
}

/// ε of the coarser of two precisions: that in which K was given, and that in which it is stored.
pub(crate) fn epsilon<T: Entry>(kernel: &KernelFn, x: &Rows) -> f64 {
    if kernel.shape == Shape::Precomputed && matches!(x, Rows::F32(_)) {
        f64::from(f32::EPSILON)
    } else {
        f64::EPSILON.max(Gram::<T>::storage_error())
    }
}

/// The smallest eigenvalue of K, if K is indefinite.
pub(crate) fn negative_eigenvalue<T: Working>(gram: &Gram<T>, epsilon: f64, control: &Control) -> Result<Option<f64>> {
    let n = gram.n();
    let all = || -> Result<Ends> {
        let values = eigenvalues(memory::matrix(n, n, COPY, |i, j| gram.get(i, j))?, control)?;
        Ok(Ends { smallest: values[0], largest: values[n - 1] })
    };
    if n <= ALL_EIGENVALUES {
        return Ok(all()?.indefinite(n, epsilon));
    }
    // Products in the precision of K, which `epsilon` stands for.
    let times =
        |v: &[f64]| Ok(if T::IS_ROUGH { gram.times(&[v], control)? } else { gram.apply(&[v], control)? }.remove(0));
    let ends = lanczos(n, epsilon, if n <= FACTORED { FEW_STEPS } else { MANY_STEPS }, times, control)?;
    let negative = ends.indefinite(n, epsilon);
    if negative.is_some() || n > FACTORED {
        return Ok(negative);
    }
    let slack = resolution(n, epsilon, ends.largest);
    let shifted = memory::matrix(n, n, COPY, |i, j| gram.get(i, j) + if i == j { slack } else { 0.0 })?;
    // (A matrix of zeros has no factor, and is semi-definite.)
    if ends.largest <= 0.0 || has_cholesky(shifted, control)? { Ok(None) } else { Ok(all()?.indefinite(n, epsilon)) }
}

/// The ends of the spectrum of a symmetric matrix of `n` rows, from its products with vectors. The largest eigenvalue
/// is right to a few digits. The smallest is so good that its sign is known to `epsilon`, or as good as `patience`
/// products allow.
fn lanczos(
    n: usize,
    epsilon: f64,
    patience: usize,
    times: impl Fn(&[f64]) -> Result<Vec<f64>>,
    control: &Control,
) -> Result<Ends> {
    let mut rng = fastrand::Rng::with_seed(0);
    let mut next: Vec<f64> = (0..n).map(|_| rng.f64() - 0.5).collect();
    let mut norm = dot(&next, &next).sqrt();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    let mut agreed = false;
    loop {
        control.check()?;
        if control.out_of_time() {
            let budget = control.budget_seconds().unwrap_or(0.0);
            return Err(Error::TimeBudget { budget, what: "the sign of the kernel was known", rows: n });
        }
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
            let rounding = 0.5 * resolution(n, epsilon, ends.largest);
            let found = norm * last_entry <= rounding.max(RESIDUAL * ends.smallest.abs());
            let most = if ends.indefinite(n, epsilon).is_some() { MOST_LANCZOS } else { patience };
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

    fn found<T: Working>(matrix: &[f64], n: usize, epsilon: f64) -> Option<f64> {
        negative_eigenvalue(&gram::<T>(matrix, n), epsilon, &Control::default()).unwrap()
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

    #[test]
    fn both_sides_of_the_threshold_for_few_and_many_rows() {
        for n in [2, 40, ALL_EIGENVALUES, ALL_EIGENVALUES + 1, 600] {
            for (at, positive) in spectra(n, 0.0).iter().enumerate() {
                let matrix = with_spectrum(positive);
                let largest = positive.iter().copied().fold(0.0, f64::max);
                assert_eq!(found::<f64>(&matrix, n, f64::EPSILON), None, "spectrum {at} of {n} rows");
                let single = f64::from(f32::EPSILON);
                for (factor, indefinite) in [(0.3, false), (3.0, true)] {
                    let smallest = -factor * n as f64 * single * largest;
                    let matrix = with_spectrum(&spectra(n, smallest)[at]);
                    let found = found::<f64>(&matrix, n, single);
                    assert_eq!(found.is_some(), indefinite, "spectrum {at} of {n} rows, {factor}: {found:?}");
                    assert!(found.is_none_or(|found| (found / smallest - 1.0).abs() < 1e-2), "{found:?} {smallest}");
                }
            }
        }
    }

    #[test]
    fn up_to_2048_rows_the_smallest_negative_eigenvalue_is_found() {
        for n in [257, 600] {
            for (at, positive) in spectra(n, 0.0).iter().enumerate() {
                let largest = positive.iter().copied().fold(0.0, f64::max);
                for (factor, indefinite) in [(0.3, false), (3.0, true)] {
                    let smallest = -factor * n as f64 * f64::EPSILON * largest;
                    let found = found::<f64>(&with_spectrum(&spectra(n, smallest)[at]), n, f64::EPSILON);
                    assert_eq!(found.is_some(), indefinite, "spectrum {at} of {n} rows, {factor}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn more_rows_than_are_factored() {
        let n = FACTORED + 100;
        for smallest in [0.0, -0.5, -1e-3] {
            for (at, spectrum) in spectra(n, smallest).iter().enumerate() {
                let found = found::<f64>(&with_spectrum(spectrum), n, f64::EPSILON);
                let (value, expected) = (found.unwrap_or(0.0), smallest);
                assert!((value - expected).abs() <= 1e-2 * expected.abs(), "spectrum {at}: {found:?} {expected}");
            }
        }
    }

    #[test]
    fn a_matrix_stored_in_single_precision_is_judged_by_that_precision() {
        for n in [100, 500] {
            for spectrum in spectra(n, 0.0) {
                let matrix = with_spectrum(&spectrum);
                assert_eq!(found::<f32>(&matrix, n, f64::from(f32::EPSILON)), None);
            }
            let smallest = found::<f32>(&with_spectrum(&spectra(n, -0.5)[1]), n, f64::from(f32::EPSILON)).unwrap();
            assert!((smallest + 0.5).abs() < 1e-4, "{smallest}");
        }
    }

    #[test]
    fn lanczos_agrees_with_all_eigenvalues() {
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
            Shape::Rbf,
            Shape::Laplacian,
        ];
        for shape in shapes {
            let kernel = KernelFn::new(shape, 0.7).unwrap();
            let gram = Gram::<f64>::compute(&rows, &all, &kernel, None, &control).unwrap();
            let values = eigenvalues(Mat::from_fn(n, n, |i, j| gram.get(i, j)), &control).unwrap();
            let times = |v: &[f64]| Ok(gram.times(&[v], &control)?.remove(0));
            let ends = lanczos(n, f64::EPSILON, MANY_STEPS, times, &control).unwrap();
            assert_eq!(negative_eigenvalue(&gram, f64::EPSILON, &control).unwrap().is_some(), !shape.is_definite());
            assert!((ends.largest / values[n - 1] - 1.0).abs() < 1e-6, "{shape:?}: {ends:?}");
            let expected = Ends { smallest: values[0], largest: values[n - 1] }.indefinite(n, f64::EPSILON);
            assert_eq!(expected.is_some(), !shape.is_definite(), "{shape:?}: {}", values[0]);
            let found = ends.indefinite(n, f64::EPSILON);
            assert_eq!(found.is_some(), expected.is_some(), "{shape:?}: {ends:?} {}", values[0]);
            if let (Some(found), Some(expected)) = (found, expected) {
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
    }

    #[test]
    fn an_interrupt_is_heard() {
        for n in [100, 600] {
            let gram = gram::<f64>(&with_spectrum(&spectra(n, 0.0)[1]), n);
            let control = Control::default();
            control.cancel();
            let heard = negative_eigenvalue(&gram, f64::EPSILON, &control);
            assert!(matches!(heard, Err(Error::Interrupted) | Ok(None)));
            assert!(n < ALL_EIGENVALUES || heard.is_err());
        }
    }
}
