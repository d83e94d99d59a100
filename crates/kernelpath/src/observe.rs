//! Progress and interruption: what a fit in flight shares with whoever watches it.

use std::sync::Arc;
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
        Self { shared: Arc::default(), budget, deadline }
    }

    /// The same control, for a part of the fit that must end within `budget` from now on. Cancelling either cancels
    /// both.
    pub(crate) fn limited(&self, budget: Duration) -> Self {
        let own = Self::new(Some(budget)).deadline;
        let deadline = self.deadline.into_iter().chain(own).min();
        Self { shared: self.shared.clone(), budget: Some(budget), deadline }
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
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}
