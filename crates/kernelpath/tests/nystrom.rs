//! Landmarks, the map they give, and the features it makes.

mod common;

use common::{data, decision, kernel, naive_kernel};
use kernelpath::transform;
use kernelpath::{
    Control, Csr, Error, Features, KernelFn, Landmarks, LowRank, Nystrom, Result, Rows, RowsBuf, Shape, Storage,
};

const SHAPES: &[Shape] = &[
    Shape::Rbf,
    Shape::Laplacian,
    Shape::Poly { degree: 3, coef0: 0.5 },
    Shape::Linear,
    Shape::Matern32,
    Shape::Matern52,
];

const RULES: [Landmarks; 3] = [Landmarks::Uniform, Landmarks::KMeans, Landmarks::RpCholesky];

fn nystrom(x: &Rows, shape: Shape, landmarks: &Landmarks, n_landmarks: usize) -> Nystrom {
    Nystrom::builder(kernel(shape)).low_rank(LowRank::new(landmarks.clone(), n_landmarks)).seed(7).build(x).unwrap()
}

fn features(nystrom: &Nystrom, x: &Rows) -> Features<f64> {
    Features::compute(nystrom, x, Storage::Memory, &Control::default()).unwrap()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Largest difference of ZZᵀ from the kernel, entry by entry.
fn error_of_kernel(z: &Features<f64>, x: &[f64], p: usize, kernel: &KernelFn) -> f64 {
    let row = |i: usize| &x[i * p..(i + 1) * p];
    let pairs = (0..z.n()).flat_map(|i| (0..=i).map(move |j| (i, j)));
    pairs.map(|(i, j)| (dot(z.row(i), z.row(j)) - naive_kernel(kernel, row(i), row(j))).abs()).fold(0.0, f64::max)
}

/// Rows with many zeros, and the arrays of their sparse twin.
struct Twins {
    p: usize,
    dense: Vec<f64>,
    indptr: Vec<usize>,
    indices: Vec<usize>,
    values: Vec<f64>,
}

impl Twins {
    fn new(n: usize, p: usize, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut dense, mut indptr, mut indices, mut values) = (Vec::new(), vec![0], Vec::new(), Vec::new());
        for _ in 0..n {
            for j in 0..p {
                let value = if rng.f64() < 0.3 { 2.0 * rng.f64() - 1.0 } else { 0.0 };
                dense.push(value);
                if value != 0.0 {
                    indices.push(j);
                    values.push(value);
                }
            }
            indptr.push(indices.len());
        }
        Self { p, dense, indptr, indices, values }
    }

    fn rows(&self) -> Rows<'_> {
        Rows::from_slice(&self.dense, self.p).unwrap()
    }

    fn csr(&self) -> Rows<'_> {
        Csr::new(self.p, &self.indptr[..], &self.indices[..], &self.values[..]).unwrap().into()
    }
}

#[test]
fn with_all_rows_the_features_are_the_kernel() {
    let (x, _) = data(150, 4, 0.3, 1);
    let rows = Rows::from_slice(&x, 4).unwrap();
    for &shape in SHAPES {
        let every_row = Landmarks::Rows((0..150).rev().collect());
        for landmarks in
            [Landmarks::Uniform, Landmarks::RpCholesky, every_row, Landmarks::Given(RowsBuf::copy_of(&rows))]
        {
            let nystrom = nystrom(&rows, shape, &landmarks, 150);
            let error = error_of_kernel(&features(&nystrom, &rows), &x, 4, &kernel(shape));
            assert!(error < 1e-9, "{shape:?}, {landmarks:?}: {error:e}");
            let approximation = nystrom.approximation();
            assert!(approximation.trace_error < 1e-10 && approximation.tail < 1e-9, "{shape:?}: {approximation:?}");
            assert_eq!(approximation.sampled_rows, 150);
        }
    }
}

