//! Kernels with negative eigenvalues: every model is returned, and none claims a proof.

mod common;

use common::{ALL_LOSSES, data, fit, kernel, naive_kernel, request, split, targets, with};
use faer::{Mat, Side};
use kernelpath::Record;
use kernelpath::{
    Control, Folds, KernelFn, Loss, LowRank, Nystrom, Objective, Request, Rows, Shape, Solver, Status, Task,
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
