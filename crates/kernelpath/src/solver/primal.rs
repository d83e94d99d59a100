//! Newton's method in rank dimensions, for K = ZZᵀ: many problems (the folds) at once.
//!
//! With w = Zᵀβ, (P) is
//!
//! ```text
//! minimise ½‖w‖² + Σ hᵢ(gᵢ + b),   g = Zw
//! ```
//!
//! where h is C·w L, or for a piecewise-linear loss its [envelope](super::envelope) around a centre ā. With
//! a = −h′(g + b) and S = h″, a Newton step solves
//!
//! ```text
//! (I + Zᵀ S Z) Δw + Zᵀ S 1 Δb = −e,     1ᵀ S Z Δw + 1ᵀ S 1 Δb = 0,     e = w − Zᵀa
//! ```
//!
//! of which [`directions`](super::directions) solves all at once. b is moved to where Σa = 0 after each step, so a is dual
//! feasible, and the duality gap is ½‖e‖² plus what a misses of being a slope of the loss. Of a piecewise-linear loss the
//! minimum of the envelopes is the next centre (Rockafellar 1976), until the gap is small: the limit solves the problem
//! itself.

use std::ops::Range;

use rayon::prelude::*;

use crate::certificate::{FeatureClaim, certify_features, feasible, weighted};
use crate::cv::Record;
use crate::design::{Accuracy, Design, with_numbers};
use crate::device::Device;
use crate::error::Result;
use crate::ledger::{Plan, constant_intercept, record};
use crate::loss::{Loss, balanced, best_intercept, middle_intercept};
use crate::observe::Control;
use crate::path::rising;
use crate::problem::{Outcome, Settings, Status};
use crate::simd::{dot, fill_in_lanes, sum_in_lanes, sums};

use super::cholesky::Working;
use super::directions::{Directions, Equation, Preconditioner};
use super::envelope::Envelope;
use super::line_search::bracketed;

/// σ of the first envelopes, over C·w and the scale of the targets, and how it grows from centre to centre, far from the
/// solution and near it.
const SIGMA: f64 = 10.0;
const NARROWER: f64 = 3.0;
const LITTLE_NARROWER: f64 = 1.5;

/// So many times the wanted gap is far from the solution.
const FAR: f64 = 10.0;

/// Of a piecewise-linear loss, one in so many rows, those nearest to a kink, takes part in most steps.
const NEAR: usize = 20;

/// Before the first centre it is one in so many, after so many steps of all rows.
const NOT_FAR: usize = 6;
const FIRST_STEPS: usize = 2;

/// Steps for one centre before the band is widened, and by how much it is at most.
const MAX_STEPS: usize = 25;
const SMOOTHEST: f64 = 1e-3;

/// A line through two solutions is followed no farther than so many times their distance.
const FARTHEST: f64 = 3.0;

/// Newton steps without the gap halving before a problem counts as stalled.
const PATIENCE: usize = 60;

/// Newton steps before all rows are looked at again.
const MAX_NEAR: usize = 60;

/// At least so many rows say what share of them is how far from a kink.
const SAMPLE: usize = 16384;

/// Σa counts as 0 where it adds no more than this share to the gap.
const UNBALANCED: f64 = 1e-3;

/// A slope that changes by less than this share of it does not.
const UNCHANGED: f64 = 32.0 * f64::EPSILON;

/// Rows that one thread works on.
const CHUNK: usize = 8192;

/// What is kept of a plan: per C the record and, where it was run, w.
pub(crate) struct Reduced {
    pub records: Vec<Record>,
    pub w: Vec<Vec<f64>>,
}

impl Reduced {
    pub fn nothing(cs: usize) -> Self {
        Self { records: vec![Record::NOT_RUN; cs], w: vec![Vec::new(); cs] }
    }
}

/// A model near the solution of a problem.
pub(crate) struct Guess<'a> {
    pub plan: usize,
    pub weight: &'a [f64],
    pub w: Vec<f64>,
    pub b: f64,
    /// Zw.
    pub g: Vec<f64>,
    /// Of a piecewise-linear loss; else empty.
    pub slopes: Vec<f64>,
}

/// How the columns are to descend.
#[derive(Clone, Copy)]
struct Depth {
    /// The share of the tolerance that will do.
    enough: f64,
    /// Of the rows nearest to a kink, so many take part before the first centre, and so many then.
    first: usize,
    then: usize,
    /// Most rounds.
    rounds: usize,
}

/// A model's record, and its w.
pub(crate) type Certified = (Record, Vec<f64>);

/// y, weights, centre and g, without b, of some rows.
type Stretch<'a> = [&'a [f64]; 4];

