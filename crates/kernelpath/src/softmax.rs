//! The multinomial loss and its certificate: k classes, k columns of B, a problem that couples them in each row.
//!
//! ```text
//! minimise over B ∈ Rⁿˣᵏ, b ∈ Rᵏ:   P(B, b) = Σᵢ Cwᵢ (log Σ_c exp g_ic − g_iyᵢ) + ½ Σ_c B_cᵀKB_c,     g = KB + 1bᵀ
//! maximise over θ ∈ Rⁿˣᵏ:           D(θ) = Σᵢ Cwᵢ H(πᵢ) − ½ Σ_c θ_cᵀKθ_c,                 πᵢ = e_yᵢ − θᵢ / Cwᵢ
//! ```
//!
//! where every πᵢ must be a distribution over the classes (H is its entropy), and every column of θ must sum to 0. At
//! the optimum B = θ, and πᵢ are the probabilities pᵢ = softmax(gᵢ). For every feasible θ, P(B, b) − D(θ) ≥ 0 bounds how far
//! P(B, b) is above the optimum; with θ = B it is Σᵢ Cwᵢ KL(πᵢ ‖ pᵢ).
//!
//! Values of rows and classes are kept class after class: that of row i and class c is at c·n + i.

use faer::Mat;
use faer::linalg::solvers::Solve;

use crate::certificate::{Certificate, STANDARD_ERRORS};
use crate::simd::dot;

/// Newton steps for the intercepts alone.
const MAX_INTERCEPT_STEPS: usize = 50;

/// The targets of a multinomial problem.
pub(crate) struct Softmax {
    /// Class of each row.
    pub y: Vec<usize>,
    /// Number of classes.
    pub classes: usize,
}

impl Softmax {
    /// P(B, b), given Cw and f = KB.
    pub fn primal(&self, weight: &[f64], beta: &[f64], b: &[f64], f: &[f64]) -> f64 {
        self.losses(weight, f, b) + 0.5 * dot(beta, f)
    }

