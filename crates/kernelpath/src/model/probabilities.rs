//! Probabilities of classes from the values of machines.
//!
//! A machine of two classes gives P(its positive class): 1 / (1 + e^−f) for the logistic loss, or a
//! [calibrated](crate::model::calibrate) map of f. Several machines give
//!
//! ```text
//! one against the rest   p_c ∝ P_c
//! one against one        p minimises Σ over pairs (r_ji p_i − r_ij p_j)²  under Σp = 1,   r_ij = P(i against j)
//! multinomial            p_c = exp f_c / Σ exp f
//! ```
//!
//! One against one is the second method of Wu, Lin and Weng, *Probability estimates for multi-class classification by
//! pairwise coupling* (2004). Its minimum is p ∝ Q⁻¹1 with Q_ii = Σ_j r_ji² and Q_ij = −r_ji r_ij.

use faer::Mat;
use faer::linalg::solvers::Solve;

use crate::loss::softmax::softmax;
use crate::model::arrangement::Arrangement;
use crate::model::calibrate::Calibration;
use crate::model::sigmoid::{log_sigmoid, sigmoid};

/// Added to the diagonal of Q, which is singular where p itself is in its kernel. The entries of Q are at most the
/// number of classes, so this is far below what probabilities are known to.
const COUPLING_RIDGE: f64 = 1e-12;

/// Pairwise probabilities are kept this far from 0 and 1, where Q would be singular in more than one direction.
const LEAST_PAIRWISE: f64 = 1e-7;

/// Where the probabilities of a machine come from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Odds {
    /// f is the logarithm of the odds.
    Native,
    /// One map for each machine.
    Calibrated(Vec<Calibration>),
}

impl Odds {
    fn positive(&self, m: usize, f: f64) -> f64 {
        match self {
            Self::Native => sigmoid(f),
            Self::Calibrated(maps) => maps[m].probability(f),
        }
    }

    fn log_odds(&self, m: usize, f: f64) -> f64 {
        match self {
            Self::Native => f,
            Self::Calibrated(maps) => maps[m].log_odds(f),
        }
    }

    /// One probability for each class, row after row. `values` are those of the machines, row after row.
    pub fn probabilities(&self, arrangement: &Arrangement, values: &[f64]) -> Vec<f64> {
        let each = |row: &[f64]| -> Vec<f64> { row.iter().enumerate().map(|(m, f)| self.positive(m, *f)).collect() };
        let rows = values.chunks_exact(arrangement.outputs());
        match arrangement {
            Arrangement::Two => {
                let both = |f: &f64| [sigmoid(-self.log_odds(0, *f)), self.positive(0, *f)];
                values.iter().flat_map(both).collect()
            }
            Arrangement::Rest { .. } => rows.flat_map(|row| normalised(each(row))).collect(),
            Arrangement::Pairs { pairs, classes } => {
                rows.flat_map(|row| coupled(&each(row), pairs, *classes)).collect()
            }
            Arrangement::Together { classes } => {
                let mut p = values.to_vec();
                p.chunks_exact_mut(*classes).for_each(softmax);
                p
            }
        }
    }

    /// Their logarithms. For two classes and the multinomial loss, they are finite even where a probability rounds to
    /// 0 (an isotonic map may be 0 exactly).
    pub fn log_probabilities(&self, arrangement: &Arrangement, values: &[f64]) -> Vec<f64> {
        match arrangement {
            Arrangement::Two => {
                let both = |f: &f64| {
                    let z = self.log_odds(0, *f);
                    [log_sigmoid(-z), log_sigmoid(z)]
                };
                values.iter().flat_map(both).collect()
            }
            Arrangement::Together { classes } => values.chunks_exact(*classes).flat_map(log_softmax).collect(),
            _ => self.probabilities(arrangement, values).into_iter().map(f64::ln).collect(),
        }
    }
}

