//! What a driver offers: memory, transfers, launches of the kernels, and libraries of its vendor. All else is written once,
//! over this.

use std::fmt::{self, Write};

use crate::error::Error;

/// What a driver says of a device.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// The device as its vendor calls it.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    /// All of its memory, in bytes.
    pub memory: u64,
    /// The memory that was free when the device was opened, in bytes, as far as the driver tells.
    pub free: u64,
    /// The largest block of it that can be had, in bytes.
    pub largest: u64,
    /// Whether it computes in double precision.
    pub double: bool,
    /// Whether double precision takes so much longer than single that it is worth avoiding.
    pub double_is_slow: bool,
    /// Whether it is the processor, by another name.
    pub is_processor: bool,
}

/// Why there is no device of a kind, or why one cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Missing {
    /// A library is not installed.
    Library(&'static str),
    /// No driver is registered with the loader.
    Driver(&'static str),
    /// The driver finds no device.
    Device,
    /// There are devices, but none of this number.
    Number { got: usize, count: usize },
    /// The device does not compute in double precision.
    Double,
    /// A process that this one was forked from spoke to the drivers.
    Forked,
    /// A call of the driver failed.
    Call { call: &'static str, reason: String },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(name) => {
                write!(f, "the library {name} is not found; install it, or name its folder in LD_LIBRARY_PATH")
            }
            Self::Driver(what) => write!(f, "{what}"),
            Self::Device => f.write_str("its driver finds no device"),
            Self::Number { got, count: 1 } => write!(f, "there is only one such device, number 0, and no number {got}"),
            Self::Number { got, count } => {
                write!(f, "there are {count} such devices, numbers 0 to {}, and no number {got}", count - 1)
            }
            Self::Forked => f.write_str(
                "a forked process cannot use the device that its parent used; start processes with \"spawn\"",
            ),
            Self::Double => f.write_str("it has no double precision, which every certificate needs"),
            Self::Call { call, reason } => write!(f, "{call} failed: {reason}"),
        }
    }
}

/// What went wrong in a driver.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// There is no memory left on the device: of an allocation, or of a command for which the driver takes it late. Opening
    /// a device does not fail so.
    Memory,
    /// The kernels do not compile; the compiler's words.
    Compile(String),
    /// A call failed.
    Call { call: &'static str, reason: String },
}

impl Failure {
    /// As an error of a device, where `need` bytes were asked for and `free` bytes were left.
    pub fn error(self, device: String, need: u64, free: u64) -> Error {
        match self {
            Self::Memory => Error::DeviceMemory { device, need, free },
            Self::Compile(log) => Error::DeviceKernels { device, log },
            Self::Call { call, reason } => Error::DeviceFailed { device, call: call.to_string(), reason },
        }
    }

    pub fn of(call: &'static str) -> impl Fn(String) -> Self {
        move |reason| Self::Call { call, reason }
    }
}

/// An argument of a kernel.
pub(crate) enum Arg<'a, M> {
    Int(i32),
    Long(i64),
    Double(f64),
    Memory(&'a M),
}

/// The precision of the operands of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Single,
    Double,
}

impl Width {
    pub fn bytes(self) -> u64 {
        if self == Self::Single { 4 } else { 8 }
    }
}

/// A matrix of a product: it begins with number `at` of a block of memory, and its columns lie `stride` numbers apart.
pub(crate) struct Operand<'a, M> {
    pub memory: &'a M,
    pub at: usize,
    pub stride: usize,
}

impl<'a, M> Operand<'a, M> {
    pub fn new(memory: &'a M, at: usize, stride: usize) -> Self {
        Self { memory, at, stride }
    }
}

/// C = op(A)·op(B), or C + op(A)·op(B) if `add` is true. C has m rows and n columns; k is the length of the sums.
pub(crate) struct Product<'a, M> {
    pub width: Width,
    pub size: [usize; 3],
    /// Whether A, and whether B, is transposed.
    pub transposed: [bool; 2],
    pub a: Operand<'a, M>,
    pub b: Operand<'a, M>,
    pub c: Operand<'a, M>,
    pub add: bool,
}

