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

use crate::certificate::Certificate;
use crate::device::{Block, Decomposition, Device, Spectrum};
use crate::error::Result;
use crate::ledger::{Ledger, Solution};
use crate::loss::{Smoothed, best_intercept};
use crate::observe::Control;
use crate::path::rising;
use crate::problem::{BoxQp, Outcome, Point, Shared, Status};

use super::BoxSolver;
use super::cholesky::Working;

/// Neighbouring C's in a block.
const NEIGHBOURS: usize = 4;

/// Steps between two looks at the gap.
const STEPS: usize = 20;

/// Looks at one δ before it shrinks.
const LOOKS: usize = 3;

/// First δ, relative to the spread of the targets, and the smallest.
const WIDEST: f64 = 0.125;
const NARROWEST: f64 = 1e-7;

/// The engine on a device, for one Gram matrix.
pub(crate) struct Spectral<'a, T, D: Device> {
    shared: &'a Shared<'a, T>,
    device: &'a D,
    basis: &'a D::Matrix,
    spectrum: &'a Spectrum,
    control: &'a Control,
}

/// A problem of a block.
struct Job<'a> {
    plan: usize,
    c: usize,
    weight: &'a [f64],
}

/// A problem's state on the host.
struct State {
    beta: Vec<f64>,
    f: Vec<f64>,
    b: f64,
}

impl<'a, T: Working, D: Device> Spectral<'a, T, D> {
    pub fn new(
        shared: &'a Shared<'a, T>,
        device: &'a D,
        decomposition: &'a Decomposition<D::Matrix>,
        control: &'a Control,
    ) -> Self {
        let Decomposition { basis, spectrum } = decomposition;
        Self { shared, device, basis, spectrum, control }
    }

    /// Solves all plans of a ledger at every C, from the smallest up, a few C's at once.
    pub fn sweep(&self, ledger: &Ledger<T>) -> Result<()> {
        let n = self.shared.gram.n();
        let constant = |weight: &[f64]| {
            let f = vec![0.0; n];
            let b = best_intercept(self.shared.loss, &self.shared.y, weight, &f, 0.0);
            (vec![0.0; n], b)
        };
        let mut starts: Vec<(Vec<f64>, f64)> = ledger.plans.iter().map(|plan| constant(&plan.weight)).collect();
        for (step, group) in rising(ledger.cs).chunks(NEIGHBOURS).enumerate() {
            if step > 0 && self.control.out_of_time() {
                break;
            }
            let jobs: Vec<Job> = group
                .iter()
                .flat_map(|&c| ledger.plans.iter().enumerate().map(move |(plan, p)| (c, plan, p)))
                .map(|(c, plan, p)| Job { plan, c, weight: &p.weight })
                .collect();
            let cs: Vec<f64> = jobs.iter().map(|job| ledger.cs[job.c]).collect();
            let states = self.solve(&jobs, &cs, &starts)?;
            let last = group[group.len() - 1];
            let mut batch = Vec::with_capacity(states.len());
            for (job, (state, coordinates, outcome)) in jobs.iter().zip(states) {
                if job.c == last {
                    starts[job.plan] = (coordinates, state.b);
                }
                batch.push(Solution { plan: job.plan, c: job.c, beta: state.beta, b: state.b, outcome });
            }
            ledger.settle(batch, |_, _, _| {})?;
            self.control.advance(jobs.len());
        }
        Ok(())
    }

