//! Where Newton starts from, and how long its steps are.

/// A C that is more than `LONGEST_LEAP` times the last one is reached by way of C's in between, each solved to the gap
/// `GAP_BETWEEN`.
pub(crate) const LONGEST_LEAP: f64 = 10.0;

pub(crate) const GAP_BETWEEN: f64 = 1e-3;

/// Largest share, positive or negative, of a known solution in a parabola through three. For C's that are nearly equal
/// the shares would be so large that only the solutions' rounding is left.
const LARGEST_SHARE: f64 = 1e3;

/// How far to follow a line through the solutions at c0 and c1 to reach c: not at all, linearly in C, or linearly in
/// log C.
pub(crate) fn lines(c0: f64, c1: f64, c: f64) -> Vec<f64> {
    let mut lines = vec![0.0];
    if c1 > c0 {
        lines.push((c - c1) / (c1 - c0));
    }
    if c0 > 0.0 && c1 > c0 {
        lines.push((c / c1).ln() / (c1 / c0).ln());
    }
    // If two C's are nearly equal, the solution moved between them by rounding only.
    lines.retain(|t| *t <= LONGEST_LEAP);
    lines
}

/// Guesses at the solution at c, as mixtures of the solutions at `cs`, the newest first. The guesses are the newest
/// solution, the lines through two solutions in C and in log C, and the parabola through three in log C.
pub(crate) fn mixtures(cs: &[f64], c: f64) -> Vec<Vec<f64>> {
    let mut mixtures = vec![vec![1.0]];
    if let [c1, c0, ..] = cs[..] {
        mixtures = lines(c0, c1, c).into_iter().map(|t| vec![1.0 + t, -t]).collect();
    }
    if let [c2, c1, c0] = cs[..]
        && c0 > 0.0
        && c1 > c0
        && c2 > c1
    {
        let [x0, x1, x2, x] = [c0, c1, c2, c].map(f64::ln);
        let share = |a: f64, b: f64, c: f64| (x - b) * (x - c) / ((a - b) * (a - c));
        let parabola = vec![share(x2, x1, x0), share(x1, x0, x2), share(x0, x1, x2)];
        if parabola.iter().all(|share| share.abs() <= LARGEST_SHARE) {
            mixtures.push(parabola);
        }
    }
    mixtures
}

/// A step length t in (0, 1] at which the gap is below `now` or, if there is none, at which the primal has fallen; and
/// the gap at t. `None` if neither falls; NaN counts as no fall.
pub(crate) fn step_length(now: f64, gap_at: impl Fn(f64) -> f64, slope_at: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
    let finite = |t: f64, gap: f64| gap.is_finite().then_some((t, gap));
    let (mut t, mut gap) = (1.0, gap_at(1.0));
    while t > 0.01 && (gap > 0.1 * now || gap.is_nan()) {
        let shorter = gap_at(0.7 * t);
        if shorter >= gap && gap < (1.0 - 0.1 * t) * now {
            break;
        }
        (t, gap) = (0.7 * t, shorter);
    }
    if t > 0.01 {
        return finite(t, gap);
    }
    // The primal is convex along the line: its slope can be bisected.
    let slope = slope_at(0.0);
    if slope.is_nan() || slope >= 0.0 {
        return None;
    }
    if slope_at(1.0) <= -0.1 * slope {
        return finite(1.0, gap_at(1.0));
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..30 {
        t = 0.5 * (low + high);
        let here = slope_at(t);
        if here.abs() <= -0.1 * slope {
            break;
        }
        if here < 0.0 { low = t } else { high = t }
    }
    finite(t, gap_at(t))
}
