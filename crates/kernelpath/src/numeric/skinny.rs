//! Products of a wide matrix with a few vectors. Their speed is bound by how fast the matrix streams from memory, so it
//! is read once, in the order in which it is stored, and nothing is packed.

use pulp::Simd;
use std::ops::Range;

use crate::numeric::entry::Entry;

/// Most vectors that count as few: with more, packing the matrix pays.
pub(crate) const FEW: usize = 24;

/// Entries of a row that are worked on at a time: so long a stretch that sums across lanes are rare, and so short that
/// the stretches of four rows stay in the first cache.
const STRETCH: usize = 1024;

/// Rows that are worked on at a time: their stretches stay in the second cache.
const SKINNY_ROWS: usize = 64;

/// A number type of which the machine multiplies several at once.
pub(crate) trait Lane: Entry {
    /// The numbers that one instruction multiplies.
    type Vector<S: Simd>: Copy;
    fn split<S: Simd>(values: &[Self]) -> (&[Self::Vector<S>], &[Self]);
    fn split_mut<S: Simd>(values: &mut [Self]) -> (&mut [Self::Vector<S>], &mut [Self]);
    fn all<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// A vector that begins with `values`, fewer than it holds, and is zero in the rest.
    fn some<S: Simd>(simd: S, values: &[Self]) -> Self::Vector<S>;
    fn store_some<S: Simd>(simd: S, values: &mut [Self], vector: Self::Vector<S>);
    /// ab + c.
    fn multiply_add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    fn sum<S: Simd>(simd: S, vector: Self::Vector<S>) -> Self;
}

