//! A device with its memory under a budget, its traffic counted, and its errors in words.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use crate::device::gpu::launcher::{Arg, Failure, Launcher, Operand, Plain, Product, Width, bytes_of, bytes_of_mut};
use crate::error::{Error, Result};
use crate::numeric::memory;
use crate::observe::Control;

/// Share of the free memory of a device that this process takes at most. Drivers need some for themselves; with a larger
/// share their own allocations fail, at a place where no one expects it.
const SHARE: f64 = 0.9;

fn share_of(bytes: u64) -> u64 {
    (SHARE * bytes as f64) as u64
}

/// Time between two looks at memory that will be given back.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Bytes of a block in which a large operation works part by part. A larger one leaves less for the data, a smaller one
/// makes products of few columns, which are slow.
const WORK_BYTES: u64 = 256 << 20;

/// Bytes of the host that are copied at a time where they must first be brought into order.
pub(crate) const COPY_BYTES: usize = 64 << 20;

/// Flops after which a processor, and any other device, is waited for, to see whether the caller asked to stop: some tenths
/// of a second for the slowest.
const FLOPS_OF_PROCESSOR: f64 = 1e9;

const FLOPS_OF_DEVICE: f64 = 3.2e10;

/// Length of the sums of one slab of a product, and the number of groups that keeps a device busy. A product with few
/// groups and long sums is cut into slabs.
const SLAB: usize = 1024;

const BUSY: usize = 256;

/// Columns from which a product has wide tiles.
const WIDE: usize = 32;

/// Threads of a group.
const GROUP: usize = 256;

/// The largest number of groups along the second dimension.
const MOST_GROUPS: usize = 65_535;

/// How much memory there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes in all, free or not. Sizes of parts follow from it, so that they do not change with what is free.
    pub bytes: u64,
    /// Bytes of a block.
    pub largest: u64,
}

/// What a device was asked to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Kernels and products of libraries launched.
    pub launches: u64,
    /// Bytes copied to the device.
    pub up: u64,
    /// Bytes copied from the device.
    pub down: u64,
}

#[derive(Default)]
struct Counters {
    launches: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

/// An opened device.
pub(crate) struct Machine<L: Launcher> {
    pub launcher: L,
    /// As [`DeviceChoice`](crate::DeviceChoice) writes it.
    choice: String,
    limits: Limits,
    /// Whether the limits are those of a test, in place of what the driver says.
    is_fixed: bool,
    /// Bytes that may be used, as of the last [survey](Self::survey).
    budget: AtomicU64,
    used: AtomicU64,
    /// Eigendecompositions that run. That of an interrupted fit runs on, and keeps its memory until it ends.
    decompositions: AtomicUsize,
    counters: Counters,
    process: u32,
}

/// Counts an eigendecomposition while it runs.
pub(crate) struct Decomposing<L: Launcher>(Arc<Machine<L>>);

impl<L: Launcher> Decomposing<L> {
    pub fn begin(machine: &Arc<Machine<L>>) -> Self {
        machine.decompositions.fetch_add(1, AcqRel);
        Self(machine.clone())
    }
}

impl<L: Launcher> Drop for Decomposing<L> {
    fn drop(&mut self) {
        self.0.decompositions.fetch_sub(1, AcqRel);
    }
}

/// A block of memory of a device, counted by its budget.
pub(crate) struct Memory<L: Launcher> {
    block: ManuallyDrop<L::Memory>,
    bytes: u64,
    machine: Arc<Machine<L>>,
}

impl<L: Launcher> Memory<L> {
    pub fn block(&self) -> &L::Memory {
        &self.block
    }

    pub fn arg(&self) -> Arg<'_, L::Memory> {
        Arg::Memory(&self.block)
    }
}

impl<L: Launcher> Drop for Memory<L> {
    fn drop(&mut self) {
        self.machine.used.fetch_sub(self.bytes, Relaxed);
        // A forked process must not talk to the driver of its parent: there the block is forgotten.
        if self.machine.is_own() {
            // SAFETY: the block is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.block) };
        }
    }
}

/// Flops since a device was last waited for.
#[derive(Default)]
pub(crate) struct Pace(f64);

