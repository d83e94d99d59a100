//! Products of matrices on a device, in parts that do not take longer than an interruption may wait.

use crate::device::gpu::accelerator::{Accelerator, int};
use crate::device::gpu::launcher::{Arg, Launcher, Operand, Product, Width};
use crate::device::gpu::machine::{Memory, Pace};
use crate::device::gpu::panels::Panels;
use crate::device::matrix::Matrix;
use crate::error::Result;
use crate::numeric::design::Accuracy;
use crate::observe::Control;

/// What a product is to be: of A or of Aᵀ, in the precision of A or in double precision.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    pub transposed: bool,
    pub accuracy: Accuracy,
    pub control: &'a Control,
}

impl<L: Launcher> Accelerator<L> {
    /// out = A·B, or Aᵀ·B, for the columns of A in panels. With A transposed, each of its panels gives some rows of the
    /// product; otherwise each adds its part to all of them.
    pub(super) fn multiply(&self, a: &Matrix, b: &Matrix, how: How) -> Result<Matrix> {
        let mut pace = Pace::default();
        let (a, b): (&Panels<L>, &Panels<L>) = (a.of(), b.of());
        let rows = if how.transposed { a.columns } else { a.rows };
        let out = Panels::new(&self.machine, Width::Double, rows, b.columns)?;
        if a.columns == 0 {
            out.fill(&self.machine, |_, part| {
                part.fill(0.0);
                Ok(())
            })?;
        }
        for columns in b.stretches(&out) {
            let (from, to) = (b.columns_at(columns.start), out.columns_at(columns.start));
            let count = columns.len();
            if a.width == Width::Double || how.accuracy == Accuracy::Double {
                self.multiply_stretch(a, [&from, &to], count, how, &mut pace)?;
            } else {
                let narrowed = self.machine.allocate::<f32>(b.rows * count)?;
                let product = self.machine.allocate::<f32>(rows * count)?;
                let narrow_b = Operand::new(narrowed.block(), 0, b.rows);
                self.narrow_part(&from, &narrow_b, b.rows * count)?;
                let narrow_c = Operand::new(product.block(), 0, rows);
                self.multiply_stretch(a, [&narrow_b, &narrow_c], count, how, &mut pace)?;
                self.widen(&product, &to, rows, count)?;
            }
        }
        Ok(out.wrap())
    }

    fn multiply_stretch(
        &self,
        a: &Panels<L>,
        [b, to]: [&Operand<'_, L::Memory>; 2],
        columns: usize,
        How { transposed, accuracy, control }: How,
        pace: &mut Pace,
    ) -> Result<()> {
        let flops = 2.0 * a.rows.max(1) as f64 * columns as f64;
        let mut at_once = ((self.machine.stride_of_pace() / flops) as usize).max(1);
        let is_widened = a.width == Width::Single && accuracy == Accuracy::Double;
        if is_widened {
            at_once = at_once.min((self.machine.work_bytes() / (8 * a.rows.max(1) as u64)).max(1) as usize);
        }
        for (range, block) in a.each() {
            for start in range.clone().step_by(at_once) {
                let count = at_once.min(range.end - start);
                self.machine.pace(pace, flops * count as f64, control)?;
                let at = (start - range.start) * a.rows;
                let widened = if is_widened { Some(self.widened(block, at, count * a.rows)?) } else { None };
                let (block, at) = widened.as_ref().map_or((block, at), |widened| (widened, 0));
                let (size, b_at, c_at) = if transposed {
                    ([count, columns, a.rows], b.at, to.at + start)
                } else {
                    ([a.rows, columns, count], b.at + start, to.at)
                };
                self.machine.product(&Product {
                    width: if is_widened { Width::Double } else { a.width },
                    size,
                    transposed: [transposed, false],
                    a: Operand::new(block.block(), at, a.rows),
                    b: Operand::new(b.memory, b_at, b.stride),
                    c: Operand::new(to.memory, c_at, to.stride),
                    add: !transposed && start > 0,
                })?;
            }
        }
        Ok(())
    }

    /// A copy in double precision of `count` numbers from the `at`-th on.
    fn widened(&self, from: &Memory<L>, at: usize, count: usize) -> Result<Memory<L>> {
        let (to, no_residues) = (self.machine.allocate::<f64>(count)?, self.machine.allocate::<i16>(1)?);
        let [count_arg, at] = [count, at].map(|number| Arg::Long(number as i64));
        let args = [count_arg, from.arg(), no_residues.arg(), Arg::Int(0), at, to.arg()];
        self.machine.launch_on("restore", count, 1, &args)?;
        Ok(to)
    }

    /// Copies numbers into single precision.
    pub(super) fn narrow_part(
        &self,
        from: &Operand<'_, L::Memory>,
        to: &Operand<'_, L::Memory>,
        count: usize,
    ) -> Result<()> {
        let [from_at, to_at, count_arg] = [from.at, to.at, count].map(|number| Arg::Long(number as i64));
        let args = [count_arg, Arg::Memory(from.memory), from_at, Arg::Memory(to.memory), to_at];
        self.machine.launch_on("narrow", count, 1, &args)
    }

    /// Copies a matrix without gaps into double precision.
    fn widen(&self, from: &Memory<L>, to: &Operand<'_, L::Memory>, rows: usize, columns: usize) -> Result<()> {
        let to_args = [Arg::Memory(to.memory), Arg::Long(to.at as i64), int(to.stride), Arg::Int(0)];
        let mut args = vec![int(rows), int(columns), from.arg()];
        args.extend(to_args);
        self.machine.launch_on("widen", rows, columns, &args)
    }
}
