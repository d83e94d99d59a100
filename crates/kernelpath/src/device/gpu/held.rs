//! Matrices of the host that a device multiplies: kernel matrices and low-rank features.
//!
//! The host keeps A row after row; read column after column, that is Aᵀ. The device has it in panels of rows, in the
//! precision of the host: single precision keeps its 16-bit corrections beside it. A product in double precision widens
//! some rows at a time.

use faer::Mat;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::device::gpu::accelerator::int;
use crate::device::gpu::launcher::{Arg, Launcher, Operand, Plain, Product, Width};
use crate::device::gpu::machine::{COPY_BYTES, Machine, Memory, Pace};
use crate::device::gpu::panels::check_size;
use crate::error::Result;
use crate::numeric::design::Accuracy;
use crate::numeric::memory;
use crate::numeric::remote::{Numbers, Remote, Stored};
use crate::observe::Control;

/// Most rows whose products are summed in single precision before they are added up in double precision. With more rows
/// the sums lose digits; with fewer, launches take longer than the products.
const ROWS_IN_SINGLE: usize = 16_384;

/// What errors call the host's copy of a curvature.
const CURVATURE: &str = "a curvature of the features";

/// Some rows of the matrix.
struct Panel<L: Launcher> {
    rows: Range<usize>,
    values: Memory<L>,
    /// A block of one number if there are none.
    residues: Memory<L>,
}

/// A matrix on a device.
pub(crate) struct Held<L: Launcher> {
    machine: Arc<Machine<L>>,
    rows: usize,
    columns: usize,
    stride: usize,
    /// The precision of the entries.
    width: Width,
    has_residues: bool,
    symmetric: bool,
    panels: Vec<Panel<L>>,
}

impl<L: Launcher> fmt::Debug for Held<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} on a device in {} panels", self.rows, self.columns, self.panels.len())
    }
}

/// The rows `rows` of numbers that lie `stride` apart. The last row may end with its last column.
fn band<'a, T>(values: &'a [T], rows: &Range<usize>, stride: usize) -> &'a [T] {
    &values[(rows.start * stride).min(values.len())..(rows.end * stride).min(values.len())]
}

/// Copies numbers to the beginning of a block, some at a time.
fn write<L: Launcher, T: Plain>(machine: &Machine<L>, values: &[T], to: &Memory<L>, control: &Control) -> Result<()> {
    let at_once = COPY_BYTES / size_of::<T>();
    for (k, part) in values.chunks(at_once).enumerate() {
        control.check()?;
        machine.write(part, to, k * at_once)?;
    }
    Ok(())
}

/// Flops of the weighed sum of the squares of `rows` rows.
fn flops_of_curvature(order: usize, rows: usize) -> f64 {
    2.0 * (order as f64).powi(2) * rows as f64
}

impl<L: Launcher> Held<L> {
    pub fn new(machine: &Arc<Machine<L>>, stored: &Stored, control: &Control) -> Result<Self> {
        let Stored { rows, columns, stride, symmetric, .. } = *stored;
        for size in [rows, columns + 1, stride] {
            check_size(size)?;
        }
        let (width, has_residues) = match stored.numbers {
            Numbers::Single(_, residues) => (Width::Single, !residues.is_empty()),
            Numbers::Double(_) => (Width::Double, false),
        };
        let at_once = (machine.largest() / (width.bytes() * stride.max(1) as u64)).max(1) as usize;
        let panel = |start: usize| {
            let range = start..rows.min(start + at_once);
            let count = range.len() * stride;
            let (values, residues) = match &stored.numbers {
                Numbers::Double(values) => {
                    let block = machine.allocate::<f64>(count)?;
                    write(machine, band(values, &range, stride), &block, control)?;
                    (block, machine.allocate::<i16>(1)?)
                }
                Numbers::Single(values, residues) => {
                    let block = machine.allocate::<f32>(count)?;
                    write(machine, band(values, &range, stride), &block, control)?;
                    let corrections = machine.allocate::<i16>(if has_residues { count } else { 1 })?;
                    if has_residues {
                        write(machine, band(residues, &range, stride), &corrections, control)?;
                    }
                    (block, corrections)
                }
            };
            Ok(Panel { rows: range, values, residues })
        };
        let panels = (0..rows).step_by(at_once).map(panel).collect::<Result<_>>()?;
        Ok(Self { machine: machine.clone(), rows, columns, stride, width, has_residues, symmetric, panels })
    }

