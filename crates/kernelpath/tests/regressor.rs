//! Regressions against `fit` and choices written by hand.

mod by_hand;

use by_hand::{TOL, assert_close, best, fits, folds, side_by_side, values, waves};
use faer::Mat;
use kernelpath::{Bandwidth, Extent, Folds, Kernel, Loss, LowRank, Regressor, Scoring, Task, Tune, default_cs, spread};

const CS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

#[test]
fn every_loss_is_one_fit_and_the_best_place_of_the_grid() {
    let (x, y) = waves(70, 1);
    let (splits, gammas) = (Folds::Splits(folds(70, 5)), [0.5, 4.0]);
    for (builder, loss) in [
        (Regressor::svr(0.1), Loss::EpsilonInsensitive { epsilon: 0.1 }),
        (Regressor::ridge(), Loss::Squared),
        (Regressor::huber(0.2), Loss::Huber { delta: 0.2 }),
        (Regressor::expectile(0.8), Loss::Expectile { tau: 0.8 }),
    ] {
        let model = builder.gammas(gammas).cs(CS).folds(splits.clone()).tol(TOL).fit((&x[..], 1), &y).unwrap();
        let task = || vec![Task::new(loss, &y)];
        let paths: Vec<_> = gammas.iter().map(|g| fits(&x, 1, task(), *g, &CS, splits.clone()).remove(0)).collect();
        let scores = side_by_side(&paths.iter().map(|path| path.scores.clone()).collect::<Vec<_>>());
        let place = best(&scores, &CS);
        let (path, c) = (&paths[place / 4], place % 4);
        assert_eq!(model.scores(), scores, "{loss:?}");
        assert_eq!((model.c(), model.gamma()), (CS[c], Some(gammas[place / 4])));
        assert_eq!(model.losses(), [loss]);
        let f = values(&x, &x, 1, gammas[place / 4], &path.coef[c], path.intercepts(c)[0]);
        assert_close(&model.predict((&x[..], 1)).unwrap(), &f, 1e-8);
        assert!(model.verify((&x[..], 1), &y).unwrap()[0].gap() <= 2.0 * TOL);
        // Held-out rows are predicted by the fold that held them out.
        for (by_c, test) in path.oof.iter().zip(&path.test) {
            test.iter().zip(&by_c[c]).for_each(|(&row, f)| assert_eq!(model.out_of_fold()[row], *f));
        }
        let mean = y.iter().sum::<f64>() / 70.0;
        let square = |of: &dyn Fn(usize) -> f64| (0..70).map(|i| (y[i] - of(i)).powi(2)).sum::<f64>();
        let r2 = 1.0 - square(&|i| f[i]) / square(&|_| mean);
        assert!((model.score((&x[..], 1), &y).unwrap() - r2).abs() < 1e-8);
    }
}

#[test]
fn constants_and_the_default_grid_follow_the_unit_of_the_targets() {
    let (x, y) = waves(60, 2);
    let unit = spread(&y, None);
    let model = Regressor::svr(Extent::Auto).n_cs(8).fit((&x[..], 1), &y).unwrap();
    assert_eq!(model.losses(), [Loss::EpsilonInsensitive { epsilon: 0.1 * unit }]);
    assert_eq!(model.cs(), default_cs(8).unwrap());
    assert!(default_cs(8).unwrap().iter().any(|c| model.c() == c * unit));
    let scaled: Vec<f64> = y.iter().map(|y| 1024.0 * y).collect();
    let large = Regressor::svr(Extent::Auto).n_cs(8).fit((&x[..], 1), &scaled).unwrap();
    assert_eq!(large.c(), 1024.0 * model.c());
    let expected: Vec<f64> = model.predict((&x[..], 1)).unwrap().iter().map(|f| 1024.0 * f).collect();
    assert_close(&large.predict((&x[..], 1)).unwrap(), &expected, 1e-6);
    assert!(large.verify((&x[..], 1), &scaled).unwrap()[0].gap() <= 2e-6);
    assert_eq!(
        Regressor::huber(Extent::Auto).n_cs(4).fit((&x[..], 1), &y).unwrap().losses(),
        [Loss::Huber { delta: unit }]
    );
}

