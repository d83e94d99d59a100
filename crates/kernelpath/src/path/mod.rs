//! Which problems are solved in what order, and from where: the one loop over C.

pub(crate) mod leave_one_out;
pub(crate) mod schedule;
pub(crate) mod sweep;