#[test]
fn features_are_those_of_the_formula() {
    // ZZᵀ = K_nm K_mm⁻¹ K_mn, with the inverse by elimination.
    let (x, _) = data(40, 3, 0.3, 2);
    let (rows, of) = (Rows::from_slice(&x, 3).unwrap(), kernel(Shape::Rbf));
    let landmarks = [3, 17, 8, 30, 21];
    let k = |i: usize, j: usize| naive_kernel(&of, &x[i * 3..i * 3 + 3], &x[j * 3..j * 3 + 3]);
    let nystrom = nystrom(&rows, Shape::Rbf, &Landmarks::Rows(landmarks.to_vec()), 1);
    assert_eq!(nystrom.chosen(), Some(&landmarks[..]));
    let z = features(&nystrom, &rows);
    for j in 0..40 {
        let mut system: Vec<Vec<f64>> =
            landmarks.iter().map(|&a| landmarks.iter().map(|&b| k(a, b)).chain([k(a, j)]).collect()).collect();
        for c in 0..5 {
            let pivot = system[c].clone();
            for row in system.iter_mut().skip(c + 1) {
                let factor = row[c] / pivot[c];
                row.iter_mut().zip(&pivot).for_each(|(v, p)| *v -= factor * p);
            }
        }
        let mut solved = [0.0; 5];
        for r in (0..5).rev() {
            let known: f64 = (r + 1..5).map(|c| system[r][c] * solved[c]).sum();
            solved[r] = (system[r][5] - known) / system[r][r];
        }
        for i in 0..40 {
            let expected: f64 = landmarks.iter().zip(&solved).map(|(&a, s)| k(i, a) * s).sum();
            assert!((dot(z.row(i), z.row(j)) - expected).abs() < 1e-10);
        }
    }
    let trace: f64 = (0..40).map(|i| dot(z.row(i), z.row(i))).sum();
    assert!((nystrom.approximation().trace_error - (1.0 - trace / 40.0)).abs() < 1e-12);
    assert!(nystrom.approximation().trace_error > 0.1);
}

#[test]
fn sparse_is_dense() {
    let twins = Twins::new(400, 9, 3);
    for &shape in SHAPES {
        for landmarks in &RULES {
            let (dense, sparse) =
                (nystrom(&twins.rows(), shape, landmarks, 30), nystrom(&twins.csr(), shape, landmarks, 30));
            assert_eq!(dense.chosen(), sparse.chosen(), "{shape:?}, {landmarks:?}");
            assert_eq!(matches!(sparse.landmarks(), Rows::Csr(_)), !matches!(landmarks, Landmarks::KMeans));
            // Singular vectors of nearly equal values may turn; products do not.
            let all = [
                features(&dense, &twins.rows()),
                features(&dense, &twins.csr()),
                features(&sparse, &twins.rows()),
                features(&sparse, &twins.csr()),
            ];
            for z in &all[1..] {
                for i in (0..400).step_by(7) {
                    let (ours, expected) = (dot(z.row(i), z.row(399)), dot(all[0].row(i), all[0].row(399)));
                    assert!((ours - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{shape:?}, {landmarks:?}");
                }
            }
        }
    }
}

#[test]
fn threads_and_files_change_nothing() {
    let (x, _) = data(1500, 5, 0.3, 4);
    let rows = Rows::from_slice(&x, 5).unwrap();
    let run = |threads: usize, storage: Storage, landmarks: &Landmarks| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let nystrom = nystrom(&rows, Shape::Rbf, landmarks, 200);
            let wide = Features::<f64>::compute(&nystrom, &rows, storage, &Control::default()).unwrap();
            let single = Features::<f32>::compute(&nystrom, &rows, storage, &Control::default()).unwrap();
            assert!(wide.all().iter().zip(single.all()).all(|(w, s)| *w as f32 == *s));
            (nystrom, wide)
        })
    };
    for landmarks in &RULES {
        let (nystrom, one) = run(1, Storage::Memory, landmarks);
        for (threads, storage) in [(2, Storage::Memory), (5, Storage::Memory), (2, Storage::File)] {
            let (_, other) = run(threads, storage, landmarks);
            assert!(one.all() == other.all(), "{landmarks:?} with {threads} threads, {storage:?}");
        }
        // Rows by themselves, and through the stateless function.
        let few = Rows::from_slice(&x[300 * 5..310 * 5], 5).unwrap();
        let apart = features(&nystrom, &few);
        let again: Vec<f64> =
            transform(&few, &nystrom.landmarks(), nystrom.map(), &nystrom.kernel(), 1, &Control::default()).unwrap();
        for i in 0..10 {
            let view = one.rows(300..310);
            for j in 0..one.rank() {
                assert!((apart.row(i)[j] - one.row(300 + i)[j]).abs() < 1e-8);
                assert_eq!(again[i * one.rank() + j], apart.row(i)[j]);
                assert_eq!(view[(i, j)], one.row(300 + i)[j]);
            }
        }
    }
}

