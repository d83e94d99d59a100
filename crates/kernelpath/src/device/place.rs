//! Which device a fit runs on. Only this folder knows the devices by name.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::device::Device;
use crate::device::cpu::Cpu;
use crate::device::gpu::accelerator::Accelerator;
use crate::device::gpu::cuda::{Cuda, numbered};
use crate::device::gpu::launcher::{Facts, Failure, Launcher, Missing};
use crate::device::gpu::machine::Traffic;
use crate::device::gpu::opencl::{OpenCl, offered};
use crate::error::{Error, Result};
use crate::numeric::memory::available_memory;

/// Where the linear algebra runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// The processor.
    #[default]
    Cpu,
    /// The best graphics processor that is found, else the processor.
    Auto,
    /// A device by OpenCL: that of this number, or else the first that is not the processor, or else the first.
    OpenCl(Option<usize>),
    /// A device by CUDA: that of this number, or else the first.
    Cuda(Option<usize>),
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Hardware {
    /// The device.
    pub device: DeviceChoice,
    /// Threads of the processor; 0 for all cores.
    pub threads: usize,
}

impl Hardware {
    /// The processor with that many threads, 0 for all cores.
    pub fn threads(threads: usize) -> Self {
        Self { device: DeviceChoice::Cpu, threads }
    }

    /// The same with a device.
    #[must_use]
    pub fn device(self, device: DeviceChoice) -> Self {
        Self { device, ..self }
    }
}

/// A device, and whether it can be used.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// How to ask for it.
    pub choice: DeviceChoice,
    /// Its name, by its vendor; empty if there is none of this kind.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Its memory in bytes.
    pub memory: u64,
    /// Whether it computes in double precision.
    pub double: bool,
    /// Whether it is the processor, by this or another name.
    pub is_processor: bool,
    /// Why it cannot be used; `None` if it can.
    pub problem: Option<String>,
}

/// All devices, the processor first. A kind without devices has one entry that says why. It never fails.
pub fn devices() -> Vec<DeviceInfo> {
    let processor = DeviceInfo {
        choice: DeviceChoice::Cpu,
        name: "the processor".into(),
        driver: format!("kernelpath {}", env!("CARGO_PKG_VERSION")),
        memory: available_memory().unwrap_or(0),
        double: true,
        is_processor: true,
        problem: None,
    };
    let mut all = vec![processor];
    for kind in [Kind::Cuda, Kind::OpenCl] {
        match kind.facts() {
            Ok(facts) => {
                all.extend(facts.into_iter().enumerate().map(|(k, facts)| described(kind.choice(Some(k)), facts)));
            }
            Err(problem) => {
                let none = described(kind.choice(None), Facts::default());
                all.push(DeviceInfo { problem: Some(problem.to_string()), ..none });
            }
        }
    }
    all
}

fn described(choice: DeviceChoice, facts: Facts) -> DeviceInfo {
    let problem = if facts.double { None } else { Some(Missing::Double.to_string()) };
    let Facts { name, driver, memory, double, is_processor, .. } = facts;
    DeviceInfo { choice, name, driver, memory, double, is_processor, problem }
}

/// What an opened device was asked to do so far; `None` if this process has not opened it.
pub fn device_traffic(choice: DeviceChoice) -> Option<Traffic> {
    if !talks_to_drivers() {
        return None;
    }
    let kind = choice.kind()?;
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it =
        |opened: &&Opened| opened.choice == choice || choice == kind.choice(None) && opened.choice.kind() == Some(kind);
    opened.iter().find(is_it).map(|opened| (opened.traffic)())
}

/// The devices other than the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    OpenCl,
    Cuda,
}

impl Kind {
    fn choice(self, number: Option<usize>) -> DeviceChoice {
        match self {
            Self::OpenCl => DeviceChoice::OpenCl(number),
            Self::Cuda => DeviceChoice::Cuda(number),
        }
    }

    /// What the driver says of each device, by its number.
    fn facts(self) -> std::result::Result<Vec<Facts>, Missing> {
        if !talks_to_drivers() {
            return Err(Missing::Forked);
        }
        let ask = || match self {
            Self::OpenCl => Ok(offered()?.into_iter().map(|device| device.facts).collect()),
            Self::Cuda => Ok(numbered()?.into_iter().map(|device| device.facts).collect()),
        };
        guarded(ask).unwrap_or_else(|reason| Err(Missing::Call { call: "the driver", reason }))
    }

