//! Kernels between rows on a device, in panels of rows.

use faer::MatRef;
use std::ops::Range;
use std::sync::Arc;

use crate::data::rows::Rows;
use crate::device::gpu::accelerator::{Accelerator, int};
use crate::device::gpu::launcher::{Arg, Launcher, Operand, Product, Width};
use crate::device::gpu::machine::{Machine, Memory, Pace};
use crate::device::gpu::panels::check_size;
use crate::error::Result;
use crate::kernel::elsewhere::{EachPanel, Kernels};
use crate::kernel::shape::{KernelFn, Measure, Shape};
use crate::numeric::memory;
use crate::observe::Control;

/// Flops that a kernel value takes beside those for the entries of its rows.
const FLOPS_OF_VALUE: f64 = 30.0;

/// Flops for each column of two dense rows.
const FLOPS_OF_ENTRY: f64 = 3.0;

/// What each stored entry of two rows takes that are merged, in flops of dense rows that take as long: nine times as many
/// as an entry of those, as measured on PoCL.
const FLOPS_OF_MERGED_ENTRY: f64 = 27.0;

/// Rows on a device.
enum OnDevice<L: Launcher> {
    Dense(Memory<L>),
    /// Where each row starts, and the columns and the values of all entries.
    Sparse([Memory<L>; 3]),
}

/// A kernel as the kernels of the device take it.
fn arguments<M>(kernel: &KernelFn) -> [Arg<'static, M>; 5] {
    let (shape, coef0, degree) = match kernel.shape {
        Shape::Rbf => (0, 0.0, 0),
        Shape::Laplacian => (1, 0.0, 0),
        Shape::Poly { degree, coef0 } => (2, coef0, degree.try_into().unwrap_or(i32::MAX)),
        // Precomputed values are copied, and need no kernel.
        Shape::Linear | Shape::Precomputed => (3, 0.0, 0),
        Shape::Sigmoid { coef0 } => (4, coef0, 0),
        Shape::Matern32 => (5, 0.0, 0),
        Shape::Matern52 => (6, 0.0, 0),
    };
    let measure = match kernel.shape.measure() {
        Measure::Products => 0,
        Measure::SquaredDistances => 1,
        Measure::AbsoluteDistances => 2,
    };
    [Arg::Int(measure), Arg::Int(shape), Arg::Double(kernel.gamma), Arg::Double(coef0), Arg::Int(degree)]
}

/// Entries that row `i` has on a device.
fn entries_of(rows: &Rows, i: usize) -> usize {
    rows.as_csr().map_or(rows.ncols(), |rows| rows.row(i).count())
}

/// The kernel between rows of two matrices, on a device.
struct Between<'a, L: Launcher> {
    machine: &'a Arc<Machine<L>>,
    kernel: &'a KernelFn,
    x: &'a Rows<'a>,
    z: &'a Rows<'a>,
    /// The rows of z in panels, and the panels themselves where they all fit.
    b: &'a [usize],
    panels: Vec<Range<usize>>,
    kept: Vec<OnDevice<L>>,
    sparse: bool,
    /// What is subtracted from dense rows.
    shift: Vec<f64>,
    /// Columns of coefficients that the kernel is multiplied with.
    machines: usize,
}

impl<'a, L: Launcher> Between<'a, L> {
    fn new(
        machine: &'a Arc<Machine<L>>,
        kernel: &'a KernelFn,
        x: &'a Rows,
        z: &'a Rows,
        b: &'a [usize],
        centre: &[f64],
        machines: usize,
    ) -> Result<Self> {
        check_size(b.len())?;
        check_size(x.ncols())?;
        let sparse = x.as_csr().or(z.as_csr()).is_some();
        let (panels, kept) = (Vec::new(), Vec::new());
        let shift = if centre.is_empty() { vec![0.0; x.ncols()] } else { centre.to_vec() };
        let mut between = Self { machine, kernel, x, z, b, panels, kept, sparse, shift, machines };
        let longest_row = (0..x.nrows()).map(|i| entries_of(x, i)).max().unwrap_or(0);
        let of_pair = between.flops_beside_entries() + between.flops_of_entry() * longest_row as f64;
        between.panels = between.panels_of(z, b, usize::MAX, |j| of_pair + between.flops_to_merge(&[j]));
        let bytes: u64 = b.iter().map(|&i| between.row_bytes(z, i)).sum();
        if bytes <= machine.left() / 2 {
            between.kept =
                between.panels.iter().map(|panel| between.upload(z, &b[panel.clone()])).collect::<Result<_>>()?;
        }
        Ok(between)
    }

    /// Bytes of row `i` on the device.
    fn row_bytes(&self, rows: &Rows, i: usize) -> u64 {
        let entries = entries_of(rows, i) as u64;
        if self.sparse { 16 * entries + 8 } else { 8 * entries }
    }

