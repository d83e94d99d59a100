//! The scores of held-out rows: over C, and over C and γ.

use std::fmt::Write as _;

use crate::report::chart::{Cell, Figure, HeatMap, Line, LineChart, Point};
use crate::report::edge::edge;
use crate::report::found::{Found, Grid, mean_and_error};
use crate::report::section::Section;
use crate::report::table::{Table, thinned};
use crate::report::text::{count, counted, digits, number, rough};

/// Most lines of a chart.
pub(crate) const MOST_CURVES: usize = 8;

/// Most points of a line.
pub(crate) const MOST_POINTS: usize = 200;

/// Most columns, and most rows, of a heat map.
const MOST_COLUMNS: usize = 60;
const MOST_ROWS: usize = 40;

/// Shades of a heat map.
pub(crate) const SHADES: usize = 9;

/// Mean scores and their standard errors.
pub(crate) struct Means {
    grid: Grid,
    /// The folds of each table that scored any model.
    folds: Vec<Vec<usize>>,
    /// How much each fold counts.
    weights: Vec<f64>,
}

impl Means {
    pub fn of(found: &Found) -> Option<Self> {
        let grid = found.scores()?;
        let is_scored = |table: usize, fold: usize| {
            (0..grid.gammas).any(|g| (0..grid.cs).any(|c| !grid.at(table, fold, g, c).is_nan()))
        };
        let of_table = |table: usize| -> Vec<usize> {
            let scored: Vec<usize> = (0..grid.problems).filter(|fold| is_scored(table, *fold)).collect();
            if scored.is_empty() { (0..grid.problems).collect() } else { scored }
        };
        let folds = (0..grid.machines).map(of_table).collect();
        let weights = found.floats("fold_weights_").filter(|weights| {
            weights.len() == grid.problems && weights.iter().all(|weight| weight.is_finite() && *weight > 0.0)
        });
        let weights = weights.unwrap_or_else(|| vec![1.0; grid.problems]);
        Some(Self { grid, folds, weights })
    }

    /// Mean and standard error at a place.
    pub fn at(&self, table: usize, gamma: usize, c: usize) -> (f64, f64) {
        mean_and_error(self.folds[table].iter().map(|&fold| (self.weights[fold], self.grid.at(table, fold, gamma, c))))
    }

    /// Mean and standard error of the score at one place less that at another, fold by fold. A place is (γ, C).
    pub fn difference(&self, table: usize, here: (usize, usize), there: (usize, usize)) -> (f64, f64) {
        let at = |fold: usize, (gamma, c): (usize, usize)| self.grid.at(table, fold, gamma, c);
        let difference = |&fold: &usize| (self.weights[fold], at(fold, here) - at(fold, there));
        mean_and_error(self.folds[table].iter().map(difference))
    }

    /// Number of folds.
    pub fn folds(&self) -> usize {
        self.grid.problems
    }
}

/// The scores; `None` if the model has none.
pub(crate) fn section(found: &Found) -> Option<Section> {
    let means = Means::of(found)?;
    let mut section = Section::new("scores", "How C was chosen");
    let score = found.score_name();
    section.say(&format!(
        "Every model was scored on rows that it had not seen, {}. The line is the mean {}, the band one standard error \
         of that mean to either side, and the mark the chosen C. Higher is better.",
        folds_in_words(found, means.folds()),
        score
    ));
    section.say(&rule(found));
    if let Some(warning) = edge(found, &means) {
        section.note("warn", &warning);
    }
    section.figures.push(curves(found, &means, &score));
    if found.gammas.len() > 1 {
        section.title = "How C and γ were chosen".into();
        section.figures.push(surface(found, &means, &score));
    }
    Some(section)
}

fn folds_in_words(found: &Found, folds: usize) -> String {
    let is_loo = found.parameter("cv").and_then(|cv| cv.as_str()) == Some("loo");
    if is_loo { "each row left out once".into() } else { format!("in {}", counted(folds, "fold", "folds")) }
}

