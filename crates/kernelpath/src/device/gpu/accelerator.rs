//! The operations of the engines on a device, over any launcher.

use std::sync::Arc;

use crate::device::gpu::held::Held;
use crate::device::gpu::launcher::{Arg, Launcher, Width};
use crate::device::gpu::machine::{COPY_BYTES, Limits, Machine, Memory, Traffic};
use crate::device::gpu::multiply::How;
use crate::device::gpu::panels::Panels;
use crate::device::matrix::Matrix;
use crate::device::{Block, Device, Spectrum};
use crate::error::Result;
use crate::kernel::elsewhere::Kernels;
use crate::loss::scalar::Loss;
use crate::loss::smoothed::Smoothed;
use crate::numeric::design::Accuracy;
use crate::numeric::eigen::eigen_bytes;
use crate::numeric::parallel;
use crate::numeric::remote::{Remote, Stored};
use crate::observe::Control;

/// Columns of a product with which a device computes about as long as it reads the matrix: 4 bytes at some 10¹² a second
/// against 2 flops a column at some 10¹⁴.
const FULL_COLUMNS: usize = 192;

/// Rows up to which `auto` lets the processor decompose the matrix of a device that cannot.
const ROWS_FOR_HOST: usize = 4000;

/// Bytes of an entry: of a kernel matrix, in either precision; of the matrix of a decomposition by a library of the vendor,
/// with its work space; and of eigenvectors in both precisions.
const OF_KERNEL: u64 = 8;

const OF_EIGEN: u64 = 24;

const OF_EIGENVECTORS: u64 = 12;

/// A device other than the processor.
pub(crate) struct Accelerator<L: Launcher> {
    pub machine: Arc<Machine<L>>,
}

/// A number as an argument of a kernel. Sizes of matrices fit: [`Panels`] check that.
pub(crate) fn int<M>(value: usize) -> Arg<'static, M> {
    Arg::Int(value as i32)
}

/// The number of a loss in the kernels, and its parameter.
fn number_of(loss: Loss) -> (i32, f64) {
    match loss {
        Loss::Hinge => (0, 0.0),
        Loss::SquaredHinge => (1, 0.0),
        Loss::Logistic => (2, 0.0),
        Loss::Dwd => (3, 0.0),
        Loss::Quantile { tau } => (4, tau),
        Loss::EpsilonInsensitive { epsilon } => (5, epsilon),
        Loss::Squared => (6, 0.0),
        Loss::Huber { delta } => (7, delta),
        Loss::Expectile { tau } => (8, tau),
    }
}

impl<L: Launcher> Accelerator<L> {
    /// `limits` replaces what the driver says of its memory.
    pub fn new(launcher: L, choice: String, limits: Option<Limits>) -> Self {
        Self { machine: Machine::new(launcher, choice, limits) }
    }

    pub fn traffic(&self) -> Traffic {
        self.machine.traffic()
    }

    fn panels(&self, rows: usize, columns: usize) -> Result<Panels<L>> {
        Panels::new(&self.machine, Width::Double, rows, columns)
    }

    /// A vector, or several one after the other, in one transfer.
    fn vectors(&self, parts: &[&[f64]]) -> Result<Memory<L>> {
        self.machine.upload(&parts.concat())
    }

    /// A matrix like `a`, which a kernel fills panel by panel. `args` gives the arguments between the numbers of rows and
    /// columns and the panel of the result.
    fn map<'a>(
        &self,
        a: &Panels<L>,
        kernel: &'static str,
        args: impl Fn(usize, usize) -> Vec<Arg<'a, L::Memory>>,
    ) -> Result<Matrix>
    where
        L: 'a,
    {
        let out = self.panels(a.rows, a.columns)?;
        for (p, (range, block)) in out.each().enumerate() {
            let mut all = vec![int(a.rows), int(range.len())];
            all.extend(args(p, range.start));
            all.push(block.arg());
            self.machine.launch_on(kernel, a.rows, range.len(), &all)?;
        }
        Ok(out.wrap())
    }
}

