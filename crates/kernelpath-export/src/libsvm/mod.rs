//! Models of LIBSVM's `svm-train`, which `svm-predict` reads.
//!
//! ```text
//! svm_type c_svc              f_ij(x) = Σ coef k(v, x) − rho_ij      > 0: a vote for class i, else for class j
//! kernel_type rbf             pairs in the order (0, 1), (0, 2), …, (1, 2), …
//! gamma 0.5
//! nr_class 3                  P(i against j) = 1 / (1 + exp(A f + B))
//! total_sv 57
//! rho 0.1 0.2 0.3
//! label 4 7 9
//! probA -2 -3 -2
//! probB 0.1 0 0.1
//! nr_sv 20 18 19              the vectors of class 0, then those of class 1, …
//! SV
//! 1.5 0 3:0.25 7:-1           the coefficients of a vector against each other class; its entries other than 0
//! ```
//!
//! Chang and Lin, *LIBSVM: a library for support vector machines* (2011). An `epsilon_svr` has one f, and neither `label`
//! nor `nr_sv`.

mod expressible;
mod header;
mod lines;
mod number;
mod parse;
mod placement;
mod rebuild;
mod write;

use kernelpath::SavedModel;

use crate::error::Result;
use crate::libsvm::expressible::Form;

/// The number of the machine that tells class `i` from class `j`, where i < j.
fn machine_of(i: usize, j: usize, classes: usize) -> usize {
    i * (2 * classes - i - 1) / 2 + (j - i - 1)
}

/// Where the coefficient against class `other` stands in the line of a vector of class `own`.
fn place_of(other: usize, own: usize) -> usize {
    if other < own { other } else { other - 1 }
}

/// The text of LIBSVM's model file.
///
/// It has every number with 17 digits. What LIBSVM cannot express is [refused](crate::Error::Refused), with the reason.
///
/// ```
/// use kernelpath::Classifier;
/// use kernelpath_export::libsvm::{from_libsvm, to_libsvm};
///
/// let x: Vec<f64> = (0..60).map(|i| f64::from(i % 20)).collect();
/// let labels: Vec<i32> = x.iter().map(|x| if *x > 9.0 { 7 } else { -2 }).collect();
/// let model = Classifier::svm().cs([0.1, 1.0]).fit((&x[..], 1), &labels)?;
/// let text = to_libsvm(&model.saved())?;
/// assert!(text.starts_with("svm_type c_svc\nkernel_type rbf\n"));
/// assert_eq!(from_libsvm(text.as_bytes())?.predictor.vectors().nrows(), model.support().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_libsvm(model: &SavedModel) -> Result<String> {
    Ok(Form::of(model)?.written())
}

/// The model in a file that `svm-train` wrote.
///
/// `c_svc` and `nu_svc` become a `KernelSVC`, `epsilon_svr` and `nu_svr` a `KernelSVR`. Such a file has neither C nor a
/// certificate, which are NaN in the [machines](kernelpath::Machine). It does not tell how many columns rows have: they
/// have as many as the support vectors.
pub fn from_libsvm(text: &[u8]) -> Result<SavedModel> {
    rebuild::model(&parse::parsed(text)?)
}

#[cfg(test)]
mod tests;
