//! Predicted classes against true ones.

use crate::report::chart::{Cell, Figure, HeatMap};
use crate::report::html::{Html, html};
use crate::report::judged::{JudgedClasses, Origin};
use crate::report::scores::SHADES;
use crate::report::section::Section;
use crate::report::table::Table;
use crate::report::text::{count, counted, number, percent};

/// Most classes of the chart.
const MOST_CLASSES: usize = 24;

/// Most classes whose counts are written into the cells.
const WRITTEN: usize = 10;

/// How rows of each true class were predicted.
struct Counts {
    /// `(truth, predicted, rows)`, each pair that occurs.
    pairs: Vec<(usize, usize, usize)>,
    of_truth: Vec<usize>,
    of_predicted: Vec<usize>,
    right: Vec<usize>,
}

impl Counts {
    fn of(judged: &JudgedClasses) -> Self {
        let names = judged.names.len();
        let (mut of_truth, mut of_predicted, mut right) = (vec![0; names], vec![0; names], vec![0; names]);
        let mut both: Vec<(usize, usize)> =
            judged.truth.iter().copied().zip(judged.predicted.iter().copied()).collect();
        both.sort_unstable();
        let pairs = both.chunk_by(|a, b| a == b).map(|same| (same[0].0, same[0].1, same.len())).collect::<Vec<_>>();
        for &(truth, predicted, rows) in &pairs {
            of_truth[truth] += rows;
            of_predicted[predicted] += rows;
            right[truth] += if truth == predicted { rows } else { 0 };
        }
        Self { pairs, of_truth, of_predicted, right }
    }

    fn rows(&self) -> usize {
        self.of_truth.iter().sum()
    }
}

/// What the predictions are of, in a sentence.
pub(crate) fn origin_in_words(origin: Origin, rows: usize, left_out: usize, name: Option<&str>) -> Html {
    let data = name.map_or_else(|| html!("the data"), |name| html!("<b>{}</b>", Html::isolated(name)));
    let rows = Html::text(&counted(rows, "row", "rows"));
    let mut text = match origin {
        Origin::New => html!("Predictions for {} of {}. They are not recognised as the training rows.", rows, data),
        Origin::OutOfFold => html!(
            "These are the {} that the model was trained on. Each is judged by the models that did not see it \
             (out of fold, at the chosen C). As C was chosen by the same folds, the figures are slightly optimistic.",
            rows
        ),
        Origin::Seen => html!(
            "<b>These are the {} that the model was trained on</b>, and it has no out-of-fold values: the figures say \
             how well it fits, not how well it predicts.",
            rows
        ),
    };
    if left_out > 0 {
        let left_out = counted(left_out, "row was", "rows were");
        text += Html::text(&format!(" {left_out} never held out and left out here."));
    }
    text
}

/// The confusion matrix, with what can be read off it.
pub(crate) fn section(judged: &JudgedClasses, data_name: Option<&str>) -> Section {
    let counts = Counts::of(judged);
    let rows = counts.rows();
    let mut section = Section::new("predictions", "Predictions against the truth");
    section.say_html(origin_in_words(judged.origin, rows, judged.left_out, data_name));
    if rows == 0 {
        return section;
    }
    let mut figures = Table::new("Figures", ["figure", "value", "standard error"]);
    let share = counts.right.iter().sum::<usize>() as f64 / rows as f64;
    let error = (share * (1.0 - share) / rows as f64).sqrt();
    figures.line(["accuracy".to_string(), percent(share), percent(error)]);
    let recalls: Vec<f64> = (0..judged.names.len())
        .filter(|c| counts.of_truth[*c] > 0)
        .map(|c| counts.right[c] as f64 / counts.of_truth[c] as f64)
        .collect();
    let balanced = recalls.iter().sum::<f64>() / recalls.len() as f64;
    figures.line(["balanced accuracy".to_string(), percent(balanced), String::new()]);
    let (frequent, most) =
        counts.of_truth.iter().enumerate().max_by_key(|(c, n)| (**n, usize::MAX - c)).unwrap_or((0, &0));
    let always = format!("always “{}”", judged.names[frequent]);
    figures.line([always, percent(*most as f64 / rows as f64), String::new()]);
    if let Some(probabilities) = &judged.probabilities {
        for (name, value) in of_probabilities(judged, probabilities) {
            figures.line([name.to_string(), number(value), String::new()]);
        }
    }
    section.words += figures.html();
    section.words += of_classes(judged, &counts).folded("Each class");
    section.figures.push(confusion(judged, &counts));
    section
}

