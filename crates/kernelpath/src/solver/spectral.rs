//! The spectral engine: accelerated proximal steps on one eigendecomposition, for every loss.
//!
//! With a bound M on the curvature of the (smoothed) loss, (P) is majorised around (β, b) by
//!
//! ```text
//! −θᵀΔg + CM/2 ‖Δg‖² + βᵀKΔβ + ½ ΔβᵀKΔβ,     Δg = KΔβ + Δb 1,  θ = C w a(f + b)
//! ```
//!
//! for all folds alike, since a held-out row (weight 0) only makes the bound looser. With r = θ − β and
//! Q = (I + CMK)⁻¹ the minimum is
//!
//! ```text
//! Δβ = Q(r − CMΔb 1),     Δb = (1ᵀQr + 1ᵀβ) / (CM 1ᵀQ1),     so that Σ(β + Δβ) = 0
//! ```
//!
//! and K = UΛUᵀ makes Q = U(I + CMΛ)⁻¹Uᵀ diagonal for every C: a step is two products with U for a whole
//! block of folds and neighbouring C's. Steps are accelerated (Nesterov 1983) and restarted
//! (O'Donoghue, Candès 2015).
//!
//! A piecewise-linear loss is smoothed over 2δ. The smoothed solution tells which rows stand at a kink; from
//! there a few steps of the active set solve the problem itself, and the gap says whether they did. If
//! not, δ ← δ/8.

use rayon::prelude::*;

use crate::certificate::{Certificate, dual_losses, losses};
use crate::design::Accuracy;
use crate::device::{Basis, Block, Decomposition, Device, Eigenvectors, OfFeatures, Spectrum};
use crate::error::Result;
use crate::ledger::{Ledger, Plan, Solution};
use crate::loss::{Loss, Smoothed, best_intercept};
use crate::observe::Control;
use crate::path::rising;
use crate::problem::{BoxQp, Outcome, Point, Settings, Shared, Status};

use super::BoxSolver;
use super::cholesky::Working;
use super::primal::{Certified, Guess, Primal, Reduced};

/// Neighbouring C's in a block.
pub(crate) const NEIGHBOURS: usize = 4;

/// A line through two solutions is followed no farther than so many times their distance.
const FARTHEST: f64 = 4.0;

/// Of a smooth loss, the gap is looked at when one problem in so many seems done, but at the latest after this share of
/// all steps more (the first time after so many steps), and not before that one.
const SEEM_DONE: usize = 4;
const FIRST_LOOK: usize = 5;
const LATEST: f64 = 1.0;
const EARLIEST: f64 = 0.1;

/// Looks in a row at which no gap had become smaller, before what is left counts as stalled.
const PATIENCE: usize = 10;

/// Steps at one δ before the active set takes over.
const SMOOTHED_STEPS: usize = 30;

/// First δ, relative to the spread of the targets, and the smallest.
const WIDEST: f64 = 0.125;
const NARROWEST: f64 = 1e-7;

/// The engine on a device, for one kernel.
pub(crate) struct Spectral<'a, B, D> {
    pub device: &'a D,
    pub basis: &'a B,
    pub spectrum: &'a Spectrum,
    pub loss: Loss,
    pub y: &'a [f64],
    pub settings: Settings,
    pub control: &'a Control,
}

/// A problem of a block.
pub(crate) struct Job<'a> {
    pub plan: usize,
    /// Position of C in the grid.
    pub at: usize,
    pub c: f64,
    pub weight: &'a [f64],
}

impl Job<'_> {
    /// θ from the slopes at f + b.
    fn pulls(&self, smooth: Smoothed, y: &[f64], f: &[f64], b: f64) -> Vec<f64> {
        let mut theta = vec![0.0; y.len()];
        smooth.vectorised(
            #[inline(always)]
            |smooth| {
                for (((theta, &y), &f), &w) in theta.iter_mut().zip(y).zip(f).zip(self.weight) {
                    let pull = self.c * w * smooth.pull(y, f + b);
                    *theta = if w == 0.0 { 0.0 } else { pull };
                }
            },
        );
        theta
    }
}

/// Where a problem stands: Uᵀβ, f = Kβ and b, and its objective where that is known, else 0.
#[derive(Clone)]
pub(crate) struct State {
    coordinates: Vec<f64>,
    f: Vec<f64>,
    b: f64,
    objective: f64,
}

