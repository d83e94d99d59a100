//! One problem in work: a model, its slopes, and how far its descent has come.

use crate::certify::record::{Outcome, Status};
use crate::numeric::cholesky::Working;
use crate::solver::low_rank::primal::Primal;

/// A problem in work. Vectors over rows have an entry for each row of the design of its [`Primal`].
#[derive(Clone, Default)]
pub(crate) struct Column<'a> {
    pub plan: usize,
    pub weight: &'a [f64],
    pub w: Vec<f64>,
    pub b: f64,
    /// Zw.
    pub g: Vec<f64>,
    /// ā; empty for a smooth loss.
    pub centre: Vec<f64>,
    pub sigma: f64,
    /// σ of the first envelopes.
    pub widest: f64,
    /// Newton steps since the last change of the envelopes.
    pub since: usize,
    /// a and S at g + b.
    pub a: Vec<f64>,
    pub s: Vec<f64>,
    /// Zᵀa, and e = w − Zᵀa.
    pub image: Vec<f64>,
    pub error: Vec<f64>,
    pub primal: f64,
    /// The part of the duality gap that is there because a is not a slope of the loss itself.
    pub mismatch: f64,
    /// The tolerance times this number is the wanted gap.
    pub scale: f64,
    pub frozen: Frozen,
    /// Progress since the envelopes were last widened, and since the descent began.
    pub progress: Progress,
    pub progress_of_all: Progress,
    /// Whether a Newton step is due.
    pub due: bool,
    /// Set from a new centre on until the next step: the rows inside a segment, and by how much the new envelope would
    /// move their a there.
    pub shift: Vec<(usize, f64)>,
    pub outcome: Outcome,
}

/// Sums over the rows outside the working set. Their a does not change.
#[derive(Clone, Default)]
pub(crate) struct Frozen {
    /// Zᵀa.
    pub image: Vec<f64>,
    /// Σa.
    pub pull: f64,
    /// Σ|a|.
    pub size: f64,
}

/// The last gap that was at most half of the one before it, and the steps since.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    pub gap: f64,
    pub steps: usize,
}

impl Default for Progress {
    fn default() -> Self {
        Self { gap: f64::INFINITY, steps: 0 }
    }
}

impl Progress {
    /// Counts a step that ended with this gap.
    pub fn count(&mut self, gap: f64) {
        *self =
            if gap <= 0.5 * self.gap { Self { gap, steps: 0 } } else { Self { gap: self.gap, steps: self.steps + 1 } };
    }
}

impl<T: Working> Primal<'_, T> {
    /// A problem at (w, b), with g = Zw, that [`solve`](Self::solve) can start from.
    pub(crate) fn column<'b>(
        &self,
        (plan, weight): (usize, &'b [f64]),
        w: Vec<f64>,
        b: f64,
        g: Vec<f64>,
        centre: Vec<f64>,
    ) -> Column<'b> {
        let (n, rank) = (self.y.len(), w.len());
        Column {
            plan,
            weight,
            w,
            b,
            g,
            centre,
            a: vec![0.0; n],
            s: vec![0.0; n],
            image: vec![0.0; rank],
            error: vec![0.0; rank],
            frozen: Frozen { image: vec![0.0; rank], ..Frozen::default() },
            outcome: Outcome { status: Status::MaxIter, steps: 0 },
            ..Column::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_count_from_the_last_halving() {
        let mut progress = Progress::default();
        let mut seen = Vec::new();
        for gap in [8.0, 5.0, 4.0, 3.0, 2.1, f64::NAN, 1.9] {
            progress.count(gap);
            seen.push((progress.gap, progress.steps));
        }
        assert_eq!(seen, [(8.0, 0), (8.0, 1), (4.0, 0), (4.0, 1), (4.0, 2), (4.0, 3), (1.9, 0)]);
    }
}
