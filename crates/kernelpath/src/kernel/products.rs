//! Products of the kernel matrix with vectors, in double precision and in that of its entries.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::numeric::cholesky::Working;
use crate::numeric::design::Accuracy;
use crate::numeric::entry::{Entry, corrected};
use crate::numeric::parallel;
use crate::numeric::simd::{dot, vectorise};
use crate::numeric::skinny;
use crate::observe::Control;

/// Rows and columns of the blocks of a product with the matrix.
const PRODUCT_BAND: usize = 512;

/// Rows of the blocks of a product in working precision.
const APPLY_BAND: usize = 256;

/// Up to this number of rows the matrix stays in the caches near the cores, and reading only half of it saves nothing.
const IN_CACHE: usize = 2048;

/// Entries of a vector that are worked on at a time when rows are added to it.
const ADD_STRETCH: usize = 2048;

impl<T: Entry> Gram<T> {
    /// f ← f + Σ δᵢ K_i over the given rows. Four rows are added at a time, one stretch of f after the other, so that
    /// the stretch stays in the first cache.
    pub(crate) fn add_rows(&self, rows: &[usize], deltas: &[f64], f: &mut [f64]) {
        vectorise(
            #[inline(always)]
            || {
                let done = rows.len() / 4 * 4;
                for start in (0..f.len()).step_by(ADD_STRETCH) {
                    let end = f.len().min(start + ADD_STRETCH);
                    let f = &mut f[start..end];
                    let length = f.len();
                    let stretch = |i: usize| {
                        let residues = if T::IS_ROUGH { &self.residues(i)[start..end] } else { &[] };
                        (&self.row(i)[start..end][..length], residues)
                    };
                    let entry = |(stored, residues): (&[T], &[i16]), j: usize| {
                        if T::IS_ROUGH { corrected(stored[j], residues[j]) } else { stored[j].wide() }
                    };
                    for q in (0..done).step_by(4) {
                        let k = [stretch(rows[q]), stretch(rows[q + 1]), stretch(rows[q + 2]), stretch(rows[q + 3])];
                        let [d0, d1, d2, d3] = [deltas[q], deltas[q + 1], deltas[q + 2], deltas[q + 3]];
                        for (j, f) in f.iter_mut().enumerate() {
                            let two = d1.mul_add(entry(k[1], j), d0.mul_add(entry(k[0], j), *f));
                            *f = d3.mul_add(entry(k[3], j), d2.mul_add(entry(k[2], j), two));
                        }
                    }
                    for (&r, &d) in rows[done..].iter().zip(&deltas[done..]) {
                        let k = stretch(r);
                        for (j, f) in f.iter_mut().enumerate() {
                            *f = d.mul_add(entry(k, j), *f);
                        }
                    }
                }
            },
        );
    }