impl State {
    fn is_finite(&self) -> bool {
        self.b.is_finite() && self.coordinates.iter().chain(&self.f).all(|value| value.is_finite())
    }
}

/// A problem's answer, with where its steps ended.
type Solved<M> = (State, M, Outcome);

/// β and b.
type Model = (Vec<f64>, f64);

impl<B: Basis<D>, D: Device> Spectral<'_, B, D> {
    /// Solves all plans at every C, from the smallest up, a few C's at once. `finish` makes models of states and says
    /// which of them are done; for a smooth loss it is asked of those whose gap is small enough.
    pub fn sweep<M>(
        &self,
        plans: &[Plan],
        cs: &[f64],
        finish: impl Fn(&[&Job], Smoothed, &[&State]) -> Result<Vec<(M, bool)>>,
        mut settle: impl FnMut(Vec<(&Job, M, Outcome)>) -> Result<()>,
    ) -> Result<()> {
        let constant = |plan: &Plan| {
            let b = best_intercept(self.loss, self.y, &plan.weight, &vec![0.0; self.y.len()], 0.0);
            State { coordinates: vec![0.0; self.spectrum.values.len()], f: Vec::new(), b, objective: 0.0 }
        };
        // Of each plan the last two solutions, with the logarithm of their C.
        let mut known: Vec<Vec<(f64, State)>> =
            plans.iter().map(|plan| vec![(f64::NEG_INFINITY, constant(plan))]).collect();
        let mut accuracy = Accuracy::Working;
        for (step, group) in rising(cs).chunks(NEIGHBOURS).enumerate() {
            if step > 0 && self.control.out_of_time() {
                break;
            }
            let jobs: Vec<Job> = group
                .iter()
                .flat_map(|&at| plans.iter().enumerate().map(move |(plan, p)| (at, plan, p)))
                .map(|(at, plan, p)| Job { plan, at, c: cs[at], weight: &p.weight })
                .collect();
            let starts = jobs.iter().map(|job| start(&known[job.plan], job.c.ln())).collect();
            let solved = self.solve(&jobs, starts, &mut accuracy, &finish)?;
            let mut batch = Vec::with_capacity(solved.len());
            for (job, (state, model, outcome)) in jobs.iter().zip(solved) {
                let known = &mut known[job.plan];
                known.push((job.c.ln(), State { f: Vec::new(), ..state }));
                if known.len() > 2 {
                    known.remove(0);
                }
                batch.push((job, model, outcome));
            }
            settle(batch)?;
            self.control.advance(jobs.len());
        }
        Ok(())
    }

    /// Solves a block from where its plans' last solutions lead.
    fn solve<M>(
        &self,
        jobs: &[Job],
        starts: Vec<State>,
        accuracy: &mut Accuracy,
        finish: impl Fn(&[&Job], Smoothed, &[&State]) -> Result<Vec<(M, bool)>>,
    ) -> Result<Vec<Solved<M>>> {
        let Self { device, basis, spectrum, loss, y, settings, control } = *self;
        let mut done: Vec<Option<Solved<M>>> = jobs.iter().map(|_| None).collect();
        let mut open: Vec<usize> = (0..jobs.len()).collect();
        let b: Vec<f64> = starts.iter().map(|start| start.b).collect();
        let mut scale: Vec<f64> = starts.iter().map(|start| start.objective).collect();
        let enough = 0.5 * settings.tol;
        let coordinates: Vec<Vec<f64>> = starts.into_iter().map(|start| start.coordinates).collect();
        let mut block = Block {
            coordinates: device.upload(spectrum.values.len(), &coordinates)?,
            ahead: device.upload(spectrum.values.len(), &coordinates)?,
            b_ahead: b.clone(),
            b,
            momentum: vec![1.0; jobs.len()],
        };
        let first: Vec<(Vec<f64>, f64)> = coordinates.into_iter().zip(block.b.iter().copied()).collect();
        let weights: Vec<Vec<f64>> = jobs.iter().map(|job| job.weight.iter().map(|w| w * job.c).collect()).collect();
        // How tight a bound on the curvature holds depends on the largest weight of a column.
        let heaviest: Vec<f64> =
            weights.iter().map(|weight| weight.iter().fold(f64::MIN_POSITIVE, |a, w| a.max(*w))).collect();
        let mut weight = device.upload(y.len(), &weights)?;
        let smooth_loss = loss.curvature_bound().is_some();
        let mut smooth = Smoothed { loss, delta: WIDEST * loss.scale(y) };
        let narrowest = NARROWEST * loss.scale(y);
        let mut gaps = vec![f64::INFINITY; jobs.len()];
        let (mut steps, mut looked, mut idle) = (0, 0, 0);
        while !open.is_empty() {
            let curvature: Vec<f64> = open.iter().map(|&j| heaviest[j] * smooth.curvature_bound()).collect();
            let share = |share: f64, least: usize| looked + least.max((share * looked as f64) as usize);
            let (earliest, latest) = if smooth_loss {
                (share(EARLIEST, 1), share(LATEST, FIRST_LOOK))
            } else {
                (usize::MAX, looked + SMOOTHED_STEPS)
            };
            while steps < latest.min(settings.max_iter) && !control.out_of_time() {
                control.check()?;
                let scaled = device.scale_rows(&spectrum.values, &block.ahead)?;
                let f = basis.times(device, &scaled, *accuracy, control)?;
                let pulls = device.pulls(smooth, y, &weight, &f, &block.b_ahead)?;
                let pulls = basis.transposed_times(device, &pulls, *accuracy, control)?;
                let gaps = device.advance(&mut block, &pulls, spectrum, &curvature)?;
                steps += 1;
                let seems_done = |(j, gap): &(&usize, f64)| *gap <= enough * scale[**j];
                if steps >= earliest && SEEM_DONE * open.iter().zip(gaps).filter(seems_done).count() >= open.len() {
                    break;
                }
            }
            looked = steps;
            let status = if control.out_of_time() {
                Status::TimeLimit
            } else if steps >= settings.max_iter {
                Status::MaxIter
            } else {
                Status::Stalled
            };
            let mut over = status != Status::Stalled || (!smooth_loss && smooth.delta <= narrowest);
            let mut states = self.states(&block.coordinates, &block.b)?;
            let lost = self.restored(&mut states, |at| &first[open[at]])?;
            let ready: Vec<(usize, State)> = if smooth_loss {
                let judged = self.judge(jobs, &open, states)?;
                let improved = open.iter().zip(&judged).any(|(&j, (_, gap))| *gap <= 0.9 * gaps[j]);
                open.iter().zip(&judged).for_each(|(&j, (state, gap))| (gaps[j], scale[j]) = (*gap, state.objective));
                idle = if improved { 0 } else { idle + 1 };
                if !improved {
                    *accuracy = Accuracy::Double;
                }
                over |= idle >= PATIENCE;
                let small = |(at, (state, gap))| (over || lost[at] || gap <= enough).then_some((at, state));
                judged.into_iter().enumerate().filter_map(small).collect()
            } else {
                states.into_iter().enumerate().collect()
            };
            let (tried, states): (Vec<&Job>, Vec<&State>) =
                ready.iter().map(|(at, state)| (&jobs[open[*at]], state)).unzip();
            let models = if tried.is_empty() { Vec::new() } else { finish(&tried, smooth, &states)? };
            for ((at, state), (model, converged)) in ready.into_iter().zip(models) {
                if converged || over || lost[at] {
                    let status = if converged { Status::Converged } else { status };
                    done[open[at]] = Some((state, model, Outcome { status, steps }));
                }
            }
            let kept: Vec<usize> = (0..open.len()).filter(|&at| done[open[at]].is_none()).collect();
            if kept.len() < open.len() {
                block.coordinates = device.select(&block.coordinates, &kept)?;
                block.ahead = device.select(&block.ahead, &kept)?;
                weight = device.select(&weight, &kept)?;
                let pick = |values: &[f64]| kept.iter().map(|&at| values[at]).collect::<Vec<f64>>();
                (block.b, block.b_ahead, block.momentum) =
                    (pick(&block.b), pick(&block.b_ahead), pick(&block.momentum));
                open = kept.into_iter().map(|at| open[at]).collect();
            }
            if !smooth_loss && !open.is_empty() {
                smooth.delta /= 8.0;
                *accuracy = Accuracy::Double;
                block.momentum.fill(1.0);
            }
        }
        Ok(done.into_iter().flatten().collect())
    }

    /// Gives a problem whose numbers left the range of doubles its start for an answer; which ones those are.
    fn restored<'b>(&self, states: &mut [State], first: impl Fn(usize) -> &'b (Vec<f64>, f64)) -> Result<Vec<bool>> {
        let mut lost = vec![false; states.len()];
        for (at, state) in states.iter_mut().enumerate().filter(|(_, state)| !state.is_finite()) {
            lost[at] = true;
            let (coordinates, b) = first(at);
            let start = self.device.upload(self.spectrum.values.len(), std::slice::from_ref(coordinates))?;
            *state = self.states(&start, &[*b])?.remove(0);
        }
        Ok(lost)
    }

    fn states(&self, coordinates: &D::Matrix, b: &[f64]) -> Result<Vec<State>> {
        let device = self.device;
        let scaled = device.scale_rows(&self.spectrum.values, coordinates)?;
        let f = device.download(&self.basis.times(device, &scaled, Accuracy::Double, self.control)?)?;
        let state = |((coordinates, f), &b)| State { coordinates, f, b, objective: 0.0 };
        Ok(device.download(coordinates)?.into_iter().zip(f).zip(b).map(state).collect())
    }

    /// Moves b to where the slopes sum to 0; the gap of each column with these slopes as θ.
    fn judge(&self, jobs: &[Job], open: &[usize], mut states: Vec<State>) -> Result<Vec<(State, f64)>> {
        let Self { device, loss, y, .. } = *self;
        let smooth = Smoothed { loss, delta: 1.0 };
        let thetas: Vec<Vec<f64>> = (states.par_iter_mut().zip(open))
            .map(|(state, &j)| {
                state.b = best_intercept(loss, y, jobs[j].weight, &state.f, state.b);
                jobs[j].pulls(smooth, y, &state.f, state.b)
            })
            .collect();
        let uploaded = device.upload(y.len(), &thetas)?;
        let products = self.basis.transposed_times(device, &uploaded, Accuracy::Double, self.control)?;
        let products = device.download(&products)?;
        let squares = |coordinates: &[f64]| -> f64 {
            coordinates.iter().zip(&self.spectrum.values).map(|(a, v)| v * a * a).sum()
        };
        let gap = |(at, mut state): (usize, State)| {
            let (job, theta) = (&jobs[open[at]], &thetas[at]);
            let weight: Vec<f64> = job.weight.iter().map(|w| job.c * w).collect();
            let primal = losses(loss, y, &weight, state.b, &state.f) + 0.5 * squares(&state.coordinates);
            let dual = dual_losses(loss, y, &weight, theta) - 0.5 * squares(&products[at]);
            state.objective = primal;
            (state, Certificate { primal, dual }.gap())
        };
        Ok(states.into_par_iter().enumerate().map(gap).collect())
    }
}

