//! What a model predicts with, and nothing else.

use faer::{Mat, MatRef};

use crate::data::rows::{IntoRows, Rows, RowsBuf};
use crate::device::place::Hardware;
use crate::error::{Error, Result};
use crate::kernel::plane::{Centre, Plane};
use crate::kernel::shape::{KernelFn, Shape};
use crate::model::arrangement::Arrangement;
use crate::model::expansion::Expansion;
use crate::model::label_value::LabelValue;
use crate::model::probabilities::Odds;
use crate::model::scaling::Scaling;

/// What the values of the machines stand for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outputs {
    /// Classes.
    Classes {
        /// The classes, in the order of the machines.
        labels: Vec<LabelValue>,
        /// How the machines tell them apart.
        arrangement: Arrangement,
        /// How their values become probabilities; `None`: they do not.
        odds: Option<Odds>,
    },
    /// Numbers: one target or level, or several.
    Numbers {
        /// Whether a row has one number without an axis for several (`fit` was given one target or one level).
        is_one: bool,
        /// If the numbers of a row are sorted: their places from the smallest to the largest.
        rising: Option<Vec<usize>>,
    },
}

/// What a model predicts with: f_m(x) = Σᵢ coef[i, m] k(x, vᵢ) + b_m, and what these values stand for.
#[derive(Debug, Clone)]
pub struct Predictor {
    pub(crate) expansion: Expansion,
    /// Applied to the rows before the kernel sees them.
    pub scaling: Option<Scaling>,
    /// What the values stand for.
    pub outputs: Outputs,
}

/// The predictions for some rows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Predicted {
    /// A label for each row.
    Labels(Vec<LabelValue>),
    /// Numbers, row after row.
    Numbers {
        /// Numbers of each row.
        columns: usize,
        /// The numbers.
        values: Vec<f64>,
    },
}

impl Predictor {
    /// Over `vectors`, which are rows `support` of the training data, or landmarks, some of which may be rows. `coef`
    /// has one row for each vector and one column for each function. For a precomputed kernel there are no vectors:
    /// `support` are their columns in a matrix of `width` columns. `width` is the number of columns of rows.
    pub fn new(
        kernel: KernelFn,
        (vectors, support): (RowsBuf, Vec<usize>),
        width: usize,
        coef: Mat<f64>,
        intercepts: Vec<f64>,
        outputs: Outputs,
    ) -> Result<Self> {
        let is_precomputed = kernel.shape == Shape::Precomputed;
        let rows = vectors.view();
        let count = if is_precomputed { support.len() } else { rows.nrows() };
        let lengths = [
            ("the coefficients", coef.nrows(), count, "one a support vector"),
            ("the intercepts", intercepts.len(), coef.ncols(), "one a function"),
            ("a support vector", if is_precomputed { width } else { rows.ncols() }, width, "the columns of X"),
        ];
        if let Some(&(what, got, expected, why)) = lengths.iter().find(|(_, got, expected, _)| got != expected) {
            return Err(Error::Length { what, got, expected, why });
        }
        if let Some(column) = support.iter().find(|column| is_precomputed && **column >= width) {
            return Err(Error::Length {
                what: "a row of the kernel matrix",
                got: width,
                expected: column + 1,
                why: "it has the columns of the support vectors",
            });
        }
        let expected = match &outputs {
            Outputs::Classes { labels, arrangement, .. } if labels.len() == arrangement.classes() => {
                arrangement.outputs()
            }
            Outputs::Classes { labels, arrangement, .. } => {
                let (got, expected) = (labels.len(), arrangement.classes());
                return Err(Error::Length { what: "the labels", got, expected, why: "one a class" });
            }
            Outputs::Numbers { .. } => coef.ncols(),
        };
        if coef.ncols() != expected {
            return Err(Error::Length {
                what: "a row of values",
                got: coef.ncols(),
                expected,
                why: "the machines of the classes",
            });
        }
        let expansion = Expansion::new(kernel, (vectors, support), width, coef, intercepts);
        Ok(Self { expansion, scaling: None, outputs })
    }

    /// With the point that the rows of a linear kernel were centred at, and the values of the functions there: the
    /// intercepts follow from them.
    pub fn centred(self, centre: Option<Centre>) -> Result<Self> {
        if let Some(centre) = &centre {
            let lengths = [
                ("the centre", centre.point.len(), self.width(), "one number a column"),
                ("the values at the centre", centre.values.len(), self.n_values(), "one a function"),
            ];
            if let Some(&(what, got, expected, why)) = lengths.iter().find(|(_, got, expected, _)| got != expected) {
                return Err(Error::Length { what, got, expected, why });
            }
        }
        Ok(Self { expansion: self.expansion.centred(centre), ..self })
    }

