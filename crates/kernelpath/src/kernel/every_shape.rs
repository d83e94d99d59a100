//! What every kernel must keep to, whatever computes it: a new kernel is a new row of `SHAPES`.

use faer::Mat;

use crate::data::rows::Rows;
use crate::data::sparse::Csr;
use crate::error::{Cell, Error};
use crate::kernel::accuracy::ENTRY_ROUNDINGS;
use crate::kernel::evaluate::{kernel_matrix, kernel_times};
use crate::kernel::gram::Gram;
use crate::kernel::shape::{KernelFn, Shape};
use crate::observe::Control;

pub(crate) const SHAPES: [Shape; 7] = [
    Shape::Rbf,
    Shape::Laplacian,
    Shape::Poly { degree: 3, coef0: 0.5 },
    Shape::Linear,
    Shape::Sigmoid { coef0: -0.2 },
    Shape::Matern32,
    Shape::Matern52,
];

/// ⟨a, b⟩, ‖a − b‖² and ‖a − b‖₁.
type Measured = [f64; 3];

fn measured(a: &[f64], b: &[f64]) -> Measured {
    let pairs = || a.iter().zip(b);
    [
        pairs().map(|(a, b)| a * b).sum(),
        pairs().map(|(a, b)| (a - b) * (a - b)).sum(),
        pairs().map(|(a, b)| (a - b).abs()).sum(),
    ]
}

/// The kernel by its formula. It is no finite number where the kernel must be refused.
fn formula(kernel: &KernelFn, [product, squares, absolute]: Measured) -> f64 {
    let gamma = kernel.gamma;
    // ∞ · 0 is no number, but the limit is 0.
    let decay = |a: f64, factor: f64| if a.is_infinite() { 0.0 } else { factor * (-a).exp() };
    match kernel.shape {
        Shape::Rbf => decay(gamma * squares, 1.0),
        Shape::Laplacian => decay(gamma * absolute, 1.0),
        Shape::Poly { degree, coef0 } => (gamma * product + coef0).powi(degree as i32),
        Shape::Linear | Shape::Precomputed => product,
        Shape::Sigmoid { .. } if product.is_infinite() => f64::NAN,
        Shape::Sigmoid { coef0 } => (gamma * product + coef0).tanh(),
        Shape::Matern32 => {
            let a = (6.0 * gamma * squares).sqrt();
            decay(a, 1.0 + a)
        }
        Shape::Matern52 => {
            let a = (10.0 * gamma * squares).sqrt();
            decay(a, 1.0 + a + a * a / 3.0)
        }
    }
}

pub(crate) fn naive(kernel: &KernelFn, a: &[f64], b: &[f64]) -> f64 {
    formula(kernel, measured(a, b))
}

