//! Arguments of `train`, checked once and turned into settings of the builders.

use std::time::Duration;

use kernelpath::{
    Bandwidth, DeviceChoice, Folds, Gammas, Kernel, Landmarks, LowRank, LowRankSize, Precision, Scoring, Selection,
    Shape, Solver,
};

use crate::arguments::grid::{GammaChoice, Grid};
use crate::arguments::train::{SelectionChoice, TrainArguments};
use crate::failure::Failure;

/// What all builders are told.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub kernel: Kernel,
    pub gammas: Option<Gammas>,
    pub cs: Option<Vec<f64>>,
    pub n_cs: Option<usize>,
    pub folds: Option<usize>,
    pub is_leave_one_out: bool,
    pub scoring: Option<Scoring>,
    pub selection: Selection,
    pub low_rank: Option<LowRank>,
    pub solver: Solver,
    pub tol: f64,
    pub max_iter: Option<usize>,
    pub precision: Precision,
    pub device: DeviceChoice,
    pub threads: usize,
    pub seed: u64,
    pub time_budget: Option<Duration>,
}

impl Settings {
    pub fn new(arguments: &TrainArguments) -> Result<Self, Failure> {
        let (model, tuning, work) = (&arguments.model, &arguments.tuning, &arguments.work);
        let shape = Shape::from_name(&model.kernel, model.degree, model.coef0)?;
        if model.gamma.is_some() && !shape.uses_gamma() {
            return Err(Failure::input(format!("--gamma: the kernel {} has none; leave it out", shape.name())));
        }
        let (bandwidth, gammas) = match &model.gamma {
            None | Some(GammaChoice::Sigest) => (Bandwidth::Sigest, None),
            Some(GammaChoice::Scale) => (Bandwidth::Scale, None),
            Some(GammaChoice::Auto) => (Bandwidth::Sigest, Some(Gammas::Auto)),
            Some(GammaChoice::Values(values)) => match values[..] {
                [gamma] => (Bandwidth::Value(gamma), None),
                _ => (Bandwidth::Sigest, Some(Gammas::Values(values.clone()))),
            },
        };
        let budget = |seconds: f64| {
            let duration = Duration::try_from_secs_f64(seconds).ok().filter(|budget| !budget.is_zero());
            duration
                .ok_or_else(|| Failure::input(format!("--time-budget must be a number of seconds > 0, got {seconds}")))
        };
        Ok(Self {
            kernel: Kernel { shape, bandwidth },
            gammas,
            cs: tuning.cs.as_ref().map(|Grid(values)| values.clone()),
            n_cs: tuning.n_cs,
            folds: tuning.folds,
            is_leave_one_out: tuning.loo,
            scoring: tuning.scoring.as_deref().map(Scoring::from_name).transpose()?,
            selection: match tuning.selection {
                SelectionChoice::Best => Selection::Best,
                SelectionChoice::OneStandardError => Selection::OneStandardError,
            },
            low_rank: if model.low_rank { Some(low_rank(arguments)?) } else { None },
            solver: Solver::from_name(&work.solver)?,
            tol: work.tol,
            max_iter: work.max_iter,
            precision: Precision::from_name(&work.dtype)?,
            device: DeviceChoice::from_name(&work.device)?,
            threads: work.threads,
            seed: work.seed,
            time_budget: work.time_budget.map(budget).transpose()?,
        })
    }
}

fn low_rank(arguments: &TrainArguments) -> Result<LowRank, Failure> {
    let model = &arguments.model;
    let landmarks = model.landmarks.as_deref().map_or(Ok(Landmarks::Auto), Landmarks::from_name)?;
    let low_rank = LowRank::new(landmarks, model.n_landmarks.unwrap_or(LowRankSize::default().landmarks));
    Ok(if let Some(rank) = model.rank { low_rank.rank(rank) } else { low_rank })
}

/// The builder with the settings and the weights of the rows.
macro_rules! set {
    ($builder:expr, $settings:expr, $weights:expr) => {{
        let settings: &$crate::settings::Settings = $settings;
        let mut builder = $builder
            .kernel(settings.kernel)
            .selection(settings.selection)
            .solver(settings.solver)
            .tol(settings.tol)
            .precision(settings.precision)
            .device(settings.device)
            .threads(settings.threads)
            .seed(settings.seed);
        if let Some(gammas) = &settings.gammas {
            builder = builder.gammas(gammas.clone());
        }
        if let Some(cs) = &settings.cs {
            builder = builder.cs(cs.clone());
        }
        if let Some(count) = settings.n_cs {
            builder = builder.n_cs(count);
        }
        builder = match settings.folds {
            _ if settings.is_leave_one_out => builder.leave_one_out(),
            None => builder,
            Some(0) => builder.folds($crate::settings::NO_FOLDS),
            Some(folds) => builder.cv(folds),
        };
        if let Some(scoring) = settings.scoring {
            builder = builder.scoring(scoring);
        }
        if let Some(low_rank) = &settings.low_rank {
            builder = builder.low_rank(low_rank.clone());
        }
        if let Some(steps) = settings.max_iter {
            builder = builder.max_iter(steps);
        }
        if let Some(budget) = settings.time_budget {
            builder = builder.time_budget(budget);
        }
        if let Some(weights) = $weights {
            builder = builder.weights(<[f64]>::to_vec(weights));
        }
        builder
    }};
}

pub(crate) use set;

/// What `--folds 0` asks for.
pub(crate) const NO_FOLDS: Folds = Folds::None;
