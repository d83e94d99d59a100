//! Ctrl-C ends the command, not the process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use kernelpath::Control;
use signal_hook::consts::SIGINT;

use crate::failure::{FAILED, INTERRUPTED};

/// How often the flag of the signal is looked at.
const POLL: Duration = Duration::from_millis(20);

/// How long the work may take to end after an interruption. What takes longer is left behind: nothing that it writes
/// appears under its name before it is whole.
const PATIENCE: Duration = Duration::from_millis(700);

/// The stack of the work, as large as that of a main thread.
const STACK: usize = 8 << 20;

/// Does the work in another thread, and cancels its `Control` on SIGINT.
pub(crate) fn heeded(work: impl FnOnce(&Control) -> u8 + Send + 'static) -> u8 {
    let (flag, control) = (Arc::new(AtomicBool::new(false)), Arc::new(Control::default()));
    let registered = signal_hook::flag::register(SIGINT, flag.clone());
    let (done, ended) = channel();
    let shared = control.clone();
    let guarded = move || {
        // The message of a panic is on standard error by then.
        let status = catch_unwind(AssertUnwindSafe(|| work(&shared))).unwrap_or(FAILED);
        let _ = done.send(status);
    };
    if thread::Builder::new().name("kernelpath".into()).stack_size(STACK).spawn(guarded).is_err() {
        crate::output::tell("error: the system does not let a thread start");
        return FAILED;
    }
    let mut since: Option<Instant> = None;
    let status = loop {
        match ended.recv_timeout(POLL) {
            Ok(status) => break status,
            Err(RecvTimeoutError::Disconnected) => break FAILED,
            Err(RecvTimeoutError::Timeout) if since.is_some_and(|since| since.elapsed() > PATIENCE) => {
                break INTERRUPTED;
            }
            Err(RecvTimeoutError::Timeout) => {
                if flag.load(Relaxed) {
                    since.get_or_insert_with(Instant::now);
                    control.cancel();
                }
            }
        }
    };
    if let Ok(id) = registered {
        signal_hook::low_level::unregister(id);
    }
    status
}
