//! Kernels with negative eigenvalues: every model is returned, and none claims a proof.

mod common;

use common::{ALL_LOSSES, data, fit, kernel, naive_kernel, request, split, targets, with};
use faer::{Mat, Side};
use kernelpath::Record;
use kernelpath::{
    Bandwidth, Classifier, Control, Folds, Kernel, KernelFn, Loss, LowRank, Nystrom, Objective, Request, Returned,
    Rows, Settings, Shape, Solver, Status, Task, verify,
};

const P: usize = 3;
const CS: &[f64] = &[0.01, 1.0, 10.0];
const INDEFINITE: Shape = Shape::Sigmoid { coef0: -1.0 };

fn smallest(x: &[f64], kernel: &KernelFn, rows: &[usize]) -> f64 {
    let row = |i: usize| &x[rows[i] * P..(rows[i] + 1) * P];
    let matrix = Mat::from_fn(rows.len(), rows.len(), |i, j| naive_kernel(kernel, row(i), row(j)));
    matrix.self_adjoint_eigenvalues(Side::Lower).unwrap()[0]
}

fn thirds(n: usize) -> Folds {
    let fold = |k: usize| {
        let (test, train) = (0..n).partition(|i| i % 3 == k);
        split(train, test)
    };
    Folds::Splits((0..3).map(fold).collect())
}

fn assert_no_proof(records: &[Vec<Record>]) {
    for record in records.iter().flatten() {
        assert_eq!(record.status, Status::Indefinite);
        assert_eq!(record.status.name(), "indefinite");
        assert!(record.certificate.gap().is_nan() && record.certificate.dual.is_nan());
        assert!(record.certificate.primal.is_finite());
    }
}

#[test]
fn every_loss_and_solver_ends_without_a_proof() {
    let (x, labels) = data(60, P, 0.3, 1);
    let values = targets(&x, P, 2);
    let expected = smallest(&x, &kernel(INDEFINITE), &(0..60).collect::<Vec<_>>());
    assert!(expected < -0.1, "{expected}");
    for &loss in ALL_LOSSES {
        let y = if loss.is_classification() { &labels } else { &values };
        for solver in [Solver::Auto, Solver::Newton, Solver::Spectral] {
            let mut request = request(&x, P, y, loss, INDEFINITE, CS);
            (request.solver, request.folds, request.settings.max_iter) = (solver, thirds(60), 20_000);
            let Ok(mut fits) = kernelpath::fit(&request, &Control::default()) else {
                assert!(solver == Solver::Newton, "{loss:?}: every loss has the others");
                continue;
            };
            let fit = fits.remove(0);
            assert_no_proof(&fit.records);
            assert!(fit.worst_gap().is_nan());
            let found = fit.smallest_eigenvalue.unwrap();
            assert!((found / expected - 1.0).abs() < 1e-9, "{loss:?}: {found} {expected}");
            assert!(fit.coef.iter().flatten().all(|beta| beta.is_finite()), "{loss:?} {solver:?}");
            assert!(fit.scores.iter().flatten().all(|score| score.is_finite()), "{loss:?} {solver:?}");
        }
    }
}

#[test]
fn leave_one_out_and_machines_on_some_rows() {
    let (x, y) = data(45, P, 0.3, 3);
    for loss in [Loss::Hinge, Loss::Logistic] {
        let mut request = request(&x, P, &y, loss, INDEFINITE, &CS[..2]);
        request.folds = Folds::LeaveOneOut;
        let rows: Vec<usize> = (0..45).filter(|i| i % 3 != 0 || *i < 2).collect();
        let own: Vec<f64> = rows.iter().map(|&i| y[i]).collect();
        request.tasks.push(Task::new(loss, &own).on_rows(Some(rows)));
        let fits = kernelpath::fit(&request, &Control::default()).unwrap();
        assert_eq!(fits.len(), 2);
        for fit in &fits {
            assert_eq!(fit.records.len(), 46);
            assert_no_proof(&fit.records);
            assert_eq!(fit.smallest_eigenvalue, fits[0].smallest_eigenvalue);
        }
    }
}

