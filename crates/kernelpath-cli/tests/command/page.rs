//! The commands of docs/command-line.md and of the README run, one after the other, each page in a folder.

use std::path::Path;
use std::process::Command;

use crate::running::{Folder, has_libsvm};

/// What a console block has after `$ `, and the lines of output below it that are to be found in what is printed; `…`
/// stands for any text.
fn commands(page: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            found.push((command.into(), Vec::new()));
        } else if let Some((_, expected)) = found.last_mut().filter(|_| is_console) {
            expected.push(line.into());
        }
    }
    found
}

/// Whether `line` is `pattern`, in which `…` stands for any text and spaces are alike.
fn matches(line: &str, pattern: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (line, pattern) = (plain(line), plain(pattern));
    let mut rest = &line[..];
    let parts: Vec<&str> = pattern.split('…').collect();
    for (k, part) in parts.iter().enumerate() {
        let part = part.trim();
        match rest.find(part) {
            Some(0) => rest = &rest[part.len()..],
            Some(at) if k > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.trim().is_empty() || parts.last().is_some_and(|last| last.trim().is_empty())
}

#[cfg(unix)]
#[test]
fn the_page_of_the_command_line_is_true() {
    page_is_true("docs/command-line.md", 15);
}

#[cfg(unix)]
#[test]
fn the_readme_is_true() {
    page_is_true("README.md", 3);
}

/// Runs the commands of a page, of which there are more than `least`.
#[cfg(unix)]
fn page_is_true(page: &str, least: usize) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let commands = commands(&std::fs::read_to_string(page).unwrap());
    assert!(commands.len() > least, "{commands:?}");
    let folder = Folder::new();
    let binary = Path::new(env!("CARGO_BIN_EXE_kernelpath"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    for (command, expected) in commands {
        if command.split('|').any(|part| ["svm-train", "svm-predict"].iter().any(|name| part.trim().starts_with(name)))
            && !has_libsvm()
        {
            continue;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(folder.0.path()).env("PATH", &path);
        let output = shell.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(output.status.success(), "{command}: {said}");
        let mut lines = said.lines();
        for pattern in expected.iter().filter(|pattern| !pattern.trim().is_empty() && pattern.trim() != "…") {
            assert!(
                lines.any(|line| matches(line, pattern)),
                "{command} does not say {pattern:?} in its place:\n{said}"
            );
        }
    }
}

#[test]
fn patterns_match_with_gaps() {
    assert!(matches("C  0.1   gap 1e-7", "C … gap …") && matches("a b", "a  b") && matches("x 1.5 y", "x … y"));
    assert!(!matches("a c", "a b") && !matches("b a", "a") && !matches("a b c", "a b"));
}
