//! The certificate of the multinomial loss.

use crate::certify::certificate::Certificate;
use crate::certify::ledger::{Judge, Judged, Model};
use crate::certify::record::{Settings, record};
use crate::error::Result;
use crate::kernel::accuracy::STANDARD_ERRORS;
use crate::kernel::operator::Operator;
use crate::loss::softmax::{Softmax, entropy, largest, loss, make_distribution};
use crate::numeric::simd::{dot, largest as largest_value};
use crate::observe::Control;

impl Softmax {
    /// Judges (B, b) by f = KB alone. Let θ be B made feasible, and δ = θ − B. No entry of K is larger than the largest
    /// one on its diagonal, so θᵀKθ ≤ BᵀKB + 2δᵀKB + ‖δ‖₁² max K_ii. Nothing is lost if B is feasible to rounding.
    pub fn bound(&self, weight: &[f64], beta: &[f64], b: &[f64], f: &[f64], largest_diagonal: f64) -> Certificate {
        let (theta, entropies) = self.feasible(weight, beta);
        let change: Vec<f64> = theta.iter().zip(beta).map(|(theta, beta)| theta - beta).collect();
        let column = |change: &[f64]| change.iter().map(|d| d.abs()).sum::<f64>().powi(2);
        let beyond: f64 = change.chunks_exact(self.y.len()).map(column).sum();
        let quadratic = dot(beta, f) + 2.0 * dot(&change, f) + beyond * largest_diagonal;
        let primal = self.primal(weight, beta, b, f);
        if primal.is_nan() {
            return Certificate::NONE;
        }
        // θ = 0 is feasible, too, and D(0) = 0.
        Certificate { primal, dual: (entropies - 0.5 * quadratic).max(0.0), noise: 0.0 }
    }

    /// Judges (B, b) by [`bound`](Self::bound). If that does not prove a relative gap of at most `enough`, also by the
    /// θ of the slopes at f, with the intercepts at which their columns sum to 0. `k_times` must return Kθ. `weight` is
    /// Cw. The noise is what a shift of K leaves open of the values: see `KernelError::of_shift`.
    #[allow(clippy::too_many_arguments)]
    pub fn certify(
        &self,
        weight: &[f64],
        beta: &[f64],
        b: &[f64],
        f: &[f64],
        (largest_diagonal, shift): (f64, f64),
        enough: f64,
        k_times: impl Fn(&[f64]) -> Result<Vec<f64>>,
    ) -> Result<Certificate> {
        let of_shift = |theta: &[f64]| 0.5 * shift * (dot(beta, beta) + dot(theta, theta));
        let mut first = self.bound(weight, beta, b, f, largest_diagonal);
        if shift > 0.0 {
            first.noise += of_shift(&self.feasible(weight, beta).0);
        }
        if first.gap() <= enough {
            return Ok(first);
        }
        let (theta, entropies) = self.feasible(weight, &self.slopes(weight, f, &self.best_intercepts(weight, f, b)));
        let dual = entropies - 0.5 * dot(&theta, &k_times(&theta)?);
        Ok(if dual > first.dual { Certificate { dual, noise: of_shift(&theta), ..first } } else { first })
    }

