//! Labels, columns and names of files that would move the cursor, end a line, or turn the text around: nothing of them
//! reaches the terminal but as characters.

use std::fs;
use std::process::{Command, Stdio};

use kernelpath::is_hidden;

use crate::running::{Folder, Ran, rings};

/// Clears the screen and prints a proof; a C1 escape, a line of its own, a text that turns around, and a bell.
const EVIL: &str = "x\u{1b}[2J\u{1b}[32mproof ok\r\u{9b}1A\nproof  largest gap 0\u{202e}\u{2066}\u{7}\u{2028}";

/// A folder whose labels, columns and files all have evil names.
struct Evil(Folder);

impl Evil {
    fn new() -> Self {
        let folder = Self(Folder::new());
        let quoted = |text: &str| format!("\"{text}\"");
        let mut text = format!("{},b,{}\n", quoted(EVIL), quoted(&format!("y{EVIL}")));
        for (x, class) in rings(60, 2) {
            let label = ["plain".to_string(), EVIL.to_string()][class].clone();
            text.extend([format!("{},{},", x[0], x[1]), quoted(&label), "\n".into()]);
        }
        fs::write(folder.0.path(&format!("{EVIL}.csv")), text).unwrap();
        folder.0.write("bad.csv", &format!("a,b\n1,{}\n2,3\n", quoted(EVIL)));
        folder.0.write("bad.libsvm", &format!("1 1:{}\n", EVIL.replace('\n', " ")));
        folder
    }

    /// Runs `kernelpath` with these words, each of which is one argument; `@` is the evil text.
    fn run(&self, words: &[&str]) -> Ran {
        let words = words.iter().map(|word| word.replace('@', EVIL));
        let mut command = Command::new(env!("CARGO_BIN_EXE_kernelpath"));
        command.current_dir(self.0.0.path()).args(words).stdin(Stdio::null());
        let ran = Ran::of(&command.output().unwrap());
        for text in [&ran.out, &ran.err] {
            let hidden: Vec<char> = text.chars().filter(|c| is_hidden(*c) && !matches!(c, '\n' | '\t')).collect();
            assert!(hidden.is_empty(), "{hidden:?} in {text:?}");
            let is_fake = |line: &str| line.starts_with("proof  largest gap 0");
            assert!(!text.lines().any(is_fake), "a line of its own: {text}");
        }
        ran
    }
}

#[test]
fn no_subcommand_prints_what_a_terminal_would_obey() {
    let evil = Evil::new();
    let train = evil.run(&["train", "@.csv", "--cs", "1,10", "-o", "@.kpath"]).ok();
    assert!(train.out.contains("x\\u{1b}[2J") && train.out.contains("\\nproof"), "{}", train.out);
    let json = evil.run(&["train", "@.csv", "--cs", "1", "--json"]).ok().json();
    assert_eq!(json["classes"][1], EVIL, "JSON has the label as it is");
    evil.run(&["train", "@.csv", "--cs", "1,10", "--multi-class", "ovr", "--gamma", "0.1,1"]).ok();
    for words in [
        &["inspect", "@.kpath"][..],
        &["inspect", "@.kpath", "--json"],
        &["predict", "@.kpath", "@.csv"],
        &["predict", "@.kpath", "@.csv", "--decision"],
        &["verify", "@.kpath", "@.csv"],
        &["verify", "@.kpath", "@.csv", "--json"],
        &["report", "@.kpath", "@.csv", "-o", "@.html"],
        &["convert", "@.kpath", "@.onnx"],
        &["devices"],
        &["--help"],
    ] {
        evil.run(words).ok();
    }
    // A file has the labels as they are.
    evil.run(&["predict", "@.kpath", "@.csv", "predicted", "-q"]).ok();
    assert!(evil.0.read("predicted").contains(EVIL));
}

#[test]
fn no_error_prints_what_a_terminal_would_obey() {
    let evil = Evil::new();
    evil.run(&["train", "rings.csv", "--cs", "1", "-q", "-o", "m.kpath"]).ok();
    evil.run(&["train", "@.csv", "--cs", "1", "-q", "-o", "evil.kpath"]).ok();
    fs::write(evil.0.path(&format!("damaged{EVIL}.kpath")), b"no model").unwrap();
    for words in [
        &["train", "@"][..],
        &["train", "bad.csv", "--label", "a", "--cs", "1"],
        &["train", "bad.libsvm"],
        &["train", "rings.csv", "--label", "@"],
        &["train", "rings.csv", "--weight", "@"],
        &["train", "rings.csv", "--ignore", "@"],
        &["train", "rings.csv", "--cs", "@"],
        &["train", "rings.csv", "--class-weight", "@"],
        &["train", "rings.csv", "--class-weight", "@=1"],
        &["train", "rings.csv", "--kernel", "@"],
        &["train", "rings.csv", "--device", "@"],
        &["train", "rings.csv", "--task", "ridge"],
        &["train", "@.csv", "--task", "ridge"],
        &["train", "rings.csv", "-o", "@/m.kpath"],
        &["train", "rings.csv", "-o", "@"],
        &["predict", "@", "rings.csv"],
        &["predict", "damaged@.kpath", "rings.csv"],
        &["predict", "m.kpath", "@.csv"],
        &["predict", "evil.kpath", "rings.csv"],
        &["inspect", "@"],
        &["inspect", "damaged@.kpath"],
        &["verify", "m.kpath", "@"],
        &["verify", "m.kpath", "rings.csv", "--weights", "@"],
        &["verify", "damaged@.kpath", "rings.csv"],
        &["report", "@"],
        &["report", "damaged@.kpath"],
        &["convert", "@", "a.kpath"],
        &["convert", "damaged@.kpath", "a.onnx"],
        &["convert", "@.model", "a.onnx"],
        &["svm-train", "@"],
        &["svm-train", "bad.libsvm"],
        &["svm-train", "-@", "rings.libsvm"],
        &["svm-predict", "rings.libsvm", "@", "out"],
        &["man", "@"],
        &["completions", "@"],
        &["@"],
        &["train", "--@"],
    ] {
        let ran = evil.run(words);
        assert!(ran.status == 1 || ran.status == 2, "{words:?}: {} {}", ran.status, ran.err);
    }
}
