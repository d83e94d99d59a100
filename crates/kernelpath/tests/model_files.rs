//! Model files: what is saved predicts the same to the last bit, and what is damaged is refused.

use kernelpath::{
    Attribute, Bandwidth, Classifier, Csr, Encoding, Entries, Error, Hardware, Kernel, LowRank, Method, Missing,
    MultiClass, Outputs, Predicted, Quantiles, RawCell, Regressor, Rows, SavedModel, Scaling, Shape, TableColumn,
    Targets, Tune, kernel_matrix,
};

/// Points on rings, with a little noise: `classes` classes one after the other.
fn rings(n: usize, classes: usize) -> (Vec<f64>, Vec<usize>) {
    let mut x = Vec::new();
    for i in 0..n {
        let (t, class) = (i as f64, i % classes);
        let radius = 1.0 + class as f64 + 0.3 * (7.0 * t).sin();
        x.extend([radius * (0.37 * t).cos(), radius * (0.37 * t).sin()]);
    }
    (x, (0..n).map(|i| i % classes).collect())
}

fn wave(n: usize) -> (Vec<f64>, Vec<f64>) {
    let (x, _) = rings(n, 3);
    let y = x.chunks(2).map(|row| row[0].sin() + 0.2 * row[1]).collect();
    (x, y)
}

fn again(model: &SavedModel) -> SavedModel {
    let bytes = model.to_bytes().unwrap();
    let read = SavedModel::from_bytes(&bytes).unwrap();
    assert!(bytes == read.to_bytes().unwrap(), "a model that was read is written otherwise");
    assert_eq!(model.attributes.keys().collect::<Vec<_>>(), read.attributes.keys().collect::<Vec<_>>());
    for (name, attribute) in &model.attributes {
        let (Attribute::Array(a), Some(Attribute::Array(b))) = (attribute, read.attributes.get(name)) else { continue };
        assert_eq!(a.shape, b.shape, "{name}");
        if let (Entries::F64(a), Entries::F64(b)) = (&a.entries, &b.entries) {
            assert!(a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
        } else {
            assert_eq!(a, b, "{name}");
        }
    }
    assert_eq!(model.predictor.outputs, read.predictor.outputs);
    assert_eq!(model.machines.len(), read.machines.len());
    read
}

fn same(a: &[f64], b: &[f64]) {
    assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits()), "{a:?}\n{b:?}");
}

#[test]
fn classifiers_of_every_kind_predict_the_same_from_a_file() {
    let here = Hardware::default();
    for classes in [2, 3] {
        let (x, class) = rings(90, classes);
        let (x, new) = (Rows::from_slice(&x, 2).unwrap(), &x[..40]);
        let new = Rows::from_slice(new, 2).unwrap();
        let labels: Vec<String> = class.iter().map(|c| format!("ring \"{c}\" ü")).collect();
        let variants = [
            Classifier::svm(),
            Classifier::svm().probability(Method::Sigmoid).kernel(Kernel::linear()),
            Classifier::squared_svm().multi_class(MultiClass::OneVsRest).probability(Method::Isotonic),
            Classifier::dwd().probability(Method::Temperature).tune(Tune::Each),
            Classifier::logistic().low_rank(LowRank::k_means(20)),
            Classifier::logistic().low_rank(LowRank::rp_cholesky(20)).gammas([0.3, 1.0]),
            Classifier::multinomial(),
            Classifier::svm()
                .kernel(Kernel { shape: Shape::Poly { degree: 2, coef0: 1.0 }, bandwidth: Bandwidth::Scale }),
        ];
        for builder in variants {
            let model = builder.cs([0.1, 1.0, 10.0]).cv(3).fit(x, &labels).unwrap();
            let read = again(&model.saved());
            same(&model.machine_values(new).unwrap(), &read.predictor.values(new, here).unwrap());
            same(&model.decision_function(new).unwrap(), &read.predictor.decision_function(new, here).unwrap());
            let Predicted::Labels(found) = read.predictor.predict(new, here).unwrap() else { panic!("labels") };
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            let expected: Vec<String> = model.predict(new).unwrap().iter().map(|label| format!("{label:?}")).collect();
            assert_eq!(found, expected);
            match model.predict_proba(new) {
                Ok(expected) => same(&expected, &read.predictor.predict_proba(new, here).unwrap()),
                Err(_) => assert!(read.predictor.predict_proba(new, here).is_err()),
            }
            // The certificates in the file are those that are computed anew from the data.
            for (machine, proof) in read.machines.iter().zip(model.verify(x, &labels).unwrap()) {
                assert!(machine.gap <= 1e-6 && (machine.primal - proof.primal).abs() <= 1e-9 * proof.primal.abs());
                assert_eq!(machine.status, "converged");
            }
        }
    }
}

