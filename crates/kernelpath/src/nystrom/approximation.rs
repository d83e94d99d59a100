//! The kernel at low rank: k(x, z) ≈ ⟨φ(x), φ(z)⟩ with φ in r dimensions, exact on the span of the landmarks.
//!
//! With landmarks l₁ … l_m and K_mm = UΛUᵀ their kernel matrix,
//!
//! ```text
//! φ(x) = Mᵀ k(x, l)      M = U_r Λ_r^(−1/2)      Z = K_nm M      ZZᵀ = K_nm K_mm⁺ K_mn ≈ K
//! ```
//!
//! (Nyström 1930; Williams, Seeger 2001). A linear machine f = ⟨w, φ(x)⟩ + b is the kernel machine
//! Σⱼ (Mw)ⱼ k(x, lⱼ) + b, so that predicting needs the landmarks alone.

use faer::{Mat, MatRef};

use crate::data::rows::{Rows, RowsBuf};
use crate::error::{Error, Result};
use crate::kernel::definite::{Sign, examine, is_in_doubt};
use crate::kernel::feature_map::Map;
use crate::kernel::gram::Gram;
use crate::kernel::plane::Plane;
use crate::kernel::shape::{KernelFn, Shape};
use crate::kernel::tilt::largest_root;
use crate::numeric::eigen::{eigen, eigen_bytes};
use crate::numeric::memory;
use crate::nystrom::build::LowRank;
use crate::nystrom::features::LowRankSize;
use crate::nystrom::landmarks::{Candidates, Choice, Landmarks, check_memory};
use crate::observe::Control;

/// Eigenvalues of K_mm below this share of the largest one are dropped.
///
/// Eigenvalues are found up to m·2⁻⁵³ of the largest, which is 2e-13 at m = 2000, so that smaller ones are not known.
/// What is kept can be told apart in single precision, too: kernel values are right to about 1e-14, and divided by √λ ≥
/// 1e-6 that is an error of 1e-8 in a feature, less than rounding it to f32 (6e-8). And dropping eigenvalues changes no
/// entry of the approximation by more than 1e-12 of the largest eigenvalue.
const NUMERICAL_RANK: f64 = 1e-12;

/// If the longest landmark is longer than the shortest by more than this factor, the eigenvalues of K_mm with rows of
/// length 1 decide which are rounding. With a larger factor, eigenvalues of short rows would be dropped with it.
const UNEVEN: f64 = 1e3;

/// What errors call the features of the landmarks.
const LANDMARK_FEATURES: &str = "the features of the landmarks";

/// Most rows on which the error of the approximation is measured. The standard error of a mean of that many numbers
/// between 0 and 1 is below 0.008, and far below it where the error is small.
const MEASURED_ROWS: usize = 5000;

/// Matrices over all pairs of landmarks that are in memory at once: the kernel, its eigenvectors and their work space.
const OF_PAIRS: usize = 6;

/// Landmarks and the map from their kernel to features.
///
/// ```
/// use kernelpath::{Control, Features, KernelFn, LowRank, Nystrom, Rows, Shape, Storage};
///
/// let x: Vec<f64> = (0..1000).map(|i| (0.37 * i as f64).sin()).collect();
/// let rows = Rows::from_slice(&x, 2)?;
/// let kernel = KernelFn::new(Shape::Rbf, 1.0)?;
/// let nystrom = Nystrom::builder(kernel).low_rank(LowRank::rp_cholesky(30)).build(&rows)?;
/// assert!(nystrom.approximation().trace_error < 1e-6);
///
/// let z = Features::<f64>::compute(&nystrom, &rows, Storage::Memory, &Control::default())?;
/// let product: f64 = z.row(3).iter().zip(z.row(8)).map(|(a, b)| a * b).sum();
/// let squared = (x[6] - x[16]).powi(2) + (x[7] - x[17]).powi(2);
/// assert!((product - (-squared).exp()).abs() < 1e-4);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Nystrom {
    kernel: KernelFn,
    /// Empty when the kernel is precomputed.
    landmarks: RowsBuf,
    chosen: Option<Vec<usize>>,
    /// Where the kernel with the landmarks is found: rows of `landmarks`, or columns of a precomputed matrix.
    columns: Vec<usize>,
    /// Number of columns that data must have.
    width: usize,
    map: Mat<f64>,
    /// The largest √k(l, l) of a landmark.
    largest_root: f64,
    approximation: Approximation,
    /// The smallest eigenvalue of K_mm, if K_mm is indefinite.
    smallest_eigenvalue: Option<f64>,
}