    /// K·B for columns `b` (each of n values) in f64, tile by tile, on the threads that are idle.
    ///
    /// Rows of zeros in B are left out; the order of summation does not depend on the threads.
    pub(crate) fn times(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>> {
        if b.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(remote) = &self.remote {
            return remote.times(b, Accuracy::Double, control);
        }
        let used: Vec<usize> = (0..self.n).filter(|&i| b.iter().any(|c| c[i] != 0.0)).collect();
        let bands = (0..self.n).step_by(PRODUCT_BAND);
        let tiles = parallel::try_map_with(bands, |(left, right): &mut (Vec<f64>, Vec<f64>), start| {
            control.check()?;
            Ok(self.times_band(start, b, &used, left, right))
        })?;
        let mut products = vec![Vec::with_capacity(self.n); b.len()];
        for tile in tiles {
            for (product, column) in products.iter_mut().zip(tile.chunks_exact(tile.len() / b.len())) {
                product.extend_from_slice(column);
            }
        }
        Ok(products)
    }

    /// Kβ, summed in [`PADDING`] lanes: slower than a product of matrices, but with less rounding.
    pub(crate) fn times_in_lanes(&self, beta: &[f64], control: &Control) -> Result<Vec<f64>> {
        control.check()?;
        parallel::try_map_with(0..self.n, |row: &mut Vec<f64>, i| {
            row.resize(self.n, 0.0);
            self.copy_row(i, 0, row);
            Ok(dot(row, beta))
        })
    }

    /// K·B in the precision of K, on all threads. Each band of rows is computed by one thread.
    pub(crate) fn apply(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>>
    where
        T: Working,
    {
        if let Some(remote) = &self.remote {
            return remote.times(b, Accuracy::Working, control);
        }
        let right: Vec<T> = b.iter().flat_map(|column| column.iter().map(|&v| T::narrow(v))).collect();
        let bands: Vec<usize> = (0..self.n).step_by(APPLY_BAND).collect();
        // For each band, its rows of the product, and what it adds to the rows below.
        let tiles = parallel::try_map(&bands, |&start| {
            control.check()?;
            let height = APPLY_BAND.min(self.n - start);
            let rows = &self.values[start * self.stride..];
            if b.len() <= skinny::FEW {
                return Ok(if self.n > IN_CACHE {
                    skinny::symmetric(rows, self.stride, start, height, &right, self.n)
                } else {
                    (skinny::product(rows, self.stride, height, &right, self.n), Vec::new())
                });
            }
            let mut out = vec![T::default(); height * b.len()];
            matmul(
                MatMut::from_column_major_slice_mut(&mut out, height, b.len()),
                Accum::Replace,
                MatRef::from_row_major_slice_with_stride(rows, height, self.n, self.stride),
                MatRef::from_column_major_slice(&right, self.n, b.len()),
                T::narrow(1.0),
                Par::Seq,
            );
            Ok((out, Vec::new()))
        })?;
        let column = |c: usize| {
            let mut column = vec![0.0; self.n];
            for (&start, (own, below)) in bands.iter().zip(&tiles) {
                let (height, depth) = (own.len() / b.len(), below.len() / b.len());
                let add =
                    |sums: &mut [f64], values: &[T]| sums.iter_mut().zip(values).for_each(|(s, v)| *s += v.wide());
                let (rows, rest) = column[start..].split_at_mut(height);
                add(rows, &own[c * height..(c + 1) * height]);
                add(rest, &below[c * depth..(c + 1) * depth]);
            }
            column
        };
        Ok(parallel::map(0..b.len(), column))
    }

    /// The rows from `start` of K·B, column after column.
    fn times_band(
        &self,
        start: usize,
        b: &[&[f64]],
        used: &[usize],
        left: &mut Vec<f64>,
        right: &mut Vec<f64>,
    ) -> Vec<f64> {
        let m = PRODUCT_BAND.min(self.n - start);
        let mut out = vec![0.0; m * b.len()];
        for part in used.chunks(PRODUCT_BAND) {
            // K is symmetric: column `i` of the tile is a stretch of row `i`.
            left.resize(m * part.len(), 0.0);
            vectorise(
                #[inline(always)]
                || {
                    for (&i, column) in part.iter().zip(left.chunks_exact_mut(m)) {
                        self.copy_row(i, start, column);
                    }
                },
            );
            right.clear();
            for c in b {
                right.extend(part.iter().map(|&i| c[i]));
            }
            matmul(
                MatMut::from_column_major_slice_mut(&mut out, m, b.len()),
                Accum::Add,
                MatRef::from_column_major_slice(left, m, part.len()),
                MatRef::from_column_major_slice(right, part.len(), b.len()),
                1.0,
                Par::Seq,
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::rows::Rows;
    use crate::kernel::gram::padded;
    use crate::kernel::shape::{KernelFn, Shape};
    use crate::numeric::entry::STORAGE_ERROR;

    #[test]
    fn products_in_working_precision_equal_those_in_double() {
        let control = Control::default();
        let kernel = KernelFn::new(Shape::Rbf, 0.5).unwrap();
        // One matrix that is read whole, and one that is read by half and whose last band is not full.
        for n in [300, IN_CACHE + 77] {
            let x: Vec<f64> = (0..2 * n).map(|i| (0.37 * i as f64).sin()).collect();
            let rows: Vec<usize> = (0..n).collect();
            let gram = Gram::<f64>::compute(&Rows::from_slice(&x, 2).unwrap(), &rows, &kernel, None, &control).unwrap();
            for columns in [1, 4, skinny::FEW + 1] {
                let b: Vec<Vec<f64>> =
                    (0..columns).map(|c| (0..n).map(|i| (0.1 * (i * (c + 1)) as f64).cos()).collect()).collect();
                let b: Vec<&[f64]> = b.iter().map(|b| &b[..]).collect();
                let (got, want) = (gram.apply(&b, &control).unwrap(), gram.times(&b, &control).unwrap());
                for (got, want) in got.iter().zip(&want) {
                    assert_eq!(got.len(), n);
                    assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9), "{n} {columns}");
                }
            }
        }
    }

    #[test]
    fn products_of_a_matrix_in_single_precision_are_right_to_its_corrections() {
        let (n, control) = (300, Control::default());
        let kernel = KernelFn::new(Shape::Rbf, 0.5).unwrap();
        let x: Vec<f64> = (0..2 * n).map(|i| (0.37 * i as f64).sin()).collect();
        let rows: Vec<usize> = (0..n).collect();
        let x = Rows::from_slice(&x, 2).unwrap();
        let double = Gram::<f64>::compute(&x, &rows, &kernel, None, &control).unwrap();
        let single = Gram::<f32>::compute(&x, &rows, &kernel, None, &control).unwrap();
        let beta: Vec<f64> = (0..n).map(|i| 1e3 * (0.1 * i as f64).cos()).collect();
        let want = &double.times(&[&beta], &control).unwrap()[0];
        let bound = 6.0 * STORAGE_ERROR * beta.iter().map(|b| b * b).sum::<f64>().sqrt();
        let close = |got: &[f64]| got.iter().zip(want).all(|(a, b)| (a - b).abs() <= bound);
        assert!(close(&single.times(&[&beta], &control).unwrap()[0]));
        let mut f = vec![0.0; padded(n)];
        single.add_rows(&rows, &beta, &mut f);
        assert!(close(&f[..n]));
        let part = single.part(&rows[10..40]).unwrap();
        assert!((0..30).all(|i| (0..30).all(|j| part.get(i, j) == single.get(10 + i, 10 + j))));
        // Without corrections they are not.
        assert!(!close(&single.apply(&[&beta], &control).unwrap()[0]));
    }
}
