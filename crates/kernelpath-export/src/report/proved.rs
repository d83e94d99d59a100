//! Whether the proof of the returned model was recomputed, and what came of it.

use kernelpath::{Recomputed, Result, Verification};

use crate::report::found::Found;
use crate::report::html::{Html, html};
use crate::report::proofs::{badge, machine_table};
use crate::report::request::{Labelled, Options};
use crate::report::section::Section;
use crate::report::text::{number, rough};

/// Where the verdict of the page comes from.
pub(crate) enum Proof {
    /// The file, or the fit: nothing was recomputed.
    Recorded,
    /// The rows of the fit.
    Recomputed(Recomputed),
    /// Nowhere: other rows prove nothing. What differs.
    OtherRows(String),
    /// Nowhere: the reason.
    Impossible(String),
}

impl Proof {
    /// With rows, the proof of the returned model is recomputed if they are those of the fit.
    pub fn of(found: &Found, data: Option<&Labelled>, options: &Options) -> Result<Self> {
        let Some(data) = data else { return Ok(Self::Recorded) };
        // One column stands for all quantiles, but for no other targets.
        let (weights, threads, control) = (data.weights, options.hardware.threads, &options.control);
        Ok(match found.model.verify(data.x, data.truth, weights, None, threads, control)? {
            Verification::Recomputed(recomputed) => Self::Recomputed(recomputed),
            Verification::OtherRows(difference) => Self::OtherRows(difference),
            Verification::Impossible(reason) => Self::Impossible(reason),
            _ => Self::Recorded,
        })
    }

    /// The name of the state, for programs that read the page.
    fn name(&self) -> &'static str {
        match self {
            Self::Recorded | Self::Impossible(_) => "recorded",
            Self::Recomputed(proof) if proof.is_verified() => "verified",
            Self::Recomputed(_) => "failed",
            Self::OtherRows(_) => "other-rows",
        }
    }

    /// The element with the verdict.
    pub fn badge(&self, found: &Found) -> Html {
        let (recorded, is_good) = badge(found);
        let (text, is_good) = match self {
            Self::Recorded => (format!("{recorded}, as recorded in the file"), is_good),
            Self::Impossible(reason) => {
                (format!("{recorded}, as recorded in the file; not verified: {reason}"), is_good)
            }
            Self::OtherRows(difference) => {
                let text = format!(
                    "{recorded}, as recorded in the file; not verified: these are not the training rows ({difference})"
                );
                (text, is_good)
            }
            Self::Recomputed(proof) if proof.is_verified() => {
                (format!("{}. {recorded}, as recorded in the file", in_words(proof)), true)
            }
            Self::Recomputed(proof) => (in_words(proof), false),
        };
        // A tick is for what was recomputed: a file may record what it likes.
        let (class, sign) = match self {
            _ if !is_good => ("badge warn", "!"),
            Self::Recomputed(_) => ("badge good", "✓"),
            _ => ("badge noted", "○"),
        };
        html!(
            "<p class=\"{}\" data-proof=\"{}\"><span aria-hidden=\"true\">{}</span> {}</p>",
            Html::own(class),
            Html::own(self.name()),
            Html::own(sign),
            Html::text(&text)
        )
    }

    /// What stands in the part about certificates.
    pub fn explain(&self, found: &Found, section: &mut Section) {
        match self {
            Self::Recorded => section.say(
                "All of these numbers are as recorded in the file by the fit. Make the report with the rows of the fit, or \
                 use kernelpath verify, to have those of the returned model recomputed.",
            ),
            Self::Impossible(reason) => section.say(&format!("The returned model was not verified: {reason}.")),
            Self::OtherRows(difference) => section.say(&format!(
                "The rows of this report are not the training rows: {difference}. They prove nothing of the model. The \
                 numbers are as recorded in the file."
            )),
            Self::Recomputed(proof) => {
                section.say(&format!(
                    "The returned model was verified with the rows of the fit, and nothing of the file was taken for it but \
                     the model and its problem. {}. The numbers of all other models are as recorded in the file.",
                    in_words(proof)
                ));
                if !proof.certificates.is_empty() {
                    section.words += machine_table(found, "The returned model, recomputed", &rows(proof)).html();
                }
            }
        }
    }
}

/// P, D, gap, noise and verdict of each machine.
fn rows(proof: &Recomputed) -> Vec<(f64, f64, f64, f64, String)> {
    let of = |m: usize| {
        let certificate = &proof.certificates[m];
        let verdict = if proof.is_proved(m) { "verified" } else { "failed" };
        (certificate.primal, certificate.dual, certificate.gap(), certificate.relative_noise(), verdict.to_string())
    };
    (0..proof.certificates.len()).map(of).collect()
}

fn in_words(proof: &Recomputed) -> String {
    let tol = number(proof.tol);
    match &proof.contradiction {
        Some(contradiction) => format!("The returned model is not proved: {contradiction}"),
        None if proof.is_verified() => format!(
            "The returned model is proved optimal to {tol}, verified with the rows of the fit (largest gap {})",
            rough(proof.worst_gap())
        ),
        None if proof.worst_gap().is_nan() => "The returned model is not proved: the kernel is indefinite".into(),
        None => format!(
            "The returned model is not proved optimal to {tol}: with the rows of the fit, its largest gap is {}",
            rough(proof.worst_gap())
        ),
    }
}
