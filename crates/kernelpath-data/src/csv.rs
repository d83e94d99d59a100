//! CSV and TSV files: a row in each record.

use crate::blocks::{Block, Blocks, Budget, Cut};
use crate::cells::{BadQuote, Cell, after_blank_lines, cell, is_missing, is_missing_label, record, width};
use crate::error::{Failure, Problem, shown};
use crate::join;
use crate::labels::{self, WrittenLabels};
use crate::layout::{Layout, Role};
use crate::number::{self, NotNumber};
use crate::options::{CsvOptions, Format, Header};
use crate::sniff;
use crate::table::{Table, TableRows};
use crate::texts::{self, Kind, Refused, Written};
use crate::workers::{Crew, wrong_at};

/// Reads a CSV file; `tab` is its delimiter if the format says so.
pub(crate) fn read(mut blocks: Blocks, options: &CsvOptions, tab: Option<u8>, crew: &Crew) -> Result<Table, Failure> {
    let comma = options.decimal_comma;
    let delimiter = options.delimiter.or(tab).unwrap_or_else(|| sniff::delimiter(blocks.start(), comma));
    if comma && delimiter == b',' {
        return Err(Problem::Comma.into());
    }
    if !delimiter.is_ascii() || delimiter.is_ascii_alphanumeric() || b"\"\r\n \0+-.#".contains(&delimiter) {
        return Err(Problem::Delimiter { delimiter: char::from(delimiter) }.into());
    }
    blocks.cut_at(Cut::Records(delimiter));
    // Blocks of nothing but blank lines.
    let mut lines_before = 0;
    let (first, start) = loop {
        let block = blocks.next()?.ok_or(Problem::Empty)?;
        let start = after_blank_lines(block.text(), 0, delimiter);
        if start < block.text().len() {
            break (block, start);
        }
        lines_before += memchr::memchr_iter(b'\n', block.text()).count();
        blocks.recycle(block);
    };
    crew.budget.keep(BYTES_OF_COLUMN * width(first.text(), start, delimiter))?;
    let (layout, start) = head(first.text(), start, delimiter, options)
        .map_err(|(at, problem)| wrong_at(first.text(), at, problem).after(lines_before))?;
    let (first_at, layout) = (first.at, &layout);
    let parts = crew.parse(blocks, lines_before, first, |block, lines| {
        let start = if block.at == first_at { start } else { 0 };
        part(block, start, lines, layout, crew.budget)
    })?;
    let parts: Vec<Part> = parts.into_iter().map(|(_, part)| part).collect();
    if parts.iter().all(|part| part.rows == 0) {
        return Err(Problem::Empty.into());
    }
    let format = if delimiter == b'\t' { Format::Tsv } else { Format::Csv };
    joined(parts, layout, format, crew.threads)
}

/// Bytes that a column takes by itself: its name, and what it is.
const BYTES_OF_COLUMN: usize = 64;

/// What is wrong, and at which byte.
type Wrong = (usize, Problem);

/// The layout of the file whose first record is at `start`, and the place of the first record of data.
fn head(text: &[u8], start: usize, delimiter: u8, options: &CsvOptions) -> Result<(Layout, usize), Wrong> {
    let (first, end) = record(text, start, delimiter, usize::MAX);
    let end = end.map_err(|bad| (start, bad_quote(bad, format!("field {} of the first record", first.len()))))?;
    let has_header = match options.header {
        Header::Yes => true,
        Header::No => false,
        Header::Auto => {
            let second = after_blank_lines(text, end, delimiter);
            let second = (second < text.len()).then(|| record(text, second, delimiter, first.len()).0);
            sniff::has_header(&first, second.as_deref(), options.decimal_comma)
        }
    };
    let columns = first.len();
    let names = if has_header {
        let not_text = |_| (start, Problem::Encoding { column: "the header".into() });
        Some(first.into_iter().map(String::from_utf8).collect::<Result<_, _>>().map_err(not_text)?)
    } else {
        None
    };
    let layout = Layout::new(delimiter, columns, names, options).map_err(|problem| (start, problem))?;
    Ok((layout, if has_header { end } else { start }))
}

