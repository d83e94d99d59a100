//! Answers are exact: equal to brute force, to naive refits, on every kernel, for every loss.

// Indices name rows, folds and C's across several arrays.
#![allow(clippy::needless_range_loop)]

mod common;

use common::{ALL_LOSSES, brute_force, data, fit, kernel, naive_kernel, naive_refit, request, split, targets, with};
use faer::Mat;
use kernelpath::kernel_matrix;
use kernelpath::{Claim, KernelError, certify};
use kernelpath::{Control, Folds, KernelFn, Loss, Pairs, Precision, Rows, Settings, Shape, Status, logspace};
use proptest::prelude::*;

const SHAPES: &[Shape] = &[
    Shape::Rbf,
    Shape::Laplacian,
    Shape::Poly { degree: 2, coef0: 1.0 },
    Shape::Linear,
    Shape::Matern32,
    Shape::Matern52,
];

const LOSSES: &[Loss] = &[
    Loss::Hinge,
    Loss::Quantile { tau: 0.3 },
    Loss::Quantile { tau: 0.5 },
    Loss::EpsilonInsensitive { epsilon: 0.1 },
    Loss::EpsilonInsensitive { epsilon: 0.0 },
];

#[test]
fn kernels_equal_their_formulas() {
    let (x, _) = data(150, 5, 0.3, 1);
    let (z, _) = data(140, 5, 0.1, 2);
    for &shape in SHAPES.iter().chain(&[Shape::Sigmoid { coef0: 0.2 }]) {
        let kernel = kernel(shape);
        let (rows, others) = (Rows::from_slice(&x, 5).unwrap(), Rows::from_slice(&z, 5).unwrap());
        let k = kernel_matrix(&rows, &others, &kernel, 1, &Control::default()).unwrap();
        for (i, a) in x.chunks_exact(5).enumerate() {
            for (j, b) in z.chunks_exact(5).enumerate() {
                let naive = naive_kernel(&kernel, a, b);
                let ours = k[i * 140 + j];
                assert!(
                    (ours - naive).abs() <= 1e-12 * (1.0 + naive.abs()),
                    "{shape:?} [{i}, {j}]: {ours} not {naive}"
                );
            }
        }
    }
}

#[test]
fn equals_brute_force_on_tiny_problems() {
    for seed in 0..6 {
        let (x, labels) = data(6, 2, 0.3, seed);
        let y = targets(&x, 2, seed);
        for &loss in LOSSES {
            let y = if loss.is_classification() { &labels } else { &y };
            for c in [0.05, 1.0, 30.0] {
                for &shape in &[Shape::Rbf, Shape::Linear] {
                    let k = kernel(shape);
                    let gram = Mat::from_fn(6, 6, |i, j| naive_kernel(&k, &x[2 * i..2 * i + 2], &x[2 * j..2 * j + 2]));
                    let best = -brute_force(&gram, loss, y, c);
                    let ours = fit(&request(&x, 2, y, loss, shape, &[c])).records[0][0].certificate;
                    assert!(
                        (ours.dual - best).abs() <= 1e-7 * (1.0 + best.abs()),
                        "{loss:?} {shape:?} C={c} seed {seed}: {} not {best}",
                        ours.dual
                    );
                }
            }
        }
    }
}

#[test]
fn every_loss_and_kernel_is_certified_along_the_path() {
    let (x, labels) = data(120, 3, 0.4, 3);
    let y = targets(&x, 3, 3);
    let cs = logspace(1e-3, 1e2, 12).unwrap();
    for &loss in LOSSES {
        let y = if loss.is_classification() { &labels } else { &y };
        for &shape in SHAPES {
            let mut request = request(&x, 3, y, loss, shape, &cs);
            request.settings.tol = 1e-8;
            request.folds = Folds::stratified(&labels, 4, 0).unwrap();
            let fit = fit(&request);
            for record in fit.records.iter().flatten() {
                let gap = record.certificate.gap();
                assert!((-1e-12..=1e-8).contains(&gap), "{loss:?} {shape:?}: gap {gap}, {:?}", record.status);
                assert_eq!(record.status, Status::Converged);
            }
        }
    }
}

