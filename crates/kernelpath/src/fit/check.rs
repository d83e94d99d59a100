//! Requests that cannot be fitted are refused before anything is computed.

use crate::certify::record::Settings;
use crate::data::rows::Rows;
use crate::error::{Error, Result};
use crate::fit::folds::{Folds, counts};
use crate::fit::request::{KernelChoice, Request, Task};
use crate::fit::row_classes::RowClasses;
use crate::kernel::shape::{KernelFn, Shape};
use crate::loss::objective::Objective;
use crate::numeric::memory;

/// Fails if there is no memory for what every fit takes before it can be planned: a hash and a place for each of `n`
/// rows, and a key for each of the `targets` targets of all machines.
pub(crate) fn check_rows(n: usize, targets: usize) -> Result<()> {
    let numbers = 24 * n as u64 + 8 * targets as u64;
    memory::check(8 * numbers + (8 << 20), "the rows", memory::FEWER_ROWS)
}

/// Refuses rows, C's, folds and settings that no fit can use, whatever its machines are.
pub(crate) fn check_setup(x: &Rows, cs: &[f64], folds: &Folds, settings: Settings) -> Result<()> {
    let n = x.nrows();
    x.check("X")?;
    check_cs(cs)?;
    if !(settings.tol > 0.0 && settings.tol < 1.0) {
        return Err(Error::Parameter { name: "tol", expected: "between 0 and 1", value: settings.tol });
    }
    if settings.max_iter == 0 {
        return Err(Error::Parameter { name: "max_iter", expected: ">= 1", value: 0.0 });
    }
    if let Folds::Splits(folds) = folds {
        for (k, fold) in folds.iter().enumerate() {
            let problem = |problem: String| Err(Error::Fold { fold: k, problem });
            if fold.train.is_empty() || fold.test.is_empty() {
                return problem(format!(
                    "{} training and {} test rows; both must be there",
                    fold.train.len(),
                    fold.test.len()
                ));
            }
            if let Some(i) = fold.train.iter().chain(&fold.test).find(|i| **i >= n) {
                return problem(format!("row {i} is out of range for {n} rows"));
            }
        }
    }
    Ok(())
}

pub(crate) fn check(request: &Request) -> Result<()> {
    check_setup(&request.x, request.cs, &request.folds, request.settings)?;
    if request.tasks.is_empty() {
        return Err(Error::NoLoss);
    }
    if let KernelChoice::LowRank(_) = request.kernel {
        if request.folds == Folds::LeaveOneOut {
            return Err(Error::LowRank { what: "leave-one-out", instead: "folds, such as `.cv(10)`" });
        }
        request.solver.method_on_features()?;
    }
    request.tasks.iter().try_for_each(|task| check_task(task, request))?;
    let diagonal = largest_diagonal(&request.x, &request.kernel.function());
    request.tasks.iter().try_for_each(|task| {
        let (slope, value) = task.objective.steepness(&task.y);
        let weights = task.weights(&|_| 1.0).into_iter().map(|weight| weight * task.c_factor);
        check_products(request.cs, weights, &Scales { slope, value, diagonal })
    })
}

/// Refuses targets and weights that no machine can learn from.
pub(crate) fn check_targets(task: &Task, n: usize) -> Result<()> {
    let rows = task.rows.as_ref().map_or(n, Vec::len);
    if let Some(rows) = &task.rows {
        if let Some(at) = rows.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(Error::Rows { row: rows[at + 1], problem: "does not come after the one before it" });
        }
        if let Some(&row) = rows.iter().find(|row| **row >= n) {
            return Err(Error::Rows { row, problem: "is out of range" });
        }
    }
    if task.y.len() != rows {
        return Err(Error::Length { what: "y", got: task.y.len(), expected: rows, why: "one target a row of X" });
    }
    if let Some(k) = task.y.iter().position(|y| !y.is_finite()) {
        return Err(Error::NotFinite { what: "y", value: task.y[k], row: task.row(k), column: 0 });
    }
    for weight in [&task.weight, &task.score_weight].into_iter().flatten() {
        if weight.len() != rows {
            let why = "one weight a row of X";
            return Err(Error::Length { what: "the weights", got: weight.len(), expected: rows, why });
        }
        if let Some(k) = weight.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
            return Err(Error::Weight { value: weight[k], row: task.row(k) });
        }
    }
    if let Some(classes) = &task.classes {
        classes.check(n)?;
    }
    if !(task.c_factor > 0.0 && task.c_factor.is_finite()) {
        return Err(Error::Parameter { name: "c_factor", expected: "a finite number > 0", value: task.c_factor });
    }
    if task.objective == Objective::Multinomial {
        if let Some(k) = task.y.iter().position(|y| *y < 0.0 || y.fract() != 0.0) {
            return Err(Error::Class { value: task.y[k], row: task.row(k) });
        }
    } else if task.objective.is_classification()
        && let Some(k) = task.y.iter().position(|y| y.abs() != 1.0)
    {
        return Err(Error::Label { value: task.y[k], row: task.row(k) });
    }
    Ok(())
}