    /// Ranges of at most `most` rows that fit into a block of work each, and whose `flops` do not take long.
    fn panels_of(
        &self,
        rows: &Rows,
        numbers: &[usize],
        most: usize,
        flops_of: impl Fn(usize) -> f64,
    ) -> Vec<Range<usize>> {
        let (mut panels, mut start, mut bytes, mut flops) = (Vec::new(), 0, 0, 0.0);
        for (at, &i) in numbers.iter().enumerate() {
            let (row, of_row) = (self.row_bytes(rows, i), flops_of(i));
            let is_full = bytes + row > self.machine.work_bytes() || flops + of_row > self.machine.stride_of_pace();
            if at > start && (at - start >= most || is_full) {
                panels.push(start..at);
                (start, bytes, flops) = (at, 0, 0.0);
            }
            bytes += row;
            flops += of_row;
        }
        if start < numbers.len() {
            panels.push(start..numbers.len());
        }
        panels
    }

    /// Panels of rows of x, such that the kernel of each with a panel of z, and the values of all machines, fit into a block
    /// of work, and that none takes long.
    fn panels_of_x(&self, a: &[usize]) -> Vec<Range<usize>> {
        let longest = if self.is_precomputed() { self.x.ncols() } else { self.longest() }.max(1);
        let in_memory = self.machine.work_bytes() as usize / 8 / longest.max(self.machines);
        let of_panels = self.panels.iter().map(|panel| self.flops_to_merge(&self.b[panel.clone()]));
        let to_merge = of_panels.fold(0.0, f64::max);
        let flops_of_row = |i: usize| self.flops_of_row(i, longest) + to_merge;
        self.panels_of(self.x, a, in_memory.max(1), flops_of_row)
    }

    fn longest(&self) -> usize {
        self.panels.iter().map(Range::len).max().unwrap_or(0)
    }

    fn is_precomputed(&self) -> bool {
        self.kernel.shape == Shape::Precomputed
    }

    fn flops_of_entry(&self) -> f64 {
        if self.sparse { FLOPS_OF_MERGED_ENTRY } else { FLOPS_OF_ENTRY }
    }

    /// Flops of a pair of rows beside those for their entries: those of the kernel value, and of its product with the
    /// coefficients. Precomputed values take those of the product alone.
    fn flops_beside_entries(&self) -> f64 {
        let of_value = if self.is_precomputed() { 0.0 } else { FLOPS_OF_VALUE };
        of_value + 2.0 * self.machines as f64
    }

    /// Flops of row `i` of x with `columns` rows of z, but for those that the entries of sparse rows of z add.
    fn flops_of_row(&self, i: usize, columns: usize) -> f64 {
        let of_entries = if self.is_precomputed() { 0.0 } else { self.flops_of_entry() * entries_of(self.x, i) as f64 };
        columns as f64 * (of_entries + self.flops_beside_entries())
    }

    /// Flops that the entries of sparse rows of z add for each row of x: they are merged with its own. Those of a dense row
    /// meet the columns of x, which are counted already.
    fn flops_to_merge(&self, rows: &[usize]) -> f64 {
        if !self.sparse {
            return 0.0;
        }
        self.flops_of_entry() * rows.iter().map(|&j| entries_of(self.z, j)).sum::<usize>() as f64
    }

    /// Flops of the kernel between some rows of x and a panel of z, and of its product with the coefficients.
    fn flops(&self, rows: &[usize], panel: &Range<usize>) -> f64 {
        let of_rows: f64 = rows.iter().map(|&i| self.flops_of_row(i, panel.len())).sum();
        of_rows + rows.len() as f64 * self.flops_to_merge(&self.b[panel.clone()])
    }

    /// Copies rows to the device.
    fn upload(&self, rows: &Rows, numbers: &[usize]) -> Result<OnDevice<L>> {
        let p = rows.ncols();
        if !self.sparse {
            let mut values = memory::zeros::<f64>(numbers.len() * p, "rows on their way to a device")?;
            for (&i, row) in numbers.iter().zip(values.chunks_mut(p.max(1))) {
                rows.copy_row(i, &self.shift, row);
            }
            return Ok(OnDevice::Dense(self.machine.upload(&values)?));
        }
        let (mut start, mut columns, mut values) = (vec![0_i64], Vec::new(), Vec::new());
        for &i in numbers {
            rows.for_each_nonzero(i, |column, value| {
                columns.push(column as i64);
                values.push(value);
            });
            start.push(values.len() as i64);
        }
        let machine = self.machine;
        Ok(OnDevice::Sparse([machine.upload(&start)?, machine.upload(&columns)?, machine.upload(&values)?]))
    }

