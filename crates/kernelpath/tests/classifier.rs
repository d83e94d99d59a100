//! Classifiers against `fit` and choices written by hand.

mod by_hand;

use std::time::Duration;

use by_hand::{TOL, assert_close, best, blobs, fits, folds, rbf, side_by_side, some, values};
use faer::Mat;
use kernelpath::{
    Bandwidth, Calibration, Classifier, Control, Error, Fold, Folds, Gammas, Kernel, LabelValue, Loss, LowRank, Method,
    MultiClass, Nystrom, Objective, Request, Rows, Scoring, Selection, Shape, Solver, Task, Tune, fit,
};

const CS: [f64; 3] = [0.1, 1.0, 10.0];

fn signs(class: &[usize]) -> Vec<f64> {
    class.iter().map(|c| if *c == 1 { 1.0 } else { -1.0 }).collect()
}

fn machines() -> [(Classifier, Loss); 4] {
    [
        (Classifier::svm(), Loss::Hinge),
        (Classifier::squared_svm(), Loss::SquaredHinge),
        (Classifier::dwd(), Loss::Dwd),
        (Classifier::logistic(), Loss::Logistic),
    ]
}

#[test]
fn two_classes_are_one_fit_and_the_best_place_of_the_grid() {
    let (x, class) = blobs(80, 2, 1);
    let (y, splits, gammas) = (signs(&class), Folds::Splits(folds(80, 4)), [0.3, 3.0]);
    for (builder, loss) in machines() {
        let model = builder.gammas(gammas).cs(CS).folds(splits.clone()).tol(TOL).fit((&x[..], 2), &class).unwrap();
        let paths: Vec<_> =
            gammas.iter().map(|g| fits(&x, 2, vec![Task::new(loss, &y)], *g, &CS, splits.clone()).remove(0)).collect();
        let scores = side_by_side(&paths.iter().map(|path| path.scores.clone()).collect::<Vec<_>>());
        let place = best(&scores, &CS);
        let (path, c) = (&paths[place / 3], place % 3);
        assert_eq!(model.scores(), scores, "{loss:?}");
        assert_eq!((model.c(), model.gamma()), (CS[c], Some(gammas[place / 3])));
        let f = values(&x, &x, 2, gammas[place / 3], &path.coef[c], path.intercepts(c)[0]);
        assert_close(&model.decision_function((&x[..], 2)).unwrap(), &f, 1e-9);
        let expected: Vec<usize> = f.iter().map(|f| usize::from(*f > 0.0)).collect();
        assert_eq!(model.predict((&x[..], 2)).unwrap(), expected);
        assert!(model.worst_gap() <= TOL);
        let proof = model.verify((&x[..], 2), &class).unwrap();
        assert!(proof.len() == 1 && proof[0].gap() <= 2.0 * TOL, "{:?}", proof[0]);
        let right = class.iter().zip(&expected).filter(|(a, b)| a == b).count() as f64 / 80.0;
        assert!((model.score((&x[..], 2), &class).unwrap() - right).abs() < 1e-15);
        assert_eq!(model.paths().len(), 2);
    }
}

/// Values of the machines of a place in the grid at some rows, each fitted by itself on `train`: `[machine][row]`.
fn machine_values(
    x: &[f64],
    class: &[usize],
    train: &[usize],
    at: &[f64],
    pairs: &[(usize, Option<usize>)],
    c: f64,
) -> Vec<Vec<f64>> {
    let one = |&(first, second): &(usize, Option<usize>)| {
        let is_own = |&&i: &&usize| class[i] == first || second.is_none_or(|second| class[i] == second);
        let rows: Vec<usize> = train.iter().filter(is_own).copied().collect();
        let y: Vec<f64> = rows.iter().map(|&i| if class[i] == first { 1.0 } else { -1.0 }).collect();
        let own = some(x, 2, &rows);
        let path = fits(&own, 2, vec![Task::new(Loss::Hinge, &y)], 0.7, &[c], Folds::None).remove(0);
        values(at, &own, 2, 0.7, &path.coef[0], path.intercepts(0)[0])
    };
    pairs.iter().map(one).collect()
}

/// The class of each row: by votes of pairs, where the sum of values decides between equal votes, or by the largest
/// value.
fn winners(values: &[Vec<f64>], pairs: &[(usize, Option<usize>)], classes: usize) -> Vec<usize> {
    let of_row = |i: usize| {
        let (mut count, mut sum) = (vec![0; classes], vec![0.0; classes]);
        for (values, &(first, second)) in values.iter().zip(pairs) {
            let Some(second) = second else {
                sum[first] = values[i];
                continue;
            };
            count[if values[i] > 0.0 { first } else { second }] += 1;
            sum[first] += values[i];
            sum[second] -= values[i];
        }
        (0..classes).max_by(|&a, &b| count[a].cmp(&count[b]).then(sum[a].total_cmp(&sum[b]))).unwrap()
    };
    (0..values[0].len()).map(of_row).collect()
}

