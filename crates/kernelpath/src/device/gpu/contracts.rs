//! What every device must do, against loops over the formulas.

use crate::device::cpu::Cpu;
use crate::device::gpu::present::devices;
use crate::device::{Block, Device, Spectrum};
use crate::loss::scalar::Loss;
use crate::loss::smoothed::Smoothed;
use crate::observe::Control;

type Columns = Vec<Vec<f64>>;

const EVERY_LOSS: [Loss; 9] = [
    Loss::Hinge,
    Loss::SquaredHinge,
    Loss::Logistic,
    Loss::Dwd,
    Loss::Quantile { tau: 0.3 },
    Loss::EpsilonInsensitive { epsilon: 0.2 },
    Loss::Squared,
    Loss::Huber { delta: 0.7 },
    Loss::Expectile { tau: 0.8 },
];

fn random(seed: u64, rows: usize, columns: usize) -> Columns {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..columns).map(|_| (0..rows).map(|_| 2.0 * rng.f64() - 1.0).collect()).collect()
}

/// The largest difference, which is infinite where the shapes or the kinds of numbers differ.
fn difference(got: &Columns, want: &Columns) -> f64 {
    if got.len() != want.len() || got.iter().zip(want).any(|(g, w)| g.len() != w.len()) {
        return f64::INFINITY;
    }
    let off = |(g, w): (&f64, &f64)| if g == w { 0.0 } else { (g - w).abs() };
    let worst = |a: f64, d: f64| if d.is_nan() { f64::INFINITY } else { a.max(d) };
    got.iter().flatten().zip(want.iter().flatten()).map(off).fold(0.0, worst)
}

fn close(got: &Columns, want: &Columns, error: f64, what: &str) {
    let off = difference(got, want);
    assert!(off <= error, "{what}: off by {off:e}, {error:e} is allowed");
}

fn product(a: &Columns, b: &Columns, rows: usize) -> Columns {
    let entry = |i: usize, column: &Vec<f64>| a.iter().zip(column).map(|(a, b)| a[i] * b).sum();
    b.iter().map(|column| (0..rows).map(|i| entry(i, column)).collect()).collect()
}

fn transposed(a: &Columns, rows: usize) -> Columns {
    (0..rows).map(|i| a.iter().map(|column| column[i]).collect()).collect()
}

#[test]
fn numbers_come_back_as_they_were() {
    for (name, device) in devices() {
        for (rows, columns) in [(1, 1), (257, 3), (64, 41), (300, 5), (5, 0)] {
            let a = random(1, rows, columns);
            assert_eq!(device.download(&device.upload(rows, &a).unwrap()).unwrap(), a, "{name} {rows} x {columns}");
        }
    }
}

#[test]
fn products_are_sums_of_products() {
    let control = Control::default();
    for (name, device) in devices() {
        // Odd sizes, sizes beyond a tile on each side, long sums with few entries, and many columns.
        for (rows, inner, columns) in [(1, 1, 1), (7, 3, 2), (65, 17, 33), (130, 70, 44), (300, 299, 11), (5, 3000, 3)]
        {
            let what = format!("{name} {rows} x {inner} x {columns}");
            let (a, b, v) = (random(2, rows, inner), random(3, inner, columns), random(4, rows, columns));
            let (up_a, up_b, up_v) = (device.upload(rows, &a), device.upload(inner, &b), device.upload(rows, &v));
            let (up_a, up_b, up_v) = (up_a.unwrap(), up_b.unwrap(), up_v.unwrap());
            let narrow = device.narrow(&up_a).unwrap();
            assert_eq!((narrow.rows, narrow.columns), (rows, inner), "{what}");
            let want = product(&a, &b, rows);
            let want_back = product(&transposed(&a, rows), &v, inner);
            for (a, error) in [(&up_a, 1e-15), (&narrow, 4e-7)] {
                let got = device.download(&device.times(a, &up_b, &control).unwrap()).unwrap();
                close(&got, &want, error * (inner as f64 + 1.0), &what);
                let again = device.download(&device.times(a, &up_b, &control).unwrap()).unwrap();
                assert_eq!(got, again, "{what}: two runs differ");
                let got = device.download(&device.transposed_times(a, &up_v, &control).unwrap()).unwrap();
                close(&got, &want_back, error * (rows as f64 + 1.0), &what);
            }
            // Numbers in single precision, multiplied in double precision.
            let rounded: Columns =
                a.iter().map(|column| column.iter().map(|v| f64::from(*v as f32)).collect()).collect();
            for (a, exact) in [(&up_a, &a), (&narrow, &rounded)] {
                let got = device.download(&device.times_in_double(a, &up_b, false, &control).unwrap()).unwrap();
                close(&got, &product(exact, &b, rows), 1e-15 * (inner as f64 + 1.0), &what);
                let got = device.download(&device.times_in_double(a, &up_v, true, &control).unwrap()).unwrap();
                close(&got, &product(&transposed(exact, rows), &v, inner), 1e-15 * (rows as f64 + 1.0), &what);
            }
        }
    }
}