    pub fn losses(&self, weight: &[f64], f: &[f64], b: &[f64]) -> f64 {
        let mut g = vec![0.0; self.classes];
        let mut sum = 0.0;
        for (i, &w) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            self.row(i, &mut g, |at, c| f[at] + b[c]);
            sum += w * loss(&g, self.y[i]);
        }
        sum
    }

    /// θ = Cw (e_y − softmax(f + b)): what B is at the optimum.
    pub fn slopes(&self, weight: &[f64], f: &[f64], b: &[f64]) -> Vec<f64> {
        let n = self.y.len();
        let mut theta = vec![0.0; f.len()];
        let mut g = vec![0.0; self.classes];
        for (i, &w) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            self.row(i, &mut g, |at, c| f[at] + b[c]);
            pull(&mut g, self.y[i]);
            for (c, g) in g.iter().enumerate() {
                theta[c * n + i] = w * g;
            }
        }
        theta
    }

    /// Sum of the rows' Fenchel–Young terms Cw KL(π ‖ p), given their B and g = f + b: the gap, where B is dual feasible.
    /// Where π is no distribution it is made one, and that has its price.
    pub fn mismatch(&self, weight: &[f64], beta: impl Fn(usize) -> f64, score: impl Fn(usize, usize) -> f64) -> f64 {
        let (mut pi, mut g) = (vec![0.0; self.classes], vec![0.0; self.classes]);
        let mut sum = 0.0;
        for (i, &w) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            self.row(i, &mut g, &score);
            self.row(i, &mut pi, |at, c| f64::from(c == self.y[i]) - beta(at) / w);
            let moved = make_distribution(&mut pi);
            let divergence = log_sum_exp(&g) - dot(&pi, &g) - entropy(&pi);
            sum += w * divergence + 0.5 * w * w * moved;
        }
        sum
    }

    /// Judges (B, b) by f = KB alone. θ is B made feasible, δ = θ − B, and since no entry of K is larger than the
    /// largest of its diagonal, θᵀKθ ≤ BᵀKB + 2δᵀKB + ‖δ‖₁² max K_ii: nothing is lost where B is feasible to rounding.
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

    /// Judges (B, b) by [`bound`](Self::bound), or where that does not prove a relative gap of at most `enough`, by θ of
    /// the slopes at f, at the intercepts where their columns sum to 0; `k_times` must give Kθ. `weight` is Cw.
    #[allow(clippy::too_many_arguments)]
    pub fn certify(
        &self,
        weight: &[f64],
        beta: &[f64],
        b: &[f64],
        f: &[f64],
        largest_diagonal: f64,
        enough: f64,
        k_times: impl Fn(&[f64]) -> Vec<f64>,
    ) -> Certificate {
        let first = self.bound(weight, beta, b, f, largest_diagonal);
        if first.gap() <= enough {
            return first;
        }
        let (theta, entropies) = self.feasible(weight, &self.slopes(weight, f, &self.best_intercepts(weight, f, b)));
        let dual = entropies - 0.5 * dot(&theta, &k_times(&theta));
        if dual > first.dual { Certificate { dual, ..first } } else { first }
    }

    /// How far rounding may have taken P − D, given that f of row i and class c is off by the i-th of `roots` times the
    /// c-th of `errors` (one standard error): P − D changes with f by what B misses of the slopes, or their change.
    pub fn noise(&self, weight: &[f64], beta: &[f64], b: &[f64], f: &[f64], roots: &[f64], errors: &[f64]) -> f64 {
        let n = self.y.len();
        let theta = self.slopes(weight, f, b);
        let mut variance = 0.0;
        let mut g = vec![0.0; self.classes];
        for (i, &w) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            self.row(i, &mut g, |at, c| f[at] + b[c]);
            let (value, top) = (w * loss(&g, self.y[i]), largest(&g));
            for c in 0..self.classes {
                let at = c * n + i;
                let error = roots[i] * errors[c];
                let mismatch = (beta[at] - theta[at]).abs() + 0.5 * w * STANDARD_ERRORS * error;
                let digits = f64::EPSILON * (f[at].abs() + b[c].abs());
                // Probabilities near 0 are rounded like 1, and the slope of the entropy is their logarithm.
                let terms = f64::EPSILON * (value + (beta[at] * f[at]).abs() + w * (top - g[c]));
                variance += (mismatch * error).powi(2) + (theta[at] * digits).powi(2) + terms.powi(2);
            }
        }
        // (Columns of θ sum to 0 by construction.)
        STANDARD_ERRORS * variance.sqrt()
    }

    /// A feasible θ near B, and Σ Cw H(π).
    ///
    /// Every π is made a distribution. Then Σᵢ Cwᵢ πᵢ = m must become N, the weights of the classes (this is what columns
    /// of θ that sum to 0 mean): π ← κπ + (N − κm)/W with W = ΣN does it, and is a distribution for κ ≤ min N/m.
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

    /// The b near `start`, of sum 0, that minimises Σ Cw loss(f + b): there every column of the slopes sums to 0.
    pub fn best_intercepts(&self, weight: &[f64], f: &[f64], start: &[f64]) -> Vec<f64> {
        let (n, k) = (self.y.len(), self.classes);
        let total: f64 = weight.iter().sum();
        let mut b = start.to_vec();
        let mut value = self.losses(weight, f, &b);
        for _ in 0..MAX_INTERCEPT_STEPS {
            let theta = self.slopes(weight, f, &b);
            // Σᵢ Cwᵢ (diag p − ppᵀ) is singular along 1, where 11ᵀ is not.
            let mut hessian = Mat::<f64>::from_fn(k, k, |c, d| total * (1.0 + 1e-12 * f64::from(c == d)));
            let mut p = vec![0.0; k];
            for (i, &w) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
                self.row(i, &mut p, |at, c| f64::from(c == self.y[i]) - theta[at] / w);
                for c in 0..k {
                    for d in 0..k {
                        hessian[(c, d)] += w * p[c] * (f64::from(c == d) - p[d]);
                    }
                }
            }
            let pulls = Mat::<f64>::from_fn(k, 1, |c, _| theta[c * n..(c + 1) * n].iter().sum());
            let step = hessian.partial_piv_lu().solve(&pulls);
            let promised = dot(step.col_as_slice(0), pulls.col_as_slice(0));
            if promised.is_nan() || promised <= 1e-28 * total {
                break;
            }
            let mut t = 1.0;
            let better = loop {
                let next: Vec<f64> = b.iter().zip(step.col_as_slice(0)).map(|(b, d)| b + t * d).collect();
                let there = self.losses(weight, f, &next);
                if there <= value - 1e-4 * t * promised || (t == 1.0 && promised <= 1e-12 * value) {
                    break Some((next, there));
                }
                t *= 0.5;
                if t < 1e-6 {
                    break None;
                }
            };
            let Some(next) = better else { break };
            (b, value) = next;
        }
        let mean = b.iter().sum::<f64>() / k as f64;
        for b in &mut b {
            *b -= mean;
        }
        b
    }

    /// Values of row `i`, given their place and class.
    #[inline(always)]
    fn row(&self, i: usize, out: &mut [f64], value: impl Fn(usize, usize) -> f64) {
        let n = self.y.len();
        for (c, out) in out.iter_mut().enumerate() {
            *out = value(c * n + i, c);
        }
    }
}