#[test]
fn several_classes_are_machines_fitted_by_themselves() {
    let (x, class) = blobs(96, 4, 2);
    let splits = folds(96, 3);
    let all: Vec<usize> = (0..96).collect();
    for multi_class in [MultiClass::OneVsOne, MultiClass::OneVsRest] {
        let pairs: Vec<(usize, Option<usize>)> = match multi_class {
            MultiClass::OneVsOne => (0..4).flat_map(|a| (a + 1..4).map(move |b| (a, Some(b)))).collect(),
            _ => (0..4).map(|a| (a, None)).collect(),
        };
        let model = Classifier::svm()
            .multi_class(multi_class)
            .kernel(Kernel::rbf(Bandwidth::Value(0.7)))
            .cs(CS)
            .folds(Folds::Splits(splits.clone()))
            .tol(TOL)
            .fit((&x[..], 2), &class)
            .unwrap();
        let score = |fold: &Fold, c: f64| {
            let at = some(&x, 2, &fold.test);
            let predicted = winners(&machine_values(&x, &class, &fold.train, &at, &pairs, c), &pairs, 4);
            predicted.iter().zip(&fold.test).filter(|(p, i)| **p == class[**i]).count() as f64 / at.len() as f64 * 2.0
        };
        let scores: Vec<Vec<f64>> = splits.iter().map(|fold| CS.iter().map(|c| score(fold, *c)).collect()).collect();
        for (found, expected) in model.scores().iter().zip(&scores) {
            assert_close(found, expected, 1e-12);
        }
        let c = CS[best(&scores, &CS)];
        assert_eq!(model.c(), c);
        let by_machine = machine_values(&x, &class, &all, &x, &pairs, c);
        let ours = model.machine_values((&x[..], 2)).unwrap();
        for (m, expected) in by_machine.iter().enumerate() {
            let found: Vec<f64> = ours[m..].iter().step_by(pairs.len()).copied().collect();
            assert_close(&found, expected, 1e-5);
        }
        assert_eq!(model.predict((&x[..], 2)).unwrap(), winners(&by_machine, &pairs, 4));
        assert_eq!(model.decision_function((&x[..], 2)).unwrap().len(), 96 * 4);
        let proofs = model.verify((&x[..], 2), &class).unwrap();
        assert_eq!(proofs.len(), pairs.len());
        assert!(proofs.iter().all(|proof| proof.gap() <= 2.0 * TOL));
        assert_eq!(model.pairs().is_some(), multi_class == MultiClass::OneVsOne);
    }
}

#[test]
fn machines_that_choose_each_take_their_own_best_c() {
    let (x, class) = blobs(90, 3, 3);
    let splits = Folds::Splits(folds(90, 4));
    let builder = Classifier::svm().tune(Tune::Each).gammas([0.3, 2.0]).cs(CS).folds(splits).tol(TOL);
    let model = builder.fit((&x[..], 2), &class).unwrap();
    let of_machine = |g: usize, m: usize| &model.paths()[g][m].scores;
    // γ: the largest mean over the machines of their best mean score.
    let mean = |scores: &[Vec<f64>], c: usize| scores.iter().map(|fold| fold[c]).sum::<f64>() / 4.0;
    let top = |g: usize, m: usize| (0..3).map(|c| mean(of_machine(g, m), c)).fold(0.0, f64::max);
    let total = |g: usize| (0..3).map(|m| top(g, m)).sum::<f64>();
    let gamma = usize::from(total(1) > total(0));
    assert_eq!(model.gamma(), Some([0.3, 2.0][gamma]));
    let expected: Vec<f64> = (0..3).map(|m| CS[best(of_machine(gamma, m), &CS)]).collect();
    assert_eq!(model.chosen_cs(), expected);
    assert_eq!((model.all_scores().len(), model.best_scores().len()), (3, 3));
}