    /// The precision of the products: that of the entries, or double.
    fn precision(&self, accuracy: Accuracy) -> Width {
        if accuracy == Accuracy::Double { Width::Double } else { self.width }
    }

    /// Columns of a product that are computed at a time.
    fn columns_at_once(&self) -> usize {
        (self.machine.work_bytes() / (8 * self.rows.max(self.columns).max(1) as u64)).max(1) as usize
    }

    /// Whether products in this precision need wider entries than those that are held.
    fn is_widened(&self, width: Width) -> bool {
        self.width == Width::Single && width == Width::Double
    }

    /// Rows that are multiplied with `columns` columns at a time: so few that the device is not busy with them for longer
    /// than an interruption may wait.
    fn rows_at_once(&self, width: Width, columns: usize) -> usize {
        let row_bytes = 8 * self.stride.max(1) as u64;
        let in_memory =
            if self.is_widened(width) { (self.machine.work_bytes() / row_bytes) as usize } else { ROWS_IN_SINGLE };
        let in_time = (self.machine.stride_of_pace() / self.flops(1, columns)) as usize;
        in_memory.min(in_time).max(1)
    }

    /// Rows of which a curvature is summed at a time, likewise.
    fn rows_of_curvature(&self, width: Width) -> usize {
        let order = self.columns + 1;
        let in_memory = (self.machine.work_bytes() / (width.bytes() * order as u64)) as usize;
        let in_time = (self.machine.stride_of_pace() / flops_of_curvature(order, 1)) as usize;
        let rows = in_memory.min(in_time).max(1);
        if width == Width::Single { rows.min(ROWS_IN_SINGLE) } else { rows }
    }

