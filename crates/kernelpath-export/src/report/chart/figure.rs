//! A chart on the page: heading, drawing, legend, and the table behind it.

use crate::report::html::{Html, html};
use crate::report::table::Table;
use crate::report::text::shortened;

/// Most characters of a name in a legend.
const LONGEST: usize = 40;

/// A chart with its words.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// The heading.
    pub title: String,
    /// The drawing, an element.
    pub drawing: Html,
    /// The class of each mark, and what it stands for.
    pub legend: Vec<(String, String)>,
    /// What is not shown, or how to read the chart.
    pub note: String,
    /// The numbers.
    pub table: Table,
}

impl Figure {
    /// As an element of the page.
    pub fn html(&self) -> Html {
        let key = |(class, name): &(String, String)| {
            let name = Html::text(&shortened(name, LONGEST));
            html!("<li><i class=\"key {}\"></i><bdi>{}</bdi></li>", Html::text(class), name)
        };
        let mut out = html!("<figure><figcaption>{}</figcaption>{}", Html::text(&self.title), self.drawing);
        if !self.legend.is_empty() {
            out += html!("<ul class=\"legend\">{}</ul>", self.legend.iter().map(key).collect::<Html>());
        }
        if !self.note.is_empty() {
            out += html!("<p class=\"note\">{}</p>", Html::text(&self.note));
        }
        if !self.table.is_empty() {
            out += self.table.folded("The numbers");
        }
        out += html!("</figure>");
        out
    }
}
