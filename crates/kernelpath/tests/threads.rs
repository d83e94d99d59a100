//! No call uses rayon's global pool, whose threads a forked process does not have.
//!
//! One test in a process of its own: the pool is global, and the first to use it starts it.

mod common;

use common::{data, kernel, request, with};
use kernelpath::{
    Bandwidth, Calibration, Control, Features, Folds, Kernel, Landmarks, Loss, LowRank, Method, Model, Nystrom,
    Objective, Request, Returned, Rows, Settings, Shape, Solver, Storage, Svc, Task, fit, verify,
};
use kernelpath::{Claim, KernelError, certify};
use kernelpath::{Gram, kernel_matrix};

const P: usize = 3;
const N: usize = 150;

#[test]
fn the_global_pool_is_never_started() {
    let control = Control::default();
    let (x, y) = data(N, P, 0.5, 1);
    let rows = Rows::from_slice(&x, P).unwrap();
    let all: Vec<usize> = (0..N).collect();
    let rbf = kernel(Shape::Rbf);

    rows.check("X").unwrap();
    Kernel::rbf(Bandwidth::Sigest).resolve(&rows, None, 0).unwrap();
    Kernel::rbf(Bandwidth::Scale).resolve(&rows, None, 0).unwrap();
    kernel_matrix(&rows, &rows, &rbf, 0, &control).unwrap();
    Gram::<f32>::compute(&rows, &all, &rbf, None, &control).unwrap();
    let svc = Svc::builder().cs([1.0, 10.0]).probability(Method::Sigmoid).fit(rows, &y).unwrap();
    svc.predict_proba(rows).unwrap();
    svc.verify(rows, &y).unwrap();
    let many = x.repeat(40_000 / N);
    svc.predict((many.as_slice(), P)).unwrap();
    Model::new(&rows, rbf, &y, 0.0).predict((&x[..P], P)).unwrap();
    Calibration::fit(Method::Isotonic, &y, &y.iter().map(|y| *y > 0.0).collect::<Vec<_>>(), None).unwrap();
    let claim = Claim { weight: &[1.0; N], beta: &[0.0; N], b: 0.0, k_beta: &[0.0; N] };
    certify(Loss::Logistic, &y, &[claim], &KernelError::new(0.0, &[1.0; N]), 0.0, |theta| {
        Ok(vec![vec![0.0; N]; theta.len()])
    })
    .unwrap();

    let rules = [Landmarks::KMeans, Landmarks::RpCholesky, Landmarks::Uniform, Landmarks::Rows((0..20).collect())];
    let found = rules.map(|rule| Nystrom::builder(rbf).low_rank(LowRank::new(rule, 20)).build(&rows).unwrap());
    let nystrom = &found[0];
    Features::<f32>::compute(nystrom, &rows, Storage::Memory, &control).unwrap();
    let (landmarks, map) = (nystrom.landmarks(), nystrom.map());
    kernelpath::transform::<f64>(&rows, &landmarks, map, &rbf, 0, &control).unwrap();

    let cs = [0.1, 1.0];
    let settings = Settings { tol: 1e-4, ..Settings::default() };
    let folds = Folds::stratified(&y, 3, 0).unwrap();
    for (solver, loss) in [
        (Solver::Auto, Loss::Hinge),
        (Solver::Newton, Loss::Logistic),
        (Solver::Spectral, Loss::Logistic),
        (Solver::ClosedForm, Loss::Squared),
    ] {
        for folds in [folds.clone(), Folds::LeaveOneOut] {
            let mut request = request(&x, P, &y, loss, Shape::Rbf, &cs);
            (request.solver, request.folds, request.settings, request.threads) = (solver, folds, settings, 0);
            fit(&request, &control).unwrap();
            if solver != Solver::ClosedForm && request.folds != Folds::LeaveOneOut {
                fit(&with(&request, |r| r.kernel = nystrom.into()), &control).unwrap();
            }
        }
    }
    let task = Task::new(Loss::Hinge, &y);
    let model = Returned { c: 1.0, coef: &[0.0; N], b: &[0.0] };
    verify(&rows, rbf.into(), &task, model, settings, 0, &control).unwrap();
    let landmark_coef = vec![0.0; 3 * map.nrows()];
    let model = Returned { c: 1.0, coef: &landmark_coef[..map.nrows()], b: &[0.0] };
    verify(&rows, nystrom.into(), &task, model, settings, 0, &control).unwrap();

    let task = Task::new(Objective::Multinomial, &(0..N).map(|i| (i % 3) as f64).collect::<Vec<_>>());
    let mut request = Request::new(rows, vec![task.clone()], rbf, &cs[..1]);
    request.settings = settings;
    fit(&request, &control).unwrap();
    fit(&with(&request, |r| r.kernel = nystrom.into()), &control).unwrap();
    let model = Returned { c: cs[0], coef: &[0.0; 3 * N], b: &[0.0; 3] };
    verify(&rows, rbf.into(), &task, model, settings, 0, &control).unwrap();
    let model = Returned { coef: &landmark_coef, ..model };
    verify(&rows, nystrom.into(), &task, model, settings, 0, &control).unwrap();

    // Fails if there is one already.
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("a call started the global pool");
}
