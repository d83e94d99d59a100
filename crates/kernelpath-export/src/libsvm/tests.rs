//! What is written and read again predicts the same; what cannot be expressed, or is damaged, says why.

use kernelpath::{
    Bandwidth, Classifier, Csr, Hardware, Kernel, LowRank, Method, MultiClass, Outputs, Predicted, Regressor, Rows,
    SavedModel, Scaling, Shape, Targets, kernel_matrix,
};

use crate::error::Error;
use crate::libsvm::{from_libsvm, to_libsvm};

/// Points on rings around the origin, with a little noise, and the ring of each.
fn rings(n: usize, classes: usize) -> (Vec<f64>, Vec<usize>) {
    let point = |i: usize| {
        let (t, ring) = (i as f64, (i % classes) as f64);
        let radius = 1.0 + ring + 0.6 * (7.0 * t).sin();
        [radius * (0.37 * t).cos(), radius * (0.37 * t).sin()]
    };
    ((0..n).flat_map(point).collect(), (0..n).map(|i| i % classes).collect())
}

fn kernel(shape: Shape) -> Kernel {
    Kernel { shape, bandwidth: Bandwidth::Value(0.7) }
}

/// Decision values, predictions and probabilities of the model that is written and read again are its own.
fn check_round_trip(model: &SavedModel, x: Rows) {
    let here = Hardware::default();
    let text = to_libsvm(model).unwrap();
    let read = from_libsvm(text.as_bytes()).unwrap();
    assert_eq!(to_libsvm(&read).unwrap().lines().count(), text.lines().count(), "{text}");
    let (own, again) = (&model.predictor, &read.predictor);
    assert_eq!(own.width(), again.width());
    let close = |a: Vec<f64>, b: Vec<f64>| {
        assert_eq!(a.len(), b.len());
        let size = a.iter().fold(1.0_f64, |size, a| size.max(a.abs()));
        let worst = a.iter().zip(&b).fold(0.0_f64, |worst, (a, b)| worst.max((a - b).abs()));
        assert!(worst <= 1e-11 * size, "{worst} of {size}");
    };
    close(own.values(x, here).unwrap(), again.values(x, here).unwrap());
    close(own.decision_function(x, here).unwrap(), again.decision_function(x, here).unwrap());
    match (own.predict(x, here).unwrap(), again.predict(x, here).unwrap()) {
        (Predicted::Labels(a), Predicted::Labels(b)) => assert_eq!(a, b),
        (Predicted::Numbers { values: a, .. }, Predicted::Numbers { values: b, .. }) => close(a, b),
        _ => panic!("labels became numbers"),
    }
    if let Ok(p) = own.predict_proba(x, here) {
        close(p, again.predict_proba(x, here).unwrap());
    }
    // What is read is a model like any other.
    SavedModel::from_bytes(&read.to_bytes().unwrap()).unwrap();
}

#[test]
fn classifiers_come_back() {
    let shapes = [Shape::Rbf, Shape::Linear, Shape::Poly { degree: 3, coef0: 0.5 }, Shape::Sigmoid { coef0: -0.3 }];
    for classes in [2, 3, 4] {
        let (x, ring) = rings(80, classes);
        let rows = Rows::from_slice(&x, 2).unwrap();
        let labels: Vec<i64> = ring.iter().map(|ring| [7, -3, 0, 900][*ring]).collect();
        for shape in shapes {
            let builder = Classifier::svm().kernel(kernel(shape)).cs([0.3, 3.0]).cv(3);
            let model = builder.clone().probability(Method::Sigmoid).fit(rows, &labels).unwrap();
            check_round_trip(&model.saved(), rows);
            let model = builder.low_rank(LowRank::k_means(12)).fit(rows, &labels).unwrap();
            check_round_trip(&model.saved(), rows);
        }
    }
}

