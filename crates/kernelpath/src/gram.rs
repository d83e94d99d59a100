//! The kernel matrix that every fold, every C and the refit share, and its memory plan.

use faer::{Accum, MatMut, MatRef, Par, linalg::matmul::matmul};
use rayon::prelude::*;

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernel::{KernelFn, Measure, Shape};
pub use crate::memory::available_memory;
use crate::memory::{self, Shortage, Zeroable, has_room, zeroed};
use crate::observe::{Control, Phase};
use crate::pairs::Pairs;
use crate::simd::{dot, dot_in_lanes, vectorise};
use crate::skinny;
use crate::solver::{Cholesky, Working};
use crate::sparse::Panel;
use crate::threads::{self, kernel_flops, pooled, pooled_if_worth};
use crate::walk::CERTIFIED_AT_ONCE;

/// A precision the kernel matrix can be stored in. Solvers compute in f64 either way.
pub trait Entry: Zeroable + Default + Send + Sync + 'static {
    /// To double precision.
    fn wide(self) -> f64;
    /// From double precision.
    fn narrow(value: f64) -> Self;
    /// Whether it rounds so much that a stored number needs a [correction](residue).
    const IS_ROUGH: bool;
}

/// Bits of a double's significand that a number in single precision and its [`residue`] leave out.
const DROPPED_BITS: u32 = 13;

/// Error of a number in single precision with its correction, relative to it. (One number in 2¹⁶ lies so close to the
/// middle of two that its residue does not fit and is cut off: its error is up to twice this.)
pub(crate) const STORAGE_ERROR: f64 = 1.0 / (1_u64 << 40) as f64;

/// What rounding took from a number, in 16 bits: how far the bits of the number as a double are from those of the stored
/// number, in units of 2¹³. Together with the stored number it has 40 bits; [`corrected`] is one addition of integers.
#[inline(always)]
pub(crate) fn residue<T: Entry>(value: f64, stored: T) -> i16 {
    let stored = stored.wide();
    // (Rounding to single precision moves the bits by 2²⁸ at most, or 2¹⁵ units; 2¹⁵ and numbers too small are cut off.)
    let moved = value.to_bits().wrapping_sub(stored.to_bits()) as i64;
    let units = (moved + (1 << (DROPPED_BITS - 1))) >> DROPPED_BITS;
    // Next to the bits of 0 there are those of numbers that are none.
    if stored == 0.0 { 0 } else { units.clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16 }
}

/// A stored number with what rounding took from it.
#[inline(always)]
pub(crate) fn corrected<T: Entry>(stored: T, residue: i16) -> f64 {
    f64::from_bits(stored.wide().to_bits().wrapping_add_signed(i64::from(residue) << DROPPED_BITS))
}

impl Entry for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value as f32
    }
    const IS_ROUGH: bool = true;
}

impl Entry for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value
    }
    const IS_ROUGH: bool = false;
}

/// Vectors over the rows of a Gram matrix are padded to a multiple of this, so that SIMD loops over
/// them have no remainder.
pub(crate) const LANES: usize = 64;

/// Side of the tiles the matrix is computed in.
pub(crate) const TILE: usize = 128;

/// Rows and columns of the blocks of a product with the matrix.
const BAND: usize = 512;

/// Rows of the blocks of a product in working precision.
const APPLY_BAND: usize = 256;

/// Up to so many rows the matrix is near the cores, and reading half of it saves nothing.
const IN_CACHE: usize = 2048;

/// Squared distances below 1/`NEAR` of the rows' squared norms are summed anew: an entry of the kernel matrix is then off
/// by at most about `NEAR` roundings of double precision. A larger value leaves larger errors, a smaller one takes longer.
const NEAR: f64 = 64.0;

/// Of sparse rows, one side of a tile is packed to meet the other: the left one if the right one has at least so many
/// times its rows. With less, tiles of the kernel matrix whose sides are nearly equal are transposed for nothing.
const FEW_ROWS: usize = 8;

/// Entries of a stretch when rows are added to a vector.
const ADD_STRETCH: usize = 2048;

/// A symmetric matrix, row after row, each row padded with zeros.
///
/// In single precision each entry has a 16-bit correction, so that the two together are right to 2⁻⁴⁰ of it: steps that
/// the next one corrects read the entries alone, whatever must be true reads both.
#[derive(Debug)]
pub struct Gram<T> {
    n: usize,
    stride: usize,
    values: Vec<T>,
    /// Laid out as the values; empty in double precision.
    residues: Vec<i16>,
}

