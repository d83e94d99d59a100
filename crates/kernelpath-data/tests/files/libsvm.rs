//! LIBSVM files, against a twin that reads line by line.

use std::fmt::Write;

use crate::twin;
use kernelpath_data::{
    Base, ColumnIndices, Control, Error, Format, LabelRef, Labels, LibsvmOptions, Options, Problem, Source, Table,
    TableRows, read, write_libsvm,
};

fn options(libsvm: LibsvmOptions, threads: usize) -> Options {
    Options { format: Format::Libsvm, threads, libsvm, ..Options::default() }
}

fn table(text: &[u8], libsvm: LibsvmOptions) -> Result<Table, Error> {
    read(Source::Bytes(text), &options(libsvm, 1), &Control::default())
}

fn plain(text: &str) -> Result<Table, Error> {
    table(text.as_bytes(), LibsvmOptions::default())
}

/// The message, without the name of the file.
fn refused(text: &str, libsvm: LibsvmOptions) -> String {
    let error = table(text.as_bytes(), libsvm).unwrap_err().to_string();
    error.strip_prefix("<bytes>:").unwrap_or_else(|| panic!("{error}")).to_string()
}

#[test]
fn random_files_are_read_as_the_twin_reads_them() {
    let mut random = fastrand::Rng::with_seed(24);
    let (mut read_whole, mut wrong) = (0, 0);
    for round in 0..4000 {
        let mut text = String::new();
        let is_clean = random.bool();
        for _ in 0..random.usize(1..8) {
            let mut index = 0;
            if random.u8(..8) == 0 {
                text.push_str(["", "  ", "# 1:2 note", "\t\r"][random.usize(..4)]);
            } else {
                text.push_str(&twin::number(&mut random));
                for _ in 0..random.usize(..5) {
                    index += random.u64(1..4) * [1, 1000, 1 << 31, 1 << 45][random.usize(..4).min(random.usize(..4))];
                    text.push_str([" ", "  ", "\t"][random.usize(..3)]);
                    write!(text, "{index}:{}", twin::number(&mut random)).unwrap();
                }
            }
            text.push_str(["", " ", "#c", " # c:d"][random.usize(..4)]);
            text.push_str(["\n", "\r\n", "\n\n"][random.usize(..3)]);
        }
        if random.bool() {
            text.truncate(text.trim_end().len());
        }
        if !is_clean {
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..=text.len());
                text.insert(at, b":.-+e1 0#\nq,xni"[random.usize(..15)] as char);
            }
        }
        let (ours, twins) = (plain(&text), twin::libsvm(&text, 1));
        match (&ours, &twins) {
            (Ok(table), Ok(rows)) => {
                let found = twin::sparse_rows(table, 1);
                assert_eq!(found.len(), rows.len(), "{round}: {text:?}");
                for ((label, entries), (written, expected)) in found.iter().zip(rows) {
                    let (label, written) = (label.parse::<f64>().unwrap(), written.parse::<f64>().unwrap());
                    assert!(label == written, "{round}: {label} {written} in {text:?}");
                    let bits =
                        |entries: &[(u64, f64)]| -> Vec<_> { entries.iter().map(|e| (e.0, e.1.to_bits())).collect() };
                    assert_eq!(bits(entries), bits(expected), "{round}: {text:?}");
                }
                read_whole += 1;
            }
            (Err(Error::Line { line, .. }), Err(expected)) => {
                assert_eq!(line, expected, "{round}: {text:?}");
                wrong += 1;
            }
            (Err(Error::File { problem: Problem::Empty, .. }), Ok(rows)) => {
                assert!(rows.is_empty(), "{round}: {text:?}");
            }
            _ => panic!("{round}: {ours:?}\n{twins:?}\n{text:?}"),
        }
    }
    assert!(read_whole > 1500 && wrong > 500, "{read_whole} were read, {wrong} refused");
}