#[test]
fn coefficients_predict_what_features_do() {
    let (x, _) = data(300, 4, 0.3, 5);
    let rows = Rows::from_slice(&x, 4).unwrap();
    for landmarks in &RULES {
        let nystrom = nystrom(&rows, Shape::Matern32, landmarks, 25);
        let w: Vec<f64> = (0..nystrom.rank()).map(|j| (j as f64).cos()).collect();
        let coef = nystrom.coefficients(&w);
        let f = decision(&rows, &nystrom.landmarks(), &coef, 0.5, &nystrom.kernel());
        let z = features(&nystrom, &rows);
        assert!((0..300).all(|i| (f[i] - dot(z.row(i), &w) - 0.5).abs() < 1e-9), "{landmarks:?}");
    }
}

#[test]
fn a_smaller_rank_keeps_the_leading_features() {
    let (x, _) = data(200, 3, 0.3, 6);
    let rows = Rows::from_slice(&x, 3).unwrap();
    let full = nystrom(&rows, Shape::Rbf, &Landmarks::Uniform, 40);
    let cut = Nystrom::builder(kernel(Shape::Rbf))
        .low_rank(LowRank::new(Landmarks::Uniform, 40).rank(10))
        .seed(7)
        .build(&rows);
    let cut = cut.unwrap();
    assert_eq!((full.rank(), cut.rank()), (40, 10));
    let spectrum = &full.approximation().spectrum;
    assert!(spectrum.windows(2).all(|pair| pair[0] >= pair[1]));
    assert_eq!(cut.approximation().spectrum, spectrum[..10]);
    let tail = spectrum[10..].iter().sum::<f64>() / spectrum.iter().sum::<f64>();
    assert!((cut.approximation().tail - tail).abs() < 1e-12 && (spectrum.iter().sum::<f64>() - 40.0).abs() < 1e-9);
    assert!(cut.approximation().trace_error > full.approximation().trace_error);
    let (all, leading) = (features(&full, &rows), features(&cut, &rows));
    assert!((0..200).all(|i| all.row(i)[..10] == *leading.row(i)));
}