/// Padded length of vectors over n rows.
pub(crate) fn padded(n: usize) -> usize {
    n.div_ceil(LANES) * LANES
}

/// Distance between rows: not a multiple of a large power of two, lest a column fall into one cache set.
fn row_stride(n: usize) -> usize {
    let length = padded(n);
    if length.is_multiple_of(512) { length + 16 } else { length }
}

impl<T: Entry> Gram<T> {
    /// Bytes that a matrix of `n` rows takes.
    pub fn bytes(n: usize) -> u64 {
        let entry = size_of::<T>() + if T::IS_ROUGH { size_of::<i16>() } else { 0 };
        n as u64 * row_stride(n) as u64 * entry as u64
    }

    /// Bytes that a whole fit on `n` rows with `threads` workers is planned to take.
    pub fn planned_bytes(n: usize, models_kept: usize, threads: usize) -> u64 {
        Self::work_bytes(n, models_kept, threads) + (64 << 20)
    }

    /// Bytes of the matrix, and for each path in work a factor of its free set and its solutions, for those in
    /// certification two vectors a C.
    pub(crate) fn work_bytes(n: usize, models_kept: usize, threads: usize) -> u64 {
        let vectors = (models_kept * padded(n) * 8 * (threads + 2 * CERTIFIED_AT_ONCE + 2)) as u64;
        Self::bytes(n) + Self::bytes(n) / 5 + vectors
    }

    /// Computes the kernel of the given rows of `x` in tiles, on all threads of the current pool, or of one of its own,
    /// from `pairs` if they are known.
    pub fn compute(
        x: &Rows,
        rows: &[usize],
        kernel: &KernelFn,
        pairs: Option<&Pairs>,
        control: &Control,
    ) -> Result<Self> {
        if kernel.shape == Shape::Precomputed {
            return Self::copy(x, rows, control);
        }
        pooled(0, || Self::in_tiles(x, rows, kernel, pairs, control))
    }

    fn in_tiles(x: &Rows, rows: &[usize], kernel: &KernelFn, pairs: Option<&Pairs>, control: &Control) -> Result<Self> {
        let mut gram = Self::zeros(rows.len())?;
        let shift = shift_for(kernel, x, x, rows);
        let blocks = rows.len().div_ceil(TILE);
        let tiles: Vec<(usize, usize)> = (0..blocks).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
        let known = pairs.map(|pairs| pairs.of(x, rows, kernel.shape, tiles.len()));
        let stride = gram.stride;
        let (target, residues) = (SharedMut(gram.values.as_mut_ptr()), SharedMut(gram.residues.as_mut_ptr()));
        control.begin(Phase::Kernel, tiles.len());
        tiles.par_iter().enumerate().try_for_each_init(Tile::default, |tile, (at, &(ti, tj))| {
            control.check()?;
            if control.out_of_time() {
                let budget = control.budget_seconds().unwrap_or(0.0);
                return Err(Error::TimeBudget { budget, what: "the kernel matrix was complete", rows: rows.len() });
            }
            let (a, b) = (chunk(rows, ti), chunk(rows, tj));
            // Pairs are kept as far as there is memory for them.
            let pair = known.as_ref().map(|known| &known.tiles[at]).filter(|pair| pair.get().is_some() || has_room(0));
            match pair {
                None => tile.evaluate(x, a, x, b, &shift, kernel),
                Some(pair) => tile.recall(
                    pair.get_or_init(|| {
                        let mut tile = Tile::default();
                        tile.compare(x, a, x, b, &shift, kernel.shape.measure());
                        tile.values
                    }),
                    kernel,
                ),
            }
            if let Some(at) = tile.values.iter().position(|v| !T::narrow(*v).wide().is_finite()) {
                return Err(overflow::<T>(a[at / b.len()], b[at % b.len()], tile.values[at]));
            }
            for i in 0..a.len() {
                for j in 0..b.len() {
                    let same = ti == tj && i == j;
                    let exact_diagonal = same && kernel.shape.is_shift_invariant();
                    let value = if exact_diagonal { 1.0 } else { tile.values[i * b.len() + j] };
                    let stored = T::narrow(value);
                    let (row, column) = (ti * TILE + i, tj * TILE + j);
                    // SAFETY: both positions lie in the n × stride buffers, and only the task of this
                    // unordered pair of tiles writes to them.
                    unsafe {
                        target.write(row * stride + column, stored);
                        target.write(column * stride + row, stored);
                        if T::IS_ROUGH {
                            let residue = residue(value, stored);
                            residues.write(row * stride + column, residue);
                            residues.write(column * stride + row, residue);
                        }
                    }
                }
            }
            control.advance(1);
            Ok(())
        })?;
        Ok(gram)
    }

