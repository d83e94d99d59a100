//! Devices by OpenCL. The loader is opened when it is first asked for: nothing is linked to it.

use opencl3::command_queue::{CommandQueue, enqueue_nd_range_kernel, enqueue_read_buffer, enqueue_write_buffer};
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::error_codes::{
    CL_BUILD_PROGRAM_FAILURE, CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY,
    CL_OUT_OF_RESOURCES, ClError, DLOPEN_RUNTIME_LOAD_FAILED,
};
use opencl3::event::release_event;
use opencl3::kernel::{create_kernel, release_kernel, set_kernel_arg};
use opencl3::memory::{CL_MEM_READ_WRITE, create_buffer, release_mem_object};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::device::gpu::launcher::{Arg, Facts, Failure, KERNELS, Launcher, Missing, kernel_text};
use crate::numeric::memory::available_memory;

/// What a loader without drivers answers.
const NO_DRIVER: cl_int = -1001;

/// What a platform without devices answers.
const NO_DEVICE: cl_int = -1;

/// Threads of a group, as the prelude of the kernels fixes it.
const THREADS: usize = 256;

/// A device that a driver offers.
#[derive(Clone)]
pub(crate) struct Offered {
    id: cl_device_id,
    pub facts: Facts,
}

fn missing(call: &'static str) -> impl Fn(ClError) -> Missing {
    move |error| match error.0 {
        DLOPEN_RUNTIME_LOAD_FAILED => Missing::Library("libOpenCL.so.1"),
        NO_DRIVER => Missing::Driver("no OpenCL driver is installed (its .icd file is missing in /etc/OpenCL/vendors)"),
        NO_DEVICE => Missing::Device,
        _ => Missing::Call { call, reason: error.to_string() },
    }
}

/// Held while drivers are asked for their devices. Some set themselves up when they are first asked, and crash if two
/// threads ask at once.
static ASKING: Mutex<()> = Mutex::new(());

/// All devices of all drivers, in a fixed order.
pub(crate) fn offered() -> Result<Vec<Offered>, Missing> {
    let _one_at_a_time = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let platforms = get_platforms().map_err(missing("clGetPlatformIDs"))?;
    let mut devices = Vec::new();
    let mut problem = None;
    for platform in platforms {
        // A platform without devices does not hide those of others.
        match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Ok(ids) => devices.extend(ids.into_iter().map(|id| Offered { id, facts: facts(Device::new(id)) })),
            Err(error) => problem = Some(missing("clGetDeviceIDs")(error)),
        }
    }
    if devices.is_empty() { Err(problem.unwrap_or(Missing::Device)) } else { Ok(devices) }
}

fn facts(device: Device) -> Facts {
    let memory = device.global_mem_size().unwrap_or(0);
    let platform = device.platform().ok().map(opencl3::platform::Platform::new);
    let platform = platform.and_then(|platform| platform.name().ok()).unwrap_or_default();
    let is_processor = device.dev_type().is_ok_and(|kind| kind & CL_DEVICE_TYPE_CPU != 0);
    Facts {
        name: device.name().unwrap_or_else(|_| "a device without a name".into()).trim().to_string(),
        driver: format!("{platform} {}", device.driver_version().unwrap_or_default()).trim().to_string(),
        memory,
        // OpenCL does not tell what others have taken; of the memory of the processor, the system does.
        free: if is_processor { available_memory().map_or(memory, |free| free.min(memory)) } else { memory },
        largest: device.max_mem_alloc_size().unwrap_or(memory / 4),
        double: device.double_fp_config().is_ok_and(|config| config != 0),
        // OpenCL does not tell how fast it is. On most graphics cards it is slow.
        double_is_slow: !is_processor,
        is_processor,
    }
}

/// A block of memory.
pub(crate) struct Buffer(cl_mem);

// SAFETY: OpenCL's objects may be used by all threads.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the block is released once. There is nothing to do about an error.
        let _ = unsafe { release_mem_object(self.0) };
    }
}

/// A compiled kernel. Setting its arguments and enqueuing it must not be interleaved with those of another thread.
struct Compiled(cl_kernel);

// SAFETY: as for blocks; the arguments are guarded by the mutex of all kernels.
unsafe impl Send for Compiled {}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: the kernel is released once.
        let _ = unsafe { release_kernel(self.0) };
    }
}

/// A device with its queue and its compiled kernels.
pub(crate) struct OpenCl {
    facts: Facts,
    // Dropped in this order.
    kernels: Mutex<HashMap<&'static str, Compiled>>,
    _program: Program,
    queue: CommandQueue,
    context: Context,
}

// SAFETY: a program may be used by all threads; it is only kept alive here.
unsafe impl Sync for OpenCl {}

/// Of a call that opens a device: it takes no memory for data.
fn failed(call: &'static str) -> impl Fn(ClError) -> Failure {
    move |error| Failure::Call { call, reason: error.to_string() }
}

/// Of a command. Drivers may take the memory of a block only when a command first needs it.
fn not_done(call: &'static str) -> impl Fn(cl_int) -> Failure {
    move |code| match code {
        CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_INVALID_BUFFER_SIZE => Failure::Memory,
        _ => failed(call)(ClError(code)),
    }
}

fn not_allocated(code: cl_int) -> Failure {
    match code {
        CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY => Failure::Memory,
        _ => not_done("clCreateBuffer")(code),
    }
}

/// Forgets that a command can be waited for: the queue keeps the order.
fn done(event: cl_event) {
    // SAFETY: the event belongs to us, and is released once.
    let _ = unsafe { release_event(event) };
}

