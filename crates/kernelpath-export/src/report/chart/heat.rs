//! Tables of coloured cells.

use crate::report::chart::frame::{CHARACTER, WIDTH};
use crate::report::chart::svg::{Anchor, Svg};
use crate::report::html::Html;
use crate::report::text::shortened;

/// Most characters of the name of a row.
const LONGEST: usize = 18;

/// Most columns that are all named, however long their names.
const NAMED_COLUMNS: usize = 7;

/// Most characters of the names of more columns.
const LONG_COLUMN: usize = 7;

/// Least height of a row that has its own name.
const NAMED_ROW: f64 = 13.0;

/// One cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    /// Its class, which colours it.
    pub class: String,
    /// What it says to the pointer.
    pub tip: String,
    /// What is written in it.
    pub text: String,
}

/// A heat map: `cells[row][column]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeatMap {
    pub title: String,
    pub x_name: String,
    pub y_name: String,
    pub columns: Vec<String>,
    pub rows: Vec<String>,
    pub cells: Vec<Vec<Cell>>,
    /// Cells that are marked: (row, column).
    pub rings: Vec<(usize, usize)>,
    /// Whether cells are as high as wide.
    pub is_square: bool,
}

impl HeatMap {
    /// The drawing.
    pub fn draw(&self, summary: &str) -> Html {
        let mut svg = Svg::default();
        let names: Vec<String> = self.rows.iter().map(|name| shortened(name, LONGEST)).collect();
        let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let top = if self.y_name.is_empty() { 4.0 } else { 22.0 };
        let (left, right) = (10.0 + CHARACTER * widest as f64, WIDTH - 6.0);
        let width = (right - left) / self.columns.len().max(1) as f64;
        let rows = self.rows.len().max(1) as f64;
        let height = if self.is_square { width.min(44.0) } else { (220.0 / rows).clamp(5.0, 24.0) };
        let bottom = top + rows * height;

        let stride = (NAMED_ROW / height).ceil().max(1.0) as usize;
        for (r, name) in names.iter().enumerate().filter(|(r, _)| r % stride == 0) {
            svg.text("tick", (left - 5.0, top + (r as f64 + 0.5) * height + 4.0), Anchor::End, name);
        }
        let gap = if width > 9.0 && height > 6.0 { 1.0 } else { 0.0 };
        for (r, row) in self.cells.iter().enumerate() {
            for (c, cell) in row.iter().enumerate() {
                let corner = (left + c as f64 * width, top + r as f64 * height);
                svg.rect(&format!("cell {}", cell.class), corner, (width - gap, height - gap), Some(&cell.tip));
                if !cell.text.is_empty() {
                    let middle = (corner.0 + 0.5 * width, corner.1 + 0.5 * height + 4.0);
                    svg.text(&format!("value {}", cell.class), middle, Anchor::Middle, &cell.text);
                }
            }
        }
        for &(r, c) in &self.rings {
            let corner = (left + c as f64 * width - 1.0, top + r as f64 * height - 1.0);
            for class in ["ring under", "ring"] {
                svg.rect(class, corner, (width + 2.0 - gap, height + 2.0 - gap), None);
            }
        }
        self.name_columns(&mut svg, (left, width), bottom);
        svg.text("axis", (2.0, 12.0), Anchor::Start, &self.y_name);
        svg.text("axis", (right, bottom + 33.0), Anchor::End, &self.x_name);
        svg.element((WIDTH, bottom + 40.0), &self.title, summary)
    }

    /// Some columns, so that their names do not touch.
    fn name_columns(&self, svg: &mut Svg, (left, width): (f64, f64), bottom: f64) {
        let longest = self.columns.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(LONG_COLUMN);
        let needed = (CHARACTER * longest as f64 + 4.0) / width;
        let stride = if self.columns.len() <= NAMED_COLUMNS { 1 } else { needed.ceil().max(1.0) as usize };
        let mut free = f64::NEG_INFINITY;
        for (c, name) in self.columns.iter().enumerate() {
            let name = shortened(name, ((stride as f64 * width - 4.0) / CHARACTER).max(5.0) as usize);
            let half = 0.5 * CHARACTER * name.chars().count() as f64;
            let middle = left + (c as f64 + 0.5) * width;
            let at = middle.clamp(half.min(middle), WIDTH - half);
            if c % stride == 0 && at - half > free {
                svg.text("tick", (at, bottom + 16.0), Anchor::Middle, &name);
                free = at + half + 3.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_all_cells_and_some_names() {
        let cell = |r: usize, c: usize| Cell { class: "q1".into(), tip: format!("{r},{c}"), text: String::new() };
        let map = HeatMap {
            columns: (0..50).map(|c| format!("column {c}")).collect(),
            rows: (0..40).map(|r| format!("<row {r}>")).collect(),
            cells: (0..40).map(|r| (0..50).map(|c| cell(r, c)).collect()).collect(),
            rings: vec![(3, 4)],
            ..HeatMap::default()
        };
        let drawing = map.draw("");
        assert_eq!(drawing.matches("class=\"cell q1\"").count(), 2000);
        let names = drawing.matches("class=\"tick\"").count();
        assert!((10..=30).contains(&names), "{names}");
        assert!(drawing.contains("&lt;row 0&gt;") && drawing.contains("class=\"ring\""));
        assert!(HeatMap::default().draw("").contains("</svg>"));
    }
}
