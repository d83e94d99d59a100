//! A matrix on a device.

use std::any::Any;

/// A matrix on a device, column after column. What holds its numbers is known to its device only.
pub(crate) struct Matrix {
    pub rows: usize,
    pub columns: usize,
    data: Box<dyn Any + Send + Sync>,
}

impl Matrix {
    pub(in crate::device) fn new<M: Any + Send + Sync>(rows: usize, columns: usize, data: M) -> Self {
        Self { rows, columns, data: Box::new(data) }
    }

    /// What holds the numbers. A matrix of another device is a bug of the caller.
    pub(in crate::device) fn of<M: Any>(&self) -> &M {
        self.data.downcast_ref().expect("a matrix is used by the device that made it")
    }
}