#[test]
fn regressors_precomputed_kernels_and_sparse_rows_come_back() {
    let (x, ring) = rings(60, 3);
    let rows = Rows::from_slice(&x, 2).unwrap();
    let y: Vec<f64> = x.chunks(2).map(|row| row[0].sin() + 0.2 * row[1]).collect();
    let model = Regressor::svr(0.1).cs([1.0, 10.0]).cv(3).fit(rows, &y).unwrap();
    check_round_trip(&model.saved(), rows);

    let rbf = kernelpath::KernelFn::new(Shape::Rbf, 0.7).unwrap();
    let k = kernel_matrix(&rows, &rows, &rbf, 1, &kernelpath::Control::default()).unwrap();
    let k = Rows::from_slice(&k, 60).unwrap();
    // The last row does not count, so that it is no support vector.
    let weights: Vec<f64> = (0..60).map(|i| f64::from(u8::from(i < 59))).collect();
    let builder = Classifier::svm().kernel(kernel(Shape::Precomputed)).weights(weights).cs([1.0, 10.0]).cv(3);
    let model = builder.fit(k, &ring).unwrap();
    check_round_trip(&model.saved(), k);

    // Three entries a row; the last of a million columns has none.
    let starts: Vec<usize> = (0..=60).map(|i| 3 * i).collect();
    let columns: Vec<usize> = (0..60).flat_map(|i| [i % 5, 40 + i, 900_000 + i % 7]).collect();
    let values: Vec<f64> = (0..180).map(|i| (f64::from(i) * 0.7).sin() / 3.0).collect();
    let sparse = Rows::Csr(Csr::new(1_000_000, &starts[..], &columns[..], &values[..]).unwrap());
    let model = Classifier::svm().kernel(kernel(Shape::Rbf)).cs([1.0, 10.0]).cv(3).fit(sparse, &ring).unwrap();
    check_round_trip(&model.saved(), sparse);
    let read = from_libsvm(to_libsvm(&model.saved()).unwrap().as_bytes()).unwrap();
    assert!(matches!(read.predictor.vectors(), Rows::Csr(_)));
}

#[test]
fn what_libsvm_cannot_express_is_refused() {
    let (x, ring) = rings(60, 3);
    let rows = Rows::from_slice(&x, 2).unwrap();
    let two: Vec<usize> = ring.iter().map(|ring| ring.min(&1)).copied().collect();
    let y: Vec<f64> = x.chunks(2).map(|row| row[0]).collect();
    let both: Vec<f64> = y.iter().flat_map(|y| [*y, 1.0 - y]).collect();
    let both = Targets::Columns(faer::MatRef::from_row_major_slice(&both, 60, 2));
    let refused = |model: &SavedModel, why: &str, hint: &str| {
        let error = to_libsvm(model).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }));
        let text = error.to_string();
        assert!(text.contains(why) && text.contains(hint), "{text}");
        assert!(text.starts_with("a LIBSVM model file cannot express this model: "), "{text}");
    };
    let svm = || Classifier::svm().cs([1.0]).cv(3);
    for shape in [Shape::Laplacian, Shape::Matern32, Shape::Matern52] {
        let model = svm().kernel(kernel(shape)).fit(rows, &two).unwrap();
        refused(&model.saved(), shape.name(), "ONNX");
    }
    let model = svm().multi_class(MultiClass::OneVsRest).fit(rows, &ring).unwrap();
    refused(&model.saved(), "one class from all others", "multi_class=\"ovo\"");
    let model = Classifier::multinomial().cs([1.0]).cv(3).fit(rows, &ring).unwrap();
    refused(&model.saved(), "\"multinomial\"", "KernelSVC");
    for (builder, loss) in
        [(Classifier::squared_svm(), "squared_hinge"), (Classifier::logistic(), "logistic"), (Classifier::dwd(), "dwd")]
    {
        let model = builder.cs([1.0]).cv(3).fit(rows, &two).unwrap();
        refused(&model.saved(), loss, "KernelSVC");
    }
    for (builder, loss) in
        [(Regressor::ridge(), "squared"), (Regressor::huber(0.3), "huber"), (Regressor::expectile(0.8), "expectile")]
    {
        refused(&builder.cs([1.0]).cv(3).fit(rows, &y).unwrap().saved(), loss, "KernelSVR");
    }
    refused(&Regressor::svr(0.1).cs([1.0]).cv(3).fit(rows, both).unwrap().saved(), "2 targets", "a target");
    for method in [Method::Isotonic, Method::Temperature] {
        let model = svm().probability(method).fit(rows, &two).unwrap();
        refused(&model.saved(), method.name(), "probability=\"sigmoid\"");
    }
    let texts: Vec<String> = two.iter().map(|class| format!("class {class}")).collect();
    refused(&svm().fit(rows, &texts).unwrap().saved(), "\"class 0\" is no integer", "integers");
    let truths: Vec<bool> = two.iter().map(|class| *class == 1).collect();
    refused(&svm().fit(rows, &truths).unwrap().saved(), "false is no integer", "integers");
    let large: Vec<i64> = two.iter().map(|class| *class as i64 * 3_000_000_000).collect();
    refused(&svm().fit(rows, &large).unwrap().saved(), "3000000000", "32 bits");
    let mut model = svm().fit(rows, &two).unwrap().saved();
    model.predictor.scaling = Some(Scaling { shift: vec![0.0; 2], factor: vec![2.0; 2] });
    refused(&model, "scales the columns", "scale the data first");
}

