//! A fold of a classifier is the refit on its training rows: it balances the classes of these, and does without classes
//! that are not among them.

mod by_hand;

use std::sync::Arc;

use by_hand::{TOL, assert_close, blobs, rbf, some};
use faer::Mat;
use kernelpath::{
    Bandwidth, Classifier, Control, Error, FittedClassifier, Fold, Folds, Kernel, Loss, LowRank, Method, MultiClass,
    Request, RowClasses, Rows, RowsBuf, Status, Task, Tune, fit,
};

const CS: [f64; 3] = [1.0, 4.0, 20.0];

/// Blobs of classes of n, n/2, n/3, … rows, in an order that has to do with the class.
fn unequal(n: usize, classes: usize, seed: u64) -> (Vec<f64>, Vec<usize>) {
    let (x, class) = blobs(n * classes, classes, seed);
    let mut rows: Vec<usize> = (0..n * classes).filter(|i| (i / classes).is_multiple_of(class[*i] + 1)).collect();
    rows.sort_by_key(|i| (7 * i) % (n * classes) + n * class[*i]);
    (some(&x, 2, &rows), rows.iter().map(|&i| class[i]).collect())
}

/// The rows in `k` blocks, one after the other.
fn blocks(n: usize, k: usize) -> Vec<Fold> {
    let rows = |fold: usize, tested: bool| (0..n).filter(|i| (i * k / n == fold) == tested).collect();
    (0..k).map(|fold| Fold { train: rows(fold, false), test: rows(fold, true) }).collect()
}

/// Every third row as a landmark.
fn thirds(x: &[f64]) -> LowRank {
    LowRank::points(RowsBuf::Dense(Mat::from_fn(x.len() / 6, 2, |i, j| x[6 * i + j])))
}

fn builder(of: Classifier) -> Classifier {
    of.kernel(Kernel::rbf(Bandwidth::Value(0.7))).tol(TOL)
}

/// The model of one C on some rows, whose classes are balanced by hand.
fn balanced_by_hand(
    of: &Classifier,
    x: &[f64],
    class: &[usize],
    weight: &[f64],
    rows: &[usize],
    c: f64,
) -> FittedClassifier<usize> {
    let total = |c: usize| rows.iter().filter(|&&i| class[i] == c).map(|&i| weight[i]).sum::<f64>();
    let all: f64 = rows.iter().map(|&i| weight[i]).sum();
    let there = (0..9).filter(|c| total(*c) > 0.0).count() as f64;
    let weight = rows.iter().map(|&i| weight[i] * all / (there * total(class[i]))).collect::<Vec<_>>();
    let own: Vec<usize> = rows.iter().map(|&i| class[i]).collect();
    of.clone().weights(weight).cs([c]).folds(Folds::None).fit((&some(x, 2, rows)[..], 2), &own).unwrap()
}

#[test]
fn folds_balance_their_own_training_rows() {
    let machines = [
        (Classifier::svm(), 2),
        (Classifier::logistic(), 2),
        (Classifier::dwd(), 2),
        (Classifier::squared_svm().multi_class(MultiClass::OneVsRest), 3),
        (Classifier::svm(), 3),
        (Classifier::multinomial(), 3),
    ];
    for (of, classes) in machines {
        let (x, class) = unequal(40, classes, 5);
        let n = class.len();
        let weight: Vec<f64> = (0..n).map(|i| [1.0, 2.0, 0.5][i % 3]).collect();
        let (of, splits) = (builder(of), blocks(n, 4));
        let balanced = of.clone().balanced().weights(weight.clone()).cs(CS);
        let model = balanced.folds(Folds::Splits(splits.clone())).fit((&x[..], 2), &class).unwrap();
        assert!(model.worst_gap() <= TOL);
        let outputs = if classes == 2 { 1 } else { classes };
        let held_out = model.out_of_fold().unwrap();
        for (fold, Fold { train, test }) in splits.iter().enumerate() {
            let counts: Vec<usize> = (0..classes).map(|c| train.iter().filter(|&&i| class[i] == c).count()).collect();
            assert!(counts.iter().any(|count| *count != counts[0]), "{counts:?}");
            for (place, c) in CS.into_iter().enumerate() {
                let twin = balanced_by_hand(&of, &x, &class, &weight, train, c);
                let at = some(&x, 2, test);
                let predicted = twin.predict((&at[..], 2)).unwrap();
                let total: f64 = test.iter().map(|&i| weight[i]).sum();
                let right = test.iter().zip(&predicted).filter(|(i, p)| class[**i] == **p);
                let right = right.map(|(&i, _)| weight[i]).sum::<f64>() / total;
                assert!((model.scores()[fold][place] - right).abs() < 1e-12);
                if c == model.c() {
                    let values = twin.decision_function((&at[..], 2)).unwrap();
                    let own: Vec<f64> =
                        test.iter().flat_map(|&i| held_out[i * outputs..(i + 1) * outputs].to_vec()).collect();
                    assert_close(&own, &values, 2e-3);
                }
            }
        }
        assert!(model.verify((&x[..], 2), &class).unwrap().iter().all(|proof| proof.gap() <= 2.0 * TOL));
    }
}

