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