#[test]
fn results_depend_on_neither_threads_nor_blocks() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut text = String::new();
    while text.len() < 5 << 20 {
        text.push_str(&twin::number(&mut random));
        let mut index = 0;
        for _ in 0..random.usize(..30) {
            index += random.u64(1..40);
            write!(text, " {index}:{}", twin::number(&mut random)).unwrap();
        }
        text.push('\n');
    }
    // A line that is longer than two blocks.
    let long = (1..400_000).map(|index| format!(" {index}:1")).collect::<Vec<_>>().concat();
    write!(text, "1{long}\n-1 3:4").unwrap();
    let one = table(text.as_bytes(), LibsvmOptions::default()).unwrap();
    for threads in [2, 5] {
        let several =
            read(Source::Bytes(text.as_bytes()), &options(LibsvmOptions::default(), threads), &Control::default());
        twin::assert_same(&one, &several.unwrap(), "threads");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &text).unwrap();
    let from_file = read(file.path(), &options(LibsvmOptions::default(), 2), &Control::default()).unwrap();
    twin::assert_same(&one, &from_file, "a file");
    assert_eq!(twin::sparse_rows(&one, 1).len(), twin::libsvm(&text, 1).unwrap().len());

    // The first of several errors counts, whichever block is parsed first.
    let mut lines: Vec<&str> = text.lines().collect();
    let first = lines.len() / 2;
    for at in [first, lines.len() - 2, lines.len() - 1] {
        lines[at] = "1 3:1 2:1";
    }
    let wrong = lines.join("\n");
    for threads in [1, 2, 5] {
        let error =
            read(Source::Bytes(wrong.as_bytes()), &options(LibsvmOptions::default(), threads), &Control::default());
        let expected = format!("<bytes>:{}: index 2 does not rise after 3", first + 1);
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
}

#[test]
fn labels_keep_their_type() {
    assert_eq!(plain("+1 1:1\n-1\n007").unwrap().labels, Some(Labels::Integers(vec![1, -1, 7])));
    assert_eq!(plain("1\n2.0\n-1e1").unwrap().labels, Some(Labels::Floats(vec![1.0, 2.0, -10.0])));
    assert_eq!(plain("9223372036854775807").unwrap().labels, Some(Labels::Integers(vec![i64::MAX])));
    assert_eq!(plain("9223372036854775808").unwrap().labels, Some(Labels::Floats(vec![9_223_372_036_854_775_808.0])));
    assert_eq!(plain("\u{feff}3 1:1\r\n").unwrap().labels.unwrap().get(0), LabelRef::Integer(3));
}

