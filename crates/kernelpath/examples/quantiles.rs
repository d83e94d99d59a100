//! Quantiles of noise that grows: a band between the levels 10 % and 90 %.
//!
//! The band holds 80 % of the rows that it was fitted on. New rows are in it less often, the more so the fewer rows
//! there are to learn from; out-of-fold predictions tell beforehand how often.
//!
//! `cargo run --release --example quantiles`

use kernelpath::{Gammas, Quantiles, Rows};

fn main() -> Result<(), kernelpath::Error> {
    let (x, y) = data(500, 1);
    let model =
        Quantiles::at([0.1, 0.5, 0.9]).gammas(Gammas::Auto).n_cs(20).cv(5).noncrossing().fit((&x[..], 1), &y)?;
    println!("chosen C of each level {:.3?}, worst gap of all models {:.1e}", model.chosen_cs(), model.worst_gap());
    println!("{:>5} {:>8} {:>8} {:>8}", "x", "10 %", "50 %", "90 %");
    let at = [0.5, 1.5, 2.5, 3.5];
    for (x, q) in at.iter().zip(model.predict((&at[..], 1))?.chunks(3)) {
        println!("{x:>5} {:>8.3} {:>8.3} {:>8.3}", q[0], q[1], q[2]);
    }
    let (new_x, new_y) = data(5000, 2);
    println!("rows in the band: {:.1} % of the training rows", inside(&y, &model.predict((&x[..], 1))?));
    println!("                  {:.1} % of them by models that did not see them", inside(&y, model.out_of_fold()));
    println!(
        "                  {:.1} % of 5000 new rows",
        inside(&new_y, &model.predict(Rows::from_slice(&new_x, 1)?)?)
    );
    Ok(())
}

/// The percentage of targets between the lowest and the highest of three quantiles.
fn inside(y: &[f64], quantiles: &[f64]) -> f64 {
    let count = y.iter().zip(quantiles.chunks(3)).filter(|(y, q)| q[0] <= **y && **y <= q[2]).count();
    100.0 * count as f64 / y.len() as f64
}

/// A sine with noise that grows with x.
fn data(n: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let x: Vec<f64> = (0..n).map(|_| 4.0 * rng.f64()).collect();
    let y = x.iter().map(|x| x.sin() + 0.3 * x * (rng.f64() + rng.f64() - 1.0)).collect();
    (x, y)
}
