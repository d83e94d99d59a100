//! Which place (γ, C) the scores of held-out rows choose.
//!
//! ```text
//! mean        m = Σₖ wₖ sₖ / Σₖ wₖ               over the folds k that count
//! error       e² = Σₖ wₖ² (sₖ − m)² / (Σₖ wₖ)² · K / (K − 1)      its squared standard error, of K folds
//! equal       m ≥ top − 10⁻¹² · Σₖ wₖ |sₖ| / Σₖ wₖ  differs from the top by rounding only
//! ```
//!
//! All weights are 1, unless rows of different weights are left out one by one. The rule looks at values alone: the
//! order in which C's and γ's were given changes nothing.

/// Which place the scores choose. Of places that are equal, or equally allowed, the smallest C is taken, and of equal
/// C's the smallest γ, whose kernel is the smoothest. Scores that differ by rounding only are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection {
    /// The highest mean score.
    #[default]
    Best,
    /// Any place whose mean score is within one standard error of the best.
    OneStandardError,
}

/// Scores that differ by this much, relative to the scores of the folds, are equal. Sums over folds and rows round by
/// some 10⁻¹⁵; a difference of one row in a million is 10⁻⁶.
const ROUNDING: f64 = 1e-12;

/// A place of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Place {
    /// Its C.
    pub c: f64,
    /// Its γ.
    pub gamma: f64,
}

impl Place {
    /// The place with this C and this γ.
    pub fn new(c: f64, gamma: f64) -> Self {
        Self { c, gamma }
    }
}

/// Every place of a grid: C after C of the first γ, then of the second.
pub(crate) fn places(cs: &[f64], gammas: impl IntoIterator<Item = f64>) -> Vec<Place> {
    gammas.into_iter().flat_map(|gamma| cs.iter().map(move |&c| Place { c, gamma })).collect()
}

/// The mean score of every place.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    /// NaN where a fold has no score.
    pub mean: Vec<f64>,
    /// Means of absolute scores: what rounding is relative to.
    size: Vec<f64>,
}

impl Means {
    /// The means of `scores[fold][place]`; a fold counts `weight[fold]` times, or once if there are no weights.
    pub fn of(scores: &[Vec<f64>], weight: &[f64]) -> Self {
        let places = scores.first().map_or(0, Vec::len);
        let weight = |fold: usize| weight.get(fold).copied().unwrap_or(1.0);
        let total: f64 = (0..scores.len()).map(weight).sum();
        let mean = |place: usize, of: fn(f64) -> f64| {
            scores.iter().enumerate().map(|(fold, scores)| weight(fold) * of(scores[place])).sum::<f64>() / total
        };
        Self {
            mean: (0..places).map(|place| mean(place, |score| score)).collect(),
            size: (0..places).map(|place| mean(place, f64::abs)).collect(),
        }
    }

    /// The highest mean of some places, and how far below it others are equal.
    fn top(&self, places: &[usize]) -> Option<(f64, f64)> {
        let top = places.iter().map(|&p| self.mean[p]).filter(|mean| !mean.is_nan()).max_by(f64::total_cmp)?;
        let size = places.iter().filter(|&&p| self.mean[p] == top).map(|&p| self.size[p]).fold(0.0, f64::max);
        Some((top, ROUNDING * size))
    }

    /// The rank of each place, 1 for the highest mean. Equal means share a rank, and the next rank counts them all; the
    /// places without a mean come last.
    pub fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![0; self.mean.len()];
        let mut left: Vec<usize> = (0..ranks.len()).collect();
        left.sort_by(|&a, &b| self.mean[b].total_cmp(&self.mean[a]));
        let (mut left, nan): (Vec<usize>, Vec<usize>) = left.into_iter().partition(|&p| !self.mean[p].is_nan());
        let mut rank = 1;
        while !left.is_empty() {
            let leaders = left.iter().take_while(|&&p| self.mean[p] == self.mean[left[0]]).count();
            let (top, slack) = self.top(&left[..leaders]).unwrap_or((f64::NAN, 0.0));
            let equal = left.iter().take_while(|&&p| self.mean[p] >= top - slack).count().max(leaders);
            left.drain(..equal).for_each(|place| ranks[place] = rank);
            rank += equal;
        }
        for place in nan {
            ranks[place] = rank;
        }
        ranks
    }

    /// The squared standard error of the mean of a place.
    pub fn squared_error(&self, scores: &[Vec<f64>], weight: &[f64], place: usize) -> f64 {
        let folds = scores.len() as f64;
        let weight = |fold: usize| weight.get(fold).copied().unwrap_or(1.0);
        let total: f64 = (0..scores.len()).map(weight).sum();
        let deviation = |(fold, scores): (usize, &Vec<f64>)| weight(fold) * (scores[place] - self.mean[place]) / total;
        let sum = scores.iter().enumerate().map(deviation).map(|d| d * d).sum::<f64>();
        sum * folds / (folds - 1.0).max(1.0)
    }
}

