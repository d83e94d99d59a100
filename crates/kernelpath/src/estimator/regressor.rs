//! Regressors: ε-insensitive, squared, Huber and expectile losses.

use crate::certify::certificate::Certificate;
use serde_json::json;

use crate::data::rows::IntoRows;
use crate::error::Result;
use crate::estimator::counted::Counted;
use crate::estimator::fitted::{Fitted, shared_results};
use crate::estimator::options::{Options, Tune, setting};
use crate::estimator::saving::{Layout, Particulars, by_machine, tune_name};
use crate::estimator::setters::shared_settings;
use crate::estimator::targets::{Extent, Targets, scored_by_numbers, scores_of};
use crate::estimator::training::{train, tuned};
use crate::fit::request::Task;
use crate::fit::scoring::Scoring;
use crate::fit::spread::spread;
use crate::fit::tune::ChooseBy;
use crate::loss::scalar::Loss;
use crate::model::predictor::Outputs;
use crate::model::saved::SavedModel;
use crate::observe::Control;

/// What [`Extent::Auto`] stands for, in units of the spread of the targets. The usual δ is 1.35 times the spread of the
/// residuals, which is about 1 for a model that explains half of the variance.
const AUTO_EPSILON: f64 = 0.1;

const AUTO_DELTA: f64 = 1.0;

/// The loss, before the spread of the targets is known.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Svr(Extent),
    Ridge,
    Huber(Extent),
    Expectile(f64),
}

/// A regression of one or several targets, to be trained and tuned in one call.
///
/// ```
/// use kernelpath::Regressor;
///
/// let x: Vec<f64> = (0..80).map(|i| 0.1 * f64::from(i)).collect();
/// let mut y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// y[40] = 50.0; // an outlier, which the Huber loss hardly feels
/// let model = Regressor::huber(0.1).n_cs(10).fit((&x[..], 1), &y)?;
/// assert!((model.predict((&[1.57][..], 1))?[0] - 1.0).abs() < 0.1);
/// assert!(model.verify((&x[..], 1), &y)?[0].gap() <= 1e-6);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Regressor {
    options: Options,
    kind: Kind,
    tune: Tune,
}

shared_settings!(Regressor);

impl Regressor {
    /// Support vector regression: the loss max(0, |y − f| − ε), with ε ≥ 0 in the unit of y.
    pub fn svr(epsilon: impl Into<Extent>) -> Self {
        Self::of(Kind::Svr(epsilon.into()))
    }

    /// Kernel ridge regression with an intercept: the loss (y − f)². The α of ridge regression is 1 / (2C).
    pub fn ridge() -> Self {
        Self::of(Kind::Ridge)
    }

    /// The Huber loss: r²/2 up to |r| = δ and δ(|r| − δ/2) beyond, with δ > 0 in the unit of y.
    pub fn huber(delta: impl Into<Extent>) -> Self {
        Self::of(Kind::Huber(delta.into()))
    }

    /// The expectile of level τ, between 0 and 1: the loss τr² for r > 0, else (1 − τ)r².
    pub fn expectile(tau: f64) -> Self {
        Self::of(Kind::Expectile(tau))
    }

    fn of(kind: Kind) -> Self {
        Self { options: Options::default(), kind, tune: Tune::default() }
    }

    /// Whether several targets choose one place in the grid together, as they do unless set, or one each. Together,
    /// they go by the mean of their scores, each in units of the spread of its target.
    #[must_use]
    pub fn tune(mut self, tune: Tune) -> Self {
        self.tune = tune;
        self
    }

