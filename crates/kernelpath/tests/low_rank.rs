//! Paths and folds on low-rank features: every loss, against the exact solvers and naive refits.

mod common;

use std::time::Duration;

use common::{ALL_LOSSES, data, decision, request, split, targets, with};
use kernelpath::{
    Control, Error, Features, Folds, Landmarks, Loss, LowRank, Nystrom, Objective, PathFit, Precision, Request, Rows,
    Settings, Shape, Solver, Status, Storage, Task, logspace,
};

const P: usize = 3;
const CS: &[f64] = &[1e-3, 0.1, 3.0, 100.0, 0.7];

struct Case {
    x: Vec<f64>,
    y: Vec<f64>,
    loss: Loss,
}

impl Case {
    fn new(n: usize, loss: Loss, seed: u64) -> Self {
        let (x, labels) = data(n, P, 0.25, seed);
        let y = if loss.is_classification() { labels } else { targets(&x, P, seed + 1) };
        Self { x, y, loss }
    }

    fn rows(&self) -> Rows<'_> {
        Rows::from_slice(&self.x, P).unwrap()
    }

    fn request(&self) -> Request<'_> {
        let n = self.y.len();
        let folds = (0..3).map(|k| {
            let (test, train) = (0..n).partition(|i| i % 3 == k);
            split(train, test)
        });
        let mut request = request(&self.x, P, &self.y, self.loss, Shape::Rbf, CS);
        request.folds = Folds::Splits(folds.collect());
        request.settings.tol = 1e-8;
        request
    }

    fn nystrom(&self, n_landmarks: usize) -> Nystrom {
        let kernel = self.request().kernel.function();
        Nystrom::builder(kernel)
            .low_rank(LowRank::new(Landmarks::RpCholesky, n_landmarks))
            .seed(3)
            .build(&self.rows())
            .unwrap()
    }
}

fn at_low_rank<'a>(request: &Request<'a>, nystrom: &'a Nystrom) -> Request<'a> {
    with(request, |r| r.kernel = nystrom.into())
}

fn fit(request: &Request, nystrom: &Nystrom) -> PathFit {
    common::fit(&at_low_rank(request, nystrom))
}

/// Both solve the same problems: objectives to the tolerance, held-out values to its root.
fn assert_same(a: &PathFit, b: &PathFit, tol: f64, what: &str) {
    for (fold, (a, b)) in a.records.iter().zip(&b.records).enumerate() {
        for (a, b) in a.iter().zip(b) {
            assert_eq!((a.status, b.status), (Status::Converged, Status::Converged), "{what}, fold {fold}");
            let (p, q) = (a.certificate.primal, b.certificate.primal);
            assert!((p - q).abs() <= tol * p.abs().max(q.abs()), "{what}, fold {fold}: {p} {q}");
        }
    }
    let piecewise_linear = matches!(a.objective, Objective::Scalar(loss) if loss.kinks(0.0).is_some());
    for (k, (of_a, of_b)) in a.oof.iter().zip(&b.oof).enumerate() {
        for (c, (f, g)) in of_a.iter().zip(of_b).enumerate() {
            // ½‖w − w*‖² ≤ gap, so f is within √(2 gap) times ‖z‖ ≤ 1, and b follows it.
            let objective = a.records[k][c].certificate.primal;
            let slack = 4.0 * (2.0 * tol * objective).sqrt() + 1e-9;
            let worst = f.iter().zip(g).map(|(f, g)| (f - g).abs()).fold(0.0, f64::max);
            // Where no row is at a kink, b of a piecewise-linear loss is not unique.
            assert!(piecewise_linear || worst <= slack, "{what}, fold {k}, C {}: {worst} {slack}", CS[c]);
        }
    }
}