#[test]
fn multinomial_is_one_fit_of_all_classes() {
    let (x, class) = blobs(75, 3, 4);
    let splits = Folds::Splits(folds(75, 5));
    let kernel = Kernel::rbf(Bandwidth::Value(0.7));
    let model = Classifier::multinomial()
        .kernel(kernel)
        .cs(CS)
        .folds(splits.clone())
        .tol(TOL)
        .fit((&x[..], 2), &class)
        .unwrap();
    let y: Vec<f64> = class.iter().map(|c| *c as f64).collect();
    let path = fits(&x, 2, vec![Task::new(Objective::Multinomial, &y)], 0.7, &CS, splits).remove(0);
    let c = best(&path.scores, &CS);
    assert_eq!((model.scores(), model.c()), (&path.scores[..], CS[c]));
    let columns: Vec<Vec<f64>> =
        (0..3).map(|k| values(&x, &x, 2, 0.7, path.coefficients(c)[k], path.intercepts(c)[k])).collect();
    let f: Vec<f64> = (0..75).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
    assert_close(&model.decision_function((&x[..], 2)).unwrap(), &f, 1e-9);
    let softmax = |row: &[f64]| {
        let total: f64 = row.iter().map(|f| f.exp()).sum();
        row.iter().map(|f| f.exp() / total).collect::<Vec<_>>()
    };
    let p: Vec<f64> = f.chunks(3).flat_map(softmax).collect();
    assert_close(&model.predict_proba((&x[..], 2)).unwrap(), &p, 1e-9);
    let logs: Vec<f64> = p.iter().map(|p| p.ln()).collect();
    assert_close(&model.predict_log_proba((&x[..], 2)).unwrap(), &logs, 1e-9);
    assert!(model.verify((&x[..], 2), &class).unwrap()[0].gap() <= 2.0 * TOL);
    // Two classes are the logistic machine.
    let two: Vec<usize> = class.iter().map(|c| c % 2).collect();
    let fit =
        |builder: Classifier| builder.cs(CS).fit((&x[..], 2), &two).unwrap().decision_function((&x[..], 2)).unwrap();
    assert_eq!(fit(Classifier::multinomial()), fit(Classifier::logistic()));
}

/// The map of one machine, from its out-of-fold values at the C of index `c`.
fn calibration(path: &kernelpath::PathFit, c: usize, class: &[usize], first: usize, rows: &[usize]) -> Calibration {
    let mut held_out = vec![f64::NAN; class.len()];
    for (by_c, test) in path.oof.iter().zip(&path.test) {
        test.iter().zip(&by_c[c]).for_each(|(&row, &f)| held_out[row] = f);
    }
    let scores: Vec<f64> = rows.iter().map(|&i| held_out[i]).collect();
    let positive: Vec<bool> = rows.iter().map(|&i| class[i] == first).collect();
    Calibration::fit(Method::Sigmoid, &scores, &positive, None).unwrap()
}

