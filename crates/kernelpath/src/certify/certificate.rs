//! The duality gap of (P), computed from β, b and Kβ alone: it knows nothing of any solver.
//!
//! For dual-feasible θ (in the box, Σθ = 0)
//!
//! ```text
//! P(β, b) = C Σ wᵢ L(yᵢ, fᵢ) + ½ βᵀKβ,   D(θ) = −Σ C wᵢ L*(yᵢ, −θᵢ/(C wᵢ)) − ½ θᵀKθ
//! ```
//!
//! P(β, b) − D(θ) ≥ 0 bounds how far P(β, b) is above the optimum, whatever β and b are, if K has no negative
//! eigenvalue. If it has one, D(θ) bounds nothing, and the models have no certificate (see `definite.rs`). A K whose
//! negative eigenvalues may be rounding is judged as K + τI, which has none: what τ changes is part of the noise.

use crate::error::Result;
use crate::kernel::accuracy::{KernelError, STANDARD_ERRORS};
use crate::loss::intercept::best_intercept;
use crate::loss::scalar::Loss;
use crate::numeric::parallel;
use crate::numeric::simd::{dot, sum_of_rows, within};

/// Objective values and gap of a model, as computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// P(β, b).
    pub primal: f64,
    /// D(θ); NaN if the kernel is indefinite.
    pub dual: f64,
    /// How far rounding may have taken P, D and P − D from what they are for the kernel in double precision.
    pub noise: f64,
}

impl Certificate {
    /// What is known of a model that was never computed: nothing.
    pub const NONE: Self = Self { primal: f64::INFINITY, dual: f64::NEG_INFINITY, noise: f64::INFINITY };

    /// With the noise of the terms of P − D, to which that of the two sums is added.
    pub(crate) fn new(primal: f64, dual: f64, noise: f64) -> Self {
        Self { primal, dual, noise: noise + SUM_ROUNDINGS * f64::EPSILON * primal.abs().max(dual.abs()) }
    }

    /// Whether the gap is known to be at most `enough`.
    fn within(&self, enough: f64) -> bool {
        self.gap() <= enough
    }

    /// (P − D) / max(|P|, |D|); NaN if the kernel is indefinite.
    pub fn gap(&self) -> f64 {
        self.relative(self.primal - self.dual)
    }

    /// The noise over max(|P|, |D|): the gap of the model lies within it of [`gap`](Self::gap).
    pub fn relative_noise(&self) -> f64 {
        self.relative(self.noise)
    }

    /// Whether P, D and the noise are numbers.
    pub fn is_finite(&self) -> bool {
        self.primal.is_finite() && self.dual.is_finite() && self.noise.is_finite()
    }

    /// Without its proof, as of an indefinite kernel: P alone is known.
    pub(crate) fn withdrawn(self) -> Self {
        Self { dual: f64::NAN, noise: f64::NAN, ..self }
    }

    fn relative(&self, value: f64) -> f64 {
        if self.dual.is_nan() {
            return f64::NAN;
        }
        let scale = self.primal.abs().max(self.dual.abs());
        if !(self.primal.is_finite() && self.dual.is_finite()) {
            f64::INFINITY
        } else if scale == 0.0 {
            0.0
        } else {
            value / scale
        }
    }
}

/// Roundings of double precision that P and D are off by, beside those of their terms: they are sums of sums in lanes, and
/// the terms of D are large beside it where it is small.
const SUM_ROUNDINGS: f64 = 64.0;

/// The largest of some gaps, NaN if one is: what is not known may be larger.
pub(crate) fn worst(gaps: impl Iterator<Item = f64>) -> f64 {
    gaps.fold(0.0, |worst, gap| if worst.is_nan() || worst > gap { worst } else { gap })
}

/// A model to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// C·wᵢ.
    pub weight: &'a [f64],
    /// β.
    pub beta: &'a [f64],
    /// b.
    pub b: f64,
    /// Kβ.
    pub k_beta: &'a [f64],
}