    /// How far rounding may have taken P − D, given that f of row i and class c is off by the i-th of `roots` times the
    /// c-th of `errors` (one standard error), and by `shift` times B. P − D changes with f by the difference of B and the
    /// slopes, and by the change of the slopes.
    pub fn noise(
        &self,
        weight: &[f64],
        beta: &[f64],
        b: &[f64],
        f: &[f64],
        (roots, errors, shift): (&[f64], &[f64], f64),
    ) -> f64 {
        let n = self.y.len();
        let theta = self.slopes(weight, f, b);
        let (mut variance, mut shifted) = (0.0, 0.0);
        let mut g = vec![0.0; self.classes];
        for (i, &w) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            self.row(i, &mut g, |at, c| f[at] + b[c]);
            let (value, top) = (w * loss(&g, self.y[i]), largest(&g));
            for c in 0..self.classes {
                let at = c * n + i;
                let (error, beside) = (roots[i] * errors[c], shift * beta[at].abs());
                let mismatch = (beta[at] - theta[at]).abs() + 0.5 * w * (STANDARD_ERRORS * error + beside);
                shifted += mismatch * beside;
                let digits = f64::EPSILON * (f[at].abs() + b[c].abs());
                // Probabilities near 0 are rounded like 1, and the slope of the entropy is their logarithm.
                let terms = f64::EPSILON * (value + (beta[at] * f[at]).abs() + w * (top - g[c]));
                variance += (mismatch * error).powi(2) + (theta[at] * digits).powi(2) + terms.powi(2);
            }
        }
        // (Columns of θ sum to 0 by construction.)
        STANDARD_ERRORS * variance.sqrt() + shifted
    }

    /// A feasible θ near B, and Σ Cw H(π).
    ///
    /// Every π is made a distribution. Then Σᵢ Cwᵢ πᵢ = m must become N, the weights of the classes: this is what it
    /// means that columns of θ sum to 0. The map π ← κπ + (N − κm)/W with W = ΣN does it, and π stays a distribution if
    /// κ ≤ min N/m.
    fn feasible(&self, weight: &[f64], beta: &[f64]) -> (Vec<f64>, f64) {
        let n = self.y.len();
        let mut pi = vec![0.0; self.classes];
        let mut distributions = vec![0.0; beta.len()];
        let (mut wanted, mut found) = (vec![0.0; self.classes], vec![0.0; self.classes]);
        for (i, &w) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            self.row(i, &mut pi, |at, c| f64::from(c == self.y[i]) - beta[at] / w);
            make_distribution(&mut pi);
            wanted[self.y[i]] += w;
            for (c, &pi) in pi.iter().enumerate() {
                distributions[c * n + i] = pi;
                found[c] += w * pi;
            }
        }
        let total: f64 = wanted.iter().sum();
        let keep = wanted.iter().zip(&found).filter(|(_, m)| **m > 0.0).fold(1.0_f64, |a, (n, m)| a.min(n / m));
        let constant: Vec<f64> = wanted.iter().zip(&found).map(|(n, m)| ((n - keep * m) / total).max(0.0)).collect();
        let (mut theta, mut entropies) = (vec![0.0; beta.len()], 0.0);
        for (i, &w) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            self.row(i, &mut pi, |at, c| keep * distributions[at] + constant[c]);
            entropies += w * entropy(&pi);
            for (c, &pi) in pi.iter().enumerate() {
                theta[c * n + i] = w * (f64::from(c == self.y[i]) - pi);
            }
        }
        (theta, entropies)
    }
}

/// What all problems with the multinomial loss on one operator share.
pub(crate) struct Classes<'a, K> {
    pub kernel: &'a K,
    pub softmax: Softmax,
    pub settings: Settings,
    pub largest_diagonal: f64,
    /// Per row, the number that errors of products with K are proportional to.
    pub roots: Vec<f64>,
}

impl<'a, K: Operator> Classes<'a, K> {
    /// `y` holds the class of each row, counted from 0.
    pub fn new(kernel: &'a K, y: &[f64], classes: usize, settings: Settings) -> Self {
        let softmax = Softmax { y: y.iter().map(|y| *y as usize).collect(), classes };
        let (largest_diagonal, roots) = (largest_value(&kernel.diagonal()), kernel.roots());
        Self { kernel, softmax, settings, largest_diagonal, roots }
    }

    /// Each class of each column multiplied, by `product`.
    pub fn each_class(
        &self,
        columns: &[&[f64]],
        product: impl Fn(&[&[f64]]) -> Result<Vec<Vec<f64>>>,
    ) -> Result<Vec<Vec<f64>>> {
        let classes: Vec<&[f64]> = columns.iter().flat_map(|column| column.chunks_exact(self.kernel.n())).collect();
        Ok(product(&classes)?.chunks_exact(self.softmax.classes).map(<[Vec<f64>]>::concat).collect())
    }
}