    /// Opens the device of this number.
    fn open(self, number: usize) -> Result<Opened> {
        let choice = self.choice(Some(number));
        match self {
            Self::OpenCl => {
                let found = offered().map_err(|missing| choice.unavailable(&missing))?;
                made(choice, || OpenCl::open(&found[number]))
            }
            Self::Cuda => {
                let found = numbered().map_err(|missing| choice.unavailable(&missing))?;
                made(choice, || Cuda::open(&found[number]))
            }
        }
    }
}

fn made<L: Launcher>(choice: DeviceChoice, open: impl FnOnce() -> std::result::Result<L, Failure>) -> Result<Opened> {
    let opened = guarded(open).unwrap_or_else(|reason| Err(Failure::of("the driver")(reason)));
    let launcher = opened.map_err(|failure| failure.error(choice.to_string(), 0, 0))?;
    let device = Arc::new(Accelerator::new(launcher, choice.to_string(), None));
    let counted = device.clone();
    Ok(Opened { choice, others: Vec::new(), device, traffic: Box::new(move || counted.traffic()) })
}

/// A broken driver may lack functions that its interface promises. What its bindings then say by a panic is an error here.
fn guarded<R>(work: impl FnOnce() -> R) -> std::result::Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_else(|| "it panicked".into())
    })
}

/// A device that stays open for the life of the process, with its compiled kernels.
struct Opened {
    choice: DeviceChoice,
    /// Other choices that turned out to mean this device.
    others: Vec<DeviceChoice>,
    device: Arc<dyn Device>,
    traffic: Box<dyn Fn() -> Traffic + Send>,
}

static OPENED: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

/// What `auto` means, once it was asked for.
static BEST: OnceLock<DeviceChoice> = OnceLock::new();

/// The process that spoke to the drivers first; 0 for none. What they keep does not survive a fork.
static SPEAKER: AtomicU32 = AtomicU32::new(0);

/// Whether this process may speak to the drivers: no process that it was forked from did.
fn talks_to_drivers() -> bool {
    let own = process::id();
    match SPEAKER.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => true,
        Err(speaker) => speaker == own,
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Auto => f.write_str("auto"),
            Self::OpenCl(None) => f.write_str("opencl"),
            Self::OpenCl(Some(number)) => write!(f, "opencl:{number}"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(number)) => write!(f, "cuda:{number}"),
        }
    }
}

