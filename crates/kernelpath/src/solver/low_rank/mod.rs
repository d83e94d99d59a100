//! Every loss at low rank, K = ZZᵀ, in rank dimensions: Newton's method for many problems (the folds) at once.
//!
//! From the outside in:
//!
//! * [`in_rank`]: the solver as an engine, at one C.
//! * [`warm_start`]: where the descent at a C starts.
//! * [`proximal_loop`]: centres and widths of the envelopes that stand in for a piecewise-linear loss.
//! * [`working_set`]: the rows that take part in the steps, while the other rows are frozen.
//! * [`newton_step`]: one step of every problem, and how far it goes.
//! * [`slopes`]: the slopes and curvatures of all rows, at the intercept where the slopes sum to 0.
//! * [`directions`]: the linear systems of a step, solved by [`conjugate`] gradients with a [`system_factor`], on the
//!   route that is cheaper by its [`costs`].
//! * [`tuning`]: every tuned number.
//!
//! [`primal`] states the problem, and [`mod@column`] is one problem in work.

pub(crate) mod by_rows;
pub(crate) mod column;
pub(crate) mod conjugate;
pub(crate) mod costs;
pub(crate) mod directions;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod in_rank;
pub(crate) mod newton_step;
pub(crate) mod primal;
pub(crate) mod proximal_loop;
pub(crate) mod slopes;
pub(crate) mod system_factor;
pub(crate) mod tuning;
pub(crate) mod warm_start;
pub(crate) mod working_set;