/// A problem in work.
#[derive(Clone)]
struct Column<'a> {
    plan: usize,
    weight: &'a [f64],
    w: Vec<f64>,
    b: f64,
    /// Zw.
    g: Vec<f64>,
    /// ā; empty for a smooth loss.
    centre: Vec<f64>,
    sigma: f64,
    /// σ of the first envelopes.
    widest: f64,
    /// Newton steps since the last change of the envelopes.
    since: usize,
    /// a and S at g + b.
    a: Vec<f64>,
    s: Vec<f64>,
    /// Zᵀa, and w less it.
    image: Vec<f64>,
    error: Vec<f64>,
    primal: f64,
    /// What a misses of being a slope of the loss.
    mismatch: f64,
    /// What the wanted gap is relative to.
    scale: f64,
    /// Zᵀa, Σa and Σ|a| of rows that are left out of the columns, as their a does not change.
    frozen: (Vec<f64>, f64, f64),
    /// Best gap so far, and steps since it halved.
    best: (f64, usize),
    /// Whether a Newton step is due.
    due: bool,
    /// From a new centre on until the next step: rows inside a segment, and by how much it would move their a.
    shift: Vec<(usize, f64)>,
    outcome: Outcome,
}

impl Column<'_> {
    /// Makes a the centre, of narrower envelopes. Most rows will stay in their segments, though g is outside of many at
    /// first: the next step starts from a as all of these would have it.
    fn recentre(&mut self, narrower: f64) {
        let moved = |i: usize| (i, narrower * (self.a[i] - self.centre[i]));
        self.shift = (0..self.a.len()).filter(|&i| self.s[i] > 0.0).map(moved).collect();
        self.s.iter_mut().for_each(|s| *s *= narrower);
        self.sigma *= narrower;
        self.since = 0;
        self.centre.copy_from_slice(&self.a);
    }

    /// Makes σ so many times that of the first envelopes, if it is more.
    fn widen(&mut self, times: f64) {
        if self.sigma > times * self.widest {
            self.sigma = times * self.widest;
            self.shift = Vec::new();
        }
    }
}

/// The problems of one loss on one set of features.
pub(crate) struct Primal<'a, T, D> {
    pub device: &'a D,
    pub design: Design<'a, T>,
    /// How far each feature may be from its exact value.
    pub errors: &'a [f64],
    /// Which of all rows those of the design are; `None`: all.
    pub rows: Option<&'a [usize]>,
    /// Rows whose features may be copied at once.
    pub copied: usize,
    pub loss: Loss,
    pub y: &'a [f64],
    pub settings: Settings,
    /// Of the steps' products; where it does not do, the steps go on in f64.
    pub accuracy: Accuracy,
    pub control: &'a Control,
}

