//! Kernels and the rules that choose their bandwidth.

use crate::data::{Rows, Units};
use crate::error::{Error, Result};
use crate::observe::Control;
use crate::threads::pooled;

/// The form of a kernel, without its bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// exp(−γ‖x−z‖²)
    Rbf,
    /// exp(−γ‖x−z‖₁)
    Laplacian,
    /// (γ⟨x,z⟩ + coef0)^degree
    Poly {
        /// The exponent.
        degree: u32,
        /// The constant term.
        coef0: f64,
    },
    /// ⟨x,z⟩
    Linear,
    /// tanh(γ⟨x,z⟩ + coef0): mostly indefinite, and then without a certificate
    Sigmoid {
        /// The constant term.
        coef0: f64,
    },
    /// (1+a)e⁻ᵃ with a = √3‖x−z‖/ℓ and ℓ = 1/√(2γ), the length scale of [`Shape::Rbf`]
    Matern32,
    /// (1+a+a²/3)e⁻ᵃ with a = √5‖x−z‖/ℓ and ℓ = 1/√(2γ)
    Matern52,
    /// X is the kernel matrix itself
    Precomputed,
}

/// What a kernel measures of a pair of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// ⟨x, z⟩.
    Products,
    /// ‖x − z‖².
    SquaredDistances,
    /// ‖x − z‖₁.
    AbsoluteDistances,
}

impl Shape {
    /// The names, in the order of the documentation.
    pub const NAMES: &'static [&'static str] =
        &["rbf", "laplacian", "poly", "linear", "sigmoid", "matern32", "matern52", "precomputed"];

    /// The shape of that name.
    pub fn from_name(name: &str, degree: u32, coef0: f64) -> Result<Self> {
        Ok(match name {
            "rbf" => Self::Rbf,
            "laplacian" => Self::Laplacian,
            "poly" => Self::Poly { degree, coef0 },
            "linear" => Self::Linear,
            "sigmoid" => Self::Sigmoid { coef0 },
            "matern32" => Self::Matern32,
            "matern52" => Self::Matern52,
            "precomputed" => Self::Precomputed,
            _ => {
                return Err(Error::Unknown { what: "kernel", name: name.into(), known: Self::NAMES });
            }
        })
    }

    /// Whether the kernel depends on x − z only, so that shifting the data changes nothing.
    pub(crate) fn is_shift_invariant(self) -> bool {
        matches!(self, Self::Rbf | Self::Laplacian | Self::Matern32 | Self::Matern52)
    }

    /// What it measures of a pair of rows.
    pub(crate) fn measure(self) -> Measure {
        match self {
            Self::Rbf | Self::Matern32 | Self::Matern52 => Measure::SquaredDistances,
            Self::Laplacian => Measure::AbsoluteDistances,
            Self::Linear | Self::Poly { .. } | Self::Sigmoid { .. } | Self::Precomputed => Measure::Products,
        }
    }

    /// Whether the kernel matrix of any rows is positive semi-definite, by the formula of the kernel and for every γ > 0.
    pub fn is_definite(self) -> bool {
        match self {
            Self::Rbf | Self::Laplacian | Self::Linear | Self::Matern32 | Self::Matern52 => true,
            // A sum of powers of ⟨x,z⟩ with factors of at least 0.
            Self::Poly { coef0, .. } => coef0 >= 0.0,
            Self::Sigmoid { .. } | Self::Precomputed => false,
        }
    }

    /// Whether γ enters at all.
    pub fn uses_gamma(self) -> bool {
        !matches!(self, Self::Linear | Self::Precomputed)
    }
}

/// How γ is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bandwidth {
    /// This value.
    Value(f64),
    /// 1 / (p · variance of all entries of X), scikit-learn's default.
    Scale,
    /// σ is the mean of 1/q90 and 1/q10 of the non-zero squared distances of pairs of rows (for the Laplacian
    /// kernel, of their L1 distances), and γ = 2σ. Of up to 500 different rows all pairs count, of n more n/2 random
    /// ones.
    Sigest,
}

