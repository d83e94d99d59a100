//! Data, and naive twins of what the library does fast.
#![allow(dead_code)]

use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef};
use kernelpath::{
    Control, Fold, Folds, Hardware, KernelFn, Loss, Objective, PathFit, Precision, Request, Rows, Shape, Task,
};

pub const ALL_LOSSES: &[Loss] = &[
    Loss::Hinge,
    Loss::SquaredHinge,
    Loss::Logistic,
    Loss::Dwd,
    Loss::Quantile { tau: 0.7 },
    Loss::EpsilonInsensitive { epsilon: 0.1 },
    Loss::Squared,
    Loss::Huber { delta: 0.2 },
    Loss::Expectile { tau: 0.3 },
];

/// Rows around ±shift, a target a row: labels ±1, or a noisy sine for regression losses.
pub fn data(n: usize, p: usize, shift: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..n {
        let class = if i < 2 {
            2.0 * i as f64 - 1.0
        } else if rng.f64() < 0.4 {
            1.0
        } else {
            -1.0
        };
        x.extend((0..p).map(|_| 3.0 * (rng.f64() - 0.5) + shift * class));
        y.push(class);
    }
    (x, y)
}

pub fn targets(x: &[f64], p: usize, seed: u64) -> Vec<f64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    x.chunks_exact(p).map(|row| (2.0 * row[0]).sin() + 0.5 * (rng.f64() - 0.5)).collect()
}

/// f of one machine at every row.
pub fn decision(x: &Rows, vectors: &Rows, coef: &[f64], b: f64, kernel: &KernelFn) -> Vec<f64> {
    let coef = MatRef::from_column_major_slice(coef, coef.len(), 1);
    kernelpath::decision(x, vectors, coef, &[b], kernel, Hardware::threads(1), &Control::default()).unwrap()
}

pub fn kernel(shape: Shape) -> KernelFn {
    KernelFn::new(shape, 0.5).unwrap()
}

pub fn request<'a>(
    x: &'a [f64],
    p: usize,
    y: &[f64],
    objective: impl Into<Objective>,
    shape: Shape,
    cs: &'a [f64],
) -> Request<'a> {
    let mut request = Request::new(Rows::from_slice(x, p).unwrap(), vec![Task::new(objective, y)], kernel(shape), cs);
    request.settings.tol = 1e-9;
    request.precision = Precision::Double;
    request.threads = 1;
    request
}

/// A changed copy of a request.
pub fn with<'a>(request: &Request<'a>, change: impl FnOnce(&mut Request<'a>)) -> Request<'a> {
    let mut changed = request.clone();
    change(&mut changed);
    changed
}

/// The fit of the first task.
pub fn fit(request: &Request) -> PathFit {
    kernelpath::fit(request, &Control::default()).unwrap().remove(0)
}

/// The refit alone, on some rows (repetitions allowed).
pub fn naive_refit(request: &Request, p: usize, x: &[f64], rows: &[usize]) -> PathFit {
    let sub_x: Vec<f64> = rows.iter().flat_map(|&i| x[i * p..(i + 1) * p].to_vec()).collect();
    let sub_y: Vec<f64> = rows.iter().map(|&i| request.tasks[0].y[i]).collect();
    fit(&with(request, |sub| {
        sub.x = Rows::from_slice(&sub_x, p).unwrap();
        sub.tasks = vec![Task::new(request.tasks[0].objective, &sub_y)];
        sub.folds = Folds::None;
    }))
}

/// The kernel, entry by entry, from its formula.
pub fn naive_kernel(kernel: &KernelFn, a: &[f64], b: &[f64]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let l1: f64 = a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum();
    let d2: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    let length = 1.0 / (2.0 * kernel.gamma).sqrt();
    match kernel.shape {
        Shape::Rbf => (-kernel.gamma * d2).exp(),
        Shape::Laplacian => (-kernel.gamma * l1).exp(),
        Shape::Poly { degree, coef0 } => (kernel.gamma * dot + coef0).powf(f64::from(degree)),
        Shape::Linear => dot,
        Shape::Sigmoid { coef0 } => (kernel.gamma * dot + coef0).tanh(),
        Shape::Matern32 => {
            let a = 3f64.sqrt() * d2.sqrt() / length;
            (1.0 + a) * (-a).exp()
        }
        Shape::Matern52 => {
            let a = 5f64.sqrt() * d2.sqrt() / length;
            (1.0 + a + a * a / 3.0) * (-a).exp()
        }
        Shape::Precomputed => unreachable!(),
    }
}

/// The optimal value of the dual box QP by trying every assignment of rows to levels and segments.
pub fn brute_force(k: &Mat<f64>, loss: Loss, y: &[f64], c: f64) -> f64 {
    let n = y.len();
    let mut best = f64::INFINITY;
    let mut state = vec![0u8; n];
    'next: loop {
        if let Some(value) = try_assignment(k, loss, y, c, &state) {
            best = best.min(value);
        }
        for s in &mut state {
            *s += 1;
            if *s < 5 {
                continue 'next;
            }
            *s = 0;
        }
        return best;
    }
}

