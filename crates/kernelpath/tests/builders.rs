//! What builders and public functions do with arguments that no fit can use, and with kernels of one's own.

mod by_hand;

use by_hand::{blobs, waves};
use kernelpath::{
    Bandwidth, Classifier, Control, Error, Folds, Hardware, IntoRows, Kernel, KernelFn, Loss, Method, Quantiles,
    Regressor, Rows, SavedModel, Shape, decision, logspace, transform,
};

#[test]
fn rows_that_are_not_complete_are_refused() {
    let (x, y) = ([0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 2.0]);
    let is_refused = |error: Error| matches!(error, Error::Length { got: 5, expected: 4, .. });
    assert!(is_refused((&x[..], 2).into_rows().unwrap_err()));
    assert!(is_refused(Regressor::ridge().fit((&x[..], 2), &y).unwrap_err()));
    assert!(is_refused(Quantiles::at([0.5]).fit((&x[..], 2), &y).unwrap_err()));
    assert!(is_refused(Classifier::svm().fit((&x[..], 2), &["a", "b"]).unwrap_err()));
    let (x, y) = waves(40, 1);
    let model = Regressor::ridge().cs([1.0]).folds(Folds::None).fit((&x[..], 1), &y).unwrap();
    assert!(matches!(model.predict((&x[..], 3)).unwrap_err(), Error::Length { got: 40, expected: 39, .. }));
    assert!(matches!(model.predict((&x[..], 0)).unwrap_err(), Error::Empty { .. }));
}

#[test]
fn folds_that_no_memory_holds_are_refused() {
    for (n, k) in [(usize::MAX, 2), (usize::MAX, usize::MAX), (1 << 40, 10), (10, 11), (10, 0), (0, 0)] {
        assert!(Folds::shuffled(n, k, 0).is_err(), "{n} {k}");
    }
    assert!(Folds::stratified(&[1.0, 2.0], usize::MAX, 0).is_err());
}

#[test]
fn grids_of_numbers_without_logarithms_are_refused() {
    for (first, last) in [(-1.0, 10.0), (1.0, -10.0), (0.0, 1.0), (1.0, f64::INFINITY), (f64::NAN, 1.0)] {
        let message = logspace(first, last, 3).unwrap_err().to_string();
        assert!(message.contains("a finite number > 0"), "{message}");
    }
    assert!(logspace(1.0, 2.0, usize::MAX).is_err());
    assert_eq!(logspace(1.0, 2.0, 1).unwrap(), [1.0]);
}

#[test]
fn entries_outside_of_a_matrix_are_none() {
    let (indptr, indices, values) = ([0_usize, 1, 2], [0_usize, 1], [5.0, 6.0]);
    let sparse = kernelpath::Csr::new(2, &indptr[..], &indices[..], &values[..]).unwrap();
    let dense = [5.0, 0.0, 0.0, 6.0];
    for rows in [Rows::Csr(sparse), Rows::from_slice(&dense, 2).unwrap()] {
        assert_eq!((rows.entry(0, 0), rows.entry(0, 1), rows.entry(1, 1)), (Some(5.0), Some(0.0), Some(6.0)));
        assert_eq!((rows.entry(2, 0), rows.entry(0, 2), rows.entry(usize::MAX, usize::MAX)), (None, None, None));
    }
    assert_eq!(sparse.row(usize::MAX).count(), 0);
}

#[test]
fn nothing_to_compute_is_no_panic() {
    let (x, control) = ([0.0, 1.0], Control::default());
    let (rows, kernel) = (Rows::from_slice(&x, 1).unwrap(), KernelFn::new(Shape::Rbf, 1.0).unwrap());
    let none = faer::Mat::<f64>::zeros(2, 0);
    let values = decision(&rows, &rows, none.as_ref(), &[], &kernel, Hardware::default(), &control);
    assert_eq!(values.unwrap(), [0.0; 0]);
    assert_eq!(transform::<f64>(&rows, &rows, none.as_ref(), &kernel, 1, &control).unwrap(), [0.0; 0]);
}

