//! The `kernelpath` command.

fn main() {}
