//! Trains and tunes a kernel SVM on simulated data and prints the path with its certificates.
//!
//! `cargo run --release --example tune -- [rows] [columns] [folds] [smallest C] [largest C]`

use kernelpath::{Bandwidth, Classifier, Kernel, logspace};

fn main() -> Result<(), kernelpath::Error> {
    let argument = |k: usize, default: f64| std::env::args().nth(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (n, p, folds) = (argument(1, 1000.0) as usize, argument(2, 10.0) as usize, argument(3, 10.0) as usize);
    let (c_min, c_max) = (argument(4, 1e-3), argument(5, 1e3));
    let (x, y) = mixture(n, p, 1);
    let svc = Classifier::svm()
        .kernel(Kernel::rbf(Bandwidth::Sigest))
        .cs(logspace(c_min, c_max, 50)?)
        .cv(folds)
        .fit((x.as_slice(), p), &y)?;

    let path = svc.path();
    println!("{:>12} {:>9} {:>10} {:>8}", "C", "accuracy", "worst gap", "steps");
    for (k, c) in path.cs.iter().enumerate() {
        let mean = svc.scores().iter().map(|fold| fold[k]).sum::<f64>() / folds as f64;
        let worst = path.records.iter().map(|r| r[k].certificate.gap()).fold(0.0, f64::max);
        let steps: usize = path.records.iter().map(|r| r[k].steps).sum();
        println!("{c:>12.5} {mean:>9.4} {worst:>10.1e} {steps:>8}{}", if *c == svc.c() { "  <- chosen" } else { "" });
    }
    println!(
        "{} models, worst gap {:.1e}, kernel {:.3} s, paths {:.3} s",
        path.records.len() * path.cs.len(),
        path.worst_gap(),
        path.kernel_seconds,
        path.path_seconds
    );
    Ok(())
}

/// Two classes, each a mixture of ten Gaussians whose centres scatter around their own mean.
fn mixture(n: usize, p: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut normal = || {
        let (u, v) = (1.0 - rng.f64(), rng.f64());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    };
    let centres: Vec<Vec<f64>> =
        (0..20).map(|k| (0..p).map(|j| normal() + if (j < p / 2) == (k < 10) { 2.0 } else { 0.0 }).collect()).collect();
    let mut x = Vec::with_capacity(n * p);
    let mut y = Vec::with_capacity(n);
    for i in 0..n {
        let class = i % 2;
        let centre = &centres[class * 10 + (i / 2) % 10];
        x.extend(centre.iter().map(|c| c + 3.0 * normal()));
        y.push(if class == 0 { 1.0 } else { -1.0 });
    }
    for j in 0..p {
        let mean = (0..n).map(|i| x[i * p + j]).sum::<f64>() / n as f64;
        let sd = ((0..n).map(|i| (x[i * p + j] - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        for i in 0..n {
            x[i * p + j] = (x[i * p + j] - mean) / sd;
        }
    }
    (x, y)
}