/// How far ZZᵀ is from K.
#[derive(Debug, Clone, PartialEq)]
pub struct Approximation {
    /// 1 − Σᵢ wᵢ‖zᵢ‖² / Σᵢ wᵢ k(xᵢ, xᵢ): the share of the trace of K that the features miss, between 0 and 1.
    pub trace_error: f64,
    /// Number of rows that the error was measured on: all rows of weight > 0, or a random sample of them.
    pub sampled_rows: usize,
    /// Eigenvalues of K_mm that were kept, descending.
    pub spectrum: Vec<f64>,
    /// Sum of the dropped eigenvalues over the sum of all, in absolute value. For a definite kernel, the latter is the
    /// trace of K_mm.
    pub tail: f64,
}

impl Nystrom {
    /// Chooses landmarks among the rows of weight > 0 (without weights, among all rows) and computes their map. It has no
    /// more features than K_mm has eigenvalues above rounding.
    pub(crate) fn found(
        x: &Rows,
        weight: Option<&[f64]>,
        kernel: KernelFn,
        low_rank: &LowRank,
        seed: u64,
        control: &Control,
    ) -> Result<Self> {
        let (landmarks, LowRankSize { landmarks: n_landmarks, rank }) = (low_rank.landmarks(), low_rank.size());
        x.check("X")?;
        check(x, landmarks, n_landmarks, rank)?;
        let candidates = Candidates::new(x.nrows(), weight)?;
        let choice = landmarks.choose(x, &candidates, &kernel, n_landmarks, seed, control)?;
        let count = match &choice {
            Choice::Rows(rows) => rows.len(),
            Choice::Points(points) => points.view().nrows(),
        };
        // Room for K_mm twice, and later for K_mm once with its eigenvectors and the space to find them.
        let square = 8 * (count as u64).pow(2);
        check_memory(square + square.max(eigen_bytes(count)), "use fewer landmarks")?;
        let gram = match &choice {
            Choice::Rows(rows) => Gram::<f64>::compute(x, rows, &kernel, None, control)?,
            Choice::Points(points) => {
                Gram::<f64>::compute(&points.view(), &(0..count).collect::<Vec<_>>(), &kernel, None, control)?
            }
        };
        let largest_root = (0..count).map(|i| gram.get(i, i).abs().sqrt()).fold(0.0, f64::max);
        let in_doubt = is_in_doubt(&kernel, false);
        let sign = in_doubt.then(|| examine(&gram, &kernel, x, control)).transpose()?;
        let lengths: Vec<f64> = (0..count).map(|i| gram.get(i, i).abs().sqrt()).filter(|root| *root > 0.0).collect();
        let shortest = lengths.iter().fold(largest_root, |a, root| a.min(*root));
        let uneven = kernel.shape.is_definite() && largest_root > UNEVEN * shortest;
        // Divided by lengths, or by 1.
        let length = |i: usize| if uneven && gram.get(i, i) > 0.0 { gram.get(i, i).sqrt() } else { 1.0 };
        let lengths: Vec<f64> = (0..count).map(length).collect();
        let entry = |i: usize, j: usize| gram.get(i, j) / (lengths[i] * lengths[j]);
        let matrix = memory::matrix(count, count, "the kernel matrix of the landmarks", entry)?;
        drop(gram);
        let (values, vectors) = eigen(matrix, control)?;
        let (mut map, mut spectrum, mut tail) = truncated(&values, vectors.as_ref(), if uneven { None } else { rank });
        if uneven {
            (map, spectrum, tail) = turned(map, &spectrum, &lengths, rank, control)?;
        }
        let smallest_eigenvalue = sign.and_then(Sign::negative).map(|smallest| smallest.min(values[0]));
        let precomputed = kernel.shape == Shape::Precomputed;
        let (landmarks, chosen) = match choice {
            Choice::Rows(rows) => (x.copy_rows(if precomputed { &[] } else { &rows }), Some(rows)),
            Choice::Points(points) => (points, None),
        };
        let columns = chosen.clone().filter(|_| precomputed).unwrap_or_else(|| (0..count).collect());
        let approximation = Approximation { trace_error: 0.0, sampled_rows: 0, spectrum, tail };
        let width = x.ncols();
        let mut nystrom =
            Self { kernel, landmarks, chosen, columns, width, map, largest_root, approximation, smallest_eigenvalue };
        nystrom.measure(x, &candidates, seed, control)?;
        Ok(nystrom)
    }

