//! Lines and points over an axis, with bands of uncertainty.

use std::fmt::Write as _;

use crate::report::chart::frame::{Frame, WIDTH};
use crate::report::chart::scale::Scale;
use crate::report::chart::svg::Svg;
use crate::report::html::Html;
use crate::report::text::{number, rough};

const HEIGHT: f64 = 240.0;

/// Most places of the horizontal axis that answer to the pointer, one beside the other.
const MOST_PLACES: usize = 250;

/// One value, with its band.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub x: f64,
    pub y: f64,
    /// Half the width of the band; NaN or 0: none.
    pub error: f64,
}

/// A line through points.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pub name: String,
    /// Points by rising x.
    pub points: Vec<Point>,
    /// A point that is marked.
    pub chosen: Option<(f64, f64)>,
    /// Points only, with bars for their errors.
    pub is_scattered: bool,
}

/// A chart of lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineChart {
    pub title: String,
    pub x_name: String,
    pub y_name: String,
    pub is_log_x: bool,
    /// Whether both axes go from 0 to 1 and the line of equal values is drawn.
    pub is_share: bool,
    /// Whether both axes are the same and the line of equal values is drawn.
    pub is_square: bool,
    pub lines: Vec<Line>,
}

impl LineChart {
    /// The drawing, and the class and name of each line.
    pub fn draw(&self, summary: &str) -> (Html, Vec<(String, String)>) {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let reach = |p: &Point| if p.error.is_finite() { p.error } else { 0.0 };
        let mut svg = Svg::default();
        let (x, y) = if self.is_share {
            (Scale::between(0.0, 1.0), Scale::between(0.0, 1.0))
        } else if self.is_square {
            let both = Scale::linear(points().flat_map(|p| [p.x, p.y]));
            (both, both)
        } else {
            let xs = points().map(|p| p.x);
            let ends = points().flat_map(|p| [p.y - reach(p), p.y + reach(p)]);
            (if self.is_log_x { Scale::log(xs) } else { Scale::linear(xs) }, Scale::linear(ends))
        };
        let height = if self.is_share || self.is_square { 320.0 } else { HEIGHT };
        let frame = Frame::draw(&mut svg, height, (x, &self.x_name), (y, &self.y_name));
        if self.is_share || self.is_square {
            svg.line("equal", (frame.left, frame.bottom), (frame.right, frame.top));
        }
        for (k, line) in self.lines.iter().enumerate() {
            draw_band(&mut svg, &frame, line, &color("band", k, self.lines.len()));
        }
        for (k, line) in self.lines.iter().enumerate() {
            self.draw_line(&mut svg, &frame, line, k);
        }
        if self.lines.iter().all(|line| !line.is_scattered) {
            self.draw_tips(&mut svg, &frame);
        }
        let several = self.lines.len() > 1;
        let name = |(k, line): (usize, &Line)| (color("line", k, self.lines.len()), line.name.clone());
        let legend = if several { self.lines.iter().enumerate().map(name).collect() } else { Vec::new() };
        (svg.element((WIDTH, height), &self.title, summary), legend)
    }

    fn draw_line(&self, svg: &mut Svg, frame: &Frame, line: &Line, k: usize) {
        if line.is_scattered {
            let is_dense = line.points.len() > 60;
            for p in &line.points {
                let Some((x, y)) = frame.at(p.x, p.y) else { continue };
                if let (Some(low), Some(high)) = (frame.y.at(p.y - p.error), frame.y.at(p.y + p.error))
                    && p.error > 0.0
                {
                    svg.line("error", (x, low), (x, high));
                }
                let tip = format!("{}: {}\n{}: {}", self.x_name, number(p.x), self.y_name, number(p.y));
                let class = color(if is_dense { "dot dense" } else { "dot" }, k, self.lines.len());
                svg.circle(&class, (x, y), if is_dense { 2.2 } else { 4.0 }, Some(&tip));
            }
            return;
        }
        // A value that is missing interrupts the line.
        for part in line.points.split(|p| frame.at(p.x, p.y).is_none()) {
            let places: Vec<(f64, f64)> = part.iter().filter_map(|p| frame.at(p.x, p.y)).collect();
            match places[..] {
                [] => {}
                [only] => svg.circle(&color("dot", k, self.lines.len()), only, 3.0, None),
                _ => svg.path(&color("line", k, self.lines.len()), &places),
            }
        }
        if let Some((x, y)) = line.chosen
            && let Some(place) = frame.at(x, y)
        {
            // One line for all that share a place.
            if self.lines[..k].iter().all(|other| other.chosen.is_none_or(|(other, _)| other != x)) {
                svg.line("chosen", (place.0, frame.top), (place.0, frame.bottom));
            }
            svg.circle(&color("dot ring", k, self.lines.len()), place, 4.5, None);
        }
    }