/// A kernel as the user asks for it: a shape and a bandwidth rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kernel {
    /// The shape.
    pub shape: Shape,
    /// The rule for γ.
    pub bandwidth: Bandwidth,
}

impl Kernel {
    /// The Gaussian kernel exp(−γ‖x−z‖²).
    pub fn rbf(bandwidth: Bandwidth) -> Self {
        Self { shape: Shape::Rbf, bandwidth }
    }

    /// The linear kernel ⟨x,z⟩.
    pub fn linear() -> Self {
        Self { shape: Shape::Linear, bandwidth: Bandwidth::Value(1.0) }
    }

    /// Settles γ on the data, reproducibly for a seed. A row of weight 2 counts as two rows; no weights are all 1.
    pub fn resolve(&self, x: &Rows, weight: Option<&[f64]>, seed: u64) -> Result<KernelFn> {
        let gamma = if self.shape.uses_gamma() { self.gamma(x, weight, seed)? } else { 1.0 };
        KernelFn::new(self.shape, gamma)
    }

    fn gamma(&self, x: &Rows, weight: Option<&[f64]>, seed: u64) -> Result<f64> {
        match self.bandwidth {
            Bandwidth::Value(gamma) => Ok(gamma),
            Bandwidth::Scale => scale(x, weight),
            Bandwidth::Sigest => pooled(0, || sigest(x, weight, self.shape, seed)),
        }
    }
}

fn scale(x: &Rows, weight: Option<&[f64]>) -> Result<f64> {
    let (n, p) = (x.nrows(), x.ncols());
    let of_row = |i: usize| weight.map_or(1.0, |weight| weight[i]);
    let count = p as f64 * (0..n).map(of_row).sum::<f64>();
    let sum = |of: &dyn Fn(f64) -> f64| -> f64 { (0..n).map(|i| of_row(i) * x.sum_over_row(i, of)).sum() };
    let mean = sum(&|v| v) / count;
    let variance = sum(&|v| (v - mean) * (v - mean)) / count;
    if variance > 0.0 {
        Ok(1.0 / (p as f64 * variance))
    } else {
        Err(Error::Bandwidth { rule: "scale", found: "all entries of X are equal" })
    }
}

/// Up to so many different rows, all pairs are looked at.
const ALL_PAIRS: usize = 500;

fn sigest(x: &Rows, weight: Option<&[f64]>, shape: Shape, seed: u64) -> Result<f64> {
    let distance = |a: usize, b: usize| {
        if shape == Shape::Laplacian { x.l1_distance(a, x, b) } else { x.squared_distance(a, x, b) }
    };
    // Equal rows are one, whose weights add up: so weights do what repeated rows do.
    let units = Units::merge(x, |_| std::iter::empty(), &Control::default())?;
    let mut weights = vec![0.0; units.len()];
    for (i, &u) in units.of_row.iter().enumerate() {
        weights[u] += weight.map_or(1.0, |weight| weight[i]);
    }
    let rows: Vec<(usize, f64)> = units.representative.into_iter().zip(weights).filter(|(_, w)| *w > 0.0).collect();
    let n = rows.len();
    let mut distances: Vec<(f64, f64)> = if n <= ALL_PAIRS {
        let pairs = (0..n).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.map(|(a, b)| (distance(rows[a].0, rows[b].0), rows[a].1 * rows[b].1)).collect()
    } else {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut total = 0.0;
        let until: Vec<f64> = rows
            .iter()
            .map(|(_, w)| {
                total += w;
                total
            })
            .collect();
        let mut draw = || {
            let target = rng.f64() * total;
            rows[until.partition_point(|t| *t <= target).min(n - 1)].0
        };
        (0..n.div_ceil(2)).map(|_| (distance(draw(), draw()), 1.0)).collect()
    };
    distances.retain(|(d, _)| *d > 0.0 && d.is_finite());
    if distances.is_empty() {
        let found = "all rows are equal, or their distances overflow or vanish";
        return Err(Error::Bandwidth { rule: "sigest", found });
    }
    distances.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (q10, q90) = (quantile(&distances, 0.1), quantile(&distances, 0.9));
    // γ = 2σ with σ the mean of 1/q90 and 1/q10.
    Ok(1.0 / q90 + 1.0 / q10)
}

