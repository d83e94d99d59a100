//! Any list of C's: repeated, nearly equal, unordered, far apart; and leave-one-out where its start is far off.

mod common;

use common::{ALL_LOSSES, data, fit, request, targets, with};
use kernelpath::{
    Control, Error, Folds, KernelFn, Landmarks, Loss, LowRank, Nystrom, Objective, PathFit, Precision, Request, Rows,
    Settings, Shape, Solver, Status, Task,
};

const REPEATED: &[f64] = &[1.0, 0.1, 8.0, 1.0, 100.0, 8.0, 0.1, 64.0];

/// What a fit found at the C of index `c`, as bits.
fn bits(fit: &PathFit, c: usize) -> Vec<u64> {
    let mut numbers: Vec<f64> = fit.coef[c].clone();
    numbers.extend(fit.oof.iter().flat_map(|by_c| &by_c[c]));
    numbers.extend(fit.scores.iter().map(|by_c| by_c[c]));
    for record in fit.records.iter().map(|by_c| &by_c[c]) {
        numbers.extend(&record.b);
        numbers.extend([record.certificate.primal, record.certificate.dual, record.steps as f64]);
    }
    numbers.into_iter().map(f64::to_bits).collect()
}

fn all_converged(fit: &PathFit, what: &str) {
    for record in fit.records.iter().flatten() {
        assert_eq!(record.status, Status::Converged, "{what}: {record:?}");
        assert!(record.certificate.gap() <= 1e-6, "{what}: {record:?}");
    }
}

/// Every loss and every way to solve it, on the kernel matrix and at low rank.
fn each_fit(cs: &[f64], look: impl Fn(&PathFit, &str)) {
    let (x, labels) = data(60, 2, 0.3, 3);
    let y = targets(&x, 2, 3);
    for &loss in ALL_LOSSES {
        let y = if loss.is_classification() { &labels } else { &y };
        let mut request = request(&x, 2, y, loss, Shape::Rbf, cs);
        request.settings.tol = 1e-6;
        request.folds = Folds::stratified(&labels, 3, 0).unwrap();
        for solver in [Solver::Auto, Solver::Spectral] {
            let request = with(&request, |r| r.solver = solver);
            look(&fit(&request), &format!("{loss:?}, {solver:?}"));
            let (kernel, rule) = (request.kernel.function(), Landmarks::RpCholesky);
            let nystrom = Nystrom::builder(kernel).low_rank(LowRank::new(rule.clone(), 15)).build(&request.x).unwrap();
            let low_rank = fit(&with(&request, |r| r.kernel = (&nystrom).into()));
            look(&low_rank, &format!("{loss:?}, {solver:?} at low rank"));
        }
    }
}

#[test]
fn equal_cs_have_equal_results() {
    each_fit(REPEATED, |fit, what| {
        assert_eq!(fit.cs, REPEATED);
        all_converged(fit, what);
        for (a, b) in [(0, 3), (1, 6), (2, 5)] {
            assert_eq!(bits(fit, a), bits(fit, b), "{what}");
        }
    });
}

#[test]
fn repeating_and_ordering_cs_changes_nothing() {
    let (x, y) = data(60, 2, 0.3, 4);
    let sorted = fit(&request(&x, 2, &y, Loss::Hinge, Shape::Rbf, &[0.1, 1.0, 8.0, 64.0, 100.0]));
    let repeated = fit(&request(&x, 2, &y, Loss::Hinge, Shape::Rbf, REPEATED));
    for (c, at) in [(1, 0), (0, 1), (2, 2), (7, 3), (4, 4)] {
        assert_eq!(bits(&repeated, c), bits(&sorted, at));
    }
}

#[test]
fn cs_that_differ_by_rounding_only_are_solved() {
    let next = |c: f64| c.next_up();
    each_fit(&[1.0, next(1.0), next(next(1.0)), 5.0, 20.0, next(20.0), 1e3], all_converged);
}