/// 0, 2, 4 are the levels lo, mid, hi; 1 and 3 the segments between them.
fn try_assignment(k: &Mat<f64>, loss: Loss, y: &[f64], c: f64, state: &[u8]) -> Option<f64> {
    let n = y.len();
    let free: Vec<usize> = (0..n).filter(|&i| state[i] % 2 == 1).collect();
    let level = |i: usize| {
        let kinks = loss.kinks(y[i]).unwrap();
        c * [kinks.lo, 0.0, kinks.mid, 0.0, kinks.hi][state[i] as usize]
    };
    let kink =
        |i: usize| if state[i] == 1 { loss.kinks(y[i]).unwrap().kink_low } else { loss.kinks(y[i]).unwrap().kink_high };
    let m = free.len();
    let mut beta: Vec<f64> = (0..n).map(|i| if state[i] % 2 == 1 { 0.0 } else { level(i) }).collect();
    if m > 0 {
        let matrix = Mat::from_fn(m + 1, m + 1, |a, b| match (a == m, b == m) {
            (true, true) => 0.0,
            (true, false) | (false, true) => 1.0,
            _ => k[(free[a], free[b])] + if a == b { 1e-12 } else { 0.0 },
        });
        let right = Mat::from_fn(m + 1, 1, |a, _| {
            if a == m {
                -beta.iter().sum::<f64>()
            } else {
                kink(free[a]) - (0..n).map(|j| k[(free[a], j)] * beta[j]).sum::<f64>()
            }
        });
        let solution = matrix.partial_piv_lu().solve(&right);
        for (a, &i) in free.iter().enumerate() {
            beta[i] = solution[(a, 0)];
        }
    }
    let feasible = (0..n).all(|i| {
        let kinks = loss.kinks(y[i]).unwrap();
        let (low, high) = match state[i] {
            1 => (kinks.lo, kinks.mid),
            3 => (kinks.mid, kinks.hi),
            _ => return true,
        };
        beta[i] >= c * low - 1e-9 && beta[i] <= c * high + 1e-9
    });
    let sum: f64 = beta.iter().sum();
    if !feasible || sum.abs() > 1e-9 * c {
        return None;
    }
    let quadratic: f64 = (0..n).map(|i| (0..n).map(|j| beta[i] * k[(i, j)] * beta[j]).sum::<f64>()).sum();
    let linear: f64 = (0..n)
        .map(|i| {
            let kinks = loss.kinks(y[i]).unwrap();
            c * loss.dual_value(y[i], (beta[i] / c).clamp(kinks.lo, kinks.hi))
        })
        .sum();
    Some(0.5 * quadratic - linear)
}

pub fn split(train: Vec<usize>, test: Vec<usize>) -> Fold {
    Fold { train, test }
}