impl<L: Launcher> Device for Accelerator<L> {
    fn upload(&self, rows: usize, columns: &[Vec<f64>]) -> Result<Matrix> {
        let out = self.panels(rows, columns.len())?;
        out.fill(&self.machine, |range, part| {
            for (column, part) in columns[range].iter().zip(part.chunks_mut(rows.max(1))) {
                part.copy_from_slice(column);
            }
            Ok(())
        })?;
        Ok(out.wrap())
    }

    fn download(&self, matrix: &Matrix) -> Result<Vec<Vec<f64>>> {
        let panels: &Panels<L> = matrix.of();
        let mut columns: Vec<Vec<f64>> = Vec::with_capacity(panels.columns);
        panels.read(&self.machine, |_, part| {
            columns.extend(part.chunks(panels.rows.max(1)).map(<[f64]>::to_vec));
            Ok(())
        })?;
        columns.resize(panels.columns, Vec::new());
        Ok(columns)
    }

    fn symmetric(&self, n: usize, fill: &(dyn Fn(usize, &mut [f64]) + Sync), control: &Control) -> Result<Matrix> {
        let out = self.panels(n, n)?;
        out.fill(&self.machine, |range, part| {
            control.check()?;
            parallel::for_each(range.zip(part.chunks_mut(n)), |(i, row)| fill(i, row));
            Ok(())
        })?;
        Ok(out.wrap())
    }

    fn narrow(&self, matrix: &Matrix) -> Result<Matrix> {
        let a: &Panels<L> = matrix.of();
        let out = Panels::new(&self.machine, Width::Single, a.rows, a.columns)?;
        for columns in a.stretches(&out) {
            let (from, to) = (a.columns_at(columns.start), out.columns_at(columns.start));
            self.narrow_part(&from, &to, a.rows * columns.len())?;
        }
        Ok(out.wrap())
    }

    fn eigh(&self, k: Matrix, control: &Control) -> Result<(Vec<f64>, Matrix)> {
        control.check()?;
        let (values, basis) = if k.rows <= self.own_eigen_rows() {
            self.eigen_on_device(k, control)?
        } else {
            self.eigen_on_host(k, control)?
        };
        Ok((values.into_iter().map(|v| v.max(0.0)).collect(), basis))
    }

    fn eigh_in_single(&self, k: Matrix, control: &Control) -> Result<(Vec<f64>, Matrix)> {
        control.check()?;
        if k.rows > self.own_eigen_rows() {
            let (values, basis) = self.eigen_on_host(k, control)?;
            return Ok((values, self.narrow(&basis)?));
        }
        let narrow = self.narrow(&k)?;
        drop(k);
        self.eigen_on_device(narrow, control)
    }

    /// Where double precision is slow, and the library of the vendor has room.
    fn decomposes_in_single(&self, n: usize) -> bool {
        self.double_is_slow() && n <= self.own_eigen_rows()
    }

    fn times(&self, a: &Matrix, b: &Matrix, control: &Control) -> Result<Matrix> {
        self.multiply(a, b, How { transposed: false, accuracy: Accuracy::Working, control })
    }

    fn transposed_times(&self, a: &Matrix, b: &Matrix, control: &Control) -> Result<Matrix> {
        self.multiply(a, b, How { transposed: true, accuracy: Accuracy::Working, control })
    }

    fn times_in_double(&self, a: &Matrix, b: &Matrix, transposed: bool, control: &Control) -> Result<Matrix> {
        self.multiply(a, b, How { transposed, accuracy: Accuracy::Double, control })
    }

    fn scale_rows(&self, scale: &[f64], a: &Matrix) -> Result<Matrix> {
        let a: &Panels<L> = a.of();
        let scale = self.vectors(&[scale])?;
        self.map(a, "scale_rows", |p, _| vec![scale.arg(), a.blocks[p].arg()])
    }

