//! Models from pipes, and outputs that are what one reads.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::running::{Folder, Ran};

#[test]
fn models_come_from_standard_input_and_pipes() {
    let folder = Folder::new();
    folder.run("train rings.libsvm --cs 1 --gamma 0.5 -q -o m.kpath").ok();
    folder.run("convert m.kpath m.model").ok();
    let expected = folder.run("predict m.kpath rings.libsvm -q").ok().out;
    for name in ["m.kpath", "m.model"] {
        let bytes = fs::read(folder.path(name)).unwrap();
        assert_eq!(folder.run_on("predict - rings.libsvm -q", &bytes).ok().out, expected);
        folder.run_on("svm-predict -q rings.libsvm - out", &bytes).ok();
        assert_eq!(folder.read("out"), expected);
        folder.run_on("convert - again.kpath", &bytes).ok();
        folder.run_on("report - -o page.html", &bytes).ok();
        let ran = folder.run_on("report -", &bytes);
        assert!(ran.status == 2 && ran.err.contains("name the page by -o"), "{}", ran.err);
        // A pipe can be opened once.
        let pipe = folder.path("pipe");
        let _ = fs::remove_file(&pipe);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (from, to) = (folder.path(name), pipe.clone());
        let writer = std::thread::spawn(move || fs::write(to, fs::read(from).unwrap()));
        assert_eq!(folder.run("predict pipe rings.libsvm -q").ok().out, expected);
        writer.join().unwrap().unwrap();
    }
    let bytes = fs::read(folder.path("m.kpath")).unwrap();
    assert!(folder.run_on("inspect -", &bytes).ok().out.contains("KernelSVC"));
    let ran = folder.run_on("predict - -", &bytes);
    assert!(ran.status == 2 && ran.err.contains("both the model and the data"), "{}", ran.err);
    let ran = folder.run("inspect /dev/zero");
    assert!(ran.status == 2, "{}", ran.err);
}

#[test]
fn an_output_does_not_replace_its_input() {
    let folder = Folder::new();
    folder.run("train rings.libsvm --cs 1 -q -o m.kpath").ok();
    folder.run("convert m.kpath m.model").ok();
    fs::copy(folder.path("rings.libsvm"), folder.path("data.kpath")).unwrap();
    symlink("data.kpath", folder.path("link.kpath")).unwrap();
    let before = |name: &str| fs::read(folder.path(name)).unwrap();
    let (model, data) = (before("m.kpath"), before("data.kpath"));
    for words in [
        "train data.kpath --cs 1 -o data.kpath",
        "train data.kpath --cs 1 -o ./data.kpath",
        "train link.kpath --cs 1 -o data.kpath",
        "train data.kpath --cs 1 -o link.kpath",
        "predict m.kpath data.kpath data.kpath",
        "predict m.kpath data.kpath m.kpath",
        "convert m.kpath m.kpath",
        "report m.kpath data.kpath -o data.kpath",
        "svm-train -c 1 data.kpath data.kpath",
        "svm-predict data.kpath m.kpath m.kpath",
    ] {
        let ran = folder.run(words);
        assert!(ran.status == 2 && ran.err.contains("which is read; give it another name"), "{words}: {}", ran.err);
    }
    assert!(model == before("m.kpath") && data == before("data.kpath"));
}

#[test]
fn a_link_to_nothing_yet_is_followed() {
    let folder = Folder::new();
    fs::create_dir(folder.path("models")).unwrap();
    symlink("models/new.kpath", folder.path("link.kpath")).unwrap();
    folder.run("train rings.libsvm --cs 1 -q -o link.kpath").ok();
    assert!(fs::symlink_metadata(folder.path("link.kpath")).unwrap().is_symlink());
    folder.run("predict models/new.kpath rings.libsvm").ok();
    symlink("nowhere/new.kpath", folder.path("lost.kpath")).unwrap();
    let Ran { status, err, .. } = folder.run("train rings.libsvm --cs 1 -q -o lost.kpath");
    assert!(status == 1 && err.contains("lost.kpath"), "{err}");
    assert!(Path::new(&folder.path("lost.kpath")).is_symlink());
}
