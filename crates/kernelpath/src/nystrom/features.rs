//! The matrix Z of low-rank features, computed once for all folds and C's, in memory or in a file.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatRef, Par};
use fs4::FileExt;
use memmap2::MmapMut;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;

use crate::data::rows::Rows;
use crate::error::{Error, Limit, Result, human};
use crate::kernel::elsewhere::Kernels;
use crate::kernel::evaluate::kernel_flops;
use crate::kernel::feature_map::{MAPPED_ROWS, Map};
use crate::kernel::gram::Gram;
use crate::kernel::plane::Plane;
use crate::kernel::shape::{KernelFn, Shape};
use crate::kernel::tile::{Side, check_sums};
use crate::numeric::cholesky::Working;
use crate::numeric::design::Design;
use crate::numeric::entry::{Entry, STORAGE_ERROR, corrected, residue};
use crate::numeric::memory;
use crate::numeric::memory::{Shortage, zeroed};
use crate::numeric::parallel;
use crate::numeric::remote::{Remote, Stored};
use crate::numeric::threads::{pooled, pooled_if_worth};
use crate::nystrom::approximation::{Nystrom, bytes_to_find};
use crate::observe::{Control, Phase};

/// Where the features are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In memory.
    Memory,
    /// In a temporary file mapped into memory, which vanishes with its user: the system keeps what it can in memory and
    /// the rest on disk. The file lies in the system's folder for temporary files (TMPDIR names another one). A folder
    /// that itself lies in memory gains nothing.
    File,
}

impl Storage {
    /// Memory, if there is enough for `rank` features of `n` rows and `beside` more bytes; else a file, if `may_spill`
    /// allows it.
    pub fn plan<T: Entry>(n: usize, rank: usize, beside: u64, may_spill: bool) -> Result<Self> {
        let need = Features::<T>::bytes(n, rank).saturating_add(beside);
        let Err(shortage) = Shortage::check(need) else { return Ok(Self::Memory) };
        // A mapped file takes address space, as memory does.
        let in_space = if shortage.limit == Limit::AddressSpace { need } else { beside };
        if may_spill && Shortage::check(in_space).is_ok() {
            return Ok(Self::File);
        }
        Err(out_of_memory::<T>((n, rank), shortage, !may_spill))
    }

    /// Where the features of `n` rows go if a fit takes `beside` more bytes, and the bytes that the fit takes at its
    /// peak.
    pub(crate) fn planned<T: Entry>(n: usize, nystrom: &Nystrom, beside: u64) -> Result<(Self, u64)> {
        let storage = Self::plan::<T>(n, nystrom.rank(), beside, true)?;
        let features = if storage == Self::Memory { Features::<T>::bytes(n, nystrom.rank()) } else { 0 };
        Ok((storage, (features + beside).max(nystrom.bytes_to_find())))
    }
}

