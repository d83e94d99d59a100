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
//! by conjugate gradients for all problems as one block, preconditioned by one Cholesky factor of their mean, or by one
//! each where that is cheaper than the passes; only rows with curvature take part. b is moved to where Σa = 0 after each
//! step, so a is dual feasible, and the duality gap is ½‖e‖² plus what a misses of being a slope of the loss. Of a
//! piecewise-linear loss the minimum of the envelopes is the next centre (Rockafellar 1976), until the gap is small: the
//! limit solves the problem itself.

use std::ops::Range;

use faer::Mat;
use rayon::prelude::*;

use crate::certificate::{certify_features, feasible};
use crate::cv::Record;
use crate::design::{Accuracy, Design};
use crate::error::Result;
use crate::ledger::{Plan, record};
use crate::loss::{Loss, best_intercept};
use crate::observe::Control;
use crate::path::rising;
use crate::problem::{Outcome, Settings, Status};
use crate::simd::dot;

use super::cholesky::{Cholesky, Working};
use super::envelope::Envelope;

/// σ of the first envelopes, over C·w and the scale of the targets, and how it grows from centre to centre.
const SIGMA: f64 = 10.0;
const NARROWER: f64 = 5.0;

/// So many times the wanted gap is far from the solution.
const FAR: f64 = 30.0;

/// Of a piecewise-linear loss, one in so many rows, those nearest to a kink, takes part in most steps.
const NEAR: usize = 12;

/// Steps for one centre before the band is widened, and by how much it is at most.
const MAX_STEPS: usize = 25;
const SMOOTHEST: f64 = 1e-3;

/// A line through two solutions is followed no farther than so many times their distance.
const FARTHEST: f64 = 3.0;

/// Newton steps without the gap halving before a problem counts as stalled.
const PATIENCE: usize = 60;

/// A step is solved until ½‖e‖² is so much of what it was.
const STEP_GAP: f64 = 1e-2;

/// Newton steps before all rows are looked at again.
const MAX_NEAR: usize = 60;

/// Conjugate gradients of one step.
const MAX_PASSES: usize = 200;

/// Stands for the curvature in b where no row has any.
const FLOOR: f64 = 1e-6;

/// Rows that one thread works on.
const CHUNK: usize = 8192;

/// What is kept of a plan: per C the record and, where it was run, w.
pub(crate) struct Reduced {
    pub records: Vec<Record>,
    pub w: Vec<Vec<f64>>,
}

/// A problem in work.
#[derive(Clone)]
struct Column<'a> {
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
    /// w − Zᵀa.
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
    outcome: Outcome,
}

/// What conjugate gradients divide by.
struct Preconditioner {
    /// A factor of the mean of all systems, kept as long as it serves.
    shared: Option<Cholesky<f64>>,
    /// Passes of the last step that used it.
    passes: usize,
}

/// The problems of one loss on one set of features.
pub(crate) struct Primal<'a, T> {
    pub design: Design<'a, T>,
    pub loss: Loss,
    pub y: &'a [f64],
    pub settings: Settings,
    /// Of the steps' products; where it does not do, the steps go on in f64.
    pub accuracy: Accuracy,
    pub control: &'a Control,
}

