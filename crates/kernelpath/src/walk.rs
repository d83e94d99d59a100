//! All paths at once, each walked C by C from its own last solution: how the active set meets the folds.

use std::sync::Mutex;

use crate::error::{Error, Result};
use crate::gram::Gram;
use crate::ledger::{Ledger, Solution};
use crate::observe::Control;
use crate::path::{Path, constant_starts, rising};
use crate::problem::Shared;
use crate::solver::Working;

/// A path in work and what it has produced.
struct Chain<'a, T> {
    plan: usize,
    path: Path<'a, T>,
    solved: Vec<Solution>,
}

/// So many paths are certified at once: one pass over the Gram matrix serves them all.
pub(crate) const CERTIFIED_AT_ONCE: usize = 4;

/// Chains not in any worker's hands.
struct Queue<'a, T> {
    waiting: Vec<Chain<'a, T>>,
    /// Not begun; the next is the last.
    fresh: Vec<Chain<'a, T>>,
    open: usize,
    /// Walked to the end, but not certified yet.
    finished: Vec<Vec<Solution>>,
    failed: Option<Error>,
}

/// Below this many bytes of Gram matrix, the factor of one more open path does not matter.
const SMALL_GRAM: u64 = 256 << 20;

/// Walks all paths on the threads of the pool, or on this one, C by C.
///
/// One more path is open than there are workers (if their factors are small), and a worker takes the open
/// path that is furthest behind: so the last paths end together. With a time budget all
/// paths are open, so that every fold gets as far as the others. Each path is computed by one worker
/// at a time in the order of its C's: the answer does not depend on who does it. A worker that finds
/// no path is not needed again, and helps with the products of the others.
pub(crate) fn walk<T: Working>(
    shared: &Shared<T>,
    ledger: &Ledger<T>,
    all_threads: bool,
    control: &Control,
) -> Result<()> {
    let workers = if all_threads { rayon::current_num_threads() } else { 1 };
    let order = rising(ledger.cs);
    let small = Gram::<T>::bytes(shared.gram.n()) < SMALL_GRAM;
    let all = ledger.plans.len();
    let most_open = if control.budget_seconds().is_some() { all } else { workers + usize::from(small) };
    let weights: Vec<&[f64]> = ledger.plans.iter().map(|plan| &plan.weight[..]).collect();
    let starts = constant_starts(shared, &weights, control)?;
    let fresh = weights.into_iter().zip(starts).enumerate().rev().map(|(plan, (weight, start))| Chain {
        plan,
        path: Path::new(weight, start),
        solved: Vec::new(),
    });
    let fresh = fresh.collect();
    let queue = Mutex::new(Queue { waiting: Vec::new(), fresh, open: 0, finished: Vec::new(), failed: None });
    let lock = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);

    let take = || {
        let mut queue = lock();
        if queue.failed.is_some() {
            return None;
        }
        if queue.open < most_open
            && let Some(chain) = queue.fresh.pop()
        {
            queue.open += 1;
            return Some(chain);
        }
        let progress = |k: &usize| (queue.waiting[*k].solved.len(), queue.waiting[*k].plan);
        let behind = (0..queue.waiting.len()).min_by_key(progress)?;
        Some(queue.waiting.swap_remove(behind))
    };
    let work = || {
        while let Some(mut chain) = take() {
            let out_of_time = !chain.solved.is_empty() && control.out_of_time();
            let result = if chain.solved.len() == order.len() || out_of_time {
                let solved = chain.solved;
                drop(chain.path);
                let mut queue = lock();
                queue.open -= 1;
                queue.finished.push(solved);
                let last = queue.open == 0 && queue.fresh.is_empty();
                if queue.finished.len() < CERTIFIED_AT_ONCE && !last {
                    continue;
                }
                let batch = std::mem::take(&mut queue.finished);
                drop(queue);
                ledger.settle(batch.into_iter().flatten().collect(), |_, _, _| {})
            } else {
                let c = order[chain.solved.len()];
                let step = chain.path.advance(shared, ledger.cs[c], control);
                control.advance(1);
                step.map(|step| {
                    chain.solved.push(Solution {
                        plan: chain.plan,
                        c,
                        beta: step.beta,
                        b: step.b,
                        outcome: step.outcome,
                    });
                    lock().waiting.push(chain);
                })
            };
            if let Err(error) = result {
                lock().failed = Some(error);
            }
        }
    };
    if all_threads {
        rayon::broadcast(|_| work());
    } else {
        work();
    }
    let queue = queue.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    queue.failed.map_or(Ok(()), Err)
}
