//! Which place (γ, C) the scores of held-out rows choose.
//!
//! ```text
//! jointly   one place for machines that are one model, by the scores of the model
//! apart     each machine its own C by its own scores, all at the γ with the largest mean over the machines of
//!           max over C of the mean score
//! ```
//!
//! Candidates are places whose models were run on every fold and on all rows. Folds without a test row of a machine
//! have no score for it, and do not count, neither in the choice nor in the means that are told. Equal scores go to the
//! smaller C, then to the smaller γ (`select.rs`), so that the order of the grid changes nothing.

use std::ops::Range;

use crate::error::Result;
use crate::fit::scoring::Scoring;
use crate::fit::search::Trained;
use crate::fit::select::{Means, Selection, places as grid, select, smoothest};
use crate::fit::surface::{Scores, Surface};
use crate::fit::tune_classes::Classes;

/// How the machines of a fit choose their places.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum ChooseBy<'a> {
    /// Each by its own scores, all at one γ.
    Apart {
        /// What the scores of each machine's loss are divided by, so that they can be compared with those of others;
        /// `None`: they have one unit.
        units: Option<&'a [f64]>,
    },
    /// All at one place, by the mean of the scores of their losses, each over its unit.
    Mean {
        /// What the scores of each machine's loss are divided by.
        units: &'a [f64],
    },
    /// All at one place, by the scores of the classifier that they make together.
    Classes {
        /// The classifier.
        classes: &'a Classes<'a>,
        /// The score.
        scoring: Scoring,
        /// Whether a score is that of all held-out rows at once, instead of one for each fold.
        all_at_once: bool,
    },
}

impl Trained {
    /// Chooses a place for each machine. `scores` take the place of those that `by` names: they have an entry for
    /// each machine, or one if all machines are at one place. `None` if no model was both scored on every fold and
    /// fitted on all rows.
    pub fn choose(&self, by: ChooseBy, selection: Selection, scores: Option<Vec<Scores>>) -> Result<Option<Tuned>> {
        let gammas: Vec<f64> = self.kernels.iter().map(|kernel| kernel.gamma).collect();
        let tuner = Tuner { surface: Surface::new(&self.fits), cs: &self.cs, gammas: &gammas, selection };
        let of_losses = || tuner.surface.machines().map(|m| tuner.surface.scores(m)).collect::<Vec<_>>();
        Ok(match (by, scores) {
            (ChooseBy::Apart { units }, None) => tuner.apart(of_losses(), units),
            (ChooseBy::Apart { .. }, Some(scores)) => tuner.apart(scores, None),
            (ChooseBy::Mean { units }, None) => tuner.jointly(mean_of(&of_losses(), units)),
            (ChooseBy::Classes { classes, scoring, all_at_once }, None) => {
                tuner.jointly(classes.scores(&tuner.surface, scoring, all_at_once)?)
            }
            (_, Some(scores)) => tuner.jointly(scores.into_iter().next().unwrap_or_default()),
        })
    }

    /// The values of the chosen models at the rows that they did not see, row after row; NaN for rows that no fold held
    /// out.
    pub fn out_of_fold(&self, tuned: &Tuned) -> Vec<f64> {
        Surface::new(&self.fits).out_of_fold(tuned.places.iter().copied().enumerate())
    }
}

/// The mean over some machines of their scores, each over its unit.
fn mean_of(scores: &[Scores], units: &[f64]) -> Scores {
    let (folds, places) = (scores[0].len(), scores[0].first().map_or(0, Vec::len));
    let at = |fold: usize, place: usize| {
        scores.iter().zip(units).map(|(scores, unit)| scores[fold][place] / unit).sum::<f64>() / units.len() as f64
    };
    (0..folds).map(|fold| (0..places).map(|place| at(fold, place)).collect()).collect()
}

/// The chosen places, and the scores that chose them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tuned {
    /// The place of each machine.
    pub places: Vec<usize>,
    /// The scores of each machine; one for all if they are one model.
    pub scores: Vec<Scores>,
}

/// The choice among the places of a surface.
struct Tuner<'a> {
    surface: Surface<'a>,
    /// The values of C, the same for each γ.
    cs: &'a [f64],
    gammas: &'a [f64],
    selection: Selection,
}

impl Tuner<'_> {
    /// One place for all machines. `None` if there is no candidate.
    fn jointly(&self, scores: Scores) -> Option<Tuned> {
        let machines = self.surface.machines();
        let place = self.place(machines.clone(), &scores)?;
        Some(Tuned { places: machines.map(|_| place).collect(), scores: vec![scores] })
    }

    /// One place for each machine. The scores of machine m divided by `units[m]` can be compared with those of other
    /// machines. `None` if there is no candidate.
    fn apart(&self, scores: Vec<Scores>, units: Option<&[f64]>) -> Option<Tuned> {
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

    /// The γ with the largest mean over the machines of their best mean score; of equal ones, the smallest. `None` if there
    /// is one machine or one γ.
    fn best_gamma(&self, scores: &[Scores], units: Option<&[f64]>) -> Option<usize> {
        if scores.len() < 2 || self.surface.gammas() < 2 {
            return None;
        }
        let mut totals = vec![0.0; self.surface.gammas()];
        for (m, scores) in scores.iter().enumerate() {
            let unit = units.map_or(1.0, |units| units[m]);
            let (candidates, weight) = self.candidates(m..m + 1, scores);
            let means = Means::of(&candidates, &weight).mean;
            for (total, of_gamma) in totals.iter_mut().zip(means.chunks_exact(self.cs.len())) {
                let best = of_gamma.iter().filter(|mean| !mean.is_nan()).fold(f64::NEG_INFINITY, |a, m| a.max(*m));
                *total += best / unit;
            }
        }
        smoothest(&totals, self.gammas)
    }

    /// The scores of the folds that count, NaN at places whose models were not run on all rows; and the weights of the
    /// folds.
    fn candidates(&self, machines: Range<usize>, scores: &Scores) -> (Scores, Vec<f64>) {
        let counted = self.surface.counted_folds(machines.clone(), scores);
        let weights = self.surface.fold_weights(machines.clone(), scores);
        let refitted: Vec<bool> =
            (0..self.surface.places()).map(|place| self.surface.is_refitted(machines.clone(), place)).collect();
        let of_fold = |fold: &Vec<f64>| {
            fold.iter().zip(&refitted).map(|(score, there)| if *there { *score } else { f64::NAN }).collect()
        };
        let candidates = counted.iter().map(|&fold| of_fold(&scores[fold])).collect();
        (candidates, counted.iter().map(|&fold| weights[fold]).collect())
    }

    /// The place that the scores of some machines choose. Without folds, there is only one.
    fn place(&self, machines: Range<usize>, scores: &Scores) -> Option<usize> {
        let places = self.surface.places();
        if scores.is_empty() {
            return self.surface.is_refitted(machines, 0).then_some(0);
        }
        let (candidates, weight) = self.candidates(machines, scores);
        if !(0..places).any(|place| candidates.iter().all(|fold| fold[place].is_finite())) {
            return None;
        }
        select(&candidates, &weight, &grid(self.cs, self.gammas.iter().copied()), self.selection)
    }
}
