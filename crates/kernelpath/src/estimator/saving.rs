//! A fitted model as a file holds it: parameters and attributes under their names in Python.

use serde_json::{Map, Value, json};

use crate::certify::certificate::Certificate;
use crate::certify::record::{Record, Status};
use crate::estimator::fitted::Fitted;
use crate::estimator::options::{Cv, DEFAULT_CS, Grid, Options, Tune};
use crate::fit::folds::Folds;
use crate::fit::precision::Precision;
use crate::fit::result::PathFit;
use crate::fit::scoring::Scoring;
use crate::fit::select::Selection;
use crate::fit::surface::Surface;
use crate::kernel::bandwidth::Bandwidth;
use crate::kernel::gammas::Gammas;
use crate::kernel::shape::Shape;
use crate::loss::objective::Objective;
use crate::model::attributes::{Array, Attribute, Attributes, Entries, json_of_float};
use crate::model::predictor::{Outputs, Predictor};
use crate::model::saved::{Machine, SavedModel};
use crate::nystrom::landmarks::Landmarks;
use crate::solver::choice::Solver;

/// How the attributes of machines are laid out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// What sets each machine apart. Attributes have a leading axis for the machines, unless there is no name.
    pub names: Vec<String>,
    /// Whether the machines are one model, with one place in the grid and one table of scores.
    pub is_joint: bool,
    /// Whether each machine has values of C of its own.
    pub has_own_grids: bool,
}

impl Layout {
    fn has_axis(&self) -> bool {
        !self.names.is_empty()
    }

    /// An attribute from the value of each machine: a list, or the value itself.
    pub fn joined(&self, values: &[f64]) -> Attribute {
        match values {
            [value] if !self.has_axis() => json_of_float(*value).into(),
            values => Array::of_f64([values.len()], values.to_vec()).into(),
        }
    }
}

