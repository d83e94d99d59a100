//! Where every path starts: the constant model, with β as close to a solution as its ties allow.

use crate::certify::exact::Shared;
use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::entry::Entry;
use crate::observe::Control;
use crate::solver::box_qp::problem::{BoxQp, Point};

/// Where every path starts, at C = 1: the model f = b. Its losses pull each row to a level, except the rows whose kink
/// is at b. Of those, the rows with the smallest f take what is needed for Σβ = 0. The start scales with C. The
/// products of all paths with K are made in one pass over K.
pub(crate) fn constant_starts<T: Working>(
    shared: &Shared<T>,
    weights: &[&[f64]],
    control: &Control,
) -> Result<Vec<Point>> {
    let n = shared.gram.n();
    let add = |points: &mut [Point], deltas: &[Vec<f64>]| -> Result<()> {
        let deltas: Vec<&[f64]> = deltas.iter().map(|delta| &delta[..n]).collect();
        for (point, product) in points.iter_mut().zip(shared.gram.times(&deltas, control)?) {
            for (f, change) in point.f.iter_mut().zip(product) {
                *f += change;
            }
        }
        Ok(())
    };
    let problem = |weight: &[f64]| BoxQp::new(shared.gram, &shared.diagonal, &shared.kinks, weight, 1.0);
    let (mut points, tied): (Vec<Point>, Vec<Vec<usize>>) = weights.iter().map(|w| settle(&problem(w))).unzip();
    let betas: Vec<Vec<f64>> = points.iter().map(|point| point.beta.clone()).collect();
    add(&mut points, &betas)?;
    let filled: Vec<Vec<f64>> = (points.iter_mut().zip(tied).zip(weights))
        .map(|((point, tied), weight)| fill_up(&problem(weight), point, tied))
        .collect();
    add(&mut points, &filled)?;
    for (point, weight) in points.iter_mut().zip(weights) {
        point.restore_sum(&problem(weight));
    }
    Ok(points)
}

/// The constant model: every row is at the level that it is pulled to. Rows whose kink is at b are at the lower level,
/// and are returned, too; so Σβ ≤ 0.
fn settle<T: Entry>(qp: &BoxQp<T>) -> (Point, Vec<usize>) {
    let n = qp.n();
    let mut point = Point::origin(n);
    // b is where the pull Σβ*(b) changes sign: walk along the kinks from below.
    let mut kinks: Vec<(f64, f64)> = Vec::with_capacity(2 * n);
    let mut pull = 0.0;
    for i in 0..n {
        pull += qp.hi[i];
        kinks.push((qp.kink_high[i], qp.hi[i] - qp.mid[i]));
        kinks.push((qp.kink_low[i], qp.mid[i] - qp.lo[i]));
    }
    kinks.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    for (kink, drop) in kinks {
        if pull > 0.0 {
            point.b = kink;
            pull -= drop;
        }
    }
    let b = point.b;
    let mut tied = Vec::new();
    for i in 0..n {
        point.beta[i] = if b < qp.kink_high[i] {
            qp.hi[i]
        } else if b < qp.kink_low[i] {
            qp.mid[i]
        } else {
            qp.lo[i]
        };
        if b == qp.kink_low[i] && qp.lo[i] < qp.mid[i] || b == qp.kink_high[i] && qp.mid[i] < qp.hi[i] {
            tied.push(i);
        }
    }
    // If only tied rows pull, as on constant targets, β = 0 is the answer.
    if point.beta.iter().enumerate().all(|(i, beta)| *beta == 0.0 || tied.binary_search(&i).is_ok()) {
        let has_zero = |&i: &usize| qp.lo[i] <= 0.0 && 0.0 <= qp.hi[i];
        if tied.iter().all(has_zero) {
            return (Point { b, ..Point::origin(n) }, Vec::new());
        }
    }
    (point, tied)
}

/// Raises tied rows, those with the smallest f first, until Σβ = 0. Returns by how much each row was raised.
fn fill_up<T: Entry>(qp: &BoxQp<T>, point: &mut Point, mut tied: Vec<usize>) -> Vec<f64> {
    tied.sort_unstable_by(|&a, &b| point.f[a].total_cmp(&point.f[b]).then(a.cmp(&b)));
    let mut missing = -point.beta.iter().sum::<f64>();
    let mut deltas = vec![0.0; point.beta.len()];
    for i in tied {
        let old = point.beta[i];
        let top = if point.b == qp.kink_high[i] { qp.hi[i] } else { qp.mid[i] };
        let take = (top - old).min(missing.max(0.0));
        point.beta[i] = if take == top - old { top } else { old + take };
        deltas[i] = point.beta[i] - old;
        missing -= take;
    }
    deltas
}
