//! Every tuned number of the low-rank solver: what it bounds, in which unit, and what goes wrong when it is larger or
//! smaller.

// When a problem is solved.

/// The share of the wanted gap at which a problem counts as solved. The gap of the certificate is computed anew in
/// double precision. Larger: rounding lifts certified gaps above the tolerance, and the problem is solved a second
/// time. Smaller: steps for nothing.
pub(super) const SOLVED_AT: f64 = 0.5;

/// The same for a problem on a working set, relative to what is wanted on all rows. Larger: the gap on all rows is
/// often just not small enough, and the set is solved again. Smaller: steps for nothing.
pub(super) const SOLVED_ON_PART: f64 = 0.85;

/// Newton steps without the gap halving before a problem counts as stalled. The count starts anew when the envelopes
/// are widened. Larger: a hopeless problem takes long. Smaller: hard problems are given up.
pub(super) const STEPS_TO_HALVE: usize = 60;

/// Newton steps without the gap halving before a problem counts as stalled, even if the envelopes were widened
/// meanwhile. Going from the narrowest envelopes to the widest takes about 160 steps. Larger: a hopeless problem takes
/// long. Smaller: wider envelopes have no time to help.
pub(super) const LONGEST_PATIENCE: usize = 600;

// Centres and widths of the envelopes.

/// σ of the first envelopes, for C·w = 1 and targets of scale 1. Larger: steps are short, as kinks are many. Smaller:
/// more centres.
pub(super) const FIRST_SIGMA: f64 = 10.0;

/// The factor by which σ grows from centre to centre far from the solution, and shrinks when a centre takes too many
/// steps. Larger: the next centre takes more steps. Smaller: more centres.
pub(super) const NARROWER: f64 = 3.0;

/// The factor by which σ grows near the solution. Larger: the last centres move many rows across kinks. Smaller: more
/// centres.
pub(super) const LITTLE_NARROWER: f64 = 1.5;

/// A problem is far from its solution while its mismatch is more than this many times the wanted gap.
pub(super) const FAR: f64 = 10.0;

/// The centre moves when ½‖e‖² is at most this share of the mismatch, or `CENTRE_FLOOR` of the wanted gap. Larger: the
/// new centre is not yet the minimum of the envelopes. Smaller: steps that the next centre makes useless.
pub(super) const CENTRE_AT: f64 = 0.5;

pub(super) const CENTRE_FLOOR: f64 = 0.05;

/// Newton steps for one centre before the envelopes are widened. Larger: long waits where steps are short. Smaller:
/// envelopes are widened that were nearly solved.
pub(super) const MAX_STEPS: usize = 25;

/// About the smallest σ to which envelopes are widened, relative to that of the first. Smaller: problems that no width
/// helps take longer to be given up. Larger: some problems with very many kinks stall.
pub(super) const SMOOTHEST: f64 = 1e-3;

// The working set.

/// One row in `NEAR_SHARE` is in the smallest working set. Larger: sets are too small, and are solved twice. Smaller:
/// steps cost more.
pub(super) const NEAR_SHARE: usize = 20;

/// Rows in the working set for each row inside a segment. Larger: steps cost more. Smaller: rows outside the set come
/// to a kink, and the set is solved twice.
pub(super) const ROWS_PER_INSIDE: usize = 2;

/// Newton steps on a working set before all rows are looked at again. Larger: many steps with rows frozen that should
/// move. Smaller: more passes over all rows.
pub(super) const MAX_NEAR: usize = 60;

/// Most rows in the sample that says how near to a kink the wanted number of rows is. Larger: the choice of a set takes
/// longer. Smaller: sets miss their size by more. With at least 8192 rows in the sample, the standard error of a set of 1
/// row in 20 is at most 5 % of its size.
pub(super) const SAMPLED_ROWS: usize = 16384;

// The warm start.

/// A line through two solutions is followed no farther than this many times the distance of their C's. Larger: starts
/// that are worse than the last solution, which a comparison of objectives then rejects. Smaller: coarse grids have no
/// extrapolation.
pub(super) const FARTHEST_LINE: f64 = 3.0;

/// How often a problem is solved and certified at one C; after the first time, products are in double precision. Larger:
/// problems that rounding keeps from the tolerance take longer to give up. Smaller: some of those that a second try in
/// double precision would solve are given up.
pub(crate) const FEATURE_ATTEMPTS: usize = 3;

// The slopes.

/// Σa counts as 0 if it adds at most this share of the gap to the gap. Larger: the gap is not what steps say. Smaller:
/// more passes to find the intercept.
pub(super) const UNBALANCED: f64 = 1e-3;

/// What stands for the gap there before a gap is known, as a share of the wanted gap.
pub(super) const UNKNOWN_GAP: f64 = 0.1;

/// A slope that changes by less than this share of itself counts as unchanged. Larger: Zᵀa drifts from its sum.
/// Smaller: rounding makes rows change, and updates of Zᵀa read all rows.
pub(super) const UNCHANGED: f64 = 32.0 * f64::EPSILON;

/// Rows that one thread works on at a time. Sums are added chunk by chunk, so this number, and not the number of
/// threads, determines their rounding.
pub(super) const CHUNK: usize = 8192;

// The linear systems.

/// A ‖residual‖² of a step's system that is small enough, as a share of the wanted gap.
pub(super) const STEP_TARGET: f64 = 0.04;

/// The system of a step is solved until ‖residual‖² is at most this share of ‖e‖². Larger: more Newton steps. Smaller:
/// more passes for each of them.
pub(super) const STEP_RESIDUAL: f64 = 0.1;

/// Most passes over the rows in one step, after a new factor. It is reached only where rounding stops the residual.
pub(super) const MOST_PASSES: usize = 200;

/// Passes that systems are expected to take with a new shared factor, where they have many rows. Larger: systems go
/// apart that would go together in few passes. Smaller: systems are tried together that do not go together.
pub(super) const EXPECTED_PASSES: usize = 4;

/// A system has many rows if it has this many for each feature. Larger: folds of a smooth loss with few rows go apart.
/// Smaller: systems of a piecewise-linear loss are tried together, and take many passes.
pub(super) const MANY_ROWS: f64 = 2.0;

/// A pass waits for memory, a factor does not. So a pass costs its multiplications for this many systems more, counted
/// as multiplications of a factor. Larger: new factors where passes would be cheaper. Smaller: passes with a stale
/// factor; at rank 1000, a path takes twice the time with 3.
pub(super) const READING: f64 = 16.0;

/// Groups of rows whose sums for the shared factor are taken side by side. Fixed, as it determines the rounding. Larger:
/// more memory. Smaller: threads are idle.
pub(super) const CURVATURE_GROUPS: usize = 4;

/// Ridge of a factor in single precision, relative to the largest diagonal entry. Larger: more passes. Smaller: pivots
/// are lost to rounding.
pub(super) const SINGLE_RIDGE: f64 = 3e-7;

/// ε: added to the curvature in b, so that it is not 0 where no row has any. Larger: the intercept moves too little.
/// Smaller: it is lost to rounding in single precision.
pub(super) const FLOOR: f64 = 1e-6;

/// Columns of ZZᵀ that are computed in one product, for a factor in the dimensions of rows. Larger: more products
/// below the diagonal for nothing. Smaller: slower products.
pub(super) const PRODUCTS_AT_ONCE: usize = 64;
