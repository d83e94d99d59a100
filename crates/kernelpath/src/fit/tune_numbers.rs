//! Scores of regressors, from the values of held-out rows.

use std::ops::Range;

use crate::error::Result;
use crate::fit::metrics::r2;
use crate::fit::surface::{Scores, Surface};

/// The scores of some machines at every place of a surface. `score` is given test rows, the place, and the values of
/// the machines at these rows, row after row. Models that were not run score NaN.
///
/// With `all_at_once`, there is one "fold" of all rows with their out-of-fold values: a single row, as leave-one-out
/// has it, cannot be ranked or compared with a mean.
pub(crate) fn at_every_place(
    surface: &Surface,
    machines: Range<usize>,
    all_at_once: bool,
    mut score: impl FnMut(&[usize], usize, Vec<f64>) -> Result<f64>,
) -> Result<Scores> {
    let mut known = |rows: &[usize], place: usize, values: Vec<f64>| {
        if values.iter().any(|f| f.is_nan()) { Ok(f64::NAN) } else { score(rows, place, values) }
    };
    let places = || 0..surface.places();
    if all_at_once {
        let rows: Vec<usize> = (0..surface.at(0, 0).0.n).collect();
        let values = |place: usize| surface.out_of_fold(machines.clone().map(|m| (m, place)));
        return Ok(vec![places().map(|place| known(&rows, place, values(place))).collect::<Result<_>>()?]);
    }
    let of_fold = |(fold, rows): (usize, &Vec<usize>)| {
        places().map(|place| known(rows, place, surface.values(machines.clone(), fold, place))).collect()
    };
    surface.tests().iter().enumerate().map(of_fold).collect()
}

/// R² of some machines, of the mean over their targets if they are several. `y[m]` are the targets of machine m of the
/// surface.
pub(crate) fn r2_scores(
    surface: &Surface,
    machines: Range<usize>,
    y: &[&[f64]],
    weight: &[f64],
    all_at_once: bool,
) -> Result<Scores> {
    at_every_place(surface, machines.clone(), all_at_once, |rows, _, values| {
        let weight: Vec<f64> = rows.iter().map(|&i| weight[i]).collect();
        let of_machine = |(at, m): (usize, usize)| {
            let y: Vec<f64> = rows.iter().map(|&i| y[m][i]).collect();
            let f: Vec<f64> = values[at..].iter().step_by(machines.len()).copied().collect();
            r2(&y, &f, &weight)
        };
        Ok(machines.clone().enumerate().map(of_machine).sum::<f64>() / machines.len() as f64)
    })
}
