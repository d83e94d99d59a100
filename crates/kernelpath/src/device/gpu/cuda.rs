//! Devices by CUDA. The driver and its libraries are opened when they are first asked for: nothing is linked to them. The
//! kernels are compiled for the device at hand by NVRTC.

use cudarc::cublas::result as blas;
use cudarc::cublas::sys::cublasOperation_t as Operation;
use cudarc::cublas::{CudaBlas, sys as blas_sys};
use cudarc::cusolver::safe::DnHandle;
use cudarc::cusolver::sys as solver_sys;
use cudarc::cusolver::sys::{
    cublasFillMode_t as Fill, cusolverDnDsyevd, cusolverDnDsyevd_bufferSize, cusolverDnSsyevd,
    cusolverDnSsyevd_bufferSize, cusolverEigMode_t as Mode,
};
use cudarc::driver::result::{self, device, memcpy_dtoh_async, memcpy_htod_async};
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::sys::{self, CUresult, cuDriverGetVersion};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::result::NvrtcError;
use cudarc::nvrtc::sys as nvrtc_sys;
use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};
use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::device::gpu::launcher::{Arg, Facts, Failure, KERNELS, Launcher, Missing, Product, Width, kernel_text};

/// Threads of a group, as the prelude of the kernels fixes it.
const BLOCK: u32 = 256;

/// A device computes in double precision at a rate that is worth avoiding if single precision is this many times faster.
const SLOW_RATIO: i32 = 4;

/// The library for eigendecompositions counts its work space, 2n² numbers and some, in 31 bits.
const MOST_EIGEN_ROWS: usize = 32_000;

/// A device that the driver offers.
#[derive(Clone)]
pub(crate) struct Numbered {
    number: usize,
    capability: (i32, i32),
    pub facts: Facts,
}

fn missing(call: &'static str) -> impl Fn(DriverError) -> Missing {
    move |error| match error.0 {
        CUresult::CUDA_ERROR_NO_DEVICE => Missing::Device,
        _ => Missing::Call { call, reason: error.to_string() },
    }
}

/// All devices of the driver.
pub(crate) fn numbered() -> Result<Vec<Numbered>, Missing> {
    // SAFETY: these open libraries by their names.
    let (driver, compiler) = unsafe { (sys::is_culib_present(), nvrtc_sys::is_culib_present()) };
    if !driver {
        return Err(Missing::Library("libcuda.so"));
    }
    if !compiler {
        return Err(Missing::Library("libnvrtc.so"));
    }
    result::init().map_err(missing("cuInit"))?;
    let count = device::get_count().map_err(missing("cuDeviceGetCount"))?;
    let devices: Vec<Numbered> = (0..count).map(describe).collect::<Result<_, _>>()?;
    if devices.is_empty() { Err(Missing::Device) } else { Ok(devices) }
}

fn describe(number: i32) -> Result<Numbered, Missing> {
    let id = device::get(number).map_err(missing("cuDeviceGet"))?;
    // SAFETY: the driver gave this device.
    let attribute = |which| unsafe { device::get_attribute(id, which) }.map_err(missing("cuDeviceGetAttribute"));
    let capability = (
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let ratio = attribute(Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO).unwrap_or(0);
    // SAFETY: as above.
    let memory = unsafe { device::total_mem(id) }.map_err(missing("cuDeviceTotalMem"))? as u64;
    let mut version = 0;
    // SAFETY: the driver writes one integer.
    let known = unsafe { cuDriverGetVersion(&raw mut version) } == CUresult::CUDA_SUCCESS;
    let driver = if known { format!("CUDA {}.{}", version / 1000, version % 1000 / 10) } else { "CUDA".into() };
    let facts = Facts {
        name: device::get_name(id).map_err(missing("cuDeviceGetName"))?,
        driver,
        memory,
        free: memory,
        largest: memory,
        double: true,
        double_is_slow: ratio > SLOW_RATIO,
        is_processor: false,
    };
    Ok(Numbered { number: number as usize, capability, facts })
}

/// A block of memory.
pub(crate) struct Slice(CudaSlice<u8>);

impl Slice {
    /// The address of byte `at`.
    fn address(&self, at: u64, stream: &CudaStream) -> u64 {
        self.0.device_ptr(stream).0 + at
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        // The thread that drops a block may be a new one. A call that reports what went wrong in an earlier drop does not
        // bind the thread; the next one does.
        let context = self.0.context();
        if context.bind_to_thread().is_err() {
            let _ = context.bind_to_thread();
        }
    }
}

/// A device with its stream, its compiled kernels, and the vendor's libraries that are installed. Eigendecompositions have
/// a stream of their own: one that was left behind by an interrupted fit does not hold up the next.
pub(crate) struct Cuda {
    facts: Facts,
    kernels: HashMap<&'static str, CudaFunction>,
    blas: Option<Mutex<CudaBlas>>,
    solver: Option<Mutex<DnHandle>>,
    stream: Arc<CudaStream>,
    context: Arc<CudaContext>,
}

fn failed(call: &'static str) -> impl Fn(DriverError) -> Failure {
    move |error| Failure::Call { call, reason: error.to_string() }
}

fn not_allocated(error: DriverError) -> Failure {
    match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Failure::Memory,
        _ => failed("cuMemAlloc")(error),
    }
}

