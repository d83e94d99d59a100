//! How the problems of one C are minimised.

pub(crate) mod box_qp;
pub(crate) mod choice;
pub(crate) mod closed_form;
pub(crate) mod engine;
pub(crate) mod low_rank;
pub(crate) mod newton;
pub(crate) mod spectral;