macro_rules! lane {
    ($number:ty, $vector:ident, $split:ident, $split_mut:ident, $splat:ident, $some:ident, $store:ident, $multiply_add:ident, $sum:ident) => {
        impl Lane for $number {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn split<S: Simd>(values: &[Self]) -> (&[S::$vector], &[Self]) {
                S::$split(values)
            }

            #[inline(always)]
            fn split_mut<S: Simd>(values: &mut [Self]) -> (&mut [S::$vector], &mut [Self]) {
                S::$split_mut(values)
            }

            #[inline(always)]
            fn all<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }

            #[inline(always)]
            fn some<S: Simd>(simd: S, values: &[Self]) -> S::$vector {
                simd.$some(values)
            }

            #[inline(always)]
            fn store_some<S: Simd>(simd: S, values: &mut [Self], vector: S::$vector) {
                simd.$store(values, vector);
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

lane!(
    f32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    partial_load_f32s,
    partial_store_f32s,
    mul_add_e_f32s,
    reduce_sum_f32s
);

lane!(
    f64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    partial_load_f64s,
    partial_store_f64s,
    mul_add_e_f64s,
    reduce_sum_f64s
);

/// AB, column after column. The `height` rows of A have n entries each and lie `stride` apart in `a`; the columns of B
/// have length n.
pub(crate) fn product<T: Lane>(a: &[T], stride: usize, height: usize, b: &[T], n: usize) -> Vec<T> {
    product_of(a, stride, height, b, n, 0..n)
}

/// The same product, but only of these columns of A and the same rows of B.
pub(crate) fn product_of<T: Lane>(
    a: &[T],
    stride: usize,
    height: usize,
    b: &[T],
    n: usize,
    columns: Range<usize>,
) -> Vec<T> {
    let mut out = vec![T::default(); height * (b.len() / n.max(1))];
    pulp::Arch::new().dispatch(Product { a, stride, height, b, n, columns, out: &mut out });
    out
}

/// What some rows of a symmetric matrix A add to AB: the `height` rows from row `start` on, the first of which begins
/// at `a`. Entries right of the diagonal block are read once and serve twice: in their own rows, and mirrored, in the
/// rows below. Returns what is added to these rows, and what is added to the rows below.
pub(crate) fn symmetric<T: Lane>(
    a: &[T],
    stride: usize,
    start: usize,
    height: usize,
    b: &[T],
    n: usize,
) -> (Vec<T>, Vec<T>) {
    let (columns, end) = (b.len() / n.max(1), start + height);
    let (mut out, mut below) = (vec![T::default(); height * columns], vec![T::default(); (n - end) * columns]);
    let arch = pulp::Arch::new();
    arch.dispatch(Product { a, stride, height, b, n, columns: start..end, out: &mut out });
    let columns = end..n;
    arch.dispatch(Mirrored::<_, true> {
        a,
        stride,
        columns,
        first: start,
        height,
        b,
        n,
        out: &mut out,
        below: &mut below,
    });
    (out, below)
}

/// What `height` rows of A, with `width` entries each, add to AᵀB. `first` is the row of B that belongs to the first of
/// these rows.
pub(crate) fn transposed<T: Lane>(a: &[T], width: usize, height: usize, first: usize, b: &[T], n: usize) -> Vec<T> {
    let mut below = vec![T::default(); width * (b.len() / n.max(1))];
    let (stride, columns) = (width, 0..width);
    pulp::Arch::new().dispatch(Mirrored::<_, false> {
        a,
        stride,
        columns,
        first,
        height,
        b,
        n,
        out: &mut [],
        below: &mut below,
    });
    below
}

/// Column `c` of a product with `columns` columns, whose tiles stand one below the other: the piece of each tile in
/// turn.
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
    /// The columns of A that take part.
    columns: Range<usize>,
    out: &'a mut [T],
}

impl<T: Lane> pulp::WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let columns = self.b.len() / self.n.max(1);
        // Registers hold 4·M sums, M entries of B and one of A.
        let most = if S::REGISTER_COUNT >= 32 { 4 } else { 3 };
        for start in self.columns.clone().step_by(STRETCH) {
            for block in (0..self.height).step_by(SKINNY_ROWS) {
                let mut column = 0;
                while column < columns {
                    let width = width(columns - column, most);
                    match width {
                        1 => self.rows::<S, 1>(simd, start, block, column),
                        2 => self.rows::<S, 2>(simd, start, block, column),
                        3 => self.rows::<S, 3>(simd, start, block, column),
                        _ => self.rows::<S, 4>(simd, start, block, column),
                    }
                    column += width;
                }
            }
        }
    }
}

/// How many of the `left` columns are taken at once: `most` of them, but the last ones in two parts of about the same
/// width.
#[inline(always)]
fn width(left: usize, most: usize) -> usize {
    if left > most && left < 2 * most { left.div_ceil(2) } else { left.min(most) }
}

impl<T: Lane> Product<'_, T> {
    /// Multiplies the stretch from `start` on of a block of rows with the same stretch of M columns, four rows at a
    /// time.
    #[inline(always)]
    fn rows<S: Simd, const M: usize>(&mut self, simd: S, start: usize, block: usize, column: usize) {
        let (mut row, end) = (block, self.height.min(block + SKINNY_ROWS));
        while row + 4 <= end {
            self.tile::<S, 4, M>(simd, start, row, column);
            row += 4;
        }
        while row < end {
            self.tile::<S, 1, M>(simd, start, row, column);
            row += 1;
        }
    }

    // No closures below: the compiler would keep them apart from the functions that may use the machine's vector
    // instructions.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // sums and entries side by side, in registers
    fn tile<S: Simd, const R: usize, const M: usize>(&mut self, simd: S, start: usize, row: usize, column: usize) {
        let end = self.columns.end.min(start + STRETCH);
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
        let mut sums = [[T::all(simd, T::default()); M]; R];
        for at in 0..whole {
            let mut values = [T::all(simd, T::default()); M];
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
        if !left_rest[0].is_empty() {
            for r in 0..R {
                let value = T::some(simd, left_rest[r]);
                for c in 0..M {
                    sums[r][c] = T::multiply_add(simd, value, T::some(simd, right_rest[c]), sums[r][c]);
                }
            }
        }
        for r in 0..R {
            for c in 0..M {
                let out = &mut self.out[(column + c) * self.height + row + r];
                *out = T::narrow(out.wide() + T::sum(simd, sums[r][c]).wide());
            }
        }
    }
}

