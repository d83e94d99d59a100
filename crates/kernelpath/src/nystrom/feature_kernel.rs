//! K = ZZᵀ as an operator: two passes over the features for a product.

use crate::error::Result;
use crate::kernel::accuracy::feature_error;
use crate::kernel::operator::Operator;
use crate::kernel::pivoted::LowRank;
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design};
use crate::observe::Control;

/// K = ZZᵀ, and how far each feature may be from its exact value.
pub(crate) struct FeatureKernel<'a, T> {
    pub design: Design<'a, T>,
    pub errors: &'a [f64],
}

impl<T: Working> FeatureKernel<'_, T> {
    /// The weights w = Zᵀβ of the features, for each column of coefficients.
    pub fn weights(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        self.design.transposed_times(b, Accuracy::Double, control)
    }

    /// Z(Zᵀ·B).
    fn twice(&self, b: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>> {
        let w = self.design.transposed_times(b, accuracy, control)?;
        let w: Vec<&[f64]> = w.iter().map(Vec::as_slice).collect();
        self.design.times(&w, accuracy, control)
    }
}

impl<T: Working> Operator for FeatureKernel<'_, T> {
    fn n(&self) -> usize {
        self.design.n()
    }

    fn cost(&self) -> usize {
        2 * self.design.rank()
    }

    fn diagonal(&self) -> Vec<f64> {
        self.design.squared_lengths()
    }

    fn times(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        self.twice(b, Accuracy::Double, control)
    }

    /// The errors of Zw with w = Zᵀβ.
    fn errors(&self, b: &[&[f64]], control: &Control) -> Result<Vec<f64>> {
        Ok(self.weights(b, control)?.iter().map(|w| feature_error(w, self.errors)).collect())
    }

    fn shift(&self) -> f64 {
        0.0
    }

    fn roots(&self) -> Vec<f64> {
        vec![1.0; self.n()]
    }

    fn apply(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        self.twice(b, Accuracy::Working, control)
    }

    /// The first features, which have the largest eigenvalues.
    fn factor(&self, rank: usize, _: &Control) -> Result<LowRank> {
        let rank = rank.min(self.design.rank());
        Ok(LowRank::of_rows(self.n(), self.design.first(rank)))
    }
}
