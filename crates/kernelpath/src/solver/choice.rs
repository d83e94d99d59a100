//! Which solver for which loss.

use std::sync::Arc;

use crate::certify::exact::Shared;
use crate::certify::ledger::Problem;
use crate::certify::reduced::OnFeatures;
use crate::device::basis::{Basis, Eigenvectors, OfFeatures};
use crate::device::basis_in_single::{self, InSingle};
use crate::device::{Decomposition, Decompositions, Device};
use crate::error::{Error, Result, named};
use crate::loss::scalar::Loss;
use crate::numeric::cholesky::Working;
use crate::numeric::design::Accuracy;
use crate::observe::Control;
use crate::solver::box_qp::{self, one_path};
use crate::solver::closed_form::{self, ClosedForm};
use crate::solver::engine::{Description, Engine, Size};
use crate::solver::low_rank::in_rank::FeatureEngine;
use crate::solver::low_rank::primal::Primal;
use crate::solver::newton::{self, descent};
use crate::solver::spectral::basis_products::Products;
use crate::solver::spectral::block::Spectral;
use crate::solver::spectral::on_features::SpectralOnFeatures;
use crate::solver::spectral::on_matrix::OnMatrix;
use crate::solver::spectral::{self, neighbours};

/// How the problems are solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// The fastest solver that fits the loss.
    #[default]
    Auto,
    /// Active-set rounds and SMO on the dual box QP: piecewise-linear losses.
    ActiveSet,
    /// Newton steps by conjugate gradients, all folds at once: smooth losses.
    Newton,
    /// Accelerated proximal steps on one eigendecomposition: every loss, small and middling data.
    Spectral,
    /// One eigendecomposition, no iteration: the squared loss.
    ClosedForm,
}

/// The method that was settled on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    ActiveSet,
    Newton,
    Spectral,
    ClosedForm,
}

/// Most rows for which an eigendecomposition is cheaper than Newton's passes.
const CLOSED_FORM_ROWS: usize = 1500;

/// What wants to run engines of whatever type.
pub(crate) trait Visit {
    type Out;

    /// `engines` makes the engines of some problems: one for all of them, or one for each.
    fn with<E: Engine>(self, engines: impl Fn(&[Problem]) -> Result<Vec<E>> + Sync) -> Result<Self::Out>;
}

/// One loss on a kernel matrix that lies on a device.
pub(crate) struct OnGram<'a, T> {
    pub shared: &'a Shared<'a, T>,
    pub device: &'a dyn Device,
    pub decompositions: &'a Decompositions,
    /// Whether the spectral engine's is that in single precision.
    pub in_single: bool,
    pub control: &'a Control,
}

impl<T: Working> OnGram<'_, T> {
    /// K = UΛUᵀ, made when it is first asked for.
    fn decomposed(&self, in_single: bool) -> Result<&Decomposition> {
        let place = if in_single { &self.decompositions.single } else { &self.decompositions.double };
        if let Some(made) = place.get() {
            return Ok(made);
        }
        let make = if in_single { basis_in_single::decomposed } else { Decomposition::new };
        let made = make(self.device, self.shared.gram, self.control)?;
        Ok(place.get_or_init(|| made))
    }
}

/// The weights of each problem.
pub(crate) fn weights(problems: &[Problem]) -> Vec<Arc<[f64]>> {
    problems.iter().map(|problem| problem.weight.clone()).collect()
}

impl Method {
    const ALL: [Self; 4] = [Self::ActiveSet, Self::Newton, Self::Spectral, Self::ClosedForm];

