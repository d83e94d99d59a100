//! The bytes of a file in blocks of whole records, and how much memory they may take.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kernelpath::Control;

use crate::error::{Failure, Problem};
use crate::options::Options;
use crate::source::Source;

/// Bytes of a block. Larger blocks leave the cache between the thread that reads and the code that parses; with
/// smaller ones, threads meet more often at the lock, and the parts to be joined are many.
const BLOCK: usize = 1 << 20;

/// The mark that some programs write first into a file of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes that a buffer has at first. It grows while the file goes on, so that a small file takes little memory.
const START: usize = 64 << 10;

/// How much memory reading may take, and what it takes so far.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    /// What the parsed parts take.
    kept: AtomicU64,
    /// What the buffers take.
    held: AtomicU64,
}

impl Budget {
    pub fn new(options: &Options) -> Self {
        let limit = options.memory.or_else(kernelpath::available_memory).unwrap_or(u64::MAX);
        Self { limit, kept: AtomicU64::new(0), held: AtomicU64::new(0) }
    }

    /// Bytes that reading may take.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts bytes that are kept until the end. Each is needed twice then: in its part, and where the parts are joined.
    pub fn keep(&self, bytes: usize) -> Result<(), Failure> {
        self.kept.fetch_add(bytes as u64, Relaxed);
        self.check("the table")
    }

    /// Counts bytes of buffers.
    fn hold(&self, bytes: usize, what: &'static str) -> Result<(), Failure> {
        self.held.fetch_add(bytes as u64, Relaxed);
        self.check(what)
    }

    /// Counts bytes of buffers that are given back.
    fn release(&self, bytes: usize) {
        let less = |held: u64| Some(held.saturating_sub(bytes as u64));
        let _ = self.held.fetch_update(Relaxed, Relaxed, less);
    }

    fn check(&self, what: &'static str) -> Result<(), Failure> {
        let needed = self.kept.load(Relaxed).saturating_mul(2).saturating_add(self.held.load(Relaxed));
        if needed > self.limit { Err(self.exceeded(what)) } else { Ok(()) }
    }

    pub fn exceeded(&self, what: &'static str) -> Failure {
        Failure::Memory { what, limit: self.limit }
    }
}

/// Where a block may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// After any line.
    Lines,
    /// After a line that no quoted field goes beyond; fields have this delimiter between them.
    Records(u8),
}

/// Whole records of a file.
#[derive(Debug)]
pub(crate) struct Block {
    /// Its number, counted from 0.
    pub at: usize,
    /// The memory; what is behind `end` belongs to nothing.
    buffer: Vec<u8>,
    end: usize,
}

impl Block {
    /// The records. The last byte is a line feed.
    pub fn text(&self) -> &[u8] {
        &self.buffer[..self.end]
    }
}

/// A file as a sequence of blocks. Where it is cut depends on its content alone.
pub(crate) struct Blocks<'a> {
    input: Box<dyn Read + Send + 'a>,
    cut: Cut,
    /// The start of a record whose end is not read yet.
    rest: Vec<u8>,
    /// Buffers that are not in use.
    spare: Vec<Vec<u8>>,
    at: usize,
    at_end: bool,
    budget: &'a Budget,
    control: &'a Control,
}

impl<'a> Blocks<'a> {
    pub fn open(source: &Source<'a>, budget: &'a Budget, control: &'a Control) -> Result<Self, Failure> {
        let input = source.open(control, budget.limit())?;
        let (rest, spare) = (Vec::new(), Vec::new());
        Ok(Self { input, cut: Cut::Lines, rest, spare, at: 0, at_end: false, budget, control })
    }

    /// Reads the first bytes of the file, from which its format is seen: at least one line, and a block if there is so much.
    pub fn peek(&mut self) -> Result<(), Failure> {
        let (mut end, mut target) = (0, BLOCK);
        let mut buffer = Vec::new();
        loop {
            end = self.fill(&mut buffer, end, target)?;
            refuse_binary(&buffer[..end])?;
            if self.at_end || memchr::memchr(b'\n', &buffer[..end]).is_some() {
                break;
            }
            target = more_than(end);
        }
        buffer.truncate(end);
        if buffer.starts_with(MARK) {
            buffer.drain(..MARK.len());
        }
        self.rest = buffer;
        Ok(())
    }

    /// What [`Blocks::peek`] has read.
    pub fn start(&self) -> &[u8] {
        &self.rest
    }

    /// Says where blocks may end. Before that, after any line.
    pub fn cut_at(&mut self, cut: Cut) {
        self.cut = cut;
    }

    /// Whether everything is read.
    pub fn is_done(&self) -> bool {
        self.at_end && self.rest.is_empty()
    }

    /// The number of the next block.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Takes the memory of a block for a later one.
    pub fn recycle(&mut self, block: Block) {
        self.spare.push(block.buffer);
    }

    /// The next block; `None` after the last. A line of an error is counted from the start of the block.
    pub fn next(&mut self) -> Result<Option<Block>, Failure> {
        let mut end = self.rest.len();
        let mut buffer = if end < BLOCK {
            let mut buffer = self.spare.pop().unwrap_or_default();
            self.grow(&mut buffer, end)?;
            buffer[..end].copy_from_slice(&self.rest);
            self.rest.clear();
            end = self.fill(&mut buffer, end, BLOCK)?;
            buffer
        } else {
            // A long line is not copied.
            std::mem::take(&mut self.rest)
        };
        let mut scan = Scan::default();
        while !self.at_end {
            if let Some(last) = scan.last_end(&buffer[..end], self.cut) {
                let mut rest = std::mem::take(&mut self.rest);
                self.grow(&mut rest, end - last)?;
                rest.copy_from_slice(&buffer[last..end]);
                self.rest = rest;
                end = last;
                break;
            }
            refuse_binary(&buffer[..end])?;
            end = self.fill(&mut buffer, end, more_than(end))?;
        }
        if end == 0 {
            return Ok(None);
        }
        if buffer[end - 1] != b'\n' {
            self.grow(&mut buffer, end + 1)?;
            buffer[end] = b'\n';
            end += 1;
        }
        if buffer.len() > end + BLOCK {
            // What a long line did not need. The parser may take a copy of a field, which may be nearly all of it.
            let before = buffer.capacity();
            buffer.truncate(end);
            buffer.shrink_to_fit();
            self.budget.release(before - buffer.capacity());
        }
        self.at += 1;
        Ok(Some(Block { at: self.at - 1, buffer, end }))
    }

