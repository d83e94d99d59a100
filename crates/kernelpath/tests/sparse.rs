//! Sparse rows give what the same rows give dense.

mod common;

use common::{data, kernel};
use kernelpath::kernel_matrix;
use kernelpath::{Bandwidth, Control, Csr, Error, Kernel, Rows, Shape, Svc};
use proptest::prelude::*;

const SHAPES: &[Shape] = &[
    Shape::Rbf,
    Shape::Laplacian,
    Shape::Poly { degree: 3, coef0: 0.5 },
    Shape::Linear,
    Shape::Sigmoid { coef0: 0.2 },
    Shape::Matern32,
    Shape::Matern52,
];

/// The arrays of a sparse matrix and the same matrix row after row.
#[derive(Debug, Clone)]
struct Twins {
    columns: usize,
    indptr: Vec<usize>,
    indices: Vec<usize>,
    values: Vec<f64>,
    dense: Vec<f64>,
}

impl Twins {
    /// Stores the entries that `keep` names, and every other that is not 0.
    fn new(dense: Vec<f64>, columns: usize, keep: impl Fn(usize) -> bool) -> Self {
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (i, row) in dense.chunks_exact(columns).enumerate() {
            for (j, &value) in row.iter().enumerate() {
                if value != 0.0 || keep(i * columns + j) {
                    indices.push(j);
                    values.push(value);
                }
            }
            indptr.push(indices.len());
        }
        Self { columns, indptr, indices, values, dense }
    }

    /// A matrix with columns of every density from full to empty, and some stored zeros.
    fn mixed(n: usize, columns: usize, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let share = |j: usize| 0.5f64.powi(j as i32 % 12);
        let entry = |at: usize| if rng.f64() < share(at % columns) { 3.0 * rng.f64() - 1.5 } else { 0.0 };
        Self::new((0..n * columns).map(entry).collect(), columns, |at| at % 17 == 0)
    }

    fn csr(&self) -> Csr<'_> {
        Csr::new(self.columns, &self.indptr[..], &self.indices[..], &self.values[..]).unwrap()
    }

    fn rows(&self) -> Rows<'_> {
        Rows::from_slice(&self.dense, self.columns).unwrap()
    }
}

fn assert_same_kernels(x: &Twins, z: &Twins) {
    for &shape in SHAPES {
        let matrix = |x: Rows, z: Rows| kernel_matrix(&x, &z, &kernel(shape), 1, &Control::default()).unwrap();
        let dense = matrix(x.rows(), z.rows());
        let sparse: [(Rows, Rows); 3] =
            [(x.csr().into(), z.csr().into()), (x.csr().into(), z.rows()), (x.rows(), z.csr().into())];
        for (case, (x, z)) in sparse.into_iter().enumerate() {
            for (at, (ours, dense)) in matrix(x, z).iter().zip(&dense).enumerate() {
                assert!(
                    (ours - dense).abs() <= 1e-12 * (1.0 + dense.abs()),
                    "{shape:?}, case {case}, entry {at}: {ours} not {dense}"
                );
            }
        }
    }
}

#[test]
fn kernels_equal_the_dense_ones_across_tiles() {
    assert_same_kernels(&Twins::mixed(150, 40, 1), &Twins::mixed(140, 40, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn kernels_equal_the_dense_ones(
        columns in 1usize..12,
        x in prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => -2.0..2.0f64], 12..200),
        z in prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => -2.0..2.0f64], 12..200),
        stored in 1usize..9,
    ) {
        let twins = |mut dense: Vec<f64>| {
            dense.truncate(dense.len() / columns * columns);
            Twins::new(dense, columns, |at| at % stored == 0)
        };
        assert_same_kernels(&twins(x), &twins(z));
    }
}

