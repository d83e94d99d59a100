//! What a model says of its fit, in one shape for every kind of fit. Nothing is trusted: what is missing, or has
//! another shape than it should, is not there.

use kernelpath::{Arrangement, Array, Attribute, Entries, LabelValue, Outputs, SavedModel, Status, float_of_json};
use serde_json::Value;

use crate::report::text::{label, shortened};

/// Characters of a class in the name of a machine in a legend.
pub(crate) const IN_LEGEND: usize = 14;

/// Attributes of a model, by the axes that they have.
pub(crate) struct Found<'a> {
    pub model: &'a SavedModel,
    /// What sets each machine apart; empty if there is one without a name.
    pub names: Vec<String>,
    /// Whether the machines chose one place together.
    pub is_joint: bool,
    /// Values of C: one list, or one for each machine.
    cs: Vec<Vec<f64>>,
    /// Values of γ; at least one.
    pub gammas: Vec<f64>,
    /// Which of them was chosen.
    pub gamma_at: usize,
}

/// Values of models: `[machine][problem][gamma][c]`.
pub(crate) struct Grid {
    pub machines: usize,
    /// Folds, and the refit where it is among them.
    pub problems: usize,
    pub gammas: usize,
    pub cs: usize,
    values: Vec<f64>,
}

impl Grid {
    pub fn at(&self, machine: usize, problem: usize, gamma: usize, c: usize) -> f64 {
        self.values[((machine * self.problems + problem) * self.gammas + gamma) * self.cs + c]
    }

    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

impl<'a> Found<'a> {
    pub fn new(model: &'a SavedModel) -> Self {
        let parts = value(model, "parts_");
        let names = parts.and_then(|parts| parts.get("names")?.as_array()).map_or_else(Vec::new, |names| {
            names.iter().map(|name| name.as_str().map_or_else(|| name.to_string(), String::from)).collect()
        });
        let is_joint = parts.and_then(|parts| parts.get("is_joint")?.as_bool()).unwrap_or(false);
        let gammas = floats(model, "gammas_").filter(|gammas| !gammas.is_empty()).unwrap_or_else(|| vec![f64::NAN]);
        let chosen = float(model, "gamma_");
        let gamma_at = gammas.iter().position(|gamma| Some(*gamma) == chosen).unwrap_or(0);
        let mut found = Self { model, names, is_joint, cs: Vec::new(), gammas, gamma_at };
        if let Some(array) = array(model, "Cs_")
            && let Some(values) = array.entries.to_f64()
        {
            found.cs = match array.shape[..] {
                [_] => vec![values],
                [machines, cs] if machines == found.machines() && cs > 0 => {
                    values.chunks_exact(cs).map(<[f64]>::to_vec).collect()
                }
                _ => Vec::new(),
            };
        }
        found
    }

    /// Number of machines.
    pub fn machines(&self) -> usize {
        self.names.len().max(1)
    }

    /// Number of tables of scores.
    pub fn tables(&self) -> usize {
        if self.is_joint { 1 } else { self.machines() }
    }

    /// What sets a table of scores apart, in few characters; nothing if it is the only one.
    pub fn table_name(&self, table: usize) -> String {
        if self.is_joint { String::new() } else { self.short_name(table, IN_LEGEND) }
    }

    /// What sets a machine apart; nothing if it is the only one.
    pub fn machine_name(&self, machine: usize) -> String {
        self.named(machine, usize::MAX, " against ")
    }

    /// The same in few characters: a pair of classes is told apart by the first `most` characters of each.
    pub fn short_name(&self, machine: usize, most: usize) -> String {
        self.named(machine, most, if most < 12 { " | " } else { " against " })
    }

    fn named(&self, machine: usize, most: usize, between: &str) -> String {
        let name = |class: usize, labels: &[LabelValue]| labels.get(class).map(|value| shortened(&label(value), most));
        let of_classes = match &self.model.predictor.outputs {
            Outputs::Classes { labels, arrangement: Arrangement::Pairs { pairs, .. }, .. } => pairs
                .get(machine)
                .and_then(|pair| Some(format!("{}{between}{}", name(pair.0, labels)?, name(pair.1, labels)?))),
            Outputs::Classes { labels, arrangement: Arrangement::Rest { .. }, .. } => {
                name(machine, labels).map(|name| format!("{name}{between}rest"))
            }
            _ => None,
        };
        let stated = self.names.get(machine).map(|name| name.replace("tau=", "τ = "));
        if stated.is_some() { of_classes.or(stated).unwrap_or_default() } else { String::new() }
    }