#[test]
fn equals_the_exact_solvers_on_the_same_low_rank_kernel() {
    for (k, &loss) in ALL_LOSSES.iter().enumerate() {
        let case = Case::new(150, loss, k as u64);
        let nystrom = case.nystrom(20);
        let solved = [Solver::Newton, Solver::Spectral].map(|solver| with(&case.request(), |r| r.solver = solver));
        let [low_rank, spectral] = solved.map(|request| fit(&request, &nystrom));
        assert_eq!((low_rank.solver, spectral.solver), ("newton", "spectral"));
        assert!(low_rank.worst_gap() <= 1e-8, "{loss:?} {}", low_rank.worst_gap());
        let z = Features::<f64>::compute(&nystrom, &case.rows(), Storage::Memory, &Control::default()).unwrap();
        let product = |i: usize, j: usize| z.row(i).iter().zip(z.row(j)).map(|(a, b)| a * b).sum::<f64>();
        let gram: Vec<f64> = (0..150).flat_map(|i| (0..150).map(move |j| (i, j))).map(|(i, j)| product(i, j)).collect();
        let exact = common::fit(&with(&case.request(), |r| {
            r.x = Rows::from_slice(&gram, 150).unwrap();
            r.kernel = common::kernel(Shape::Precomputed).into();
        }));
        assert_same(&low_rank, &exact, 2e-8, &format!("{loss:?}"));
        assert_same(&spectral, &exact, 2e-8, &format!("{loss:?}, spectral"));
    }
}

#[test]
fn all_rows_as_landmarks_give_the_exact_answer() {
    for loss in [Loss::Hinge, Loss::Logistic, Loss::Quantile { tau: 0.4 }] {
        let case = Case::new(80, loss, 11);
        let exact = common::fit(&case.request());
        let all: Vec<usize> = (0..80).collect();
        let kernel = case.request().kernel.function();
        let landmarks = Landmarks::Rows(all);
        let nystrom =
            Nystrom::builder(kernel).low_rank(LowRank::new(landmarks.clone(), 0)).build(&case.rows()).unwrap();
        let low_rank = fit(&case.request(), &nystrom);
        assert_same(&low_rank, &exact, 1e-7, &format!("{loss:?}"));
        // The coefficients of the landmarks predict what the path says of its folds' rows in training.
        let c = 2;
        let coef = &low_rank.coef[c];
        let b = low_rank.records[3][c].b[0];
        let f = decision(&case.rows(), &nystrom.landmarks(), coef, b, &kernel);
        let p: f64 = f.iter().zip(&case.y).map(|(f, y)| CS[c] * loss.value(*y, *f)).sum();
        assert!(p <= low_rank.records[3][c].certificate.primal * (1.0 + 1e-6), "{loss:?}");
    }
}

#[test]
fn where_the_rank_is_large_the_answer_is_the_same() {
    for loss in [Loss::Hinge, Loss::Logistic] {
        let case = Case::new(330, loss, 6);
        let landmarks: Vec<usize> = (0..330).collect();
        let kernel = kernelpath::KernelFn::new(Shape::Laplacian, 1.0).unwrap();
        let nystrom = |rank: usize| {
            let landmarks = Landmarks::Rows(landmarks.clone());
            Nystrom::builder(kernel)
                .low_rank(LowRank::new(landmarks.clone(), 0).rank(rank))
                .build(&case.rows())
                .unwrap()
        };
        // On the kernel matrix, and in rank dimensions: of the features, the last hardly counts.
        let (on_matrix, reduced) = (nystrom(256), nystrom(255));
        let (a, b) = (fit(&case.request(), &on_matrix), fit(&case.request(), &reduced));
        let exact = common::fit(&with(&case.request(), |r| r.kernel = kernel.into()));
        for ((a, b), exact) in
            a.records.iter().flatten().zip(b.records.iter().flatten()).zip(exact.records.iter().flatten())
        {
            let [p, q, r] = [a, b, exact].map(|record| record.certificate.primal);
            assert!(
                (p - q).abs() <= 0.02 * p && p >= r * (1.0 - 1e-6) && q >= p * (1.0 - 1e-6),
                "{loss:?}: {p} {q} {r}"
            );
        }
        let b = a.records[3][2].b[0];
        let f = decision(&case.rows(), &on_matrix.landmarks(), &a.coef[2], b, &kernel);
        let losses: f64 = f.iter().zip(&case.y).map(|(f, y)| CS[2] * loss.value(*y, *f)).sum();
        assert!(losses <= a.records[3][2].certificate.primal, "{loss:?}");
    }
}

