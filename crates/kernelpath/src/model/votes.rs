//! Several classes by machines of two, one against one.

use crate::error::{Error, Result};
use crate::numeric::simd::vectorise;

/// Rows that are worked on at a time: their sums for all classes stay in the first cache.
const VOTES_AT_ONCE: usize = 64;

/// Combines machines that each tell two classes apart into a value for each row and class, row after row. `values[m]`
/// are the values of a machine, positive for class `pairs[m].0` and negative for class `pairs[m].1`. The class with the
/// largest value is the prediction of a row.
///
/// The value of a class is the number of machines that vote for it, plus the sum of its machines' values for it,
/// squeezed into (−1/3, 1/3), which decides between equal numbers. A NaN of a machine makes the values of both its
/// classes NaN.
///
/// ```
/// // Two machines for class 0, one of them only just; and one for class 2 against 1.
/// let decision = kernelpath::votes(&[&[0.5], &[0.1], &[-3.0]], &[(0, 1), (0, 2), (1, 2)], 3)?;
/// assert!(decision[0] > decision[2] && decision[2] > decision[1]);
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub fn votes(values: &[&[f64]], pairs: &[(usize, usize)], classes: usize) -> Result<Vec<f64>> {
    let n = values.first().map_or(0, |values| values.len());
    if values.len() != pairs.len() {
        let why = "one column of values a machine";
        return Err(Error::Length { what: "the values", got: values.len(), expected: pairs.len(), why });
    }
    if let Some(other) = values.iter().find(|values| values.len() != n) {
        let why = "all machines have a value for each row";
        return Err(Error::Length { what: "the values of a machine", got: other.len(), expected: n, why });
    }
    if let Some((first, second)) = pairs.iter().find(|(first, second)| *first.max(second) >= classes) {
        let expected = "below the number of classes";
        return Err(Error::Parameter { name: "pairs", expected, value: *first.max(second) as f64 });
    }
    let mut decision = vec![0.0; n * classes];
    let (mut count, mut sum) = (vec![[0.0; VOTES_AT_ONCE]; classes], vec![[0.0; VOTES_AT_ONCE]; classes]);
    for (block, decision) in decision.chunks_mut(VOTES_AT_ONCE * classes.max(1)).enumerate() {
        count.fill([0.0; VOTES_AT_ONCE]);
        sum.fill([0.0; VOTES_AT_ONCE]);
        let rows = decision.len() / classes;
        vectorise(
            #[inline(always)]
            || {
                for (values, &(first, second)) in values.iter().zip(pairs) {
                    let mut own = [0.0; VOTES_AT_ONCE];
                    match values[block * VOTES_AT_ONCE..].first_chunk() {
                        Some(whole) => own = *whole,
                        None => own[..rows].copy_from_slice(&values[block * VOTES_AT_ONCE..]),
                    }
                    let (counts, sums) = (&mut count[first], &mut sum[first]);
                    for l in 0..VOTES_AT_ONCE {
                        counts[l] += if own[l] > 0.0 { 1.0 } else { 0.0 };
                        sums[l] += own[l];
                    }
                    let (counts, sums) = (&mut count[second], &mut sum[second]);
                    for l in 0..VOTES_AT_ONCE {
                        counts[l] += if own[l] > 0.0 { 0.0 } else { 1.0 };
                        sums[l] -= own[l];
                    }
                }
            },
        );
        for (row, decision) in decision.chunks_exact_mut(classes).enumerate() {
            for ((decision, count), sum) in decision.iter_mut().zip(&count).zip(&sum) {
                *decision = count[row] + sum[row] / (3.0 * (sum[row].abs() + 1.0));
            }
        }
    }
    Ok(decision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_machines_and_break_ties_by_their_values() {
        // Each class wins once, and one row was not run. There are more rows than a block has.
        let pairs = [(0, 1), (0, 2), (1, 2)];
        let [mut a, mut b, mut c] = [vec![0.5; 100], vec![-2.0; 100], vec![1.0; 100]];
        (a[7], b[7], c[7]) = (f64::NAN, 1.0, 1.0);
        (a[99], b[99], c[99]) = (-1.0, -1.0, 0.0);
        let decision = votes(&[&a, &b, &c], &pairs, 3).unwrap();
        let squeezed = |sum: f64| sum / (3.0 * (sum.abs() + 1.0));
        assert_eq!(decision.len(), 300);
        assert_eq!(decision[..3], [1.0 + squeezed(-1.5), 1.0 + squeezed(0.5), 1.0 + squeezed(1.0)]);
        assert!(decision[21].is_nan() && decision[22].is_nan() && !decision[23].is_nan());
        assert_eq!(decision[297..], [squeezed(-2.0), 1.0 + squeezed(1.0), 2.0 + squeezed(1.0)]);
        assert!(votes(&[], &[], 3).unwrap().is_empty());
        assert!(votes(&[&a, &b], &pairs, 3).is_err());
        assert!(votes(&[&a, &b, &c[1..]], &pairs, 3).is_err());
        assert!(votes(&[&a, &b, &c], &pairs, 2).is_err());
    }
}
