//! Parts joined in memory that is asked for first.

use std::mem::MaybeUninit;

use kernelpath::{memory, threads};

use crate::error::Failure;

/// Numbers that one thread copies in less time than it takes to start others.
const FEW: usize = 1 << 18;

/// An empty vector with room for `length` entries, or the error that there is no memory for it.
pub(crate) fn with_room<T>(length: usize) -> Result<Vec<T>, Failure> {
    let mut out = Vec::new();
    let limit = || kernelpath::available_memory().unwrap_or(u64::MAX);
    out.try_reserve_exact(length).map_err(|_| Failure::Memory { what: "the table", limit: limit() })?;
    Ok(out)
}

/// The items, `length` of them.
pub(crate) fn collected<T>(length: usize, items: impl Iterator<Item = T>) -> Result<Vec<T>, Failure> {
    let mut out = with_room(length)?;
    out.extend(items);
    Ok(out)
}

/// The numbers of all parts, one part after the other, copied by `count` threads: most of the time goes into pages that
/// are touched for the first time.
pub(crate) fn concatenated(parts: Vec<Vec<f64>>, count: usize) -> Result<Vec<f64>, Failure> {
    let length = parts.iter().map(Vec::len).sum();
    let mut out = with_room(length)?;
    if length < FEW || threads::count(count) == 1 {
        for part in parts {
            out.extend(part);
        }
        return Ok(out);
    }
    let mut rest = &mut out.spare_capacity_mut()[..length];
    let copy = |from: Vec<f64>, to: &mut [MaybeUninit<f64>]| {
        for (to, value) in to.iter_mut().zip(from) {
            to.write(value);
        }
    };
    memory::pool(count)?.scope(|scope| {
        for part in parts {
            let (own, after) = rest.split_at_mut(part.len());
            rest = after;
            scope.spawn(move |_| copy(part, own));
        }
    });
    // SAFETY: there is room for `length` numbers, each of which a task has written; the scope waits for all tasks, and
    // one that panics does not come here.
    unsafe { out.set_len(length) };
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another_for_any_number_of_threads() {
        for sizes in [vec![], vec![0, 3, 0, 1], vec![FEW, 0, 17, 2 * FEW]] {
            let mut next = 0.0;
            let mut part = |size: usize| {
                let part: Vec<f64> = (0..size).map(|k| next + k as f64).collect();
                next += size as f64;
                part
            };
            let parts: Vec<Vec<f64>> = sizes.into_iter().map(&mut part).collect();
            for count in [1, 2, 5] {
                let out = concatenated(parts.clone(), count).unwrap();
                assert_eq!(out.len(), next as usize);
                assert!(out.iter().enumerate().all(|(k, value)| *value == k as f64));
            }
        }
    }
}
