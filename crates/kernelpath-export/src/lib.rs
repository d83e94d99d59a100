//! Trained kernel machines for other programs and for people: LIBSVM models, ONNX, a report page.

pub mod report;
