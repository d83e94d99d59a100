//! Prints the microseconds that the decision value of one row takes: the median of many calls, for 1200 support vectors.
//!
//! `cargo run --release --example latency -- [support vectors] [columns]`

use std::hint::black_box;
use std::time::Instant;

use kernelpath::{KernelFn, Model, Rows, Shape};

const CALLS: usize = 2001;

fn main() -> Result<(), kernelpath::Error> {
    let argument = |k: usize, default: usize| std::env::args().nth(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (n, p) = (argument(1, 1200), argument(2, 10));
    let x: Vec<f64> = (0..n * p).map(|i| (0.37 * i as f64).sin()).collect();
    let beta: Vec<f64> = (0..n).map(|i| 1.5 + (0.1 * i as f64).cos()).collect();
    for name in ["rbf", "laplacian", "linear", "matern52"] {
        let kernel = KernelFn::new(Shape::from_name(name, 3, 0.0)?, 0.05)?;
        let model = Model::new(&Rows::from_slice(&x, p)?, kernel, &beta, 0.1);
        let mut seconds = Vec::with_capacity(CALLS);
        for call in 0..CALLS {
            let row = &x[call % n * p..][..p];
            let started = Instant::now();
            black_box(model.decision_function((row, p))?);
            seconds.push(started.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        println!("{name} {:.2}", 1e6 * seconds[CALLS / 2]);
    }
    Ok(())
}