/// The parts of a sparse matrix with the entries of `x` that are not 0.
pub(crate) fn sparse_parts(x: &Mat<f64>) -> (Vec<usize>, Vec<usize>, Vec<f64>) {
    let (mut start, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..x.nrows() {
        for j in (0..x.ncols()).filter(|&j| x[(i, j)] != 0.0) {
            columns.push(j);
            values.push(x[(i, j)]);
        }
        start.push(values.len());
    }
    (start, columns, values)
}

fn row(x: &Mat<f64>, i: usize) -> Vec<f64> {
    x.row(i).iter().copied().collect()
}

/// Rows of ordinary numbers but for one cell, in row 7 and the last column.
pub(crate) fn with_huge_cell(n: usize, p: usize, cell: f64) -> Mat<f64> {
    let mut rng = fastrand::Rng::with_seed(n as u64);
    Mat::from_fn(n, p, |i, j| match (i, j) {
        (7, j) if j + 1 == p => cell,
        _ if rng.f64() < 0.5 => 3.0 * rng.f64() - 1.0,
        _ => 0.0,
    })
}

/// Cells whose squares are large, near the largest double, and beyond it.
pub(crate) const HUGE: [f64; 7] = [1e9, 1e100, 1e153, -1.4e154, 1e200, -1e308, 1.7e308];

#[test]
fn nan_passes_no_kernel() {
    for shape in SHAPES {
        for gamma in [1e-320, 1e-303, 0.4, 1e308] {
            let kernel = KernelFn::new(shape, gamma).unwrap();
            let map = |value: f64| {
                let mut values = [value; 9];
                kernel.map(&mut values);
                assert!(values.iter().all(|v| v.to_bits() == values[0].to_bits() || v.is_nan()), "{shape:?}");
                values[8]
            };
            assert!(map(f64::NAN).is_nan() && map(-f64::NAN).is_nan(), "{shape:?}, gamma {gamma}");
            let infinite = map(f64::INFINITY);
            if !shape.is_shift_invariant() {
                assert!(!infinite.is_finite() && !map(f64::NEG_INFINITY).is_finite(), "{shape:?}, gamma {gamma}");
                continue;
            }
            assert_eq!(map(0.0), 1.0, "{shape:?}, gamma {gamma}");
            // With a γ that small, a distance beyond the largest double may be short.
            assert!(if gamma < 1e-303 { infinite.is_nan() } else { infinite == 0.0 }, "{shape:?}, gamma {gamma}");
            for far in [map(1e300), map(f64::MAX)] {
                assert!((0.0..=1.0 + 1e-15).contains(&far), "{shape:?}, gamma {gamma}: {far}");
            }
        }
    }
}

#[test]
fn a_huge_cell_is_exact_or_refused_by_name() {
    let control = Control::default();
    let (n, m) = (150, 20);
    for p in [3, 12] {
        for cell in HUGE {
            let (x, z) = (with_huge_cell(n, p, cell), with_huge_cell(m, p, 0.5));
            let (parts, z_parts) = (sparse_parts(&x), sparse_parts(&z));
            let sparse = Csr::new(p, &parts.0[..], &parts.1[..], &parts.2[..]).unwrap();
            let sparse_z = Csr::new(p, &z_parts.0[..], &z_parts.1[..], &z_parts.2[..]).unwrap();
            let identity = Mat::<f64>::identity(m, m);
            for shape in SHAPES {
                let kernel = KernelFn::new(shape, 0.4).unwrap();
                let what = |case: &str| format!("{shape:?}, {p} columns, {cell:e}, {case}");
                let close =
                    |ours: f64, want: f64| want.is_finite() && (ours - want).abs() <= 1e-12 * (1.0 + want.abs());
                let named = |error: Error, case: &str| {
                    let blamed = Cell { what: "X", row: 7, column: p - 1, value: cell };
                    let (Error::Overflow { cell: found, value, .. } | Error::SumOverflow { cell: found, value, .. }) =
                        error
                    else {
                        panic!("{}: {error}", what(case));
                    };
                    assert_eq!(found, Some(blamed), "{}", what(case));
                    assert!(!value.is_finite(), "{}", what(case));
                };
                // The kernel matrix of the rows, and with ordinary ones.
                let all: Vec<usize> = (0..n).collect();
                for (case, rows, others) in [
                    ("dense", Rows::from(&x), Rows::from(&z)),
                    ("sparse", sparse.into(), sparse_z.into()),
                    ("sparse and dense", sparse.into(), Rows::from(&z)),
                ] {
                    let exact = |i: usize, j: usize| naive(&kernel, &row(&x, i), &row(&x, j));
                    let refused = (0..n).any(|j| !exact(7, j).is_finite());
                    match Gram::<f64>::compute(&rows, &all, &kernel, None, &control) {
                        Ok(gram) => {
                            assert!(!refused, "{} passed", what(case));
                            for (i, j) in (0..n).flat_map(|i| [(i, i), (i, 7), (7, i), (i, (i + 31) % n)]) {
                                assert!(close(gram.get(i, j), exact(i, j)), "{}: {}", what(case), gram.get(i, j));
                            }
                        }
                        Err(error) => {
                            assert!(refused, "{} was refused: {error}", what(case));
                            named(error, case);
                        }
                    }
                    let exact = |i: usize, j: usize| naive(&kernel, &row(&x, i), &row(&z, j));
                    let refused = (0..m).any(|j| !exact(7, j).is_finite());
                    match kernel_matrix(&rows, &others, &kernel, 1, &control) {
                        Ok(k) => {
                            assert!(!refused, "{} passed", what(case));
                            for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
                                assert!(close(k[i * m + j], exact(i, j)), "{} at {i}, {j}", what(case));
                            }
                        }
                        Err(error) => {
                            assert!(refused, "{} was refused: {error}", what(case));
                            named(error, case);
                        }
                    }
                    // Sums of one kernel value each, of all rows and of one.
                    let some = kernel_times(&rows, &others, identity.as_ref(), &kernel, &control).unwrap();
                    let long = Mat::from_fn(1, p, |_, j| x[(7, j)]);
                    let one = kernel_times(&Rows::from(&long), &others, identity.as_ref(), &kernel, &control).unwrap();
                    for (path, values) in [("tiles", &some[7 * m..8 * m]), ("one row", &one[..])] {
                        let what = what(&format!("{case} by {path}"));
                        if refused {
                            assert!(values.iter().any(|v| !v.is_finite()), "{what} passed");
                        } else {
                            assert!((0..m).all(|j| close(values[j], exact(7, j))), "{what}: {values:?}");
                        }
                    }
                }
            }
        }
    }
}