impl OpenCl {
    pub fn open(offered: &Offered) -> Result<Self, Failure> {
        Self::with_text(offered, &kernel_text(include_str!("prelude_cl.h")))
    }

    /// Compiles these kernels.
    pub fn with_text(offered: &Offered, text: &str) -> Result<Self, Failure> {
        let device = Device::new(offered.id);
        let context = Context::from_device(&device).map_err(failed("clCreateContext"))?;
        // SAFETY: the device is that of the context.
        #[allow(deprecated)]
        let queue = unsafe { CommandQueue::create(&context, offered.id, 0) }.map_err(failed("clCreateCommandQueue"))?;
        let mut program = Program::create_from_source(&context, text).map_err(failed("clCreateProgramWithSource"))?;
        program.build(&[offered.id], "-cl-std=CL1.2").map_err(|error| match error.0 {
            CL_BUILD_PROGRAM_FAILURE => Failure::Compile(program.get_build_log(offered.id).unwrap_or_default()),
            _ => failed("clBuildProgram")(error),
        })?;
        let mut kernels = HashMap::new();
        for name in KERNELS {
            let c_name = CString::new(name).map_err(|error| Failure::of("clCreateKernel")(error.to_string()))?;
            let kernel =
                create_kernel(program.get(), &c_name).map_err(|code| failed("clCreateKernel")(ClError(code)))?;
            kernels.insert(name, Compiled(kernel));
        }
        Ok(Self { facts: offered.facts.clone(), kernels: Mutex::new(kernels), _program: program, queue, context })
    }
}

impl Launcher for OpenCl {
    type Memory = Buffer;

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn free(&self) -> Result<Option<u64>, Failure> {
        let Facts { is_processor, memory, .. } = self.facts;
        Ok(available_memory().filter(|_| is_processor).map(|free| free.min(memory)))
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer, Failure> {
        // SAFETY: no memory of the host is used.
        let block = unsafe { create_buffer(self.context.get(), CL_MEM_READ_WRITE, bytes as usize, ptr::null_mut()) };
        block.map(Buffer).map_err(not_allocated)
    }

    fn upload(&self, bytes: &[u8], to: &Buffer, at: u64) -> Result<(), Failure> {
        let from: *const c_void = bytes.as_ptr().cast();
        let (queue, at) = (self.queue.get(), at as usize);
        // SAFETY: the call returns when the bytes have been read. The driver checks the extent of the block.
        let event = unsafe { enqueue_write_buffer(queue, to.0, CL_BLOCKING, at, bytes.len(), from, 0, ptr::null()) };
        event.map(done).map_err(not_done("clEnqueueWriteBuffer"))
    }

    fn download(&self, from: &Buffer, at: u64, bytes: &mut [u8]) -> Result<(), Failure> {
        let to: *mut c_void = bytes.as_mut_ptr().cast();
        let (queue, at) = (self.queue.get(), at as usize);
        // SAFETY: the call returns when the bytes have been written. The driver checks the extent of the block.
        let event = unsafe { enqueue_read_buffer(queue, from.0, CL_BLOCKING, at, bytes.len(), to, 0, ptr::null()) };
        event.map(done).map_err(not_done("clEnqueueReadBuffer"))
    }

    fn launch(&self, kernel: &'static str, groups: [usize; 2], args: &[Arg<Buffer>]) -> Result<(), Failure> {
        let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = kernels.get(kernel).ok_or_else(|| Failure::of("clCreateKernel")(format!("no kernel {kernel}")))?.0;
        for (i, arg) in args.iter().enumerate() {
            let (size, value): (usize, *const c_void) = match arg {
                Arg::Int(value) => (size_of::<i32>(), ptr::from_ref(value).cast()),
                Arg::Long(value) => (size_of::<i64>(), ptr::from_ref(value).cast()),
                Arg::Double(value) => (size_of::<f64>(), ptr::from_ref(value).cast()),
                Arg::Memory(block) => (size_of::<cl_mem>(), ptr::from_ref(&block.0).cast()),
            };
            // SAFETY: the value has this size, and is read before the call returns.
            unsafe { set_kernel_arg(kernel, i as u32, size, value) }.map_err(not_done("clSetKernelArg"))?;
        }
        let (global, local) = ([groups[0] * THREADS, groups[1]], [THREADS, 1]);
        let (queue, global, local) = (self.queue.get(), global.as_ptr(), local.as_ptr());
        // SAFETY: the kernels write inside the blocks that they are given; two dimensions are given.
        let event = unsafe { enqueue_nd_range_kernel(queue, kernel, 2, ptr::null(), global, local, 0, ptr::null()) };
        event.map(done).map_err(not_done("clEnqueueNDRangeKernel"))
    }

    fn wait(&self) -> Result<(), Failure> {
        self.queue.finish().map_err(|error| not_done("clFinish")(error.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_memory_is_told_from_other_failures() {
        for code in [CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_INVALID_BUFFER_SIZE] {
            assert_eq!([not_allocated(code), not_done("clFinish")(code)], [Failure::Memory, Failure::Memory]);
        }
        for code in [CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY] {
            assert_eq!(not_allocated(code), Failure::Memory);
            // Of a launch, these may also be an address that is no one's, or a kernel with too many registers.
            let Failure::Call { call, reason } = not_done("clFinish")(code) else { panic!("{code} of a command") };
            assert_eq!((call, reason), ("clFinish", ClError(code).to_string()));
        }
        let opening = failed("clCreateContext")(ClError(CL_MEM_OBJECT_ALLOCATION_FAILURE));
        assert!(matches!(opening, Failure::Call { .. }), "{opening:?}");
    }
}
