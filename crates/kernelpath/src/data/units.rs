//! Equal rows, merged into one unit with the sum of their weights.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::data::rows::Rows;
use crate::error::Result;
use crate::numeric::parallel;
use crate::observe::Control;

/// Units: rows that are equal in every column and in their keys, such as targets, are merged into one unit.
///
/// The loss of a unit is the sum of its rows' losses, so the weights add up and (P) is unchanged. Units are sorted, so
/// that what is computed from them does not depend on the order of the rows. A row that is repeated counts only by its
/// weight.
#[derive(Debug, Clone)]
pub struct Units {
    /// One row of each unit.
    pub representative: Vec<usize>,
    /// The unit of each row.
    pub of_row: Vec<usize>,
}

impl Units {
    /// Every row is its own unit.
    pub fn separate(n: usize) -> Self {
        Self { representative: (0..n).collect(), of_row: (0..n).collect() }
    }

    /// The units of these rows.
    pub(crate) fn of(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&i| self.of_row[i]).collect()
    }

    /// Finds equal rows that also have equal keys, by a hash of their bits, confirmed by comparison.
    pub(crate) fn merge<K: Iterator<Item = f64>>(
        x: &Rows,
        keys: impl Fn(usize) -> K + Sync,
        control: &Control,
    ) -> Result<Self> {
        use std::collections::HashMap;
        use std::hash::DefaultHasher;
        let n = x.nrows();
        let hash = |i: usize| {
            control.check()?;
            let mut hasher = DefaultHasher::new();
            for key in keys(i) {
                key.to_bits().hash(&mut hasher);
            }
            x.hash_row(i, &mut hasher);
            Ok(hasher.finish())
        };
        let hashes = parallel::map_numbers(n, HASHED_AT_ONCE, hash).into_iter().collect::<Result<Vec<u64>>>()?;
        let mut seen: HashMap<u64, Vec<usize>> = HashMap::with_capacity(n);
        let mut units = Self { representative: Vec::new(), of_row: Vec::with_capacity(n) };
        for (i, hash) in hashes.into_iter().enumerate() {
            control.check()?;
            let bucket = seen.entry(hash).or_default();
            let same = |&u: &usize| {
                let r = units.representative[u];
                keys(r).eq(keys(i)) && x.compare_rows(r, i).is_eq()
            };
            let unit = bucket.iter().copied().find(same).unwrap_or_else(|| {
                bucket.push(units.representative.len());
                units.representative.push(i);
                units.representative.len() - 1
            });
            units.of_row.push(unit);
        }
        units.sort(|i| keys(i).collect(), |a, b| x.compare_rows(a, b), control)?;
        Ok(units)
    }

    /// Sorts the units by their keys, so that the units of a class are neighbours, and then by their rows.
    fn sort(
        &mut self,
        keys: impl Fn(usize) -> Vec<f64>,
        compare: impl Fn(usize, usize) -> Ordering + Sync,
        control: &Control,
    ) -> Result<()> {
        let keys: Vec<Vec<f64>> = self.representative.iter().map(|&i| keys(i)).collect();
        let by_keys = |u: usize, v: usize| {
            let unequal = keys[u].iter().zip(&keys[v]).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
            unequal.unwrap_or(keys[u].len().cmp(&keys[v].len()))
        };
        let rows = &self.representative;
        let mut order: Vec<usize> = (0..self.len()).collect();
        sort_in_parts(&mut order, &|&u, &v| by_keys(u, v).then_with(|| compare(rows[u], rows[v])), control)?;
        let mut place = vec![0; self.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        self.representative = order.iter().map(|&u| self.representative[u]).collect();
        for unit in &mut self.of_row {
            *unit = place[*unit];
        }
        Ok(())
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.representative.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.representative.is_empty()
    }
}

/// Rows that a thread hashes at a time: a hash takes too little time to be handed out alone.
const HASHED_AT_ONCE: usize = 256;

/// Sorts on all threads, in parts between which an interruption is noticed. Two sorted halves are two runs, which the
/// sort of the whole only has to merge.
fn sort_in_parts<T: Send>(
    values: &mut [T],
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
    control: &Control,
) -> Result<()> {
    const PART: usize = 8192;
    control.check()?;
    if values.len() > PART {
        let (left, right) = values.split_at_mut(values.len() / 2);
        let (left, right) =
            rayon::join(|| sort_in_parts(left, compare, control), || sort_in_parts(right, compare, control));
        left.and(right)?;
        control.check()?;
    }
    values.sort_by(compare);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use faer::Mat;

    /// 30 000 rows of 300 kinds, in no order.
    fn repeated() -> Mat<f64> {
        Mat::from_fn(30_000, 2, |i, j| if j == 0 { (i * 7919 % 300) as f64 } else { 1.0 })
    }

    #[test]
    fn equal_rows_are_one_unit_and_units_are_sorted() {
        let x = repeated();
        let even = |i: usize| std::iter::once((x[(i, 0)] % 2.0).abs());
        let units = Units::merge(&Rows::F64(x.as_ref()), even, &Control::default()).unwrap();
        assert_eq!(units.len(), 300);
        for (i, &u) in units.of_row.iter().enumerate() {
            assert_eq!(x[(units.representative[u], 0)], x[(i, 0)]);
        }
        let order: Vec<f64> = units.representative.iter().map(|&i| x[(i, 0)]).collect();
        let expected: Vec<f64> = (0..300).step_by(2).chain((1..300).step_by(2)).map(f64::from).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn many_values_are_sorted_in_parts() {
        let mut values: Vec<usize> = (0..100_000).map(|i| i * 7919 % 100_003).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        sort_in_parts(&mut values, &usize::cmp, &Control::default()).unwrap();
        assert_eq!(values, expected);
    }

    #[test]
    fn an_interruption_is_heard_while_rows_are_compared() {
        let x = repeated();
        let control = Control::default();
        let cancel = |_| {
            control.cancel();
            std::iter::empty()
        };
        assert!(matches!(Units::merge(&Rows::F64(x.as_ref()), cancel, &control), Err(Error::Interrupted)));
        assert!(sort_in_parts(&mut [2, 1], &i32::cmp, &control).is_err());
    }
}