/// The smallest of the sorted values that has so much of the weight up to it.
fn quantile(sorted: &[(f64, f64)], level: f64) -> f64 {
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut reached = 0.0;
    for (value, weight) in sorted {
        reached += weight;
        if reached >= (level - 1e-12) * total {
            return *value;
        }
    }
    sorted[sorted.len() - 1].0
}

/// A kernel with its bandwidth settled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelFn {
    /// The shape.
    pub shape: Shape,
    /// γ; 1 where the shape has none.
    pub gamma: f64,
}

impl KernelFn {
    /// Checks γ and the shape's own constants.
    pub fn new(shape: Shape, gamma: f64) -> Result<Self> {
        if !(gamma > 0.0 && gamma.is_finite()) {
            return Err(Error::Parameter { name: "gamma", expected: "a finite number > 0", value: gamma });
        }
        if let Shape::Poly { coef0, .. } | Shape::Sigmoid { coef0 } = shape
            && !coef0.is_finite()
        {
            return Err(Error::Parameter { name: "coef0", expected: "finite", value: coef0 });
        }
        if let Shape::Poly { degree: 0, .. } = shape {
            return Err(Error::Parameter { name: "degree", expected: ">= 1", value: 0.0 });
        }
        Ok(Self { shape, gamma })
    }

    /// k(x, x) for row `i` of `x`.
    pub(crate) fn diagonal(&self, x: &Rows, i: usize) -> f64 {
        match self.shape {
            Shape::Precomputed => x.get(i, i),
            shape if shape.is_shift_invariant() => 1.0,
            _ => {
                let mut value = [x.sum_over_row(i, |v| v * v)];
                self.map(&mut value);
                value[0]
            }
        }
    }

    /// Turns what the shape [measures](Shape::measure) of pairs of rows into kernel values, in place.
    #[inline(always)]
    pub(crate) fn map(&self, values: &mut [f64]) {
        let gamma = self.gamma;
        match self.shape {
            Shape::Rbf | Shape::Laplacian => {
                for v in values.iter_mut() {
                    *v = exp_nonpositive(-gamma * *v);
                }
            }
            Shape::Matern32 => {
                let c = (6.0 * gamma).sqrt();
                for v in values.iter_mut() {
                    let a = c * v.sqrt();
                    *v = (1.0 + a) * exp_nonpositive(-a);
                }
            }
            Shape::Matern52 => {
                let c = (10.0 * gamma).sqrt();
                for v in values.iter_mut() {
                    let a = c * v.sqrt();
                    *v = (1.0 + a + a * a / 3.0) * exp_nonpositive(-a);
                }
            }
            Shape::Poly { degree, coef0 } => {
                for v in values.iter_mut() {
                    *v = (gamma * *v + coef0).powi(degree.try_into().unwrap_or(i32::MAX));
                }
            }
            Shape::Sigmoid { coef0 } => {
                for v in values.iter_mut() {
                    *v = (gamma * *v + coef0).tanh();
                }
            }
            Shape::Linear | Shape::Precomputed => {}
        }
    }
}

/// log 2 in two parts: whole multiples of the first are exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// The polynomial with these coefficients, that of the highest power first.
#[inline(always)]
fn polynomial<const N: usize>(coefficients: [f64; N], x: f64) -> f64 {
    let mut sum = 0.0;
    for c in coefficients {
        sum = sum * x + c;
    }
    sum
}

