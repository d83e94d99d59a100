//! A fitted model of any kind, and what all kinds tell.

use kernelpath::{FittedClassifier, FittedQuantiles, FittedRegressor, LabelValue, PathFit, SavedModel, Scores};

/// A fitted model.
#[derive(Debug)]
pub(crate) enum Fitted {
    Classes(Box<FittedClassifier<LabelValue>>),
    Numbers(Box<FittedRegressor>),
    Quantiles(Box<FittedQuantiles>),
}

macro_rules! of_each {
    ($fitted:expr, $model:ident => $value:expr) => {
        match $fitted {
            Fitted::Classes($model) => $value,
            Fitted::Numbers($model) => $value,
            Fitted::Quantiles($model) => $value,
        }
    };
}

impl Fitted {
    pub fn saved(&self) -> SavedModel {
        of_each!(self, model => model.saved())
    }

    /// All models: `[gamma][machine]`.
    pub fn paths(&self) -> &[Vec<PathFit>] {
        of_each!(self, model => model.paths())
    }

    pub fn gammas(&self) -> Vec<f64> {
        of_each!(self, model => model.gammas())
    }

    /// The place of the chosen γ.
    pub fn gamma_place(&self) -> usize {
        let chosen = of_each!(self, model => model.kernel()).gamma;
        self.gammas().iter().position(|gamma| *gamma == chosen).unwrap_or(0)
    }

    pub fn has_gamma(&self) -> bool {
        of_each!(self, model => model.gamma()).is_some()
    }

    /// The scores of each machine, or one table if they chose together.
    pub fn scores(&self) -> &[Scores] {
        of_each!(self, model => model.all_scores())
    }

    pub fn best_scores(&self) -> Vec<f64> {
        of_each!(self, model => model.best_scores())
    }

    pub fn chosen_cs(&self) -> &[f64] {
        of_each!(self, model => model.chosen_cs())
    }

    pub fn worst_gap(&self) -> f64 {
        of_each!(self, model => model.worst_gap())
    }

    pub fn is_timed_out(&self) -> bool {
        of_each!(self, model => model.is_timed_out())
    }
}