fn rule(found: &Found) -> String {
    let is_1se = found.parameter("selection").and_then(|rule| rule.as_str()) == Some("1se");
    if is_1se {
        "Chosen is the smallest C whose mean score is within one standard error of the best.".into()
    } else {
        "Chosen is the C with the highest mean score; of equal ones, the smallest.".into()
    }
}

/// What has a line of its own: (table, γ, name).
fn drawn(found: &Found) -> Vec<(usize, usize, String)> {
    if found.tables() == 1 && found.gammas.len() > 1 {
        let mut gammas = thinned(found.gammas.len(), MOST_CURVES - 1, &[found.gamma_at]);
        gammas.truncate(MOST_CURVES);
        if !gammas.contains(&found.gamma_at) {
            gammas[MOST_CURVES - 1] = found.gamma_at;
        }
        return gammas.into_iter().map(|g| (0, g, format!("γ = {}", digits(found.gammas[g], 3)))).collect();
    }
    let tables = thinned(found.tables(), MOST_CURVES, &[]);
    tables.into_iter().map(|table| (table, found.gamma_at, found.table_name(table))).collect()
}

fn curves(found: &Found, means: &Means, score: &str) -> Figure {
    let (rising, best, drawn) = (found.rising(), found.best(), drawn(found));
    let mut table = Table::new("Mean scores over C", ["C", "line", "mean", "standard error", "chosen"]);
    let mut lines = Vec::new();
    for (part, g, name) in &drawn {
        let keep: Vec<usize> = best.get(*part).iter().filter_map(|b| rising.iter().position(|c| c == *b)).collect();
        let places: Vec<usize> = thinned(rising.len(), MOST_POINTS, &keep).into_iter().map(|k| rising[k]).collect();
        let is_chosen = |c: usize| best.get(*part) == Some(&c) && *g == found.gamma_at;
        let cs = found.cs(*part);
        let mut line = Line { name: name.clone(), ..Line::default() };
        for c in places {
            let (mean, error) = means.at(*part, *g, c);
            // The bands of many lines would hide each other.
            let band = if drawn.len() > 3 && *g != found.gamma_at { f64::NAN } else { error };
            line.points.push(Point { x: cs[c], y: mean, error: band });
            if is_chosen(c) {
                line.chosen = Some((cs[c], mean));
            }
            let mark = if is_chosen(c) { "yes" } else { "" };
            table.line([number(cs[c]), name.clone(), number(mean), rough(error), mark.into()]);
        }
        lines.push(line);
    }
    let total = if found.tables() == 1 { found.gammas.len() } else { found.tables() };
    let mut note = cut_note(drawn.len(), total, "lines");
    if found.tables() > 1 && found.gammas.len() > 1 {
        let _ = write!(note, "All lines are at the chosen γ = {}. ", number(found.gammas[found.gamma_at]));
    }
    if rising.len() > MOST_POINTS {
        let _ = write!(note, "The chart shows about {MOST_POINTS} of {} values of C.", count(rising.len()));
    }
    let title = "Score over C".to_string();
    let chart = LineChart {
        title: title.clone(),
        x_name: "C".into(),
        y_name: score.into(),
        is_log_x: true,
        lines,
        ..LineChart::default()
    };
    let (drawing, legend) = chart.draw(&summary(found, means));
    Figure { title, drawing, legend, note, table }
}

/// `Shown are 8 of 45 lines.`
pub(crate) fn cut_note(shown: usize, all: usize, what: &str) -> String {
    if shown < all { format!("Shown are {} of {} {what}. ", count(shown), count(all)) } else { String::new() }
}

/// The chosen place in words, for those who do not see the chart.
fn summary(found: &Found, means: &Means) -> String {
    let Some(best) = found.best().first().copied() else { return String::new() };
    let (mean, error) = means.at(0, found.gamma_at, best);
    format!("The chosen C is {}, with a mean score of {} ± {}.", number(found.cs(0)[best]), number(mean), rough(error))
}