#[test]
fn regressors_and_quantiles_predict_the_same_from_a_file() {
    let (x, y) = wave(80);
    let rows = Rows::from_slice(&x, 2).unwrap();
    let both: Vec<f64> = y.iter().flat_map(|y| [*y, 1.0 - 3.0 * y]).collect();
    let both = faer::MatRef::from_row_major_slice(&both, 80, 2);
    for builder in [Regressor::svr(0.05), Regressor::ridge(), Regressor::huber(0.3), Regressor::expectile(0.8)] {
        for targets in [Targets::from(&y), Targets::Columns(both)] {
            let model = builder.clone().n_cs(5).cv(3).fit(rows, targets).unwrap();
            let read = again(&model.saved());
            let Predicted::Numbers { columns, values } = read.predictor.predict(rows, Hardware::default()).unwrap()
            else {
                panic!("numbers")
            };
            assert_eq!(columns * 80, values.len());
            same(&model.predict(rows).unwrap(), &values);
            assert_eq!(read.predictor.outputs, Outputs::Numbers { is_one: columns == 1, rising: None });
        }
    }
    for taus in [vec![0.5], vec![0.9, 0.1, 0.5]] {
        let model = Quantiles::at(taus).noncrossing().n_cs(5).cv(3).fit(rows, &y).unwrap();
        let read = again(&model.saved());
        let Predicted::Numbers { values, .. } = read.predictor.predict(rows, Hardware::default()).unwrap() else {
            panic!("numbers")
        };
        same(&model.predict(rows).unwrap(), &values);
    }
}

