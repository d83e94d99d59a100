//! What the builders do, written again as plainly as possible.
#![allow(dead_code)]

use kernelpath::{Control, Fold, Folds, KernelFn, PathFit, Request, Rows, Shape, Task, fit};

pub const TOL: f64 = 1e-9;

/// Noisy blobs in two columns, one for each class, and the class of each row.
pub fn blobs(n: usize, classes: usize, seed: u64) -> (Vec<f64>, Vec<usize>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut x, mut class) = (Vec::new(), Vec::new());
    for i in 0..n {
        let c = i % classes;
        let angle = std::f64::consts::TAU * c as f64 / classes as f64;
        x.extend([angle.cos() + 2.0 * (rng.f64() - 0.5), angle.sin() + 2.0 * (rng.f64() - 0.5)]);
        class.push(c);
    }
    (x, class)
}

/// A noisy sine of one column.
pub fn waves(n: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let x: Vec<f64> = (0..n).map(|_| 4.0 * rng.f64()).collect();
    let y = x.iter().map(|x| (2.0 * x).sin() + 0.6 * (rng.f64() - 0.5)).collect();
    (x, y)
}

/// Row i is tested by fold i mod k.
pub fn folds(n: usize, k: usize) -> Vec<Fold> {
    let rows = |fold: usize, tested: bool| (0..n).filter(|i| (i % k == fold) == tested).collect();
    (0..k).map(|fold| Fold { train: rows(fold, false), test: rows(fold, true) }).collect()
}

pub fn rbf(gamma: f64) -> KernelFn {
    KernelFn::new(Shape::Rbf, gamma).unwrap()
}

/// Σ coefⱼ exp(−γ‖x − xⱼ‖²) + b at each row of `x`.
pub fn values(x: &[f64], train: &[f64], p: usize, gamma: f64, coef: &[f64], b: f64) -> Vec<f64> {
    let kernel = |a: &[f64], z: &[f64]| (-gamma * a.iter().zip(z).map(|(a, z)| (a - z).powi(2)).sum::<f64>()).exp();
    let f = |row: &[f64]| train.chunks_exact(p).zip(coef).map(|(z, c)| c * kernel(row, z)).sum::<f64>() + b;
    x.chunks_exact(p).map(f).collect()
}

/// Some rows of `x`.
pub fn some(x: &[f64], p: usize, rows: &[usize]) -> Vec<f64> {
    rows.iter().flat_map(|&i| x[i * p..(i + 1) * p].to_vec()).collect()
}

/// The fits of these tasks with an RBF kernel at these C's and folds.
pub fn fits(x: &[f64], p: usize, tasks: Vec<Task>, gamma: f64, cs: &[f64], folds: Folds) -> Vec<PathFit> {
    let mut request = Request::new(Rows::from_slice(x, p).unwrap(), tasks, rbf(gamma), cs);
    request.folds = folds;
    request.settings.tol = TOL;
    fit(&request, &Control::default()).unwrap()
}

/// The place with the largest mean of `scores[fold][place]`; of equal ones that of the smallest C, then the first.
pub fn best(scores: &[Vec<f64>], cs: &[f64]) -> usize {
    let places = scores[0].len();
    let mean = |place: usize| scores.iter().map(|fold| fold[place]).sum::<f64>() / scores.len() as f64;
    let mut best = 0;
    for place in 1..places {
        let (here, there) = (mean(place), mean(best));
        let is_equal = (here - there).abs() <= 1e-12 * there.abs();
        if (!is_equal && here > there) || (is_equal && cs[place % cs.len()] < cs[best % cs.len()]) {
            best = place;
        }
    }
    best
}

/// The scores of several γ, one after the other in each fold.
pub fn side_by_side(of_gammas: &[Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
    (0..of_gammas[0].len()).map(|fold| of_gammas.iter().flat_map(|scores| scores[fold].clone()).collect()).collect()
}

pub fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance, "at {i}: {a} not {b}");
    }
}
