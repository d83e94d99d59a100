//! Sequential minimal optimisation with second-order choice of the pair (Fan, Chen, Lin 2005).
//!
//! A pair (i, j) moves by βᵢ += t, βⱼ −= t. With vᵢ = upᵢ − fᵢ and uⱼ = downⱼ − fⱼ the point is
//! optimal when max v ≤ min u; the first of a pair has the largest v, the second the largest
//! decrease (vᵢ − uⱼ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ).
//!
//! A step is two passes over contiguous rows: choose j; update f and choose the next i. `up` and
//! `down` are ∓∞ where a move is shut, so the passes have no branches and become SIMD.

use crate::error::Result;
use crate::gram::{Entry, LANES};
use crate::observe::Control;
use crate::problem::{BoxQp, Point};
use crate::simd::vectorise;

/// Curvature below which a pair counts as flat: the step is then set by the box.
const FLAT: f64 = 1e-12;

/// Where SMO stopped.
pub(super) struct Report {
    pub steps: usize,
    /// max v − min u at the end; ≤ 0 at the optimum.
    pub violation: f64,
}

/// Takes up to `max_steps` steps, or until the violation is at most `target`.
pub(super) fn run<T: Entry>(
    qp: &BoxQp<T>,
    point: &mut Point,
    max_steps: usize,
    target: f64,
    control: &Control,
) -> Result<Report> {
    let length = point.f.len();
    let mut up: Vec<f64> = (0..length).map(|i| qp.up(i, point.beta[i])).collect();
    let mut down: Vec<f64> = (0..length).map(|i| qp.down(i, point.beta[i])).collect();
    let mut steps = 0;
    loop {
        // Batches, so that an interruption is seen within milliseconds.
        let batch = (max_steps - steps).min(256);
        let report = vectorise(
            #[inline(always)]
            || run_batch(qp, &mut point.beta, &mut point.f, &mut up, &mut down, batch, target),
        );
        steps += report.steps;
        point.noise +=
            f64::EPSILON * (report.steps as f64).sqrt() * point.f.iter().fold(0.0, |a: f64, f| a.max(f.abs()));
        if report.violation <= target || steps >= max_steps || report.steps < batch || control.out_of_time() {
            return Ok(Report { steps, violation: report.violation });
        }
        control.check()?;
    }
}

#[inline(always)]
fn run_batch<T: Entry>(
    qp: &BoxQp<T>,
    beta: &mut [f64],
    f: &mut [f64],
    up: &mut [f64],
    down: &mut [f64],
    max_steps: usize,
    target: f64,
) -> Report {
    let mut first = largest(
        f64::NEG_INFINITY,
        #[inline(always)]
        |block| differences(&up[block..block + LANES], &f[block..block + LANES]),
        f.len(),
    );
    let mut steps = 0;
    loop {
        let (i, v) = first;
        let k_i = qp.gram.row(i);
        let (j, lowest) = choose_second(v, qp.diagonal[i], k_i, qp.diagonal, down, f);
        let violation = v - lowest;
        if violation.is_nan() || violation <= target || steps == max_steps {
            return Report { steps, violation };
        }
        let curvature = (qp.diagonal[i] + qp.diagonal[j] - 2.0 * k_i[j].wide()).max(FLAT);
        let t = (v - (down[j] - f[j])) / curvature;
        let (room_i, room_j) = (qp.ceiling(i, beta[i]) - beta[i], beta[j] - qp.floor(j, beta[j]));
        let t = t.min(room_i).min(room_j);
        // A level is assigned, not approached, so that comparisons with it stay exact.
        beta[i] = if t == room_i { qp.ceiling(i, beta[i]) } else { beta[i] + t };
        beta[j] = if t == room_j { qp.floor(j, beta[j]) } else { beta[j] - t };
        for r in [i, j] {
            up[r] = qp.up(r, beta[r]);
            down[r] = qp.down(r, beta[r]);
        }
        steps += 1;
        let k_j = qp.gram.row(j);
        first = largest(
            f64::NEG_INFINITY,
            #[inline(always)]
            |block| {
                let range = block..block + LANES;
                let (k_i, k_j, f) = (&k_i[range.clone()], &k_j[range.clone()], &mut f[range.clone()]);
                for l in 0..LANES {
                    f[l] += t * (k_i[l].wide() - k_j[l].wide());
                }
                differences(&up[range], f)
            },
            beta.len(),
        );
    }
}

#[inline(always)]
fn differences(a: &[f64], f: &[f64]) -> [f64; LANES] {
    let mut out = [0.0; LANES];
    for l in 0..LANES {
        out[l] = a[l] - f[l];
    }
    out
}

/// Position and value of the largest of the blocks' entries; the first of equals.
#[inline(always)]
fn largest<V: Copy + PartialOrd>(
    lowest: V,
    mut block_values: impl FnMut(usize) -> [V; LANES],
    length: usize,
) -> (usize, V) {
    let mut best = (0, lowest);
    let mut best_values = [lowest; LANES];
    for block in (0..length).step_by(LANES) {
        let values = block_values(block);
        let largest = maximum(lowest, &values);
        if largest > best.1 {
            best = (block, largest);
            best_values = values;
        }
    }
    let lane = best_values.iter().position(|v| *v == best.1).unwrap_or(0);
    (best.0 + lane, best.1)
}

#[inline(always)]
fn maximum<V: Copy + PartialOrd>(lowest: V, values: &[V; LANES]) -> V {
    let mut lanes = [lowest; 16];
    for chunk in values.chunks_exact(16) {
        for l in 0..16 {
            lanes[l] = if chunk[l] > lanes[l] { chunk[l] } else { lanes[l] };
        }
    }
    let mut best = lowest;
    for lane in lanes {
        best = if lane > best { lane } else { best };
    }
    best
}

/// The second of the pair, and min u over all rows.
#[inline(always)]
fn choose_second<T: Entry>(v: f64, k_ii: f64, k_i: &[T], diagonal: &[f64], down: &[f64], f: &[f64]) -> (usize, f64) {
    let mut lowest = [f64::INFINITY; 16];
    // Single precision is enough to choose, and divides twice as fast.
    let (second, _) = largest(
        f32::NEG_INFINITY,
        #[inline(always)]
        |block| {
            let range = block..block + LANES;
            let (k_i, diagonal, down, f) =
                (&k_i[range.clone()], &diagonal[range.clone()], &down[range.clone()], &f[range]);
            let mut gain = [0.0_f32; LANES];
            for start in (0..LANES).step_by(16) {
                for (l, lowest) in lowest.iter_mut().enumerate() {
                    let at = start + l;
                    let u = down[at] - f[at];
                    *lowest = if u < *lowest { u } else { *lowest };
                    let fall = (v - u).max(0.0);
                    let curvature = (k_ii + diagonal[at] - 2.0 * k_i[at].wide()).max(FLAT);
                    let fall = fall as f32;
                    gain[at] = fall * fall / curvature as f32;
                }
            }
            gain
        },
        f.len(),
    );
    (second, lowest.iter().fold(f64::INFINITY, |a, &b| a.min(b)))
}
