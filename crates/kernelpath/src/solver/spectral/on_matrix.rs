//! The spectral engine on a kernel matrix.

use std::sync::Arc;

use crate::certify::exact::Shared;
use crate::certify::record::{Outcome, Status};
use crate::device::basis::Basis;
use crate::error::Result;
use crate::loss::smoothed::Smoothed;
use crate::numeric::cholesky::Working;
use crate::numeric::design::Accuracy;
use crate::numeric::parallel;
use crate::observe::Control;
use crate::solver::box_qp::problem::{BoxQp, Point};
use crate::solver::box_qp::turns::BoxSolver;
use crate::solver::engine::{Engine, Goal, Job, LeftOutRows, Whole};
use crate::solver::spectral::block::{Posed, Spectral, State, WIDEST, along_line};

/// β and b.
type Answer = (Vec<f64>, f64);

/// A problem and its solution: where its steps ended, and the model they gave.
#[derive(Clone)]
pub(crate) struct Place {
    weight: Arc<[f64]>,
    state: State,
    beta: Vec<f64>,
    b: f64,
    outcome: Outcome,
}

impl Place {
    fn new(weight: Arc<[f64]>, state: State) -> Self {
        Self { weight, b: state.b, state, beta: Vec::new(), outcome: Outcome::default() }
    }
}

/// The engine for one loss on one kernel matrix.
pub(crate) struct OnMatrix<'a, T> {
    pub shared: &'a Shared<'a, T>,
    pub weights: Vec<Arc<[f64]>>,
    /// C's in a block.
    pub neighbours: usize,
    pub spectral: Spectral<'a, dyn Basis + 'a>,
}

impl<T: Working> OnMatrix<'_, T> {
    /// Solves a block of problems from their states.
    fn descend(&mut self, cs: &[f64], places: &mut [&mut Place]) -> Result<()> {
        let Self { shared, spectral, .. } = self;
        let starts: Vec<State> = places.iter().map(|place| place.state.clone()).collect();
        let weights: Vec<Arc<[f64]>> = places.iter().map(|place| place.weight.clone()).collect();
        let posed: Vec<Posed> =
            (cs.iter().zip(&weights).enumerate()).map(|(at, (&c, weight))| Posed { at, c, weight }).collect();
        let (device, basis, control) = (spectral.device, spectral.basis, spectral.control);
        let finish = |jobs: &[&Posed], smooth: Smoothed, states: &[&State]| {
            if shared.loss.curvature_bound().is_none() {
                return finish_exactly(shared, jobs, smooth, states, control);
            }
            let coordinates: Vec<Vec<f64>> = states.iter().map(|state| state.coordinates.clone()).collect();
            let uploaded = device.upload(shared.y.len(), &coordinates)?;
            let betas = device.download(&basis.times(device, &uploaded, Accuracy::Double, control)?)?;
            let done = Outcome { status: Status::Converged, steps: 0 };
            Ok(betas.into_iter().zip(states).map(|(beta, state)| ((beta, state.b), done)).collect())
        };
        let solved = spectral.solve(&posed, starts, finish)?;
        for (place, (state, (beta, b), outcome)) in places.iter_mut().zip(solved) {
            place.state = State { f: Vec::new(), ..state };
            (place.beta, place.b, place.outcome) = (beta, b, outcome);
        }
        Ok(())
    }
}

