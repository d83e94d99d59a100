//! The outer loop: centres and widths of the envelopes, until the duality gap is small.
//!
//! A piecewise-linear loss has no curvature, so Newton's method minimises its [envelopes](crate::loss::envelope)
//! around a centre ā. Their minimum a is the next centre (the proximal point method, Rockafellar 1976), and the limit
//! solves the problem itself. With e = w − Zᵀa, the duality gap is
//!
//! ```text
//! ½‖e‖² + mismatch,     mismatch = Σ (C·w L − ψ(a) + a (g + b)) ≥ 0
//! ```
//!
//! Newton steps lower the first term, new centres the second. So the centre moves when the first term is the smaller
//! one. A large σ makes an envelope narrow: few rows are inside a segment, and the new centre is close to the solution,
//! but steps are short where many kinks lie on the way. So σ starts small, grows from centre to centre, and shrinks
//! when a centre takes too many steps. A smooth loss needs one round of Newton steps, without a centre.

use crate::certify::record::Status;
use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::parallel;
use crate::numeric::simd::dot;
use crate::solver::low_rank::column::{Column, Progress};
use crate::solver::low_rank::directions::Preconditioner;
use crate::solver::low_rank::primal::Primal;
use crate::solver::low_rank::tuning::{
    CENTRE_AT, CENTRE_FLOOR, FAR, FIRST_SIGMA, LITTLE_NARROWER, LONGEST_PATIENCE, MAX_STEPS, NARROWER, SMOOTHEST,
    SOLVED_AT, STEPS_TO_HALVE,
};
use crate::solver::low_rank::working_set::Growth;

/// When a descent ends.
#[derive(Clone, Copy)]
pub(super) struct Goal {
    /// The share of the wanted gap at which a column is solved.
    pub share: f64,
    /// Most rounds.
    pub rounds: usize,
}

impl Column<'_> {
    /// Makes a the centre of narrower envelopes. Most rows will stay in their segments, though at first g is outside of
    /// many of these segments. So the next step starts from the a that all these rows would have inside their segments.
    fn recentre(&mut self, narrower: f64) {
        let moved = |i: usize| (i, narrower * (self.a[i] - self.centre[i]));
        self.shift = (0..self.a.len()).filter(|&i| self.s[i] > 0.0).map(moved).collect();
        self.s.iter_mut().for_each(|s| *s *= narrower);
        self.sigma *= narrower;
        self.since = 0;
        self.centre.copy_from_slice(&self.a);
    }

    /// Lowers σ to `times` times that of the first envelopes, if it is larger.
    fn widen(&mut self, times: f64) {
        if self.sigma > times * self.widest {
            self.sigma = times * self.widest;
            self.shift = Vec::new();
        }
    }
}

