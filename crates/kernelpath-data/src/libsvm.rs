//! LIBSVM files: a label and the entries of a row in each line.

use crate::blocks::{Block, Blocks, Budget};
use crate::error::{Failure, Problem, shown};
use crate::join;
use crate::labels::Labels;
use crate::number::{self, NotNumber};
use crate::options::{Base, Format, LibsvmOptions};
use crate::table::{ColumnIndices, Table, TableRows};
use crate::workers::{Crew, wrong_at};

/// The largest index there can be, so that the number of columns is an `i64`, too.
const LARGEST: u64 = i64::MAX as u64 - 1;

/// Reads a LIBSVM file.
pub(crate) fn read(mut blocks: Blocks, options: &LibsvmOptions, crew: &Crew) -> Result<Table, Failure> {
    let first = blocks.next()?.ok_or(Problem::Empty)?;
    let rules = Rules::new(options);
    let parts = crew.parse(blocks, 0, first, |block, lines| part(block, lines, &rules, crew.budget))?;
    let (lines_before, parts): (Vec<usize>, Vec<Part>) = parts.into_iter().unzip();
    if parts.iter().all(|part| part.ends.is_empty()) {
        return Err(Problem::Empty.into());
    }
    let counts_from_zero = parts.iter().any(|part| part.least == 0);
    let base = match options.base {
        Base::One => 1,
        Base::Zero => 0,
        Base::Auto => u64::from(!counts_from_zero),
    };
    let largest = parts.iter().filter_map(|part| part.largest).map(|(index, _)| index).max();
    let found = largest.map_or(0, |largest| largest + 1 - base);
    if let Some(columns) = options.columns
        && found > columns as u64
    {
        // The largest index is one too large: where the base was not known before, or no column was asked for.
        let at = parts.iter().zip(lines_before).find_map(|(part, before)| {
            part.largest.filter(|(index, _)| Some(*index) == largest).map(|(_, line)| before + line)
        });
        let problem = Problem::Index {
            index: largest.unwrap_or(0).to_string(),
            largest: (columns as u64).saturating_sub(1),
            why: ASKED,
        };
        return Err(Failure::Line { line: at.unwrap_or(0), problem });
    }
    let columns = options.columns.unwrap_or(usize::try_from(found).unwrap_or(usize::MAX));
    // Where the base was known, the parts have it already.
    let shift = if options.base == Base::Auto { base } else { 0 };
    joined(parts, columns, shift, found <= 1 << 31)
}

const ASKED: &str = " with the number of columns that was asked for";

/// What indices may be.
struct Rules {
    /// What is subtracted from an index at once.
    base: u64,
    /// The smallest index.
    least: u64,
    /// The largest index.
    largest: u64,
    /// Where the largest index comes from.
    why: &'static str,
    ignore_qid: bool,
}

impl Rules {
    fn new(options: &LibsvmOptions) -> Self {
        let base = u64::from(options.base == Base::One);
        let of_columns = options.columns.map(|columns| match options.base {
            Base::Zero => (columns as u64).checked_sub(1),
            Base::One | Base::Auto => Some(columns as u64),
        });
        let (largest, why) = match of_columns {
            Some(Some(largest)) if largest <= LARGEST => (largest, ASKED),
            Some(None) => (0, ASKED),
            _ => (LARGEST, ""),
        };
        Self { base, least: base, largest, why, ignore_qid: options.ignore_qid }
    }
}

/// What is read from a block.
struct Part {
    labels: NumericLabels,
    /// How many entries there are up to the end of each row.
    ends: Vec<usize>,
    indices: ColumnIndices,
    values: Vec<f64>,
    /// The smallest index, as it is written; `u64::MAX` if there is none.
    least: u64,
    /// The largest index, as it is written, and its line.
    largest: Option<(u64, usize)>,
}

/// Labels are integers until one is written with a point or an exponent.
enum NumericLabels {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
}

impl NumericLabels {
    /// Adds a label, or says why it is no number.
    #[inline]
    fn push(&mut self, label: &[u8]) -> Result<(), NotNumber> {
        match self {
            Self::Integers(labels) => {
                if let Some(value) = number::integer(label) {
                    labels.push(value);
                } else {
                    let value = number::number(label)?;
                    let mut floats = Vec::with_capacity(labels.capacity());
                    floats.extend(labels.iter().map(|label| *label as f64));
                    floats.push(value);
                    *self = Self::Floats(floats);
                }
            }
            Self::Floats(labels) => labels.push(number::number(label)?),
        }
        Ok(())
    }
}