    /// Takes a precomputed matrix over, once it proved square and symmetric.
    fn copy(x: &Rows, rows: &[usize], control: &Control) -> Result<Self> {
        if x.nrows() != x.ncols() {
            return Err(Error::NotSquare { rows: x.nrows(), columns: x.ncols() });
        }
        let mut gram = Self::zeros(rows.len())?;
        control.begin(Phase::Kernel, rows.len());
        for (i, &row) in rows.iter().enumerate() {
            control.check()?;
            for (j, &column) in rows.iter().enumerate().take(i + 1) {
                let (value, mirrored) = (x.get(row, column), x.get(column, row));
                if (value - mirrored).abs() > 1e-5 * value.abs().max(mirrored.abs()).max(1e-3) {
                    return Err(Error::NotSymmetric { row, column, value, mirrored });
                }
                let mean = 0.5 * (value + mirrored);
                let stored = T::narrow(mean);
                if !stored.wide().is_finite() {
                    return Err(overflow::<T>(row, column, value));
                }
                for at in [i * gram.stride + j, j * gram.stride + i] {
                    gram.values[at] = stored;
                    if T::IS_ROUGH {
                        gram.residues[at] = residue(mean, stored);
                    }
                }
            }
            control.advance(1);
        }
        Ok(gram)
    }

    /// The matrix of some of the rows.
    pub(crate) fn part(&self, rows: &[usize]) -> Result<Self> {
        let mut part = Self::zeros(rows.len())?;
        // Neighbours are copied together: the rows of a class are.
        let runs: Vec<&[usize]> = rows.chunk_by(|a, b| *b == *a + 1).collect();
        let stride = part.stride;
        for (k, &i) in rows.iter().enumerate() {
            let mut at = k * stride;
            for run in &runs {
                let (here, there) = (at..at + run.len(), run[0]..run[0] + run.len());
                part.values[here.clone()].copy_from_slice(&self.row(i)[there.clone()]);
                if T::IS_ROUGH {
                    part.residues[here].copy_from_slice(&self.residues(i)[there]);
                }
                at += run.len();
            }
        }
        Ok(part)
    }

    fn zeros(n: usize) -> Result<Self> {
        let stride = row_stride(n);
        let failed = || out_of_memory::<T>(n, Shortage::of(Self::bytes(n)), None);
        let length = n.checked_mul(stride).ok_or_else(failed)?;
        let values = zeroed(length).ok_or_else(failed)?;
        let residues = if T::IS_ROUGH { zeroed(length).ok_or_else(failed)? } else { Vec::new() };
        Ok(Self { n, stride, values, residues })
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Largest error of an entry, relative to it, that storing it made.
    pub(crate) fn storage_error() -> f64 {
        if T::IS_ROUGH { STORAGE_ERROR } else { 0.0 }
    }

    /// Row `i` as it is stored, padded with zeros to [`padded`] length.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.stride..i * self.stride + padded(self.n)]
    }

    /// The corrections of row `i`; only where the entries are in single precision.
    #[inline(always)]
    pub(crate) fn residues(&self, i: usize) -> &[i16] {
        &self.residues[i * self.stride..i * self.stride + padded(self.n)]
    }

    /// One entry.
    #[inline(always)]
    pub fn get(&self, i: usize, j: usize) -> f64 {
        let at = i * self.stride + j;
        if T::IS_ROUGH { corrected(self.values[at], self.residues[at]) } else { self.values[at].wide() }
    }

    /// One entry for a factor in the precision of R: without its correction, if that has no room for it.
    #[inline(always)]
    pub(crate) fn entry<R: Entry>(&self, i: usize, j: usize) -> R {
        R::narrow(if R::IS_ROUGH { self.values[i * self.stride + j].wide() } else { self.get(i, j) })
    }

    /// Writes the entries of row `i` from column `start` on to `out`.
    #[inline(always)]
    pub(crate) fn copy_row(&self, i: usize, start: usize, out: &mut [f64]) {
        let stored = &self.row(i)[start..start + out.len()];
        if T::IS_ROUGH {
            let residues = &self.residues(i)[start..start + out.len()];
            for ((out, stored), residue) in out.iter_mut().zip(stored).zip(residues) {
                *out = corrected(*stored, *residue);
            }
        } else {
            for (out, stored) in out.iter_mut().zip(stored) {
                *out = stored.wide();
            }
        }
    }

