//! Bad input, interruption, time budgets.

mod common;

use std::time::{Duration, Instant};

use common::{data, fit, request};
use kernelpath::{
    Control, Error, Fold, Folds, Kernel, KernelFn, Loss, Place, Rows, Selection, Shape, Status, Svc, logspace, select,
};

fn error(change: impl FnOnce(&mut kernelpath::Request)) -> String {
    let (x, y) = data(20, 2, 0.3, 1);
    let mut request = request(&x, 2, &y, Loss::Hinge, Shape::Rbf, &[1.0]);
    change(&mut request);
    kernelpath::fit(&request, &Control::default()).unwrap_err().to_string()
}

#[test]
fn bad_input_is_named() {
    let (x, y) = data(20, 2, 0.3, 1);
    for (value, name) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        let mut bad = x.clone();
        bad[7] = value;
        let message = Svc::builder().fit((bad.as_slice(), 2), &y).unwrap_err().to_string();
        assert!(message.contains(&format!("X contains {name} at row 3, column 1")), "{message}");
    }
    assert!(error(|r| r.tasks[0].y = [1.0, -1.0].to_vec()).contains("y has length 2, but 20"));
    assert!(
        error(|r| r.tasks[0].y = [1.0; 20].to_vec()).contains("the data: all 20 training rows have the same class")
    );
    assert!(error(|r| r.tasks[0].y = [2.0; 20].to_vec()).contains("-1 or +1, got 2 at row 0"));
    assert!(error(|r| r.cs = &[]).contains("cs is empty"));
    assert!(error(|r| r.cs = &[1.0, -0.1]).contains("got -0.1 (cs[1])"));
    assert!(error(|r| r.cs = &[f64::NAN]).contains("got NaN (cs[0])"));
    assert!(error(|r| r.settings.tol = 0.0).contains("tol"));
    assert!(error(|r| r.settings.max_iter = 0).contains("max_iter"));
    assert!(error(|r| r.tasks[0].weight = Some(vec![-1.0; r.tasks[0].y.len()])).contains("got -1 at row 0"));
    assert!(error(|r| r.tasks[0].weight = Some(vec![0.0; r.tasks[0].y.len()])).contains("all weights are 0"));
    assert!(error(|r| r.tasks[0].weight = Some(vec![1.0])).contains("the weights"));
    assert!(error(|r| r.tasks[0].rows = Some((0..r.tasks[0].y.len()).rev().collect())).contains("rising order"));
    assert!(
        error(|r| r.tasks[0].objective = Loss::Quantile { tau: 1.5 }.into())
            .contains("tau must be between 0 and 1, got 1.5")
    );
    let one_class = (0..20).filter(|&i| data(20, 2, 0.3, 1).1[i] > 0.0).collect::<Vec<_>>();
    let folds = |train: Vec<usize>| {
        Folds::Splits(vec![Fold { train: (0..10).collect(), test: vec![11] }, Fold { train, test: vec![0] }])
    };
    assert!(error(|r| r.folds = folds(one_class)).contains("fold 1: all"));
    assert!(error(|r| r.folds = folds(vec![])).contains("fold 1: 0 training"));
    assert!(error(|r| r.folds = folds(vec![99])).contains("row 99 is out of range"));
}

#[test]
fn precomputed_matrices_are_checked() {
    let k = [1.0, 0.5, 0.2, 0.5, 1.0, 0.1, 0.3, 0.1, 1.0];
    let y = [1.0, -1.0, 1.0];
    let mut request = request(&k, 3, &y, Loss::Hinge, Shape::Rbf, &[1.0]);
    request.kernel = KernelFn::new(Shape::Precomputed, 1.0).unwrap().into();
    let message = kernelpath::fit(&request, &Control::default()).unwrap_err().to_string();
    assert!(message.contains("symmetric") && message.contains("K[2, 0] = 0.3"), "{message}");
    request.x = Rows::from_slice(&k[..6], 2).unwrap();
    let message = kernelpath::fit(&request, &Control::default()).unwrap_err().to_string();
    assert!(message.contains("must be square, got 3 x 2"), "{message}");
}

