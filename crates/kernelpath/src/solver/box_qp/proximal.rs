//! The way out when rounds cycle: semismooth Newton on the augmented Lagrangian.
//!
//! With a centre β̄ and σ = 1/ρ, each row's loss is replaced by its envelope
//!
//! ```text
//! h(g) = max over a in the box of  ψ(a) − a g − ρ/2 (a − β̄)²,     h′(g) = −a(g)
//! ```
//!
//! so that Φ(z, b) = ½ zᵀKz + Σ hᵢ(fᵢ + b), f = Kz, is smooth and convex. A Newton step is an
//! active-set round with K_AA + ρI on A = {rows with a(g) inside a segment}; an exact line search
//! makes it descend, whatever the rank of K. At the minimum z = a(g) is dual feasible; it becomes
//! the next centre (Rockafellar 1976), and the limit solves the original problem.

use crate::error::Result;
use crate::loss::envelope::slope;
use crate::numeric::entry::Entry;
use crate::numeric::line_search::bracketed;
use crate::numeric::simd::{dot, within};
use crate::observe::Control;
use crate::solver::box_qp::factor::KktFactor;
use crate::solver::box_qp::problem::{BoxQp, Point};

/// The smallest ridge, relative to the largest diagonal entry, with which a factor of n rows in double precision does
/// not break down. Kernel matrices that are singular to rounding need a ridge this small: along their null directions a
/// larger one holds the steps back, and targets without noise ask for an f that is right to 1e-10 of the targets.
pub(crate) fn least_ridge(n: usize) -> f64 {
    4.0 * n as f64 * f64::EPSILON
}

/// A factor whose ridge is below this share of the largest diagonal entry is made anew for each step: borders of an old
/// factor would subtract numbers that are equal up to rounding.
const BORDERED: f64 = 1e-6;

/// Most Newton steps for one centre.
pub(crate) const STEPS_PER_CENTRE: usize = 100;

/// What a proximal step took.
pub(crate) struct Effort {
    /// Newton steps.
    pub steps: usize,
    /// Flops of their factors, and of what they change in f.
    pub flops: f64,
}

/// Flops of a factor of `rows` rows among `n`, and of what one of its solutions changes in f.
fn flops_of_factor(rows: usize, n: usize) -> f64 {
    let (rows, n) = (rows as f64, n as f64);
    rows * rows * rows / 3.0 + 4.0 * n * rows
}

