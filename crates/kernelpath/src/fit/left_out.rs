//! Which rows are left out one by one, and what that does to the weights of the others.
//!
//! The weights of balanced classes depend on all rows that a model is trained on. So leaving out a row changes the weights
//! of all others, also in a machine that did not learn from this row in the first place.

use std::collections::{HashMap, HashSet};

use crate::fit::absent;
use crate::fit::placed::Placed;
use crate::fit::request::Task;
use crate::fit::row_classes::RowClasses;
use crate::solver::engine::Rebalance;

/// What a task leaves out.
pub(crate) struct Leaving {
    /// Weight of one row of each unit.
    pub of_row: Vec<f64>,
    /// The units of which a row is left out by a solver.
    pub units: Vec<usize>,
    /// Of balanced classes, what leaving out a row does to the weights of the others.
    pub rebalance: Option<Rebalance>,
    /// For each row of X, the constant that is the model without it, if that is trained on one class (see `absent.rs`).
    pub constants: Vec<Option<f64>>,
    /// The rows of X that the task does not learn from, by the model without them.
    pub outside: Vec<Vec<usize>>,
}

impl Leaving {
    /// `n` is the number of rows of X, `weight` that of each unit, `of_row` that of each row of the task.
    pub fn new(task: &Task, placed: &Placed, n: usize, weight: &[f64], of_row: &[f64]) -> Self {
        let rows = placed.representatives();
        let unit_of_row: Vec<f64> = rows.iter().map(|&k| of_row[k]).collect();
        // A unit is the last one of its side if no other unit of this target has a weight.
        let alone = |u: usize| {
            let (y, rest) = (task.y[rows[u]], weight[u] - unit_of_row[u]);
            let others = (0..rows.len()).filter(|&v| v != u && task.y[rows[v]] == y);
            weight[u] > 0.0 && rest <= 0.0 && others.map(|v| weight[v]).all(|w| w == 0.0)
        };
        let mut constants = vec![None; n];
        let mut units = Vec::with_capacity(rows.len());
        for u in 0..rows.len() {
            if task.is_one_of_several() && task.objective.is_classification() && alone(u) {
                let mut left = of_row.to_vec();
                left[rows[u]] = 0.0;
                constants[task.row(rows[u])] = absent::constant(task, &left);
            } else {
                units.push(u);
            }
        }
        let outside: Vec<usize> = (0..n).filter(|&i| task.position(i).is_none()).collect();
        let Some(classes) = task.classes.as_ref().filter(|classes| classes.are_balanced()) else {
            return Self { of_row: unit_of_row, units, rebalance: None, constants, outside: vec![outside] };
        };
        let mut factors = FactorsWithout { classes, known: HashMap::new() };
        let own: Vec<usize> = rows.iter().map(|&k| classes.class()[task.row(k)]).collect();
        let mut known = own.clone();
        known.sort_unstable();
        known.dedup();
        let now = classes.factors(&|_| 1.0);
        let mut changes = |row: usize| -> Vec<f64> {
            let without = factors.of(row);
            known.iter().map(|&c| without[c] / now[c]).collect()
        };
        let factors = rows.iter().map(|&k| changes(task.row(k))).collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut group_of: HashMap<Vec<u64>, usize> = HashMap::new();
        for &row in &outside {
            let key = changes(row).iter().map(|change| change.to_bits()).collect();
            let group = *group_of.entry(key).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(row);
        }
        let class = own.iter().map(|c| known.partition_point(|k| k < c)).collect();
        let rebalance = Some(Rebalance { class, classes: known.len(), factors });
        Self { of_row: unit_of_row, units, rebalance, constants, outside: groups }
    }
}

/// Most models of a task beside the refit that do without a row of another task, of `n` rows.
pub(crate) fn most_outside(task: &Task, n: usize) -> usize {
    let Some(classes) = task.classes.as_ref().filter(|classes| classes.are_balanced()) else { return 0 };
    let outside = (0..n).filter(|&i| task.position(i).is_none());
    outside.map(|i| (classes.class()[i], classes.own_weight(i).to_bits())).collect::<HashSet<_>>().len()
}

/// The factors of classes without one row. They are the same for rows of one class and weight.
struct FactorsWithout<'a> {
    classes: &'a RowClasses,
    known: HashMap<(usize, u64), Vec<f64>>,
}

impl FactorsWithout<'_> {
    fn of(&mut self, row: usize) -> &[f64] {
        let Self { classes, known } = self;
        let key = (classes.class()[row], classes.own_weight(row).to_bits());
        known.entry(key).or_insert_with(|| classes.factors(&|i| f64::from(u8::from(i != row))))
    }
}
