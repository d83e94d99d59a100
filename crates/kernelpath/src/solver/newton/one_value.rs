//! A loss of one value per row on a Gram matrix, as Newton's method sees it: θ = C w a(f + b), S = C w L″(f + b).
//!
//! Each row is linearised at the f where its loss is nearest to both its f and its β ([`Loss::nearest`]).

use crate::certify::exact::Shared;
use crate::certify::record::Settings;
use crate::error::Result;
use crate::loss::intercept::best_intercept;
use crate::numeric::cholesky::Working;
use crate::numeric::simd::{dot, within};
use crate::observe::Control;
use crate::solver::engine::{LeftOutRows, Whole};
use crate::solver::newton::precondition::Preconditioners;
use crate::solver::newton::smooth::{Column, CurvatureRoot, Direction, Smooth, System};

/// S½ of a loss of one value per row.
impl CurvatureRoot for Vec<f64> {
    fn times(&self, v: &[f64]) -> Vec<f64> {
        self.iter().zip(v).map(|(s, v)| s * v).collect()
    }

    fn transposed_times(&self, f: &[f64]) -> Vec<f64> {
        self.times(f)
    }
}

impl<T: Working> Smooth for Shared<'_, T> {
    type Root = Vec<f64>;
    type Preconditioners = Preconditioners;

    const STEP_GAP: f64 = 1e-3;
    const LAST_GAP: f64 = 0.04;
    const REMEMBERS: usize = 3;

    fn settings(&self) -> Settings {
        self.settings
    }

    fn largest_diagonal(&self) -> f64 {
        self.diagonal[..self.gram.n()].iter().fold(0.0, |a, d| a.max(*d))
    }

    fn preconditioners(&self, control: &Control) -> Result<Preconditioners> {
        Preconditioners::new(self.gram, control)
    }

    fn constant(&self, weight: &[f64]) -> Vec<f64> {
        vec![best_intercept(self.loss, &self.y, weight, &vec![0.0; self.y.len()], 0.0)]
    }

    fn best_intercepts(&self, column: &Column, _: f64) -> Vec<f64> {
        vec![best_intercept(self.loss, &self.y, &column.weight, &column.f, column.b[0])]
    }

    fn primal(&self, column: &Column, c: f64) -> f64 {
        let Self { loss, y, .. } = self;
        let b = column.b[0];
        let [primal] = loss.sum(
            [y, &column.weight, &column.beta, &column.f],
            #[inline(always)]
            |loss, [y, w, beta, f]| [c * w * loss.value(y, f + b) + 0.5 * beta * f],
        );
        primal
    }

    fn mismatch(&self, column: &Column, direction: &Direction, c: f64, t: f64) -> f64 {
        let [mismatch, _] = mismatch_and_loss(self, column, (&direction.beta, &direction.f, direction.b[0]), c, t);
        mismatch
    }

    fn pull(&self, column: &Column, direction: &Direction, c: f64, t: f64) -> f64 {
        let Self { loss, y, .. } = self;
        let (b, d_b) = (column.b[0], direction.b[0]);
        let [pull] = loss.sum(
            [y, &column.weight, &column.f, &direction.f],
            #[inline(always)]
            |loss, [y, w, f, d_f]| {
                let step = d_f + d_b;
                [w * loss.pull(y, f + b + t * step) * step]
            },
        );
        c * pull
    }

    fn measure(&self, column: &mut Column, c: f64) {
        let [mismatch, loss] = mismatch_and_loss(self, column, (&column.beta, &column.f, column.b[0]), c, 0.0);
        column.mismatch = mismatch;
        column.primal = 0.5 * dot(&column.beta, &column.f) + loss;
    }

    /// Judges the column by its mismatch so far. If the gap is small enough, brings β into the domain of the dual with
    /// Σβ = 0, and f along with it. (With a larger gap, this would throw Newton back.)
    fn find_gap(&self, column: &mut Column, c: f64, tol: f64) {
        column.gap = relative(column);
        for (i, beta) in column.beta.iter_mut().enumerate() {
            let cw = c * column.weight[i];
            if cw > 0.0 {
                let (lo, hi) = self.loss.domain(self.y[i]);
                let inside = within(*beta, cw * lo, cw * hi);
                if (inside - *beta).abs() <= 1e-12 * cw {
                    *beta = inside; // changes f by less than its rounding error
                }
            }
        }
        if column.gap > tol || column.gap.is_nan() {
            return;
        }
        let Some((rows, values)) = corrections(self, column, c) else {
            column.gap = f64::INFINITY;
            return;
        };
        let mut candidate = column.clone();
        let deltas: Vec<f64> = rows.iter().zip(&values).map(|(&i, value)| value - column.beta[i]).collect();
        for (&i, value) in rows.iter().zip(values) {
            candidate.beta[i] = value;
        }
        self.gram.add_rows(&rows, &deltas, &mut candidate.f);
        self.measure(&mut candidate, c);
        column.gap = relative(&candidate);
        if column.gap <= tol {
            column.beta = candidate.beta;
            column.f = candidate.f;
        }
    }

    fn linearised(&self, column: &Column, c: f64) -> (Vec<f64>, Vec<f64>) {
        let Self { loss, y, .. } = self;
        let n = y.len();
        let (mut root, mut theta) = (vec![0.0; n], vec![0.0; n]);
        // A floor on the curvature: b would have no equation if a corner of the loss hid the curvature of every row.
        let bound = loss.curvature_bound().unwrap_or(1.0);
        let floor = if column.majorise { bound } else { 1e-9 * bound };
        let (b, majorise) = (column.b[0], column.majorise);
        loss.fill(
            [y, &column.weight, &column.beta, &column.f],
            [&mut root, &mut theta],
            #[inline(always)]
            |loss, [y, w, beta, f]| {
                let (cw, g) = (c * w, f + b);
                let at = if majorise || cw <= 0.0 { g } else { loss.nearest(y, g, beta / cw) };
                let curvature = loss.curvature(y, at).max(floor);
                let slope = cw * (loss.pull(y, at) - curvature * (g - at));
                if cw > 0.0 { [(cw * curvature).sqrt(), slope] } else { [0.0, 0.0] }
            },
        );
        (root, theta)
    }

    fn directions(
        &self,
        preconditioners: &mut Preconditioners,
        systems: &[System<Vec<f64>>],
        is_first: bool,
        control: &Control,
    ) -> Result<Vec<Direction>> {
        preconditioners.directions(self.gram, systems, is_first, control)
    }

    fn without(&self, whole: &Whole, rows: &LeftOutRows, u: usize) -> Result<Column> {
        let (mut beta, mut f) = (rows.beta(whole, u), rows.f(whole, u));
        let change = beta[u] * (rows.share(u) - 1.0);
        beta[u] += change;
        self.gram.add_rows(&[u], &[change], &mut f);
        Ok(Column::new(rows.without(u).into(), beta, f, vec![whole.b]))
    }
}