#[test]
fn folds_at_low_rank_balance_their_rows_too() {
    let (x, class) = unequal(40, 2, 7);
    let n = class.len();
    let of = builder(Classifier::svm()).low_rank(thirds(&x)).tol(1e-8);
    let splits = blocks(n, 3);
    let model = of.clone().balanced().cs(CS).folds(Folds::Splits(splits.clone())).fit((&x[..], 2), &class).unwrap();
    for (fold, Fold { train, test }) in splits.iter().enumerate() {
        for (place, c) in CS.into_iter().enumerate() {
            let twin = balanced_by_hand(&of, &x, &class, &vec![1.0; n], train, c);
            let predicted = twin.predict((&some(&x, 2, test)[..], 2)).unwrap();
            let right = test.iter().zip(&predicted).filter(|(i, p)| class[**i] == **p).count() as f64;
            assert!((model.scores()[fold][place] - right / test.len() as f64).abs() < 1e-12);
        }
    }
}

#[test]
fn leaving_out_a_row_balances_the_others_anew() {
    let of_all = [
        (Classifier::svm(), 2),
        (Classifier::logistic(), 2),
        (Classifier::svm(), 3),
        (Classifier::dwd().multi_class(MultiClass::OneVsRest), 3),
    ];
    for (of, classes) in of_all {
        let (x, class) = unequal(12, classes, 3);
        let n = class.len();
        let weight: Vec<f64> = (0..n).map(|i| [1.0, 3.0][i % 2]).collect();
        let of = builder(of);
        let model =
            of.clone().balanced().weights(weight.clone()).cs(CS).leave_one_out().fit((&x[..], 2), &class).unwrap();
        assert!(model.worst_gap() <= TOL);
        let outputs = if classes == 2 { 1 } else { classes };
        let held_out = model.out_of_fold().unwrap();
        for i in 0..n {
            let rest: Vec<usize> = (0..n).filter(|j| *j != i).collect();
            let twin = balanced_by_hand(&of, &x, &class, &weight, &rest, model.c());
            let f = twin.decision_function((&x[2 * i..2 * i + 2], 2)).unwrap();
            assert_close(&held_out[i * outputs..(i + 1) * outputs], &f, 2e-3);
        }
    }
}

/// The rows sorted by class.
fn sorted(n: usize, classes: usize) -> (Vec<f64>, Vec<usize>) {
    let (x, class) = blobs(n, classes, 4);
    let mut rows: Vec<usize> = (0..n).collect();
    rows.sort_by_key(|&i| class[i]);
    (some(&x, 2, &rows), rows.iter().map(|&i| class[i]).collect())
}