    /// Trains and tunes: every C, fold and γ, and the refit on all rows.
    pub fn fit<'a>(&self, x: impl IntoRows<'a>, y: impl Into<Targets<'a>>) -> Result<FittedRegressor> {
        self.fit_with(x, y, &Control::default())
    }

    /// As [`fit`](Self::fit), watched and stopped through `control`.
    pub fn fit_with<'a>(
        &self,
        x: impl IntoRows<'a>,
        y: impl Into<Targets<'a>>,
        control: &Control,
    ) -> Result<FittedRegressor> {
        let (x, y) = (x.into_rows()?, y.into());
        let is_one = matches!(y, Targets::One(_));
        let options = &scored_by_numbers(&self.options)?;
        options.check()?;
        self.check()?;
        let counted = options.counted(x, y.nrows(), control)?;
        let machines = self.machines(&y.counted(&counted)?, &counted);
        let folds = options.folds(&counted, None)?;
        let trained = train(options, &counted, &machines.tasks, &folds, control)?;
        let scores = scores_of(options, &trained, &machines.tasks, &counted.weights(), self.is_joint(&machines))?;
        let tuned = tuned(options, &trained, self.choose_by(&machines), scores, control)?;
        let held_out = counted.spread(trained.out_of_fold(&tuned), machines.tasks.len());
        let training = y.training(x, options.weights.as_deref());
        let fitted = Fitted::new(options, (&x, &counted), &machines.tasks, trained, tuned, training);
        Ok(FittedRegressor { builder: self.clone(), fitted, losses: machines.losses, is_one, held_out })
    }

    /// Refuses constants of losses that are out of range.
    fn check(&self) -> Result<()> {
        match self.kind {
            Kind::Svr(Extent::Value(epsilon)) if !(epsilon >= 0.0 && epsilon.is_finite()) => {
                let problem = "epsilon must be a finite number >= 0, or `Extent::Auto`, 0.1 times the spread of y";
                setting(format!("Regressor::svr({epsilon})"), problem)
            }
            Kind::Huber(Extent::Value(delta)) if !(delta > 0.0 && delta.is_finite()) => {
                let problem = "delta must be a finite number > 0, or `Extent::Auto`, the spread of y";
                setting(format!("Regressor::huber({delta})"), problem)
            }
            Kind::Expectile(tau) if !(tau > 0.0 && tau < 1.0) => {
                setting(format!("Regressor::expectile({tau})"), "tau must be between 0 and 1; 0.5 is the mean")
            }
            _ => Ok(()),
        }
    }

    /// One machine for each target.
    fn machines(&self, columns: &[Vec<f64>], counted: &Counted) -> Machines {
        let weight = counted.weight.as_ref();
        let spreads: Vec<f64> = columns.iter().map(|y| spread(y, weight.map(Vec::as_slice))).collect();
        let losses: Vec<Loss> = spreads.iter().map(|spread| self.loss(*spread)).collect();
        let task = |m: usize| {
            let is_scaled = self.options.is_default_grid() && matches!(self.kind, Kind::Svr(_));
            let c_factor = if is_scaled { spreads[m] } else { 1.0 };
            Task::new(losses[m], &columns[m]).with_weight(weight.cloned()).with_c_factor(c_factor)
        };
        let units = spreads.iter().zip(&losses).map(|(spread, loss)| spread.powi(loss.growth())).collect();
        Machines { tasks: (0..columns.len()).map(task).collect(), losses, units }
    }

    fn loss(&self, spread: f64) -> Loss {
        match self.kind {
            Kind::Svr(epsilon) => Loss::EpsilonInsensitive { epsilon: epsilon.of(spread, AUTO_EPSILON) },
            Kind::Ridge => Loss::Squared,
            Kind::Huber(delta) => Loss::Huber { delta: delta.of(spread, AUTO_DELTA) },
            Kind::Expectile(tau) => Loss::Expectile { tau },
        }
    }

    /// Whether several targets choose one place together.
    fn is_joint(&self, machines: &Machines) -> bool {
        self.tune == Tune::Joint && machines.tasks.len() > 1
    }

    /// How the targets choose.
    fn choose_by<'a>(&self, machines: &'a Machines) -> ChooseBy<'a> {
        let units = &machines.units[..];
        if self.is_joint(machines) { ChooseBy::Mean { units } } else { ChooseBy::Apart { units: Some(units) } }
    }
}

/// The machines of several targets.
struct Machines {
    tasks: Vec<Task>,
    losses: Vec<Loss>,
    /// What the scores of the losses are divided by, so that those of several targets can be compared.
    units: Vec<f64>,
}

