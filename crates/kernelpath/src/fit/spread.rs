//! The unit and the centre of targets: a robust spread of y, and fits that depend on neither.
//!
//! With targets u·y, values u·f and coefficients u·β, problem (P) is u² times the problem of y, f and β, if C becomes
//!
//! ```text
//! u·C for a loss that grows like |y − f| (quantile, ε-insensitive; ε becomes u·ε),
//! C   for a loss that grows like (y − f)² (squared, expectile; Huber with u·δ in place of δ).
//! ```
//!
//! With targets y + c, (P) is the same problem if b becomes b + c, since all losses of regressions are functions of f − y.
//!
//! So [`in_units`] divides the targets of every regression by a power of two near their spread, which rounds nothing,
//! subtracts a whole number near their median, multiplies the results by the one and adds the other to b and to values.
//! Solvers then see the same bits for y and for 2ᵏ·y, and targets such as times in seconds lose no digits to their size.

use crate::certify::certificate::Certificate;
use crate::error::Result;
use crate::fit::request::{Request, Task};
use crate::fit::result::PathFit;
use crate::numeric::centre;

/// The standard deviation of a normal distribution, divided by its median absolute deviation and by its mean absolute
/// deviation.
const OF_MEDIAN_DEVIATION: f64 = 1.482_602_218_505_602;

const OF_MEAN_DEVIATION: f64 = 1.253_314_137_315_500_3;

/// A robust spread of targets, > 0: the median absolute deviation from the median, times 1.4826. With this factor it is
/// the standard deviation of normal targets.
///
/// If more than half of the targets are equal, the mean absolute deviation, times 1.2533, takes its place; if all are
/// equal, the largest |y|; and if all are 0, 1. A target of weight 2 counts as two. The spread of c·y is c times that
/// of y.
///
/// ```
/// assert_eq!(kernelpath::spread(&[1.0, 2.0, 3.0, 4.0, 100.0], None), 1.482_602_218_505_602);
/// ```
pub fn spread(y: &[f64], weight: Option<&[f64]>) -> f64 {
    let counted = counted(y, weight);
    let middle = median(counted.clone());
    let deviations: Vec<(f64, f64)> = counted.iter().map(|(y, w)| ((y - middle).abs(), *w)).collect();
    let total: f64 = deviations.iter().map(|(_, w)| w).sum();
    let mean = deviations.iter().map(|(d, w)| d * (w / total)).sum::<f64>();
    let largest = counted.iter().fold(0.0, |largest: f64, (y, _)| largest.max(y.abs()));
    let candidates = [OF_MEDIAN_DEVIATION * median(deviations), OF_MEAN_DEVIATION * mean, largest];
    candidates.into_iter().find(|spread| *spread > 0.0 && spread.is_finite()).unwrap_or(1.0)
}

/// The finite targets of weight > 0, with their weights.
fn counted(y: &[f64], weight: Option<&[f64]>) -> Vec<(f64, f64)> {
    let weight = |k: usize| weight.map_or(1.0, |weight| weight[k]);
    y.iter().enumerate().map(|(k, y)| (*y, weight(k))).filter(|(y, w)| *w > 0.0 && y.is_finite()).collect()
}

/// The weighted median of (value, weight); halfway between two values if exactly half of the weight is on either side.
fn median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let half = 0.5 * values.iter().map(|(_, w)| w).sum::<f64>();
    let mut below = 0.0;
    for (k, (value, weight)) in values.iter().enumerate() {
        below += weight;
        if below > half {
            return *value;
        }
        if below == half {
            return values.get(k + 1).map_or(*value, |(next, _)| 0.5 * value + 0.5 * next);
        }
    }
    values.last().map_or(0.0, |(value, _)| *value)
}

/// How a task's targets are counted: from `centre`, in units of `unit`. The centre is itself counted in units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    unit: f64,
    centre: f64,
}

impl Scale {
    /// That of labels.
    const NONE: Self = Self { unit: 1.0, centre: 0.0 };

    /// A power of two near the spread of a task's targets, and a whole number of it near their median.
    pub fn of(task: &Task) -> Self {
        if task.objective.is_classification() {
            return Self::NONE;
        }
        let weight = task.weight.as_deref();
        let unit = centre::unit(spread(&task.y, weight));
        Self { unit, centre: centre::in_units(median(counted(&task.y, weight)), unit) }
    }

    /// The same centre in the unit that the targets have.
    pub fn of_centre(self) -> Self {
        Self { unit: 1.0, centre: self.unit * self.centre }
    }

    /// A target, or a value, as it is counted.
    pub fn down(self, value: f64) -> f64 {
        value / self.unit - self.centre
    }

    fn up(self, value: f64) -> f64 {
        (value + self.centre) * self.unit
    }
}

