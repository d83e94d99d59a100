//! How well the entries of K, or low-rank features, are known, and what that does to products with them.

use crate::numeric::simd::dot;

/// How well the kernel matrix is known: entry (i, j) up to about `relative`·√(K_ii K_jj), one standard error.
#[derive(Debug, Clone)]
pub struct KernelError {
    /// Error of an entry beside the two diagonal entries.
    pub relative: f64,
    /// The part of it that storing the entry made, at most.
    pub stored: f64,
    /// √K_ii.
    pub roots: Vec<f64>,
    /// What makes the matrix positive semi-definite, if it is added to the diagonal: rounding hides the difference. 0 for
    /// kernels that are so by their formula.
    pub shift: f64,
    /// Numbers that a sum over rows adds to one another before it adds these sums: roundings grow with the root of it.
    pub lanes: usize,
}

/// Roundings of double precision that an entry of a kernel matrix is off by, one standard error: those of a distance, of γ
/// times it and of the exponential function. Entries of ordinary rows are off by less than one; those of rows in tight
/// clusters by one or two, since distances that lose more digits are summed anew (`SUMMED_ANEW`).
pub(super) const ENTRY_ROUNDINGS: f64 = 4.0;

/// Standard errors that the noise of a gap stands for. Roundings are taken as independent; fewer would let a rounding error
/// pass for a false gap now and then, more would call gaps inaccurate that are not.
pub(crate) const STANDARD_ERRORS: f64 = 6.0;

impl KernelError {
    /// Of entries computed in double precision and stored up to `stored` of them; `diagonal` is that of K.
    pub fn new(stored: f64, diagonal: &[f64]) -> Self {
        let roots = diagonal.iter().map(|d| d.abs().sqrt()).collect();
        Self { relative: stored + ENTRY_ROUNDINGS * f64::EPSILON, stored, roots, shift: 0.0, lanes: 1 }
    }

    /// Of a matrix that is known to be positive semi-definite once `shift` is added to its diagonal.
    #[must_use]
    pub fn with_shift(self, shift: f64) -> Self {
        Self { shift, ..self }
    }

    /// By how much P and D for K + τI, τ the shift, are beside those for K: ½τ‖β‖² and ½τ‖θ‖².
    pub(crate) fn of_shift(&self, beta: &[f64], theta: &[f64]) -> f64 {
        if self.shift == 0.0 { 0.0 } else { 0.5 * self.shift * (dot(beta, beta) + dot(theta, theta)) }
    }

    /// What storing the entries may have done to ½βᵀKβ, and so to P and D alike: their difference does not show it.
    ///
    /// The errors are independent and even up to `stored`, so that one has the standard error `stored`/√3, and the form
    /// √½ times that of Σ βᵢ² K_ii at most.
    pub(crate) fn of_form(&self, beta: &[f64]) -> f64 {
        let size: f64 = beta.iter().zip(&self.roots).map(|(beta, root)| (beta * root) * (beta * root)).sum();
        STANDARD_ERRORS * self.stored * size / 6.0_f64.sqrt()
    }

    /// The error of (Kβ)_i over √K_ii: that of the entries, and that of their sum.
    pub(crate) fn of_product(&self, beta: &[f64]) -> f64 {
        let size = beta.iter().zip(&self.roots).map(|(beta, root)| (beta * root) * (beta * root)).sum::<f64>().sqrt();
        let terms = beta.iter().filter(|beta| **beta != 0.0).count().div_ceil(self.lanes);
        (self.relative + (terms as f64).sqrt() * f64::EPSILON) * size
    }
}

/// The error of Zw, given that of each feature.
pub(crate) fn feature_error(w: &[f64], error: &[f64]) -> f64 {
    w.iter().zip(error).map(|(w, error)| (w * error) * (w * error)).sum::<f64>().sqrt()
}