#[test]
fn bandwidths_equal_the_dense_ones() {
    let x = Twins::mixed(120, 30, 3);
    for bandwidth in [Bandwidth::Sigest, Bandwidth::Scale] {
        for shape in [Shape::Rbf, Shape::Laplacian] {
            let gamma = |x: Rows| Kernel { shape, bandwidth }.resolve(&x, None, 5).unwrap().gamma;
            let (sparse, dense) = (gamma(x.csr().into()), gamma(x.rows()));
            assert!((sparse - dense).abs() <= 1e-12 * dense, "{shape:?} {bandwidth:?}: {sparse} not {dense}");
        }
    }
}

#[test]
fn a_model_equals_the_dense_one_and_takes_rows_of_either_kind() {
    // Rows come twice, once with their zeros stored: they are the same rows and merge.
    let (half, labels) = data(60, 8, 0.4, 4);
    let half: Vec<f64> = half.iter().map(|v| if v.abs() < 0.7 { 0.0 } else { *v }).collect();
    let x = Twins::new([half.clone(), half].concat(), 8, |at| at >= 480);
    let y = [labels.clone(), labels].concat();
    let fit = |x: Rows| Svc::builder().cs([0.1, 1.0, 10.0]).cv(4).tol(1e-10).fit(x, &y).unwrap();
    let (sparse, dense) = (fit(x.csr().into()), fit(x.rows()));
    assert_eq!(sparse.path().gram_bytes, dense.path().gram_bytes);
    assert!(sparse.path().gram_bytes < 120 * 120 * 4, "equal rows did not merge");
    assert_eq!(sparse.scores(), dense.scores());
    assert_eq!(sparse.c(), dense.c());
    let expected = dense.decision_function(x.rows()).unwrap();
    for model in [&sparse, &dense] {
        for rows in [x.rows(), x.csr().into()] {
            for (ours, expected) in model.decision_function(rows).unwrap().iter().zip(&expected) {
                assert!((ours - expected).abs() <= 1e-8, "{ours} not {expected}");
            }
        }
    }
}

#[test]
fn memory_goes_with_the_entries_not_with_the_columns() {
    let columns = usize::MAX;
    let indptr: Vec<i64> = (0..=40).map(|i| 2 * i).collect();
    let indices: Vec<i64> = (0..40).flat_map(|i| [i % 3, i64::MAX - i % 2]).collect();
    let values = vec![1.0f32; 80];
    let x = Csr::new(columns, &indptr[..], &indices[..], &values[..]).unwrap();
    let y: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { -1.0 } else { 1.0 }).collect();
    for &shape in SHAPES {
        let kernel = Kernel { shape, bandwidth: Bandwidth::Sigest };
        let svc = Svc::builder().kernel(kernel).cs([10.0, 100.0]).cv(2).fit(x, &y).unwrap();
        assert_eq!(svc.predict(x).unwrap(), y, "{shape:?}");
    }
}

#[test]
fn values_and_columns_are_checked() {
    let mut x = Twins::mixed(20, 6, 5);
    let y: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { -1.0 } else { 1.0 }).collect();
    let svc = Svc::builder().cs([1.0]).cv(2).fit(x.csr(), &y).unwrap();
    let narrow = Csr::new(5, &[0usize, 1][..], &[4usize][..], &[1.0][..]).unwrap();
    assert_eq!(svc.predict(narrow), Err(Error::Features { got: 5, expected: 6 }));
    let none = Csr::new(5, &[0usize][..], &[0usize; 0][..], &[0.0; 0][..]).unwrap();
    assert_eq!(Rows::from(none).check("X"), Err(Error::Empty { rows: 0, columns: 5 }));
    let at = x.indptr[7];
    x.values[at] = f64::INFINITY;
    let column = x.indices[at];
    let expected = Error::NotFinite { what: "X", value: f64::INFINITY, row: 7, column };
    assert_eq!(Svc::builder().fit(x.csr(), &y).unwrap_err(), expected);
    assert_eq!(svc.predict(x.csr()), Err(expected));
}
