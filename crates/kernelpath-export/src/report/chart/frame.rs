//! The axes of a chart, and the space between them.

use crate::report::chart::scale::Scale;
use crate::report::chart::svg::{Anchor, Svg};

/// The width of a chart. It is about that of a phone, so that letters keep their size there.
pub(crate) const WIDTH: f64 = 360.0;

/// The width of a character at the largest size of the letters.
pub(crate) const CHARACTER: f64 = 6.7;

const TOP: f64 = 26.0;
const BOTTOM: f64 = 38.0;
const RIGHT: f64 = 14.0;

/// Two axes, and where they are.
pub(crate) struct Frame {
    pub x: Scale,
    pub y: Scale,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    /// Draws the axes of a chart that is `height` high, with their names and grid lines.
    pub fn draw(svg: &mut Svg, height: f64, (x, x_name): (Scale, &str), (y, y_name): (Scale, &str)) -> Self {
        let ticks = y.ticks();
        let widest = ticks.iter().map(|(_, name)| name.chars().count()).max().unwrap_or(0);
        let left = 12.0 + CHARACTER * widest.max(2) as f64;
        let (right, top, bottom) = (WIDTH - RIGHT, TOP, height - BOTTOM);
        let frame = Self { x: x.over(left, right), y: y.over(bottom, top), left, right, top, bottom };
        for (value, name) in &ticks {
            let Some(at) = frame.y.at(*value) else { continue };
            svg.line("grid", (left, at), (right, at));
            svg.text("tick", (left - 6.0, at + 4.0), Anchor::End, name);
        }
        svg.text("axis", (2.0, 12.0), Anchor::Start, y_name);
        frame.name_x(svg, x_name);
        frame
    }

    fn name_x(&self, svg: &mut Svg, name: &str) {
        svg.line("base", (self.left, self.bottom), (self.right, self.bottom));
        let mut free = f64::NEG_INFINITY;
        for (value, tick) in self.x.ticks() {
            let Some(at) = self.x.at(value) else { continue };
            svg.line("base", (at, self.bottom), (at, self.bottom + 4.0));
            // Names that would touch are left out.
            let half = 0.5 * CHARACTER * tick.chars().count() as f64;
            if at - half > free {
                svg.text("tick", (at.min(WIDTH - half), self.bottom + 17.0), Anchor::Middle, &tick);
                free = at + half + 4.0;
            }
        }
        svg.text("axis", (self.right, self.bottom + 33.0), Anchor::End, name);
    }

    /// The place of a point, if it has one.
    pub fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x.at(x)?, self.y.at(y)?))
    }
}