    fn select(&self, a: &Matrix, columns: &[usize]) -> Result<Matrix> {
        let a: &Panels<L> = a.of();
        let out = self.panels(a.rows, columns.len())?;
        for (to, target) in out.each() {
            for (from, source) in a.each() {
                let taken = |c: &usize| from.contains(&columns[*c]);
                let found: Vec<usize> = to.clone().filter(taken).collect();
                let mut pairs: Vec<i32> = found.iter().map(|&c| (columns[c] - from.start) as i32).collect();
                pairs.extend(found.iter().map(|&c| (c - to.start) as i32));
                if !found.is_empty() {
                    let pairs = self.machine.upload(&pairs)?;
                    let args = [int(a.rows), int(found.len()), pairs.arg(), source.arg(), target.arg()];
                    self.machine.launch_on("take_columns", a.rows, found.len(), &args)?;
                }
            }
        }
        Ok(out.wrap())
    }

    fn rows(&self, a: &Matrix, rows: &[usize]) -> Result<Matrix> {
        let a: &Panels<L> = a.of();
        let out = self.panels(a.columns, rows.len())?;
        let numbers: Vec<i32> = rows.iter().map(|&i| i as i32).collect();
        let numbers = self.machine.upload(&numbers)?;
        for (to, target) in out.each() {
            for (from, source) in a.each() {
                let args = [
                    int(from.len()),
                    int(to.len()),
                    numbers.arg(),
                    int(to.start),
                    source.arg(),
                    int(a.rows),
                    target.arg(),
                    int(from.start),
                    int(a.columns),
                ];
                self.machine.launch_on("take_rows", from.len(), to.len(), &args)?;
            }
        }
        Ok(out.wrap())
    }

    fn pulls(&self, loss: Smoothed, y: &[f64], weight: &Matrix, f: &Matrix, b: &[f64]) -> Result<Matrix> {
        let (weight, f): (&Panels<L>, &Panels<L>) = (weight.of(), f.of());
        let vectors = self.vectors(&[y, b])?;
        let (number, parameter) = number_of(loss.loss);
        self.map(f, "pulls", |p, first| {
            let of_loss = [int(first), Arg::Int(number), Arg::Double(parameter), Arg::Double(loss.delta)];
            of_loss.into_iter().chain([vectors.arg(), weight.blocks[p].arg(), f.blocks[p].arg()]).collect()
        })
    }

    fn resolvent(&self, values: &[f64], curvature: &[f64]) -> Result<Matrix> {
        let vectors = self.vectors(&[values, curvature])?;
        let out = self.panels(values.len(), curvature.len())?;
        for (range, block) in out.each() {
            let args = [int(out.rows), int(range.len()), int(range.start), vectors.arg(), block.arg()];
            self.machine.launch_on("resolvent", out.rows, range.len(), &args)?;
        }
        Ok(out.wrap())
    }

    fn combine(&self, terms: &[(&Matrix, &[f64])]) -> Result<Matrix> {
        let (rows, columns) = terms.first().map_or((0, 0), |(a, _)| (a.rows, a.columns));
        let scales: Vec<&[f64]> = terms.iter().map(|(_, scale)| *scale).collect();
        let scales = self.vectors(&scales)?;
        let out = self.panels(rows, columns)?;
        for (p, (range, block)) in out.each().enumerate() {
            for (t, (a, _)) in terms.iter().enumerate() {
                let a: &Panels<L> = a.of();
                let first = Arg::Long((t * columns + range.start) as i64);
                let add = Arg::Int(i32::from(t > 0));
                let args = [int(rows), int(range.len()), scales.arg(), first, add, a.blocks[p].arg(), block.arg()];
                self.machine.launch_on("combine", rows, range.len(), &args)?;
            }
        }
        Ok(out.wrap())
    }

    fn hadamard(&self, a: &Matrix, b: &Matrix) -> Result<Matrix> {
        let (a, b): (&Panels<L>, &Panels<L>) = (a.of(), b.of());
        let out = self.panels(a.rows, a.columns)?;
        for (p, (range, block)) in out.each().enumerate() {
            let count = a.rows * range.len();
            let args = [Arg::Long(count as i64), a.blocks[p].arg(), b.blocks[p].arg(), block.arg()];
            self.machine.launch_on("hadamard", count, 1, &args)?;
        }
        Ok(out.wrap())
    }