#[test]
fn too_large_for_memory_is_said_before_allocating() {
    let n = 3_000_000;
    let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
    let y: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let started = Instant::now();
    match Svc::builder().fit((x.as_slice(), 1), &y) {
        Err(Error::Memory { rows, need, available, .. }) => {
            assert_eq!(rows, n);
            assert!(need > available && need > 30_000_000_000_000);
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn many_machines_are_planned_for() {
    // A small matrix, but the values of 1000 machines at 100 000 values of C.
    let n = 3000;
    let x: Vec<f64> = (0..n).map(|i| (0.37 * i as f64).sin()).collect();
    let cs = logspace(1e-3, 1e3, 100_000).unwrap();
    let mut request = request(&x, 1, &[1.0, -1.0], Loss::Hinge, Shape::Rbf, &cs);
    let task = |k: usize| request.tasks[0].clone().on_rows(Some(vec![2 * k, 2 * k + 1]));
    request.tasks = (0..1000).map(task).collect();
    let fold = Fold { train: (0..n).collect(), test: (0..n).collect() };
    request.folds = Folds::Splits(vec![fold]);
    let started = Instant::now();
    match kernelpath::fit(&request, &Control::default()) {
        Err(Error::Memory { need, available, .. }) => assert!(need > available && need > 2_000_000_000_000),
        other => panic!("{:?}", other.map(|_| ())),
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn names_and_parameters() {
    let message = Shape::from_name("gauss", 3, 0.0).unwrap_err().to_string();
    assert!(message.contains("gauss") && message.contains("rbf, laplacian, poly"), "{message}");
    assert!(KernelFn::new(Shape::Rbf, -1.0).is_err());
    let rows = [1.0; 10];
    assert!(Kernel::rbf(kernelpath::Bandwidth::Sigest).resolve(&Rows::from_slice(&rows, 1).unwrap(), None, 0).is_err());
    assert!(Kernel::rbf(kernelpath::Bandwidth::Scale).resolve(&Rows::from_slice(&rows, 1).unwrap(), None, 0).is_err());
    assert!(Rows::from_slice(&rows, 3).is_err());
    assert!(Rows::from_slice(&[], 3).is_err());
    let (x, y) = data(20, 2, 0.3, 1);
    let svc = Svc::builder().cs([1.0]).cv(2).fit((x.as_slice(), 2), &y).unwrap();
    let message = svc.predict((&x[..9], 3)).unwrap_err().to_string();
    assert!(message.contains("3 features, but the model was fitted with 2"), "{message}");
    assert!(Svc::builder().folds(Folds::None).fit((x.as_slice(), 2), &y).is_err());
    assert!(Svc::builder().cv(1).fit((x.as_slice(), 2), &y).is_err());
}

#[test]
fn interruption_is_heard_at_once() {
    // A kernel matrix and paths that would take minutes.
    for (n, p) in [(6000, 400), (3000, 2)] {
        let (x, y) = data(n, p, 0.0, 2);
        let cs = logspace(1e-3, 1e5, 2000).unwrap();
        let mut request = request(&x, p, &y, Loss::Hinge, Shape::Laplacian, &cs);
        request.threads = 2;
        request.folds = Folds::stratified(&y, 10, 0).unwrap();
        let control = Control::default();
        std::thread::scope(|scope| {
            let handle = scope.spawn(|| kernelpath::fit(&request, &control).map(|_| Instant::now()));
            std::thread::sleep(Duration::from_millis(500));
            control.cancel();
            let asked = Instant::now();
            assert_eq!(handle.join().unwrap(), Err(Error::Interrupted));
            assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
        });
    }
}

#[test]
fn a_time_budget_returns_what_there_is() {
    let (x, y) = data(1500, 3, 0.1, 3);
    // More C's than any machine solves within the budget.
    let cs = logspace(1e-4, 1e5, 10_000).unwrap();
    let mut request = request(&x, 3, &y, Loss::Hinge, Shape::Rbf, &cs);
    request.folds = Folds::stratified(&y, 5, 0).unwrap();
    let control = Control::new(Some(Duration::from_millis(700)));
    let started = Instant::now();
    let fit = kernelpath::fit(&request, &control).unwrap().remove(0);
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert!(fit.timed_out);
    let done = fit.records.iter().flatten().filter(|r| r.status == Status::Converged).count();
    assert!(done > 0 && done < fit.records.len() * cs.len());
    // All folds got equally far, so the first C's have a score.
    let scores = &fit.scores;
    let places: Vec<Place> = cs.iter().map(|&c| Place::new(c, 1.0)).collect();
    assert!(select(scores, &[], &places, Selection::Best).is_some());
    for record in fit.records.iter().flatten() {
        assert!(record.certificate.gap() >= -1e-9);
        assert!(record.status != Status::NotRun || record.certificate.gap() == f64::INFINITY);
    }
}

#[test]
fn indefinite_kernels_end_with_a_status() {
    let (x, y) = data(60, 3, 0.4, 4);
    let cs = [1e-6, 1e-2, 1.0, 1e2, 1e6];
    let mut request = request(&x, 3, &y, Loss::Hinge, Shape::Sigmoid { coef0: 1.0 }, &cs);
    request.settings.max_iter = 20_000;
    for record in &fit(&request).records[0] {
        assert_eq!(record.status, Status::Indefinite);
        assert!(record.certificate.gap().is_nan() && record.certificate.primal.is_finite());
    }
}

#[test]
fn selection_rules() {
    let cs = [10.0, 1.0, 0.1].map(|c| Place::new(c, 1.0));
    let scores = vec![vec![0.9, 0.9, 0.80], vec![0.9, 0.9, 0.86], vec![0.6, 0.6, 0.70]];
    assert_eq!(select(&scores, &[], &cs, Selection::Best), Some(1));
    assert_eq!(select(&scores, &[], &cs, Selection::OneStandardError), Some(2));
    let unfinished = vec![vec![0.9, f64::NAN, f64::NAN], vec![0.9, 0.99, f64::NAN]];
    assert_eq!(select(&unfinished, &[], &cs, Selection::Best), Some(0));
    assert_eq!(select(&[vec![f64::NAN; 3]], &[], &cs, Selection::Best), None);
}

#[test]
fn duplicates_of_the_data_change_nothing_but_the_scale() {
    let (x, y) = data(50, 2, 0.3, 5);
    let (twice_x, twice_y) = ([x.clone(), x.clone()].concat(), [y.clone(), y.clone()].concat());
    let once = fit(&request(&x, 2, &y, Loss::Hinge, Shape::Rbf, &[2.0]));
    let twice = fit(&request(&twice_x, 2, &twice_y, Loss::Hinge, Shape::Rbf, &[1.0]));
    for i in 0..50 {
        assert!((twice.coef[0][i] + twice.coef[0][i + 50] - once.coef[0][i]).abs() < 1e-6);
        assert_eq!(twice.coef[0][i], twice.coef[0][i + 50]);
    }
}

#[test]
fn targets_far_from_one_are_learnt_as_those_near_it() {
    let (x, _) = data(90, 2, 0.3, 5);
    let noise = |i: usize| 0.1 * (1.7 * i as f64).sin();
    let y: Vec<f64> = x.chunks(2).enumerate().map(|(i, row)| row[0].sin() + noise(i)).collect();
    for scale in [1e-60, 1e-30, 1e-10, 1.0, 1e30] {
        let y: Vec<f64> = y.iter().map(|y| scale * y).collect();
        let cs: Vec<f64> = logspace(1e-2, 1e2, 5).unwrap().iter().map(|c| scale * c).collect();
        for loss in [Loss::Quantile { tau: 0.5 }, Loss::EpsilonInsensitive { epsilon: 0.1 * scale }] {
            let fit = fit(&request(&x, 2, &y, loss, Shape::Rbf, &cs));
            assert!(fit.worst_gap() <= 1e-6, "{loss:?} at {scale}: {}", fit.worst_gap());
        }
    }
}
