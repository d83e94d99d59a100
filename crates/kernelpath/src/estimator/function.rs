//! Kernels that are functions of two rows.

use std::fmt;
use std::sync::Arc;

use faer::Mat;

use crate::data::rows::Rows;
use crate::error::Result;
use crate::estimator::options::setting;
use crate::numeric::threads::pooled;
use crate::numeric::{memory, parallel};
use crate::observe::Control;

/// Values that a thread computes between two looks at whether the work is to go on.
const VALUES_BETWEEN_LOOKS: usize = 64;

/// k(x, z) of two rows.
type OfRows = dyn Fn(&[f64], &[f64]) -> f64 + Send + Sync;

/// A kernel function.
#[derive(Clone)]
pub(crate) struct Function(Arc<OfRows>);

impl fmt::Debug for Function {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a function of two rows")
    }
}

impl Function {
    pub fn new(function: impl Fn(&[f64], &[f64]) -> f64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// k(x, z) for each row x of `x` and each row z of `z`, each a finite number.
    pub fn matrix(&self, x: &Rows, z: &Rows, threads: usize, control: &Control) -> Result<Mat<f64>> {
        let mut values = memory::matrix(x.nrows(), z.nrows(), "the values of the kernel function", |_, _| 0.0)?;
        let rows = dense(x)?;
        pooled(threads, || {
            parallel::try_for_each(values.as_mut().col_iter_mut().enumerate(), |(j, column)| {
                let other: Vec<f64> = (0..z.ncols()).map(|k| z.get(j, k)).collect();
                for (i, (value, row)) in column.iter_mut().zip(rows.chunks_exact(x.ncols())).enumerate() {
                    if i % VALUES_BETWEEN_LOOKS == 0 {
                        control.check()?;
                    }
                    *value = (self.0)(row, &other);
                    if !value.is_finite() {
                        let problem = format!("the function gave {value} for rows {i} and {j}; it must be finite");
                        return setting(".kernel_function(…)", problem);
                    }
                }
                Ok(())
            })
        })?;
        Ok(values)
    }
}

/// The rows in double precision, one after the other.
fn dense(x: &Rows) -> Result<Vec<f64>> {
    let mut rows = memory::with_room(x.nrows().saturating_mul(x.ncols()), "a copy of the rows")?;
    (0..x.nrows()).for_each(|i| rows.extend((0..x.ncols()).map(|k| x.get(i, k))));
    Ok(rows)
}
