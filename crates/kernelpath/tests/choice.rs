//! Which place of the grid a model is taken from, whatever the order of the grid, and what is told of its scores.

mod by_hand;

use std::time::{Duration, Instant};

use by_hand::blobs;
use kernelpath::{Classifier, Error, Fold, Folds, Quantiles, Scoring, Selection, Tune, Watch};

const CS: [f64; 4] = [0.1, 1.0, 10.0, 100.0];
const GAMMAS: [f64; 4] = [0.05, 0.2, 0.8, 3.2];

/// Contiguous folds: of sorted labels, each tests few classes.
fn in_order(n: usize, k: usize) -> Folds {
    let fold = |at: usize| (0..n).partition(|i| i * k / n == at);
    Folds::Splits((0..k).map(fold).map(|(test, train): (Vec<usize>, Vec<usize>)| Fold { train, test }).collect())
}

#[test]
fn the_order_of_the_grid_changes_nothing() {
    let mut rng = fastrand::Rng::with_seed(5);
    for seed in 0..12 {
        let (x, class) = blobs(48, 2 + seed as usize % 2, seed);
        for (selection, tune) in [(Selection::Best, Tune::Joint), (Selection::OneStandardError, Tune::Each)] {
            let builder = Classifier::svm().cv(3).tol(1e-4).selection(selection).tune(tune).threads(1);
            let first = builder.clone().cs(CS).gammas(GAMMAS).fit((&x[..], 2), &class).unwrap();
            for _ in 0..3 {
                let (mut cs, mut gammas) = (CS, GAMMAS);
                rng.shuffle(&mut cs);
                rng.shuffle(&mut gammas);
                let again = builder.clone().cs(cs).gammas(gammas).fit((&x[..], 2), &class).unwrap();
                assert_eq!((again.chosen_cs(), again.gamma()), (first.chosen_cs(), first.gamma()), "{seed}");
                assert_eq!(again.best_scores(), first.best_scores());
            }
        }
    }
}

#[test]
fn folds_without_a_row_of_a_machine_are_skipped_by_means() {
    let (x, mut class) = blobs(90, 3, 2);
    class.sort_unstable();
    let model = Classifier::svm().tune(Tune::Each).cs(CS).gammas([0.5]).folds(in_order(90, 6));
    let model = model.fit((&x[..], 2), &class).unwrap();
    for (m, best) in model.best_scores().into_iter().enumerate() {
        let scored: Vec<&Vec<f64>> = model.all_scores()[m].iter().filter(|fold| !fold[0].is_nan()).collect();
        assert!(!scored.is_empty() && scored.len() < 6);
        let mean = |c: usize| scored.iter().map(|fold| fold[c]).sum::<f64>() / scored.len() as f64;
        assert_eq!(best, (0..CS.len()).map(mean).fold(0.0, f64::max));
    }
}

#[test]
fn leave_one_out_weighs_rows_as_a_scorer_does() {
    for seed in 0..6 {
        let (x, class) = blobs(40, 2, seed);
        let weights: Vec<f64> = (0..40).map(|i| [0.05, 1.0, 20.0][(i * i + i / 3) % 3]).collect();
        let builder = Classifier::svm().cs(CS).gammas(GAMMAS).weights(weights.clone()).leave_one_out();
        let [by_loss, by_scorer] = [builder.clone(), builder.scoring(Scoring::Accuracy)]
            .map(|builder| builder.fit((&x[..], 2), &class).unwrap());
        assert_eq!((by_loss.c(), by_loss.gamma()), (by_scorer.c(), by_scorer.gamma()), "{seed}");
        assert!((by_loss.best_scores()[0] - by_scorer.best_scores()[0]).abs() < 1e-12);
        assert!(by_loss.saved().attributes.contains_key("fold_weights_"));
        assert!(!by_scorer.saved().attributes.contains_key("fold_weights_"));
    }
    let (x, _) = blobs(30, 2, 3);
    let y: Vec<f64> = x.iter().step_by(2).map(|x| x.sin()).collect();
    let weights: Vec<f64> = (0..30).map(|i| f64::from(1 + i % 4)).collect();
    let model = Quantiles::at([0.4]).cs(CS).weights(weights.clone()).leave_one_out().fit((&x[..], 2), &y).unwrap();
    let at = CS.iter().position(|c| *c == model.c()).unwrap();
    let sum: f64 = model.scores().iter().zip(&weights).map(|(fold, weight)| weight * fold[at]).sum();
    assert!((model.best_scores()[0] - sum / weights.iter().sum::<f64>()).abs() < 1e-12);
}

