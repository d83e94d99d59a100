//! LIBSVM's letters, against LIBSVM's programs where these are installed.

use crate::running::{Folder, has_libsvm, lines, original};
use std::fmt::Write as _;

/// The number behind a name in a text.
fn number_after(text: &str, name: &str) -> f64 {
    let rest = text.split(name).nth(1).unwrap_or_else(|| panic!("{name} is not in {text}"));
    let end = rest.find(|c: char| !(c.is_ascii_digit() || ".-+e".contains(c))).unwrap_or(rest.len());
    rest[..end].parse().unwrap()
}

#[test]
fn messages_are_those_that_tools_parse() {
    let folder = Folder::new();
    let said = folder.run("svm-train -s 0 -t 2 -c 1 -g 0.5 -v 5 -b 1 -w1 2 -q rings.libsvm").ok().out;
    let accuracy = number_after(&said, "Cross Validation Accuracy = ");
    assert!(said.ends_with("%\n") && said.lines().count() == 1 && (50.0..=100.0).contains(&accuracy), "{said}");
    let said = folder.run("svm-train -s 3 -c 10 -p 0.05 -v 5 -q wave.libsvm").ok().out;
    assert!(number_after(&said, "Cross Validation Mean squared error = ") < 0.1);
    assert!(number_after(&said, "Cross Validation Squared correlation coefficient = ") > 0.8);
    assert!(!folder.files().contains(&"wave.libsvm.model".to_string()));

    let said = folder.run("svm-train -c 1 rings.libsvm").ok().out;
    assert!(said.contains("optimization finished, #iter = ") && said.contains("\nTotal nSV = "), "{said}");
    assert!(folder.read("rings.libsvm.model").starts_with("svm_type c_svc\nkernel_type rbf\ngamma 0.5\n"));
    assert_eq!(folder.run("svm-predict rings.libsvm rings.libsvm.model out -q").status, 2, "options come first");
    let said = folder.run("svm-predict rings.libsvm rings.libsvm.model out").ok().out;
    assert!(said.starts_with("Accuracy = ") && said.ends_with("/80) (classification)\n"), "{said}");
    assert_eq!(folder.run("svm-predict -q rings.libsvm rings.libsvm.model out").ok().out, "");
    assert_eq!(folder.read("out").lines().count(), 80);

    let ran = folder.run("svm-train -v 1000 -c 1 -q rings.libsvm").ok();
    assert!(ran.out.starts_with("Cross Validation Accuracy = "), "{}", ran.out);
    assert!(ran.err.starts_with("WARNING: # folds > # data. Will use # folds = # data instead"), "{}", ran.err);
    // Without -c it is chosen.
    let said = folder.run("svm-train rings.libsvm chosen.kpath").ok().out;
    assert!(said.contains("chosen by cross validation"), "{said}");
    assert!(folder.run("svm-predict rings.libsvm chosen.kpath out").ok().out.starts_with("Accuracy = "));
    let said = folder.run("svm-train -c 1 -w9 2 -q rings.libsvm").ok().err;
    assert_eq!(said, "WARNING: class label 9 specified in weight is not found\n");
    assert!(folder.run("svm-train -c 1 -b 1 -s 3 -q wave.libsvm").ok().err.contains("-b 1 is for C-SVC"));
}

#[test]
fn what_is_not_solved_here_is_refused() {
    let folder = Folder::new();
    for (words, message) in [
        ("svm-train -s 1 rings.libsvm", "-s 1: nu-SVC is not solved here; use -s 0 (C-SVC)"),
        ("svm-train -n 0.5 -s 1 rings.libsvm", "-s 1: nu-SVC is not solved here; use -s 0 (C-SVC)"),
        ("svm-train -s 2 rings.libsvm", "one-class"),
        ("svm-train -s 4 wave.libsvm", "-s 4: nu-SVR is not solved here; use -s 3 (epsilon-SVR)"),
        ("svm-train -n 0.2 rings.libsvm", "nu"),
        ("svm-train -c 0 rings.libsvm", "C <= 0"),
        ("svm-train -v 1 rings.libsvm", "n must >= 2"),
        ("svm-train -x 1 rings.libsvm", "Unknown option: -x"),
        ("svm-train -t 4 -c 1 rings.libsvm", "numbered from 1 on"),
        ("svm-train -c 1 wave.libsvm", "which is no class"),
        ("svm-predict rings.libsvm", "three files"),
    ] {
        let ran = folder.run(words);
        assert!(ran.status == 2 && ran.err.contains(message), "{words}: {} {}", ran.status, ran.err);
    }
    let ran = folder.run("svm-train");
    assert!(ran.status == 1 && ran.out.starts_with("Usage: "), "{}", ran.out);
    assert!(folder.run("svm-predict --help").ok().out.starts_with("Usage: "));
    folder.run("svm-train -c 1 -q rings.libsvm m").ok();
    let ran = folder.run("svm-predict -b 1 rings.libsvm m out");
    assert!(ran.status == 1 && ran.err.contains("does not support probabiliy estimates"), "{}", ran.err);
}