/// The ranks of the places of `scores[fold][place]` by their mean over the folds, 1 for the best. Means that differ by
/// rounding only share a rank, and places with a NaN come last. A fold counts `weight[fold]` times; if there are no
/// weights, once.
///
/// ```
/// let scores = [vec![0.5, 0.7, 0.7, f64::NAN], vec![0.6, 0.8, 0.8_f64.next_up(), 0.9]];
/// assert_eq!(kernelpath::ranks(&scores, &[]), [3, 1, 1, 4]);
/// ```
pub fn ranks(scores: &[Vec<f64>], weight: &[f64]) -> Vec<usize> {
    Means::of(scores, weight).ranks()
}

/// The chosen place, for `scores[fold][place]`; places without a score (NaN) are left out. A fold counts `weight[fold]`
/// times; if there are no weights, once.
///
/// ```
/// use kernelpath::{Place, Selection, select};
///
/// let places = [Place::new(10.0, 1.0), Place::new(1.0, 2.0), Place::new(1.0, 0.5)];
/// assert_eq!(select(&[vec![0.8, 0.8, 0.8]], &[], &places, Selection::Best), Some(2));
/// ```
pub fn select(scores: &[Vec<f64>], weight: &[f64], places: &[Place], rule: Selection) -> Option<usize> {
    let means = Means::of(scores, weight);
    let all: Vec<usize> = (0..means.mean.len()).collect();
    let (top, slack) = means.top(&all)?;
    let before = |a: &usize, b: &usize| {
        let (a, b) = (places[*a], places[*b]);
        a.c.total_cmp(&b.c).then(a.gamma.total_cmp(&b.gamma))
    };
    let first_from = |bar: f64| all.iter().copied().filter(|&place| means.mean[place] >= bar).min_by(before);
    let best = first_from(top - slack)?;
    match rule {
        Selection::Best => Some(best),
        Selection::OneStandardError => first_from(top - means.squared_error(scores, weight, best).sqrt() - slack),
    }
}

