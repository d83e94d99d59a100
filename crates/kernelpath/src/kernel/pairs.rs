//! What kernels of several bandwidths have in common: the inner products, or distances, of all pairs of rows.

use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::data::rows::Rows;
use crate::error::Result;
use crate::kernel::shape::Shape;
use crate::kernel::tile::TILE;

/// Bytes by which the three vectors of a tile may be rounded up.
const PAGES: usize = 3 << 12;

/// A store of the inner products, or distances, of all pairs of rows. The first fit that is given the store fills it.
/// Later fits read it, so their kernel matrices need no products of rows any more. A fit on other rows, or with another
/// kernel shape, fills the store anew.
#[derive(Debug, Default)]
pub struct Pairs {
    known: Mutex<Option<Arc<Known>>>,
}

/// The pairs of some rows, tile after tile, in the order in which kernel matrices are made.
#[derive(Debug)]
pub(crate) struct Known {
    shape: Shape,
    rows: Vec<usize>,
    /// A hash of each row, by which rows of other data are told apart.
    hashes: Vec<u64>,
    /// Per tile, what the shape measures between the rows of one block and the rows of another.
    pub tiles: Vec<OnceLock<Vec<f64>>>,
}

impl Pairs {
    /// Bytes that the pairs of `n` rows are still to take: 0 if the store has them, since they then count as memory in
    /// use. Each tile is a block of memory of its own, of whole pages.
    pub(crate) fn bytes_to_come(&self, n: usize) -> u64 {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let has = known.as_ref().is_some_and(|known| known.rows.len() == n);
        let blocks = n.div_ceil(TILE) as u64;
        let of_tile = (TILE * (TILE + 2) * 8 + PAGES) as u64;
        if has { 0 } else { blocks * (blocks + 1) / 2 * of_tile }
    }

    /// Plans the memory for `n` rows, with the pairs if they are given and memory allows it, else without them. `plan`
    /// is given the bytes that the pairs add.
    pub(crate) fn planned(
        given: Option<&Self>,
        n: usize,
        plan: impl Fn(u64) -> Result<u64>,
    ) -> Result<(Option<&Self>, u64)> {
        if let Some(pairs) = given
            && let Ok(bytes) = plan(pairs.bytes_to_come(n))
        {
            return Ok((given, bytes));
        }
        Ok((None, plan(0)?))
    }

    /// The pairs of these rows. They are still to be computed if the store holds those of other rows or another shape.
    pub(crate) fn of(&self, x: &Rows, rows: &[usize], shape: Shape, tiles: usize) -> Arc<Known> {
        let hashes: Vec<u64> = rows.iter().map(|&row| hash(x, row)).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(known) if known.shape == shape && known.rows == rows && known.hashes == hashes => Arc::clone(known),
            _ => {
                let tiles = (0..tiles).map(|_| OnceLock::new()).collect();
                Arc::clone(known.insert(Arc::new(Known { shape, rows: rows.to_vec(), hashes, tiles })))
            }
        }
    }
}

fn hash(x: &Rows, row: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    x.hash_row(row, &mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::kernel::gram::Gram;
    use crate::kernel::shape::KernelFn;
    use crate::observe::Control;

    #[test]
    fn are_kept_for_the_same_rows_and_the_same_shape_only() {
        let mut values: Vec<f64> = (0..1500).map(|i| f64::from(i * i % 17) - 8.0).collect();
        let all: Vec<usize> = (0..300).collect();
        let pairs = Pairs::default();
        let of = |values: &[f64], rows: &[usize], shape: Shape| {
            let x = Rows::from_slice(values, 5).unwrap();
            let kernel = KernelFn::new(shape, 0.1).unwrap();
            Gram::<f64>::compute(&x, rows, &kernel, Some(&pairs), &Control::default()).unwrap();
            pairs.of(&x, rows, shape, 0)
        };
        let first = of(&values, &all, Shape::Rbf);
        assert_eq!(first.tiles.len(), 6);
        assert!(first.tiles.iter().all(|tile| tile.get().is_some()));
        assert_eq!(pairs.bytes_to_come(300), 0);
        let stored: usize = first.tiles.iter().filter_map(OnceLock::get).map(|tile| 8 * tile.len()).sum();
        assert!((stored as u64) < pairs.bytes_to_come(299) && pairs.bytes_to_come(299) < 3 * stored as u64);
        assert!(Arc::ptr_eq(&first, &of(&values, &all, Shape::Rbf)));
        assert!(!Arc::ptr_eq(&first, &of(&values, &all, Shape::Laplacian)));
        let first = of(&values, &all, Shape::Rbf);
        assert!(!Arc::ptr_eq(&first, &of(&values, &all[..299], Shape::Rbf)));
        // The same norms, but another row.
        let first = of(&values, &all, Shape::Rbf);
        values[600..605].iter_mut().for_each(|v| *v = -*v);
        assert!(!Arc::ptr_eq(&first, &of(&values, &all, Shape::Rbf)));
        // The same numbers in other columns.
        for column in 1..5 {
            let first = of(&values, &all, Shape::Rbf);
            values[1000] = 3.0;
            values[1000 + column] = 4.0;
            assert!(!Arc::ptr_eq(&first, &of(&values, &all, Shape::Rbf)));
            let first = of(&values, &all, Shape::Rbf);
            values.swap(1000, 1000 + column);
            assert!(!Arc::ptr_eq(&first, &of(&values, &all, Shape::Rbf)), "columns 0 and {column}");
        }
    }
}
