//! Columns of files: those that a model has not seen, in another order, with texts, with missing values; the standard
//! pair of files whose widths differ.

use std::path::{Path, PathBuf};
use std::process::Command;

use kernelpath::{Hardware, Predicted, RawCell, SavedModel};
use kernelpath_data::{Control, Options, TableRows};

use crate::running::{Folder, Ran, has_libsvm, lines, original};

/// The numbers of each line.
fn decisions(text: &str) -> Vec<f64> {
    text.lines().map(|line| line.split('\t').nth(1).unwrap().parse().unwrap()).collect()
}

#[track_caller]
fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-10, "{a} {b}");
    }
}

#[test]
fn columns_that_training_has_not_seen_were_zero_there() {
    let folder = Folder::new();
    let train: String = folder.read("rings.libsvm");
    folder.write("wide.libsvm", "1 1:0.5 2:0.25 5:2\n-1 1:1 3:0.5\n1 2:1\n");
    // The twin has the zeros in its file: a stored zero makes it as wide.
    folder.write("zeros.libsvm", &train.replacen('\n', " 5:0\n", 1));
    for kernel in ["rbf", "linear", "poly", "laplacian", "matern32"] {
        let options = if kernel == "linear" { String::new() } else { "--gamma 0.5".into() };
        let train = |data: &str, more: &str| {
            folder
                .run(&format!("train {data} --cs 1 --tol 1e-9 --kernel {kernel} {options} -q -o m.kpath {more}"))
                .ok();
            folder.run("predict m.kpath wide.libsvm --decision").ok()
        };
        let (narrow, wide) = (train("rings.libsvm", ""), train("zeros.libsvm", ""));
        close(&decisions(&narrow.out), &decisions(&wide.out));
        assert!(narrow.err.starts_with("note: wide.libsvm: the training data had 2 columns; columns 3 to 5 are"));
        assert_eq!(narrow.err.matches("note:").count(), 1, "{}", narrow.err);
        let asked = train("rings.libsvm", "--columns 5");
        assert_eq!(asked.out, wide.out);
        assert!(!asked.err.contains("note:"), "{}", asked.err);
    }
    folder.run("report m.kpath wide.libsvm -o page.html").ok();
    let ran = folder.run("train rings.libsvm --columns 1 --cs 1");
    assert!(ran.status == 2 && ran.err.contains("index 2 is too large"), "{}", ran.err);
    let ran = folder.run("train rings.csv --columns 5");
    assert!(ran.status == 2 && ran.err.contains("--columns is for LIBSVM files"), "{}", ran.err);
    // A table had the columns that it had.
    folder.run("train rings.csv --cs 1 -q -o table.kpath").ok();
    let ran = folder.run("predict table.kpath wide.libsvm");
    assert!(ran.status == 2 && ran.err.contains("has 5 features, but the model has 2"), "{}", ran.err);
}

#[test]
fn scaling_drops_what_was_constant() {
    let folder = Folder::new();
    folder.write("wide.libsvm", "1 1:0.5 2:0.25 5:2\n-1 1:1 3:0.5\n1 2:1\n");
    folder.write("narrow.libsvm", "1 1:0.5 2:0.25\n-1 1:1\n1 2:1\n");
    folder.write("zeros.libsvm", &folder.read("rings.libsvm").replacen('\n', " 5:0\n", 1));
    for scale in ["standard", "0:1"] {
        folder.run(&format!("train rings.libsvm --cs 1 --gamma 1 --scale {scale} -q -o m.kpath")).ok();
        let (wide, narrow) = (
            folder.run("predict m.kpath wide.libsvm --decision").ok(),
            folder.run("predict m.kpath narrow.libsvm --decision").ok(),
        );
        assert_eq!(wide.out, narrow.out);
        assert!(
            wide.err.contains("columns 3 to 5 were constant in the training data, and are dropped"),
            "{}",
            wide.err
        );
        assert_eq!(folder.run("svm-predict wide.libsvm m.kpath out").ok().status, 0);
        // Constant columns that are in the file of training are dropped as well.
        folder.run(&format!("train zeros.libsvm --cs 1 --gamma 1 --scale {scale} -q -o z.kpath")).ok();
        close(&decisions(&folder.run("predict z.kpath wide.libsvm --decision").ok().out), &decisions(&narrow.out));
    }
}