/// What the memory of a fit at low rank depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowRankSize {
    /// Most landmarks; fewer if there are fewer rows.
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
    /// Bytes of a fit on `n` distinct rows. `beside` says what it takes beside its features, given their number.
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
    /// How far each feature may be from its value in double precision: one standard error.
    errors: Vec<f64>,
    /// Z on a device, where passes over all rows run.
    pub(crate) remote: Option<Box<dyn Remote>>,
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

    /// Computes the features of all rows of `x` in blocks of rows, on all threads of the current pool, or of a new one.
    pub fn compute(nystrom: &Nystrom, x: &Rows, storage: Storage, control: &Control) -> Result<Self> {
        let rows: Vec<usize> = (0..x.nrows()).collect();
        pooled(0, || {
            x.check("X")?;
            Self::of_rows(nystrom, x, &rows, storage, None, &[], control)
        })
    }

    /// The features of these rows of `x`, in their order, by a device if there is one. `x` is checked already. With a
    /// centre, which only the linear kernel may have, they are φ(x) − φ(m), computed from x − m: that saves the digits of
    /// rows far from 0.
    pub(crate) fn of_rows(
        nystrom: &Nystrom,
        x: &Rows,
        rows: &[usize],
        storage: Storage,
        kernels: Option<&dyn Kernels>,
        centre: &[f64],
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
        let mut features = Self { n, rank, values, errors: Vec::new(), remote: None };
        let (values, residues) = features.parts_mut();
        if centre.is_empty() {
            nystrom.as_map().fill_on(kernels, x, rows, values, residues, control)?;
        } else {
            fill_by(&nystrom.plane(centre)?, x, rows, (values, residues), control)?;
        }
        let stored = if T::IS_ROUGH { STORAGE_ERROR } else { 0.0 } + (rank as f64).sqrt() * f64::EPSILON;
        let error = |(error, largest): (f64, f64)| error + stored * largest;
        let errors = nystrom.feature_errors(nystrom.largest_root(x, rows, centre));
        features.errors = errors.into_iter().zip(features.largest()).map(error).collect();
        Ok(features)
    }

    /// The largest magnitude of each feature.
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
        let parts = parallel::map(self.all().chunks(MAPPED_ROWS * self.rank), of_block);
        parts.into_iter().fold(vec![0.0; self.rank], larger)
    }

    /// How far each feature may be from its value in double precision: one standard error.
    pub(crate) fn errors(&self) -> &[f64] {
        &self.errors
    }

    /// The features as a device takes them.
    pub(crate) fn stored(&self) -> Stored<'_> {
        let (rows, columns) = (self.n, self.rank);
        Stored { rows, columns, stride: columns, numbers: T::numbers(self.all(), self.residues()), symmetric: false }
    }

    /// Z as a matrix to multiply with.
    pub(crate) fn design(&self) -> Design<'_, T>
    where
        T: Working,
    {
        Design::new(self.all(), self.residues(), self.n, self.rank).with_remote(self.remote.as_deref())
    }

    /// Subtracts the mean of each feature, and returns the means. f = Zw + b keeps its values if b gains what Zw loses,
    /// and features far from 0 would hide b.
    pub(crate) fn centre(&mut self) -> Vec<f64> {
        let (n, rank) = (self.n, self.rank);
        let parts = parallel::map(self.all().chunks(MAPPED_ROWS * rank), |block| {
            let mut sum = vec![0.0; rank];
            for row in block.chunks_exact(rank) {
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.wide());
            }
            sum
        });
        let mut mean = vec![0.0; rank];
        for part in parts {
            mean.iter_mut().zip(part).for_each(|(mean, sum)| *mean += sum / n as f64);
        }
        let (values, residues) = self.parts_mut();
        if T::IS_ROUGH {
            let blocks = values.chunks_mut(MAPPED_ROWS * rank).zip(residues.chunks_mut(MAPPED_ROWS * rank));
            parallel::for_each(blocks, |(block, residues)| {
                for (row, residues) in block.chunks_exact_mut(rank).zip(residues.chunks_exact_mut(rank)) {
                    for ((value, r), mean) in row.iter_mut().zip(residues).zip(&mean) {
                        let centred = corrected(*value, *r) - mean;
                        *value = T::narrow(centred);
                        *r = residue(centred, *value);
                    }
                }
            });
        } else {
            parallel::for_each(values.chunks_mut(MAPPED_ROWS * rank), |block| {
                for row in block.chunks_exact_mut(rank) {
                    row.iter_mut().zip(&mean).for_each(|(value, mean)| *value = T::narrow(value.wide() - mean));
                }
            });
        }
        mean
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of features of a row.
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

    /// The kernel matrix ZZᵀ in double precision.
    pub(crate) fn product(&self, control: &Control) -> Result<Gram<f64>> {
        let mut z = memory::matrix(self.rank, self.n, "the features", |_, _| 0.0)?;
        for i in 0..self.n {
            z.col_as_slice_mut(i).copy_from_slice(&self.wide_row(i));
        }
        let mut product = memory::matrix(self.n, self.n, "the kernel matrix of the features", |_, _| 0.0)?;
        matmul(product.as_mut(), Accum::Replace, z.transpose(), z.as_ref(), 1.0, Par::Seq);
        let all: Vec<usize> = (0..self.n).collect();
        Gram::compute(&Rows::from(&product), &all, &KernelFn::new(Shape::Precomputed, 1.0)?, None, control)
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

    /// The corrections of all values; empty in double precision.
    fn residues(&self) -> &[i16] {
        let length = self.n * self.rank;
        match &self.values {
            Values::Memory(_, residues) => residues,
            Values::File(..) if !T::IS_ROUGH => &[],
            // SAFETY: as in `all`; the entries are followed by one correction each.
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

/// Writes the values of planes at some rows, one plane a feature.
fn fill_by<T: Entry>(
    plane: &Plane,
    x: &Rows,
    rows: &[usize],
    (values, residues): (&mut [T], &mut [i16]),
    control: &Control,
) -> Result<()> {
    let width = MAPPED_ROWS * plane.weights().ncols();
    control.begin(Phase::Kernel, rows.len().div_ceil(MAPPED_ROWS));
    let mut none: Vec<&mut [i16]> = Vec::new();
    none.resize_with(rows.len().div_ceil(MAPPED_ROWS), Default::default);
    let residues = if residues.is_empty() { none } else { residues.chunks_mut(width).collect() };
    let blocks = rows.chunks(MAPPED_ROWS).zip(values.chunks_mut(width)).zip(residues);
    parallel::try_for_each(blocks, |((rows, values), residues)| {
        control.check()?;
        let wide = plane.values_at(x, rows);
        check_sums::<T>("a feature", Side::Rows("X", x), |k| rows[k], plane.weights().ncols(), &wide)?;
        values.iter_mut().zip(&wide).for_each(|(value, wide)| *value = T::narrow(*wide));
        residues.iter_mut().zip(&wide).zip(&*values).for_each(|((r, wide), value)| *r = residue(*wide, *value));
        control.advance(1);
        Ok(())
    })
}

fn zeroed_features<T: Entry>((rows, rank): (usize, usize), could_spill: bool) -> Result<Vec<T>> {
    let failed = || out_of_memory::<T>((rows, rank), Shortage::of(Features::<T>::bytes(rows, rank)), could_spill);
    zeroed(rows.saturating_mul(rank)).ok_or_else(failed)
}

fn out_of_memory<T>((rows, rank): (usize, usize), shortage: Shortage, could_spill: bool) -> Error {
    let Shortage { need, available, limit } = shortage;
    Error::FeatureMemory { rows, rank, need, available, limit, could_halve: size_of::<T>() == 8, could_spill }
}

/// A file of `need` zero bytes without a name, mapped into memory. All of it is allocated now, so that a full disk is
/// an error here and not a signal later.
fn temporary_file(folder: &Path, need: u64) -> Result<MmapMut> {
    let failed = |reason: String| Error::Disk { need, folder: folder.display().to_string(), reason };
    let said = |error: std::io::Error| failed(error.to_string());
    let free = fs4::available_space(folder).map_err(said)?;
    if free < need {
        return Err(failed(format!("only {} are free there", human(free))));
    }
    let file = tempfile::tempfile_in(folder).map_err(said)?;
    match FileExt::allocate(&file, need) {
        // Some file systems cannot set space aside: the free space seen above has to do.
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {}
        outcome => outcome.map_err(said)?,
    }
    file.set_len(need).map_err(said)?;
    // SAFETY: nobody else has the file, so that nobody changes or shortens it.
    unsafe { MmapMut::map_mut(&file) }.map_err(said)
}

/// K(X, landmarks)·M for new rows, row after row, given the landmarks and the M that [`Nystrom`] found. With a
/// precomputed kernel, `x` has a column for each landmark instead. If there is much to compute, it is shared out among
/// `threads` threads.
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
    if rank == 0 {
        return Ok(Vec::new());
    }
    pooled_if_worth(threads, kernel_flops(x, landmarks, rank), || {
        x.check("X")?;
        let mut out = zeroed_features((n, rank), false)?;
        let columns: Vec<usize> = (0..count).collect();
        let rows: Vec<usize> = (0..n).collect();
        let map = Map { landmarks: *landmarks, columns: &columns, matrix: map, kernel: *kernel };
        map.fill(x, &rows, &mut out, &mut [], control)?;
        Ok(out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::numeric::memory::available_memory;

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
        assert!(message.contains("Precision::Single") && message.contains("kept in a file"), "{message}");
        let message = Storage::plan::<f32>(n, rank, 1 << 60, true).unwrap_err().to_string();
        assert!(!message.contains("Precision::Single") && !message.contains("kept in a file"), "{message}");
    }
}
