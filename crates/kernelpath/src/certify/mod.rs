//! Proofs: the duality gap, which knows no solver, and the ledger of what was proved.

pub(crate) mod certificate;
pub(crate) mod classes;
pub(crate) mod exact;
pub(crate) mod ledger;
pub(crate) mod record;
pub(crate) mod reduced;
