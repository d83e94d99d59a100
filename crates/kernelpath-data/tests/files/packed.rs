//! Where bytes come from: compressed files, files that are cut off or that unpack to far more than there is memory for,
//! pipes, interruptions; and the corpus of the fuzzer.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{options, twin};
use kernelpath_data::{Column, Control, CsvOptions, Error, Format, Header, Options, Source, Table, read};

fn of(bytes: &[u8], options: &Options) -> Result<Table, Error> {
    read(Source::Bytes(bytes), options, &Control::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut packer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

type Packer = fn(&[u8]) -> Vec<u8>;

const PACKERS: [(&str, Packer); 3] = [("gzip", gzip), ("bzip2", bzip2), ("xz", xz)];

fn lines(rows: usize) -> String {
    (0..rows).map(|i| format!("{} 1:{i} 3:0.{}\n", i % 2, i * i)).collect::<Vec<_>>().concat()
}

#[test]
fn compressed_files_are_unpacked_with_all_their_members() {
    let text = lines(40_000);
    let plain = of(text.as_bytes(), &Options::default()).unwrap();
    // The cut is in the middle of a line.
    let (one, other) = text.as_bytes().split_at(text.len() / 2 + 3);
    for (name, pack) in PACKERS {
        twin::assert_same(&plain, &of(&pack(text.as_bytes()), &Options::default()).unwrap(), name);
        let members = [pack(one), pack(b""), pack(other)].concat();
        twin::assert_same(&plain, &of(&members, &Options::default()).unwrap(), name);
    }
}

#[test]
fn files_that_are_cut_off_or_damaged_are_refused() {
    let text = lines(3000);
    for (name, pack) in PACKERS {
        let whole = pack(text.as_bytes());
        for length in (12..whole.len()).step_by(97).chain([whole.len() - 1]) {
            let error = of(&whole[..length], &Options { format: Format::Libsvm, ..Options::default() }).unwrap_err();
            assert!(matches!(error, Error::Io { .. }), "{name}, {length} of {}: {error}", whole.len());
        }
        // A flipped bit in the middle: what is read is refused, or the same.
        let plain = of(text.as_bytes(), &Options::default()).unwrap();
        for at in (0..whole.len()).step_by(53) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            if let Ok(table) = of(&damaged, &Options { format: Format::Libsvm, ..Options::default() }) {
                assert!(at < 12 || at + 12 > whole.len(), "{name}: byte {at} of {} is not noticed", whole.len());
                twin::assert_same(&plain, &table, name);
            }
        }
    }
}

/// A few bytes that unpack to many must not take that many, whatever it is that is repeated.
#[test]
fn bombs_are_refused_within_the_memory_that_reading_may_take() {
    const MEMORY: u64 = 16 << 20;
    for (start, unit, format, expected) in [
        ("", " ", Format::Libsvm, "a single line takes more than the 16.8 MB of memory"),
        ("", "1 1:1\n", Format::Libsvm, "the table takes more than the 16.8 MB of memory"),
        ("", "\n", Format::Libsvm, "the table takes more than"),
        ("1", " 1:1", Format::Libsvm, "a single line takes more than"),
        ("", "1,2\n", Format::Csv, "the table takes more than"),
        ("", ",", Format::Csv, "a single line takes more than"),
        ("1,2\n3,\"", "x\n", Format::Csv, "a field whose quote is never closed, takes more than"),
        ("", "\0", Format::Auto, "<bytes>:1: the line has a NUL byte"),
    ] {
        let bomb = gzip(format!("{start}{}", unit.repeat((48 << 20) / unit.len())).as_bytes());
        for threads in [1, 4] {
            let options = Options { format, threads, memory: Some(MEMORY), ..Options::default() };
            let error = of(&bomb, &options).unwrap_err().to_string();
            assert!(error.contains(expected), "{unit:?}: {error}");
        }
    }
    // A header of ten million columns.
    let wide = gzip(format!("{}\n", "a,".repeat(5 << 20)).as_bytes());
    let error = of(&wide, &Options { format: Format::Csv, memory: Some(64 << 20), ..Options::default() });
    assert!(error.unwrap_err().to_string().contains("takes more than the 67.1 MB"));
    // What is small is read with little memory.
    let little = Options { memory: Some(200 << 10), ..Options::default() };
    assert_eq!(of(b"1 1:2\n", &little).unwrap().rows.nrows(), 1);
    assert_eq!(of(&gzip(b"1,2\n3,4\n"), &little).unwrap().rows.nrows(), 2);
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_line() {
    let utf16: Vec<u8> = "1,2\n3,4\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = of(&[&[0xff, 0xfe][..], &utf16].concat(), &Options::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "<bytes>:1: the line has a NUL byte, so this is no text file: is it UTF-16, or packed in a way that is not known?"
    );
    let error = of(b"1 1:1\n1 2:1\nPK\x03\x04\0\0", &Options::default()).unwrap_err().to_string();
    assert!(error.starts_with("<bytes>:3: the line has a NUL byte"), "{error}");
}

#[cfg(unix)]
#[test]
fn whoever_waits_for_a_pipe_can_stop() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Somebody writes half a line, and then waits.
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut pipe = std::fs::OpenOptions::new().write(true).open(pipe).unwrap();
            pipe.write_all(b"1 1:0.5\n1 2:").unwrap();
            std::thread::sleep(Duration::from_secs(2));
        }
    });
    let (control, started) = (Control::default(), Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            control.cancel();
        });
        let error = read(&pipe, &Options::default(), &control).unwrap_err();
        assert!(matches!(error, Error::Library(kernelpath::Error::Interrupted)), "{error}");
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    });
    writer.join().unwrap();
}

