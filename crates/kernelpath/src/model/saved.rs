//! A fitted model by itself: what predicts, and what the fit found out. This is what a model file holds.

use serde_json::{Map, Value};

use crate::data::rows::RowsBuf;
use crate::error::{Error, Result};
use crate::model::attributes::Attributes;
use crate::model::encoding::{Encoding, RawCell};
use crate::model::predictor::Predictor;
use crate::model::training_rows::TrainingRows;

/// A fitted model by itself, apart from the program that made it.
#[derive(Debug, Clone)]
pub struct SavedModel {
    /// The estimator, by the name of its Python class, such as `KernelSVC`.
    pub estimator: String,
    /// The parameters of the estimator, by their names in Python. What JSON cannot hold is an object
    /// `{"repr": "…"}`.
    pub parameters: Map<String, Value>,
    /// The names of the features, if they had any.
    pub columns: Option<Vec<String>>,
    /// How the columns of the table that it was trained on become features, if it was trained on one.
    pub encoding: Option<Encoding>,
    /// NumPy's name of the type of the labels, such as `int64` or `<U6`, if they came from there.
    pub label_type: Option<String>,
    /// The machines: what each learned, and the proof of it.
    pub machines: Vec<Machine>,
    /// What predicts.
    pub predictor: Predictor,
    /// The rows that it was trained on; `None` if a file does not say, as those of format 1.
    pub training: Option<TrainingRows>,
    /// What the fit found out, by the names that the documentation has for it, with a trailing underscore. What the
    /// other fields hold is not repeated here.
    pub attributes: Attributes,
}

impl SavedModel {
    /// The features of rows of a table: what the predictor takes. The cells are in the order of the columns in training,
    /// without that of the labels.
    ///
    /// ```no_run
    /// use kernelpath::{RawCell, Hardware, SavedModel};
    ///
    /// let model = SavedModel::load("model.kpath")?;
    /// let rows = model.encoded(&[vec![RawCell::Number(1.5), RawCell::Text("red"), RawCell::Missing]])?;
    /// let predicted = model.predictor.predict(rows.view(), Hardware::default())?;
    /// # Ok::<(), kernelpath::Error>(())
    /// ```
    pub fn encoded(&self, rows: &[Vec<RawCell<'_>>]) -> Result<RowsBuf> {
        let plain = Encoding::default();
        let features = self.encoding.as_ref().unwrap_or(&plain).rows(rows)?;
        let (got, expected) = (features.view().ncols(), self.predictor.width());
        if got == expected { Ok(features) } else { Err(Error::Features { got, expected }) }
    }
}

/// One machine of a model at its chosen C.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The name of its loss.
    pub loss: String,
    /// The loss's τ, ε or δ; 0 if it has none.
    pub constant: f64,
    /// The chosen C.
    pub c: f64,
    /// The value P of the objective.
    pub primal: f64,
    /// D, a lower bound of the objective; NaN if the kernel is indefinite.
    pub dual: f64,
    /// Relative duality gap (P − D) / max(|P|, |D|).
    pub gap: f64,
    /// How far rounding may have taken the gap.
    pub noise: f64,
    /// How the solve ended, as in `Status::NAMES`.
    pub status: String,
}