    /// Measures the error of the trace.
    fn measure(&mut self, x: &Rows, candidates: &Candidates, seed: u64, control: &Control) -> Result<()> {
        // The sample is drawn anew: on the rows that landmarks were chosen among, the error would look smaller.
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x9E37_79B9_7F4A_7C15);
        let sample = candidates.sample(MEASURED_ROWS, &mut rng);
        let rank = self.rank();
        let mut z: Vec<f64> = memory::zeros(sample.rows.len() * rank, "the features of a sample of rows")?;
        self.as_map().fill(x, &sample.rows, &mut z, &mut [], control)?;
        let (mut kept, mut all) = (0.0, 0.0);
        for ((&i, w), z) in sample.rows.iter().zip(&sample.weight).zip(z.chunks_exact(rank)) {
            kept += w * z.iter().map(|z| z * z).sum::<f64>();
            all += w * self.kernel.diagonal(x, i);
        }
        // The trace of an indefinite kernel may have any sign.
        self.approximation.trace_error = if all > 0.0 { (1.0 - kept / all).max(0.0) } else { 0.0 };
        self.approximation.sampled_rows = sample.rows.len();
        Ok(())
    }

    /// Number of features.
    pub fn rank(&self) -> usize {
        self.map.ncols()
    }

    /// The kernel.
    pub fn kernel(&self) -> KernelFn {
        self.kernel
    }

    /// The landmarks; none when the kernel is precomputed.
    pub fn landmarks(&self) -> Rows<'_> {
        self.landmarks.view()
    }

    /// Rows of X that are the landmarks, ascending unless they were given; `None` if the landmarks are not rows of X.
    pub fn chosen(&self) -> Option<&[usize]> {
        self.chosen.as_deref()
    }

    /// M, with one row per landmark and one column per feature, by descending eigenvalue.
    pub fn map(&self) -> MatRef<'_, f64> {
        self.map.as_ref()
    }

    /// How good the approximation is.
    pub fn approximation(&self) -> &Approximation {
        &self.approximation
    }

    /// The smallest eigenvalue of K_mm, if it is so far below 0 that the kernel is indefinite. The features leave out
    /// the part of the kernel that belongs to negative eigenvalues.
    pub fn smallest_eigenvalue(&self) -> Option<f64> {
        self.smallest_eigenvalue
    }

    /// Mw: the coefficients cⱼ of the landmarks with which Σⱼ cⱼ k(x, lⱼ) = ⟨w, φ(x)⟩.
    pub fn coefficients(&self, w: &[f64]) -> Vec<f64> {
        let dot = |i: usize| w.iter().enumerate().map(|(j, w)| self.map[(i, j)] * w).sum();
        (0..self.map.nrows()).map(dot).collect()
    }

    /// How far each feature may be from its exact value: one standard error. It comes from rounding in the kernel between
    /// a landmark and a row x, whose √k(x, x) is at most `of_rows`, and in its product with M, whose columns have length
    /// 1/√λ.
    pub(crate) fn feature_errors(&self, of_rows: f64) -> Vec<f64> {
        let roundings = (4.0 + (self.map.nrows() as f64).sqrt()) * f64::EPSILON * self.largest_root * of_rows;
        let error = |lambda: &f64| if *lambda > 0.0 { roundings / lambda.sqrt() } else { 0.0 };
        self.approximation.spectrum.iter().map(error).collect()
    }

    /// The largest √k(x, x) of some rows; of a precomputed kernel, of the landmarks.
    pub(crate) fn largest_root(&self, x: &Rows, rows: &[usize], centre: &[f64]) -> f64 {
        match self.kernel.shape {
            shape if shape.is_shift_invariant() => 1.0,
            Shape::Precomputed => self.largest_root,
            _ => largest_root(&self.kernel, x, rows, centre),
        }
    }

    /// With the linear kernel, features are linear functions of the rows: these, of rows less a centre.
    pub(crate) fn plane(&self, centre: &[f64]) -> Result<Plane> {
        let plane = Plane::new(&self.landmarks.view(), self.map.as_ref(), &vec![0.0; self.rank()], None)?;
        Ok(plane.moved(centre))
    }

    /// Bytes that finding the landmarks and their map took at its peak.
    pub(crate) fn bytes_to_find(&self) -> u64 {
        bytes_to_find(self.map.nrows())
    }

    /// Where the kernel with the landmarks is found: rows of [`landmarks`](Self::landmarks), or columns of a
    /// precomputed matrix.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Number of columns that data must have.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn as_map(&self) -> Map<'_> {
        Map { landmarks: self.landmarks.view(), columns: &self.columns, matrix: self.map.as_ref(), kernel: self.kernel }
    }
}