#[test]
fn every_fold_equals_a_refit_on_its_rows() {
    for &loss in ALL_LOSSES {
        let case = Case::new(90, loss, 5);
        let nystrom = case.nystrom(15);
        let request = case.request();
        let whole = fit(&request, &nystrom);
        let Folds::Splits(folds) = &request.folds else { unreachable!() };
        for (fold, records) in folds.iter().zip(&whole.records) {
            let x: Vec<f64> = fold.train.iter().flat_map(|&i| case.x[i * P..(i + 1) * P].to_vec()).collect();
            let y: Vec<f64> = fold.train.iter().map(|&i| case.y[i]).collect();
            let alone = with(&request, |r| {
                r.x = Rows::from_slice(&x, P).unwrap();
                r.tasks = vec![Task::new(loss, &y)];
                r.folds = Folds::None;
            });
            let alone = fit(&alone, &nystrom);
            for (a, b) in records.iter().zip(&alone.records[0]) {
                let (p, q) = (a.certificate.primal, b.certificate.primal);
                assert!((p - q).abs() <= 2e-8 * p.abs(), "{loss:?}: {p} {q}");
            }
        }
    }
}

#[test]
fn a_weight_of_two_is_two_rows_and_of_none_is_none() {
    for &loss in ALL_LOSSES {
        let case = Case::new(60, loss, 8);
        let nystrom = case.nystrom(12);
        let weight: Vec<f64> = (0..60).map(|i| f64::from([1, 2, 0, 3][i % 4])).collect();
        let weighted = with(&case.request(), |r| {
            r.tasks = vec![Task::new(loss, &case.y).with_weight(Some(weight.clone()))];
            r.folds = Folds::None;
        });
        let repeated: Vec<usize> = (0..60).flat_map(|i| vec![i; weight[i] as usize]).collect();
        let x: Vec<f64> = repeated.iter().flat_map(|&i| case.x[i * P..(i + 1) * P].to_vec()).collect();
        let y: Vec<f64> = repeated.iter().map(|&i| case.y[i]).collect();
        let rows = with(&case.request(), |r| {
            r.x = Rows::from_slice(&x, P).unwrap();
            r.tasks = vec![Task::new(loss, &y)];
            r.folds = Folds::None;
        });
        assert_same(&fit(&weighted, &nystrom), &fit(&rows, &nystrom), 2e-8, &format!("{loss:?}"));
    }
}

#[test]
fn a_task_on_some_rows_is_scored_on_all() {
    let case = Case::new(90, Loss::Hinge, 2);
    let nystrom = case.nystrom(15);
    let rows: Vec<usize> = (0..90).filter(|i| i % 5 != 0).collect();
    let y: Vec<f64> = rows.iter().map(|&i| case.y[i]).collect();
    let weight: Vec<f64> = (0..90).map(|i| f64::from(u8::from(i % 5 != 0))).collect();
    let tasks =
        vec![Task::new(Loss::Hinge, &y).on_rows(Some(rows)), Task::new(Loss::Hinge, &case.y).with_weight(Some(weight))];
    let request = with(&at_low_rank(&case.request(), &nystrom), |r| r.tasks = tasks);
    let fits = kernelpath::fit(&request, &Control::default()).unwrap();
    assert_same(&fits[0], &fits[1], 2e-8, "some rows");
    assert_eq!(fits[0].oof[0][0].len(), 30);
}

#[test]
fn threads_do_not_change_the_answer_and_single_precision_is_certified() {
    for loss in [Loss::Hinge, Loss::Dwd] {
        let case = Case::new(2000, loss, 4);
        let nystrom = case.nystrom(40);
        let mut request = case.request();
        (request.precision, request.settings) = (Precision::Single, Settings::default());
        let one = fit(&request, &nystrom);
        let three = fit(&with(&request, |r| r.threads = 3), &nystrom);
        assert!(one.worst_gap() <= 1e-6, "{loss:?}: {}", one.worst_gap());
        assert_eq!(one.coef, three.coef, "{loss:?}");
        assert_eq!(one.oof, three.oof, "{loss:?}");
    }
}

