//! Probabilities from decision values: P(y = +1 | f), fitted on scores of held-out rows.
//!
//! The folds of a path leave a score for every row from a model that never saw it. Those scores are all that
//! calibration needs, so no model is fitted again. With weights wᵢ and positives y = +1 the three methods minimise
//!
//! ```text
//! sigmoid       Σ wᵢ [tᵢ log(1 + e^{−zᵢ}) + (1 − tᵢ) log(1 + e^{zᵢ})]    z = a f + b, a ≥ 0
//! temperature   Σ wᵢ log(1 + e^{−yᵢ zᵢ})                                 z = a f,     a > 0
//! isotonic      Σ wᵢ (1{yᵢ = +1} − p(fᵢ))²                               p not decreasing in f
//! ```
//!
//! and P = 1/(1 + e^{−z}), or p itself. None of them ever decreases in f, so calibration keeps the order of the scores.
//!
//! Sigmoid: Platt, *Probabilistic outputs for support vector machines* (1999), with his targets, which keep a finite
//! for scores that separate the classes: t = (N₊ + 1)/(N₊ + 2) for positives and 1/(N₋ + 2) for the others, where N₊
//! and N₋ are sums of weights. Newton's method follows the advice of Lin, Lin and Weng, *A note on Platt's
//! probabilistic outputs* (2007). Isotonic: pool adjacent violators, Barlow et al., *Statistical inference under order
//! restrictions* (1972).

use crate::error::{Error, Result, named};
use crate::model::isotonic::{fit_isotonic, interpolate};
use crate::model::platt::fit_sigmoid;
use crate::model::sigmoid::sigmoid;

/// How scores become probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Method {
    /// A sigmoid with a slope and an intercept.
    #[default]
    Sigmoid,
    /// Any function that does not decrease.
    Isotonic,
    /// A sigmoid with a slope only: P = ½ stays at f = 0.
    Temperature,
}

impl Method {
    /// The names, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["sigmoid", "isotonic", "temperature"];

    /// The name of the method.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The method of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        named("calibration", name, Self::NAMES, &[Self::Sigmoid, Self::Isotonic, Self::Temperature])
    }
}

/// A fitted map from scores to probabilities.
///
/// ```
/// use kernelpath::{Calibration, Method};
///
/// let scores = [-2.0, -1.0, -0.5, 0.3, 0.4, 1.5, 2.0];
/// let positive = [false, false, true, false, true, true, true];
/// let calibration = Calibration::fit(Method::Sigmoid, &scores, &positive, None)?;
/// assert!(calibration.probability(-2.0) < 0.3);
/// assert!(calibration.probability(2.0) > 0.7);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Calibration {
    /// 1 / (1 + e^{−(slope·f + intercept)})
    Sigmoid {
        /// a ≥ 0.
        slope: f64,
        /// b.
        intercept: f64,
    },
    /// Straight lines between points, constant before the first and after the last.
    Isotonic {
        /// (f, p): f increases, p does not decrease.
        points: Vec<(f64, f64)>,
    },
    /// 1 / (1 + e^{−slope·f})
    Temperature {
        /// a > 0.
        slope: f64,
    },
}

/// A row that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub score: f64,
    pub positive: bool,
    pub weight: f64,
}

impl Calibration {
    /// Fits `method` to scores of held-out rows, with weights of 1 unless given.
    ///
    /// A row of integer weight counts as that many rows, and a row of weight 0 is left out, whatever its score. All
    /// other rows must have finite scores, and both classes must be among them.
    pub fn fit(method: Method, scores: &[f64], positive: &[bool], weights: Option<&[f64]>) -> Result<Self> {
        let rows = checked(scores, positive, weights)?;
        Ok(match method {
            Method::Sigmoid => fit_sigmoid(&rows),
            Method::Isotonic => fit_isotonic(rows),
            Method::Temperature => fit_temperature(rows),
        })
    }

    /// The method that the map was fitted by.
    pub fn method(&self) -> Method {
        match self {
            Self::Sigmoid { .. } => Method::Sigmoid,
            Self::Isotonic { .. } => Method::Isotonic,
            Self::Temperature { .. } => Method::Temperature,
        }
    }