#[test]
fn the_multinomial_loss_takes_repeated_cs() {
    let (x, _) = data(60, 2, 0.3, 5);
    let y: Vec<f64> =
        targets(&x, 2, 5).iter().map(|y| if *y < -0.3 { 0.0 } else { 1.0 + f64::from(*y > 0.3) }).collect();
    let (rows, task) = (Rows::from_slice(&x, 2).unwrap(), Task::new(Objective::Multinomial, &y));
    let fit = fit(&Request::new(rows, vec![task], KernelFn::new(Shape::Rbf, 0.5).unwrap(), REPEATED));
    assert!(fit.worst_gap() <= 1e-6);
    assert_eq!(fit.cs, REPEATED);
    for (a, b) in [(0, 3), (1, 6), (2, 5)] {
        assert_eq!(fit.coef[a], fit.coef[b]);
        assert_eq!(fit.records[0][a].b, fit.records[0][b].b);
    }
}

#[test]
fn cs_beyond_doubles_are_refused() {
    let (x, y) = data(40, 2, 0.3, 6);
    for &loss in ALL_LOSSES {
        for (c, what) in [(1e-310, "the smallest weight (1e0)"), (1e308, "the sum of the weights (4e1)")] {
            let cs = [1.0, 2.0, 1.0, c];
            let error = kernelpath::fit(&request(&x, 2, &y, loss, Shape::Rbf, &cs), &Control::default()).unwrap_err();
            assert!(matches!(error, Error::ExtremeC { index: 3, .. }), "{loss:?}: {error:?}");
            let message = error.to_string();
            assert!(message.contains("(cs[3])") && message.contains(what), "{message}");
            assert!(message.contains("C must be between"), "{message}");
        }
    }
}

/// From 1e-8 to 1e8, with weights of ratios of 1e12 and zeros: all end, all have a gap, and those of moderate C converge.
#[test]
fn wide_grids_and_wide_weights_end() {
    let cs = [1e8, 1e-8, 1.0, 1e4, 1e-4];
    let (x, labels) = data(50, 2, 0.3, 7);
    let y = targets(&x, 2, 7);
    let weight: Vec<f64> = (0..50).map(|i| [1.0, 0.0, 1e-6, 1.0, 1e6][i % 5]).collect();
    for &loss in ALL_LOSSES {
        let y = if loss.is_classification() { &labels } else { &y };
        for weight in [None, Some(weight.clone())] {
            let mut request = request(&x, 2, y, loss, Shape::Rbf, &cs);
            request.settings = Settings::default();
            request.tasks = vec![Task::new(loss, y).with_weight(weight.clone())];
            let fit = fit(&request);
            for (record, c) in fit.records[0].iter().zip(cs) {
                assert!(record.certificate.gap().is_finite(), "{loss:?} at {c}: {record:?}");
                if c <= 1.0 {
                    assert_eq!(record.status, Status::Converged, "{loss:?} at {c}, {}: {record:?}", weight.is_some());
                }
            }
        }
    }
}

/// Few rows of one class, and large C: the solution with all rows is a bad start for some of the problems.
#[test]
fn leave_one_out_converges_where_the_fold_does() {
    let (x, labels) = data(40, 2, 0.5, 8);
    let y = targets(&x, 2, 8);
    let labels: Vec<f64> = (0..40).map(|i| if labels[i] > 0.0 && i % 3 != 0 { -1.0 } else { labels[i] }).collect();
    for loss in [Loss::Logistic, Loss::Dwd, Loss::Huber { delta: 0.1 }, Loss::SquaredHinge, Loss::Hinge] {
        let y = if loss.is_classification() { &labels } else { &y };
        for shape in [Shape::Linear, Shape::Rbf] {
            let mut request = request(&x, 2, y, loss, shape, &[0.1, 10.0, 775.0]);
            request.settings = Settings::default();
            request.precision = Precision::Auto;
            let alone = |i: usize| {
                let weight = (0..40).map(|k| f64::from(k != i)).collect();
                fit(&with(&request, |r| r.tasks = vec![Task::new(loss, y).with_weight(Some(weight))]))
            };
            let left_out = fit(&with(&request, |r| r.folds = Folds::LeaveOneOut));
            for i in 0..40 {
                for (c, record) in left_out.records[i].iter().enumerate() {
                    if record.status != Status::Converged {
                        let alone = &alone(i).records[0][c];
                        assert_ne!(
                            alone.status,
                            Status::Converged,
                            "{loss:?} {shape:?} row {i}: {record:?}, {alone:?}"
                        );
                    }
                }
            }
        }
    }
}
