//! The rows that count: a row of weight 0 is none.

use faer::Mat;

use crate::data::rows::{Rows, RowsBuf};
use crate::error::{Error, Result};
use crate::estimator::options::setting;
use crate::fit::folds::{Fold, Folds};
use crate::kernel::shape::Shape;
use crate::nystrom::build::LowRank;
use crate::nystrom::landmarks::Landmarks;

/// Data without its rows of weight 0.
pub(crate) struct Counted<'a> {
    x: Held<'a>,
    /// The rows that count, in rising order; `None`: all.
    rows: Option<Vec<usize>>,
    /// The weights of the rows that count; `None`: all 1.
    pub weight: Option<Vec<f64>>,
    /// The number of all rows.
    total: usize,
}

enum Held<'a> {
    Given(Rows<'a>),
    Copied(RowsBuf),
}

impl<'a> Counted<'a> {
    /// Checks rows, weights and the number of targets, and leaves out rows of weight 0.
    pub fn new(x: Rows<'a>, targets: usize, weight: Option<&[f64]>, shape: Shape) -> Result<Self> {
        x.check("X")?;
        let n = x.nrows();
        if targets != n {
            return Err(Error::Length { what: "y", got: targets, expected: n, why: "one target a row of X" });
        }
        let Some(weight) = weight else { return Ok(Self { x: Held::Given(x), rows: None, weight: None, total: n }) };
        if weight.len() != n {
            let problem = format!("{} weights are given, but X has {n} rows; give one for each row", weight.len());
            return setting(".weights(…)", problem);
        }
        if let Some(row) = weight.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
            return Err(Error::Weight { value: weight[row], row });
        }
        let rows: Vec<usize> = (0..n).filter(|&i| weight[i] > 0.0).collect();
        if rows.is_empty() {
            return Err(Error::NoWeight);
        }
        if rows.len() == n {
            return Ok(Self { x: Held::Given(x), rows: None, weight: Some(weight.to_vec()), total: n });
        }
        let copied = match shape {
            Shape::Precomputed if x.ncols() == n => {
                RowsBuf::Dense(Mat::from_fn(rows.len(), rows.len(), |i, j| x.get(rows[i], rows[j])))
            }
            _ => x.copy_rows(&rows),
        };
        let weight = rows.iter().map(|&i| weight[i]).collect();
        Ok(Self { x: Held::Copied(copied), rows: Some(rows), weight: Some(weight), total: n })
    }

    /// The same with the kernel matrix of the rows that count.
    pub fn with_matrix(self, matrix: Mat<f64>) -> Self {
        Self { x: Held::Copied(RowsBuf::Dense(matrix)), ..self }
    }

    /// The rows that count.
    pub fn x(&self) -> Rows<'_> {
        match &self.x {
            Held::Given(x) => *x,
            Held::Copied(x) => x.view(),
        }
    }

    /// The number of rows that count.
    pub fn n(&self) -> usize {
        self.rows.as_ref().map_or(self.total, Vec::len)
    }

    /// The row of X that is the `k`-th row that counts.
    pub fn row(&self, k: usize) -> usize {
        self.rows.as_ref().map_or(k, |rows| rows[k])
    }

    /// The place of a row of X among the rows that count.
    pub fn place(&self, row: usize) -> Option<usize> {
        self.rows.as_ref().map_or(Some(row), |rows| rows.binary_search(&row).ok())
    }

    /// The number of all rows.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The rows of X that count.
    pub fn rows(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.n()).map(|k| self.row(k))
    }

    /// The weights, 1 where none are given.
    pub fn weights(&self) -> Vec<f64> {
        self.weight.clone().unwrap_or_else(|| vec![1.0; self.n()])
    }

    /// Values of the rows that count, `outputs` for each, among NaN for the other rows.
    pub fn spread(&self, values: Vec<f64>, outputs: usize) -> Vec<f64> {
        let Some(rows) = &self.rows else { return values };
        let mut all = vec![f64::NAN; self.total * outputs];
        for (&row, values) in rows.iter().zip(values.chunks_exact(outputs)) {
            all[row * outputs..(row + 1) * outputs].copy_from_slice(values);
        }
        all
    }

    /// For each row of X, its place among the rows that count.
    fn places(&self) -> Option<Vec<Option<usize>>> {
        let rows = self.rows.as_ref()?;
        let mut places = vec![None; self.total];
        rows.iter().enumerate().for_each(|(k, &row)| places[row] = Some(k));
        Some(places)
    }

    /// Folds that name rows of X, for the rows that count.
    pub fn folds(&self, folds: Folds) -> Result<Folds> {
        let (Some(places), Folds::Splits(splits)) = (self.places(), &folds) else { return Ok(folds) };
        let counted = |fold: usize, rows: &[usize]| -> Result<Vec<usize>> {
            let outside = |row: usize| Error::Fold {
                fold,
                problem: format!("row {row} is out of range for {} rows", places.len()),
            };
            let place = |&row: &usize| places.get(row).copied().ok_or_else(|| outside(row));
            Ok(rows.iter().map(place).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        let fold = |(k, fold): (usize, &Fold)| -> Result<Fold> {
            let of_part = |part: &str, rows: &[usize]| -> Result<Vec<usize>> {
                let left = counted(k, rows)?;
                if left.is_empty() && !rows.is_empty() {
                    let problem = format!("all {} {part} rows have weight 0, so that they are no rows", rows.len());
                    return Err(Error::Fold { fold: k, problem });
                }
                Ok(left)
            };
            Ok(Fold { train: of_part("training", &fold.train)?, test: of_part("test", &fold.test)? })
        };
        Ok(Folds::Splits(splits.iter().enumerate().map(fold).collect::<Result<_>>()?))
    }

    /// Landmarks that are rows of X, for the rows that count.
    pub fn low_rank(&self, low_rank: &LowRank) -> Result<LowRank> {
        let (Some(places), Landmarks::Rows(rows)) = (self.places(), low_rank.landmarks()) else {
            return Ok(low_rank.clone());
        };
        let place = |&row: &usize| match places.get(row) {
            Some(Some(place)) => Ok(*place),
            Some(None) => {
                let problem = format!("row {row} has weight 0, so that it is no row; name others, or give points");
                setting(".low_rank(LowRank::rows(…))", problem)
            }
            None => {
                let problem = format!("there is no row {row}: X has {} rows, counted from 0", places.len());
                setting(".low_rank(LowRank::rows(…))", problem)
            }
        };
        Ok(low_rank.with_landmarks(Landmarks::Rows(rows.iter().map(place).collect::<Result<_>>()?)))
    }
}
