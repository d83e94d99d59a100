//! The multinomial loss and its certificate: k classes and k columns of B, which the problem couples in each row.
//!
//! ```text
//! minimise over B ∈ Rⁿˣᵏ, b ∈ Rᵏ:   P(B, b) = Σᵢ Cwᵢ (log Σ_c exp g_ic − g_iyᵢ) + ½ Σ_c B_cᵀKB_c,     g = KB + 1bᵀ
//! maximise over θ ∈ Rⁿˣᵏ:           D(θ) = Σᵢ Cwᵢ H(πᵢ) − ½ Σ_c θ_cᵀKθ_c,                 πᵢ = e_yᵢ − θᵢ / Cwᵢ
//! ```
//!
//! where every πᵢ must be a distribution over the classes (H is its entropy), and every column of θ must sum to 0. At
//! the optimum B = θ, and πᵢ are the probabilities pᵢ = softmax(gᵢ). For every feasible θ, P(B, b) − D(θ) ≥ 0 bounds
//! how far P(B, b) is above the optimum; with θ = B it is Σᵢ Cwᵢ KL(πᵢ ‖ pᵢ).
//!
//! Values of rows and classes are stored class after class: the value of row i and class c is at c·n + i.

use faer::Mat;
use faer::linalg::solvers::Solve;

use crate::numeric::simd::dot;

/// A class whose value is this far below the largest one has probability 0 in double precision, since exp(−746) is 0.
pub(crate) const CERTAIN: f64 = 750.0;

/// Most Newton steps for the intercepts alone.
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

    /// Sum of the rows' Fenchel–Young terms Cw KL(π ‖ p), given their B and g = f + b. It is the gap if B is dual
    /// feasible. A π that is not a distribution is made one, and the sum includes a price for that.
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

    /// The b near `start`, with sum 0, that minimises Σ Cw loss(f + b). There, every column of the slopes sums to 0.
    pub fn best_intercepts(&self, weight: &[f64], f: &[f64], start: &[f64]) -> Vec<f64> {
        let (n, k) = (self.y.len(), self.classes);
        let total: f64 = weight.iter().sum();
        let mut b = start.to_vec();
        let mut value = self.losses(weight, f, &b);
        for _ in 0..MAX_INTERCEPT_STEPS {
            let theta = self.slopes(weight, f, &b);
            // Σᵢ Cwᵢ (diag p − ppᵀ) is singular along 1, but not once a multiple of 11ᵀ is added.
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

    /// Writes the values of row `i` to `out`. `value` is given their place and their class.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize, out: &mut [f64], value: impl Fn(usize, usize) -> f64) {
        let n = self.y.len();
        for (c, out) in out.iter_mut().enumerate() {
            *out = value(c * n + i, c);
        }
    }
}

/// log Σ_c exp g_c − g_y, accurate also where it is close to 0.
pub(crate) fn loss(g: &[f64], y: usize) -> f64 {
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

pub(crate) fn entropy(pi: &[f64]) -> f64 {
    -pi.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>()
}

/// π ← π₊ / Σπ₊, which leaves distributions as they are. Returns the square of how far π moved. (If nothing is
/// positive, all classes get the same share.)
pub(crate) fn make_distribution(pi: &mut [f64]) -> f64 {
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

pub(crate) fn largest(g: &[f64]) -> f64 {
    g.iter().fold(f64::NEG_INFINITY, |a, g| a.max(*g))
}

#[cfg(test)]
mod tests {
    use super::*;

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
