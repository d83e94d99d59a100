//! A word where the chosen C or γ lies at an end of the grid, and a wider one would do better.

use crate::report::found::Found;
use crate::report::scores::Means;
use crate::report::text::{number, rough};

/// What to say of the first table of scores with a chosen place at an end; plain text.
///
/// The score still rises at an end if it is higher there than at the next value, on the mean over the folds by more than
/// a standard error of the difference.
pub(crate) fn edge(found: &Found, means: &Means) -> Option<String> {
    let g = found.gamma_at;
    found.best().iter().enumerate().find_map(|(table, &c)| {
        let cs = found.cs(table);
        let of_c = neighbour(cs, c).and_then(|next| {
            let rise = means.difference(table, (g, c), (g, next));
            rising("C", cs, (c, next), rise)
        });
        of_c.or_else(|| {
            let next = neighbour(&found.gammas, g)?;
            // The other γ at its own best C.
            let score = |c: &usize| means.at(table, next, *c).0;
            let top = (0..cs.len()).filter(|c| !score(c).is_nan()).max_by(|a, b| score(a).total_cmp(&score(b)))?;
            rising("γ", &found.gammas, (g, next), means.difference(table, (g, c), (next, top)))
        })
    })
}

/// The place of the value next to that at `at`, if that is the smallest or the largest of several.
fn neighbour(values: &[f64], at: usize) -> Option<usize> {
    let here = *values.get(at)?;
    let others = || (0..values.len()).filter(|k| values[*k] != here);
    let larger = others().filter(|k| values[*k] > here).min_by(|a, b| values[*a].total_cmp(&values[*b]));
    let smaller = others().filter(|k| values[*k] < here).max_by(|a, b| values[*a].total_cmp(&values[*b]));
    if larger.is_some() && smaller.is_some() { None } else { larger.or(smaller) }
}

fn rising(name: &str, values: &[f64], (at, next): (usize, usize), (rise, error): (f64, f64)) -> Option<String> {
    if rise.is_nan() || error.is_nan() || rise <= error {
        return None;
    }
    let (end, way) = if values[at] > values[next] { ("largest", "larger") } else { ("smallest", "smaller") };
    Some(format!(
        "The chosen {name} = {} is the {end} that was tried, and the score still rises there, by {} ± {}: try {way} values, \
         too.",
        number(values[at]),
        rough(rise),
        rough(error)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ends_have_a_neighbour() {
        assert_eq!(neighbour(&[1.0, 10.0, 100.0], 2), Some(1));
        assert_eq!(neighbour(&[100.0, 1.0, 10.0], 1), Some(2));
        assert_eq!(neighbour(&[1.0, 10.0, 100.0], 1), None);
        assert_eq!(neighbour(&[1.0, 1.0], 1), None);
        assert_eq!(neighbour(&[], 0), None);
    }

    #[test]
    fn a_rise_within_its_error_is_none() {
        let rise = |rise: f64, error: f64| rising("C", &[1.0, 10.0], (1, 0), (rise, error));
        assert!(rise(0.02, 0.01).is_some_and(|text| text.contains("C = 10 is the largest") && text.contains("larger")));
        assert_eq!(rise(0.01, 0.02), None);
        assert_eq!(rise(0.01, f64::NAN), None);
    }
}
