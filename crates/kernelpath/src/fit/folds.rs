//! Which rows each model learns from, and which it is scored on.

use crate::error::{Error, Result};
use crate::numeric::memory;

/// One split of the rows. A training row named twice counts twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// Rows to train on.
    pub train: Vec<usize>,
    /// Rows to score.
    pub test: Vec<usize>,
}

/// Which models to fit besides the one on all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folds {
    /// None.
    None,
    /// These splits.
    Splits(Vec<Fold>),
    /// Each row held out once, exactly.
    LeaveOneOut,
}

impl Folds {
    /// `k` folds with the classes of `y` spread evenly, shuffled reproducibly.
    pub fn stratified(y: &[f64], k: usize, seed: u64) -> Result<Self> {
        if k < 2 || k > y.len() {
            return Err(Error::Parameter { name: "cv", expected: "between 2 and the number of rows", value: k as f64 });
        }
        // An order, a fold for each row, and each row once in every fold.
        let places = y.len().saturating_mul(k.saturating_add(2));
        memory::check((places as u64).saturating_mul(8), "the folds", memory::FEWER_ROWS)?;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut order: Vec<usize> = (0..y.len()).collect();
        rng.shuffle(&mut order);
        order.sort_by(|&a, &b| y[a].total_cmp(&y[b]));
        let mut fold_of = vec![0; y.len()];
        for (position, &row) in order.iter().enumerate() {
            fold_of[row] = position % k;
        }
        let rows = |wanted: bool, fold: usize| (0..y.len()).filter(|&i| (fold_of[i] == fold) == wanted).collect();
        Ok(Self::Splits((0..k).map(|fold| Fold { train: rows(false, fold), test: rows(true, fold) }).collect()))
    }

    /// `k` folds of `n` rows, shuffled reproducibly, whose sizes differ by at most one row.
    ///
    /// ```
    /// use kernelpath::Folds;
    ///
    /// let Folds::Splits(folds) = Folds::shuffled(7, 3, 0)? else { panic!("there are splits") };
    /// assert_eq!(folds.iter().map(|fold| fold.test.len()).collect::<Vec<_>>(), [3, 2, 2]);
    /// # Ok::<(), kernelpath::Error>(())
    /// ```
    pub fn shuffled(n: usize, k: usize, seed: u64) -> Result<Self> {
        if k < 2 || k > n {
            return Err(Error::Parameter { name: "cv", expected: "between 2 and the number of rows", value: k as f64 });
        }
        // All rows are of one class, so that only the shuffle says which fold a row is in.
        Self::stratified(&memory::zeros::<f64>(n, "the folds")?, k, seed)
    }

    /// The splits, if there are any.
    pub(crate) fn splits(&self) -> &[Fold] {
        if let Self::Splits(folds) = self { folds } else { &[] }
    }

    pub(crate) fn len(&self, n: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Splits(folds) => folds.len(),
            Self::LeaveOneOut => n,
        }
    }
}

/// How often each of `n` rows is named in `rows`.
pub(crate) fn counts(n: usize, rows: &[usize]) -> Vec<f64> {
    let mut counts = vec![0.0; n];
    for &i in rows {
        counts[i] += 1.0;
    }
    counts
}