impl<T: Working> Primal<'_, T> {
    /// Minimises every column at `c` from where it stands.
    pub(crate) fn solve(&self, open: &mut [&mut Column], c: f64, preconditioner: &mut Preconditioner<T>) -> Result<()> {
        parallel::for_each(open.iter_mut(), |column| {
            (column.progress, column.progress_of_all) = Default::default();
            column.outcome.status = Status::MaxIter;
            column.widest = self.widest(column, c);
            (column.sigma, column.since) = (column.widest, 0);
        });
        let goal = Goal { share: SOLVED_AT, rounds: usize::MAX };
        self.round(open, c, goal.share)?;
        let growth = (!self.is_smooth()).then(|| Growth::new(self.y.len()));
        self.descend(open, c, goal, growth, preconditioner)?;
        for column in open.iter_mut().filter(|column| self.goes_on(column)) {
            column.outcome.status = Status::TimeLimit;
        }
        Ok(())
    }

    /// Takes steps from where the columns stand. With a `growth`, most steps are taken on a working set.
    pub(super) fn descend(
        &self,
        columns: &mut [&mut Column],
        c: f64,
        goal: Goal,
        mut growth: Option<Growth>,
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<()> {
        for _ in 0..goal.rounds {
            let mut at_work: Vec<&mut Column> =
                columns.iter_mut().map(|column| &mut **column).filter(|column| self.goes_on(column)).collect();
            if at_work.is_empty() || self.control.out_of_time() {
                break;
            }
            let rows = growth.as_ref().and_then(|growth| self.working_set(&at_work, growth));
            if let (Some(growth), Some(rows)) = (&mut growth, rows) {
                // The rows outside have moved since the last look at them: wide envelopes follow in few steps.
                for column in &mut at_work {
                    column.widen(NARROWER);
                }
                self.descend_on(&rows, &mut at_work, c, goal, preconditioner)?;
                let changes = self.look_at(&mut at_work, c);
                growth.was_not_enough(rows, &changes);
                self.judge_all(&mut at_work, &changes, goal.share)?;
            } else {
                self.step(&mut at_work, c, preconditioner)?;
                self.round(&mut at_work, c, goal.share)?;
            }
        }
        Ok(())
    }

    fn goes_on(&self, column: &Column) -> bool {
        column.outcome.status == Status::MaxIter && column.outcome.steps < self.settings.max_iter
    }

    /// σ of the first envelopes. C·w sets the scale of the slopes; if no row comes near its bound, the slopes
    /// themselves do.
    fn widest(&self, column: &Column, c: f64) -> f64 {
        let share = |(i, a): (usize, &f64)| {
            let ((lo, hi), cw) = (self.loss.domain(self.y[i]), c * column.weight[i]);
            if cw > 0.0 { a.abs() / (cw * hi.max(-lo)) } else { 0.0 }
        };
        let largest = column.centre.iter().enumerate().map(share).fold(0.0, f64::max);
        let share = if largest > 0.0 { largest.clamp(1e-6, 1.0) } else { 1.0 };
        FIRST_SIGMA * share / self.loss.scale(self.y)
    }

    /// Updates b, a, S and the gap of every column. A gap is small enough at this share of the tolerance.
    pub(super) fn round(&self, columns: &mut [&mut Column], c: f64, share: f64) -> Result<()> {
        let changes = self.look_at(columns, c);
        self.judge_all(columns, &changes, share)
    }

    /// Updates b, a and S of every column. Returns by how much a changed.
    fn look_at(&self, columns: &mut [&mut Column], c: f64) -> Vec<Vec<f64>> {
        parallel::map(columns.iter_mut(), |column| self.look(column, c))
    }

    /// Computes the gaps, and what is to be done next, given by how much a changed.
    fn judge_all(&self, columns: &mut [&mut Column], changes: &[Vec<f64>], share: f64) -> Result<()> {
        let images = self.pass_back(changes)?;
        parallel::for_each(columns.iter_mut().zip(images), |(column, change)| {
            column.image.iter_mut().zip(change).for_each(|(image, change)| *image += change);
            // With frozen rows the objective of the column is not that of the problem.
            column.scale = if column.frozen.size > 0.0 { column.scale } else { column.primal.abs() };
            column.due = self.judge(column, share);
        });
        self.shift(columns)
    }

    /// Computes the gap. At the minimum of the envelopes, moves on to the next centre. True if a Newton step is due.
    fn judge(&self, column: &mut Column, share: f64) -> bool {
        for (j, error) in column.error.iter_mut().enumerate() {
            *error = column.w[j] - column.image[j] - column.frozen.image[j];
        }
        let of_error = 0.5 * dot(&column.error, &column.error);
        let gap = of_error + column.mismatch;
        let wanted = self.settings.tol * column.scale;
        column.outcome.steps += 1;
        column.since += 1;
        column.progress.count(gap);
        column.progress_of_all.count(gap);
        if gap <= share * wanted {
            column.outcome.status = Status::Converged;
            return false;
        }
        let is_stalled = column.progress.steps > STEPS_TO_HALVE || column.progress_of_all.steps > LONGEST_PATIENCE;
        if is_stalled || gap.is_nan() {
            column.outcome.status = Status::Stalled;
            return false;
        }
        if self.is_smooth() {
            return true;
        }
        if of_error <= (CENTRE_AT * column.mismatch).max(CENTRE_FLOOR * wanted) {
            column.recentre(if column.mismatch > FAR * wanted { NARROWER } else { LITTLE_NARROWER });
            return !column.shift.is_empty();
        }
        if column.since > MAX_STEPS && column.sigma > SMOOTHEST * column.widest {
            // Steps are short because many kinks lie on the way: wider envelopes have fewer.
            column.sigma /= NARROWER;
            (column.since, column.progress) = (0, Progress::default());
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::scalar::Loss;
    use crate::solver::low_rank::fixture::{Fixture, PIECEWISE, SMOOTH};

    /// With and without working sets, which problems of this size use from 20 rows on.
    #[test]
    fn the_gap_summed_row_by_row_is_small() {
        for (n, rank) in [(15, 3), (400, 5), (3000, 8)] {
            let fixture = Fixture::new(n, rank);
            for (loss, c) in PIECEWISE.into_iter().flat_map(|loss| [(loss, 0.01), (loss, 1.0), (loss, 100.0)]) {
                let primal = fixture.primal(loss);
                let mut column = primal.constant(0, &fixture.weight, c);
                primal.solve(&mut [&mut column], c, &mut Preconditioner::new(1)).unwrap();
                assert_eq!(column.outcome.status, Status::Converged, "{loss:?}, {n} rows, C = {c}");
                let objective = fixture.objective(loss, c, &column.w, column.b);
                let gap = fixture.gap(loss, c, &column);
                assert!(gap <= 1e-6 * objective, "{loss:?}, {n} rows, C = {c}: {gap} of {objective}");
            }
        }
    }

    /// At the solution of a smooth loss, w = Zᵀa.
    #[test]
    fn smooth_losses_are_solved_without_a_centre() {
        let (c, fixture) = (10.0, Fixture::new(400, 5));
        for loss in SMOOTH {
            let primal = fixture.primal(loss);
            let mut column = primal.constant(0, &fixture.weight, c);
            primal.solve(&mut [&mut column], c, &mut Preconditioner::new(1)).unwrap();
            assert_eq!(column.outcome.status, Status::Converged, "{loss:?}");
            assert!(column.centre.is_empty() && column.sigma == column.widest);
            let f = fixture.times(&column.w);
            let pull = |i: usize| c * fixture.weight[i] * loss.pull(fixture.y[i], f[i] + column.b);
            let image = fixture.transposed_times(&(0..400).map(pull).collect::<Vec<f64>>());
            let square: f64 = column.w.iter().zip(image).map(|(w, image)| 0.5 * (w - image).powi(2)).sum();
            let objective = fixture.objective(loss, c, &column.w, column.b);
            assert!(square <= 1e-6 * objective, "{loss:?}: {square} of {objective}");
        }
    }

    /// At g, a row inside a segment of envelopes around ā has a = ā + σ(kink − g). Around a, with σ times 3, the row
    /// would have a + 3σ(kink − g).
    #[test]
    fn a_new_centre_knows_where_its_rows_would_be() {
        let (c, mut fixture) = (1.0, Fixture::new(60, 3));
        let (w, b, g, centre) = fixture.column(Loss::Hinge, c);
        let primal = fixture.primal(Loss::Hinge);
        let mut column = primal.column((0, &fixture.weight), w, b, g, centre);
        (column.sigma, column.widest, column.since) = (0.2, 0.2, 9);
        primal.look(&mut column, c);
        let (inside, a) = (column.s.iter().filter(|s| **s > 0.0).count(), column.a.clone());
        column.recentre(3.0);
        assert!(inside > 5 && column.shift.len() == inside, "{inside}");
        assert_eq!((column.since, column.centre == a), (0, true));
        assert!((column.sigma - 0.6).abs() < 1e-15);
        for &(i, shift) in &column.shift {
            let cw = c * fixture.weight[i];
            let kink = fixture.y[i];
            let expected = 0.6 * cw * (kink - column.g[i] - column.b);
            assert!((shift - expected).abs() < 1e-12, "{shift} is not {expected}");
            assert!((column.s[i] - 0.6 * cw).abs() < 1e-12);
        }
        column.widen(4.0);
        assert!((column.sigma - 0.6).abs() < 1e-15 && !column.shift.is_empty());
        column.widen(2.0);
        assert!((column.sigma - 0.4).abs() < 1e-15 && column.shift.is_empty());
    }

    #[test]
    fn the_verdict_follows_from_the_gap() {
        let fixture = Fixture::new(30, 2);
        let primal = fixture.primal(Loss::Hinge);
        let wanted = primal.settings.tol;
        // ½‖e‖², the mismatch, steps for this centre, steps without progress → due, status, σ.
        let cases = [
            (0.1, 0.1, 0, 0, false, Status::Converged, 1.0),
            (30.0, 8.0, 0, 0, true, Status::MaxIter, 1.0),
            (4.0, 9.0, 0, 0, true, Status::MaxIter, LITTLE_NARROWER),
            (4.0, 11.0, 0, 0, true, Status::MaxIter, NARROWER),
            (30.0, 8.0, MAX_STEPS, 0, false, Status::MaxIter, 1.0 / NARROWER),
            (30.0, 8.0, 0, STEPS_TO_HALVE, false, Status::Stalled, 1.0),
            (f64::NAN, 8.0, 0, 0, false, Status::Stalled, 1.0),
        ];
        for (of_error, mismatch, since, steps, due, status, sigma) in cases {
            let mut column = primal.constant(0, &fixture.weight, 1.0);
            (column.sigma, column.widest, column.scale, column.since) = (1.0, 1.0, 1.0, since);
            column.w = vec![f64::sqrt(2.0 * of_error * wanted), 0.0];
            column.mismatch = mismatch * wanted;
            column.s[3] = 1.0;
            column.progress = Progress { gap: if steps > 0 { 0.0 } else { f64::INFINITY }, steps };
            let verdict = primal.judge(&mut column, 0.5);
            assert_eq!((verdict, column.outcome.status), (due, status), "{of_error}, {mismatch}");
            assert!((column.sigma - sigma).abs() < 1e-12, "{of_error}, {mismatch}: {}", column.sigma);
        }
    }
}