#[test]
fn columns_are_counted_from_one_from_zero_or_as_the_file_does() {
    let with = |base, columns| LibsvmOptions { base, columns, ..LibsvmOptions::default() };
    let shape = |text: &str, base, columns| {
        let table = table(text.as_bytes(), with(base, columns)).unwrap();
        (table.rows.ncols(), twin::sparse_rows(&table, 0).into_iter().map(|row| row.1).collect::<Vec<_>>())
    };
    assert_eq!(shape("1 1:5 3:6", Base::One, None), (3, vec![vec![(0, 5.0), (2, 6.0)]]));
    assert_eq!(shape("1 1:5 3:6", Base::Zero, None), (4, vec![vec![(1, 5.0), (3, 6.0)]]));
    assert_eq!(shape("1 1:5 3:6", Base::Auto, None), (3, vec![vec![(0, 5.0), (2, 6.0)]]));
    assert_eq!(shape("1 0:5 3:6", Base::Auto, None), (4, vec![vec![(0, 5.0), (3, 6.0)]]));
    assert_eq!(shape("1 1:5\n2 0:1", Base::Auto, None), (2, vec![vec![(1, 5.0)], vec![(0, 1.0)]]));
    assert_eq!(shape("1 1:5", Base::One, Some(7)), (7, vec![vec![(0, 5.0)]]));
    assert_eq!(shape("1", Base::One, None), (0, vec![vec![]]));
    assert_eq!(shape("1", Base::Auto, Some(0)), (0, vec![vec![]]));

    for (base, columns, text, expected) in [
        (
            Base::One,
            Some(2),
            "1\n1 1:1 3:1",
            "2: index 3 is too large: the largest is 2 with the number of columns that was asked for",
        ),
        (
            Base::Zero,
            Some(2),
            "1 2:1",
            "1: index 2 is too large: the largest is 1 with the number of columns that was asked for",
        ),
        (Base::Auto, Some(2), "1 1:1\n1 2:1\n1 0:1", "2: index 2 is too large: the largest is 1 with"),
        (Base::Auto, Some(2), "1 3:1", "1: index 3 is too large: the largest is 2 with"),
        (Base::Zero, Some(0), "1 0:1", "1: index 0 is too large: the largest is 0 with"),
        (Base::Auto, Some(0), "1\n2 0:1", "2: index 0 is too large: the largest is 0 with"),
        (Base::One, Some(0), "1 1:1", "1: index 1 is too large: the largest is 0 with"),
        (Base::One, None, "1 0:1", "1: index 0, but indices count from 1"),
        (
            Base::One,
            None,
            "1 9223372036854775807:1",
            "1: index 9223372036854775807 is too large: the largest is 9223372036854775806",
        ),
        (Base::One, None, "1 36893488147419103232:1", "1: index 36893488147419103232 is too large"),
    ] {
        let error = refused(text, with(base, columns));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn indices_are_narrow_where_they_fit() {
    const EDGE: usize = 1 << 31;
    let width = |text: &str, base| match table(text.as_bytes(), LibsvmOptions { base, ..Default::default() })
        .unwrap()
        .rows
    {
        TableRows::Sparse { indices: ColumnIndices::I32(indices), columns, .. } => (32, i64::from(indices[0]), columns),
        TableRows::Sparse { indices: ColumnIndices::I64(indices), columns, .. } => (64, indices[0], columns),
        TableRows::Dense { .. } => panic!("dense"),
    };
    for base in [Base::One, Base::Auto] {
        assert_eq!(width("1 2147483648:1", base), (32, i64::from(i32::MAX), EDGE), "{base:?}");
        assert_eq!(width("1 2147483649:1", base), (64, EDGE as i64, EDGE + 1), "{base:?}");
    }
    assert_eq!(width("1 2147483647:1", Base::Zero), (32, i64::from(i32::MAX), EDGE));
    assert_eq!(width("1 2147483648:1", Base::Zero), (64, EDGE as i64, EDGE + 1));
    let largest = i64::MAX - 2;
    assert_eq!(width("1 9223372036854775806:1", Base::One), (64, largest, i64::MAX as usize - 1));
}

#[test]
fn errors_say_which_line_and_what_to_do() {
    for (text, expected) in [
        ("1 1:1\n\n# c\r\n1 21:3 17:4\n", "4: index 17 does not rise after 21"),
        ("1 1:1 1:2", "1: index 1 does not rise after 1"),
        ("1 1:", "1: 1: is no entry: index:value is needed"),
        ("1 :1", "1: :1 is no entry"),
        ("1 1 :1", "1: 1 is no entry"),
        ("1 1:2:3", "1: the value of index 1 is 2:3, no number"),
        ("1 -1:2", "1: -1:2 is no entry"),
        ("1 +1:2", "1: +1:2 is no entry"),
        ("1 1e2:2", "1: 1e2:2 is no entry"),
        ("1 1:0x10", "1: the value of index 1 is 0x10, no number"),
        ("1 1:1_000", "1: the value of index 1 is 1_000, no number"),
        ("1 1:NaN", "1: the value of index 1 is NaN, not finite"),
        ("1 1:-Inf", "1: the value of index 1 is -Inf, not finite"),
        ("1 1:infinity", "1: the value of index 1 is infinity, not finite"),
        ("1 1:1e309", "1: the value of index 1 is 1e309, too large for double precision"),
        ("1 1:1,5", "1: the value of index 1 is 1,5, no number (write decimals with a point)"),
        ("nan 1:1", "1: the label nan is not finite"),
        ("cat 1:1", "1: the label cat is no number: LIBSVM files have one number first in each line"),
        ("1,2 1:1", "1: the row has several labels (1,2), and one is needed"),
        ("1\n1:1 2:1", "2: the line starts with the entry 1:1, but its label must come first"),
        ("1 qid:7 1:1", "1: qid:7 names the query of a ranking"),
        ("1 1:1\n\u{1}\u{2}", "2: the label \\u{1}\\u{2} is no number"),
    ] {
        let error = refused(text, LibsvmOptions::default());
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
    let skipped = LibsvmOptions { ignore_qid: true, ..LibsvmOptions::default() };
    let table = table(b"1 qid:7 1:1\n2 qid:x\n", skipped).unwrap();
    assert_eq!(twin::sparse_rows(&table, 1), [("1".into(), vec![(1, 1.0)]), ("2".into(), vec![])]);
    for text in ["", "\n\n", "# only\n", "\u{feff}", " "] {
        assert_eq!(plain(text).unwrap_err().to_string(), "<bytes>: the file has no rows", "{text:?}");
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..300 {
        let mut text = String::new();
        for _ in 0..random.usize(1..6) {
            text.push_str(&twin::number(&mut random));
            for index in 1..random.u32(1..8) {
                write!(text, " {index}:{}", twin::number(&mut random)).unwrap();
            }
            text.push('\n');
        }
        let columns = Some(9);
        let (Ok(first), mut written) =
            (table(text.as_bytes(), LibsvmOptions { columns, ..Default::default() }), Vec::new())
        else {
            continue;
        };
        write_libsvm(&first.rows.view().unwrap(), first.labels.as_ref().unwrap(), &mut written).unwrap();
        let again = table(&written, LibsvmOptions { columns, ..Default::default() }).unwrap();
        let entries = |table: &Table| -> Vec<Vec<(u64, u64)>> {
            let rows = twin::sparse_rows(table, 1).into_iter();
            rows.map(|(_, row)| row.iter().filter(|e| e.1 != 0.0).map(|e| (e.0, e.1.to_bits())).collect()).collect()
        };
        assert_eq!(entries(&first), entries(&again), "{text}");
        assert_eq!(first.labels.unwrap().to_floats(), again.labels.unwrap().to_floats(), "{text}");
    }
}