    /// P(y = +1) at a score; NaN only at NaN.
    pub fn probability(&self, score: f64) -> f64 {
        match self {
            Self::Isotonic { points } => interpolate(points, score),
            _ => sigmoid(self.log_odds(score)),
        }
    }

    /// log(P(y = +1) / P(y = −1)). It is exact even where the probability rounds to 0 or 1, and infinite where an
    /// isotonic one is 0 or 1.
    pub fn log_odds(&self, score: f64) -> f64 {
        match self {
            Self::Sigmoid { slope, intercept } => line(*slope, *intercept, score),
            Self::Temperature { slope } => line(*slope, 0.0, score),
            Self::Isotonic { points } => logit(interpolate(points, score)),
        }
    }
}

fn checked(scores: &[f64], positive: &[bool], weights: Option<&[f64]>) -> Result<Vec<Row>> {
    let n = scores.len();
    let lengths = [("positive", positive.len()), ("weights", weights.map_or(n, <[f64]>::len))];
    for (what, got) in lengths {
        if got != n {
            return Err(Error::Length { what, got, expected: n, why: "one a score" });
        }
    }
    let problem = |problem: String| Err(Error::Calibration { problem });
    let mut rows = Vec::with_capacity(n);
    for row in 0..n {
        let weight = weights.map_or(1.0, |w| w[row]);
        if !(weight >= 0.0 && weight.is_finite()) {
            return problem(format!("weights must be finite numbers >= 0, got {weight} at row {row}"));
        }
        if weight == 0.0 {
            continue;
        }
        if !scores[row].is_finite() {
            return Err(Error::NotFinite { what: "scores", value: scores[row], row, column: 0 });
        }
        rows.push(Row { score: scores[row], positive: positive[row], weight });
    }
    let Some(first) = rows.first() else {
        return problem(format!("none of the {n} rows has both a score and a weight > 0; hold some out"));
    };
    if rows.iter().all(|row| row.positive == first.positive) {
        let class = if first.positive { "positive" } else { "negative" };
        return problem(format!(
            "all {} rows that count are {class}, and both classes are needed; hold out rows of the other class too",
            rows.len()
        ));
    }
    let total: f64 = rows.iter().map(|row| row.weight).sum();
    if !total.is_finite() {
        return problem("the sum of the weights is too large for a number; divide them by their mean".into());
    }
    Ok(rows)
}

