//! Matrices in panels of columns: a device may refuse blocks that are larger than a part of its memory.

use std::ops::Range;
use std::sync::Arc;

use crate::device::gpu::launcher::{Launcher, Operand, Width};
use crate::device::gpu::machine::{Machine, Memory, pieces_at_once};
use crate::device::matrix::Matrix;
use crate::error::{Error, Result};
use crate::numeric::memory;

/// A matrix in panels of `at_once` columns, each column after column. Matrices of as many rows in the same precision have
/// panels of the same width.
pub(crate) struct Panels<L: Launcher> {
    pub width: Width,
    pub rows: usize,
    pub columns: usize,
    pub at_once: usize,
    pub blocks: Vec<Memory<L>>,
}

impl<L: Launcher> Panels<L> {
    /// Room for a matrix.
    pub fn new(machine: &Arc<Machine<L>>, width: Width, rows: usize, columns: usize) -> Result<Self> {
        check_size(rows)?;
        check_size(columns)?;
        let column = width.bytes() * rows.max(1) as u64;
        let at_once = (machine.largest() / column).clamp(1, i32::MAX as u64) as usize;
        let block = |start: usize| {
            let count = rows * at_once.min(columns - start);
            match width {
                Width::Single => machine.allocate::<f32>(count),
                Width::Double => machine.allocate::<f64>(count),
            }
        };
        let blocks = (0..columns).step_by(at_once).map(block).collect::<Result<_>>()?;
        Ok(Self { width, rows, columns, at_once, blocks })
    }

    /// Each panel's columns and block.
    pub fn each(&self) -> impl Iterator<Item = (Range<usize>, &Memory<L>)> {
        let range = |p: usize| p * self.at_once..self.columns.min((p + 1) * self.at_once);
        self.blocks.iter().enumerate().map(move |(p, block)| (range(p), block))
    }

    /// The block of some columns, which are in one panel, and where they begin in it.
    pub fn columns_at(&self, first: usize) -> Operand<'_, L::Memory> {
        Operand::new(self.blocks[first / self.at_once].block(), first % self.at_once * self.rows, self.rows)
    }

    /// Stretches of columns that are in one panel of this matrix and of `other`, which has the same number of columns.
    pub fn stretches(&self, other: &Self) -> impl Iterator<Item = Range<usize>> {
        let (a, b, all) = (self.at_once, other.at_once, self.columns);
        let mut start = 0;
        std::iter::from_fn(move || {
            (start < all).then(|| {
                let end = all.min((start / a + 1) * a).min((start / b + 1) * b);
                std::mem::replace(&mut start, end)..end
            })
        })
    }

    /// Writes columns that the host computes some at a time.
    pub fn fill(
        &self,
        machine: &Machine<L>,
        mut columns: impl FnMut(Range<usize>, &mut [f64]) -> Result<()>,
    ) -> Result<()> {
        let at_once = pieces_at_once(self.rows).min(self.columns);
        let mut host = memory::zeros::<f64>(at_once * self.rows, "numbers on their way to a device")?;
        for (range, block) in self.each() {
            for start in range.clone().step_by(at_once.max(1)) {
                let end = range.end.min(start + at_once);
                let part = &mut host[..(end - start) * self.rows];
                columns(start..end, part)?;
                machine.write(part, block, (start - range.start) * self.rows)?;
            }
        }
        Ok(())
    }

    /// Reads the columns, in double precision, some at a time.
    pub fn read(
        &self,
        machine: &Machine<L>,
        mut columns: impl FnMut(Range<usize>, &[f64]) -> Result<()>,
    ) -> Result<()> {
        let at_once = pieces_at_once(self.rows).min(self.columns);
        let mut host = memory::zeros::<f64>(at_once * self.rows, "numbers on their way from a device")?;
        for (range, block) in self.each() {
            for start in range.clone().step_by(at_once.max(1)) {
                let end = range.end.min(start + at_once);
                let part = &mut host[..(end - start) * self.rows];
                machine.read(block, (start - range.start) * self.rows, part)?;
                columns(start..end, part)?;
            }
        }
        Ok(())
    }

    pub fn wrap(self) -> Matrix {
        Matrix::new(self.rows, self.columns, self)
    }
}

/// Fails where the kernels, which count rows and columns in 32 bits, would lose count.
pub(crate) fn check_size(size: usize) -> Result<()> {
    if i32::try_from(size).is_ok() { Ok(()) } else { Err(Error::DeviceSize { size }) }
}
