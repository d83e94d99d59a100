//! Exact kernel machines, trained and tuned in one call, every answer with a proof of its own
//! optimality.
//!
//! Every model is the same problem
//!
//! ```text
//! minimise over β ∈ Rⁿ, b ∈ R:   C · Σᵢ wᵢ · L(yᵢ, fᵢ)  +  ½ βᵀKβ        f = Kβ + b        (P)
//! ```
//!
//! A held-out row is a row of weight 0, so all folds and all C's share one kernel matrix; each of
//! the models carries its duality gap, computed by code that knows nothing of the solver.
//!
//! ```
//! use kernelpath::{Bandwidth, Kernel, Rows, Svc, logspace};
//!
//! // Two rings: 200 points, the class says which.
//! let mut x = Vec::new();
//! let mut y = Vec::new();
//! for i in 0..200 {
//!     let (angle, outer) = (0.37 * i as f64, i % 2 == 0);
//!     let radius = if outer { 2.0 } else { 1.0 } + 0.3 * (7.0 * i as f64).sin();
//!     x.extend([radius * angle.cos(), radius * angle.sin()]);
//!     y.push(if outer { 1.0 } else { -1.0 });
//! }
//! let rows = Rows::from_slice(&x, 2)?;
//! let svc = Svc::builder()
//!     .kernel(Kernel::rbf(Bandwidth::Sigest))
//!     .cs(logspace(1e3, 1e-3, 50))
//!     .cv(5)
//!     .fit(rows, &y)?;
//! assert_eq!(svc.predict(rows)?, y);
//! assert!(svc.path().worst_gap() <= 1e-6); // 50 × 6 models, all proved
//! # Ok::<(), kernelpath::Error>(())
//! ```
//!
//! The modules follow the five axes of the library, which never mix: the loss ([`loss`]), the kernel
//! ([`kernel`], [`gram`], and of low rank [`nystrom`]), the solver (private), path and folds ([`cv`]), and the machine it
//! runs on. [`memory`] is how a fit is planned and how running out of memory becomes an error, [`threads`] how many of them a call takes. [`calibrate`] turns the scores of held-out rows into probabilities. [`multinomial`] is the one problem whose
//! rows have several values: one a class.

pub mod calibrate;
pub mod certificate;
pub mod cv;
pub mod data;
mod definite;
mod design;
mod device;
pub mod error;
pub mod features;
pub mod gram;
mod grid;
mod held_out;
pub mod kernel;
pub mod landmarks;
mod ledger;
mod loo;
pub mod loss;
mod low_rank;
pub mod memory;
pub mod model;
pub mod multinomial;
pub mod nystrom;
pub mod observe;
pub mod pairs;
mod path;
mod problem;
mod simd;
mod skinny;
mod softmax;
mod solver;
pub mod sparse;
mod spread;
mod svc;
pub mod threads;
mod verify;
mod votes;
mod walk;

pub use calibrate::{Calibration, Method};
pub use cv::{Fold, Folds, PathFit, Precision, Request, Selection, Task, fit_paths, select};
pub use data::{Rows, RowsBuf};
pub use error::{Error, Result};
pub use features::{Features, LowRankSize, Storage};
pub use kernel::{Bandwidth, Kernel, KernelFn, Shape};
pub use landmarks::Landmarks;
pub use loss::{Loss, Smoothed};
pub use low_rank::fit_low_rank;
pub use model::Model;
pub use multinomial::{Multinomial, MultinomialFit, fit_multinomial, fit_multinomial_low_rank};
pub use nystrom::{Approximation, Nystrom};
pub use observe::Control;
pub use pairs::Pairs;
pub use path::logspace;
pub use problem::{Settings, Status};
pub use solver::Solver;
pub use sparse::Csr;
pub use spread::spread;
pub use svc::{DEFAULT_FOLDS, Svc, SvcBuilder};
pub use verify::{Returned, verify, verify_low_rank, verify_multinomial, verify_multinomial_low_rank};
pub use votes::votes;

#[doc = include_str!("../../../README.md")]
#[cfg(doctest)]
struct Readme;
