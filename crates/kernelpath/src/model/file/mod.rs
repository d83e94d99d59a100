//! Model files: one safetensors file, whose header carries a document in JSON.
//!
//! ```text
//! 8 bytes    the length of the header, little-endian
//! header     JSON: where each array lies, its type and shape; under `__metadata__`, key `kernelpath`, the document
//! body       the arrays, one after the other
//! ```
//!
//! The document says what the model is; everything that grows with the data is an array. Nothing in a file is trusted:
//! what is read takes memory in proportion to the size of the file, and whatever does not fit together is an error.

pub(crate) mod container;
pub(crate) mod disk;
pub(crate) mod document;
pub(crate) mod read;
pub(crate) mod table;
pub(crate) mod write;