/// eˣ for x ≤ 0, without branches so that loops over it become SIMD.
///
/// x = k ln 2 + r with |r| ≤ ½ ln 2; eʳ by its Taylor polynomial of degree 12 (relative error
/// below 1e-15), scaled by 2ᵏ through the exponent bits. Below −708 the answer is 0 to rounding.
#[inline(always)]
pub(crate) fn exp_nonpositive(x: f64) -> f64 {
    // Adding 1.5·2⁵² rounds to an integer that stands in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let x = x.max(-708.0);
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let taylor = [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    polynomial(taylor, r) * power
}

/// log x for positive, normal x, without branches so that loops over it become SIMD; −∞ at 0.
///
/// x = 2ᵏm with √½ < m ≤ √2; log m = 2 artanh s = 2(s + s³/3 + s⁵/5 + …) with s = (m − 1)/(m + 1), |s| < 0.172.
#[inline(always)]
pub(crate) fn ln_positive(x: f64) -> f64 {
    const ROOT_HALF: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    // Adding 2⁵² to an integer below it puts it into the low bits.
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    let above = x.to_bits().wrapping_sub(ROOT_HALF);
    let m = f64::from_bits((above & ((1 << 52) - 1)).wrapping_add(ROOT_HALF));
    let biased = (above >> 52).wrapping_add(2048) & 4095;
    let k = f64::from_bits(biased | SHIFT.to_bits()) - SHIFT - 2048.0;
    let t = m - 1.0;
    let s = t / (m + 1.0);
    let z = s * s;
    let series = [
        2.0 / 23.0,
        2.0 / 21.0,
        2.0 / 19.0,
        2.0 / 17.0,
        2.0 / 15.0,
        2.0 / 13.0,
        2.0 / 11.0,
        2.0 / 9.0,
        2.0 / 7.0,
        2.0 / 5.0,
        2.0 / 3.0,
    ];
    // log(1 + t) = t − t²/2 + s(t²/2 + z·series): the first term is exact, the others are small beside it.
    let half = 0.5 * t * t;
    let log = k * LN2_HIGH - ((half - (s * (half + z * polynomial(series, z)) + k * LN2_LOW)) - t);
    if x > 0.0 { log } else { f64::NEG_INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_agrees_with_the_standard_library() {
        let mut rng = fastrand::Rng::with_seed(3);
        for i in 0..200_000 {
            let x = match i % 3 {
                0 => rng.f64(),
                1 => 1.0 + (rng.f64() - 0.5) * 10_f64.powi(-(i % 16)),
                _ => f64::from_bits(rng.u64(f64::MIN_POSITIVE.to_bits()..f64::MAX.to_bits())),
            };
            let (ours, std) = (ln_positive(x), x.ln());
            assert!((ours - std).abs() <= 4e-16 * std.abs(), "ln({x}) = {ours}, not {std}");
        }
        assert_eq!(ln_positive(1.0), 0.0);
        assert_eq!(ln_positive(0.0), f64::NEG_INFINITY);
    }

    #[test]
    fn exp_agrees_with_the_standard_library() {
        for i in 0..=70_000 {
            let x = -f64::from(i) * 0.01;
            let (ours, std) = (exp_nonpositive(x), x.exp());
            assert!((ours - std).abs() <= 4e-16 * std, "exp({x}) = {ours}, not {std}");
        }
        assert_eq!(exp_nonpositive(0.0), 1.0);
        assert!(exp_nonpositive(-1e9) < 1e-300);
    }

    #[test]
    fn sigest_is_the_mean_of_the_inverse_quantiles() {
        // Two distinct points: every non-zero squared distance is 4, so γ = 2/4.
        let x = [0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0];
        let rows = Rows::from_slice(&x, 1).unwrap();
        let kernel = Kernel::rbf(Bandwidth::Sigest).resolve(&rows, None, 7).unwrap();
        assert!((kernel.gamma - 0.5).abs() < 1e-15);
        let laplacian = Kernel { shape: Shape::Laplacian, bandwidth: Bandwidth::Sigest };
        assert!((laplacian.resolve(&rows, None, 7).unwrap().gamma - 1.0).abs() < 1e-15);
    }

    #[test]
    fn quantile_counts_weights() {
        assert_eq!(quantile(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)], 0.5), 2.0);
        assert_eq!(quantile(&[(1.0, 1.0), (2.0, 3.0)], 0.5), 2.0);
        assert_eq!(quantile(&[(5.0, 0.1)], 0.9), 5.0);
    }
}
