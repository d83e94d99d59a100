//! Quantiles against `fit` and choices written by hand.

mod by_hand;

use by_hand::{TOL, assert_close, best, fits, folds, values, waves};
use kernelpath::{Bandwidth, Folds, Kernel, Loss, Quantiles, Scoring, Task, spread};

const CS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

const TAUS: [f64; 3] = [0.9, 0.1, 0.5];

#[test]
fn each_level_is_a_fit_with_its_own_best_c() {
    let (x, y) = waves(70, 1);
    let splits = Folds::Splits(folds(70, 5));
    let builder = Quantiles::at(TAUS).kernel(Kernel::rbf(Bandwidth::Value(2.0))).cs(CS).folds(splits.clone()).tol(TOL);
    let model = builder.fit((&x[..], 1), &y).unwrap();
    let tasks = TAUS.iter().map(|tau| Task::new(Loss::Quantile { tau: *tau }, &y)).collect();
    let paths = fits(&x, 1, tasks, 2.0, &CS, splits);
    let predicted = model.predict((&x[..], 1)).unwrap();
    for (m, path) in paths.iter().enumerate() {
        let c = best(&path.scores, &CS);
        assert_eq!(model.all_scores()[m], path.scores);
        assert_eq!(model.chosen_cs()[m], CS[c]);
        let f = values(&x, &x, 1, 2.0, &path.coef[c], path.intercepts(c)[0]);
        let found: Vec<f64> = predicted[m..].iter().step_by(3).copied().collect();
        assert_close(&found, &f, 1e-8);
        for (by_c, test) in path.oof.iter().zip(&path.test) {
            test.iter().zip(&by_c[c]).for_each(|(&row, f)| assert_eq!(model.out_of_fold()[3 * row + m], *f));
        }
    }
    assert!(model.verify((&x[..], 1), &y).unwrap().iter().all(|proof| proof.gap() <= 2.0 * TOL));
    let pinball = |tau: f64, r: f64| if r > 0.0 { tau * r } else { (tau - 1.0) * r };
    let loss = |m: usize| (0..70).map(|i| pinball(TAUS[m], y[i] - predicted[3 * i + m])).sum::<f64>() / 70.0;
    let expected = -(0..3).map(loss).sum::<f64>() / 3.0;
    assert!((model.score((&x[..], 1), &y).unwrap() - expected).abs() < 1e-12);
}

#[test]
fn levels_share_the_gamma_of_the_best_mean_score() {
    let (x, y) = waves(60, 2);
    let gammas = [0.01, 2.0, 500.0];
    let model = Quantiles::at(TAUS).gammas(gammas).n_cs(6).fit((&x[..], 1), &y).unwrap();
    let unit = spread(&y, None);
    assert!(model.chosen_cs().iter().all(|c| model.cs().iter().any(|grid| *c == grid * unit)));
    let mean = |m: usize, place: usize| model.all_scores()[m].iter().map(|fold| fold[place]).sum::<f64>() / 5.0;
    let top = |g: usize, m: usize| (0..6).map(|c| mean(m, 6 * g + c)).fold(f64::NEG_INFINITY, f64::max);
    let total = |g: usize| (0..3).map(|m| top(g, m)).sum::<f64>();
    let expected = (0..3).max_by(|&a, &b| total(a).total_cmp(&total(b))).unwrap();
    assert_eq!(model.gamma(), Some(gammas[expected]));
    let scored = Quantiles::at(TAUS).gammas(gammas).n_cs(6).scoring(Scoring::R2).fit((&x[..], 1), &y).unwrap();
    assert!(scored.scores().iter().flatten().all(|score| *score <= 1.0) && scored.scores() != model.scores());
}

#[test]
fn crossings_are_counted_and_can_be_sorted_away() {
    let (x, y) = waves(40, 3);
    let taus = [0.5, 0.45, 0.55];
    let builder = Quantiles::at(taus).kernel(Kernel::rbf(Bandwidth::Value(50.0))).cs([100.0]).folds(Folds::None);
    let (raw, sorted) =
        (builder.fit((&x[..], 1), &y).unwrap(), builder.clone().noncrossing().fit((&x[..], 1), &y).unwrap());
    let (a, b) = (raw.predict((&x[..], 1)).unwrap(), sorted.predict((&x[..], 1)).unwrap());
    let crosses = |row: &&[f64]| !(row[1] <= row[0] && row[0] <= row[2]);
    let count = a.chunks(3).filter(crosses).count();
    assert!(count > 0, "the data should make levels cross");
    assert_eq!((raw.crossings(), sorted.crossings()), (count, count));
    assert_eq!(b.chunks(3).filter(crosses).count(), 0);
    for (a, b) in a.chunks(3).zip(b.chunks(3)) {
        let mut values = a.to_vec();
        values.sort_by(f64::total_cmp);
        assert_eq!(b, [values[1], values[0], values[2]]);
    }
}

#[test]
fn levels_are_checked() {
    let (x, y) = waves(20, 4);
    for (taus, part) in [
        (vec![], "no level is given"),
        (vec![0.5, 1.5], "between 0 and 1, got 1.5"),
        (vec![f64::NAN], "got NaN"),
        (vec![0.5, 0.1, 0.5], "level 0.5 is given twice"),
    ] {
        let message = Quantiles::at(taus).fit((&x[..], 1), &y).unwrap_err().to_string();
        assert!(message.contains("`Quantiles::at([") && message.contains(part), "{message}");
    }
}