/// A file of the shared data, unpacked.
fn shared(name: &str) -> Option<PathBuf> {
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("KERNELPATH_DATA").map_or(near, PathBuf::from);
    Some(folder.join(name)).filter(|file| file.exists())
}

/// The first rows of the file in which 122 columns occur, and those of its test file with a 123rd.
#[test]
fn the_standard_pair_of_files_works() {
    let (Some(train), Some(test)) = (shared("a7a.xz"), shared("a7a.t.xz")) else { return };
    let folder = Folder::new();
    let text = |path: &Path| {
        let out = Command::new("xz").args(["-dc"]).arg(path).output();
        out.ok().filter(|out| out.status.success()).map(|out| String::from_utf8(out.stdout).unwrap())
    };
    let (Some(train), Some(test)) = (text(&train), text(&test)) else { return };
    folder.write("a7a", &lines(train.lines().take(400).map(String::from)));
    let last = test.lines().filter(|line| line.contains(" 123:")).take(3).map(String::from);
    folder.write("a7a.t", &lines(last.chain(test.lines().take(300).map(String::from))));
    folder.run("train a7a --columns 122 --cs 1 --gamma 0.1 --folds 2 -q -o a7a.kpath").ok();
    let ran = folder.run("predict a7a.kpath a7a.t out").ok();
    assert!(ran.err.contains("column 123 are taken as 0") || ran.err.contains("column 123"), "{}", ran.err);
    assert!(ran.err.contains("accuracy 0."), "{}", ran.err);
    folder.run("report a7a.kpath a7a.t -o page.html").ok();
    folder.run("convert a7a.kpath a7a.model").ok();
    if has_libsvm() {
        original("svm-predict", folder.0.path(), "a7a.t a7a.model theirs");
        assert_eq!(folder.read("out"), folder.read("theirs"));
    }
}

#[test]
fn columns_are_found_by_their_names() {
    let folder = Folder::new();
    folder.run("train rings.csv --cs 1 -q -o m.kpath").ok();
    let all = folder.run("predict m.kpath rings.csv --decision -q").ok().out;
    let moved = |line: &str, id: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        format!("{id},{},{},{},w", fields[2], fields[1], fields[0])
    };
    let text = folder.read("rings.csv");
    let mut rows = text.lines();
    let head = moved(rows.next().unwrap(), "id").replace(",w", ",note");
    let body = lines(rows.enumerate().map(|(i, line)| moved(line, &format!("x{i}"))));
    folder.write("moved.csv", &format!("{head}\n{body}"));
    let ran = folder.run("predict m.kpath moved.csv --decision").ok();
    assert_eq!(ran.out, all);
    assert!(ran.err.contains("note: moved.csv: columns that the model does not have are ignored: \"id\", \"note\""));
    assert!(ran.err.contains("accuracy "), "the label is found by its name: {}", ran.err);
    folder.run("report m.kpath moved.csv -o page.html").ok();
    folder.write("missing.csv", &text.replacen("a,b,kind", "a,c,kind", 1));
    let ran = folder.run("predict m.kpath missing.csv");
    assert!(ran.status == 2 && ran.err.contains("has no column \"b\", which the model needs"), "{}", ran.err);
    // Without a header the columns are taken as they stand.
    folder.write("bare.csv", &lines(text.lines().skip(1).map(String::from)));
    let ran = folder.run("predict m.kpath bare.csv --decision").ok();
    assert_eq!(ran.out, all);
    assert!(ran.err.contains("note: bare.csv has no header: its columns are taken in the order"), "{}", ran.err);
}

