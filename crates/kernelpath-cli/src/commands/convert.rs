//! `kernelpath convert`: a model in another format.

use crate::arguments::small::ConvertArguments;
use crate::failure::Failure;
use crate::models::{self, Kind};

pub(crate) fn run(arguments: &ConvertArguments) -> Result<(), Failure> {
    let kind = Kind::of(&arguments.to)?;
    let model = match Kind::of(&arguments.from)? {
        Kind::Onnx => {
            let message = "models are written as .onnx, not read: convert from the .kpath or .model file";
            return Err(Failure::input(format!("{}: {message}", arguments.from.display())));
        }
        Kind::Libsvm => models::load_libsvm(&arguments.from)?,
        Kind::Kernelpath => kernelpath::SavedModel::load(&arguments.from)?,
    };
    if arguments.float32 && kind != Kind::Onnx {
        return Err(Failure::input("--float32 is for .onnx files; leave it out"));
    }
    models::write(&model, &arguments.to, kind, arguments.float32)
}
