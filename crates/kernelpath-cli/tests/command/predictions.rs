//! Predictions of the command are those of the Rust API, to the last bit.

use kernelpath::{Bandwidth, Classifier, Hardware, Kernel, Method, Predicted, Quantiles, Rows, SavedModel, Scaling};

use crate::running::{Folder, lines as text, rings, wave};

/// The fields of each line.
fn lines(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split('\t').map(Into::into).collect()).collect()
}

fn numbers(lines: &[Vec<String>], from: usize) -> Vec<f64> {
    lines.iter().flat_map(|line| line[from..].iter().map(|field| field.parse::<f64>().unwrap())).collect()
}

#[track_caller]
fn same(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    assert!(a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits()), "{a:?}\n{b:?}");
}

fn flat<T>(rows: &[([f64; 2], T)]) -> Vec<f64> {
    rows.iter().flat_map(|(x, _)| *x).collect()
}

#[test]
fn a_classifier_predicts_what_the_library_predicts() {
    let folder = Folder::new();
    let options = "--cs 0.1,1,10 --gamma 0.5 --folds 4 --seed 7 --probability --class-weight balanced";
    folder.run(&format!("train three.csv {options} -o m.kpath")).ok();
    let ran = folder.run("predict m.kpath three.csv --proba --decision").ok();
    assert!(ran.err.starts_with("accuracy 0.") || ran.err.starts_with("accuracy 1 "), "{}", ran.err);

    let data = rings(90, 3);
    let (x, labels) = (flat(&data), data.iter().map(|(_, class)| format!("ring {class}")).collect::<Vec<_>>());
    let x = Rows::from_slice(&x, 2).unwrap();
    let builder = Classifier::svm().kernel(Kernel::rbf(Bandwidth::Value(0.5))).cs([0.1, 1.0, 10.0]).cv(4).seed(7);
    let model = builder.probability(Method::Sigmoid).balanced().fit(x, &labels).unwrap();
    let lines = lines(&ran.out);
    assert_eq!(lines.iter().map(|line| line[0].clone()).collect::<Vec<_>>(), model.predict(x).unwrap());
    let (proba, decision) = (model.predict_proba(x).unwrap(), model.decision_function(x).unwrap());
    let both: Vec<f64> = proba.chunks(3).zip(decision.chunks(3)).flat_map(|(p, d)| [p, d].concat()).collect();
    same(&numbers(&lines, 1), &both);
    // Into a file goes the same.
    folder.run("predict m.kpath three.csv out.txt --proba --decision -q --threads 1 --device cpu").ok();
    assert_eq!(folder.read("out.txt"), ran.out);
}

#[test]
fn a_scaled_model_scales_what_it_predicts() {
    let folder = Folder::new();
    folder.run("train rings.libsvm --cs 1 --scale 0:1 --kernel poly --gamma 1 --coef0 1 -o m.kpath").ok();
    let found = lines(&folder.run("predict m.kpath rings.libsvm --decision -q").ok().out);
    let model = SavedModel::load(folder.path("m.kpath")).unwrap();
    let data = rings(80, 2);
    let x = flat(&data);
    let column = |j: usize| data.iter().map(move |(x, _)| x[j]);
    let mut scaling = Scaling { shift: Vec::new(), factor: Vec::new() };
    for j in 0..2 {
        let (least, most) = (column(j).fold(f64::INFINITY, f64::min), column(j).fold(f64::NEG_INFINITY, f64::max));
        scaling.shift.push(least);
        scaling.factor.push(1.0 / (most - least));
    }
    assert_eq!(model.predictor.scaling, Some(scaling.clone()));
    let scaled = scaling.apply(&Rows::from_slice(&x, 2).unwrap()).unwrap();
    let labels: Vec<i32> = data.iter().map(|(_, class)| if *class == 1 { 1 } else { -1 }).collect();
    let shape = kernelpath::Shape::Poly { degree: 3, coef0: 1.0 };
    let kernel = Kernel { shape, bandwidth: Bandwidth::Value(1.0) };
    let direct = Classifier::svm().kernel(kernel).cs([1.0]).fit(scaled.view(), &labels).unwrap();
    same(&numbers(&found, 1), &direct.decision_function(scaled.view()).unwrap());
    let Predicted::Labels(labels) = model.predictor.predict((&x[..], 2), Hardware::default()).unwrap() else {
        panic!("a classifier predicts labels")
    };
    assert_eq!(
        found.iter().map(|line| line[0].clone()).collect::<Vec<_>>(),
        labels.iter().map(ToString::to_string).collect::<Vec<_>>()
    );
}

