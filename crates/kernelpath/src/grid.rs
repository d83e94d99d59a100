//! The values of C of a fit: each solved once, however often it is given, all of a size whose products are numbers, and
//! those on the way between two that are far apart.

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernel::KernelFn;

/// The distinct values of C, in the order in which they first appear.
pub(crate) struct Distinct {
    pub cs: Vec<f64>,
    /// For each value given, its place among the distinct ones.
    place: Vec<usize>,
}

impl Distinct {
    pub fn of(cs: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..cs.len()).collect();
        order.sort_by(|&a, &b| cs[a].total_cmp(&cs[b]).then(a.cmp(&b)));
        // Of each value given, where an equal one stands for the first time.
        let mut first = vec![0; cs.len()];
        for equal in order.chunk_by(|&a, &b| cs[a] == cs[b]) {
            for &k in equal {
                first[k] = equal[0];
            }
        }
        let mut place = vec![0; cs.len()];
        let mut distinct = Vec::with_capacity(cs.len());
        for k in 0..cs.len() {
            if first[k] == k {
                place[k] = distinct.len();
                distinct.push(cs[k]);
            } else {
                place[k] = place[first[k]];
            }
        }
        Self { cs: distinct, place }
    }

    /// One value for each C given, from one for each distinct C.
    pub fn spread<V: Clone>(&self, values: &[V]) -> Vec<V> {
        self.place.iter().map(|&at| values[at].clone()).collect()
    }

    /// The same for each fold.
    pub fn spread_folds<V: Clone>(&self, folds: &[Vec<V>]) -> Vec<Vec<V>> {
        folds.iter().map(|of_fold| self.spread(of_fold)).collect()
    }

    /// An error about a distinct C, as one about the C given.
    fn restored(&self, error: Error) -> Error {
        match error {
            Error::ExtremeC { value, index, weight, low, high } => {
                let index = self.place.iter().position(|&at| at == index).unwrap_or(index);
                Error::ExtremeC { value, index, weight, low, high }
            }
            other => other,
        }
    }
}

/// Results that hold something for each C.
pub(crate) trait OfEachC {
    /// The same for all values given, equal ones with equal results.
    fn spread(self, distinct: &Distinct) -> Self;
}

impl<F: OfEachC> OfEachC for Vec<F> {
    fn spread(self, distinct: &Distinct) -> Self {
        self.into_iter().map(|fit| fit.spread(distinct)).collect()
    }
}

/// Fits every distinct C once: `fit` gets them if some of `cs` are repeated, and `None` if `cs` are distinct as they are.
pub(crate) fn each_once<F: OfEachC>(cs: &[f64], fit: impl Fn(Option<&[f64]>) -> Result<F>) -> Result<F> {
    let distinct = Distinct::of(cs);
    if distinct.cs.len() == cs.len() {
        return fit(None);
    }
    Ok(fit(Some(&distinct.cs)).map_err(|error| distinct.restored(error))?.spread(&distinct))
}

/// `to`, and before it C's of equal ratios after `from`, so that no ratio is larger than `longest`; at most 100 of them.
pub(crate) fn leaps(from: f64, to: f64, longest: f64) -> impl Iterator<Item = f64> {
    // (The ratio of the largest and the smallest double would not be a number.)
    let distance = to.ln() - from.ln();
    let parts = (distance / longest.ln()).ceil().clamp(1.0, 100.0);
    let between = move |part: usize| (from.ln() + distance * part as f64 / parts).exp();
    // Rounding must not make a value of either end.
    (1..parts as usize).map(between).filter(move |c| from < *c && *c < to).chain([to])
}

/// The largest k(x, x), and 0 for a matrix that is not square.
pub(crate) fn largest_diagonal(x: &Rows, kernel: &KernelFn) -> f64 {
    if kernel.shape.is_shift_invariant() {
        return 1.0;
    }
    let rows = if kernel.shape == crate::kernel::Shape::Precomputed { x.nrows().min(x.ncols()) } else { x.nrows() };
    (0..rows).map(|i| kernel.diagonal(x, i).abs()).fold(0.0, f64::max)
}

/// How much larger sums of products may be than those that are compared with the largest double.
const MARGIN: f64 = 16.0;