#[test]
fn every_fold_equals_a_naive_refit() {
    let (x, labels) = data(90, 3, 0.3, 4);
    let y = targets(&x, 3, 4);
    let cs = [0.01, 0.3, 20.0];
    let splits = vec![
        split((0..60).collect(), (60..90).collect()),
        split((30..90).collect(), (0..30).collect()),
        // Rows in neither part, and rows that count twice.
        split((10..70).chain(20..40).collect(), vec![0, 5, 80, 89]),
    ];
    for &loss in ALL_LOSSES {
        let y = if loss.is_classification() { &labels } else { &y };
        let mut request = request(&x, 3, y, loss, Shape::Rbf, &cs);
        request.folds = Folds::Splits(splits.clone());
        let whole = fit(&request);
        for (k, fold) in splits.iter().enumerate() {
            let alone = naive_refit(&request, 3, &x, &fold.train);
            for c in 0..cs.len() {
                let (a, b) = (whole.records[k][c].certificate, alone.records[0][c].certificate);
                assert!((a.primal - b.primal).abs() <= 1e-8 * b.primal.abs(), "{loss:?} fold {k}, C={}", cs[c]);
                for (at, &row) in fold.test.iter().enumerate() {
                    let f: f64 = fold
                        .train
                        .iter()
                        .zip(&alone.coef[c])
                        .map(|(&j, beta)| {
                            beta * naive_kernel(
                                &request.kernel.function(),
                                &x[3 * row..3 * row + 3],
                                &x[3 * j..3 * j + 3],
                            )
                        })
                        .sum::<f64>()
                        + alone.records[0][c].b[0];
                    assert!(
                        (whole.oof[k][c][at] - f).abs() < 2e-4,
                        "{loss:?} fold {k}, row {row}: {} not {f}",
                        whole.oof[k][c][at]
                    );
                }
            }
        }
    }
}

#[test]
fn leave_one_out_equals_naive_refits() {
    let (mut x, mut labels) = data(40, 2, 0.3, 5);
    // Two equal rows: leaving one of them out leaves the other.
    x.extend_from_within(0..2);
    labels.push(labels[0]);
    let y = targets(&x, 2, 5);
    let cs = [0.05, 1.0, 50.0];
    for &loss in ALL_LOSSES {
        let y = if loss.is_classification() { &labels } else { &y };
        let mut request = request(&x, 2, y, loss, Shape::Rbf, &cs);
        request.folds = Folds::LeaveOneOut;
        let loo = fit(&request);
        for row in 0..y.len() {
            let others: Vec<usize> = (0..y.len()).filter(|&i| i != row).collect();
            let alone = naive_refit(&request, 2, &x, &others);
            for c in 0..cs.len() {
                let (ours, naive) = (&loo.records[row][c], &alone.records[0][c]);
                assert!(ours.certificate.gap() <= 1e-9, "{loss:?} row {row}: {ours:?}");
                let primal = naive.certificate.primal;
                assert!(
                    (ours.certificate.primal - primal).abs() <= 1e-8 * primal,
                    "{loss:?} row {row}, C={}: {ours:?} {naive:?}",
                    cs[c]
                );
                let k =
                    |j: usize| naive_kernel(&request.kernel.function(), &x[2 * row..2 * row + 2], &x[2 * j..2 * j + 2]);
                let f: f64 = others.iter().zip(&alone.coef[c]).map(|(&j, b)| b * k(j)).sum::<f64>() + naive.b[0];
                assert!(
                    (loo.oof[row][c][0] - f).abs() < 2e-4,
                    "{loss:?} row {row}, C={}: {} not {f}",
                    cs[c],
                    loo.oof[row][c][0]
                );
            }
        }
    }
}

#[test]
fn threads_and_repetition_change_no_bit() {
    let (x, y) = data(300, 4, 0.2, 6);
    let cs = logspace(1e-2, 1e2, 9).unwrap();
    let mut request = request(&x, 4, &y, Loss::Hinge, Shape::Rbf, &cs);
    request.precision = Precision::Single;
    request.settings = Settings::default();
    request.folds = Folds::stratified(&y, 5, 0).unwrap();
    let bits = |threads: usize| {
        let mut request = request.clone();
        request.threads = threads;
        let fit = fit(&request);
        let numbers = fit.coef.concat().into_iter().chain(fit.oof.concat().concat());
        let gaps = fit.records.iter().flatten().map(|r| r.certificate.gap());
        numbers.chain(gaps).map(f64::to_bits).collect::<Vec<_>>()
    };
    let one = bits(1);
    for threads in [1, 2, 4] {
        assert_eq!(bits(threads), one, "{threads} threads");
    }
}

#[test]
fn single_precision_loses_nothing_that_matters() {
    let (x, y) = data(250, 4, 0.3, 7);
    let cs = [0.01, 1.0, 100.0];
    let mut request = request(&x, 4, &y, Loss::Hinge, Shape::Rbf, &cs);
    request.settings = Settings::default();
    let double = fit(&request);
    request.precision = Precision::Single;
    let single = fit(&request);
    for c in 0..cs.len() {
        // The single-precision model, judged on the exact kernel.
        let k =
            |i: usize, j: usize| naive_kernel(&request.kernel.function(), &x[4 * i..4 * i + 4], &x[4 * j..4 * j + 4]);
        let beta = &single.coef[c];
        let f: Vec<f64> = (0..250).map(|i| (0..250).map(|j| k(i, j) * beta[j]).sum()).collect();
        let claim = Claim { weight: &vec![cs[c]; 250], beta, b: single.records[0][c].b[0], k_beta: &f };
        let image = |t: &&[f64]| (0..250).map(|i| (0..250).map(|j| k(i, j) * t[j]).sum()).collect();
        let error = KernelError::new(0.0, &[1.0; 250]);
        let k_times = |t: &[&[f64]]| Ok(t.iter().map(image).collect());
        let certificate = certify(Loss::Hinge, &y, &[claim], &error, 1e-6, k_times).unwrap()[0];
        assert!(certificate.gap() <= 1e-6, "C={}: {}", cs[c], certificate.gap());
        let (a, b) = (certificate.primal, double.records[0][c].certificate.primal);
        // Rounding the kernel to 24 bits moves the optimum itself by a few parts in a million here.
        assert!((a - b).abs() <= 1e-5 * b, "C={}: {a} not {b}", cs[c]);
    }
}

