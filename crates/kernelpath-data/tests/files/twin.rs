//! The readers once more, line by line and with the parsers of the standard library.

use kernelpath_data::{Labels, Table, TableRows};

/// A row of a LIBSVM file: its label as it is written, and its entries.
pub type SparseRow = (String, Vec<(u64, f64)>);

/// The rows of a LIBSVM file, or the number of the first line that is wrong. Indices are as they are written.
pub fn libsvm(text: &str, counts_from: u64) -> Result<Vec<SparseRow>, usize> {
    let mut rows = Vec::new();
    for (k, line) in text.split('\n').enumerate() {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split(|c: char| c.is_ascii_whitespace() || c == '\x0b').filter(|word| !word.is_empty());
        let Some(label) = words.next() else { continue };
        finite(label).ok_or(k + 1)?;
        let mut entries: Vec<(u64, f64)> = Vec::new();
        for word in words {
            let (index, value) = word.split_once(':').ok_or(k + 1)?;
            let is_written_out = !index.is_empty() && index.bytes().all(|c| c.is_ascii_digit());
            let index =
                index.parse::<u64>().ok().filter(|index| is_written_out && *index >= counts_from).ok_or(k + 1)?;
            if entries.last().is_some_and(|(last, _)| *last >= index) {
                return Err(k + 1);
            }
            entries.push((index, finite(value).ok_or(k + 1)?));
        }
        rows.push((label.to_string(), entries));
    }
    Ok(rows)
}

/// A finite number in decimal digits.
pub fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// What of a sparse table the twin knows, too.
pub fn sparse_rows(table: &Table, counts_from: u64) -> Vec<SparseRow> {
    let rows = table.rows.view().unwrap();
    let kernelpath::Rows::Csr(rows) = rows else { panic!("LIBSVM files are sparse") };
    let labels = table.labels.as_ref().unwrap();
    let entries = |i: usize| rows.row(i).map(|(j, value)| (j as u64 + counts_from, value)).collect();
    (0..rows.nrows()).map(|i| (labels.get(i).to_string(), entries(i))).collect()
}

/// The records of a CSV file by RFC 4180, each with its line; spaces around fields are no part of them, and blank
/// lines no records. The delimiter is a comma.
pub fn records(text: &str) -> Vec<(usize, Vec<String>)> {
    let (mut records, mut fields, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut start, mut is_inside, mut was_quoted) = (1, 1, false, false);
    let mut letters = text.chars().chain((!text.ends_with('\n')).then_some('\n')).peekable();
    while let Some(c) = letters.next() {
        line += usize::from(c == '\n');
        match c {
            '"' if is_inside && letters.peek() == Some(&'"') => field.push(letters.next().unwrap()),
            '"' => (is_inside, was_quoted) = (!is_inside, true),
            ',' | '\n' if !is_inside => {
                let content = std::mem::take(&mut field);
                fields.push(if was_quoted { content } else { content.trim().to_string() });
                was_quoted = false;
                if c == '\n' {
                    let record: Vec<String> = std::mem::take(&mut fields);
                    if record != [""] {
                        records.push((start, record));
                    }
                    start = line;
                }
            }
            // Around the quotes of a field.
            ' ' | '\t' | '\r' if !is_inside && (was_quoted || field.is_empty()) => {}
            c => field.push(c),
        }
    }
    records
}

/// Tables that agree to the last bit.
pub fn assert_same(a: &Table, b: &Table, what: &str) {
    match (&a.rows, &b.rows) {
        (
            TableRows::Sparse { indptr, indices, values, columns },
            TableRows::Sparse { indptr: p, indices: i, values: v, columns: c },
        ) => assert!(indptr == p && indices == i && bits(values) == bits(v) && columns == c, "{what}"),
        (TableRows::Dense { values, rows, columns }, TableRows::Dense { values: v, rows: r, columns: c }) => {
            assert!(bits(values) == bits(v) && rows == r && columns == c, "{what}");
        }
        _ => panic!("{what}: one is sparse, one dense"),
    }
    match (&a.labels, &b.labels) {
        (Some(Labels::Floats(a)), Some(Labels::Floats(b))) => assert_eq!(bits(a), bits(b), "{what}"),
        (a, b) => assert_eq!(a, b, "{what}"),
    }
    assert_eq!((&a.columns, &a.label_name, a.format), (&b.columns, &b.label_name, b.format), "{what}");
    assert_eq!(a.weights.as_deref().map(bits), b.weights.as_deref().map(bits), "{what}");
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Numbers as files have them, some of them hard to round.
pub fn number(random: &mut fastrand::Rng) -> String {
    match random.u8(..9) {
        0 => format!("{}", random.i32(-20..20)),
        1 => format!("{:.*}", random.usize(..4), random.f64() * 10.0 - 5.0),
        2 => format!("{}", f64::from_bits(random.u64(..) >> 2)),
        3 => format!("{:e}", f64::from_bits(random.u64(..) >> 2)),
        4 => format!("{}.{}e{}", random.u64(..), random.u64(..), random.i32(-300..250)),
        5 => format!("+{}.", random.u32(..)),
        6 => format!("-.{}", random.u32(..)),
        7 => format!("{:0>30}", random.u16(..)),
        _ => format!("{}E-{}", random.u64(..), random.u32(..400)),
    }
}