#[test]
fn errors_of_the_system_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("missing.csv"), folder.path().to_path_buf()] {
        let error = read(&path, &Options::default(), &Control::default()).unwrap_err();
        assert!(
            matches!(error, Error::Io { .. }) && error.to_string().starts_with(&*path.to_string_lossy()),
            "{error}"
        );
    }
    #[cfg(unix)]
    {
        let error = read(Path::new("/dev/zero"), &Options::default(), &Control::default()).unwrap_err().to_string();
        assert!(error.starts_with("/dev/zero:1: the line has a NUL byte"), "{error}");
    }
}

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn the_corpora_of_the_fuzzer_are_read_or_refused() {
    is_read_or_refused("libsvm", options::libsvm);
    is_read_or_refused("csv", options::csv);
}

/// Every input of a corpus, by one thread and by two.
fn is_read_or_refused(target: &str, options: fn(u8, usize) -> Options) {
    let files = corpus(target);
    let mut read_whole = 0;
    for (path, bytes) in &files {
        let [choice, text @ ..] = &bytes[..] else { continue };
        let started = Instant::now();
        match (of(text, &options(*choice, 1)), of(text, &options(*choice, 2))) {
            (Ok(one), Ok(two)) => {
                twin::assert_same(&one, &two, &path.display().to_string());
                assert!(one.rows.view().is_ok());
                read_whole += 1;
            }
            (Err(one), Err(two)) => assert_eq!(one.to_string(), two.to_string()),
            _ => panic!("{}: one thread reads it, two do not", path.display()),
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{}", path.display());
    }
    assert!(read_whole > 5 && files.len() > read_whole + 5, "{target}: {read_whole} of {}", files.len());
}

/// With memory for all of it: what is made to fill memories is refused by what it is.
#[test]
fn what_unpacks_to_a_thousand_times_its_size_is_refused() {
    let text = "1 1:1\n".repeat(5 << 20);
    for (name, pack) in [("bzip2", bzip2 as Packer), ("xz", xz)] {
        let bomb = pack(text.as_bytes());
        assert!(1000 * bomb.len() < text.len(), "{name}: {} bytes", bomb.len());
        let error = of(&bomb, &Options::default()).unwrap_err().to_string();
        assert!(error.starts_with("<bytes>: the file unpacks to more than 1000 times its size"), "{name}: {error}");
        #[cfg(unix)]
        {
            // A stream, whose size is not known.
            let folder = tempfile::tempdir().unwrap();
            let pipe = folder.path().join("pipe");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let writer = std::thread::spawn({
                let pipe = pipe.clone();
                move || drop(std::fs::OpenOptions::new().write(true).open(pipe).unwrap().write_all(&bomb))
            });
            let error = read(&pipe, &Options::default(), &Control::default()).unwrap_err().to_string();
            assert!(error.contains("the file unpacks to more than 1000 times its size"), "{name}: {error}");
            writer.join().unwrap();
        }
    }
    // What is small may be as regular as it likes.
    let small = xz("1 1:1\n".repeat(100_000).as_bytes());
    assert_eq!(of(&small, &Options::default()).unwrap().rows.nrows(), 100_000);
}

#[test]
fn a_single_line_takes_at_most_twice_its_length() {
    let length = 24 << 20;
    let csv = CsvOptions { ignore: vec![Column::Place(1)], header: Header::No, ..CsvOptions::default() };
    let long = "x".repeat(length);
    for text in [format!("1,{long}\n2,y\n"), format!("2,y\n1,{long}\n"), format!("2,y\n1,\"{long}\"")] {
        let memory = Some(2 * length as u64 + (3 << 20));
        let options = Options { format: Format::Csv, threads: 1, memory, csv: csv.clone(), ..Options::default() };
        assert_eq!(of(text.as_bytes(), &options).unwrap().rows.nrows(), 2);
    }
}