/// Parses a block.
fn part(block: &Block, lines: usize, rules: &Rules, budget: &Budget) -> Result<Part, Failure> {
    let text = block.text();
    // Each entry has a colon.
    let entries = memchr::memchr_iter(b':', text).count();
    let size = lines * (size_of::<f64>() + size_of::<usize>()) + entries * (size_of::<f64>() + size_of::<i32>());
    budget.keep(size)?;
    let parsed = match rows::<i32>(text, lines, entries, rules) {
        Err(Stop::Wide) => {
            budget.keep(entries * size_of::<i32>())?;
            rows::<i64>(text, lines, entries, rules)
        }
        parsed => parsed,
    };
    parsed.map_err(|stop| match stop {
        Stop::Wrong(at, problem) => wrong_at(text, at, problem),
        Stop::Failure(failure) => failure,
        Stop::Wide => Failure::File(Problem::Empty),
    })
}

/// Why the parser stops.
enum Stop {
    /// Something is wrong at this byte.
    Wrong(usize, Problem),
    /// An index does not fit into the integers of this width.
    Wide,
    Failure(Failure),
}

/// Integers that hold indices.
trait Index: Copy {
    fn new(index: u64) -> Option<Self>;
    fn all(indices: Vec<Self>) -> ColumnIndices;
}

impl Index for i32 {
    fn new(index: u64) -> Option<Self> {
        index.try_into().ok()
    }

    fn all(indices: Vec<Self>) -> ColumnIndices {
        ColumnIndices::I32(indices)
    }
}

impl Index for i64 {
    fn new(index: u64) -> Option<Self> {
        index.try_into().ok()
    }

    fn all(indices: Vec<Self>) -> ColumnIndices {
        ColumnIndices::I64(indices)
    }
}

fn is_blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// Whether a word ends before this byte.
fn ends_word(c: u8) -> bool {
    is_blank(c) || c == b'\n' || c == b'#'
}

/// The place of the first byte from `at` on that ends a word. The last byte of a text is a line feed.
fn word_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|c| ends_word(*c)).map_or(text.len(), |length| at + length)
}

fn line_end(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length)
}

/// Parses lines: blank ones are skipped, and what follows `#`.
fn rows<I: Index>(text: &[u8], lines: usize, entries: usize, rules: &Rules) -> Result<Part, Stop> {
    let mut labels = NumericLabels::Integers(join::with_room(lines).map_err(Stop::Failure)?);
    let mut ends = join::with_room(lines).map_err(Stop::Failure)?;
    let mut indices: Vec<I> = join::with_room(entries).map_err(Stop::Failure)?;
    let mut values: Vec<f64> = join::with_room(entries).map_err(Stop::Failure)?;
    let (mut least, mut largest) = (u64::MAX, None);
    let mut at = 0;
    while let Some(&c) = text.get(at) {
        if is_blank(c) || c == b'\n' {
            at += 1;
            continue;
        }
        if c == b'#' {
            at = line_end(text, at);
            continue;
        }
        let end = word_end(text, at);
        labels.push(&text[at..end]).map_err(|why| Stop::Wrong(at, no_label(&text[at..end], why)))?;
        let start = at;
        at = end;
        let mut previous = None;
        loop {
            match text.get(at) {
                Some(b'#') => at = line_end(text, at),
                Some(c) if is_blank(*c) => at += 1,
                None | Some(b'\n') => break,
                Some(_) => {
                    let Some(entry) = entry(text, at, previous, rules)? else {
                        at = word_end(text, at);
                        continue;
                    };
                    if previous.is_none() {
                        least = least.min(entry.index);
                    }
                    previous = Some(entry.index);
                    indices.push(I::new(entry.index - rules.base).ok_or(Stop::Wide)?);
                    values.push(entry.value);
                    at = entry.end;
                }
            }
        }
        if let Some(last) = previous
            && largest.is_none_or(|(index, _)| last > index)
        {
            largest = Some((last, start));
        }
        ends.push(values.len());
    }
    let largest = largest.map(|(index, at)| (index, 1 + memchr::memchr_iter(b'\n', &text[..at]).count()));
    Ok(Part { labels, ends, indices: I::all(indices), values, least, largest })
}

struct Entry {
    index: u64,
    value: f64,
    end: usize,
}

/// The entry at `at`; `None` if it names a query and is to be skipped.
#[inline(always)]
fn entry(text: &[u8], at: usize, previous: Option<u64>, rules: &Rules) -> Result<Option<Entry>, Stop> {
    let (mut colon, mut index) = (at, 0_u64);
    while let Some(digit) = text.get(colon).map(|c| c.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        index = index.wrapping_mul(10).wrapping_add(u64::from(digit));
        colon += 1;
    }
    // 19 digits never wrap around.
    let is_index = text.get(colon) == Some(&b':') && (1..=19).contains(&(colon - at));
    if !is_index || index < rules.least || index > rules.largest || previous.is_some_and(|previous| index <= previous) {
        return unusual(text, at, previous, rules);
    }
    let start = colon + 1;
    match number::leading(&text[start..]) {
        Some((value, length)) if value.is_finite() && text.get(start + length).is_none_or(|c| ends_word(*c)) => {
            Ok(Some(Entry { index, value, end: start + length }))
        }
        _ => {
            let value = &text[start..word_end(text, start)];
            if value.is_empty() {
                return Err(Stop::Wrong(at, Problem::Entry { entry: shown(&text[at..start]) }));
            }
            let problem = Problem::Value { index, value: shown(value), why: number::refusal(value) };
            Err(Stop::Wrong(at, problem))
        }
    }
}

