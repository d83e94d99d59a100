//! The page around its parts.

use crate::report::section::Section;
use crate::report::text::{escaped, shortened};

/// Most characters of the heading.
const LONGEST: usize = 120;

/// What stands above the parts.
pub(crate) struct Head {
    /// The heading; plain text.
    pub title: String,
    /// The sentence below it: HTML.
    pub lead: String,
    /// The badge and the figures: HTML.
    pub figures: String,
}

/// The whole page. It may not load anything from anywhere.
pub(crate) fn page(head: &Head, sections: &[Section]) -> String {
    let title = escaped(&shortened(&head.title, LONGEST));
    let link = |s: &Section| ["<a href=\"#", s.id, "\">", &escaped(&s.title), "</a>"].concat();
    let links: String = sections.iter().map(link).collect();
    let body: String = sections.iter().map(Section::html).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"kernelpath {version}\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
         <header><p class=\"brand\">kernelpath report</p><h1><bdi>{title}</bdi></h1><p class=\"lead\">{lead}</p>\
         {figures}<nav aria-label=\"Parts of this page\">{links}</nav></header>\n<main>\n{body}\n</main>\n\
         <footer><p>Made by kernelpath {version}. This page needs no network.</p></footer>\n\
         <script>\n{script}</script>\n</body>\n</html>\n",
        version = env!("CARGO_PKG_VERSION"),
        lead = head.lead,
        figures = head.figures,
        style = include_str!("style.css"),
        script = include_str!("script.js"),
    )
}
