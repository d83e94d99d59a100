//! The classes of a classifier's rows, and what they weigh in the loss.

use crate::error::{Error, Result};

/// The class of each row of X, counted from 0, and what the classes weigh in the loss. All machines of a classifier have
/// the same: a machine of two classes must know how often the others occur.
///
/// ```
/// use std::sync::Arc;
/// use kernelpath::{Control, Folds, KernelFn, Loss, Request, RowClasses, Rows, Shape, Task, fit};
///
/// // Every fifth row is of class 1.
/// let x: Vec<f64> = (0..60).map(|i| f64::from(i % 5) + 0.1 * (0.7 * f64::from(i)).sin()).collect();
/// let class: Vec<usize> = (0..60).map(|i| usize::from(i % 5 == 0)).collect();
/// let y: Vec<f64> = class.iter().map(|c| 2.0 * *c as f64 - 1.0).collect();
/// let classes = Arc::new(RowClasses::new(class, None).balanced());
/// let task = Task::new(Loss::Hinge, &y).of_classes(Some(classes));
/// let rows = Rows::from_slice(&x, 1)?;
/// let mut request = Request::new(rows, vec![task], KernelFn::new(Shape::Rbf, 1.0)?, &[1.0]);
/// request.folds = Folds::shuffled(60, 4, 0)?; // each fold balances its own training rows
/// assert!(fit(&request, &Control::default())?[0].worst_gap() <= 1e-6);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RowClasses {
    class: Vec<usize>,
    /// The number of classes.
    number: usize,
    weight: Option<Vec<f64>>,
    factors: Factors,
}

/// What the weights of a class's rows are multiplied by in the loss.
#[derive(Debug, Clone, PartialEq)]
enum Factors {
    Equal,
    Balanced,
    Given(Vec<f64>),
}

impl RowClasses {
    /// Rows of these classes, and their weights (`None`: all 1). All classes weigh 1.
    pub fn new(class: Vec<usize>, weight: Option<Vec<f64>>) -> Self {
        let number = class.iter().max().map_or(0, |c| c.saturating_add(1));
        Self { class, number, weight, factors: Factors::Equal }
    }

    /// All classes have the same total weight in the loss: rows of a class are multiplied by
    ///
    /// ```text
    /// (sum of all weights) / (number of classes · sum of the weights of the class),
    /// ```
    ///
    /// where a model counts the rows that it is trained on, and the classes among them.
    #[must_use]
    pub fn balanced(self) -> Self {
        Self { factors: Factors::Balanced, ..self }
    }

    /// The weights of rows of class c are multiplied by `factors[c]` in the loss.
    #[must_use]
    pub fn weighing(self, factors: Vec<f64>) -> Self {
        Self { factors: Factors::Given(factors), ..self }
    }

    /// The class of each row.
    pub fn class(&self) -> &[usize] {
        &self.class
    }

    /// The weight of each row, without that of its class; `None`: all 1.
    pub fn weight(&self) -> Option<&[f64]> {
        self.weight.as_deref()
    }

    /// Fails if these are not classes of `n` rows.
    pub(crate) fn check(&self, n: usize) -> Result<()> {
        let length = |what, got, expected, why| Err(Error::Length { what, got, expected, why });
        if self.class.len() != n {
            return length("the classes", self.class.len(), n, "one class a row of X");
        }
        if self.number > n {
            let class = (0..n).find(|class| !self.class.contains(class)).unwrap_or(n);
            return Err(Error::NoClass { class, classes: self.number });
        }
        if let Some(weight) = &self.weight {
            if weight.len() != n {
                return length("the weights", weight.len(), n, "one weight a row of X");
            }
            if let Some(row) = weight.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
                return Err(Error::Weight { value: weight[row], row });
            }
        }
        if let Factors::Given(factors) = &self.factors {
            let classes = self.number();
            if factors.len() < classes {
                return length("the weights of classes", factors.len(), classes, "one weight a class");
            }
            if let Some(value) = factors.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
                return Err(Error::Parameter {
                    name: "the weight of a class",
                    expected: "a finite number > 0",
                    value: *value,
                });
            }
        }
        Ok(())
    }

    /// The number of classes.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Whether the factors depend on which rows a model is trained on.
    pub(crate) fn are_balanced(&self) -> bool {
        self.factors == Factors::Balanced
    }

    /// The weight of row `i`, without that of its class.
    pub(crate) fn own_weight(&self, i: usize) -> f64 {
        self.weight.as_ref().map_or(1.0, |weight| weight[i])
    }

    /// The sum of the weights of each class, if row i counts `count(i)` times.
    fn totals(&self, count: &dyn Fn(usize) -> f64) -> Vec<f64> {
        let mut totals = vec![0.0; self.number()];
        for (i, &c) in self.class.iter().enumerate() {
            totals[c] += self.own_weight(i) * count(i);
        }
        totals
    }

    /// The factor of each class in a model that is trained on rows of which row i counts `count(i)` times.
    pub(crate) fn factors(&self, count: &dyn Fn(usize) -> f64) -> Vec<f64> {
        match &self.factors {
            Factors::Equal => vec![1.0; self.number()],
            Factors::Given(factors) => factors.clone(),
            Factors::Balanced => {
                let totals = self.totals(count);
                let there = totals.iter().filter(|total| **total > 0.0).count() as f64;
                let all: f64 = totals.iter().sum();
                totals.iter().map(|total| if *total > 0.0 { all / (there * total) } else { 1.0 }).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_factors_are_those_of_the_rows_that_count() {
        let classes = RowClasses::new(vec![0, 0, 0, 1, 2, 2], Some(vec![1.0, 1.0, 2.0, 0.5, 3.0, 0.5])).balanced();
        assert_eq!(classes.factors(&|_| 1.0), [8.0 / 12.0, 8.0 / 1.5, 8.0 / 10.5]);
        // Class 1 is not there, and row 0 is there twice.
        let count = |i: usize| [2.0, 1.0, 0.0, 0.0, 1.0, 0.0][i];
        assert_eq!(classes.factors(&count), [6.0 / 6.0, 1.0, 6.0 / 6.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let classes = || RowClasses::new(vec![0, 1, 2], None);
        assert!(classes().check(4).is_err());
        let beyond = RowClasses::new(vec![0, usize::MAX, 2], None).check(3).unwrap_err();
        assert_eq!(beyond, Error::NoClass { class: 1, classes: usize::MAX });
        assert!(classes().weighing(vec![1.0; 2]).check(3).is_err());
        assert!(classes().weighing(vec![1.0, 0.0, 1.0]).check(3).is_err());
        assert!(classes().weighing(vec![1.0, 2.0, 1.0]).check(3).is_ok());
        assert!(RowClasses::new(vec![0, 1, 2], Some(vec![1.0, f64::NAN, 1.0])).check(3).is_err());
    }
}