/// Log loss and Brier score, over the rows whose label is a class of the model.
fn of_probabilities(judged: &JudgedClasses, probabilities: &[f64]) -> [(&'static str, f64); 2] {
    let (mut log_loss, mut brier, mut rows) = (0.0, 0.0, 0.0);
    for (row, &truth) in probabilities.chunks_exact(judged.classes).zip(&judged.truth) {
        if truth < judged.classes {
            log_loss -= row[truth].max(f64::EPSILON).ln();
            brier += row.iter().enumerate().map(|(c, p)| (p - f64::from(u8::from(c == truth))).powi(2)).sum::<f64>();
            rows += 1.0;
        }
    }
    [("log loss", log_loss / rows), ("Brier score (sum over classes)", brier / rows)]
}

fn of_classes(judged: &JudgedClasses, counts: &Counts) -> Table {
    let mut table = Table::new("Each class", ["class", "rows", "found (recall)", "right (precision)", "F1"]);
    for (c, name) in judged.names.iter().enumerate() {
        let right = counts.right[c] as f64;
        let (recall, precision) = (right / counts.of_truth[c] as f64, right / counts.of_predicted[c] as f64);
        let f1 = 2.0 * right / (counts.of_truth[c] + counts.of_predicted[c]) as f64;
        table.line([name.clone(), count(counts.of_truth[c]), percent(recall), percent(precision), percent(f1)]);
    }
    table
}

fn confusion(judged: &JudgedClasses, counts: &Counts) -> Figure {
    // The largest classes, in their order.
    let mut shown: Vec<usize> = (0..judged.names.len()).collect();
    let mut note = String::new();
    if shown.len() > MOST_CLASSES {
        shown.sort_by_key(|c| std::cmp::Reverse(counts.of_truth[*c].max(counts.of_predicted[*c])));
        shown.truncate(MOST_CLASSES);
        shown.sort_unstable();
        note = format!("Shown are the {MOST_CLASSES} largest of {} classes. ", count(judged.names.len()));
    }
    note += "A row is a true class, its colours the shares of its rows; right predictions are on the diagonal.";
    let rows_at = |truth: usize, predicted: usize| {
        let at = counts.pairs.binary_search_by_key(&(truth, predicted), |(t, p, _)| (*t, *p));
        at.map_or(0, |at| counts.pairs[at].2)
    };
    let columns: Vec<usize> = shown.iter().copied().filter(|c| *c < judged.classes).collect();
    let name = |c: usize| judged.names[c].clone();
    let cell = |truth: usize, predicted: usize| {
        let rows = rows_at(truth, predicted);
        let share = rows as f64 / counts.of_truth[truth].max(1) as f64;
        let (true_name, name) = (name(truth), name(predicted));
        let tip = format!("true {true_name}, predicted {name}\n{} ({})", counted(rows, "row", "rows"), percent(share));
        let shade = if rows == 0 { 0 } else { 1 + ((share * (SHADES - 1) as f64) as usize).min(SHADES - 2) };
        let text = if shown.len() <= WRITTEN { count(rows) } else { String::new() };
        let wrong = if rows > 0 && truth != predicted { " miss" } else { "" };
        Cell { class: format!("q{shade}{wrong}"), tip, text }
    };
    let cells = shown.iter().map(|t| columns.iter().map(|p| cell(*t, *p)).collect()).collect();
    let title = "Confusion matrix".to_string();
    let map = HeatMap {
        title: title.clone(),
        x_name: "predicted".into(),
        y_name: "true".into(),
        columns: columns.iter().map(|c| name(*c)).collect(),
        rows: shown.iter().map(|c| name(*c)).collect(),
        cells,
        rings: Vec::new(),
        is_square: true,
    };
    let mut table =
        Table::new("Pairs of true and predicted classes, the most frequent first", ["true", "predicted", "rows"]);
    let mut pairs = counts.pairs.clone();
    pairs.sort_by_key(|(truth, predicted, rows)| (std::cmp::Reverse(*rows), *truth, *predicted));
    for (truth, predicted, rows) in pairs {
        table.line([name(truth), name(predicted), count(rows)]);
    }
    let right = counts.right.iter().sum::<usize>();
    let summary = format!("{} of {} predictions are right.", count(right), count(counts.rows()));
    Figure { title, drawing: map.draw(&summary), legend: Vec::new(), note, table }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged() -> JudgedClasses {
        JudgedClasses {
            origin: Origin::New,
            names: vec!["a".into(), "<b>".into(), "c (no class of the model)".into()],
            classes: 2,
            truth: vec![0, 0, 0, 1, 1, 2],
            predicted: vec![0, 0, 1, 1, 0, 1],
            probabilities: Some(vec![0.9, 0.1, 0.8, 0.2, 0.4, 0.6, 0.2, 0.8, 0.7, 0.3, 0.5, 0.5]),
            left_out: 0,
        }
    }

    #[test]
    fn counts_are_those_of_the_rows() {
        let counts = Counts::of(&judged());
        assert_eq!(counts.pairs, [(0, 0, 2), (0, 1, 1), (1, 0, 1), (1, 1, 1), (2, 1, 1)]);
        assert_eq!((counts.of_truth, counts.of_predicted, counts.right), (vec![3, 2, 1], vec![3, 3, 0], vec![2, 1, 0]));
    }

    #[test]
    fn scores_of_probabilities_are_those_of_their_formulas() {
        let judged = judged();
        let [(_, log_loss), (_, brier)] = of_probabilities(&judged, judged.probabilities.as_ref().unwrap());
        let expected: f64 = [0.9, 0.8, 0.4, 0.8, 0.3].iter().map(|p: &f64| -p.ln()).sum::<f64>() / 5.0;
        assert!((log_loss - expected).abs() < 1e-12);
        let expected: f64 = [0.1, 0.2, 0.6, 0.2, 0.7].iter().map(|e: &f64| 2.0 * e * e).sum::<f64>() / 5.0;
        assert!((brier - expected).abs() < 1e-12);
    }

    #[test]
    fn the_section_names_labels_safely() {
        let html = section(&judged(), Some("<file>")).html();
        assert!(html.contains("&lt;file&gt;") && html.contains("&lt;b&gt;") && !html.contains("<file>"));
        assert!(html.contains("50\u{202f}%")); // 3 of 6
    }
}
