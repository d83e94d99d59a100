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

use crate::certify::certificate::{Certificate, dual_losses, losses};
use crate::certify::record::{Outcome, Settings, Status};
use crate::device::basis::Basis;
use crate::device::matrix::Matrix;
use crate::device::{Block, Device, Spectrum};
use crate::error::Result;
use crate::loss::intercept::best_intercept;
use crate::loss::scalar::Loss;
use crate::loss::smoothed::Smoothed;
use crate::numeric::design::Accuracy;
use crate::numeric::parallel;
use crate::observe::Control;
use crate::solver::spectral::basis_products::Products;
use crate::solver::spectral::step::take_step;

/// When the gap is looked at, for a smooth loss. Normally it is when one open problem in `SEEM_DONE` seems done. The
/// next look comes at the latest after `LATEST` times the steps taken so far, at least `FIRST_LOOK` steps, and at the
/// earliest after `EARLIEST` times the steps taken so far.
const SEEM_DONE: usize = 4;

const FIRST_LOOK: usize = 5;

const LATEST: f64 = 1.0;

const EARLIEST: f64 = 0.1;

/// The open problems have stalled once they have taken this many times the steps after which a gap last fell. A larger
/// factor wastes more steps on problems that go nowhere. Accelerated steps bring P − D down with the square of their number,
/// so that one that is to fall at all falls long before.
const STALLED_AFTER: usize = 8;

/// As long as D is far below 0, the relative gap stands still, though P − D falls: that may take this many steps.
const STEPS_BELOW_ZERO: usize = 5000;

/// Looks in a row without any gap getting smaller, before corrected products give way to those in double precision.
const CORRECTED_PATIENCE: usize = 3;

/// Steps at one δ before the active set takes over.
const SMOOTHED_STEPS: usize = 30;

/// The first δ, relative to the spread of the targets, and the smallest δ.
pub(super) const WIDEST: f64 = 0.125;

const NARROWEST: f64 = 1e-7;

/// The steps on a device, for one loss and one kernel.
pub(crate) struct Spectral<'a, B: ?Sized> {
    pub device: &'a dyn Device,
    pub basis: &'a B,
    pub spectrum: &'a Spectrum,
    pub loss: Loss,
    pub y: &'a [f64],
    pub settings: Settings,
    /// The precision of the products. It grows where it was not enough.
    pub products: Products,
    pub control: &'a Control,
}

/// A problem of a block.
pub(crate) struct Posed<'a> {
    /// Its position among the problems of the block.
    pub at: usize,
    pub c: f64,
    pub weight: &'a [f64],
}

