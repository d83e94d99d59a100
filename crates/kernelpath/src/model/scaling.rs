//! Scaling of columns that a model carries with it.

use faer::Mat;

use crate::data::rows::{Rows, RowsBuf};
use crate::error::{Error, Result};

/// x′ = (x − shift) · factor, column by column: applied to rows before the kernel sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// What is subtracted from each column.
    pub shift: Vec<f64>,
    /// What each column is then multiplied with; 0 drops the column.
    pub factor: Vec<f64>,
}

impl Scaling {
    /// The scaled rows. Rows that are sparse stay so if nothing is subtracted from any column.
    pub fn apply(&self, x: &Rows) -> Result<RowsBuf> {
        if x.ncols() != self.factor.len() {
            return Err(Error::Features { got: x.ncols(), expected: self.factor.len() });
        }
        if let Rows::Csr(sparse) = x
            && self.shift.iter().all(|shift| *shift == 0.0)
        {
            return Ok(RowsBuf::Csr(sparse.scaled(&self.factor)));
        }
        // What is dropped is 0 whatever it was: a difference may overflow.
        let scaled = |i: usize, j: usize| match self.factor[j] {
            0.0 => 0.0,
            factor => (x.get(i, j) - self.shift[j]) * factor,
        };
        Ok(RowsBuf::Dense(Mat::from_fn(x.nrows(), x.ncols(), scaled)))
    }
}