    /// Makes the buffer `length` bytes long, if it is shorter and there is memory.
    fn grow(&self, buffer: &mut Vec<u8>, length: usize) -> Result<(), Failure> {
        if buffer.len() < length {
            let what = match self.cut {
                _ if length <= BLOCK => "the table",
                Cut::Lines => "a single line",
                Cut::Records(_) => "a single line, or a field whose quote is never closed,",
            };
            self.budget.hold(length.saturating_sub(buffer.capacity()), what)?;
            buffer.try_reserve_exact(length - buffer.len()).map_err(|_| self.budget.exceeded(what))?;
            buffer.resize(length, 0);
        }
        Ok(())
    }

    /// Reads until the buffer has `target` bytes or the file ends, and returns how many it has.
    fn fill(&mut self, buffer: &mut Vec<u8>, mut end: usize, target: usize) -> Result<usize, Failure> {
        while end < target && !self.at_end {
            self.control.check()?;
            if end == buffer.len() {
                self.grow(buffer, target.min(START.max(2 * end)))?;
            }
            let room = target.min(buffer.len());
            match self.input.read(&mut buffer[end..room]) {
                Ok(0) => self.at_end = true,
                Ok(count) => end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(end)
    }
}

/// Bytes to read up to where `end` of them have no end of a record. With what is read beyond that end, which is kept
/// for the next block, a line takes twice its length at most.
fn more_than(end: usize) -> usize {
    end + BLOCK.max(end / 2)
}

/// Refuses bytes that are no text. Binary data often has no line feeds: it would fill the memory.
fn refuse_binary(text: &[u8]) -> Result<(), Failure> {
    let Some(nul) = memchr::memchr(0, text) else { return Ok(()) };
    let line = memchr::memchr_iter(b'\n', &text[..nul]).count() + 1;
    Err(Failure::Line { line, problem: Problem::Nul })
}

/// The search for the last end of a record, which goes on where it stopped when more was read.
#[derive(Debug, Default)]
struct Scan {
    /// Everything before is examined.
    to: usize,
    /// Whether `to` is in a quoted field.
    is_inside: bool,
}

impl Scan {
    /// The place after the last record that ends in `text`, which starts with a record.
    fn last_end(&mut self, text: &[u8], cut: Cut) -> Option<usize> {
        let Cut::Records(delimiter) = cut else {
            let found = memchr::memrchr(b'\n', &text[self.to..]).map(|at| self.to + at + 1);
            self.to = text.len();
            return found;
        };
        let mut last = None;
        loop {
            let quote = memchr::memchr(b'"', &text[self.to..]).map(|at| self.to + at);
            if self.is_inside {
                // Whether a quote closes the field or stands for itself is seen from the next byte.
                let Some((quote, next)) = quote.and_then(|at| Some((at, *text.get(at + 1)?))) else {
                    self.to = quote.unwrap_or(text.len());
                    return last;
                };
                let is_doubled = next == b'"';
                self.is_inside = is_doubled;
                self.to = quote + 1 + usize::from(is_doubled);
            } else {
                let end = quote.unwrap_or(text.len());
                last = memchr::memrchr(b'\n', &text[self.to..end]).map(|at| self.to + at + 1).or(last);
                self.to = quote.map_or(end, |at| at + 1);
                if quote.is_none() {
                    return last;
                }
                self.is_inside = opens_field(&text[..end], delimiter);
            }
        }
    }
}

/// Whether a quote after `before` is at the start of a field. Elsewhere it is an error, which the parser reports.
fn opens_field(before: &[u8], delimiter: u8) -> bool {
    let start = before.iter().rev().find(|c| **c != b' ');
    start.is_none_or(|c| *c == delimiter || *c == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of all records, found by one look at each byte.
    fn naive_ends(text: &[u8], delimiter: u8) -> Vec<usize> {
        let (mut ends, mut is_inside, mut at) = (Vec::new(), false, 0);
        while at < text.len() {
            match text[at] {
                b'"' if is_inside && text.get(at + 1) == Some(&b'"') => at += 1,
                b'"' if is_inside => is_inside = false,
                b'"' => is_inside = opens_field(&text[..at], delimiter),
                b'\n' if !is_inside => ends.push(at + 1),
                _ => {}
            }
            at += 1;
        }
        ends
    }

    #[test]
    fn ends_of_records_are_found_wherever_reading_stops() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let text: Vec<u8> = (0..random.usize(..30)).map(|_| b"a, \"\"\"\n\n"[random.usize(..8)]).collect();
            let mut scan = Scan::default();
            let mut found = None;
            let mut to = 0;
            while to < text.len() {
                to = (to + random.usize(1..6)).min(text.len());
                found = scan.last_end(&text[..to], Cut::Records(b',')).or(found);
            }
            let naive = naive_ends(&text, b',').pop();
            // The last quote may wait for the byte after it.
            assert!(found == naive || text.ends_with(b"\""), "{:?}: {found:?}, not {naive:?}", text.escape_ascii());
        }
    }
}