    fn description(self) -> &'static Description {
        match self {
            Self::ActiveSet => &box_qp::ACTIVE_SET,
            Self::Newton => &newton::NEWTON,
            Self::Spectral => &spectral::SPECTRAL,
            Self::ClosedForm => &closed_form::CLOSED_FORM,
        }
    }

    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Bytes that the method takes beside the Gram matrix, not counting the factors of paths.
    pub fn extra_bytes(self, size: &Size) -> u64 {
        (self.description().bytes)(size)
    }

    /// What the method misses in a loss, if anything.
    fn lacks(self, loss: Loss) -> Option<&'static str> {
        (self.description().lacks)(loss)
    }

    /// Runs the method on a kernel matrix.
    pub fn on_matrix<T: Working, V: Visit>(self, on: &OnGram<T>, visit: V) -> Result<V::Out> {
        let &OnGram { shared, device, control, .. } = on;
        match self {
            Self::ActiveSet => visit.with(|problems| one_path::engines(shared, &weights(problems), control)),
            Self::Newton => visit.with(|problems| Ok(vec![descent::Newton::new(shared, weights(problems), control)?])),
            Self::Spectral => {
                let decomposition = on.decomposed(on.in_single)?;
                let basis: Box<dyn Basis> = if on.in_single {
                    Box::new(InSingle { vectors: &decomposition.basis, gram: shared.gram })
                } else {
                    Box::new(Eigenvectors::new(device, decomposition)?)
                };
                visit.with(|problems| {
                    let spectral = Spectral {
                        device,
                        basis: &*basis,
                        spectrum: &decomposition.spectrum,
                        loss: shared.loss,
                        y: &shared.y,
                        settings: shared.settings,
                        products: Products::first(device, T::IS_ROUGH),
                        control,
                    };
                    let neighbours = neighbours(problems.len(), device.columns());
                    Ok(vec![OnMatrix { shared, weights: weights(problems), neighbours, spectral }])
                })
            }
            Self::ClosedForm => {
                let made = on.decomposed(false)?;
                visit.with(|problems| Ok(vec![ClosedForm::new(&shared.y, device, made, &weights(problems), control)]))
            }
        }
    }

    /// Runs the method on features. At most `copied` rows may be copied at once.
    pub fn on_features<T: Working, V: Visit>(
        self,
        on: &OnFeatures<T>,
        device: &dyn Device,
        (problems, copied): (&[Problem], usize),
        control: &Control,
        visit: V,
    ) -> Result<V::Out> {
        let &OnFeatures { design, loss, y, settings, .. } = on;
        let weights = weights(problems);
        let primal = || Primal { design, copied, loss, y, settings, accuracy: Accuracy::Working, control };
        if self != Self::Spectral {
            return visit.with(|_| Ok(vec![FeatureEngine::new(primal(), &weights)]));
        }
        let (basis, spectrum) = OfFeatures::new(device, design, control)?;
        visit.with(|_| {
            let (basis, spectrum, products) = (&basis, &spectrum, Products::first(device, T::IS_ROUGH));
            let spectral = Spectral { device, basis, spectrum, loss, y, settings, products, control };
            let neighbours = neighbours(weights.len(), device.columns());
            Ok(vec![SpectralOnFeatures { primal: primal(), weights: &weights, neighbours, spectral }])
        })
    }
}

impl Solver {
    /// The names, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["auto", "active-set", "newton", "spectral", "closed-form"];

    /// The solver of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        let all = [Self::Auto, Self::ActiveSet, Self::Newton, Self::Spectral, Self::ClosedForm];
        named("solver", name, Self::NAMES, &all)
    }

    /// The method for a loss on `n` rows of a kernel matrix. `decomposed` are the most rows that the device decomposes for
    /// a piecewise-linear loss, unless asked to.
    pub(crate) fn method(self, loss: Loss, n: usize, decomposed: usize) -> Result<Method> {
        let method = match self {
            Self::Auto if loss == Loss::Squared && n <= CLOSED_FORM_ROWS => Method::ClosedForm,
            Self::Auto if loss.curvature_bound().is_some() => Method::Newton,
            Self::Auto if n <= decomposed => Method::Spectral,
            Self::Auto | Self::ActiveSet => Method::ActiveSet,
            Self::Newton => Method::Newton,
            Self::Spectral => Method::Spectral,
            Self::ClosedForm => Method::ClosedForm,
        };
        match method.lacks(loss) {
            None => Ok(method),
            Some(why) => {
                let fitting = Method::ALL.into_iter().filter(|m| m.lacks(loss).is_none()).map(Method::name).collect();
                Err(Error::Solver { solver: method.name(), loss: loss.name(), why, fitting })
            }
        }
    }

    /// The method for any loss on features.
    pub(crate) fn method_on_features(self) -> Result<Method> {
        match self {
            // In rank dimensions, Newton's method serves every loss.
            Self::Auto | Self::Newton => Ok(Method::Newton),
            Self::Spectral => Ok(Method::Spectral),
            _ => Err(Error::LowRank { what: "this solver", instead: "solver=\"auto\", \"newton\" or \"spectral\"" }),
        }
    }

    /// The method for the multinomial loss.
    pub(crate) fn method_of_classes(self) -> Result<Method> {
        match self {
            Self::Auto | Self::Newton => Ok(Method::Newton),
            other => {
                let (solver, why) = (Self::NAMES[other as usize], "which couples the classes");
                Err(Error::Solver { solver, loss: "multinomial", why, fitting: vec!["newton"] })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::Cpu;

    #[test]
    fn the_plan_grows_with_all_that_an_method_keeps() {
        let size = |rows: usize, problems, held_out| {
            let decomposition = Cpu.host_decomposition_bytes(rows);
            Size { rows, entry: 4, problems, held_out, columns: 0, decomposition }
        };
        let n = 3000_u64;
        for method in Method::ALL {
            let bytes = method.extra_bytes(&size(3000, 6, 600));
            assert!(method.extra_bytes(&size(3000, 60, 600)) >= bytes + 54 * 8 * 8 * n, "{}", method.name());
            assert!(method.extra_bytes(&size(6000, 6, 600)) > bytes);
        }
        // The matrix in double precision, its eigenvectors, and at least one matrix of work space.
        for method in [Method::Spectral, Method::ClosedForm] {
            assert!(method.extra_bytes(&size(3000, 1, 0)) >= 3 * 8 * n * n);
        }
        let (few, many) = (size(3000, 3, 100), size(3000, 3, 1500));
        assert!(Method::ClosedForm.extra_bytes(&many) > Method::ClosedForm.extra_bytes(&few) + 8 * 2 * 1400 * n);
    }
}
