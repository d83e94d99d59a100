//! Sequential minimal optimisation with second-order choice of the pair (Fan, Chen, Lin 2005).
//!
//! A pair (i, j) moves by βᵢ += t, βⱼ −= t. With vᵢ = upᵢ − fᵢ and uⱼ = downⱼ − fⱼ the point is
//! optimal when max v ≤ min u; the first of a pair has the largest v, the second the largest
//! decrease (vᵢ − uⱼ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ).
//!
//! A step is two passes over contiguous rows: choose j; update f and choose the next i. `up` and
//! `down` are ∓∞ where a move is shut, so the passes have no branches and become SIMD.

use std::ops::RangeInclusive;

use crate::error::Result;
use crate::kernel::gram::PADDING;
use crate::numeric::cholesky::Working;
use crate::numeric::entry::Entry;
use crate::numeric::simd::{largest, vectorise};
use crate::observe::Control;
use crate::solver::box_qp::problem::{BoxQp, Point};

/// Curvature below which a pair counts as flat, relative to the largest entry on the diagonal: the step is then set by the
/// box.
const FLAT: f64 = 1e-12;

/// Where SMO stopped.
pub(crate) struct Report {
    pub steps: usize,
    /// max v − min u at the end; ≤ 0 at the optimum.
    pub violation: f64,
}

/// Steps between two looks at the clock.
const BATCH: usize = 256;

/// Single precision knows f well enough while the violation is larger than this share of the largest f or kink.
const ROUGH: f64 = 2e-5;

/// Scales of f that single precision can hold, together with the changes of f that matter.
const IN_SINGLE: RangeInclusive<f64> = 1e-25..=1e25;

/// The buffers that SMO works in, kept from one run to the next.
#[derive(Default)]
pub(crate) struct Workspace {
    single: Rows<f32>,
    double: Rows<f64>,
}

/// Takes up to `max_steps` steps, or until the violation is at most `target`. The steps are in single precision while
/// that is good enough, then in double. f is recomputed from what β changed by.
pub(crate) fn run<T: Working>(
    qp: &BoxQp<T>,
    point: &mut Point,
    workspace: &mut Workspace,
    max_steps: usize,
    target: f64,
    control: &Control,
) -> Result<Report> {
    let scale = largest(&point.f).max(largest(&qp.kink_low)).max(largest(&qp.kink_high));
    let rough = ROUGH * scale;
    let mut steps = 0;
    if rough > target && IN_SINGLE.contains(&scale) {
        workspace.single.fill(qp, point, scale);
        let report = workspace.single.run(qp, point, max_steps, rough, control)?;
        if report.violation > rough || report.steps == max_steps {
            return Ok(report);
        }
        steps = report.steps;
    }
    workspace.double.fill(qp, point, scale);
    let report = workspace.double.run(qp, point, max_steps - steps, target, control)?;
    Ok(Report { steps: steps + report.steps, ..report })
}

/// What SMO knows of the rows, in the precision it works in.
#[derive(Default)]
struct Rows<F> {
    f: Vec<F>,
    up: Vec<F>,
    down: Vec<F>,
    diagonal: Vec<F>,
    /// What each row offers as the first of a pair (`v`), and as the second (`gain`).
    v: Vec<F>,
    gain: Vec<f32>,
    /// f is multiplied by this before its squares are compared: with targets far from 1 the squares would overflow or
    /// vanish.
    unit: F,
    /// The same for curvatures, and the curvature of a flat pair.
    unit_of_curvature: F,
    flat: f64,
    /// β before a batch of steps.
    before: Vec<f64>,
}

impl<F: Working> Rows<F> {
    fn fill<T: Entry>(&mut self, qp: &BoxQp<T>, point: &Point, scale: f64) {
        let length = point.f.len();
        self.unit = F::narrow(1.0 / scale.max(f64::MIN_POSITIVE));
        let largest = qp.largest_diagonal.max(f64::MIN_POSITIVE);
        (self.unit_of_curvature, self.flat) = (F::narrow(1.0 / largest), (FLAT * largest).max(f64::MIN_POSITIVE));
        let (up, down) = qp.margins(&point.beta, &vec![0.0; length]);
        let known = [(&mut self.up, &up[..]), (&mut self.down, &down), (&mut self.f, &point.f)];
        for (own, values) in known.into_iter().chain([(&mut self.diagonal, qp.diagonal)]) {
            own.clear();
            own.extend(values.iter().map(|value| F::narrow(*value)));
        }
        self.v.resize(length, F::default());
        self.gain.resize(length, 0.0);
    }

    /// Takes batches of steps. After each batch, f is recomputed from what β changed by.
    fn run<T: Entry>(
        &mut self,
        qp: &BoxQp<T>,
        point: &mut Point,
        max_steps: usize,
        target: f64,
        control: &Control,
    ) -> Result<Report> {
        let mut steps = 0;
        loop {
            self.before.clone_from(&point.beta);
            let most = (max_steps - steps).min(BATCH);
            let report = vectorise(
                #[inline(always)]
                || self.batch(qp, &mut point.beta, most, target),
            );
            steps += report.steps;
            let changed: Vec<usize> = (0..qp.n()).filter(|&i| point.beta[i] != self.before[i]).collect();
            let deltas: Vec<f64> = changed.iter().map(|&i| point.beta[i] - self.before[i]).collect();
            point.add(qp, &changed, &deltas);
            if report.violation <= target || steps >= max_steps || report.steps < most || control.out_of_time() {
                return Ok(Report { steps, ..report });
            }
            control.check()?;
            self.f.iter_mut().zip(&point.f).for_each(|(own, f)| *own = F::narrow(*f));
        }
    }