    /// The diagonal, padded.
    pub(crate) fn diagonal(&self) -> Vec<f64> {
        let mut diagonal: Vec<f64> = (0..self.n).map(|i| self.get(i, i)).collect();
        diagonal.resize(padded(self.n), 0.0);
        diagonal
    }

    /// f ← f + Σ δᵢ K_i over the given rows, four rows at a time and of these a stretch: so f stays in the first cache.
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
        let used: Vec<usize> = (0..self.n).filter(|&i| b.iter().any(|c| c[i] != 0.0)).collect();
        let bands: Vec<usize> = (0..self.n).step_by(BAND).collect();
        let tiles = bands
            .into_par_iter()
            .map_init(<(Vec<f64>, Vec<f64>)>::default, |(left, right), start| {
                control.check()?;
                Ok(self.times_band(start, b, &used, left, right))
            })
            .collect::<Result<Vec<_>>>()?;
        let mut products = vec![Vec::with_capacity(self.n); b.len()];
        for tile in tiles {
            for (product, column) in products.iter_mut().zip(tile.chunks_exact(tile.len() / b.len())) {
                product.extend_from_slice(column);
            }
        }
        Ok(products)
    }

    /// Kβ, summed in [`LANES`] lanes: with less rounding than in a product of matrices, and slower.
    pub(crate) fn times_in_lanes(&self, beta: &[f64], control: &Control) -> Result<Vec<f64>> {
        control.check()?;
        let product = |row: &mut Vec<f64>, i: usize| {
            row.resize(self.n, 0.0);
            self.copy_row(i, 0, row);
            dot(row, beta)
        };
        Ok((0..self.n).into_par_iter().map_init(Vec::new, product).collect())
    }

    /// K·B in the precision of K, on all threads; each band of rows by one thread.
    pub(crate) fn apply(&self, b: &[&[f64]], control: &Control) -> Result<Vec<Vec<f64>>>
    where
        T: Working,
    {
        let right: Vec<T> = b.iter().flat_map(|column| column.iter().map(|&v| T::narrow(v))).collect();
        let bands: Vec<usize> = (0..self.n).step_by(APPLY_BAND).collect();
        // Of each band its rows of the product, and what it adds to the rows below.
        let tiles = bands
            .par_iter()
            .map(|&start| {
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
            })
            .collect::<Result<Vec<_>>>()?;
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
        Ok((0..b.len()).into_par_iter().map(column).collect())
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
        let m = BAND.min(self.n - start);
        let mut out = vec![0.0; m * b.len()];
        for part in used.chunks(BAND) {
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

pub(crate) fn overflow<T: Entry>(row: usize, column: usize, value: f64) -> Error {
    Error::Overflow { row, column, value, precision: if size_of::<T>() == 4 { "float32" } else { "float64" } }
}

/// Whether single precision keeps the kernel matrix of these rows as good as definite: a Cholesky
/// factorisation of it, on a sample, meets no pivot near rounding.
pub(crate) fn single_is_enough(x: &Rows, rows: &[usize], kernel: &KernelFn, control: &Control) -> Result<bool> {
    const SAMPLE: usize = 512;
    const SMALLEST_PIVOT: f64 = 1e-3;
    let step = rows.len().div_ceil(SAMPLE).max(1);
    let sample: Vec<usize> = rows.iter().copied().step_by(step).collect();
    let mut tile = Tile::default();
    tile.evaluate(x, &sample, x, &sample, &shift_for(kernel, x, x, rows), kernel);
    let m = sample.len();
    // Rows that are equal, of different classes, do no harm: only one of them can be free. Their pivot
    // is 0, and the factorisation makes it infinite for the others' sake.
    let factor = Cholesky::<f64>::new(m, 1e-12, control, |q, column| {
        column.copy_from_slice(&tile.values[q * m..][..=q]);
    })?;
    Ok(factor.pivots().all(|pivot| pivot > SMALLEST_PIVOT))
}

/// Lets the tasks of disjoint tiles write into one buffer.
struct SharedMut<T>(*mut T);

// SAFETY: the tasks write to disjoint positions (see `Gram::compute`) and nobody reads meanwhile.
unsafe impl<T: Send> Sync for SharedMut<T> {}

impl<T> SharedMut<T> {
    /// # Safety
    /// `at` lies in the buffer and no other task touches it.
    #[inline(always)]
    unsafe fn write(&self, at: usize, value: T) {
        unsafe { self.0.add(at).write(value) }
    }
}

fn chunk(rows: &[usize], tile: usize) -> &[usize] {
    &rows[tile * TILE..rows.len().min((tile + 1) * TILE)]
}

/// Scratch space for the kernel of one block of rows with another.
#[derive(Default)]
pub(crate) struct Tile {
    left: Vec<f64>,
    right: Vec<f64>,
    /// Squared norms of both sides; of sparse rows whose L1 distances are asked for, L1 norms.
    left2: Vec<f64>,
    right2: Vec<f64>,
    panel: Panel,
    /// Kernel values, `a.len()` rows of `b.len()`.
    pub(crate) values: Vec<f64>,
}

impl Tile {
    /// Evaluates the kernel of rows `a` of `x` with rows `b` of `z`, both shifted; a precomputed `x` has it in its
    /// columns `b`.
    pub(crate) fn evaluate(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], shift: &[f64], kernel: &KernelFn) {
        if kernel.shape == Shape::Precomputed {
            self.values.clear();
            self.values.extend(a.iter().flat_map(|&i| b.iter().map(move |&j| x.get(i, j))));
            return;
        }
        self.compare(x, a, z, b, shift, kernel.shape.measure());
        self.map(kernel);
    }

    /// Evaluates the kernel from what its shape measures of the rows.
    fn recall(&mut self, measured: &Vec<f64>, kernel: &KernelFn) {
        self.values.clone_from(measured);
        self.map(kernel);
    }

    /// From what a shape measures of pairs of rows to the kernel.
    fn map(&mut self, kernel: &KernelFn) {
        vectorise(
            #[inline(always)]
            || kernel.map(&mut self.values),
        );
    }

    /// Measures rows `a` of `x` with rows `b` of `z`.
    pub(crate) fn compare(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], shift: &[f64], measure: Measure) {
        self.values.clear();
        self.values.resize(a.len() * b.len(), 0.0);
        let is_sparse = x.as_csr().or(z.as_csr()).is_some();
        if is_sparse {
            self.meet(x, a, z, b, measure);
        } else {
            self.multiply(x, a, z, b, shift, measure);
        }
        match measure {
            Measure::SquaredDistances => {
                let Self { values, left2, right2, .. } = self;
                vectorise(
                    #[inline(always)]
                    || {
                        for (row, x2) in values.chunks_exact_mut(right2.len()).zip(left2.iter()) {
                            for (value, z2) in row.iter_mut().zip(right2.iter()) {
                                *value = x2 + z2 - 2.0 * *value;
                            }
                        }
                    },
                );
                self.mend_near(|i, j| x.squared_distance(a[i], z, b[j]));
            }
            // Those of dense rows are sums of differences already.
            Measure::AbsoluteDistances if is_sparse => {
                let Self { values, left2, right2, .. } = self;
                for (row, x1) in values.chunks_exact_mut(right2.len()).zip(left2.iter()) {
                    for (value, z1) in row.iter_mut().zip(right2.iter()) {
                        *value += x1 + z1;
                    }
                }
                self.mend_near(|i, j| x.l1_distance(a[i], z, b[j]));
            }
            Measure::AbsoluteDistances | Measure::Products => {}
        }
    }

    /// Distances of rows that are near to each other beside their norms have lost digits: they are taken anew, from the
    /// differences of the rows.
    fn mend_near(&mut self, distance: impl Fn(usize, usize) -> f64) {
        let Self { values, left2, right2, .. } = self;
        for (i, (row, x2)) in values.chunks_exact_mut(right2.len()).zip(left2.iter()).enumerate() {
            let near = |value: f64, z2: f64| NEAR * value < x2 + z2;
            for (j, (value, z2)) in row.iter_mut().zip(right2.iter()).enumerate() {
                if near(*value, *z2) {
                    *value = distance(i, j);
                }
            }
        }
    }

    /// Inner products, or L1 distances, of dense rows, and their squared norms.
    fn multiply(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], shift: &[f64], measure: Measure) {
        pack(x, a, shift, &mut self.left, &mut self.left2);
        pack(z, b, shift, &mut self.right, &mut self.right2);
        let (m, n, p) = (a.len(), b.len(), shift.len());
        let Self { left, right, values, .. } = self;
        if measure == Measure::AbsoluteDistances {
            vectorise(
                #[inline(always)]
                || l1_distances(left, right, values, m, n),
            );
        } else {
            matmul(
                MatMut::from_row_major_slice_mut(values, m, n),
                Accum::Replace,
                MatRef::from_row_major_slice(left, m, p),
                MatRef::from_row_major_slice(right, n, p).transpose(),
                1.0,
                Par::Seq,
            );
        }
    }

    /// The same where one side or both are sparse, from the columns that both rows have: of L1 distances, what is to be
    /// added to the norms,
    ///
    /// ```text
    /// ‖x − z‖₁ = ‖x‖₁ + ‖z‖₁ + Σₖ (|xₖ − zₖ| − |xₖ| − |zₖ|).
    /// ```
    fn meet(&mut self, x: &Rows, a: &[usize], z: &Rows, b: &[usize], measure: Measure) {
        let Self { left2, right2, panel, values, .. } = self;
        let l1 = measure == Measure::AbsoluteDistances;
        // Few rows are packed sooner than many.
        let pack_x = z.as_csr().is_none() || FEW_ROWS * a.len() <= b.len();
        if let Some(sparse) = z.as_csr().filter(|_| x.as_csr().is_none() || !pack_x) {
            panel.sums(sparse, b, x, a, l1, values);
        } else if let Some(sparse) = x.as_csr() {
            let mut transposed = vec![0.0; values.len()];
            panel.sums(sparse, a, z, b, l1, &mut transposed);
            for (i, row) in values.chunks_exact_mut(b.len()).enumerate() {
                for (value, column) in row.iter_mut().zip(transposed.chunks_exact(a.len())) {
                    *value = column[i];
                }
            }
        }
        norms(x, a, l1, left2);
        norms(z, b, l1, right2);
    }
}