    /// Calls `with` for rows of each panel, to be multiplied with `columns` columns, as an operand in this precision: Aᵀ,
    /// one row of A after the other.
    fn for_each_band(
        &self,
        width: Width,
        columns: usize,
        mut with: impl FnMut(Range<usize>, Operand<'_, L::Memory>) -> Result<()>,
    ) -> Result<()> {
        let (wide, at_once) = (self.is_widened(width), self.rows_at_once(width, columns));
        for panel in &self.panels {
            for start in panel.rows.clone().step_by(at_once) {
                let rows = start..panel.rows.end.min(start + at_once);
                let at = (start - panel.rows.start) * self.stride;
                if !wide {
                    with(rows, Operand::new(panel.values.block(), at, self.stride))?;
                    continue;
                }
                let count = rows.len() * self.stride;
                let restored = self.machine.allocate::<f64>(count)?;
                let [count_arg, at] = [count, at].map(|number| Arg::Long(number as i64));
                let has = Arg::Int(i32::from(self.has_residues));
                let args = [count_arg, panel.values.arg(), panel.residues.arg(), has, at, restored.arg()];
                self.machine.launch_on("restore", count, 1, &args)?;
                with(rows, Operand::new(restored.block(), 0, self.stride))?;
            }
        }
        Ok(())
    }

    /// Columns of the host on the device, one after the other.
    fn upload(&self, columns: &[&[f64]], width: Width) -> Result<Memory<L>> {
        match width {
            Width::Double => self.machine.upload(&columns.concat()),
            Width::Single => {
                let narrow: Vec<f32> = columns.iter().flat_map(|column| column.iter().map(|&v| v as f32)).collect();
                self.machine.upload(&narrow)
            }
        }
    }

    fn room(&self, width: Width, count: usize) -> Result<Memory<L>> {
        match width {
            Width::Single => self.machine.allocate::<f32>(count),
            Width::Double => self.machine.allocate::<f64>(count),
        }
    }

    /// `count` columns of `length` numbers, appended to `out`.
    fn append(
        &self,
        from: &Memory<L>,
        width: Width,
        length: usize,
        count: usize,
        out: &mut Vec<Vec<f64>>,
    ) -> Result<()> {
        let numbers = match width {
            Width::Double => self.machine.download::<f64>(from, length * count)?,
            Width::Single => {
                let narrow = self.machine.download::<f32>(from, length * count)?;
                narrow.into_iter().map(f64::from).collect()
            }
        };
        out.extend(numbers.chunks(length.max(1)).map(<[f64]>::to_vec));
        Ok(())
    }

    /// sum + part, or part, for matrices without gaps; the sum is in double precision.
    fn add_up(&self, part: &Memory<L>, sum: &Memory<L>, rows: usize, columns: usize, add: bool) -> Result<()> {
        let args = [int(rows), int(columns), part.arg(), sum.arg(), Arg::Long(0), int(rows), Arg::Int(i32::from(add))];
        self.machine.launch_on("widen", rows, columns, &args)
    }

    /// Flops of a product of the matrix for this number of rows and columns.
    fn flops(&self, rows: usize, columns: usize) -> f64 {
        2.0 * rows as f64 * self.columns as f64 * columns as f64
    }
}

impl<L: Launcher> Remote for Held<L> {
    fn times(&self, b: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>> {
        let (width, mut pace) = (self.precision(accuracy), Pace::default());
        let mut out = Vec::with_capacity(b.len());
        if self.columns == 0 || self.rows == 0 {
            return Ok(vec![vec![0.0; self.rows]; b.len()]);
        }
        for b in b.chunks(self.columns_at_once()) {
            control.check()?;
            let (right, product) = (self.upload(b, width)?, self.room(width, self.rows * b.len())?);
            self.for_each_band(width, b.len(), |rows, a| {
                self.machine.pace(&mut pace, self.flops(rows.len(), b.len()), control)?;
                self.machine.product(&Product {
                    width,
                    size: [rows.len(), b.len(), self.columns],
                    transposed: [true, false],
                    a,
                    b: Operand::new(right.block(), 0, self.columns),
                    c: Operand::new(product.block(), rows.start, self.rows),
                    add: false,
                })
            })?;
            self.append(&product, width, self.rows, b.len(), &mut out)?;
        }
        control.check()?;
        Ok(out)
    }

    fn transposed_times(&self, v: &[&[f64]], accuracy: Accuracy, control: &Control) -> Result<Vec<Vec<f64>>> {
        if self.symmetric {
            return self.times(v, accuracy, control);
        }
        if self.columns == 0 || self.rows == 0 {
            return Ok(vec![vec![0.0; self.columns]; v.len()]);
        }
        let (width, mut pace) = (self.precision(accuracy), Pace::default());
        let mut out = Vec::with_capacity(v.len());
        for v in v.chunks(self.columns_at_once()) {
            control.check()?;
            let right = self.upload(v, width)?;
            let sum = self.machine.allocate::<f64>(self.columns * v.len())?;
            let part = if width == Width::Single { Some(self.room(width, self.columns * v.len())?) } else { None };
            self.for_each_band(width, v.len(), |rows, a| {
                self.machine.pace(&mut pace, self.flops(rows.len(), v.len()), control)?;
                let add = rows.start > 0;
                self.machine.product(&Product {
                    width,
                    size: [self.columns, v.len(), rows.len()],
                    transposed: [false, false],
                    a,
                    b: Operand::new(right.block(), rows.start, self.rows),
                    c: Operand::new(part.as_ref().unwrap_or(&sum).block(), 0, self.columns),
                    add: add && part.is_none(),
                })?;
                part.as_ref().map_or(Ok(()), |part| self.add_up(part, &sum, self.columns, v.len(), add))
            })?;
            self.append(&sum, Width::Double, self.columns, v.len(), &mut out)?;
        }
        control.check()?;
        Ok(out)
    }

    fn curvature(&self, s: &[f64], accuracy: Accuracy, control: &Control) -> Result<Mat<f64>> {
        control.check()?;
        let (width, machine, mut pace) = (self.precision(accuracy), &self.machine, Pace::default());
        let order = self.columns + 1;
        let kernel = match (self.width, width) {
            (Width::Single, Width::Single) => "weigh_single",
            (Width::Single, Width::Double) => "weigh_restored",
            (Width::Double, _) => "weigh_double",
        };
        let at_once = self.rows_of_curvature(width);
        let sum = machine.allocate::<f64>(order * order)?;
        let part = if width == Width::Single { Some(self.room(width, order * order)?) } else { None };
        let mut add = false;
        for panel in &self.panels {
            // Rows without weight are left out.
            let used: Vec<usize> = panel.rows.clone().filter(|&i| s[i] > 0.0).collect();
            let numbers: Vec<i32> = used.iter().map(|&i| (i - panel.rows.start) as i32).collect();
            let roots: Vec<f64> = used.iter().map(|&i| s[i].sqrt()).collect();
            let (numbers, roots) = (machine.upload(&numbers)?, machine.upload(&roots)?);
            let weighed = self.room(width, order * at_once.min(used.len()))?;
            for start in (0..used.len()).step_by(at_once) {
                let count = at_once.min(used.len() - start);
                machine.pace(&mut pace, flops_of_curvature(order, count), control)?;
                let has = Arg::Int(i32::from(self.has_residues));
                let of_rows = [numbers.arg(), roots.arg(), int(start), panel.values.arg(), panel.residues.arg(), has];
                let args = [int(order), int(count), int(self.stride)].into_iter().chain(of_rows);
                let args: Vec<_> = args.chain([weighed.arg()]).collect();
                machine.launch_on(kernel, order, count, &args)?;
                machine.product(&Product {
                    width,
                    size: [order, order, count],
                    transposed: [false, true],
                    a: Operand::new(weighed.block(), 0, order),
                    b: Operand::new(weighed.block(), 0, order),
                    c: Operand::new(part.as_ref().unwrap_or(&sum).block(), 0, order),
                    add: add && part.is_none(),
                })?;
                if let Some(part) = &part {
                    self.add_up(part, &sum, order, order, add)?;
                }
                add = true;
            }
        }
        if !add {
            return memory::matrix(order, order, CURVATURE, |_, _| 0.0);
        }
        let square = machine.download::<f64>(&sum, order * order)?;
        control.check()?;
        memory::matrix(order, order, CURVATURE, |i, j| if i <= j { square[j * order + i] } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::present::{accelerators, devices};
    use crate::error::Error;
    use crate::numeric::entry::{Entry, STORAGE_ERROR, residue};

    /// Rows of random numbers `stride` apart, with something that must not be read between them.
    fn stored(rows: usize, columns: usize, stride: usize) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(rows as u64);
        let mut values = vec![1e300; rows * stride];
        for row in values.chunks_mut(stride) {
            row[..columns].fill_with(|| 2.0 * rng.f64() - 1.0);
        }
        values
    }

    fn vectors(length: usize, count: usize) -> Vec<Vec<f64>> {
        (0..count).map(|c| (0..length).map(|i| (0.7 * (i * (c + 2)) as f64).sin()).collect()).collect()
    }

    fn close(got: &[Vec<f64>], want: &[Vec<f64>], error: f64, what: &str) {
        assert_eq!(got.len(), want.len(), "{what}");
        for (got, want) in got.iter().zip(want) {
            assert_eq!(got.len(), want.len(), "{what}");
            let off = got.iter().zip(want).map(|(g, w)| (g - w).abs()).fold(0.0, f64::max);
            assert!(off <= error && got.iter().all(|v| v.is_finite()), "{what}: off by {off:e}, not {error:e}");
        }
    }

    #[test]
    fn products_of_held_matrices_are_sums_of_products() {
        let control = Control::default();
        for (name, device) in devices() {
            for (rows, columns, stride) in [(1, 1, 1), (70, 33, 35), (33, 50, 50), (300, 45, 64), (2100, 6, 7)] {
                let double = stored(rows, columns, stride);
                let single: Vec<f32> = double.iter().map(|v| f32::narrow(*v)).collect();
                let residues: Vec<i16> = double.iter().zip(&single).map(|(v, s)| residue(*v, *s)).collect();
                let rounded: Vec<f64> = single.iter().map(|v| f64::from(*v)).collect();
                let (b, v) = (vectors(columns, 5), vectors(rows, 5));
                let s: Vec<f64> = (0..rows).map(|i| if i % 3 == 1 { 0.0 } else { 0.1 + (i % 7) as f64 }).collect();
                let sets = [
                    (Numbers::Double(&double[..]), &double, 1e-15),
                    (Numbers::Single(&single, &residues), &double, STORAGE_ERROR),
                    (Numbers::Single(&single, &[]), &rounded, 1e-15),
                ];
                for (numbers, exact, error) in sets {
                    let is_double = matches!(numbers, Numbers::Double(_));
                    let matrix = Stored { rows, columns, stride, numbers, symmetric: false };
                    let Some(held) = device.hold(&matrix, &control).unwrap() else { continue };
                    let entry = |i: usize, j: usize| exact[i * stride + j];
                    let times = |b: &Vec<f64>| -> Vec<f64> {
                        (0..rows).map(|i| (0..columns).map(|j| entry(i, j) * b[j]).sum()).collect()
                    };
                    let back = |v: &Vec<f64>| -> Vec<f64> {
                        (0..columns).map(|j| (0..rows).map(|i| entry(i, j) * v[i]).sum()).collect()
                    };
                    let (want, want_back): (Vec<_>, Vec<_>) =
                        (b.iter().map(times).collect(), v.iter().map(back).collect());
                    let with_one = |i: usize, j: usize| if j < columns { entry(i, j) } else { 1.0 };
                    let square =
                        |i: usize, j: usize| -> f64 { (0..rows).map(|r| s[r] * with_one(r, i) * with_one(r, j)).sum() };
                    let (b, v): (Vec<&[f64]>, Vec<&[f64]>) =
                        (b.iter().map(|b| &b[..]).collect(), v.iter().map(|v| &v[..]).collect());
                    for accuracy in [Accuracy::Double, Accuracy::Working] {
                        let error = if accuracy == Accuracy::Double || is_double { error } else { 2e-7 };
                        let what = format!("{name} {rows} x {columns} {accuracy:?}");
                        let got = held.times(&b, accuracy, &control).unwrap();
                        close(&got, &want, error * (columns + 1) as f64, &what);
                        assert_eq!(got, held.times(&b, accuracy, &control).unwrap(), "{what}: two runs differ");
                        let got = held.transposed_times(&v, accuracy, &control).unwrap();
                        close(&got, &want_back, error * (rows + 1) as f64, &what);
                        let got = held.curvature(&s, accuracy, &control).unwrap();
                        let got: Vec<Vec<f64>> = (0..=columns).map(|j| got.col_as_slice(j)[..=j].to_vec()).collect();
                        let want: Vec<Vec<f64>> =
                            (0..=columns).map(|j| (0..=j).map(|i| square(i, j)).collect()).collect();
                        // A sum of terms of one sign has at most one rounding a term, in whatever order.
                        let rounding = if error > 1e-9 { 6e-8 } else { 1.2e-16 };
                        let error = (rounding * (rows + 4) as f64).max(if error > 1e-9 { 0.0 } else { error });
                        close(&got, &want, error * (s.iter().sum::<f64>() + 1.0), &what);
                    }
                }
            }
        }
    }

    #[test]
    fn no_launch_takes_longer_than_an_interruption_may_wait() {
        for device in accelerators() {
            let machine = &device.machine;
            let stride = machine.stride_of_pace();
            for (rows, columns) in [(50_000, 300), (2000, 1000), (300_000, 20)] {
                let held = Held {
                    machine: machine.clone(),
                    rows,
                    columns,
                    stride: columns,
                    width: Width::Single,
                    has_residues: false,
                    symmetric: false,
                    panels: Vec::new(),
                };
                for width in [Width::Single, Width::Double] {
                    for count in [1, 60, 5000, 50_000] {
                        let band = held.rows_at_once(width, count);
                        assert!(held.flops(band, count) <= stride, "{rows} x {columns} x {count}: {band} rows");
                        assert!(band >= 1);
                    }
                    let band = held.rows_of_curvature(width);
                    assert!(flops_of_curvature(columns + 1, band) <= stride, "{rows} x {columns}: {band} rows");
                }
            }
            // The bands of a matrix are no longer than that, and have all its rows.
            let values = vec![0.0; 2500];
            let numbers = Numbers::Double(&values);
            let stored = Stored { rows: 2500, columns: 1, stride: 1, numbers, symmetric: false };
            let held = Held::new(machine, &stored, &Control::default());
            let (mut bands, held) = (Vec::new(), held.unwrap());
            let columns = (stride / 2000.0) as usize;
            let each = held.for_each_band(Width::Double, columns, |rows, a| {
                assert_eq!(a.at, rows.start);
                bands.push(rows);
                Ok(())
            });
            assert_eq!((each, bands), (Ok(()), vec![0..1000, 1000..2000, 2000..2500]));
        }
    }

    #[test]
    fn memory_is_given_back_and_an_interruption_is_seen() {
        let (rows, columns) = (60, 20);
        let values = stored(rows, columns, columns);
        for device in accelerators() {
            {
                let numbers = Numbers::Double(&values);
                let stored = Stored { rows, columns, stride: columns, numbers, symmetric: false };
                let held = Held::new(&device.machine, &stored, &Control::default()).unwrap();
                assert!(device.machine.used() >= 8 * (rows * columns) as u64);
                let control = Control::default();
                control.cancel();
                assert_eq!(Held::new(&device.machine, &stored, &control).err(), Some(Error::Interrupted));
                let v = vectors(rows, 1);
                for result in [
                    held.times(&[&v[0][..columns]], Accuracy::Double, &control).err(),
                    held.transposed_times(&[&v[0]], Accuracy::Double, &control).err(),
                    held.curvature(&v[0], Accuracy::Double, &control).err(),
                ] {
                    assert_eq!(result, Some(Error::Interrupted));
                }
            }
            assert_eq!(device.machine.used(), 0);
        }
    }
}
