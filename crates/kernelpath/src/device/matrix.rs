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

    /// What holds the numbers, if it is of this type.
    pub(in crate::device) fn get<M: Any>(&self) -> Option<&M> {
        self.data.downcast_ref()
    }

    /// What holds the numbers. It is of this type, since a matrix never leaves the device that made it.
    pub(in crate::device) fn of<M: Any>(&self) -> &M {
        self.get().expect("a matrix stays on its device, in its precision")
    }

    /// As [`of`](Self::of), to be written.
    pub(in crate::device) fn of_mut<M: Any>(&mut self) -> &mut M {
        self.data.downcast_mut().expect("a matrix stays on its device, in its precision")
    }

    /// As [`of`](Self::of), taken out.
    pub(in crate::device) fn into_inner<M: Any>(self) -> M {
        *self.data.downcast().unwrap_or_else(|_| unreachable!("a matrix stays on its device, in its precision"))
    }
}