/// ‖x‖² of the given rows, or ‖x‖₁.
fn norms(x: &Rows, rows: &[usize], l1: bool, out: &mut Vec<f64>) {
    out.clear();
    for &i in rows {
        let mut sum = 0.0;
        x.for_each_nonzero(i, |_, v| sum += if l1 { v.abs() } else { v * v });
        out.push(sum);
    }
}

/// Copies rows in double precision, shifted, with their squared norms.
pub(crate) fn pack(x: &Rows, rows: &[usize], shift: &[f64], out: &mut Vec<f64>, norms: &mut Vec<f64>) {
    let p = shift.len();
    out.resize(rows.len() * p, 0.0);
    norms.clear();
    for (&i, row) in rows.iter().zip(out.chunks_exact_mut(p)) {
        x.copy_row(i, shift, row);
        norms.push(row.iter().map(|v| v * v).sum());
    }
}

#[inline(always)]
fn l1_distances(left: &[f64], right: &[f64], out: &mut [f64], m: usize, n: usize) {
    let p = left.len() / m;
    // Feature by feature, so that the inner loop runs along a contiguous row of `out`.
    let mut column = vec![0.0; n];
    for k in 0..p {
        for (c, row) in column.iter_mut().zip(right.chunks_exact(p)) {
            *c = row[k];
        }
        for (out, row) in out.chunks_exact_mut(n).zip(left.chunks_exact(p)) {
            let value = row[k];
            for (o, c) in out.iter_mut().zip(&column) {
                *o += (value - c).abs();
            }
        }
    }
}

