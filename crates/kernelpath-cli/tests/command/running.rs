//! Runs the binary on small data.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What a run left.
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self { status: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// The one JSON document on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.out, self.err))
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 0, "{}\n{}", self.out, self.err);
        self
    }
}

/// A folder with data: `rings.csv`, `rings.libsvm`, `three.csv` and `wave.csv`.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("rings.csv", &csv(&rings(80, 2), |class| ["inner", "outer"][class].into()));
        folder.write("three.csv", &csv(&rings(90, 3), |class| format!("ring {class}")));
        folder.write("rings.libsvm", &libsvm(&rings(80, 2), |class| ["-1", "+1"][class].into()));
        folder.write("three.libsvm", &libsvm(&rings(90, 3), |class| (1 + class).to_string()));
        let wave = wave(70);
        let text = lines(wave.iter().map(|(x, y)| format!("{},{},{y}", x[0], x[1])));
        folder.write("wave.csv", &format!("a,b,y\n{text}"));
        folder.write("wave.libsvm", &lines(wave.iter().map(|(x, y)| format!("{y} 1:{} 2:{}", x[0], x[1]))));
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kernelpath"));
        command.current_dir(self.0.path()).args(words.split_whitespace()).stdin(Stdio::null());
        command
    }

    /// Runs `kernelpath` with these words.
    pub fn run(&self, words: &str) -> Ran {
        Ran::of(&self.command(words).output().unwrap())
    }

    /// Runs it with these bytes on standard input.
    pub fn run_on(&self, words: &str, input: &[u8]) -> Ran {
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::of(&child.wait_with_output().unwrap())
    }

    /// Names of the files that are there.
    pub fn files(&self) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().into_owned();
        fs::read_dir(self.0.path()).unwrap().map(name).collect()
    }
}

/// Points on rings, with a little noise: their coordinates and classes.
pub fn rings(n: usize, classes: usize) -> Vec<([f64; 2], usize)> {
    let point = |i: usize| {
        let (t, class) = (i as f64, i % classes);
        let radius = 1.0 + class as f64 + 0.4 * (7.0 * t).sin();
        ([radius * (0.37 * t).cos(), radius * (0.37 * t).sin()], class)
    };
    (0..n).map(point).collect()
}

pub fn wave(n: usize) -> Vec<([f64; 2], f64)> {
    let of = |(i, (x, _)): (usize, ([f64; 2], usize))| (x, x[0].sin() + 0.2 * x[1] + 0.1 * (31.0 * i as f64).sin());
    rings(n, 3).into_iter().enumerate().map(of).collect()
}

/// The text of these lines.
pub fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.flat_map(|line| [line, "\n".into()]).collect()
}

fn csv(rows: &[([f64; 2], usize)], label: impl Fn(usize) -> String) -> String {
    format!("a,b,kind\n{}", lines(rows.iter().map(|(x, class)| format!("{},{},{}", x[0], x[1], label(*class)))))
}

fn libsvm(rows: &[([f64; 2], usize)], label: impl Fn(usize) -> String) -> String {
    lines(rows.iter().map(|(x, class)| format!("{} 1:{} 2:{}", label(*class), x[0], x[1])))
}

/// Whether Debian's LIBSVM is there. `KERNELPATH_REQUIRE_LIBSVM` demands it.
pub fn has_libsvm() -> bool {
    let is_there = Command::new("svm-train").output().is_ok();
    let is_needed = std::env::var_os("KERNELPATH_REQUIRE_LIBSVM").is_some();
    assert!(is_there || !is_needed, "KERNELPATH_REQUIRE_LIBSVM is set, but svm-train is not installed");
    is_there
}

/// Runs a program of LIBSVM.
pub fn original(program: &str, folder: &Path, words: &str) -> Ran {
    let output = Command::new(program).current_dir(folder).args(words.split_whitespace()).output().unwrap();
    let ran = Ran::of(&output);
    assert_eq!(ran.status, 0, "{program} {words}: {}", ran.err);
    ran
}
