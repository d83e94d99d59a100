//! Tables: the numbers behind a chart.

use crate::report::html::{Html, html};
use crate::report::text::{count, shortened};

/// Most lines of a table.
pub(crate) const MOST_LINES: usize = 200;

/// Most characters of a cell.
const LONGEST: usize = 120;

/// A table of plain texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    caption: String,
    head: Vec<String>,
    lines: Vec<Vec<String>>,
    left_out: usize,
    is_facts: bool,
}

impl Table {
    /// With these headings.
    pub fn new(caption: &str, head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        Self { caption: caption.into(), head, ..Self::default() }
    }

    /// Of pairs: what, and its value in words. The headings are for those who do not see the table.
    pub fn facts(caption: &str) -> Self {
        Self { is_facts: true, ..Self::new(caption, ["what", "value"]) }
    }

    /// Adds a line; one beyond the most lines is counted only.
    pub fn line(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        if self.lines.len() < MOST_LINES {
            self.lines.push(cells.into_iter().map(Into::into).collect());
        } else {
            self.left_out += 1;
        }
    }

    /// Says that there were more lines than it was given.
    pub fn leave_out(&mut self, lines: usize) {
        self.left_out += lines;
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The table, wide ones in a box that scrolls.
    pub fn html(&self) -> Html {
        let caption = Html::text(&self.caption);
        let class = Html::own(if self.is_facts { " class=\"facts\"" } else { "" });
        let head: Html =
            self.head.iter().map(|heading| html!("<th scope=\"col\">{}</th>", Html::text(heading))).collect();
        let cell = |(place, cell): (usize, &String)| {
            let cell = Html::text(&shortened(cell, LONGEST));
            if place == 0 { html!("<th scope=\"row\"><bdi>{}</bdi></th>", cell) } else { html!("<td>{}</td>", cell) }
        };
        let line = |line: &Vec<String>| html!("<tr>{}</tr>", line.iter().enumerate().map(cell).collect::<Html>());
        let lines: Html = self.lines.iter().map(line).collect();
        let mut out = html!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table{}><caption>{}</caption>\
             <thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
            caption,
            class,
            caption,
            head,
            lines
        );
        if self.left_out > 0 {
            out += html!("<p class=\"note\">{} more lines are left out.</p>", Html::text(&count(self.left_out)));
        }
        out
    }

    /// The table behind a line that opens it.
    pub fn folded(&self, summary: &str) -> Html {
        html!("<details><summary>{}</summary>{}</details>", Html::text(summary), self.html())
    }
}

/// Places 0 to `n`, thinned out evenly to about `most` if there are more, the first, the last and those of `keep`
/// among them.
pub(crate) fn thinned(n: usize, most: usize, keep: &[usize]) -> Vec<usize> {
    if n <= most {
        return (0..n).collect();
    }
    let last = most.max(2) - 1;
    let mut places: Vec<usize> = (0..=last).map(|k| k * (n - 1) / last).collect();
    places.extend(keep.iter().filter(|place| **place < n));
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tables_are_cut_and_say_so() {
        let mut table = Table::new("Numbers", ["k", "square"]);
        (0..MOST_LINES + 7).for_each(|k| table.line([k.to_string(), (k * k).to_string()]));
        let html = table.html();
        assert_eq!(html.matches("<tr>").count(), MOST_LINES + 1);
        assert!(html.contains("7 more lines"));
    }

    #[test]
    fn thinning_keeps_the_ends_and_what_it_is_told() {
        assert_eq!(thinned(4, 10, &[2]), [0, 1, 2, 3]);
        let places = thinned(10_000, 50, &[7777, 10_001]);
        assert_eq!((places.len(), places[0], *places.last().unwrap()), (51, 0, 9999));
        assert!(places.contains(&7777) && places.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
