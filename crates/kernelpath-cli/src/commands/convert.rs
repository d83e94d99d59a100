//! `kernelpath convert`: a model in another format.

use crate::arguments::small::ConvertArguments;
use crate::failure::Failure;
use crate::models::{self, Kind, Opened};

pub(crate) fn run(arguments: &ConvertArguments) -> Result<(), Failure> {
    let kind = Kind::of(&arguments.to)?;
    models::check_output(&arguments.to, &[&arguments.from])?;
    // Standard input and pipes have no extension: there the content says what it is.
    let model = match Kind::of(&arguments.from) {
        Ok(Kind::Onnx) => {
            let message = "models are written as .onnx, not read: convert from the .kpath or .model file";
            return Err(Failure::input(format!("{}: {message}", arguments.from.display())));
        }
        Ok(Kind::Libsvm) => Opened::new(&arguments.from)?.load_libsvm()?.model,
        Ok(Kind::Kernelpath) => kernelpath::SavedModel::load(&arguments.from)?,
        Err(_) => models::load(&arguments.from)?,
    };
    if arguments.float32 && kind != Kind::Onnx {
        return Err(Failure::input("--float32 is for .onnx files; leave it out"));
    }
    models::write(&model, &arguments.to, kind, arguments.float32)
}