/// The rows to change, and their new values, that make β dual feasible; `None` if no row has room for what Σβ
/// misses.
fn corrections<T>(shared: &Shared<T>, column: &Column, c: f64) -> Option<(Vec<usize>, Vec<f64>)> {
    let Shared { loss, y, .. } = shared;
    let bounds = |i: usize| {
        let (lo, hi) = loss.domain(y[i]);
        let cw = c * column.weight[i];
        if cw > 0.0 { (cw * lo, cw * hi) } else { (0.0, 0.0) }
    };
    let mut changed: Vec<(usize, f64)> = Vec::new();
    let (mut surplus, mut size) = (0.0, 0.0);
    let mut roomiest = (0.0, 0);
    for (i, &beta) in column.beta.iter().enumerate() {
        let (lo, hi) = bounds(i);
        let inside = within(beta, lo, hi);
        surplus += inside;
        size += inside.abs();
        if inside == beta {
            let room = (beta - lo).min(hi - beta);
            let room = if room.is_finite() { room } else { c * column.weight[i] };
            if room > roomiest.0 {
                roomiest = (room, i);
            }
        } else {
            changed.push((i, inside));
        }
    }
    // What Σβ misses goes to the row with the most room.
    if surplus.abs() > 1e-15 * size {
        if surplus.abs() > 0.5 * roomiest.0 {
            return None;
        }
        changed.push((roomiest.1, column.beta[roomiest.1] - surplus));
    }
    Some(changed.into_iter().unzip())
}

/// The gap, relative to the larger of the primal and the dual objective.
fn relative(column: &Column) -> f64 {
    let &Column { primal, mismatch, .. } = column;
    let scale = primal.abs().max((primal - mismatch).abs());
    if scale > 0.0 { mismatch / scale } else { 0.0 }
}

/// The sum of the rows' Fenchel–Young terms, t of the way along a direction in β, f and b, and the sum of their losses.
/// To the first sum, a β outside the domain of the dual is clamped, at half the square of how far it moves.
fn mismatch_and_loss<T>(
    shared: &Shared<T>,
    column: &Column,
    (d_beta, d_f, d_b): (&[f64], &[f64], f64),
    c: f64,
    t: f64,
) -> [f64; 2] {
    let b = column.b[0];
    shared.loss.sum(
        [&shared.y, &column.weight, &column.beta, &column.f, d_beta, d_f],
        #[inline(always)]
        |loss, [y, w, beta, f, d_beta, d_f]| {
            let cw = c * w;
            let (beta, g) = (beta + t * d_beta, f + b + t * (d_f + d_b));
            let (lo, hi) = loss.domain(y);
            // For a row of weight 0 everything is computed and nothing counts: a branch would prevent SIMD.
            let a = (beta / cw).max(lo).min(hi);
            let (value, outside) = (loss.value(y, g), beta - cw * a);
            let mismatch = cw * (value - loss.dual_value(y, a) + a * g) + 0.5 * outside * outside;
            [mismatch, cw * value].map(
                #[inline(always)]
                |term| if cw > 0.0 { term } else { 0.0 },
            )
        },
    )
}
