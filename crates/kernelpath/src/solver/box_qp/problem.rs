//! A piecewise-linear loss at one C as a quadratic problem in a box, and points of it.

use crate::kernel::gram::{Gram, padded};
use crate::loss::scalar::Kinks;
use crate::numeric::entry::Entry;
use crate::numeric::simd::{fill_rows, largest, sum_of_rows, sums, vectorise};

/// (P) for a piecewise-linear loss at one C, as its dual box QP
///
/// ```text
/// minimise ½βᵀKβ − Σ ψᵢ(βᵢ)   subject to   loᵢ ≤ βᵢ ≤ hiᵢ,  Σβ = 0
/// ```
///
/// with ψᵢ concave, of slope kink_low on [lo, mid] and kink_high on [mid, hi] (see
/// [`Kinks`](crate::loss::scalar::Kinks)). A row of weight 0 has the box [0, 0]: it is held out, and its f
/// is computed all the same. All vectors are padded with such rows.
pub(crate) struct BoxQp<'a, T> {
    pub gram: &'a Gram<T>,
    pub diagonal: &'a [f64],
    pub lo: Vec<f64>,
    pub mid: Vec<f64>,
    pub hi: Vec<f64>,
    pub kink_low: Vec<f64>,
    pub kink_high: Vec<f64>,
    pub largest_diagonal: f64,
    /// C · Σ w: the scale of the loss term.
    pub total_weight: f64,
}

impl<'a, T: Entry> BoxQp<'a, T> {
    pub fn new(gram: &'a Gram<T>, diagonal: &'a [f64], kinks: &[Kinks], weight: &[f64], c: f64) -> Self {
        let length = padded(gram.n());
        let zeros = || vec![0.0; length];
        let mut qp = Self {
            gram,
            diagonal,
            lo: zeros(),
            mid: zeros(),
            hi: zeros(),
            kink_low: zeros(),
            kink_high: zeros(),
            largest_diagonal: largest(diagonal),
            total_weight: c * weight.iter().sum::<f64>(),
        };
        for (i, (kinks, &w)) in kinks.iter().zip(weight).enumerate() {
            qp.kink_low[i] = kinks.kink_low;
            qp.kink_high[i] = kinks.kink_high;
            qp.set_box(i, c * w, kinks);
        }
        qp
    }

    /// Gives row `i` the box of weight `cw`.
    pub fn set_box(&mut self, i: usize, cw: f64, kinks: &Kinks) {
        self.lo[i] = cw * kinks.lo;
        self.mid[i] = cw * kinks.mid;
        self.hi[i] = cw * kinks.hi;
    }

    /// lo, mid and hi of row `i`.
    pub fn levels(&self, i: usize) -> [f64; 3] {
        [self.lo[i], self.mid[i], self.hi[i]]
    }

    pub fn n(&self) -> usize {
        self.gram.n()
    }

    /// The width of the widest box.
    pub fn width(&self) -> f64 {
        self.hi.iter().zip(&self.lo).map(|(hi, lo)| hi - lo).fold(0.0, f64::max)
    }

    /// The f at which βᵢ may rise, −∞ if it may not.
    #[inline(always)]
    pub fn up(&self, i: usize, beta: f64) -> f64 {
        if beta < self.mid[i] {
            self.kink_low[i]
        } else if beta < self.hi[i] {
            self.kink_high[i]
        } else {
            f64::NEG_INFINITY
        }
    }

    /// The f at which βᵢ may fall, +∞ if it may not.
    #[inline(always)]
    pub fn down(&self, i: usize, beta: f64) -> f64 {
        if beta > self.mid[i] {
            self.kink_high[i]
        } else if beta > self.lo[i] {
            self.kink_low[i]
        } else {
            f64::INFINITY
        }
    }

    /// `up` and `down` of all rows, each minus f.
    pub fn margins(&self, beta: &[f64], f: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut rise, mut fall) = (vec![0.0; beta.len()], vec![0.0; beta.len()]);
        fill_rows(
            [beta, f, &self.lo, &self.mid, &self.hi, &self.kink_low, &self.kink_high],
            [&mut rise, &mut fall],
            #[inline(always)]
            |row| margin(row).into(),
        );
        (rise, fall)
    }

    /// The next level above a value, and (`floor`) below it: where a step must stop.
    #[inline(always)]
    pub fn ceiling(&self, i: usize, beta: f64) -> f64 {
        if beta < self.mid[i] { self.mid[i] } else { self.hi[i] }
    }

    #[inline(always)]
    pub fn floor(&self, i: usize, beta: f64) -> f64 {
        if beta > self.mid[i] { self.mid[i] } else { self.lo[i] }
    }

    /// How many rows stand strictly between two levels.
    pub fn count_inside(&self, beta: &[f64]) -> usize {
        let [count] = sum_of_rows(
            [beta, &self.lo, &self.mid, &self.hi],
            #[inline(always)]
            |[beta, lo, mid, hi]| [if beta > lo && beta < hi && beta != mid { 1.0 } else { 0.0 }],
        );
        count as usize
    }

    /// Whether βᵢ stands strictly between two levels.
    #[inline(always)]
    pub fn is_inside(&self, i: usize, beta: f64) -> bool {
        beta > self.lo[i] && beta < self.hi[i] && beta != self.mid[i]
    }
}

