//! Probabilities: the maps that make them, and whether they come true.

use kernelpath::{Calibration, Odds, Outputs};

use crate::report::chart::{Bar, BarChart, Figure, Line, LineChart, Point};
use crate::report::found::{Found, IN_LEGEND};
use crate::report::html::{Html, html};
use crate::report::judged::JudgedClasses;
use crate::report::scores::{MOST_CURVES, cut_note};
use crate::report::section::Section;
use crate::report::table::{Table, thinned};
use crate::report::text::{count, number, rough};

/// Bins of a reliability diagram.
const BINS: usize = 10;

/// Points of the curve of a map.
const MAP_POINTS: usize = 80;

/// Probabilities; `None` if the model has none.
pub(crate) fn section(found: &Found, judged: Option<&JudgedClasses>) -> Option<Section> {
    let Outputs::Classes { odds: Some(odds), .. } = &found.model.predictor.outputs else { return None };
    let mut section = Section::new("probabilities", "Probabilities");
    match odds {
        Odds::Calibrated(maps) => {
            section.say(
                "Decision values become probabilities by a map that was fitted on values of held-out rows, so that no model \
                 judged a row that it had seen.",
            );
            section.figures.push(maps_figure(found, maps));
        }
        _ => section
            .say("The decision values of this loss are the logarithms of odds: they are probabilities as they come."),
    }
    let reliability = judged.and_then(|judged| {
        let probabilities = judged.probabilities.as_ref()?;
        Some((reliability(judged, probabilities), judged))
    });
    match reliability {
        None => section.say("Give rows with their labels to see how often these probabilities come true."),
        Some((bins, judged)) => {
            let positive = if judged.classes == 2 {
                html!("the probability of “{}”", Html::isolated(&judged.names[1]))
            } else {
                html!("the probability of the most probable class")
            };
            section.say_html(html!(
                "The diagram sorts rows by {}. Points on the diagonal are probabilities that mean what they say; \
                 bars are two standard errors to either side. The expected calibration error is <b>{}</b>.",
                positive,
                Html::text(&number(calibration_error(&bins)))
            ));
            section.figures.push(reliability_figure(&bins));
            section.figures.push(histogram(&bins));
        }
    }
    Some(section)
}

/// Rows whose probability lies in a bin.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    rows: usize,
    /// The sum of the probabilities, and how many of them came true.
    predicted: f64,
    observed: usize,
}

impl Bin {
    fn means(&self) -> (f64, f64) {
        (self.predicted / self.rows as f64, self.observed as f64 / self.rows as f64)
    }

    /// The standard error of the share that came true, with two more rows of either kind (Agresti and Coull), so that a
    /// bin of one row is not certain.
    fn error(&self) -> f64 {
        let n = self.rows as f64 + 4.0;
        let share = (self.observed as f64 + 2.0) / n;
        (share * (1.0 - share) / n).sqrt()
    }
}

/// Of two classes by the probability of the second; of several, by that of the most probable class.
fn reliability(judged: &JudgedClasses, probabilities: &[f64]) -> [Bin; BINS] {
    let mut bins = [Bin::default(); BINS];
    for (row, &truth) in probabilities.chunks_exact(judged.classes).zip(&judged.truth) {
        let class = if judged.classes == 2 {
            1
        } else {
            row.iter().enumerate().fold(0, |best, (c, p)| if *p > row[best] { c } else { best })
        };
        let p = row[class];
        if p.is_nan() {
            continue;
        }
        let bin = &mut bins[((p * BINS as f64) as usize).min(BINS - 1)];
        bin.rows += 1;
        bin.predicted += p;
        bin.observed += usize::from(truth == class);
    }
    bins
}

/// Σ (rows of the bin / all rows) · |mean probability − share that came true|.
fn calibration_error(bins: &[Bin]) -> f64 {
    let rows: usize = bins.iter().map(|bin| bin.rows).sum();
    let error = |bin: &Bin| (bin.predicted - bin.observed as f64).abs();
    bins.iter().filter(|bin| bin.rows > 0).map(error).sum::<f64>() / rows as f64
}

fn reliability_figure(bins: &[Bin]) -> Figure {
    let mut table =
        Table::new("Reliability", ["probability", "rows", "mean probability", "came true", "standard error"]);
    let mut line = Line { is_scattered: true, ..Line::default() };
    for (k, bin) in bins.iter().enumerate().filter(|(_, bin)| bin.rows > 0) {
        let (predicted, observed) = bin.means();
        let error = bin.error();
        line.points.push(Point { x: predicted, y: observed, error: 2.0 * error });
        table.line([range_of(k), count(bin.rows), number(predicted), number(observed), rough(error)]);
    }
    let title = "Reliability".to_string();
    let chart = LineChart {
        title: title.clone(),
        x_name: "mean probability".into(),
        y_name: "share that came true".into(),
        is_share: true,
        lines: vec![line],
        ..LineChart::default()
    };
    let summary = format!("The expected calibration error is {}.", number(calibration_error(bins)));
    let (drawing, legend) = chart.draw(&summary);
    Figure { title, drawing, legend, note: String::new(), table }
}