impl<T: Working> Engine for OnMatrix<'_, T> {
    type Point = Place;

    fn at_once(&self) -> usize {
        self.neighbours
    }

    fn constants(&mut self) -> Result<Vec<Place>> {
        Ok(self.weights.iter().map(|weight| Place::new(weight.clone(), self.spectral.constant(weight))).collect())
    }

    fn start(&self, past: &[(f64, &Place)], c: f64) -> Place {
        let known: Vec<(f64, &State)> = past.iter().map(|(c, place)| (*c, &place.state)).collect();
        Place::new(past[0].1.weight.clone(), along_line(&known, c))
    }

    fn solve(&mut self, jobs: &mut [Job<Place>], _: Goal) -> Result<()> {
        let cs: Vec<f64> = jobs.iter().map(|job| job.c).collect();
        self.descend(&cs, &mut jobs.iter_mut().map(|job| &mut job.point).collect::<Vec<_>>())
    }

    fn outcome(&self, place: &Place) -> Outcome {
        place.outcome
    }

    fn solution(&self, place: &Place) -> (Vec<f64>, Vec<f64>) {
        (place.beta.clone(), vec![place.b])
    }

    /// All problems of the block as columns. Each starts from the solution with all rows, less the part of the row that
    /// it leaves out.
    fn leave_out(&mut self, c: f64, whole: &Whole, rows: &LeftOutRows, units: &[usize]) -> Result<Vec<Place>> {
        let (device, basis, control) = (self.spectral.device, self.spectral.basis, self.spectral.control);
        let start = |&u: &usize| {
            let mut beta = rows.beta(whole, u);
            beta[u] *= rows.share(u);
            beta
        };
        let uploaded = device.upload(whole.beta.len(), &units.iter().map(start).collect::<Vec<_>>())?;
        let products = basis.transposed_times(device, &uploaded, Accuracy::Double, control)?;
        let place = |(coordinates, &u): (Vec<f64>, &usize)| {
            let state = State { coordinates, f: Vec::new(), b: whole.b, objective: 0.0 };
            Place::new(rows.without(u).into(), state)
        };
        let mut places: Vec<Place> = device.download(&products)?.into_iter().zip(units).map(place).collect();
        let tol = self.spectral.settings.tol;
        self.spectral.settings.tol = LEFT_OUT_SHARE * tol;
        let solved = self.descend(&vec![c; units.len()], &mut places.iter_mut().collect::<Vec<_>>());
        self.spectral.settings.tol = tol;
        solved.map(|()| places)
    }
}

/// Problems that leave one row out are solved to this share of the tolerance. All of them start on the same side of their
/// solutions, near the one with all rows: with a larger share, the mean of their scores would lean to that side.
const LEFT_OUT_SHARE: f64 = 0.01;

/// Flops that the active set may take from the first guess, beside its rounds, for each entry of K; twice as many from the
/// next guess, and so on. The smoothed steps before each guess take about 120. A fixed number would be wasted as often as
/// there are guesses, on each problem that goes nowhere.
const FINISHING: f64 = 15.0;

/// From the smoothed solution's guess of the rows at a kink, a few steps of the active set: β and b, and how the steps
/// ended.
fn finish_exactly<T: Working>(
    shared: &Shared<T>,
    jobs: &[&Posed],
    smooth: Smoothed,
    states: &[&State],
    control: &Control,
) -> Result<Vec<(Answer, Outcome)>> {
    let (y, gram) = (&shared.y, shared.gram);
    let n = gram.n();
    // δ is 8ᵏ times smaller than at first.
    let doublings = (WIDEST * shared.loss.scale(y) / smooth.delta).cbrt();
    let most_work = FINISHING * doublings * (n * n) as f64;
    let guess = |(job, state): (&&Posed, &&State)| job.pulls(smooth, y, &state.f, state.b);
    let guesses: Vec<Vec<f64>> = jobs.iter().zip(states).map(guess).collect();
    let products = gram.times(&guesses.iter().map(|beta| &beta[..]).collect::<Vec<_>>(), control)?;
    let finish = |at: usize| {
        let qp = BoxQp::new(gram, &shared.diagonal, &shared.kinks, jobs[at].weight, jobs[at].c);
        let mut point = Point::origin(n);
        point.beta[..n].copy_from_slice(&guesses[at]);
        point.f[..n].copy_from_slice(&products[at]);
        point.b = states[at].b;
        let outcome = BoxSolver::default().finish(&qp, &mut point, &shared.settings, most_work, control)?;
        point.beta.truncate(n);
        Ok(((point.beta, point.b), outcome))
    };
    parallel::try_map(0..jobs.len(), finish)
}
