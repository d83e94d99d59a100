//! The matrix Z of low-rank features, computed once for all folds and C's, in memory or in a file.

use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use fs4::FileExt;
use memmap2::MmapMut;
use rayon::prelude::*;

use crate::data::Rows;
use crate::design::Design;
use crate::device::{Cpu, Device};
use crate::error::{Error, Result, human};
use crate::gram::{Entry, STORAGE_ERROR, TILE, Tile, corrected, overflow, residue, shift_for};
use crate::kernel::{KernelFn, Shape};
use crate::memory::{self, Limit, Shortage, zeroed};
use crate::nystrom::{Nystrom, bytes_to_find};
use crate::observe::{Control, Phase};
use crate::solver::Working;
use crate::threads::{self, kernel_flops, pooled, pooled_if_worth};

/// Rows that one thread turns into features at once: enough to make packing the landmarks cheap beside the products.
const BLOCK: usize = 256;

/// Where the features are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In memory.
    Memory,
    /// In a temporary file mapped into memory, which vanishes with its user: the system keeps what it can in memory
    /// and the rest on disk. The folder is the system's for temporary files (TMPDIR names another); one that itself
    /// lies in memory gains nothing.
    File,
}

impl Storage {
    /// Memory, if `rank` features of `n` rows and `beside` bytes more fit; else, if allowed, a file.
    pub fn plan<T: Entry>(n: usize, rank: usize, beside: u64, may_spill: bool) -> Result<Self> {
        let need = Features::<T>::bytes(n, rank).saturating_add(beside);
        let Err(shortage) = Shortage::check(need) else { return Ok(Self::Memory) };
        // A file that is mapped takes address space as memory does.
        let in_space = if shortage.limit == Limit::AddressSpace { need } else { beside };
        if may_spill && Shortage::check(in_space).is_ok() {
            return Ok(Self::File);
        }
        Err(out_of_memory::<T>((n, rank), shortage, !may_spill))
    }

    /// Where the features of `n` rows go if a fit takes `beside` bytes more, and what it takes at its peak.
    pub(crate) fn planned<T: Entry>(n: usize, nystrom: &Nystrom, beside: u64) -> Result<(Self, u64)> {
        let storage = Self::plan::<T>(n, nystrom.rank(), beside, true)?;
        let features = if storage == Self::Memory { Features::<T>::bytes(n, nystrom.rank()) } else { 0 };
        Ok((storage, (features + beside).max(nystrom.bytes_to_find())))
    }
}

/// What the memory of a fit at low rank depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowRankSize {
    /// Landmarks, if there are as many rows.
    pub landmarks: usize,
    /// Most features.
    pub rank: Option<usize>,
}

impl Default for LowRankSize {
    fn default() -> Self {
        Self { landmarks: 2000, rank: None }
    }
}

impl LowRankSize {
    /// Bytes of a fit on `n` distinct rows that takes `beside` bytes beside its features, for their number.
    pub(crate) fn planned_bytes<T: Entry>(self, n: usize, beside: impl Fn(usize) -> u64) -> u64 {
        let landmarks = self.landmarks.min(n);
        let rank = self.rank.map_or(landmarks, |rank| rank.min(landmarks));
        (Features::<T>::bytes(n, rank) + beside(rank)).max(bytes_to_find(landmarks))
    }
}

/// Z, row after row.
#[derive(Debug)]
pub struct Features<T> {
    n: usize,
    rank: usize,
    values: Values<T>,
    /// How far each feature may be from what double precision has for it, one standard error.
    errors: Vec<f64>,
}

/// Z and, in single precision, its [corrections](residue), one after the other.
#[derive(Debug)]
enum Values<T> {
    Memory(Vec<T>, Vec<i16>),
    File(MmapMut, PhantomData<T>),
}

impl<T: Entry> Features<T> {
    /// Bytes that `rank` features of `n` rows take.
    pub fn bytes(n: usize, rank: usize) -> u64 {
        let entry = size_of::<T>() + if T::IS_ROUGH { size_of::<i16>() } else { 0 };
        n as u64 * rank as u64 * entry as u64
    }

    /// Computes the features of all rows of `x` in blocks of rows, on all threads of the current pool, or of one of its
    /// own.
    pub fn compute(nystrom: &Nystrom, x: &Rows, storage: Storage, control: &Control) -> Result<Self> {
        let rows: Vec<usize> = (0..x.nrows()).collect();
        pooled(0, || {
            x.check("X")?;
            Self::of_rows(&Cpu, nystrom, x, &rows, storage, control)
        })
    }