impl<T: Working> Primal<'_, T> {
    /// Solves all plans at every C, from the smallest up.
    pub fn sweep(&self, plans: &[Plan], cs: &[f64]) -> Result<Vec<Reduced>> {
        let nothing = || Reduced { records: vec![Record::NOT_RUN; cs.len()], w: vec![Vec::new(); cs.len()] };
        let mut kept: Vec<Reduced> = plans.iter().map(|_| nothing()).collect();
        let mut preconditioner = Preconditioner { shared: None, passes: 0 };
        let mut before: Option<(f64, Vec<Column>)> = None;
        let mut last: Option<(f64, Vec<Column>)> = None;
        let mut accuracy = self.accuracy;
        for (step, k) in rising(cs).into_iter().enumerate() {
            if step > 0 && self.control.out_of_time() {
                break;
            }
            let c = cs[k];
            let mut columns: Vec<Column> = match (&last, &before) {
                (None, _) => plans.par_iter().map(|plan| self.constant(&plan.weight, c)).collect(),
                (Some((c1, last)), None) => last.par_iter().map(|last| self.scaled(last, c / c1)).collect(),
                (Some((c1, last)), Some((c0, before))) => {
                    let t = if c1 > c0 { (c - c1) / (c1 - c0) } else { 0.0 };
                    let t = if t <= FARTHEST { t } else { 0.0 };
                    last.par_iter().zip(before).map(|(last, before)| self.extrapolated(last, before, t, c)).collect()
                }
            };
            for attempt in 0.. {
                Primal { accuracy, ..*self }.solve(&mut columns, c, &mut preconditioner)?;
                let records = self.certify(&mut columns, c)?;
                let short = records.iter().any(|record| record.status == Status::Stalled);
                if short && attempt < 2 && !self.control.out_of_time() {
                    accuracy = Accuracy::Double; // which larger C's will need, too
                    continue;
                }
                for ((kept, record), column) in kept.iter_mut().zip(records).zip(&columns) {
                    kept.records[k] = record;
                    kept.w[k].clone_from(&column.w);
                }
                break;
            }
            self.control.advance(columns.len());
            before = last.replace((c, columns));
        }
        Ok(kept)
    }

    /// w = 0 with the best constant b, and slopes of the loss there that sum to 0.
    fn constant<'b>(&self, weight: &'b [f64], c: f64) -> Column<'b> {
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
        self.column(weight, vec![0.0; self.design.rank()], b, vec![0.0; n], centre)
    }

    /// The solution at a C so many times as small: all of it but b grows with the boxes.
    fn scaled<'b>(&self, last: &Column<'b>, factor: f64) -> Column<'b> {
        let grown = |values: &[f64]| values.iter().map(|v| v * factor).collect::<Vec<f64>>();
        let centre = if self.is_smooth() { Vec::new() } else { grown(&last.a) };
        self.column(last.weight, grown(&last.w), last.b, grown(&last.g), centre)
    }

    /// The line in C through the last two solutions, or the last one, whichever has the smaller objective.
    fn extrapolated<'b>(&self, last: &Column<'b>, before: &Column<'b>, t: f64, c: f64) -> Column<'b> {
        let line = |a: &[f64], b: &[f64], t: f64| a.iter().zip(b).map(|(a, b)| a + t * (a - b)).collect::<Vec<f64>>();
        let at = |t: f64| {
            let (w, g) = (line(&last.w, &before.w, t), line(&last.g, &before.g, t));
            let b = last.b + t * (last.b - before.b);
            let loss = sum_over(g.len(), |rows| {
                let held_in = rows.filter(|&i| last.weight[i] > 0.0);
                [held_in.map(|i| c * last.weight[i] * self.loss.value(self.y[i], g[i] + b)).sum()]
            })[0];
            (0.5 * dot(&w, &w) + loss, (w, b, g))
        };
        let (stay, go) = (at(0.0), at(t));
        let (t, (w, b, g)) = if go.0 < stay.0 { (t, go.1) } else { (0.0, stay.1) };
        let mut centre = Vec::new();
        if !self.is_smooth() {
            centre = line(&last.a, &before.a, t);
            for (i, a) in centre.iter_mut().enumerate() {
                let ((lo, hi), cw) = (self.loss.domain(self.y[i]), c * last.weight[i]);
                *a = a.clamp(cw * lo, cw * hi);
            }
        }
        self.column(last.weight, w, b, g, centre)
    }

    fn column<'b>(&self, weight: &'b [f64], w: Vec<f64>, b: f64, g: Vec<f64>, centre: Vec<f64>) -> Column<'b> {
        let (n, rank) = (self.y.len(), w.len());
        let outcome = Outcome { status: Status::MaxIter, steps: 0 };
        let (a, s, error, frozen) = (vec![0.0; n], vec![0.0; n], vec![0.0; rank], (vec![0.0; rank], 0.0, 0.0));
        let (primal, mismatch, scale, best) = (0.0, 0.0, 0.0, (f64::INFINITY, 0));
        let (sigma, widest, since, due) = (0.0, 0.0, 0, false); // `solve` sets them
        Column {
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
            error,
            primal,
            mismatch,
            scale,
            frozen,
            best,
            due,
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
    fn solve(&self, columns: &mut [Column], c: f64, preconditioner: &mut Preconditioner) -> Result<()> {
        for column in columns.iter_mut() {
            column.best = (f64::INFINITY, 0);
            column.outcome.status = Status::MaxIter;
            column.widest = self.widest(column, c);
            (column.sigma, column.since) = (column.widest, 0);
        }
        let mut open: Vec<&mut Column> = columns.iter_mut().collect();
        let mut share = self.y.len() / NEAR;
        loop {
            self.round(&mut open, c, 0.5)?;
            open.retain(|column| self.goes_on(column));
            if open.is_empty() {
                return Ok(());
            }
            if self.control.out_of_time() {
                for column in open {
                    column.outcome.status = Status::TimeLimit;
                }
                return Ok(());
            }
            // From the first centre on little moves, and what moves is near a kink.
            let centred = open.iter().all(|column| column.sigma > column.widest);
            let near = if centred { self.near(&open, share) } else { Vec::new() };
            if near.is_empty() || 2 * near.len() > self.y.len() {
                self.step(&mut open, c, preconditioner)?;
            } else {
                for column in &mut open {
                    column.sigma = NARROWER * column.widest;
                }
                self.solve_near(&mut open, &near, c, preconditioner)?;
                share += share / 2;
            }
        }
    }

    fn goes_on(&self, column: &Column) -> bool {
        column.outcome.status == Status::MaxIter && column.outcome.steps < self.settings.max_iter
    }

    /// b, a and S of every column and its gap, which is small enough at this share of the tolerance.
    fn round(&self, columns: &mut [&mut Column], c: f64, share: f64) -> Result<()> {
        columns.par_iter_mut().for_each(|column| self.look(column, c));
        let pulls: Vec<&[f64]> = columns.iter().map(|column| &column.a[..]).collect();
        let images = self.design.transposed_times(&pulls, self.accuracy, self.control)?;
        columns.par_iter_mut().zip(&images).for_each(|(column, image)| {
            column.scale = if column.frozen.2 > 0.0 { column.scale } else { column.primal.abs() };
            column.due = self.judge(column, image, share);
        });
        Ok(())
    }

    /// Rows whose a may change soon: in any column inside a segment, or among the `share` nearest to a kink.
    fn near(&self, columns: &[&mut Column], share: usize) -> Vec<usize> {
        let chosen: Vec<Vec<bool>> = columns
            .par_iter()
            .map(|column| {
                let distance = |i: usize| match self.loss.kinks(self.y[i]) {
                    Some(k) if column.weight[i] > 0.0 => {
                        let g = column.g[i] + column.b;
                        (g - k.kink_low).abs().min((g - k.kink_high).abs())
                    }
                    _ => f64::INFINITY,
                };
                let distances: Vec<f64> = (0..self.y.len()).map(distance).collect();
                let inside = column.s.iter().filter(|s| **s > 0.0).count();
                let wanted = share.max(3 * inside).max(500).min(distances.len() - 1);
                let reach = *distances.clone().select_nth_unstable_by(wanted, f64::total_cmp).1;
                distances.iter().zip(&column.s).map(|(d, s)| *s > 0.0 || *d <= reach && d.is_finite()).collect()
            })
            .collect();
        (0..self.y.len()).filter(|&i| chosen.iter().any(|chosen| chosen[i])).collect()
    }

    /// Minimises with the rows far from a kink frozen: their a is at a bound, and stays there.
    fn solve_near(
        &self,
        columns: &mut [&mut Column],
        near: &[usize],
        c: f64,
        preconditioner: &mut Preconditioner,
    ) -> Result<()> {
        let rank = self.design.rank();
        let pick = |values: &[f64]| near.iter().map(|&i| values[i]).collect::<Vec<f64>>();
        let (gathered, y) = (self.design.gather(near), pick(self.y));
        let part = Primal { design: Design::new(&gathered, near.len(), rank), y: &y, ..*self };
        let weights: Vec<Vec<f64>> = columns.iter().map(|column| pick(column.weight)).collect();
        let mut far: Vec<Vec<f64>> = columns.iter().map(|column| column.a.clone()).collect();
        for far in &mut far {
            for &i in near {
                far[i] = 0.0;
            }
        }
        let far: Vec<&[f64]> = far.iter().map(|far| &far[..]).collect();
        let images = self.design.transposed_times(&far, self.accuracy, self.control)?;
        let mut parts: Vec<Column> = (columns.iter().zip(&weights).zip(&far).zip(images))
            .map(|(((column, weight), far), image)| {
                let (g, centre) = (pick(&column.g), pick(&column.centre));
                let mut part = self.column(weight, column.w.clone(), column.b, g, centre);
                (part.sigma, part.widest) = (column.sigma, column.widest);
                (part.a, part.s) = (pick(&column.a), pick(&column.s));
                part.frozen = (image, far.iter().sum(), far.iter().map(|a| a.abs()).sum());
                part.scale = column.scale;
                part
            })
            .collect();
        let mut open: Vec<&mut Column> = parts.iter_mut().collect();
        for _ in 0..MAX_NEAR {
            part.round(&mut open, c, 0.4)?;
            part.step(&mut open, c, preconditioner)?;
            open.retain(|column| column.outcome.status == Status::MaxIter);
            if open.is_empty() || self.control.out_of_time() {
                break;
            }
        }
        let w: Vec<&[f64]> = parts.iter().map(|part| &part.w[..]).collect();
        let products = self.design.times(&w, self.accuracy, self.control)?;
        for ((column, part), g) in columns.iter_mut().zip(parts).zip(products) {
            near.iter().zip(&part.centre).for_each(|(&i, centre)| column.centre[i] = *centre);
            column.outcome.steps += part.outcome.steps;
            (column.w, column.b, column.g, column.sigma) = (part.w, part.b, g, part.sigma);
        }
        Ok(())
    }

    fn envelope(&self, column: &Column) -> Envelope {
        Envelope { loss: self.loss, sigma: column.sigma }
    }

    /// a and S of row `i` with g + b = `g`.
    #[inline(always)]
    fn bend(&self, column: &Column, c: f64, i: usize, g: f64) -> (f64, f64) {
        let cw = c * column.weight[i];
        if cw <= 0.0 {
            return (0.0, 0.0);
        }
        let centre = if column.centre.is_empty() { 0.0 } else { column.centre[i] };
        self.envelope(column).pull_and_curvature(self.y[i], cw, centre, g)
    }

    /// Moves b to where Σa = 0; a, S and the objective there.
    fn look(&self, column: &mut Column, c: f64) {
        self.balance(column, c);
        let (mut a, mut s) = (std::mem::take(&mut column.a), std::mem::take(&mut column.s));
        let sums: Vec<[f64; 2]> = a
            .par_chunks_mut(CHUNK)
            .zip(s.par_chunks_mut(CHUNK))
            .enumerate()
            .map(|(chunk, (a, s))| {
                let (mut loss, mut mismatch) = (0.0, 0.0);
                for (k, (a, s)) in a.iter_mut().zip(s).enumerate() {
                    let i = chunk * CHUNK + k;
                    let g = column.g[i] + column.b;
                    (*a, *s) = self.bend(column, c, i, g);
                    let cw = c * column.weight[i];
                    if cw > 0.0 {
                        loss += cw * self.loss.value(self.y[i], g);
                        mismatch += self.envelope(column).mismatch(self.y[i], cw, *a, g);
                    }
                }
                [loss, mismatch]
            })
            .collect();
        let [loss, mismatch] = added(&sums);
        (column.a, column.s) = (a, s);
        column.primal = loss + 0.5 * dot(&column.w, &column.w);
        column.mismatch = mismatch;
    }

    /// The root of Σa, which falls with b: Newton's method between bounds.
    fn balance(&self, column: &mut Column, c: f64) {
        let n = self.y.len();
        let sums = |b: f64| {
            sum_over(n, |rows| {
                let mut sums = [0.0; 3];
                for i in rows {
                    let (a, s) = self.bend(column, c, i, column.g[i] + b);
                    sums[0] += a;
                    sums[1] += s;
                    sums[2] += a.abs();
                }
                sums
            })
        };
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut reach = self.loss.scale(self.y);
        let mut b = column.b;
        for attempt in 0..100 {
            let [pull, curvature, size] = sums(b);
            let (pull, size) = (pull + column.frozen.1, size + column.frozen.2);
            if pull.abs() <= 1e-14 * size {
                break;
            }
            (low, high) = if pull > 0.0 { (b, high) } else { (low, b) };
            if high - low <= 1e-15 * b.abs() {
                break;
            }
            let newton = b + pull / curvature;
            b = if curvature > 0.0 && low < newton && newton < high && attempt % 4 != 3 {
                newton
            } else if low.is_finite() && high.is_finite() {
                0.5 * (low + high)
            } else {
                reach *= 2.0;
                b + reach.copysign(pull)
            };
        }
        column.b = b;
    }

    /// The gap; at the minimum of the envelopes, the next centre. True if a Newton step is due.
    fn judge(&self, column: &mut Column, image: &[f64], share: f64) -> bool {
        for (j, error) in column.error.iter_mut().enumerate() {
            *error = column.w[j] - image[j] - column.frozen.0[j];
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
            column.sigma *= if column.mismatch > FAR * wanted { NARROWER } else { 2.0 };
            column.since = 0;
            column.centre.copy_from_slice(&column.a);
            return false;
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
    fn step(&self, columns: &mut [&mut Column], c: f64, preconditioner: &mut Preconditioner) -> Result<()> {
        let mut columns: Vec<&mut Column> =
            columns.iter_mut().filter(|column| column.due).map(|column| &mut **column).collect();
        if columns.is_empty() {
            return Ok(());
        }
        let directions = self.directions(&columns, preconditioner)?;
        let dw: Vec<&[f64]> = directions.iter().map(|d| &d[..self.design.rank()]).collect();
        let images = self.design.times(&dw, self.accuracy, self.control)?;
        columns.par_iter_mut().zip(&directions).zip(images).for_each(|((column, direction), image)| {
            let (&db, dw) = direction.split_last().unwrap_or((&0.0, &[]));
            let t = self.line_search(column, dw, db, &image, c);
            column.w.iter_mut().zip(dw).for_each(|(w, d)| *w += t * d);
            column.g.iter_mut().zip(&image).for_each(|(g, d)| *g += t * d);
            column.b += t * db;
        });
        Ok(())
    }

    /// The t in (0, 1] near the minimum of the objective along a direction: its slope rises with t.
    fn line_search(&self, column: &Column, dw: &[f64], db: f64, image: &[f64], c: f64) -> f64 {
        let (image_far, pull_far, _) = &column.frozen;
        let (linear, quadratic) = (dot(&column.w, dw) - dot(image_far, dw) - pull_far * db, dot(dw, dw));
        let slope = |t: f64| {
            let pull = sum_over(image.len(), |rows| {
                let pull = |i: usize| {
                    let dg = image[i] + db;
                    self.bend(column, c, i, column.g[i] + column.b + t * dg).0 * dg
                };
                [rows.map(pull).sum()]
            })[0];
            linear + t * quadratic - pull
        };
        let start = linear - (0..image.len()).map(|i| column.a[i] * (image[i] + db)).sum::<f64>();
        let close = 0.1 * start.abs();
        let (mut low, mut high) = ((0.0, start), (1.0, slope(1.0)));
        if high.1 <= close {
            return 1.0;
        }
        // Where a secant falls near an end, the middle.
        let mut t = 0.5;
        for _ in 0..30 {
            let secant = low.0 - low.1 * (high.0 - low.0) / (high.1 - low.1);
            let width = high.0 - low.0;
            t = secant.clamp(low.0 + 0.1 * width, high.0 - 0.1 * width);
            let here = slope(t);
            if here.abs() <= close {
                break;
            }
            if here < 0.0 { low = (t, here) } else { high = (t, here) }
        }
        t
    }

    /// (Δw, Δb) of every column.
    fn directions(&self, columns: &[&mut Column], preconditioner: &mut Preconditioner) -> Result<Vec<Vec<f64>>> {
        let (n, rank) = (self.design.n(), self.design.rank());
        let mean: Vec<f64> = (0..n)
            .into_par_iter()
            .map(|i| columns.iter().map(|column| column.s[i]).sum::<f64>() / columns.len() as f64)
            .collect();
        let active: Vec<usize> = (0..n).filter(|&i| mean[i] > 0.0).collect();
        // In operations, those in f64 counted twice, and what it takes to start a pass.
        let pass = 4 * active.len() * rank * columns.len() + 1_000_000;
        let factor = |rows: usize| 2 * rows * rank * rank + rank * rank * rank;
        let own: usize = columns.iter().map(|c| factor(c.s.iter().filter(|s| **s > 0.0).count())).sum();
        let spent = preconditioner.passes * pass;
        let own = if spent > own {
            columns.par_iter().map(|column| self.factor(&column.s)).collect::<Result<Vec<_>>>()?
        } else {
            if preconditioner.shared.is_none() || spent > factor(active.len()) {
                preconditioner.shared = Some(self.factor(&mean)?);
            }
            Vec::new()
        };
        let few = 4 * active.len() < 3 * n;
        let gathered = if few { self.design.gather(&active) } else { Vec::new() };
        let design = if few { Design::new(&gathered, active.len(), rank) } else { self.design };
        let curvature =
            |column: &&mut Column| if few { active.iter().map(|&i| column.s[i]).collect() } else { column.s.clone() };
        let mut systems: Vec<System> = columns
            .iter()
            .map(|column| {
                let wanted = 0.02 * self.settings.tol * column.scale;
                System::new(&column.error, curvature(column), wanted)
            })
            .collect();
        for (system, factor) in systems.iter_mut().zip(&own) {
            system.factor = Some(factor);
        }
        let mut passes = 0;
        let mut open: Vec<&mut System> = systems.iter_mut().collect();
        while passes < MAX_PASSES {
            let mut block = Mat::<f64>::from_fn(rank + 1, open.len(), |j, c| open[c].residual[j]);
            if let (Some(shared), true) = (&preconditioner.shared, own.is_empty()) {
                shared.solve(block.as_mut());
            }
            for (c, system) in open.iter_mut().enumerate() {
                if let Some(factor) = system.factor {
                    factor.solve(block.as_mut().subcols_mut(c, 1));
                }
                system.aim(block.col_as_slice(c));
            }
            open.retain(|system| !system.done);
            if open.is_empty() {
                break;
            }
            let searches: Vec<&[f64]> = open.iter().map(|system| &system.search[..rank]).collect();
            let mut images = design.times(&searches, self.accuracy, self.control)?;
            let sums: Vec<f64> = images
                .par_iter_mut()
                .zip(&open)
                .map(|(image, system)| {
                    let shift = system.search[rank];
                    image.iter_mut().zip(&system.curvature).for_each(|(u, s)| *u = s * (*u + shift));
                    image.iter().sum()
                })
                .collect();
            let scaled: Vec<&[f64]> = images.iter().map(|image| &image[..]).collect();
            let products = design.transposed_times(&scaled, self.accuracy, self.control)?;
            for ((system, product), sum) in open.iter_mut().zip(products).zip(sums) {
                system.advance(product, sum);
            }
            passes += 1;
        }
        if own.is_empty() {
            preconditioner.passes = passes;
        }
        Ok(systems.into_iter().map(|system| system.direction).collect())
    }

    /// Cholesky factor of [I 0; 0 0] + [Z 1]ᵀ S [Z 1].
    fn factor(&self, s: &[f64]) -> Result<Cholesky<f64>> {
        let rank = self.design.rank();
        let curvature = self.design.curvature(s, self.control)?;
        Cholesky::new(rank + 1, 0.0, self.control, |q, column| {
            column.copy_from_slice(&curvature.col_as_slice(q)[q..]);
            column[0] += if q < rank { 1.0 } else { FLOOR };
        })
    }

    /// Recomputes g in f64 and judges every column by code that knows nothing of the steps.
    fn certify(&self, columns: &mut [Column], c: f64) -> Result<Vec<Record>> {
        let w: Vec<&[f64]> = columns.iter().map(|column| &column.w[..]).collect();
        let products = self.design.times(&w, Accuracy::Double, self.control)?;
        let proofs: Vec<(Vec<f64>, Vec<f64>)> = columns
            .par_iter_mut()
            .zip(products)
            .map(|(column, g)| {
                column.g = g;
                self.look(column, c);
                let weight: Vec<f64> = column.weight.iter().map(|w| w * c).collect();
                let theta = feasible(self.loss, self.y, &weight, &column.a);
                (weight, theta)
            })
            .collect();
        let thetas: Vec<&[f64]> = proofs.iter().map(|(_, theta)| &theta[..]).collect();
        let images = self.design.transposed_times(&thetas, Accuracy::Double, self.control)?;
        let judged = columns.par_iter().zip(&proofs).zip(&images).map(|((column, (weight, theta)), image)| {
            let Column { w, b, g, outcome, .. } = column;
            let certificate = certify_features(self.loss, self.y, weight, w, *b, g, theta, image);
            record(*outcome, certificate, *b, self.settings.tol)
        });
        Ok(judged.collect())
    }
}

/// Conjugate gradients on one system.
struct System<'a> {
    /// A preconditioner of its own.
    factor: Option<&'a Cholesky<f64>>,
    curvature: Vec<f64>,
    /// Small enough, for ‖residual‖².
    enough: f64,
    direction: Vec<f64>,
    residual: Vec<f64>,
    search: Vec<f64>,
    energy: f64,
    done: bool,
}

impl System<'_> {
    fn new(error: &[f64], curvature: Vec<f64>, wanted: f64) -> Self {
        let mut residual: Vec<f64> = error.iter().map(|e| -e).collect();
        residual.push(0.0);
        let enough = (STEP_GAP * dot(error, error)).max(2.0 * wanted);
        let direction = vec![0.0; residual.len()];
        Self { factor: None, curvature, enough, direction, residual, search: Vec::new(), energy: 0.0, done: false }
    }

    /// The next search direction, from the preconditioned residual, unless the residual is small enough.
    fn aim(&mut self, preconditioned: &[f64]) {
        let energy = dot(&self.residual, preconditioned);
        let begun = !self.search.is_empty();
        if (begun && dot(&self.residual, &self.residual) <= self.enough) || !(energy > 0.0 && energy.is_finite()) {
            self.done = true;
            return;
        }
        if begun {
            let keep = energy / self.energy;
            self.search.iter_mut().zip(preconditioned).for_each(|(p, z)| *p = z + keep * *p);
        } else {
            self.search = preconditioned.to_vec();
        }
        self.energy = energy;
    }

    /// Moves along the search direction p, given ZᵀS(Zp + p_b) and the sum over rows of S(Zp + p_b).
    fn advance(&mut self, mut product: Vec<f64>, sum: f64) {
        let (&shift, search) = self.search.split_last().unwrap_or((&0.0, &[]));
        product.iter_mut().zip(search).for_each(|(product, p)| *product += p);
        product.push(sum + FLOOR * shift);
        let t = self.energy / dot(&self.search, &product);
        if !(t > 0.0 && t.is_finite()) {
            self.done = true; // indefinite to rounding: what there is must do
            return;
        }
        self.direction.iter_mut().zip(&self.search).for_each(|(d, p)| *d += t * p);
        self.residual.iter_mut().zip(&product).for_each(|(r, p)| *r -= t * p);
    }
}

/// Sums over all rows, chunk by chunk on all threads.
fn sum_over<const K: usize>(n: usize, of: impl Fn(Range<usize>) -> [f64; K] + Sync) -> [f64; K] {
    let chunks: Vec<[f64; K]> =
        (0..n.div_ceil(CHUNK)).into_par_iter().map(|chunk| of(chunk * CHUNK..n.min((chunk + 1) * CHUNK))).collect();
    added(&chunks)
}

fn added<const K: usize>(parts: &[[f64; K]]) -> [f64; K] {
    let mut sum = [0.0; K];
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    sum
}