#[test]
fn quantiles_have_a_column_for_each_level() {
    let folder = Folder::new();
    folder.run("train wave.csv --task quantile --tau 0.9,0.1,0.5 --noncrossing --cs 0.1,1 -o m.kpath").ok();
    let ran = folder.run("predict m.kpath wave.csv").ok();
    assert!(ran.err.contains("mean quantile loss at 0.9 0.0"), "{}", ran.err);
    let data = wave(70);
    let (x, y) = (flat(&data), data.iter().map(|(_, y)| *y).collect::<Vec<_>>());
    let builder = Quantiles::at([0.9, 0.1, 0.5]).noncrossing().cs([0.1, 1.0]);
    let model = builder.fit((&x[..], 2), &y).unwrap();
    same(&numbers(&lines(&ran.out), 0), &model.predict((&x[..], 2)).unwrap());
    assert_eq!(folder.run("predict m.kpath wave.csv --proba").status, 2);
    assert_eq!(folder.run("predict m.kpath wave.csv --decision").status, 2);
}

#[test]
fn a_regression_is_compared_with_its_labels() {
    let folder = Folder::new();
    for (task, expected) in
        [("ridge", "mean squared loss"), ("svr", "mean absolute error"), ("huber", "mean huber loss")]
    {
        folder.run(&format!("train wave.csv --task {task} --cs 10 -o m.kpath")).ok();
        let said = folder.run("predict m.kpath wave.csv").ok().err;
        assert!(said.starts_with(expected) && said.contains(", R² 0.9"), "{said}");
    }
}

#[test]
fn columns_are_those_of_the_model() {
    let folder = Folder::new();
    folder.run("train rings.csv --cs 1 -o m.kpath").ok();
    let all = folder.run("predict m.kpath rings.csv").ok();
    // Without labels there is nothing to compare with.
    let bare = text(folder.read("rings.csv").lines().map(|line| line.rsplit_once(',').unwrap().0.into()));
    folder.write("bare.csv", &bare);
    let ran = folder.run("predict m.kpath bare.csv").ok();
    assert_eq!((&ran.out, &*ran.err), (&all.out, ""));
    folder.write("wide.csv", "1,2,3,4,inner\n");
    assert_eq!(folder.run("predict m.kpath wide.csv").status, 2);
    folder.write("wide.libsvm", "1 1:1 2:1 3:1\n");
    folder.run("train rings.libsvm --cs 1 -o n.kpath").ok();
    folder.write("narrow.libsvm", "7 1:1\n");
    let ran = folder.run("predict n.kpath narrow.libsvm").ok();
    assert!(ran.err.contains("none of the labels"), "{}", ran.err);
    let ran = folder.run("predict m.kpath rings.csv --proba");
    assert!(ran.status == 2 && ran.err.contains("train with --probability"), "{}", ran.err);
    // Label column first, and named.
    let moved = text(
        folder
            .read("rings.csv")
            .lines()
            .map(|line| line.rsplit_once(',').map(|(x, label)| format!("{label},{x}")).unwrap()),
    );
    folder.write("moved.csv", &moved);
    assert_eq!(folder.run("predict m.kpath moved.csv --label kind").ok().out, all.out);
}