/// Judges each (β, b) with the first θ that proves a relative gap of at most `enough`, else the best: β itself, clipped
/// to the domain and the heavier sign shrunk until Σθ = 0; and for a smooth loss its slopes at f, at the intercept where
/// they sum to 0.
///
/// Where a θ differs from β, `k_times` must give Kθ, of several at once; `error` says how well K is known.
pub fn certify(
    loss: Loss,
    y: &[f64],
    claims: &[Claim],
    error: &KernelError,
    enough: f64,
    k_times: impl Fn(&[&[f64]]) -> Result<Vec<Vec<f64>>>,
) -> Result<Vec<Certificate>> {
    // Fewer are not worth a thread.
    let least = 1 + 8192 / y.len().max(1);
    let thetas: Vec<Vec<f64>> =
        parallel::map_numbers(claims.len(), least, |k| feasible(loss, y, claims[k].weight, claims[k].beta));
    let (changed, changed_thetas): (Vec<usize>, Vec<&[f64]>) =
        (thetas.iter().enumerate()).filter(|(k, theta)| *theta != claims[*k].beta).map(|(k, t)| (k, &t[..])).unzip();
    let squares: Vec<f64> = claims.iter().map(|claim| dot(claim.beta, claim.k_beta)).collect();
    let mut dual_squares = squares.clone();
    for (&k, product) in changed.iter().zip(images(&changed_thetas, &k_times)?) {
        dual_squares[k] = dot(&thetas[k], &product);
    }
    let certificate = |k: usize, theta: &[f64], dual_square: f64| {
        let Claim { weight, beta, b, k_beta } = claims[k];
        let primal = losses(loss, y, weight, b, k_beta) + 0.5 * squares[k];
        let dual = or_zero(dual_losses(loss, y, weight, theta) - 0.5 * dual_square);
        let spread = error.of_product(beta);
        let noise = noise(loss, [y, weight, beta, theta, k_beta, &error.roots], b, spread, error.shift);
        Certificate::new(primal, dual, noise + error.of_form(beta) + error.of_shift(beta, theta))
    };
    let mut certificates: Vec<Certificate> =
        parallel::map_numbers(claims.len(), least, |k| certificate(k, &thetas[k], dual_squares[k]));
    if loss.kinks(0.0).is_some() {
        return Ok(certificates);
    }
    let short: Vec<usize> = (0..claims.len()).filter(|&k| !certificates[k].within(enough)).collect();
    let slopes: Vec<Vec<f64>> = parallel::map_numbers(short.len(), least, |s| slopes(loss, y, claims[short[s]]));
    let products = images(&slopes.iter().map(|theta| &theta[..]).collect::<Vec<_>>(), &k_times)?;
    for ((k, theta), product) in short.into_iter().zip(&slopes).zip(products) {
        let next = certificate(k, theta, dot(theta, &product));
        if next.dual > certificates[k].dual {
            certificates[k] = next;
        }
    }
    Ok(certificates)
}

/// θ = 0 is feasible, too, and D(0) = 0: no dual value is below that.
pub(super) fn or_zero(dual: f64) -> f64 {
    if dual > 0.0 { dual } else { 0.0 }
}

/// Kθ of each θ, if there is one.
fn images(thetas: &[&[f64]], k_times: impl Fn(&[&[f64]]) -> Result<Vec<Vec<f64>>>) -> Result<Vec<Vec<f64>>> {
    if thetas.is_empty() { Ok(Vec::new()) } else { k_times(thetas) }
}

/// Σ w L(y, f + b).
pub(crate) fn losses(loss: Loss, y: &[f64], weight: &[f64], b: f64, f: &[f64]) -> f64 {
    loss.sum(
        [y, weight, f],
        #[inline(always)]
        |loss, [y, w, f]| [weighted(w, loss.value(y, f + b))],
    )[0]
}