#[test]
fn sparse_precomputed_weighted_and_scaled_models_come_back() {
    let here = Hardware::default();
    let indptr: Vec<usize> = (0..=60).collect();
    let indices: Vec<usize> = (0..60).map(|i| [7, 400_000, 999_999][i % 3]).collect();
    let counts: Vec<f64> = (0..60).map(|i| 1.0 + f64::from(i) / 3.0).collect();
    let x = Csr::new(1_000_000, &indptr[..], &indices[..], &counts[..]).unwrap();
    let labels: Vec<i64> = (0..60).map(|i| [-5, 3, i64::MAX][i % 3]).collect();
    let model = Classifier::svm().kernel(Kernel::linear()).cs([1.0, 10.0]).fit(x, &labels).unwrap();
    let read = again(&model.saved());
    assert!(matches!(read.predictor.vectors(), Rows::Csr(_)) && read.predictor.width() == 1_000_000);
    same(&model.machine_values(x).unwrap(), &read.predictor.values(x, here).unwrap());

    let (x, class) = rings(60, 2);
    let rows = Rows::from_slice(&x, 2).unwrap();
    let kernel = kernelpath::KernelFn::new(Shape::Rbf, 0.7).unwrap();
    let k = kernel_matrix(&rows, &rows, &kernel, 1, &kernelpath::Control::default()).unwrap();
    let k = Rows::from_slice(&k, 60).unwrap();
    let weights: Vec<f64> = (0..60).map(|i| f64::from(u8::from(i % 7 != 0))).collect();
    let precomputed = Kernel { shape: Shape::Precomputed, bandwidth: Bandwidth::Value(1.0) };
    let model = Classifier::svm().kernel(precomputed).weights(weights).cs([1.0, 10.0]).fit(k, &class).unwrap();
    let read = again(&model.saved());
    assert_eq!((read.predictor.width(), read.predictor.support()), (60, model.support()));
    same(&model.machine_values(k).unwrap(), &read.predictor.values(k, here).unwrap());

    let model = Classifier::svm().cs([1.0]).folds(kernelpath::Folds::None).fit(rows, &class).unwrap();
    let mut saved = model.saved();
    saved.predictor.scaling = Some(Scaling { shift: vec![0.5, -1.0], factor: vec![2.0, 0.25] });
    saved.columns = Some(vec!["width".into(), "length".into()]);
    let read = again(&saved);
    assert_eq!((&read.columns, &read.predictor.scaling), (&saved.columns, &saved.predictor.scaling));
    let by_hand: Vec<f64> = x.chunks(2).flat_map(|row| [(row[0] - 0.5) * 2.0, (row[1] + 1.0) * 0.25]).collect();
    let by_hand = model.machine_values(Rows::from_slice(&by_hand, 2).unwrap()).unwrap();
    same(&by_hand, &read.predictor.values(rows, here).unwrap());
}

#[test]
fn a_file_says_how_a_table_becomes_features() {
    let (x, class) = rings(60, 2);
    let (rows, here) = (Rows::from_slice(&x, 2).unwrap(), Hardware::default());
    let mut saved = Classifier::svm().cs([1.0]).folds(kernelpath::Folds::None).fit(rows, &class).unwrap().saved();
    let texts = TableColumn {
        name: Some("colour".into()),
        texts: Some(vec!["blue".into(), "red".into()]),
        fill: vec![0.25, 0.75],
    };
    let encoding =
        Encoding { columns: vec![texts], missing: Missing::Mean, decimal_comma: true, label: Some("y".into()) };
    saved.encoding = Some(encoding.clone());
    let read = again(&saved);
    assert_eq!(read.encoding, Some(encoding.clone()));
    let cells = [vec![RawCell::Text("red")], vec![RawCell::Missing], vec![RawCell::Text("green")]];
    let features = read.encoded(&cells).unwrap();
    let by_hand = [0.0, 1.0, 0.25, 0.75, 0.0, 0.0];
    same(
        &read.predictor.values(features.view(), here).unwrap(),
        &saved.predictor.values(Rows::from_slice(&by_hand, 2).unwrap(), here).unwrap(),
    );
    // What does not fit together is refused.
    for change in [
        |column: &mut TableColumn| column.texts = Some(vec!["red".into(), "blue".into()]),
        |column: &mut TableColumn| column.texts = Some(vec!["blue".into(), "red".into(), "sky".into()]),
        |column: &mut TableColumn| column.fill = vec![0.5],
        |column: &mut TableColumn| column.texts = None,
    ] {
        let mut bad = encoding.clone();
        change(&mut bad.columns[0]);
        saved.encoding = Some(bad);
        let error = refused(&saved.to_bytes().unwrap());
        assert!(error.contains("table"), "{error}");
    }
}