/// Sizes with commas and gaps, colours with gaps, and a class that both decide.
fn shop() -> String {
    let row = |i: usize| {
        let size = if i % 9 == 4 { "NA".into() } else { format!("{},{}", i % 7, i % 10) };
        let colour = match i % 5 {
            _ if i % 11 == 3 => "",
            0 | 1 => "red",
            2 => "blue",
            _ => "\"green; pale\"",
        };
        let class = if i % 7 > 3 || i % 5 == 2 { "yes" } else { "no" };
        format!("{size};{colour};{i};{class}")
    };
    format!("size;colour;id;sold\n{}", lines((0..60).map(row)))
}

#[test]
fn texts_gaps_and_commas_are_in_the_model() {
    let folder = Folder::new();
    folder.write("shop.csv", &shop());
    let ran = folder.run("train shop.csv --ignore id --cs 1");
    assert!(ran.status == 2 && ran.err.contains("give --decimal ,"), "{}", ran.err);
    let all = "--ignore id --cs 10 --decimal , --missing mean --one-hot --scale standard";
    let ran = folder.run(&format!("train shop.csv {all} -q --json -o m.kpath")).ok();
    assert_eq!(ran.json()["data"]["names"], serde_json::json!(["size", "colour"]));
    let predicted = folder.run("predict m.kpath shop.csv --decision").ok();
    assert!(predicted.err.contains("accuracy 0.") || predicted.err.contains("accuracy 1 "), "{}", predicted.err);
    // Rust reads the raw cells.
    let model = SavedModel::load(folder.path("m.kpath")).unwrap();
    assert_eq!(model.columns.as_ref().unwrap().len(), 4);
    assert_eq!(model.columns.as_ref().unwrap()[1], "colour=blue");
    let text = shop();
    let fields: Vec<Vec<String>> =
        text.lines().skip(1).map(|line| line.replace("n; p", "n| p").split(';').map(String::from).collect()).collect();
    let colours: Vec<String> = fields.iter().map(|row| row[1].replace('"', "").replace('|', ";")).collect();
    let cells: Vec<Vec<RawCell>> = fields
        .iter()
        .zip(&colours)
        .map(|(row, colour)| {
            let size = row[0].replace(',', ".").parse().map_or(RawCell::Missing, RawCell::Number);
            vec![size, if colour.is_empty() { RawCell::Missing } else { RawCell::Text(colour) }]
        })
        .collect();
    let features = model.encoded(&cells).unwrap();
    let values = model.predictor.decision_function(features.view(), Hardware::default()).unwrap();
    assert_eq!(decisions(&predicted.out), values);
    // A file with points, other columns, and a colour that training has not seen.
    folder.write("new.csv", "colour,size,sold\nviolet,2.5,yes\n,NA,no\n");
    let ran = folder.run("predict m.kpath new.csv --decision --decimal .").ok();
    let cells = [vec![RawCell::Number(2.5), RawCell::Text("violet")], vec![RawCell::Missing, RawCell::Missing]];
    let features = model.encoded(&cells).unwrap();
    let values = model.predictor.decision_function(features.view(), Hardware::default()).unwrap();
    assert_eq!(decisions(&ran.out), values);
    folder.run("report m.kpath shop.csv -o page.html").ok();
    for (to, what) in [("m.model", "columns \"colour\""), ("m.onnx", "columns \"colour\"")] {
        let ran = folder.run(&format!("convert m.kpath {to}"));
        assert!(ran.status == 2 && ran.err.contains(what) && ran.err.contains("--one-hot"), "{}", ran.err);
    }
    let ran = folder.run("svm-predict rings.libsvm m.kpath out");
    assert!(ran.status == 2 && ran.err.contains("use kernelpath predict"), "{}", ran.err);
    let ran = folder.run("predict m.kpath rings.libsvm");
    assert!(ran.status == 2 && ran.err.contains("is a LIBSVM file"), "{}", ran.err);
    let said = folder.run("inspect m.kpath").ok().out;
    assert!(said.contains("colour") && said.contains("missing mean, decimal_comma true, label sold"), "{said}");
}

