//! The kernel matrix that every fold, every C and the refit share, and its memory plan.

use crate::data::rows::Rows;
use crate::error::{Error, Result};
use crate::kernel::accuracy::KernelError;
use crate::kernel::elsewhere::Kernels;
use crate::kernel::pairs::Pairs;
use crate::kernel::shape::{KernelFn, Shape};
use crate::kernel::tile::{Side, TILE, Tile, chunk, overflow, shift_for};
use crate::kernel::tilt::Tilt;
use crate::numeric::cholesky::Cholesky;
use crate::numeric::entry::{Entry, STORAGE_ERROR, corrected, residue};
use crate::numeric::memory::{Shortage, has_room, zeroed};
use crate::numeric::parallel;
use crate::numeric::remote::{Remote, Stored};
use crate::numeric::threads::pooled;
use crate::observe::{Control, Phase};

/// Vectors over the rows of a Gram matrix are padded to a multiple of this, so that SIMD loops over
/// them have no remainder.
pub(crate) const PADDING: usize = 64;

/// A symmetric matrix, row after row, each row padded with zeros.
///
/// In single precision each entry has a 16-bit correction, and the two together are right to 2⁻⁴⁰ of the entry. Steps
/// whose errors the next step corrects read the entries alone; everything that must be accurate reads both.
#[derive(Debug)]
pub struct Gram<T> {
    pub(crate) n: usize,
    pub(crate) stride: usize,
    pub(crate) values: Vec<T>,
    /// Laid out like the values; empty in double precision.
    residues: Vec<i16>,
    /// The matrix with this added to its diagonal is positive semi-definite; 0 if its kernel is so by its formula, or
    /// until it is examined (`definite.rs`).
    pub(crate) shift: f64,
    /// The matrix on a device, where its products run.
    pub(crate) remote: Option<Box<dyn Remote>>,
    /// What the centre of the rows did to the matrix.
    pub(crate) tilt: Tilt,
}

/// Padded length of vectors over n rows.
pub(crate) fn padded(n: usize) -> usize {
    n.div_ceil(PADDING) * PADDING
}

