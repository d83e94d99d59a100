//! Predicted numbers against true ones: residuals, and the coverage of quantiles.

use crate::report::chart::{Bar, BarChart, Figure, Line, LineChart, Point};
use crate::report::classes::origin_in_words;
use crate::report::found::Found;
use crate::report::judged::JudgedNumbers;
use crate::report::section::Section;
use crate::report::table::{MOST_LINES, Table, thinned};
use crate::report::text::{count, counted, number, percent};

/// Most targets with charts of their own.
const MOST_TARGETS: usize = 4;

/// Most points of a chart.
const MOST_DOTS: usize = 1500;

/// Bars of a histogram.
const BARS: usize = 25;

/// Residuals, or the coverage of quantiles.
pub(crate) fn section(found: &Found, judged: &JudgedNumbers, data_name: Option<&str>) -> Section {
    let mut section = Section::new("predictions", "Predictions against the truth");
    let rows = judged.truth.first().map_or(0, Vec::len);
    section.say_html(origin_in_words(judged.origin, rows, judged.left_out, data_name));
    if rows == 0 {
        return section;
    }
    if found.model.machines.iter().all(|machine| machine.loss == "quantile") {
        coverage(found, judged, &mut section);
    } else {
        residuals(found, judged, &mut section);
    }
    section
}

/// How well one target is predicted.
struct Fit {
    r2: f64,
    absolute: f64,
    root_square: f64,
    bias: f64,
}

impl Fit {
    fn of(truth: &[f64], predicted: &[f64]) -> Self {
        let n = truth.len() as f64;
        let mean = truth.iter().sum::<f64>() / n;
        let errors = || truth.iter().zip(predicted).map(|(y, f)| y - f);
        let square: f64 = errors().map(|e| e * e).sum();
        let spread: f64 = truth.iter().map(|y| (y - mean) * (y - mean)).sum();
        Self {
            r2: 1.0 - square / spread,
            absolute: errors().map(f64::abs).sum::<f64>() / n,
            root_square: (square / n).sqrt(),
            bias: errors().sum::<f64>() / n,
        }
    }
}

fn residuals(found: &Found, judged: &JudgedNumbers, section: &mut Section) {
    section.say("A residual is what is true minus what is predicted.");
    let head = ["target", "R²", "mean absolute error", "root mean squared error", "mean residual"];
    let mut table = Table::new("Figures", head);
    let outputs = judged.truth.len();
    let name = |m: usize| if outputs == 1 { "the target".into() } else { found.machine_name(m) };
    for m in 0..outputs {
        let fit = Fit::of(&judged.truth[m], &judged.predicted[m]);
        table.line([name(m), number(fit.r2), number(fit.absolute), number(fit.root_square), number(fit.bias)]);
    }
    section.words += table.html();
    if outputs > MOST_TARGETS {
        section.say(&format!("Charts show the first {MOST_TARGETS} of {}.", counted(outputs, "target", "targets")));
    }
    for m in 0..outputs.min(MOST_TARGETS) {
        let of = if outputs == 1 { String::new() } else { format!(", {}", name(m)) };
        section.figures.push(scatter(&judged.truth[m], &judged.predicted[m], &of));
        section.figures.push(histogram(&judged.truth[m], &judged.predicted[m], &of));
    }
}

/// True values over predicted ones.
fn scatter(truth: &[f64], predicted: &[f64], of: &str) -> Figure {
    let shown = thinned(truth.len(), MOST_DOTS, &[]);
    let mut table = Table::new("Rows", ["row", "predicted", "true", "residual"]);
    let mut line = Line { is_scattered: true, ..Line::default() };
    for (k, i) in shown.iter().enumerate() {
        let (y, f) = (truth[*i], predicted[*i]);
        line.points.push(Point { x: f, y, error: f64::NAN });
        if k < MOST_LINES {
            table.line([count(*i), number(f), number(y), number(y - f)]);
        }
    }
    table.leave_out(truth.len().saturating_sub(MOST_LINES));
    let title = format!("True over predicted values{of}");
    let chart = LineChart {
        title: title.clone(),
        x_name: "predicted".into(),
        y_name: "true".into(),
        is_square: true,
        lines: vec![line],
        ..LineChart::default()
    };
    let note = if shown.len() < truth.len() {
        format!("The chart shows {} of {} rows.", count(shown.len()), count(truth.len()))
    } else {
        String::new()
    };
    let fit = Fit::of(truth, predicted);
    let (drawing, legend) = chart.draw(&format!("R² is {}.", number(fit.r2)));
    Figure { title, drawing, legend, note, table }
}