impl<T: Working, D: Device> Primal<'_, T, D> {
    /// Solves all plans at every C, from the smallest up.
    pub fn sweep(&self, plans: &[Plan], cs: &[f64]) -> Result<Vec<Reduced>> {
        let mut kept: Vec<Reduced> = plans.iter().map(|_| Reduced::nothing(cs.len())).collect();
        let mut preconditioner = Preconditioner::new(plans.len());
        let mut before: Option<(f64, Vec<Column>)> = None;
        let mut last: Option<(f64, Vec<Column>)> = None;
        let mut accuracy = self.accuracy;
        for (step, k) in rising(cs).into_iter().enumerate() {
            if step > 0 && self.control.out_of_time() {
                break;
            }
            let c = cs[k];
            let mut columns: Vec<Column> = match (&last, &before) {
                (None, _) => plans.par_iter().enumerate().map(|(k, plan)| self.constant(k, &plan.weight, c)).collect(),
                (Some((c1, last)), None) => last.par_iter().map(|last| self.scaled(last, c / c1)).collect(),
                (Some((c1, last)), Some((c0, before))) => {
                    let t = if c1 > c0 { (c - c1) / (c1 - c0) } else { 0.0 };
                    let t = if t <= FARTHEST { t } else { 0.0 };
                    last.par_iter().zip(before).map(|(last, before)| self.extrapolated(last, before, t, c)).collect()
                }
            };
            let records = self.settled(&mut columns, c, &mut preconditioner, &mut accuracy)?;
            for ((kept, record), column) in kept.iter_mut().zip(records).zip(&columns) {
                kept.records[k] = record;
                kept.w[k].clone_from(&column.w);
            }
            self.control.advance(columns.len());
            before = last.replace((c, columns));
        }
        Ok(kept)
    }

    /// Solves and certifies the problems at one C from near their solutions.
    pub fn finish(&self, guesses: Vec<Guess>, c: f64) -> Result<Vec<Certified>> {
        let mut columns = Vec::with_capacity(guesses.len());
        for Guess { plan, weight, w, b, g, slopes } in guesses {
            columns.push(self.column((plan, weight), w, b, g, slopes));
        }
        let mut preconditioner = Preconditioner::new(1 + columns.iter().map(|c| c.plan).max().unwrap_or(0));
        let records = self.settled(&mut columns, c, &mut preconditioner, &mut { self.accuracy })?;
        Ok(records.into_iter().zip(columns).map(|(record, column)| (record, column.w)).collect())
    }

    /// Solves the columns, if need be once more in f64, and certifies them.
    fn settled(
        &self,
        columns: &mut [Column],
        c: f64,
        preconditioner: &mut Preconditioner<T>,
        accuracy: &mut Accuracy,
    ) -> Result<Vec<Record>> {
        let mut attempt = 0;
        loop {
            Primal { accuracy: *accuracy, ..*self }.solve(columns, c, preconditioner)?;
            let records = self.certify(columns, c)?;
            let short = records.iter().any(|record| record.status == Status::Stalled);
            if !short || attempt == 2 || self.control.out_of_time() {
                return Ok(records);
            }
            *accuracy = Accuracy::Double; // which larger C's will need, too
            attempt += 1;
        }
    }

    /// w = 0 with the best constant b, and slopes of the loss there that sum to 0.
    fn constant<'b>(&self, plan: usize, weight: &'b [f64], c: f64) -> Column<'b> {
        let n = self.y.len();
        let b = best_intercept(self.loss, self.y, weight, &vec![0.0; n], 0.0);
        let slopes = |i: usize| {
            let Some(k) = self.loss.kinks(self.y[i]) else { return (0.0, 0.0) };
            let near = |kink: f64| (kink - b).abs() <= 1e-9 * (kink.abs() + b.abs());
            let pull = self.loss.pull(self.y[i], b);
            let lowest = if near(k.kink_low) {
                k.lo
            } else if near(k.kink_high) {
                k.mid
            } else {
                pull
            };
            let highest = if near(k.kink_high) {
                k.hi
            } else if near(k.kink_low) {
                k.mid
            } else {
                pull
            };
            (c * weight[i] * lowest, c * weight[i] * highest)
        };
        let (low, high) = (0..n).map(slopes).fold((0.0, 0.0), |(low, high), (l, h)| (low + l, high + h));
        let share = if high > low { (-low / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        let centre = if self.is_smooth() {
            Vec::new()
        } else {
            (0..n).map(slopes).map(|(low, high)| low + share * (high - low)).collect()
        };
        self.column((plan, weight), vec![0.0; self.design.rank()], b, vec![0.0; n], centre)
    }

    /// The solution at a C so many times as small: all of it but b grows with the boxes.
    fn scaled<'b>(&self, last: &Column<'b>, factor: f64) -> Column<'b> {
        let grown = |values: &[f64]| values.iter().map(|v| v * factor).collect::<Vec<f64>>();
        let centre = if self.is_smooth() { Vec::new() } else { grown(&last.a) };
        let column = self.column((last.plan, last.weight), grown(&last.w), last.b, grown(&last.g), centre);
        Column { a: grown(&last.a), image: grown(&last.image), ..column }
    }

    /// The line in C through the last two solutions, or the last one, whichever has the smaller objective.
    fn extrapolated<'b>(&self, last: &Column<'b>, before: &Column<'b>, t: f64, c: f64) -> Column<'b> {
        let b_at = |t: f64| last.b + t * (last.b - before.b);
        let line = |a: &[f64], b: &[f64], t: f64| a.iter().zip(b).map(|(a, b)| a + t * (a - b)).collect::<Vec<f64>>();
        let objective = |t: f64| {
            let (w, b) = (line(&last.w, &before.w, t), b_at(t));
            let [losses] = self.loss.sum(
                [self.y, last.weight, &last.g, &before.g],
                #[inline(always)]
                |loss, [y, weight, g, g_before]| [weighted(weight, loss.value(y, g + t * (g - g_before) + b))],
            );
            0.5 * dot(&w, &w) + c * losses
        };
        let t = if objective(t) < objective(0.0) { t } else { 0.0 };
        let mut centre = Vec::new();
        if !self.is_smooth() {
            centre = vec![0.0; self.y.len()];
            self.loss.vectorised(
                #[inline(always)]
                |loss| {
                    fill_in_lanes(
                        [self.y, last.weight, &last.a, &before.a],
                        [&mut centre],
                        #[inline(always)]
                        |[y, weight, a, a_before]| {
                            let ((lo, hi), cw) = (loss.domain(y), c * weight);
                            [(a + t * (a - a_before)).max(cw * lo).min(cw * hi)]
                        },
                    );
                },
            );
        }
        let (w, b, g) = (line(&last.w, &before.w, t), b_at(t), line(&last.g, &before.g, t));
        let column = self.column((last.plan, last.weight), w, b, g, centre);
        let (a, image) = (line(&last.a, &before.a, t), line(&last.image, &before.image, t));
        Column { a, image, scale: last.scale, ..column }
    }

    fn column<'b>(
        &self,
        (plan, weight): (usize, &'b [f64]),
        w: Vec<f64>,
        b: f64,
        g: Vec<f64>,
        centre: Vec<f64>,
    ) -> Column<'b> {
        let (n, rank) = (self.y.len(), w.len());
        let outcome = Outcome { status: Status::MaxIter, steps: 0 };
        let (a, s, frozen) = (vec![0.0; n], vec![0.0; n], (vec![0.0; rank], 0.0, 0.0));
        let (image, error) = (vec![0.0; rank], vec![0.0; rank]);
        let (primal, mismatch, scale, best) = (0.0, 0.0, 0.0, (f64::INFINITY, 0));
        let (sigma, widest, since, due, shift) = (0.0, 0.0, 0, false, Vec::new()); // `solve` sets them
        Column {
            plan,
            weight,
            w,
            b,
            g,
            centre,
            sigma,
            widest,
            since,
            a,
            s,
            image,
            error,
            primal,
            mismatch,
            scale,
            frozen,
            best,
            due,
            shift,
            outcome,
        }
    }

    fn is_smooth(&self) -> bool {
        self.loss.curvature_bound().is_some()
    }

    /// σ of the first envelopes: C·w sets the scale of the slopes, or if no row comes near its bound, what they are.
    fn widest(&self, column: &Column, c: f64) -> f64 {
        let share = |(i, a): (usize, &f64)| {
            let ((lo, hi), cw) = (self.loss.domain(self.y[i]), c * column.weight[i]);
            if cw > 0.0 { a.abs() / (cw * hi.max(-lo)) } else { 0.0 }
        };
        let largest = column.centre.iter().enumerate().map(share).fold(0.0, f64::max);
        let share = if largest > 0.0 { largest.clamp(1e-6, 1.0) } else { 1.0 };
        SIGMA * share / self.loss.scale(self.y)
    }

    /// Minimises every column at `c` from where it stands.
    fn solve(&self, columns: &mut [Column], c: f64, preconditioner: &mut Preconditioner<T>) -> Result<()> {
        columns.par_iter_mut().for_each(|column| {
            column.best = (f64::INFINITY, 0);
            column.outcome.status = Status::MaxIter;
            column.widest = self.widest(column, c);
            (column.sigma, column.since) = (column.widest, 0);
        });
        let n = self.y.len();
        let mut open: Vec<&mut Column> = columns.iter_mut().collect();
        self.round(&mut open, c, 0.5)?;
        self.descend(
            &mut open,
            c,
            Depth { enough: 0.5, first: n / NOT_FAR, then: n / NEAR, rounds: usize::MAX },
            preconditioner,
        )?;
        for column in open.into_iter().filter(|column| self.goes_on(column)) {
            column.outcome.status = Status::TimeLimit;
        }
        Ok(())
    }

    /// Steps from where the columns stand, of all rows or of a part of them.
    fn descend(
        &self,
        columns: &mut [&mut Column],
        c: f64,
        mut depth: Depth,
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<()> {
        let mut steps = 0;
        // Those that took part, and those that turned out to have one: were they left out again, sets might go round.
        let mut known = Vec::new();
        for _ in 0..depth.rounds {
            // From the first centre on little moves, and what moves is near a kink; columns that are there wait.
            let behind = |column: &Column| self.goes_on(column) && column.sigma <= column.widest;
            let centred = !columns.iter().any(|column| behind(column));
            let due = |column: &Column| if centred { self.goes_on(column) } else { behind(column) };
            let mut at_work: Vec<&mut Column> =
                columns.iter_mut().map(|column| &mut **column).filter(|column| due(column)).collect();
            if at_work.is_empty() || self.control.out_of_time() {
                break;
            }
            let share = if centred { depth.then } else { depth.first };
            let all = self.is_smooth() || 2 * share > self.y.len() || !centred && steps < FIRST_STEPS;
            let near = if all { Vec::new() } else { self.near(&at_work, share, &known) };
            if near.is_empty() || 2 * near.len() > self.y.len() || near.len() > self.copied {
                self.step(&mut at_work, c, preconditioner)?;
                self.round(&mut at_work, c, depth.enough)?;
                steps += 1;
            } else {
                if centred {
                    for column in &mut at_work {
                        column.widen(NARROWER);
                    }
                }
                self.descend_near(&mut at_work, &near, c, depth, preconditioner)?;
                // If that did not do, rows that were too far have a part in it.
                if centred {
                    depth.then += depth.then / 2;
                } else {
                    depth.first *= 2;
                }
                let changes = self.look_at(&mut at_work, c);
                known = with_numbers(&references(&changes));
                known.extend(near);
                self.judge_all(&mut at_work, changes, depth.enough)?;
            }
        }
        Ok(())
    }

    fn goes_on(&self, column: &Column) -> bool {
        column.outcome.status == Status::MaxIter && column.outcome.steps < self.settings.max_iter
    }

    /// b, a and S of every column and its gap, which is small enough at this share of the tolerance.
    fn round(&self, columns: &mut [&mut Column], c: f64, share: f64) -> Result<()> {
        let changes = self.look_at(columns, c);
        self.judge_all(columns, changes, share)
    }

    /// b, a and S of every column; by how much a changed.
    fn look_at(&self, columns: &mut [&mut Column], c: f64) -> Vec<Vec<f64>> {
        columns.par_iter_mut().map(|column| self.look(column, c)).collect()
    }

    /// The gaps, and what is to be done next, given by how much a changed.
    fn judge_all(&self, columns: &mut [&mut Column], changes: Vec<Vec<f64>>, share: f64) -> Result<()> {
        let images = self.pass_back(&changes)?;
        drop(changes);
        columns.par_iter_mut().zip(images).for_each(|(column, change)| {
            column.image.iter_mut().zip(change).for_each(|(image, change)| *image += change);
            column.scale = if column.frozen.2 > 0.0 { column.scale } else { column.primal.abs() };
            column.due = self.judge(column, share);
        });
        self.shift(columns)
    }

    /// Zᵀ·V, for a step.
    fn pass_back(&self, v: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
        self.device.pass_back(self.design, &references(v), self.accuracy, self.control)
    }

    /// Takes what shifts of a do to the errors of the columns.
    fn shift(&self, columns: &mut [&mut Column]) -> Result<()> {
        let mut shifted: Vec<&mut Column> =
            columns.iter_mut().map(|column| &mut **column).filter(|column| !column.shift.is_empty()).collect();
        if shifted.is_empty() {
            return Ok(());
        }
        let spread = |column: &&mut Column| {
            let mut values = vec![0.0; self.y.len()];
            column.shift.iter().for_each(|(i, shift)| values[*i] = *shift);
            values
        };
        let shifts: Vec<Vec<f64>> = shifted.par_iter().map(spread).collect();
        let images = self.pass_back(&shifts)?;
        for (column, image) in shifted.iter_mut().zip(images) {
            column.error.iter_mut().zip(image).for_each(|(error, image)| *error -= image);
        }
        Ok(())
    }

    /// Rows whose a may change soon: those known, and in any column inside a segment, or among about `share` nearest to
    /// a kink.
    fn near(&self, columns: &[&mut Column], share: usize, known: &[usize]) -> Vec<usize> {
        let n = self.y.len();
        // Of many rows, some say well enough how far to go.
        let stride = 1 + n / SAMPLE;
        let reach = |column: &&mut Column| {
            let inside = column.s.iter().filter(|s| **s > 0.0).count();
            let wanted = share.max(3 * inside).max(500).min(n - 1) / stride;
            let distance = |i: usize| distance(self.loss, self.y[i], column.weight[i], column.g[i] + column.b);
            let mut distances: Vec<f64> = (0..n).step_by(stride).map(distance).collect();
            let reach = *distances.select_nth_unstable_by(wanted, f64::total_cmp).1;
            if reach.is_finite() { reach } else { f64::MAX }
        };
        let reaches: Vec<f64> = columns.par_iter().map(reach).collect();
        let mut chosen = vec![0.0; n];
        for &i in known {
            chosen[i] = 1.0;
        }
        chosen.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, chosen)| {
            let mut before = vec![0.0; chosen.len()];
            for (column, &reach) in columns.iter().zip(&reaches) {
                before.copy_from_slice(chosen);
                let at = chunk * CHUNK..chunk * CHUNK + chosen.len();
                let rows = [self.y, column.weight, &column.g, &column.s].map(|values| &values[at.clone()]);
                let [y, weight, g, s] = rows;
                self.loss.vectorised(
                    #[inline(always)]
                    |loss| {
                        fill_in_lanes(
                            [y, weight, g, s, &before],
                            [&mut *chosen],
                            #[inline(always)]
                            |[y, w, g, s, before]| {
                                let close = distance(loss, y, w, g + column.b) <= reach;
                                [if s > 0.0 || close { 1.0 } else { before }]
                            },
                        );
                    },
                );
            }
        });
        (0..n).filter(|&i| chosen[i] > 0.0).collect()
    }

    /// Minimises with the rows far from a kink frozen: their a is at a bound, and stays there.
    fn descend_near(
        &self,
        columns: &mut [&mut Column],
        near: &[usize],
        c: f64,
        depth: Depth,
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<()> {
        let pick = |values: &[f64]| near.iter().map(|&i| values[i]).collect::<Vec<f64>>();
        let (gathered, y) = (self.design.gather(near, self.accuracy)?, pick(self.y));
        let rows: Vec<usize> = near.iter().map(|&i| self.rows.map_or(i, |rows| rows[i])).collect();
        let design = gathered.design();
        let part = Primal { design, rows: Some(&rows), copied: self.copied - near.len(), y: &y, ..*self };
        let weights: Vec<Vec<f64>> = columns.par_iter().map(|column| pick(column.weight)).collect();
        let mut parts: Vec<Column> = (columns.par_iter().zip(&weights))
            .map(|(column, weight)| {
                let (g, centre) = (pick(&column.g), pick(&column.centre));
                let w = column.w.clone();
                let mut part = part.column((column.plan, weight), w, column.b, g, centre);
                (part.sigma, part.widest) = (column.sigma, column.widest);
                (part.a, part.s) = (pick(&column.a), pick(&column.s));
                part.scale = column.scale;
                let place = |&(i, shift): &(usize, f64)| (near.partition_point(|&row| row < i), shift);
                part.shift = column.shift.iter().map(place).collect();
                (part.error, part.due) = (column.error.clone(), column.due);
                part
            })
            .collect();
        let pulls: Vec<&[f64]> = parts.iter().map(|part| &part.a[..]).collect();
        let images = self.device.pass_back(part.design, &pulls, self.accuracy, self.control)?;
        parts.par_iter_mut().zip(columns.par_iter()).zip(images).for_each(|((part, column), near)| {
            let far = (column.frozen.0.iter().zip(&column.image)).zip(&near).map(|((far, all), near)| far + all - near);
            let far = far.collect();
            part.image = near;
            let ((all, all_size), (near, near_size)) = (sums(&column.a), sums(&part.a));
            part.frozen = (far, column.frozen.1 + all - near, column.frozen.2 + all_size - near_size);
        });
        let mut open: Vec<&mut Column> = parts.iter_mut().collect();
        // A little less than enough, so that it is when all rows count.
        let depth = Depth { enough: 0.85 * depth.enough, rounds: MAX_NEAR, ..depth };
        let mut fresh: Vec<&mut Column> =
            open.iter_mut().map(|part| &mut **part).filter(|part| part.shift.is_empty()).collect();
        part.round(&mut fresh, c, depth.enough)?;
        part.descend(&mut open, c, depth, preconditioner)?;
        let w: Vec<&[f64]> = parts.iter().map(|part| &part.w[..]).collect();
        let products = self.device.pass(self.design, &w, self.accuracy, self.control)?;
        for ((column, part), g) in columns.iter_mut().zip(parts).zip(products) {
            near.iter().zip(&part.centre).for_each(|(&i, centre)| column.centre[i] = *centre);
            column.outcome.steps += part.outcome.steps;
            (column.w, column.b, column.g, column.sigma) = (part.w, part.b, g, part.sigma);
            column.shift = Vec::new();
        }
        Ok(())
    }

    fn envelope(&self, column: &Column) -> Envelope {
        Envelope { loss: self.loss, sigma: column.sigma }
    }

    /// y, weights, centre and g of some rows.
    fn stretch<'b>(&'b self, column: &'b Column, rows: Range<usize>) -> Stretch<'b> {
        // Smooth losses have no centre, and do not ask for it.
        let centre = if column.centre.is_empty() { &column.g } else { &column.centre };
        [self.y, column.weight, centre, &column.g].map(|values| &values[rows.clone()])
    }

    /// Moves b to where Σa = 0; a, S and the objective there. Returns by how much a changed.
    fn look(&self, column: &mut Column, c: f64) -> Vec<f64> {
        self.balance(column, c);
        let (mut a, mut s) = (std::mem::take(&mut column.a), std::mem::take(&mut column.s));
        let (envelope, b, mut change) = (self.envelope(column), column.b, vec![0.0; a.len()]);
        let sums: Vec<[f64; 2]> = (a.par_chunks_mut(CHUNK).zip(s.par_chunks_mut(CHUNK)))
            .zip(change.par_chunks_mut(CHUNK))
            .enumerate()
            .map(|(chunk, ((a, s), change))| {
                let rows = self.stretch(column, chunk * CHUNK..chunk * CHUNK + a.len());
                envelope.vectorised(
                    #[inline(always)]
                    |of| looked(of, rows, c, b, [a, s, change]),
                )
            })
            .collect();
        let [loss, mismatch] = added(&sums);
        (column.a, column.s) = (a, s);
        column.primal = loss + 0.5 * dot(&column.w, &column.w);
        column.mismatch = mismatch;
        change
    }

    /// Moves b to the root of Σa, which falls with it.
    fn balance(&self, column: &mut Column, c: f64) {
        let envelope = self.envelope(column);
        let sums = |b: f64| {
            sum_over(self.y.len(), |rows| {
                let rows = self.stretch(column, rows);
                envelope.vectorised(
                    #[inline(always)]
                    |of| pulls(of, rows, c, b),
                )
            })
        };
        let (_, pull_far, size_far) = column.frozen;
        let scale = self.loss.scale(self.y);
        // What so little adds to the gap does not count.
        let gap = if column.best.0.is_finite() { column.best.0 } else { 0.1 * self.settings.tol * column.scale };
        let enough = UNBALANCED * gap / (column.b.abs() + scale);
        let sums = |b: f64| {
            let [pull, curvature, size] = sums(b);
            let (pull, size) = (pull + pull_far, size + size_far);
            (if pull.abs() <= enough.max(1e-14 * size) { 0.0 } else { pull }, curvature)
        };
        let enough =
            |b: f64, step: f64, width: f64| step <= f64::EPSILON * (b.abs() + scale) || width <= 1e-15 * b.abs();
        column.b = balanced(column.b, scale, sums, enough);
    }

    /// The gap; at the minimum of the envelopes, the next centre. True if a Newton step is due.
    fn judge(&self, column: &mut Column, share: f64) -> bool {
        for (j, error) in column.error.iter_mut().enumerate() {
            *error = column.w[j] - column.image[j] - column.frozen.0[j];
        }
        let inner = 0.5 * dot(&column.error, &column.error);
        let gap = inner + column.mismatch;
        let wanted = self.settings.tol * column.scale;
        column.outcome.steps += 1;
        let halved = gap <= 0.5 * column.best.0;
        column.best = if halved { (gap, 0) } else { (column.best.0, column.best.1 + 1) };
        if gap <= share * wanted {
            column.outcome.status = Status::Converged;
            return false;
        }
        if column.best.1 > PATIENCE || gap.is_nan() {
            column.outcome.status = Status::Stalled;
            return false;
        }
        if !self.is_smooth() && inner <= (0.5 * column.mismatch).max(0.05 * wanted) {
            // A wide band moves far in few steps, a narrow one ends exact.
            column.recentre(if column.mismatch > FAR * wanted { NARROWER } else { LITTLE_NARROWER });
            return !column.shift.is_empty();
        }
        column.since += 1;
        if !self.is_smooth() && column.since > MAX_STEPS && column.sigma > SMOOTHEST * column.widest {
            // So many kinks lie on the way that each step is short: a wider band has fewer.
            column.sigma /= NARROWER;
            (column.since, column.best) = (0, (f64::INFINITY, 0));
            return false;
        }
        true
    }

    /// A Newton step of every column that it is due for, as far as its objective falls.
    fn step(&self, columns: &mut [&mut Column], c: f64, preconditioner: &mut Preconditioner<T>) -> Result<()> {
        let mut columns: Vec<&mut Column> =
            columns.iter_mut().filter(|column| column.due).map(|column| &mut **column).collect();
        if columns.is_empty() {
            return Ok(());
        }
        let Self { device, design, rows, copied, accuracy, control, .. } = *self;
        let equations: Vec<Equation> = columns
            .par_iter()
            .map(|Column { plan, s, error, scale, shift, .. }| Equation {
                plan: *plan,
                s,
                n_active: s.iter().filter(|s| **s > 0.0).count(),
                error,
                pull: shift.iter().map(|(_, shift)| shift).sum(),
                enough: 0.04 * self.settings.tol * scale,
            })
            .collect();
        let directions =
            Directions { device, design, rows, copied, accuracy, control }.all(&equations, preconditioner)?;
        let dw: Vec<&[f64]> = directions.iter().map(|d| &d[..self.design.rank()]).collect();
        let images = self.device.pass(self.design, &dw, self.accuracy, self.control)?;
        columns.par_iter_mut().zip(&directions).zip(images).for_each(|((column, direction), image)| {
            let (&db, dw) = direction.split_last().unwrap_or((&0.0, &[]));
            let t = self.line_search(column, dw, db, &image, c);
            column.w.iter_mut().zip(dw).for_each(|(w, d)| *w += t * d);
            column.g.iter_mut().zip(&image).for_each(|(g, d)| *g += t * d);
            column.b += t * db;
            column.shift = Vec::new();
        });
        Ok(())
    }

    /// The t in [0, 1] near the minimum of the objective along a direction: its slope rises with t.
    fn line_search(&self, column: &Column, dw: &[f64], db: f64, image: &[f64], c: f64) -> f64 {
        let (image_far, pull_far, _) = &column.frozen;
        let (linear, quadratic) = (dot(&column.w, dw) - dot(image_far, dw) - pull_far * db, dot(dw, dw));
        let (envelope, b) = (self.envelope(column), column.b);
        let slope = |t: f64| {
            let [pull] = sum_over(image.len(), |rows| {
                let (image, rows) = (&image[rows.clone()], self.stretch(column, rows));
                envelope.vectorised(
                    #[inline(always)]
                    |of| pull_along(of, rows, c, b, image, db, t),
                )
            });
            linear + t * quadratic - pull
        };
        if column.shift.is_empty() {
            return bracketed(linear - dot(&column.a, image) - db * sums(&column.a).0, slope);
        }
        // A direction from where the segments would have a need not be one of descent.
        let start = slope(0.0);
        if start < 0.0 { bracketed(start, slope) } else { 0.0 }
    }

    /// Recomputes g in f64 and judges every column by code that knows nothing of the steps.
    fn certify(&self, columns: &mut [Column], c: f64) -> Result<Vec<Record>> {
        let w: Vec<&[f64]> = columns.iter().map(|column| &column.w[..]).collect();
        let products = self.device.pass(self.design, &w, Accuracy::Double, self.control)?;
        let weights: Vec<Vec<f64>> = columns
            .par_iter_mut()
            .zip(products)
            .map(|(column, g)| {
                column.g = g;
                column.b = middle_intercept(self.loss, self.y, column.weight, &column.g, column.b);
                self.look(column, c);
                let weight: Vec<f64> = column.weight.iter().map(|w| w * c).collect();
                column.a = feasible(self.loss, self.y, &weight, &column.a);
                weight
            })
            .collect();
        let thetas: Vec<&[f64]> = columns.iter().map(|column| &column.a[..]).collect();
        let images = self.device.pass_back(self.design, &thetas, Accuracy::Double, self.control)?;
        let judged = columns.par_iter_mut().zip(&weights).zip(images).map(|((column, weight), image)| {
            column.image = image;
            let Column { w, b, g, a, image, outcome, .. } = column;
            let claim = FeatureClaim { weight, w, b: *b, f: g, theta: a, image };
            let certificate = certify_features(self.loss, self.y, &claim, self.errors);
            let judged = record(*outcome, certificate, *b, self.settings.tol);
            if judged.certificate.is_finite() && judged.status != Status::Inaccurate {
                return judged;
            }
            // The best constant model, if more is known of it.
            let b = constant_intercept(self.loss, self.y, weight);
            let (zeros, none) = (vec![0.0; self.y.len()], vec![0.0; w.len()]);
            let constant = FeatureClaim { weight, w: &none, b, f: &zeros, theta: &zeros, image: &none };
            let certificate = certify_features(self.loss, self.y, &constant, self.errors);
            let record = record(*outcome, certificate, b, self.settings.tol);
            let is_known = certificate.is_finite() && !judged.certificate.is_finite();
            if record.status != Status::Converged && !is_known {
                return judged;
            }
            *column = self.column((column.plan, column.weight), none, b, zeros.clone(), zeros);
            column.outcome.status = Status::Stalled;
            record
        });
        Ok(judged.collect())
    }
}