#[test]
fn elementary_operations_follow_their_formulas() {
    for (name, device) in devices() {
        for (rows, columns) in [(1, 1), (257, 3), (70, 45), (300, 9)] {
            let what = format!("{name} {rows} x {columns}");
            let (a, b) = (random(5, rows, columns), random(6, rows, columns));
            let (up_a, up_b) = (device.upload(rows, &a).unwrap(), device.upload(rows, &b).unwrap());
            let down = |matrix| device.download(&matrix).unwrap();
            let scale = &random(7, rows, 1)[0];
            let each = |of: &dyn Fn(usize, usize) -> f64| -> Columns {
                (0..columns).map(|c| (0..rows).map(|i| of(i, c)).collect()).collect()
            };
            close(&down(device.scale_rows(scale, &up_a).unwrap()), &each(&|i, c| scale[i] * a[c][i]), 0.0, &what);
            close(&down(device.hadamard(&up_a, &up_b).unwrap()), &each(&|i, c| a[c][i] * b[c][i]), 0.0, &what);
            let (s, t) = (&random(8, columns, 1)[0], &random(9, columns, 1)[0]);
            let got = down(device.combine(&[(&up_a, s), (&up_b, t), (&up_a, t)]).unwrap());
            close(&got, &each(&|i, c| s[c] * a[c][i] + t[c] * b[c][i] + t[c] * a[c][i]), 1e-15, &what);
            let curvature: Vec<f64> = t.iter().map(|t| 10.0 * t.abs()).collect();
            let values: Vec<f64> = scale.iter().map(|s| s.abs()).collect();
            let got = down(device.resolvent(&values, &curvature).unwrap());
            close(&got, &each(&|i, c| 1.0 / (1.0 + curvature[c] * values[i])), 1e-15, &what);
            let dots: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum()).collect();
            close(&vec![device.column_dots(&up_a, &up_b).unwrap()], &vec![dots], 1e-13, &what);
            let kept: Vec<usize> = (0..columns).filter(|c| c % 3 != 1).rev().collect();
            let want: Columns = kept.iter().map(|&c| a[c].clone()).collect();
            close(&down(device.select(&up_a, &kept).unwrap()), &want, 0.0, &what);
            let some: Vec<usize> = (0..rows).filter(|i| i % 4 != 2).rev().collect();
            let want: Columns = some.iter().map(|&i| a.iter().map(|column| column[i]).collect()).collect();
            close(&down(device.rows(&up_a, &some).unwrap()), &want, 0.0, &what);
        }
    }
}

#[test]
fn pulls_are_those_of_the_loss() {
    let (rows, columns) = (290, 6);
    let mut weight = random(10, rows, columns);
    weight.iter_mut().flatten().for_each(|w| *w = (*w + 0.3).max(0.0));
    let (f, b) = (random(11, rows, columns), [0.0, -0.5, 1.0, 2.0, -40.0, 800.0]);
    for (name, device) in devices() {
        for loss in EVERY_LOSS {
            for delta in [1e-7, 0.1, 3.0] {
                let smooth = Smoothed { loss, delta };
                let y: Vec<f64> = if loss.is_classification() {
                    (0..rows).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect()
                } else {
                    random(12, rows, 1).remove(0)
                };
                let (up_weight, up_f) = (device.upload(rows, &weight).unwrap(), device.upload(rows, &f).unwrap());
                let got = device.download(&device.pulls(smooth, &y, &up_weight, &up_f, &b).unwrap()).unwrap();
                let entry = |c: usize, i: usize| weight[c][i] * smooth.pull(y[i], f[c][i] + b[c]);
                let want: Columns = (0..columns).map(|c| (0..rows).map(|i| entry(c, i)).collect()).collect();
                // Slopes of a narrow ramp amplify the rounding of f + b by 1/δ, those of squares grow with f.
                let error = 1e-15 * (1.0 / delta + 2000.0);
                close(&got, &want, error, &format!("{name} {smooth:?}"));
            }
        }
    }
}

#[test]
fn the_pull_of_a_row_without_weight_is_zero_whatever_its_value() {
    for (name, device) in devices().into_iter().skip(1) {
        let smooth = Smoothed { loss: Loss::Squared, delta: 1.0 };
        let (weight, f) = (vec![vec![0.0, 2.0]], vec![vec![f64::INFINITY, 1.0]]);
        let (weight, f) = (device.upload(2, &weight).unwrap(), device.upload(2, &f).unwrap());
        let got = device.download(&device.pulls(smooth, &[0.0, 0.0], &weight, &f, &[0.0]).unwrap()).unwrap();
        assert_eq!(got, [[0.0, -4.0]], "{name}");
    }
}