fn said<E: std::fmt::Debug>(call: &'static str) -> impl Fn(E) -> Failure {
    move |error| Failure::Call { call, reason: format!("{error:?}") }
}

/// What the compiler said.
fn of_compiler(error: CompileError) -> Failure {
    match error {
        CompileError::CompileError { log, .. } => Failure::Compile(log.to_string_lossy().into_owned()),
        error => Failure::of("nvrtcCompileProgram")(error.to_string()),
    }
}

impl Cuda {
    pub fn open(numbered: &Numbered) -> Result<Self, Failure> {
        Self::with_text(numbered, &kernel_text(include_str!("prelude_cu.h")))
    }

    /// Compiles these kernels.
    pub fn with_text(numbered: &Numbered, text: &str) -> Result<Self, Failure> {
        let context = CudaContext::new(numbered.number).map_err(failed("cuDevicePrimaryCtxRetain"))?;
        // SAFETY: one stream does all the work, in the order of its commands; that of eigendecompositions waits for it, and
        // is waited for.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(failed("cuStreamCreate"))?;
        let (free, _) = context.mem_get_info().map_err(failed("cuMemGetInfo"))?;
        let facts = Facts { free: free as u64, ..numbered.facts.clone() };
        let (major, minor) = numbered.capability;
        let options = vec![format!("--gpu-architecture=compute_{major}{minor}")];
        let compile = |options| compile_ptx_with_opts(text, CompileOptions { options, ..CompileOptions::default() });
        let compiled = match compile(options) {
            // A compiler older than the device makes code for older ones, which the driver translates.
            Err(CompileError::CompileError {
                nvrtc: NvrtcError(nvrtc_sys::nvrtcResult::NVRTC_ERROR_INVALID_OPTION),
                ..
            }) => compile(Vec::new()),
            compiled => compiled,
        };
        let module = context.load_module(compiled.map_err(of_compiler)?).map_err(failed("cuModuleLoadData"))?;
        let load = |name: &'static str| Ok((name, module.load_function(name).map_err(failed("cuModuleGetFunction"))?));
        let kernels = KERNELS.into_iter().map(load).collect::<Result<_, Failure>>()?;
        // SAFETY: these open libraries by their names.
        let (has_blas, has_solver) = unsafe { (blas_sys::is_culib_present(), solver_sys::is_culib_present()) };
        let blas = has_blas.then(|| CudaBlas::new(stream.clone())).transpose().map_err(said("cublasCreate"))?;
        let new_solver = || {
            let stream = context.new_stream().map_err(failed("cuStreamCreate"))?;
            DnHandle::new(stream).map_err(said("cusolverDnCreate"))
        };
        let solver = has_solver.then(new_solver).transpose()?;
        Ok(Self { facts, kernels, blas: blas.map(Mutex::new), solver: solver.map(Mutex::new), stream, context })
    }

    /// Makes the context that of this thread.
    fn bind(&self) -> Result<(), Failure> {
        self.context.bind_to_thread().map_err(failed("cuCtxSetCurrent"))
    }
}

/// Numbers of work space of the eigendecomposition.
fn work_length(solver: &DnHandle, width: Width, n: usize) -> Result<i32, Failure> {
    let (mut length, size) = (0, n as i32);
    let (mode, fill) = (Mode::CUSOLVER_EIG_MODE_VECTOR, Fill::CUBLAS_FILL_MODE_LOWER);
    // SAFETY: only the size is looked at.
    let status = unsafe {
        let (handle, length) = (solver.cu(), &raw mut length);
        match width {
            Width::Single => {
                cusolverDnSsyevd_bufferSize(handle, mode, fill, size, ptr::null(), size, ptr::null(), length)
            }
            Width::Double => {
                cusolverDnDsyevd_bufferSize(handle, mode, fill, size, ptr::null(), size, ptr::null(), length)
            }
        }
    };
    status.result().map_err(said("cusolverDnXsyevd_bufferSize"))?;
    Ok(length.max(0))
}