/// How far a row is from a kink; ∞ for rows without weight, and losses without kinks.
#[inline(always)]
fn distance(loss: Loss, y: f64, weight: f64, g: f64) -> f64 {
    match loss.kinks(y) {
        Some(k) => {
            let distance = (g - k.kink_low).abs().min((g - k.kink_high).abs());
            if weight > 0.0 { distance } else { f64::INFINITY }
        }
        None => f64::INFINITY,
    }
}

/// a and S of all rows at g + b, by how much a changed, and the sums of the loss and of the mismatch.
#[inline(always)]
fn looked(of: Envelope, rows: Stretch, c: f64, b: f64, [a, s, change]: [&mut [f64]; 3]) -> [f64; 2] {
    let [y, weight, centre, g] = rows;
    let before = a.to_vec();
    fill_in_lanes(
        [y, weight, centre, g, &before],
        [&mut *a, s, change],
        #[inline(always)]
        |[y, w, centre, g, before]| {
            let (a, s) = of.pull_and_curvature(y, c * w, centre, g + b);
            // Rounding is no change: most rows stay at a bound.
            let change = if (a - before).abs() <= UNCHANGED * a.abs() { 0.0 } else { a - before };
            [a, s, change]
        },
    );
    sum_in_lanes(
        [y, weight, g, &*a],
        #[inline(always)]
        |[y, w, g, a]| [c * w * of.loss.value(y, g + b), of.mismatch(y, c * w, a, g + b)],
    )
}