impl<K: Operator> Judge for Classes<'_, K> {
    fn n(&self) -> usize {
        self.kernel.n()
    }

    fn outputs(&self) -> usize {
        self.softmax.classes
    }

    fn tol(&self) -> f64 {
        self.settings.tol
    }

    fn values(&self, coefs: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        self.each_class(coefs, |classes| self.kernel.times(classes, control))
    }

    fn given_intercepts(&self, coef: &[f64], b: &mut [f64]) {
        self.kernel.given_intercepts(coef, b);
    }

    fn judge(&self, models: &[Model], control: &Control) -> Result<Vec<Judged>> {
        let Self { kernel, softmax, settings, largest_diagonal, roots } = self;
        let classes: Vec<&[f64]> = models.iter().flat_map(|model| model.coef.chunks_exact(kernel.n())).collect();
        let errors = kernel.errors(&classes, control)?;
        let judged = |(&Model { weight, c, coef, b, f, outcome, .. }, errors): (&Model, &[f64])| {
            let weight: Vec<f64> = weight.iter().map(|w| w * c).collect();
            let k_times = |theta: &[f64]| Ok(self.values(&[theta], control)?.concat());
            let size = (*largest_diagonal, kernel.shift());
            let Certificate { primal, dual, noise } =
                softmax.certify(&weight, coef, b, f, size, settings.tol, k_times)?;
            let of_f = softmax.noise(&weight, coef, b, f, (roots, errors, kernel.shift()));
            let certificate = Certificate::new(primal, dual, noise + of_f);
            let record = record(outcome, certificate, b.to_vec(), settings.tol);
            Ok(Judged::model(record))
        };
        models.iter().zip(errors.chunks_exact(softmax.classes)).map(judged).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, their weights, and a random (B, b); K is the identity, so that f = B.
    fn random(seed: u64, classes: usize, size: f64) -> (Softmax, Vec<f64>, Vec<f64>, Vec<f64>) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let n = 4 * classes;
        let y = (0..n).map(|i| i % classes).collect();
        let weight = (0..n).map(|i| if i % 5 == 4 { 0.0 } else { 0.1 + 3.0 * rng.f64() }).collect();
        let beta = (0..n * classes).map(|_| size * (rng.f64() - 0.5)).collect();
        let b = (0..classes).map(|_| size * (rng.f64() - 0.5)).collect();
        (Softmax { y, classes }, weight, beta, b)
    }

    #[test]
    fn feasible_points_are_feasible_and_no_gap_is_negative() {
        for (seed, size) in (0..40).zip([1e-3, 0.3, 3.0, 1e3].into_iter().cycle()) {
            let (softmax, weight, beta, b) = random(seed, 2 + seed as usize % 4, size);
            let n = softmax.y.len();
            let (theta, _) = softmax.feasible(&weight, &beta);
            for column in theta.chunks_exact(n) {
                assert!(column.iter().sum::<f64>().abs() < 1e-12, "seed {seed}");
            }
            for (i, &w) in weight.iter().enumerate() {
                let row: Vec<f64> = (0..softmax.classes).map(|c| theta[c * n + i]).collect();
                assert!(row.iter().sum::<f64>().abs() < 1e-12);
                for (c, theta) in row.iter().enumerate() {
                    let pi = f64::from(c == softmax.y[i]) * w - theta;
                    assert!(pi > -1e-12 && pi < w + 1e-12, "seed {seed}");
                }
            }
            let bound = softmax.bound(&weight, &beta, &b, &beta, 1.0);
            assert!(bound.primal >= bound.dual, "seed {seed}: {bound:?}");
            let exact =
                softmax.certify(&weight, &beta, &b, &beta, (1.0, 0.0), 0.0, |theta| Ok(theta.to_vec())).unwrap();
            assert!(exact.primal >= exact.dual && exact.dual >= bound.dual, "seed {seed}: {exact:?}");
        }
    }

    /// With K = 0 the optimum is the constant model, whatever the weights.
    #[test]
    fn no_gap_at_the_optimum() {
        let (softmax, weight, beta, _) = random(1, 3, 0.0);
        let b = softmax.best_intercepts(&weight, &beta, &[5.0, -3.0, 0.0]);
        assert!(b.iter().sum::<f64>().abs() < 1e-12);
        let theta = softmax.slopes(&weight, &beta, &b);
        let certificate = softmax.bound(&weight, &theta, &b, &beta, 0.0);
        assert!(certificate.gap().abs() < 1e-14, "{certificate:?}");
        // A bad b raises P as it should, and the slopes still prove D.
        let zeros = vec![0.0; beta.len()];
        let judged = softmax
            .certify(&weight, &zeros, &[5.0, -3.0, 0.0], &zeros, (0.0, 0.0), 0.0, |_| Ok(zeros.clone()))
            .unwrap();
        assert!((judged.dual - certificate.dual).abs() < 1e-12 * certificate.dual && judged.gap() > 0.1);
    }
}