impl Posed<'_> {
    /// θ from the slopes at f + b.
    pub fn pulls(&self, smooth: Smoothed, y: &[f64], f: &[f64], b: f64) -> Vec<f64> {
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

/// Where a problem stands: Uᵀβ, f = Kβ and b, and its objective P where that is known, else 0.
#[derive(Clone)]
pub(crate) struct State {
    pub coordinates: Vec<f64>,
    pub f: Vec<f64>,
    pub b: f64,
    pub objective: f64,
}

impl State {
    fn is_finite(&self) -> bool {
        self.b.is_finite() && self.coordinates.iter().chain(&self.f).all(|value| value.is_finite())
    }
}

/// What is known of how a problem gets on: the smallest gap so far, relative and absolute, and after how many steps each
/// last fell.
#[derive(Clone)]
struct Progress {
    lowest: [f64; 2],
    fell_at: [usize; 2],
}

impl Default for Progress {
    fn default() -> Self {
        Self { lowest: [f64::INFINITY; 2], fell_at: [0; 2] }
    }
}

impl Progress {
    /// Takes note of a gap. Whether the relative one is smaller than ever.
    fn sees(&mut self, relative: f64, absolute: f64, steps: usize) -> bool {
        for (k, gap) in [relative, absolute].into_iter().enumerate() {
            if gap <= 0.9 * self.lowest[k] {
                (self.lowest[k], self.fell_at[k]) = (gap, steps);
            }
        }
        self.fell_at[0] == steps
    }

    fn has_stalled(&self, steps: usize) -> bool {
        let [relative, absolute] = self.fell_at.map(|at| STALLED_AFTER * at);
        steps >= relative.max(STEPS_BELOW_ZERO) || steps >= absolute.max(relative).max(STALLED_AFTER * FIRST_LOOK)
    }
}

/// A problem's answer: the state where its steps ended, its model and its outcome.
pub(crate) type Solved<M> = (State, M, Outcome);

impl<B: Basis + ?Sized> Spectral<'_, B> {
    /// The best constant model.
    pub fn constant(&self, weight: &[f64]) -> State {
        let b = best_intercept(self.loss, self.y, weight, &vec![0.0; self.y.len()], 0.0);
        State { coordinates: vec![0.0; self.spectrum.values.len()], f: Vec::new(), b, objective: 0.0 }
    }

    /// Solves a block, from where its problems start. `finish` turns states into models; those that converged are done. For
    /// a smooth loss it is only called with states whose gap is small enough, or that are given up.
    #[allow(clippy::too_many_lines)]
    pub fn solve<M>(
        &mut self,
        jobs: &[Posed],
        starts: Vec<State>,
        finish: impl Fn(&[&Posed], Smoothed, &[&State]) -> Result<Vec<(M, Outcome)>>,
    ) -> Result<Vec<Solved<M>>> {
        let Self { device, spectrum, loss, y, settings, control, .. } = *self;
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
        // The bound on a column's curvature is proportional to the column's largest weight.
        let heaviest: Vec<f64> =
            weights.iter().map(|weight| weight.iter().fold(f64::MIN_POSITIVE, |a, w| a.max(*w))).collect();
        let mut weight = device.upload(y.len(), &weights)?;
        let smooth_loss = loss.curvature_bound().is_some();
        let mut smooth = Smoothed { loss, delta: WIDEST * loss.scale(y) };
        let narrowest = NARROWEST * loss.scale(y);
        // Steps of `finish`.
        let mut finishing = vec![0; jobs.len()];
        let mut progress = vec![Progress::default(); jobs.len()];
        let (mut steps, mut looked, mut idle_looks) = (0, 0, 0);
        let mut reference = None;
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
                let pulls = self.pulled(&block, smooth, &weight, &mut reference)?;
                let gaps = take_step(device, &mut block, &pulls, spectrum, &curvature)?;
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
                let mut improved = false;
                for (&j, (state, gap)) in open.iter().zip(&judged) {
                    scale[j] = state.objective;
                    improved |= progress[j].sees(gap.gap(), gap.primal - gap.dual, steps);
                }
                idle_looks = if improved { 0 } else { idle_looks + 1 };
                // The limit of corrected products is right: slow progress has another reason, most of the time.
                let patience = if self.products == Products::Corrected { CORRECTED_PATIENCE } else { 1 };
                if idle_looks >= patience {
                    self.products = self.products.better(device);
                }
                over |= open.iter().all(|&j| progress[j].has_stalled(steps));
                let small = |(at, (state, gap)): (usize, (State, Certificate))| {
                    (over || lost[at] || gap.gap() <= enough).then_some((at, state))
                };
                judged.into_iter().enumerate().filter_map(small).collect()
            } else {
                states.into_iter().enumerate().collect()
            };
            let (tried, states): (Vec<&Posed>, Vec<&State>) =
                ready.iter().map(|(at, state)| (&jobs[open[*at]], state)).unzip();
            let models = if tried.is_empty() { Vec::new() } else { finish(&tried, smooth, &states)? };
            for ((at, state), (model, outcome)) in ready.into_iter().zip(models) {
                finishing[open[at]] += outcome.steps;
                let converged = outcome.status == Status::Converged;
                if converged || over || lost[at] {
                    let status = if converged { Status::Converged } else { status };
                    let steps = steps + finishing[open[at]];
                    done[open[at]] = Some((state, model, Outcome { status, steps }));
                }
            }
            // Slopes change with δ, and columns are dropped.
            reference = None;
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
                if self.products == Products::Single {
                    self.products = self.products.better(device);
                }
                block.momentum.fill(1.0);
            }
        }
        Ok(done.into_iter().flatten().collect())
    }

    /// Where a problem's numbers left the range of doubles, puts its start in the place of its state. Returns for each
    /// problem whether that happened.
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

    fn states(&self, coordinates: &Matrix, b: &[f64]) -> Result<Vec<State>> {
        let device = self.device;
        let scaled = device.scale_rows(&self.spectrum.values, coordinates)?;
        let f = self.basis.values(device, &scaled, coordinates, Accuracy::Double, self.control)?;
        let f = device.download(&f)?;
        let state = |((coordinates, f), &b)| State { coordinates, f, b, objective: 0.0 };
        Ok(device.download(coordinates)?.into_iter().zip(f).zip(b).map(state).collect())
    }

    /// Moves b to where the slopes sum to 0. Returns each state with its gap, for which these slopes serve as θ.
    fn judge(&self, jobs: &[Posed], open: &[usize], mut states: Vec<State>) -> Result<Vec<(State, Certificate)>> {
        let Self { device, loss, y, .. } = *self;
        let smooth = Smoothed { loss, delta: 1.0 };
        let thetas = parallel::map(states.iter_mut().zip(open), |(state, &j)| {
            state.b = best_intercept(loss, y, jobs[j].weight, &state.f, state.b);
            jobs[j].pulls(smooth, y, &state.f, state.b)
        });
        let known: Vec<(&[f64], &[f64])> = states.iter().map(|state| (&state.coordinates[..], &state.f[..])).collect();
        let of_beta = self.basis.squares(device, self.spectrum, &known, self.control)?;
        let of_theta = self.basis.squares_of(device, self.spectrum, &thetas, self.control)?;
        let gap = |(at, mut state): (usize, State)| {
            let (job, theta) = (&jobs[open[at]], &thetas[at]);
            let weight: Vec<f64> = job.weight.iter().map(|w| job.c * w).collect();
            let primal = losses(loss, y, &weight, state.b, &state.f) + 0.5 * of_beta[at];
            let dual = dual_losses(loss, y, &weight, theta) - 0.5 * of_theta[at];
            state.objective = primal;
            (state, Certificate { primal, dual, noise: 0.0 })
        };
        Ok(parallel::map(states.into_iter().enumerate(), gap))
    }
}

