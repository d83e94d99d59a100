//! Which solver for which loss.

use crate::device::eigen_bytes;
use crate::error::{Error, Result};
use crate::loss::Loss;

use super::spectral::NEIGHBOURS;

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

/// What an engine's memory goes with.
pub(crate) struct Size {
    /// Rows of the Gram matrix.
    pub rows: usize,
    /// Bytes of an entry.
    pub entry: usize,
    /// Problems in work at once: the folds and all rows.
    pub problems: usize,
    /// Rows that the largest fold holds out.
    pub held_out: usize,
}

/// Numbers a row and problem that the active set takes before the first C: weights, the start and what it is made from.
const STARTS: u64 = 8;

/// Numbers a row and problem that Newton's method takes: the solutions at the last three C's and at hand, what conjugate
/// gradients keep of a step, and the parts of products with K.
const COLUMN: u64 = 32;

/// Numbers a row and problem that the spectral engine takes at each C of a block: coordinates, f and slopes, on the
/// device and off it, and the parts of products.
const STATE_OF_A_STEP: u64 = 20;

/// Numbers a row and problem that the closed form takes: targets, coordinates, coefficients, and the parts of products.
const TARGETS: u64 = 12;

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

    /// Bytes it takes beside the Gram matrix, the factors of paths apart.
    pub fn extra_bytes(self, size: &Size) -> u64 {
        let &Size { rows, entry, problems, held_out } = size;
        let (n, problems, held_out) = (rows as u64, problems as u64, held_out as u64);
        // A copy in double precision, its eigenvectors, and the work space of the decomposition.
        let decomposition = 8 * n * n + eigen_bytes(rows);
        match self {
            Self::ActiveSet => 8 * n * problems * STARTS,
            // A factor of the whole matrix, if it comes to that, and two of low rank, one of which is turned round.
            Self::Newton => n * n / 2 * entry as u64 + 4 * n * 200 * 8 + 8 * n * problems * COLUMN,
            Self::Spectral => decomposition + 8 * n * problems * NEIGHBOURS as u64 * STATE_OF_A_STEP,
            // The rows of a fold twice, and its matrix with its factor.
            Self::ClosedForm => decomposition + 8 * (2 * n + 4 * held_out) * held_out + 8 * n * problems * TARGETS,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_grows_with_all_that_an_engine_keeps() {
        let size = |rows, problems, held_out| Size { rows, entry: 4, problems, held_out };
        let n = 3000_u64;
        for engine in Engine::ALL {
            let bytes = engine.extra_bytes(&size(3000, 6, 600));
            assert!(engine.extra_bytes(&size(3000, 60, 600)) >= bytes + 54 * 8 * 8 * n, "{}", engine.name());
            assert!(engine.extra_bytes(&size(6000, 6, 600)) > bytes);
        }
        // The matrix in double precision, its eigenvectors, and at least one matrix of work space.
        for engine in [Engine::Spectral, Engine::ClosedForm] {
            assert!(engine.extra_bytes(&size(3000, 1, 0)) >= 3 * 8 * n * n);
        }
        let (few, many) = (size(3000, 3, 100), size(3000, 3, 1500));
        assert!(Engine::ClosedForm.extra_bytes(&many) > Engine::ClosedForm.extra_bytes(&few) + 8 * 2 * 1400 * n);
    }
}
