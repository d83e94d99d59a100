//! The page around its parts.

use crate::report::hash::sha256_base64;
use crate::report::html::{Html, html};
use crate::report::section::Section;
use crate::report::text::shortened;

/// Most characters of the heading.
const LONGEST: usize = 120;

const STYLE: &str = include_str!("style.css");

const SCRIPT: &str = include_str!("script.js");

/// What stands above the parts.
pub(crate) struct Head {
    /// The heading.
    pub title: String,
    /// The sentence below it.
    pub lead: Html,
    /// The badge and the figures.
    pub figures: Html,
}

/// The whole page. It may not load anything from anywhere, and runs no script but its own, which browsers know by its
/// hash.
pub(crate) fn page(head: &Head, sections: &[Section]) -> String {
    let title = Html::text(&shortened(&head.title, LONGEST));
    let version = Html::own(env!("CARGO_PKG_VERSION"));
    let link = |s: &Section| html!("<a href=\"#{}\">{}</a>", Html::own(s.id), Html::text(&s.title));
    let links: Html = sections.iter().map(link).collect();
    let body: Html = sections.iter().map(Section::html).collect();
    let hash = |text: &str| Html::text(&sha256_base64(text.as_bytes()));
    let policy = html!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; \
         script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n",
        hash(STYLE),
        hash(SCRIPT)
    );
    html!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"kernelpath {}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>{}</style>\n</head>\n<body>\n\
         <header><p class=\"brand\">kernelpath report</p><h1><bdi>{}</bdi></h1><p class=\"lead\">{}</p>\
         {}<nav aria-label=\"Parts of this page\">{}</nav></header>\n<main>\n{}\n</main>\n\
         <footer><p>Made by kernelpath {}. This page needs no network.</p></footer>\n\
         <script>{}</script>\n</body>\n</html>\n",
        policy,
        version,
        title,
        Html::own(STYLE),
        title,
        head.lead,
        head.figures,
        links,
        body,
        version,
        Html::own(SCRIPT)
    )
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_allows_its_own_script_and_style_only() {
        let head = Head { title: "<title>".into(), lead: Html::default(), figures: Html::default() };
        let page = page(&head, &[]);
        let between = |start: &str, end: &str| page.split(start).nth(1).unwrap().split(end).next().unwrap().to_string();
        for (element, directive) in [("script", "script-src"), ("style", "style-src")] {
            let own = between(&format!("<{element}>"), &format!("</{element}>"));
            let allowed = between(&format!("{directive} 'sha256-"), "'");
            assert_eq!(sha256_base64(own.as_bytes()), allowed, "{element}");
        }
        assert!(!page.contains("unsafe-inline") && page.contains("<h1><bdi>&lt;title&gt;"));
        assert!(!page.contains(" style=\"") && !page.contains(" onload"));
    }
}
