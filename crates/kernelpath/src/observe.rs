//! Progress and interruption: what a fit in flight shares with whoever watches it.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// What a fit is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Filling the kernel matrix.
    Kernel,
    /// Solving the folds' paths.
    Path,
}

/// Shared with a running fit from another thread: read its progress, or stop it.
///
/// The library prints nothing; a front end (Python, command line) polls this and draws.
#[derive(Debug)]
pub struct Control {
    shared: Arc<Shared>,
    budget: Option<Duration>,
    deadline: Option<Instant>,
    share: Option<Share>,
}

/// The share that a part of the fit has of the time. It may take longer, up to the deadline, as long as a problem has no
/// model: without one for each fold, what the part found could not be chosen.
#[derive(Debug)]
struct Share {
    begun: Instant,
    end: Instant,
    /// Problems without a model. More than there can be, until it is known how many there are.
    without_model: AtomicUsize,
    /// How long it took until no problem was without a model.
    lead: OnceLock<Duration>,
}

/// What is read and written while a fit runs.
#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    phase: AtomicU8,
    done: AtomicUsize,
    total: AtomicUsize,
}

impl Default for Control {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Control {
    /// A control with a limit on the time of the fit, or without one (`None`).
    pub fn new(budget: Option<Duration>) -> Self {
        let deadline = budget.and_then(|budget| Instant::now().checked_add(budget));
        Self { shared: Arc::default(), budget, deadline, share: None }
    }

    /// The same control, for a part of the fit that must end within `budget` from now on. Cancelling either cancels
    /// both.
    pub(crate) fn limited(&self, budget: Duration) -> Self {
        let own = Self::new(Some(budget)).deadline;
        let deadline = self.deadline.into_iter().chain(own).min();
        Self { shared: self.shared.clone(), budget: Some(budget), deadline, share: None }
    }

    /// The same control, for the first of several parts of the fit: it has an equal share of the time that is left, and
    /// more as long as it has problems without a model.
    pub(crate) fn shared_among(&self, parts: usize) -> Self {
        let begun = Instant::now();
        let share = self.deadline.map(|deadline| Share {
            begun,
            end: begun + deadline.saturating_duration_since(begun) / u32::try_from(parts).unwrap_or(u32::MAX).max(1),
            without_model: AtomicUsize::new(usize::MAX),
            lead: OnceLock::new(),
        });
        Self { shared: self.shared.clone(), budget: self.budget, deadline: self.deadline, share }
    }

    /// How long the part took until every problem had a model; `None` if there is no limit of time, or there were still
    /// problems without one when the part ended.
    pub(crate) fn lead(&self) -> Option<Duration> {
        self.share.as_ref().and_then(|share| share.lead.get().copied())
    }

    /// Whether the time ends within `needed` from now on.
    pub(crate) fn ends_within(&self, needed: Duration) -> bool {
        self.deadline.is_some_and(|deadline| deadline.saturating_duration_since(Instant::now()) <= needed)
    }

    /// Says how many problems the part has, none of which has a model yet.
    pub(crate) fn expect_models(&self, problems: usize) {
        if let Some(share) = &self.share {
            share.without_model.store(problems, Relaxed);
        }
    }

    /// Says that so many problems have their first model.
    pub(crate) fn first_models(&self, problems: usize) {
        let Some(share) = &self.share else { return };
        let left = |without: usize| Some(without.saturating_sub(problems));
        if share.without_model.fetch_update(Relaxed, Relaxed, left).is_ok_and(|without| without <= problems) {
            let _ = share.lead.set(share.begun.elapsed());
        }
    }

    /// Asks the fit to stop; it returns [`Error::Interrupted`] within a fraction of a second.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Relaxed);
    }

    /// What is being done, how many parts of it are done, and of how many.
    pub fn progress(&self) -> (Phase, usize, usize) {
        let phase = if self.shared.phase.load(Relaxed) == 0 { Phase::Kernel } else { Phase::Path };
        (phase, self.shared.done.load(Relaxed), self.shared.total.load(Relaxed))
    }

    /// The time allowed, in seconds.
    pub(crate) fn budget_seconds(&self) -> Option<f64> {
        self.budget.map(|b| b.as_secs_f64())
    }

    pub(crate) fn begin(&self, phase: Phase, total: usize) {
        self.shared.done.store(0, Relaxed);
        self.shared.total.store(total, Relaxed);
        self.shared.phase.store(u8::from(phase == Phase::Path), Relaxed);
    }

    /// Adds parts that turned out to be needed, too.
    pub(crate) fn extend(&self, parts: usize) {
        self.shared.total.fetch_add(parts, Relaxed);
    }

    pub(crate) fn advance(&self, parts: usize) {
        self.shared.done.fetch_add(parts, Relaxed);
    }

    /// Fails when the caller asked to stop. Cheap: call it every few microseconds of work.
    pub fn check(&self) -> Result<()> {
        if self.shared.cancelled.load(Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn out_of_time(&self) -> bool {
        let share = self.share.as_ref().filter(|share| share.without_model.load(Relaxed) == 0);
        let end = self.deadline.into_iter().chain(share.map(|share| share.end)).min();
        end.is_some_and(|end| Instant::now() >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_over_once_every_problem_has_a_model() {
        let whole = Control::new(Some(Duration::from_secs(60)));
        let part = whole.shared_among(usize::MAX);
        std::thread::sleep(Duration::from_millis(1));
        assert!(!part.out_of_time());
        part.expect_models(3);
        part.first_models(2);
        assert!(!part.out_of_time() && part.lead().is_none());
        part.first_models(1);
        assert!(part.out_of_time() && part.lead().is_some_and(|lead| lead >= Duration::from_millis(1)));
        assert!(!whole.out_of_time());
        // A share ends no later than the whole, with or without models.
        let over = Control::new(Some(Duration::ZERO));
        assert!(over.shared_among(1).out_of_time() && over.ends_within(Duration::ZERO));
        assert!(!Control::default().shared_among(2).out_of_time());
    }
}
