//! Threads that take blocks in turn and parse them.

use std::sync::{Mutex, PoisonError};

use kernelpath::{Control, memory, threads};

use crate::blocks::{Block, Blocks, Budget};
use crate::csv;
use crate::error::{Failure, Problem};
use crate::libsvm;
use crate::options::{Format, Options};
use crate::sniff;
use crate::source::Source;
use crate::table::Table;

/// Reads a table.
pub(crate) fn read(source: &Source, options: &Options, control: &Control) -> Result<Table, Failure> {
    let budget = Budget::new(options);
    let read = || {
        let mut blocks = Blocks::open(source, &budget, control)?;
        blocks.peek()?;
        let crew = Crew { threads: options.threads, budget: &budget, control };
        match options.format {
            Format::Auto if sniff::is_libsvm(blocks.start()) => libsvm::read(blocks, &options.libsvm, &crew),
            Format::Libsvm => libsvm::read(blocks, &options.libsvm, &crew),
            Format::Auto | Format::Csv => csv::read(blocks, &options.csv, None, &crew),
            Format::Tsv => csv::read(blocks, &options.csv, Some(b'\t'), &crew),
        }
    };
    let table = read();
    // An interruption may come to light as an error of input.
    control.check()?;
    table
}

/// Who parses: how many threads, and within which limits.
pub(crate) struct Crew<'a> {
    pub threads: usize,
    pub budget: &'a Budget,
    pub control: &'a Control,
}

/// The failure of a block at the byte `at` of its text.
pub(crate) fn wrong_at(text: &[u8], at: usize, problem: Problem) -> Failure {
    Failure::Line { line: 1 + memchr::memchr_iter(b'\n', &text[..at]).count(), problem }
}

/// What became of a block.
struct Outcome<P> {
    at: usize,
    lines: usize,
    part: Result<P, Failure>,
}

/// What all threads share.
struct Shared<'a> {
    blocks: Blocks<'a>,
    /// Whether a block was wrong. Later blocks are not read then; earlier ones already are.
    has_failed: bool,
}

impl Crew<'_> {
    /// Parses `first`, which `lines_before` lines precede, and all further blocks, and returns their parts in order, each with the number of lines before it.
    /// Of several errors, that of the first block counts. `parse` is given the number of lines of the block; it counts
    /// the line of an error from the start of the block.
    pub fn parse<P: Send>(
        &self,
        blocks: Blocks<'_>,
        lines_before: usize,
        first: Block,
        parse: impl Fn(&Block, usize) -> Result<P, Failure> + Sync,
    ) -> Result<Vec<(usize, P)>, Failure> {
        let is_small = blocks.is_done();
        let shared = Mutex::new(Shared { blocks, has_failed: false });
        let first = Mutex::new(Some(first));
        let outcomes = Mutex::new(Vec::new());
        let work = || {
            let mut done = None;
            loop {
                let block = match locked(&first).take() {
                    Some(block) => block,
                    None => match locked(&shared).next(done.take()) {
                        Ok(Some(block)) => block,
                        Ok(None) => break,
                        Err(failed) => {
                            locked(&outcomes).push(failed);
                            break;
                        }
                    },
                };
                let lines = memchr::memchr_iter(b'\n', block.text()).count();
                let part = parse(&block, lines);
                if part.is_err() {
                    locked(&shared).has_failed = true;
                }
                locked(&outcomes).push(Outcome { at: block.at, lines, part });
                done = Some(block);
            }
        };
        if is_small || threads::count(self.threads) == 1 {
            work();
        } else {
            memory::pool(self.threads)?.broadcast(|_| work());
        }
        self.control.check()?;
        in_order(lines_before, outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a mutex guards. A thread that panics takes the others with it, so nothing half done is seen.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared<'_> {
    /// The next block, in exchange for one that is done.
    fn next<P>(&mut self, done: Option<Block>) -> Result<Option<Block>, Outcome<P>> {
        if let Some(block) = done {
            self.blocks.recycle(block);
        }
        if self.has_failed {
            return Ok(None);
        }
        self.blocks.next().map_err(|failure| {
            self.has_failed = true;
            Outcome { at: self.blocks.at(), lines: 0, part: Err(failure) }
        })
    }
}

/// The parts of all blocks, or the first error, with its line counted from the start of the file.
fn in_order<P>(lines_before: usize, mut outcomes: Vec<Outcome<P>>) -> Result<Vec<(usize, P)>, Failure> {
    outcomes.sort_unstable_by_key(|outcome| outcome.at);
    let mut before = lines_before;
    let mut parts = Vec::with_capacity(outcomes.len());
    for Outcome { lines, part, .. } in outcomes {
        match part {
            Ok(part) => parts.push((before, part)),
            Err(failure) => return Err(failure.after(before)),
        }
        before += lines;
    }
    Ok(parts)
}