/// Bytes that a fit will take; fails, before anything is allocated, when it would not fit. `low_rank` says what a fit at
/// low rank would take, if there can be one.
pub(crate) fn check_plan<T: Entry>(
    n: usize,
    models_kept: usize,
    threads: usize,
    extra: u64,
    low_rank: impl FnOnce() -> Option<u64>,
) -> Result<u64> {
    let need = Gram::<T>::planned_bytes(n, models_kept, threads).saturating_add(extra);
    Shortage::check(need).map_err(|shortage| out_of_memory::<T>(n, shortage, low_rank()))?;
    Ok(need)
}

fn out_of_memory<T>(rows: usize, Shortage { need, available, limit }: Shortage, low_rank: Option<u64>) -> Error {
    Error::Memory { rows, need, available, limit, low_rank, could_halve: size_of::<T>() == 8 }
}

/// The kernel between rows of `x` and rows of `z`, row after row. Many are shared out among so many threads.
pub fn kernel_matrix(x: &Rows, z: &Rows, kernel: &KernelFn, threads: usize, control: &Control) -> Result<Vec<f64>> {
    pooled_if_worth(threads, kernel_flops(x, z, 0), || {
        x.check("X")?;
        z.check("Z")?;
        if x.ncols() != z.ncols() {
            return Err(Error::Features { got: x.ncols(), expected: z.ncols() });
        }
        kernel_in_bands(x, z, kernel, control)
    })
}