/// What the objective of a machine is made of.
pub(crate) struct Scales {
    /// The largest slope |L′| and the largest value of the loss that the constant model gives any target.
    pub slope: f64,
    pub value: f64,
    /// max k(x, x).
    pub diagonal: f64,
}

/// Refuses C's for which the objective is no number: with a = C·w·|L′|, neither C·w·L nor a²·K may leave the range of
/// normal doubles, for the smallest weight > 0 and for the sum of all.
pub(crate) fn check_products(cs: &[f64], weights: impl Iterator<Item = f64>, scales: &Scales) -> Result<()> {
    let (mut smallest, mut total) = (f64::INFINITY, 0.0);
    for weight in weights.filter(|w| *w > 0.0) {
        smallest = weight.min(smallest);
        total += weight;
    }
    let positive = |value: f64| if value > 0.0 { value } else { 1.0 };
    let (slope, value) = (positive(scales.slope), positive(scales.value));
    // (Kernel values that are no numbers have an error of their own, which names the rows.)
    let diagonal = if scales.diagonal.is_finite() { positive(scales.diagonal) } else { 1.0 };
    let low = ((f64::MIN_POSITIVE.sqrt() / diagonal.sqrt()) / slope).max(f64::MIN_POSITIVE / value) / smallest;
    let largest = (f64::MAX / MARGIN).sqrt() / diagonal.sqrt().max(1.0);
    let high = (largest / slope).min(f64::MAX / MARGIN / value) / total;
    match cs.iter().position(|c| !(low <= *c && *c <= high)) {
        None => Ok(()),
        Some(index) => {
            let weight = if cs[index] < low { smallest } else { total };
            Err(Error::ExtremeC { value: cs[index], index, weight, low, high })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_place() {
        let distinct = Distinct::of(&[3.0, 1.0, 3.0, 2.0, 1.0]);
        assert_eq!(distinct.cs, [3.0, 1.0, 2.0]);
        assert_eq!(distinct.spread(&["three", "one", "two"]), ["three", "one", "three", "two", "one"]);
        let close = [1.0, 1.0_f64.next_up(), 1.0];
        assert_eq!(Distinct::of(&close).cs, close[..2]);
    }

    #[test]
    fn leaps_rise_strictly_and_are_short() {
        for (from, to) in [(1.0, 8.0), (1.0, 64.0), (1.0, 65.0), (1e-3, 1e3), (1.0, 1.0_f64.next_up()), (1.0, 0.1)] {
            let cs: Vec<f64> = leaps(from, to, 8.0).collect();
            assert_eq!(cs.last(), Some(&to));
            assert!(cs.windows(2).all(|pair| pair[0] < pair[1]), "{from} to {to}: {cs:?}");
            assert!(to < from || cs[0] > from && cs[0] <= 8.0 * from * (1.0 + 1e-12), "{from} to {to}: {cs:?}");
            assert!(cs.windows(2).all(|pair| pair[1] <= 8.0 * pair[0] * (1.0 + 1e-12)), "{from} to {to}: {cs:?}");
        }
        assert!(leaps(f64::MIN_POSITIVE, f64::MAX, 8.0).all(f64::is_finite));
    }

    #[test]
    fn products_beyond_doubles_are_refused() {
        let scales = Scales { slope: 1.0, value: 2.0, diagonal: 1.0 };
        let check = |c: f64, w: [f64; 3]| check_products(&[1.0, c], w.into_iter(), &scales);
        for c in [1e-150, 1e-8, 1e8, 1e150] {
            assert_eq!(check(c, [1.0; 3]), Ok(()), "{c}");
        }
        assert_eq!(check(1e-8, [1e-12, 0.0, 1.0]), Ok(()));
        for (c, weight) in [(1e-310, 1.0), (1e-170, 1.0), (1e308, 3.0), (1e170, 3.0)] {
            match check(c, [1.0; 3]) {
                Err(Error::ExtremeC { value, index: 1, weight: found, low, high }) => {
                    assert_eq!((value, found), (c, weight));
                    assert!(check(low, [1.0; 3]).is_ok() && check(high, [1.0; 3]).is_ok());
                }
                other => panic!("{c}: {other:?}"),
            }
        }
    }
}
