//! Which device a fit runs on. Only this folder knows the devices by name.

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

/// Work that any device can do.
pub(crate) trait Work {
    type Out;

    fn on<D: Device>(self, device: &D) -> Self::Out;
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

    /// Does the work on this device.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Out {
        match self {
            Self::Cpu => work.on(&Cpu),
        }
    }
}