/// Where a plan's last two solutions lead at another C, along a line in log C.
fn start(known: &[(f64, State)], log_c: f64) -> State {
    let (last, before) = (&known[known.len() - 1], &known[0]);
    let between = last.0 - before.0;
    let t = if between > 0.0 { ((log_c - last.0) / between).min(FARTHEST) } else { 0.0 };
    let coordinates = (last.1.coordinates.iter().zip(&before.1.coordinates)).map(|(a, b)| a + t * (a - b)).collect();
    // Which rises with C.
    let objective = last.1.objective;
    State { coordinates, f: Vec::new(), b: last.1.b + t * (last.1.b - before.1.b), objective }
}

/// Solves all plans of a ledger on a kernel matrix.
pub(crate) fn sweep<T: Working, D: Device>(
    shared: &Shared<T>,
    ledger: &Ledger<T>,
    device: &D,
    decomposition: &Decomposition<D::Matrix>,
    control: &Control,
) -> Result<()> {
    let Shared { loss, ref y, settings, .. } = *shared;
    let basis = Eigenvectors::new(device, decomposition)?;
    let spectral = Spectral { device, basis: &basis, spectrum: &decomposition.spectrum, loss, y, settings, control };
    let finish = |jobs: &[&Job], smooth: Smoothed, states: &[&State]| {
        if loss.curvature_bound().is_none() {
            return finish_exactly(shared, jobs, smooth, states, control);
        }
        let coordinates: Vec<Vec<f64>> = states.iter().map(|state| state.coordinates.clone()).collect();
        let uploaded = device.upload(y.len(), &coordinates)?;
        let betas = device.download(&basis.times(device, &uploaded, Accuracy::Double, control)?)?;
        Ok(betas.into_iter().zip(states).map(|(beta, state)| ((beta, state.b), true)).collect())
    };
    let settle = |batch: Vec<(&Job, Model, Outcome)>| {
        let solution =
            |(job, (beta, b), outcome): (&Job, _, _)| Solution { plan: job.plan, c: job.at, beta, b, outcome };
        ledger.settle(batch.into_iter().map(solution).collect(), |_, _, _| {})
    };
    spectral.sweep(ledger.plans, ledger.cs, finish, settle)
}