    fn column_dots(&self, a: &Matrix, b: &Matrix) -> Result<Vec<f64>> {
        let (a, b): (&Panels<L>, &Panels<L>) = (a.of(), b.of());
        let out = self.machine.allocate::<f64>(a.columns)?;
        for ((range, a_block), b_block) in a.each().zip(&b.blocks) {
            let args = [int(a.rows), int(range.start), a_block.arg(), b_block.arg(), out.arg()];
            self.machine.launch("column_dots", [range.len(), 1], &args)?;
        }
        self.machine.download(&out, a.columns)
    }

    fn fused_step(
        &self,
        block: &mut Block,
        pulls: &Matrix,
        spectrum: &Spectrum,
        curvature: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        let columns = curvature.len();
        let state = [&spectrum.values, &spectrum.ones, curvature, &block.b, &block.b_ahead, &block.momentum];
        let vectors = self.vectors(&state)?;
        let results = self.machine.allocate::<f64>(4 * columns)?;
        let (pulls, last, ahead): (&Panels<L>, &Panels<L>, &Panels<L>) =
            (pulls.of(), block.coordinates.of(), block.ahead.of());
        for (p, (range, pulls)) in pulls.each().enumerate() {
            let args = [
                int(spectrum.values.len()),
                int(columns),
                int(range.start),
                vectors.arg(),
                pulls.arg(),
                last.blocks[p].arg(),
                ahead.blocks[p].arg(),
                results.arg(),
            ];
            self.machine.launch("advance", [range.len(), 1], &args)?;
        }
        let results: Vec<f64> = self.machine.download(&results, 4 * columns)?;
        let (gaps, rest) = results.split_at(columns);
        block.b.copy_from_slice(&rest[..columns]);
        block.b_ahead.copy_from_slice(&rest[columns..2 * columns]);
        block.momentum.copy_from_slice(&rest[2 * columns..]);
        Ok(Some(gaps.to_vec()))
    }

    fn columns(&self) -> usize {
        if self.machine.launcher.facts().is_processor { 0 } else { FULL_COLUMNS }
    }

    /// A device without a decomposition of its own leaves it to the processor: 9n³ flops, which take about ten seconds at
    /// `ROWS_FOR_HOST` rows. A fit that has no room for a decomposition is solved without.
    fn decomposed_rows(&self) -> usize {
        let in_budget = (self.machine.budget() / (OF_KERNEL + self.decomposition_bytes(1))).isqrt() as usize;
        self.own_eigen_rows().max(ROWS_FOR_HOST).min(in_budget)
    }

    fn decomposition_bytes(&self, n: usize) -> u64 {
        let of_entry = if n <= self.own_eigen_rows() { OF_EIGEN } else { OF_EIGENVECTORS };
        of_entry * (n as u64).pow(2)
    }

    fn survey(&self) -> Result<()> {
        self.machine.survey()
    }

    /// Where the device decomposes the matrix, the host only copies it, some columns at a time.
    fn host_decomposition_bytes(&self, n: usize) -> u64 {
        let matrix = 8 * (n as u64).pow(2);
        let copies = matrix.min(COPY_BYTES as u64);
        if n <= self.own_eigen_rows() { copies } else { copies + matrix + eigen_bytes(n) }
    }

    fn check_room(&self, bytes: u64, control: &Control) -> Result<()> {
        self.machine.check_room(bytes.saturating_add(self.machine.products_bytes().min(bytes)), control)
    }

    fn double_is_slow(&self) -> bool {
        self.machine.launcher.facts().double_is_slow
    }

    fn hold(&self, matrix: &Stored, control: &Control) -> Result<Option<Box<dyn Remote>>> {
        Ok(Some(Box::new(Held::new(&self.machine, matrix, control)?)))
    }

    fn kernels(&self) -> Option<&dyn Kernels> {
        Some(self)
    }
}