/// A model of two classes, as `svm-train` writes it: −1 comes second, and values of the first are positive.
const TWO: &str = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 3\nrho 0.25\nlabel 4 -1\nprobA -2\n\
                   probB 0.5\nnr_sv 1 2\nSV\n1 1:1 3:2 \n-0.5 2:-1 \n-0.5 3:1e-1 \n";

#[test]
fn classes_are_put_in_order() {
    let model = from_libsvm(TWO.as_bytes()).unwrap();
    let x: [f64; 6] = [1.0, 0.0, 2.0, 0.5, 0.5, 0.5];
    let k = |v: [f64; 3], x: &[f64]| (-0.5 * (0..3).map(|j| (v[j] - x[j]).powi(2)).sum::<f64>()).exp();
    let f: Vec<f64> = (x.chunks(3))
        .map(|x| k([1.0, 0.0, 2.0], x) - 0.5 * k([0.0, -1.0, 0.0], x) - 0.5 * k([0.0, 0.0, 0.1], x) - 0.25)
        .collect();
    let rows = Rows::from_slice(&x, 3).unwrap();
    let found = model.predictor.values(rows, Hardware::default()).unwrap();
    assert!(found.iter().zip(&f).all(|(a, b)| (a - b).abs() < 1e-14), "{found:?} {f:?}");
    let p = model.predictor.predict_proba(rows, Hardware::default()).unwrap();
    assert!((p[1] - 1.0 / (1.0 + (-2.0 * f[0] + 0.5).exp())).abs() < 1e-14);

    // With the classes the other way round, the values turn their sign.
    let turned = from_libsvm(TWO.replace("4 -1", "-1 4").as_bytes()).unwrap();
    let again = turned.predictor.values(rows, Hardware::default()).unwrap();
    assert!(again.iter().zip(&f).all(|(a, b)| (a + b).abs() < 1e-14));
    let q = turned.predictor.predict_proba(rows, Hardware::default()).unwrap();
    assert!((q[0] - p[1]).abs() < 1e-14);
    let Outputs::Classes { labels, .. } = &turned.predictor.outputs else { panic!("classes") };
    assert_eq!(labels.iter().map(ToString::to_string).collect::<Vec<_>>(), ["-1", "4"]);
    // nu_svc differs in how it was trained only.
    from_libsvm(TWO.replace("c_svc", "nu_svc").replace('\n', "\r\n").as_bytes()).unwrap();
}

