//! K as what vectors are multiplied by: the kernel matrix, or features Z of which it is the product, K = ZZᵀ.

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

impl<T: Working> Operator for Design<'_, T> {
    fn n(&self) -> usize {
        self.n()
    }

    fn cost(&self) -> usize {
        2 * self.rank()
    }

    fn diagonal(&self) -> Vec<f64> {
        self.squared_lengths()
    }

    fn times(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        twice(*self, b, Accuracy::Double, control)
    }

    fn apply(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        twice(*self, b, Accuracy::Working, control)
    }

    /// The first features, which have the largest eigenvalues.
    fn factor(&self, rank: usize, _: &Control) -> Result<LowRank> {
        let rank = rank.min(self.rank());
        Ok(LowRank::of_rows(self.n(), self.first(rank)))
    }

    /// The weights w = Zᵀβ of the features.
    fn predictors(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        Cpu.pass_back(*self, b, Accuracy::Double, control)
    }
}

/// Z(Zᵀ·B).
fn twice<T: Working>(z: Design<T>, b: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>> {
    let w = Cpu.pass_back(z, b, accuracy, control)?;
    let w: Vec<&[f64]> = w.iter().map(Vec::as_slice).collect();
    Cpu.pass(z, &w, accuracy, control)
}
