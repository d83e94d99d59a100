//! Which C the scores choose.

/// Which C the scores choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection {
    /// The highest mean score; of equal ones, the smallest C.
    #[default]
    Best,
    /// The smallest C whose mean score is within one standard error of the best.
    OneStandardError,
}

/// Index of the chosen C, for `scores[fold][c]`; C's without a score (NaN) are left out.
pub fn select(scores: &[Vec<f64>], cs: &[f64], rule: Selection) -> Option<usize> {
    let column = |c: usize| scores.iter().map(move |fold| fold[c]);
    let folds = scores.len() as f64;
    let mean = |c: usize| column(c).sum::<f64>() / folds;
    let smallest = |candidates: &mut dyn Iterator<Item = usize>| candidates.min_by(|&a, &b| cs[a].total_cmp(&cs[b]));
    let top = (0..cs.len()).map(mean).filter(|m| !m.is_nan()).max_by(f64::total_cmp)?;
    // Means that differ by rounding only are equal.
    let slack = 1e-12 * top.abs();
    let best = smallest(&mut (0..cs.len()).filter(|&c| mean(c) >= top - slack))?;
    match rule {
        Selection::Best => Some(best),
        Selection::OneStandardError => {
            let variance = column(best).map(|s| (s - top) * (s - top)).sum::<f64>() / (folds - 1.0).max(1.0);
            let bar = top - (variance / folds).sqrt();
            smallest(&mut (0..cs.len()).filter(|&c| mean(c) >= bar - slack))
        }
    }
}