#[test]
fn awkward_data_works() {
    // Six different rows, each fifty times; a constant feature; fewer rows than landmarks.
    let repeated: Vec<f64> = (0..300).flat_map(|i| [f64::from(i % 3), f64::from(i % 2), 4.0]).collect();
    let rows = Rows::from_slice(&repeated, 3).unwrap();
    for landmarks in &RULES {
        let nystrom = nystrom(&rows, Shape::Rbf, landmarks, 100);
        assert_eq!(nystrom.rank(), 6, "{landmarks:?}");
        let z = features(&nystrom, &rows);
        assert!(error_of_kernel(&z, &repeated, 3, &kernel(Shape::Rbf)) < 1e-9, "{landmarks:?}");
    }
    // k-means and pivots see that there is nothing more to choose.
    assert_eq!(nystrom(&rows, Shape::Rbf, &Landmarks::KMeans, 100).landmarks().nrows(), 6);
    assert_eq!(nystrom(&rows, Shape::Rbf, &Landmarks::RpCholesky, 100).chosen().unwrap().len(), 6);

    let twice = Landmarks::Rows(vec![0, 5, 0, 6]); // row 6 equals row 0
    assert_eq!(nystrom(&rows, Shape::Rbf, &twice, 1).rank(), 2);

    let constant = [2.0; 40];
    let rows = Rows::from_slice(&constant, 2).unwrap();
    for landmarks in &RULES {
        let nystrom = nystrom(&rows, Shape::Rbf, landmarks, 50);
        assert_eq!(nystrom.rank(), 1);
        assert!((features(&nystrom, &rows).row(19)[0].abs() - 1.0).abs() < 1e-12);
    }

    let zeros = [0.0; 40];
    let rows = Rows::from_slice(&zeros, 2).unwrap();
    for landmarks in &RULES {
        let nystrom = nystrom(&rows, Shape::Linear, landmarks, 5);
        assert_eq!((nystrom.rank(), nystrom.approximation().trace_error), (1, 0.0));
        assert_eq!(features(&nystrom, &rows).row(3), [0.0]);
    }

    let one = nystrom(&Rows::from_slice(&[1.0, 2.0], 2).unwrap(), Shape::Rbf, &Landmarks::RpCholesky, 100);
    assert_eq!((one.rank(), one.chosen()), (1, Some(&[0][..])));
}

#[test]
fn indefinite_kernels_lose_their_negative_part() {
    let (x, _) = data(60, 3, 0.3, 8);
    let rows = Rows::from_slice(&x, 3).unwrap();
    for landmarks in &RULES {
        let nystrom = nystrom(&rows, Shape::Sigmoid { coef0: -1.0 }, landmarks, 60);
        let approximation = nystrom.approximation();
        assert!(approximation.spectrum.iter().all(|v| *v > 0.0));
        assert!(approximation.tail > 0.01 && approximation.tail < 1.0, "{landmarks:?}: {approximation:?}");
        assert!(features(&nystrom, &rows).all().iter().all(|z| z.is_finite()));
    }
}

#[test]
fn weights_steer_the_choice() {
    let (x, _) = data(300, 3, 0.0, 9);
    let rows = Rows::from_slice(&x, 3).unwrap();
    let weight: Vec<f64> = (0..300).map(|i| if i % 3 == 0 { 0.0 } else { 1.0 + f64::from(i % 2) * 99.0 }).collect();
    for landmarks in &[Landmarks::Uniform, Landmarks::RpCholesky] {
        let of = kernel(Shape::Rbf);
        let choose = |n| {
            Nystrom::builder(of)
                .low_rank(LowRank::new(landmarks.clone(), n))
                .weights(Some(&weight))
                .seed(1)
                .build(&rows)
                .unwrap()
        };
        assert!(choose(1000).chosen().unwrap().iter().all(|i| i % 3 != 0));
        assert_eq!(choose(1000).approximation().sampled_rows, 200);
        // Of a hundred light and a hundred heavy rows, the first forty are nearly all heavy.
        let heavy = choose(40).chosen().unwrap().iter().filter(|i| *i % 2 == 1).count();
        assert!(heavy > 30, "{landmarks:?}: {heavy}");
    }
    // A centroid of two far groups, one of them of weight 0, lies in the other.
    let far: Vec<f64> = (0..100).map(|i| if i < 50 { 0.01 * f64::from(i) } else { 1e3 + f64::from(i) }).collect();
    let weight: Vec<f64> = (0..100).map(|i| if i < 50 { 1.0 } else { 0.0 }).collect();
    let rows = Rows::from_slice(&far, 1).unwrap();
    let of = kernel(Shape::Rbf);
    let means = Nystrom::builder(of)
        .low_rank(LowRank::new(Landmarks::KMeans, 5))
        .weights(Some(&weight))
        .seed(1)
        .build(&rows)
        .unwrap();
    assert_eq!((means.landmarks().nrows(), means.chosen()), (5, None));
    assert!((0..5).all(|i| (0.0..0.5).contains(&means.landmarks().entry(i, 0).unwrap())));
}

