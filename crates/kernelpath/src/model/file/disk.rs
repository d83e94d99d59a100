//! Model files on disk: written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::model::file::container::{Container, Described, LENGTH_BYTES, header_length, read_header, split};
use crate::model::file::{read, write};
use crate::model::saved::SavedModel;
use crate::shown::shown;

impl SavedModel {
    /// The bytes of a model file. Equal models have equal bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        write::container(self)?.to_bytes()
    }

    /// The model in the bytes of a file. Nothing in them is trusted: what does not fit together is an error, and memory
    /// is taken in proportion to their number only.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        read::model(Container::from_bytes(bytes)?)
    }

    /// Writes a model file. A file of that name stays as it is until the new one is complete, whatever ends the process.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes().map_err(|error| named(error, path))?;
        write_whole(path, &bytes)
    }

    /// Reads a model file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| failed(path, "read", &error))?;
        let known = file.metadata().map_or(0, |found| usize::try_from(found.len()).unwrap_or(0));
        Self::from_bytes(&bytes_of(file, known, path)?).map_err(|error| named(error, path))
    }

    /// Reads a model file from a stream, such as a pipe; `name` is what messages call it.
    pub fn read_from(input: impl Read, name: impl AsRef<Path>) -> Result<Self> {
        let name = name.as_ref();
        Self::from_bytes(&bytes_of(input, 0, name)?).map_err(|error| named(error, name))
    }

    /// What the header of a model file says, without its arrays, which are not read: the document, in which `arrays`
    /// lists the type and the shape of each.
    pub fn inspect(path: impl AsRef<Path>) -> Result<Value> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| failed(path, "read", &error))?;
        Self::inspect_from(file, path)
    }

    /// The same of a stream; `name` is what messages call it.
    pub fn inspect_from(mut input: impl Read, name: impl AsRef<Path>) -> Result<Value> {
        let path = name.as_ref();
        let start = start_of(&mut input, path)?;
        let document = || {
            let (mut document, described) = read_header(split(&start)?.0)?;
            read::check_format(&document)?;
            let of = |array: Described| (array.name, json!({ "type": array.dtype, "shape": array.shape }));
            document.insert("arrays".into(), Value::Object(described.into_iter().map(of).collect()));
            Ok(Value::Object(document))
        };
        document().map_err(|error| named(error, path))
    }

    /// Leaves out what takes most of a file and is not needed for predictions or proofs: the out-of-fold values of the
    /// whole path. Those of the chosen model stay.
    pub fn slim(&mut self) {
        self.attributes.remove("oof_path_");
    }
}

/// The bytes of a model file, of which `known` are there for sure. What is not one is refused after its first bytes, be
/// it a device without end.
fn bytes_of(mut input: impl Read, known: usize, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = start_of(&mut input, path)?;
    let body = || Ok(read_header(split(&bytes)?.0)?.1.iter().map(|array| array.end).max().unwrap_or(0));
    let body = body().map_err(|error| named(error, path))?;
    bytes.try_reserve_exact(body.min(known)).map_err(|_| failed(path, "read", &io::ErrorKind::OutOfMemory.into()))?;
    // One byte more than the header promises shows that there is too much.
    let rest = input.take((body as u64).saturating_add(1)).read_to_end(&mut bytes);
    rest.map_err(|error| failed(path, "read", &error))?;
    Ok(bytes)
}

/// The start of a file: the length of the header, and as much of the header as there is.
fn start_of(input: &mut impl Read, path: &Path) -> Result<Vec<u8>> {
    let mut read = || {
        let mut start = Vec::new();
        input.take(LENGTH_BYTES as u64).read_to_end(&mut start)?;
        if let Ok(length) = header_length(&start) {
            input.take(length as u64).read_to_end(&mut start)?;
        }
        Ok(start)
    };
    read().map_err(|error| failed(path, "read", &error))
}

/// Most links that are followed, as systems have it.
const MOST_LINKS: usize = 40;

/// The file that a path leads to through symbolic links, be it there or not.
pub fn destination(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    target
}

/// Writes a file by way of another one in the same folder, which then takes its name: whatever ends the process, the
/// file is whole, new or old. What is no ordinary file, such as a pipe, is written to directly.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = || {
        // Through a link, the file that it leads to is replaced, not the link.
        let target = destination(path);
        let found = fs::metadata(&target).ok();
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            return File::create(&target)?.write_all(bytes);
        }
        let mut builder = tempfile::Builder::new();
        let prefix = format!(".{}.", target.file_name().unwrap_or_default().to_string_lossy());
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As the file has them that is replaced, or as any new file, less the process's mask.
            let mode = found.map_or(0o666, |found| found.permissions().mode());
            builder.permissions(fs::Permissions::from_mode(mode));
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::metadata(folder)?; // its error does not speak of the other file
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(&target).map(drop).map_err(|error| error.error)
    };
    written().map_err(|error| failed(path, "write", &error))
}

fn failed(path: &Path, doing: &'static str, error: &io::Error) -> Error {
    Error::FileAccess { file: path.display().to_string(), doing, reason: error.to_string(), kind: error.kind() }
}

/// The error, with the name of the file.
fn named(error: Error, path: &Path) -> Error {
    match error {
        Error::File { problem, .. } => Error::File { file: shown(&path.to_string_lossy()).into_owned(), problem },
        other => other,
    }
}