impl Launcher for Cuda {
    type Memory = Slice;

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn free(&self) -> Result<Option<u64>, Failure> {
        // Blocks that were dropped are given back when the stream is waited for.
        self.wait()?;
        let (free, _) = self.context.mem_get_info().map_err(failed("cuMemGetInfo"))?;
        Ok(Some(free as u64))
    }

    fn allocate(&self, bytes: u64) -> Result<Slice, Failure> {
        // SAFETY: what reads the block wrote it before.
        unsafe { self.stream.alloc::<u8>(bytes as usize) }.map(Slice).map_err(not_allocated)
    }

    fn upload(&self, bytes: &[u8], to: &Slice, at: u64) -> Result<(), Failure> {
        self.bind()?;
        let address = to.address(at, &self.stream);
        // SAFETY: the stream is waited for, so that the bytes have been read. The driver checks the extent of the block.
        unsafe { memcpy_htod_async(address, bytes, self.stream.cu_stream()) }.map_err(failed("cuMemcpyHtoD"))?;
        self.wait()
    }

    fn download(&self, from: &Slice, at: u64, bytes: &mut [u8]) -> Result<(), Failure> {
        self.bind()?;
        let address = from.address(at, &self.stream);
        // SAFETY: the stream is waited for, so that the bytes have been written.
        unsafe { memcpy_dtoh_async(bytes, address, self.stream.cu_stream()) }.map_err(failed("cuMemcpyDtoH"))?;
        self.wait()
    }

