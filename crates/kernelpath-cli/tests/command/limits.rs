//! What no machine can hold is refused at once, and what is wide but sparse costs what is stored.

use std::time::Instant;

use crate::running::{Folder, Ran, lines};

#[test]
fn counts_have_limits() {
    let folder = Folder::new();
    folder.write("far.libsvm", "1 1:1 4000000000:1\n2 1:2\n1 1:1.5\n2 1:2.5 4000000000:0.5\n1 1:1\n2 1:3\n");
    for (status, words, message) in [
        (2, "train rings.csv --n-cs 99999999999", "--n-cs: a grid has at most 10000 values"),
        (2, "train rings.csv --cs 1:2:99999999999", "from 2 to 10000"),
        (2, "train rings.csv --folds 99999999999", "--folds: "),
        (1, "train far.libsvm --scale standard --cs 1 --folds 2", "a scaling of 4000000000 columns takes"),
        (1, "train far.libsvm --scale 0:1 --cs 1 --folds 2", "a scaling of 4000000000 columns takes"),
    ] {
        let ran = folder.run(words);
        assert_eq!(ran.status, status, "{words}: {}", ran.err);
        assert!(ran.err.contains(message), "{words}: {}", ran.err);
    }
    folder.run("train far.libsvm --cs 1 --folds 2 --gamma 1 -o far.kpath").ok();
    folder.run("predict far.kpath far.libsvm").ok();
    folder.run("report far.kpath far.libsvm -o far.html").ok();
}

/// The largest number of threads that the process had.
#[cfg(target_os = "linux")]
#[test]
fn threads_are_no_more_than_help() {
    use std::process::Stdio;
    let folder = Folder::new();
    let mut command = folder.command("train rings.csv --threads 1000000 --n-cs 500 -q -o m.kpath");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<usize>().ok());
        most = most.max(threads.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(Ran::of(&child.wait_with_output().unwrap()).ok().status, 0);
    // The threads of one pool may still end while those of the next begin.
    assert!((2..=2 * kernelpath::threads::MOST + 8).contains(&most), "{most} threads");
}

#[test]
fn a_report_looks_at_what_is_stored() {
    let folder = Folder::new();
    let row = |i: usize| format!("{} {}:1 {}:0.5", i % 2, 1 + (i * 7919) % 1000, 40_000_000 - i);
    folder.write("wide.libsvm", &lines((0..60).map(row)));
    folder.run("train wide.libsvm --cs 1 --gamma 0.5 -q -o m.kpath").ok();
    let started = Instant::now();
    folder.run("report m.kpath wide.libsvm").ok();
    // With a look at each column of each vector it takes minutes.
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert!(folder.read("m.html").contains("did not see"), "the rows of the fit are recognised");
}
