//! How many threads a call works on, and whose they are.
//!
//! The threads are never those of rayon's global pool: a forked process has none of that pool's threads, and would wait
//! for them forever. A call with much to do starts threads of its own, which end with the call. A call with little to
//! do works on the calling thread, and so does everything that is called outside of a pool.

use crate::error::Result;
use crate::numeric::memory;

/// Variables of the environment that say how many threads a process, or one of several workers, is to have.
const LIMITS: [&str; 3] = ["OMP_NUM_THREADS", "RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT"];

/// Flops up to which a call works on the calling thread: about what one thread computes in the time that it takes to
/// start and end threads. A larger value leaves cores idle that could have helped; a smaller one makes short calls wait
/// for threads to start.
const FEW_FLOPS: f64 = 1e7;

/// Most threads of a call. Thousands take longer to start than most fits take, and cannot be interrupted while they
/// start; no answer depends on their number.
pub const MOST: usize = 256;

/// Cores that this process may use: those of its affinity, and no more than the quotas of its control groups (of both
/// versions) allow.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The number of threads to use: `threads`, or if that is 0, one per core that this process [may use](cores). It is
/// fewer where `OMP_NUM_THREADS`, `RAYON_NUM_THREADS` or `LOKY_MAX_CPU_COUNT` say so, and never more than [`MOST`].
pub fn count(threads: usize) -> usize {
    let limits = || LIMITS.iter().filter_map(|name| std::env::var(name).ok());
    if threads > 0 { threads.min(MOST) } else { limited(cores(), limits()).min(MOST) }
}

/// The least of `cores` and the limits that are numbers. In a list, as OpenMP has for nested loops, the first number
/// counts.
fn limited(cores: usize, limits: impl Iterator<Item = String>) -> usize {
    let number = |text: String| text.split(',').next()?.trim().parse().ok().filter(|limit| *limit > 0);
    limits.filter_map(number).fold(cores, usize::min)
}

/// Whether `flops` flops take less time than starting threads.
pub fn are_few(flops: f64) -> bool {
    flops <= FEW_FLOPS
}

/// Whether the calling thread belongs to no pool: then it does all the work itself.
pub(crate) fn is_alone() -> bool {
    rayon::current_thread_index().is_none()
}

/// Runs `work` on the threads of the current pool; outside of any pool, in a new one of `threads` threads.
pub(crate) fn pooled<R: Send>(threads: usize, work: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    if is_alone() { memory::pool(threads)?.install(work) } else { work() }
}

/// As [`pooled`], but on the calling thread if the flops are few.
pub(crate) fn pooled_if_worth<R: Send>(
    threads: usize,
    flops: f64,
    work: impl FnOnce() -> Result<R> + Send,
) -> Result<R> {
    if are_few(flops) { work() } else { pooled(threads, work) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_counts() {
        let of = |limits: &[&str]| limited(8, limits.iter().map(|&limit| limit.to_owned()));
        assert_eq!(of(&[]), 8);
        assert_eq!((of(&["3"]), of(&["3", "5"]), of(&["16"])), (3, 3, 8));
        assert_eq!((of(&[" 4,2,1 "]), of(&["2,"])), (4, 2));
        assert_eq!(of(&["", "0", "-1", "many", "1.5", ","]), 8);
    }

    #[test]
    fn what_is_asked_for_is_had() {
        assert_eq!(count(7), 7);
        assert_eq!((count(1_000_000), count(usize::MAX)), (MOST, MOST));
        assert!((1..=cores()).contains(&count(0)));
    }

    #[test]
    fn much_work_is_done_in_a_pool() {
        assert!(is_alone() && !pooled(2, || Ok(is_alone())).unwrap());
        assert!(pooled_if_worth(2, 1.0, || Ok(is_alone())).unwrap());
        assert!(!pooled_if_worth(2, 1e12, || Ok(is_alone())).unwrap());
    }
}