#[test]
fn probabilities_are_calibrated_on_held_out_rows() {
    let (x, class) = blobs(90, 2, 5);
    let all: Vec<usize> = (0..90).collect();
    for method in [Method::Sigmoid, Method::Isotonic, Method::Temperature] {
        let model = Classifier::svm().cs(CS).probability(method).fit((&x[..], 2), &class).unwrap();
        let c = CS.iter().position(|c| *c == model.c()).unwrap();
        if method == Method::Sigmoid {
            assert_eq!(model.calibrations(), [calibration(model.path(), c, &class, 1, &all)]);
        }
        let f = model.decision_function((&x[..], 2)).unwrap();
        let p = model.predict_proba((&x[..], 2)).unwrap();
        for (f, p) in f.iter().zip(p.chunks(2)) {
            assert_eq!(p[1], model.calibrations()[0].probability(*f));
            assert!((p[0] + p[1] - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn probabilities_of_several_classes_are_normalised_or_coupled() {
    let (x, class) = blobs(120, 3, 6);
    let all: Vec<usize> = (0..120).collect();
    let builder = Classifier::dwd().cs(CS).probability(Method::Sigmoid);
    let model = builder.clone().multi_class(MultiClass::OneVsRest).fit((&x[..], 2), &class).unwrap();
    let c = CS.iter().position(|c| *c == model.c()).unwrap();
    let maps: Vec<Calibration> = (0..3).map(|m| calibration(&model.paths()[0][m], c, &class, m, &all)).collect();
    assert_eq!(model.calibrations(), maps);
    let f = model.machine_values((&x[..], 2)).unwrap();
    let normalised = |row: &[f64]| {
        let p: Vec<f64> = row.iter().zip(&maps).map(|(f, map)| map.probability(*f)).collect();
        p.iter().map(|own| own / p.iter().sum::<f64>()).collect::<Vec<_>>()
    };
    let expected: Vec<f64> = f.chunks(3).flat_map(normalised).collect();
    assert_close(&model.predict_proba((&x[..], 2)).unwrap(), &expected, 1e-12);

    let model = builder.fit((&x[..], 2), &class).unwrap();
    let c = CS.iter().position(|c| *c == model.c()).unwrap();
    let pairs = model.pairs().unwrap().to_vec();
    let of_pair = |(m, &(a, b)): (usize, &(usize, usize))| {
        let rows: Vec<usize> = all.iter().copied().filter(|&i| class[i] == a || class[i] == b).collect();
        calibration(&model.paths()[0][m], c, &class, a, &rows)
    };
    let maps: Vec<Calibration> = pairs.iter().enumerate().map(of_pair).collect();
    assert_eq!(model.calibrations(), maps);
    let f = model.machine_values((&x[..], 2)).unwrap();
    let p = model.predict_proba((&x[..], 2)).unwrap();
    for (f, p) in f.chunks(3).zip(p.chunks(3)) {
        let r: Vec<f64> = f.iter().zip(&maps).map(|(f, map)| map.probability(*f)).collect();
        assert_close(p, &coupled(&r, &pairs, 3), 1e-6);
    }
}

/// Minimises Σ (r_ji p_i − r_ij p_j)² over distributions p by cyclic descent, as LIBSVM does.
fn coupled(r: &[f64], pairs: &[(usize, usize)], k: usize) -> Vec<f64> {
    let mut won = vec![vec![0.0; k]; k];
    for (r, &(i, j)) in r.iter().zip(pairs) {
        (won[i][j], won[j][i]) = (*r, 1.0 - r);
    }
    let q = |i: usize, j: usize| {
        if i == j { (0..k).map(|l| won[l][i] * won[l][i]).sum::<f64>() } else { -won[j][i] * won[i][j] }
    };
    let mut p = vec![1.0 / k as f64; k];
    for _ in 0..10_000 {
        for t in 0..k {
            let qp: Vec<f64> = (0..k).map(|i| (0..k).map(|j| q(i, j) * p[j]).sum()).collect();
            let total: f64 = p.iter().zip(&qp).map(|(p, qp)| p * qp).sum();
            p[t] += (total - qp[t]) / q(t, t);
            let sum: f64 = p.iter().sum();
            for p in &mut p {
                *p /= sum;
            }
        }
    }
    p
}

#[test]
fn scorings_are_means_over_the_folds_of_what_they_name() {
    let (x, class) = blobs(100, 2, 7);
    // Class 1 is rare, and rows have weights.
    let rows: Vec<usize> = (0..100).filter(|i| class[*i] == 0 || i % 3 == 1).collect();
    let (x, class) = (some(&x, 2, &rows), rows.iter().map(|&i| class[i]).collect::<Vec<_>>());
    let weight: Vec<f64> = (0..rows.len()).map(|i| 1.0 + (i % 3) as f64).collect();
    let scored = |scoring: Scoring| {
        let builder = Classifier::logistic().cs(CS).cv(4).weights(&weight[..]).scoring(scoring);
        let model = builder.fit((&x[..], 2), &class).unwrap();
        let path = model.path();
        for (fold, test) in path.test.iter().enumerate() {
            for c in 0..3 {
                let f = &path.oof[fold][c];
                let rows = || test.iter().zip(f).map(|(&i, f)| (class[i], *f, weight[i]));
                let total = |class: usize| rows().filter(|row| row.0 == class).map(|row| row.2).sum::<f64>();
                let right = |class: usize| {
                    rows()
                        .filter(|(own, f, _)| *own == class && (*f > 0.0) == (class == 1))
                        .map(|row| row.2)
                        .sum::<f64>()
                };
                let expected = match scoring {
                    Scoring::Accuracy => (right(0) + right(1)) / (total(0) + total(1)),
                    Scoring::BalancedAccuracy => 0.5 * (right(0) / total(0) + right(1) / total(1)),
                    Scoring::NegLogLoss => {
                        let loss = |class: usize, f: f64| (if class == 1 { -f } else { f }).exp().ln_1p();
                        -rows().map(|(class, f, w)| w * loss(class, f)).sum::<f64>() / (total(0) + total(1))
                    }
                    _ => {
                        let (mut won, mut all) = (0.0, 0.0);
                        for (_, f, w) in rows().filter(|row| row.0 == 1) {
                            for (_, g, v) in rows().filter(|row| row.0 == 0) {
                                won += w * v * if f > g { 1.0 } else { 0.5 * f64::from(f == g) };
                                all += w * v;
                            }
                        }
                        won / all
                    }
                };
                assert!((model.scores()[fold][c] - expected).abs() < 1e-12, "{scoring:?}");
            }
        }
        assert_eq!(model.c(), CS[best(model.scores(), &CS)]);
    };
    [Scoring::Accuracy, Scoring::BalancedAccuracy, Scoring::NegLogLoss, Scoring::RocAuc].into_iter().for_each(scored);
    assert_eq!(Scoring::from_name("roc_auc"), Ok(Scoring::RocAuc));
    assert!(Scoring::NAMES.iter().all(|name| Scoring::from_name(name).unwrap().name() == *name));
}

#[test]
fn leave_one_out_scores_rows_and_ranks_all_of_them_together() {
    let (x, class) = blobs(40, 2, 8);
    let builder = Classifier::svm().cs(CS).leave_one_out();
    let model = builder.clone().fit((&x[..], 2), &class).unwrap();
    assert_eq!(model.scores(), model.path().scores);
    assert_eq!((model.scores().len(), model.out_of_fold().unwrap().len()), (40, 40));
    assert_eq!(builder.clone().scoring(Scoring::RocAuc).fit((&x[..], 2), &class).unwrap().scores().len(), 1);
    // Three classes: each row is right or wrong.
    let (x, class) = blobs(36, 3, 8);
    let model = builder.fit((&x[..], 2), &class).unwrap();
    let c = CS.iter().position(|c| *c == model.c()).unwrap();
    let held_out = model.out_of_fold().unwrap();
    for (i, f) in held_out.chunks(3).enumerate() {
        let largest = (0..3).max_by(|&a, &b| f[a].total_cmp(&f[b])).unwrap();
        assert_eq!(model.scores()[i][c], f64::from(largest == class[i]));
    }
}

#[test]
fn one_standard_error_prefers_a_smaller_c() {
    let (x, class) = blobs(120, 2, 9);
    let builder = Classifier::logistic().scoring(Scoring::NegLogLoss).n_cs(20);
    let fit = |selection| builder.clone().selection(selection).fit((&x[..], 2), &class).unwrap();
    let (best, simple) = (fit(Selection::Best), fit(Selection::OneStandardError));
    assert_eq!(best.scores(), simple.scores());
    let mean = |c: usize| best.scores().iter().map(|fold| fold[c]).sum::<f64>() / 5.0;
    let top = best.cs().iter().position(|c| *c == best.c()).unwrap();
    let variance = best.scores().iter().map(|fold| (fold[top] - mean(top)).powi(2)).sum::<f64>() / 4.0;
    let bar = mean(top) - (variance / 5.0).sqrt() - 1e-12;
    assert_eq!(simple.c(), best.cs()[(0..20).find(|&c| mean(c) >= bar).unwrap()]);
    assert!(simple.c() < best.c(), "the data should tell the rules apart");
}

#[test]
fn weights_count_rows() {
    let (x, class) = blobs(40, 2, 10);
    // A row of weight 2 is two rows.
    let weight: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(u8::from(i % 4 == 0))).collect();
    let rows: Vec<usize> = (0..40).chain((0..40).step_by(4)).collect();
    let (twice, labels) = (some(&x, 2, &rows), rows.iter().map(|&i| class[i]).collect::<Vec<_>>());
    let builder = Classifier::logistic().cs([2.0]).folds(Folds::None).tol(1e-10);
    let weighted = builder.clone().weights(weight).fit((&x[..], 2), &class).unwrap();
    let repeated = builder.fit((&twice[..], 2), &labels).unwrap();
    let f = |model: &kernelpath::FittedClassifier<usize>| model.decision_function((&x[..], 2)).unwrap();
    assert_eq!(weighted.gamma(), repeated.gamma());
    assert_close(&f(&weighted), &f(&repeated), 1e-4);

    // A row of weight 0 is none: not in the bandwidth, not in the folds, not among the classes.
    let kept: Vec<usize> = (0..40).filter(|i| i % 5 != 2).collect();
    let weight: Vec<f64> = (0..40).map(|i| f64::from(u8::from(i % 5 != 2))).collect();
    let labels: Vec<i64> = (0..40).map(|i| if i % 5 == 2 { 77 } else { class[i] as i64 }).collect();
    let few: Vec<i64> = kept.iter().map(|&i| labels[i]).collect();
    let builder = Classifier::svm().cs(CS).probability(Method::Sigmoid);
    let with = builder.clone().weights(weight.clone()).fit((&x[..], 2), &labels).unwrap();
    let without = builder.clone().fit((&some(&x, 2, &kept)[..], 2), &few).unwrap();
    assert_eq!((with.classes(), with.scores()), (without.classes(), without.scores()));
    assert_eq!(with.predict_proba((&x[..], 2)).unwrap(), without.predict_proba((&x[..], 2)).unwrap());
    assert_eq!(with.support(), without.support().iter().map(|&k| kept[k]).collect::<Vec<_>>());
    let held_out = with.out_of_fold().unwrap();
    assert!((0..40).all(|i| held_out[i].is_nan() == (i % 5 == 2)));
    assert!(with.verify((&x[..], 2), &labels).unwrap()[0].gap() <= 1e-5);
    // Folds and landmarks name rows of X.
    let own = builder.folds(Folds::Splits(folds(40, 4))).weights(weight);
    let model = own.clone().fit((&x[..], 2), &labels).unwrap();
    assert!(model.path().test.iter().all(|test| test.len() == 8));
    let landmarks: Vec<usize> = (0..40).filter(|i| i % 5 < 2).collect();
    let model = own.clone().low_rank(LowRank::rows(landmarks.clone())).fit((&x[..], 2), &labels).unwrap();
    assert_eq!(model.support(), landmarks);
    let message = own.low_rank(LowRank::rows([2])).fit((&x[..], 2), &labels).unwrap_err().to_string();
    assert!(message.contains("row 2 has weight 0"), "{message}");
}

#[test]
fn weights_of_classes_are_in_the_loss_and_not_in_the_scores() {
    let (x, class) = blobs(60, 2, 11);
    let n = class.len();
    let (splits, kernel) = (Folds::Splits(folds(n, 3)), Kernel::rbf(Bandwidth::Value(0.7)));
    let builder = Classifier::svm().kernel(kernel).cs(CS).folds(splits.clone()).tol(TOL).class_weight(1, 5.0);
    let model = builder.fit((&x[..], 2), &class).unwrap();
    let weight: Vec<f64> = class.iter().map(|c| [1.0, 5.0][*c]).collect();
    let task = Task::new(Loss::Hinge, &signs(&class)).with_weight(Some(weight)).with_score_weight(Some(vec![1.0; n]));
    let path = fits(&x, 2, vec![task], 0.7, &CS, splits).remove(0);
    assert_eq!(model.scores(), path.scores);
    let c = best(&path.scores, &CS);
    let f = values(&x, &x, 2, 0.7, &path.coef[c], path.intercepts(c)[0]);
    assert_close(&model.decision_function((&x[..], 2)).unwrap(), &f, 1e-9);
    assert!(model.verify((&x[..], 2), &class).unwrap()[0].gap() <= 2.0 * TOL);
}

#[test]
fn low_rank_is_a_fit_on_landmarks() {
    let (x, class) = blobs(150, 2, 12);
    let (rows, splits) = (Rows::from_slice(&x, 2).unwrap(), Folds::Splits(folds(150, 3)));
    for low_rank in [LowRank::rp_cholesky(30), LowRank::k_means(30).rank(12), LowRank::uniform(20), LowRank::auto(25)] {
        let builder = Classifier::svm().kernel(Kernel::rbf(Bandwidth::Value(0.7))).cs(CS).folds(splits.clone()).seed(4);
        let model = builder.low_rank(low_rank.clone()).fit(rows, &class).unwrap();
        let nystrom = Nystrom::builder(rbf(0.7)).low_rank(low_rank).seed(4).build(&rows).unwrap();
        let mut request = Request::new(rows, vec![Task::new(Loss::Hinge, &signs(&class))], &nystrom, &CS);
        request.folds = splits.clone();
        let path = fit(&request, &Control::default()).unwrap().remove(0);
        let c = best(&path.scores, &CS);
        assert_eq!((model.scores(), model.c()), (&path.scores[..], CS[c]));
        let landmarks: Vec<f64> = (0..nystrom.landmarks().nrows())
            .flat_map(|i| [nystrom.landmarks().entry(i, 0).unwrap(), nystrom.landmarks().entry(i, 1).unwrap()])
            .collect();
        let f = values(&x, &landmarks, 2, 0.7, &path.coef[c], path.intercepts(c)[0]);
        assert_close(&model.decision_function(rows).unwrap(), &f, 1e-8);
        assert_eq!(model.nystrom().unwrap().rank(), nystrom.rank());
        assert!(model.verify(rows, &class).unwrap()[0].gap() <= 1e-5);
    }
    // Several classes and several γ at low rank.
    let (x, class) = blobs(150, 3, 12);
    let model =
        Classifier::svm().gammas([0.5, 1.0]).cs(CS).low_rank(LowRank::k_means(40)).fit((&x[..], 2), &class).unwrap();
    assert!(model.score((&x[..], 2), &class).unwrap() > 0.8 && model.worst_gap() <= 1e-6);
}

#[test]
fn a_precomputed_matrix_gives_what_its_kernel_gives() {
    let (x, class) = blobs(60, 3, 13);
    let matrix = |a: &[f64], b: &[f64]| {
        let distance = |i: usize, j: usize| (0..2).map(|k| (a[2 * i + k] - b[2 * j + k]).powi(2)).sum::<f64>();
        Mat::from_fn(a.len() / 2, b.len() / 2, |i, j| (-0.7 * distance(i, j)).exp())
    };
    let weight: Vec<f64> = (0..60).map(|i| f64::from(u8::from(i % 7 != 3))).collect();
    let builder = Classifier::svm().cs(CS).weights(weight).tol(1e-10);
    let rows = builder.clone().kernel(Kernel::rbf(Bandwidth::Value(0.7))).fit((&x[..], 2), &class).unwrap();
    let precomputed = Kernel { shape: Shape::Precomputed, bandwidth: Bandwidth::Value(1.0) };
    let k = matrix(&x, &x);
    for builder in [builder.clone().kernel(precomputed), builder.kernel(precomputed).low_rank(LowRank::rp_cholesky(60))]
    {
        let model = builder.fit(&k, &class).unwrap();
        assert_eq!((model.c(), model.gamma()), (rows.c(), None));
        let (a, b) =
            (model.machine_values(&matrix(&x[..20], &x)).unwrap(), rows.machine_values((&x[..20], 2)).unwrap());
        assert_close(&a, &b, 1e-3);
        assert!(model.verify(&k, &class).unwrap().iter().all(|proof| proof.gap() <= 1e-5));
    }
}

#[test]
fn labels_of_every_type_come_back() {
    let (x, class) = blobs(60, 3, 14);
    let rows = (&x[..], 2);
    let builder = Classifier::svm().cs([1.0]).cv(2);
    let expected = builder.fit(rows, &class).unwrap().predict(rows).unwrap();
    let names = ["ape", "bee", "cat"];
    macro_rules! same {
        ($labels:expr) => {
            let labels: Vec<_> = class.iter().map(|c| $labels[*c].clone()).collect();
            let model = builder.fit(rows, &labels).unwrap();
            assert_eq!(model.classes(), $labels);
            let predicted = model.predict(rows).unwrap();
            assert!(predicted.iter().zip(&expected).all(|(a, b)| *a == $labels[*b]));
            assert!(model.verify(rows, &labels).is_ok());
        };
    }
    same!(names);
    same!(names.map(String::from));
    same!([-5i32, 0, 3]);
    same!([1u8, 2, 200]);
    same!([-5i64, 0, i64::MAX]);
    same!([-1.0, 0.0, 1.0]);
    same!([0.0f32, 1.0, 2.0]);
    let truth: Vec<bool> = class.iter().map(|c| *c > 0).collect();
    let model = builder.fit(rows, &truth).unwrap();
    assert_eq!(model.classes(), [false, true]);
    let right = model.predict(rows).unwrap().iter().zip(&truth).filter(|(a, b)| a == b).count();
    assert!(right > 40);
    assert_eq!(LabelValue::Text("a".into()).to_string(), "\"a\"");
}

#[test]
fn lambdas_are_cs_in_other_units_and_gammas_may_be_made() {
    let (x, class) = blobs(50, 2, 15);
    let lambdas = [1e-3, 1e-2, 1e-1];
    let model = Classifier::svm().lambdas(lambdas).fit((&x[..], 2), &class).unwrap();
    assert_eq!(model.cs(), lambdas.map(|lambda| 1.0 / (2.0 * 50.0 * lambda)));
    let middle = Kernel::rbf(Bandwidth::Sigest).resolve(&Rows::from_slice(&x, 2).unwrap(), None, 0).unwrap().gamma;
    let model = Classifier::svm().gammas(Gammas::Auto).cs([1.0]).fit((&x[..], 2), &class).unwrap();
    assert_eq!(model.gammas(), [0.125, 0.25, 0.5, 1.0, 2.0, 4.0].map(|factor| factor * middle));
    assert_eq!(model.scores()[0].len(), 6);
}

#[test]
fn errors_name_the_setting_its_value_and_the_way_out() {
    let (x, class) = blobs(30, 3, 16);
    let two: Vec<usize> = class.iter().map(|c| c % 2).collect();
    let base = || Classifier::svm().cs([1.0]);
    let said = |builder: Classifier, class: &[usize]| builder.fit((&x[..], 2), class).unwrap_err().to_string();
    for (builder, parts) in [
        (base().cv(1), &["`.cv(1)`", "between 2 and 30"][..]),
        (base().cv(31), &["`.cv(31)`", "between 2 and 30"]),
        (base().cs([1.0, 2.0]).folds(Folds::None), &["`.folds(Folds::None)`", "2 values of C", "`.cv(5)`"]),
        (base().folds(Folds::Splits(vec![])), &["no fold is given"]),
        (base().cs([]), &["`.cs([])`", "at least one"]),
        (base().cs([1.0, -2.0]), &["`.cs(…)`", "got -2 at place 1"]),
        (base().n_cs(1), &["`.n_cs(1)`", "`.cs([1.0])`"]),
        (base().n_cs(99_999_999_999), &["`.n_cs(99999999999)`", "at most 10000 values"]),
        (base().cs(vec![1.0; 10_001]), &["`.cs(…)`", "10001 values are given, and 10000 are the most"]),
        (base().gammas(vec![1.0; 10_001]), &["`.gammas(…)`", "10001 values"]),
        (base().lambdas([f64::NAN]), &["`.lambdas(…)`", "got NaN at place 0"]),
        (base().lambdas([1e-320]), &["lambda = ", "C = 1 / (2 n lambda) = inf"]),
        (base().gammas([]), &["`.gammas([])`"]),
        (base().gammas([1.0, 0.0]), &["`.gammas(…)`", "got 0 at place 1"]),
        (base().gammas([1.0, 2.0, 1.0]), &["1 is given twice"]),
        (base().tol(0.0), &["`.tol(0)`", "1e-6"]),
        (base().max_iter(0), &["`.max_iter(0)`"]),
        (base().weights([1.0]), &["`.weights(…)`", "1 weights", "30 rows"]),
        (base().weights(vec![-1.0; 30]), &["got -1 at row 0"]),
        (base().weights(vec![0.0; 30]), &["all weights are 0"]),
        (base().class_weight(9, 2.0), &["`.class_weight(9, 2)`", "0, 1, 2"]),
        (base().class_weight(1, -2.0), &["`.class_weight(1, -2)`", "> 0"]),
        (base().scoring(Scoring::R2), &["`.scoring(Scoring::R2)`", "Scoring::Accuracy"]),
        (base().scoring(Scoring::NegLogLoss), &["scores probabilities", "`.probability(Method::Sigmoid)`"]),
        (base().scoring(Scoring::RocAuc), &["two classes, but y has 3"]),
        (base().scoring(Scoring::Accuracy).tune(Tune::Each), &["`.tune(Tune::Each)`"]),
        (base().folds(Folds::None).probability(Method::Isotonic), &["`.probability(Method::Isotonic)`", "`.cv(5)`"]),
        (base().leave_one_out().low_rank(LowRank::default()), &["`.leave_one_out()`", "`.cv(10)`"]),
        (base().low_rank(LowRank::uniform(0)), &["n_landmarks"]),
        (base().solver(Solver::ClosedForm), &["closed-form", "what fits"]),
        (Classifier::multinomial().leave_one_out(), &["`.leave_one_out()`", "Classifier::logistic()"]),
        (Classifier::multinomial().probability(Method::Sigmoid), &["has probabilities already"]),
        (Classifier::multinomial().multi_class(MultiClass::OneVsRest), &["`.multi_class(MultiClass::OneVsRest)`"]),
        (Classifier::multinomial().tune(Tune::Each), &["`.tune(Tune::Each)`"]),
        (
            base().leave_one_out().scoring(Scoring::Accuracy).selection(Selection::OneStandardError),
            &["`.selection(Selection::OneStandardError)`", "at least 2 folds"],
        ),
    ] {
        let message = said(builder, &class);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    let message = said(base(), &class[..20]);
    assert!(message.contains("y has length 20, but 30"), "{message}");
    assert!(said(base(), &[4; 30]).contains("one class, 4"));
    let model = base().fit((&x[..], 2), &two).unwrap();
    let message = model.predict_proba((&x[..], 2)).unwrap_err().to_string();
    assert!(message.contains("`.probability(Method::Sigmoid)`"), "{message}");
    assert_eq!(model.predict((&x[..], 3)), Err(Error::Features { got: 3, expected: 2 }));
    assert!(model.score((&x[..], 2), &class).unwrap_err().to_string().contains("y has 2 at row 2"));
    assert!(model.verify((&x[..], 2), &class).unwrap_err().to_string().contains("fitted on 0, 1"));
    let moved: Vec<f64> = x.iter().map(|x| x + 1.0).collect();
    assert!(model.verify((&moved[..], 2), &two).unwrap_err().to_string().contains("give the rows of the fit"));
    assert!(model.verify((&x[..40], 2), &two[..20]).unwrap_err().to_string().contains("length 20, but 30"));
}

#[test]
fn time_and_interruption_are_heard() {
    let (x, class) = blobs(1200, 3, 17);
    // More C's than any machine solves within the times below.
    let slow = Classifier::svm().gammas([0.1, 1.0, 10.0]).n_cs(10_000);
    let control = Control::default();
    std::thread::scope(|scope| {
        let handle = scope.spawn(|| {
            slow.clone().time_budget(Duration::from_secs(600)).fit_with((&x[..], 2), &class, &control).map(|_| ())
        });
        std::thread::sleep(Duration::from_millis(400));
        control.cancel();
        assert_eq!(handle.join().unwrap(), Err(Error::Interrupted));
    });
    let short = Duration::from_nanos(3);
    let timed_out = |builder: Classifier| match builder.time_budget(short).fit((&x[..], 2), &class) {
        Err(Error::TimeBudget { what, rows: 1200, .. }) => what,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert!(timed_out(slow.clone()).contains("kernel matrix"));
    assert!(timed_out(slow.clone().low_rank(LowRank::k_means(100))).contains("landmarks"));
    // With time for some of the models, the best of these is chosen.
    let model = slow.gammas([1.0]).time_budget(Duration::from_millis(700)).fit((&x[..], 2), &class);
    match model {
        Ok(model) => assert!(model.is_timed_out() && model.predict((&x[..], 2)).is_ok()),
        Err(error) => assert!(matches!(error, Error::TimeBudget { .. }), "{error}"),
    }
}