#[test]
fn what_needs_the_kernel_matrix_is_refused() {
    let case = Case::new(40, Loss::Hinge, 1);
    let nystrom = case.nystrom(10);
    let request = at_low_rank(&case.request(), &nystrom);
    let refused = |request: Request| kernelpath::fit(&request, &Control::default()).unwrap_err();
    let error = refused(with(&request, |r| r.folds = Folds::LeaveOneOut));
    assert!(matches!(error, Error::LowRank { .. }) && error.to_string().contains("`.cv(10)`"), "{error}");
    let error = refused(with(&request, |r| r.solver = Solver::ActiveSet));
    assert!(error.to_string().contains("newton"), "{error}");
    assert!(common::fit(&with(&request, |r| r.solver = Solver::Newton)).worst_gap() <= 1e-8);
}

#[test]
fn stops_when_asked_and_when_time_is_out() {
    let case = Case::new(3000, Loss::Hinge, 1);
    let nystrom = case.nystrom(60);
    let cancelled = Control::default();
    cancelled.cancel();
    let request = at_low_rank(&case.request(), &nystrom);
    assert_eq!(kernelpath::fit(&request, &cancelled).unwrap_err(), Error::Interrupted);
    // More C's than any machine solves within the budget.
    let cs = kernelpath::logspace(1e-3, 1e3, 10_000).unwrap();
    let request = with(&request, |r| r.cs = &cs);
    let fit = kernelpath::fit(&request, &Control::new(Some(Duration::from_millis(200)))).unwrap().remove(0);
    assert!(fit.timed_out);
    assert_eq!(fit.records[3][9999].status, Status::NotRun);
    assert_ne!(fit.records[3][0].status, Status::NotRun);
}

#[test]
fn a_large_c_is_reached_without_the_path_to_it() {
    // Most rows are far from a kink in the end, but not where it starts.
    let case = Case::new(5000, Loss::Hinge, 21);
    let y: Vec<f64> = case.x.chunks(P).map(|r| (3.0 * r[0]).sin() + r[1] * r[2]).map(f64::signum).collect();
    let case = Case { y, ..case };
    let nystrom = case.nystrom(80);
    for c in [10.0, 1e3, 1e5] {
        let cs = [c];
        let request = with(&case.request(), |r| {
            r.cs = &cs;
            r.settings = Settings { max_iter: 3000, ..Settings::default() };
        });
        let fit = fit(&request, &nystrom);
        assert!(fit.worst_gap() <= 1e-6, "C = {c}: {}", fit.worst_gap());
    }
}

#[test]
fn rows_that_were_left_out_wrongly_are_not_left_out_again() {
    // Noisy targets and a rank that follows some of the noise: many rows cross their kink between two C's.
    let (n, p) = (8000, 6);
    for seed in [22, 23] {
        let (x, _) = data(n, p, 0.25, seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut label = |r: &[f64]| (3.0 * r[0]).sin() + r[1] * r[2] + 0.6 * (rng.f64() + rng.f64() - 1.0);
        let y: Vec<f64> = x.chunks(p).map(|r| label(r).signum()).collect();
        let (rows, cs) = (Rows::from_slice(&x, p).unwrap(), logspace(1e-2, 1e3, 15).unwrap());
        let mut request = request(&x, p, &y, Loss::Hinge, Shape::Rbf, &cs);
        request.settings = Settings { max_iter: 200, ..Settings::default() };
        let rule = Landmarks::RpCholesky;
        let nystrom = Nystrom::builder(request.kernel.function())
            .low_rank(LowRank::new(rule.clone(), 250))
            .seed(3)
            .build(&rows)
            .unwrap();
        let fit = fit(&request, &nystrom);
        for (record, c) in fit.records[0].iter().zip(&cs) {
            assert_eq!(record.status, Status::Converged, "C = {c}, {} steps", record.steps);
        }
    }
}