    /// Where the rows of a linear kernel were centred, if they were.
    pub fn centre(&self) -> Option<&Centre> {
        self.expansion.centre()
    }

    /// The functions as planes, if the kernel is linear and the planes are small beside the vectors.
    pub fn plane(&self) -> Option<&Plane> {
        self.expansion.plane()
    }

    /// The same for rows of `columns` columns, of which training saw the first ones: the others were 0 in all rows, as
    /// columns are that a LIBSVM file does not name. Products do not see them; distances do.
    ///
    /// A model that scales its rows, or has a precomputed kernel, is for its own columns only.
    pub fn widened(&self, columns: usize) -> Result<Self> {
        let width = self.width();
        let is_bound = self.scaling.is_some() || self.kernel().shape == Shape::Precomputed;
        if columns < width || (columns > width && is_bound) {
            return Err(Error::Features { got: columns, expected: width });
        }
        let expansion = if columns == width { self.expansion.clone() } else { self.expansion.widened(columns) };
        Ok(Self { expansion, scaling: self.scaling.clone(), outputs: self.outputs.clone() })
    }

    /// The kernel with its bandwidth.
    pub fn kernel(&self) -> KernelFn {
        self.expansion.kernel()
    }

    /// The support vectors, or with low rank the landmarks; none if the kernel is precomputed.
    pub fn vectors(&self) -> Rows<'_> {
        self.expansion.vectors()
    }

    /// The training rows that the vectors are. Landmarks need not be rows.
    pub fn support(&self) -> &[usize] {
        self.expansion.columns()
    }

    /// The coefficients: one row for each vector, one column for each function.
    pub fn coef(&self) -> MatRef<'_, f64> {
        self.expansion.coef()
    }

    /// The intercept of each function.
    pub fn intercepts(&self) -> &[f64] {
        self.expansion.intercepts()
    }

    /// The number of columns that rows must have.
    pub fn width(&self) -> usize {
        self.expansion.width()
    }

    /// The values of the machines, row after row. For a precomputed kernel, `x` holds the kernel between the new rows
    /// and all training rows.
    pub fn values<'a>(&self, x: impl IntoRows<'a>, hardware: Hardware) -> Result<Vec<f64>> {
        let x = x.into_rows()?;
        match &self.scaling {
            None => self.expansion.values(&x, hardware),
            Some(scaling) => self.expansion.values(&scaling.apply(&x)?.view(), hardware),
        }
    }

    /// Values of the machines for each row.
    pub fn n_values(&self) -> usize {
        self.expansion.intercepts().len()
    }

    /// What a user compares: for two classes the value of each row; for several classes one value for each class, the
    /// largest of which is the prediction; for numbers the values themselves. Row after row.
    pub fn decision_function<'a>(&self, x: impl IntoRows<'a>, hardware: Hardware) -> Result<Vec<f64>> {
        let values = self.values(x, hardware)?;
        match &self.outputs {
            Outputs::Classes { arrangement, .. } => arrangement.decision(values),
            Outputs::Numbers { .. } => Ok(values),
        }
    }

    /// The label of each row, or its numbers.
    pub fn predict<'a>(&self, x: impl IntoRows<'a>, hardware: Hardware) -> Result<Predicted> {
        let mut values = self.decision_function(x, hardware)?;
        Ok(match &self.outputs {
            Outputs::Classes { labels, arrangement, .. } => {
                Predicted::Labels(arrangement.predicted(&values).into_iter().map(|c| labels[c].clone()).collect())
            }
            Outputs::Numbers { rising, .. } => {
                let columns = self.n_values();
                if let Some(rising) = rising {
                    values.chunks_exact_mut(columns).for_each(|row| sort_by(row, rising));
                }
                Predicted::Numbers { columns, values }
            }
        })
    }

    /// One probability for each class, row after row.
    pub fn predict_proba<'a>(&self, x: impl IntoRows<'a>, hardware: Hardware) -> Result<Vec<f64>> {
        let Outputs::Classes { arrangement, odds: Some(odds), .. } = &self.outputs else {
            let problem = "the model has no probabilities; fit with `.probability(Method::Sigmoid)`".into();
            return Err(Error::Setting { call: ".predict_proba(x)".into(), problem });
        };
        Ok(odds.probabilities(arrangement, &self.values(x, hardware)?))
    }
}

/// Puts the values into the places of `rising`, the smallest first.
pub(crate) fn sort_by(row: &mut [f64], rising: &[usize]) {
    let mut values = row.to_vec();
    values.sort_by(f64::total_cmp);
    rising.iter().zip(values).for_each(|(&k, value)| row[k] = value);
}