/// [`BoxQp::up`] and [`BoxQp::down`] of a row, each minus f; without branches.
#[inline(always)]
pub(crate) fn margin([beta, f, lo, mid, hi, kink_low, kink_high]: [f64; 7]) -> (f64, f64) {
    let above = if beta < hi { kink_high } else { f64::NEG_INFINITY };
    let below = if beta > lo { kink_low } else { f64::INFINITY };
    (if beta < mid { kink_low } else { above } - f, if beta > mid { kink_high } else { below } - f)
}

/// A point of the dual with its function values: f = Kβ, without the intercept.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub beta: Vec<f64>,
    pub f: Vec<f64>,
    pub b: f64,
    /// Bound on how far rounding may have taken f from Kβ.
    pub noise: f64,
    /// Rows at a level that, by the extrapolated f, want to rise (true) or fall (false).
    pub eager: Vec<(usize, bool)>,
}

/// A value this close to a level is set to it. The distance is relative to the width of the box, or to the largest |β|
/// if no box is that wide: at large C nothing comes near the ends of its box.
const SNAP: f64 = 1e-13;

impl Point {
    /// β = 0.
    pub fn origin(n: usize) -> Self {
        Self { beta: vec![0.0; padded(n)], f: vec![0.0; padded(n)], b: 0.0, noise: 0.0, eager: Vec::new() }
    }

    /// The point for a problem whose boxes are `factor` times as wide. Rows at a level stay exactly at it.
    pub fn scaled<T: Entry>(mut self, qp: &BoxQp<T>, factor: f64) -> Self {
        for (beta, f) in self.beta.iter_mut().zip(&mut self.f) {
            *beta *= factor;
            *f *= factor;
        }
        self.noise *= factor;
        self.restore_sum(qp);
        self
    }

    /// f ← f + Σ δᵢ K_i.
    pub fn add<T: Entry>(&mut self, qp: &BoxQp<T>, rows: &[usize], deltas: &[f64]) {
        qp.gram.add_rows(rows, deltas, &mut self.f);
        if !rows.is_empty() {
            self.noise += f64::EPSILON * (largest(&self.f) + largest(deltas) * qp.largest_diagonal);
        }
    }

    /// Recomputes f = Kβ.
    pub fn refresh<T: Entry>(&mut self, qp: &BoxQp<T>) {
        let rows: Vec<usize> = (0..qp.n()).filter(|&i| self.beta[i] != 0.0).collect();
        let beta: Vec<f64> = rows.iter().map(|&i| self.beta[i]).collect();
        self.f.fill(0.0);
        self.noise = 0.0;
        self.add(qp, &rows, &beta);
    }

    /// Moves values that differ from a level by rounding only onto that level: a row that seems free would pin the
    /// intercept.
    pub fn snap<T: Entry>(&mut self, qp: &BoxQp<T>) {
        let size = largest(&self.beta);
        vectorise(
            #[inline(always)]
            || {
                let (lo, mid, hi) = (&qp.lo[..], &qp.mid[..], &qp.hi[..]);
                for (((beta, &lo), &mid), &hi) in self.beta.iter_mut().zip(lo).zip(mid).zip(hi) {
                    let reach = SNAP * (hi - lo).min(size);
                    for level in [lo, mid, hi] {
                        *beta = if (*beta - level).abs() <= reach { level } else { *beta };
                    }
                }
            },
        );
    }

    /// Restores Σβ = 0 to rounding by moving the rows with the most room, and f with them.
    pub fn restore_sum<T: Entry>(&mut self, qp: &BoxQp<T>) {
        self.snap(qp);
        let (mut surplus, size) = sums(&self.beta);
        let enough = 1e-15 * size;
        if surplus.abs() <= enough {
            return;
        }
        // First rows inside their box move, by half their room at most, so that they stay inside; then whatever can
        // move.
        let (mut changed, mut deltas) = (Vec::new(), Vec::new());
        for (only_inside, share) in [(true, 0.5), (false, 1.0), (false, 1.0)] {
            if surplus.abs() <= enough {
                break;
            }
            let mut candidates: Vec<(f64, usize)> = (0..qp.n())
                .filter(|&i| !only_inside || qp.is_inside(i, self.beta[i]))
                .map(|i| {
                    let beta = self.beta[i];
                    (share * if surplus > 0.0 { beta - qp.floor(i, beta) } else { qp.ceiling(i, beta) - beta }, i)
                })
                .filter(|(room, _)| *room > 0.0)
                .collect();
            let order = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            match candidates.iter().copied().min_by(order) {
                // Usually one row has room for all of the surplus.
                Some(first) if first.0 >= surplus.abs() => candidates = vec![first],
                _ => candidates.sort_unstable_by(order),
            }
            for (room, i) in candidates {
                if surplus.abs() <= enough {
                    break;
                }
                let old = self.beta[i];
                self.beta[i] -= surplus.abs().min(room).copysign(surplus);
                changed.push(i);
                deltas.push(self.beta[i] - old);
                surplus -= old - self.beta[i];
            }
        }
        self.add(qp, &changed, &deltas);
    }
}