fn check_task(task: &Task, request: &Request) -> Result<()> {
    match (task.objective, &request.kernel) {
        (Objective::Multinomial, _) => request.solver.method_of_classes().map(|_| ())?,
        (Objective::Scalar(loss), KernelChoice::LowRank(_)) => loss.check().map(|_| ())?,
        (Objective::Scalar(loss), KernelChoice::Exact(_)) => {
            request.solver.method(loss.check()?, task.y.len(), 0)?;
        }
    }
    let n = request.x.nrows();
    check_targets(task, n)?;
    if task.objective == Objective::Multinomial {
        check_classes(task, request)?;
    }
    check_learned(task, None, &|_| 1.0)?;
    if !task.objective.is_classification() {
        return Ok(());
    }
    if request.folds == Folds::LeaveOneOut && !task.is_one_of_several() {
        for class in [-1.0, 1.0] {
            let mut of_class = (0..task.y.len()).filter(|&k| task.y[k] == class && task.weight(k) > 0.0);
            if let (Some(k), None) = (of_class.next(), of_class.next()) {
                let rows = (0..task.y.len()).filter(|&k| task.weight(k) > 0.0).count() - 1;
                return Err(Error::OneClass { fold: Some(task.row(k)), rows });
            }
        }
    }
    for (k, fold) in request.folds.splits().iter().enumerate() {
        let count = counts(n, &fold.train);
        if task.is_one_of_several() || task.objective == Objective::Multinomial {
            check_fold(task, k, &|i| count[i])?;
        } else {
            check_learned(task, Some(k), &|i| count[i])?;
        }
    }
    Ok(())
}

/// Refuses a fold of several classes whose training rows are of one class, or none. Row i of X counts `count(i)` times.
fn check_fold(task: &Task, fold: usize, count: &dyn Fn(usize) -> f64) -> Result<()> {
    let (mut first, mut rows) = (None, 0);
    // A machine of some classes does not have the rows of the others.
    let class = |k: usize| (task.y[k] as usize, task.weight(k) * count(task.row(k)));
    let class_of_row = |of: &RowClasses, i: usize| (of.class()[i], of.own_weight(i) * count(i));
    let learned: Vec<(usize, f64)> = match task.classes.as_deref() {
        Some(of) => (0..of.class().len()).map(|i| class_of_row(of, i)).collect(),
        None => (0..task.y.len()).map(class).collect(),
    };
    for (class, _) in learned.into_iter().filter(|(_, weight)| *weight > 0.0) {
        if *first.get_or_insert(class) != class {
            return Ok(());
        }
        rows += 1;
    }
    Err(if rows == 0 { Error::NoWeight } else { Error::OneClass { fold: Some(fold), rows } })
}

/// Refuses a model that would learn from no row or, for a classifier, not from every class: the intercept of a missing
/// class would go to −∞, and there would be no optimum. Row i of X counts `count(i)` times. (Folds of several classes may
/// do without some of them: see `absent.rs`.)
fn check_learned(task: &Task, fold: Option<usize>, count: &dyn Fn(usize) -> f64) -> Result<()> {
    let learned: Vec<usize> = (0..task.y.len()).filter(|&k| task.weight(k) * count(task.row(k)) > 0.0).collect();
    if task.objective == Objective::Multinomial {
        let classes = task.outputs();
        let mut there = vec![false; classes];
        for &k in &learned {
            there[task.y[k] as usize] = true;
        }
        let missing = there.iter().position(|there| !there);
        return missing.map_or(Ok(()), |class| Err(Error::NoClass { class, classes }));
    }
    let Some(&first) = learned.first() else { return Err(Error::NoWeight) };
    let are_alike = learned.iter().all(|&k| task.y[k] == task.y[first]);
    if are_alike && task.objective.is_classification() {
        return Err(Error::OneClass { fold, rows: learned.len() });
    }
    Ok(())
}

