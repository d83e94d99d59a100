//! Scores of predictions against the truth. Higher is better, and every score is a weighted mean over rows, or made of
//! such means.

/// Σ w·v / Σ w.
fn mean(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, total) = values.fold((0.0, 0.0), |(sum, total), (weight, value)| (sum + weight * value, total + weight));
    sum / total
}

/// The share of rows whose class is predicted.
pub(crate) fn accuracy(truth: &[usize], predicted: &[usize], weight: &[f64]) -> f64 {
    mean(truth.iter().zip(predicted).zip(weight).map(|((t, p), w)| (*w, f64::from(t == p))))
}

/// The mean over the classes among `truth` of the share of their rows that are predicted.
pub(crate) fn balanced_accuracy(truth: &[usize], predicted: &[usize], weight: &[f64], classes: usize) -> f64 {
    let (mut right, mut total) = (vec![0.0; classes], vec![0.0; classes]);
    for ((&t, &p), w) in truth.iter().zip(predicted).zip(weight) {
        total[t] += w;
        right[t] += if t == p { *w } else { 0.0 };
    }
    mean(right.iter().zip(&total).filter(|(_, total)| **total > 0.0).map(|(right, total)| (1.0, right / total)))
}

/// The mean log probability of the true class. Probabilities are `classes` numbers for each row. Like in scikit-learn,
/// they count as at least 2⁻⁵², so that a single wrong certainty does not make the score −∞.
pub(crate) fn neg_log_loss(truth: &[usize], probabilities: &[f64], weight: &[f64], classes: usize) -> f64 {
    let log = |p: f64| p.clamp(f64::EPSILON, 1.0 - f64::EPSILON).ln();
    mean(truth.iter().zip(probabilities.chunks_exact(classes)).zip(weight).map(|((t, p), w)| (*w, log(p[*t]))))
}

/// The area under the ROC curve: the probability that a positive row has a larger value than a negative one, where
/// equal values count half. NaN if there are rows of one class only.
pub(crate) fn roc_auc(truth: &[usize], values: &[f64], weight: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..truth.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (mut below, mut positives, mut area) = (0.0, 0.0, 0.0);
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let of_class = |class: usize| tied.iter().filter(|&&i| truth[i] == class).map(|&i| weight[i]).sum::<f64>();
        let (negative, positive) = (of_class(0), of_class(1));
        area += positive * (below + 0.5 * negative);
        below += negative;
        positives += positive;
    }
    area / (positives * below)
}

/// 1 − Σ w (y − f)² / Σ w (y − ȳ)². If all targets are equal, it is 1 for perfect predictions and 0 otherwise; NaN for
/// a single row.
pub(crate) fn r2(y: &[f64], f: &[f64], weight: &[f64]) -> f64 {
    if y.len() < 2 {
        return f64::NAN;
    }
    let centre = mean(y.iter().zip(weight).map(|(y, w)| (*w, *y)));
    let squares = |of: &dyn Fn(usize) -> f64| (0..y.len()).map(|i| weight[i] * of(i) * of(i)).sum::<f64>();
    let (residual, total) = (squares(&|i| y[i] - f[i]), squares(&|i| y[i] - centre));
    match (residual == 0.0, total == 0.0) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) => 1.0 - residual / total,
    }
}

/// The mean of the score of each row.
pub(crate) fn mean_score(y: &[f64], f: &[f64], weight: &[f64], score: impl Fn(f64, f64) -> f64) -> f64 {
    mean(y.iter().zip(f).zip(weight).map(|((y, f), w)| (*w, score(*y, *f))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_act_like_repeated_rows() {
        let (truth, predicted, values) = ([0, 1, 1, 0, 2], [0, 1, 0, 2, 2], [0.1, 0.7, 0.4, 0.4, 0.9]);
        let weight = [1.0, 3.0, 2.0, 1.0, 2.0];
        let rows: Vec<usize> = (0..5).flat_map(|i| vec![i; weight[i] as usize]).collect();
        let repeated = |of: &[usize]| rows.iter().map(|&i| of[i]).collect::<Vec<_>>();
        let ones = vec![1.0; rows.len()];
        let (t, p) = (repeated(&truth), repeated(&predicted));
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} not {b}");
        close(accuracy(&truth, &predicted, &weight), accuracy(&t, &p, &ones));
        close(accuracy(&truth, &predicted, &weight), 6.0 / 9.0);
        close(balanced_accuracy(&truth, &predicted, &weight, 3), balanced_accuracy(&t, &p, &ones, 3));
        close(balanced_accuracy(&truth, &predicted, &weight, 3), (0.5 + 0.6 + 1.0) / 3.0);
        let v: Vec<f64> = rows.iter().map(|&i| values[i]).collect();
        let y = [0.0, 1.0, 2.0, 0.5, 0.1];
        let targets: Vec<f64> = rows.iter().map(|&i| y[i]).collect();
        close(r2(&y, &values, &weight), r2(&targets, &v, &ones));
    }

    #[test]
    fn area_counts_pairs() {
        let (truth, values) = ([0, 1, 1, 0, 1], [0.3, 0.3, 0.8, 0.5, 0.1]);
        let weight = [1.0, 2.0, 1.0, 3.0, 0.5];
        let (mut won, mut all) = (0.0, 0.0);
        for i in (0..5).filter(|&i| truth[i] == 1) {
            for j in (0..5).filter(|&j| truth[j] == 0) {
                let order = if values[i] > values[j] { 1.0 } else { 0.5 * f64::from(values[i] == values[j]) };
                won += weight[i] * weight[j] * order;
                all += weight[i] * weight[j];
            }
        }
        assert!((roc_auc(&truth, &values, &weight) - won / all).abs() < 1e-15);
        assert!(roc_auc(&[1, 1], &[0.0, 1.0], &[1.0, 1.0]).is_nan());
    }

    #[test]
    fn certainty_that_is_wrong_costs_a_bounded_amount() {
        let found = neg_log_loss(&[0, 1], &[0.0, 1.0, 0.25, 0.75], &[1.0, 1.0], 2);
        assert!((found - 0.5 * (f64::EPSILON.ln() + 0.75f64.ln())).abs() < 1e-14);
    }

    #[test]
    fn equal_targets_have_a_score() {
        assert_eq!(r2(&[2.0, 2.0], &[2.0, 2.0], &[1.0, 1.0]), 1.0);
        assert_eq!(r2(&[2.0, 2.0], &[2.0, 2.1], &[1.0, 1.0]), 0.0);
        assert!(r2(&[2.0], &[2.0], &[1.0]).is_nan());
    }
}
