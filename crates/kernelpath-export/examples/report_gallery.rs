//! Writes a report of every kind of model into a folder: `cargo run -p kernelpath-export --example report_gallery FOLDER`.

use std::path::PathBuf;

use kernelpath::Rows;
use kernelpath_export::report::{Labelled, Options, Truth, report};

#[path = "../tests/common/mod.rs"]
mod common;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    std::fs::create_dir_all(&folder)?;
    for case in common::classifiers().into_iter().chain(common::regressors()) {
        for (data, suffix) in [(&case.new, ""), (&case.trained, "-trained")] {
            let truth = match &data.labels {
                Some(labels) => Truth::Labels(labels),
                None => {
                    Truth::Numbers { columns: data.numbers.len() / (data.x.len() / case.width), values: &data.numbers }
                }
            };
            let labelled = Labelled { x: Rows::from_slice(&data.x, case.width)?, truth, weights: None };
            let options = Options { data_name: Some("rings.csv".into()), ..Options::default() };
            let page = report(&case.model, Some(labelled), &options)?;
            let name = format!("{}{suffix}.html", case.name.replace(' ', "-"));
            std::fs::write(folder.join(name), page)?;
        }
    }
    Ok(())
}
