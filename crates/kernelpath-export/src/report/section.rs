//! The parts of the page.

use crate::report::chart::Figure;
use crate::report::html::{Html, html};

/// A part of the page, with a heading of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    /// What links to it.
    pub id: &'static str,
    /// The heading.
    pub title: String,
    /// What stands beside the figures.
    pub words: Html,
    pub figures: Vec<Figure>,
}

impl Section {
    pub fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into(), ..Self::default() }
    }

    /// Adds a paragraph.
    pub fn say(&mut self, text: &str) {
        self.say_html(Html::text(text));
    }

    /// Adds a paragraph with markup in it.
    #[allow(clippy::needless_pass_by_value)] // what is made here is given away
    pub fn say_html(&mut self, paragraph: Html) {
        self.words += html!("<p>{}</p>", paragraph);
    }

    /// Adds a paragraph of small print, or a warning, by its class.
    pub fn note(&mut self, class: &'static str, text: &str) {
        self.words += html!("<p class=\"{}\">{}</p>", Html::own(class), Html::text(text));
    }

    pub fn html(&self) -> Html {
        let id = Html::own(self.id);
        // Words stand beside a single figure, and above two.
        let flow = Html::own(if self.figures.len().is_multiple_of(2) { "flow even" } else { "flow" });
        let words =
            if self.words.is_empty() { Html::default() } else { html!("<div class=\"words\">{}</div>", self.words) };
        let figures: Html = self.figures.iter().map(Figure::html).collect();
        html!(
            "<section id=\"{}\" aria-labelledby=\"{}-title\"><h2 id=\"{}-title\">{}</h2><div class=\"{}\">{}{}</div></section>",
            id,
            id,
            id,
            Html::text(&self.title),
            flow,
            words,
            figures
        )
    }
}