#[test]
fn a_fold_does_without_classes_that_it_does_not_train() {
    let machines = [
        Classifier::svm(),
        Classifier::svm().multi_class(MultiClass::OneVsRest),
        Classifier::squared_svm(),
        Classifier::logistic(),
        Classifier::dwd().multi_class(MultiClass::OneVsRest),
        Classifier::multinomial(),
    ];
    let each = machines.iter().flat_map(|of| [(of, false), (of, true)]);
    for (of, at_low_rank) in each {
        for (classes, k) in [(3, 3), (4, 4), (4, 6)] {
            let (x, class) = sorted(60, classes);
            let (of, splits) = (builder(of.clone()).tol(1e-8), blocks(60, k));
            let of = if at_low_rank { of.low_rank(thirds(&x)) } else { of };
            let model = of.clone().cs(CS).folds(Folds::Splits(splits.clone())).fit((&x[..], 2), &class).unwrap();
            for (fold, Fold { train, test }) in splits.iter().enumerate() {
                let own: Vec<usize> = train.iter().map(|&i| class[i]).collect();
                for (place, c) in CS.into_iter().enumerate() {
                    let twin = of.clone().cs([c]).folds(Folds::None).fit((&some(&x, 2, train)[..], 2), &own).unwrap();
                    let predicted = twin.predict((&some(&x, 2, test)[..], 2)).unwrap();
                    let right = test.iter().zip(&predicted).filter(|(i, p)| class[**i] == **p).count() as f64;
                    assert!((model.scores()[fold][place] - right / test.len() as f64).abs() < 1e-12);
                }
            }
            assert!(model.out_of_fold().unwrap().iter().all(|f| f.is_finite()));
            let records = model.paths()[0].iter().flat_map(|path| path.records.iter().flatten());
            assert!(records.into_iter().all(|record| record.status == Status::Converged));
            assert!(model.worst_gap() <= 1e-8);
        }
    }
}

#[test]
fn machines_that_choose_each_and_probabilities_do_with_missing_classes() {
    let (x, class) = sorted(60, 3);
    for method in [Method::Sigmoid, Method::Isotonic] {
        for multi_class in [MultiClass::OneVsOne, MultiClass::OneVsRest] {
            let of = builder(Classifier::svm()).multi_class(multi_class).tune(Tune::Each).probability(method).cs(CS);
            let model = of.folds(Folds::Splits(blocks(60, 4))).fit((&x[..], 2), &class).unwrap();
            assert!(model.predict_proba((&x[..], 2)).unwrap().iter().all(|p| (0.0..=1.0).contains(p)));
        }
    }
}

/// A machine whose fold has one of its classes is a constant: its loss is 0, and it votes for this class.
#[test]
fn a_machine_without_two_classes_is_a_constant() {
    let (x, class) = sorted(30, 3);
    let classes = Arc::new(RowClasses::new(class.clone(), None));
    for (loss, constant) in [(Loss::Hinge, 1.0), (Loss::Logistic, 750.0), (Loss::Dwd, 1.0)] {
        // Classes 0 against 1, 0 against 2, and 1 against 2.
        let machine = |(a, b): (usize, usize)| {
            let rows: Vec<usize> = (0..30).filter(|&i| class[i] == a || class[i] == b).collect();
            let y: Vec<f64> = rows.iter().map(|&i| if class[i] == a { 1.0 } else { -1.0 }).collect();
            Task::new(loss, &y).of_classes(Some(classes.clone())).on_rows(Some(rows))
        };
        let tasks = [(0, 1), (0, 2), (1, 2)].map(machine).to_vec();
        let mut request = Request::new(Rows::from_slice(&x, 2).unwrap(), tasks, rbf(0.7), &CS);
        request.folds = Folds::Splits(blocks(30, 3)); // fold k holds out class k
        let fits = fit(&request, &Control::default()).unwrap();
        for (m, fold, sign) in [(0, 0, -1.0), (0, 1, 1.0), (1, 0, -1.0), (1, 2, 1.0), (2, 1, -1.0), (2, 2, 1.0)] {
            for (record, values) in fits[m].records[fold].iter().zip(&fits[m].oof[fold]) {
                assert_eq!((record.status, record.certificate.gap()), (Status::Converged, 0.0));
                assert_eq!(values[..], vec![sign * constant; 10]);
            }
        }
        assert!(fits[0].oof[2].iter().flatten().all(|f| f.abs() < 10.0), "this fold has both classes");
        // Nothing to learn from, if the rows are of one class.
        request.folds = Folds::Splits(vec![Fold { train: (0..10).collect(), test: vec![10] }]);
        assert_eq!(fit(&request, &Control::default()).unwrap_err(), Error::OneClass { fold: Some(0), rows: 10 });
    }
}

#[test]
fn a_fold_of_two_classes_that_holds_one_is_refused() {
    let (x, class) = sorted(30, 2);
    let message = builder(Classifier::svm())
        .folds(Folds::Splits(blocks(30, 2)))
        .fit((&x[..], 2), &class)
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("fold 0: all 15 training rows have the same class, and two are needed"), "{message}");
}
