//! Three classes with names, probabilities, and a proof for each machine.
//!
//! `cargo run --release --example several_classes`

use kernelpath::{Classifier, Gammas, Method, MultiClass, Rows, Selection};

fn main() -> Result<(), kernelpath::Error> {
    // Three spirals that wind around each other.
    let mut rng = fastrand::Rng::with_seed(1);
    let (mut x, mut labels) = (Vec::new(), Vec::new());
    for i in 0..600 {
        let (arm, t) = (i % 3, 0.3 + 3.0 * rng.f64());
        let angle = 2.0 * t + std::f64::consts::TAU * arm as f64 / 3.0;
        x.extend([t * angle.cos() + 0.3 * (rng.f64() - 0.5), t * angle.sin() + 0.3 * (rng.f64() - 0.5)]);
        labels.push(["red", "green", "blue"][arm]);
    }
    let rows = Rows::from_slice(&x, 2)?;

    for multi_class in [MultiClass::OneVsOne, MultiClass::OneVsRest] {
        let model = Classifier::svm()
            .multi_class(multi_class)
            .gammas(Gammas::Auto)
            .n_cs(20)
            .cv(5)
            .selection(Selection::OneStandardError)
            .probability(Method::Sigmoid)
            .fit(rows, &labels)?;
        println!("{multi_class:?}: C = {:.3}, gamma = {:.3}", model.c(), model.gamma().unwrap_or(f64::NAN));
        println!("  cross-validated accuracy {:.3}", model.best_scores()[0]);
        println!("  worst gap of all models {:.1e}", model.worst_gap());
        for (m, proof) in model.verify(rows, &labels)?.iter().enumerate() {
            println!("  machine {m}: recomputed gap {:.1e}", proof.gap());
        }
        let new = [1.0, 0.2];
        let probabilities = model.predict_proba((&new[..], 2))?;
        println!("  at {new:?}: {}", model.predict((&new[..], 2))?[0]);
        for (class, p) in model.classes().iter().zip(probabilities) {
            println!("    P({class}) = {p:.3}");
        }
    }
    Ok(())
}