impl DeviceChoice {
    /// The names of the devices. Those of several devices of a kind have a number: `opencl:1`.
    pub const NAMES: &'static [&'static str] = &["cpu", "auto", "opencl", "cuda"];

    /// The device of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        let unknown = || Error::Unknown { what: "device", name: name.into(), known: Self::NAMES };
        let (kind, number) = match name.split_once(':') {
            None => (name, None),
            Some((kind, number)) => (kind, Some(number.parse::<usize>().map_err(|_| unknown())?)),
        };
        match (kind, number) {
            ("cpu", None) => Ok(Self::Cpu),
            ("auto", None) => Ok(Self::Auto),
            ("opencl", number) => Ok(Self::OpenCl(number)),
            ("cuda", number) => Ok(Self::Cuda(number)),
            _ => Err(unknown()),
        }
    }

    fn kind(self) -> Option<Kind> {
        match self {
            Self::Cpu | Self::Auto => None,
            Self::OpenCl(_) => Some(Kind::OpenCl),
            Self::Cuda(_) => Some(Kind::Cuda),
        }
    }

    /// The device, ready for work.
    pub(crate) fn open(self) -> Result<Arc<dyn Device>> {
        match self {
            Self::Cpu => Ok(Arc::new(Cpu)),
            // (A lock of the parent may never open in a forked process.)
            Self::Auto if !talks_to_drivers() => Ok(Arc::new(Cpu)),
            Self::Auto => BEST.get_or_init(Self::best).open(),
            Self::OpenCl(number) => self.open_by_driver(Kind::OpenCl, number),
            Self::Cuda(number) => self.open_by_driver(Kind::Cuda, number),
        }
    }

    /// The first device that is not the processor and can be opened, or else the processor.
    fn best() -> Self {
        let mut found = devices().into_iter().filter(|info| !info.is_processor && info.problem.is_none());
        found.find(|info| info.choice.open().is_ok()).map_or(Self::Cpu, |info| info.choice)
    }

    fn open_by_driver(self, kind: Kind, number: Option<usize>) -> Result<Arc<dyn Device>> {
        if !talks_to_drivers() {
            return Err(Error::DeviceForked { device: self.to_string() });
        }
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |opened: &&Opened| opened.choice == self || opened.others.contains(&self);
        if let Some(opened) = opened.iter().find(known) {
            return Ok(opened.device.clone());
        }
        let facts = kind.facts().map_err(|missing| self.unavailable(&missing))?;
        let first = |is_good: &dyn Fn(&Facts) -> bool| facts.iter().position(is_good);
        let chosen = number
            .or_else(|| first(&|facts| facts.double && !facts.is_processor))
            .or_else(|| first(&|facts| facts.double))
            .unwrap_or(0);
        match facts.get(chosen) {
            None => return Err(self.unavailable(&Missing::Number { got: chosen, count: facts.len() })),
            Some(facts) if !facts.double => return Err(self.unavailable(&Missing::Double)),
            Some(_) => {}
        }
        let choice = kind.choice(Some(chosen));
        if let Some(opened) = opened.iter_mut().find(|opened| opened.choice == choice) {
            opened.others.push(self);
            return Ok(opened.device.clone());
        }
        let mut new = kind.open(chosen)?;
        new.others.push(self);
        let device = new.device.clone();
        opened.push(new);
        Ok(device)
    }

    fn unavailable(self, missing: &Missing) -> Error {
        let usable = devices().into_iter().filter(|info| info.problem.is_none());
        let available = usable.map(|info| info.choice.to_string()).collect();
        Error::Device { name: self.to_string(), problem: missing.to_string(), available }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["cpu", "auto", "opencl", "opencl:0", "opencl:12", "cuda", "cuda:1"] {
            assert_eq!(DeviceChoice::from_name(name).unwrap().to_string(), name);
        }
        for name in ["", "gpu", "opencl:", "opencl:-1", "cuda:x", "cpu:0", "auto:1", "OpenCL", "cuda:0:0"] {
            let message = DeviceChoice::from_name(name).unwrap_err().to_string();
            assert!(message.contains("known are cpu, auto, opencl, cuda") && message.contains(name), "{message}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error_that_lists_the_others() {
        for choice in [DeviceChoice::OpenCl(Some(1000)), DeviceChoice::Cuda(Some(1000))] {
            let Err(error) = choice.open() else { panic!("{choice} is there") };
            let message = error.to_string();
            assert!(matches!(error, Error::Device { .. }), "{message}");
            assert!(message.contains(&choice.to_string()) && message.contains("available are cpu"), "{message}");
        }
    }

    #[test]
    fn all_devices_are_listed_and_those_without_a_problem_open() {
        let all = devices();
        assert_eq!(all[0].choice, DeviceChoice::Cpu);
        for kind in [Kind::OpenCl, Kind::Cuda] {
            assert!(all.iter().any(|info| info.choice.kind() == Some(kind)), "{all:?}");
        }
        for info in &all {
            assert!(info.problem.is_some() || !info.name.is_empty() && info.memory > 0 && info.double, "{info:?}");
            if info.problem.is_none() {
                let (one, other) = (info.choice.open().unwrap(), info.choice.open().unwrap());
                // Opened once, and kept.
                assert!(Arc::ptr_eq(&one, &other) || info.choice == DeviceChoice::Cpu);
                let first = info.choice.kind().filter(|kind| kind.choice(Some(0)) == info.choice);
                if let Some(kind) =
                    first.filter(|_| all.iter().filter(|other| other.choice.kind() == first).count() == 1)
                {
                    assert!(Arc::ptr_eq(&one, &kind.choice(None).open().unwrap()));
                }
                let before = device_traffic(info.choice);
                one.upload(2, &[vec![1.0, 2.0]]).unwrap();
                let after = device_traffic(info.choice);
                assert!(before.zip(after).is_none_or(|(before, after)| after.up >= before.up + 16));
                assert_eq!(after.is_none(), info.choice == DeviceChoice::Cpu);
            }
        }
        assert!(DeviceChoice::Auto.open().is_ok());
    }

    #[test]
    fn a_driver_that_panics_is_an_error() {
        let text = guarded(|| panic!("no symbol {}", "cuInit")).map(|(): ()| ()).unwrap_err();
        assert_eq!(text, "no symbol cuInit");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_forked_process_may_use_the_processor_only() {
        let _ = devices();
        // SAFETY: the child only asks, and leaves without running anything of the parent.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = |choice: DeviceChoice| matches!(choice.open(), Err(Error::DeviceForked { .. }));
            let right = refused(DeviceChoice::OpenCl(None))
                && refused(DeviceChoice::Cuda(Some(0)))
                && DeviceChoice::Cpu.open().is_ok();
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!right)) };
        }
        let mut status = -1;
        // SAFETY: the child is ours, and the status is one integer.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0));
    }
}