fn range_of(k: usize) -> String {
    format!("{} to {}", number(k as f64 / BINS as f64), number((k + 1) as f64 / BINS as f64))
}

fn histogram(bins: &[Bin]) -> Figure {
    let bar = |(k, bin): (usize, &Bin)| Bar {
        from: k as f64 / BINS as f64,
        to: (k + 1) as f64 / BINS as f64,
        height: bin.rows as f64,
        tip: format!("{}: {} rows", range_of(k), count(bin.rows)),
    };
    let title = "Probabilities".to_string();
    let chart = BarChart {
        title: title.clone(),
        x_name: "probability".into(),
        y_name: "rows".into(),
        bars: bins.iter().enumerate().map(bar).collect(),
        mark: None,
    };
    let drawing = chart.draw("How many rows have each probability; the numbers are in the table of the reliability.");
    Figure { title, drawing, legend: Vec::new(), note: String::new(), table: Table::default() }
}

/// The maps from decision values to probabilities.
fn maps_figure(found: &Found, maps: &[Calibration]) -> Figure {
    let shown = thinned(maps.len(), MOST_CURVES, &[]);
    let reach = reach(maps);
    let mut table = Table::new("Maps", ["machine", "method", "slope", "intercept"]);
    let mut lines = Vec::new();
    for m in &shown {
        let map = &maps[*m];
        let (slope, intercept) = match map {
            Calibration::Sigmoid { slope, intercept } => (number(*slope), number(*intercept)),
            Calibration::Temperature { slope } => (number(*slope), "0".into()),
            _ => (String::new(), String::new()),
        };
        let name = if maps.len() == 1 { "the model".into() } else { found.machine_name(*m) };
        table.line([name.clone(), map.method().name().into(), slope, intercept]);
        let at = |k: usize| -reach + 2.0 * reach * k as f64 / (MAP_POINTS - 1) as f64;
        let point = |k: usize| Point { x: at(k), y: map.probability(at(k)), error: f64::NAN };
        let name = found.short_name(*m, IN_LEGEND);
        lines.push(Line { name, points: (0..MAP_POINTS).map(point).collect(), ..Line::default() });
    }
    let title = "From decision value to probability".to_string();
    let chart = LineChart {
        title: title.clone(),
        x_name: "decision value".into(),
        y_name: "probability of the positive class".into(),
        lines,
        ..LineChart::default()
    };
    let (drawing, legend) = chart.draw("Each map rises from small to large probabilities.");
    Figure { title, drawing, legend, note: cut_note(shown.len(), maps.len(), "maps"), table }
}

/// How far from 0 the maps are drawn: to where they are almost certain, within reason.
fn reach(maps: &[Calibration]) -> f64 {
    let of_map = |map: &Calibration| match map {
        Calibration::Sigmoid { slope, intercept } => (4.0 + intercept.abs()) / slope,
        Calibration::Temperature { slope } => 4.0 / slope,
        Calibration::Isotonic { points } => points.iter().fold(0.0, |most: f64, (f, _)| most.max(f.abs())),
        _ => 1.0,
    };
    let widest = maps.iter().map(of_map).filter(|reach| reach.is_finite()).fold(0.0, f64::max);
    if widest > 0.0 { widest.min(1e6) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::judged::Origin;

    #[test]
    fn bins_count_what_came_true() {
        let judged = JudgedClasses {
            origin: Origin::New,
            names: vec!["no".into(), "yes".into()],
            classes: 2,
            truth: vec![1, 0, 1, 1],
            predicted: vec![1, 0, 1, 1],
            probabilities: None,
            left_out: 0,
        };
        let bins = reliability(&judged, &[0.05, 0.95, 0.88, 0.12, 0.83, 0.17, 0.0, 1.0]);
        assert_eq!((bins[9].rows, bins[9].observed), (2, 2));
        assert_eq!((bins[1].rows, bins[1].observed), (2, 1));
        let expected = ((2.0 - 1.95) + (1.0_f64 - 0.29).abs()) / 4.0;
        assert!((calibration_error(&bins) - expected).abs() < 1e-12);
    }
}
