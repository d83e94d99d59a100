//! Newton's method in rank dimensions, for K = ZZᵀ: many problems (the folds) at once.
//!
//! With w = Zᵀβ, (P) is
//!
//! ```text
//! minimise ½‖w‖² + Σ hᵢ(gᵢ + b),   g = Zw
//! ```
//!
//! where h is C·w L, or for a piecewise-linear loss its [envelope](crate::loss::envelope) around a centre ā. With
//! a = −h′(g + b) and S = h″, a Newton step solves
//!
//! ```text
//! (I + Zᵀ S Z) Δw + Zᵀ S 1 Δb = −e,     1ᵀ S Z Δw + 1ᵀ S 1 Δb = 0,     e = w − Zᵀa
//! ```
//!
//! [`directions`](super::directions) solves these systems for all problems at once. After each step b is moved to where
//! Σa = 0, so that a is dual feasible. The duality gap is then ½‖e‖² plus what a misses of being a slope of the loss.
//! For a piecewise-linear loss, the minimum of the envelopes is the next centre (Rockafellar 1976), until the gap is
//! small: the limit solves the problem itself.

use crate::certify::record::Settings;
use crate::error::Result;
use crate::loss::scalar::Loss;
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design};
use crate::observe::Control;

/// The problems of one loss on one set of features.
pub(crate) struct Primal<'a, T> {
    pub design: Design<'a, T>,
    /// Most rows whose features may be copied at once.
    pub copied: usize,
    pub loss: Loss,
    pub y: &'a [f64],
    pub settings: Settings,
    /// The precision of the steps' products. If it is not enough, the steps go on in f64.
    pub accuracy: Accuracy,
    pub control: &'a Control,
}

impl<T: Working> Primal<'_, T> {
    pub(super) fn is_smooth(&self) -> bool {
        self.loss.curvature_bound().is_some()
    }

    /// Zᵀ·V, for a step.
    pub(super) fn pass_back(&self, v: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
        self.design.transposed_times(&references(v), self.accuracy, self.control)
    }
}

pub(super) fn references(columns: &[Vec<f64>]) -> Vec<&[f64]> {
    columns.iter().map(|column| &column[..]).collect()
}