#[test]
fn the_order_of_cs_is_kept() {
    let (x, y) = data(60, 2, 0.3, 8);
    let up = [0.1, 1.0, 10.0];
    let mixed = [10.0, 0.1, 1.0];
    let a = fit(&request(&x, 2, &y, Loss::Hinge, Shape::Rbf, &up));
    let b = fit(&request(&x, 2, &y, Loss::Hinge, Shape::Rbf, &mixed));
    assert_eq!(a.coef[0], b.coef[1]);
    assert_eq!(a.coef[2], b.coef[0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, rng_seed: proptest::test_runner::RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    /// Ties, duplicates, imbalance, extreme C: always a status, a feasible β, a gap that is no lie.
    #[test]
    fn always_ends_with_a_valid_certificate(
        seed in 0u64..1000,
        n in 4usize..40,
        p in 1usize..4,
        rounding in prop::bool::ANY,
        copies in 0usize..10,
        shape in prop::sample::select(SHAPES.to_vec()),
        exponents in prop::collection::vec(-6.0..6.0f64, 1..5),
        loss in prop::sample::select(LOSSES.to_vec()),
    ) {
        let (mut x, mut labels) = data(n, p, 0.2, seed);
        if rounding {
            for v in &mut x {
                *v = v.round();
            }
        }
        for _ in 0..copies {
            x.extend_from_within(0..p);
            labels.push(labels[0]);
        }
        let y = if loss == Loss::Hinge { labels.clone() } else { targets(&x, p, seed) };
        let cs: Vec<f64> = exponents.iter().map(|e| 10f64.powf(*e)).collect();
        let mut request = request(&x, p, &y, loss, shape, &cs);
        request.settings = Settings { max_iter: 20_000, ..Settings::default() };
        let fit = fit(&request);
        for (k, record) in fit.records[0].iter().enumerate() {
            let gap = record.certificate.gap();
            prop_assert!(gap >= -1e-9, "gap {gap}");
            prop_assert!((record.status == Status::Converged) == (gap <= 1e-6), "{record:?}");
            prop_assert!(matches!(record.status, Status::Converged | Status::MaxIter | Status::Stalled));
            // Ordinary C's converge; the extreme ones may meet the limits of arithmetic.
            if cs[k] <= 10.0 && cs[k] >= 1e-3 {
                prop_assert!(gap <= 1e-6, "C={} {record:?}", cs[k]);
            }
            let beta = &fit.coef[k];
            let size: f64 = beta.iter().map(|b| b.abs()).sum();
            prop_assert!(beta.iter().sum::<f64>().abs() <= 1e-11 * size);
            for (b, y) in beta.iter().zip(&y) {
                let kinks = loss.kinks(*y).unwrap();
                prop_assert!(*b >= cs[k] * kinks.lo * (1.0 + 1e-12) && *b <= cs[k] * kinks.hi * (1.0 + 1e-12));
            }
        }
    }
}

#[test]
fn kernels_of_several_bandwidths_from_the_same_pairs() {
    let (x, y) = data(300, 3, 0.4, 5);
    let cs = [0.1, 10.0];
    for shape in [Shape::Rbf, Shape::Laplacian, Shape::Poly { degree: 2, coef0: 1.0 }] {
        let pairs = Pairs::default();
        let of_shape = request(&x, 3, &y, Loss::Hinge, shape, &cs);
        for gamma in [0.05, 0.2, 1.0] {
            let of_gamma = with(&of_shape, |r| r.kernel = KernelFn::new(shape, gamma).unwrap().into());
            let alone = fit(&of_gamma);
            let shared = fit(&with(&of_gamma, |r| r.pairs = Some(&pairs)));
            assert_eq!(shared.coef, alone.coef, "{shape:?}");
        }
        // Another matrix, and another kernel: not mistaken for these.
        let moved: Vec<f64> = x.iter().map(|v| 1.5 * v + 0.1).collect();
        for other in
            [request(&moved, 3, &y, Loss::Hinge, shape, &cs), request(&x, 3, &y, Loss::Hinge, Shape::Matern52, &cs)]
        {
            assert_eq!(fit(&with(&other, |r| r.pairs = Some(&pairs))).coef, fit(&other).coef, "{shape:?}");
        }
    }
}