impl<L: Launcher> Machine<L> {
    /// `limits` replaces what the driver says.
    pub fn new(launcher: L, choice: String, limits: Option<Limits>) -> Arc<Self> {
        let facts = launcher.facts();
        let all = Limits { bytes: share_of(facts.memory), largest: facts.largest };
        let budget = AtomicU64::new(limits.map_or(share_of(facts.free), |limits| limits.bytes));
        let (is_fixed, limits) = (limits.is_some(), limits.unwrap_or(all));
        Arc::new(Self {
            launcher,
            choice,
            limits,
            is_fixed,
            budget,
            used: AtomicU64::new(0),
            decompositions: AtomicUsize::new(0),
            counters: Counters::default(),
            process: std::process::id(),
        })
    }

    /// Looks at the memory that is free now: other processes take and return some.
    pub fn survey(&self) -> Result<()> {
        if !self.is_own() {
            return Err(Error::DeviceForked { device: self.choice.clone() });
        }
        let free = self.launcher.free().map_err(|failure| self.command_error(failure))?;
        if let Some(free) = free.filter(|_| !self.is_fixed) {
            self.budget.store(share_of(free.saturating_add(self.used())), Relaxed);
        }
        Ok(())
    }

    /// An error if this many bytes are more than is left. While a decomposition of an interrupted fit runs, its memory is
    /// waited for.
    pub fn check_room(&self, need: u64, control: &Control) -> Result<()> {
        loop {
            let (running, free) = (self.decompositions.load(Acquire), self.left());
            if need <= free {
                return Ok(());
            }
            if running == 0 || control.out_of_time() {
                return Err(Error::DeviceMemory { device: self.choice.clone(), need, free });
            }
            control.check()?;
            std::thread::sleep(LOOK_AGAIN);
            self.survey()?;
        }
    }

    pub fn traffic(&self) -> Traffic {
        let Counters { launches, up, down } = &self.counters;
        Traffic { launches: launches.load(Relaxed), up: up.load(Relaxed), down: down.load(Relaxed) }
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Bytes that are left of the budget.
    pub fn left(&self) -> u64 {
        self.budget().saturating_sub(self.used())
    }

    /// Bytes that may be used in all.
    pub fn budget(&self) -> u64 {
        self.budget.load(Relaxed)
    }

    /// Bytes of the blocks in which a product works.
    pub fn products_bytes(&self) -> u64 {
        3 * self.work_bytes()
    }

    /// Bytes of the largest block.
    pub fn largest(&self) -> u64 {
        self.limits.largest.min(self.limits.bytes)
    }

    /// Bytes of a block for a part of a large operation. They do not depend on what is in use, so that repeated runs have
    /// the same parts and the same sums.
    pub fn work_bytes(&self) -> u64 {
        WORK_BYTES.min(self.limits.largest).min(self.limits.bytes / 8).max(8)
    }

    /// Whether this process opened the device.
    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// An error of the driver, where `need` bytes were asked for.
    pub fn error(&self, failure: Failure, need: u64) -> Error {
        failure.error(self.choice.clone(), need, self.left())
    }

    /// An error of a command that asks for no memory itself. Where the driver takes the memory of blocks only when they are
    /// used, it lacks room for those in use.
    pub fn command_error(&self, failure: Failure) -> Error {
        self.error(failure, self.used().max(1))
    }

    /// Room for numbers, at least for one.
    pub fn allocate<T: Plain>(self: &Arc<Self>, count: usize) -> Result<Memory<L>> {
        let bytes = (count.max(1) as u64).saturating_mul(size_of::<T>() as u64);
        if !self.is_own() {
            return Err(Error::DeviceForked { device: self.choice.clone() });
        }
        if bytes > self.limits.largest {
            return Err(Error::DeviceMemory { device: self.choice.clone(), need: bytes, free: self.limits.largest });
        }
        if self.launcher.facts().is_processor {
            memory::check_block(bytes as usize, "the memory of a device")?;
        }
        let take = |used: u64| used.checked_add(bytes).filter(|all| *all <= self.budget());
        self.used.fetch_update(Relaxed, Relaxed, take).map_err(|_| self.error(Failure::Memory, bytes))?;
        match self.launcher.allocate(bytes) {
            Ok(block) => Ok(Memory { block: ManuallyDrop::new(block), bytes, machine: self.clone() }),
            Err(failure) => {
                self.used.fetch_sub(bytes, Relaxed);
                Err(self.error(failure, bytes))
            }
        }
    }

    /// Writes numbers from the `at`-th on.
    pub fn write<T: Plain>(&self, values: &[T], to: &Memory<L>, at: usize) -> Result<()> {
        let bytes = bytes_of(values);
        if bytes.is_empty() {
            return Ok(());
        }
        self.counters.up.fetch_add(bytes.len() as u64, Relaxed);
        let at = (at * size_of::<T>()) as u64;
        self.launcher.upload(bytes, &to.block, at).map_err(|failure| self.error(failure, bytes.len() as u64))
    }

    /// A block with these numbers.
    pub fn upload<T: Plain>(self: &Arc<Self>, values: &[T]) -> Result<Memory<L>> {
        let block = self.allocate::<T>(values.len())?;
        self.write(values, &block, 0)?;
        Ok(block)
    }

    /// Reads numbers from the `at`-th on.
    pub fn read<T: Plain>(&self, from: &Memory<L>, at: usize, values: &mut [T]) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        if !self.is_own() {
            return Err(Error::DeviceForked { device: self.choice.clone() });
        }
        let at = (at * size_of::<T>()) as u64;
        let bytes = bytes_of_mut(values);
        self.counters.down.fetch_add(bytes.len() as u64, Relaxed);
        let need = bytes.len() as u64;
        self.launcher.download(&from.block, at, bytes).map_err(|failure| self.error(failure, need))
    }

