//! What a machine minimises over its rows: a loss of one value per row, or the multinomial loss of one value per class.

use crate::error::Result;
use crate::loss::scalar::Loss;

/// The loss of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Objective {
    /// A loss of one value f per row.
    Scalar(Loss),
    /// log Σ_c exp f_c − f_y for rows with one value per class: several classes in one problem.
    ///
    /// ```text
    /// minimise over B ∈ Rⁿˣᵏ, b ∈ Rᵏ:   C · Σᵢ wᵢ (log Σ_c exp f_ic − f_iyᵢ)  +  ½ Σ_c B_cᵀKB_c        f = KB + 1bᵀ
    /// ```
    ///
    /// Targets are classes, counted from 0. The probability of class c is exp f_c / Σ exp f. A shift common to all b
    /// changes nothing, so Σb = 0 is chosen. For two classes, f₁ − f₀ is the decision value of [`Loss::Logistic`] at 2C.
    Multinomial,
}

impl From<Loss> for Objective {
    fn from(loss: Loss) -> Self {
        Self::Scalar(loss)
    }
}

impl Objective {
    /// The objective of that name; `parameter` is τ, ε or δ of losses that have one.
    pub fn from_name(name: &str, parameter: f64) -> Result<Self> {
        if name == "multinomial" { Ok(Self::Multinomial) } else { Loss::from_name(name, parameter).map(Self::Scalar) }
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar(loss) => loss.name(),
            Self::Multinomial => "multinomial",
        }
    }

    /// Whether targets are classes.
    pub fn is_classification(self) -> bool {
        match self {
            Self::Scalar(loss) => loss.is_classification(),
            Self::Multinomial => true,
        }
    }

    /// The number of values that a model gives a row.
    pub(crate) fn outputs(self, y: &[f64]) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::Multinomial => classes(y),
        }
    }

    /// The score of a row of target `y` with the values `f`: higher is better. [`Loss::score`]; for several classes,
    /// whether the largest value is that of the target.
    pub(crate) fn score(self, y: f64, f: &[f64]) -> f64 {
        match self {
            Self::Scalar(loss) => loss.score(y, f[0]),
            Self::Multinomial => {
                // Of equal values, the first is the prediction.
                let best = f.iter().enumerate().fold(0, |best, (c, value)| if *value > f[best] { c } else { best });
                f64::from(best as f64 == y)
            }
        }
    }

    /// The same objective for targets divided by `u`.
    pub(crate) fn in_unit(self, u: f64) -> Self {
        match self {
            Self::Scalar(loss) => Self::Scalar(loss.in_unit(u)),
            Self::Multinomial => self,
        }
    }

    /// The power of the unit of y that the loss grows with.
    pub(crate) fn growth(self) -> i32 {
        match self {
            Self::Scalar(loss) => loss.growth(),
            Self::Multinomial => 0,
        }
    }

    /// The largest slope, and the largest loss that the constant model gives any target.
    pub(crate) fn steepness(self, y: &[f64]) -> (f64, f64) {
        match self {
            Self::Scalar(loss) => loss.steepness(y),
            Self::Multinomial => (1.0, (classes(y) as f64).ln()),
        }
    }
}

/// The number of classes among targets that count from 0.
fn classes(y: &[f64]) -> usize {
    (y.iter().fold(0.0, |a: f64, y| a.max(*y)) as usize).saturating_add(1)
}