/// A trained and tuned regression, made by [`Regressor::fit`].
///
/// ```
/// use kernelpath::{Loss, Regressor};
///
/// let x: Vec<f64> = (0..60).map(|i| 0.1 * f64::from(i)).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let model = Regressor::svr(0.05).n_cs(10).fit((&x[..], 1), &y)?;
/// assert_eq!(model.losses(), [Loss::EpsilonInsensitive { epsilon: 0.05 }]);
/// assert!(model.score((&x[..], 1), &y)? > 0.95);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FittedRegressor {
    builder: Regressor,
    fitted: Fitted,
    losses: Vec<Loss>,
    /// Whether the targets were a list, not columns.
    is_one: bool,
    held_out: Vec<f64>,
}

shared_results!([] FittedRegressor);

impl FittedRegressor {
    /// The predicted target of every row; if there are several targets, one value for each, row after row.
    ///
    /// For a precomputed kernel, `x` holds the kernel between the new rows and all training rows.
    pub fn predict<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        self.fitted.values(&x.into_rows()?)
    }

    /// The loss of each target, with its constant.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Predictions for the training rows by models that did not see them, at the chosen place, in the shape of
    /// [`predict`](Self::predict). NaN for rows that were never held out, or have weight 0.
    pub fn out_of_fold(&self) -> &[f64] {
        &self.held_out
    }

    /// The score of the predictions for `x`, with weights of 1: by [`Regressor::scoring`](Regressor::scoring), or else
    /// R². Several targets have the mean of their scores.
    pub fn score<'a>(&self, x: impl IntoRows<'a>, y: impl Into<Targets<'a>>) -> Result<f64> {
        let scoring = self.builder.options.scoring.unwrap_or(Scoring::R2);
        y.into().score(&self.predict(x)?, scoring, &self.losses)
    }

    /// The certificate of each target's machine at its chosen place, [recomputed](crate::verify()) from the data of the
    /// fit in double precision. Of the fit, only the coefficients are trusted.
    pub fn verify<'a>(&self, x: impl IntoRows<'a>, y: impl Into<Targets<'a>>) -> Result<Vec<Certificate>> {
        let y = y.into();
        let counted = self.fitted.counted(x.into_rows()?, y.nrows())?;
        let machines = self.builder.machines(&y.counted(&counted)?, &counted);
        if machines.losses != self.losses {
            let (found, known) = (&machines.losses, &self.losses);
            return setting(".verify(x, y)", format!("y leads to {found:?}, but the model was fitted with {known:?}"));
        }
        self.fitted.verify(&counted, &machines.tasks)
    }

    /// The model by itself, as a file holds it.
    pub fn saved(&self) -> SavedModel {
        let builder = &self.builder;
        let names =
            if self.is_one { Vec::new() } else { (0..self.losses.len()).map(|m| format!("target {m}")).collect() };
        let layout =
            Layout { is_joint: !self.is_one && builder.tune == Tune::Joint, names, has_own_grids: !self.is_one };
        let constants: Vec<f64> = self.losses.iter().map(|loss| loss.constant()).collect();
        let extent = |extent: Extent| if let Extent::Value(value) = extent { json!(value) } else { json!("auto") };
        let (estimator, mut parameters, constant) = match builder.kind {
            Kind::Svr(epsilon) => ("KernelSVR", vec![("epsilon", extent(epsilon))], Some("epsilon_")),
            Kind::Ridge => ("KernelRegressor", vec![("loss", json!("squared"))], None),
            Kind::Huber(delta) => {
                ("KernelRegressor", vec![("loss", json!("huber")), ("delta", extent(delta))], Some("delta_"))
            }
            Kind::Expectile(tau) => ("KernelRegressor", vec![("loss", json!("expectile")), ("tau", json!(tau))], None),
        };
        parameters.push(("tune", tune_name(builder.tune)));
        let mut attributes = vec![("oof_decision_", by_machine(&self.held_out, self.losses.len(), self.is_one))];
        attributes.extend(constant.map(|name| (name, layout.joined(&constants))));
        let outputs = Outputs::Numbers { is_one: self.is_one, rising: None };
        self.fitted.saved(Particulars { estimator, parameters, layout, outputs, attributes })
    }
}