    /// The first `count` numbers of a block.
    pub fn download<T: Plain>(&self, from: &Memory<L>, count: usize) -> Result<Vec<T>> {
        memory::check_block(count * size_of::<T>(), "what a device computed")?;
        let mut values = vec![T::default(); count];
        self.read(from, 0, &mut values)?;
        Ok(values)
    }

    /// Runs a kernel on a number of groups.
    pub fn launch(&self, kernel: &'static str, groups: [usize; 2], args: &[Arg<L::Memory>]) -> Result<()> {
        if groups.contains(&0) {
            return Ok(());
        }
        self.counters.launches.fetch_add(1, Relaxed);
        self.launcher.launch(kernel, groups, args).map_err(|failure| self.command_error(failure))
    }

    /// Runs a kernel with a thread for each of `rows` rows, which takes the columns in turn.
    pub fn launch_on(&self, kernel: &'static str, rows: usize, columns: usize, args: &[Arg<L::Memory>]) -> Result<()> {
        self.launch(kernel, [rows.div_ceil(GROUP), columns.min(MOST_GROUPS)], args)
    }

    /// The product of two matrices.
    pub fn product(self: &Arc<Self>, product: &Product<L::Memory>) -> Result<()> {
        let [m, n, k] = product.size;
        if m == 0 || n == 0 {
            return Ok(());
        }
        if k > 0 && self.launcher.product(product).map_err(|failure| self.command_error(failure))? {
            self.counters.launches.fetch_add(1, Relaxed);
            return Ok(());
        }
        let few = n <= WIDE;
        let tiles = m.div_ceil(64) * n.div_ceil(if few { 16 } else { 64 });
        let room = (self.largest() / (product.width.bytes() * (m * n) as u64)) as usize;
        let slabs = k.div_ceil(SLAB).min(BUSY / tiles).min(room).max(1);
        let slab = k.div_ceil(slabs).max(1);
        // A sum over nothing still has one slab, of zeros.
        let slabs = k.div_ceil(slab).max(1);
        let (kernel, adder) = match (product.width, few) {
            (Width::Single, true) => ("product_single_few", "add_slabs_single"),
            (Width::Single, false) => ("product_single", "add_slabs_single"),
            (Width::Double, true) => ("product_double_few", "add_slabs_double"),
            (Width::Double, false) => ("product_double", "add_slabs_double"),
        };
        let parts = match (slabs, product.width) {
            (1, _) => None,
            (_, Width::Single) => Some(self.allocate::<f32>(slabs * m * n)?),
            (_, Width::Double) => Some(self.allocate::<f64>(slabs * m * n)?),
        };
        let Product { transposed, a, b, c, add, .. } = product;
        let (to, add) = match &parts {
            None => (Operand::new(c.memory, c.at, c.stride), *add),
            Some(parts) => (Operand::new(parts.block(), 0, m), false),
        };
        let operand = |o: &Operand<'_, L::Memory>| (Arg::Long(o.at as i64), Arg::Int(o.stride as i32));
        let ((a_at, lda), (b_at, ldb), (c_at, ldc)) = (operand(a), operand(b), operand(&to));
        let args = [
            Arg::Int(m as i32),
            Arg::Int(n as i32),
            Arg::Int(k as i32),
            Arg::Int(slab as i32),
            Arg::Int(i32::from(transposed[0])),
            Arg::Int(i32::from(transposed[1])),
            Arg::Memory(a.memory),
            a_at,
            lda,
            Arg::Memory(b.memory),
            b_at,
            ldb,
            Arg::Memory(to.memory),
            c_at,
            ldc,
            Arg::Int(i32::from(add)),
        ];
        self.launch(kernel, [tiles * slabs, 1], &args)?;
        let Some(parts) = parts else { return Ok(()) };
        let (at, stride) = operand(c);
        let [m_arg, n_arg] = [m, n].map(|size| Arg::Int(size as i32));
        let add = Arg::Int(i32::from(product.add));
        let args = [m_arg, n_arg, Arg::Int(slabs as i32), parts.arg(), Arg::Memory(c.memory), at, stride, add];
        self.launch_on(adder, m, n, &args)
    }

