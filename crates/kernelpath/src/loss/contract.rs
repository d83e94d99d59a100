//! What every loss must keep to: a new loss is a new row of `LOSSES`.

use crate::loss::intercept::middle_intercept;
use crate::loss::scalar::*;
use crate::loss::smoothed::Smoothed;

const LABELS: &[f64] = &[-1.0, 1.0];

const NUMBERS: &[f64] = &[-2.0, 0.0, 1.3];

const LOSSES: &[(Loss, &[f64])] = &[
    (Loss::Hinge, LABELS),
    (Loss::SquaredHinge, LABELS),
    (Loss::Logistic, LABELS),
    (Loss::Dwd, LABELS),
    (Loss::Quantile { tau: 0.1 }, NUMBERS),
    (Loss::Quantile { tau: 0.5 }, NUMBERS),
    (Loss::EpsilonInsensitive { epsilon: 0.3 }, NUMBERS),
    (Loss::EpsilonInsensitive { epsilon: 0.0 }, NUMBERS),
    (Loss::Squared, NUMBERS),
    (Loss::Huber { delta: 0.7 }, NUMBERS),
    (Loss::Expectile { tau: 0.2 }, NUMBERS),
];

/// Points away from every corner of a loss, and points far out.
fn grid() -> impl Iterator<Item = f64> {
    (-400..=400).map(|i| f64::from(i) * 0.01 + 0.001_234).chain([-1e4, 1e4])
}

fn for_each(check: impl Fn(Loss, f64)) {
    for &(loss, targets) in LOSSES {
        for &y in targets {
            check(loss, y);
        }
    }
}

#[test]
fn the_nearest_point_of_the_pull_lies_between() {
    for_each(|loss, y| {
        if loss.curvature_bound().is_none() {
            return;
        }
        for f in grid() {
            let (lo, hi) = loss.domain(y);
            let (lo, hi) = (lo.max(-3.0), hi.min(3.0));
            for share in [-0.3, 0.0, 0.001, 0.3, 0.9, 1.0, 1.2] {
                let a = lo + share * (hi - lo);
                let (near, here) = (loss.pull(y, loss.nearest(y, f, a)), loss.pull(y, f));
                let slack = 1e-5 * (1.0 + here.abs());
                let between = near >= here.min(a) - slack && near <= here.max(a) + slack;
                assert!(between, "{loss:?}: {near} is not between {here} and {a} at {f}");
            }
            let itself = loss.nearest(y, f, loss.pull(y, f));
            assert!((itself - f).abs() <= 1e-5 * (1.0 + f.abs()), "{loss:?} at {f}: {itself}");
        }
    });
}

#[test]
fn straight_stretches_have_one_slope_and_end_where_it_changes() {
    for_each(|loss, y| {
        for f in grid().filter(|f| f.abs() < 1e3) {
            let Some((from, to)) = loss.straight(y, f) else {
                let curved = loss.curvature(y, f) > 0.0;
                assert!(curved || loss.curvature_bound().is_none(), "{loss:?} at {f}");
                continue;
            };
            assert!(from <= f && f <= to);
            for end in [from.max(-20.0), to.min(20.0)] {
                assert!((loss.pull(y, end) - loss.pull(y, f)).abs() < 1e-12, "{loss:?} at {f}, {end}");
            }
            let changed = |end: f64| !end.is_finite() || loss.pull(y, end) != loss.pull(y, f);
            assert!(changed(from - 0.01) && changed(to + 0.01), "{loss:?} at {f}");
        }
    });
}

#[test]
fn an_intercept_that_is_free_is_put_into_the_middle() {
    let (y, f) = ([1.0, -1.0, 1.0, -1.0], [0.1, -0.2, -0.1, 0.0]);
    // −0.5 − min f of the negatives ≤ b ≤ 0.5 − max f of the positives.
    for b in [-0.3, 0.0, 0.4] {
        assert!((middle_intercept(Loss::Dwd, &y, &[1.0; 4], &f, b) - 0.05).abs() < 1e-15);
    }
    assert_eq!(middle_intercept(Loss::Dwd, &y, &[1.0; 4], &f, 0.45), 0.45);
    assert_eq!(middle_intercept(Loss::Dwd, &y, &[1.0, 0.0, 1.0, 0.0], &f, 0.2), 0.2);
    assert_eq!(middle_intercept(Loss::Logistic, &y, &[1.0; 4], &f, 0.2), 0.2);
}

