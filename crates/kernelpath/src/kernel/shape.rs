//! Kernels: their shapes and their values.

use crate::data::rows::Rows;
use crate::error::{Error, Result};
use crate::numeric::elementary::{SMALLEST_EXPONENT, exp_nonpositive};

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

/// What a kernel measures between two rows.
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

    /// The name of the shape.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rbf => "rbf",
            Self::Laplacian => "laplacian",
            Self::Poly { .. } => "poly",
            Self::Linear => "linear",
            Self::Sigmoid { .. } => "sigmoid",
            Self::Matern32 => "matern32",
            Self::Matern52 => "matern52",
            Self::Precomputed => "precomputed",
        }
    }

    /// What the kernel measures between two rows.
    pub(crate) fn measure(self) -> Measure {
        match self {
            Self::Rbf | Self::Matern32 | Self::Matern52 => Measure::SquaredDistances,
            Self::Laplacian => Measure::AbsoluteDistances,
            Self::Linear | Self::Poly { .. } | Self::Sigmoid { .. } | Self::Precomputed => Measure::Products,
        }
    }

    /// Whether the kernel matrix of any rows is positive semi-definite, by the formula of the kernel and for every γ >
    /// 0.
    pub fn is_definite(self) -> bool {
        match self {
            Self::Rbf | Self::Laplacian | Self::Linear | Self::Matern32 | Self::Matern52 => true,
            // A sum of powers of ⟨x,z⟩ with factors ≥ 0.
            Self::Poly { coef0, .. } => coef0 >= 0.0,
            Self::Sigmoid { .. } | Self::Precomputed => false,
        }
    }

    /// Whether γ enters at all.
    pub fn uses_gamma(self) -> bool {
        !matches!(self, Self::Linear | Self::Precomputed)
    }
}

/// With a smaller γ, a distance that no double can hold may be short beside 1/γ, so that it says nothing about the kernel.
const TELLS_NO_INFINITY: f64 = 1e-303;

/// factor · e⁻ᵃ for a ≥ 0. It is 0 where a is infinite, although the factor may be, too.
#[inline(always)]
fn decay(a: f64, factor: f64) -> f64 {
    let value = factor * exp_nonpositive(-a);
    if -a < SMALLEST_EXPONENT { 0.0 } else { value }
}

/// A kernel with its bandwidth settled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelFn {
    /// The shape.
    pub shape: Shape,
    /// γ; 1 if the shape does not use it.
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

    /// Turns what the shape [measures](Shape::measure) between rows into kernel values, in place. NaN stays NaN. An
    /// infinite distance gives exactly 0, an infinite product no number: its sign is not known.
    #[inline(always)]
    pub(crate) fn map(&self, values: &mut [f64]) {
        let gamma = self.gamma;
        if gamma < TELLS_NO_INFINITY && self.shape.is_shift_invariant() {
            for v in values.iter_mut() {
                *v = if *v == f64::INFINITY { f64::NAN } else { *v };
            }
        }
        match self.shape {
            Shape::Rbf | Shape::Laplacian => {
                for v in values.iter_mut() {
                    *v = decay(gamma * *v, 1.0);
                }
            }
            Shape::Matern32 => {
                let c = 6.0_f64.sqrt() * gamma.sqrt();
                for v in values.iter_mut() {
                    let a = c * v.sqrt();
                    *v = decay(a, 1.0 + a);
                }
            }
            Shape::Matern52 => {
                let c = 10.0_f64.sqrt() * gamma.sqrt();
                for v in values.iter_mut() {
                    let a = c * v.sqrt();
                    *v = decay(a, 1.0 + a + a * a / 3.0);
                }
            }
            Shape::Poly { degree, coef0 } => {
                for v in values.iter_mut() {
                    *v = (gamma * *v + coef0).powi(degree.try_into().unwrap_or(i32::MAX));
                }
            }
            Shape::Sigmoid { coef0 } => {
                for v in values.iter_mut() {
                    // tanh would make a number of ±∞.
                    *v = (gamma * *v + coef0).tanh() + 0.0 * *v;
                }
            }
            Shape::Linear | Shape::Precomputed => {}
        }
    }
}