/// g_c − log Σ exp g.
fn log_softmax(g: &[f64]) -> Vec<f64> {
    let top = g.iter().fold(f64::NEG_INFINITY, |a, g| a.max(*g));
    let log_sum = top + g.iter().map(|g| (g - top).exp()).sum::<f64>().ln();
    g.iter().map(|g| g - log_sum).collect()
}

/// The values over their sum; equal parts if all are 0, NaN if one is NaN.
fn normalised(mut p: Vec<f64>) -> Vec<f64> {
    let (total, even) = (p.iter().sum::<f64>(), 1.0 / p.len() as f64);
    for p in &mut p {
        *p = if total == 0.0 { even } else { *p / total };
    }
    p
}

/// The probabilities of classes that fit the pairwise ones best; NaN if one of these is.
fn coupled(pairwise: &[f64], pairs: &[(usize, usize)], classes: usize) -> Vec<f64> {
    if pairwise.iter().any(|r| r.is_nan()) {
        return vec![f64::NAN; classes];
    }
    // won[(i, j)] is the probability of class i against class j.
    let mut won = Mat::<f64>::zeros(classes, classes);
    for (r, &(first, second)) in pairwise.iter().zip(pairs) {
        let r = r.clamp(LEAST_PAIRWISE, 1.0 - LEAST_PAIRWISE);
        (won[(first, second)], won[(second, first)]) = (r, 1.0 - r);
    }
    let q = Mat::from_fn(classes, classes, |i, j| {
        let square = |k: usize| won[(k, i)] * won[(k, i)];
        if i == j { (0..classes).map(square).sum::<f64>() + COUPLING_RIDGE } else { -won[(i, j)] * won[(j, i)] }
    });
    let p = q.partial_piv_lu().solve(Mat::<f64>::full(classes, 1, 1.0));
    normalised((0..classes).map(|c| p[(c, 0)].max(0.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::model::arrangement::MultiClass;

    #[test]
    fn pairs_that_agree_give_back_their_classes() {
        // r_ij = p_i / (p_i + p_j) makes every term of the sum 0.
        let p: [f64; 4] = [0.5, 0.3, 0.15, 0.05];
        let arrangement = Arrangement::new(MultiClass::OneVsOne, 4);
        let Arrangement::Pairs { pairs, .. } = &arrangement else { panic!("four classes make pairs") };
        let log_odds: Vec<f64> = pairs.iter().map(|&(i, j)| (p[i] / p[j]).ln()).collect();
        for (found, p) in Odds::Native.probabilities(&arrangement, &log_odds).iter().zip(p) {
            assert!((found - p).abs() < 1e-9, "{found} not {p}");
        }
    }

    #[test]
    fn coupling_minimises_its_sum() {
        let (pairwise, pairs) = ([0.9, 0.4, 0.7], [(0, 1), (0, 2), (1, 2)]);
        let p = coupled(&pairwise, &pairs, 3);
        let sum = |p: &[f64]| -> f64 {
            pairwise.iter().zip(pairs).map(|(r, (i, j))| ((1.0 - r) * p[i] - r * p[j]).powi(2)).sum()
        };
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
            let mut moved = p.clone();
            (moved[from], moved[to]) = (moved[from] - 1e-4, moved[to] + 1e-4);
            assert!(sum(&moved) > sum(&p));
        }
    }

    #[test]
    fn logarithms_are_finite_where_probabilities_are_not_known() {
        let close = |found: Vec<f64>, expected: &[f64]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} not {expected:?}");
        };
        close(Odds::Native.log_probabilities(&Arrangement::Two, &[800.0]), &[-800.0, 0.0]);
        let together = Arrangement::together(3);
        close(Odds::Native.log_probabilities(&together, &[0.0, 900.0, 0.0]), &[-900.0, 0.0, -900.0]);
        close(Odds::Native.probabilities(&Arrangement::Rest { classes: 3 }, &[-900.0; 3]), &[1.0 / 3.0; 3]);
    }
}