#[test]
fn a_model_takes_columns_that_were_zero_in_training() {
    let (x, class) = rings(60, 2);
    let here = Hardware::default();
    let padded: Vec<f64> = x.chunks(2).flat_map(|row| [row[0], row[1], 0.0, 0.0]).collect();
    let wide = [0.5, 0.25, 2.0, 0.0, 1.0, -1.0, 0.0, -0.5];
    let wide = Rows::from_slice(&wide, 4).unwrap();
    for shape in [Shape::Rbf, Shape::Linear, Shape::Laplacian, Shape::Poly { degree: 2, coef0: 1.0 }] {
        let kernel = Kernel { shape, bandwidth: Bandwidth::Value(0.7) };
        let builder = Classifier::svm().kernel(kernel).cs([1.0]).folds(kernelpath::Folds::None).tol(1e-10);
        let narrow = builder.clone().fit(Rows::from_slice(&x, 2).unwrap(), &class).unwrap().saved();
        let twin = builder.fit(Rows::from_slice(&padded, 4).unwrap(), &class).unwrap();
        let found = narrow.predictor.widened(4).unwrap().values(wide, here).unwrap();
        for (a, b) in found.iter().zip(twin.machine_values(wide).unwrap()) {
            assert!((a - b).abs() < 1e-6, "{shape:?}: {a} {b}");
        }
        assert!(narrow.predictor.values(wide, here).is_err(), "unless one asks for it, another width is an error");
        assert!(narrow.predictor.widened(1).is_err());
    }
}

/// A small model with some of everything.
fn small() -> SavedModel {
    let (x, class) = rings(24, 3);
    let builder = Classifier::squared_svm().probability(Method::Isotonic).cs([1.0, 2.0]).cv(2);
    let mut saved = builder.fit(Rows::from_slice(&x, 2).unwrap(), &class).unwrap().saved();
    saved.columns = Some(vec!["a".into(), "b".into()]);
    saved
}

fn refused(bytes: &[u8]) -> String {
    match SavedModel::from_bytes(bytes) {
        Err(error @ Error::File { .. }) => error.to_string(),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("a damaged file was read"),
    }
}

#[test]
fn every_truncation_is_refused() {
    let bytes = small().to_bytes().unwrap();
    for length in 0..bytes.len() {
        refused(&bytes[..length]);
    }
    refused(&[&bytes[..], &[0]].concat());
}

#[test]
fn no_flipped_byte_makes_a_panic() {
    let bytes = small().to_bytes().unwrap();
    let mut refusals = 0;
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            match SavedModel::from_bytes(&damaged) {
                Ok(model) => {
                    drop(model.predictor.predict(Rows::from_slice(&[0.5, 0.5], 2).unwrap(), Hardware::default()));
                }
                Err(Error::File { .. }) => refusals += 1,
                Err(other) => panic!("byte {at}: {other:?}"),
            }
        }
    }
    assert!(refusals > bytes.len() / 3, "{refusals} of {}", 3 * bytes.len());
}

/// The file with its header changed by text, and its length adjusted.
fn with_header(bytes: &[u8], change: impl Fn(String) -> String) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(bytes[8..8 + length].to_vec()).unwrap();
    let changed = change(header.clone());
    assert_ne!(changed, header, "nothing was changed");
    [&(changed.len() as u64).to_le_bytes()[..], changed.as_bytes(), &bytes[8 + length..]].concat()
}