/// The γ of the largest of some values, one for each γ; of values that differ by rounding only, the smallest γ.
pub(crate) fn smoothest(values: &[f64], gammas: &[f64]) -> Option<usize> {
    let means = Means { mean: values.to_vec(), size: values.iter().map(|value| value.abs()).collect() };
    let all: Vec<usize> = (0..values.len()).collect();
    let (top, slack) = means.top(&all)?;
    let equal = all.into_iter().filter(|&g| values[g] >= top - slack || values[g] == top);
    equal.min_by(|&a, &b| gammas[a].total_cmp(&gammas[b]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores of a grid that has ties, near ties, and places that were not run.
    fn scores(rng: &mut fastrand::Rng, folds: usize, places: usize) -> Vec<Vec<f64>> {
        let level: Vec<f64> = (0..places).map(|_| (4.0 * rng.f64()).round() / 4.0).collect();
        let missing: Vec<bool> = (0..places).map(|_| rng.usize(..8) == 0).collect();
        let mut fold = || {
            (0..places)
                .map(|p| if missing[p] { f64::NAN } else { level[p] + 0.02 * (rng.f64() * 4.0).round() })
                .collect()
        };
        (0..folds).map(|_| fold()).collect()
    }

    /// Some values moved by an ulp, as other orders of summation do.
    fn rounded_otherwise(rng: &mut fastrand::Rng, scores: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let move_one = |score: &f64, coin: usize| match coin {
            0 => score.next_up(),
            1 => score.next_down(),
            _ => *score,
        };
        scores.iter().map(|fold| fold.iter().map(|score| move_one(score, rng.usize(..4))).collect()).collect()
    }

    #[test]
    fn neither_the_order_of_the_grid_nor_rounding_changes_the_choice() {
        let mut rng = fastrand::Rng::with_seed(3);
        for case in 0..600 {
            let (n_cs, n_gammas, folds) = (1 + rng.usize(..6), 1 + rng.usize(..5), 2 + rng.usize(..4));
            let cs: Vec<f64> = (0..n_cs).map(|c| 10.0_f64.powi(c as i32 - 2)).collect();
            let gammas: Vec<f64> = (0..n_gammas).map(|g| 2.0_f64.powi(g as i32 - 2)).collect();
            let grid = places(&cs, gammas);
            let given = scores(&mut rng, folds, grid.len());
            let weight: Vec<f64> = (0..if case % 2 == 0 { 0 } else { folds }).map(|_| 0.5 + rng.f64()).collect();
            for rule in [Selection::Best, Selection::OneStandardError] {
                let chosen = select(&given, &weight, &grid, rule).map(|place| grid[place]);
                for _ in 0..5 {
                    let mut order: Vec<usize> = (0..grid.len()).collect();
                    rng.shuffle(&mut order);
                    let permuted: Vec<Vec<f64>> =
                        given.iter().map(|fold| order.iter().map(|&place| fold[place]).collect()).collect();
                    let permuted = rounded_otherwise(&mut rng, &permuted);
                    let there: Vec<Place> = order.iter().map(|&place| grid[place]).collect();
                    let again = select(&permuted, &weight, &there, rule).map(|place| there[place]);
                    assert_eq!(again, chosen, "case {case}, {rule:?}");
                }
            }
            if let Some(best) = select(&given, &weight, &grid, Selection::Best) {
                assert_eq!(ranks(&given, &weight)[best], 1, "case {case}");
            }
        }
    }

    #[test]
    fn ties_go_to_the_smaller_c_then_to_the_smoother_kernel() {
        let at = |c: f64, gamma: f64| Place { c, gamma };
        let grid = [at(8.0, 0.1), at(2.0, 0.5), at(2.0, 0.1), at(1.0, 9.0)];
        let choose = |scores: &[f64]| select(&[scores.to_vec(), scores.to_vec()], &[], &grid, Selection::Best);
        assert_eq!(choose(&[0.9, 0.9_f64.next_up(), 0.9, 0.8]), Some(2));
        assert_eq!(choose(&[0.9, 0.9, 0.9, 0.9_f64.next_down()]), Some(3));
        // Scores near 0 are equal if they are so beside those of the folds.
        let folds = [vec![5.0, 5.0], vec![-5.0, (-5.0_f64).next_up()]];
        assert_eq!(select(&folds, &[], &grid[1..3], Selection::Best), Some(1));
    }

    #[test]
    fn ranks_count_those_before() {
        let means = [0.5, 0.9, 0.7, 0.9_f64.next_down(), f64::NAN, 0.7];
        assert_eq!(ranks(&[means.to_vec()], &[]), [5, 1, 3, 1, 6, 3]);
        assert_eq!(ranks(&[vec![f64::NEG_INFINITY, 1.0, f64::NEG_INFINITY]], &[]), [2, 1, 2]);
        assert!(ranks(&[], &[]).is_empty());
    }

    #[test]
    fn weights_count_folds() {
        let grid = places(&[1.0, 2.0], [1.0]);
        let scores = [vec![1.0, 0.0], vec![0.0, 1.0], vec![1.0, 0.0]];
        assert_eq!(select(&scores, &[], &grid, Selection::Best), Some(0));
        assert_eq!(select(&scores, &[1.0, 3.0, 1.0], &grid, Selection::Best), Some(1));
        assert_eq!(Means::of(&scores, &[1.0, 3.0, 1.0]).mean, [0.4, 0.6]);
        // The error of a mean does not depend on the unit of the weights, and with equal ones is the usual one.
        let error = |weight: &[f64]| Means::of(&scores, weight).squared_error(&scores, weight, 0);
        assert!((error(&[]) - 1.0 / 9.0).abs() < 1e-15);
        assert!((error(&[]) - error(&[7.0; 3])).abs() < 1e-15);
        assert!((error(&[1.0, 3.0, 1.0]) - error(&[2.0, 6.0, 2.0])).abs() < 1e-15);
    }
}