/// Where the last two solutions of a problem lead at another C, along a line in log C. The newest comes first.
pub(crate) fn along_line(known: &[(f64, &State)], c: f64) -> State {
    let ((c1, last), (c0, before)) = (known[0], known[known.len() - 1]);
    let between = c1.ln() - c0.ln();
    let t = if between > 0.0 { ((c.ln() - c1.ln()) / between).min(FARTHEST_IN_LOG) } else { 0.0 };
    let coordinates = (last.coordinates.iter().zip(&before.coordinates)).map(|(a, b)| a + t * (a - b)).collect();
    // The objective at the last C: a lower bound, as the objective rises with C.
    State { coordinates, f: Vec::new(), b: last.b + t * (last.b - before.b), objective: last.objective }
}

/// A line through two solutions is followed no farther than this many times their distance.
const FARTHEST_IN_LOG: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps after which a problem counts as stalled that is looked at after 5, 10, 20, … steps.
    fn stalls_after(gaps: impl Fn(usize) -> (f64, f64)) -> usize {
        let (mut progress, mut steps) = (Progress::default(), FIRST_LOOK);
        loop {
            let (relative, absolute) = gaps(steps);
            progress.sees(relative, absolute, steps);
            if progress.has_stalled(steps) || steps > 1 << 30 {
                return steps;
            }
            steps *= 2;
        }
    }

    #[test]
    fn a_stall_is_seen_within_a_multiple_of_the_useful_steps() {
        // Both gaps fall with the square of the steps, and then no more.
        for useful in [5, 40, 1000, 30_000] {
            let gap = |steps: usize| (useful.min(steps) as f64).powi(-2);
            let steps = stalls_after(|steps| (gap(steps), gap(steps)));
            assert!(steps >= 4 * useful && steps <= 16 * useful + 80, "{useful}: {steps}");
        }
        // Nothing ever falls.
        assert!(stalls_after(|_| (1.0, 7.0)) <= 80 && stalls_after(|_| (f64::NAN, f64::NAN)) <= 80);
        // P − D falls, while D is below 0, but not for ever.
        assert!((5000..=10_240).contains(&stalls_after(|steps| (1.0, 1.0 / steps as f64))));
    }
}
