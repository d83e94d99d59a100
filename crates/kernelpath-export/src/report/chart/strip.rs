//! One bar that is cut into shares.

use crate::report::chart::frame::WIDTH;
use crate::report::chart::svg::{Anchor, Svg};
use crate::report::html::Html;
use crate::report::text::percent;

const HEIGHT: f64 = 34.0;

/// Least width of a share that is named.
const NAMED: f64 = 44.0;

/// The drawing of shares that sum to 1, each with its name and what it says to the pointer, and the legend.
pub(crate) fn strip(title: &str, shares: &[(&str, f64, String)]) -> (Html, Vec<(String, String)>) {
    let mut svg = Svg::default();
    let (mut left, mut legend, mut summary) = (0.0, Vec::new(), Vec::new());
    for (k, (name, share, tip)) in shares.iter().enumerate() {
        let width = share * WIDTH;
        svg.rect(&format!("share s{k}"), (left, 2.0), (width - 1.0, HEIGHT - 4.0), Some(tip));
        if width > NAMED {
            svg.text("value on", (left + 0.5 * width, 0.5 * HEIGHT + 4.0), Anchor::Middle, &percent(*share));
        }
        left += width;
        legend.push((format!("s{k}"), (*name).to_string()));
        summary.push(tip.clone());
    }
    (svg.element((WIDTH, HEIGHT), title, &summary.join(", ")), legend)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_the_bar() {
        let shares = [("a", 0.25, "a: 1 s".to_string()), ("b", 0.75, "b: 3 s".to_string())];
        let (drawing, legend) = strip("Time", &shares);
        assert!(drawing.contains("width=\"89\"") && drawing.contains("x=\"90\"") && drawing.contains("width=\"269\""));
        assert_eq!(legend.len(), 2);
    }
}
