//! Every solver that fits a loss gives the same answer, to the certificate.

mod common;

use std::time::{Duration, Instant};

use common::{ALL_LOSSES, data, fit, naive_kernel, request, split, targets};
use kernelpath::{Control, Error, Folds, Loss, Objective, Precision, Settings, Shape, Solver, Status, Task, logspace};
use proptest::prelude::*;

const SOLVERS: &[Solver] = &[Solver::ActiveSet, Solver::Newton, Solver::Spectral, Solver::ClosedForm];

/// The pairs that fit: what the solvers say of themselves, written down again.
fn fits(solver: Solver, loss: Loss) -> bool {
    let piecewise_linear = matches!(loss, Loss::Hinge | Loss::Quantile { .. } | Loss::EpsilonInsensitive { .. });
    match solver {
        Solver::Auto | Solver::Spectral => true,
        Solver::ActiveSet => piecewise_linear,
        Solver::Newton => !piecewise_linear,
        Solver::ClosedForm => loss == Loss::Squared,
    }
}

fn pairs() -> impl Iterator<Item = (Solver, Loss)> {
    let all = SOLVERS.iter().flat_map(|&solver| ALL_LOSSES.iter().map(move |&loss| (solver, loss)));
    all.filter(|&(solver, loss)| fits(solver, loss))
}

/// A path with steps of four decades, and a large C without a path.
#[test]
fn newton_reaches_a_large_c_from_anywhere() {
    for seed in 0..3 {
        let (x, labels) = data(300, 8, 0.3, seed);
        let y = targets(&x, 8, seed);
        for &loss in ALL_LOSSES.iter().filter(|&&loss| fits(Solver::Newton, loss)) {
            let y = if loss.is_classification() { &labels } else { &y };
            for (shape, cs) in [(Shape::Laplacian, &[1e-4, 3.0, 1e5][..]), (Shape::Matern32, &[1e5])] {
                let mut request = request(&x, 8, y, loss, shape, cs);
                request.solver = Solver::Newton;
                for record in fit(&request).records.iter().flatten() {
                    assert_eq!(record.status, Status::Converged, "{loss:?} {shape:?} {seed}: {record:?}");
                }
            }
        }
    }
}

/// Rows of zeros with the linear kernel: only the intercept is left.
#[test]
fn a_kernel_of_zeros_leaves_the_intercept() {
    let (x, labels) = (vec![0.0; 30], data(30, 1, 0.3, 5).1);
    let y: Vec<f64> = (0..30).map(f64::from).collect();
    for (solver, loss) in pairs() {
        let y = if loss.is_classification() { &labels } else { &y };
        let mut request = request(&x, 1, y, loss, Shape::Linear, &[0.1, 10.0]);
        request.solver = solver;
        for record in fit(&request).records.iter().flatten() {
            assert_eq!(record.status, Status::Converged, "{loss:?} {solver:?}: {record:?}");
        }
    }
}