/// slope·f + intercept. With a slope of 0 it is the intercept, even at an infinite f.
fn line(slope: f64, intercept: f64, f: f64) -> f64 {
    if slope == 0.0 && !f.is_nan() { intercept } else { slope * f + intercept }
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

/// Bounds of log(a s), where s is the median |f| of the scores other than 0: scores that separate the classes ask for
/// a = ∞, scores that point the wrong way for a = 0.
const MOST_LOG_SLOPE: f64 = 10.0;

/// Bisection in log a: the objective is convex in a, so its derivative changes sign once.
fn fit_temperature(mut rows: Vec<Row>) -> Calibration {
    rows.retain(|row| row.score != 0.0);
    let Some(unit) = median_size(&mut rows) else { return Calibration::Temperature { slope: 1.0 } };
    // Far beyond where the sigmoid is 0 or 1 at any allowed slope. The bound keeps products finite.
    let most = 1e100;
    let total: f64 = rows.iter().map(|row| row.weight).sum();
    let margin = |row: &Row| {
        let x = (row.score / unit).clamp(-most, most);
        (if row.positive { x } else { -x }, row.weight / total)
    };
    let margins: Vec<(f64, f64)> = rows.iter().map(margin).collect();
    // With separable scores every term may round to 0; a larger slope is still better.
    let falls = |log_slope: f64| {
        let a = log_slope.exp();
        margins.iter().map(|(m, w)| w * m * sigmoid(-a * m)).sum::<f64>() >= 0.0
    };
    let (mut low, mut high) = (-MOST_LOG_SLOPE, MOST_LOG_SLOPE);
    // 20 / 2⁶⁰ is below the rounding of the result.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if falls(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Calibration::Temperature { slope: ((0.5 * (low + high)).exp() / unit).clamp(f64::MIN_POSITIVE, f64::MAX) }
}

/// Weighted median of |f|: the smallest value that at least half of the weight does not exceed.
fn median_size(rows: &mut [Row]) -> Option<f64> {
    rows.sort_by(|r, s| r.score.abs().total_cmp(&s.score.abs()));
    let half = 0.5 * rows.iter().map(|row| row.weight).sum::<f64>();
    let mut below = 0.0;
    for row in rows.iter() {
        below += row.weight;
        if below >= half {
            return Some(row.score.abs());
        }
    }
    rows.last().map(|row| row.score.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::scalar::log1pexp;
    use crate::model::platt::Platt;

    use proptest::prelude::*;

    const METHODS: [Method; 3] = [Method::Sigmoid, Method::Isotonic, Method::Temperature];

    /// Scores with noise, whose best threshold is not 0, some of them tied.
    fn noisy(n: usize, seed: u64) -> (Vec<f64>, Vec<bool>) {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..n)
            .map(|_| {
                let f = (20.0 * (6.0 * rng.f64() - 3.0)).round() / 20.0;
                (f, rng.f64() < sigmoid(1.7 * f - 0.6))
            })
            .unzip()
    }

    fn rows(scores: &[f64], positive: &[bool]) -> Vec<Row> {
        checked(scores, positive, None).unwrap()
    }

    fn fit(method: Method, scores: &[f64], positive: &[bool]) -> Calibration {
        Calibration::fit(method, scores, positive, None).unwrap()
    }

    fn slope_and_intercept(calibration: &Calibration) -> (f64, f64) {
        match calibration {
            Calibration::Sigmoid { slope, intercept } => (*slope, *intercept),
            Calibration::Temperature { slope } => (*slope, 0.0),
            Calibration::Isotonic { .. } => unreachable!("isotonic has no slope"),
        }
    }

    /// Minimum of a convex function of one variable.
    fn golden(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
        let ratio = 0.5 * (5f64.sqrt() - 1.0);
        for _ in 0..100 {
            let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
            if f(left) < f(right) {
                high = right;
            } else {
                low = left;
            }
        }
        0.5 * (low + high)
    }

    fn log_loss(scores: &[f64], positive: &[bool], a: f64) -> f64 {
        scores.iter().zip(positive).map(|(f, y)| log1pexp(if *y { -a * f } else { a * f })).sum()
    }

    #[test]
    fn sigmoid_is_where_nested_golden_sections_end() {
        for seed in 0..5 {
            let (scores, positive) = noisy(60, seed);
            let problem = Platt::new(&rows(&scores, &positive), |f| f);
            let inner = |a: f64| golden(-10.0, 10.0, |b| problem.value(a, b));
            let a = golden(0.0, 10.0, |a| problem.value(a, inner(a)));
            let (slope, intercept) = slope_and_intercept(&fit(Method::Sigmoid, &scores, &positive));
            assert!((slope - a).abs() < 1e-5, "{slope} {a}");
            assert!((intercept - inner(a)).abs() < 1e-5);
            let (in_a, in_b) = problem.gradient(slope, intercept);
            assert!(in_a.abs() < 1e-13 && in_b.abs() < 1e-13, "{in_a:e} {in_b:e}");
        }
    }

    #[test]
    fn sigmoid_targets_are_platts() {
        // Three positives and one negative: t₊ = 4/5, t₋ = 1/3. At a constant score only b is left.
        let base = (3.0 * 0.8 + 1.0 / 3.0) / 4.0;
        let (slope, intercept) = slope_and_intercept(&fit(Method::Sigmoid, &[0.7; 4], &[true, true, false, true]));
        assert_eq!(slope, 0.0);
        assert!((sigmoid(intercept) - base).abs() < 1e-15);
    }

    #[test]
    fn sigmoid_of_scores_that_point_the_wrong_way_is_the_base_rate() {
        let (scores, positive) = noisy(80, 1);
        let backwards: Vec<f64> = scores.iter().map(|f| -f).collect();
        let (slope, intercept) = slope_and_intercept(&fit(Method::Sigmoid, &backwards, &positive));
        assert_eq!(slope, 0.0);
        let problem = Platt::new(&rows(&backwards, &positive), |f| f);
        let b = golden(-10.0, 10.0, |b| problem.value(0.0, b));
        assert!((intercept - b).abs() < 1e-6);
        assert!(problem.value(0.0, intercept) < problem.value(0.01, golden(-9.0, 9.0, |b| problem.value(0.01, b))));
    }

    #[test]
    fn sigmoid_does_not_depend_on_the_scale_and_origin_of_the_scores() {
        let (scores, positive) = noisy(100, 2);
        let plain = fit(Method::Sigmoid, &scores, &positive);
        for (scale, origin) in [(1e300, 0.0), (1e-300, 0.0), (1e3, 1e6), (1.0, 1e5)] {
            let moved: Vec<f64> = scores.iter().map(|f| scale * f + origin).collect();
            let calibration = fit(Method::Sigmoid, &moved, &positive);
            for (f, g) in scores.iter().zip(&moved) {
                let (p, q) = (plain.probability(*f), calibration.probability(*g));
                assert!((p - q).abs() < 1e-9, "{scale:e} {origin:e}: {p} {q}");
            }
        }
    }

    #[test]
    fn temperature_is_where_a_golden_section_ends() {
        for seed in 0..5 {
            let (scores, positive) = noisy(60, seed);
            let best = golden(-5.0, 5.0, |log_a| log_loss(&scores, &positive, log_a.exp())).exp();
            let (slope, _) = slope_and_intercept(&fit(Method::Temperature, &scores, &positive));
            assert!((slope / best - 1.0).abs() < 1e-6, "{slope} {best}");
            let pull = |(f, y): (&f64, &bool)| if *y { f * sigmoid(-slope * f) } else { -f * sigmoid(slope * f) };
            let derivative: f64 = scores.iter().zip(&positive).map(pull).sum();
            assert!(derivative.abs() < 1e-12, "{derivative:e}");
        }
    }

    #[test]
    fn temperature_stays_within_its_bounds() {
        let scores = [-2.0, -1.0, 1.0, 2.0, 3.0];
        let separated = [false, false, true, true, true];
        let backwards = separated.map(|y| !y);
        let (most, _) = slope_and_intercept(&fit(Method::Temperature, &scores, &separated));
        let (least, _) = slope_and_intercept(&fit(Method::Temperature, &scores, &backwards));
        assert!((most / (10f64.exp() / 2.0) - 1.0).abs() < 1e-12, "{most}");
        assert!((least / ((-10f64).exp() / 2.0) - 1.0).abs() < 1e-12, "{least}");
        assert_eq!(fit(Method::Temperature, &[0.0, 0.0], &[true, false]), Calibration::Temperature { slope: 1.0 });
    }

    #[test]
    fn isotonic_is_the_minimum_and_maximum_of_means() {
        // p(f) = max over lower ends of min over upper ends of the share of positives between them.
        for seed in 0..5 {
            let (scores, positive) = noisy(70, seed);
            let calibration = fit(Method::Isotonic, &scores, &positive);
            let share = |from: f64, to: f64| {
                let inside = || scores.iter().zip(&positive).filter(|(f, _)| (from..=to).contains(*f));
                inside().filter(|(_, y)| **y).count() as f64 / inside().count() as f64
            };
            for &f in &scores {
                let lowest =
                    |from: f64| scores.iter().filter(|to| **to >= f).map(|to| share(from, *to)).fold(2.0, f64::min);
                let p = scores.iter().filter(|from| **from <= f).map(|from| lowest(*from)).fold(-1.0, f64::max);
                assert!((calibration.probability(f) - p).abs() < 1e-14, "{f}");
            }
        }
    }

    #[test]
    fn isotonic_is_straight_between_points_and_flat_outside() {
        let calibration = fit(Method::Isotonic, &[1.0, 1.0, 3.0, 5.0, 5.0], &[false, true, true, true, true]);
        assert_eq!(calibration, Calibration::Isotonic { points: vec![(1.0, 0.5), (3.0, 1.0), (5.0, 1.0)] });
        for (f, p) in [(f64::NEG_INFINITY, 0.5), (0.0, 0.5), (1.0, 0.5), (1.5, 0.625), (3.0, 1.0), (1e300, 1.0)] {
            assert_eq!(calibration.probability(f), p, "{f}");
        }
        let far = fit(Method::Isotonic, &[-1.7e308, 1.7e308], &[false, true]);
        assert_eq!(far.probability(0.0), 0.5);
    }

    #[test]
    fn extreme_scores_give_probabilities() {
        let tiny = f64::from_bits(1);
        let cases: [(&[f64], &[bool]); 8] = [
            (&[-1e300, 1e300], &[false, true]),
            (&[1e300, -1e300], &[false, true]),
            (&[-1e300, -1.0, 0.5, 1.0, 1e300], &[false, false, true, true, true]),
            (&[-1.0, 1.0, 0.1, 1e300], &[false, true, true, false]),
            (&[f64::MIN, f64::MAX, 0.0], &[false, true, true]),
            (&[-tiny, tiny, 0.0, 3.0 * tiny], &[false, true, false, true]),
            (&[0.0, 0.0, 0.0], &[false, true, true]),
            (&[5.0, 5.0, 5.0], &[false, true, true]),
        ];
        for (scores, positive) in cases {
            for method in METHODS {
                let calibration = fit(method, scores, positive);
                let grid = [f64::NEG_INFINITY, f64::MIN, -1e300, -1.0, -tiny, 0.0, tiny, 1.0, 1e300, f64::INFINITY];
                let p = grid.map(|f| calibration.probability(f));
                assert!(p.iter().all(|p| (0.0..=1.0).contains(p)), "{calibration:?}: {p:?}");
                assert!(p.is_sorted(), "{calibration:?}: {p:?}");
                assert!(calibration.probability(f64::NAN).is_nan());
            }
        }
    }

    #[test]
    fn separable_scores_keep_a_finite_slope() {
        let scores: Vec<f64> = (-50..50).map(|i| f64::from(i) + 0.5).collect();
        let positive: Vec<bool> = scores.iter().map(|f| *f > 0.0).collect();
        let calibration = fit(Method::Sigmoid, &scores, &positive);
        // At the optimum the mean probability is the mean target, and Platt's targets are 51/52 and 1/52.
        let mean = scores.iter().map(|f| calibration.probability(*f)).sum::<f64>() / 100.0;
        assert!((mean - 0.5).abs() < 1e-12);
        let (slope, intercept) = slope_and_intercept(&calibration);
        assert!(slope > 0.1 && slope < 100.0 && intercept.abs() < 1e-9, "{slope} {intercept}");
        // Weights at which the targets round to 0 and 1.
        let heavy = Calibration::fit(Method::Sigmoid, &scores, &positive, Some(&[1e300; 100])).unwrap();
        assert!(slope_and_intercept(&heavy).0.is_finite());
        assert!(heavy.probability(0.5) > 0.9 && heavy.probability(-0.5) < 0.1);
    }

    #[test]
    fn very_unequal_weights_do_not_throw_newton_off() {
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..200 {
            let n = rng.usize(4..30);
            let scores: Vec<f64> = (0..n).map(|_| rng.f64() - 0.5).collect();
            let positive: Vec<bool> = (0..n).map(|i| i == 0 || i > 1 && rng.f64() < 0.5 + scores[i]).collect();
            let weights: Vec<f64> = (0..n).map(|_| 10f64.powf(16.0 * rng.f64() - 8.0)).collect();
            let calibration = Calibration::fit(Method::Sigmoid, &scores, &positive, Some(&weights)).unwrap();
            let problem = Platt::new(&checked(&scores, &positive, Some(&weights)).unwrap(), |f| f);
            let (slope, intercept) = slope_and_intercept(&calibration);
            let (here, unit) = (problem.value(slope, intercept), 1.0 + slope.abs());
            for (da, db) in [(1e-2, 0.0), (-1e-2, 0.0), (0.0, 1e-2), (0.0, -1e-2), (1e-2, 5e-3), (-1e-2, 5e-3)] {
                let there = problem.value((slope + da * unit).max(0.0), intercept + db * unit);
                assert!(here <= there * (1.0 + 1e-9), "{here:e} {there:e} at {slope} {intercept}");
            }
        }
    }

    #[test]
    fn log_odds_are_exact_where_the_probability_is_not() {
        let calibration = Calibration::Sigmoid { slope: 2.0, intercept: 1.0 };
        assert_eq!(calibration.log_odds(100.0), 201.0);
        assert_eq!(calibration.probability(100.0), 1.0);
        let steps = fit(Method::Isotonic, &[0.0, 1.0, 1.0, 1.0, 1.0, 2.0], &[false, true, true, true, false, true]);
        assert_eq!(steps.log_odds(0.0), f64::NEG_INFINITY);
        assert!((steps.log_odds(1.0) - 3f64.ln()).abs() < 1e-15);
        assert_eq!(steps.log_odds(2.0), f64::INFINITY);
    }

    #[test]
    fn bad_input_is_named() {
        let error = |scores: &[f64], positive: &[bool], weights: Option<&[f64]>| {
            Calibration::fit(Method::Sigmoid, scores, positive, weights).unwrap_err().to_string()
        };
        let both = [true, false];
        assert!(error(&[], &[], None).contains("none of the 0 rows has both a score and a weight > 0"));
        assert!(error(&[1.0, 2.0], &both, Some(&[0.0, 0.0])).contains("none of the 2 rows"));
        assert!(error(&[1.0, f64::NAN], &both, None).contains("scores contains NaN at row 1"));
        assert!(error(&[f64::INFINITY, 1.0], &both, None).contains("scores contains inf at row 0"));
        assert!(error(&[1.0, 2.0], &[true, true], None).contains("all 2 rows that count are positive"));
        assert!(error(&[1.0, 2.0], &both, Some(&[0.0, 1.0])).contains("all 1 rows that count are negative"));
        assert!(error(&[1.0, 2.0], &both, Some(&[1.0, -2.0])).contains("got -2 at row 1"));
        assert!(error(&[1.0, 2.0], &both, Some(&[f64::NAN, 1.0])).contains("got NaN at row 0"));
        assert!(error(&[1.0, 2.0], &both, Some(&[1e308, 1e308])).contains("too large"));
        assert!(error(&[1.0, 2.0], &[true], None).contains("positive has length 1, but 2"));
        assert!(error(&[1.0, 2.0], &both, Some(&[1.0])).contains("weights has length 1, but 2"));
        assert!(Method::from_name("platt").unwrap_err().to_string().contains("sigmoid, isotonic, temperature"));
        for (method, name) in METHODS.into_iter().zip(Method::NAMES) {
            assert_eq!(Method::from_name(name), Ok(method));
            assert_eq!(fit(method, &[0.0, 1.0], &[false, true]).method(), method);
        }
    }

    proptest! {
        /// Integer weights are repeated rows, weight 0 is a row that is not there, and no p decreases.
        #[test]
        fn weights_repeat_rows(data in proptest::collection::vec((-40i32..40, any::<bool>(), 0u8..4), 2..40)) {
            let scores: Vec<f64> = data.iter().map(|(f, ..)| f64::from(*f) / 8.0).collect();
            let positive: Vec<bool> = data.iter().map(|(_, y, _)| *y).collect();
            let weights: Vec<f64> = data.iter().map(|(.., w)| f64::from(*w)).collect();
            let repeated: Vec<usize> =
                data.iter().enumerate().flat_map(|(i, (.., w))| std::iter::repeat_n(i, usize::from(*w))).collect();
            let scores_repeated: Vec<f64> = repeated.iter().map(|&i| scores[i]).collect();
            let positive_repeated: Vec<bool> = repeated.iter().map(|&i| positive[i]).collect();
            for method in METHODS {
                let weighted = Calibration::fit(method, &scores, &positive, Some(&weights));
                let plain = Calibration::fit(method, &scores_repeated, &positive_repeated, None);
                prop_assert_eq!(weighted.is_ok(), plain.is_ok());
                let (Ok(weighted), Ok(plain)) = (weighted, plain) else { continue };
                let mut before = 0.0;
                for f in (-60..=60).map(|i| f64::from(i) / 8.0 + 0.01) {
                    let (p, q) = (weighted.probability(f), plain.probability(f));
                    prop_assert!((p - q).abs() < 1e-9, "{:?} {:?} at {}: {} {}", weighted, plain, f, p, q);
                    prop_assert!(p >= before);
                    before = p;
                }
            }
        }
    }
}