/// Constants of losses that `check` refuses, in every function of a loss that a user can call.
#[test]
fn losses_with_bad_constants_do_not_panic() {
    let bad = [-1.0, 0.0, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let losses = bad.into_iter().flat_map(|constant| {
        [
            Loss::Huber { delta: constant },
            Loss::Quantile { tau: constant },
            Loss::Expectile { tau: constant },
            Loss::EpsilonInsensitive { epsilon: constant },
        ]
    });
    for loss in losses {
        for y in [-1.0, 0.3, f64::NAN, f64::INFINITY] {
            for f in [0.0, 2.0, f64::NAN, f64::NEG_INFINITY] {
                let _ = (loss.value(y, f), loss.pull(y, f), loss.curvature(y, f), loss.domain(y));
                let _ = (loss.dual_value(y, f), loss.kinks(y), loss.curvature_bound(), loss.score(y, f));
            }
        }
    }
    assert!(Loss::Huber { delta: 1.0 }.pull(0.0, f64::NAN).is_nan());
}

#[test]
fn every_kernel_has_a_constructor() {
    let rule = Bandwidth::Sigest;
    let kernels = [
        Kernel::rbf(rule),
        Kernel::laplacian(rule),
        Kernel::poly(2, 1.0, rule),
        Kernel::linear(),
        Kernel::sigmoid(0.5, rule),
        Kernel::matern32(rule),
        Kernel::matern52(rule),
        Kernel::precomputed(),
    ];
    let names: Vec<&str> = kernels.iter().map(|kernel| kernel.shape.name()).collect();
    assert_eq!(names, Shape::NAMES);
    assert_eq!(Kernel::rbf(0.5).bandwidth, Bandwidth::Value(0.5));
}

/// A function that computes a built-in kernel gives the models of that kernel: predictions, proofs, weights, several
/// classes, low rank.
#[test]
fn a_kernel_function_fits_like_the_kernel_that_it_computes() {
    let rbf = |a: &[f64], b: &[f64]| (-0.7 * a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp();
    let (x, class) = blobs(90, 3, 5);
    let (fresh, _) = blobs(30, 3, 6);
    let p = x.len() / class.len();
    let weights: Vec<f64> = (0..90).map(|i| f64::from(i % 4)).collect();
    let close = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
    let builder = || Classifier::svm().cs([0.1, 1.0, 10.0]).cv(3).weights(weights.clone()).probability(Method::Sigmoid);
    let by_name = builder().kernel(Kernel::rbf(0.7)).fit((&x[..], p), &class).unwrap();
    let by_function = builder().kernel_function(rbf).fit((&x[..], p), &class).unwrap();
    assert_eq!((by_name.c(), by_name.support()), (by_function.c(), by_function.support()));
    let decision = |rows: &[f64]| {
        let values = |model: &kernelpath::FittedClassifier<usize>| model.decision_function((rows, p)).unwrap();
        (values(&by_name), values(&by_function))
    };
    let (wanted, found) = decision(&fresh);
    assert!(close(&wanted, &found), "{wanted:?} {found:?}");
    assert!(by_function.verify((&x[..], p), &class).unwrap().iter().all(|proof| proof.gap() <= 1e-6));
    assert_eq!(by_function.support_vectors().ncols(), p);
    assert!(matches!(by_function.predict((&fresh[..], p - 1)), Err(Error::Features { .. } | Error::Length { .. })));
    let mut others = x.clone();
    others[p * by_function.support()[0]] += 1.0;
    assert!(by_function.verify((&others[..], p), &class).is_err());

    let (x, y) = waves(60, 2);
    let smooth = |a: &[f64], b: &[f64]| (-0.7 * (a[0] - b[0]).powi(2)).exp();
    let rank = || {
        Regressor::ridge().cs([1.0]).folds(Folds::None).low_rank(kernelpath::LowRank::rows((0..20).collect::<Vec<_>>()))
    };
    let (wanted, found) = (
        rank().kernel(Kernel::rbf(0.7)).fit((&x[..], 1), &y).unwrap().predict((&x[..], 1)).unwrap(),
        rank().kernel_function(smooth).fit((&x[..], 1), &y).unwrap().predict((&x[..], 1)).unwrap(),
    );
    assert!(close(&wanted, &found), "{wanted:?} {found:?}");
}

#[test]
fn a_saved_model_of_a_kernel_function_predicts_from_kernel_values() {
    let kernel = |a: &[f64], b: &[f64]| (-(a[0] - b[0]).abs()).exp();
    let (x, y) = waves(50, 3);
    let model = Regressor::ridge().cs([1.0]).folds(Folds::None).kernel_function(kernel).fit((&x[..], 1), &y).unwrap();
    let file = std::env::temp_dir().join(format!("kernelpath-function-{}.kpath", std::process::id()));
    model.save(&file).unwrap();
    let loaded = SavedModel::load(&file);
    std::fs::remove_file(&file).unwrap();
    let fresh = [0.1, 0.7];
    let values: Vec<f64> = fresh.iter().flat_map(|a| x.iter().map(|b| kernel(&[*a], &[*b]))).collect();
    let found = loaded.unwrap().predictor.values((&values[..], 50), Hardware::default()).unwrap();
    let wanted = model.predict((&fresh[..], 1)).unwrap();
    assert!(wanted.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-12), "{wanted:?} {found:?}");
}

#[test]
fn a_kernel_function_is_checked() {
    let (x, y) = waves(30, 4);
    let fit = |kernel: fn(&[f64], &[f64]) -> f64| {
        Regressor::ridge().cs([1.0]).folds(Folds::None).kernel_function(kernel).fit((&x[..], 1), &y)
    };
    let message = fit(|a, b| if a == b { f64::NAN } else { 0.0 }).unwrap_err().to_string();
    assert!(message.contains("kernel_function") && message.contains("NaN for rows 0 and 0"), "{message}");
    assert!(fit(|a, b| a[0] - b[0]).is_err(), "the function is not symmetric");
    let indefinite = fit(|a, b| -(a[0] - b[0]).abs()).unwrap();
    assert!(indefinite.worst_gap().is_nan(), "no proof with a kernel that is not definite");
}