/// What is wrong with the entry at `at`, if it names no query that is to be skipped.
#[cold]
fn unusual(text: &[u8], at: usize, previous: Option<u64>, rules: &Rules) -> Result<Option<Entry>, Stop> {
    let word = &text[at..word_end(text, at)];
    let wrong = |problem| Err(Stop::Wrong(at, problem));
    if word.starts_with(b"qid:") {
        return if rules.ignore_qid { Ok(None) } else { wrong(Problem::Query { entry: shown(word) }) };
    }
    let colon = memchr::memchr(b':', word).unwrap_or(0);
    let written = &word[..colon];
    if written.is_empty() || !written.iter().all(u8::is_ascii_digit) {
        return wrong(Problem::Entry { entry: shown(word) });
    }
    match std::str::from_utf8(written).ok().and_then(|digits| digits.parse::<u64>().ok()) {
        Some(0) if rules.least > 0 => wrong(Problem::Zero),
        Some(index) if index <= rules.largest => match previous.filter(|previous| index <= *previous) {
            Some(after) => wrong(Problem::Order { index, after }),
            // More than 19 digits, with zeros in front.
            None => wrong(Problem::Entry { entry: shown(word) }),
        },
        _ => wrong(Problem::Index { index: shown(written), largest: rules.largest, why: rules.why }),
    }
}

/// Why the first word of a line is no label.
#[cold]
fn no_label(word: &[u8], why: NotNumber) -> Problem {
    let is_list = word.contains(&b',') && word.split(|c| *c == b',').all(|part| number::number(part).is_ok());
    if is_list {
        Problem::MultiLabel { labels: shown(word) }
    } else if word.contains(&b':') {
        Problem::NoLabel { entry: shown(word) }
    } else {
        Problem::LibsvmLabel { label: shown(word), why }
    }
}

/// One table of all parts, with `shift` subtracted from the indices, which are narrow if all are below 2³¹ then.
fn joined(parts: Vec<Part>, columns: usize, shift: u64, is_narrow: bool) -> Result<Table, Failure> {
    let rows = parts.iter().map(|part| part.ends.len()).sum();
    let stored = parts.iter().map(|part| part.values.len()).sum();
    let are_integers = parts.iter().all(|part| matches!(part.labels, NumericLabels::Integers(_)));
    let (mut integers, mut floats) = (Vec::new(), Vec::new());
    if are_integers {
        integers = join::with_room(rows)?;
    } else {
        floats = join::with_room(rows)?;
    }
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    if is_narrow {
        narrow = join::with_room(stored)?;
    } else {
        wide = join::with_room(stored)?;
    }
    let mut indptr: Vec<usize> = join::with_room(rows + 1)?;
    let mut values: Vec<f64> = join::with_room(stored)?;
    indptr.push(0);
    for part in parts {
        let before = values.len();
        indptr.extend(part.ends.iter().map(|end| before + end));
        values.extend_from_slice(&part.values);
        match part.indices {
            ColumnIndices::I32(indices) if is_narrow => narrow.extend(indices.iter().map(|index| index - shift as i32)),
            ColumnIndices::I64(indices) if is_narrow => {
                narrow.extend(indices.iter().map(|index| (index - shift as i64) as i32));
            }
            ColumnIndices::I32(indices) => wide.extend(indices.iter().map(|index| i64::from(*index) - shift as i64)),
            ColumnIndices::I64(indices) => wide.extend(indices.iter().map(|index| index - shift as i64)),
        }
        match part.labels {
            NumericLabels::Integers(labels) if are_integers => integers.extend(labels),
            NumericLabels::Integers(labels) => floats.extend(labels.iter().map(|label| *label as f64)),
            NumericLabels::Floats(labels) => floats.extend(labels),
        }
    }
    let indices = if is_narrow { ColumnIndices::I32(narrow) } else { ColumnIndices::I64(wide) };
    Ok(Table {
        rows: TableRows::Sparse { indptr, indices, values, columns },
        columns: None,
        labels: Some(if are_integers { Labels::Integers(integers) } else { Labels::Floats(floats) }),
        label_name: None,
        weights: None,
        texts: Vec::new(),
        unneeded: Vec::new(),
        format: Format::Libsvm,
    })
}
