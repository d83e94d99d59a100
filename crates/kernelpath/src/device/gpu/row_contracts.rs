//! What kernels between rows on any device must do, against naive loops.

use faer::Mat;

use crate::data::rows::{Rows, RowsBuf};
use crate::data::sparse::Csr;
use crate::device::gpu::present::{accelerators, devices};
use crate::error::{Cell, Error};
use crate::kernel::elsewhere::Kernels;
use crate::kernel::every_shape::{self, HUGE, SHAPES, sparse_parts, with_huge_cell};
use crate::kernel::gram::Gram;
use crate::kernel::shape::{KernelFn, Shape};
use crate::observe::Control;

/// Rows of which about two thirds of the entries are 0, and the first two are near to each other.
pub(super) fn data(n: usize, p: usize) -> Mat<f64> {
    let mut rng = fastrand::Rng::with_seed(n as u64);
    let mut x = Mat::from_fn(n, p, |_, _| if rng.f64() < 0.35 { 3.0 * rng.f64() - 1.0 } else { 0.0 });
    if n > 1 {
        (0..p).for_each(|j| x[(1, j)] = x[(0, j)] * (1.0 + 1e-9));
    }
    x
}

fn naive(x: &Mat<f64>, i: usize, z: &Mat<f64>, j: usize, kernel: &KernelFn) -> f64 {
    let row = |x: &Mat<f64>, i: usize| x.row(i).iter().copied().collect::<Vec<f64>>();
    every_shape::naive(kernel, &row(x, i), &row(z, j))
}