fn kernel_in_bands(x: &Rows, z: &Rows, kernel: &KernelFn, control: &Control) -> Result<Vec<f64>> {
    let all: Vec<usize> = (0..z.nrows()).collect();
    let length = x.nrows().saturating_mul(z.nrows());
    let mut out = memory::zeros(length, "the kernel matrix")?;
    let shift = shift_for(kernel, x, z, &all);
    for_each_band(x, &mut out, z.nrows(), |rows, band| {
        let mut tile = Tile::default();
        for columns in all.chunks(TILE) {
            control.check()?;
            tile.evaluate(x, rows, z, columns, &shift, kernel);
            for (row, values) in band.chunks_exact_mut(z.nrows()).zip(tile.values.chunks_exact(columns.len())) {
                row[columns[0]..columns[0] + columns.len()].copy_from_slice(values);
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// Σⱼ coefⱼ k(x, zⱼ) for every row of `x` and each column of `coef`, which has a row for each of `z`; row after row, in
/// tiles: memory stays bounded whatever the sizes.
pub(crate) fn kernel_times(
    x: &Rows,
    z: &Rows,
    coef: MatRef<f64>,
    kernel: &KernelFn,
    control: &Control,
) -> Result<Vec<f64>> {
    let machines = coef.ncols();
    if x.nrows() == 1 {
        match z {
            Rows::F32(z) if x.as_csr().is_none() => return Ok(kernel_row_times(x, *z, coef, kernel)),
            Rows::F64(z) if x.as_csr().is_none() => return Ok(kernel_row_times(x, *z, coef, kernel)),
            _ => {}
        }
    }
    let all: Vec<usize> = (0..z.nrows()).collect();
    let shift = shift_for(kernel, x, z, &all);
    let mut out = memory::zeros(x.nrows().saturating_mul(machines), "the values of all rows")?;
    for_each_band(x, &mut out, machines, |rows, band| {
        let mut tile = Tile::default();
        for columns in all.chunks(TILE) {
            control.check()?;
            tile.evaluate(x, rows, z, columns, &shift, kernel);
            matmul(
                MatMut::from_row_major_slice_mut(&mut *band, rows.len(), machines),
                Accum::Add,
                MatRef::from_row_major_slice(&tile.values, rows.len(), columns.len()),
                coef.subrows(columns[0], columns.len()),
                1.0,
                Par::Seq,
            );
        }
        Ok(())
    })?;
    Ok(out)
}

/// Vectors that a single row meets at once: their kernel values stay in the first cache.
const STRETCH: usize = 512;

/// As [`kernel_times`] for the one row of `x`, where the numbers of `z` lie: to pack them would take longer than to read
/// them once. Distances are sums over the differences of the rows, which lose no digits.
fn kernel_row_times<T: Entry>(x: &Rows, z: MatRef<T>, coef: MatRef<f64>, kernel: &KernelFn) -> Vec<f64> {
    let row: Vec<f64> = (0..x.ncols()).map(|j| x.get(0, j)).collect();
    let mut out = vec![0.0; coef.ncols()];
    let mut stretch = [0.0; STRETCH];
    vectorise(
        #[inline(always)]
        || {
            for start in (0..z.nrows()).step_by(STRETCH) {
                let values = &mut stretch[..STRETCH.min(z.nrows() - start)];
                let (z, coef) = (z.subrows(start, values.len()), coef.subrows(start, values.len()));
                match kernel.shape.measure() {
                    Measure::Products => sum_over_columns(
                        &row,
                        z,
                        values,
                        #[inline(always)]
                        |x, z| x * z,
                    ),
                    Measure::SquaredDistances => sum_over_columns(
                        &row,
                        z,
                        values,
                        #[inline(always)]
                        |x, z| (x - z) * (x - z),
                    ),
                    Measure::AbsoluteDistances => sum_over_columns(
                        &row,
                        z,
                        values,
                        #[inline(always)]
                        |x, z| (x - z).abs(),
                    ),
                }
                kernel.map(values);
                for (out, coef) in out.iter_mut().zip(coef.col_iter()) {
                    *out += match coef.try_as_col_major() {
                        Some(coef) => dot_in_lanes(values, coef.as_slice()),
                        None => values.iter().zip(coef.iter()).map(|(value, coef)| value * coef).sum(),
                    };
                }
            }
        },
    );
    out
}

/// Σₖ t(xₖ, zₖ) of one row with each row of `z`, summed in the order of the columns however the memory lies.
#[inline(always)]
fn sum_over_columns<T: Entry>(x: &[f64], z: MatRef<T>, out: &mut [f64], t: impl Fn(f64, f64) -> f64) {
    /// Rows whose sums are taken side by side, for none to wait for another's addition.
    const ABREAST: usize = 8;
    out.fill(0.0);
    if z.row_stride() == 1 {
        for (x, z) in x.iter().zip(z.col_iter()) {
            let Some(z) = z.try_as_col_major() else { return };
            for (out, z) in out.iter_mut().zip(z.as_slice()) {
                *out += t(*x, z.wide());
            }
        }
        return;
    }
    let (blocks, rest) = out.as_chunks_mut::<ABREAST>();
    let done = blocks.len() * ABREAST;
    for (block, out) in blocks.iter_mut().enumerate() {
        let z = z.subrows(block * ABREAST, ABREAST);
        for (x, z) in x.iter().zip(z.col_iter()) {
            for l in 0..ABREAST {
                out[l] += t(*x, z[l].wide());
            }
        }
    }
    for (i, out) in rest.iter_mut().enumerate() {
        for (x, z) in x.iter().zip(z.row(done + i).iter()) {
            *out += t(*x, z.wide());
        }
    }
}

/// What is taken off all rows, the mean of the given rows of `z`; empty for sparse ones, which it would fill.
pub(crate) fn shift_for(kernel: &KernelFn, x: &Rows, z: &Rows, rows: &[usize]) -> Vec<f64> {
    if x.as_csr().or(z.as_csr()).is_some() {
        Vec::new()
    } else if kernel.shape.measure() == Measure::SquaredDistances {
        z.column_means(rows)
    } else {
        vec![0.0; z.ncols()]
    }
}

/// Hands bands of rows of `x`, with their part of `out` (`width` values a row), to all threads of the current pool.
fn for_each_band(
    x: &Rows,
    out: &mut [f64],
    width: usize,
    work: impl Fn(&[usize], &mut [f64]) -> Result<()> + Sync,
) -> Result<()> {
    if x.nrows() == 0 || width == 0 {
        return Ok(());
    }
    let rows: Vec<usize> = (0..x.nrows()).collect();
    if threads::is_alone() {
        return rows.chunks(TILE).zip(out.chunks_mut(TILE * width)).try_for_each(|(rows, band)| work(rows, band));
    }
    rows.par_chunks(TILE).zip(out.par_chunks_mut(TILE * width)).try_for_each(|(rows, band)| work(rows, band))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_in_working_precision_equal_those_in_double() {
        let control = Control::default();
        let kernel = KernelFn::new(Shape::Rbf, 0.5).unwrap();
        // A matrix read whole, and one read by half, whose last band is not full.
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
    fn a_number_in_single_precision_and_its_correction_have_forty_bits() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut cut = 0;
        for k in 0..1_000_000 {
            let value = (rng.f64() - 0.5) * 10_f64.powi(k % 60 - 30);
            let stored = f32::narrow(value);
            let error = (corrected(stored, residue(value, stored)) - value).abs();
            assert!(error <= 2.0 * STORAGE_ERROR * value.abs(), "{value}: {error}");
            cut += usize::from(error > STORAGE_ERROR * value.abs());
        }
        assert!(cut < 40, "{cut} of a million, where 8 are expected"); // half of 10⁶ / 2¹⁶ are far enough beyond
        for value in [0.0, 1.0, -1.0, 0.5, f64::from(f32::MIN_POSITIVE), 1e-320] {
            let stored = f32::narrow(value);
            assert!((corrected(stored, residue(value, stored)) - value).abs() <= 1e-45);
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
        // Without corrections it is not.
        assert!(!close(&single.apply(&[&beta], &control).unwrap()[0]));
    }

    #[test]
    fn distances_of_near_rows_lose_no_digits() {
        // Pairs of rows 1e-6 apart, and one row far away, which moves the mean.
        let mut x: Vec<f64> = (0..20).map(|i| f64::from(i / 2) + 1e-6 * f64::from(i % 2)).collect();
        x.push(1e7);
        let rows: Vec<usize> = (0..x.len()).collect();
        for shape in [Shape::Rbf, Shape::Laplacian, Shape::Matern52] {
            let kernel = KernelFn::new(shape, 1e9).unwrap();
            let data = Rows::from_slice(&x, 1).unwrap();
            let gram = Gram::<f64>::compute(&data, &rows, &kernel, None, &Control::default()).unwrap();
            for i in (0..20).step_by(2) {
                let distance = x[i + 1] - x[i];
                let mut want = [if shape == Shape::Laplacian { distance } else { distance * distance }];
                kernel.map(&mut want);
                assert!((gram.get(i, i + 1) - want[0]).abs() <= 1e-14, "{shape:?}: {} {}", gram.get(i, i + 1), want[0]);
            }
        }
    }
}
