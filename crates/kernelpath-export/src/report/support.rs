//! How many rows a model stands on, over C.

use std::fmt::Write as _;

use crate::report::chart::{Figure, Line, LineChart, Point};
use crate::report::found::{Found, Grid, IN_LEGEND};
use crate::report::scores::{MOST_CURVES, MOST_POINTS, cut_note};
use crate::report::section::Section;
use crate::report::table::{Table, thinned};
use crate::report::text::{counted, number, percent};

/// Support vectors along the path; `None` if the model does not say.
pub(crate) fn section(found: &Found) -> Option<Section> {
    let counts = found.n_support()?;
    let mut section = Section::new("support", "Support vectors along the path");
    section.say(
        "Support vectors are the training rows that a model keeps a coefficient for; prediction takes time in proportion \
         to their number. Shown are the models trained on all rows.",
    );
    if found.parameter("low_rank").and_then(serde_json::Value::as_bool) == Some(true) {
        section.say(
            "At low rank the model predicts from landmarks, whose number does not depend on C. The line counts the rows \
             whose loss bends or slopes at the solution.",
        );
    }
    if let (Some(n), support) = (found.rows(), found.model.predictor.support().len())
        && support > 0
    {
        let share = percent(support as f64 / n as f64);
        section.say(&format!("The returned model has {} ({share} of the rows).", vectors(support)));
    }
    section.figures.push(chart(found, &counts));
    Some(section)
}

fn vectors(count: usize) -> String {
    counted(count, "support vector", "support vectors")
}

fn chart(found: &Found, counts: &Grid) -> Figure {
    let (rising, best, g) = (found.rising(), found.best(), found.gamma_at);
    let mut table = Table::new("Support vectors over C", ["C", "machine", "support vectors"]);
    let machines = thinned(counts.machines, MOST_CURVES, &[]);
    let mut lines = Vec::new();
    for machine in &machines {
        // Machines tuned together share one place.
        let chosen = best.get(*machine).or(best.first()).copied();
        let keep: Vec<usize> = chosen.iter().filter_map(|b| rising.iter().position(|c| c == b)).collect();
        let cs = found.cs(*machine);
        let name = found.short_name(*machine, IN_LEGEND);
        let mut line = Line { name: name.clone(), ..Line::default() };
        for k in thinned(rising.len(), MOST_POINTS, &keep) {
            let (c, count) = (cs[rising[k]], counts.at(*machine, 0, g, rising[k]));
            line.points.push(Point { x: c, y: count, error: f64::NAN });
            if chosen == Some(rising[k]) {
                line.chosen = Some((c, count));
            }
            table.line([number(c), name.clone(), number(count)]);
        }
        lines.push(line);
    }
    let mut note = cut_note(machines.len(), counts.machines, "machines");
    if found.gammas.len() > 1 {
        let _ = write!(note, "The lines are at the chosen γ = {}.", number(found.gammas[g]));
    }
    let title = "Support vectors over C".to_string();
    let chart = LineChart {
        title: title.clone(),
        x_name: "C".into(),
        y_name: "support vectors".into(),
        is_log_x: true,
        lines,
        ..LineChart::default()
    };
    let (drawing, legend) = chart.draw("A line for each machine.");
    Figure { title, drawing, legend, note, table }
}
