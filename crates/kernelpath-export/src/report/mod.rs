//! A fitted model explained by one page of HTML that needs nothing else.

mod calibration;
mod chart;
mod classes;
mod command;
mod edge;
mod found;
mod hash;
mod html;
mod judged;
mod numbers;
mod overview;
mod page;
mod proofs;
mod proved;
mod reproduce;
mod request;
mod scores;
mod section;
mod support;
mod table;
mod text;
mod timings;

pub use request::{Labelled, Options, Truth};

use kernelpath::{Result, SavedModel};

use crate::report::found::Found;
use crate::report::judged::Judged;
use crate::report::page::{Head, page};
use crate::report::proved::Proof;
use crate::report::section::Section;

/// The page. With `data` it also has what the model says of these rows against what is true of them. If they are the rows
/// of the fit, the proof of the model is recomputed with them; else all proofs are as the model records them.
///
/// ```
/// use kernelpath::Classifier;
/// use kernelpath_export::report::{Options, report};
///
/// let x: Vec<f64> = (0..60).map(|i| (0.37 * f64::from(i)).sin()).collect();
/// let labels: Vec<&str> = x.iter().map(|x| if *x > 0.3 { "high" } else { "low" }).collect();
/// let model = Classifier::svm().cs([0.1, 1.0, 10.0]).fit((&x[..], 1), &labels)?;
/// let page = report(&model.saved(), None, &Options::default())?;
/// assert!(page.starts_with("<!DOCTYPE html>") && page.contains("proved optimal"));
/// # Ok::<(), kernelpath::Error>(())
/// ```
pub fn report(model: &SavedModel, data: Option<Labelled<'_>>, options: &Options) -> Result<String> {
    let found = Found::new(model);
    let judged = data.map(|data| Judged::new(&found, &data, options)).transpose()?;
    let proof = Proof::of(&found, data.as_ref(), options)?;
    let name = options.data_name.as_deref();
    let mut sections = vec![overview::section(&found)];
    sections.extend(judged.as_ref().map(|judged| match judged {
        Judged::Classes(judged) => classes::section(judged, name),
        Judged::Numbers(judged) => numbers::section(&found, judged, name),
    }));
    let judged_classes = if let Some(Judged::Classes(judged)) = &judged { Some(judged) } else { None };
    sections.extend(scores::section(&found).or_else(|| Some(without_scores())));
    sections.extend(calibration::section(&found, judged_classes));
    sections.extend(support::section(&found));
    sections.push(proofs::section(&found, &proof));
    sections.extend(timings::section(&found));
    sections.push(reproduce::section(&found));
    let head = Head {
        title: options.title.clone().unwrap_or_else(|| model.estimator.clone()),
        lead: overview::lead(&found),
        figures: overview::key_figures(&found, &proof),
    };
    Ok(page(&head, &sections))
}

/// In place of the scores.
fn without_scores() -> Section {
    let mut section = Section::new("scores", "How C was chosen");
    section.say("This model has no scores of held-out rows: it was fitted without folds, or they are not in its file.");
    section
}
