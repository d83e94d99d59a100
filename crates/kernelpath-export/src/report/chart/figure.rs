//! A chart on the page: heading, drawing, legend, and the table behind it.

use std::fmt::Write;

use crate::report::table::Table;
use crate::report::text::{escaped, shortened};

/// Most characters of a name in a legend.
const LONGEST: usize = 40;

/// A chart with its words.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// The heading.
    pub title: String,
    /// The drawing, an element.
    pub drawing: String,
    /// The class of each mark, and what it stands for.
    pub legend: Vec<(String, String)>,
    /// What is not shown, or how to read the chart; plain text.
    pub note: String,
    /// The numbers.
    pub table: Table,
}

impl Figure {
    /// As an element of the page.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut out = format!("<figure><figcaption>{title}</figcaption>{}", self.drawing);
        if !self.legend.is_empty() {
            out.push_str("<ul class=\"legend\">");
            for (class, name) in &self.legend {
                let name = escaped(&shortened(name, LONGEST));
                let _ = write!(out, "<li><i class=\"key {class}\"></i><bdi>{name}</bdi></li>");
            }
            out.push_str("</ul>");
        }
        if !self.note.is_empty() {
            let _ = write!(out, "<p class=\"note\">{}</p>", escaped(&self.note));
        }
        if !self.table.is_empty() {
            out.push_str(&self.table.folded("The numbers"));
        }
        out.push_str("</figure>");
        out
    }
}
