//! Rows turned into features: kernel values with landmarks, times a small matrix.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::data::rows::Rows;
use crate::error::{Error, Result};
use crate::kernel::elsewhere::Kernels;
use crate::kernel::shape::{KernelFn, Shape};
use crate::kernel::tile::{Side, TILE, Tile, check_sums, shift_for};
use crate::numeric::entry::{Entry, residue};
use crate::numeric::parallel;
use crate::observe::{Control, Phase};

/// Rows that one thread turns into features at a time: enough to make packing the landmarks cheap beside the products.
pub(crate) const MAPPED_ROWS: usize = 256;

/// Rows whose features come from a device at a time: few enough that they take little memory.
const SENT_ROWS: usize = 8192;

/// The map that turns rows into features.
pub(crate) struct Map<'a> {
    pub landmarks: Rows<'a>,
    /// Rows of `landmarks`, or columns of the data if the kernel is precomputed.
    pub columns: &'a [usize],
    pub matrix: MatRef<'a, f64>,
    pub kernel: KernelFn,
}

impl Map<'_> {
    /// Writes the features of the given rows of `x`. They are computed in f64 and narrowed when stored, since M divides
    /// by small numbers. Corrections go to `residues`, unless that is empty.
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
        let precomputed = kernel.shape == Shape::Precomputed;
        let side = if precomputed { Side::Given } else { Side::Rows("landmarks", landmarks) };
        let mut none: Vec<&mut [i16]> = Vec::new();
        let corrections: Vec<&mut [i16]> = if residues.is_empty() {
            none.resize_with(rows.len().div_ceil(MAPPED_ROWS), Default::default);
            none
        } else {
            residues.chunks_mut(MAPPED_ROWS * rank).collect()
        };
        control.begin(Phase::Kernel, total.div_ceil(MAPPED_ROWS));
        let fill = |(tile, block): &mut (Tile, Vec<f64>), rows: &[usize], out: &mut [T], residues: &mut [i16]| {
            in_time(total, control)?;
            block.clear();
            block.resize(out.len(), 0.0);
            for (k, columns) in columns.chunks(TILE).enumerate() {
                control.check()?;
                tile.evaluate(x, rows, landmarks, columns, &shift, kernel);
                tile.check::<T>((Side::x(kernel, x), rows), (side, columns))?;
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
        let blocks = rows.chunks(MAPPED_ROWS).zip(out.chunks_mut(MAPPED_ROWS * rank)).zip(corrections);
        parallel::try_for_each_with(blocks, |scratch, ((rows, out), residues)| fill(scratch, rows, out, residues))
    }

    /// As [`fill`](Self::fill), by a device if there is one.
    #[allow(clippy::too_many_arguments)]
    pub fn fill_on<T: Entry>(
        &self,
        kernels: Option<&dyn Kernels>,
        x: &Rows,
        rows: &[usize],
        out: &mut [T],
        residues: &mut [i16],
        control: &Control,
    ) -> Result<()> {
        let Self { landmarks, matrix, kernel, .. } = self;
        let Some(kernels) = kernels.filter(|_| kernel.shape != Shape::Precomputed) else {
            return self.fill(x, rows, out, residues, control);
        };
        let (total, block) = (rows.len(), SENT_ROWS * matrix.ncols());
        control.begin(Phase::Kernel, total.div_ceil(SENT_ROWS));
        for (k, (rows, out)) in rows.chunks(SENT_ROWS).zip(out.chunks_mut(block)).enumerate() {
            in_time(total, control)?;
            let values = kernels.times(x, rows, landmarks, *matrix, kernel, control)?;
            check_sums::<T>("a feature", Side::x(kernel, x), |k| rows[k], matrix.ncols(), &values)?;
            out.iter_mut().zip(&values).for_each(|(out, value)| *out = T::narrow(*value));
            let corrections = residues.iter_mut().skip(k * block);
            corrections.zip(&values).zip(&*out).for_each(|((r, value), out)| *r = residue(*value, *out));
            control.advance(1);
        }
        Ok(())
    }
}

/// An error if the time is over before the features of that many rows are complete.
fn in_time(rows: usize, control: &Control) -> Result<()> {
    if !control.out_of_time() {
        return Ok(());
    }
    let budget = control.budget_seconds().unwrap_or(0.0);
    Err(Error::TimeBudget { budget, what: "the features were complete", rows })
}