#[test]
fn rows_with_gaps_are_left_out_or_refused() {
    let folder = Folder::new();
    folder.write("shop.csv", &shop());
    let common = "--ignore id,colour --cs 1 --decimal ,";
    let ran = folder.run(&format!("train shop.csv {common} --missing error"));
    assert!(ran.status == 2 && ran.err.contains("shop.csv:6: column \"size\": the value is missing"), "{}", ran.err);
    let ran = folder.run(&format!("train shop.csv {common} --missing drop -o m.kpath")).ok();
    assert!(ran.err.contains("note: 7 of 60 rows have missing values and are left out"), "{}", ran.err);
    let ran = folder.run("predict m.kpath shop.csv").ok();
    assert_eq!(ran.out.lines().count(), 60);
    assert!(ran.out.lines().enumerate().all(|(i, line)| (i % 9 == 4) == (line == "NA")), "{}", ran.out);
    assert!(ran.err.contains("of 53)"), "{}", ran.err);
    let model = SavedModel::load(folder.path("m.kpath")).unwrap();
    assert!(model.encoded(&[vec![RawCell::Missing]]).is_err());
    let rows = model.encoded(&[vec![RawCell::Number(1.0)]]).unwrap();
    assert!(matches!(model.predictor.predict(rows.view(), Hardware::default()).unwrap(), Predicted::Labels(_)));
    // Such a model has numbers alone: others can hold it.
    folder.run("convert m.kpath m.onnx").ok();
    let ran = folder.run("train rings.libsvm --missing mean");
    assert!(ran.status == 2 && ran.err.contains("--missing is for CSV files"), "{}", ran.err);
}

#[test]
fn names_with_commas_stand_in_quotes() {
    let folder = Folder::new();
    let text = folder.read("rings.csv").replacen("a,b,kind", "\"a, x\",last,\"my, kind\"", 1);
    folder.write("named.csv", &text);
    let run =
        |words: &[&str]| Ran::of(&folder.command("train named.csv --cs 1 -q --json").args(words).output().unwrap());
    let named = |ran: Ran| ran.ok().json()["data"]["names"].clone();
    assert_eq!(named(run(&["--ignore", "\"a, x\"", "--label", "\"my, kind\""])), serde_json::json!(["last"]));
    assert_eq!(
        named(run(&["--label", "\"last\"", "--ignore", "\"my, kind\"", "--task", "ridge"])),
        serde_json::json!(["a, x"])
    );
    // Without a name the label is the last column, though another one is called so.
    assert_eq!(named(run(&["--ignore", "\"a, x\""])), serde_json::json!(["last"]));
    assert_eq!(named(run(&["--label", "my, kind"])), serde_json::json!(["a, x", "last"]));
    folder.write("classes.csv", &folder.read("rings.csv").replace("inner", "\"in=1,2\""));
    let weights = ["train", "classes.csv", "--cs", "1", "-q", "--class-weight", "\"in=1,2\"=3,outer=2"];
    let ran = Ran::of(&folder.command("").args(weights).output().unwrap());
    assert_eq!(ran.status, 0, "{}", ran.err);
    let ran = Ran::of(&folder.command("").args([&weights[..6], &["\"in=1,2=3"]].concat()).output().unwrap());
    assert!(ran.status == 2 && ran.err.contains("a quote is not closed"), "{}", ran.err);
}

/// Reads a table as the command does.
#[test]
fn narrowed_rows_are_those_with_fewer_columns() {
    let read = |text: &str| {
        let table = kernelpath_data::read(
            kernelpath_data::Source::Bytes(text.as_bytes()),
            &Options::default(),
            &Control::default(),
        );
        table.unwrap().rows
    };
    let narrow = read("1 1:0.5 2:0.25 5:2\n-1 3:0.5\n1 2:1\n").narrowed(2);
    let TableRows::Sparse { indptr, values, columns, .. } = &narrow else { panic!("LIBSVM files are sparse") };
    assert_eq!((&indptr[..], &values[..], *columns), (&[0, 2, 2, 3][..], &[0.5, 0.25, 1.0][..], 2));
    assert!(narrow.view().is_ok());
}