#[test]
fn all_solvers_agree() {
    let (x, labels) = data(80, 3, 0.3, 11);
    let y = targets(&x, 3, 11);
    let cs = [1e-3, 0.1, 3.0, 100.0];
    // Rows in neither part, and rows that count twice (which the closed form leaves to Newton).
    for twice in [false, true] {
        let again = if twice { 10..20 } else { 0..0 };
        let folds = Folds::Splits(vec![
            split((0..50).chain(again).collect(), (50..80).collect()),
            split((20..80).collect(), (0..15).collect()),
        ]);
        for &loss in ALL_LOSSES {
            let y = if loss.is_classification() { &labels } else { &y };
            let mut request = request(&x, 3, y, loss, Shape::Rbf, &cs);
            request.folds = folds.clone();
            request.settings.tol = 1e-8;
            let reference = fit(&request);
            for &solver in SOLVERS.iter().filter(|&&solver| fits(solver, loss)) {
                request.solver = solver;
                let other = fit(&request);
                for (a, b) in reference.records.iter().flatten().zip(other.records.iter().flatten()) {
                    assert_eq!(
                        (a.status, b.status),
                        (Status::Converged, Status::Converged),
                        "{loss:?} {solver:?}: {b:?}"
                    );
                    let (a, b) = (a.certificate, b.certificate);
                    // Both optima lie between dual and primal.
                    let slack = 1e-12 * a.primal.abs();
                    assert!(a.dual <= b.primal + slack && b.dual <= a.primal + slack, "{loss:?} {solver:?}");
                }
                for (a, b) in reference.oof.iter().flatten().flatten().zip(other.oof.iter().flatten().flatten()) {
                    assert!((a - b).abs() < 2e-3 * (1.0 + a.abs()), "{loss:?} {solver:?}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn a_pair_that_does_not_fit_is_an_error_that_names_what_fits() {
    let (x, labels) = data(20, 2, 0.3, 1);
    for &solver in SOLVERS {
        for &loss in ALL_LOSSES.iter().filter(|&&loss| !fits(solver, loss)) {
            let mut request = request(&x, 2, &labels, loss, Shape::Rbf, &[1.0]);
            request.solver = solver;
            let error = kernelpath::fit(&request, &Control::default()).unwrap_err();
            assert!(matches!(&error, Error::Solver { fitting, .. } if fitting.contains(&"spectral")), "{error}");
            assert!(error.to_string().contains(loss.name()), "{error}");
        }
    }
}

#[test]
fn threads_and_repetition_change_no_bit() {
    let (x, labels) = data(150, 4, 0.2, 6);
    let y = targets(&x, 4, 6);
    let cs = logspace(1e-2, 1e2, 5).unwrap();
    for (solver, loss) in pairs() {
        let y = if loss.is_classification() { &labels } else { &y };
        let mut request = request(&x, 4, y, loss, Shape::Rbf, &cs);
        request.solver = solver;
        request.precision = Precision::Single;
        request.settings = Settings::default();
        request.folds = Folds::stratified(&labels, 3, 0).unwrap();
        let mut bits = |threads: usize| {
            request.threads = threads;
            let fit = fit(&request);
            fit.coef.concat().into_iter().chain(fit.oof.concat().concat()).map(f64::to_bits).collect::<Vec<_>>()
        };
        let one = bits(1);
        for threads in [1, 2, 4] {
            assert_eq!(bits(threads), one, "{solver:?} {loss:?}, {threads} threads");
        }
    }
}

#[test]
fn several_losses_on_one_gram_equal_separate_fits() {
    let (x, _) = data(60, 2, 0.3, 3);
    let y = targets(&x, 2, 3);
    let losses = [0.1, 0.5, 0.9].map(|tau| Loss::Quantile { tau });
    let mut together = request(&x, 2, &y, losses[0], Shape::Rbf, &[0.1, 10.0]);
    together.folds = Folds::Splits(vec![split((0..40).collect(), (40..60).collect())]);
    together.tasks = losses.iter().map(|&loss| Task::new(loss, &y)).collect();
    let fits = kernelpath::fit(&together, &Control::default()).unwrap();
    for (whole, loss) in fits.iter().zip(losses) {
        let mut alone = together.clone();
        alone.tasks = vec![Task::new(loss, &y)];
        let alone = fit(&alone);
        assert_eq!((whole.objective, &whole.coef, &whole.oof), (Objective::Scalar(loss), &alone.coef, &alone.oof));
    }
}

#[test]
fn a_constant_target_is_predicted() {
    let (x, _) = data(30, 2, 0.3, 3);
    let y = vec![2.5; 30];
    for (solver, loss) in pairs().filter(|(_, loss)| !loss.is_classification()) {
        let mut request = request(&x, 2, &y, loss, Shape::Rbf, &[1e-2, 1.0, 100.0]);
        request.solver = solver;
        request.folds = Folds::Splits(vec![split((0..20).collect(), (20..30).collect())]);
        let fit = fit(&request);
        for record in fit.records.iter().flatten() {
            assert_eq!(record.status, Status::Converged, "{solver:?} {loss:?}");
        }
        let tube = if let Loss::EpsilonInsensitive { epsilon } = loss { epsilon } else { 0.0 };
        for f in fit.oof.iter().flatten().flatten() {
            assert!((f - 2.5).abs() <= tube + 1e-5, "{solver:?} {loss:?}: {f}");
        }
    }
}

#[test]
fn every_solver_stops_when_asked() {
    let (x, labels) = data(1200, 20, 0.05, 4);
    let y = targets(&x, 20, 4);
    let cs = logspace(1e-3, 1e5, 10_000).unwrap();
    for (solver, loss) in
        [(Solver::Newton, Loss::SquaredHinge), (Solver::Spectral, Loss::Hinge), (Solver::ClosedForm, Loss::Squared)]
    {
        let y = if loss.is_classification() { &labels } else { &y };
        let mut request = request(&x, 20, y, loss, Shape::Rbf, &cs);
        request.solver = solver;
        request.settings.tol = 1e-12;
        request.folds = Folds::stratified(&labels, 5, 0).unwrap();
        let control = Control::default();
        std::thread::scope(|scope| {
            let fit = scope.spawn(|| kernelpath::fit(&request, &control));
            std::thread::sleep(Duration::from_millis(400));
            let asked = Instant::now();
            control.cancel();
            assert_eq!(fit.join().unwrap().unwrap_err(), Error::Interrupted, "{solver:?}");
            assert!(asked.elapsed() < Duration::from_secs(1), "{solver:?}: {:?}", asked.elapsed());
        });
    }
}

#[test]
fn a_time_budget_returns_what_there_is() {
    let (x, labels) = data(400, 3, 0.1, 3);
    let y = targets(&x, 3, 3);
    // More C's than any machine solves within the budget.
    let cs = logspace(1e-4, 1e4, 30_000).unwrap();
    for (solver, loss) in
        [(Solver::Newton, Loss::Logistic), (Solver::Spectral, Loss::Hinge), (Solver::ClosedForm, Loss::Squared)]
    {
        let y = if loss.is_classification() { &labels } else { &y };
        let mut request = request(&x, 3, y, loss, Shape::Rbf, &cs);
        request.solver = solver;
        request.folds = Folds::stratified(&labels, 5, 0).unwrap();
        let fit = kernelpath::fit(&request, &Control::new(Some(Duration::from_millis(600)))).unwrap().remove(0);
        assert!(fit.timed_out, "{solver:?}");
        let converged = fit.records.iter().flatten().filter(|r| r.status == Status::Converged).count();
        assert!(converged > 0 && converged < 6 * cs.len(), "{solver:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: proptest::test_runner::RngSeed::Fixed(2), failure_persistence: None, ..ProptestConfig::default() })]

    /// Ties, duplicates, any C: always a status, and a gap that is no lie.
    #[test]
    fn always_ends_with_a_valid_certificate(
        seed in 0u64..1000,
        n in 4usize..40,
        rounding in prop::bool::ANY,
        shape in prop::sample::select(vec![Shape::Rbf, Shape::Linear, Shape::Laplacian]),
        exponents in prop::collection::vec(-4.0..4.0f64, 1..4),
        pair in prop::sample::select(pairs().collect::<Vec<_>>()),
    ) {
        let (mut x, labels) = data(n, 2, 0.2, seed);
        if rounding {
            for v in &mut x {
                *v = v.round();
            }
        }
        let (solver, loss) = pair;
        let y = if loss.is_classification() { labels } else { targets(&x, 2, seed) };
        let cs: Vec<f64> = exponents.iter().map(|e| 10f64.powf(*e)).collect();
        let mut request = request(&x, 2, &y, loss, shape, &cs);
        request.solver = solver;
        request.settings = Settings { max_iter: 20_000, ..Settings::default() };
        let fit = fit(&request);
        for record in fit.records.iter().flatten() {
            let gap = record.certificate.gap();
            prop_assert!(gap >= -1e-9, "{gap}");
            prop_assert!(record.status != Status::Converged || gap <= 1e-6);
            prop_assert!(gap <= 1e-2, "{solver:?} {loss:?} {shape:?}: {record:?}");
        }
    }
}

#[test]
fn a_weight_of_two_is_a_row_twice_and_of_none_is_no_row() {
    let (x, classes) = data(40, 2, 0.3, 5);
    let counts: Vec<usize> = (0..40).map(|i| [1, 2, 0, 3][i % 4]).collect();
    let repeated: Vec<usize> = (0..40).flat_map(|i| vec![i; counts[i]]).collect();
    for &loss in ALL_LOSSES {
        let y = if loss.is_classification() { classes.clone() } else { targets(&x, 2, 5) };
        let cs = [0.1, 3.0];
        let mut weighted = request(&x, 2, &y, loss, Shape::Rbf, &cs);
        weighted.tasks[0].weight = Some(counts.iter().map(|&w| w as f64).collect());
        // Copies of a row stay together, in a fold and out of it.
        weighted.folds = Folds::Splits(vec![split((0..28).collect(), (28..40).collect())]);
        let x_repeated: Vec<f64> = repeated.iter().flat_map(|&i| x[2 * i..2 * i + 2].to_vec()).collect();
        let y_repeated: Vec<f64> = repeated.iter().map(|&i| y[i]).collect();
        let mut twin = request(&x_repeated, 2, &y_repeated, loss, Shape::Rbf, &cs);
        let rows = |wanted: &dyn Fn(usize) -> bool| (0..repeated.len()).filter(|&k| wanted(repeated[k])).collect();
        twin.folds = Folds::Splits(vec![split(rows(&|i| i < 28), rows(&|i| i >= 28))]);
        let (ours, theirs) = (fit(&weighted), fit(&twin));
        assert!(ours.worst_gap() <= 1e-9, "{loss:?}");
        for c in 0..2 {
            for fold in 0..2 {
                let (a, b) = (&ours.records[fold][c].certificate, &theirs.records[fold][c].certificate);
                assert!((a.primal - b.primal).abs() <= 2e-9 * a.primal.abs(), "{loss:?} {} {}", a.primal, b.primal);
            }
            assert!((ours.scores[0][c] - theirs.scores[0][c]).abs() < 1e-4, "{loss:?}");
            let by_row = |k: usize| ours.oof[0][c][repeated[k] - 28];
            let held_out: Vec<usize> = rows(&|i| i >= 28);
            for (at, &k) in held_out.iter().enumerate() {
                assert!((by_row(k) - theirs.oof[0][c][at]).abs() < 1e-3, "{loss:?}");
            }
        }
    }
}

#[test]
fn leaving_out_a_weighted_row_leaves_out_all_of_it() {
    let (x, classes) = data(20, 2, 0.3, 8);
    let weight: Vec<f64> = (0..20).map(|i| [1.0, 0.5, 0.0, 2.5][i % 4]).collect();
    for &loss in ALL_LOSSES {
        let y = if loss.is_classification() { classes.clone() } else { targets(&x, 2, 8) };
        let mut all = request(&x, 2, &y, loss, Shape::Rbf, &[2.0]);
        all.tasks[0].weight = Some(weight.clone());
        all.folds = Folds::LeaveOneOut;
        let loo = fit(&all);
        for i in [0, 1, 2, 3] {
            let mut without = request(&x, 2, &y, loss, Shape::Rbf, &[2.0]);
            let mut weight = weight.clone();
            weight[i] = 0.0;
            without.tasks[0].weight = Some(weight);
            without.folds = Folds::Splits(vec![split((0..20).collect(), vec![i])]);
            let naive = fit(&without);
            assert!((loo.oof[i][0][0] - naive.oof[0][0][0]).abs() < 2e-4, "{loss:?} row {i}");
        }
    }
}

#[test]
fn a_task_on_some_rows_is_a_fit_of_these_rows() {
    let (x, classes) = data(50, 2, 0.3, 4);
    let rows: Vec<usize> = (0..50).filter(|i| i % 3 != 0).collect();
    for (loss, solver) in [
        (Loss::Hinge, Solver::Auto),
        (Loss::Logistic, Solver::Auto),
        (Loss::Dwd, Solver::Spectral),
        (Loss::Squared, Solver::ClosedForm),
    ] {
        let y: Vec<f64> = rows.iter().map(|&i| classes[i]).collect();
        let cs = [0.1, 3.0];
        let mut some = request(&x, 2, &y, loss, Shape::Rbf, &cs);
        some.solver = solver;
        some.tasks = vec![Task::new(loss, &y).on_rows(Some(rows.clone())), Task::new(loss, &classes)];
        some.folds = Folds::Splits(vec![split((0..40).collect(), (40..50).collect())]);
        let fits = kernelpath::fit(&some, &Control::default()).unwrap();
        // The fold, naively: all training rows that are in the task.
        let train: Vec<usize> = rows.iter().copied().filter(|i| *i < 40).collect();
        let sub_x: Vec<f64> = train.iter().flat_map(|&i| x[2 * i..2 * i + 2].to_vec()).collect();
        let sub_y: Vec<f64> = train.iter().map(|&i| classes[i]).collect();
        let mut naive = request(&sub_x, 2, &sub_y, loss, Shape::Rbf, &cs);
        naive.solver = solver;
        let naive = fit(&naive);
        for c in 0..2 {
            for (at, i) in (40..50).enumerate() {
                let f: f64 = train
                    .iter()
                    .zip(&naive.coef[c])
                    .map(|(&j, b)| {
                        b * naive_kernel(&some.kernel.function(), &x[2 * i..2 * i + 2], &x[2 * j..2 * j + 2])
                    })
                    .sum();
                let f = f + naive.records[0][c].b[0];
                assert!((fits[0].oof[0][c][at] - f).abs() < 1e-4, "{loss:?} row {i}: {} {f}", fits[0].oof[0][c][at]);
            }
        }
        let mut alone = some.clone();
        alone.tasks.remove(0);
        // (The order of the units goes by all tasks, so that sums may round otherwise.)
        for (together, alone) in fits[1].oof.iter().flatten().flatten().zip(fit(&alone).oof.iter().flatten().flatten())
        {
            assert!((together - alone).abs() < 1e-4, "{loss:?}: {together} {alone}");
        }
    }
}

#[test]
fn the_spectral_engine_gives_up_where_rounding_ends() {
    let (x, labels) = data(60, 3, 0.3, 5);
    for loss in [Loss::Logistic, Loss::Dwd, Loss::Huber { delta: 0.5 }] {
        let y = if loss.is_classification() { labels.clone() } else { targets(&x, 3, 6) };
        let mut request = request(&x, 3, &y, loss, Shape::Rbf, &[0.1, 10.0]);
        request.solver = Solver::Spectral;
        request.settings = Settings { tol: 1e-30, max_iter: 100_000_000, ..Settings::default() };
        let fit = fit(&request);
        assert!(fit.worst_gap() <= 1e-12, "{loss:?}: {}", fit.worst_gap());
    }
}
