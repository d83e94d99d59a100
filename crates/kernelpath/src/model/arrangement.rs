//! How several classes become machines, and how the values of the machines become a class.

use crate::error::Result;
use crate::model::votes::votes;

/// How machines of two classes tell several classes apart. Two classes are one machine in either case.
///
/// ```
/// use kernelpath::{Classifier, MultiClass};
///
/// let x: Vec<f64> = (0..60).map(|i| f64::from(i % 3) + 0.01 * f64::from(i)).collect();
/// let labels: Vec<&str> = (0..60).map(|i| ["low", "middle", "high"][i % 3]).collect();
/// let model = Classifier::svm().multi_class(MultiClass::OneVsRest).cs([1.0, 10.0]).fit((&x[..], 1), &labels)?;
/// assert_eq!(model.predict((&[2.3][..], 1))?, ["high"]);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MultiClass {
    /// One machine for each pair of classes, trained on the rows of these two. The class with the most votes wins.
    #[default]
    OneVsOne,
    /// One machine for each class, trained on all rows. The class with the largest value wins.
    OneVsRest,
}

/// The machines of a classifier.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Arrangement {
    /// One machine, positive for class 1 and negative for class 0.
    Two,
    /// Machine m is positive for class `pairs[m].0` and negative for class `pairs[m].1`.
    Pairs {
        /// The two classes of each machine.
        pairs: Vec<(usize, usize)>,
        /// Number of classes.
        classes: usize,
    },
    /// Machine m is positive for class m and negative for all others.
    Rest {
        /// Number of classes.
        classes: usize,
    },
    /// One machine with a value for each class.
    Together {
        /// Number of classes.
        classes: usize,
    },
}

impl Arrangement {
    /// The machines of two or more classes.
    pub fn new(multi_class: MultiClass, classes: usize) -> Self {
        match multi_class {
            _ if classes == 2 => Self::Two,
            MultiClass::OneVsOne => {
                let pairs = (0..classes).flat_map(|first| (first + 1..classes).map(move |second| (first, second)));
                Self::Pairs { pairs: pairs.collect(), classes }
            }
            MultiClass::OneVsRest => Self::Rest { classes },
        }
    }

    /// One machine for all classes; two classes need one value only.
    pub fn together(classes: usize) -> Self {
        if classes == 2 { Self::Two } else { Self::Together { classes } }
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        match self {
            Self::Two => 2,
            Self::Pairs { classes, .. } | Self::Rest { classes } | Self::Together { classes } => *classes,
        }
    }

    /// Number of machines.
    pub fn machines(&self) -> usize {
        match self {
            Self::Two | Self::Together { .. } => 1,
            Self::Pairs { pairs, .. } => pairs.len(),
            Self::Rest { classes } => *classes,
        }
    }

    /// Values that the machines give a row, all together.
    pub fn outputs(&self) -> usize {
        if let Self::Together { classes } = self { *classes } else { self.machines() }
    }

    /// The targets of machine `m`, and the rows that it learns from (`None`: all), for rows of these classes.
    pub fn targets(&self, m: usize, class: &[usize]) -> (Vec<f64>, Option<Vec<usize>>) {
        let sign = |positive: bool| if positive { 1.0 } else { -1.0 };
        match self {
            Self::Two => (class.iter().map(|c| sign(*c == 1)).collect(), None),
            Self::Rest { .. } => (class.iter().map(|c| sign(*c == m)).collect(), None),
            Self::Together { .. } => (class.iter().map(|c| *c as f64).collect(), None),
            Self::Pairs { pairs, .. } => {
                let (first, second) = pairs[m];
                let rows: Vec<usize> = (0..class.len()).filter(|&i| class[i] == first || class[i] == second).collect();
                (rows.iter().map(|&i| sign(class[i] == first)).collect(), Some(rows))
            }
        }
    }

    /// What a user compares: for two classes the value of each row; otherwise one value for each class, row after row,
    /// the largest of which is the prediction. `values` are those of the machines, row after row.
    pub fn decision(&self, values: Vec<f64>) -> Result<Vec<f64>> {
        let Self::Pairs { pairs, classes } = self else { return Ok(values) };
        let column = |m: usize| values[m..].iter().step_by(pairs.len()).copied().collect();
        let columns: Vec<Vec<f64>> = (0..pairs.len()).map(column).collect();
        votes(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>(), pairs, *classes)
    }

    /// The class of each row, from its decision values; of equal values, the first class.
    pub fn predicted(&self, decision: &[f64]) -> Vec<usize> {
        match self {
            Self::Two => decision.iter().map(|f| usize::from(*f > 0.0)).collect(),
            _ => decision.chunks_exact(self.classes()).map(first_largest).collect(),
        }
    }
}

/// The place of the largest value; of equal values, the first.
fn first_largest(values: &[f64]) -> usize {
    values.iter().enumerate().fold(0, |best, (c, value)| if *value > values[best] { c } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_learns_from_its_own_rows() {
        let pairs = Arrangement::new(MultiClass::OneVsOne, 3);
        assert_eq!((pairs.machines(), pairs.outputs()), (3, 3));
        assert_eq!(pairs.targets(1, &[0, 1, 2, 0]), (vec![1.0, -1.0, 1.0], Some(vec![0, 2, 3])));
        let rest = Arrangement::new(MultiClass::OneVsRest, 3);
        assert_eq!(rest.targets(1, &[0, 1, 2, 0]), (vec![-1.0, 1.0, -1.0, -1.0], None));
        assert_eq!(Arrangement::new(MultiClass::OneVsRest, 2), Arrangement::Two);
        assert_eq!(Arrangement::together(2), Arrangement::Two);
        let together = Arrangement::together(4);
        assert_eq!((together.machines(), together.outputs()), (1, 4));
    }

    #[test]
    fn the_first_of_equal_values_is_the_prediction() {
        assert_eq!(Arrangement::Two.predicted(&[0.0, 1e-300, -1.0]), [0, 1, 0]);
        assert_eq!(Arrangement::together(3).predicted(&[1.0, 2.0, 2.0, 0.0, 0.0, 0.0]), [1, 0]);
    }
}