    /// Of these rows of `x`, which is checked already, in their order.
    pub(crate) fn of_rows(
        device: &impl Device,
        nystrom: &Nystrom,
        x: &Rows,
        rows: &[usize],
        storage: Storage,
        control: &Control,
    ) -> Result<Self> {
        if x.ncols() != nystrom.width() {
            return Err(Error::Features { got: x.ncols(), expected: nystrom.width() });
        }
        let (n, rank) = (rows.len(), nystrom.rank());
        let values = match storage {
            Storage::Memory => {
                let values = zeroed_features((n, rank), true)?;
                Values::Memory(values, if T::IS_ROUGH { memory::zeros(n * rank, "the features")? } else { Vec::new() })
            }
            Storage::File => Values::File(temporary_file(&std::env::temp_dir(), Self::bytes(n, rank))?, PhantomData),
        };
        let mut features = Self { n, rank, values, errors: Vec::new() };
        let (values, residues) = features.parts_mut();
        device.features(&nystrom.as_map(), x, rows, values, residues, control)?;
        let stored = if T::IS_ROUGH { STORAGE_ERROR } else { 0.0 } + (rank as f64).sqrt() * f64::EPSILON;
        let error = |(error, largest): (f64, f64)| error + stored * largest;
        features.errors = nystrom.feature_errors().into_iter().zip(features.largest()).map(error).collect();
        Ok(features)
    }

    /// The largest of each feature.
    fn largest(&self) -> Vec<f64> {
        let of_block = |block: &[T]| {
            let mut largest = vec![0.0_f64; self.rank];
            for row in block.chunks_exact(self.rank) {
                largest.iter_mut().zip(row).for_each(|(largest, value)| *largest = largest.max(value.wide().abs()));
            }
            largest
        };
        let larger = |mut a: Vec<f64>, b: Vec<f64>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = a.max(b));
            a
        };
        self.all().par_chunks(BLOCK * self.rank).map(of_block).reduce(|| vec![0.0; self.rank], larger)
    }

    /// How far each feature may be from what double precision has for it, one standard error.
    pub(crate) fn errors(&self) -> &[f64] {
        &self.errors
    }

    /// Its products.
    pub(crate) fn design(&self) -> Design<'_, T>
    where
        T: Working,
    {
        Design::new(self.all(), self.residues(), self.n, self.rank)
    }

    /// Takes the mean of each feature away, and returns them: f = Zw + b keeps its values if b gains what Zw loses, and
    /// features far from 0 would hide b.
    pub(crate) fn centre(&mut self) -> Vec<f64> {
        let (n, rank) = (self.n, self.rank);
        let parts: Vec<Vec<f64>> = self
            .all()
            .par_chunks(BLOCK * rank)
            .map(|block| {
                let mut sum = vec![0.0; rank];
                for row in block.chunks_exact(rank) {
                    sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.wide());
                }
                sum
            })
            .collect();
        let mut mean = vec![0.0; rank];
        for part in parts {
            mean.iter_mut().zip(part).for_each(|(mean, sum)| *mean += sum / n as f64);
        }
        let (values, residues) = self.parts_mut();
        if T::IS_ROUGH {
            let rows = values.par_chunks_mut(rank).zip(residues.par_chunks_mut(rank));
            rows.for_each(|(row, residues)| {
                for ((value, r), mean) in row.iter_mut().zip(residues).zip(&mean) {
                    let centred = corrected(*value, *r) - mean;
                    *value = T::narrow(centred);
                    *r = residue(centred, *value);
                }
            });
        } else {
            values.par_chunks_mut(rank).for_each(|row| {
                row.iter_mut().zip(&mean).for_each(|(value, mean)| *value = T::narrow(value.wide() - mean));
            });
        }
        mean
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Features of a row.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &[T] {
        &self.all()[i * self.rank..(i + 1) * self.rank]
    }

    /// Some rows, as a matrix.
    pub fn rows(&self, rows: Range<usize>) -> MatRef<'_, T> {
        let values = &self.all()[rows.start * self.rank..rows.end * self.rank];
        MatRef::from_row_major_slice(values, rows.len(), self.rank)
    }

    /// Row `i` in double precision.
    pub(crate) fn wide_row(&self, i: usize) -> Vec<f64> {
        let at = i * self.rank..(i + 1) * self.rank;
        let values = &self.all()[at.clone()];
        if T::IS_ROUGH {
            values.iter().zip(&self.residues()[at]).map(|(value, residue)| corrected(*value, *residue)).collect()
        } else {
            values.iter().map(|value| value.wide()).collect()
        }
    }

    /// All values, row after row.
    pub fn all(&self) -> &[T] {
        match &self.values {
            Values::Memory(values, _) => values,
            // SAFETY: the file begins with n × rank entries, pages are aligned for any of them, all bits are valid
            // floats, and nobody else can open the file, which has no name.
            Values::File(map, _) => unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), self.n * self.rank) },
        }
    }

    /// The corrections of all values; none in double precision.
    fn residues(&self) -> &[i16] {
        let length = self.n * self.rank;
        match &self.values {
            Values::Memory(_, residues) => residues,
            Values::File(..) if !T::IS_ROUGH => &[],
            // SAFETY: as in `all`; as many corrections follow the entries.
            Values::File(map, _) => unsafe {
                std::slice::from_raw_parts(map.as_ptr().cast::<T>().add(length).cast(), length)
            },
        }
    }

    /// Values and corrections.
    fn parts_mut(&mut self) -> (&mut [T], &mut [i16]) {
        let length = self.n * self.rank;
        match &mut self.values {
            Values::Memory(values, residues) => (values, residues),
            // SAFETY: as in `all` and `residues`, borrowed mutably; the two do not overlap.
            Values::File(map, _) => unsafe {
                let start = map.as_mut_ptr().cast::<T>();
                let corrections = if T::IS_ROUGH { length } else { 0 };
                (
                    std::slice::from_raw_parts_mut(start, length),
                    std::slice::from_raw_parts_mut(start.add(length).cast(), corrections),
                )
            },
        }
    }
}

