//! Bars: a histogram, or shares of a whole.

use crate::report::chart::frame::{Frame, WIDTH};
use crate::report::chart::scale::Scale;
use crate::report::chart::svg::Svg;
use crate::report::html::Html;

const HEIGHT: f64 = 200.0;

/// One bar, between two places of the horizontal axis.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub from: f64,
    pub to: f64,
    pub height: f64,
    pub tip: String,
}

/// A histogram.
#[derive(Debug, Clone, Default)]
pub(crate) struct BarChart {
    pub title: String,
    pub x_name: String,
    pub y_name: String,
    pub bars: Vec<Bar>,
    /// A place of the horizontal axis that is marked.
    pub mark: Option<f64>,
}

impl BarChart {
    /// The drawing.
    pub fn draw(&self, summary: &str) -> Html {
        let mut svg = Svg::default();
        let x = Scale::linear(self.bars.iter().flat_map(|bar| [bar.from, bar.to]));
        let y = Scale::linear(self.bars.iter().map(|bar| bar.height).chain([0.0]));
        let frame = Frame::draw(&mut svg, HEIGHT, (x, &self.x_name), (y, &self.y_name));
        for bar in &self.bars {
            let (Some(from), Some(to)) = (frame.x.at(bar.from), frame.x.at(bar.to)) else { continue };
            let top = frame.y.at(bar.height).unwrap_or(frame.bottom);
            let gap = if to - from > 4.0 { 1.0 } else { 0.0 };
            svg.rect("bar", (from, top), (to - from - gap, frame.bottom - top), None);
            svg.rect("hit", (from, frame.top), (to - from, frame.bottom - frame.top), Some(&bar.tip));
        }
        if let Some(at) = self.mark.and_then(|mark| frame.x.at(mark)) {
            svg.line("chosen", (at, frame.top), (at, frame.bottom));
        }
        svg.element((WIDTH, HEIGHT), &self.title, summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bar_reaches_its_height() {
        let bar = |k: usize| Bar { from: k as f64, to: k as f64 + 1.0, height: 10.0 * k as f64, tip: format!("{k}") };
        let chart = BarChart { bars: (0..4).map(bar).collect(), mark: Some(2.0), ..BarChart::default() };
        let drawing = chart.draw("");
        assert_eq!(drawing.matches("class=\"bar\"").count(), 4);
        assert_eq!(drawing.matches("class=\"hit\"").count(), 4);
        assert!(drawing.contains("height=\"0\"") && drawing.contains("class=\"chosen\""));
        assert!(BarChart::default().draw("").contains("</svg>"));
    }
}
