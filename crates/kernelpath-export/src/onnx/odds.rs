//! From the values of the machines to probabilities.

use kernelpath::{Arrangement, Calibration, Odds};

use crate::error::Result;
use crate::onnx::coupling::coupled;
use crate::onnx::graph::{Graph, Value, refused};
use crate::onnx::proto::{AttributeProto, Element};

/// A matrix with a column of probabilities for each class.
pub(crate) fn probabilities(
    graph: &mut Graph,
    values: &Value,
    arrangement: &Arrangement,
    odds: &Odds,
) -> Result<Value> {
    match arrangement {
        Arrangement::Two => two(graph, values, odds),
        Arrangement::Rest { classes } => {
            let each = positive(graph, values, odds)?;
            normalised(graph, &each, *classes)
        }
        Arrangement::Pairs { pairs, classes } => {
            let each = positive(graph, values, odds)?;
            let shares = coupled(graph, &each, pairs, *classes)?;
            normalised(graph, &shares, *classes)
        }
        Arrangement::Together { .. } => {
            Ok(graph.apply_with("Softmax", &[values], vec![AttributeProto::int("axis", 1)]))
        }
        _ => refused("its machines are arranged in a way that this version does not know; install a newer one"),
    }
}

/// The probability of the second class beside that of the first.
fn two(graph: &mut Graph, values: &Value, odds: &Odds) -> Result<Value> {
    let both = if let Some(lines) = lines(odds, 1)? {
        // Each for itself: 1 − p has no digits where p is close to 1.
        let logs = log_odds(graph, values, &lines)?;
        let turned = graph.apply("Neg", &[&logs]);
        [sigmoid(graph, &turned)?, sigmoid(graph, &logs)?]
    } else {
        let second = positive(graph, values, odds)?;
        let one = graph.number("one", 1.0)?;
        [graph.sub(&one, &second), second]
    };
    Ok(graph.beside(&both))
}

/// The values over their sum; equal parts if all are 0.
fn normalised(graph: &mut Graph, shares: &Value, classes: usize) -> Result<Value> {
    let zero = graph.number("zero", 0.0)?;
    let even = graph.number("even", 1.0 / classes as f64)?;
    let total = graph.sum_of_rows(shares);
    let is_zero = graph.apply("Equal", &[&total, &zero]);
    let parts = graph.div(shares, &total);
    Ok(graph.apply("Where", &[&is_zero, &even, &parts]))
}

/// The probability of the positive class of each machine.
fn positive(graph: &mut Graph, values: &Value, odds: &Odds) -> Result<Value> {
    let Odds::Calibrated(maps) = odds else {
        return sigmoid(graph, values);
    };
    if let Some(lines) = lines(odds, maps.len())? {
        let logs = log_odds(graph, values, &lines)?;
        return sigmoid(graph, &logs);
    }
    let mut columns = Vec::new();
    for (m, map) in maps.iter().enumerate() {
        let place = graph.integers("machine", &[m as i64]);
        let own = graph.take(values, &place, 1);
        columns.push(match map {
            Calibration::Isotonic { points } => interpolated(graph, &own, points)?,
            other => {
                let logs = log_odds(graph, &own, &[line(other)?])?;
                sigmoid(graph, &logs)?
            }
        });
    }
    Ok(graph.beside(&columns))
}

/// Slope and intercept of the log-odds of each machine; `None` if one of them is no line.
fn lines(odds: &Odds, machines: usize) -> Result<Option<Vec<(f64, f64)>>> {
    match odds {
        Odds::Native => Ok(Some(vec![(1.0, 0.0); machines])),
        Odds::Calibrated(maps) if maps.iter().any(|map| matches!(map, Calibration::Isotonic { .. })) => Ok(None),
        Odds::Calibrated(maps) => maps.iter().map(line).collect::<Result<_>>().map(Some),
        _ => refused("its probabilities are made in a way that this version does not know; install a newer one"),
    }
}

fn line(map: &Calibration) -> Result<(f64, f64)> {
    match map {
        Calibration::Sigmoid { slope, intercept } => Ok((*slope, *intercept)),
        Calibration::Temperature { slope } => Ok((*slope, 0.0)),
        other => refused(format!("it has a calibration {:?} that is no line", other.method().name())),
    }
}

/// slope · f + intercept, for each machine.
fn log_odds(graph: &mut Graph, values: &Value, lines: &[(f64, f64)]) -> Result<Value> {
    let slopes = graph.floats("slopes", &[lines.len()], lines.iter().map(|line| line.0))?;
    let intercepts = graph.floats("log_odds_at_zero", &[lines.len()], lines.iter().map(|line| line.1))?;
    let multiple = graph.mul(values, &slopes);
    Ok(graph.add(&multiple, &intercepts))
}

/// 1 / (1 + e^−z), with all its digits at both ends: at a large −z the exponential is ∞, and its inverse 0.
fn sigmoid(graph: &mut Graph, logs: &Value) -> Result<Value> {
    let one = graph.number("one", 1.0)?;
    let negative = graph.apply("Neg", &[logs]);
    let power = graph.apply("Exp", &[&negative]);
    let sum = graph.add(&one, &power);
    Ok(graph.div(&one, &sum))
}

/// Straight lines between points, constant before the first and after the last, for a column of values.
///
/// The number k of points below a value finds the line: p = min(p₀ + (f − x₀) / Δx · Δp, p₁), where Δp = 0 for the
/// first k and the last.
fn interpolated(graph: &mut Graph, values: &Value, points: &[(f64, f64)]) -> Result<Value> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return refused("one of its calibrations has no points; calibrate it again");
    };
    // x₀, Δx, p₀, Δp, p₁ for each k.
    let between = points.windows(2).map(|pair| {
        let ((x0, p0), (x1, p1)) = (pair[0], pair[1]);
        [x0, x1 - x0, p0, p1 - p0, p1]
    });
    let before = std::iter::once([first.0, 1.0, first.1, 0.0, first.1]);
    let after = std::iter::once([last.0, 1.0, last.1, 0.0, last.1]);
    let rows: Vec<[f64; 5]> = before.chain(between).chain(after).collect();

    let places = graph.floats("points", &[1, points.len()], points.iter().map(|point| point.0))?;
    let is_below = graph.apply("Less", &[&places, values]);
    let is_below = graph.cast(&is_below, Element::Int64);
    let below = graph.sum_of_rows(&is_below);
    let mut found = Vec::new();
    for part in 0..5 {
        let table = graph.floats("lines", &[rows.len()], rows.iter().map(|row| row[part]))?;
        found.push(graph.take(&table, &below, 0));
    }
    let distance = graph.sub(values, &found[0]);
    let share = graph.div(&distance, &found[1]);
    let rise = graph.mul(&share, &found[3]);
    let p = graph.add(&found[2], &rise);
    Ok(graph.apply("Min", &[&p, &found[4]]))
}
