//! `verify`, and what `inspect` and `report` say of proofs.

use std::fs;

use kernelpath::{Predictor, RowsBuf, SavedModel};

use crate::running::Folder;

/// Writes the model of a file with its coefficients times `factor` and its γ times `gamma`.
fn forge(folder: &Folder, from: &str, to: &str, factor: f64, gamma: f64) {
    let model = SavedModel::load(folder.path(from)).unwrap();
    let own = &model.predictor;
    let (mut kernel, mut coef) = (own.kernel(), own.coef().to_owned());
    kernel.gamma *= gamma;
    coef.col_iter_mut().for_each(|column| column.iter_mut().for_each(|c| *c *= factor));
    let vectors = (RowsBuf::copy_of(&own.vectors()), own.support().to_vec());
    let (width, intercepts, outputs) = (own.width(), own.intercepts().to_vec(), own.outputs.clone());
    let mut predictor = Predictor::new(kernel, vectors, width, coef, intercepts, outputs).unwrap();
    predictor.scaling.clone_from(&own.scaling);
    SavedModel { predictor, ..model.clone() }.save(folder.path(to)).unwrap();
}

#[test]
fn every_task_is_verified_from_its_file() {
    let folder = Folder::new();
    for (data, options) in [
        ("rings.csv", "--cs 1,10"),
        ("rings.csv", "--cs 1 --class-weight balanced --scale standard"),
        ("rings.csv", "--cs 1 --class-weight inner=3 --task logistic"),
        ("three.csv", "--cs 1 --multi-class ovr --class-weight balanced"),
        ("three.csv", "--cs 1,10 --task dwd"),
        ("three.csv", "--cs 1 --task logistic --multi-class multinomial"),
        ("rings.libsvm", "--cs 1 --scale 0:1"),
        ("wave.csv", "--task quantile --tau 0.1,0.9 --n-cs 4"),
        ("wave.csv", "--task svr --n-cs 4"),
        ("wave.csv", "--task huber --n-cs 4 --scale 0:1"),
        ("rings.csv", "--low-rank --n-landmarks 30 --cs 1"),
        ("rings.csv", "--kernel linear --cs 1"),
    ] {
        folder.run(&format!("train {data} {options} -q -o m.kpath")).ok();
        let ran = folder.run(&format!("verify m.kpath {data}")).ok();
        assert!(ran.out.contains("verdict") && ran.out.contains("verified: largest gap"), "{options}: {}", ran.out);
        let found = folder.run(&format!("verify m.kpath {data} --json")).ok().json();
        assert_eq!(found["verdict"], "verified", "{options}");
    }
}

#[test]
fn the_same_rows_of_another_format_are_those_of_the_fit() {
    let folder = Folder::new();
    folder.run("train wave.libsvm --task ridge --n-cs 3 -q -o m.kpath").ok();
    folder.run("verify m.kpath wave.csv").ok();
}

#[test]
fn a_forged_file_is_found_out() {
    let folder = Folder::new();
    folder.run("train rings.csv --cs 1,10 -q -o m.kpath").ok();
    for (name, factor, gamma) in [("a.kpath", -3.7, 1.0), ("b.kpath", 1.0, 2.0)] {
        forge(&folder, "m.kpath", name, factor, gamma);
        let ran = folder.run(&format!("verify {name} rings.csv"));
        assert_eq!(ran.status, 3, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("verdict") && ran.out.contains("failed: largest gap"), "{}", ran.out);
        let ran = folder.run(&format!("verify {name} rings.csv --json"));
        assert_eq!((ran.status, &ran.json()["verdict"]), (3, &"failed".into()));
        let ran = folder.run(&format!("inspect {name}")).ok();
        assert!(ran.out.contains("as recorded in the file") && ran.out.contains("training rows"), "{}", ran.out);
        let proof = |words: &str| {
            folder.run(&format!("report {name} {words} -o page.html")).ok();
            let page = folder.read("page.html");
            page.split("data-proof=\"").nth(1).unwrap().split('"').next().unwrap().to_string()
        };
        assert_eq!((proof(""), proof("rings.csv")), ("recorded".into(), "failed".into()));
    }
    folder.run("report m.kpath rings.csv -o page.html").ok();
    assert!(folder.read("page.html").contains("data-proof=\"verified\""));
}

