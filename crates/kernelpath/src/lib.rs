//! Exact kernel machines, trained and tuned in one call. Every answer comes with a proof of its own optimality.
//!
//! Every model is the same problem
//!
//! ```text
//! minimise over β ∈ Rⁿ, b ∈ R:   C · Σᵢ wᵢ · L(yᵢ, fᵢ)  +  ½ βᵀKβ        f = Kβ + b        (P)
//! ```
//!
//! A held-out row is a row of weight 0, so all folds and all C's share one kernel matrix. Each of the models carries
//! its duality gap, computed by code that knows nothing of the solver.
//!
//! ```
//! use kernelpath::{Bandwidth, Classifier, Kernel, Rows, logspace};
//!
//! // Two rings: 200 points, the class says which.
//! let mut x = Vec::new();
//! let mut y = Vec::new();
//! for i in 0..200 {
//!     let (angle, outer) = (0.37 * i as f64, i % 2 == 0);
//!     let radius = if outer { 2.0 } else { 1.0 } + 0.3 * (7.0 * i as f64).sin();
//!     x.extend([radius * angle.cos(), radius * angle.sin()]);
//!     y.push(if outer { "outer" } else { "inner" });
//! }
//! let rows = Rows::from_slice(&x, 2)?;
//! let svm = Classifier::svm()
//!     .kernel(Kernel::rbf(Bandwidth::Sigest))
//!     .cs(logspace(1e3, 1e-3, 50)?)
//!     .cv(5)
//!     .fit(rows, &y)?;
//! assert_eq!(svm.predict(rows)?, y);
//! assert!(svm.worst_gap() <= 1e-6); // 50 × 6 models, all proved
//! # Ok::<(), kernelpath::Error>(())
//! ```
//!
//! [`Classifier`], [`Regressor`] and [`Quantiles`] train and tune in one call: several classes, several targets, a grid of
//! γ, low rank, weights and probabilities. [`fit`] is what they are made of: it returns every model of a path, and
//! chooses none.
//!
//! The folders are layers: each uses only those above it in the list below.

mod numeric;

mod data;

mod loss;

mod kernel;

mod device;

mod nystrom;

mod certify;

mod solver;

mod path;

mod model;

mod fit;

mod estimator;

mod error;
mod observe;
mod shown;

pub use certify::certificate::{Certificate, Claim, certify};
pub use certify::record::{Record, Settings, Status};
pub use data::rows::{IntoRows, Rows, RowsBuf};
pub use data::sparse::{Csr, CsrBuf, Indices, Values};
pub use data::units::Units;
pub use device::gpu::machine::Traffic;
pub use device::place::{DeviceChoice, DeviceInfo, Hardware, device_traffic, devices};
pub use error::{Cell, Error, Limit, Result};
pub use estimator::classifier::Classifier;
pub use estimator::fitted_classifier::FittedClassifier;
pub use estimator::label::Label;
pub use estimator::options::{DEFAULT_CS, DEFAULT_FOLDS, MOST_CS, Tune, default_cs};
pub use estimator::proving::{Recomputed, Verification};
pub use estimator::quantiles::{FittedQuantiles, Quantiles};
pub use estimator::regressor::{FittedRegressor, Regressor};
pub use estimator::svc::Svc;
pub use estimator::targets::{Extent, Targets};
pub use fit::folds::{Fold, Folds};
pub use fit::precision::Precision;
pub use fit::request::{KernelChoice, Request, Task};
pub use fit::result::PathFit;
pub use fit::row_classes::RowClasses;
pub use fit::run::fit;
pub use fit::scoring::Scoring;
pub use fit::search::{Search, Trained, Watch};
pub use fit::select::{Place, Selection, ranks, select};
pub use fit::spread::spread;
pub use fit::surface::{Scores, Surface};
pub use fit::tune::{ChooseBy, Tuned};
pub use fit::tune_classes::Classes;
pub use fit::verify::{Returned, verify};
pub use kernel::accuracy::KernelError;
pub use kernel::bandwidth::{Bandwidth, Kernel};
pub use kernel::evaluate::{kernel_flops, kernel_matrix};
pub use kernel::gammas::Gammas;
pub use kernel::gram::Gram;
pub use kernel::pairs::Pairs;
pub use kernel::plane::{Centre, Plane};
pub use kernel::shape::{KernelFn, Shape};
pub use loss::objective::Objective;
pub use loss::scalar::{Kinks, Loss};
pub use loss::smoothed::Smoothed;
pub use model::arrangement::{Arrangement, MultiClass};
pub use model::attributes::{Array, Attribute, Attributes, Entries, float_of_json, json_of_float};
pub use model::calibrate::{Calibration, Method};
pub use model::decision::{Model, decision};
pub use model::encoding::{Encoding, Missing, RawCell, TableColumn};
pub use model::file::disk::{destination, write_whole};
pub use model::file::table::{encoding_of_json, json_of_encoding};
pub use model::label_value::LabelValue;
pub use model::predictor::{Outputs, Predicted, Predictor};
pub use model::probabilities::Odds;
pub use model::saved::{Machine, SavedModel};
pub use model::scaling::Scaling;
pub use model::training_rows::{TrainingRows, Truth};
pub use model::votes::votes;
pub use numeric::entry::Entry;
pub use numeric::memory::{self, available_memory};
pub use numeric::steps::logspace;
pub use numeric::threads;
pub use nystrom::approximation::{Approximation, Nystrom};
pub use nystrom::build::{LowRank, NystromBuilder};
pub use nystrom::features::{Features, LowRankSize, Storage, transform};
pub use nystrom::landmarks::Landmarks;
pub use observe::{Control, Phase};
pub use shown::{is_hidden, shown};
pub use solver::choice::Solver;

#[doc = include_str!("../../../README.md")]
#[cfg(doctest)]
struct Readme;