#[test]
fn k_means_finds_clusters_and_pivots_beat_chance() {
    // Ten far clusters: ten centroids are their means.
    let mut rng = fastrand::Rng::with_seed(3);
    let x: Vec<f64> = (0..1000).flat_map(|i| [f64::from(i % 10) * 10.0 + rng.f64() - 0.5, rng.f64() - 0.5]).collect();
    let rows = Rows::from_slice(&x, 2).unwrap();
    let means = nystrom(&rows, Shape::Rbf, &Landmarks::KMeans, 10);
    let mut found: Vec<f64> = (0..10).map(|i| means.landmarks().entry(i, 0).unwrap()).collect();
    found.sort_unstable_by(f64::total_cmp);
    for (k, centre) in found.iter().enumerate() {
        let mean = (0..1000).filter(|i| i % 10 == k).map(|i| x[2 * i]).sum::<f64>() / 100.0;
        assert!((centre - mean).abs() < 1e-9, "{centre} is not the mean {mean}");
    }
    // A rare cluster that uniform sampling of 12 rows among 3000 misses more often than not.
    let x: Vec<f64> = (0..3000).map(|i| if i < 30 { 50.0 + f64::from(i) } else { 0.001 * f64::from(i) }).collect();
    let rows = Rows::from_slice(&x, 1).unwrap();
    let error = |landmarks| nystrom(&rows, Shape::Rbf, &landmarks, 30).approximation().trace_error;
    assert!(error(Landmarks::RpCholesky) < 0.3 * error(Landmarks::Uniform));
}

#[test]
fn large_samples_are_seeded() {
    // More rows than any rule looks at, and than the error is measured on.
    let (x, _) = data(12_000, 2, 0.3, 10);
    let rows = Rows::from_slice(&x, 2).unwrap();
    for landmarks in &RULES {
        let choose = |seed| {
            Nystrom::builder(kernel(Shape::Rbf))
                .low_rank(LowRank::new(landmarks.clone(), 20))
                .seed(seed)
                .build(&rows)
                .unwrap()
        };
        let (a, again, b) = (choose(1), choose(1), choose(2));
        assert_eq!(a.approximation(), again.approximation());
        assert_eq!(a.map(), again.map());
        assert_ne!(a.map(), b.map());
        assert_eq!(a.approximation().sampled_rows, 5000);
        let z = features(&a, &rows);
        let exact = 1.0 - z.all().iter().map(|z| z * z).sum::<f64>() / 12_000.0;
        assert!((a.approximation().trace_error - exact).abs() < 0.05 * exact, "{landmarks:?}");
    }
}

#[test]
fn precomputed_is_the_kernel_it_was_computed_from() {
    let (x, _) = data(120, 3, 0.3, 11);
    let (rows, of) = (Rows::from_slice(&x, 3).unwrap(), kernel(Shape::Rbf));
    let row = |i: usize| &x[i * 3..i * 3 + 3];
    let k: Vec<f64> = (0..120 * 120).map(|at| naive_kernel(&of, row(at / 120), row(at % 120))).collect();
    let matrix = Rows::from_slice(&k, 120).unwrap();
    for landmarks in [Landmarks::Uniform, Landmarks::RpCholesky, Landmarks::Rows(vec![9, 4, 77])] {
        let (given, computed) =
            (nystrom(&matrix, Shape::Precomputed, &landmarks, 20), nystrom(&rows, Shape::Rbf, &landmarks, 20));
        assert_eq!(given.chosen(), computed.chosen());
        let (a, b) = (features(&given, &matrix), features(&computed, &rows));
        assert!((0..120).all(|i| (dot(a.row(i), a.row(50)) - dot(b.row(i), b.row(50))).abs() < 1e-10));
        assert!((given.approximation().trace_error - computed.approximation().trace_error).abs() < 1e-10);
        // Columns of the landmarks only, as in prediction.
        let chosen = given.chosen().unwrap();
        let few: Vec<f64> =
            (0..120).flat_map(|i| chosen.iter().map(move |&j| (i, j))).map(|(i, j)| k[i * 120 + j]).collect();
        let few = Rows::from_slice(&few, chosen.len()).unwrap();
        let z: Vec<f64> =
            transform(&few, &given.landmarks(), given.map(), &given.kernel(), 1, &Control::default()).unwrap();
        assert_eq!(z, a.all());
    }
}