#[test]
fn kernel_values_follow_their_formulas() {
    let control = Control::default();
    for (name, device) in devices() {
        let Some(kernels) = device.kernels() else { continue };
        for (n, p) in [(1, 1), (70, 5), (67, 33)] {
            let (x, z) = (data(n, p), data(n + 30, p));
            let (csr_x, csr_z) = (sparse_parts(&x), sparse_parts(&z));
            let sparse_x = Csr::new(p, &csr_x.0[..], &csr_x.1[..], &csr_x.2[..]).unwrap();
            let sparse_z = Csr::new(p, &csr_z.0[..], &csr_z.1[..], &csr_z.2[..]).unwrap();
            let a: Vec<usize> = (0..n).rev().filter(|i| n < 3 || i % 5 != 3).collect();
            let b: Vec<usize> = (0..n + 30).filter(|j| j % 4 != 1).collect();
            let coef = Mat::from_fn(n + 30, 3, |j, c| (0.3 * (j * (c + 1)) as f64).cos());
            for shape in SHAPES {
                let kernel = KernelFn::new(shape, 0.4).unwrap();
                let exact = Mat::from_fn(n, n + 30, |i, j| naive(&x, i, &z, j, &kernel));
                for (x_rows, z_rows) in [
                    (Rows::from(&x), Rows::from(&z)),
                    (Rows::from(sparse_x), Rows::from(sparse_z)),
                    (Rows::from(&x), Rows::from(sparse_z)),
                ] {
                    let what = format!("{name} {shape:?} {n} x {p}, sparse {}", z_rows.as_csr().is_some());
                    let mut got = Vec::new();
                    let mut each = |first: usize, values: &[f64]| {
                        assert_eq!(first * b.len(), got.len(), "{what}");
                        got.extend_from_slice(values);
                        Ok(())
                    };
                    kernels.panels(&x_rows, &a, &z_rows, &b, &kernel, &[], &control, &mut each).unwrap();
                    assert_eq!(got.len(), a.len() * b.len(), "{what}");
                    for (row, &i) in got.chunks(b.len()).zip(&a) {
                        for (value, &j) in row.iter().zip(&b) {
                            let want = exact[(i, j)];
                            let error = 1e-14 * (1.0 + want.abs());
                            assert!((value - want).abs() <= error, "{what}: {value} is not {want}");
                        }
                    }
                    let got = kernels.times(&x_rows, &a, &z_rows, coef.as_ref(), &kernel, &control).unwrap();
                    for (row, &i) in got.chunks(3).zip(&a) {
                        for (c, value) in row.iter().enumerate() {
                            let term = |j: usize| coef[(j, c)] * exact[(i, j)];
                            let (want, size) =
                                (0..n + 30).fold((0.0, 1.0), |(w, s), j| (w + term(j), s + term(j).abs()));
                            assert!((value - want).abs() <= 1e-14 * size, "{what}: {value} is not {want}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn kernels_are_symmetric_to_the_last_bit_and_keep_the_digits_of_near_rows() {
    let (n, control) = (131, Control::default());
    let x = data(n, 19);
    let parts = sparse_parts(&x);
    let sparse = Csr::new(19, &parts.0[..], &parts.1[..], &parts.2[..]).unwrap();
    let all: Vec<usize> = (0..n).collect();
    for (name, device) in devices() {
        let Some(kernels) = device.kernels() else { continue };
        for shape in SHAPES {
            let kernel = KernelFn::new(shape, 0.4).unwrap();
            for rows in [Rows::from(&x), Rows::from(sparse)] {
                let mut k = Vec::new();
                let mut each = |_: usize, values: &[f64]| {
                    k.extend_from_slice(values);
                    Ok(())
                };
                kernels.panels(&rows, &all, &rows, &all, &kernel, &[], &control, &mut each).unwrap();
                assert!((0..n).all(|i| (0..n).all(|j| k[i * n + j] == k[j * n + i])), "{name} {shape:?}");
                let diagonal = (0..n).all(|i| k[i * n + i] == 1.0);
                assert!(diagonal || !shape.is_shift_invariant(), "{name} {shape:?}");
            }
        }
        // Distances of 1e-9 would be lost in the squares of 1.
        let kernel = KernelFn::new(Shape::Rbf, 1e18).unwrap();
        let rows = Rows::from(&x);
        let mut near = 0.0;
        let mut each = |_: usize, values: &[f64]| {
            near = values[0];
            Ok(())
        };
        kernels.panels(&rows, &[0], &rows, &[1], &kernel, &[], &control, &mut each).unwrap();
        let want = naive(&x, 0, &x, 1, &kernel);
        assert!(want > 1e-6 && want < 0.99 && (near - want).abs() <= 1e-12, "{name}: {near} is not {want}");
    }
}

#[test]
fn a_huge_cell_is_exact_or_no_number() {
    let (n, control) = (30, Control::default());
    let all: Vec<usize> = (0..n).collect();
    for (name, device) in devices() {
        let Some(kernels) = device.kernels() else { continue };
        for cell in HUGE {
            let x = with_huge_cell(n, 5, cell);
            let parts = sparse_parts(&x);
            let sparse = Csr::new(5, &parts.0[..], &parts.1[..], &parts.2[..]).unwrap();
            for shape in SHAPES {
                let kernel = KernelFn::new(shape, 0.4).unwrap();
                for rows in [Rows::from(&x), Rows::from(sparse)] {
                    let mut each = |first: usize, values: &[f64]| {
                        for (at, value) in values.iter().enumerate() {
                            let (i, j) = (first + at / n, at % n);
                            let want = naive(&x, i, &x, j, &kernel);
                            let as_wanted = (value - want).abs() <= 1e-12 * (1.0 + want.abs());
                            let what = format!("{name} {shape:?} {cell:e} at {i}, {j}");
                            let right = if want.is_finite() { as_wanted } else { !value.is_finite() };
                            assert!(right, "{what}: {value} is not {want}");
                        }
                        Ok(())
                    };
                    kernels.panels(&rows, &all, &rows, &all, &kernel, &[], &control, &mut each).unwrap();
                    let gram = Gram::<f64>::compute_on(Some(kernels), &rows, &all, &kernel, &[], None, &control);
                    let finite = all.iter().all(|&j| naive(&x, 7, &x, j, &kernel).is_finite());
                    let blamed = Cell { what: "X", row: 7, column: 4, value: cell };
                    match gram {
                        Ok(_) => assert!(finite, "{name} {shape:?} {cell:e} passed"),
                        Err(Error::Overflow { cell, .. }) => assert_eq!((cell, finite), (Some(blamed), false)),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    }
}

#[test]
fn precomputed_values_are_taken_as_they_are() {
    let (control, kernel) = (Control::default(), KernelFn::new(Shape::Precomputed, 1.0).unwrap());
    let x = Mat::from_fn(40, 50, |i, j| (i * 50 + j) as f64);
    let none = RowsBuf::Dense(Mat::zeros(0, 50));
    let coef = Mat::from_fn(50, 2, |j, c| if j == 7 * (c + 1) { 1.0 } else { 0.0 });
    for (name, device) in devices() {
        let Some(kernels) = device.kernels() else { continue };
        let got = kernels.times(&Rows::from(&x), &[3, 1], &none.view(), coef.as_ref(), &kernel, &control).unwrap();
        assert_eq!(got, [157.0, 164.0, 57.0, 64.0], "{name}");
        let mut rows = Vec::new();
        let mut each = |first: usize, values: &[f64]| {
            rows.push((first, values.to_vec()));
            Ok(())
        };
        let x = Rows::from(&x);
        kernels.panels(&x, &[3, 1], &none.view(), &[7, 14], &kernel, &[], &control, &mut each).unwrap();
        assert_eq!(rows, [(0, vec![157.0, 164.0]), (1, vec![57.0, 64.0])], "{name}");
    }
}

#[test]
fn values_of_many_machines_need_not_fit_at_once() {
    let (x, z, kernel) = (data(80, 3), data(4, 3), KernelFn::new(Shape::Rbf, 1.0).unwrap());
    let all: Vec<usize> = (0..80).collect();
    let coef = Mat::from_fn(4, 700, |j, c| (0.3 * (j * (c + 1)) as f64).cos());
    for device in accelerators() {
        let (x_rows, z_rows) = (Rows::from(&x), Rows::from(&z));
        let control = Control::default();
        let got = Kernels::times(&device, &x_rows, &all, &z_rows, coef.as_ref(), &kernel, &control).unwrap();
        for (i, row) in got.chunks(700).enumerate() {
            for (c, value) in row.iter().enumerate() {
                let want: f64 = (0..4).map(|j| coef[(j, c)] * naive(&x, i, &z, j, &kernel)).sum();
                assert!((value - want).abs() <= 1e-14, "row {i}, machine {c}: {value} is not {want}");
            }
        }
    }
}

#[test]
fn an_error_of_the_receiver_and_an_interruption_end_the_panels() {
    let (x, kernel) = (data(80, 3), KernelFn::new(Shape::Rbf, 1.0).unwrap());
    let all: Vec<usize> = (0..80).collect();
    for device in accelerators() {
        let rows = Rows::from(&x);
        let control = Control::default();
        let mut calls = 0;
        let mut each = |_: usize, _: &[f64]| {
            calls += 1;
            control.cancel();
            Ok(())
        };
        let ended = device.panels(&rows, &all, &rows, &all, &kernel, &[], &control, &mut each);
        assert_eq!((ended, calls), (Err(Error::Interrupted), 1));
        let mut each = |_: usize, _: &[f64]| Err(Error::NoLoss);
        let ended = device.panels(&rows, &all, &rows, &all, &kernel, &[], &Control::default(), &mut each);
        assert_eq!(ended, Err(Error::NoLoss));
        let coef = Mat::<f64>::zeros(80, 1);
        let ended = Kernels::times(&device, &rows, &all, &rows, coef.as_ref(), &kernel, &control);
        assert_eq!(ended, Err(Error::Interrupted));
        assert_eq!(device.machine.used(), 0);
    }
}