/// The smoothed solution's guess of the rows at a kink, and a few steps of the active set from there: β and b.
fn finish_exactly<T: Working>(
    shared: &Shared<T>,
    jobs: &[&Job],
    smooth: Smoothed,
    states: &[&State],
    control: &Control,
) -> Result<Vec<(Model, bool)>> {
    let (y, gram) = (&shared.y, shared.gram);
    let n = gram.n();
    let guess = |(job, state): (&&Job, &&State)| job.pulls(smooth, y, &state.f, state.b);
    let guesses: Vec<Vec<f64>> = jobs.iter().zip(states).map(guess).collect();
    let products = gram.times(&guesses.iter().map(|beta| &beta[..]).collect::<Vec<_>>(), control)?;
    let finish = |at: usize| {
        let qp = BoxQp::new(gram, &shared.diagonal, &shared.kinks, jobs[at].weight, jobs[at].c);
        let mut point = Point::origin(n);
        point.beta[..n].copy_from_slice(&guesses[at]);
        point.f[..n].copy_from_slice(&products[at]);
        point.b = states[at].b;
        let converged = BoxSolver::default().finish(&qp, &mut point, &shared.settings, control)?;
        point.beta.truncate(n);
        Ok(((point.beta, point.b), converged))
    };
    (0..jobs.len()).into_par_iter().map(finish).collect()
}

