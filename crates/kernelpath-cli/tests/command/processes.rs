//! Pipes, packed files and interruptions.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::running::{Folder, Ran, lines, rings};

#[test]
fn data_comes_from_standard_input_and_packed_files() {
    let folder = Folder::new();
    let plain = folder.run("train rings.csv --cs 1 --json -q -o a.kpath").ok();
    let data = std::fs::read(folder.path("rings.csv")).unwrap();
    folder.run_on("train - --cs 1 --json -q -o b.kpath", &data).ok();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&data).unwrap();
    let packed = packed.finish().unwrap();
    std::fs::write(folder.path("rings.csv.gz"), &packed).unwrap();
    folder.run("train rings.csv.gz --cs 1 --json -q -o c.kpath").ok();
    let predicted = folder.run("predict a.kpath rings.csv --decision").ok().out;
    for model in ["b.kpath", "c.kpath"] {
        assert_eq!(folder.run(&format!("predict {model} rings.csv.gz --decision")).ok().out, predicted);
        assert_eq!(folder.run_on(&format!("predict {model} - --decision"), &packed).ok().out, predicted);
    }
    assert_eq!(plain.json()["data"]["rows"], 80);
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let folder = Folder::new();
    folder.run("train rings.csv --cs 1 -o m.kpath").ok();
    for words in [
        "train rings.csv --n-cs 20 -o n.kpath -q",
        "predict m.kpath rings.csv --decision -q",
        "inspect m.kpath",
        "completions bash",
        "man",
        "--help",
        "svm-train -c 1 rings.libsvm",
    ] {
        let mut child = folder.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert_eq!((ran.status, &*ran.err), (0, ""), "{words}");
    }
    assert!(folder.files().contains(&"n.kpath".to_string()));
}

/// A fit that takes far longer than the test.
fn long(folder: &Folder) {
    let rows = rings(3000, 2);
    let line = |(i, (x, class)): (usize, &([f64; 2], usize))| {
        let class = if i % 7 == 0 { 1 - class } else { *class };
        format!("{class} 1:{} 2:{}", x[0], x[1])
    };
    folder.write("long.libsvm", &lines(rows.iter().enumerate().map(line)));
}

#[cfg(unix)]
#[test]
fn an_interruption_ends_within_a_second_and_leaves_no_file() {
    let folder = Folder::new();
    long(&folder);
    let before = folder.files().len();
    for (words, wait) in [
        ("train long.libsvm --n-cs 2000 --loo -o m.kpath", 1500),
        ("svm-train -v 100 long.libsvm", 1500),
        ("train - -o m.kpath", 300),
    ] {
        let mut command = folder.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It stays open, so that there is something to wait for.
        let _input = child.stdin.take();
        sleep(Duration::from_millis(wait));
        assert!(child.try_wait().unwrap().is_none(), "{words} ended before it was interrupted");
        let start = Instant::now();
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let status = child.wait().unwrap();
        let took = start.elapsed();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(status.code(), Some(130), "{words}: {said}");
        assert!(took < Duration::from_millis(1500), "{words}: {took:?}");
        assert!(!said.contains("panicked"), "{said}");
    }
    assert_eq!(folder.files().len(), before, "{:?}", folder.files());
}

#[test]
fn a_budget_of_time_ends_a_fit_with_a_note() {
    let folder = Folder::new();
    long(&folder);
    let ran = folder.run("train long.libsvm --n-cs 1000 --time-budget 2 --json");
    assert!(ran.status == 0 || ran.status == 3, "{}", ran.err);
    if !ran.out.is_empty() {
        assert_eq!(ran.json()["timed_out"], true);
    }
}

#[test]
fn a_control_interrupts_a_command_within_a_process() {
    let folder = Folder::new();
    long(&folder);
    let data = folder.path("long.libsvm").into_os_string();
    let words = ["kernelpath".into(), "train".into(), data, "--loo".into(), "-q".into()];
    let control = kernelpath::Control::default();
    let start = Instant::now();
    let status = std::thread::scope(|scope| {
        let work = scope.spawn(|| kernelpath_cli::run_with(words, &control));
        sleep(Duration::from_millis(500));
        control.cancel();
        work.join().unwrap()
    });
    assert_eq!(status, 130);
    assert!(start.elapsed() < Duration::from_secs(10));
    // The command can be run again, and again.
    folder.run("train rings.csv --cs 1 -o m.kpath").ok();
    for _ in 0..2 {
        let (model, out) = (folder.path("m.kpath").into_os_string(), folder.path("out").into_os_string());
        let words = ["kernelpath".into(), "predict".into(), model, folder.path("rings.csv").into(), out, "-q".into()];
        assert_eq!(kernelpath_cli::run(words), 0);
    }
}