    /// The values of C of a machine.
    pub fn cs(&self, machine: usize) -> &[f64] {
        self.cs.get(machine).or(self.cs.first()).map_or(&[], Vec::as_slice)
    }

    /// Whether all machines share their values of C.
    pub fn has_shared_cs(&self) -> bool {
        self.cs.iter().all(|cs| *cs == self.cs[0])
    }

    /// The places of the values of C from the smallest to the largest; of equal ones, the first.
    pub fn rising(&self) -> Vec<usize> {
        let cs = self.cs(0);
        let mut places: Vec<usize> = (0..cs.len()).collect();
        places.sort_by(|&a, &b| cs[a].total_cmp(&cs[b]));
        places.dedup_by(|a, b| cs[*a] == cs[*b]);
        places
    }

    /// The chosen places among the values of C: one, or one for each table of scores. Files count them from the first γ
    /// on; those of format 1 from the chosen one.
    pub fn best(&self) -> Vec<usize> {
        let n = self.cs(0).len();
        let places = floats(self.model, "best_index_").unwrap_or_default();
        let places: Vec<usize> = places.iter().map(|place| *place as usize).collect();
        if places.iter().all(|place| *place < n * self.gammas.len()) && places.len() == self.tables() {
            // Of equal values, the first is shown.
            let cs = self.cs(0);
            places.iter().map(|at| cs.iter().position(|c| *c == cs[*at % n]).unwrap_or(*at % n)).collect()
        } else {
            Vec::new()
        }
    }

    /// Scores of the folds: `[table][fold][gamma][c]`.
    pub fn scores(&self) -> Option<Grid> {
        let has_axis = !self.names.is_empty() && !self.is_joint;
        self.grid("scores_", has_axis, true).filter(|grid| grid.problems > 0)
    }

    /// Relative duality gaps of the folds and the refit.
    pub fn gaps(&self) -> Option<Grid> {
        self.grid("gaps_", !self.names.is_empty(), true).filter(|grid| grid.problems > 0)
    }

    /// How each solve ended, as a place in `Status::NAMES`.
    pub fn status(&self) -> Option<Grid> {
        self.grid("status_", !self.names.is_empty(), true).filter(|grid| grid.problems > 0)
    }

    /// Steps of each solve.
    pub fn steps(&self) -> Option<Grid> {
        self.grid("n_iter_", !self.names.is_empty(), true)
    }

    /// Support vectors of the refits.
    pub fn n_support(&self) -> Option<Grid> {
        self.grid("n_support_path_", !self.names.is_empty(), false)
    }

    fn grid(&self, name: &str, has_machines: bool, has_problems: bool) -> Option<Grid> {
        let array = array(self.model, name)?;
        let mut shape = &array.shape[..];
        let machines = if has_machines { *shape.split_off_first()? } else { 1 };
        let problems = if has_problems { *shape.split_off_first()? } else { 1 };
        let gammas = if self.gammas.len() > 1 { *shape.split_off_first()? } else { 1 };
        let [cs] = *shape else { return None };
        let expected = if has_machines { self.machines() } else { 1 };
        let values = match &array.entries {
            Entries::Text { names, codes } => {
                let known: Vec<Option<usize>> =
                    names.iter().map(|name| Status::NAMES.iter().position(|known| known == name)).collect();
                codes.iter().map(|code| known.get(*code as usize)?.map(|k| k as f64)).collect::<Option<_>>()?
            }
            entries => entries.to_f64()?,
        };
        let is_whole = machines == expected && gammas == self.gammas.len() && cs == self.cs(0).len() && cs > 0;
        let is_full = values.len() == machines * problems * gammas * cs;
        (is_whole && is_full).then_some(Grid { machines, problems, gammas, cs, values })
    }

    /// Rows that counted in the fit, from λ = 1/(2nC).
    pub fn rows(&self) -> Option<usize> {
        let (lambda, c) = (*floats(self.model, "lambdas_")?.first()?, *self.cs(0).first()?);
        let n = 0.5 / (lambda * c);
        (n.is_finite() && (1.0..1e15).contains(&n)).then(|| n.round() as usize)
    }

