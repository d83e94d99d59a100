//! The command as users run it: the binary, its options, exit statuses, files and messages.

mod foreign;
mod libsvm;
mod limits;
mod options;
mod page;
mod predictions;
mod processes;
mod running;
#[cfg(unix)]
mod streams;
mod tables;
mod verify;