/// The product of some columns of A, transposed, with B; if BOTH, the product without the transpose, too.
struct Mirrored<'a, T, const BOTH: bool> {
    a: &'a [T],
    stride: usize,
    columns: Range<usize>,
    /// The row of B that belongs to the first row of A.
    first: usize,
    height: usize,
    b: &'a [T],
    n: usize,
    out: &'a mut [T],
    below: &'a mut [T],
}

impl<T: Lane, const BOTH: bool> pulp::WithSimd for Mirrored<'_, T, BOTH> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let columns = self.b.len() / self.n.max(1);
        // Registers hold R·M sums, R·M entries of B and R of A.
        let most = if S::REGISTER_COUNT >= 32 { 3 } else { 1 };
        for stretch in self.columns.clone().step_by(STRETCH) {
            for block in (0..self.height).step_by(SKINNY_ROWS) {
                let mut column = 0;
                while column < columns {
                    let width = width(columns - column, most);
                    match width {
                        1 => self.rows::<S, 1>(simd, stretch, block, column),
                        2 => self.rows::<S, 2>(simd, stretch, block, column),
                        _ => self.rows::<S, 3>(simd, stretch, block, column),
                    }
                    column += width;
                }
            }
        }
    }
}

impl<T: Lane, const BOTH: bool> Mirrored<'_, T, BOTH> {
    #[inline(always)]
    fn rows<S: Simd, const M: usize>(&mut self, simd: S, stretch: usize, block: usize, column: usize) {
        let (mut row, end) = (block, self.height.min(block + SKINNY_ROWS));
        while row + 4 <= end {
            self.tile::<S, 4, M>(simd, stretch, row, column);
            row += 4;
        }
        while row < end {
            self.tile::<S, 1, M>(simd, stretch, row, column);
            row += 1;
        }
    }

    // No closures below, for the same reason as above.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // sums and entries side by side, in registers
    fn tile<S: Simd, const R: usize, const M: usize>(&mut self, simd: S, stretch: usize, row: usize, column: usize) {
        let (end, top) = (self.columns.end.min(stretch + STRETCH), self.columns.start);
        let depth = self.columns.len();
        let mut left: [&[T::Vector<S>]; R] = [&[]; R];
        let mut left_rest: [&[T]; R] = [&[]; R];
        let mut right: [&[T::Vector<S>]; M] = [&[]; M];
        let mut right_rest: [&[T]; M] = [&[]; M];
        let mut below: [&mut [T::Vector<S>]; M] = std::array::from_fn(|_| Default::default());
        let mut below_rest: [&mut [T]; M] = std::array::from_fn(|_| Default::default());
        let mut factors = [[T::all(simd, T::default()); M]; R];
        for r in 0..R {
            let at = (row + r) * self.stride;
            (left[r], left_rest[r]) = T::split::<S>(&self.a[at + stretch..at + end]);
        }
        let mut rest = &mut self.below[column * depth..];
        for c in 0..M {
            let at = (column + c) * self.n;
            if BOTH {
                (right[c], right_rest[c]) = T::split::<S>(&self.b[at + stretch..at + end]);
            }
            let (first, others) = rest.split_at_mut(depth);
            rest = others;
            (below[c], below_rest[c]) = T::split_mut::<S>(&mut first[stretch - top..end - top]);
            for r in 0..R {
                factors[r][c] = T::all(simd, self.b[at + self.first + row + r]);
            }
        }
        let whole = left[0].len();
        for left in &mut left {
            *left = &left[..whole];
        }
        for c in 0..M {
            if BOTH {
                right[c] = &right[c][..whole];
            }
            below[c] = &mut std::mem::take(&mut below[c])[..whole];
        }
        let mut sums = [[T::all(simd, T::default()); M]; R];
        for at in 0..whole {
            let mut values = [T::all(simd, T::default()); R];
            for r in 0..R {
                values[r] = left[r][at];
            }
            for c in 0..M {
                let mut sum = below[c][at];
                for r in 0..R {
                    if BOTH {
                        sums[r][c] = T::multiply_add(simd, values[r], right[c][at], sums[r][c]);
                    }
                    sum = T::multiply_add(simd, values[r], factors[r][c], sum);
                }
                below[c][at] = sum;
            }
        }
        if !left_rest[0].is_empty() {
            let mut values = [T::all(simd, T::default()); R];
            for r in 0..R {
                values[r] = T::some(simd, left_rest[r]);
            }
            for c in 0..M {
                let mut sum = T::some(simd, below_rest[c]);
                for r in 0..R {
                    if BOTH {
                        sums[r][c] = T::multiply_add(simd, values[r], T::some(simd, right_rest[c]), sums[r][c]);
                    }
                    sum = T::multiply_add(simd, values[r], factors[r][c], sum);
                }
                T::store_some(simd, below_rest[c], sum);
            }
        }
        if BOTH {
            for r in 0..R {
                for c in 0..M {
                    let out = &mut self.out[(column + c) * self.height + row + r];
                    *out = T::narrow(out.wide() + T::sum(simd, sums[r][c]).wide());
                }
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
    fn of_a_symmetric_matrix_each_entry_serves_twice() {
        let mut rng = fastrand::Rng::with_seed(2);
        for (n, band, columns) in [(1, 4, 1), (7, 3, 2), (40, 16, 3), (301, 64, 5), (600, 130, 11)] {
            let stride = n + 2;
            let mut a = vec![0.0_f64; n * stride];
            for i in 0..n {
                for j in 0..=i {
                    (a[i * stride + j], a[j * stride + i]) = (rng.f64(), 0.0);
                    a[j * stride + i] = a[i * stride + j];
                }
            }
            let b: Vec<f64> = (0..columns * n).map(|_| rng.f64() - 0.5).collect();
            let mut got = vec![0.0; n * columns];
            for start in (0..n).step_by(band) {
                let height = band.min(n - start);
                let (own, below) = symmetric(&a[start * stride..], stride, start, height, &b, n);
                for c in 0..columns {
                    for r in 0..height {
                        got[c * n + start + r] += own[c * height + r];
                    }
                    for r in start + height..n {
                        got[c * n + r] += below[c * (n - start - height) + r - start - height];
                    }
                }
            }
            for (c, want) in product(&a, stride, n, &b, n).chunks(n).enumerate() {
                for r in 0..n {
                    assert!((got[c * n + r] - want[r]).abs() < 1e-12, "{n} {r} {c}");
                }
            }
        }
    }

    #[test]
    fn transposed_equals_sums_of_products() {
        let mut rng = fastrand::Rng::with_seed(3);
        for (n, width, columns) in [(1, 1, 1), (9, 5, 2), (100, 33, 4), (70, 1029, 7)] {
            let a: Vec<f64> = (0..n * width).map(|_| rng.f64() - 0.5).collect();
            let b: Vec<f64> = (0..columns * n).map(|_| rng.f64() - 0.5).collect();
            let half = n / 2;
            let parts =
                [transposed(&a, width, half, 0, &b, n), transposed(&a[half * width..], width, n - half, half, &b, n)];
            for c in 0..columns {
                for j in 0..width {
                    let want: f64 = (0..n).map(|i| a[i * width + j] * b[c * n + i]).sum();
                    assert!((parts[0][c * width + j] + parts[1][c * width + j] - want).abs() < 1e-12);
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
