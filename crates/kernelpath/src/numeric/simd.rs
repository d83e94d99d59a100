//! Run-time SIMD: the loops inside are compiled once for every instruction set, and the best one that the machine has
//! is chosen when they run.

use std::ops::{Add, Mul};

use crate::numeric::entry::Entry;

/// Runs `work` compiled for the best instruction set of this machine.
///
/// `work` and what it calls must be `#[inline(always)]` for its loops to become SIMD.
#[inline]
pub(crate) fn vectorise<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(Closure(work))
}

struct Closure<F>(F);

impl<R, F: FnOnce() -> R> pulp::WithSimd for Closure<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> R {
        (self.0)()
    }
}

/// aᵀb, summed in lanes. If one is longer, its excess does not count.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    vectorise(
        #[inline(always)]
        || dot_in_lanes(&a[..n], &b[..n]),
    )
}

/// aᵀb in the precision of `b`, summed in lanes; for use inside [`vectorise`].
#[inline(always)]
pub(crate) fn dot_in_lanes<T: Entry, R: Entry + Add<Output = R> + Mul<Output = R>>(a: &[T], b: &[R]) -> R {
    let mut lanes = [R::default(); LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    // By position: the `next` of two zipped iterators is not always inlined, and then the loop does not become SIMD.
    for k in 0..a.len().min(b.len()) {
        let (a, b) = (&a[k], &b[k]);
        for l in 0..LANES {
            lanes[l] = lanes[l] + R::narrow(a[l].wide()) * b[l];
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| R::narrow(a.wide()) * *b);
    lanes.into_iter().chain(rest).fold(R::default(), |sum, value| sum + value)
}

/// Σv and Σ|v|.
pub(crate) fn sums(values: &[f64]) -> (f64, f64) {
    let [sum, size] = sum_of_rows(
        [values],
        #[inline(always)]
        |[v]| [v, v.abs()],
    );
    (sum, size)
}

/// The number in [lo, hi] nearest to x. A NaN stays NaN, so that it shows. A bound that is NaN is ignored (`f64::clamp`
/// would panic).
#[inline(always)]
pub(crate) fn within(x: f64, lo: f64, hi: f64) -> f64 {
    let above = if x < lo { lo } else { x };
    if above > hi { hi } else { above }
}

/// max |v|; 0 if there are no values. NaN does not count.
pub(crate) fn largest(values: &[f64]) -> f64 {
    vectorise(
        #[inline(always)]
        || {
            let mut lanes = [0.0; TERMS_AT_ONCE];
            let (blocks, rest) = values.as_chunks::<TERMS_AT_ONCE>();
            for block in blocks {
                for l in 0..TERMS_AT_ONCE {
                    lanes[l] = if block[l].abs() > lanes[l] { block[l].abs() } else { lanes[l] };
                }
            }
            lanes.iter().chain(rest).fold(0.0, |a, v| if v.abs() > a { v.abs() } else { a })
        },
    )
}

/// Sums of `term` over the rows of `columns`, in a fixed order that SIMD can follow; for use inside [`vectorise`], with
/// an `#[inline(always)]` term. The first column says how many rows there are.
#[inline(always)]
pub(crate) fn sum_in_lanes<const N: usize, const K: usize>(
    columns: [&[f64]; N],
    term: impl Fn([f64; N]) -> [f64; K],
) -> [f64; K] {
    let mut lanes = [[0.0; LANES]; K];
    for_each_block(
        columns,
        #[inline(always)]
        |_, count, rows| add_terms(rows, count, &term, &mut lanes),
    );
    lanes.map(|lanes| lanes.iter().sum())
}

/// [`sum_in_lanes`] for use outside [`vectorise`].
#[inline]
pub(crate) fn sum_of_rows<const N: usize, const K: usize>(
    columns: [&[f64]; N],
    term: impl Fn([f64; N]) -> [f64; K],
) -> [f64; K] {
    vectorise(
        #[inline(always)]
        || sum_in_lanes(columns, term),
    )
}

/// Writes what `of` returns for the numbers of each row; for use inside [`vectorise`], with an `#[inline(always)]`
/// function. The first column says how many rows there are.
#[inline(always)]
pub(crate) fn fill_in_lanes<const N: usize, const K: usize>(
    columns: [&[f64]; N],
    mut out: [&mut [f64]; K],
    of: impl Fn([f64; N]) -> [f64; K],
) {
    for_each_block(
        columns,
        #[inline(always)]
        |start, count, rows| {
            let results = block_of(rows, &of);
            for (out, results) in out.iter_mut().zip(&results) {
                match out[start..].first_chunk_mut() {
                    Some(whole) if count == TERMS_AT_ONCE => *whole = *results,
                    _ => out[start..start + count].copy_from_slice(&results[..count]),
                }
            }
        },
    );
}

/// [`fill_in_lanes`] for use outside [`vectorise`].
#[inline]
pub(crate) fn fill_rows<const N: usize, const K: usize>(
    columns: [&[f64]; N],
    out: [&mut [f64]; K],
    of: impl Fn([f64; N]) -> [f64; K],
) {
    vectorise(
        #[inline(always)]
        || fill_in_lanes(columns, out, of),
    );
}

/// The largest of `term` over the rows of `columns`, −∞ if there are none; NaN does not count. The term must be
/// `#[inline(always)]`. The first column says how many rows there are.
#[inline]
pub(crate) fn largest_of_rows<const N: usize, const K: usize>(
    columns: [&[f64]; N],
    term: impl Fn([f64; N]) -> [f64; K],
) -> [f64; K] {
    let mut lanes = [[f64::NEG_INFINITY; LANES]; K];
    vectorise(
        #[inline(always)]
        || {
            for_each_block(
                columns,
                #[inline(always)]
                |_, count, rows| {
                    let mut terms = block_of(rows, &term);
                    for (lanes, terms) in lanes.iter_mut().zip(&mut terms) {
                        terms[count..].fill(f64::NEG_INFINITY);
                        for part in terms.as_chunks::<LANES>().0 {
                            for l in 0..LANES {
                                lanes[l] = if part[l] > lanes[l] { part[l] } else { lanes[l] };
                            }
                        }
                    }
                },
            );
        },
    );
    lanes.map(|lanes| lanes.into_iter().fold(f64::NEG_INFINITY, f64::max))
}

/// Calls `work` with every block of rows: where the block starts, how many of its rows exist, and their numbers, which
/// are 0 past the end. The first column says how many rows there are in all.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // indexes all columns at once
fn for_each_block<const N: usize>(
    columns: [&[f64]; N],
    mut work: impl FnMut(usize, usize, [&[f64; TERMS_AT_ONCE]; N]),
) {
    let n = columns[0].len();
    let mut blocks = [[[0.0; TERMS_AT_ONCE]; 0].as_slice(); N];
    let mut last = [[0.0; TERMS_AT_ONCE]; N];
    for k in 0..N {
        let (whole, rest) = columns[k][..n].as_chunks::<TERMS_AT_ONCE>();
        blocks[k] = whole;
        last[k][..rest.len()].copy_from_slice(rest);
    }
    for at in 0..n / TERMS_AT_ONCE {
        let mut rows = [&last[0]; N];
        for k in 0..N {
            rows[k] = &blocks[k][at];
        }
        work(at * TERMS_AT_ONCE, TERMS_AT_ONCE, rows);
    }
    let mut rows = [&last[0]; N];
    for k in 0..N {
        rows[k] = &last[k];
    }
    work(n - n % TERMS_AT_ONCE, n % TERMS_AT_ONCE, rows);
}

const LANES: usize = 16;

/// Rows whose terms are computed at a time, in arrays of fixed length: a loop that checked each row would not become
/// SIMD.
const TERMS_AT_ONCE: usize = 4 * LANES;

/// What a function returns for the rows of a block.
#[inline(always)]
fn block_of<const N: usize, const K: usize>(
    rows: [&[f64; TERMS_AT_ONCE]; N],
    of: &impl Fn([f64; N]) -> [f64; K],
) -> [[f64; TERMS_AT_ONCE]; K] {
    let mut results = [[0.0; TERMS_AT_ONCE]; K];
    for l in 0..TERMS_AT_ONCE {
        let mut row = [0.0; N];
        for k in 0..N {
            row[k] = rows[k][l];
        }
        let result = of(row);
        for k in 0..K {
            results[k][l] = result[k];
        }
    }
    results
}

/// Adds the terms of the first `count` rows of a block.
#[inline(always)]
fn add_terms<const N: usize, const K: usize>(
    rows: [&[f64; TERMS_AT_ONCE]; N],
    count: usize,
    term: &impl Fn([f64; N]) -> [f64; K],
    lanes: &mut [[f64; LANES]; K],
) {
    let mut terms = block_of(rows, term);
    for (lanes, terms) in lanes.iter_mut().zip(&mut terms) {
        terms[count..].fill(0.0);
        for part in terms.as_chunks::<LANES>().0 {
            for l in 0..LANES {
                lanes[l] += part[l];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_maxima_are_those_of_a_loop() {
        for n in [0, 1, TERMS_AT_ONCE - 1, TERMS_AT_ONCE, 3 * TERMS_AT_ONCE + 5] {
            let values: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin() * i as f64).collect();
            let (sum, size) = sums(&values);
            assert!((sum - values.iter().sum::<f64>()).abs() <= 1e-12 * size);
            assert!((size - values.iter().map(|v| v.abs()).sum::<f64>()).abs() <= 1e-12 * size);
            assert_eq!(largest(&values), values.iter().fold(0.0, |a: f64, v| a.max(v.abs())));
        }
        assert_eq!(largest(&[f64::NAN, -2.0, 1.0]), 2.0);
    }

    #[test]
    fn sums_count_every_row_once() {
        for n in [0, 1, LANES, TERMS_AT_ONCE - 1, TERMS_AT_ONCE, TERMS_AT_ONCE + 1, 5 * TERMS_AT_ONCE + 7] {
            let a: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let longer: Vec<f64> = (0..n + 9).map(|i| 1.0 + (i % 3) as f64).collect();
            // The second term is infinite at 0, which is what fills the last block.
            let [sum, inverse] = vectorise(|| sum_in_lanes([&a, &longer], |[a, b]| [a * b, 1.0 / b]));
            let expected: f64 = a.iter().zip(&longer).map(|(a, b)| a * b).sum();
            let inverses: f64 = longer[..n].iter().map(|b| 1.0 / b).sum();
            assert_eq!(sum, expected, "{n}");
            assert!((inverse - inverses).abs() < 1e-9, "{n}");
        }
    }

    #[test]
    fn every_row_is_filled() {
        for n in [0, 1, TERMS_AT_ONCE - 1, TERMS_AT_ONCE, 2 * TERMS_AT_ONCE + 3] {
            let a: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let (mut double, mut square) = (vec![-1.0; n], vec![-1.0; n]);
            vectorise(|| fill_in_lanes([&a, &a], [&mut double, &mut square], |[a, b]| [a + b, a * b]));
            assert!((0..n).all(|i| double[i] == 2.0 * a[i] && square[i] == a[i] * a[i]), "{n}");
        }
    }

    #[test]
    fn a_dot_product_has_all_terms() {
        for n in [0, 1, LANES, LANES + 1, 100] {
            let a: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let expected = (n * n.saturating_sub(1)) as f64;
            assert_eq!(dot(&a, &vec![2.0; n]), expected);
            assert_eq!(dot(&a, &vec![2.0; n + LANES]), expected);
        }
    }
}
