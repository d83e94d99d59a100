//! K as an operator that multiplies vectors. The kernel matrix is one; low-rank features Z with K = ZZᵀ are another.

use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::kernel::pivoted::LowRank;
use crate::numeric::cholesky::Working;
use crate::observe::Control;

pub(crate) trait Operator: Sync {
    /// Rows of K.
    fn n(&self) -> usize;
    /// Multiplications per row and column of a product.
    fn cost(&self) -> usize;
    fn diagonal(&self) -> Vec<f64>;
    /// K·B, column by column, in f64: for a certificate.
    fn times(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>>;
    /// One standard error of each column's product due to rounding: the product is off by this number times the i-th of
    /// `roots` in row i.
    fn errors(&self, b: &[&[f64]], control: &Control) -> Result<Vec<f64>>;
    /// What makes K positive semi-definite, if it is added to the diagonal.
    fn shift(&self) -> f64;
    /// Per row, the number that errors of products are proportional to.
    fn roots(&self) -> Vec<f64>;
    /// The intercepts for rows as they are given: see [`Tilt::intercepts`](crate::kernel::tilt::Tilt::intercepts).
    fn given_intercepts(&self, _coef: &[f64], _b: &mut [f64]) {}
    /// K·B in working precision: for a step, which the next one corrects.
    fn apply(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>>;
    /// F with FFᵀ ≈ K, of at most `rank` columns, the important ones first.
    fn factor(&self, rank: usize, control: &Control) -> Result<LowRank>;
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
        let error = self.error();
        Ok(b.iter().map(|beta| error.of_product(beta)).collect())
    }

    fn shift(&self) -> f64 {
        self.shift
    }

    fn roots(&self) -> Vec<f64> {
        self.error().roots
    }

    fn given_intercepts(&self, coef: &[f64], b: &mut [f64]) {
        self.tilt.intercepts(coef, b);
    }

    fn apply(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        self.apply(b, control)
    }

    fn factor(&self, rank: usize, control: &Control) -> Result<LowRank> {
        LowRank::new(self, rank, control)
    }
}
