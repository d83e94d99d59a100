//! Model files of every format: read by their content, written by their extension.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kernelpath::{SavedModel, available_memory, destination, write_whole};
use kernelpath_export::{libsvm, onnx};
use serde_json::Value;

use crate::failure::{FAILED, Failure};

/// A format that models are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Kernelpath,
    Libsvm,
    Onnx,
}

impl Kind {
    /// By the extension of a file.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("kpath") => Ok(Self::Kernelpath),
            Some("model") => Ok(Self::Libsvm),
            Some("onnx") => Ok(Self::Onnx),
            _ => Err(Failure::input(format!(
                "{}: the extension says what a model is written as: .kpath, .model (LIBSVM) or .onnx",
                path.display()
            ))),
        }
    }
}

/// Refuses, before any work, a place where no file can be, and one that is read: `inputs` would be lost.
pub(crate) fn check_output(path: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    let target = destination(path);
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let refused =
        |what: String| Err(Failure::new(FAILED, format!("cannot write {:?}: {what}", path.display().to_string())));
    match fs::metadata(folder).map_err(|error| error.to_string()) {
        Ok(found) if found.is_dir() && !path.is_dir() => {}
        Ok(found) => return refused(if found.is_dir() { "it is a folder" } else { "its folder is a file" }.into()),
        Err(reason) => return refused(reason),
    }
    let whole = |path: &Path| fs::canonicalize(path).ok().filter(|path| path.is_file());
    match (whole(path), inputs.iter().find(|input| whole(input).is_some() && whole(input) == whole(path))) {
        (Some(_), Some(input)) => Err(Failure::input(format!(
            "{}: the output would replace {}, which is read; give it another name",
            path.display(),
            input.display()
        ))),
        _ => Ok(()),
    }
}

/// What stands for standard input.
pub(crate) const STDIN: &str = "-";

/// Refuses to read two things from standard input.
pub(crate) fn check_inputs(model: &Path, data: Option<&Path>) -> Result<(), Failure> {
    if model == Path::new(STDIN) && data == Some(Path::new(STDIN)) {
        return Err(Failure::input("- is standard input, and both the model and the data cannot come from there"));
    }
    Ok(())
}

/// A model file that is open, and its first bytes. What is no ordinary file can be opened and read once.
pub(crate) struct Opened {
    name: PathBuf,
    start: Vec<u8>,
    rest: Box<dyn Read>,
}

/// A model, and the text that it was read from if it is one of LIBSVM.
pub(crate) struct Loaded {
    pub model: SavedModel,
    pub text: Option<Vec<u8>>,
}

impl Opened {
    pub fn new(path: &Path) -> Result<Self, Failure> {
        let is_stdin = path == Path::new(STDIN);
        let name = if is_stdin { PathBuf::from("<stdin>") } else { path.to_path_buf() };
        let mut rest: Box<dyn Read> = if is_stdin {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).map_err(|error| unread(&name, &error))?)
        };
        let mut start = Vec::new();
        rest.by_ref().take(START).read_to_end(&mut start).map_err(|error| unread(&name, &error))?;
        Ok(Self { name, start, rest })
    }

    /// Whether the file begins with text, as LIBSVM's models do; ours begin with a number of 8 bytes, some of them 0.
    pub fn is_text(&self) -> bool {
        self.start.len() as u64 == START && self.start.iter().all(|c| c.is_ascii_graphic() || c.is_ascii_whitespace())
    }

    pub fn name(&self) -> &Path {
        &self.name
    }

    /// What the header of a model file says.
    pub fn inspect(self) -> Result<Value, Failure> {
        Ok(SavedModel::inspect_from(io::Cursor::new(self.start).chain(self.rest), &self.name)?)
    }

    /// Reads a model of this library or of LIBSVM; the content says which.
    pub fn load(self) -> Result<Loaded, Failure> {
        if self.is_text() {
            return self.load_libsvm();
        }
        let model = SavedModel::read_from(io::Cursor::new(self.start).chain(self.rest), &self.name)?;
        Ok(Loaded { model, text: None })
    }

    /// Reads a model of LIBSVM.
    pub fn load_libsvm(self) -> Result<Loaded, Failure> {
        let Self { name, start: mut text, rest } = self;
        // A stream may have no end.
        let most = available_memory().unwrap_or(u64::MAX) / 4;
        rest.take(most).read_to_end(&mut text).map_err(|error| unread(&name, &error))?;
        let model = libsvm::from_libsvm(&text).map_err(|error| {
            let failure = Failure::from(error);
            Failure::new(failure.status, format!("{}: {}", name.display(), failure.message))
        })?;
        Ok(Loaded { model, text: Some(text) })
    }
}

/// Bytes that tell one format from the other.
const START: u64 = 8;

fn unread(name: &Path, error: &io::Error) -> Failure {
    Failure::new(FAILED, format!("cannot read {:?}: {error}", name.display().to_string()))
}

/// Reads a model of this library or of LIBSVM; the content says which.
pub(crate) fn load(path: &Path) -> Result<SavedModel, Failure> {
    Ok(Opened::new(path)?.load()?.model)
}

/// Writes a model that took time to train: if its format cannot express it, it is kept as .kpath beside that place.
pub(crate) fn keep(model: &SavedModel, path: &Path, kind: Kind) -> Result<(), Failure> {
    let Err(failure) = write(model, path, kind, false) else { return Ok(()) };
    if kind == Kind::Kernelpath || failure.status == FAILED {
        return Err(failure);
    }
    let kept = path.with_extension("kpath");
    model.save(&kept)?;
    Err(Failure::new(failure.status, format!("{}; the model was kept as {}", failure.message, kept.display())))
}

/// Writes a model whole, or not at all.
pub(crate) fn write(model: &SavedModel, path: &Path, kind: Kind, is_single: bool) -> Result<(), Failure> {
    match kind {
        Kind::Kernelpath => model.save(path)?,
        Kind::Libsvm => write_whole(path, libsvm::to_libsvm(model)?.as_bytes())?,
        Kind::Onnx => write_whole(path, &onnx::to_onnx(model, &onnx::Options { is_single })?)?,
    }
    Ok(())
}