#[test]
fn definite_kernels_keep_their_proofs() {
    let (x, y) = data(60, P, 0.3, 4);
    let shapes = [Shape::Rbf, Shape::Linear, Shape::Laplacian, Shape::Matern32, Shape::Matern52];
    let polynomials = [0.0, 1.0].map(|coef0| Shape::Poly { degree: 2, coef0 });
    for shape in shapes.into_iter().chain(polynomials) {
        assert!(shape.is_definite());
        let fit = fit(&request(&x, P, &y, Loss::Hinge, shape, CS));
        assert_eq!(fit.smallest_eigenvalue, None);
        assert!(fit.worst_gap() <= 1e-9, "{shape:?}");
    }
    for shape in [INDEFINITE, Shape::Poly { degree: 2, coef0: -1.0 }, Shape::Precomputed] {
        assert!(!shape.is_definite());
    }
    assert!(fit(&request(&x, P, &y, Loss::Hinge, Shape::Poly { degree: 2, coef0: -1.0 }, CS)).worst_gap().is_nan());

    // A linear kernel of a few columns as a matrix: most of its eigenvalues are 0 but for rounding.
    let all: Vec<usize> = (0..60).collect();
    let linear = kernel(Shape::Linear);
    assert!(smallest(&x, &linear, &all) < 0.0);
    let row = |i: usize| &x[i * P..(i + 1) * P];
    let matrix: Vec<f64> = (0..3600).map(|at| naive_kernel(&linear, row(at / 60), row(at % 60))).collect();
    let fit = fit(&request(&matrix, 60, &y, Loss::Hinge, Shape::Precomputed, CS));
    assert_eq!(fit.smallest_eigenvalue, None);
    assert!(fit.worst_gap() <= 1e-9);
}

#[test]
fn at_low_rank_the_landmarks_decide() {
    let (x, y) = data(80, P, 0.3, 5);
    let rows = Rows::from_slice(&x, P).unwrap();
    let chosen: Vec<usize> = (0..80).step_by(4).collect();
    let found = |shape| Nystrom::builder(kernel(shape)).low_rank(LowRank::rows(chosen.clone())).build(&rows).unwrap();
    let indefinite = found(INDEFINITE);
    let expected = smallest(&x, &kernel(INDEFINITE), &chosen);
    assert!((indefinite.smallest_eigenvalue().unwrap() / expected - 1.0).abs() < 1e-9);
    assert_eq!(found(Shape::Rbf).smallest_eigenvalue(), None);
    for solver in [Solver::Auto, Solver::Spectral] {
        let mut request = request(&x, P, &y, Loss::Hinge, INDEFINITE, CS);
        (request.folds, request.solver) = (thirds(80), solver);
        request.kernel = (&indefinite).into();
        let fit = fit(&request);
        assert_no_proof(&fit.records);
        assert_eq!(fit.smallest_eigenvalue, indefinite.smallest_eigenvalue());
    }
}

#[test]
fn the_multinomial_loss() {
    let (x, _) = data(60, P, 0.3, 6);
    let y: Vec<f64> = (0..60).map(|i| f64::from(i * 3 / 60)).collect();
    let rows = Rows::from_slice(&x, P).unwrap();
    let mut request = Request::new(rows, vec![Task::new(Objective::Multinomial, &y)], kernel(INDEFINITE), CS);
    request.folds = Folds::stratified(&y, 3, 0).unwrap();
    let exact = fit(&request);
    assert_no_proof(&exact.records);
    assert!(exact.worst_gap().is_nan() && exact.smallest_eigenvalue.unwrap() < 0.0);
    let nystrom = Nystrom::builder(kernel(INDEFINITE)).low_rank(LowRank::uniform(30)).build(&rows).unwrap();
    let low_rank = fit(&with(&request, |r| r.kernel = (&nystrom).into()));
    assert_no_proof(&low_rank.records);
    assert_eq!(low_rank.smallest_eigenvalue, nystrom.smallest_eigenvalue());

    request.kernel = kernel(Shape::Rbf).into();
    assert_eq!(fit(&request).smallest_eigenvalue, None);
}

#[test]
fn a_model_that_was_not_run_stays_so() {
    let (x, y) = data(400, P, 0.1, 7);
    let cs = kernelpath::logspace(1e-3, 1e6, 30_000).unwrap();
    let request = request(&x, P, &y, Loss::Hinge, INDEFINITE, &cs);
    let control = Control::new(Some(std::time::Duration::from_millis(300)));
    let fit = kernelpath::fit(&request, &control).unwrap().remove(0);
    assert!(fit.timed_out);
    let (run, left): (Vec<&Record>, Vec<&Record>) =
        fit.records[0].iter().partition(|record| record.status == Status::Indefinite);
    assert!(!run.is_empty() && !left.is_empty());
    assert!(left.iter().all(|record| record.status == Status::NotRun && record.certificate.gap() == f64::INFINITY));
}

/// The linear kernel of P columns as a matrix: most of its eigenvalues are 0, and rounding makes some of them negative.
fn linear_matrix(x: &[f64]) -> Vec<f64> {
    let n = x.len() / P;
    let row = |i: usize| &x[i * P..(i + 1) * P];
    (0..n * n).map(|at| naive_kernel(&kernel(Shape::Linear), row(at / n), row(at % n))).collect()
}

