//! The parts of a drawing.

use crate::report::html::{Html, html};

/// A drawing in the making.
#[derive(Debug, Clone, Default)]
pub(crate) struct Svg {
    body: Html,
}

/// Where a text is anchored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// At its start.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

impl Svg {
    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(short);
        let class = Html::text(class);
        self.body += html!("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>", class, x1, y1, x2, y2);
    }

    /// A rectangle; `tip` is shown while the pointer is on it.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: Option<&str>) {
        self.body += html!(
            "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}",
            Html::text(class),
            short(x),
            short(y),
            short(width.max(0.0)),
            short(height.max(0.0)),
            end("rect", tip)
        );
    }

    /// A disc.
    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64, tip: Option<&str>) {
        self.body += html!(
            "<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"{}",
            Html::text(class),
            short(x),
            short(y),
            short(radius),
            end("circle", tip)
        );
    }

    /// A line through points.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        self.outline(class, points, "");
    }

    /// The area inside points.
    pub fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        self.outline(class, points, "Z");
    }

    fn outline(&mut self, class: &str, points: &[(f64, f64)], end: &'static str) {
        let place = |(k, (x, y)): (usize, &(f64, f64))| {
            html!("{}{},{}", Html::own(if k == 0 { "M" } else { "L" }), short(*x), short(*y))
        };
        let places: Html = points.iter().enumerate().map(place).collect();
        self.body += html!("<path class=\"{}\" d=\"{}{}\"/>", Html::text(class), places, Html::own(end));
    }

    /// A text.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = Html::own(match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        });
        self.body += html!(
            "<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
            Html::text(class),
            short(x),
            short(y),
            anchor,
            Html::text(text)
        );
    }

    /// The drawing as an element of a page, described by `summary` to those who do not see it.
    pub fn element(&self, size: (f64, f64), title: &str, summary: &str) -> Html {
        html!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>",
            short(size.0),
            short(size.1),
            Html::text(&format!("{title}. {summary}")),
            self.body
        )
    }
}

/// The end of an element, with what it says to the pointer.
fn end(element: &'static str, tip: Option<&str>) -> Html {
    match tip {
        None => html!("/>"),
        Some(tip) => html!("><title>{}</title></{}>", Html::text(tip), Html::own(element)),
    }
}

/// A coordinate with one decimal at most.
fn short(value: f64) -> f64 {
    if value.is_finite() { (10.0 * value).round() / 10.0 + 0.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_elements() {
        let mut svg = Svg::default();
        svg.path("a", &[(0.0, 1.0), (2.24, -0.01)]);
        svg.rect("b", (f64::NAN, 1.0), (-3.0, 4.0), Some("1 < 2"));
        svg.text("c", (1.0, 2.0), Anchor::End, "a&b");
        let expected = "<svg viewBox=\"0 0 10 20\" role=\"img\" aria-label=\"Title. Text \
            &quot;q&quot;\"><path class=\"a\" d=\"M0,1L2.2,0\"/><rect class=\"b\" x=\"0\" y=\"1\" width=\"0\" \
            height=\"4\"><title>1 &lt; 2</title></rect><text class=\"c\" x=\"1\" y=\"2\" text-anchor=\"end\">\
            a&amp;b</text></svg>";
        assert_eq!(&*svg.element((10.0, 20.0), "Title", "Text \"q\""), expected);
    }
}
