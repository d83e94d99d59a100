//! How far a fit has come: a bar on a terminal, a line now and then elsewhere. All of it goes to standard error.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kernelpath::{Control, Phase};

use crate::output::tell;

/// How often the bar is drawn.
const REDRAW: Duration = Duration::from_millis(100);

/// Time between two lines.
const LINES: Duration = Duration::from_secs(10);

/// Does the work, whose `control` says how far it has come.
pub(crate) fn shown<R>(control: &Control, is_quiet: bool, work: impl FnOnce() -> R) -> R {
    if is_quiet {
        return work();
    }
    thread::scope(|scope| {
        let (_ends_it, ended) = channel::<()>();
        scope.spawn(move || if stderr().is_terminal() { draw(control, &ended) } else { write(control, &ended) });
        work()
    })
}

fn is_over(ended: &Receiver<()>, wait: Duration) -> bool {
    ended.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected)
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Kernel => "kernel",
        Phase::Path => "models",
    }
}

fn draw(control: &Control, ended: &Receiver<()>) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{msg:7} {wide_bar} {pos}/{len}  {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    while !is_over(ended, REDRAW) {
        let (phase, done, total) = control.progress();
        bar.set_message(name(phase));
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    }
    bar.finish_and_clear();
}

fn write(control: &Control, ended: &Receiver<()>) {
    let start = Instant::now();
    while !is_over(ended, LINES) {
        let (phase, done, total) = control.progress();
        tell(&format!("{}: {done} of {total} after {:.0} s", name(phase), start.elapsed().as_secs_f64()));
    }
}
