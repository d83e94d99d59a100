//! Where the bytes come from: a path, memory or standard input, plain or compressed.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use kernelpath::Control;
use lzma_rust2::XzReader;

use crate::error::Problem;

/// What is read. A file compressed by gzip, bzip2 or xz is recognised by its first bytes, whatever its name, and
/// unpacked on the way, with all its streams.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A file.
    Path(&'a Path),
    /// The bytes of a file.
    Bytes(&'a [u8]),
    /// Standard input.
    Stdin,
}

impl<'a> From<&'a Path> for Source<'a> {
    /// The path `-` is standard input.
    fn from(path: &'a Path) -> Self {
        if path == Path::new("-") { Self::Stdin } else { Self::Path(path) }
    }
}

impl<'a> From<&'a PathBuf> for Source<'a> {
    fn from(path: &'a PathBuf) -> Self {
        path.as_path().into()
    }
}

impl<'a> From<&'a str> for Source<'a> {
    fn from(path: &'a str) -> Self {
        Path::new(path).into()
    }
}

/// Room for compressed bytes: a few calls of the system a megabyte.
const PACKED: usize = 128 << 10;

/// How many times its size a packed file may unpack to. Data that is dense in information stays far below; what unpacks
/// to more is made to fill a disk or a memory.
const MOST_TIMES: u64 = 1000;

/// Bytes that any packed file may unpack to: less than reading takes anyway.
const ALWAYS: u64 = 1 << 20;

/// How long a wait for input lasts before `Control` is asked again, in milliseconds.
#[cfg(unix)]
const WAIT: i64 = 100;

/// The first bytes that say how a file is packed.
const MAGIC: usize = 10;

impl<'a> Source<'a> {
    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Path(path) => kernelpath::shown(&path.to_string_lossy()).into_owned(),
            Self::Bytes(_) => "<bytes>".into(),
            Self::Stdin => "<stdin>".into(),
        }
    }

    /// The unpacked bytes. Unpacking takes at most `memory` bytes for its dictionary.
    pub(crate) fn open(&self, control: &'a Control, memory: u64) -> io::Result<Box<dyn Read + Send + 'a>> {
        let (mut raw, size): (Box<dyn Read + Send + 'a>, Option<u64>) = match self {
            Self::Bytes(bytes) => (Box::new(*bytes), Some(bytes.len() as u64)),
            Self::Stdin => (interruptible(io::stdin(), control), None),
            Self::Path(path) => {
                let file = File::open(path)?;
                let found = file.metadata()?;
                if found.is_file() { (Box::new(file), Some(found.len())) } else { (interruptible(file, control), None) }
            }
        };
        let mut magic = Vec::with_capacity(MAGIC);
        raw.by_ref().take(MAGIC as u64).read_to_end(&mut magic)?;
        let unpack = unpacking(&magic);
        let raw = Cursor::new(magic).chain(raw);
        let Some(unpack) = unpack else { return Ok(Box::new(raw)) };
        let packed = Arc::new(AtomicU64::new(size.unwrap_or(0)));
        let raw: Box<dyn Read + Send + 'a> = match size {
            Some(_) => Box::new(raw),
            None => Box::new(Counted { input: raw, count: packed.clone() }),
        };
        let raw = BufReader::with_capacity(PACKED, raw);
        let input: Box<dyn Read + Send + 'a> = match unpack {
            Packing::Gzip => Box::new(MultiGzDecoder::new(raw)),
            Packing::Bzip2 => Box::new(MultiBzDecoder::new(raw)),
            Packing::Xz => {
                let kilobytes = u32::try_from(memory >> 10).unwrap_or(u32::MAX);
                Box::new(XzReader::new_mem_limit(raw, true, kilobytes))
            }
        };
        Ok(Box::new(Bounded { input, unpacked: 0, packed }))
    }
}

/// Counts the bytes that are read, of a stream whose size is not known.
struct Counted<R> {
    input: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.count.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}

/// Unpacked bytes, as long as they are not too many for the packed ones.
struct Bounded<R> {
    input: R,
    unpacked: u64,
    /// The size of the packed file, or what was read of it so far.
    packed: Arc<AtomicU64>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.unpacked += count as u64;
        if self.unpacked > ALWAYS.max(self.packed.load(Relaxed).saturating_mul(MOST_TIMES)) {
            return Err(io::Error::other(Problem::Bomb { times: MOST_TIMES }));
        }
        Ok(count)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    Bzip2,
    Xz,
}

/// How a file with these first bytes is packed.
fn unpacking(magic: &[u8]) -> Option<Packing> {
    // "BZh" and a digit may be text; the number that follows, π or √π in decimal digits, is not.
    let is_bzip2 = magic.starts_with(b"BZh")
        && (magic.get(4..) == Some(b"\x31\x41\x59\x26\x53\x59") || magic.get(4..) == Some(b"\x17\x72\x45\x38\x50\x90"));
    match magic {
        [0x1f, 0x8b, ..] => Some(Packing::Gzip),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
        _ if is_bzip2 => Some(Packing::Bzip2),
        _ => None,
    }
}

/// A reader that may have to wait, and hears an interruption while it does.
#[cfg(unix)]
fn interruptible<'a, R: Read + Send + std::os::fd::AsFd + 'a>(
    input: R,
    control: &'a Control,
) -> Box<dyn Read + Send + 'a> {
    Box::new(Patient { input, control })
}

#[cfg(not(unix))]
fn interruptible<'a, R: Read + Send + 'a>(input: R, _: &'a Control) -> Box<dyn Read + Send + 'a> {
    Box::new(input)
}

#[cfg(unix)]
struct Patient<'a, R> {
    input: R,
    control: &'a Control,
}

#[cfg(unix)]
impl<R: Read + std::os::fd::AsFd> Read for Patient<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let wait = Timespec { tv_sec: 0, tv_nsec: WAIT * 1_000_000 };
        loop {
            self.control.check().map_err(io::Error::other)?;
            let ready = poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&wait));
            match ready {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.input.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_seen_from_the_first_bytes() {
        assert_eq!(unpacking(b"\x1f\x8b\x08"), Some(Packing::Gzip));
        assert_eq!(unpacking(b"BZh91AY&SY"), Some(Packing::Bzip2));
        assert_eq!(unpacking(b"\xfd7zXZ\0\0\x04\xe6\xd6"), Some(Packing::Xz));
        assert_eq!((unpacking(b"BZh9,BZh8,"), unpacking(b"1 1:0.5"), unpacking(b"")), (None, None, None));
    }
}