/// 16 √n ε max K_ii.
fn tau(matrix: &[f64], n: usize) -> f64 {
    let top = (0..n).map(|i| matrix[i * n + i]).fold(0.0, f64::max);
    16.0 * (n as f64).sqrt() * f64::EPSILON * top
}

#[test]
fn single_precision_hides_no_eigenvalue_above_its_rounding() {
    let n = 300;
    let (x, y) = data(n, P, 0.3, 8);
    let (smooth, row) = (KernelFn::new(Shape::Rbf, 0.05).unwrap(), |i: usize| &x[i * P..(i + 1) * P]);
    let at = |i: usize, j: usize| naive_kernel(&smooth, row(i), row(j)) - if i == j { 3e-3 } else { 0.0 };
    let matrix = Mat::<f32>::from_fn(n, n, |i, j| at(i, j) as f32);
    let precomputed = kernel(Shape::Precomputed);
    for loss in [Loss::Hinge, Loss::Logistic] {
        let request = Request::new(matrix.as_ref(), vec![Task::new(loss, &y)], precomputed, CS);
        let fit = fit(&request);
        assert_no_proof(&fit.records);
        let found = fit.smallest_eigenvalue.unwrap();
        assert!((found / -3e-3 - 1.0).abs() < 1e-2, "{found}");
    }
}

#[test]
fn certificates_are_those_of_the_shifted_matrix() {
    let n = 150;
    let (x, labels) = data(n, P, 0.3, 9);
    let matrix = linear_matrix(&x);
    let classes: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
    let rows = Rows::from_slice(&matrix, n).unwrap();
    for objective in [Objective::from(Loss::Hinge), Loss::Logistic.into(), Loss::Squared.into(), Objective::Multinomial]
    {
        let y = if objective == Objective::Multinomial { &classes } else { &labels };
        let mut request = Request::new(rows, vec![Task::new(objective, y)], kernel(Shape::Precomputed), &[1.0]);
        let noise = |request: &Request| {
            let found = fit(request);
            assert_eq!(found.smallest_eigenvalue, None);
            let (coef, b) = (found.coef[0].clone(), found.intercepts(0).to_vec());
            (found.records[0][0].certificate.noise, coef, b)
        };
        let (examined, coef, b) = noise(&request);
        let size: f64 = coef.iter().map(|beta| beta * beta).sum();
        assert!(examined > 0.95 * tau(&matrix, n) * size, "{objective:?}: {examined}");
        let model = Returned { c: 1.0, coef: &coef, b: &b };
        let verified = |settings: Settings| {
            let task = Task::new(objective, y);
            let control = Control::default();
            verify(&rows, kernel(Shape::Precomputed).into(), &task, model, settings, 1, &control).unwrap().noise
        };
        assert!(verified(request.settings) > 0.95 * tau(&matrix, n) * size, "{objective:?}");
        // Who vouches for the matrix gets the certificate of the matrix itself.
        request.settings.assume_definite = true;
        assert!(noise(&request).0 < examined - 0.9 * tau(&matrix, n) * size, "{objective:?}");
        assert!(verified(request.settings) < 0.1 * examined + 1e-12, "{objective:?}");
    }
}

#[test]
fn who_vouches_for_a_kernel_gets_no_look() {
    let (x, labels) = data(60, P, 0.3, 1);
    let y: Vec<i64> = labels.iter().map(|y| *y as i64).collect();
    let rows = Rows::from_slice(&x, P).unwrap();
    let of = |vouched: bool| {
        let svm = Classifier::svm().kernel(Kernel { shape: INDEFINITE, bandwidth: Bandwidth::Value(0.5) });
        svm.cs([0.01]).folds(Folds::None).assume_definite(vouched).fit(rows, &y).unwrap()
    };
    assert!(of(false).worst_gap().is_nan() && of(true).worst_gap().is_finite());
    for vouched in [false, true] {
        assert_eq!(of(vouched).saved().parameters["assume_definite"], vouched);
    }
}

#[test]
fn the_plan_counts_what_examining_takes() {
    let n = 600;
    let (x, y) = data(n, P, 0.3, 2);
    let planned = |vouched: bool| {
        let mut request = request(&x, P, &y, Loss::Hinge, INDEFINITE, &CS[..1]);
        request.settings.assume_definite = vouched;
        fit(&request).planned_bytes
    };
    // Half of the matrix in double precision.
    assert!(planned(false) > planned(true) + (3 * n * n) as u64, "{} {}", planned(false), planned(true));
}
