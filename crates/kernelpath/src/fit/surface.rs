//! The models of all machines over γ and C, laid end to end: place g·(number of C's) + c is the c-th C of the g-th γ.

use std::ops::Range;

use crate::certify::record::{Record, Status};
use crate::fit::result::PathFit;
use crate::fit::select::Means;

/// Scores of a machine, or of machines that are one model: `[fold][place]`, NaN where not run.
pub type Scores = Vec<Vec<f64>>;

/// The fits of every γ: `fits[gamma][machine]`.
#[derive(Clone, Copy)]
pub struct Surface<'a> {
    fits: &'a [Vec<PathFit>],
}

impl<'a> Surface<'a> {
    /// The surface of the fits of every γ.
    pub fn new(fits: &'a [Vec<PathFit>]) -> Self {
        Self { fits }
    }

    /// All machines.
    pub fn machines(&self) -> Range<usize> {
        0..self.fits[0].len()
    }

    /// Number of γ's.
    pub fn gammas(&self) -> usize {
        self.fits.len()
    }

    /// Values of C of each γ.
    pub fn cs(&self) -> usize {
        self.fits[0][0].cs.len()
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.gammas() * self.cs()
    }

    /// The fit that a place belongs to, and which of its C's the place is.
    pub fn at(&self, machine: usize, place: usize) -> (&'a PathFit, usize) {
        (&self.fits[place / self.cs()][machine], place % self.cs())
    }

    /// The scores that the fits came with: those of the loss.
    pub fn scores(&self, machine: usize) -> Scores {
        let folds = 0..self.fits[0][machine].scores.len();
        let of_fold = |fold: usize| self.fits.iter().flat_map(move |of_gamma| of_gamma[machine].scores[fold].clone());
        folds.map(|fold| of_fold(fold).collect()).collect()
    }

    /// How much each of these scores counts in a mean over the folds, for machines that have one score together.
    pub fn fold_weights(&self, machines: Range<usize>, scores: &Scores) -> Vec<f64> {
        if scores.len() != self.tests().len() {
            return vec![1.0; scores.len()];
        }
        let heaviest =
            |fold: usize| self.fits[0][machines.clone()].iter().map(|fit| fit.fold_weights[fold]).fold(0.0, f64::max);
        (0..scores.len()).map(heaviest).collect()
    }

    /// The folds that count in a mean of these scores. A fold whose models score nowhere, as it holds no test row of the
    /// machine or the score is not defined for its rows, does not; a fold that was not run does, and leaves no mean.
    pub fn counted_folds(&self, machines: Range<usize>, scores: &Scores) -> Vec<usize> {
        let is_run = |fold: usize| {
            let ran = |record: &Record| record.status != Status::NotRun;
            self.fits
                .iter()
                .flat_map(|of_gamma| &of_gamma[machines.clone()])
                .any(|fit| fit.records[fold].iter().any(ran))
        };
        let all_at_once = scores.len() != self.tests().len();
        let is_scored = |fold: &usize| scores[*fold].iter().any(|score| !score.is_nan());
        let counted: Vec<usize> =
            (0..scores.len()).filter(|fold| all_at_once || is_scored(fold) || !is_run(*fold)).collect();
        if counted.is_empty() { (0..scores.len()).collect() } else { counted }
    }

    /// The mean score of each place over the folds that count, and its standard error, NaN for less than two folds.
    /// Without folds, there are no places.
    pub fn mean_scores(&self, machines: Range<usize>, scores: &Scores) -> Vec<(f64, f64)> {
        let weights = self.fold_weights(machines.clone(), scores);
        let counted = self.counted_folds(machines, scores);
        let weights: Vec<f64> = counted.iter().map(|&fold| weights[fold]).collect();
        let scores: Scores = counted.iter().map(|&fold| scores[fold].clone()).collect();
        let means = Means::of(&scores, &weights);
        let error =
            |place| if scores.len() < 2 { f64::NAN } else { means.squared_error(&scores, &weights, place).sqrt() };
        means.mean.iter().enumerate().map(|(place, mean)| (*mean, error(place))).collect()
    }

    /// The test rows of each fold.
    pub fn tests(&self) -> &'a [Vec<usize>] {
        &self.fits[0][0].test
    }

    /// The values of the machines at a fold's test rows, row after row.
    pub fn values(&self, machines: Range<usize>, fold: usize, place: usize) -> Vec<f64> {
        let of_machine = |m: usize| {
            let (fit, c) = self.at(m, place);
            (fit.oof[fold][c].clone(), fit.outputs)
        };
        interleaved(machines.map(of_machine).collect())
    }

    /// The mean value of each row over the folds that held it out, for the machines at their places, row after row.
    pub fn out_of_fold(&self, places: impl Iterator<Item = (usize, usize)>) -> Vec<f64> {
        let of_machine = |(m, place): (usize, usize)| {
            let (fit, c) = self.at(m, place);
            (fit.out_of_fold(c), fit.outputs)
        };
        interleaved(places.map(of_machine).collect())
    }

    /// Whether the models on all rows were run.
    pub fn is_refitted(&self, mut machines: Range<usize>, place: usize) -> bool {
        machines.all(|m| {
            let (fit, c) = self.at(m, place);
            fit.records.last().is_some_and(|refit| refit[c].status != Status::NotRun)
        })
    }

    /// Whether the time budget ended a fit.
    pub fn is_timed_out(&self) -> bool {
        self.fits.iter().flatten().any(|fit| fit.timed_out)
    }
}

/// The values of machines, each with some outputs per row, as one row after the other.
fn interleaved(mut parts: Vec<(Vec<f64>, usize)>) -> Vec<f64> {
    if parts.len() == 1 {
        return parts.remove(0).0;
    }
    let rows = parts.first().map_or(0, |(values, outputs)| values.len() / outputs);
    let row = |i: usize| parts.iter().flat_map(move |(values, outputs)| &values[i * outputs..(i + 1) * outputs]);
    (0..rows).flat_map(row).copied().collect()
}