fn bad_quote(bad: BadQuote, column: String) -> Problem {
    match bad {
        BadQuote::Inside => Problem::Quote { column },
        BadQuote::Open => Problem::OpenQuote { column },
    }
}

/// What is read from a block.
struct Part {
    rows: usize,
    values: Vec<f64>,
    labels: WrittenLabels,
    weights: Vec<f64>,
    /// The fields of each feature, if it may be one of texts.
    written: Vec<Written>,
}

/// Parses a block from byte `start` on.
fn part(block: &Block, start: usize, lines: usize, layout: &Layout, budget: &Budget) -> Result<Part, Failure> {
    let text = block.text();
    // A field takes two bytes at least, with its delimiter.
    let values = lines.saturating_mul(layout.features).min(text.len() / 2 + 1);
    budget.keep(values * size_of::<f64>())?;
    let values = join::with_room(values)?;
    let may_be_texts = layout.kinds.iter().any(|kind| matches!(kind, Kind::Any));
    let written = (0..if may_be_texts { layout.features } else { 0 }).map(|_| Written::default()).collect();
    let mut part = Part { rows: 0, values, labels: WrittenLabels::new(), weights: Vec::new(), written };
    records(text, start, layout, &mut part).map_err(|(at, problem)| wrong_at(text, at, problem))?;
    let texts: usize = part.written.iter().map(Written::size).sum();
    budget.keep(part.labels.size() + part.weights.capacity() * size_of::<f64>() + texts)?;
    Ok(part)
}

/// Parses records into a part.
fn records(text: &[u8], start: usize, layout: &Layout, part: &mut Part) -> Result<(), Wrong> {
    let delimiter = layout.delimiter;
    let last = layout.roles.len() - 1;
    let is_plain = !layout.decimal_comma && layout.kinds.iter().all(|kind| matches!(kind, Kind::Number));
    let mut scratch = Vec::new();
    let mut at = start;
    loop {
        at = after_blank_lines(text, at, delimiter);
        if at >= text.len() {
            return Ok(());
        }
        let row = at;
        let mut feature = 0;
        for (k, role) in layout.roles.iter().enumerate() {
            let expected = if k == last { b'\n' } else { delimiter };
            if *role == Role::Feature
                && is_plain
                && let Some((value, end)) = plain_number(text, at, expected)
            {
                part.values.push(value);
                at = end + 1;
                continue;
            }
            let Cell { content, end } =
                cell(text, at, delimiter, &mut scratch).map_err(|bad| (at, bad_quote(bad, layout.called(k))))?;
            if text.get(end).is_some_and(|c| *c != expected) {
                let (fields, delimiter) = (width(text, row, delimiter), char::from(delimiter));
                return Err((row, Problem::Fields { fields, expected: last + 1, delimiter }));
            }
            take(content, k, feature, layout, part).map_err(|problem| (at, problem))?;
            feature += usize::from(*role == Role::Feature);
            at = end + 1;
        }
        part.rows += 1;
    }
}

/// The number at `at` and the place of the byte after it, if that is the expected one and the number is finite and
/// not quoted.
#[inline(always)]
fn plain_number(text: &[u8], mut at: usize, expected: u8) -> Option<(f64, usize)> {
    while text.get(at) == Some(&b' ') {
        at += 1;
    }
    let (value, length) = number::leading(&text[at..])?;
    let mut end = at + length;
    if expected == b'\n' && text.get(end) == Some(&b'\r') {
        end += 1;
    }
    (text.get(end) == Some(&expected) && value.is_finite()).then_some((value, end))
}