#[test]
fn values_are_finite_convex_and_not_negative() {
    for_each(|loss, y| {
        for f in grid() {
            for number in [loss.value(y, f), loss.pull(y, f), loss.curvature(y, f)] {
                assert!(number.is_finite(), "{loss:?} at {f}");
            }
            assert!(loss.value(y, f) >= 0.0 && loss.curvature(y, f) >= 0.0, "{loss:?} at {f}");
            assert!(loss.pull(y, f) >= loss.pull(y, f + 0.01), "{loss:?} at {f}");
        }
    });
}

#[test]
fn slope_and_curvature_are_the_derivatives() {
    let h = 1e-5;
    for_each(|loss, y| {
        for f in grid().filter(|f| f.abs() < 1e3) {
            let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1.0 + a.abs());
            let slope = (loss.value(y, f + h) - loss.value(y, f - h)) / (2.0 * h);
            assert!(near(-loss.pull(y, f), slope), "{loss:?} at {f}: {} {slope}", loss.pull(y, f));
            let curvature = (loss.pull(y, f - h) - loss.pull(y, f + h)) / (2.0 * h);
            assert!(near(loss.curvature(y, f), curvature), "{loss:?} at {f}");
            if let Some(bound) = loss.curvature_bound() {
                assert!(loss.curvature(y, f) <= bound + 1e-12, "{loss:?} at {f}");
            }
        }
    });
}

#[test]
fn fenchel_young_holds_with_equality_at_the_slope() {
    for_each(|loss, y| {
        let (lo, hi) = loss.domain(y);
        assert!(lo <= 0.0 && 0.0 <= hi, "0 must be dual feasible: {loss:?}");
        let (from, to) = (lo.max(-5.0), hi.min(5.0));
        for f in grid() {
            for step in 0..=20 {
                let a = from + (to - from) * f64::from(step) / 20.0;
                // L(f) + L*(−a) + a f ≥ 0.
                let sum = loss.value(y, f) - loss.dual_value(y, a) + a * f;
                assert!(sum >= -1e-12 * (1.0 + f.abs()), "{loss:?} at {f}, {a}: {sum}");
            }
            let a = loss.pull(y, f);
            let sum = loss.value(y, f) - loss.dual_value(y, a) + a * f;
            assert!(sum.abs() <= 1e-9 * (1.0 + f * f), "{loss:?} at {f}: {sum}");
        }
        for outside in [lo - 0.1, hi + 0.1].into_iter().filter(|a| a.is_finite()) {
            assert_eq!(loss.dual_value(y, outside), f64::NEG_INFINITY);
        }
    });
}

#[test]
fn kinks_are_where_the_slope_jumps() {
    for_each(|loss, y| {
        assert_eq!(loss.kinks(y).is_some(), loss.curvature_bound().is_none());
        let Some(k) = loss.kinks(y) else { return };
        assert!(k.lo <= k.mid && k.mid <= k.hi && k.kink_high <= k.kink_low);
        assert_eq!(loss.pull(y, k.kink_high - 1e-9), k.hi);
        assert_eq!(loss.pull(y, k.kink_low + 1e-9), k.lo);
    });
}

#[test]
fn smoothing_tends_to_the_loss() {
    for_each(|loss, y| {
        for delta in [1.0, 0.1, 1e-3] {
            let smooth = Smoothed { loss, delta };
            let (lo, hi) = loss.domain(y);
            let most = if loss.kinks(y).is_some() { (hi - lo) * delta / 4.0 } else { 0.0 };
            for f in grid() {
                let excess = smooth.value(y, f) - loss.value(y, f);
                assert!((0.0..=most + 1e-12).contains(&excess), "{loss:?} at {f}: {excess}");
                let h = 1e-6;
                if f.abs() < 1e3 {
                    let slope = (smooth.value(y, f + h) - smooth.value(y, f - h)) / (2.0 * h);
                    let error = (slope + smooth.pull(y, f)).abs();
                    assert!(error < 1e-5 * (1.0 + slope.abs()) + 2.0 * h * smooth.curvature_bound(), "{loss:?}");
                    let bend = (smooth.pull(y, f - h) - smooth.pull(y, f + h)) / (2.0 * h);
                    assert!(bend <= smooth.curvature_bound() * (1.0 + 1e-6) + 1e-4, "{loss:?} at {f}");
                }
            }
        }
    });
}

#[test]
fn constants_are_checked() {
    assert!(Loss::from_name("quantile", 1.0).is_err());
    assert!(Loss::from_name("expectile", f64::NAN).is_err());
    assert!(Loss::from_name("epsilon_insensitive", -0.1).is_err());
    assert!(Loss::from_name("huber", 0.0).is_err());
    assert!(Loss::from_name("absolute", 0.0).is_err());
    for &(loss, _) in LOSSES {
        assert!(Loss::NAMES.contains(&loss.name()));
        assert!(loss.check().is_ok());
    }
}