    /// The chosen γ, if the kernel has one.
    pub fn gamma(&self) -> Option<f64> {
        let kernel = self.model.predictor.kernel();
        kernel.shape.uses_gamma().then_some(kernel.gamma)
    }

    /// A number among the attributes.
    pub fn float(&self, name: &str) -> Option<f64> {
        float(self.model, name)
    }

    /// Numbers among the attributes: a list, or one.
    pub fn floats(&self, name: &str) -> Option<Vec<f64>> {
        floats(self.model, name)
    }

    /// An array of doubles with its shape.
    pub fn array(&self, name: &str) -> Option<(&'a [usize], Vec<f64>)> {
        let array = array(self.model, name)?;
        Some((&array.shape, array.entries.to_f64()?))
    }

    /// A text among the attributes.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        value(self.model, name)?.as_str()
    }

    /// Whether an attribute is true.
    pub fn is_true(&self, name: &str) -> bool {
        value(self.model, name).and_then(Value::as_bool) == Some(true)
    }

    /// A parameter, if it is there and not null.
    pub fn parameter(&self, name: &str) -> Option<&'a Value> {
        self.model.parameters.get(name).filter(|value| !value.is_null())
    }

    /// The tolerance of the gaps.
    pub fn tol(&self) -> f64 {
        self.parameter("tol").and_then(float_of_json).filter(|tol| *tol > 0.0).unwrap_or(1e-6)
    }

    /// Whether the model predicts classes.
    pub fn is_classifier(&self) -> bool {
        matches!(self.model.predictor.outputs, Outputs::Classes { .. })
    }

    /// What the scores are.
    pub fn score_name(&self) -> String {
        match self.parameter("scoring") {
            Some(Value::String(name)) => name.replace('_', " ").replacen("neg ", "negative ", 1),
            Some(_) => "score".into(),
            None if self.is_classifier() => "accuracy".into(),
            None => match self.model.machines.first().map(|machine| machine.loss.as_str()) {
                Some("quantile") => "negative pinball loss".into(),
                Some("epsilon_insensitive") => "negative absolute error".into(),
                Some("squared") => "negative squared error".into(),
                _ => "negative loss".into(),
            },
        }
    }
}

/// Mean m = Σ w·v / Σ w of (w, v), and its standard error, whose square is Σ w² (v − m)² / (Σ w)² · n / (n − 1); NaN where
/// there are too few.
pub(crate) fn mean_and_error(values: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let values: Vec<(f64, f64)> = values.collect();
    let (n, total) = (values.len() as f64, values.iter().map(|(w, _)| w).sum::<f64>());
    let mean = values.iter().map(|(w, v)| w * v).sum::<f64>() / total;
    let squares: f64 = values.iter().map(|(w, v)| w / total * (v - mean)).map(|d| d * d).sum();
    (mean, (squares * n / (n - 1.0)).sqrt())
}

fn value<'a>(model: &'a SavedModel, name: &str) -> Option<&'a Value> {
    if let Attribute::Value(value) = model.attributes.get(name)? { Some(value) } else { None }
}

fn array<'a>(model: &'a SavedModel, name: &str) -> Option<&'a Array> {
    if let Attribute::Array(array) = model.attributes.get(name)? { Some(array) } else { None }
}

fn float(model: &SavedModel, name: &str) -> Option<f64> {
    value(model, name).and_then(float_of_json)
}

fn floats(model: &SavedModel, name: &str) -> Option<Vec<f64>> {
    match model.attributes.get(name)? {
        Attribute::Array(array) => array.entries.to_f64(),
        Attribute::Value(Value::Array(values)) => values.iter().map(float_of_json).collect(),
        Attribute::Value(value) => Some(vec![float_of_json(value)?]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_that_of_the_mean() {
        let of = |values: &[f64]| mean_and_error(values.iter().map(|v| (2.0, *v)));
        let (mean, error) = of(&[1.0, 2.0, 3.0, 6.0]);
        assert_eq!(mean, 3.0);
        // Variance (4 + 1 + 0 + 9) / 3, over 4.
        assert!((error - (14.0_f64 / 12.0).sqrt()).abs() < 1e-15);
        assert!(of(&[1.0]).1.is_nan());
        assert!(of(&[1.0, f64::NAN]).0.is_nan());
        assert_eq!(mean_and_error([(1.0, 4.0), (3.0, 0.0)].into_iter()).0, 1.0);
    }
}