/// `task` with targets y/u − c.
fn scaled(task: &Task, scale: Scale) -> Task {
    let u = scale.unit;
    // C·w of the loss in the new unit.
    let factor = if task.objective.growth() == 1 { task.c_factor / u } else { task.c_factor };
    let ones = || vec![1.0; task.y.len()];
    let of_loss = |weight: Vec<f64>| weight.into_iter().map(|w| w * factor).collect();
    let weight =
        if factor == 1.0 { task.weight.clone() } else { Some(of_loss(task.weight.clone().unwrap_or_else(ones))) };
    // Scores count rows as before.
    let score_weight = task.score_weight.clone().or_else(|| task.weight.clone());
    let score_weight = score_weight.or_else(|| (factor != 1.0).then(ones));
    let y = task.y.iter().map(|y| scale.down(*y)).collect();
    Task { objective: task.objective.in_unit(u), y, weight, score_weight, c_factor: 1.0, ..task.clone() }
}

/// Turns a fit of targets y/u − c into a fit of y.
fn restored(mut fit: PathFit, scale: Scale, task: &Task) -> PathFit {
    let u = scale.unit;
    fit.objective = task.objective;
    fit.cs.iter_mut().for_each(|c| *c *= task.c_factor);
    for record in fit.records.iter_mut().flatten() {
        let Certificate { primal, dual, noise } = record.certificate;
        record.certificate = Certificate { primal: primal * u * u, dual: dual * u * u, noise: noise * u * u };
        record.b.iter_mut().for_each(|b| *b = scale.up(*b));
    }
    fit.oof.iter_mut().flatten().chain(&mut fit.at_centre).flatten().for_each(|value| *value = scale.up(*value));
    fit.coef.iter_mut().flatten().for_each(|coef| *coef *= u);
    for score in fit.scores.iter_mut().flatten() {
        *score *= u.powi(task.objective.growth());
    }
    fit
}

/// Fits `request` by `fit`, each machine with a unit and a centre of its own.
pub(crate) fn in_units(request: &Request, fit: impl Fn(&Request) -> Result<Vec<PathFit>>) -> Result<Vec<PathFit>> {
    let scales: Vec<Scale> = request.tasks.iter().map(Scale::of).collect();
    let tasks = request.tasks.iter().zip(&scales).map(|(task, scale)| scaled(task, *scale)).collect();
    let fits = fit(&Request { tasks, ..request.clone() })?;
    Ok(fits
        .into_iter()
        .zip(scales)
        .zip(&request.tasks)
        .map(|((fit, scale), task)| restored(fit, scale, task))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::loss::scalar::Loss;

    #[test]
    fn of_normal_targets_it_is_their_standard_deviation() {
        let mut rng = fastrand::Rng::with_seed(3);
        let y: Vec<f64> = (0..40_000).map(|_| 5.0 + 3.0 * ((0..12).map(|_| rng.f64()).sum::<f64>() - 6.0)).collect();
        assert!((spread(&y, None) - 3.0).abs() < 0.05, "{}", spread(&y, None));
    }

    #[test]
    fn it_is_never_zero_and_moves_with_the_unit() {
        for (y, want) in [
            (vec![0.0; 4], 1.0),
            (vec![-7.0; 3], 7.0),
            (vec![1.0, 1.0, 1.0, 1.0, 6.0], OF_MEAN_DEVIATION),
            (vec![1.0, 3.0], OF_MEDIAN_DEVIATION),
            (vec![], 1.0),
        ] {
            assert_eq!(spread(&y, None), want, "{y:?}");
            for exponent in [-300, -40, -1, 1, 40, 300] {
                let u = f64::from(exponent).exp2();
                let scaled: Vec<f64> = y.iter().map(|y| y * u).collect();
                let moved = if y.iter().all(|y| *y == 0.0) { want } else { want * u };
                assert_eq!(spread(&scaled, None), moved, "{y:?} times {u}");
            }
        }
    }

    #[test]
    fn a_weight_counts_rows() {
        let (y, twice) = ([1.0, 2.0, 4.0, 9.0], [1.0, 2.0, 2.0, 4.0, 9.0, 9.0, 9.0]);
        assert_eq!(spread(&y, Some(&[1.0, 2.0, 1.0, 3.0])), spread(&twice, None));
        assert_eq!(spread(&y, Some(&[1.0, 0.0, 1.0, 1.0])), spread(&[1.0, 4.0, 9.0], None));
    }

    #[test]
    fn targets_keep_their_bits_in_other_units_and_come_near_zero() {
        let y: Vec<f64> = (0..99).map(|i| 1.7e9 + 86_400.0 * f64::from(i * i % 31)).collect();
        let near = |y: &[f64]| {
            let task = Task::new(Loss::Squared, y);
            scaled(&task, Scale::of(&task)).y
        };
        let ours = near(&y);
        assert!(ours.iter().all(|y| y.abs() <= 4.0), "{ours:?}");
        for unit in [-200, -3, 5, 200].map(|k| f64::from(k).exp2()) {
            assert_eq!(near(&y.iter().map(|y| y * unit).collect::<Vec<_>>()), ours);
        }
        // Targets around 0 keep theirs.
        let around: Vec<f64> = (0..9).map(|i| f64::from(i) - 3.7).collect();
        assert_eq!(near(&around), around.iter().map(|y| y / 4.0).collect::<Vec<_>>());
        // And labels are no targets.
        let labels = Task::new(Loss::Hinge, &[-1.0, 1.0, 1.0]);
        assert_eq!(scaled(&labels, Scale::of(&labels)).y, labels.y);
    }
}