/// −Σ w L*(y, −θ/w).
pub(crate) fn dual_losses(loss: Loss, y: &[f64], weight: &[f64], theta: &[f64]) -> f64 {
    loss.sum(
        [y, weight, theta],
        #[inline(always)]
        |loss, [y, w, t]| {
            let (lo, hi) = loss.domain(y);
            [weighted(w, loss.dual_value(y, within(t / w, lo, hi)))]
        },
    )[0]
}

/// How far rounding may have taken P − D: `columns` are y, C·w, β, θ, f = Kβ and roots, and f_i is off by `spread` times
/// the root of row i (one standard error), and by `shift` times |β_i| (the certificate is that of K + `shift`·I).
///
/// With θ = β, P − D is a sum over rows of terms C·w (L(f + b) + L*(−β/(C·w))) + βf, whose slope in f is what β misses of
/// C·w times a slope of the loss: nothing at the optimum, but for rows at a kink. Beside that, f + b − y is rounded, each
/// term of the sums is, and what Σθ misses of 0 counts b times.
pub(super) fn noise(loss: Loss, columns: [&[f64]; 6], b: f64, spread: f64, shift: f64) -> f64 {
    let [variance, surplus, shifted] = loss.sum(
        columns,
        #[inline(always)]
        |loss, [y, w, beta, theta, f, root]| {
            let (error, digits) = (root * spread, f64::EPSILON * (y.abs() + f.abs() + b.abs()));
            let beside = shift * beta.abs();
            let reach = STANDARD_ERRORS * (error + digits) + beside;
            let (below, above) = (w * loss.pull(y, f + b - reach), w * loss.pull(y, f + b + reach));
            let middle = 0.5 * (beta + theta);
            let mismatch = (middle - below).abs().max((middle - above).abs()) + 0.5 * (beta - theta).abs();
            let slope = below.abs().max(above.abs());
            // 1 − |a| in the entropies of the logistic loss is rounded like 1, where their slope is f + b.
            let entropy = if loss == Loss::Logistic { w * (f + b).abs() } else { 0.0 };
            let terms = w * loss.value(y, f + b) + (beta * f).abs() + (theta * y).abs() + entropy;
            let errors = square(mismatch * error) + square(slope * digits) + square(f64::EPSILON * terms);
            [weighted_by(w, errors), theta, weighted_by(w, mismatch * beside)]
        },
    );
    STANDARD_ERRORS * variance.sqrt() + (b * surplus).abs() + shifted
}

#[inline(always)]
fn square(x: f64) -> f64 {
    x * x
}

/// The value, and 0 at weight 0 whatever it is.
#[inline(always)]
fn weighted_by(w: f64, value: f64) -> f64 {
    if w == 0.0 { 0.0 } else { value }
}

/// θ = w a(f + b), with b moved to where Σθ = 0.
fn slopes(loss: Loss, y: &[f64], claim: Claim) -> Vec<f64> {
    let Claim { weight, b, k_beta, .. } = claim;
    let b = best_intercept(loss, y, weight, k_beta, b);
    let mut theta = vec![0.0; y.len()];
    loss.fill(
        [y, weight, k_beta],
        [&mut theta],
        #[inline(always)]
        |loss, [y, w, f]| [weighted(w, loss.pull(y, f + b))],
    );
    feasible(loss, y, weight, &theta)
}

/// w · value, and 0 at weight 0 whatever the value.
#[inline(always)]
pub(crate) fn weighted(w: f64, value: f64) -> f64 {
    if w == 0.0 { 0.0 } else { w * value }
}