/// Adds the field of column `k` to a part; `feature` is its number among the features.
fn take(content: &[u8], k: usize, feature: usize, layout: &Layout, part: &mut Part) -> Result<(), Problem> {
    let (column, value) = (|| layout.called(k), || shown(content));
    let refused = |refused: Refused| match refused {
        Refused::Encoding => Problem::Encoding { column: column() },
        Refused::Number(why) => Problem::Number { column: column(), value: value(), why },
    };
    let missing = || {
        let problem = || Problem::Missing { column: column(), value: value() };
        layout.missing_as_nan.then_some(f64::NAN).ok_or_else(problem)
    };
    match layout.roles[k] {
        Role::Ignored => {}
        Role::Feature => {
            // Numbers are nearly all fields, and only they come by the shorter way above.
            let number = match layout.kinds.get(feature) {
                Some(Kind::Text(_)) if is_missing_label(content) => missing()?,
                Some(Kind::Text(list)) => texts::place(content, list).map_err(refused)?,
                Some(Kind::Any) if is_missing_label(content) => {
                    part.written[feature].push(content, Err(NotNumber::Text)).map_err(refused)?;
                    missing()?
                }
                Some(Kind::Any) => part.written[feature].push(content, layout.number(content)).map_err(refused)?,
                _ => match layout.number(content) {
                    Ok(number) => number,
                    Err(_) if is_missing(content) => missing()?,
                    Err(why) => return Err(Problem::Number { column: column(), value: value(), why }),
                },
            };
            part.values.push(number);
        }
        Role::Label if is_missing_label(content) => {
            return Err(Problem::MissingLabel { column: column(), value: value() });
        }
        Role::Label => match std::str::from_utf8(content) {
            Ok(label) if layout.decimal_comma && layout.number(content).is_ok() => {
                part.labels.push(&label.replace(',', "."));
            }
            Ok(label) => part.labels.push(label),
            Err(_) => return Err(Problem::Encoding { column: column() }),
        },
        Role::Weight => match layout.number(content) {
            Ok(weight) if weight >= 0.0 => part.weights.push(weight),
            _ => return Err(Problem::Weight { column: column(), value: value() }),
        },
    }
    Ok(())
}

/// One table of all parts.
fn joined(parts: Vec<Part>, layout: &Layout, format: Format, threads: usize) -> Result<Table, Failure> {
    let rows: usize = parts.iter().map(|part| part.rows).sum();
    let has = |role: Role| layout.roles.contains(&role);
    let mut weights = join::with_room(if has(Role::Weight) { rows } else { 0 })?;
    let (mut values, mut written) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
    let mut fields = Vec::new();
    for part in parts {
        values.push(part.values);
        weights.extend_from_slice(&part.weights);
        written.push(part.labels);
        fields.push(part.written);
    }
    let mut values = join::concatenated(values, threads)?;
    let labels = if has(Role::Label) { Some(labels::joined(&written)?) } else { None };
    let is_any = |kind: &Kind| matches!(kind, Kind::Any);
    let mut texts =
        if layout.kinds.iter().any(is_any) { texts::listed(&fields, &mut values, layout)? } else { Vec::new() };
    let mut columns = layout.names_of(Role::Feature);
    if let Some(places) = layout.places.as_ref().filter(|places| !places.is_sorted()) {
        let mut row = vec![0.0; layout.features];
        for own in values.chunks_exact_mut(layout.features) {
            places.iter().zip(&*own).for_each(|(place, value)| row[*place] = *value);
            own.copy_from_slice(&row);
        }
        columns = columns.map(|names| placed(names, places));
        texts = placed(texts, places);
    }
    Ok(Table {
        rows: TableRows::Dense { values, rows, columns: layout.features },
        columns,
        texts,
        unneeded: layout.unneeded.clone(),
        labels,
        label_name: layout.names_of(Role::Label).and_then(|mut names| names.pop()),
        weights: has(Role::Weight).then_some(weights),
        format,
    })
}

/// The items in the places that they are to have. Without an item for each place, they stay as they are.
fn placed<T>(items: Vec<T>, places: &[usize]) -> Vec<T> {
    if items.len() != places.len() {
        return items;
    }
    let mut items: Vec<(usize, T)> = places.iter().copied().zip(items).collect();
    items.sort_by_key(|(place, _)| *place);
    items.into_iter().map(|(_, item)| item).collect()
}
