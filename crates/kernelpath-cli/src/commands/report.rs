//! `kernelpath report`: a page that explains a model.

use std::path::Path;

use kernelpath::{Control, Hardware, write_whole};
use kernelpath_export::report::{Labelled, Options, report};

use crate::arguments::report::ReportArguments;
use crate::data::Known;
use crate::failure::Failure;
use crate::{models, output};

pub(crate) fn run(arguments: &ReportArguments, control: &Control) -> Result<(), Failure> {
    models::check_inputs(&arguments.model, arguments.data.as_deref())?;
    let is_stdin = arguments.model == Path::new(models::STDIN);
    let page_file = match &arguments.output {
        Some(page) => page.clone(),
        None if is_stdin => return Err(Failure::input("a model from standard input has no name; name the page by -o")),
        None => arguments.model.with_extension("html"),
    };
    let inputs: Vec<&Path> =
        [Some(&arguments.model), arguments.data.as_ref()].into_iter().flatten().map(|p| &**p).collect();
    models::check_output(&page_file, &inputs)?;
    let mut model = models::load(&arguments.model)?;
    let data_name = arguments.data.as_ref().map(|data| data.display().to_string());
    let (title, hardware) = (arguments.title.clone(), Hardware::default());
    let options = Options { title, data_name, hardware, control: control.clone() };
    let page = match &arguments.data {
        None => report(&model, None, &options)?,
        Some(path) => {
            let known = Known::read(&mut model, path, &arguments.weights, &arguments.data_options, 0, control)?;
            known.notes.iter().for_each(|note| output::tell(&format!("note: {note}")));
            let (x, truth, weights) = (known.table.rows.view()?, known.truth(), known.weights.as_deref());
            report(&model, Some(Labelled { x, truth, weights }), &options)?
        }
    };
    Ok(write_whole(&page_file, page.as_bytes())?)
}