#[test]
fn malformed_lines_are_named() {
    let cases = [
        ("c_svc", "c_svm", 1, "no type"),
        ("c_svc", "one_class", 1, "does not have"),
        ("rbf", "laplacian", 2, "no kernel"),
        ("gamma 0.5", "gamma nan", 2, "gamma"),
        ("gamma 0.5", "gamma -0.5", 2, "gamma must be"),
        ("gamma 0.5", "gamma 0.5 0.5", 3, "takes one value"),
        ("gamma 0.5", "gama 0.5", 3, "\"gama\" is no word"),
        ("gamma 0.5\n", "", 10, "no line \"gamma\""),
        ("gamma 0.5", "nr_class 2", 4, "a second time"),
        ("nr_class 2", "nr_class 1", 4, "1 classes"),
        ("nr_class 2", "nr_class 3", 7, "2 labels"),
        ("total_sv 3", "total_sv 18446744073709551616", 5, "is not a number"),
        ("total_sv 3", "total_sv 9223372036854775808", 10, "9223372036854775808 support vectors"),
        ("total_sv 3", "total_sv 2", 10, "2 support vectors"),
        ("rho 0.25", "rho 0.25 1", 6, "2 values of rho"),
        ("rho 0.25", "rho inf", 6, "not a finite number"),
        ("label 4 -1", "label 4 4", 7, "twice"),
        ("label 4 -1", "label 4 0.5", 7, "\"0.5\" is not an integer"),
        ("probA -2\n", "", 8, "missing"),
        ("probA -2", "probA", 8, "0 values"),
        ("nr_sv 1 2", "nr_sv 1 18446744073709551615", 10, "3 support vectors"),
        ("SV\n", "", 11, "no word"),
        ("SV\n1 1:1", "SV\n1 1=1", 12, "\"1=1\" is not of the form"),
        ("1:1 3:2", "1:1 1:2", 12, "does not rise"),
        ("1:1 3:2", "0:1 3:2", 12, "index 0"),
        ("1:1 3:2", "1:1 4294967296:2", 12, "4294967296"),
        ("1:1 3:2", "1:1 3:x", 12, "\"x\" is not a finite number"),
        ("-0.5 2:-1", "2:-1", 13, "\"2:-1\" is not a finite number"),
        ("-0.5 3:1e-1 \n", "", 14, "ends after 2 of 3"),
        ("-0.5 3:1e-1 \n", "1 1:1\n1 1:1\n", 15, "beyond the 3"),
    ];
    for (from, to, line, problem) in cases {
        assert!(TWO.contains(from), "{from}");
        let text = TWO.replacen(from, to, 1);
        match from_libsvm(text.as_bytes()) {
            Err(Error::Text { line: found, problem: text }) => {
                assert!(found == line && text.contains(problem), "{from:?} -> {to:?}: {found}: {text}");
            }
            other => panic!("{from:?} -> {to:?}: {other:?}"),
        }
    }
    // Every beginning of the text, and any byte turned, is read or refused.
    for end in 0..TWO.len() - 1 {
        let _ = from_libsvm(&TWO.as_bytes()[..end]);
    }
    for (at, byte) in (0..TWO.len()).flat_map(|at| [0_u8, b'\n', b'9', 0xff].map(|byte| (at, byte))) {
        let mut bytes = TWO.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = from_libsvm(&bytes);
    }
}

#[test]
fn a_small_file_cannot_ask_for_much_memory() {
    // 1500 classes and as many vectors: 1.1 million machines, 1.7 billion coefficients, in a file of a few MB.
    let classes = 1500;
    let machines = classes * (classes - 1) / 2;
    let labels: String = (0..classes).flat_map(|label| [" ".to_string(), label.to_string()]).collect();
    let text = format!(
        "svm_type c_svc\nkernel_type linear\nnr_class {classes}\ntotal_sv {classes}\nrho{}\nlabel{labels}\nnr_sv{}\nSV\n{}",
        " 0".repeat(machines),
        " 1".repeat(classes),
        format!("{}1:1\n", "1 ".repeat(classes - 1)).repeat(classes),
    );
    let error = from_libsvm(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("1500 vectors for 1124250 pairs of classes are too many"), "{error}");
}