/// θ in the box with Σθ = 0 to rounding: 0 is in every box, so shrinking keeps feasibility.
pub(crate) fn feasible(loss: Loss, y: &[f64], weight: &[f64], beta: &[f64]) -> Vec<f64> {
    let mut theta = vec![0.0; y.len()];
    loss.fill(
        [y, weight, beta],
        [&mut theta],
        #[inline(always)]
        |loss, [y, w, beta]| {
            let (lo, hi) = loss.domain(y);
            [weighted_by(w, within(beta, w * lo, w * hi))]
        },
    );
    let [positive, negative] = sum_of_rows(
        [&theta],
        #[inline(always)]
        |[t]| [t.max(0.0), (-t).max(0.0)],
    );
    // Rounding of the sums themselves is no infeasibility (and is counted in the noise).
    if (positive - negative).abs() > 1e-15 * positive.max(negative) * (theta.len() as f64).sqrt() {
        let smaller = positive.min(negative);
        for t in &mut theta {
            let side = if *t > 0.0 { positive } else { negative };
            if side > smaller {
                *t *= smaller / side;
            }
        }
    }
    theta
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K = I, two rows: the optimum is β = ±min(C, 1), f = β, b = 0.
    fn judge(c: f64, beta: [f64; 2], b: f64) -> Certificate {
        let claim = Claim { weight: &[c, c], beta: &beta, b, k_beta: &beta };
        let same = |thetas: &[&[f64]]| Ok(thetas.iter().map(|theta| theta.to_vec()).collect());
        certify(Loss::Hinge, &[1.0, -1.0], &[claim], &KernelError::new(0.0, &[1.0; 2]), 0.0, same).unwrap()[0]
    }

    #[test]
    fn zero_at_the_optimum_and_large_elsewhere() {
        assert!(judge(10.0, [1.0, -1.0], 0.0).gap().abs() < 1e-15);
        assert!(judge(0.3, [0.3, -0.3], 0.0).gap().abs() < 1e-15);
        assert!(judge(10.0, [0.9, -0.9], 0.0).gap() > 0.5);
        assert!(judge(10.0, [1.0, -1.0], 0.2).gap() > 0.5);
        assert!(judge(10.0, [0.0, 0.0], 0.0).gap() == 1.0);
    }

    #[test]
    fn infeasible_points_are_projected_not_trusted() {
        // Σβ ≠ 0 and β out of the box: still P − D ≥ 0.
        for beta in [[1.0, -0.2], [5.0, -5.0], [-1.0, 1.0], [0.1, 0.0]] {
            let certificate = judge(0.5, beta, 0.1);
            assert!(certificate.primal - certificate.dual > 1e-3, "{beta:?}");
        }
    }

    #[test]
    fn the_scale_of_the_targets_changes_no_gap() {
        for loss in [Loss::Quantile { tau: 0.3 }, Loss::EpsilonInsensitive { epsilon: 0.0 }, Loss::Squared] {
            let gap = |scale: f64| {
                // Slopes of the squared loss grow with the targets, those of the others do not.
                let c = if loss == Loss::Squared { 1.0 } else { scale };
                let (y, weight) = ([2.0 * scale, -scale, 0.5 * scale], [c; 3]);
                let beta = [0.3 * scale, -0.2 * scale, -0.1 * scale];
                let claim = Claim { weight: &weight, beta: &beta, b: 0.1 * scale, k_beta: &beta };
                let error = KernelError::new(0.0, &[1.0; 3]);
                certify(loss, &y, &[claim], &error, 0.0, |t| Ok(t.iter().map(|t| t.to_vec()).collect())).unwrap()[0]
                    .gap()
            };
            let expected = gap(1.0);
            assert!(expected > 0.01, "{loss:?}: {expected}");
            for scale in [1e-60, 1e-20, 1e20, 1e60] {
                assert!((gap(scale) - expected).abs() < 1e-9, "{loss:?} at {scale}: {} {expected}", gap(scale));
            }
        }
    }

    #[test]
    fn nothing_known_is_an_infinite_gap() {
        assert_eq!(Certificate::NONE.gap(), f64::INFINITY);
    }

    #[test]
    fn without_a_dual_value_there_is_no_gap_and_no_worst_one() {
        for primal in [-1.0, 0.0, 1.0, f64::INFINITY] {
            assert!(Certificate { primal, dual: f64::NAN, noise: 0.0 }.gap().is_nan());
        }
        assert!(worst([1.0, f64::NAN, 2.0].into_iter()).is_nan());
        assert_eq!(worst([1.0, 3.0, -2.0].into_iter()), 3.0);
        assert_eq!(worst(std::iter::empty()), 0.0);
    }
}
