//! The multinomial loss: gaps, folds, weights, and the binary loss it contains.

mod common;

use common::{fit, kernel, request, with};
use kernelpath::{
    Control, Error, Features, Fold, Folds, Landmarks, Loss, LowRank, Nystrom, Objective, PathFit, Precision, Request,
    Rows, Shape, Status, Storage,
};

/// Rows around the corners of a polygon, a class each.
fn clusters(n: usize, classes: usize, spread: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let y: Vec<usize> = (0..n).map(|i| if i < classes { i } else { rng.usize(..classes) }).collect();
    let mut noise = || spread * (rng.f64() + rng.f64() + rng.f64() - 1.5);
    let angle = |class: usize| class as f64 * std::f64::consts::TAU / classes as f64;
    let x = y.iter().flat_map(|&class| [angle(class).cos() + noise(), angle(class).sin() + noise()]).collect();
    (x, y.into_iter().map(|class| class as f64).collect())
}

fn multinomial<'a>(x: &'a [f64], y: &[f64], cs: &'a [f64]) -> Request<'a> {
    request(x, 2, y, Objective::Multinomial, Shape::Rbf, cs)
}

/// √(2 gap P): how far two models of a problem can be from each other in the norm of K, which bounds f at each row.
fn reach(fit: &PathFit, fold: usize, c: usize) -> f64 {
    let certificate = fit.records[fold][c].certificate;
    2.0 * (2.0 * (certificate.primal - certificate.dual).max(1e-15 * certificate.primal)).sqrt()
}

fn assert_close(a: &[f64], b: &[f64], tolerance: f64) {
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance, "{a} and {b} differ by more than {tolerance:e}");
    }
}

const CS: &[f64] = &[1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];

#[test]
fn every_model_reaches_the_tolerance() {
    for (classes, spread) in [(2, 1.0), (3, 0.3), (3, 1.0), (6, 1.0)] {
        let (x, y) = clusters(120, classes, spread, 1);
        for (precision, tol) in [(Precision::Double, 1e-9), (Precision::Single, 1e-6)] {
            let mut request = multinomial(&x, &y, CS);
            request.folds = Folds::stratified(&y, 3, 0).unwrap();
            (request.precision, request.settings.tol) = (precision, tol);
            let weight: Vec<f64> = (0..y.len()).map(|i| [1.0, 0.3, 2.0, 5.0][i % 4]).collect();
            for weight in [None, Some(weight)] {
                request.tasks[0].weight = weight;
                let fit = fit(&request);
                for record in fit.records.iter().flatten() {
                    assert_eq!(record.status, Status::Converged, "{classes} classes, {precision:?}: {record:?}");
                    let certificate = record.certificate;
                    assert!(certificate.primal >= certificate.dual - certificate.noise && certificate.gap() <= tol);
                    assert!(record.b.iter().sum::<f64>().abs() < 1e-9);
                }
            }
        }
    }
}

/// A grid with far leaps, in falling order, and its last C alone: all from cold.
#[test]
fn large_c_is_reached_from_anywhere() {
    let (x, y) = clusters(120, 3, 1.0, 8);
    let path = fit(&multinomial(&x, &y, &[1e4, 1e-6]));
    let alone = fit(&multinomial(&x, &y, &[1e4]));
    for record in [&path.records[0][0], &path.records[0][1], &alone.records[0][0]] {
        assert_eq!(record.status, Status::Converged, "{record:?}");
    }
    let (a, b) = (path.records[0][0].certificate, alone.records[0][0].certificate);
    assert!((a.primal - b.primal).abs() <= 2e-9 * a.primal);
}

#[test]
fn two_classes_are_the_logistic_loss_at_twice_the_c() {
    let (x, y) = clusters(80, 2, 1.0, 2);
    let signs: Vec<f64> = y.iter().map(|y| 2.0 * y - 1.0).collect();
    let doubled: Vec<f64> = CS.iter().map(|c| 2.0 * c).collect();
    let ours = fit(&multinomial(&x, &y, CS));
    let binary = common::fit(&request(&x, 2, &signs, Loss::Logistic, Shape::Rbf, &doubled));
    for (c, at) in CS.iter().enumerate() {
        let (softmax, logistic) = (ours.records[0][c].certificate.primal, binary.records[0][c].certificate.primal);
        assert!((2.0 * softmax - logistic).abs() <= 2e-9 * logistic, "C = {at}");
    }
}