/// A device and its driver. Commands run in the order in which they are given, whichever thread gives them.
pub(crate) trait Launcher: Send + Sync + 'static {
    /// A block of memory of the device, which is given back when it is dropped.
    type Memory: Send + Sync;

    fn facts(&self) -> &Facts;
    /// Bytes that are free now, if the driver tells.
    fn free(&self) -> Result<Option<u64>, Failure> {
        Ok(None)
    }
    /// A block of at least one byte. What it holds is not defined.
    fn allocate(&self, bytes: u64) -> Result<Self::Memory, Failure>;
    /// Copies to the device. The host's bytes may change after the call.
    fn upload(&self, bytes: &[u8], to: &Self::Memory, at: u64) -> Result<(), Failure>;
    /// Copies from the device, after all commands before.
    fn download(&self, from: &Self::Memory, at: u64, bytes: &mut [u8]) -> Result<(), Failure>;
    /// Runs a kernel with groups of 256 threads.
    fn launch(&self, kernel: &'static str, groups: [usize; 2], args: &[Arg<Self::Memory>]) -> Result<(), Failure>;
    /// Waits for all commands.
    fn wait(&self) -> Result<(), Failure>;
    /// The product by a library of the vendor; false if there is none, and nothing was done.
    fn product(&self, _product: &Product<Self::Memory>) -> Result<bool, Failure> {
        Ok(false)
    }
    /// The largest order of an eigendecomposition by a library of the vendor; 0 without one.
    fn eigen_rows(&self) -> usize {
        0
    }
    /// Bytes of work space for [`eigen`](Self::eigen).
    fn eigen_space(&self, _width: Width, _n: usize) -> Result<u64, Failure> {
        Ok(0)
    }
    /// Replaces a symmetric matrix of order n by its eigenvectors, and writes its eigenvalues, ascending.
    fn eigen(
        &self,
        _width: Width,
        _n: usize,
        _matrix: &Self::Memory,
        _values: &Self::Memory,
        _space: &Self::Memory,
    ) -> Result<(), Failure> {
        Err(Failure::of("an eigendecomposition")("there is no library for it".into()))
    }
}

/// Numbers whose bytes are copied as they are.
///
/// # Safety
/// Any bytes must be a number of the type, and a number must have no padding.
pub(crate) unsafe trait Plain: Copy + Default + Send + Sync + 'static {}

// SAFETY: integers and floats.
unsafe impl Plain for i16 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}

pub(crate) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain numbers have no padding, and bytes no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

pub(crate) fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: any bytes are plain numbers.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// The text of the kernels, for a compiler that reads `prelude` before it.
pub(crate) fn kernel_text(prelude: &str) -> String {
    let product = include_str!("product.src");
    let mut text = format!("{prelude}\n#define TILE 64\n#define STEP 16\n");
    for (real, columns, suffix) in
        [("float", 64, "single"), ("float", 16, "single_few"), ("double", 64, "double"), ("double", 16, "double_few")]
    {
        let name = format!("#define NAME(x) x##_{suffix}");
        let _ = writeln!(text, "#define REAL {real}\n#define COLUMNS {columns}\n{name}\n{product}");
        text += "#undef REAL\n#undef COLUMNS\n#undef NAME\n";
    }
    text + include_str!("kernels.src")
}

/// The kernels of the text.
pub(crate) const KERNELS: [&str; 23] = [
    "product_single",
    "product_single_few",
    "product_double",
    "product_double_few",
    "add_slabs_single",
    "add_slabs_double",
    "pulls",
    "narrow",
    "widen",
    "restore",
    "scale_rows",
    "hadamard",
    "resolvent",
    "combine",
    "take_columns",
    "take_rows",
    "column_dots",
    "advance",
    "weigh_single",
    "weigh_restored",
    "weigh_double",
    "tile_dense",
    "tile_sparse",
];