/// log Σ_c exp g_c − g_y, also where it is close to 0.
fn loss(g: &[f64], y: usize) -> f64 {
    let top = largest(g);
    let others: f64 = g.iter().enumerate().filter(|(c, _)| *c != y).map(|(_, g)| (g - top).exp()).sum();
    if g[y] == top { others.ln_1p() } else { top - g[y] + (others + (g[y] - top).exp()).ln() }
}

/// g ← e_y − softmax(g), whose sum is 0.
fn pull(g: &mut [f64], y: usize) {
    softmax(g);
    let others: f64 = g.iter().enumerate().filter(|(c, _)| *c != y).map(|(_, p)| p).sum();
    for p in g.iter_mut() {
        *p = -*p;
    }
    g[y] = others;
}

/// g ← exp g_c / Σ exp g.
pub(crate) fn softmax(g: &mut [f64]) {
    let top = largest(g);
    let mut total = 0.0;
    for g in g.iter_mut() {
        *g = (*g - top).exp();
        total += *g;
    }
    for g in g.iter_mut() {
        *g /= total;
    }
}

fn log_sum_exp(g: &[f64]) -> f64 {
    let top = largest(g);
    top + g.iter().map(|g| (g - top).exp()).sum::<f64>().ln()
}

fn entropy(pi: &[f64]) -> f64 {
    -pi.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>()
}

/// π ← π₊ / Σπ₊, which leaves distributions as they are; the square of how far it moved. (Where nothing is positive, all
/// classes get the same.)
fn make_distribution(pi: &mut [f64]) -> f64 {
    let total: f64 = pi.iter().map(|p| p.max(0.0)).sum();
    let even = 1.0 / pi.len() as f64;
    let mut moved = 0.0;
    for p in pi {
        let inside = if total > 0.0 { p.max(0.0) / total } else { even };
        moved += (inside - *p).powi(2);
        *p = inside;
    }
    moved
}

fn largest(g: &[f64]) -> f64 {
    g.iter().fold(f64::NEG_INFINITY, |a, g| a.max(*g))
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
            let exact = softmax.certify(&weight, &beta, &b, &beta, 1.0, 0.0, <[f64]>::to_vec);
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
        // A bad b, seen by f alone, costs P what it should, and the slopes prove D all the same.
        let zeros = vec![0.0; beta.len()];
        let judged = softmax.certify(&weight, &zeros, &[5.0, -3.0, 0.0], &zeros, 0.0, 0.0, |_| zeros.clone());
        assert!((judged.dual - certificate.dual).abs() < 1e-12 * certificate.dual && judged.gap() > 0.1);
    }

    #[test]
    fn small_losses_are_exact() {
        assert_eq!(loss(&[40.0, 0.0], 0), (-40f64).exp());
        assert_eq!(loss(&[1e3, 0.0, 0.0], 0), 0.0);
        assert_eq!(loss(&[1e3, 0.0], 1), 1e3);
        let mut g = [40.0, 0.0, -1.0];
        pull(&mut g, 0);
        assert_eq!(g.iter().sum::<f64>(), 0.0);
    }
}