    fn launch(&self, kernel: &'static str, groups: [usize; 2], args: &[Arg<Slice>]) -> Result<(), Failure> {
        self.bind()?;
        let no_kernel = || Failure::of("cuModuleGetFunction")(format!("no kernel {kernel}"));
        let function = self.kernels.get(kernel).ok_or_else(no_kernel)?;
        let mut launch = self.stream.launch_builder(function);
        for arg in args {
            match arg {
                Arg::Int(value) => launch.arg(value),
                Arg::Long(value) => launch.arg(value),
                Arg::Double(value) => launch.arg(value),
                Arg::Memory(block) => launch.arg(&block.0),
            };
        }
        let size = LaunchConfig {
            grid_dim: (groups[0] as u32, groups[1] as u32, 1),
            block_dim: (BLOCK, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the kernels write inside the blocks that they are given.
        unsafe { launch.launch(size) }.map(drop).map_err(failed("cuLaunchKernel"))
    }

    fn wait(&self) -> Result<(), Failure> {
        self.bind()?;
        self.stream.synchronize().map_err(failed("cuStreamSynchronize"))
    }

    fn product(&self, product: &Product<Slice>) -> Result<bool, Failure> {
        let Some(blas) = &self.blas else { return Ok(false) };
        self.bind()?;
        let blas = blas.lock().unwrap_or_else(PoisonError::into_inner);
        let Product { width, size, transposed, a, b, c, add } = product;
        let [op_a, op_b] = transposed.map(|t| if t { Operation::CUBLAS_OP_T } else { Operation::CUBLAS_OP_N });
        let [m, n, k] = size.map(|size| size as i32);
        let [lda, ldb, ldc] = [a.stride, b.stride, c.stride].map(|stride| stride as i32);
        let [a, b, c] = [a, b, c].map(|o| o.memory.address(o.at as u64 * width.bytes(), &self.stream));
        let handle = *blas.handle();
        // SAFETY: the operands lie inside their blocks, and the library is used by one thread at a time.
        unsafe {
            match width {
                Width::Single => {
                    let (one, beta) = (1.0_f32, if *add { 1.0_f32 } else { 0.0 });
                    let (a, b, c) = (a as *const f32, b as *const f32, c as *mut f32);
                    let beta = &raw const beta;
                    blas::sgemm(handle, op_a, op_b, m, n, k, &raw const one, a, lda, b, ldb, beta, c, ldc)
                }
                Width::Double => {
                    let (one, beta) = (1.0_f64, if *add { 1.0_f64 } else { 0.0 });
                    let (a, b, c) = (a as *const f64, b as *const f64, c as *mut f64);
                    let beta = &raw const beta;
                    blas::dgemm(handle, op_a, op_b, m, n, k, &raw const one, a, lda, b, ldb, beta, c, ldc)
                }
            }
        }
        .map_err(said("cublasGemm"))?;
        Ok(true)
    }

    fn eigen_rows(&self) -> usize {
        if self.solver.is_some() { MOST_EIGEN_ROWS } else { 0 }
    }

    fn eigen_space(&self, width: Width, n: usize) -> Result<u64, Failure> {
        self.bind()?;
        let Some(solver) = &self.solver else { return Ok(0) };
        let solver = solver.lock().unwrap_or_else(PoisonError::into_inner);
        // The library says in an integer behind its space how it went.
        Ok(width.bytes() * (work_length(&solver, width, n)? as u64 + 1))
    }

    fn eigen(&self, width: Width, n: usize, matrix: &Slice, values: &Slice, space: &Slice) -> Result<(), Failure> {
        let call = if width == Width::Single { "cusolverDnSsyevd" } else { "cusolverDnDsyevd" };
        let Some(solver) = &self.solver else { return Err(Failure::of(call)("there is no cuSOLVER".into())) };
        self.bind()?;
        let solver = solver.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = solver.stream();
        // What the device was told before makes the matrix, and the room for the results.
        stream.join(&self.stream).map_err(failed("cuStreamWaitEvent"))?;
        let (length, size) = (work_length(&solver, width, n)?, n as i32);
        let [matrix, values, work] = [matrix, values, space].map(|block| block.address(0, stream));
        let info = work + width.bytes() * length as u64;
        let (mode, fill) = (Mode::CUSOLVER_EIG_MODE_VECTOR, Fill::CUBLAS_FILL_MODE_LOWER);
        // SAFETY: the blocks have the lengths that the library asked for.
        let status = unsafe {
            let (handle, info) = (solver.cu(), info as *mut i32);
            match width {
                Width::Single => {
                    let (matrix, values, work) = (matrix as *mut f32, values as *mut f32, work as *mut f32);
                    cusolverDnSsyevd(handle, mode, fill, size, matrix, size, values, work, length, info)
                }
                Width::Double => {
                    let (matrix, values, work) = (matrix as *mut f64, values as *mut f64, work as *mut f64);
                    cusolverDnDsyevd(handle, mode, fill, size, matrix, size, values, work, length, info)
                }
            }
        };
        let mut outcome = [0_u8; 4];
        let read = status.result().map_err(said(call)).and_then(|()| {
            // SAFETY: the stream is waited for, so that the bytes have been written.
            unsafe { memcpy_dtoh_async(&mut outcome, info, stream.cu_stream()) }.map_err(failed("cuMemcpyDtoH"))
        });
        // After an error too: the blocks may be dropped only when the library has left them.
        stream.synchronize().map_err(failed("cuStreamSynchronize"))?;
        read?;
        match i32::from_ne_bytes(outcome) {
            0 => Ok(()),
            code => Err(Failure::of(call)(format!("it did not converge (info = {code})"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::device::gpu::machine::Limits;
    use crate::device::gpu::present::{accelerator, cuda};
    use crate::observe::Control;

    #[test]
    fn a_decomposition_waits_for_what_was_launched_before_it_in_a_stream_of_its_own() {
        let Some(launcher) = cuda() else { return };
        let Some(solver) = &launcher.solver else { return };
        let of_solver = solver.lock().unwrap().stream().cu_stream();
        assert_ne!(of_solver, launcher.stream.cu_stream());
        let device = accelerator(launcher.clone(), Limits { bytes: 64 << 20, largest: 64 << 20 });
        let n = 40;
        let diagonal: Vec<Vec<f64>> =
            (0..n).map(|i| (0..n).map(|j| if i == j { i as f64 } else { 0.0 }).collect()).collect();
        let matrix = device.upload(n, &diagonal).unwrap();
        // The kernel that makes the matrix is in the queue when its decomposition begins.
        let matrix = device.scale_rows(&vec![3.0; n], &matrix).unwrap();
        let (values, basis) = device.eigh(matrix, &Control::default()).unwrap();
        assert!(values.iter().enumerate().all(|(i, value)| (value - 3.0 * i as f64).abs() < 1e-12), "{values:?}");
        // And what is launched after it sees its vectors.
        let squares = device.column_dots(&basis, &basis).unwrap();
        assert!(squares.iter().all(|square| (square - 1.0).abs() < 1e-12), "{squares:?}");
    }

    #[test]
    fn a_new_thread_frees_a_block_although_an_earlier_one_was_not_freed() {
        if cuda().is_none() {
            return;
        }
        let device = Cuda::open(&numbered().unwrap()[0]).unwrap();
        let block = device.allocate(8).unwrap();
        device.context.record_err(Err::<(), _>(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE)));
        std::thread::spawn(move || drop(block)).join().unwrap();
        // cudarc records the outcome of the drop here.
        assert_eq!(device.context.check_err(), Ok(()));
    }

    #[test]
    fn only_an_allocation_that_fails_is_a_lack_of_memory() {
        // The driver has the words of errors.
        if cuda().is_none() {
            return;
        }
        let full = DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert_eq!(not_allocated(full), Failure::Memory);
        for failure in [failed("cuLaunchKernel")(full), not_allocated(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE))]
        {
            assert!(matches!(failure, Failure::Call { .. }), "{failure:?}");
        }
    }
}