/// Refuses what the multinomial loss cannot learn from: a part of the rows, classes without any row, or one class.
fn check_classes(task: &Task, request: &Request) -> Result<()> {
    let (n, classes) = (request.x.nrows(), task.outputs());
    if task.rows.is_some() {
        return Err(Error::Length {
            what: "the rows of a task with the multinomial loss",
            got: task.y.len(),
            expected: n,
            why: "it learns from all rows: leave `rows` out",
        });
    }
    if classes > n {
        let mut there: Vec<bool> = vec![false; n];
        task.y.iter().filter(|y| **y < n as f64).for_each(|&y| there[y as usize] = true);
        let class = there.iter().position(|there| !there).unwrap_or(n);
        return Err(Error::NoClass { class, classes });
    }
    if classes < 2 {
        return Err(Error::OneClass { fold: None, rows: n });
    }
    if request.folds == Folds::LeaveOneOut { Err(Error::NoLeaveOneOut) } else { Ok(()) }
}

/// Fails on an empty grid and on values that are not positive numbers.
pub(crate) fn check_cs(cs: &[f64]) -> Result<()> {
    if cs.is_empty() {
        return Err(Error::NoCs);
    }
    match cs.iter().position(|c| !(*c > 0.0 && c.is_finite())) {
        Some(index) => Err(Error::BadC { value: cs[index], index }),
        None => Ok(()),
    }
}

/// The largest k(x, x). For a precomputed matrix that is not square, the diagonal ends with its shorter side.
pub(crate) fn largest_diagonal(x: &Rows, kernel: &KernelFn) -> f64 {
    if kernel.shape.is_shift_invariant() {
        return 1.0;
    }
    let rows = if kernel.shape == Shape::Precomputed { x.nrows().min(x.ncols()) } else { x.nrows() };
    (0..rows).map(|i| kernel.diagonal(x, i).abs()).fold(0.0, f64::max)
}

/// How much larger sums of products may be than the products that are compared with the largest double.
const MARGIN: f64 = 16.0;

/// The sizes that the objective of a machine is made of.
pub(crate) struct Scales {
    /// The largest slope |L′| and the largest value of the loss that the constant model gives any target.
    pub slope: f64,
    pub value: f64,
    /// max k(x, x).
    pub diagonal: f64,
}

/// Refuses C's for which the objective is not finite: with a = C·w·|L′|, neither C·w·L nor a²·K may leave the range of
/// normal doubles, for the smallest weight > 0 and for the sum of all weights.
pub(crate) fn check_products(cs: &[f64], weights: impl Iterator<Item = f64>, scales: &Scales) -> Result<()> {
    let (mut smallest, mut total) = (f64::INFINITY, 0.0);
    for weight in weights.filter(|w| *w > 0.0) {
        smallest = weight.min(smallest);
        total += weight;
    }
    let positive = |value: f64| if value > 0.0 { value } else { 1.0 };
    let (slope, value) = (positive(scales.slope), positive(scales.value));
    // (Kernel values that are not finite have an error of their own, which names the rows.)
    let diagonal = if scales.diagonal.is_finite() { positive(scales.diagonal) } else { 1.0 };
    let low = ((f64::MIN_POSITIVE.sqrt() / diagonal.sqrt()) / slope).max(f64::MIN_POSITIVE / value) / smallest;
    let largest = (f64::MAX / MARGIN).sqrt() / diagonal.sqrt().max(1.0);
    let high = (largest / slope).min(f64::MAX / MARGIN / value) / total;
    match cs.iter().position(|c| !(low <= *c && *c <= high)) {
        None => Ok(()),
        Some(index) => {
            let weight = if cs[index] < low { smallest } else { total };
            Err(Error::ExtremeC { value: cs[index], index, weight, low, high })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_beyond_doubles_are_refused() {
        let scales = Scales { slope: 1.0, value: 2.0, diagonal: 1.0 };
        let check = |c: f64, w: [f64; 3]| check_products(&[1.0, c], w.into_iter(), &scales);
        for c in [1e-150, 1e-8, 1e8, 1e150] {
            assert_eq!(check(c, [1.0; 3]), Ok(()), "{c}");
        }
        assert_eq!(check(1e-8, [1e-12, 0.0, 1.0]), Ok(()));
        for (c, weight) in [(1e-310, 1.0), (1e-170, 1.0), (1e308, 3.0), (1e170, 3.0)] {
            match check(c, [1.0; 3]) {
                Err(Error::ExtremeC { value, index: 1, weight: found, low, high }) => {
                    assert_eq!((value, found), (c, weight));
                    assert!(check(low, [1.0; 3]).is_ok() && check(high, [1.0; 3]).is_ok());
                }
                other => panic!("{c}: {other:?}"),
            }
        }
    }
}