#[test]
fn hostile_headers_are_refused_with_their_reason() {
    let bytes = small().to_bytes().unwrap();
    let replaced = |from: &str, to: &str| refused(&with_header(&bytes, |header| header.replacen(from, to, 1)));
    for length in [1_u64 << 63, u64::MAX, 1 << 40, (16 << 20) + 1] {
        let error = refused(&[&length.to_le_bytes()[..], &bytes[8..]].concat());
        assert!(error.contains(&format!("its header would take {length} bytes")), "{error}");
    }
    assert!(refused(b"").contains("at least 8 bytes, not 0"));
    assert!(refused(b"\x89PNG\r\n\x1a\n and so on").contains("this is not a model file"));
    let error = replaced("\\\"format\\\":2", "\\\"format\\\":3");
    assert!(error.contains("it has format 3, written by kernelpath") && error.contains("install a newer"), "{error}");
    let error = replaced("\"kernelpath\":", "\"other\":");
    assert!(error.contains("not a model of kernelpath"), "{error}");
    for (from, to) in [
        ("\"F64\"", "\"F32\""),
        ("\"F64\"", "\"F16\""),
        ("data_offsets\":[0", "data_offsets\":[8"),
        ("data_offsets\":[0", "data_offsets\":[9223372036854775808"),
        ("data_offsets\":[0", "data_offsets\":[18446744073709551615"),
        ("\\\"arrangement\\\":\\\"one against one\\\"", "\\\"arrangement\\\":\\\"two\\\""),
        ("\\\"classes\\\":[0,1,2]", "\\\"classes\\\":[0,1]"),
        ("\\\"classes\\\":[0,1,2]", "\\\"classes\\\":[0,2,1]"),
        ("\\\"classes\\\":[0,1,2]", "\\\"classes\\\":[0,1,1e400]"),
        ("\\\"width\\\":2", "\\\"width\\\":9223372036854775807"),
        ("\\\"width\\\":2", "\\\"width\\\":-2"),
        ("\\\"name\\\":\\\"rbf\\\"", "\\\"name\\\":\\\"cosine\\\""),
        ("\\\"name\\\":\\\"rbf\\\"", "\\\"name\\\":\\\"precomputed\\\""),
        ("\\\"gamma\\\":", "\\\"gamma\\\":-"),
        ("\\\"texts\\\":", "\\\"text\\\":"),
    ] {
        let error = replaced(from, to);
        assert!(error.starts_with("model file: ") && error.len() < 400, "{error}");
    }
    // A document that nests without end, and one that is all brackets.
    let deep = refused(&with_header(&bytes, |header| {
        header.replacen("{\\\"format", &format!("{}{{\\\"format", "[".repeat(1_000_000)), 1)
    }));
    assert!(deep.contains("not JSON"), "{deep}");
}

#[test]
fn numbers_that_are_none_are_refused_where_predictions_need_them() {
    let (x, class) = rings(24, 2);
    let saved = Classifier::svm().cs([1.0]).cv(2).fit(Rows::from_slice(&x, 2).unwrap(), &class).unwrap().saved();
    let bytes = saved.to_bytes().unwrap();
    let coefficient = saved.predictor.coef()[(0, 0)].to_le_bytes();
    let at = bytes.windows(8).position(|window| window == coefficient).unwrap();
    for bad in [f64::NAN, f64::INFINITY] {
        let mut damaged = bytes.clone();
        damaged[at..at + 8].copy_from_slice(&bad.to_le_bytes());
        let error = refused(&damaged);
        assert!(error.contains(&format!("\"coef\" has {bad} at entry 0")), "{error}");
    }
}

#[test]
fn files_are_written_whole_and_errors_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.kpath");
    let model = small();
    model.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes, model.to_bytes().unwrap());
    assert_eq!(SavedModel::load(&path).unwrap().to_bytes().unwrap(), bytes);
    model.save(&path).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file is left");

    let missing = folder.path().join("no").join("model.kpath");
    for error in [model.save(&missing).unwrap_err(), SavedModel::load(&missing).unwrap_err()] {
        assert!(matches!(&error, Error::FileAccess { kind: std::io::ErrorKind::NotFound, .. }), "{error:?}");
        assert!(error.to_string().contains("model.kpath") && !error.to_string().contains(".part"), "{error}");
    }
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = SavedModel::load(&path).unwrap_err().to_string();
    assert!(error.contains("model.kpath") && error.contains("cut off"), "{error}");

    let header = SavedModel::inspect(&path).unwrap();
    assert_eq!((&header["estimator"], &header["arrays"]["coef"]["type"]), (&"KernelSVC".into(), &"float64".into()));
    // A device without end is no model.
    #[cfg(unix)]
    assert!(SavedModel::load("/dev/zero").unwrap_err().to_string().contains("/dev/zero: "));
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("a.kpath"), folder.path().join("b.kpath"));
    small().save(&file).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    small().save(&link).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}