/// Distance between rows: not a multiple of a large power of two, lest a column fall into one cache set.
pub(crate) fn row_stride(n: usize) -> usize {
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

    /// Bytes of the matrix; for each path in work, of a factor of its free set and of its solutions; and for each path
    /// in certification, of two vectors per C.
    pub(crate) fn work_bytes(n: usize, models_kept: usize, threads: usize) -> u64 {
        let vectors = (models_kept * padded(n) * 8 * (threads + 2 * CERTIFIED_AT_ONCE + 2)) as u64;
        Self::bytes(n) + Self::bytes(n) / 5 + vectors
    }

    /// Computes the kernel of the given rows of `x` in tiles, on all threads of the current pool, or of a new one. The
    /// products of rows come from `pairs` where they are known.
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
        pooled(0, || Self::in_tiles(x, rows, kernel, &[], pairs, control))
    }

    /// As [`compute`](Self::compute), by a device if there is one, and with rows less a `centre` unless that is empty.
    pub(crate) fn compute_on(
        kernels: Option<&dyn Kernels>,
        x: &Rows,
        rows: &[usize],
        kernel: &KernelFn,
        centre: &[f64],
        pairs: Option<&Pairs>,
        control: &Control,
    ) -> Result<Self> {
        let Some(kernels) = kernels.filter(|_| kernel.shape != Shape::Precomputed) else {
            if kernel.shape == Shape::Precomputed {
                return Self::copy(x, rows, control);
            }
            return pooled(0, || Self::in_tiles(x, rows, kernel, centre, pairs, control));
        };
        let (mut gram, n) = (Self::zeros(rows.len())?, rows.len());
        let tilt = Tilt::new(centre, x, rows);
        let (stride, exact_diagonal) = (gram.stride, kernel.shape.is_shift_invariant());
        control.begin(Phase::Kernel, n);
        let side = Side::x(kernel, x);
        let Self { values: target, residues, .. } = &mut gram;
        let mut store = |first: usize, panel: &[f64]| {
            control.check_time(COMPLETE, n)?;
            for (i, values) in (first..).zip(panel.chunks_exact(n)) {
                for (j, &value) in values.iter().enumerate() {
                    let value = if i == j && exact_diagonal { 1.0 } else { value - tilt.of_entry(i, j) };
                    let stored = T::narrow(value);
                    if !stored.wide().is_finite() {
                        return Err(overflow::<T>((side, rows[i]), (side, rows[j]), value));
                    }
                    target[i * stride + j] = stored;
                    if T::IS_ROUGH {
                        residues[i * stride + j] = residue(value, stored);
                    }
                }
            }
            control.advance(panel.len() / n);
            Ok(())
        };
        kernels.panels(x, rows, x, rows, kernel, centre, control, &mut store)?;
        gram.tilt = tilt;
        Ok(gram)
    }

    fn in_tiles(
        x: &Rows,
        rows: &[usize],
        kernel: &KernelFn,
        centre: &[f64],
        pairs: Option<&Pairs>,
        control: &Control,
    ) -> Result<Self> {
        let mut gram = Self::zeros(rows.len())?;
        let is_shifted = !centre.is_empty() && x.as_csr().is_none();
        let shift = if is_shifted { centre.to_vec() } else { shift_for(kernel, x, x, rows) };
        let tilt = Tilt::new(centre, x, rows);
        let (side, blocks) = (Side::x(kernel, x), rows.len().div_ceil(TILE));
        let tiles: Vec<(usize, usize)> = (0..blocks).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
        let known = pairs.map(|pairs| pairs.of(x, rows, kernel.shape, tiles.len()));
        let stride = gram.stride;
        let (target, residues) = (SharedMut(gram.values.as_mut_ptr()), SharedMut(gram.residues.as_mut_ptr()));
        control.begin(Phase::Kernel, tiles.len());
        parallel::try_for_each_with(tiles.iter().enumerate(), |tile: &mut Tile, (at, &(ti, tj))| {
            control.check_time(COMPLETE, rows.len())?;
            let (a, b) = (chunk(rows, ti), chunk(rows, tj));
            // Pairs are kept as long as there is memory for them.
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
            tile.check::<T>((side, a), (side, b))?;
            for i in 0..a.len() {
                for j in 0..b.len() {
                    let same = ti == tj && i == j;
                    let exact_diagonal = same && kernel.shape.is_shift_invariant();
                    let (row, column) = (ti * TILE + i, tj * TILE + j);
                    let value = tile.values[i * b.len() + j] - tilt.of_entry(row, column);
                    let value = if exact_diagonal { 1.0 } else { value };
                    let stored = T::narrow(value);
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
        gram.tilt = tilt;
        Ok(gram)
    }

    /// Takes over a precomputed matrix, once it has proved square and symmetric.
    fn copy(x: &Rows, rows: &[usize], control: &Control) -> Result<Self> {
        if x.nrows() != x.ncols() {
            return Err(Error::NotSquare { rows: x.nrows(), columns: x.ncols() });
        }
        let mut gram = Self::zeros(rows.len())?;
        let small = SMALL_ENTRY.max(SMALL_ENTRY_ROUNDINGS * given_epsilon(x) / ASYMMETRY);
        let roots: Vec<f64> = rows.iter().map(|&i| x.get(i, i).abs().sqrt()).collect();
        control.begin(Phase::Kernel, rows.len());
        for (i, &row) in rows.iter().enumerate() {
            control.check()?;
            for (j, &column) in rows.iter().enumerate().take(i + 1) {
                let (value, mirrored) = (x.get(row, column), x.get(column, row));
                let size = value.abs().max(mirrored.abs()).max(small * roots[i] * roots[j]);
                if (value - mirrored).abs() > ASYMMETRY * size {
                    return Err(Error::NotSymmetric { row, column, value, mirrored });
                }
                let mean = 0.5 * (value + mirrored);
                let stored = T::narrow(mean);
                if !stored.wide().is_finite() {
                    return Err(overflow::<T>((Side::Given, row), (Side::Given, column), value));
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
        let mut part = Self { shift: self.shift, ..Self::zeros(rows.len())? };
        // Neighbouring rows are copied together: the rows of one class are neighbours.
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
        part.tilt = self.tilt.part(rows);
        Ok(part)
    }

    fn zeros(n: usize) -> Result<Self> {
        let stride = row_stride(n);
        let failed = || out_of_memory::<T>(n, Shortage::of(Self::bytes(n)), None);
        let length = n.checked_mul(stride).ok_or_else(failed)?;
        let values = zeroed(length).ok_or_else(failed)?;
        let residues = if T::IS_ROUGH { zeroed(length).ok_or_else(failed)? } else { Vec::new() };
        Ok(Self { n, stride, values, residues, shift: 0.0, remote: None, tilt: Tilt::default() })
    }

    /// The matrix as a device takes it.
    pub(crate) fn stored(&self) -> Stored<'_> {
        let Self { n, stride, .. } = *self;
        Stored { rows: n, columns: n, stride, numbers: T::numbers(&self.values, &self.residues), symmetric: true }
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Largest error that storing an entry made, relative to the entry.
    pub(crate) fn storage_error() -> f64 {
        if T::IS_ROUGH { STORAGE_ERROR } else { 0.0 }
    }

    /// How well the matrix is known.
    pub(crate) fn error(&self) -> KernelError {
        let error = KernelError::new(Self::storage_error(), &self.diagonal()[..self.n]).with_shift(self.shift);
        match self.tilt.roots() {
            Some(roots) => KernelError { roots: roots.to_vec(), ..error },
            None => error,
        }
    }

    /// Row `i` as it is stored, padded with zeros to [`padded`] length.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.stride..i * self.stride + padded(self.n)]
    }

    /// The corrections of row `i`. They exist only if the entries are in single precision.
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

    /// One entry for a factor in the precision of R: without its correction, if R has no room for it.
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
}

/// What had not happened when the time was over.
const COMPLETE: &str = "the kernel matrix was complete";

/// How much two entries that should be equal may differ, relative to the larger one.
const ASYMMETRY: f64 = 1e-5;

/// Entries K_ij below this share of √(K_ii K_jj) are differences of larger numbers: they may differ as if they were that
/// large.
const SMALL_ENTRY: f64 = 1e-3;

/// Roundings of √(K_ii K_jj), in the precision in which K was given, that such entries may differ by, if that is more.
const SMALL_ENTRY_ROUNDINGS: f64 = 64.0;

/// ε of the precision of given numbers.
pub(crate) fn given_epsilon(x: &Rows) -> f64 {
    if matches!(x, Rows::F32(_)) { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// Whether single precision keeps the kernel matrix of these rows as good as definite: a Cholesky factorisation on a
/// sample of the rows meets no pivot near rounding.
pub(crate) fn single_is_enough(x: &Rows, rows: &[usize], kernel: &KernelFn, control: &Control) -> Result<bool> {
    const SAMPLED_PAIRS: usize = 512;
    const SMALLEST_PIVOT: f64 = 1e-3;
    let step = rows.len().div_ceil(SAMPLED_PAIRS).max(1);
    let sample: Vec<usize> = rows.iter().copied().step_by(step).collect();
    let mut tile = Tile::default();
    tile.evaluate(x, &sample, x, &sample, &shift_for(kernel, x, x, rows), kernel);
    let m = sample.len();
    // Equal rows of different classes do no harm: only one of them can be free. The pivot of the other is 0, and the
    // factorisation makes it infinite, so that it does not affect the other rows.
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

/// Bytes that a fit will take. Fails, before anything is allocated, if they are more than there are. `low_rank` says
/// what a fit at low rank would take, if there can be one.
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

/// Finished paths that are certified together: one pass over the Gram matrix serves them all.
pub(crate) const CERTIFIED_AT_ONCE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn symmetry_is_relative_to_the_entries() {
        let kernel = KernelFn::new(Shape::Precomputed, 1.0).unwrap();
        let computed = |x: &Rows| Gram::<f64>::compute(x, &[0, 1], &kernel, None, &Control::default()).map(|_| ());
        for unit in [1e-200, 1e-12, 1.0, 1e12, 1e200] {
            for (one, other, is_symmetric) in [
                (0.5, 0.5 + 1e-6, true),
                (0.5, 0.5 + 1e-5, false),
                // Zeros but for rounding.
                (1e-12, -1e-12, true),
                (1e-7, -1e-7, false),
            ] {
                let matrix = [unit, one * unit, other * unit, unit];
                let found = computed(&Rows::from_slice(&matrix, 2).unwrap());
                assert_eq!(found.is_ok(), is_symmetric, "{matrix:?}: {found:?}");
                // Rows may have units of their own.
                let matrix = [unit, one * unit * 1e-6, other * unit * 1e-6, unit * 1e-12];
                assert_eq!(computed(&Rows::from_slice(&matrix, 2).unwrap()).is_ok(), is_symmetric, "{matrix:?}");
            }
        }
        let single = |beside: f32| faer::Mat::<f32>::from_fn(2, 2, |i, j| if i == j { 1.0 } else { beside * i as f32 });
        assert!(computed(&Rows::from(single(1e-6).as_ref())).is_ok());
        assert!(computed(&Rows::from(single(1e-4).as_ref())).is_err());
    }
}
