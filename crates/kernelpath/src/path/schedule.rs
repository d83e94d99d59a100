//! Walks the groups of a fit: one after the other on all threads, or side by side, one on each thread.

use std::sync::{Mutex, PoisonError};

use crate::certify::ledger::{Judge, Ledger, Solution};
use crate::error::{Error, Result};
use crate::observe::Control;
use crate::path::sweep::Sweep;
use crate::solver::engine::Engine;

/// How groups are walked side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workers {
    /// Whether to use all threads of the pool, or this one alone.
    pub all_threads: bool,
    /// Whether a group in work takes so little memory that one more than there are workers may be begun.
    pub groups_are_small: bool,
    /// Finished groups that are certified together: one pass over K serves them all.
    pub certified_at_once: usize,
}

/// Groups that are in no worker's hands.
struct Queue<E: Engine> {
    waiting: Vec<Sweep<E>>,
    /// Groups that are not begun. The next one to begin is the last of them.
    fresh: Vec<Sweep<E>>,
    open: usize,
    /// Solutions of groups that were walked to the end, but are not certified yet.
    finished: Vec<Vec<Solution>>,
    failed: Option<Error>,
}

/// Solves all problems of a ledger at every C, by the engines made for them: one for each problem, or one for all.
pub(crate) fn solve<E: Engine, J: Judge>(
    engines: Vec<E>,
    ledger: &Ledger<J>,
    workers: Workers,
    control: &Control,
) -> Result<()> {
    if E::ALONE {
        let group = |(problem, engine)| Sweep::new(engine, vec![problem], ledger.cs);
        let fresh = engines.into_iter().enumerate().rev().map(group).collect::<Result<_>>()?;
        return side_by_side(fresh, ledger, workers, control);
    }
    for engine in engines {
        let mut sweep = Sweep::new(engine, (0..ledger.problems.len()).collect(), ledger.cs)?;
        while !sweep.is_over(control) {
            sweep.advance(ledger, control)?;
        }
    }
    Ok(())
}

/// Walks groups of one problem each, C by C. The last of `fresh` begins first.
///
/// One more group is open than there are workers (if groups are small), and a worker takes the open group that is
/// furthest behind, so that the last groups end together. With a time budget all groups are open, so that every fold
/// gets as far as the others. Each group is advanced by one worker at a time, in the order of its C's, so the answer
/// does not depend on which worker it is. A worker that finds no group is not needed again, and helps with the products
/// of the others.
fn side_by_side<E: Engine, J: Judge>(
    fresh: Vec<Sweep<E>>,
    ledger: &Ledger<J>,
    workers: Workers,
    control: &Control,
) -> Result<()> {
    let count = if workers.all_threads { rayon::current_num_threads() } else { 1 };
    let open = count + usize::from(workers.groups_are_small);
    let most_open = if control.budget_seconds().is_some() { fresh.len() } else { open };
    let queue = Mutex::new(Queue { waiting: Vec::new(), fresh, open: 0, finished: Vec::new(), failed: None });
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);

    let take = || {
        let mut queue = lock();
        if queue.failed.is_some() {
            return None;
        }
        if queue.open < most_open
            && let Some(sweep) = queue.fresh.pop()
        {
            queue.open += 1;
            return Some(sweep);
        }
        let progress = |k: &usize| (queue.waiting[*k].done(), queue.waiting[*k].first());
        let behind = (0..queue.waiting.len()).min_by_key(progress)?;
        Some(queue.waiting.swap_remove(behind))
    };
    let finish = |sweep: Sweep<E>| {
        let solutions = sweep.into_solutions();
        let mut queue = lock();
        queue.open -= 1;
        queue.finished.push(solutions);
        let last = queue.open == 0 && queue.fresh.is_empty();
        if queue.finished.len() < workers.certified_at_once && !last {
            return Ok(());
        }
        let batch = std::mem::take(&mut queue.finished);
        drop(queue);
        ledger.settle(ledger.recomputed(batch.into_iter().flatten().collect())?, |_, _| {})
    };
    let work = || {
        while let Some(mut sweep) = take() {
            let result = if sweep.is_over(control) {
                finish(sweep)
            } else {
                sweep.advance(ledger, control).map(|()| lock().waiting.push(sweep))
            };
            if let Err(error) = result {
                lock().failed = Some(error);
            }
        }
    };
    if workers.all_threads {
        rayon::broadcast(|_| work());
    } else {
        work();
    }
    let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    queue.failed.map_or(Ok(()), Err)
}
