//! Fitted models: decision values, votes, probabilities.

pub(crate) mod arrangement;
pub(crate) mod attributes;
pub(crate) mod calibrate;
pub(crate) mod decision;
pub(crate) mod encoding;
pub(crate) mod expansion;
pub(crate) mod file;
pub(crate) mod isotonic;
pub(crate) mod label_value;
pub(crate) mod platt;
pub(crate) mod predictor;
pub(crate) mod probabilities;
pub(crate) mod saved;
pub(crate) mod scaling;
pub(crate) mod sigmoid;
pub(crate) mod training_rows;
pub(crate) mod votes;
