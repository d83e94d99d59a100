//! Which solver for which loss.

use crate::error::{Error, Result};
use crate::loss::Loss;

/// How the problems are solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// The fastest that fits the loss.
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

/// A solver settled on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    ActiveSet,
    Newton,
    Spectral,
    ClosedForm,
}

/// Up to so many rows an eigendecomposition is cheaper than Newton's passes.
const CLOSED_FORM_ROWS: usize = 1500;

impl Engine {
    const ALL: [Self; 4] = [Self::ActiveSet, Self::Newton, Self::Spectral, Self::ClosedForm];

    pub fn name(self) -> &'static str {
        match self {
            Self::ActiveSet => "active-set",
            Self::Newton => "newton",
            Self::Spectral => "spectral",
            Self::ClosedForm => "closed-form",
        }
    }

    /// Bytes it takes beside the Gram matrix of `n` rows of so many bytes an entry, the factors of paths apart.
    pub fn extra_bytes(self, n: usize, entry: usize) -> u64 {
        let (n, entry) = (n as u64, entry as u64);
        match self {
            Self::ActiveSet => 0,
            // A factor of the whole matrix, if it comes to that, and two of low rank, one of which is turned round.
            Self::Newton => n * n / 2 * entry + 4 * n * 200 * 8,
            // A copy in double precision, its eigenvectors, and the work space of the decomposition.
            Self::Spectral | Self::ClosedForm => 4 * n * n * 8,
        }
    }

    /// What it misses in a loss, if it does.
    fn lacks(self, loss: Loss) -> Option<&'static str> {
        match self {
            Self::ActiveSet => loss.curvature_bound().map(|_| "which is not piecewise linear"),
            Self::Newton => loss.curvature_bound().is_none().then_some("which is not smooth"),
            Self::Spectral => None,
            Self::ClosedForm => (loss != Loss::Squared).then_some("which is not the squared one"),
        }
    }
}

impl Solver {
    /// The names, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["auto", "active-set", "newton", "spectral", "closed-form"];

    /// The solver of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "active-set" => Ok(Self::ActiveSet),
            "newton" => Ok(Self::Newton),
            "spectral" => Ok(Self::Spectral),
            "closed-form" => Ok(Self::ClosedForm),
            _ => Err(Error::Unknown { what: "solver", name: name.into(), known: Self::NAMES }),
        }
    }

    /// The engine for a loss on `n` rows.
    pub(crate) fn engine(self, loss: Loss, n: usize) -> Result<Engine> {
        let engine = match self {
            Self::Auto if loss == Loss::Squared && n <= CLOSED_FORM_ROWS => Engine::ClosedForm,
            Self::Auto if loss.curvature_bound().is_some() => Engine::Newton,
            Self::Auto | Self::ActiveSet => Engine::ActiveSet,
            Self::Newton => Engine::Newton,
            Self::Spectral => Engine::Spectral,
            Self::ClosedForm => Engine::ClosedForm,
        };
        match engine.lacks(loss) {
            None => Ok(engine),
            Some(why) => {
                let fitting = Engine::ALL.into_iter().filter(|e| e.lacks(loss).is_none()).map(Engine::name).collect();
                Err(Error::Solver { solver: engine.name(), loss: loss.name(), why, fitting })
            }
        }
    }
}