fn zeroed_features<T: Entry>((rows, rank): (usize, usize), could_spill: bool) -> Result<Vec<T>> {
    let failed = || out_of_memory::<T>((rows, rank), Shortage::of(Features::<T>::bytes(rows, rank)), could_spill);
    zeroed(rows.saturating_mul(rank)).ok_or_else(failed)
}

fn out_of_memory<T>((rows, rank): (usize, usize), shortage: Shortage, could_spill: bool) -> Error {
    let Shortage { need, available, limit } = shortage;
    Error::FeatureMemory { rows, rank, need, available, limit, could_halve: size_of::<T>() == 8, could_spill }
}

/// A file of so many zeros without a name, mapped into memory. All of it is allocated now, so that a full disk is an
/// error here and not a signal later.
fn temporary_file(folder: &Path, need: u64) -> Result<MmapMut> {
    let failed = |reason: String| Error::Disk { need, folder: folder.display().to_string(), reason };
    let said = |error: std::io::Error| failed(error.to_string());
    let free = fs4::available_space(folder).map_err(said)?;
    if free < need {
        return Err(failed(format!("only {} are free there", human(free))));
    }
    let file = tempfile::tempfile_in(folder).map_err(said)?;
    match FileExt::allocate(&file, need) {
        // File systems that cannot set space aside: the free space seen above has to do.
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {}
        outcome => outcome.map_err(said)?,
    }
    file.set_len(need).map_err(said)?;
    // SAFETY: nobody else has the file, so that nobody changes or shortens it.
    unsafe { MmapMut::map_mut(&file) }.map_err(said)
}

/// K(X, landmarks)·M for new rows, given what [`Nystrom`] found: landmarks (of a precomputed kernel, `x` has a column
/// for each in place of them) and M; row after row. Many rows are shared out among so many threads.
pub fn transform<T: Entry>(
    x: &Rows,
    landmarks: &Rows,
    map: MatRef<f64>,
    kernel: &KernelFn,
    threads: usize,
    control: &Control,
) -> Result<Vec<T>> {
    let count = map.nrows();
    let precomputed = kernel.shape == Shape::Precomputed;
    if !precomputed && landmarks.nrows() != count {
        let why = "one row a landmark";
        return Err(Error::Length { what: "the map", got: count, expected: landmarks.nrows(), why });
    }
    let expected = if precomputed { count } else { landmarks.ncols() };
    if x.ncols() != expected {
        return Err(Error::Features { got: x.ncols(), expected });
    }
    let (n, rank) = (x.nrows(), map.ncols());
    pooled_if_worth(threads, kernel_flops(x, landmarks, rank), || {
        x.check("X")?;
        let mut out = zeroed_features((n, rank), false)?;
        let columns: Vec<usize> = (0..count).collect();
        let rows: Vec<usize> = (0..n).collect();
        let map = Map { landmarks: *landmarks, columns: &columns, matrix: map, kernel: *kernel };
        Cpu.features(&map, x, &rows, &mut out, &mut [], control)?;
        Ok(out)
    })
}

/// What turns rows into features.
pub(crate) struct Map<'a> {
    pub landmarks: Rows<'a>,
    /// Rows of `landmarks`; columns of the data when the kernel is precomputed.
    pub columns: &'a [usize],
    pub matrix: MatRef<'a, f64>,
    pub kernel: KernelFn,
}

