//! Progress and interruption: what a fit in flight shares with whoever watches it.

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
/// The library prints nothing; a face (Python, command line) polls this and draws.
#[derive(Debug)]
pub struct Control {
    cancelled: AtomicBool,
    phase: AtomicU8,
    done: AtomicUsize,
    total: AtomicUsize,
    started: Instant,
    budget: Option<Duration>,
}

impl Default for Control {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Control {
    /// A control without (`None`) or with a limit on the time of the fit.
    pub fn new(budget: Option<Duration>) -> Self {
        Self {
            cancelled: AtomicBool::new(false),
            phase: AtomicU8::new(0),
            done: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            started: Instant::now(),
            budget,
        }
    }

    /// Asks the fit to stop; it returns [`Error::Interrupted`] within a fraction of a second.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// What is being done, how many parts of it are done, and of how many.
    pub fn progress(&self) -> (Phase, usize, usize) {
        let phase = if self.phase.load(Relaxed) == 0 { Phase::Kernel } else { Phase::Path };
        (phase, self.done.load(Relaxed), self.total.load(Relaxed))
    }

    /// The time allowed, in seconds.
    pub(crate) fn budget_seconds(&self) -> Option<f64> {
        self.budget.map(|b| b.as_secs_f64())
    }

    pub(crate) fn begin(&self, phase: Phase, total: usize) {
        self.done.store(0, Relaxed);
        self.total.store(total, Relaxed);
        self.phase.store(u8::from(phase == Phase::Path), Relaxed);
    }

    /// Adds parts that turned out to be needed.
    pub(crate) fn extend(&self, parts: usize) {
        self.total.fetch_add(parts, Relaxed);
    }

    pub(crate) fn advance(&self, parts: usize) {
        self.done.fetch_add(parts, Relaxed);
    }

    /// Fails when the caller asked to stop. Cheap: call it every few microseconds of work.
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled.load(Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn out_of_time(&self) -> bool {
        self.budget.is_some_and(|b| self.started.elapsed() >= b)
    }
}