/// How many rows have residuals of each size. The outermost bars hold what is beyond them.
fn histogram(truth: &[f64], predicted: &[f64], of: &str) -> Figure {
    let mut residuals: Vec<f64> = truth.iter().zip(predicted).map(|(y, f)| y - f).collect();
    residuals.sort_by(f64::total_cmp);
    let at = |share: f64| residuals[(share * (residuals.len() - 1) as f64).round() as usize];
    let widest = at(0.005).abs().max(at(0.995).abs());
    let widest = if widest > 0.0 { widest } else { 1e-9 };
    let width = 2.0 * widest / BARS as f64;
    let mut rows = [0_usize; BARS];
    for residual in &residuals {
        rows[(((residual + widest) / width).max(0.0) as usize).min(BARS - 1)] += 1;
    }
    let mut table = Table::new("Residuals", ["from", "to", "rows"]);
    let mut bars = Vec::new();
    for (k, rows) in rows.iter().enumerate() {
        let (from, to) = (-widest + k as f64 * width, -widest + (k + 1) as f64 * width);
        let from_name = if k == 0 { "below".into() } else { number(from) };
        let to_name = if k + 1 == BARS { "above".into() } else { number(to) };
        let tip = format!("{from_name} to {to_name}: {}", counted(*rows, "row", "rows"));
        bars.push(Bar { from, to, height: *rows as f64, tip });
        table.line([from_name, to_name, count(*rows)]);
    }
    let title = format!("Residuals{of}");
    let chart = BarChart {
        title: title.clone(),
        x_name: "true − predicted".into(),
        y_name: "rows".into(),
        bars,
        mark: Some(0.0),
    };
    let summary = format!("Half of all residuals lie between {} and {}.", number(at(0.25)), number(at(0.75)));
    Figure { title, drawing: chart.draw(&summary), legend: Vec::new(), note: summary, table }
}

/// The share of rows at or below each quantile, beside the share that it aims at.
fn coverage(found: &Found, judged: &JudgedNumbers, section: &mut Section) {
    section.say(
        "A quantile of level τ should lie at or above the truth in a share τ of all rows. Bars are two standard errors to \
         either side.",
    );
    if let Some(crossings) = found.float("n_crossings_").filter(|crossings| *crossings > 0.0) {
        let sorted = found.parameter("noncrossing").is_some();
        let cure = if sorted { "predictions are sorted" } else { "noncrossing=\"sort\" would put them in order" };
        section.say(&format!("At {} training rows, quantiles cross; {cure}.", number(crossings)));
    }
    let mut table = Table::new("Coverage", ["level τ", "share at or below", "standard error", "pinball loss"]);
    let mut points = Vec::new();
    for (m, machine) in found.model.machines.iter().enumerate().take(judged.truth.len()) {
        let (tau, truth, quantile) = (machine.constant, &judged.truth[m], &judged.predicted[m]);
        let n = truth.len() as f64;
        let covered = truth.iter().zip(quantile).filter(|(y, q)| y <= q).count() as f64 / n;
        let loss = |(y, q): (&f64, &f64)| if y > q { tau * (y - q) } else { (1.0 - tau) * (q - y) };
        let pinball = truth.iter().zip(quantile).map(loss).sum::<f64>() / n;
        let error = (covered * (1.0 - covered) / n).sqrt();
        points.push(Point { x: tau, y: covered, error: 2.0 * error });
        table.line([number(tau), percent(covered), percent(error), number(pinball)]);
    }
    section.words += table.html();
    let title = "Coverage of each level".to_string();
    let chart = LineChart {
        title: title.clone(),
        x_name: "level τ".into(),
        y_name: "share of rows at or below the quantile".into(),
        is_share: true,
        lines: vec![Line { points, is_scattered: true, ..Line::default() }],
        ..LineChart::default()
    };
    let (drawing, legend) = chart.draw("Points on the diagonal cover what they aim at.");
    section.figures.push(Figure { title, drawing, legend, note: String::new(), table: Table::default() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_fit_follow_their_formulas() {
        let fit = Fit::of(&[1.0, 2.0, 3.0], &[1.0, 1.0, 5.0]);
        assert_eq!((fit.r2, fit.absolute, fit.bias), (1.0 - 5.0 / 2.0, 1.0, -1.0 / 3.0));
        assert!((fit.root_square - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!(Fit::of(&[1.0, 1.0], &[1.0, 1.0]).r2.is_nan());
    }

    #[test]
    fn histograms_hold_every_row() {
        let truth: Vec<f64> = (0..1000).map(|i| f64::from(i % 37) - 18.0 + if i == 5 { 1e9 } else { 0.0 }).collect();
        let html = histogram(&truth, &vec![0.0; 1000], "").html();
        let rows = html.matches("<td>").count();
        assert_eq!(rows, 2 * BARS);
        assert!(histogram(&[1.0], &[1.0], "").html().contains("</svg>"));
    }
}
