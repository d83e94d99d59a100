//! The structure of the crate: which folder may use which, and that a name means one thing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders and files at the top, in the order in which they may use each other: each uses only those before it.
const LAYERS: [&str; 15] = [
    "shown",
    "error",
    "observe",
    "numeric",
    "data",
    "loss",
    "kernel",
    "device",
    "nystrom",
    "certify",
    "solver",
    "path",
    "model",
    "fit",
    "estimator",
];

/// Every source file, as its path below `src` and its text without unit tests.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_string();
                files.push((path.strip_prefix(&root).unwrap().to_path_buf(), code));
            }
        }
    }
    assert!(files.len() > 50, "only {} files found", files.len());
    files.sort();
    files
}

/// The layer that a file belongs to; `None` for lib.rs.
fn layer(path: &Path) -> Option<usize> {
    let top = path.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
    let found = LAYERS.iter().position(|layer| *layer == top);
    assert!(found.is_some() || top == "lib", "{top} is in no layer");
    found
}

/// The names that follow `crate::` in a text.
fn used(code: &str) -> impl Iterator<Item = &str> {
    let name = |rest: &'_ str| rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    code.split("crate::").skip(1).map(move |rest| &rest[..name(rest)])
}

#[test]
fn folders_use_only_those_before_them() {
    let mut back = Vec::new();
    for (path, code) in sources() {
        let Some(own) = layer(&path) else { continue };
        // A link in a comment is read like a line of code: a layer should not speak of a later one.
        for name in used(&code) {
            if LAYERS.iter().position(|layer| *layer == name).is_some_and(|other| other > own) {
                back.push(format!("{} uses {name}", path.display()));
            }
        }
        assert!(!code.contains("use crate::{"), "{}: write one `use` per module, for this test", path.display());
        assert!(!code.contains("super::super"), "{}: write the path from `crate`, for this test", path.display());
    }
    assert!(back.is_empty(), "\n{}", back.join("\n"));
}

#[test]
fn no_two_modules_share_a_name() {
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (path, _) in sources() {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let name = if stem == "mod" { path.parent().unwrap().file_name().unwrap().to_str().unwrap() } else { stem };
        places.entry(name.to_string()).or_default().push(path);
    }
    places.retain(|_, paths| paths.len() > 1);
    assert!(places.is_empty(), "{places:?}");
}

#[test]
fn no_constant_has_two_values() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, code) in sources() {
        let mut owner = "";
        for line in code.lines() {
            if line.starts_with("impl") {
                owner = "of a type";
            } else if line == "}" {
                owner = "";
            }
            let line = line.trim_start();
            let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
            // Constants of types have the type's name before them, where they are used.
            if let Some((name, _)) = line.strip_prefix("const ").and_then(|rest| rest.split_once(": "))
                && owner.is_empty()
                && !line.starts_with("const fn")
            {
                places.entry(name.to_string()).or_default().push(path.display().to_string());
            }
        }
    }
    places.retain(|_, paths| paths.len() > 1);
    assert!(places.is_empty(), "{places:?}");
}

#[test]
fn files_are_short() {
    let mut lengths: Vec<(usize, PathBuf)> = (sources().into_iter())
        .map(|(path, _)| {
            let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(&path)).unwrap();
            (text.lines().count(), path)
        })
        .collect();
    lengths.sort();
    let (median, longest) = (&lengths[lengths.len() / 2], &lengths[lengths.len() - 1]);
    assert!(median.0 < 200, "half of the files have {} lines or more", median.0);
    assert!(longest.0 <= 600, "{} has {} lines", longest.1.display(), longest.0);
}
