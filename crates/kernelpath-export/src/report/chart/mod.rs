//! Charts as drawings in the page itself.

mod bars;
mod figure;
mod frame;
mod heat;
mod lines;
mod scale;
mod strip;
mod svg;

pub(crate) use bars::{Bar, BarChart};
pub(crate) use figure::Figure;
pub(crate) use heat::{Cell, HeatMap};
pub(crate) use lines::{Line, LineChart, Point};
pub(crate) use strip::strip;
