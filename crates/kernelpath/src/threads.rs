//! How many threads a call works on, and whose they are.
//!
//! They are never those of rayon's global pool: a forked process has none of its threads, and would wait for them
//! forever. A call with much to do starts threads of its own, which end with it; one with little to do, and what is
//! called outside of a pool, works on the calling thread.

use rayon::prelude::*;

use crate::data::Rows;
use crate::error::Result;
use crate::memory;

/// Variables of the environment that say how many threads a process, or one of several workers, is to have.
const LIMITS: [&str; 3] = ["OMP_NUM_THREADS", "RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT"];

/// Flops up to which a call works on the calling thread: starting and ending threads takes about as long as so many
/// flops. More of them leave cores idle that could have helped; fewer make short calls wait for threads to start.
const FEW_FLOPS: f64 = 1e7;

/// Flops of a kernel value beside those for the entries of its rows: an exponential, mostly.
const OF_A_VALUE: f64 = 30.0;

/// Cores that this process may use: those of its affinity, and no more than the quotas of its control groups (of both
/// versions) allow.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The threads asked for; 0 asks for one a core that this process [may use](cores), or fewer, where `OMP_NUM_THREADS`,
/// `RAYON_NUM_THREADS` or `LOKY_MAX_CPU_COUNT` say so.
pub fn count(threads: usize) -> usize {
    if threads > 0 { threads } else { limited(cores(), LIMITS.iter().filter_map(|name| std::env::var(name).ok())) }
}

/// The least of `cores` and the limits that are numbers; of a list, as OpenMP has for nested loops, the first counts.
fn limited(cores: usize, limits: impl Iterator<Item = String>) -> usize {
    let number = |text: String| text.split(',').next()?.trim().parse().ok().filter(|limit| *limit > 0);
    limits.filter_map(number).fold(cores, usize::min)
}

/// Flops of the kernel between all rows of `x` and of `z`, and of its product with a matrix of so many columns.
pub fn kernel_flops(x: &Rows, z: &Rows, columns: usize) -> f64 {
    // A precomputed kernel has its values in `x`, and `z` is empty.
    let (values, entries) = if z.nrows() == 0 { (x.ncols(), 0) } else { (z.nrows(), z.stored()) };
    x.nrows() as f64 * (3.0 * entries as f64 + values as f64 * (OF_A_VALUE + 2.0 * columns as f64))
}

/// Whether so many flops are done sooner than threads are started.
pub fn are_few(flops: f64) -> bool {
    flops <= FEW_FLOPS
}

/// Whether the calling thread belongs to no pool: then it does all the work itself.
pub(crate) fn is_alone() -> bool {
    rayon::current_thread_index().is_none()
}

/// Runs `work` on the threads of the current pool; without one, in a new pool of so many threads.
pub(crate) fn pooled<R: Send>(threads: usize, work: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    if is_alone() { memory::pool(threads)?.install(work) } else { work() }
}

/// As [`pooled`], or on the calling thread, if the flops are few.
pub(crate) fn pooled_if_worth<R: Send>(
    threads: usize,
    flops: f64,
    work: impl FnOnce() -> Result<R> + Send,
) -> Result<R> {
    if are_few(flops) { work() } else { pooled(threads, work) }
}

/// What `of` makes of each number below `count`, on the threads of the current pool, each of which takes at least
/// `least` of them.
pub(crate) fn map<R: Send>(count: usize, least: usize, of: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    if is_alone() {
        (0..count).map(of).collect()
    } else {
        (0..count).into_par_iter().with_min_len(least).map(of).collect()
    }
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
        assert!((1..=cores()).contains(&count(0)));
    }

    #[test]
    fn one_row_is_few_flops_and_thousands_are_not() {
        let vectors = vec![0.0; 12_000];
        let z = Rows::from_slice(&vectors, 10).unwrap();
        let x = |rows: usize| Rows::from_slice(&vectors[..10 * rows], 10).unwrap();
        assert!(are_few(kernel_flops(&x(1), &z, 1)) && are_few(kernel_flops(&x(1), &z, 45)));
        assert!(!are_few(kernel_flops(&x(1000), &z, 1)));
    }

    #[test]
    fn all_numbers_are_mapped_in_order_alone_and_in_a_pool() {
        let squares = || map(100, 7, |k| k * k);
        assert!(is_alone());
        let alone = squares();
        let inside = pooled(2, || Ok((is_alone(), squares()))).unwrap();
        assert_eq!(inside, (false, alone));
        assert!(pooled_if_worth(2, 1.0, || Ok(is_alone())).unwrap());
        assert!(!pooled_if_worth(2, 1e12, || Ok(is_alone())).unwrap());
    }
}
