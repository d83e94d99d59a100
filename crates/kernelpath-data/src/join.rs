//! Parts joined in memory that is asked for first.

use crate::error::Failure;

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