#[test]
fn several_targets_choose_together_or_each() {
    let (x, first) = waves(60, 3);
    // The second target is in another unit, and best at another C.
    let second: Vec<f64> = x.iter().map(|x| 1e3 * (x + 0.01 * (50.0 * x).sin())).collect();
    let y = Mat::from_fn(60, 2, |i, j| if j == 0 { first[i] } else { second[i] });
    let splits = Folds::Splits(folds(60, 3));
    let builder = Regressor::ridge().kernel(Kernel::rbf(Bandwidth::Value(1.0))).cs(CS).folds(splits.clone()).tol(TOL);
    let targets = [&first, &second];
    let paths = fits(&x, 1, targets.iter().map(|y| Task::new(Loss::Squared, y)).collect(), 1.0, &CS, splits);
    let units = targets.map(|y| spread(y, None).powi(2));
    let relative = |fold: usize, c: usize| (0..2).map(|m| paths[m].scores[fold][c] / units[m]).sum::<f64>() / 2.0;
    let scores: Vec<Vec<f64>> = (0..3).map(|fold| (0..4).map(|c| relative(fold, c)).collect()).collect();
    let joint = builder.clone().fit((&x[..], 1), &y).unwrap();
    for (found, expected) in joint.scores().iter().zip(&scores) {
        assert_close(found, expected, 1e-12);
    }
    let c = best(&scores, &CS);
    assert_eq!(joint.chosen_cs(), [CS[c]; 2]);
    let columns: Vec<Vec<f64>> =
        (0..2).map(|m| values(&x, &x, 1, 1.0, &paths[m].coef[c], paths[m].intercepts(c)[0])).collect();
    let predicted = joint.predict((&x[..], 1)).unwrap();
    for (m, column) in columns.iter().enumerate() {
        let found: Vec<f64> = predicted[m..].iter().step_by(2).copied().collect();
        assert_close(&found, column, 1e-6);
    }
    assert!(joint.verify((&x[..], 1), &y).unwrap().iter().all(|proof| proof.gap() <= 2.0 * TOL));

    let each = builder.clone().tune(Tune::Each).fit((&x[..], 1), &y).unwrap();
    let expected: Vec<f64> = paths.iter().map(|path| CS[best(&path.scores, &CS)]).collect();
    assert_eq!(each.chosen_cs(), expected);
    assert_ne!(expected[0], expected[1], "the data should tell the rules apart");
    assert_eq!(each.all_scores().len(), 2);

    // R² is the mean over the targets.
    let model = builder.scoring(Scoring::R2).fit((&x[..], 1), &y).unwrap();
    let r2 = |m: usize, fold: usize, c: usize| {
        let (path, y) = (&paths[m], targets[m]);
        let test = &path.test[fold];
        let mean = test.iter().map(|&i| y[i]).sum::<f64>() / test.len() as f64;
        let residual: f64 = test.iter().zip(&path.oof[fold][c]).map(|(&i, f)| (y[i] - f).powi(2)).sum();
        1.0 - residual / test.iter().map(|&i| (y[i] - mean).powi(2)).sum::<f64>()
    };
    for fold in 0..3 {
        let expected: Vec<f64> = (0..4).map(|c| 0.5 * r2(0, fold, c) + 0.5 * r2(1, fold, c)).collect();
        assert_close(&model.scores()[fold], &expected, 1e-9);
    }
}

#[test]
fn targets_in_other_units_have_the_same_say_in_gamma() {
    // The first target needs a narrow kernel; the second is a line in a large unit, and does better with a wide one.
    let (x, _) = waves(60, 6);
    let targets = [x.iter().map(|x| (9.0 * x).sin()).collect::<Vec<_>>(), x.iter().map(|x| 1e4 * x).collect()];
    let y = Mat::from_fn(60, 2, |i, j| targets[j][i]);
    let gammas = [0.2, 20.0];
    let model = Regressor::ridge().tune(Tune::Each).gammas(gammas).cs(CS).fit((&x[..], 1), &y).unwrap();
    let mean = |m: usize, place: usize| model.all_scores()[m].iter().map(|fold| fold[place]).sum::<f64>() / 5.0;
    let top = |g: usize, m: usize| (0..4).map(|c| mean(m, 4 * g + c)).fold(f64::NEG_INFINITY, f64::max);
    let unit = |m: usize| spread(&targets[m], None).powi(2);
    let total = |g: usize| top(g, 0) / unit(0) + top(g, 1) / unit(1);
    assert!(total(1) > total(0) && top(1, 0) + top(1, 1) < top(0, 0) + top(0, 1), "the units should matter");
    assert_eq!(model.gamma(), Some(20.0));
}

#[test]
fn weights_and_low_rank_are_there_too() {
    let (x, y) = waves(80, 4);
    let weight: Vec<f64> = (0..80).map(|i| f64::from(i % 3)).collect();
    let kept: Vec<usize> = (0..80).filter(|i| i % 3 != 0).collect();
    let few = |of: &[f64]| kept.iter().map(|&i| of[i]).collect::<Vec<_>>();
    let builder = Regressor::huber(0.3).cs(CS).scoring(Scoring::R2).low_rank(LowRank::uniform(40));
    let with = builder.clone().weights(weight.clone()).fit((&x[..], 1), &y).unwrap();
    let without = builder.weights(few(&weight)).fit((&few(&x)[..], 1), &few(&y)).unwrap();
    assert_eq!((with.scores(), with.c()), (without.scores(), without.c()));
    assert_eq!(with.predict((&x[..], 1)).unwrap(), without.predict((&x[..], 1)).unwrap());
    assert!((0..80).all(|i| with.out_of_fold()[i].is_nan() == (i % 3 == 0)));
    assert!(with.verify((&x[..], 1), &y).unwrap()[0].gap() <= 1e-5);
}

#[test]
fn errors_name_the_setting_its_value_and_the_way_out() {
    let (x, mut y) = waves(30, 5);
    let said = |builder: Regressor, y: &[f64]| builder.cs([1.0]).fit((&x[..], 1), y).unwrap_err().to_string();
    for (builder, parts) in [
        (Regressor::svr(-0.1), &["`Regressor::svr(-0.1)`", "Extent::Auto"][..]),
        (Regressor::huber(0.0), &["`Regressor::huber(0)`", "> 0"]),
        (Regressor::expectile(1.0), &["`Regressor::expectile(1)`", "between 0 and 1"]),
        (Regressor::ridge().scoring(Scoring::Accuracy), &["`.scoring(Scoring::Accuracy)`", "Scoring::R2"]),
        (Regressor::ridge().cv(99), &["`.cv(99)`"]),
    ] {
        let message = said(builder, &y);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    assert!(said(Regressor::ridge(), &y[..9]).contains("y has length 9, but 30"));
    let model = Regressor::huber(Extent::Auto).cs([1.0]).fit((&x[..], 1), &y).unwrap();
    let other: Vec<f64> = y.iter().map(|y| 3.0 * y).collect();
    assert!(model.verify((&x[..], 1), &other).unwrap_err().to_string().contains("`.verify(x, y)`"));
    y[7] = f64::NAN;
    assert!(said(Regressor::ridge(), &y).contains("y contains NaN at row 7"));
}