    /// The kernel between `m` rows of x, in `x`, and the `panel`-th panel of z: row after row.
    fn tile(&self, m: usize, x: &OnDevice<L>, panel: usize) -> Result<Memory<L>> {
        let n = self.panels[panel].len();
        let uploaded;
        let z = if let Some(kept) = self.kept.get(panel) {
            kept
        } else {
            uploaded = self.upload(self.z, &self.b[self.panels[panel].clone()])?;
            &uploaded
        };
        let out = self.machine.allocate::<f64>(m * n)?;
        let mut args = vec![int(m), int(n)];
        match (x, z) {
            (OnDevice::Dense(x), OnDevice::Dense(z)) => {
                args.push(int(self.x.ncols()));
                args.extend(arguments(self.kernel));
                args.extend([x.arg(), z.arg(), out.arg()]);
                self.machine.launch("tile_dense", [m.div_ceil(64) * n.div_ceil(64), 1], &args)?;
            }
            (OnDevice::Sparse(x), OnDevice::Sparse(z)) => {
                args.extend(arguments(self.kernel));
                args.extend(x.iter().chain(z).map(Memory::arg));
                args.push(out.arg());
                self.machine.launch("tile_sparse", [m.div_ceil(16) * n.div_ceil(16), 1], &args)?;
            }
            _ => unreachable!("rows of both sides are uploaded in one form"),
        }
        Ok(out)
    }
}

impl<L: Launcher> Kernels for Accelerator<L> {
    fn panels(
        &self,
        x: &Rows,
        a: &[usize],
        z: &Rows,
        b: &[usize],
        kernel: &KernelFn,
        centre: &[f64],
        control: &Control,
        each: EachPanel,
    ) -> Result<()> {
        if kernel.shape == Shape::Precomputed {
            for (first, &i) in a.iter().enumerate() {
                control.check()?;
                each(first, &b.iter().map(|&j| x.get(i, j)).collect::<Vec<_>>())?;
            }
            return Ok(());
        }
        if b.is_empty() {
            return Ok(());
        }
        let (between, mut pace) = (Between::new(&self.machine, kernel, x, z, b, centre, 0)?, Pace::default());
        for rows in between.panels_of_x(a) {
            control.check()?;
            let m = rows.len();
            let on_device = between.upload(x, &a[rows.clone()])?;
            let mut values = memory::zeros::<f64>(m * b.len(), "some rows of a kernel matrix")?;
            for (panel, columns) in between.panels.iter().enumerate() {
                self.machine.pace(&mut pace, between.flops(&a[rows.clone()], columns), control)?;
                let tile = between.tile(m, &on_device, panel)?;
                if between.panels.len() == 1 {
                    self.machine.read(&tile, 0, &mut values)?;
                    continue;
                }
                let part = self.machine.download::<f64>(&tile, m * columns.len())?;
                for (row, part) in values.chunks_mut(b.len()).zip(part.chunks(columns.len())) {
                    row[columns.clone()].copy_from_slice(part);
                }
            }
            each(rows.start, &values)?;
        }
        control.check()
    }