#[test]
fn models_are_those_of_the_original() {
    if !has_libsvm() {
        return;
    }
    let folder = Folder::new();
    let here = folder.0.path();
    for (data, letters) in [
        ("rings.libsvm", "-c 1 -g 0.5"),
        ("three.libsvm", "-c 4 -g 0.3 -w2 3 -e 0.0001"),
        ("three.libsvm", "-c 1 -t 1 -g 1 -r 1 -d 2"),
        ("rings.libsvm", "-c 0.5 -t 0"),
    ] {
        // Tighter than usual, since LIBSVM's tolerance is what sets them apart.
        original("svm-train", here, &format!("-q -e 1e-6 {letters} {data} theirs"));
        folder.run(&format!("svm-train -q {letters} {data} ours")).ok();
        let said = original("svm-predict", here, &format!("{data} theirs a")).out;
        // Each program predicts with each model.
        for (model, out) in [("theirs", "b"), ("ours", "c")] {
            assert_eq!(folder.run(&format!("svm-predict {data} {model} {out}")).ok().out, said, "{letters}");
            assert_eq!(folder.read(out), folder.read("a"), "{letters}");
        }
        original("svm-predict", here, &format!("{data} ours d"));
        assert_eq!(folder.read("d"), folder.read("a"), "{letters}");
        assert_eq!(folder.run(&format!("predict theirs {data} --format libsvm")).ok().out, folder.read("a"));
    }
    let close = |a: &str, b: &str, tolerance: f64| {
        let numbers = |name: &str| folder.read(name).lines().map(|line| line.parse().unwrap()).collect::<Vec<f64>>();
        let worst = numbers(a).iter().zip(numbers(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < tolerance, "{a} and {b} differ by {worst}");
    };
    original("svm-train", here, "-q -s 3 -c 2 -p 0.05 -e 1e-6 wave.libsvm theirs");
    folder.run("svm-train -q -s 3 -c 2 -p 0.05 wave.libsvm ours").ok();
    let said = original("svm-predict", here, "wave.libsvm theirs a").out;
    assert_eq!(folder.run("svm-predict wave.libsvm theirs b").ok().out, said);
    folder.run("svm-predict wave.libsvm ours c").ok();
    original("svm-predict", here, "wave.libsvm ours d");
    close("a", "b", 1e-12);
    close("c", "d", 1e-12);
    close("a", "c", 1e-3);
}

#[test]
fn probabilities_have_the_file_of_the_original() {
    if !has_libsvm() {
        return;
    }
    let folder = Folder::new();
    folder.run("svm-train -q -b 1 -c 1 rings.libsvm ours").ok();
    let said = original("svm-predict", folder.0.path(), "-b 1 rings.libsvm ours a").out;
    assert_eq!(folder.run("svm-predict -b 1 rings.libsvm ours b").ok().out, said);
    let (a, b) = (folder.read("a"), folder.read("b"));
    let (mut a, mut b) = (a.lines(), b.lines());
    assert_eq!(a.next(), b.next());
    for (a, b) in a.zip(b) {
        let (a, b): (Vec<&str>, Vec<&str>) = (a.split(' ').collect(), b.split(' ').collect());
        assert_eq!((a[0], a.len()), (b[0], 3));
        for (a, b) in a[1..].iter().zip(&b[1..]) {
            assert!((a.parse::<f64>().unwrap() - b.parse::<f64>().unwrap()).abs() < 2e-6, "{a} {b}");
        }
    }
    // The order of classes is that of the model file.
    original("svm-train", folder.0.path(), "-q -b 1 -c 1 three.libsvm theirs");
    original("svm-predict", folder.0.path(), "-b 1 three.libsvm theirs a");
    folder.run("svm-predict -b 1 three.libsvm theirs b").ok();
    assert_eq!(folder.read("a").lines().next(), folder.read("b").lines().next());
    let said = folder.run("svm-predict three.libsvm theirs b").ok().out;
    assert!(said.starts_with("Model supports probability estimates, but disabled in prediction.\n"), "{said}");
}

#[test]
fn cross_validation_is_as_good_as_the_original_one() {
    if !has_libsvm() {
        return;
    }
    let folder = Folder::new();
    let name = "Cross Validation Accuracy = ";
    let theirs = number_after(&original("svm-train", folder.0.path(), "-v 5 -c 1 -g 0.5 three.libsvm").out, name);
    let ours = number_after(&folder.run("svm-train -v 5 -c 1 -g 0.5 three.libsvm").ok().out, name);
    // The folds are others.
    assert!((theirs - ours).abs() < 10.0, "{ours} here, {theirs} there");
}

#[test]
fn test_rows_may_have_columns_that_the_model_has_not_seen() {
    if !has_libsvm() {
        return;
    }
    let folder = Folder::new();
    folder.write("wide.libsvm", "1 1:0.5 2:0.5 3:1\n-1 1:0.1\n1 2:2 5:0.25\n");
    original("svm-train", folder.0.path(), "-q -s 3 -c 1 wave.libsvm m");
    let said = original("svm-predict", folder.0.path(), "wide.libsvm m a").out;
    assert_eq!(folder.run("svm-predict wide.libsvm m b").ok().out, said);
    for (a, b) in folder.read("a").lines().zip(folder.read("b").lines()) {
        assert!((a.parse::<f64>().unwrap() - b.parse::<f64>().unwrap()).abs() < 1e-12, "{a} {b}");
    }
}

#[test]
fn precomputed_kernels_have_numbered_rows() {
    let folder = Folder::new();
    let text = folder.read("rings.libsvm");
    let rows: Vec<(f64, Vec<f64>)> = text
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let label = words.next().unwrap().parse().unwrap();
            (label, words.map(|word| word.split_once(':').unwrap().1.parse().unwrap()).collect())
        })
        .collect();
    let mut matrix = String::new();
    for (i, (label, x)) in rows.iter().enumerate() {
        let _ = write!(matrix, "{label} 0:{}", i + 1);
        for (j, (_, z)) in rows.iter().enumerate() {
            let distance: f64 = x.iter().zip(z).map(|(x, z)| (x - z) * (x - z)).sum();
            let _ = write!(matrix, " {}:{:?}", j + 1, (-0.5 * distance).exp());
        }
        matrix.push('\n');
    }
    folder.write("matrix", &matrix);
    folder.run("svm-train -q -t 4 -c 1 matrix m").ok();
    folder.run("svm-predict matrix m a").ok();
    folder.run("svm-train -q -g 0.5 -c 1 rings.libsvm n").ok();
    folder.run("svm-predict rings.libsvm n b").ok();
    assert_eq!(folder.read("a"), folder.read("b"));
    if has_libsvm() {
        original("svm-predict", folder.0.path(), "matrix m c");
        assert_eq!(folder.read("c"), folder.read("b"));
    }
}

