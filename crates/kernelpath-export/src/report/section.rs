//! The parts of the page.

use std::fmt::Write as _;

use crate::report::chart::Figure;
use crate::report::text::escaped;

/// A part of the page, with a heading of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    /// What links to it.
    pub id: &'static str,
    /// The heading; plain text.
    pub title: String,
    /// What stands beside the figures: HTML.
    pub words: String,
    pub figures: Vec<Figure>,
}

impl Section {
    pub fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into(), ..Self::default() }
    }

    /// Adds a paragraph of HTML.
    pub fn say(&mut self, html: &str) {
        let _ = write!(self.words, "<p>{html}</p>");
    }

    pub fn html(&self) -> String {
        let (id, title) = (self.id, escaped(&self.title));
        let mut out = format!("<section id=\"{id}\" aria-labelledby=\"{id}-title\"><h2 id=\"{id}-title\">{title}</h2>");
        // Words stand beside a single figure, and above two.
        let is_even = self.figures.len().is_multiple_of(2);
        out += if is_even { "<div class=\"flow even\">" } else { "<div class=\"flow\">" };
        if !self.words.is_empty() {
            let _ = write!(out, "<div class=\"words\">{}</div>", self.words);
        }
        for figure in &self.figures {
            out += &figure.html();
        }
        out += "</div></section>";
        out
    }
}