#[test]
fn folds_are_refits() {
    let (x, y) = clusters(60, 3, 1.0, 3);
    let fold = |k: usize| Fold {
        train: (0..60).filter(|i| i % 3 != k).collect(),
        test: (0..60).filter(|i| i % 3 == k).collect(),
    };
    let mut request = multinomial(&x, &y, &[0.1, 10.0]);
    request.folds = Folds::Splits((0..3).map(fold).collect());
    let ours = fit(&request);
    for k in 0..3 {
        let Fold { train, test } = fold(k);
        let sub_x: Vec<f64> = train.iter().flat_map(|&i| [x[2 * i], x[2 * i + 1]]).collect();
        let sub_y: Vec<f64> = train.iter().map(|&i| y[i]).collect();
        let naive = fit(&multinomial(&sub_x, &sub_y, &[0.1, 10.0]));
        for c in 0..2 {
            let (coef, b) = (naive.coefficients(c), naive.intercepts(c));
            assert_eq!(naive.coef[c], coef.concat());
            assert_eq!(naive.records[0][c].b, b);
            let mut f = Vec::new();
            for &i in &test {
                for class in 0..3 {
                    let row = |j: usize| {
                        let own =
                            common::naive_kernel(&kernel(Shape::Rbf), &x[2 * i..2 * i + 2], &sub_x[2 * j..2 * j + 2]);
                        coef[class][j] * own
                    };
                    f.push((0..train.len()).map(row).sum::<f64>() + b[class]);
                }
            }
            assert_close(&ours.oof[k][c], &f, 2.0 * reach(&ours, k, c));
        }
    }
}

#[test]
fn weights_are_repetitions() {
    let (x, y) = clusters(40, 3, 1.0, 4);
    let weight: Vec<f64> = (0..40).map(|i| [1.0, 0.0, 3.0][i % 3]).collect();
    let mut weighted = multinomial(&x, &y, &[0.1, 10.0]);
    weighted.tasks[0].weight = Some(weight.clone());
    let repeated: Vec<usize> = (0..40).flat_map(|i| std::iter::repeat_n(i, weight[i] as usize)).collect();
    let sub_x: Vec<f64> = repeated.iter().flat_map(|&i| [x[2 * i], x[2 * i + 1]]).collect();
    let sub_y: Vec<f64> = repeated.iter().map(|&i| y[i]).collect();
    let (a, b) = (fit(&weighted), fit(&multinomial(&sub_x, &sub_y, &[0.1, 10.0])));
    for c in 0..2 {
        let (a, b) = (&a.records[0][c], &b.records[0][c]);
        assert!((a.certificate.primal - b.certificate.primal).abs() <= 2e-9 * a.certificate.primal);
        assert_close(&a.b, &b.b, 1e-4);
    }
}

#[test]
fn low_rank_is_the_model_on_the_product_of_the_features() {
    let (x, y) = clusters(120, 4, 1.0, 9);
    let mut request = multinomial(&x, &y, CS);
    request.folds = Folds::stratified(&y, 3, 0).unwrap();
    let nystrom = Nystrom::builder(kernel(Shape::Rbf))
        .low_rank(LowRank::new(Landmarks::KMeans, 25).rank(20))
        .build(&request.x)
        .unwrap();
    let low_rank = fit(&with(&request, |r| r.kernel = (&nystrom).into()));
    assert!(low_rank.worst_gap() <= 1e-9);

    let z = Features::<f64>::compute(&nystrom, &request.x, Storage::Memory, &Control::default()).unwrap();
    let dot = |i: usize, j: usize| -> f64 { z.row(i).iter().zip(z.row(j)).map(|(a, b)| a * b).sum() };
    let product: Vec<f64> = (0..120 * 120).map(|at| dot(at / 120, at % 120)).collect();
    let mut exact = request.clone();
    exact.x = Rows::from_slice(&product, 120).unwrap();
    exact.kernel = kernel(Shape::Precomputed).into();
    let exact = fit(&exact);
    for c in 0..CS.len() {
        for fold in 0..3 {
            assert_close(&low_rank.oof[fold][c], &exact.oof[fold][c], 2.0 * reach(&exact, fold, c));
        }
        let (a, b) = (low_rank.records[3][c].certificate.primal, exact.records[3][c].certificate.primal);
        assert!((a - b).abs() <= 2e-9 * a, "{a} and {b}");
        assert_eq!(low_rank.coef[c].len(), 4 * 25);
    }
    assert_eq!(low_rank.gram_bytes, 120 * 20 * 8);
}

