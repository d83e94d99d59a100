//! `kernelpath report`: a page that explains a model.

use kernelpath::{Control, Hardware, Outputs, write_whole};
use kernelpath_export::report::{Labelled, Options, Truth, report};

use crate::arguments::report::ReportArguments;
use crate::data;
use crate::failure::Failure;
use crate::models;

pub(crate) fn run(arguments: &ReportArguments, control: &Control) -> Result<(), Failure> {
    let model = models::load(&arguments.model)?;
    let output = arguments.output.clone().unwrap_or_else(|| arguments.model.with_extension("html"));
    models::check_folder(&output)?;
    let data_name = arguments.data.as_ref().map(|data| data.display().to_string());
    let options = Options { title: arguments.title.clone(), data_name, hardware: Hardware::default() };
    let page = match &arguments.data {
        None => report(&model, None, &options)?,
        Some(path) => {
            let table = data::read_for(&model, path, &arguments.data_options, 0, control)?;
            let (labels, x) = (data::needed(&table, path)?, table.rows.view()?);
            if let Outputs::Classes { .. } = &model.predictor.outputs {
                let labels = data::classes(labels);
                report(&model, Some(Labelled { x, truth: Truth::Labels(&labels) }), &options)?
            } else {
                let values = data::numbers(labels, path)?;
                let truth = Truth::Numbers { columns: 1, values: &values };
                report(&model, Some(Labelled { x, truth }), &options)?
            }
        }
    };
    Ok(write_whole(&output, page.as_bytes())?)
}
