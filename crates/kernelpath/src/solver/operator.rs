//! K as what vectors are multiplied by: the kernel matrix, or features Z of which it is the product, K = ZZᵀ.

use crate::certificate::{KernelError, feature_error};
use crate::design::{Accuracy, Design};
use crate::device::{Cpu, Device};
use crate::error::Result;
use crate::gram::Gram;
use crate::observe::Control;

use super::cholesky::Working;
use super::low_rank::LowRank;

pub(crate) trait Operator: Sync {
    /// Rows of K.
    fn n(&self) -> usize;
    /// Multiplications that a row of a product takes, for each column.
    fn cost(&self) -> usize;
    fn diagonal(&self) -> Vec<f64>;
    /// K·B, column by column, in f64: for a certificate.
    fn times(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>>;
    /// Of each column how far rounding may have taken its product: of row i by so many times the i-th of `roots`, one
    /// standard error.
    fn errors(&self, b: &[&[f64]], control: &Control) -> Result<Vec<f64>>;
    /// What errors of products grow with.
    fn roots(&self) -> Vec<f64>;
    /// K·B in working precision: for a step, which the next one corrects.
    fn apply(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>>;
    /// F with FFᵀ ≈ K, of at most so many columns, the important ones first.
    fn factor(&self, rank: usize, control: &Control) -> Result<LowRank>;
    /// What predicts other rows, of each column of coefficients.
    fn predictors(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>>;
}

impl<T: Working> Operator for Gram<T> {
    fn n(&self) -> usize {
        self.n()
    }

    fn cost(&self) -> usize {
        self.n()
    }

    fn diagonal(&self) -> Vec<f64> {
        self.diagonal()
    }

    fn times(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        self.times(b, control)
    }

    fn errors(&self, b: &[&[f64]], _: &Control) -> Result<Vec<f64>> {
        let error = KernelError::new(Self::storage_error(), &self.diagonal()[..self.n()]);
        Ok(b.iter().map(|beta| error.of_product(beta)).collect())
    }

    fn roots(&self) -> Vec<f64> {
        KernelError::new(0.0, &self.diagonal()[..self.n()]).roots
    }

    fn apply(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        self.apply(b, control)
    }

    fn factor(&self, rank: usize, control: &Control) -> Result<LowRank> {
        LowRank::new(self, rank, control)
    }

    /// The coefficients themselves.
    fn predictors(&self, b: &[&[f64]], _: &Control) -> Result<Vec<Vec<f64>>> {
        Ok(b.iter().map(|column| column.to_vec()).collect())
    }
}

/// K = ZZᵀ, and how far each feature may be from its exact value.
pub(crate) struct FeatureKernel<'a, T> {
    pub design: Design<'a, T>,
    pub errors: &'a [f64],
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
        twice(self.design, b, Accuracy::Double, control)
    }

    /// Those of Zw with w = Zᵀβ.
    fn errors(&self, b: &[&[f64]], control: &Control) -> Result<Vec<f64>> {
        Ok(self.predictors(b, control)?.iter().map(|w| feature_error(w, self.errors)).collect())
    }

    fn roots(&self) -> Vec<f64> {
        vec![1.0; self.n()]
    }

    fn apply(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        twice(self.design, b, Accuracy::Working, control)
    }

    /// The first features, which have the largest eigenvalues.
    fn factor(&self, rank: usize, _: &Control) -> Result<LowRank> {
        let rank = rank.min(self.design.rank());
        Ok(LowRank::of_rows(self.n(), self.design.first(rank)))
    }

    /// The weights w = Zᵀβ of the features.
    fn predictors(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        Cpu.pass_back(self.design, b, Accuracy::Double, control)
    }
}

/// Z(Zᵀ·B).
fn twice<T: Working>(z: Design<T>, b: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>> {
    let w = Cpu.pass_back(z, b, accuracy, control)?;
    let w: Vec<&[f64]> = w.iter().map(Vec::as_slice).collect();
    Cpu.pass(z, &w, accuracy, control)
}
