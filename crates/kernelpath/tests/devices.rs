//! Fits on every device that is there, beside those on the processor.

use kernelpath::{
    Bandwidth, Classifier, DeviceChoice, FittedClassifier, Kernel, LowRank, Precision, Regressor, Rows, Solver,
    device_traffic, devices,
};

const TOL: f64 = 1e-6;

/// How far the values of two models may be apart: gaps of 1e-6 of an objective of some tens leave β apart by the root of
/// twice that in the norm of K, and each value by no more, as k(x, x) = 1.
const VALUES: f64 = 2e-2;

/// The devices other than the processor that can be used.
fn others() -> Vec<DeviceChoice> {
    let usable = devices().into_iter().filter(|info| info.problem.is_none() && info.choice != DeviceChoice::Cpu);
    let usable: Vec<DeviceChoice> = usable.map(|info| info.choice).collect();
    let required = std::env::var("KERNELPATH_REQUIRE_DEVICES").unwrap_or_default();
    for kind in required.split(',').map(str::trim).filter(|kind| !kind.is_empty()) {
        assert!(
            usable.iter().any(|choice| choice.to_string().starts_with(kind)),
            "no device by {kind}: {:?}",
            devices()
        );
    }
    usable
}

/// Two rings with noise: rows of two numbers, and the ring of each.
fn rings(n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..n {
        let (angle, outer) = (0.37 * i as f64, i % 2 == 0);
        let radius = if outer { 1.4 } else { 1.0 } + 0.4 * (7.3 * i as f64).sin();
        x.extend([radius * angle.cos(), radius * angle.sin()]);
        y.push(if outer { 1.0 } else { -1.0 });
    }
    (x, y)
}

fn kernel() -> Kernel {
    Kernel::rbf(Bandwidth::Value(1.0))
}

fn close(got: &[f64], want: &[f64], error: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let off = got.iter().zip(want).map(|(g, w)| (g - w).abs()).fold(0.0, f64::max);
    assert!(off <= error, "{what}: off by {off:e}");
}

#[test]
fn classifiers_on_a_device_are_those_of_the_processor() {
    let (x, y) = rings(120);
    let rows = Rows::from_slice(&x, 2).unwrap();
    for device in others() {
        for (builder, solvers) in [
            (Classifier::svm(), [Solver::Auto, Solver::ActiveSet, Solver::Spectral]),
            (Classifier::logistic(), [Solver::Auto, Solver::Newton, Solver::Spectral]),
            (Classifier::dwd(), [Solver::Auto, Solver::Newton, Solver::Spectral]),
        ] {
            let builder = builder.kernel(kernel()).cs([0.1, 1.0, 10.0]).cv(3).tol(TOL);
            for solver in solvers {
                for precision in [Precision::Single, Precision::Double] {
                    let builder = builder.clone().solver(solver).precision(precision);
                    let want = builder.clone().fit(rows, &y).unwrap();
                    let what = format!("{device} {solver:?} {precision:?}");
                    let before = device_traffic(device);
                    let got = builder.clone().device(device).fit(rows, &y).unwrap();
                    assert!(got.worst_gap() <= TOL, "{what}: {:e}", got.worst_gap());
                    assert_ne!(device_traffic(device), before, "{what}: the device had nothing to do");
                    // A held-out row whose value is about 0 may change sides.
                    let scores = |fitted: &FittedClassifier<_>| fitted.scores().concat();
                    close(&scores(&got), &scores(&want), 0.02, &what);
                    // One C, so that there is no choice that such a row could turn.
                    let one = builder.clone().cs([1.0]);
                    let want = one.clone().fit(rows, &y).unwrap().decision_function(rows).unwrap();
                    let got = one.device(device).fit(rows, &y).unwrap();
                    close(&got.decision_function(rows).unwrap(), &want, VALUES, &what);
                }
            }
        }
    }
}

#[test]
fn low_rank_fits_on_a_device_are_those_of_the_processor() {
    let (x, y) = rings(150);
    let rows = Rows::from_slice(&x, 2).unwrap();
    let landmarks: Vec<usize> = (0..150).step_by(5).collect();
    for device in others() {
        for builder in [Classifier::svm(), Classifier::logistic()] {
            let builder = builder.kernel(kernel()).cs([1.0]).cv(3).tol(TOL);
            let builder = builder.low_rank(LowRank::rows(landmarks.clone()));
            let (want, got) = (builder.clone().fit(rows, &y).unwrap(), builder.device(device).fit(rows, &y).unwrap());
            assert!(got.worst_gap() <= TOL, "{device}: {:e}", got.worst_gap());
            let (got, want) = (got.decision_function(rows).unwrap(), want.decision_function(rows).unwrap());
            close(&got, &want, VALUES, &device.to_string());
        }
    }
}

#[test]
fn regressions_on_a_device_are_those_of_the_processor() {
    let x: Vec<f64> = (0..100).map(|i| 0.1 * f64::from(i)).collect();
    let y: Vec<f64> = x.iter().map(|x| x.sin() + 0.2 * (13.0 * x).sin()).collect();
    let rows = Rows::from_slice(&x, 1).unwrap();
    for device in others() {
        for builder in [Regressor::ridge(), Regressor::huber(0.5), Regressor::expectile(0.7), Regressor::svr(0.1)] {
            let builder = builder.kernel(kernel()).cs([1.0]).cv(3).tol(TOL);
            let (want, got) =
                (builder.clone().fit(rows, &y[..]).unwrap(), builder.device(device).fit(rows, &y[..]).unwrap());
            assert!(got.worst_gap() <= TOL, "{device}: {:e}", got.worst_gap());
            close(&got.predict(rows).unwrap(), &want.predict(rows).unwrap(), VALUES, &device.to_string());
        }
    }
}

#[test]
fn repeated_fits_on_a_device_have_the_same_bits() {
    let (x, y) = rings(90);
    let rows = Rows::from_slice(&x, 2).unwrap();
    for device in others() {
        for solver in [Solver::Newton, Solver::Spectral] {
            let builder = Classifier::logistic().kernel(kernel()).cs([0.3, 3.0]).cv(3).solver(solver).device(device);
            let values = || builder.fit(rows, &y).unwrap().decision_function(rows).unwrap();
            assert_eq!(values(), values(), "{device} {solver:?}");
        }
    }
}
