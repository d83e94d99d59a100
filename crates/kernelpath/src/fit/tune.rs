//! Which place (γ, C) the scores of held-out rows choose.
//!
//! ```text
//! jointly   one place for machines that are one model, by the scores of the model
//! apart     each machine its own C by its own scores, all at the γ with the largest mean over the machines of
//!           max over C of the mean score
//! ```
//!
//! Candidates are places whose models were run on every fold and on all rows. Folds without a test row of a machine
//! have no score for it, and do not count.

use std::ops::Range;

use crate::fit::select::{Selection, select};
use crate::fit::surface::{Scores, Surface};

/// The chosen places, and the scores that chose them.
#[derive(Debug, Clone)]
pub(crate) struct Tuned {
    /// The place of each machine.
    pub places: Vec<usize>,
    /// The scores of each machine; one for all if they are one model.
    pub scores: Vec<Scores>,
}

/// The choice among the places of a surface.
pub(crate) struct Tuner<'a> {
    pub surface: Surface<'a>,
    /// The values of C, the same for each γ.
    pub cs: &'a [f64],
    pub selection: Selection,
}

impl Tuner<'_> {
    /// One place for all machines. `None` if there is no candidate.
    pub fn jointly(&self, scores: Scores) -> Option<Tuned> {
        let machines = self.surface.machines();
        let place = self.place(machines.clone(), &scores)?;
        Some(Tuned { places: machines.map(|_| place).collect(), scores: vec![scores] })
    }

    /// One place for each machine. The scores of machine m divided by `units[m]` can be compared with those of other
    /// machines. `None` if there is no candidate.
    pub fn apart(&self, scores: Vec<Scores>, units: &[f64]) -> Option<Tuned> {
        let mut places = Vec::with_capacity(scores.len());
        let gamma = self.best_gamma(&scores, units);
        for (m, of_machine) in scores.iter().enumerate() {
            let mut scores = of_machine.clone();
            if let Some(gamma) = gamma {
                let inside = gamma * self.cs.len()..(gamma + 1) * self.cs.len();
                let outside = (0..self.surface.places()).filter(|place| !inside.contains(place));
                outside.for_each(|place| scores.iter_mut().for_each(|fold| fold[place] = f64::NAN));
            }
            places.push(self.place(m..m + 1, &scores)?);
        }
        Some(Tuned { places, scores })
    }

    /// The γ with the largest mean over the machines of their best mean score; `None` if there is one machine or one γ.
    fn best_gamma(&self, scores: &[Scores], units: &[f64]) -> Option<usize> {
        if scores.len() < 2 || self.surface.gammas() < 2 {
            return None;
        }
        let mut totals = vec![0.0; self.surface.gammas()];
        for (scores, unit) in scores.iter().zip(units) {
            let means = means(&whole_folds(scores));
            for (total, of_gamma) in totals.iter_mut().zip(means.chunks_exact(self.cs.len())) {
                let best = of_gamma.iter().filter(|mean| !mean.is_nan()).fold(f64::NEG_INFINITY, |a, m| a.max(*m));
                *total += best / unit;
            }
        }
        let better = |best: usize, g: usize| if totals[g] > totals[best] { g } else { best };
        Some((1..totals.len()).fold(0, better))
    }

    /// The place that the scores of some machines choose. Without folds, there is only one.
    fn place(&self, machines: Range<usize>, scores: &Scores) -> Option<usize> {
        let places = self.surface.places();
        let refitted: Vec<bool> = (0..places).map(|p| self.surface.is_refitted(machines.clone(), p)).collect();
        if scores.is_empty() {
            return refitted[0].then_some(0);
        }
        let mut candidates = whole_folds(scores);
        for fold in &mut candidates {
            fold.iter_mut().zip(&refitted).filter(|(_, there)| !**there).for_each(|(score, _)| *score = f64::NAN);
        }
        if !(0..places).any(|place| candidates.iter().all(|fold| fold[place].is_finite())) {
            return None;
        }
        select(&candidates, &self.cs.repeat(self.surface.gammas()), self.selection)
    }
}

/// The scores without the folds that score no model; all of them if none does.
fn whole_folds(scores: &Scores) -> Scores {
    let scored: Scores = scores.iter().filter(|fold| fold.iter().any(|score| !score.is_nan())).cloned().collect();
    if scored.is_empty() { scores.clone() } else { scored }
}

/// The mean score of each place over the folds.
pub(crate) fn means(scores: &Scores) -> Vec<f64> {
    let places = scores.first().map_or(0, Vec::len);
    let mean = |place: usize| scores.iter().map(|fold| fold[place]).sum::<f64>() / scores.len() as f64;
    (0..places).map(mean).collect()
}
