//! `kernelpath report`: a page that explains a model.

use kernelpath::{Control, Hardware, write_whole};
use kernelpath_export::report::{Labelled, Options, report};

use crate::arguments::report::ReportArguments;
use crate::data::Known;
use crate::failure::Failure;
use crate::models;

pub(crate) fn run(arguments: &ReportArguments, control: &Control) -> Result<(), Failure> {
    let model = models::load(&arguments.model)?;
    let output = arguments.output.clone().unwrap_or_else(|| arguments.model.with_extension("html"));
    models::check_folder(&output)?;
    let data_name = arguments.data.as_ref().map(|data| data.display().to_string());
    let (title, hardware) = (arguments.title.clone(), Hardware::default());
    let options = Options { title, data_name, hardware, control: control.clone() };
    let page = match &arguments.data {
        None => report(&model, None, &options)?,
        Some(path) => {
            let known = Known::read(&model, path, &arguments.weights, &arguments.data_options, 0, control)?;
            let (x, truth, weights) = (known.table.rows.view()?, known.truth(), known.weights.as_deref());
            report(&model, Some(Labelled { x, truth, weights }), &options)?
        }
    };
    Ok(write_whole(&output, page.as_bytes())?)
}