    /// Solves a block from the coordinates of its plans' last solutions.
    fn solve(&self, jobs: &[Job], cs: &[f64], starts: &[(Vec<f64>, f64)]) -> Result<Vec<(State, Vec<f64>, Outcome)>> {
        let n = self.shared.gram.n();
        let (device, loss, y) = (self.device, self.shared.loss, &self.shared.y);
        let mut done: Vec<Option<(State, Vec<f64>, Outcome)>> = jobs.iter().map(|_| None).collect();
        let mut open: Vec<usize> = (0..jobs.len()).collect();
        let first: Vec<Vec<f64>> = jobs.iter().map(|job| starts[job.plan].0.clone()).collect();
        let b: Vec<f64> = jobs.iter().map(|job| starts[job.plan].1).collect();
        let mut block = Block {
            coordinates: device.upload(n, &first)?,
            ahead: device.upload(n, &first)?,
            b_ahead: b.clone(),
            b,
            momentum: vec![1.0; jobs.len()],
        };
        let weights: Vec<Vec<f64>> =
            jobs.iter().zip(cs).map(|(job, c)| job.weight.iter().map(|w| w * c).collect()).collect();
        let mut weight = device.upload(n, &weights)?;
        let piecewise_linear = loss.curvature_bound().is_none();
        let mut smooth = Smoothed { loss, delta: WIDEST * loss.scale(y) };
        let narrowest = NARROWEST * loss.scale(y);
        let mut steps = 0;
        let mut looks = 0;
        while !open.is_empty() {
            // How tight a bound holds depends on the largest weight of a column.
            let heaviest = |j: &usize| jobs[*j].weight.iter().fold(0.0_f64, |a, w| a.max(*w)).max(f64::MIN_POSITIVE);
            let curvature: Vec<f64> = open.iter().map(|j| cs[*j] * heaviest(j) * smooth.curvature_bound()).collect();
            for _ in 0..STEPS {
                self.control.check()?;
                let f = device.times(self.basis, &device.scale_rows(&self.spectrum.values, &block.ahead)?)?;
                let pulls = device.pulls(smooth, y, &weight, &f, &block.b_ahead)?;
                let pulls = device.transposed_times(self.basis, &pulls)?;
                device.advance(&mut block, &pulls, self.spectrum, &curvature)?;
            }
            steps += STEPS;
            looks += 1;
            let over = steps >= self.shared.settings.max_iter
                || self.control.out_of_time()
                || (piecewise_linear && smooth.delta <= narrowest);
            let status = if self.control.out_of_time() {
                Status::TimeLimit
            } else if steps >= self.shared.settings.max_iter {
                Status::MaxIter
            } else {
                Status::Stalled
            };
            let coordinates = device.download(&block.coordinates)?;
            let finished = if piecewise_linear {
                if looks < LOOKS && !over {
                    continue;
                }
                self.finish_exactly(jobs, cs, &open, smooth, &block)?
            } else {
                self.finish_smooth(&weights, &open, &block)?
            };
            let mut still_open = Vec::new();
            let mut kept = Vec::new();
            for (at, ((&j, (state, converged)), coordinates)) in open.iter().zip(finished).zip(coordinates).enumerate()
            {
                if converged || over {
                    let status = if converged { Status::Converged } else { status };
                    done[j] = Some((state, coordinates, Outcome { status, steps }));
                } else {
                    still_open.push(j);
                    kept.push(at);
                }
            }
            if kept.len() < open.len() {
                block.coordinates = device.select(&block.coordinates, &kept)?;
                block.ahead = device.select(&block.ahead, &kept)?;
                weight = device.select(&weight, &kept)?;
                let pick = |values: &[f64]| kept.iter().map(|&at| values[at]).collect::<Vec<f64>>();
                (block.b, block.b_ahead, block.momentum) =
                    (pick(&block.b), pick(&block.b_ahead), pick(&block.momentum));
            }
            open = still_open;
            if piecewise_linear && looks >= LOOKS {
                smooth.delta /= 8.0;
                looks = 0;
                block.momentum.fill(1.0);
            }
        }
        Ok(done.into_iter().flatten().collect())
    }

    /// β and f = Kβ of the block, by the decomposition.
    fn download(&self, block: &Block<D::Matrix>) -> Result<Vec<State>> {
        let device = self.device;
        let beta = device.download(&device.times(self.basis, &block.coordinates)?)?;
        let scaled = device.scale_rows(&self.spectrum.values, &block.coordinates)?;
        let f = device.download(&device.times(self.basis, &scaled)?)?;
        Ok(beta.into_iter().zip(f).zip(&block.b).map(|((beta, f), &b)| State { beta, f, b }).collect())
    }