    /// Flops after which the device is waited for.
    pub fn stride_of_pace(&self) -> f64 {
        if self.launcher.facts().is_processor { FLOPS_OF_PROCESSOR } else { FLOPS_OF_DEVICE }
    }

    /// Fails when the caller asked to stop. After a stride of flops it waits for the device, so that what is still in its queue
    /// does not take long.
    pub fn pace(&self, pace: &mut Pace, flops: f64, control: &Control) -> Result<()> {
        control.check()?;
        pace.0 += flops;
        if pace.0 >= self.stride_of_pace() {
            pace.0 = 0.0;
            self.launcher.wait().map_err(|failure| self.command_error(failure))?;
            control.check()?;
        }
        Ok(())
    }
}

/// Numbers of the host that are copied at a time, in pieces of `length`; at least one piece.
pub(crate) fn pieces_at_once(length: usize) -> usize {
    (COPY_BYTES / size_of::<f64>() / length.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::device::gpu::cuda::{Cuda, numbered};
    use crate::device::gpu::launcher::{Facts, kernel_text};
    use crate::device::gpu::opencl::{OpenCl, offered};
    use crate::device::gpu::present::{accelerator, cuda, opencl};

    fn limits(bytes: u64) -> Limits {
        Limits { bytes, largest: bytes }
    }

    #[test]
    fn a_budget_is_kept_and_given_back() {
        let Some(launcher) = opencl() else { return };
        let device = accelerator(launcher, limits(20_000));
        let columns = vec![vec![1.0; 1000]];
        {
            let first = device.upload(1000, &columns).unwrap();
            let second = device.upload(1000, &columns).unwrap();
            assert_eq!(device.machine.used(), 16_000);
            let error = device.upload(1000, &columns).err();
            assert_eq!(error, Some(Error::DeviceMemory { device: "a test".into(), need: 8000, free: 4000 }));
            // What was there is still right.
            assert_eq!(device.download(&first).unwrap(), columns);
            drop((first, second));
        }
        assert_eq!((device.machine.used(), device.machine.left()), (0, 20_000));
        assert!(device.upload(1000, &columns).is_ok());
        // A column that is larger than any block.
        let error = device.upload(5000, &[vec![0.0; 5000]]).err();
        assert_eq!(error, Some(Error::DeviceMemory { device: "a test".into(), need: 40_000, free: 20_000 }));
    }

    #[test]
    fn an_allocation_that_fails_in_the_middle_is_an_error_and_loses_nothing() {
        let Some(launcher) = opencl() else { return };
        let device = accelerator(launcher, limits(1 << 20));
        let a = device.upload(40, &vec![vec![0.5; 40]; 40]).unwrap();
        let narrow = device.narrow(&a).unwrap();
        let used = device.machine.used();
        for allowed in 0..3 {
            device.machine.launcher.allocations.store(allowed, Relaxed);
            let error = device.times(&narrow, &a, &Control::default()).err().unwrap();
            let message = error.to_string();
            assert!(matches!(error, Error::DeviceMemory { .. }) && message.contains("fewer rows"), "{message}");
            assert_eq!(device.machine.used(), used);
            device.machine.launcher.allocations.store(-1, Relaxed);
            let product = device.download(&device.times(&narrow, &a, &Control::default()).unwrap()).unwrap();
            assert!(product.iter().flatten().all(|value| *value == 10.0));
        }
    }

    type Outcome<T> = std::result::Result<T, Failure>;

    /// A driver that takes memory only when a command uses it, and has none.
    struct Full(Facts);

    impl Launcher for Full {
        type Memory = ();

        fn facts(&self) -> &Facts {
            &self.0
        }
        fn allocate(&self, _: u64) -> Outcome<()> {
            Ok(())
        }
        fn upload(&self, _: &[u8], (): &(), _: u64) -> Outcome<()> {
            Err(Failure::Memory)
        }
        fn download(&self, (): &(), _: u64, _: &mut [u8]) -> Outcome<()> {
            Err(Failure::Memory)
        }
        fn launch(&self, _: &'static str, _: [usize; 2], _: &[Arg<()>]) -> Outcome<()> {
            Err(Failure::Memory)
        }
        fn wait(&self) -> Outcome<()> {
            Err(Failure::Memory)
        }
    }

    #[test]
    fn a_lack_of_memory_says_how_much_is_needed() {
        let machine = Machine::new(Full(Facts::default()), "a test".into(), Some(limits(1000)));
        let error = |need, free| Err(Error::DeviceMemory { device: "a test".into(), need, free });
        let pace = || machine.pace(&mut Pace::default(), f64::INFINITY, &Control::default());
        assert_eq!(pace(), error(1, 1000));
        let block = machine.allocate::<f64>(50).unwrap();
        assert_eq!(machine.write(&[0.0; 3], &block, 0), error(24, 600));
        assert_eq!(machine.read(&block, 0, &mut [0.0; 2]), error(16, 600));
        assert_eq!(machine.launch("narrow", [1, 1], &[block.arg()]), error(400, 600));
        assert_eq!(pace(), error(400, 600));
        let operand = || Operand::new(block.block(), 0, 5);
        let [a, b, c] = [operand(), operand(), operand()];
        let product = Product { width: Width::Double, size: [5; 3], transposed: [false; 2], a, b, c, add: false };
        assert_eq!(machine.product(&product), error(400, 600));
    }

    #[test]
    fn kernels_that_do_not_compile_are_an_error_with_the_words_of_the_compiler() {
        let broken = |prelude: &str| format!("{}\nKERNEL void broken( {{", kernel_text(prelude));
        let by_opencl = opencl()
            .map(|_| OpenCl::with_text(&offered().unwrap()[0], &broken(include_str!("prelude_cl.h"))).err().unwrap());
        let by_cuda = cuda()
            .map(|_| Cuda::with_text(&numbered().unwrap()[0], &broken(include_str!("prelude_cu.h"))).err().unwrap());
        for failure in by_opencl.into_iter().chain(by_cuda) {
            let error = failure.error("gpu:0".into(), 0, 0);
            let message = error.to_string();
            assert!(matches!(error, Error::DeviceKernels { .. }), "{message}");
            assert!(message.contains("do not compile for device \"gpu:0\"") && message.contains("error"), "{message}");
        }
    }

    #[test]
    fn traffic_is_counted() {
        let Some(launcher) = opencl() else { return };
        let device = accelerator(launcher, limits(1 << 20));
        let a = device.upload(10, &vec![vec![1.0; 10]; 3]).unwrap();
        assert_eq!(device.traffic(), Traffic { launches: 0, up: 240, down: 0 });
        let scaled = device.scale_rows(&[2.0; 10], &a).unwrap();
        device.download(&scaled).unwrap();
        assert_eq!(device.traffic(), Traffic { launches: 1, up: 320, down: 240 });
    }

    #[test]
    fn two_threads_may_use_one_device() {
        let Some(launcher) = opencl() else { return };
        let device = accelerator(launcher, limits(1 << 22));
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let device = &device;
                scope.spawn(move || {
                    let a = device.upload(70, &vec![vec![f64::from(thread); 70]; 70]).unwrap();
                    for _ in 0..10 {
                        let product = device.download(&device.times(&a, &a, &Control::default()).unwrap()).unwrap();
                        let want = 70.0 * f64::from(thread * thread);
                        assert!(product.iter().flatten().all(|value| *value == want));
                    }
                });
            }
        });
    }
}