/// The numbers behind a name, in their order.
fn all_after(text: &str, name: &str) -> Vec<f64> {
    text.match_indices(name).map(|(at, _)| number_after(&text[at..], name)).collect()
}

#[test]
fn rho_has_the_sign_of_the_original() {
    if !has_libsvm() {
        return;
    }
    let folder = Folder::new();
    let here = folder.0.path();
    let rings = folder.read("rings.libsvm");
    assert!(rings.starts_with("-1 "), "the first label is the negative one");
    let turned = |labels: [&str; 2]| rings.replace("-1 ", &format!("{} ", labels[0])).replace("+1 ", labels[1]);
    folder.write("other.libsvm", &turned(["1", "2 "]));
    folder.write("swapped.libsvm", &turned(["3", "-2 "]));
    // The positive class comes first.
    folder.write("positive.libsvm", rings.split_once('\n').unwrap().1);
    // Classes in another order than that of their numbers.
    let three = folder.read("three.libsvm");
    let (first, rest) = three.split_once('\n').unwrap();
    folder.write("moved.libsvm", &format!("{rest}{first}\n"));
    folder.write("late.libsvm", &lines(three.lines().rev().map(String::from)));
    for data in ["rings", "other", "swapped", "positive", "three", "moved", "late", "wave"] {
        let kind = if data == "wave" { "-s 3 -p 0.05" } else { "-s 0" };
        let theirs = original("svm-train", here, &format!("{kind} -c 2 -g 0.5 -e 1e-6 {data}.libsvm theirs")).out;
        let ours = folder.run(&format!("svm-train {kind} -c 2 -g 0.5 {data}.libsvm ours")).ok().out;
        for name in ["rho = ", "obj = "] {
            let (theirs, ours) = (all_after(&theirs, name), all_after(&ours, name));
            assert!(!theirs.is_empty() && theirs.len() == ours.len(), "{data}: {theirs:?} {ours:?}");
            for (a, b) in theirs.iter().zip(&ours) {
                assert!((a - b).abs() < 2e-3 * a.abs().max(1.0), "{data}, {name}: {theirs:?} {ours:?}");
            }
        }
    }
}

#[test]
fn what_is_not_proved_has_its_own_exit_status() {
    let folder = Folder::new();
    let ran = folder.run("svm-train -t 3 -g 1 -c 1 rings.libsvm m");
    assert_eq!(ran.status, 3, "{}", ran.err);
    assert!(ran.err.contains("WARNING: not proved to be solved to the tolerance"), "{}", ran.err);
    for text in [&ran.out, &ran.err] {
        assert!(!text.to_lowercase().contains("nan"), "{text}");
    }
    // It is written all the same.
    folder.run("svm-predict rings.libsvm m out").ok();
    if has_libsvm() {
        let theirs = original("svm-train", folder.0.path(), "-t 3 -g 0.01 -c 1 -e 1e-6 rings.libsvm m").out;
        let ours = folder.run("svm-train -t 3 -g 0.01 -c 1 rings.libsvm m").out;
        let (theirs, ours) = (number_after(&theirs, "obj = "), number_after(&ours, "obj = "));
        assert!((theirs - ours).abs() < 1e-2 * theirs.abs(), "{theirs} {ours}");
    }
}