#[test]
fn auto_takes_centroids_where_they_fit() {
    let twins = Twins::new(200, 9, 14);
    let auto = |x: Rows, shape, count| nystrom(&x, shape, &Landmarks::Auto, count);
    for (auto, rule) in [
        (auto(twins.rows(), Shape::Rbf, 20), Landmarks::KMeans),
        (auto(twins.csr(), Shape::Matern52, 20), Landmarks::KMeans), // 180 numbers, X has about 540
        (auto(twins.csr(), Shape::Rbf, 100), Landmarks::RpCholesky),
        (auto(twins.rows(), Shape::Laplacian, 20), Landmarks::RpCholesky),
    ] {
        let expected = nystrom(&twins.rows(), auto.kernel().shape, &rule, auto.landmarks().nrows());
        assert_eq!(auto.chosen(), expected.chosen());
        assert_eq!(auto.chosen().is_none(), matches!(rule, Landmarks::KMeans));
        assert!((auto.approximation().trace_error - expected.approximation().trace_error).abs() < 1e-9);
    }
    let k: Vec<f64> = (0..9).map(|at| if at % 4 == 0 { 1.0 } else { 0.5 }).collect();
    let precomputed = nystrom(&Rows::from_slice(&k, 3).unwrap(), Shape::Precomputed, &Landmarks::Auto, 3);
    assert_eq!(precomputed.chosen(), Some(&[0, 1, 2][..]));
}

fn failure(x: &Rows, of: KernelFn, landmarks: &Landmarks, n_landmarks: usize, rank: Option<usize>) -> String {
    let low_rank = LowRank::new(landmarks.clone(), n_landmarks);
    let low_rank = if let Some(rank) = rank { low_rank.rank(rank) } else { low_rank };
    Nystrom::builder(of).low_rank(low_rank).build(x).unwrap_err().to_string()
}

