//! The unit of targets: a robust spread of y, and fits that do not depend on the unit.
//!
//! With targets u·y, values u·f and coefficients u·β, problem (P) is u² times the problem of y, f and β, if C becomes
//!
//! ```text
//! u·C for a loss that grows like |y − f| (quantile, ε-insensitive; ε becomes u·ε),
//! C   for a loss that grows like (y − f)² (squared, expectile; Huber with u·δ in place of δ).
//! ```
//!
//! So [`in_units`] divides the targets of every regression by a power of two near their spread, which rounds nothing,
//! and multiplies the results by it. Solvers then see the same bits for y and for 2ᵏ·y.

use crate::certify::certificate::Certificate;
use crate::error::Result;
use crate::fit::request::{Request, Task};
use crate::fit::result::PathFit;

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
    let weight = |k: usize| weight.map_or(1.0, |weight| weight[k]);
    let counted: Vec<(f64, f64)> =
        y.iter().enumerate().map(|(k, y)| (*y, weight(k))).filter(|(y, w)| *w > 0.0 && y.is_finite()).collect();
    let middle = median(counted.clone());
    let deviations: Vec<(f64, f64)> = counted.iter().map(|(y, w)| ((y - middle).abs(), *w)).collect();
    let total: f64 = deviations.iter().map(|(_, w)| w).sum();
    let mean = deviations.iter().map(|(d, w)| d * (w / total)).sum::<f64>();
    let largest = counted.iter().fold(0.0, |largest: f64, (y, _)| largest.max(y.abs()));
    let candidates = [OF_MEDIAN_DEVIATION * median(deviations), OF_MEAN_DEVIATION * mean, largest];
    candidates.into_iter().find(|spread| *spread > 0.0 && spread.is_finite()).unwrap_or(1.0)
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

/// The power of two nearest to the spread of a task's targets; 1 for labels.
fn unit(task: &Task) -> f64 {
    if task.objective.is_classification() {
        return 1.0;
    }
    let spread = spread(&task.y, task.weight.as_deref());
    // (For targets near the largest or the smallest double, u² must still be finite.)
    spread.log2().round().clamp(-400.0, 400.0).exp2()
}

/// `task` with targets y/u.
fn divided(task: &Task, u: f64) -> Task {
    // C·w of the loss in the new unit.
    let factor = if task.objective.growth() == 1 { task.c_factor / u } else { task.c_factor };
    let ones = || vec![1.0; task.y.len()];
    let of_loss = |weight: Vec<f64>| weight.into_iter().map(|w| w * factor).collect();
    let weight =
        if factor == 1.0 { task.weight.clone() } else { Some(of_loss(task.weight.clone().unwrap_or_else(ones))) };
    // Scores count rows as before.
    let score_weight = task.score_weight.clone().or_else(|| task.weight.clone());
    let score_weight = score_weight.or_else(|| (factor != 1.0).then(ones));
    let y = task.y.iter().map(|y| y / u).collect();
    Task { objective: task.objective.in_unit(u), y, weight, score_weight, c_factor: 1.0, ..task.clone() }
}

/// Turns a fit of targets y/u into a fit of y.
fn times(mut fit: PathFit, u: f64, task: &Task) -> PathFit {
    fit.objective = task.objective;
    fit.cs.iter_mut().for_each(|c| *c *= task.c_factor);
    if u == 1.0 {
        return fit;
    }
    for record in fit.records.iter_mut().flatten() {
        let Certificate { primal, dual, noise } = record.certificate;
        record.certificate = Certificate { primal: primal * u * u, dual: dual * u * u, noise: noise * u * u };
        record.b.iter_mut().for_each(|b| *b *= u);
    }
    for value in fit.oof.iter_mut().flatten().chain(&mut fit.coef).flatten() {
        *value *= u;
    }
    for score in fit.scores.iter_mut().flatten() {
        *score *= u.powi(task.objective.growth());
    }
    fit
}

/// Fits `request` by `fit`, each machine in a unit of its own.
pub(crate) fn in_units(request: &Request, fit: impl Fn(&Request) -> Result<Vec<PathFit>>) -> Result<Vec<PathFit>> {
    let units: Vec<f64> = request.tasks.iter().map(unit).collect();
    let tasks = request.tasks.iter().zip(&units).map(|(task, u)| divided(task, *u)).collect();
    let fits = fit(&Request { tasks, ..request.clone() })?;
    Ok(fits.into_iter().zip(units).zip(&request.tasks).map(|((fit, u), task)| times(fit, u, task)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
