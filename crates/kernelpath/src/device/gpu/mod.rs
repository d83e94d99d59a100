//! Devices other than the processor: one text of kernels, a launcher for each driver, and one implementation of
//! [`Device`](crate::device::Device) over either.

pub(crate) mod accelerator;
#[cfg(test)]
mod contracts;
pub(crate) mod cuda;
mod decompose;
pub(crate) mod held;
pub(crate) mod launcher;
pub(crate) mod machine;
mod multiply;
pub(crate) mod opencl;
pub(crate) mod panels;
#[cfg(test)]
mod present;
#[cfg(test)]
mod pretended;
#[cfg(test)]
mod row_contracts;
pub(crate) mod row_panels;
