//! Devices other than the processor: one text of kernels, a launcher for each driver, and one implementation of
//! [`Device`](crate::device::interim::Device) over either.

pub(crate) mod accelerator;
pub(crate) mod launcher;
pub(crate) mod machine;
pub(crate) mod opencl;
pub(crate) mod panels;
#[cfg(test)]
mod contracts;
#[cfg(test)]
mod present;
