//! The `kernelpath` command.
