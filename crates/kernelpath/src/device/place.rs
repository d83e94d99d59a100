//! Which device a fit runs on. Only this folder knows the devices by name.

use std::sync::Arc;

use crate::device::Device;
use crate::device::cpu::Cpu;
use crate::error::{Error, Result};

/// Where the linear algebra runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// The processor.
    #[default]
    Cpu,
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

impl DeviceChoice {
    /// The names of the devices.
    pub const NAMES: &'static [&'static str] = &["cpu"];

    /// The device of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "cpu" => Ok(Self::Cpu),
            _ => Err(Error::Unknown { what: "device", name: name.into(), known: Self::NAMES }),
        }
    }

    /// The device, ready for work.
    pub(crate) fn open(self) -> Result<Arc<dyn Device>> {
        match self {
            Self::Cpu => Ok(Arc::new(Cpu)),
        }
    }
}