/// Σa, ΣS and Σ|a| at g + b.
#[inline(always)]
fn pulls(of: Envelope, rows: Stretch, c: f64, b: f64) -> [f64; 3] {
    sum_in_lanes(
        rows,
        #[inline(always)]
        |[y, w, centre, g]| {
            let (a, s) = of.pull_and_curvature(y, c * w, centre, g + b);
            [a, s, a.abs()]
        },
    )
}

/// Σ a·(Δg + Δb) at g + b + t(Δg + Δb).
#[inline(always)]
fn pull_along(of: Envelope, rows: Stretch, c: f64, b: f64, dg: &[f64], db: f64, t: f64) -> [f64; 1] {
    let [y, weight, centre, g] = rows;
    sum_in_lanes(
        [y, weight, centre, g, dg],
        #[inline(always)]
        |[y, w, centre, g, dg]| {
            let (a, _) = of.pull_and_curvature(y, c * w, centre, g + b + t * (dg + db));
            [a * (dg + db)]
        },
    )
}

/// Sums over all rows, chunk by chunk on all threads.
fn sum_over<const K: usize>(n: usize, of: impl Fn(Range<usize>) -> [f64; K] + Sync) -> [f64; K] {
    let chunks: Vec<[f64; K]> =
        (0..n.div_ceil(CHUNK)).into_par_iter().map(|chunk| of(chunk * CHUNK..n.min((chunk + 1) * CHUNK))).collect();
    added(&chunks)
}

fn references(columns: &[Vec<f64>]) -> Vec<&[f64]> {
    columns.iter().map(|column| &column[..]).collect()
}

fn added<const K: usize>(parts: &[[f64; K]]) -> [f64; K] {
    let mut sum = [0.0; K];
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    sum
}