impl Map<'_> {
    /// Writes the features of the given rows of `x`, in f64 until they are stored: M divides by small numbers.
    /// Corrections go to `residues`, unless that is empty.
    pub fn fill<T: Entry>(
        &self,
        x: &Rows,
        rows: &[usize],
        out: &mut [T],
        residues: &mut [i16],
        control: &Control,
    ) -> Result<()> {
        let Self { landmarks, columns, matrix, kernel } = self;
        let (rank, total) = (matrix.ncols(), rows.len());
        let all: Vec<usize> = (0..landmarks.nrows()).collect();
        let shift = shift_for(kernel, x, landmarks, &all);
        let mut none: Vec<&mut [i16]> = Vec::new();
        let corrections: Vec<&mut [i16]> = if residues.is_empty() {
            none.resize_with(rows.len().div_ceil(BLOCK), Default::default);
            none
        } else {
            residues.chunks_mut(BLOCK * rank).collect()
        };
        control.begin(Phase::Kernel, total.div_ceil(BLOCK));
        let fill = |(tile, block): &mut (Tile, Vec<f64>), rows: &[usize], out: &mut [T], residues: &mut [i16]| {
            if control.out_of_time() {
                let budget = control.budget_seconds().unwrap_or(0.0);
                return Err(Error::TimeBudget { budget, what: "the features were complete", rows: total });
            }
            block.clear();
            block.resize(out.len(), 0.0);
            for (k, columns) in columns.chunks(TILE).enumerate() {
                control.check()?;
                tile.evaluate(x, rows, landmarks, columns, &shift, kernel);
                if let Some(at) = tile.values.iter().position(|v| !T::narrow(*v).wide().is_finite()) {
                    let (row, landmark) = (rows[at / columns.len()], k * TILE + at % columns.len());
                    return Err(overflow::<T>(row, landmark, tile.values[at]));
                }
                matmul(
                    MatMut::from_row_major_slice_mut(&mut *block, rows.len(), rank),
                    Accum::Add,
                    MatRef::from_row_major_slice(&tile.values, rows.len(), columns.len()),
                    matrix.subrows(k * TILE, columns.len()),
                    1.0,
                    Par::Seq,
                );
            }
            for (out, value) in out.iter_mut().zip(&*block) {
                *out = T::narrow(*value);
            }
            for ((residue_of, value), out) in residues.iter_mut().zip(&*block).zip(&*out) {
                *residue_of = residue(*value, *out);
            }
            control.advance(1);
            Ok(())
        };
        if threads::is_alone() {
            let mut scratch = Default::default();
            let mut blocks = rows.chunks(BLOCK).zip(out.chunks_mut(BLOCK * rank)).zip(corrections);
            return blocks.try_for_each(|((rows, out), residues)| fill(&mut scratch, rows, out, residues));
        }
        let blocks = rows.par_chunks(BLOCK).zip(out.par_chunks_mut(BLOCK * rank)).zip(corrections);
        blocks
            .try_for_each_init(Default::default, |scratch, ((rows, out), residues)| fill(scratch, rows, out, residues))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::available_memory;

    #[test]
    fn a_file_that_cannot_be_had_is_an_error() {
        let folder = std::env::temp_dir();
        let message = temporary_file(&folder, 1 << 60).unwrap_err().to_string();
        assert!(message.contains("1152921504.6 GB") && message.contains("free there"), "{message}");
        let message = temporary_file(&folder.join("no-such-folder"), 8).unwrap_err().to_string();
        assert!(message.contains("no-such-folder") && message.contains("TMPDIR"), "{message}");
    }

    #[test]
    fn the_plan_takes_memory_then_a_file_then_refuses() {
        assert_eq!(Storage::plan::<f32>(1000, 10, 0, false).unwrap(), Storage::Memory);
        if available_memory().is_none() {
            return;
        }
        let (n, rank) = (1 << 40, 100);
        assert_eq!(Storage::plan::<f32>(n, rank, 0, true).unwrap(), Storage::File);
        let message = Storage::plan::<f64>(n, rank, 0, false).unwrap_err().to_string();
        assert!(message.contains("100 features of 1099511627776 rows need 879609.3 GB"), "{message}");
        assert!(message.contains("float32") && message.contains("kept in a file"), "{message}");
        let message = Storage::plan::<f32>(n, rank, 1 << 60, true).unwrap_err().to_string();
        assert!(!message.contains("float32") && !message.contains("kept in a file"), "{message}");
    }
}