/// What a file says beside what `Fitted` knows.
pub(crate) struct Particulars {
    /// The name of the class in Python.
    pub estimator: &'static str,
    /// The parameters of this class alone.
    pub parameters: Vec<(&'static str, Value)>,
    pub layout: Layout,
    pub outputs: Outputs,
    /// The attributes of this class alone.
    pub attributes: Vec<(&'static str, Attribute)>,
}

impl Fitted {
    /// The model as a file holds it.
    pub fn saved(&self, particulars: Particulars) -> SavedModel {
        let Particulars { estimator, parameters: own, layout, outputs, attributes: extra } = particulars;
        let mut parameters = parameters(&self.options);
        parameters.extend(own.into_iter().map(|(name, value)| (name.to_string(), value)));
        let mut attributes = self.attributes(&layout);
        attributes.extend(extra.into_iter().map(|(name, attribute)| (name.to_string(), attribute)));
        let predictor = Predictor { expansion: self.expansion().clone(), scaling: None, outputs };
        let machines = self.machines();
        SavedModel {
            estimator: estimator.into(),
            parameters,
            columns: None,
            encoding: None,
            label_type: None,
            machines,
            predictor,
            training: Some(self.training.clone()),
            attributes,
        }
    }

    /// What each machine learned, and the proof of it.
    fn machines(&self) -> Vec<Machine> {
        let machine = |(m, fit): (usize, &PathFit)| {
            let refit = fit.records.last().map(|records| &records[self.places()[m] % self.cs().len()]);
            let certificate = refit.map_or(Certificate::NONE, |refit| refit.certificate);
            Machine {
                loss: fit.objective.name().into(),
                constant: if let Objective::Scalar(loss) = fit.objective { loss.constant() } else { 0.0 },
                c: self.chosen()[m],
                primal: certificate.primal,
                dual: certificate.dual,
                gap: certificate.gap(),
                noise: certificate.relative_noise(),
                status: refit.map_or(Status::NotRun, |refit| refit.status).name().into(),
            }
        };
        self.chosen_paths().iter().enumerate().map(machine).collect()
    }

    /// What the fit found out.
    fn attributes(&self, layout: &Layout) -> Attributes {
        let surface = Surface::new(self.paths());
        let (machines, places) = (surface.machines().len(), surface.places());
        let problems = self.paths()[0][0].records.len();
        let records = || {
            surface.machines().flat_map(move |m| {
                (0..problems).flat_map(move |problem| {
                    (0..places).map(move |place| {
                        let (fit, c) = surface.at(m, place);
                        &fit.records[problem][c]
                    })
                })
            })
        };
        // The last axis is γ × C if several γ were tried.
        let by_gamma = |mut shape: Vec<usize>, entries: Entries| {
            if surface.gammas() > 1 {
                shape.pop();
                shape.extend([surface.gammas(), surface.cs()]);
            }
            Attribute::Array(Array { shape, entries })
        };
        let of_records = |entries: Entries| {
            let shape = if layout.has_axis() { vec![machines, problems, places] } else { vec![problems, places] };
            by_gamma(shape, entries)
        };
        let floats = |of: fn(&Record) -> f64| of_records(Entries::F64(records().map(of).collect()));
        // A start that is optimal took one look.
        let steps = |record: &Record| record.steps.max(usize::from(record.status != Status::NotRun)) as i64;
        let status = Array::of_texts([0], records().map(|record| record.status.name())).entries;
        let n_support = surface.machines().flat_map(|m| {
            (0..places).map(move |place| {
                let (fit, c) = surface.at(m, place);
                fit.n_support(c) as i64
            })
        });
        let n_support = Entries::I64(n_support.collect());
        let support_shape = if layout.has_axis() { vec![machines, places] } else { vec![places] };

        let mut found = Attributes::new();
        let mut keep = |name: &str, attribute: Attribute| drop(found.insert(name.into(), attribute));
        keep(
            "parts_",
            json!({ "names": layout.names, "is_joint": layout.is_joint, "has_own_grids": layout.has_own_grids }).into(),
        );
        keep("gaps_", floats(|record| record.certificate.gap()));
        keep("gap_noise_", floats(|record| record.certificate.relative_noise()));
        keep("n_iter_", of_records(Entries::I64(records().map(steps).collect())));
        keep("status_", of_records(status));
        keep("n_support_path_", by_gamma(support_shape, n_support));
        self.keep_choice(layout, &by_gamma, &mut keep);
        let first = &self.paths()[0][0];
        keep("solver_", json!(first.solver).into());
        keep("timed_out_", json!(self.is_timed_out()).into());
        keep("gram_bytes_", json!(first.gram_bytes).into());
        let planned = self.paths().iter().map(|of_gamma| of_gamma[0].planned_bytes).max();
        keep("planned_bytes_", json!(planned).into());
        let seconds: f64 = self.paths().iter().map(|of_gamma| of_gamma[0].kernel_seconds).sum();
        keep("kernel_seconds_", json_of_float(seconds).into());
        let seconds: f64 = self.paths().iter().flatten().map(|fit| fit.path_seconds).sum();
        keep("path_seconds_", json_of_float(seconds).into());
        keep("split_columns_", json!(!self.options.is_leave_one_out()).into());
        keep("smallest_eigenvalue_", json!(self.chosen_paths()[0].smallest_eigenvalue).into());
        if let Some(nystrom) = self.nystrom() {
            let approximation = nystrom.approximation();
            // If landmarks are rows, these are the support.
            let rows: Vec<i64> = self.support().iter().map(|row| *row as i64).collect();
            let rows = Array { shape: vec![rows.len()], entries: Entries::I64(rows) };
            let indices = nystrom.chosen().map_or(Attribute::Value(Value::Null), |_| rows.into());
            keep("landmark_indices_", indices);
            keep("rank_", json!(approximation.spectrum.len()).into());
            keep("approximation_.trace_error", json_of_float(approximation.trace_error).into());
            keep("approximation_.sampled_rows", json!(approximation.sampled_rows).into());
            keep("approximation_.tail", json_of_float(approximation.tail).into());
            let spectrum = Array::of_f64([approximation.spectrum.len()], approximation.spectrum.clone());
            keep("approximation_.spectrum", spectrum.into());
        }
        found
    }

    /// The grid, the scores, and what was chosen by them.
    fn keep_choice(
        &self,
        layout: &Layout,
        by_gamma: &dyn Fn(Vec<usize>, Entries) -> Attribute,
        keep: &mut dyn FnMut(&str, Attribute),
    ) {
        let grid = |m: usize| &self.chosen_paths()[m].cs;
        let (machines, cs, gammas) = (self.chosen_paths().len(), self.cs().len(), self.paths().len());
        let grids = if layout.has_own_grids { machines } else { 1 };
        let values: Vec<f64> = (0..grids).flat_map(|m| grid(m).clone()).collect();
        let shape = if layout.has_own_grids { vec![machines, cs] } else { vec![cs] };
        // λ = 1 / (2nC), n being the rows that count.
        let lambda = |c: &f64| 1.0 / (2.0 * self.chosen_paths()[0].n as f64 * c);
        keep("lambdas_", Array::of_f64(shape.clone(), values.iter().map(lambda).collect()).into());
        keep("Cs_", Array::of_f64(shape, values).into());
        keep("gammas_", Array::of_f64([gammas], self.gammas()).into());
        keep("gamma_", self.gamma().map_or(Value::Null, json_of_float).into());

        let apart = layout.has_axis() && !layout.is_joint;
        let places = self.places();
        let chosen = |apart: bool| -> Vec<f64> {
            let count = if apart { machines } else { 1 };
            (0..count).map(|m| grid(m)[places[m] % cs]).collect()
        };
        let axis = Layout { names: if apart { layout.names.clone() } else { Vec::new() }, ..Layout::default() };
        let of_c = chosen(apart || layout.has_own_grids);
        let c_axis = if layout.has_own_grids { layout } else { &axis };
        keep("lambda_", c_axis.joined(&of_c.iter().map(lambda).collect::<Vec<_>>()));
        keep("C_", c_axis.joined(&of_c));
        keep("best_score_", axis.joined(&self.best_scores()));
        let best: Vec<i64> = places.iter().map(|place| *place as i64).collect();
        let best_index = if apart {
            Array { shape: vec![machines], entries: Entries::I64(best) }.into()
        } else {
            json!(best[0]).into()
        };
        keep("best_index_", best_index);
        if let Some(weights) = self.weights_of_rows_left_out() {
            keep("fold_weights_", Array::of_f64([weights.len()], weights).into());
        }
        let scores: Vec<f64> = self.scores().iter().flat_map(|scores| scores.concat()).collect();
        let folds = self.scores().first().map_or(0, Vec::len);
        let shape = if apart { vec![machines, folds, gammas * cs] } else { vec![folds, gammas * cs] };
        keep("scores_", by_gamma(shape, Entries::F64(scores)));
        let proofs = self.machines();
        keep("objective_", layout.joined(&proofs.iter().map(|proof| proof.primal).collect::<Vec<_>>()));
        keep("dual_objective_", layout.joined(&proofs.iter().map(|proof| proof.dual).collect::<Vec<_>>()));
    }
}

/// The parameters that all estimators share.
fn parameters(options: &Options) -> Map<String, Value> {
    let mut out = Map::new();
    let mut set = |name: &str, value: Value| drop(out.insert(name.into(), value));
    set("kernel", json!(options.kernel.shape.name()));
    set(
        "gamma",
        match (&options.gammas, options.kernel.bandwidth) {
            (Some(Gammas::Auto), _) => json!("auto-grid"),
            (Some(Gammas::Values(values)), _) => json!(values),
            (None, Bandwidth::Value(gamma)) => json!(gamma),
            (None, Bandwidth::Scale) => json!("scale"),
            (None, Bandwidth::Sigest) => json!("sigest"),
        },
    );
    let (degree, coef0) = match options.kernel.shape {
        Shape::Poly { degree, coef0 } => (degree, coef0),
        Shape::Sigmoid { coef0 } => (3, coef0),
        _ => (3, 0.0),
    };
    set("degree", json!(degree));
    set("coef0", json!(coef0));
    let (cs, lambdas) = match &options.grid {
        Grid::Default(count) => (json!(count), Value::Null),
        Grid::Cs(values) => (json!(values), Value::Null),
        Grid::Lambdas(values) => (json!(DEFAULT_CS), json!(values)),
    };
    set("Cs", cs);
    set("lambdas", lambdas);
    set(
        "cv",
        match &options.cv {
            Cv::Count(count) => json!(count),
            Cv::Given(Folds::None) => Value::Null,
            Cv::Given(Folds::LeaveOneOut) => json!("loo"),
            Cv::Given(Folds::Splits(folds)) => json!({ "repr": format!("{} folds", folds.len()) }),
        },
    );
    // The score that regressors use unless another is set has no name in Python.
    let scoring = options.scoring.filter(|scoring| *scoring != Scoring::NegLoss);
    set("scoring", json!(scoring.map(Scoring::name)));
    set("selection", json!(if options.selection == Selection::Best { "best" } else { "1se" }));
    set("low_rank", json!(options.low_rank.is_some()));
    if let Some(low_rank) = &options.low_rank {
        set(
            "landmarks",
            match low_rank.landmarks() {
                Landmarks::Rows(rows) => json!({ "repr": format!("{} rows", rows.len()) }),
                Landmarks::Given(points) => json!({ "repr": format!("{} points", points.view().nrows()) }),
                rule => json!(rule.name()),
            },
        );
        set("n_landmarks", json!(low_rank.size().landmarks));
        set("rank", json!(low_rank.size().rank));
    }
    set("device", json!(options.device.to_string()));
    set("solver", json!(Solver::NAMES[options.solver as usize]));
    set("tol", json!(options.settings.tol));
    set("max_iter", json!(options.settings.max_iter));
    set("assume_definite", json!(options.settings.assume_definite));
    set("time_budget", json!(options.time_budget.map(|budget| budget.as_secs_f64())));
    set("dtype", json!(Precision::NAMES[options.precision as usize]));
    set("n_jobs", if options.threads == 0 { Value::Null } else { json!(options.threads) });
    set("random_state", json!(options.seed));
    out
}

/// The name of the choice in Python.
pub(crate) fn tune_name(tune: Tune) -> Value {
    json!(if tune == Tune::Joint { "joint" } else { "each" })
}

/// Values of rows, row after row, with an axis for the machines in front, unless there is one machine without a name.
pub(crate) fn by_machine(values: &[f64], machines: usize, is_one: bool) -> Attribute {
    let rows = values.len() / machines;
    let column = |m: usize| values[m..].iter().step_by(machines).copied();
    let shape = if is_one { vec![rows] } else { vec![machines, rows] };
    Array::of_f64(shape, (0..machines).flat_map(column).collect()).into()
}