/// Refuses counts of 0 and landmarks that X does not have.
fn check(x: &Rows, landmarks: &Landmarks, n_landmarks: usize, rank: Option<usize>) -> Result<()> {
    let wrong = |problem: String| Err(Error::Landmarks { problem });
    let count = match landmarks {
        Landmarks::Auto | Landmarks::Uniform | Landmarks::KMeans | Landmarks::RpCholesky => {
            if n_landmarks == 0 {
                return Err(Error::Parameter { name: "n_landmarks", expected: "at least 1", value: 0.0 });
            }
            n_landmarks
        }
        Landmarks::Rows(rows) => {
            if let Some(row) = rows.iter().find(|row| **row >= x.nrows()) {
                return wrong(format!("there is no row {row}: X has {} rows, counted from 0", x.nrows()));
            }
            rows.len()
        }
        Landmarks::Given(points) => {
            let points = points.view();
            points.check("landmarks")?;
            if points.ncols() != x.ncols() {
                return wrong(format!("they have {} columns, but X has {}", points.ncols(), x.ncols()));
            }
            points.nrows()
        }
    };
    match rank {
        _ if count == 0 => wrong("none are given; give at least one".into()),
        Some(0) => Err(Error::Parameter { name: "rank", expected: "at least 1", value: 0.0 }),
        Some(rank) if rank > count => wrong(format!(
            "{count} give no more than {count} features, but the rank is {rank}; use more, or a smaller rank"
        )),
        _ => Ok(()),
    }
}

/// U_r Λ_r^(−1/2), Λ_r in descending order, and the share of the spectrum that is left out.
///
/// Negative eigenvalues, which an indefinite kernel has, have no place among features and are dropped. A kernel of
/// zeros has one feature, which is 0.
fn truncated(values: &[f64], vectors: MatRef<f64>, rank: Option<usize>) -> (Mat<f64>, Vec<f64>, f64) {
    let m = values.len();
    let size = |values: &[f64]| values.iter().fold(0.0, |sum, v| sum + v.abs());
    let largest = values.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
    let above = values.iter().rev().take_while(|v| **v > NUMERICAL_RANK * largest).count();
    let r = above.min(rank.unwrap_or(m));
    if r == 0 {
        let tail = if largest > 0.0 { 1.0 } else { 0.0 };
        return (Mat::zeros(m, 1), vec![0.0], tail);
    }
    let spectrum: Vec<f64> = values.iter().rev().take(r).copied().collect();
    let map = Mat::from_fn(m, r, |i, j| vectors[(i, m - 1 - j)] / spectrum[j].sqrt());
    let tail = size(&values[..m - r]) / size(values);
    (map, spectrum, tail)
}

/// The map of K_mm = DCD with the diagonal D of `lengths`, from that of C, which is `map` = UΛ^(−½), and Λ: eigenvalues
/// of K_mm are known up to rounding of the largest, and so a long row would hide those of all others, but eigenvalues of
/// C do not see the lengths.
///
/// The columns of D⁻¹UΛ^(−½), which give features of the same K_nm K_mm⁺ K_mn, are turned into those by descending
/// eigenvalue: by the eigenvectors V of FᵀF, F = K_mm D⁻¹UΛ^(−½) = DUΛ^½. The eigenvalues are the squared lengths of the
/// columns of FV.
fn turned(
    mut map: Mat<f64>,
    spectrum: &[f64],
    lengths: &[f64],
    rank: Option<usize>,
    control: &Control,
) -> Result<(Mat<f64>, Vec<f64>, f64)> {
    let (m, r) = (map.nrows(), map.ncols());
    let features = memory::matrix(m, r, LANDMARK_FEATURES, |i, k| lengths[i] * map[(i, k)] * spectrum[k])?;
    for k in 0..r {
        for (i, length) in lengths.iter().enumerate() {
            map[(i, k)] /= length;
        }
    }
    let (_, vectors) = eigen(features.transpose() * &features, control)?;
    let (map, features) = (map * &vectors, features * &vectors);
    let all: Vec<f64> = (0..r).map(|k| features.col(k).squared_norm_l2()).collect();
    let mut order: Vec<usize> = (0..r).collect();
    order.sort_by(|a, b| all[*b].total_cmp(&all[*a]));
    order.truncate(rank.unwrap_or(r));
    let spectrum: Vec<f64> = order.iter().map(|&k| all[k]).collect();
    let total: f64 = all.iter().sum();
    let tail = if total > 0.0 { (1.0 - spectrum.iter().sum::<f64>() / total).max(0.0) } else { 0.0 };
    Ok((Mat::from_fn(m, order.len(), |i, k| map[(i, order[k])]), spectrum, tail))
}

/// Bytes that finding the map of `landmarks` landmarks takes at its peak.
pub(crate) fn bytes_to_find(landmarks: usize) -> u64 {
    8 * OF_PAIRS as u64 * (landmarks as u64).pow(2)
}