#[test]
fn errors_say_what_fits() {
    let (x, _) = data(20, 2, 0.3, 12);
    let (rows, rbf) = (Rows::from_slice(&x, 2).unwrap(), kernel(Shape::Rbf));
    let narrow = Rows::from_slice(&x[..10], 1).unwrap();
    let mut bad = x.clone();
    bad[7] = f64::NAN;
    let precomputed = kernel(Shape::Precomputed);
    let cases = [
        (failure(&rows, rbf, &Landmarks::Uniform, 0, None), "n_landmarks must be at least 1, got 0"),
        (failure(&rows, rbf, &Landmarks::Uniform, 5, Some(0)), "rank must be at least 1, got 0"),
        (failure(&rows, rbf, &Landmarks::KMeans, 5, Some(6)), "5 give no more than 5 features, but the rank is 6"),
        (failure(&rows, rbf, &Landmarks::Rows(vec![3, 20]), 5, None), "no row 20: X has 20 rows"),
        (failure(&rows, rbf, &Landmarks::Rows(vec![]), 5, None), "none are given"),
        (failure(&rows, rbf, &Landmarks::Given(RowsBuf::copy_of(&narrow)), 5, None), "1 columns, but X has 2"),
        (
            failure(&Rows::from_slice(&bad, 2).unwrap(), rbf, &Landmarks::Uniform, 5, None),
            "X contains NaN at row 3, column 1",
        ),
        (failure(&rows, precomputed, &Landmarks::Uniform, 5, None), "must be square, got 20 x 2"),
        (failure(&rows, precomputed, &Landmarks::Rows(vec![1]), 5, None), "must be square, got 20 x 2"),
        (
            failure(&Rows::from_slice(&x[..9], 3).unwrap(), precomputed, &Landmarks::KMeans, 2, None),
            "\"uniform\", \"rpcholesky\", or indices",
        ),
        (Landmarks::from_name("best").unwrap_err().to_string(), "known are auto, uniform, kmeans, rpcholesky"),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
    let weighted = |weight: &[f64]| {
        Nystrom::builder(rbf)
            .low_rank(LowRank::new(Landmarks::Uniform, 5))
            .weights(Some(weight))
            .build(&rows)
            .unwrap_err()
    };
    assert!(matches!(weighted(&[1.0]), Error::Length { got: 1, expected: 20, .. }));
    assert!(matches!(weighted(&[-1.0; 20]), Error::Weight { row: 0, .. }));
    assert_eq!(weighted(&[0.0; 20]), Error::NoWeight);

    let fitted = nystrom(&rows, Shape::Rbf, &Landmarks::Uniform, 5);
    let compute = |x: Rows| Features::<f32>::compute(&fitted, &x, Storage::Memory, &Control::default()).map(|_| ());
    assert_eq!(compute(narrow), Err(Error::Features { got: 1, expected: 2 }));
    assert!(matches!(compute(Rows::from_slice(&bad, 2).unwrap()), Err(Error::NotFinite { row: 3, column: 1, .. })));
    let huge = [1e25; 4];
    let poly = nystrom(&rows, Shape::Poly { degree: 2, coef0: 0.0 }, &Landmarks::Uniform, 5);
    let overflow =
        Features::<f32>::compute(&poly, &Rows::from_slice(&huge[..], 2).unwrap(), Storage::Memory, &Control::default());
    assert!(matches!(overflow, Err(Error::Overflow { precision: "float32", row: 0, .. })));
}

#[test]
fn sparse_centroids_that_would_fill_the_memory_are_refused() {
    let (indptr, indices, values) = ([0_i64, 1, 2, 3], [5_i64, 9_000_000, 1 << 40], [1.0, 2.0, 3.0]);
    let x = Csr::new((1 << 40) + 1, &indptr[..], &indices[..], &values[..]).unwrap().into();
    if kernelpath::available_memory().is_some() {
        let message = failure(&x, kernel(Shape::Rbf), &Landmarks::KMeans, 3, None);
        assert!(message.contains("centroids are dense") && message.contains("rpcholesky"), "{message}");
    }
    assert_eq!(nystrom(&x, Shape::Rbf, &Landmarks::RpCholesky, 3).rank(), 3);
}

#[test]
fn interruption_is_seen() {
    let (x, _) = data(300, 2, 0.3, 13);
    let rows = Rows::from_slice(&x, 2).unwrap();
    let stopped = Control::default();
    stopped.cancel();
    for landmarks in &RULES {
        let outcome = Nystrom::builder(kernel(Shape::Rbf))
            .low_rank(LowRank::new(landmarks.clone(), 20))
            .build_with(&rows, &stopped);
        assert_eq!(outcome.map(|_| ()), Err(Error::Interrupted));
    }
    let fitted = nystrom(&rows, Shape::Rbf, &Landmarks::Uniform, 20);
    let compute = |control: &Control| -> Result<()> {
        Features::<f64>::compute(&fitted, &rows, Storage::Memory, control).map(|_| ())
    };
    assert_eq!(compute(&stopped), Err(Error::Interrupted));
    let late = Control::new(Some(std::time::Duration::ZERO));
    assert!(matches!(compute(&late), Err(Error::TimeBudget { rows: 300, .. })));
}