/// Mean scores over C and γ; of several tables, the mean over them.
fn surface(found: &Found, means: &Means, score: &str) -> Figure {
    let (rising, tables) = (found.rising(), found.tables());
    let mut gammas: Vec<usize> = (0..found.gammas.len()).collect();
    gammas.sort_by(|&a, &b| found.gammas[b].total_cmp(&found.gammas[a]));
    let row_keep: Vec<usize> = gammas.iter().position(|g| *g == found.gamma_at).into_iter().collect();
    let rows: Vec<usize> = thinned(gammas.len(), MOST_ROWS, &row_keep).into_iter().map(|k| gammas[k]).collect();
    let chosen: Vec<usize> =
        found.best().iter().filter_map(|best| rising.iter().position(|c| c == best)).take(MOST_CURVES).collect();
    let columns: Vec<usize> = thinned(rising.len(), MOST_COLUMNS, &chosen).into_iter().map(|k| rising[k]).collect();
    let at = |g: usize, c: usize| {
        let (sum, count) = (0..tables)
            .map(|table| means.at(table, g, c).0)
            .filter(|mean| !mean.is_nan())
            .fold((0.0, 0.0), |(sum, count), mean| (sum + mean, count + 1.0));
        sum / count
    };
    let values: Vec<Vec<f64>> = rows.iter().map(|g| columns.iter().map(|c| at(*g, *c)).collect()).collect();
    let shade = shades(values.iter().flatten().copied());

    let mut table = Table::new("Mean scores over C and γ", ["γ", "C", score]);
    let mut cells = Vec::new();
    for (row, g) in values.iter().zip(&rows) {
        let mut line = Vec::new();
        for (value, c) in row.iter().zip(&columns) {
            let (gamma, c) = (number(found.gammas[*g]), number(found.cs(0)[*c]));
            let tip = format!("C = {c}, γ = {gamma}\n{score}: {}", number(*value));
            table.line([gamma, c, number(*value)]);
            line.push(Cell { class: shade(*value), tip, text: String::new() });
        }
        cells.push(line);
    }
    let place =
        |best: &usize| Some((rows.iter().position(|g| *g == found.gamma_at)?, columns.iter().position(|c| c == best)?));
    let title = "Score over C and γ".to_string();
    let map = HeatMap {
        title: title.clone(),
        x_name: if found.has_shared_cs() { "C".into() } else { "C of the first machine".into() },
        y_name: "γ".into(),
        columns: columns.iter().map(|c| rough(found.cs(0)[*c])).collect(),
        rows: rows.iter().map(|g| digits(found.gammas[*g], 3)).collect(),
        cells,
        rings: found.best().iter().filter_map(place).take(MOST_CURVES).collect(),
        is_square: false,
    };
    let mut note = cut_note(columns.len(), rising.len(), "values of C");
    note += &cut_note(rows.len(), gammas.len(), "values of γ");
    if tables > 1 {
        let _ = write!(note, "The colour is the mean over {}.", counted(tables, "table", "tables"));
    }
    let drawing = map.draw(&format!("{} The chosen place has a ring.", summary(found, means)));
    let legend = ends(values.iter().flatten().copied());
    Figure { title, drawing, legend, note, table }
}

/// From a value to the class of its shade.
pub(crate) fn shades(values: impl Iterator<Item = f64>) -> impl Fn(f64) -> String {
    let (low, high) = range(values);
    move |value: f64| {
        if value.is_nan() {
            return "none".into();
        }
        let share = if high > low { (value - low) / (high - low) } else { 1.0 };
        format!("q{}", ((share * SHADES as f64) as usize).min(SHADES - 1))
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|v| v.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

/// A legend of the two ends of the shades.
fn ends(values: impl Iterator<Item = f64>) -> Vec<(String, String)> {
    let (low, high) = range(values);
    if low > high {
        return Vec::new();
    }
    vec![("q0".into(), number(low)), (format!("q{}", SHADES - 1), number(high)), ("ring".into(), "chosen".into())]
}
