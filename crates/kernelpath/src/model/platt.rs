//! Platt's sigmoid: Newton's method on two numbers.

use crate::loss::scalar::{log1pexp, sigmoid};
use crate::model::calibrate::{Calibration, Row};

/// Most steps of Newton's method, which usually takes about ten. If weights are so large that Platt's targets round to
/// 0 and 1, each step on separable scores adds about 1 to z, and only this limit ends the steps.
const CALIBRATION_STEPS: usize = 100;

/// Newton's method on the smooth convex objective, from the best constant.
///
/// Scores are first mapped onto x ∈ [−1, 1]. If the slope of the objective in a is not negative at a = 0 and the best
/// b, then by convexity no a > 0 is better: the scores point the wrong way, and all that is left is the base rate.
pub(crate) fn fit_sigmoid(rows: &[Row]) -> Calibration {
    let (low, high) =
        rows.iter().fold((f64::MAX, f64::MIN), |(low, high), row| (low.min(row.score), high.max(row.score)));
    let (middle, half) = (0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low);
    let problem = Platt::new(rows, |score| if half > 0.0 { (score - middle) / half } else { 0.0 });

    let (mut a, mut b) = (0.0, problem.best_constant());
    if half == 0.0 || problem.gradient(a, b).0 >= 0.0 {
        return Calibration::Sigmoid { slope: 0.0, intercept: b };
    }
    for _ in 0..CALIBRATION_STEPS {
        let Some(step) = problem.newton_step(a, b) else { break };
        let length = problem.step_length(a, b, &step);
        a += length * step.a;
        b += length * step.b;
        if length == 0.0 || step.decrement <= 1e-24 {
            break;
        }
    }
    // The optimum has a > 0, but rounding may take a below 0.
    let a = a.max(0.0);
    Calibration::Sigmoid { slope: (a / half).min(f64::MAX), intercept: b - a * (middle / half) }
}

/// The objective of the sigmoid, divided by the sum of the weights.
pub(crate) struct Platt {
    /// (x, t, 1 − t, w)
    rows: Vec<(f64, f64, f64, f64)>,
}

/// A step of Newton's method; the decrement is twice what a quadratic would fall by.
struct Step {
    a: f64,
    b: f64,
    decrement: f64,
}

impl Platt {
    pub fn new(rows: &[Row], x: impl Fn(f64) -> f64) -> Self {
        let count = |class: bool| rows.iter().filter(|r| r.positive == class).map(|r| r.weight).sum::<f64>();
        let (positives, negatives) = (count(true), count(false));
        let total = positives + negatives;
        let targets = |positive: bool| {
            let of_class = if positive { positives } else { negatives };
            let (near, far) = ((of_class + 1.0) / (of_class + 2.0), 1.0 / (of_class + 2.0));
            if positive { (near, far) } else { (far, near) }
        };
        let row = |r: &Row| {
            let (t, rest) = targets(r.positive);
            (x(r.score), t, rest, r.weight / total)
        };
        Self { rows: rows.iter().map(row).collect() }
    }

    /// The b that is best at a = 0: the log-odds of the mean target.
    pub fn best_constant(&self) -> f64 {
        let mean = |of: fn(&(f64, f64, f64, f64)) -> f64| {
            self.rows.iter().map(|row| row.3 * of(row)).sum::<f64>().max(f64::MIN_POSITIVE)
        };
        (mean(|row| row.1) / mean(|row| row.2)).ln()
    }

    pub fn value(&self, a: f64, b: f64) -> f64 {
        let row = |&(x, t, rest, w): &(f64, f64, f64, f64)| {
            let z = a * x + b;
            w * (t * log1pexp(-z) + rest * log1pexp(z))
        };
        self.rows.iter().map(row).sum()
    }

    /// Derivatives in a and b: Σ w (p − t) x and Σ w (p − t).
    pub fn gradient(&self, a: f64, b: f64) -> (f64, f64) {
        self.rows.iter().fold((0.0, 0.0), |(in_a, in_b), &(x, t, _, w)| {
            let pull = w * (sigmoid(a * x + b) - t);
            (in_a + pull * x, in_b + pull)
        })
    }

    /// With v = w p (1 − p) and m the mean of x under v, the coordinates a and b + a m do not interact:
    /// a moves by −Σ w (p − t)(x − m) / Σ v (x − m)², the other by −Σ w (p − t) / Σ v.
    fn newton_step(&self, a: f64, b: f64) -> Option<Step> {
        let curvature = |x: f64, w: f64| {
            let z = a * x + b;
            w * sigmoid(z) * sigmoid(-z)
        };
        let (sum, moment) = self.rows.iter().fold((0.0, 0.0), |(sum, moment), &(x, _, _, w)| {
            let v = curvature(x, w);
            (sum + v, moment + v * x)
        });
        let mean = moment / sum;
        let spread: f64 = self.rows.iter().map(|&(x, _, _, w)| curvature(x, w) * (x - mean) * (x - mean)).sum();
        let (in_a, in_b) = self.gradient(a, b);
        let centred = in_a - mean * in_b;
        let (step, shift) = (-centred / spread, -in_b / sum);
        let step = Step { a: step, b: shift - mean * step, decrement: centred * centred / spread + in_b * in_b / sum };
        (step.a.is_finite() && step.b.is_finite() && step.decrement.is_finite()).then_some(step)
    }

    /// Halves the step until the objective falls; 0 if it never does. Close to the optimum the objective only has to
    /// stay the same, as its differences are then mostly rounding.
    ///
    /// The bound |z| ≤ |a| + |b| may at most double in a step: far out the sigmoid is flat, and there is no way back.
    fn step_length(&self, a: f64, b: f64, step: &Step) -> f64 {
        let here = self.value(a, b) * (1.0 + 1e-12);
        let falls = |length: &f64| {
            self.value(a + length * step.a, b + length * step.b) <= here - 1e-4 * length * step.decrement
        };
        let reach = (a.abs() + b.abs()).max(8.0);
        let longest = (reach / (step.a.abs() + step.b.abs())).min(1.0);
        std::iter::successors(Some(longest), |length| Some(0.5 * length)).take(60).find(falls).unwrap_or(0.0)
    }
}
