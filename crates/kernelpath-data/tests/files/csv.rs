//! CSV and TSV files, against a twin that reads record by record.

use std::fmt::Write;

use crate::twin;
use kernelpath_data::{
    Column, Control, CsvOptions, Error, Format, Header, LabelRef, Labels, Options, Source, Table, TableRows, Texts,
    Wanted, read,
};

fn options(csv: CsvOptions, threads: usize) -> Options {
    Options { format: Format::Csv, threads, csv, ..Options::default() }
}

fn table(text: &str, csv: CsvOptions) -> Result<Table, Error> {
    read(Source::Bytes(text.as_bytes()), &options(csv, 1), &Control::default())
}

fn plain(text: &str) -> Table {
    table(text, CsvOptions::default()).unwrap()
}

fn labelled(place: i64) -> CsvOptions {
    CsvOptions { label: Some(Column::Place(place)), ..CsvOptions::default() }
}

fn values(table: &Table) -> &[f64] {
    let TableRows::Dense { values, .. } = &table.rows else { panic!("CSV files are dense") };
    values
}

/// A field, written in one of the ways that mean the same.
fn written(content: &str, random: &mut fastrand::Rng) -> String {
    let needs_quotes = content.contains(['"', ',', '\n', '\r']) || content.trim() != content;
    if needs_quotes || random.u8(..4) == 0 {
        let (before, after) = (["", " "][random.usize(..2)], ["", " ", "\t"][random.usize(..3)]);
        format!("{before}\"{}\"{after}", content.replace('"', "\"\""))
    } else {
        format!("{}{content}{}", ["", " "][random.usize(..2)], ["", "  "][random.usize(..2)])
    }
}

#[test]
fn random_files_are_read_as_the_twin_reads_them() {
    let mut random = fastrand::Rng::with_seed(24);
    let labels = ["a", "say \"hi\"", "1,5", "two\nlines", " padded ", "é", "x\r\ny", "\"", "b c"];
    for round in 0..3000 {
        let (rows, columns) = (random.usize(1..9), random.usize(1..6));
        let mut text = String::new();
        for _ in 0..rows {
            for _ in 0..columns {
                text.push_str(&written(&twin::number(&mut random), &mut random));
                text.push(',');
            }
            text.push_str(&written(labels[random.usize(..labels.len())], &mut random));
            text.push_str(["\n", "\r\n", "\n\n", "\n \r\n"][random.usize(..4)]);
        }
        if random.bool() {
            text.pop();
        }
        let csv = CsvOptions { header: Header::No, delimiter: Some(b','), ..labelled(-1) };
        let found = table(&text, csv).unwrap_or_else(|error| panic!("{round}: {error} in {text:?}"));
        let expected = twin::records(&text);
        assert_eq!(found.rows.nrows(), expected.len(), "{round}: {text:?}");
        for (i, (_, record)) in expected.iter().enumerate() {
            let (label, numbers) = record.split_last().unwrap();
            assert_eq!(found.labels.as_ref().unwrap().get(i), LabelRef::Text(label), "{round}: {text:?}");
            let bits = |x: f64| x.to_bits();
            let numbers: Vec<u64> = numbers.iter().map(|field| bits(field.parse().unwrap())).collect();
            let ours: Vec<u64> = values(&found)[i * columns..(i + 1) * columns].iter().map(|x| bits(*x)).collect();
            assert_eq!(ours, numbers, "{round}: row {i} of {text:?}");
        }
    }
}