/// Solves all plans on features, K = ZZᵀ, in rank dimensions. The last steps, of which a piecewise-linear loss has some,
/// and the certificates are [`Primal`]'s.
pub(crate) fn sweep_features<T: Working, D: Device>(
    primal: &Primal<T, D>,
    plans: &[Plan],
    cs: &[f64],
) -> Result<Vec<Reduced>> {
    let Primal { device, design, loss, y, settings, control, .. } = *primal;
    let (basis, spectrum) = OfFeatures::new(device, design, control)?;
    let spectral = Spectral { device, basis: &basis, spectrum: &spectrum, loss, y, settings, control };
    let is_smooth = loss.curvature_bound().is_some();
    let mut kept: Vec<Reduced> = plans.iter().map(|_| Reduced::nothing(cs.len())).collect();
    let finish = |jobs: &[&Job], smooth: Smoothed, states: &[&State]| {
        let mut models = Vec::with_capacity(jobs.len());
        // Jobs of one C are neighbours, and a block for Newton's method.
        for (jobs, states) in jobs.chunk_by(|a, b| a.at == b.at).scan(0, |from, jobs| {
            *from += jobs.len();
            Some((jobs, &states[*from - jobs.len()..*from]))
        }) {
            let mut guesses = Vec::with_capacity(jobs.len());
            for (job, state) in jobs.iter().zip(states) {
                let slopes = if is_smooth { Vec::new() } else { job.pulls(smooth, y, &state.f, state.b) };
                let w = basis.weights(&state.coordinates);
                guesses.push(Guess { plan: job.plan, weight: job.weight, w, b: state.b, g: state.f.clone(), slopes });
            }
            models.extend(primal.finish(guesses, jobs[0].c)?.into_iter().map(|model| (model, true)));
        }
        Ok(models)
    };
    let settle = |batch: Vec<(&Job, Certified, Outcome)>| {
        for (job, (mut record, w), outcome) in batch {
            record.steps += outcome.steps;
            kept[job.plan].records[job.at] = record;
            kept[job.plan].w[job.at] = w;
        }
        Ok(())
    };
    spectral.sweep(plans, cs, finish, settle)?;
    Ok(kept)
}