    /// A column for each x, which tells the values of all lines there.
    fn draw_tips(&self, svg: &mut Svg, frame: &Frame) {
        let mut xs: Vec<f64> = self.lines.iter().flat_map(|line| line.points.iter().map(|p| p.x)).collect();
        xs.retain(|x| frame.x.at(*x).is_some());
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let places: Vec<f64> = xs.iter().filter_map(|x| frame.x.at(*x)).collect();
        let stride = xs.len().div_ceil(MOST_PLACES).max(1);
        for (k, x) in xs.iter().enumerate().step_by(stride) {
            let before = if k == 0 { frame.left } else { 0.5 * (places[k.saturating_sub(stride)] + places[k]) };
            let after = places.get(k + stride).map_or(frame.right, |next| 0.5 * (places[k] + next));
            let mut tip = format!("{} = {}", self.x_name, number(*x));
            for line in &self.lines {
                for p in line.points.iter().filter(|p| p.x == *x && p.y.is_finite()) {
                    let name = if self.lines.len() > 1 { format!("{}: ", line.name) } else { String::new() };
                    let error = if p.error > 0.0 { format!(" ± {}", rough(p.error)) } else { String::new() };
                    let _ = write!(tip, "\n{name}{}{error}", number(p.y));
                }
            }
            svg.rect("hit", (before, frame.top), (after - before, frame.bottom - frame.top), Some(&tip));
        }
    }
}

fn draw_band(svg: &mut Svg, frame: &Frame, line: &Line, class: &str) {
    if line.is_scattered {
        return;
    }
    for part in line.points.split(|p| p.error.is_nan() || frame.at(p.x, p.y).is_none()) {
        let edge = |sign: f64| part.iter().filter_map(move |p| frame.at(p.x, p.y + sign * p.error));
        let mut outline: Vec<(f64, f64)> = edge(1.0).collect();
        outline.extend(edge(-1.0).collect::<Vec<_>>().into_iter().rev());
        if part.len() > 1 && part.iter().any(|p| p.error > 0.0) {
            svg.area(class, &outline);
        }
    }
}

/// The class of what belongs to line `k`; a line by itself has the first colour.
fn color(class: &str, k: usize, lines: usize) -> String {
    format!("{class} s{}", if lines == 1 { 0 } else { k % 8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ys: &[f64]) -> Line {
        let point = |(k, y): (usize, &f64)| Point { x: 10_f64.powi(k as i32), y: *y, error: 0.01 };
        Line { name: "a<b".into(), points: ys.iter().enumerate().map(point).collect(), ..Line::default() }
    }

    #[test]
    fn missing_values_interrupt_a_line() {
        let chart =
            LineChart { is_log_x: true, lines: vec![line(&[0.1, 0.2, f64::NAN, 0.4, 0.5])], ..LineChart::default() };
        let (drawing, legend) = chart.draw("summary");
        assert_eq!(drawing.matches("class=\"line s0\"").count(), 2);
        assert_eq!(drawing.matches("class=\"band s0\"").count(), 2);
        assert_eq!(drawing.matches("class=\"hit\"").count(), 5);
        assert!(drawing.contains("0.2 ± 0.01") && legend.is_empty());
    }

    #[test]
    fn several_lines_have_a_legend_and_their_own_colours() {
        let chart =
            LineChart { is_log_x: true, lines: vec![line(&[0.1, 0.2]), line(&[0.3, 0.2])], ..LineChart::default() };
        let (drawing, legend) = chart.draw("summary");
        assert!(drawing.contains("class=\"line s1\"") && drawing.contains("a&lt;b: 0.3"));
        assert_eq!(legend.len(), 2);
    }

    #[test]
    fn many_points_have_few_places_for_the_pointer() {
        let points = (1..10_000).map(|k| Point { x: f64::from(k), y: f64::from(k % 7), error: 0.0 }).collect();
        let chart = LineChart { lines: vec![Line { points, ..Line::default() }], ..LineChart::default() };
        assert!(chart.draw("").0.matches("class=\"hit\"").count() <= MOST_PLACES);
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(LineChart::default().draw("").0.starts_with("<svg"));
        let chart = LineChart { lines: vec![line(&[f64::NAN])], ..LineChart::default() };
        assert!(!chart.draw("").0.contains("NaN"));
    }
}