    fn times(
        &self,
        x: &Rows,
        a: &[usize],
        z: &Rows,
        coef: MatRef<f64>,
        kernel: &KernelFn,
        control: &Control,
    ) -> Result<Vec<f64>> {
        let (n, machines) = (coef.nrows(), coef.ncols());
        let mut out = memory::zeros::<f64>(a.len() * machines, "the values of all rows")?;
        if out.is_empty() || n == 0 {
            return Ok(out);
        }
        let precomputed = kernel.shape == Shape::Precomputed;
        let all: Vec<usize> = if precomputed { Vec::new() } else { (0..n).collect() };
        let (between, mut pace) = (Between::new(&self.machine, kernel, x, z, &all, &[], machines)?, Pace::default());
        let coefficients: Vec<f64> =
            coef.col_iter().flat_map(|column| column.iter().copied().collect::<Vec<_>>()).collect();
        let coefficients = self.machine.upload(&coefficients)?;
        for rows in between.panels_of_x(a) {
            control.check()?;
            let m = rows.len();
            let sums = self.machine.allocate::<f64>(m * machines)?;
            // coefᵀ·K, column after column, has the values of one row after those of another.
            let add = |tile: &Memory<L>, columns: Range<usize>| {
                self.machine.product(&Product {
                    width: Width::Double,
                    size: [machines, m, columns.len()],
                    transposed: [true, false],
                    a: Operand::new(coefficients.block(), columns.start, n),
                    b: Operand::new(tile.block(), 0, columns.len()),
                    c: Operand::new(sums.block(), 0, machines),
                    add: columns.start > 0,
                })
            };
            if precomputed {
                let numbers = &a[rows.clone()];
                let values: Vec<f64> = numbers.iter().flat_map(|&i| (0..n).map(move |j| x.get(i, j))).collect();
                self.machine.pace(&mut pace, 2.0 * (m * n * machines) as f64, control)?;
                add(&self.machine.upload(&values)?, 0..n)?;
            } else {
                let on_device = between.upload(x, &a[rows.clone()])?;
                for (panel, columns) in between.panels.iter().enumerate() {
                    self.machine.pace(&mut pace, between.flops(&a[rows.clone()], columns), control)?;
                    add(&between.tile(m, &on_device, panel)?, columns.clone())?;
                }
            }
            let target = &mut out[rows.start * machines..rows.end * machines];
            self.machine.read(&sums, 0, target)?;
        }
        control.check()?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sparse::Csr;
    use crate::device::gpu::machine::Limits;
    use crate::device::gpu::present::{accelerator, opencl};
    use crate::device::gpu::row_contracts::data;
    use faer::Mat;

    #[test]
    fn panels_fit_into_the_memory_and_the_time_of_a_launch() {
        let Some(launcher) = opencl() else { return };
        let device = accelerator(launcher, Limits { bytes: 4 << 30, largest: 1 << 30 });
        let (x, all): (_, Vec<usize>) = (data(6000, 2), (0..6000).collect());
        let square = Mat::<f64>::zeros(600, 3000);
        for machines in [0, 1, 700, 40_000, 4_000_000] {
            for (x, z, a, b, shape) in [
                (Rows::from(&x), Rows::from(&x), &all[..], &all[..], Shape::Rbf),
                (Rows::from(&square), Rows::from(&x), &all[..600], &all[..0], Shape::Precomputed),
            ] {
                let kernel = KernelFn::new(shape, 1.0).unwrap();
                let between = Between::new(&device.machine, &kernel, &x, &z, b, &[], machines).unwrap();
                let panels = between.panels_of_x(a);
                let (longest, of_kernel) = if b.is_empty() { (3000, 0) } else { (between.longest(), 3 * 2 + 30) };
                assert_eq!(panels.iter().map(Range::len).sum::<usize>(), a.len());
                for m in panels.iter().map(Range::len) {
                    let what = format!("{shape:?}, {machines} machines, {m} x {longest}");
                    let bytes = 8 * (m * longest.max(machines)) as u64;
                    assert!(bytes <= device.machine.work_bytes(), "{what}: {bytes} bytes");
                    let flops = (m * longest * (of_kernel + 2 * machines)) as f64;
                    // Precomputed rows are not divided.
                    let in_time = flops <= device.machine.stride_of_pace() || (m == 1 && b.is_empty());
                    assert!(in_time, "{what}: {flops:e} flops");
                }
            }
        }
    }

    #[test]
    fn sparse_rows_count_by_their_stored_entries() {
        let Some(launcher) = opencl() else { return };
        let device = accelerator(launcher, Limits { bytes: 4 << 30, largest: 1 << 30 });
        // A few entries in a million columns, and now and then a row with many.
        let entries = |i: usize| if i % 1000 == 7 { 4000 } else { i % 5 };
        let (n, p) = (6000, 1_000_000);
        let (mut start, mut columns) = (vec![0], Vec::new());
        for i in 0..n {
            columns.extend((0..entries(i)).map(|k| 100 * k + i % 100));
            start.push(columns.len());
        }
        let values = vec![1.0; columns.len()];
        let rows = Rows::from(Csr::new(p, &start[..], &columns[..], &values[..]).unwrap());
        let (all, kernel): (Vec<usize>, _) = ((0..n).collect(), KernelFn::new(Shape::Rbf, 1.0).unwrap());
        let between = Between::new(&device.machine, &kernel, &rows, &rows, &all, &[], 0).unwrap();
        let panels = between.panels_of_x(&all);
        let stored: usize = all.iter().map(|&i| entries(i)).sum();
        let (mut flops_of_all, mut launches) = (0.0, 0.0);
        for rows in &panels {
            for columns in &between.panels {
                let pair = |i: usize| columns.clone().map(move |j| 27 * (entries(i) + entries(j)) + 30).sum::<usize>();
                let flops = rows.clone().map(pair).sum::<usize>() as f64;
                assert!((between.flops(&all[rows.clone()], columns) - flops).abs() <= 1e-9 * flops);
                assert!(flops <= device.machine.stride_of_pace(), "{rows:?} x {columns:?}: {flops:e} flops");
                (flops_of_all, launches) = (flops_of_all + flops, launches + 1.0);
            }
        }
        assert_eq!(flops_of_all, (54 * n * stored + 30 * n * n) as f64);
        // By columns, each row would be a launch of its own.
        assert!(launches <= 4.0 + 8.0 * flops_of_all / device.machine.stride_of_pace(), "{launches} launches");
    }
}
