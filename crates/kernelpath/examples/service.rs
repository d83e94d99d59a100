//! A service that answers one row at a time: trains once, shares the model among threads, and prints the latency.
//!
//! `cargo run --release --example service -- [requests]`

use std::time::Instant;

use kernelpath::{Classifier, FittedClassifier, Method, Rows};

const COLUMNS: usize = 6;

fn main() -> Result<(), kernelpath::Error> {
    let requests = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2000);
    let mut rng = fastrand::Rng::with_seed(1);
    let mut rows = |n: usize| (0..n * COLUMNS).map(|_| 2.0 * rng.f64() - 1.0).collect::<Vec<f64>>();
    let x = rows(800);
    let labels: Vec<&str> =
        x.chunks(COLUMNS).map(|row| if row[0] * row[1] + row[2] > 0.0 { "accept" } else { "refuse" }).collect();
    let model = Classifier::svm().n_cs(20).probability(Method::Sigmoid).fit(Rows::from_slice(&x, COLUMNS)?, &labels)?;
    println!("{} support vectors, accuracy {:.3}", model.support().len(), model.best_scores()[0]);

    let incoming = rows(requests);
    // A fitted model is only read, so that threads need no lock.
    let halves = std::thread::scope(|scope| {
        let handles: Vec<_> = (incoming.chunks(incoming.len().div_ceil(2 * COLUMNS).max(1) * COLUMNS))
            .map(|half| scope.spawn(|| answered(&model, half)))
            .collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect::<Result<Vec<_>, _>>()
    })?;
    let accepted: usize = halves.iter().map(|half| half.0).sum();
    let mut seconds: Vec<f64> = halves.into_iter().flat_map(|half| half.1).collect();
    seconds.sort_by(f64::total_cmp);
    let at = |share: f64| 1e6 * seconds[((seconds.len() - 1) as f64 * share) as usize];
    println!("{requests} requests, {accepted} accepted");
    println!("microseconds a request: median {:.1}, 99 % below {:.1}", at(0.5), at(0.99));
    Ok(())
}

/// The number of rows that are accepted with P > 0.8, and the seconds of each answer.
fn answered(model: &FittedClassifier<String>, rows: &[f64]) -> Result<(usize, Vec<f64>), kernelpath::Error> {
    let (mut accepted, mut seconds) = (0, Vec::new());
    for row in rows.chunks(COLUMNS) {
        let started = Instant::now();
        let probabilities = model.predict_proba((row, COLUMNS))?;
        seconds.push(started.elapsed().as_secs_f64());
        accepted += usize::from(probabilities[0] > 0.8);
    }
    Ok((accepted, seconds))
}