#[test]
fn no_random_text_makes_a_panic_and_errors_name_a_line_of_it() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut read_whole = 0;
    for _ in 0..30_000 {
        let text: String =
            (0..random.usize(..40)).map(|_| b"12.e-,;\t\"\"\n\r a"[random.usize(..14)] as char).collect();
        let csv = CsvOptions {
            header: [Header::Auto, Header::Yes, Header::No][random.usize(..3)],
            label: [None, Some(Column::Place(-1)), Some(Column::Name("a".into()))][random.usize(..3)].clone(),
            features: [None, Some(1)][random.usize(..2)],
            ..CsvOptions::default()
        };
        match table(&text, csv) {
            Ok(table) => {
                assert_eq!(values(&table).len(), table.rows.nrows() * table.rows.ncols());
                assert!(table.rows.nrows() > 0 && table.labels.is_none_or(|l| l.len() == table.rows.nrows()));
                read_whole += 1;
            }
            Err(Error::Line { line, .. }) => assert!((1..=text.lines().count()).contains(&line), "{line} of {text:?}"),
            Err(Error::File { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(read_whole > 100, "{read_whole}");
}

#[test]
fn results_depend_on_neither_threads_nor_blocks() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut text = String::from("a,b,kind,w\n");
    while text.len() < 4 << 20 {
        let kind = ["x", "\"two\nlines\"", "\"a \"\"quote\"\", and a comma\"", "z"][random.usize(..4)];
        let (a, b) = (twin::number(&mut random), twin::number(&mut random));
        writeln!(text, "{a},{b},{kind},{}", random.u8(..)).unwrap();
    }
    // A quoted field that is longer than two blocks, with line feeds in it.
    let long = "line\n".repeat(500_000);
    write!(text, "1,2,\"{long}\",3\n4,5,last,6").unwrap();
    let csv = CsvOptions {
        label: Some(Column::Name("kind".into())),
        weight: Some(Column::Name("w".into())),
        ..CsvOptions::default()
    };
    let one = table(&text, csv.clone()).unwrap();
    assert_eq!(one.rows.nrows(), twin::records(&text).len() - 1);
    assert_eq!(one.labels.as_ref().unwrap().get(one.rows.nrows() - 2), LabelRef::Text(&long));
    for threads in [2, 5] {
        let several = read(Source::Bytes(text.as_bytes()), &options(csv.clone(), threads), &Control::default());
        twin::assert_same(&one, &several.unwrap(), "threads");
    }
    let wrong = format!("{text}\n1,x,2,3\n1,2,3\n");
    let line = text.bytes().filter(|c| *c == b'\n').count() + 2;
    for threads in [1, 2, 5] {
        let error = read(Source::Bytes(wrong.as_bytes()), &options(csv.clone(), threads), &Control::default());
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(&format!("<bytes>:{line}: column \"b\": x is no number")), "{error}");
    }
}

#[test]
fn headers_delimiters_and_roles_are_found() {
    let found = plain("width,length\n1,2\n3,4\n");
    assert_eq!(
        (values(&found), found.columns.clone().unwrap()),
        (&[1.0, 2.0, 3.0, 4.0][..], vec!["width".into(), "length".into()])
    );
    assert_eq!(values(&plain("\u{feff}1,2\r\n3,4\r\n")), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(plain("\u{feff}\"a\",b\n1,2").columns.unwrap(), ["a", "b"]);
    assert_eq!(values(&plain("1;2\n3;4")), [1.0, 2.0, 3.0, 4.0]);
    let tabs = plain("x\ty\n1\t2\n");
    assert_eq!((values(&tabs), tabs.format), (&[1.0, 2.0][..], Format::Tsv));
    assert_eq!(values(&plain("\n\n 1 , 2\n\n")), [1.0, 2.0]);
    assert_eq!(
        values(&table("1,2\n3,4", CsvOptions { header: Header::Yes, ..CsvOptions::default() }).unwrap()),
        [3.0, 4.0]
    );

    let text = "id,kind,x,y,w\nr1,cat,1,2,0.5\nr2,dog,3,4,2\n";
    let csv = CsvOptions {
        label: Some(Column::Name("kind".into())),
        weight: Some(Column::Place(-1)),
        ignore: vec![Column::Name("0".into())],
        ..CsvOptions::default()
    };
    let found = table(text, csv).unwrap();
    assert_eq!(values(&found), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(
        (found.columns.clone().unwrap(), found.label_name.clone().unwrap()),
        (vec!["x".into(), "y".into()], "kind".into())
    );
    assert_eq!(found.weights.clone().unwrap(), [0.5, 2.0]);
    let labels: Vec<String> = (0..2).map(|i| found.labels.as_ref().unwrap().get(i).to_string()).collect();
    assert_eq!(labels, ["cat", "dog"]);

    // A model of two features predicts a file with labels, and one without.
    for (text, has_labels) in [("1,2,9\n3,4,8\n", true), ("1,2\n3,4\n", false)] {
        let csv = CsvOptions { features: Some(2), ..labelled(-1) };
        let found = table(text, csv).unwrap();
        assert_eq!((values(&found), found.labels.is_some()), (&[1.0, 2.0, 3.0, 4.0][..], has_labels));
    }
}

#[test]
fn labels_keep_their_type() {
    let labels = |column: &[&str]| {
        let text = column.iter().map(|label| format!("1,{label}\n")).collect::<Vec<_>>().concat();
        table(&text, CsvOptions { header: Header::No, ..labelled(-1) }).unwrap().labels.unwrap()
    };
    assert_eq!(labels(&["1", "-1", "+2"]), Labels::Integers(vec![1, -1, 2]));
    assert_eq!(labels(&["1", "2.5"]), Labels::Floats(vec![1.0, 2.5]));
    assert_eq!(labels(&["true", "False", "TRUE"]), Labels::Booleans(vec![true, false, true]));
    assert_eq!(labels(&["1", "b"]), Labels::Strings(vec!["1".into(), "b".into()]));
    assert_eq!(labels(&["true", "1"]), Labels::Strings(vec!["true".into(), "1".into()]));
    assert_eq!(labels(&["\"1\"", "2"]), Labels::Integers(vec![1, 2]));
    assert_eq!(labels(&["99999999999999999999", "1"]), Labels::Floats(vec![1e20, 1.0]));
}

#[test]
fn errors_say_which_line_and_column() {
    let long = format!("{},b\nx,2\n", "a".repeat(10_000));
    for (text, label, expected) in [
        ("a,b\n1,2\n\n3\n", None, ":4: 1 fields where 2 are expected, as in the first record"),
        ("a,b\n1,2\n3,4,5\n", None, ":3: 3 fields where 2 are expected"),
        ("a,b\n1,\"x\ny\"\n", None, ":2: column \"b\": x\\ny is no number"),
        ("1,2\n3,4x\n", None, ":2: column 1 (counted from 0): 4x is no number"),
        ("a,b\n\"1\n\",2\nx,1\n", None, ":2: column \"a\": 1\\n is no number"),
        ("a,b\n1,2,5\n", None, ":2: 3 fields"),
        ("a;b\n1,5;2\n", None, ":2: column \"a\": 1,5 is no number (write decimals with a point)"),
        ("a,b\n1,\n", None, ":2: column \"b\": the value is missing (\"\")"),
        ("a,b\n1,NA\n", None, ":2: column \"b\": the value is missing (\"NA\")"),
        ("a,b\n1,?\n", None, ":2: column \"b\": the value is missing (\"?\")"),
        ("a,b\n1,nan\n", None, ":2: column \"b\": the value is missing (\"nan\")"),
        ("a,b\n1,-inf\n", None, ":2: column \"b\": -inf is not finite"),
        ("a,b\n1,1e999\n", None, ":2: column \"b\": 1e999 is too large for double precision"),
        ("a,b\n1,2\"\n", None, ":2: column \"b\": a quote inside a field"),
        ("a,b\n1,\"2\"3\n", None, ":2: column \"b\": a quote inside a field"),
        ("a,b\n1,\"2\n3,4\n", None, ":2: column \"b\": the quote is never closed"),
        ("a,\"b\n1,2\n", None, ":1: field 1 of the first record: the quote is never closed"),
        ("a,b\n1,\n", Some(-1), ":2: column \"b\": the label is missing (\"\")"),
        (
            "a,b\n1,2\n",
            Some(2),
            ":1: there is no column 2: there are 2, counted from 0, and -1 is the last; their names are \"a\", \"b\"",
        ),
        ("a,b\n1,2\n", Some(-3), ":1: there is no column -3"),
        ("a\nx\n", Some(0), ":1: no column is left for the features: 1 in all, with the delimiter ','"),
        (&long, None, &format!(":2: column \"{}…\": x is no number", "a".repeat(40))),
        ("", None, ": the file has no rows"),
        ("\n \n", None, ": the file has no rows"),
        ("a,b\n", None, ": the file has no rows"),
    ] {
        let csv = label.map_or_else(CsvOptions::default, labelled);
        let error = table(text, csv).unwrap_err().to_string();
        assert!(error.starts_with(&format!("<bytes>{expected}")), "{text:?}: {error}");
    }
    let weighted = CsvOptions { weight: Some(Column::Place(1)), ..CsvOptions::default() };
    for weight in ["-1", "nan", "inf", "x", ""] {
        let error = table(&format!("a,w\n1,1\n1,{weight}\n"), weighted.clone()).unwrap_err().to_string();
        assert!(error.starts_with("<bytes>:3: column \"w\": the weight"), "{error}");
    }
    let latin1 = read(Source::Bytes(b"a,b\n1,caf\xe9\n"), &options(labelled(-1), 1), &Control::default());
    assert_eq!(
        latin1.unwrap_err().to_string(),
        "<bytes>:2: column \"b\": the text is not UTF-8: save the file in that encoding"
    );
}

fn wanted(features: &[&str], label: Option<&str>) -> CsvOptions {
    let wanted = Wanted { features: features.iter().map(|&name| name.into()).collect(), label: label.map(Into::into) };
    // As a model asks: the last column is the label, unless there are as many columns as it has features.
    CsvOptions {
        wanted: Some(wanted),
        features: Some(features.len()),
        label: Some("last".into()),
        ..CsvOptions::default()
    }
}

fn texts(of: &[&str]) -> Vec<String> {
    of.iter().map(|&text| text.into()).collect()
}

#[test]
fn wanted_columns_are_found_by_their_names() {
    let text = "id,b,kind,a,note\nx1,2,u,1,w\nx2,4,v,3,w\n";
    let found = table(text, wanted(&["a", "b"], Some("kind"))).unwrap();
    assert_eq!(values(&found), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(found.columns, Some(texts(&["a", "b"])));
    assert_eq!((found.label_name.as_deref(), &found.unneeded), (Some("kind"), &vec!["id".to_string(), "note".into()]));
    assert_eq!(found.labels.unwrap().get(1), LabelRef::Text("v"));
    // Without the label of the training there is none, and where its name is not known it is the last column.
    assert_eq!(table(text, wanted(&["a", "b"], Some("class"))).unwrap().labels, None);
    assert_eq!(table(text, wanted(&["a", "b"], None)).unwrap().label_name.as_deref(), Some("note"));
    assert_eq!(table("b,a\n2,1\n", wanted(&["a", "b"], None)).unwrap().labels, None);
    let named = CsvOptions { label: Some("id".into()), features: None, ..wanted(&["a", "b"], Some("kind")) };
    assert_eq!(table(text, named).unwrap().label_name.as_deref(), Some("id"));
    for (features, message) in [
        (&["a", "c", "d"][..], "the file has no column \"c\", \"d\", which the model needs: there are 5"),
        (&["a", "kind"][..], "kind"),
    ] {
        let error = table(text, wanted(features, Some("note"))).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let error = table("a,a,b\n1,2,3\n", wanted(&["a", "b"], None)).unwrap_err().to_string();
    assert!(error.contains("\"a\" twice"), "{error}");
    // A file without names has the columns in the order of the model.
    let found = table("1,2,u\n3,4,v\n", wanted(&["a", "b"], Some("kind"))).unwrap();
    assert_eq!((values(&found), found.columns.clone()), (&[1.0, 2.0, 3.0, 4.0][..], None));
}

#[test]
fn a_quoted_name_is_no_place() {
    let text = "last,1,0\n5,6,7\n";
    let of = |column: Column| CsvOptions { label: Some(column), header: Header::Yes, ..CsvOptions::default() };
    for (column, label) in [(Column::Exactly("last".into()), 5), (Column::Exactly("0".into()), 7), ("2".into(), 7)] {
        assert_eq!(table(text, of(column)).unwrap().labels.unwrap().get(0), LabelRef::Integer(label));
    }
    assert!(table(text, of(Column::Exactly("2".into()))).unwrap_err().to_string().contains("no column \"2\""));
}

#[test]
fn decimals_have_a_comma_if_one_says_so() {
    let comma = CsvOptions { decimal_comma: true, weight: Some("w".into()), ..labelled(-1) };
    let found = table("a;w;y\n1,5;0,5;-2,25\n3;1;4\n", comma.clone()).unwrap();
    assert_eq!(values(&found), [1.5, 3.0]);
    assert_eq!(found.labels.unwrap().to_floats().unwrap(), [-2.25, 4.0]);
    assert_eq!(found.weights.unwrap(), [0.5, 1.0]);
    let error = table("a;w;y\n1.500;1;2\n", comma.clone()).unwrap_err().to_string();
    assert!(error.contains("1.500 is no number (decimals have a comma here"), "{error}");
    let error = table("a,w,y\n1,1,2\n", CsvOptions { delimiter: Some(b','), ..comma }).unwrap_err().to_string();
    assert!(error.contains("cannot be both"), "{error}");
}

#[test]
fn missing_values_are_nan_if_one_says_so() {
    let csv = CsvOptions { missing_as_nan: true, ..labelled(-1) };
    let found = table("a,b,y\n1,NA,u\n,-,v\n", csv).unwrap();
    let nan: Vec<bool> = values(&found).iter().map(|value| value.is_nan()).collect();
    assert_eq!(nan, [false, true, true, true]);
}

#[test]
fn texts_have_the_numbers_of_a_list() {
    // Which columns are texts is only seen from the last rows, some blocks later.
    let mut text = String::from("a,b,c,y\n");
    for i in 0..60_000 {
        writeln!(text, "{i},{},{},1", ["2", "none"][i % 2], 7.5).unwrap();
    }
    text.push_str("-1,red,8,1\n");
    let csv = CsvOptions { texts: Texts::Found, ..labelled(-1) };
    for threads in [1, 3] {
        let found = read(Source::Bytes(text.as_bytes()), &options(csv.clone(), threads), &Control::default()).unwrap();
        assert_eq!(found.texts, [None, Some(texts(&["2", "none", "red"])), None]);
        let values = values(&found);
        assert_eq!(values[..6], [0.0, 0.0, 7.5, 1.0, 1.0, 7.5]);
        assert_eq!(values[180_000..], [-1.0, 2.0, 8.0]);
    }
    // Missing values, and what was meant as a number.
    let nan = CsvOptions { missing_as_nan: true, ..csv.clone() };
    let found = table("a,b,y\nu,1,0\n,-,0\nv,2,0\n", nan).unwrap();
    assert_eq!(found.texts, [Some(texts(&["u", "v"])), None]);
    assert!(values(&found)[2].is_nan() && values(&found)[3].is_nan() && values(&found)[4] == 1.0);
    for (text, message) in [
        ("a,b,y\nu,1,0\n,2,0\n", "column \"a\": the value is missing"),
        ("a,b,y\nu,1,0\nv,-,0\n", "column \"b\": the value is missing (\"-\")"),
        ("a;b;y\nu;1;0\nv;1,5;0\n", "no number (write decimals with a point)"),
    ] {
        let error = table(text, csv.clone()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    // A list that is known.
    let known = Texts::Known(vec![None, Some(texts(&["1", "u"]))]);
    let found = table("b,a,y\n1,0.5,0\nu,2,0\nw,3,0\n", CsvOptions { texts: known, ..wanted(&["a", "b"], Some("y")) });
    assert_eq!(values(&found.unwrap()), [0.5, 0.0, 2.0, 1.0, 3.0, -1.0]);
}
