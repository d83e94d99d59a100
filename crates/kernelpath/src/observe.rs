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
/// A clone shares everything with the original. The library prints nothing; a front end (Python, command line) polls
/// this and draws.
#[derive(Debug, Clone)]
pub struct Control {
    shared: Arc<Shared>,
    budget: Option<Duration>,
    deadline: Option<Instant>,
    share: Option<Arc<Share>>,
}

/// The share that a part of the fit has of the time. It lasts up to the deadline as long as a problem has no model:
/// without one for each fold, what the part found could not be chosen. Then it is an equal share among the parts that
/// can come as far before the deadline.
#[derive(Debug)]
struct Share {
    begun: Instant,
    /// The time from then to the deadline.
    left: Duration,
    parts: usize,
    /// Problems without a model. More than there can be, until it is known how many there are.
    without_model: AtomicUsize,
    /// How long it took until no problem was without a model.
    lead: OnceLock<Duration>,
}

impl Share {
    /// When the share ends; `None` as long as there is a problem without a model.
    fn end(&self) -> Option<Instant> {
        let lead = self.lead.get()?;
        let others = self.left.saturating_sub(*lead).as_nanos() / lead.as_nanos().max(1);
        let parts = others.saturating_add(1).min(self.parts as u128);
        Some(self.begun + self.left / u32::try_from(parts).unwrap_or(u32::MAX))
    }
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

    /// The same control, for the first of several parts of the fit, which has a share of the time that is left.
    pub(crate) fn shared_among(&self, parts: usize) -> Self {
        let begun = Instant::now();
        let of = |deadline: Instant| Share {
            begun,
            left: deadline.saturating_duration_since(begun),
            parts: parts.max(1),
            without_model: AtomicUsize::new(usize::MAX),
            lead: OnceLock::new(),
        };
        let share = self.deadline.map(|deadline| Arc::new(of(deadline)));
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

    /// Fails when the caller asked to stop, or when the time is over before `what` of that many rows: then no model has
    /// begun.
    pub(crate) fn check_time(&self, what: &'static str, rows: usize) -> Result<()> {
        self.check()?;
        if self.out_of_time() {
            return Err(Error::TimeBudget { budget: self.budget_seconds().unwrap_or(0.0), what, rows });
        }
        Ok(())
    }

    pub(crate) fn out_of_time(&self) -> bool {
        let end = self.share.as_ref().and_then(|share| share.end()).into_iter().chain(self.deadline).min();
        end.is_some_and(|end| Instant::now() >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_that_can_come_as_far_share_the_time() {
        let begun = Instant::now();
        let second = Duration::from_secs(1);
        let share = |lead: Option<u32>| {
            let known = OnceLock::new();
            if let Some(lead) = lead {
                known.set(second * lead).unwrap();
            }
            Share { begun, left: 60 * second, parts: 6, without_model: AtomicUsize::new(0), lead: known }
        };
        let seconds = |lead: u32| share(Some(lead)).end().map(|end| (end - begun).as_secs());
        assert_eq!(share(None).end(), None);
        assert_eq!([1, 10, 15, 25, 31, 90].map(seconds), [10, 10, 15, 30, 60, 60].map(Some));
    }

    #[test]
    fn a_share_may_end_once_every_problem_has_a_model() {
        let whole = Control::new(Some(Duration::from_secs(60)));
        let part = whole.shared_among(usize::MAX);
        std::thread::sleep(Duration::from_millis(1));
        assert!(!part.out_of_time());
        part.expect_models(3);
        part.first_models(2);
        assert!(!part.out_of_time() && part.lead().is_none());
        part.first_models(1);
        assert!(part.lead().is_some_and(|lead| lead >= Duration::from_millis(1)));
        assert!(!whole.out_of_time());
        // A share ends no later than the whole, with or without models.
        let over = Control::new(Some(Duration::ZERO));
        assert!(over.shared_among(1).out_of_time() && over.ends_within(Duration::ZERO));
        assert!(!Control::default().shared_among(2).out_of_time());
    }
}