#[test]
fn stopping_early_is_a_status_with_a_gap() {
    let (x, y) = clusters(120, 3, 1.0, 5);
    let mut request = multinomial(&x, &y, &[10.0]);
    request.settings.max_iter = 1;
    let record = &fit(&request).records[0][0];
    assert_eq!(record.status, Status::MaxIter);
    assert!(record.certificate.gap() > 1e-9 && record.certificate.gap() <= 1.0);
    let budget = Control::new(Some(std::time::Duration::from_nanos(1)));
    assert!(matches!(kernelpath::fit(&request, &budget), Err(Error::TimeBudget { .. })));
    let stopped = Control::default();
    stopped.cancel();
    assert_eq!(kernelpath::fit(&request, &stopped).unwrap_err(), Error::Interrupted);
}

#[test]
fn threads_change_nothing() {
    let (x, y) = clusters(90, 3, 1.0, 6);
    let mut request = multinomial(&x, &y, CS);
    let one = fit(&request);
    request.threads = 2;
    assert_eq!(fit(&request).coef, one.coef);
}

#[test]
fn bad_input_is_an_error() {
    let (x, y) = clusters(30, 3, 1.0, 7);
    let refused = |change: &dyn Fn(&mut Request)| {
        let mut request = multinomial(&x, &y, &[1.0]);
        change(&mut request);
        kernelpath::fit(&request, &Control::default()).unwrap_err().to_string()
    };
    assert!(refused(&|r| r.tasks[0].y = r.tasks[0].y[1..].to_vec()).contains("y has length 29"));
    assert!(refused(&|r| r.tasks[0].weight = Some(vec![-1.0; 30])).contains("got -1 at row 0"));
    assert!(refused(&|r| r.folds = Folds::LeaveOneOut).contains("no leave-one-out"));
    assert!(refused(&|r| r.tasks[0].y = vec![0.0; 30]).contains("all 30 training rows have the same class"));
    assert!(refused(&|r| r.tasks[0].y = vec![usize::MAX as f64; 30]).contains("the data: no training row of class 0"));
    for value in [0.5, -1.0] {
        let message = refused(&|r| r.tasks[0].y[3] = value);
        assert_eq!(message, format!("classes must be whole numbers from 0 on, got {value} at row 3"));
    }
    let fold = Fold { train: (0..30).filter(|&i| y[i] == 2.0).collect(), test: vec![0] };
    let message = refused(&|r| r.folds = Folds::Splits(vec![fold.clone()]));
    assert!(message.contains("have the same class"), "{message}");
}

/// Without a class, a fold is the problem of the others, and the class has probability 0.
#[test]
fn a_fold_without_a_class_is_the_problem_of_the_others() {
    let (x, y) = clusters(60, 4, 1.0, 9);
    let train: Vec<usize> = (0..60).filter(|&i| y[i] != 1.0).collect();
    let test: Vec<usize> = (0..60).filter(|&i| y[i] == 1.0).collect();
    let mut request = multinomial(&x, &y, &[0.5, 5.0]);
    request.settings.tol = 1e-10;
    request.folds = Folds::Splits(vec![Fold { train: train.clone(), test: test.clone() }]);
    let with_all = fit(&request);
    let others: Vec<f64> = train.iter().map(|&i| if y[i] > 1.0 { y[i] - 1.0 } else { y[i] }).collect();
    let pick = |rows: &[usize]| rows.iter().flat_map(|&i| [x[2 * i], x[2 * i + 1]]).collect::<Vec<_>>();
    let (x_train, x_test) = (pick(&train), pick(&test));
    let mut request = multinomial(&x_train, &others, &[0.5, 5.0]);
    request.settings.tol = 1e-10;
    let alone = fit(&request);
    for c in 0..2 {
        let (there, here) = (&alone.records[0][c], &with_all.records[0][c]);
        assert!((there.certificate.primal - here.certificate.primal).abs() <= 1e-9 * there.certificate.primal);
        assert_eq!((here.status, here.b[1]), (Status::Converged, f64::NEG_INFINITY));
        let kernel = kernel(Shape::Rbf);
        let decision = |model: usize, row: usize| {
            let (a, b) = (&x_test[2 * row..2 * row + 2], alone.intercepts(c)[model]);
            let value = |(k, coef): (usize, &f64)| {
                let z = &x_train[2 * k..2 * k + 2];
                coef * (-kernel.gamma * ((a[0] - z[0]).powi(2) + (a[1] - z[1]).powi(2))).exp()
            };
            alone.coefficients(c)[model].iter().enumerate().map(value).sum::<f64>() + b
        };
        for (row, f) in with_all.oof[0][c].chunks_exact(4).enumerate() {
            assert_close(&[f[0], f[2], f[3]], &[decision(0, row), decision(1, row), decision(2, row)], 1e-3);
            let top = f.iter().fold(f64::NEG_INFINITY, |top, f| top.max(*f));
            assert_eq!((f[1] - top).exp(), 0.0);
        }
    }
}
