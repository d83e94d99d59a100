//! From values to places on an axis, and which values are named on it.

use crate::report::text::{number, power_of_ten};

/// About how many places of an axis are named.
const TICKS: f64 = 5.0;

/// Most powers of ten that are named on a logarithmic axis.
const MOST_DECADES: i32 = 7;

/// An axis: values from `low` to `high` lie between the coordinates `from` and `to`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    /// From one named value to the next, on a linear axis.
    step: f64,
    is_log: bool,
}

impl Scale {
    /// A linear axis around the finite ones of these values, from one round number to another.
    pub fn linear(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = extent(values.into_iter().filter(|v| v.abs() < 1e300)).unwrap_or((0.0, 1.0));
        // Where all values are equal, they lie in the middle.
        let slack = if high - low > 1e-12 * low.abs().max(high.abs()) { 0.0 } else { 0.5 * high.abs().max(1e-3) };
        let (low, high) = (low - slack, high + slack);
        let step = round_step((high - low) / TICKS);
        Self { step, ..Self::between((low / step).floor() * step, (high / step).ceil() * step) }
    }

    /// A linear axis with these ends.
    pub fn between(low: f64, high: f64) -> Self {
        Self { low, high, from: 0.0, to: 1.0, step: round_step((high - low) / TICKS), is_log: false }
    }

    /// A logarithmic axis around the positive finite ones of these values.
    pub fn log(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = extent(values.into_iter().filter(|v| v.is_finite() && *v > 0.0)).unwrap_or((1.0, 10.0));
        let is_point = high / low < 1.001;
        let (low, high) = if is_point { (low / 3.0, high * 3.0) } else { (low, high) };
        Self { is_log: true, ..Self::between(low, high) }
    }

    /// The same axis between these coordinates.
    pub fn over(self, from: f64, to: f64) -> Self {
        Self { from, to, ..self }
    }

    /// The coordinate of a value, kept between the ends; `None` for what has no place.
    pub fn at(&self, value: f64) -> Option<f64> {
        let of = |v: f64| if self.is_log { v.log10() } else { v };
        if !value.is_finite() || (self.is_log && value <= 0.0) {
            return None;
        }
        let share = (of(value) - of(self.low)) / (of(self.high) - of(self.low));
        Some(self.from + share.clamp(0.0, 1.0) * (self.to - self.from))
    }

    /// The values that are named, with their names, ascending.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        if self.is_log { self.log_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(&self) -> Vec<(f64, String)> {
        let step = self.step;
        let first = (self.low / step - 1e-9).ceil();
        let count = ((self.high / step + 1e-9).floor() - first).clamp(0.0, 20.0) as usize;
        // −0 is no name of 0.
        let values = (0..=count).map(|k| (first + k as f64) * step + 0.0);
        let decimals = (0..6).find(|d| is_whole(step * 10_f64.powi(*d)));
        values.map(|value| (value, decimals.map_or_else(|| number(value), |d| fixed(value, d as usize)))).collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let (first, last) = ((self.low.log10() - 1e-9).ceil() as i32, (self.high.log10() + 1e-9).floor() as i32);
        let decades = last - first + 1;
        if decades >= 3 {
            let stride = (decades + MOST_DECADES - 1) / MOST_DECADES;
            let named = (first..=last).filter(|exponent| exponent.rem_euclid(stride) == 0);
            return named.map(|exponent| (10_f64.powi(exponent), decade(exponent))).collect();
        }
        let near = (first - 1..=last).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(exponent)));
        let within = |value: &f64| *value >= self.low * (1.0 - 1e-9) && *value <= self.high * (1.0 + 1e-9);
        let named: Vec<f64> = near.filter(within).collect();
        let named = if named.len() < 2 { vec![self.low, self.high] } else { named };
        named.into_iter().map(|value| (value, number(value))).collect()
    }
}

/// 0.01, 1, 1000, and beyond that powers.
fn decade(exponent: i32) -> String {
    if (-3..=3).contains(&exponent) { number(10_f64.powi(exponent)) } else { power_of_ten(exponent) }
}

fn fixed(value: f64, decimals: usize) -> String {
    if value.abs() >= 1e6 {
        return number(value);
    }
    let text = format!("{:.decimals$}", value.abs());
    if value < 0.0 { format!("−{text}") } else { text }
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6 * value.abs().max(1.0) && value.round() != 0.0
}

/// 1, 2, 2.5 or 5 times a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    let least = if least.is_finite() && least > 0.0 { least } else { 1.0 };
    let power = 10_f64.powf(least.log10().floor());
    let digit = [1.0, 2.0, 2.5, 5.0].into_iter().find(|digit| digit * power >= least * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * power
}

/// The smallest and the largest.
fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((low, high)) => Some((f64::min(low, v), f64::max(high, v))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(scale: Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn linear_axes_have_round_ends_and_ticks() {
        assert_eq!(names(Scale::linear([0.52, 0.97])), ["0.5", "0.6", "0.7", "0.8", "0.9", "1.0"]);
        assert_eq!(names(Scale::linear([-3.0, 17.0])), ["−5", "0", "5", "10", "15", "20"]);
        assert_eq!(names(Scale::linear([-1.02, -0.1])), ["−1.2", "−1.0", "−0.8", "−0.6", "−0.4", "−0.2", "0.0"]);
        assert_eq!(names(Scale::linear([0.0, 0.1])), ["0.00", "0.02", "0.04", "0.06", "0.08", "0.10"]);
        let scale = Scale::linear([0.52, 0.97]).over(100.0, 0.0);
        assert!((scale.at(0.75).unwrap() - 50.0).abs() < 1e-9);
        assert_eq!((scale.at(7.0), scale.at(f64::NAN)), (Some(0.0), None));
    }

    #[test]
    fn logarithmic_axes_name_decades() {
        assert_eq!(names(Scale::log([1e-3, 1e3])), ["0.001", "0.01", "0.1", "1", "10", "100", "1000"]);
        assert_eq!(names(Scale::log([1e-10, 1e10])), ["10⁻⁹", "10⁻⁶", "0.001", "1", "1000", "10⁶", "10⁹"]);
        assert_eq!(names(Scale::log([0.3, 4.0])), ["0.5", "1", "2"]);
        assert_eq!(names(Scale::log([0.31, 0.32])), ["0.31", "0.32"]);
        let scale = Scale::log([1e-2, 1e2]).over(0.0, 40.0);
        assert_eq!((scale.at(1.0), scale.at(0.0)), (Some(20.0), None));
    }

    #[test]
    fn axes_of_nothing_or_of_one_value_exist() {
        for scale in [
            Scale::linear([]),
            Scale::linear([f64::NAN, f64::INFINITY]),
            Scale::linear([3.0]),
            Scale::linear([1e250, -1e250]),
            Scale::log([]),
            Scale::log([-1.0, 0.0]),
            Scale::log([7.0]),
            Scale::log([1e-300, 1e300]),
        ] {
            let ticks = scale.ticks();
            assert!(!ticks.is_empty() && ticks.len() < 30, "{scale:?}: {ticks:?}");
            assert!(ticks.windows(2).all(|pair| pair[0].0 < pair[1].0), "{ticks:?}");
            assert!(ticks.iter().all(|(value, _)| scale.at(*value).is_some()));
        }
        assert_eq!(Scale::linear([3.0]).over(0.0, 1.0).at(3.0).map(|at| at > 0.2 && at < 0.8), Some(true));
    }
}
