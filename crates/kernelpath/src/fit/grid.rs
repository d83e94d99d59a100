//! Values of C that repeat are fitted once.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::fit::result::PathFit;

/// The distinct values of C, in the order in which they first appear.
pub(crate) struct Distinct {
    pub cs: Vec<f64>,
    /// For each value given, its place among the distinct ones.
    place: Vec<usize>,
}

impl Distinct {
    pub fn of(cs: &[f64]) -> Self {
        let (mut distinct, mut known) = (Vec::with_capacity(cs.len()), HashMap::new());
        let mut place_of = |c: &f64| {
            *known.entry(c.to_bits()).or_insert_with(|| {
                distinct.push(*c);
                distinct.len() - 1
            })
        };
        let place = cs.iter().map(&mut place_of).collect();
        Self { cs: distinct, place }
    }

    /// One value for each given C, from one for each distinct C.
    pub fn spread<V: Clone>(&self, values: &[V]) -> Vec<V> {
        self.place.iter().map(|&at| values[at].clone()).collect()
    }

    /// The fit of all given C's: equal C's get equal models.
    fn spread_fit(&self, fit: PathFit) -> PathFit {
        PathFit {
            cs: self.spread(&fit.cs),
            scores: fit.scores.iter().map(|of_fold| self.spread(of_fold)).collect(),
            records: fit.records.iter().map(|of_fold| self.spread(of_fold)).collect(),
            oof: fit.oof.iter().map(|of_fold| self.spread(of_fold)).collect(),
            coef: self.spread(&fit.coef),
            at_centre: if fit.at_centre.is_empty() { Vec::new() } else { self.spread(&fit.at_centre) },
            ..fit
        }
    }

    /// Turns an error about a distinct C into one about the given C.
    fn restored(&self, error: Error) -> Error {
        match error {
            Error::ExtremeC { value, index, weight, low, high } => {
                let index = self.place.iter().position(|&at| at == index).unwrap_or(index);
                Error::ExtremeC { value, index, weight, low, high }
            }
            other => other,
        }
    }
}

/// Fits every distinct C once.
pub(crate) fn each_once(cs: &[f64], fit: impl Fn(&[f64]) -> Result<Vec<PathFit>>) -> Result<Vec<PathFit>> {
    let distinct = Distinct::of(cs);
    let fits = fit(&distinct.cs).map_err(|error| distinct.restored(error))?;
    let are_all = distinct.cs.len() == cs.len();
    Ok(if are_all { fits } else { fits.into_iter().map(|fit| distinct.spread_fit(fit)).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_place() {
        let distinct = Distinct::of(&[3.0, 1.0, 3.0, 2.0, 1.0]);
        assert_eq!(distinct.cs, [3.0, 1.0, 2.0]);
        assert_eq!(distinct.spread(&["three", "one", "two"]), ["three", "one", "three", "two", "one"]);
        let close = [1.0, 1.0_f64.next_up(), 1.0];
        assert_eq!(Distinct::of(&close).cs, close[..2]);
    }
}
