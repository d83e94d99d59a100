//! Tables of text, with columns aligned.

use std::fmt::Write as _;

use kernelpath::shown;

/// A table: a heading, and rows below it.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

/// Spaces between columns.
const GAP: usize = 2;

impl Table {
    pub fn new(heading: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut table = Self::plain();
        table.push(heading);
        table
    }

    /// A table without a heading.
    pub fn plain() -> Self {
        Self { rows: Vec::new() }
    }

    /// Adds a row. A cell may hold a text from elsewhere.
    pub fn push(&mut self, row: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(row.into_iter().map(|cell| shown(&cell.into()).into_owned()).collect());
    }

    /// One line for each row. Numbers end where their column ends, texts begin where it begins.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |k: usize| self.rows.iter().filter_map(move |row| row.get(k));
        let widths: Vec<usize> = (0..columns).map(|k| cells(k).map(|cell| width(cell)).max().unwrap_or(0)).collect();
        // A missing number is a dash.
        let is_number = |cell: &&String| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '–');
        // The heading says nothing of what is below it.
        let are_numbers: Vec<bool> = (0..columns)
            .map(|k| cells(k).skip(1).filter(|cell| !cell.is_empty()).all(|cell| is_number(&cell)))
            .collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (k, cell) in row.iter().enumerate() {
                let space = widths[k] - width(cell);
                let (before, after) = if are_numbers[k] && self.rows.len() > 1 { (space, 0) } else { (0, space) };
                let _ = write!(line, "{:before$}{cell}{:after$}", "", "");
                line.push_str(&" ".repeat(GAP));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// A number for people: `digits` significant ones.
pub(crate) fn short(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "–".into();
    }
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let exponent = value.abs().log10().floor();
    let text = if (-4.0..digits as f64).contains(&exponent) {
        let decimals = (digits as f64 - 1.0 - exponent).max(0.0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.*e}", digits - 1)
    };
    let (mantissa, power) = text.split_once('e').map_or((&*text, None), |(mantissa, power)| (mantissa, Some(power)));
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    power.map_or_else(|| mantissa.into(), |power| format!("{mantissa}e{power}"))
}

/// A number for programs: the fewest digits that read back as the same number.
pub(crate) fn exact(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e16 { format!("{value}") } else { format!("{value:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["C", "status"]);
        table.push(["0.1", "converged"]);
        table.push(["100", "stalled"]);
        assert_eq!(table.text(), "  C  status\n0.1  converged\n100  stalled\n");
    }

    #[test]
    fn numbers_are_short_for_people_and_exact_for_programs() {
        for (value, text) in [(0.0, "0"), (1.0, "1"), (0.123_456, "0.123"), (1234.5, "1.23e3"), (-3.7e-9, "-3.7e-9")] {
            assert_eq!(short(value, 3), text);
        }
        assert_eq!((short(f64::NAN, 3), short(9.9996, 4)), ("–".into(), "10".into()));
        assert_eq!((exact(0.1), exact(3.0), exact(1e-300)), ("0.1".into(), "3".into(), "1e-300".into()));
    }
}
