//! What LIBSVM can express of our models, and why it cannot express the others.

use kernelpath::{Arrangement, Calibration, LabelValue, Odds, Outputs, Predictor, SavedModel, Shape};

use crate::encoded::encoded;
use crate::error::{Error, Result};

/// Above all columns and degrees that LIBSVM, which counts with C's `int`, can have.
const MOST: u64 = i32::MAX as u64;

/// A model as LIBSVM sees it.
pub(crate) struct Form<'a> {
    pub predictor: &'a Predictor,
    pub meaning: Meaning,
}

/// What the functions stand for.
pub(crate) enum Meaning {
    /// Function m votes for class i if it is > 0, and else for class j, where m counts the pairs (0, 1), (0, 2), …
    Classes {
        /// The labels, in the order of the pairs.
        labels: Vec<i32>,
        /// A and B of each function.
        sigmoids: Option<Vec<(f64, f64)>>,
    },
    /// The one function is the prediction.
    Number,
}

fn refused<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Refused { format: "a LIBSVM model file", reason: reason.into() })
}

impl<'a> Form<'a> {
    /// The model as LIBSVM sees it, or why it has no words for it.
    pub fn of(model: &'a SavedModel) -> Result<Self> {
        let predictor = &model.predictor;
        check_kernel(predictor)?;
        if let Some(what) = encoded(model) {
            return refused(format!(
                "{what}, and such a file has no place for that; encode the data first, and fit on numbers"
            ));
        }
        if predictor.scaling.is_some() {
            return refused(
                "it scales the columns of rows itself, and such a file has no place for that; scale the data first, for \
                 example by svm-scale, and fit without scaling, or convert to ONNX",
            );
        }
        let numbers = predictor.coef().col_iter().flat_map(|column| column.iter().copied());
        if let Some(value) = numbers.chain(predictor.intercepts().iter().copied()).find(|value| !value.is_finite()) {
            return refused(format!("a coefficient or an intercept is {value}; fit it again to the end"));
        }
        let meaning = match &predictor.outputs {
            Outputs::Classes { labels, arrangement, odds } => {
                check_loss(model, "hinge", "its classifiers have the hinge loss: fit KernelSVC")?;
                classes(labels, arrangement, odds.as_ref())?
            }
            Outputs::Numbers { .. } => {
                check_loss(model, "epsilon_insensitive", "its regression has the ε-insensitive loss: fit KernelSVR")?;
                match predictor.n_values() {
                    1 => Meaning::Number,
                    targets => {
                        return refused(format!(
                            "it has {targets} targets, and LIBSVM has one; fit one model a target"
                        ));
                    }
                }
            }
            _ => return refused("its outputs are neither classes nor numbers; convert it to ONNX"),
        };
        Ok(Self { predictor, meaning })
    }
}

fn check_loss(model: &SavedModel, needed: &str, hint: &str) -> Result<()> {
    match model.machines.iter().find(|machine| machine.loss != needed) {
        Some(machine) => refused(format!("its loss is {:?}, and {hint}, or convert to ONNX", machine.loss)),
        None => Ok(()),
    }
}

fn check_kernel(predictor: &Predictor) -> Result<()> {
    let has_degree = |degree: u32| {
        if u64::from(degree) <= MOST {
            return Ok(());
        }
        refused(format!("its kernel has the degree {degree}, and LIBSVM's degree is at most {MOST}; use a smaller one"))
    };
    match predictor.kernel().shape {
        Shape::Linear | Shape::Rbf | Shape::Sigmoid { .. } | Shape::Precomputed => {}
        Shape::Poly { degree, .. } => has_degree(degree)?,
        Shape::Laplacian | Shape::Matern32 | Shape::Matern52 => {
            let name = predictor.kernel().shape.name();
            return refused(format!(
                "its kernel is {name:?}, and LIBSVM has \"linear\", \"poly\", \"rbf\", \"sigmoid\" and \
                 \"precomputed\"; fit with one of these, or convert to ONNX"
            ));
        }
    }
    if predictor.width() as u64 >= MOST {
        return refused(format!(
            "its rows have {} columns, and LIBSVM counts them up to {MOST}; convert to ONNX",
            predictor.width()
        ));
    }
    Ok(())
}

fn classes(labels: &[LabelValue], arrangement: &Arrangement, odds: Option<&Odds>) -> Result<Meaning> {
    let mut labels = labels.iter().map(whole).collect::<Result<Vec<i32>>>()?;
    match arrangement {
        // Positive values are those of the second class: it is LIBSVM's first.
        Arrangement::Two => labels.reverse(),
        Arrangement::Pairs { classes, .. } if *arrangement == Arrangement::new(<_>::default(), *classes) => {}
        Arrangement::Pairs { .. } => {
            return refused("its pairs of classes are not in the order (0, 1), (0, 2), …; fit it again");
        }
        Arrangement::Rest { .. } => {
            return refused(
                "each of its machines tells one class from all others, and LIBSVM's tell one class from another; fit \
                 with multi_class=\"ovo\", or convert to ONNX",
            );
        }
        _ => {
            return refused(
                "one machine tells all its classes apart (multinomial), and LIBSVM has a machine for each pair; fit \
                 KernelSVC with multi_class=\"ovo\", or convert to ONNX",
            );
        }
    }
    let sigmoid = |map: &Calibration| match map {
        // 1 / (1 + exp(A f + B)).
        Calibration::Sigmoid { slope, intercept } => Ok((0.0 - slope, 0.0 - intercept)),
        other => refused(format!(
            "its probabilities come of the calibration {:?}, and LIBSVM's of a sigmoid with a slope and an intercept; \
             fit with probability=\"sigmoid\", or convert to ONNX",
            other.method().name()
        )),
    };
    let sigmoids = match odds {
        None => None,
        Some(Odds::Calibrated(maps)) => Some(maps.iter().map(sigmoid).collect::<Result<Vec<_>>>()?),
        Some(_) => return refused("its values are logarithms of odds, and LIBSVM's are not; convert it to ONNX"),
    };
    Ok(Meaning::Classes { labels, sigmoids })
}

/// The label as an integer of C.
fn whole(label: &LabelValue) -> Result<i32> {
    let hint = "use integers as labels, or convert to ONNX";
    match label {
        LabelValue::Whole(value) => match i32::try_from(*value) {
            Ok(value) => Ok(value),
            Err(_) => refused(format!("its label {value} has more than the 32 bits of LIBSVM's labels; {hint}")),
        },
        other => refused(format!("its label {other} is no integer, as LIBSVM's are; {hint}")),
    }
}
