//! 100 000 rows on landmarks: a kernel matrix of all rows would take 40 GB.
//!
//! `cargo run --release --example low_rank -- [rows] [landmarks]`

use std::time::Instant;

use kernelpath::{Classifier, LowRank, Rows, Scoring, logspace};

fn main() -> Result<(), kernelpath::Error> {
    let argument = |k: usize, default: usize| std::env::args().nth(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (n, landmarks) = (argument(1, 100_000), argument(2, 200));
    let (x, labels) = data(n, 1);
    let started = Instant::now();
    let model = Classifier::logistic()
        .low_rank(LowRank::auto(landmarks))
        .cs(logspace(1e-2, 1e2, 5)?)
        .cv(3)
        .scoring(Scoring::RocAuc)
        .fit(Rows::from_slice(&x, 4)?, &labels)?;
    println!("{n} rows, {landmarks} landmarks: {:.1} s", started.elapsed().as_secs_f64());
    let missed = model.nystrom().map_or(f64::NAN, |nystrom| nystrom.approximation().trace_error);
    println!("the features miss {:.2} % of the trace of the kernel matrix", 100.0 * missed);
    println!("C = {}, area under the curve {:.4}", model.c(), model.best_scores()[0]);
    println!("worst gap of {} models {:.1e}", 4 * model.cs().len(), model.worst_gap());
    let (x, labels) = data(10_000, 2);
    println!("area under the curve of 10000 new rows {:.4}", model.score(Rows::from_slice(&x, 4)?, &labels)?);
    Ok(())
}

/// Whether a point lies in a wavy region, with a tenth of the answers wrong.
fn data(n: usize, seed: u64) -> (Vec<f64>, Vec<bool>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let x: Vec<f64> = (0..4 * n).map(|_| 4.0 * rng.f64() - 2.0).collect();
    let inside = |row: &[f64]| row[0].sin() * row[1] + 0.5 * row[2].cos() > 0.2 * row[3];
    let labels = x.chunks(4).map(|row| inside(row) != (rng.f64() < 0.1)).collect();
    (x, labels)
}