#[test]
fn what_cannot_be_chosen_is_named() {
    let (x, class) = blobs(30, 2, 4);
    let said = |cs: &[f64], gammas: &[f64]| {
        let builder = Classifier::svm().cs(cs.to_vec()).gammas(gammas.to_vec()).folds(Folds::None);
        builder.fit((&x[..], 2), &class).unwrap_err().to_string()
    };
    assert!(said(&[1.0], &GAMMAS).contains("among 4 values of gamma; give one, such as `.gammas([0.1])`"));
    assert!(said(&CS[..2], &[1.0]).contains("among 2 values of C; give one, such as `.cs([1.0])`"));
    assert!(said(&CS, &GAMMAS).contains("among 4 values of C and 4 of gamma"));
    // A fold whose rows all have weight 0 is named by what it lacks.
    let weights: Vec<f64> = (0..30).map(|i| f64::from(u8::from(i >= 10))).collect();
    let builder = Classifier::svm().cs(CS).folds(in_order(30, 3)).weights(weights);
    let message = builder.fit((&x[..], 2), &class).unwrap_err().to_string();
    assert!(message.contains("fold 0") && message.contains("all 10 test rows have weight 0"), "{message}");
}

/// Counts the values of γ that begin.
#[derive(Default)]
struct Begun(std::sync::Mutex<Vec<usize>>);

impl Watch for Begun {
    fn begin(&self, at: usize, _: &[f64]) -> kernelpath::Result<()> {
        self.0.lock().unwrap().push(at);
        Ok(())
    }
}

/// A share of the budget that is too short for a model of each fold is exceeded, as long as the budget is not.
#[test]
fn a_budget_is_one_for_all_gammas() {
    let (x, class) = blobs(1000, 2, 6);
    let many: Vec<f64> = (0..40).map(|g| 0.01 * 1.2_f64.powi(g)).collect();
    let builder = Classifier::svm().n_cs(2000).tol(1e-9).gammas(many.clone());
    let budget = Duration::from_millis(1500);
    let started = Instant::now();
    let model = builder.clone().time_budget(budget).fit((&x[..], 2), &class).unwrap();
    assert!(started.elapsed() < budget + Duration::from_secs(3), "{:?}", started.elapsed());
    assert!(model.is_timed_out() && model.best_scores()[0].is_finite());
    assert!(!model.gammas().is_empty() && model.gammas()[..] == many[..model.gammas().len()]);
    // What is too short for anything says so, with the whole budget.
    let short = Duration::from_micros(7);
    match builder.time_budget(short).fit((&x[..], 2), &class).map(|_| ()) {
        Err(Error::TimeBudget { budget, .. }) => assert_eq!(budget, short.as_secs_f64()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_of_gamma_that_are_not_begun_are_told() {
    let (x, class) = blobs(400, 2, 7);
    let y: Vec<f64> = class.iter().map(|c| if *c == 1 { 1.0 } else { -1.0 }).collect();
    let rows = kernelpath::Rows::from_slice(&x, 2).unwrap();
    let cs = kernelpath::logspace(1e-3, 1e4, 3000).unwrap();
    let task = kernelpath::Task::new(kernelpath::Loss::Hinge, &y);
    let kernel = kernelpath::KernelFn::new(kernelpath::Shape::Rbf, 1.0).unwrap();
    let mut request = kernelpath::Request::new(rows, vec![task], kernel, &cs);
    request.folds = Folds::stratified(&y, 3, 0).unwrap();
    let mut search = kernelpath::Search::new(request);
    search.gammas = (1..=200).map(|g| 0.05 * f64::from(g)).collect();
    search.time_budget = Some(Duration::from_millis(800));
    let begun = Begun::default();
    let trained = search.run(&kernelpath::Control::default(), &begun).unwrap();
    assert!(trained.is_timed_out());
    assert_eq!(trained.fits.len() + trained.out_of_time.len(), 200);
    assert!(trained.fits.len() <= begun.0.lock().unwrap().len());
    assert!(!trained.fits.is_empty());
    // Every γ before the last has a C with a score.
    for of_gamma in &trained.fits[..trained.fits.len() - 1] {
        assert!((0..cs.len()).any(|c| of_gamma[0].scores.iter().all(|fold| fold[c].is_finite())));
    }
}
