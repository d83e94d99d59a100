//! The devices of this machine, for tests: each with all of its memory, and with panels of a few columns only.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::device::Device;
use crate::device::cpu::Cpu;
use crate::device::gpu::accelerator::Accelerator;
use crate::device::gpu::cuda::{Cuda, numbered};
use crate::device::gpu::launcher::{Arg, Facts, Failure, Launcher, Product, Width};
use crate::device::gpu::machine::Limits;
use crate::device::gpu::opencl::{OpenCl, offered};

/// A launcher that several machines share, whose allocations can be made to fail.
pub(crate) struct Watched<L> {
    pub inner: Arc<L>,
    /// Allocations that succeed before one fails; negative: none fails.
    pub allocations: AtomicI64,
}

impl<L: Launcher> Watched<L> {
    pub fn new(inner: Arc<L>) -> Self {
        Self { inner, allocations: AtomicI64::new(-1) }
    }
}

impl<L: Launcher> Launcher for Watched<L> {
    type Memory = L::Memory;

    fn facts(&self) -> &Facts {
        self.inner.facts()
    }
    fn free(&self) -> Result<Option<u64>, Failure> {
        self.inner.free()
    }
    fn allocate(&self, bytes: u64) -> Result<Self::Memory, Failure> {
        match self.allocations.fetch_update(Relaxed, Relaxed, |left| (left >= 0).then_some(left - 1)) {
            Ok(0) => Err(Failure::Memory),
            _ => self.inner.allocate(bytes),
        }
    }
    fn upload(&self, bytes: &[u8], to: &Self::Memory, at: u64) -> Result<(), Failure> {
        self.inner.upload(bytes, to, at)
    }
    fn download(&self, from: &Self::Memory, at: u64, bytes: &mut [u8]) -> Result<(), Failure> {
        self.inner.download(from, at, bytes)
    }
    fn launch(&self, kernel: &'static str, groups: [usize; 2], args: &[Arg<Self::Memory>]) -> Result<(), Failure> {
        self.inner.launch(kernel, groups, args)
    }
    fn wait(&self) -> Result<(), Failure> {
        self.inner.wait()
    }
    fn product(&self, product: &Product<Self::Memory>) -> Result<bool, Failure> {
        self.inner.product(product)
    }
    fn eigen_rows(&self) -> usize {
        self.inner.eigen_rows()
    }
    fn eigen_space(&self, width: Width, n: usize) -> Result<u64, Failure> {
        self.inner.eigen_space(width, n)
    }
    fn eigen(
        &self,
        width: Width,
        n: usize,
        matrix: &Self::Memory,
        values: &Self::Memory,
        space: &Self::Memory,
    ) -> Result<(), Failure> {
        self.inner.eigen(width, n, matrix, values, space)
    }
}

/// Whether the tests must find a device of this kind.
fn is_required(kind: &str) -> bool {
    std::env::var("KERNELPATH_REQUIRE_DEVICES").is_ok_and(|kinds| kinds.split(',').any(|name| name.trim() == kind))
}

/// What was found of a kind, or nothing, which is said, or fails where the kind is required.
fn found<L>(kind: &str, opened: Result<L, String>) -> Option<Arc<L>> {
    match opened {
        Ok(launcher) => Some(Arc::new(launcher)),
        Err(problem) => {
            assert!(!is_required(kind), "no device by {kind}: {problem}");
            eprintln!("no device by {kind}, so it is not tested: {problem}");
            None
        }
    }
}

pub(crate) fn opencl() -> Option<Arc<OpenCl>> {
    static OPENED: OnceLock<Option<Arc<OpenCl>>> = OnceLock::new();
    let open = || {
        let offered = offered().map_err(|missing| missing.to_string())?;
        OpenCl::open(&offered[0]).map_err(|failure| format!("{failure:?}"))
    };
    OPENED.get_or_init(|| found("opencl", open())).clone()
}

/// Bytes of a block on the devices whose matrices lie in many panels.
pub(crate) const TINY: u64 = 24_000;

fn limited(largest: u64) -> Limits {
    Limits { bytes: 512 << 20, largest }
}

pub(crate) fn accelerator<L: Launcher>(launcher: Arc<L>, limits: Limits) -> Accelerator<Watched<L>> {
    Accelerator::new(Watched::new(launcher), "a test".into(), Some(limits))
}

/// A device by OpenCL with tiny panels.
pub(crate) fn accelerators() -> Vec<Accelerator<Watched<OpenCl>>> {
    opencl().into_iter().map(|launcher| accelerator(launcher, limited(TINY))).collect()
}

pub(crate) fn cuda() -> Option<Arc<Cuda>> {
    static OPENED: OnceLock<Option<Arc<Cuda>>> = OnceLock::new();
    let open = || {
        let numbered = numbered().map_err(|missing| missing.to_string())?;
        Cuda::open(&numbered[0]).map_err(|failure| format!("{failure:?}"))
    };
    OPENED.get_or_init(|| found("cuda", open())).clone()
}

/// Every device that is there, the processor first.
pub(crate) fn devices() -> Vec<(&'static str, Box<dyn Device>)> {
    let mut devices: Vec<(&'static str, Box<dyn Device>)> = vec![("cpu", Box::new(Cpu))];
    if let Some(launcher) = opencl() {
        devices.push(("opencl", Box::new(accelerator(launcher.clone(), limited(64 << 20)))));
        devices.push(("opencl in panels", Box::new(accelerator(launcher, limited(TINY)))));
    }
    if let Some(launcher) = cuda() {
        devices.push(("cuda", Box::new(accelerator(launcher.clone(), limited(64 << 20)))));
        devices.push(("cuda in panels", Box::new(accelerator(launcher, limited(TINY)))));
    }
    devices
}
