//! Quantiles of several levels.

use crate::certify::certificate::Certificate;
use serde_json::json;

use crate::data::rows::IntoRows;
use crate::error::Result;
use crate::estimator::counted::Counted;
use crate::estimator::fitted::{Fitted, shared_results};
use crate::estimator::options::{Options, setting};
use crate::estimator::saving::{Layout, Particulars, by_machine};
use crate::estimator::setters::shared_settings;
use crate::estimator::targets::{Targets, scored_by_numbers, scores_of};
use crate::estimator::training::{train, tuned};
use crate::fit::request::Task;
use crate::fit::scoring::Scoring;
use crate::fit::spread::spread;
use crate::fit::tune::ChooseBy;
use crate::loss::scalar::Loss;
use crate::model::predictor::{Outputs, sort_by};
use crate::model::saved::SavedModel;
use crate::observe::Control;

/// Quantile regression of one or several levels τ, to be trained and tuned in one call. All levels share one kernel
/// matrix; each chooses its own C by its own scores, and all share one γ.
///
/// ```
/// use kernelpath::Quantiles;
///
/// let x: Vec<f64> = (0..120).map(|i| 0.05 * f64::from(i)).collect();
/// let y: Vec<f64> = x.iter().enumerate().map(|(i, x)| x.sin() + 0.3 * (2.3 * i as f64).sin()).collect();
/// let model = Quantiles::at([0.1, 0.5, 0.9]).n_cs(10).noncrossing().fit((&x[..], 1), &y)?;
/// let q = model.predict((&[1.5][..], 1))?;
/// assert!(q[0] <= q[1] && q[1] <= q[2]);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Quantiles {
    options: Options,
    taus: Vec<f64>,
    is_sorted: bool,
}

shared_settings!(Quantiles);

impl Quantiles {
    /// Quantiles of these levels, between 0 and 1, in any order.
    pub fn at(taus: impl Into<Vec<f64>>) -> Self {
        Self { options: Options::default(), taus: taus.into(), is_sorted: false }
    }

    /// Puts the predictions of each row into the order of the levels. Levels are fitted apart, so that where data is
    /// scarce a higher quantile may fall below a lower one. Sorting never raises the mean pinball loss.
    #[must_use]
    pub fn noncrossing(mut self) -> Self {
        self.is_sorted = true;
        self
    }

    /// Trains and tunes: every level, C, fold and γ, and the refit on all rows.
    pub fn fit<'a>(&self, x: impl IntoRows<'a>, y: &[f64]) -> Result<FittedQuantiles> {
        self.fit_with(x, y, &Control::default())
    }

    /// As [`fit`](Self::fit), watched and stopped through `control`.
    pub fn fit_with<'a>(&self, x: impl IntoRows<'a>, y: &[f64], control: &Control) -> Result<FittedQuantiles> {
        let options = &scored_by_numbers(&self.options)?;
        options.check()?;
        self.check()?;
        let x = x.into_rows()?;
        let counted = options.counted(x, y.len(), control)?;
        let tasks = self.tasks(y, &counted)?;
        let folds = options.folds(&counted, None)?;
        let trained = train(options, &counted, &tasks, &folds, control)?;
        let scores = scores_of(options, &trained, &tasks, &counted.weights(), false)?;
        let tuned = tuned(options, &trained, ChooseBy::Apart { units: None }, scores, control)?;
        let held_out = counted.spread(trained.out_of_fold(&tuned), tasks.len());
        let training = Targets::One(y).training(x, options.weights.as_deref());
        let fitted = Fitted::new(options, (&x, &counted), &tasks, trained, tuned, training);
        let mut rising: Vec<usize> = (0..self.taus.len()).collect();
        rising.sort_by(|&a, &b| self.taus[a].total_cmp(&self.taus[b]));
        let mut model = FittedQuantiles { builder: self.clone(), fitted, rising, held_out, crossings: 0 };
        model.crossings = model.count_crossings(&counted)?;
        Ok(model)
    }

    /// Refuses levels that are out of range or repeat.
    fn check(&self) -> Result<()> {
        let call = format!("Quantiles::at({:?})", self.taus);
        if self.taus.is_empty() {
            return setting(call, "no level is given; give at least one between 0 and 1");
        }
        if let Some(tau) = self.taus.iter().find(|tau| !(**tau > 0.0 && **tau < 1.0)) {
            return setting(call, format!("levels must be between 0 and 1, got {tau}"));
        }
        match (1..self.taus.len()).find(|&k| self.taus[..k].contains(&self.taus[k])) {
            Some(k) => setting(call, format!("level {} is given twice; name it once", self.taus[k])),
            None => Ok(()),
        }
    }

    /// One machine for each level.
    fn tasks(&self, y: &[f64], counted: &Counted) -> Result<Vec<Task>> {
        let y = Targets::One(y).counted(counted)?.remove(0);
        let weight = counted.weight.as_ref();
        let factor = if self.options.is_default_grid() { spread(&y, weight.map(Vec::as_slice)) } else { 1.0 };
        let task = |loss| Task::new(loss, &y).with_weight(weight.cloned()).with_c_factor(factor);
        Ok(self.losses().into_iter().map(task).collect())
    }

    fn losses(&self) -> Vec<Loss> {
        self.taus.iter().map(|tau| Loss::Quantile { tau: *tau }).collect()
    }
}

