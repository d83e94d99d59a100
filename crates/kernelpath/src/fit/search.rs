//! Fits with every γ.
//!
//! ```text
//! for each γ:   landmarks, at low rank  →  the fit of all machines  →  go on?
//! ```
//!
//! The inner products or distances of rows are the same for every γ, and are kept if memory allows.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::fit::request::{KernelChoice, Request};
use crate::fit::result::PathFit;
use crate::fit::run::fit;
use crate::fit::surface::Surface;
use crate::kernel::pairs::Pairs;
use crate::kernel::shape::KernelFn;
use crate::numeric::threads::pooled;
use crate::nystrom::approximation::Nystrom;
use crate::nystrom::build::LowRank;
use crate::observe::Control;

/// What to fit with every γ.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Search<'a> {
    /// The fit with one γ. The γ of its kernel is replaced by each of `gammas`.
    pub request: Request<'a>,
    /// The values of γ.
    pub gammas: Vec<f64>,
    /// The landmarks of a fit at low rank; `None`: the fit is exact.
    pub low_rank: Option<LowRank>,
    /// A weight for each row, ≥ 0, in the choice of landmarks; `None`: all 1.
    pub weight: Option<&'a [f64]>,
    /// Seed of the landmarks.
    pub seed: u64,
    /// The time that all fits may take. Each γ has an equal share of what is left of it, among those for which there is
    /// time, and more as long as a fold has no model.
    pub time_budget: Option<Duration>,
}

/// Is told of each γ when its fit begins and ends.
pub trait Watch: Sync {
    /// The fit with `gammas[at]` begins.
    fn begin(&self, _at: usize, _gammas: &[f64]) -> Result<()> {
        Ok(())
    }

    /// The fit ended. Whether the next γ is to be tried.
    fn end(&self) -> Result<bool> {
        Ok(true)
    }
}

/// Nobody watches.
impl Watch for () {}

/// The models of every γ that was tried.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Trained {
    /// The kernel with each γ.
    pub kernels: Vec<KernelFn>,
    /// The landmarks of each γ, at low rank.
    pub bases: Vec<Option<Nystrom>>,
    /// `fits[gamma][machine]`.
    pub fits: Vec<Vec<PathFit>>,
    /// The values of C, before the factors of machines.
    pub cs: Vec<f64>,
    /// The values of γ that were not tried, as the time budget ended before.
    pub out_of_time: Vec<f64>,
}

impl Trained {
    /// Whether the time budget ended the search: some models were not run.
    pub fn is_timed_out(&self) -> bool {
        !self.out_of_time.is_empty() || Surface::new(&self.fits).is_timed_out()
    }
}

/// The kernel with one γ, its landmarks at low rank, and the fit of each machine.
type Fits = (KernelFn, Option<Nystrom>, Vec<PathFit>);

impl<'a> Search<'a> {
    /// The fit alone, with the γ of its kernel.
    pub fn new(request: Request<'a>) -> Self {
        let gammas = vec![request.kernel.function().gamma];
        Self { request, gammas, low_rank: None, weight: None, seed: 0, time_budget: None }
    }

    /// Fits with one γ after the other. A γ for which too little time is left is not begun, unless it is the first.
    pub fn run(&self, control: &Control, watch: &dyn Watch) -> Result<Trained> {
        let limited = self.time_budget.map(|budget| control.limited(budget));
        let control = limited.as_ref().unwrap_or(control);
        let pairs = (self.gammas.len() > 1 && self.low_rank.is_none()).then(Pairs::default);
        let mut trained = Trained {
            kernels: Vec::new(),
            bases: Vec::new(),
            fits: Vec::new(),
            cs: self.request.cs.to_vec(),
            out_of_time: Vec::new(),
        };
        let mut lead = Duration::ZERO;
        for (at, gamma) in self.gammas.iter().enumerate() {
            if at > 0 && control.ends_within(lead) {
                trained.out_of_time = self.gammas[at..].to_vec();
                break;
            }
            watch.begin(at, &self.gammas)?;
            let control = control.shared_among(self.gammas.len() - at);
            let found = self.fit_with(*gamma, pairs.as_ref(), &control);
            match found {
                // The models of other values of γ are there.
                Err(Error::TimeBudget { .. }) if at > 0 => trained.out_of_time = self.gammas[at..].to_vec(),
                found => {
                    let (kernel, basis, fits) = found?;
                    trained.kernels.push(kernel);
                    trained.bases.push(basis);
                    trained.fits.push(fits);
                }
            }
            if !watch.end()? || !trained.out_of_time.is_empty() {
                break;
            }
            lead = control.lead().unwrap_or(lead);
        }
        Ok(trained)
    }

    /// The kernel with one γ, its landmarks at low rank, and the models of all machines.
    fn fit_with(&self, gamma: f64, pairs: Option<&Pairs>, control: &Control) -> Result<Fits> {
        let kernel = KernelFn::new(self.request.kernel.function().shape, gamma)?;
        let basis = self.low_rank.as_ref().map(|low_rank| self.basis(kernel, low_rank, control)).transpose()?;
        let choice = basis.as_ref().map_or(KernelChoice::Exact(kernel), KernelChoice::LowRank);
        let fits = fit(&Request { kernel: choice, pairs, ..self.request.clone() }, control)?;
        Ok((kernel, basis, fits))
    }

    /// The landmarks of one γ.
    fn basis(&self, kernel: KernelFn, low_rank: &LowRank, control: &Control) -> Result<Nystrom> {
        let late = || Error::TimeBudget {
            budget: control.budget_seconds().unwrap_or(f64::NAN),
            what: "the landmarks of one gamma were chosen (uniform ones are the fastest)",
            rows: self.request.x.nrows(),
        };
        let builder = Nystrom::builder(kernel).low_rank(low_rank.clone()).weights(self.weight).seed(self.seed);
        match pooled(self.request.threads, || builder.build_with(&self.request.x, control)) {
            Err(Error::TimeBudget { .. }) => Err(late()),
            Ok(_) if control.out_of_time() => Err(late()),
            found => found,
        }
    }
}
