//! Targets that are numbers: one for each row, or several.

use faer::{Mat, MatRef};

use crate::data::rows::Rows;
use crate::error::{Error, Result};
use crate::estimator::counted::Counted;
use crate::estimator::options::{Options, setting};
use crate::fit::metrics::{mean_score, r2};
use crate::fit::request::Task;
use crate::fit::scoring::Scoring;
use crate::fit::search::Trained;
use crate::fit::surface::{Scores, Surface};
use crate::fit::tune_numbers::r2_scores;
use crate::loss::scalar::Loss;
use crate::model::training_rows::{TrainingRows, Truth};

/// Targets of a regression: one number for each row of X, or a matrix with one column for each target.
///
/// ```
/// use faer::Mat;
/// use kernelpath::Regressor;
///
/// let x: Vec<f64> = (0..50).map(|i| 0.1 * f64::from(i)).collect();
/// let y = Mat::from_fn(50, 2, |i, j| if j == 0 { x[i].sin() } else { 100.0 * x[i].cos() });
/// let model = Regressor::ridge().cs([1.0, 100.0]).fit((&x[..], 1), &y)?;
/// let predicted = model.predict((&[0.0][..], 1))?;
/// assert!(predicted[0].abs() < 0.1 && (predicted[1] - 100.0).abs() < 10.0);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Targets<'a> {
    /// One target.
    One(&'a [f64]),
    /// One column for each target.
    Columns(MatRef<'a, f64>),
}

impl<'a> From<&'a [f64]> for Targets<'a> {
    fn from(y: &'a [f64]) -> Self {
        Self::One(y)
    }
}

impl<'a> From<&'a Vec<f64>> for Targets<'a> {
    fn from(y: &'a Vec<f64>) -> Self {
        Self::One(y)
    }
}

impl<'a, const N: usize> From<&'a [f64; N]> for Targets<'a> {
    fn from(y: &'a [f64; N]) -> Self {
        Self::One(y)
    }
}

impl<'a> From<MatRef<'a, f64>> for Targets<'a> {
    fn from(y: MatRef<'a, f64>) -> Self {
        Self::Columns(y)
    }
}

impl<'a> From<&'a Mat<f64>> for Targets<'a> {
    fn from(y: &'a Mat<f64>) -> Self {
        Self::Columns(y.as_ref())
    }
}

impl Targets<'_> {
    /// Number of rows.
    pub fn nrows(&self) -> usize {
        match self {
            Self::One(y) => y.len(),
            Self::Columns(y) => y.nrows(),
        }
    }

    /// Number of targets of a row.
    pub fn ncols(&self) -> usize {
        if let Self::Columns(y) = self { y.ncols() } else { 1 }
    }

    fn get(&self, row: usize, column: usize) -> f64 {
        match self {
            Self::One(y) => y[row],
            Self::Columns(y) => y[(row, column)],
        }
    }

    /// The targets of the rows that count, column by column, each a finite number.
    pub(crate) fn counted(&self, counted: &Counted) -> Result<Vec<Vec<f64>>> {
        if self.ncols() == 0 {
            return setting(".fit(x, y)", "y has no column; give at least one target");
        }
        let number = |row: usize, column: usize| match self.get(row, column) {
            value if value.is_finite() => Ok(value),
            value => Err(Error::NotFinite { what: "y", value, row, column }),
        };
        (0..self.ncols()).map(|column| counted.rows().map(|row| number(row, column)).collect()).collect()
    }

    /// The digests of the rows with these targets.
    pub(crate) fn training(&self, x: Rows, weights: Option<&[f64]>) -> TrainingRows {
        let columns = self.ncols();
        let values: Vec<f64> =
            (0..self.nrows()).flat_map(|row| (0..columns).map(move |column| self.get(row, column))).collect();
        TrainingRows::of(x, Truth::Numbers { columns, values: &values }, weights)
    }

    /// The mean score over the targets of the predictions `f`, row after row, with weights of 1.
    pub(crate) fn score(&self, f: &[f64], scoring: Scoring, losses: &[Loss]) -> Result<f64> {
        let (n, columns) = (f.len() / losses.len(), losses.len());
        if (self.nrows(), self.ncols()) != (n, columns) {
            let why = "one target for each prediction";
            let (got, expected) = (self.nrows() * self.ncols(), f.len());
            return Err(Error::Length { what: "y", got, expected, why });
        }
        let weight = vec![1.0; n];
        let of_target = |(column, loss): (usize, &Loss)| {
            let y: Vec<f64> = (0..n).map(|row| self.get(row, column)).collect();
            let f: Vec<f64> = f[column..].iter().step_by(columns).copied().collect();
            match scoring {
                Scoring::R2 => r2(&y, &f, &weight),
                _ => mean_score(&y, &f, &weight, |y, f| loss.score(y, f)),
            }
        };
        Ok(losses.iter().enumerate().map(of_target).sum::<f64>() / columns as f64)
    }
}

/// A length in the unit of the targets, such as ε and δ of losses.
///
/// ```
/// use kernelpath::{Extent, Regressor};
///
/// let x: Vec<f64> = (0..60).map(|i| 0.1 * f64::from(i)).collect();
/// let y: Vec<f64> = x.iter().map(|x| 1000.0 * x.sin()).collect();
/// let model = Regressor::svr(Extent::Auto).n_cs(10).fit((&x[..], 1), &y)?;
/// assert!(model.score((&x[..], 1), &y)? > 0.9);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Extent {
    /// A multiple of the [spread](crate::spread) of the targets: 0.1 times it for ε, the spread itself for δ.
    #[default]
    Auto,
    /// This number.
    Value(f64),
}

impl From<f64> for Extent {
    fn from(value: f64) -> Self {
        Self::Value(value)
    }
}

impl Extent {
    /// The length for targets of this spread; `multiple` is what [`Extent::Auto`] stands for.
    pub(crate) fn of(self, spread: f64, multiple: f64) -> f64 {
        match self {
            Self::Auto => multiple * spread,
            Self::Value(value) => value,
        }
    }
}

/// The settings of a regression: a score that is the default one is none, and scores of classes are refused.
pub(crate) fn scored_by_numbers(options: &Options) -> Result<Options> {
    match options.scoring {
        Some(scoring) if scoring.is_of_classes() => {
            let problem = "it scores classes, and a regression predicts numbers; use `Scoring::R2`";
            setting(format!(".scoring(Scoring::{scoring:?})"), problem)
        }
        Some(Scoring::NegLoss) => Ok(Options { scoring: None, ..options.clone() }),
        _ => Ok(options.clone()),
    }
}

/// The scores by which machines choose, one entry for each machine, or one if they choose together; `None`: by their
/// losses.
pub(crate) fn scores_of(
    options: &Options,
    trained: &Trained,
    tasks: &[Task],
    weight: &[f64],
    is_joint: bool,
) -> Result<Option<Vec<Scores>>> {
    if options.scoring.is_none() {
        return Ok(None);
    }
    let (surface, all_at_once) = (Surface::new(&trained.fits), options.is_leave_one_out());
    let y: Vec<&[f64]> = tasks.iter().map(|task| &task.y[..]).collect();
    let of = |machines| r2_scores(&surface, machines, &y, weight, all_at_once);
    let scores =
        if is_joint { vec![of(0..y.len())?] } else { (0..y.len()).map(|m| of(m..m + 1)).collect::<Result<_>>()? };
    Ok(Some(scores))
}