    #[inline(always)]
    fn batch<T: Entry>(&mut self, qp: &BoxQp<T>, beta: &mut [f64], max_steps: usize, target: f64) -> Report {
        let any = qp.gram.row(0);
        let mut first = self.move_and_choose_first(0.0, any, any);
        let mut steps = 0;
        loop {
            let (i, v) = first;
            // If f is NaN in every row, the choice falls on the padding.
            if i >= qp.n() {
                return Report { steps, violation: f64::NAN };
            }
            let k_i = qp.gram.row(i);
            let (j, lowest) = self.choose_second(i, v, k_i);
            let violation = v.wide() - lowest;
            if violation.is_nan() || violation <= target || steps == max_steps || j >= qp.n() {
                return Report { steps, violation };
            }
            let curvature = (qp.diagonal[i] + qp.diagonal[j] - 2.0 * k_i[j].wide()).max(self.flat);
            let t = (v.wide() - (self.down[j].wide() - self.f[j].wide())) / curvature;
            let (room_i, room_j) = (qp.ceiling(i, beta[i]) - beta[i], beta[j] - qp.floor(j, beta[j]));
            let t = t.min(room_i).min(room_j);
            // A level is assigned, not approached, so that comparisons with it stay exact.
            beta[i] = if t == room_i { qp.ceiling(i, beta[i]) } else { beta[i] + t };
            beta[j] = if t == room_j { qp.floor(j, beta[j]) } else { beta[j] - t };
            for r in [i, j] {
                self.up[r] = F::narrow(qp.up(r, beta[r]));
                self.down[r] = F::narrow(qp.down(r, beta[r]));
            }
            steps += 1;
            first = self.move_and_choose_first(t, k_i, qp.gram.row(j));
        }
    }

    /// f ← f + t(K_i − K_j), and the first of the next pair: the row of the largest v.
    #[inline(always)]
    fn move_and_choose_first<T: Entry>(&mut self, t: f64, k_i: &[T], k_j: &[T]) -> (usize, F) {
        let t = F::narrow(t);
        let (k_i, k_j, up) =
            (k_i.as_chunks::<PADDING>().0, k_j.as_chunks::<PADDING>().0, self.up.as_chunks::<PADDING>().0);
        let (f, blocks) = (self.f.as_chunks_mut::<PADDING>().0, self.v.as_chunks_mut::<PADDING>().0);
        let mut largest = [F::narrow(f64::NEG_INFINITY); RUNNING_LANES];
        for at in 0..blocks.len() {
            let (k_i, k_j, up, f, v) = (&k_i[at], &k_j[at], &up[at], &mut f[at], &mut blocks[at]);
            for l in 0..PADDING {
                f[l] += t * (F::narrow(k_i[l].wide()) - F::narrow(k_j[l].wide()));
                v[l] = up[l] - f[l];
            }
            raise(&mut largest, v);
        }
        let best = greatest(&largest);
        (position(&self.v, best), best)
    }

    /// The second of the pair, and min u over all rows.
    #[inline(always)]
    fn choose_second<T: Entry>(&mut self, i: usize, v: F, k_i: &[T]) -> (usize, f64) {
        let (k_ii, unit, unit_of_curvature) = (self.diagonal[i], self.unit, self.unit_of_curvature);
        let (k_i, diagonal) = (k_i.as_chunks::<PADDING>().0, self.diagonal.as_chunks::<PADDING>().0);
        let (down, f) = (self.down.as_chunks::<PADDING>().0, self.f.as_chunks::<PADDING>().0);
        let blocks = self.gain.as_chunks_mut::<PADDING>().0;
        let mut largest = [f32::NEG_INFINITY; RUNNING_LANES];
        // (Kept as the largest −u.)
        let mut lowest = [F::narrow(f64::NEG_INFINITY); RUNNING_LANES];
        for at in 0..blocks.len() {
            let (k_i, diagonal, down, f, gain) = (&k_i[at], &diagonal[at], &down[at], &f[at], &mut blocks[at]);
            let mut minus_u = [F::default(); PADDING];
            for l in 0..PADDING {
                minus_u[l] = f[l] - down[l];
                let k = F::narrow(k_i[l].wide());
                // Single precision is enough to choose, and divides twice as fast.
                let fall = f32::narrow(((v + minus_u[l]) * unit).wide()).max(0.0);
                let curvature = (k_ii + diagonal[l] - (k + k)) * unit_of_curvature;
                let curvature = f32::narrow(curvature.wide()).max(FLAT as f32);
                gain[l] = fall * fall / curvature;
            }
            raise(&mut lowest, &minus_u);
            raise(&mut largest, gain);
        }
        (position(&self.gain, greatest(&largest)), -greatest(&lowest).wide())
    }
}

/// Lanes of a running maximum: few enough to stay in registers.
const RUNNING_LANES: usize = 16;

#[inline(always)]
fn raise<V: Copy + PartialOrd>(largest: &mut [V; RUNNING_LANES], values: &[V; PADDING]) {
    for part in values.as_chunks::<RUNNING_LANES>().0 {
        for l in 0..RUNNING_LANES {
            largest[l] = if part[l] > largest[l] { part[l] } else { largest[l] };
        }
    }
}

#[inline(always)]
fn greatest<V: Copy + PartialOrd>(values: &[V; RUNNING_LANES]) -> V {
    values.iter().copied().fold(values[0], |a, b| if b > a { b } else { a })
}

/// The first position of a value; 0 if it does not occur.
#[inline(always)]
fn position<V: Copy + PartialEq>(values: &[V], value: V) -> usize {
    for (at, block) in values.as_chunks::<PADDING>().0.iter().enumerate() {
        let mut found = false;
        for v in block {
            found |= *v == value;
        }
        if found {
            return at * PADDING + block.iter().position(|v| *v == value).unwrap_or(0);
        }
    }
    0
}
