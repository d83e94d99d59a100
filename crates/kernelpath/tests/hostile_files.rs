//! Model files of somebody who means harm: an error, never a panic, in memory that the size of the file bounds. And a
//! process that is killed while it saves leaves a whole file.

mod by_bytes;

use std::path::{Path, PathBuf};

use by_bytes::{Edited, peak_of};
use kernelpath::{Classifier, Csr, Error, Hardware, Kernel, Method, Predictor, Quantiles, Regressor, Rows, SavedModel};
use serde_json::{Value, json};

/// The most that reading may take at once: this many bytes for each byte of the file, and what one error message and
/// the names of a model take. A list in JSON, `[0,0,…]`, takes 2 bytes an entry, and 72 where it has just grown.
const BYTES_PER_BYTE: usize = 128;
const BYTES_BESIDE: usize = 64 << 10;

/// Reads a file, and predicts with what was read. Whether it was.
fn is_read(bytes: &[u8]) -> bool {
    let (model, peak) = peak_of(|| SavedModel::from_bytes(bytes));
    let limit = BYTES_PER_BYTE * bytes.len() + BYTES_BESIDE;
    assert!(peak <= limit, "{peak} bytes of memory for a file of {}", bytes.len());
    match model {
        Ok(model) => {
            predicts(&model.predictor);
            let written = model.to_bytes().unwrap();
            assert!(SavedModel::from_bytes(&written).is_ok(), "what was written is not read");
            true
        }
        Err(Error::File { problem, .. }) => {
            assert!(problem.len() < 2000 && !problem.is_empty(), "{problem}");
            false
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// Uses all that a model has. Numbers that make no sense may give an error, or values that make none.
fn predicts(predictor: &Predictor) {
    let width = predictor.width();
    if width < 1000 {
        let row = vec![0.5; width];
        let row = Rows::from_slice(&row, width).unwrap();
        drop(predictor.predict(row, Hardware::threads(1)));
        drop(predictor.predict_proba(row, Hardware::threads(1)));
    }
}

fn points(n: usize) -> Vec<f64> {
    (0..2 * n).map(|i| (i as f64 * 0.7).sin() + (i / 2 % 3) as f64).collect()
}

/// Three classes by isotonic maps, with names of columns; sparse support vectors; quantiles that are sorted; two
/// targets: together they have every array that a file can have.
fn models() -> Vec<SavedModel> {
    let (x, class) = (points(24), (0..24).map(|i| i % 3).collect::<Vec<_>>());
    let rows = Rows::from_slice(&x, 2).unwrap();
    let isotonic = Classifier::squared_svm().probability(Method::Isotonic).cs([1.0, 2.0]).cv(2);
    let mut several = isotonic.fit(rows, &class).unwrap().saved();
    several.columns = Some(vec!["a".into(), "b".into()]);
    several.predictor.scaling = Some(kernelpath::Scaling { shift: vec![0.0, 1.0], factor: vec![1.0, 2.0] });

    let (indptr, indices): (Vec<usize>, Vec<usize>) =
        ((0..=12).collect(), (0..12).map(|i| [3, 70_000][i % 2]).collect());
    let values = [1.5; 12];
    let sparse = Csr::new(100_000, &indptr[..], &indices[..], &values[..]).unwrap();
    let labels: Vec<bool> = (0..12).map(|i| i % 2 == 0).collect();
    let linear = Classifier::svm().kernel(Kernel::linear()).probability(Method::Sigmoid).cs([1.0]).cv(2);
    let sparse = linear.fit(sparse, &labels).unwrap().saved();

    let y: Vec<f64> = x.chunks(2).map(|row| row[0] - row[1]).collect();
    let levels = Quantiles::at([0.9, 0.1]).noncrossing().cs([1.0]).cv(2).fit(rows, &y).unwrap().saved();
    let number = Regressor::ridge().cs([1.0]).cv(2).fit(rows, &y).unwrap().saved();
    vec![several, sparse, levels, number]
}

#[test]
fn every_truncation_is_refused() {
    for model in models() {
        let bytes = model.to_bytes().unwrap();
        assert!(is_read(&bytes));
        for length in 0..bytes.len() {
            assert!(!is_read(&bytes[..length]), "the first {length} bytes of {} were read", bytes.len());
        }
    }
}

#[test]
fn no_flipped_bit_makes_a_panic() {
    let bytes = models()[0].to_bytes().unwrap();
    let body = Edited::of(&bytes).start_of_body();
    let (mut refused, mut tried) = (0, 0);
    // All of the header; of the arrays, one bit in seven, so that every bit of a number has its turn.
    for bit in (0..8 * body).chain((8 * body..8 * bytes.len()).step_by(7)) {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        refused += usize::from(!is_read(&damaged));
        tried += 1;
    }
    assert!(refused > tried / 3, "{refused} of {tried}");
}

#[test]
fn places_and_shapes_that_do_not_fit_are_refused() {
    let huge = [1_u64 << 31, 1 << 32, 1 << 60, 1 << 62, (1 << 63) - 1, 1 << 63, u64::MAX];
    for model in models() {
        let file = Edited::of(&model.to_bytes().unwrap());
        for name in file.arrays() {
            let refused = |change: &dyn Fn(&mut Value)| {
                let mut file = file.clone();
                change(&mut file.header[&name]);
                assert!(!is_read(&file.to_bytes()), "{name}: {}", file.header[&name]);
            };
            let [from, to] = [0, 1].map(|k| file.header[&name]["data_offsets"][k].as_u64().unwrap());
            for far in huge {
                refused(&|array| array["data_offsets"] = json!([from, far]));
                refused(&|array| array["data_offsets"] = json!([far, to]));
                refused(&|array| array["data_offsets"] = json!([far, far]));
                refused(&|array| array["shape"] = json!([far]));
                refused(&|array| array["shape"] = json!([far, 2]));
                refused(&|array| array["shape"] = json!([far, far, far]));
            }
            // Overlapping the next array, or the one before; those without entries overlap nothing.
            if from == to {
                continue;
            }
            refused(&|array| array["data_offsets"] = json!([from, to + 8]));
            refused(&|array| array["data_offsets"] = json!([from + 8, to + 8]));
            refused(&|array| array["shape"] = json!([-1]));
            refused(&|array| array["dtype"] = json!("F16"));
            refused(&|array| array["dtype"] = json!("C64"));
        }
    }
}

/// An axis of length 0 leaves the other one free: a file of a few bytes must not make anything walk along it.
#[test]
fn empty_arrays_have_the_shape_that_is_needed() {
    for model in models() {
        let file = Edited::of(&model.to_bytes().unwrap());
        for name in file.arrays() {
            let (dtype, model_shape) = (file.header[&name]["dtype"].clone(), file.header[&name]["shape"].clone());
            for far in [0, 1, 1 << 20, 1_u64 << 40, 1 << 62] {
                for shape in [json!([0, far]), json!([far, 0]), json!([0]), json!([far, 0, far])] {
                    let mut file = file.clone();
                    file.replace(&name, dtype.as_str().unwrap(), &shape, &[]);
                    // Which rows of the training data the vectors were is not needed for predictions.
                    let is_free = name.starts_with("attributes/") || name == "support" && shape == json!([0]);
                    let is_same = shape == model_shape;
                    assert!(!is_read(&file.to_bytes()) || is_free || is_same, "{name} {shape}");
                }
            }
        }
    }
    let width = u64::from(u32::MAX) << 20;
    let mut file = Edited::of(&models()[3].to_bytes().unwrap());
    file.document["width"] = json!(width);
    file.replace("vectors", "F64", &json!([0, width]), &[]);
    file.replace("coef", "F64", &json!([0, 1]), &[]);
    file.replace("support", "I64", &json!([0]), &[]);
    assert!(!is_read(&file.to_bytes()), "a matrix without rows, and without end");
    file.document["width"] = json!(2);
    file.replace("vectors", "F64", &json!([0, 2]), &[]);
    assert!(is_read(&file.to_bytes()), "a constant model");
    // No function at all.
    file.replace("coef", "F64", &json!([1_u64 << 62, 0]), &[]);
    file.replace("vectors", "F64", &json!([1_u64 << 62, 0]), &[]);
    file.replace("intercepts", "F64", &json!([0]), &[]);
    for width in [0, 2] {
        file.document["width"] = json!(width);
        assert!(!is_read(&file.to_bytes()), "a model without functions, width {width}");
    }
}

#[test]
fn values_out_of_range_are_refused_in_each_table() {
    let indices = [i64::MIN, -1, 1 << 20, 1 << 40, i64::MAX];
    let floats = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let mut seen = Vec::new();
    for model in models() {
        let file = Edited::of(&model.to_bytes().unwrap());
        for name in file.arrays() {
            let (dtype, length) = (file.header[&name]["dtype"].as_str().unwrap(), file.clone().bytes_of(&name).len());
            let with = |at: usize, bytes: &[u8]| {
                let mut file = file.clone();
                file.bytes_of(&name)[at..at + bytes.len()].copy_from_slice(bytes);
                is_read(&file.to_bytes())
            };
            match (name.as_str(), dtype) {
                ("vectors.starts" | "vectors.columns" | "calibration.starts", "I64") => {
                    // The last of the starts must be the end; the first ones must not fall.
                    let all = indices.iter().flat_map(|index| (0..length / 8).map(move |k| (k, *index)));
                    for (k, index) in all {
                        assert!(!with(8 * k, &index.to_le_bytes()), "{name}: {index} at {k}");
                    }
                }
                // Which rows of the training data they were is not needed for predictions.
                ("support", "I64") => assert!(!with(0, &i64::MIN.to_le_bytes())),
                (_, "U32") => assert!(length == 0 || !with(length - 4, &u32::MAX.to_le_bytes()), "{name}"),
                (_, "BOOL") => assert!(length == 0 || !with(length - 1, &[2]), "{name}"),
                ("coef" | "intercepts" | "scaling.shift" | "scaling.factor" | "vectors" | "vectors.values", "F64") => {
                    assert!(floats.iter().all(|bad| !with(length - 8, &bad.to_le_bytes())), "{name}");
                }
                ("vectors" | "vectors.values", "F32") => assert!(!with(length - 4, &f32::NAN.to_le_bytes())),
                (name, "F64") if name.starts_with("calibration.") && length > 0 => {
                    assert!(floats.iter().all(|bad| !with(length - 8, &bad.to_le_bytes())), "{name}");
                }
                _ => continue,
            }
            seen.push(name);
        }
    }
    for name in ["vectors.starts", "vectors.columns", "calibration.starts", "calibration.points", "support", "columns"]
    {
        assert!(seen.iter().any(|seen| seen == name), "no model has {name}: {seen:?}");
    }
}

#[test]
fn each_part_of_the_document_is_checked() {
    for model in models() {
        let file = Edited::of(&model.to_bytes().unwrap());
        for name in ["estimator", "parameters", "kernel", "width", "outputs", "attributes", "format", "texts"] {
            for other in [json!(null), json!(-1), json!("x"), json!([]), json!({}), json!(1e300)] {
                let mut file = file.clone();
                if file.document[name].is_object() == other.is_object() && matches!(name, "parameters" | "attributes") {
                    continue;
                }
                if name == "estimator" && other.is_string() {
                    continue;
                }
                file.document[name] = other.clone();
                assert!(!is_read(&file.to_bytes()), "{name}: {other}");
            }
        }
    }
    let several = Edited::of(&models()[0].to_bytes().unwrap());
    for (path, bad) in [
        ("/kernel/gamma", json!(-1.0)),
        ("/kernel/gamma", json!("1")),
        ("/kernel/name", json!("poly")),
        ("/outputs/classes", json!([0, 1])),
        ("/outputs/classes", json!([0, 1, 1])),
        ("/outputs/classes", json!([2, 1, 0])),
        ("/outputs/classes", json!([0, 1, []])),
        ("/outputs/classes", json!([0, 1, { "integer": "9".repeat(100) }])),
        ("/outputs/classes", json!((0..1000).collect::<Vec<_>>())),
        ("/outputs/arrangement", json!("two")),
        ("/texts/columns", json!(["only"])),
        ("/texts/columns", json!([1, 2])),
    ] {
        let mut file = several.clone();
        *file.document.pointer_mut(path).unwrap() = bad.clone();
        assert!(!is_read(&file.to_bytes()), "{path}: {bad}");
    }
    let mut levels = Edited::of(&models()[2].to_bytes().unwrap());
    for bad in [json!([0]), json!([0, 0]), json!([0, 2]), json!([1, -1]), json!([0, 1, 2]), json!("0, 1")] {
        levels.document["outputs"]["rising"] = bad.clone();
        assert!(!is_read(&levels.to_bytes()), "{bad}");
    }
}

/// How often a bomb repeats what it is made of.
const MANY: usize = 200_000;

/// Few bytes that would become many: lists, nesting, and texts that an array has again and again.
#[test]
fn bombs_take_no_more_than_their_size() {
    let several = Edited::of(&models()[0].to_bytes().unwrap());
    let with = |change: &dyn Fn(&mut Edited)| {
        let mut file = several.clone();
        change(&mut file);
        is_read(&file.to_bytes())
    };
    assert!(with(&|file| file.document["parameters"] = json!({ "Cs": vec![0; MANY] })));
    assert!(with(&|file| file.document["parameters"] = json!({ "Cs": vec![json!({}); MANY] })));
    let names: serde_json::Map<String, Value> = (0..MANY / 10).map(|k| (k.to_string(), json!([]))).collect();
    assert!(with(&|file| file.document["parameters"] = Value::Object(names.clone())));
    assert!(!with(&|file| file.header["coef"]["shape"] = json!(vec![1; MANY])));
    let array = json!({ "dtype": "U8", "shape": [0], "data_offsets": [0, 0] });
    // Arrays of other names are no part of a model.
    assert!(with(&|file| (0..MANY / 20).for_each(|k| file.header[&format!("{k}")] = array.clone())));

    // Sixteen megabytes of it are refused before they are read.
    let zeros = format!("[{}0]", "0,".repeat(7 << 20));
    for header in
        [format!("{{\"a\":{{\"shape\":{zeros}}}}}"), json!({ "__metadata__": { "kernelpath": zeros } }).to_string()]
    {
        let (model, peak) = peak_of(|| SavedModel::from_bytes(&by_bytes::file(&header, &[])));
        assert!(model.is_err() && peak < 5 * header.len(), "{peak}");
    }

    // One long text, in every entry.
    let codes = vec![0; 4 * MANY];
    let long = "x".repeat(MANY);
    for name in ["columns", "machines.loss", "attributes/status"] {
        let bomb = |file: &mut Edited| {
            file.replace(name, "U32", &json!([MANY]), &codes);
            file.document["texts"][name] = json!([long]);
        };
        assert!(!with(&bomb), "{name}");
    }

    // Nesting without end, where a document is, and where the header is.
    let bytes = several.to_bytes();
    let length = several.start_of_body() - 8;
    let header = std::str::from_utf8(&bytes[8..8 + length]).unwrap();
    for open in ["[", "{\\\"a\\\":"] {
        let nested = header.replacen("\"{", &format!("\"{{\\\"a\\\":{}", open.repeat(MANY)), 1);
        assert!(!is_read(&by_bytes::file(&nested, &bytes[8 + length..])), "{open}");
    }
    for open in ["[", "{\"a\":"] {
        for before in ["{", "{\"a\":{\"dtype\":\"F64\",\"shape\":"] {
            let nested = header.replacen('{', &format!("{before}\"b\":{}", open.repeat(MANY)), 1);
            assert!(!is_read(&by_bytes::file(&nested, &bytes[8 + length..])), "{before}{open}");
        }
    }
}

#[test]
fn a_file_without_content_is_refused_whatever_its_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holes.kpath");
    let length = 1_u64 << 40;
    let header = format!(
        r#"{{"__metadata__":{{"kernelpath":"{{\"format\":1}}"}},"a":{{"dtype":"U8","shape":[{length}],"data_offsets":[0,{length}]}}}}"#
    );
    std::fs::write(&path, by_bytes::file(&header, &[])).unwrap();
    let full = std::fs::metadata(&path).unwrap().len() + length;
    // A file of a terabyte that takes no place on the disk.
    if std::fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(full)).is_ok() {
        let (model, peak) = peak_of(|| SavedModel::load(&path));
        let error = model.err().unwrap().to_string();
        assert!(error.contains("holes.kpath") && peak < BYTES_BESIDE, "{error} {peak}");
    }
}

/// Not a test of its own: what the next one starts, and kills.
#[test]
#[ignore = "saves until it is killed"]
fn saves_until_it_is_killed() {
    let path = PathBuf::from(std::env::var_os("KERNELPATH_SAVE_TO").unwrap());
    let models: Vec<SavedModel> = [1.0, 2.0].map(large).into();
    for k in 0.. {
        models[k % 2].save(&path).unwrap();
    }
}

const ENTRIES: usize = 200_000;

/// A model whose file takes a while to write. Its name says which it is.
fn large(c: f64) -> SavedModel {
    let mut model = models().pop().unwrap();
    model.estimator = format!("C = {c}");
    let entries = vec![c; ENTRIES];
    model.attributes.insert("noise_".into(), kernelpath::Array::of_f64([entries.len()], entries).into());
    model
}

#[test]
fn a_process_killed_while_it_saves_leaves_a_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.kpath");
    for k in 0..12 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "saves_until_it_is_killed", "--ignored"]).env("KERNELPATH_SAVE_TO", &path);
        let mut child = child.stdout(std::process::Stdio::null()).spawn().unwrap();
        let started = std::time::Instant::now();
        while !is_there(&path) && started.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(3 + 7 * k));
        child.kill().unwrap(); // the signal that cannot be caught
        child.wait().unwrap();
        let model = SavedModel::load(&path).unwrap_or_else(|error| panic!("after kill {k}: {error}"));
        let c = if model.estimator == "C = 1" { 1.0 } else { 2.0 };
        let kernelpath::Attribute::Array(noise) = &model.attributes["noise_"] else { panic!("no array") };
        assert_eq!(noise.entries, kernelpath::Entries::F64(vec![c; ENTRIES]), "after kill {k}");
    }
}

fn is_there(path: &Path) -> bool {
    path.exists()
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model_file")
}

#[test]
#[ignore = "writes the corpus of the fuzzer anew, after a change of the format"]
fn the_corpus_is_written() {
    for (model, name) in models().iter_mut().zip(["several", "sparse", "levels", "number"]) {
        model.attributes.retain(|name, _| ["C_", "gaps_", "status_"].contains(&name.as_str()));
        let bytes = model.to_bytes().unwrap();
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 4] ^= 4;
        for (end, bytes) in [("", &bytes[..]), ("_cut", &bytes[..bytes.len() - 9]), ("_damaged", &damaged)] {
            std::fs::write(corpus().join(format!("{name}{end}")), bytes).unwrap();
        }
    }
}

#[test]
fn the_corpus_of_the_fuzzer_is_read_or_refused() {
    let folder = corpus();
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let read = files.iter().filter(|path| is_read(&std::fs::read(path).unwrap())).count();
    assert!(read >= 3 && files.len() > read, "{read} of {} were read", files.len());
}
