//! Loops whose items are shared out among the threads of the current pool.
//!
//! Results come in the order of the items, so that nothing depends on the number of threads. Outside of a pool the
//! calling thread does all the work.
//!
//! All loops run through [`each`], which is compiled once. A parallel iterator of rayon is compiled anew for every
//! closure, and several hundred of them were a third of this crate's machine code.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use crate::error::Result;
use crate::numeric::threads::is_alone;

/// Calls `work` with each number below `count`. A thread takes at least `least` numbers at a time.
fn each(count: usize, least: usize, work: &(dyn Fn(usize) + Sync)) {
    if count <= least || is_alone() {
        (0..count).for_each(work);
    } else if least > 1 {
        (0..count).into_par_iter().with_min_len(least).for_each(work);
    } else {
        (0..count).into_par_iter().with_max_len(1).for_each(work);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An item until it is taken, then what became of it.
struct Slot<T, R>(Mutex<(Option<T>, Option<R>)>);

impl<T, R> Slot<T, R> {
    fn new(item: T) -> Self {
        Self(Mutex::new((Some(item), None)))
    }

    fn run(&self, of: impl FnOnce(T) -> R) {
        // The lock is not held meanwhile: this thread may wait in `of`, and work on another item as it waits.
        let item = lock(&self.0).0.take();
        if let Some(item) = item {
            let result = of(item);
            lock(&self.0).1 = Some(result);
        }
    }

    fn result(self) -> Option<R> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).1
    }
}

/// Applies `of` to each item.
pub(crate) fn map<T: Send, R: Send>(items: impl IntoIterator<Item = T>, of: impl Fn(T) -> R + Sync) -> Vec<R> {
    let slots: Vec<Slot<T, R>> = items.into_iter().map(Slot::new).collect();
    each(slots.len(), 1, &|k| slots[k].run(&of));
    slots.into_iter().filter_map(Slot::result).collect()
}

/// Hands each item to `work`.
pub(crate) fn for_each<T: Send>(items: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    map(items, work);
}

/// As [`map`]. After an error the remaining items are left, and the first error is returned.
pub(crate) fn try_map<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    of: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    try_map_with(items, |(): &mut (), item| of(item))
}

/// As [`for_each`]. After an error the remaining items are left, and the first error is returned.
pub(crate) fn try_for_each<T: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    try_map(items, work).map(|_| ())
}

/// As [`try_map`], with scratch space that a thread keeps from item to item.
pub(crate) fn try_map_with<S: Default + Send, T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    of: impl Fn(&mut S, T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (failed, idle) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let slots: Vec<Slot<T, Result<R>>> = items.into_iter().map(Slot::new).collect();
    each(slots.len(), 1, &|k| {
        if failed.load(Relaxed) {
            return;
        }
        slots[k].run(|item| {
            let mut scratch = lock(&idle).pop().unwrap_or_default();
            let result = of(&mut scratch, item);
            lock(&idle).push(scratch);
            if result.is_err() {
                failed.store(true, Relaxed);
            }
            result
        });
    });
    slots.into_iter().filter_map(Slot::result).collect()
}

/// As [`try_for_each`], with scratch space that a thread keeps from item to item.
pub(crate) fn try_for_each_with<S: Default + Send, T: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(&mut S, T) -> Result<()> + Sync,
) -> Result<()> {
    try_map_with(items, work).map(|_| ())
}

/// Applies `of` to each number below `count`, for work that is short: a thread takes `least` numbers at a time.
pub(crate) fn map_numbers<R: Send>(count: usize, least: usize, of: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let least = least.max(1);
    let batch = |start: usize| (start..count.min(start + least)).map(&of).collect::<Vec<R>>();
    if count <= least {
        return batch(0);
    }
    map((0..count).step_by(least), batch).into_iter().flatten().collect()
}

/// What `of` finds for the smallest number below `count` for which it finds anything. A thread takes at least `least`
/// numbers at a time.
pub(crate) fn find_first<R: Send>(count: usize, least: usize, of: &(dyn Fn(usize) -> Option<R> + Sync)) -> Option<R> {
    let first: Mutex<Option<(usize, R)>> = Mutex::new(None);
    each(count, least, &|k| {
        let is_before = |first: &Option<(usize, R)>| first.as_ref().is_none_or(|(known, _)| k < *known);
        if is_before(&lock(&first))
            && let Some(found) = of(k)
        {
            let mut first = lock(&first);
            if is_before(&first) {
                *first = Some((k, found));
            }
        }
    });
    first.into_inner().unwrap_or_else(PoisonError::into_inner).map(|(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::error::Error;
    use crate::numeric::threads::pooled;

    /// What `of` returns outside of a pool and in one, which must be the same.
    fn anywhere<R: Send + PartialEq + std::fmt::Debug>(of: impl Fn() -> R + Sync) -> R {
        let alone = of();
        assert_eq!(pooled(3, || Ok(of())).unwrap(), alone);
        alone
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let words = || (0..100).map(|k| format!("word {k}"));
        assert_eq!(anywhere(|| map(words(), |word| word + "!")), words().map(|word| word + "!").collect::<Vec<_>>());
        assert_eq!(anywhere(|| map_numbers(100, 7, |k| k * k)), (0..100).map(|k| k * k).collect::<Vec<_>>());
        assert!(anywhere(|| map_numbers(0, 7, |k| k)).is_empty());
        let doubled = anywhere(|| {
            let mut values = [1, 2, 3, 4, 5];
            for_each(values.chunks_mut(2), |chunk| chunk.iter_mut().for_each(|value| *value *= 2));
            values
        });
        assert_eq!(doubled, [2, 4, 6, 8, 10]);
    }

    #[test]
    fn an_error_ends_the_loop() {
        let odd = |k: usize| if k.is_multiple_of(2) { Ok(k) } else { Err(Error::Empty { rows: k, columns: 0 }) };
        assert!(matches!(try_map(0..100, odd), Err(Error::Empty { rows: 1, .. })));
        let in_pool = pooled(3, || Ok(try_map(0..100, odd))).unwrap();
        assert!(matches!(in_pool, Err(Error::Empty { rows, .. }) if rows % 2 == 1));
        assert_eq!(anywhere(|| try_map((0..100).step_by(2), odd)).unwrap(), (0..100).step_by(2).collect::<Vec<_>>());
    }

    #[test]
    fn scratch_space_is_kept() {
        let sums = try_map_with(0..10, |seen: &mut Vec<usize>, k| {
            seen.push(k);
            Ok(seen.len())
        });
        assert_eq!(sums.unwrap(), (1..=10).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_is_found() {
        let late = |k: usize| (k >= 40 && k.is_multiple_of(3)).then_some(k);
        assert_eq!(anywhere(|| find_first(100, 1, &late)), Some(42));
        assert_eq!(anywhere(|| find_first(100, 8, &late)), Some(42));
        assert_eq!(anywhere(|| find_first(40, 1, &late)), None);
    }
}
