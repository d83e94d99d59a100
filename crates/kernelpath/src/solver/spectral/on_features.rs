//! The spectral engine on features, K = ZZᵀ, in rank dimensions. Newton's method takes the last steps, which a
//! piecewise-linear loss needs.

use std::sync::Arc;

use crate::certify::ledger::{Judged, Taken};
use crate::certify::record::{Outcome, Status};
use crate::device::basis::OfFeatures;
use crate::error::Result;
use crate::loss::smoothed::Smoothed;
use crate::numeric::cholesky::Working;
use crate::numeric::design::Accuracy;
use crate::solver::engine::{Engine, Goal, Job, each_c};
use crate::solver::low_rank::column::Column;
use crate::solver::low_rank::directions::Preconditioner;
use crate::solver::low_rank::primal::Primal;
use crate::solver::low_rank::tuning::FEATURE_ATTEMPTS;
use crate::solver::spectral::block::{Posed, Spectral, State, along_line};

/// A problem, where its steps ended, and where Newton's method went on from there.
#[derive(Clone)]
pub(crate) struct Descent<'a> {
    problem: usize,
    state: State,
    column: Option<Column<'a>>,
}

/// The engine for one loss on one set of features.
pub(crate) struct SpectralOnFeatures<'a, T> {
    pub primal: Primal<'a, T>,
    pub weights: &'a [Arc<[f64]>],
    /// C's in a block.
    pub neighbours: usize,
    pub spectral: Spectral<'a, OfFeatures<'a, T>>,
}

impl<'a, T: Working> SpectralOnFeatures<'a, T> {
    /// Solves the columns of one C, starting from near their solutions.
    fn polish(&self, columns: &mut [&mut Column], c: f64) -> Result<()> {
        self.primal.solve(columns, c, &mut Preconditioner::new(self.weights.len()))
    }

    /// Columns of Newton's method from where the steps ended, solved.
    fn finish(
        &self,
        problems: &[usize],
        jobs: &[&Posed],
        smooth: Smoothed,
        states: &[&State],
    ) -> Result<Vec<(Column<'a>, Outcome)>> {
        let (loss, y) = (self.primal.loss, self.primal.y);
        let is_smooth = loss.curvature_bound().is_some();
        let mut columns: Vec<(f64, Column<'a>)> = (jobs.iter().zip(states))
            .map(|(job, state)| {
                let slopes = if is_smooth { Vec::new() } else { job.pulls(smooth, y, &state.f, state.b) };
                let (problem, w) = (problems[job.at], self.spectral.basis.weights(&state.coordinates));
                let weight: &'a [f64] = &self.weights[problem];
                (job.c, self.primal.column((problem, weight), w, state.b, state.f.clone(), slopes))
            })
            .collect();
        // Jobs of one C are neighbours, and together make one block for Newton's method.
        for of_c in columns.chunk_by_mut(|a, b| a.0 == b.0) {
            let c = of_c[0].0;
            self.polish(&mut of_c.iter_mut().map(|(_, column)| column).collect::<Vec<_>>(), c)?;
        }
        // (The steps of a column are its own.)
        let done = Outcome { status: Status::Converged, steps: 0 };
        Ok(columns.into_iter().map(|(_, column)| (column, done)).collect())
    }
}

impl<'a, T: Working> Engine for SpectralOnFeatures<'a, T> {
    type Point = Descent<'a>;

    fn at_once(&self) -> usize {
        self.neighbours
    }

    fn constants(&mut self) -> Result<Vec<Descent<'a>>> {
        let constant = |(problem, weight): (usize, &Arc<[f64]>)| Descent {
            problem,
            state: self.spectral.constant(weight),
            column: None,
        };
        Ok(self.weights.iter().enumerate().map(constant).collect())
    }

    fn start(&self, past: &[(f64, &Descent<'a>)], c: f64) -> Descent<'a> {
        let known: Vec<(f64, &State)> = past.iter().map(|(c, descent)| (*c, &descent.state)).collect();
        Descent { problem: past[0].1.problem, state: along_line(&known, c), column: None }
    }

    fn solve(&mut self, jobs: &mut [Job<Descent<'a>>], _: Goal) -> Result<()> {
        if jobs.iter().all(|job| job.point.column.is_some()) {
            return each_c(jobs, |c, descents| {
                self.polish(&mut descents.iter_mut().filter_map(|at| at.column.as_mut()).collect::<Vec<_>>(), c)
            });
        }
        let problems: Vec<usize> = jobs.iter().map(|job| job.point.problem).collect();
        let starts: Vec<State> = jobs.iter().map(|job| job.point.state.clone()).collect();
        let posed: Vec<Posed> = (jobs.iter().enumerate())
            .map(|(at, job)| Posed { at, c: job.c, weight: &self.weights[job.point.problem] })
            .collect();
        let mut spectral = Spectral { ..self.spectral };
        let solved =
            spectral.solve(&posed, starts, |jobs, smooth, states| self.finish(&problems, jobs, smooth, states))?;
        self.spectral.products = spectral.products;
        for (job, (state, mut column, outcome)) in jobs.iter_mut().zip(solved) {
            column.outcome.steps += outcome.steps;
            job.point.state = State { f: Vec::new(), ..state };
            job.point.column = Some(column);
        }
        Ok(())
    }

    fn outcome(&self, descent: &Descent<'a>) -> Outcome {
        descent.column.as_ref().map(|column| column.outcome).unwrap_or_default()
    }

    fn solution(&self, descent: &Descent<'a>) -> (Vec<f64>, Vec<f64>) {
        descent.column.as_ref().map_or_else(Default::default, |column| (column.w.clone(), vec![column.b]))
    }

    fn take(&self, descent: &mut Descent<'a>, c: f64, f: &[f64], b: &[f64]) -> Option<Taken> {
        descent.column.as_mut().map(|column| self.primal.take(column, c, f, b))
    }

    fn learn(&self, descent: &mut Descent<'a>, judged: &Judged) {
        if let Some(column) = &mut descent.column {
            self.primal.learn(column, judged);
        }
    }

    fn attempts(&self) -> usize {
        FEATURE_ATTEMPTS
    }

    fn retry(&mut self) {
        self.primal.accuracy = Accuracy::Double;
    }
}
