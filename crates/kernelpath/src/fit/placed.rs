//! Rows that are the same in every task, and the place of a task's rows among them.

use crate::data::units::Units;
use crate::error::Result;
use crate::fit::check::check_rows;
use crate::fit::folds::Folds;
use crate::fit::request::{Request, Task};
use crate::kernel::shape::Shape;
use crate::observe::Control;

/// Merges rows that are the same in every task.
pub(crate) fn units(request: &Request, control: &Control) -> Result<Units> {
    check_rows(request.x.nrows(), request.tasks.iter().map(|task| task.y.len()).sum())?;
    if request.kernel.function().shape == Shape::Precomputed {
        return Ok(Units::separate(request.x.nrows()));
    }
    // Leave-one-out leaves out one row of a unit, so the rows of a unit must have equal weights and classes, too.
    let alone = request.folds == Folds::LeaveOneOut;
    let (whole, small): (Vec<usize>, Vec<usize>) =
        (0..request.tasks.len()).partition(|&t| request.tasks[t].rows.is_none());
    // For each row, the small tasks that learn from it, and its place in them.
    let mut learners: Vec<Vec<(usize, usize)>> = vec![Vec::new(); if small.is_empty() { 0 } else { request.x.nrows() }];
    for t in small {
        for (k, &row) in request.tasks[t].rows.iter().flatten().enumerate() {
            learners[row].push((t, k));
        }
    }
    let key = |(t, k): (usize, usize)| {
        let task = &request.tasks[t];
        [t as f64, task.y[k], if alone { task.weight(k) } else { 1.0 }]
    };
    let keys = |i: usize| {
        let in_small = learners.get(i).into_iter().flatten().copied();
        let class = move |t: usize| request.tasks[t].classes.as_ref().filter(|_| alone).map(|of| of.class()[i] as f64);
        let classes = (0..request.tasks.len()).filter_map(class);
        whole.iter().map(move |&t| (t, i)).chain(in_small).flat_map(key).chain(classes)
    };
    Units::merge(&request.x, keys, control)
}

/// The units of a task, and the place of each of its rows among them.
pub(crate) struct Placed {
    pub own: Vec<usize>,
    pub place: Vec<usize>,
}

impl Placed {
    pub fn new(task: &Task, units: &Units) -> Self {
        let unit = |k: usize| units.of_row[task.row(k)];
        let mut own: Vec<usize> = (0..task.y.len()).map(unit).collect();
        own.sort_unstable();
        own.dedup();
        let place = (0..task.y.len()).map(|k| own.partition_point(|&u| u < unit(k))).collect();
        Self { own, place }
    }

    /// The target of each unit.
    pub fn targets(&self, task: &Task) -> Vec<f64> {
        let mut y = vec![0.0; self.own.len()];
        for (y_k, &u) in task.y.iter().zip(&self.place) {
            y[u] = *y_k;
        }
        y
    }

    /// The weight of each unit, where `weight` has that of each row of the task.
    pub fn weights(&self, weight: &[f64]) -> Vec<f64> {
        let mut of_unit = vec![0.0; self.own.len()];
        for (weight, &u) in weight.iter().zip(&self.place) {
            of_unit[u] += weight;
        }
        of_unit
    }

    /// A row of each unit, by its place among those of the task.
    pub fn representatives(&self) -> Vec<usize> {
        let mut of_unit = vec![0; self.own.len()];
        for (k, &u) in self.place.iter().enumerate() {
            of_unit[u] = k;
        }
        of_unit
    }
}