/// Sums of products, of squared differences and of differences, in twice the digits of a double.
fn measured_exactly(a: &[f64], b: &[f64]) -> Measured {
    let two_sum = |a: f64, b: f64| {
        let sum = a + b;
        let of_b = sum - a;
        (sum, (a - (sum - of_b)) + (b - of_b))
    };
    let mut sums = [(0.0, 0.0); 3];
    for (a, b) in a.iter().zip(b) {
        let (d, rest) = two_sum(*a, -b);
        let square = d * d;
        let size = if d < 0.0 { (-d, -rest) } else { (d, rest) };
        let terms = [(a * b, a.mul_add(*b, -(a * b))), (square, d.mul_add(d, -square) + 2.0 * d * rest), size];
        for ((sum, low), (term, of_term)) in sums.iter_mut().zip(terms) {
            let (next, error) = two_sum(*sum, term);
            (*sum, *low) = (next, *low + error + of_term);
        }
    }
    sums.map(|(sum, low)| sum + low)
}

/// What certificates say of the noise of K holds where it is worst: rows in two clusters, whose distances within a
/// cluster are short beside their norms.
#[test]
fn entries_are_off_by_as_many_roundings_as_certificates_count() {
    let n = 160;
    for p in [1, 3, 10, 100, 1000] {
        for apart in [0.0, 2.0, 2.6, 3.9, 5.4, 11.0] {
            let mut rng = fastrand::Rng::with_seed(p as u64);
            let mut normal = || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
            let x = Mat::from_fn(n, p, |i, _| normal() + if i % 2 == 0 { 0.0 } else { apart });
            let parts = sparse_parts(&x);
            let sparse = Csr::new(p, &parts.0[..], &parts.1[..], &parts.2[..]).unwrap();
            let rows: Vec<Vec<f64>> = (0..n).map(|i| row(&x, i)).collect();
            let pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
            let exact: Vec<Measured> = pairs.iter().map(|&(i, j)| measured_exactly(&rows[i], &rows[j])).collect();
            let all: Vec<usize> = (0..n).collect();
            for shape in SHAPES.into_iter().filter(|shape| shape.is_definite()) {
                let length = if shape == Shape::Laplacian { 1.1 } else { 2.0 };
                let kernel = KernelFn::new(shape, 1.0 / (length * p as f64)).unwrap();
                for rows in [Rows::from(&x), Rows::from(sparse)] {
                    let gram = Gram::<f64>::compute(&rows, &all, &kernel, None, &Control::default()).unwrap();
                    let off = |(&(i, j), exact): (&(usize, usize), &Measured)| {
                        let size = (gram.get(i, i) * gram.get(j, j)).sqrt();
                        ((gram.get(i, j) - formula(&kernel, *exact)) / size / f64::EPSILON).powi(2)
                    };
                    let squares: f64 = pairs.iter().zip(&exact).map(off).sum();
                    let roundings = (squares / pairs.len() as f64).sqrt();
                    assert!(roundings <= ENTRY_ROUNDINGS, "{shape:?}, {p} columns, {apart} apart: {roundings:.1}");
                }
            }
        }
    }
}