#[test]
fn other_rows_give_no_verdict() {
    let folder = Folder::new();
    folder.run("train rings.csv --cs 1 -q -o m.kpath").ok();
    let text = folder.read("rings.csv");
    let (head, rows) = text.split_once('\n').unwrap();
    let mut lines: Vec<&str> = rows.lines().collect();
    lines.swap(0, 1);
    folder.write("swapped.csv", &format!("{head}\n{}\n", lines.join("\n")));
    folder.write("fewer.csv", &format!("{head}\n{}\n", lines[2..].join("\n")));
    for (data, what) in [("swapped.csv", "their values and their labels"), ("fewer.csv", "80 rows, and these are 78")] {
        let ran = folder.run(&format!("verify m.kpath {data}"));
        assert_eq!((ran.status, &*ran.out), (2, ""), "{}", ran.err);
        assert!(ran.err.contains("not the training rows") && ran.err.contains(what), "{}", ran.err);
        assert!(ran.err.contains("no verdict"), "{}", ran.err);
        let ran = folder.run(&format!("verify m.kpath {data} --json"));
        assert_eq!((ran.status, &ran.json()["verdict"]), (2, &"other-rows".into()));
        folder.run(&format!("report m.kpath {data} -o page.html")).ok();
        assert!(folder.read("page.html").contains("data-proof=\"other-rows\""));
    }
}

#[test]
fn the_weights_of_the_fit_are_part_of_the_proof() {
    let folder = Folder::new();
    let text = folder.read("rings.csv");
    let mut lines = text.lines();
    let mut weighted = format!("w,{}\n", lines.next().unwrap());
    let mut weights = String::new();
    for (i, line) in lines.enumerate() {
        weighted.extend([format!("{},", i % 3), format!("{line}\n")]);
        weights.extend([(i % 3).to_string(), "\n".into()]);
    }
    folder.write("weighted.csv", &weighted);
    folder.write("weights.txt", &weights);
    folder.write("bad.txt", "1 2 -3");
    folder.run("train weighted.csv --weight w --cs 1 -q -o m.kpath").ok();
    for words in ["weighted.csv --weight w", "weighted.csv --weights w", "rings.csv --weights weights.txt"] {
        folder.run(&format!("verify m.kpath {words}")).ok();
        folder.run(&format!("report m.kpath {words} -o page.html")).ok();
        assert!(folder.read("page.html").contains("data-proof=\"verified\""), "{words}");
    }
    let ran = folder.run("verify m.kpath rings.csv");
    assert!(ran.status == 2 && ran.err.contains("their weights are not those of the fit"), "{}", ran.err);
    let ran = folder.run("verify m.kpath rings.csv --weights bad.txt");
    assert!(ran.status == 2 && ran.err.contains("weight 2 is \"-3\""), "{}", ran.err);
}

#[test]
fn what_has_no_objective_has_no_verdict() {
    let folder = Folder::new();
    folder.run("train rings.libsvm --cs 1 -q -o m.model").ok();
    let ran = folder.run("verify m.model rings.libsvm");
    assert!(ran.status == 2 && ran.err.contains("states no C") && ran.err.contains("no verdict"), "{}", ran.err);
    folder.run("train rings.csv --cs 1 -q -o m.kpath").ok();
    let ran = folder.run("verify m.kpath rings.csv --tol 1e-30");
    assert_eq!(ran.status, 3, "{}{}", ran.out, ran.err);
    fs::write(folder.path("m.kpath"), b"").unwrap();
    assert_eq!(folder.run("verify m.kpath rings.csv").status, 2);
}
