//! The parts of a drawing.

use std::fmt::Write;

use crate::report::text::escaped;

/// A drawing in the making.
#[derive(Debug, Clone, Default)]
pub(crate) struct Svg {
    body: String,
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
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            short(x1),
            short(y1),
            short(x2),
            short(y2)
        );
    }

    /// A rectangle; `tip` is shown while the pointer is on it.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: Option<&str>) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            short(x),
            short(y),
            short(width.max(0.0)),
            short(height.max(0.0))
        );
        self.end("rect", tip);
    }

    /// A disc.
    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64, tip: Option<&str>) {
        let (x, y) = (short(x), short(y));
        let _ = write!(self.body, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{}\"", short(radius));
        self.end("circle", tip);
    }

    /// A line through points.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        self.outline(class, points, "");
    }

    /// The area inside points.
    pub fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        self.outline(class, points, "Z");
    }

    fn outline(&mut self, class: &str, points: &[(f64, f64)], end: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"");
        for (k, (x, y)) in points.iter().enumerate() {
            let _ = write!(self.body, "{}{},{}", if k == 0 { 'M' } else { 'L' }, short(*x), short(*y));
        }
        let _ = write!(self.body, "{end}\"/>");
    }

    /// A text.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (short(x), short(y), escaped(text));
        let _ = write!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>");
    }

    fn end(&mut self, element: &str, tip: Option<&str>) {
        let _ = match tip {
            None => write!(self.body, "/>"),
            Some(tip) => write!(self.body, "><title>{}</title></{element}>", escaped(tip)),
        };
    }

    /// The drawing as an element of a page, described by `summary` to those who do not see it.
    pub fn element(&self, size: (f64, f64), title: &str, summary: &str) -> String {
        let (width, height) = (short(size.0), short(size.1));
        let label = escaped(&format!("{title}. {summary}"));
        format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{}</svg>", self.body)
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
        assert_eq!(svg.element((10.0, 20.0), "Title", "Text \"q\""), expected);
    }
}