/// Trained and tuned quantiles, made by [`Quantiles::fit`].
///
/// ```
/// use kernelpath::Quantiles;
///
/// let x: Vec<f64> = (0..60).map(|i| 0.1 * f64::from(i)).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let model = Quantiles::at([0.5]).n_cs(10).fit((&x[..], 1), &y)?;
/// assert_eq!((model.taus(), model.crossings()), (&[0.5][..], 0));
/// assert!((model.predict((&[1.55][..], 1))?[0] - 1.0).abs() < 0.1);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FittedQuantiles {
    builder: Quantiles,
    fitted: Fitted,
    /// The levels in rising order.
    rising: Vec<usize>,
    held_out: Vec<f64>,
    crossings: usize,
}

shared_results!([] FittedQuantiles);

impl FittedQuantiles {
    /// The levels.
    pub fn taus(&self) -> &[f64] {
        &self.builder.taus
    }

    /// The predicted quantiles of every row, one for each level in the order of [`taus`](Self::taus), row after row.
    ///
    /// For a precomputed kernel, `x` holds the kernel between the new rows and all training rows.
    pub fn predict<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        let mut quantiles = self.fitted.values(&x.into_rows()?)?;
        if self.builder.is_sorted {
            quantiles.chunks_exact_mut(self.rising.len()).for_each(|row| sort_by(row, &self.rising));
        }
        Ok(quantiles)
    }

    /// Training rows of weight > 0 at which a quantile lies below that of the next lower level, before any sorting.
    pub fn crossings(&self) -> usize {
        self.crossings
    }

    fn count_crossings(&self, counted: &Counted) -> Result<usize> {
        let levels = self.rising.len();
        if levels < 2 {
            return Ok(0);
        }
        let values = self.fitted.values_at_rows(counted)?;
        let crosses = |row: &&[f64]| self.rising.windows(2).any(|pair| row[pair[1]] < row[pair[0]]);
        Ok(values.chunks_exact(levels).filter(crosses).count())
    }

    /// Predictions for the training rows by models that did not see them, at the chosen places, one for each level, row
    /// after row. NaN for rows that were never held out, or have weight 0.
    pub fn out_of_fold(&self) -> &[f64] {
        &self.held_out
    }

    /// The mean over the levels of the score of the predictions, with weights of 1: by
    /// [`Quantiles::scoring`](Quantiles::scoring), or else the negative mean pinball loss.
    pub fn score<'a>(&self, x: impl IntoRows<'a>, y: &[f64]) -> Result<f64> {
        let (quantiles, levels) = (self.predict(x)?, self.rising.len());
        let scoring = self.builder.options.scoring.unwrap_or(Scoring::NegLoss);
        let of_level = |(k, loss): (usize, Loss)| {
            let f: Vec<f64> = quantiles[k..].iter().step_by(levels).copied().collect();
            Targets::One(y).score(&f, scoring, &[loss])
        };
        let scores = self.builder.losses().into_iter().enumerate().map(of_level).collect::<Result<Vec<f64>>>()?;
        Ok(scores.iter().sum::<f64>() / levels as f64)
    }

    /// The certificate of each level at its chosen C, [recomputed](crate::verify()) from the data of the fit in double
    /// precision. Of the fit, only the coefficients are trusted.
    pub fn verify<'a>(&self, x: impl IntoRows<'a>, y: &[f64]) -> Result<Vec<Certificate>> {
        let counted = self.fitted.counted(x.into_rows()?, y.len())?;
        let tasks = self.builder.tasks(y, &counted)?;
        self.fitted.verify(&counted, &tasks)
    }

    /// The model by itself, as a file holds it. One level is a number in it, not a list.
    pub fn saved(&self) -> SavedModel {
        let (builder, is_one) = (&self.builder, self.rising.len() == 1);
        let names = if is_one { Vec::new() } else { builder.taus.iter().map(|tau| format!("tau={tau}")).collect() };
        let layout = Layout { names, ..Layout::default() };
        let parameters = vec![
            ("tau", if is_one { json!(builder.taus[0]) } else { json!(builder.taus) }),
            ("noncrossing", if builder.is_sorted { json!("sort") } else { json!(null) }),
        ];
        let attributes = vec![
            ("oof_decision_", by_machine(&self.held_out, self.rising.len(), is_one)),
            ("tau_", json!(builder.taus).into()),
            ("n_crossings_", json!(self.crossings).into()),
        ];
        let outputs = Outputs::Numbers { is_one, rising: builder.is_sorted.then(|| self.rising.clone()) };
        let estimator = "KernelQuantile";
        self.fitted.saved(Particulars { estimator, parameters, layout, outputs, attributes })
    }
}