#[test]
fn eigenvectors_make_the_matrix_again() {
    let n = 90;
    let points = &random(13, n, 1)[0];
    let entry = |i: usize, j: usize| (-4.0 * (points[i] - points[j]).powi(2)).exp();
    let k: Columns = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
    for (name, device) in devices() {
        let fill = |i: usize, row: &mut [f64]| row.iter_mut().enumerate().for_each(|(j, value)| *value = entry(i, j));
        let control = Control::default();
        let matrix = device.symmetric(n, &fill, &control).unwrap();
        close(&device.download(&matrix).unwrap(), &k, 0.0, name);
        let (values, basis) = device.eigh(matrix, &control).unwrap();
        assert!(values.iter().all(|v| *v >= 0.0) && values.is_sorted_by(|a, b| *a <= b.max(1e-12)), "{name}");
        let u = device.download(&basis).unwrap();
        let scaled: Columns = u.iter().zip(&values).map(|(u, v)| u.iter().map(|u| u * v).collect()).collect();
        close(&product(&scaled, &transposed(&u, n), n), &k, 1e-13, name);
        // The same in single precision.
        let matrix = device.symmetric(n, &fill, &control).unwrap();
        let (values, basis) = device.eigh_in_single(matrix, &control).unwrap();
        let identity: Columns = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
        let identity = device.upload(n, &identity).unwrap();
        let u = device.download(&device.times_in_double(&basis, &identity, false, &control).unwrap()).unwrap();
        assert!(u.iter().flatten().all(|u| f64::from(*u as f32) == *u), "{name}");
        let scaled: Columns = u.iter().zip(&values).map(|(u, v)| u.iter().map(|u| u * v).collect()).collect();
        close(&product(&scaled, &transposed(&u, n), n), &k, 2e-4, name);
    }
}

#[test]
fn a_fused_step_is_that_of_the_processor() {
    let (n, columns) = (270, 7);
    let values: Vec<f64> = (0..n).map(|k| 40.0 * (-0.05 * k as f64).exp()).collect();
    let spectrum = Spectrum { values, ones: random(14, n, 1).remove(0) };
    let curvature: Vec<f64> = (0..columns).map(|c| 0.005 * 4.0_f64.powi(c as i32)).collect();
    let block = |device: &dyn Device| Block {
        coordinates: device.upload(n, &random(15, n, columns)).unwrap(),
        ahead: device.upload(n, &random(15, n, columns)).unwrap(),
        b: vec![0.1; columns],
        b_ahead: vec![0.1; columns],
        momentum: vec![1.0; columns],
    };
    for (name, device) in devices().into_iter().skip(1) {
        let (mut got, mut want, mut restarted) = (block(&*device), block(&Cpu), false);
        for step in 0..14 {
            // Pulls that change direction, so that the momentum of some columns is restarted.
            let scale = if step < 5 { 500.0 } else { -500.0 };
            let mut pulls = random(16, n, columns);
            pulls.iter_mut().flatten().for_each(|value| *value *= scale);
            let gaps = |device: &dyn Device, block: &mut Block| {
                let pulls = device.upload(n, &pulls).unwrap();
                device.fused_step(block, &pulls, &spectrum, &curvature).unwrap().unwrap()
            };
            let (got_gaps, want_gaps) = (gaps(&*device, &mut got), gaps(&Cpu, &mut want));
            let what = format!("{name} step {step}");
            let vectors =
                |block: &Block, gaps| vec![gaps, block.b.clone(), block.b_ahead.clone(), block.momentum.clone()];
            let relative = |columns: Columns, by: &Columns| -> Columns {
                (columns.iter().zip(by))
                    .map(|(column, by)| column.iter().zip(by).map(|(value, by)| value / (1.0 + by.abs())).collect())
                    .collect()
            };
            let (got_vectors, want_vectors) = (vectors(&got, got_gaps), vectors(&want, want_gaps));
            close(&relative(got_vectors, &want_vectors), &relative(want_vectors.clone(), &want_vectors), 1e-11, &what);
            for (got, want) in [(&got.coordinates, &want.coordinates), (&got.ahead, &want.ahead)] {
                let (got, want) = (device.download(got).unwrap(), Device::download(&Cpu, want).unwrap());
                close(&relative(got, &want), &relative(want.clone(), &want), 1e-11, &what);
            }
            restarted |= want.momentum.contains(&1.0);
        }
        assert!(restarted);
    }
}
