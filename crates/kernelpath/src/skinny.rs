//! Products of a wide matrix with a few vectors, bound by how fast the matrix streams from memory: it is read once, in
//! the order it lies there, and nothing is packed.

use pulp::Simd;

use crate::gram::Entry;

/// Entries of a stretch of rows, so long that sums across lanes are rare and so short that the stretch of four rows
/// stays in the first cache.
const STRETCH: usize = 1024;

/// A number of which the machine multiplies several at once.
pub(crate) trait Lane: Entry {
    /// As many as it does.
    type Vector<S: Simd>: Copy;
    fn split<S: Simd>(values: &[Self]) -> (&[Self::Vector<S>], &[Self]);
    fn zero<S: Simd>(simd: S) -> Self::Vector<S>;
    /// ab + c.
    fn multiply_add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    fn sum<S: Simd>(simd: S, vector: Self::Vector<S>) -> Self;
}

macro_rules! lane {
    ($number:ty, $vector:ident, $split:ident, $splat:ident, $multiply_add:ident, $sum:ident) => {
        impl Lane for $number {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn split<S: Simd>(values: &[Self]) -> (&[S::$vector], &[Self]) {
                S::$split(values)
            }

            #[inline(always)]
            fn zero<S: Simd>(simd: S) -> S::$vector {
                simd.$splat(0.0)
            }

            #[inline(always)]
            fn multiply_add<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$multiply_add(a, b, c)
            }

            #[inline(always)]
            fn sum<S: Simd>(simd: S, vector: S::$vector) -> Self {
                simd.$sum(vector)
            }
        }
    };
}

lane!(f32, f32s, as_simd_f32s, splat_f32s, mul_add_e_f32s, reduce_sum_f32s);
lane!(f64, f64s, as_simd_f64s, splat_f64s, mul_add_e_f64s, reduce_sum_f64s);

/// AB for the `height` rows of n entries that lie `stride` apart in `a` and the columns of length n in `b`, column after
/// column.
pub(crate) fn product<T: Lane>(a: &[T], stride: usize, height: usize, b: &[T], n: usize) -> Vec<T> {
    let mut out = vec![T::default(); height * (b.len() / n.max(1))];
    pulp::Arch::new().dispatch(Product { a, stride, height, b, n, out: &mut out });
    out
}

/// Column `c` of products of `columns` columns that stand one below the other, piece by piece.
pub(crate) fn column<T>(tiles: &[Vec<T>], c: usize, columns: usize) -> impl Iterator<Item = &[T]> {
    tiles.iter().map(move |tile| {
        let height = tile.len() / columns;
        &tile[c * height..(c + 1) * height]
    })
}

struct Product<'a, T> {
    a: &'a [T],
    stride: usize,
    height: usize,
    b: &'a [T],
    n: usize,
    out: &'a mut [T],
}

impl<T: Lane> pulp::WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for start in (0..self.n).step_by(STRETCH) {
            let mut row = 0;
            while row + 4 <= self.height {
                self.rows::<S, 4>(simd, start, row);
                row += 4;
            }
            while row < self.height {
                self.rows::<S, 1>(simd, start, row);
                row += 1;
            }
        }
    }
}

impl<T: Lane> Product<'_, T> {
    /// The stretch from `start` of R rows with that of all columns, as many at a time as the registers hold.
    #[inline(always)]
    fn rows<S: Simd, const R: usize>(&mut self, simd: S, start: usize, row: usize) {
        let columns = self.b.len() / self.n;
        let mut column = 0;
        while column < columns {
            match columns - column {
                1 => {
                    self.tile::<S, R, 1>(simd, start, row, column);
                    column += 1;
                }
                2 | 4 => {
                    self.tile::<S, R, 2>(simd, start, row, column);
                    column += 2;
                }
                _ => {
                    self.tile::<S, R, 3>(simd, start, row, column);
                    column += 3;
                }
            }
        }
    }

    // No closures below: the compiler would leave them out of the functions that may use the machine's instructions.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const M: usize>(&mut self, simd: S, start: usize, row: usize, column: usize) {
        let end = self.n.min(start + STRETCH);
        let mut left: [&[T::Vector<S>]; R] = [&[]; R];
        let mut left_rest: [&[T]; R] = [&[]; R];
        let mut right: [&[T::Vector<S>]; M] = [&[]; M];
        let mut right_rest: [&[T]; M] = [&[]; M];
        for r in 0..R {
            let at = (row + r) * self.stride;
            (left[r], left_rest[r]) = T::split::<S>(&self.a[at + start..at + end]);
        }
        for c in 0..M {
            let at = (column + c) * self.n;
            (right[c], right_rest[c]) = T::split::<S>(&self.b[at + start..at + end]);
        }
        let whole = left[0].len();
        for left in &mut left {
            *left = &left[..whole];
        }
        for right in &mut right {
            *right = &right[..whole];
        }
        let mut sums = [[T::zero(simd); M]; R];
        for at in 0..whole {
            let mut values = [T::zero(simd); M];
            for c in 0..M {
                values[c] = right[c][at];
            }
            for r in 0..R {
                let value = left[r][at];
                for c in 0..M {
                    sums[r][c] = T::multiply_add(simd, value, values[c], sums[r][c]);
                }
            }
        }
        for r in 0..R {
            for c in 0..M {
                let mut sum = T::sum(simd, sums[r][c]).wide();
                for (a, b) in left_rest[r].iter().zip(right_rest[c]) {
                    sum += a.wide() * b.wide();
                }
                let out = &mut self.out[(column + c) * self.height + row + r];
                *out = T::narrow(out.wide() + sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_sums_of_products_for_all_shapes() {
        let mut rng = fastrand::Rng::with_seed(1);
        for (height, n, columns) in [(1, 1, 1), (3, 7, 2), (4, 16, 3), (5, 1030, 4), (9, 2049, 5), (6, 100, 11)] {
            let stride = n + 3;
            let a: Vec<f64> = (0..height * stride).map(|_| rng.f64() - 0.5).collect();
            let b: Vec<f64> = (0..columns * n).map(|_| rng.f64() - 0.5).collect();
            let got = product(&a, stride, height, &b, n);
            let single: Vec<f32> = product(
                &a.iter().map(|&v| v as f32).collect::<Vec<_>>(),
                stride,
                height,
                &b.iter().map(|&v| v as f32).collect::<Vec<_>>(),
                n,
            );
            for c in 0..columns {
                for r in 0..height {
                    let want: f64 = (0..n).map(|i| a[r * stride + i] * b[c * n + i]).sum();
                    assert!((got[c * height + r] - want).abs() < 1e-12);
                    assert!((f64::from(single[c * height + r]) - want).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn of_nothing_is_nothing() {
        assert_eq!(product::<f32>(&[], 1, 0, &[], 1), Vec::<f32>::new());
        assert_eq!(product::<f64>(&[1.0, 2.0], 1, 2, &[], 1), Vec::<f64>::new());
    }
}
