//! Model files of every format: read by their content, written by their extension.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use kernelpath::{SavedModel, write_whole};
use kernelpath_export::{libsvm, onnx};

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

/// Refuses, before any work, a place where no file can be.
pub(crate) fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = fs::metadata(folder).map_err(|error| error.to_string());
    match found {
        Ok(found) if found.is_dir() && !path.is_dir() => Ok(()),
        Ok(found) => {
            let what = if found.is_dir() { "it is a folder" } else { "its folder is a file" };
            Err(Failure::new(FAILED, format!("cannot write {:?}: {what}", path.display().to_string())))
        }
        Err(reason) => Err(Failure::new(FAILED, format!("cannot write {:?}: {reason}", path.display().to_string()))),
    }
}

/// Reads a model of this library or of LIBSVM; the content says which.
pub(crate) fn load(path: &Path) -> Result<SavedModel, Failure> {
    if is_text(path) { load_libsvm(path) } else { Ok(SavedModel::load(path)?) }
}

/// Reads a model of LIBSVM.
pub(crate) fn load_libsvm(path: &Path) -> Result<SavedModel, Failure> {
    libsvm::from_libsvm(&text(path)?).map_err(|error| {
        let failure = Failure::from(error);
        Failure::new(failure.status, format!("{}: {}", path.display(), failure.message))
    })
}

/// The bytes of a model file that is text.
pub(crate) fn text(path: &Path) -> Result<Vec<u8>, Failure> {
    let unread = |error| Failure::new(FAILED, format!("cannot read {:?}: {error}", path.display().to_string()));
    fs::read(path).map_err(unread)
}

/// Whether the file begins with text, as LIBSVM's models do; ours begin with a number of 8 bytes, some of them 0.
pub(crate) fn is_text(path: &Path) -> bool {
    let mut start = [0; 8];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start.iter().all(|c| c.is_ascii_graphic() || c.is_ascii_whitespace())
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