/// Minimises Φ around β̄ = `point.beta` and moves the point to the minimiser, clipped to the box; Σβ = 0 holds up to the
/// accuracy of the minimum. No Newton step begins once `most_flops` are used up.
pub(crate) fn step<T: Entry>(
    qp: &BoxQp<T>,
    point: &mut Point,
    sigma: f64,
    most_flops: f64,
    control: &Control,
) -> Result<Effort> {
    let n = qp.n();
    let rho = 1.0 / sigma;
    let centre = point.beta.clone();
    let mut z = point.beta.clone();
    let mut factor: Option<KktFactor<f64>> = None;
    let mut effort = Effort { steps: 0, flops: 0.0 };
    while effort.steps < STEPS_PER_CENTRE && (effort.steps == 0 || effort.flops < most_flops) && !control.out_of_time()
    {
        control.check()?;
        effort.steps += 1;
        let wanted: Vec<Wanted> = (0..n).map(|i| wanted(qp, i, centre[i], sigma, point.f[i] + point.b)).collect();
        let (mut rows, mut residual) = (Vec::new(), Vec::new());
        let (mut fixed, mut fixed_step) = (Vec::new(), Vec::new());
        let mut surplus: f64 = z.iter().sum();
        for (i, wanted) in wanted.iter().enumerate() {
            if wanted.inside {
                rows.push(i);
            } else if wanted.a != z[i] {
                fixed.push(i);
                fixed_step.push(wanted.a - z[i]);
                surplus += wanted.a - z[i];
            }
        }
        effort.flops += flops_of_factor(rows.len(), n);
        // dz and its image df: first the rows that go to a level, then the free ones.
        let mut direction = Point::origin(n);
        direction.add(qp, &fixed, &fixed_step);
        for (&i, &d) in fixed.iter().zip(&fixed_step) {
            direction.beta[i] = d;
        }
        for &i in &rows {
            let g = point.f[i] + direction.f[i] + point.b;
            residual.push(wanted[i].kink - g - rho * (z[i] - centre[i]));
        }
        if rows.is_empty() {
            // Nothing is free: b alone moves, towards the side that Σa pulls to.
            let pull: f64 = wanted.iter().map(|w| w.a).sum();
            direction.b = pull.signum();
        } else {
            let old = factor.take().filter(|_| rho > BORDERED * qp.largest_diagonal);
            let near = KktFactor::of(old, qp.gram, &rows, rho, least_ridge(n), control)?;
            let solver = factor.insert(near);
            let (free_step, shift) = solver.solve(qp.gram, &rows, &residual, -surplus)?;
            if !(shift.is_finite() && free_step.iter().all(|d| d.is_finite())) {
                break;
            }
            for (&i, &d) in rows.iter().zip(&free_step) {
                direction.beta[i] = d;
            }
            direction.add(qp, &rows, &free_step);
            direction.b = shift;
        }
        let t = line_search(qp, &centre, sigma, &z, point, &direction);
        let mut largest = 0.0_f64;
        for (z, d) in z.iter_mut().zip(&direction.beta) {
            *z += t * d;
            largest = largest.max((t * d).abs());
        }
        for (f, d) in point.f.iter_mut().zip(&direction.f) {
            *f += t * d;
        }
        point.b += t * direction.b;
        point.noise += direction.noise;
        if t == 0.0 || largest <= 1e-12 * qp.width() {
            break;
        }
    }
    // β is z brought into the box; f follows.
    let (mut changed, mut deltas) = (Vec::new(), Vec::new());
    for i in 0..n {
        let a = wanted(qp, i, centre[i], sigma, point.f[i] + point.b);
        point.beta[i] = if a.inside { within(z[i], qp.lo[i], qp.hi[i]) } else { a.a };
        if point.beta[i] != z[i] {
            changed.push(i);
            deltas.push(point.beta[i] - z[i]);
        }
    }
    point.add(qp, &changed, &deltas);
    Ok(effort)
}

/// What a row's envelope wants at g: its a(g), whether that is inside a segment, and the kink of that segment.
struct Wanted {
    a: f64,
    inside: bool,
    kink: f64,
}

#[inline(always)]
fn wanted<T>(qp: &BoxQp<T>, i: usize, centre: f64, sigma: f64, g: f64) -> Wanted {
    let low = centre + sigma * (qp.kink_low[i] - g);
    let high = centre + sigma * (qp.kink_high[i] - g);
    let slope = slope(low, high, qp.lo[i], qp.mid[i], qp.hi[i]);
    let kink = if slope.lower { qp.kink_low[i] } else { qp.kink_high[i] };
    Wanted { a: slope.a, inside: slope.lower || slope.upper, kink }
}

/// A t in (0, 1] near the minimum of Φ along the direction: there Φ′, which rises with t, is at most a tenth of what it
/// was at 0.
fn line_search<T: Entry>(
    qp: &BoxQp<T>,
    centre: &[f64],
    sigma: f64,
    z: &[f64],
    point: &Point,
    direction: &Point,
) -> f64 {
    let (linear, quadratic) = (dot(z, &direction.f), dot(&direction.beta, &direction.f));
    let slope = |t: f64| {
        let pull: f64 = (0..qp.n())
            .map(|i| {
                let dg = direction.f[i] + direction.b;
                wanted(qp, i, centre[i], sigma, point.f[i] + point.b + t * dg).a * dg
            })
            .sum();
        linear + t * quadratic - pull
    };
    bracketed(slope(0.0), slope)
}