    /// The gap of each column with θ from the slopes at the intercept where Σθ = 0.
    fn finish_smooth(
        &self,
        weights: &[Vec<f64>],
        open: &[usize],
        block: &Block<D::Matrix>,
    ) -> Result<Vec<(State, bool)>> {
        let (loss, y) = (self.shared.loss, &self.shared.y);
        let mut states = self.download(block)?;
        let thetas: Vec<Vec<f64>> = states
            .par_iter_mut()
            .zip(open)
            .map(|(state, &j)| {
                state.b = best_intercept(loss, y, &weights[j], &state.f, state.b);
                let pull = |i: usize| match weights[j][i] {
                    0.0 => 0.0,
                    cw => cw * loss.pull(y[i], state.f[i] + state.b),
                };
                (0..y.len()).map(pull).collect()
            })
            .collect();
        let device = self.device;
        let uploaded = device.upload(y.len(), &thetas)?;
        let coordinates = device.download(&device.transposed_times(self.basis, &uploaded)?)?;
        let tol = 0.5 * self.shared.settings.tol;
        let judged =
            states.into_iter().zip(thetas).zip(coordinates).zip(open).map(|(((state, theta), coordinates), &j)| {
                let (mut primal, mut dual) = (0.0, 0.0);
                for i in 0..y.len() {
                    primal += 0.5 * state.beta[i] * state.f[i];
                    let cw = weights[j][i];
                    if cw > 0.0 {
                        primal += cw * loss.value(y[i], state.f[i] + state.b);
                        let (lo, hi) = loss.domain(y[i]);
                        dual += cw * loss.dual_value(y[i], (theta[i] / cw).clamp(lo, hi));
                    }
                }
                dual -= 0.5 * coordinates.iter().zip(&self.spectrum.values).map(|(a, v)| v * a * a).sum::<f64>();
                let converged = Certificate { primal, dual }.gap() <= tol;
                (state, converged)
            });
        Ok(judged.collect())
    }

    /// The smoothed solution's guess of the rows at a kink, and a few steps of the active set from there.
    fn finish_exactly(
        &self,
        jobs: &[Job],
        cs: &[f64],
        open: &[usize],
        smooth: Smoothed,
        block: &Block<D::Matrix>,
    ) -> Result<Vec<(State, bool)>> {
        let (y, gram) = (&self.shared.y, self.shared.gram);
        let n = gram.n();
        let states = self.download(block)?;
        let guesses: Vec<Vec<f64>> = states
            .iter()
            .zip(open)
            .map(|(state, &j)| {
                let pull = |i: usize| match jobs[j].weight[i] {
                    0.0 => 0.0,
                    w => cs[j] * w * smooth.pull(y[i], state.f[i] + state.b),
                };
                (0..n).map(pull).collect()
            })
            .collect();
        let products = gram.times(&guesses.iter().map(|beta| &beta[..]).collect::<Vec<_>>(), self.control)?;
        let finish = |at: usize| {
            let (guess, product, j) = (&guesses[at], &products[at], open[at]);
            let qp = BoxQp::new(gram, &self.shared.diagonal, &self.shared.kinks, jobs[j].weight, cs[j]);
            let mut point = Point::origin(n);
            point.beta[..n].copy_from_slice(guess);
            point.f[..n].copy_from_slice(product);
            point.b = states[at].b;
            let converged = BoxSolver::default().finish(&qp, &mut point, &self.shared.settings, self.control)?;
            let (mut beta, mut f) = (point.beta, point.f);
            beta.truncate(n);
            f.truncate(n);
            Ok((State { beta, f, b: point.b }, converged))
        };
        (0..open.len()).into_par_iter().map(finish).collect()
    }
}
