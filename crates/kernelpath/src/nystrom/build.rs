//! Settings of a kernel at low rank.

use crate::data::rows::{Rows, RowsBuf};
use crate::error::Result;
use crate::kernel::shape::KernelFn;
use crate::numeric::threads::pooled;
use crate::nystrom::approximation::Nystrom;
use crate::nystrom::features::LowRankSize;
use crate::nystrom::landmarks::Landmarks;
use crate::observe::Control;

/// How a kernel is approximated: which landmarks, how many of them, and how many features.
///
/// ```
/// use kernelpath::{Classifier, LowRank};
///
/// let x: Vec<f64> = (0..600).map(|i| (0.37 * i as f64).sin()).collect();
/// let labels: Vec<bool> = x.chunks(2).map(|row| row[0] * row[1] > 0.1).collect();
/// let model = Classifier::svm().low_rank(LowRank::k_means(60).rank(40)).cs([1.0, 10.0]).fit((&x[..], 2), &labels)?;
/// assert!(model.nystrom().is_some_and(|nystrom| nystrom.rank() <= 40));
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LowRank {
    landmarks: Landmarks,
    size: LowRankSize,
}

impl Default for LowRank {
    /// 2000 landmarks by the [rule that fits the kernel](Landmarks::Auto).
    fn default() -> Self {
        Self::new(Landmarks::Auto, LowRankSize::default().landmarks)
    }
}

impl LowRank {
    /// At most `count` landmarks by the [rule that fits the kernel](Landmarks::Auto).
    pub fn auto(count: usize) -> Self {
        Self::new(Landmarks::Auto, count)
    }

    /// At most `count` [random rows](Landmarks::Uniform).
    pub fn uniform(count: usize) -> Self {
        Self::new(Landmarks::Uniform, count)
    }

    /// At most `count` [centroids of k-means](Landmarks::KMeans).
    pub fn k_means(count: usize) -> Self {
        Self::new(Landmarks::KMeans, count)
    }

    /// At most `count` [pivots of a randomly pivoted Cholesky factorisation](Landmarks::RpCholesky).
    pub fn rp_cholesky(count: usize) -> Self {
        Self::new(Landmarks::RpCholesky, count)
    }

    /// These rows of X.
    pub fn rows(rows: impl Into<Vec<usize>>) -> Self {
        let rows = rows.into();
        let count = rows.len();
        Self::new(Landmarks::Rows(rows), count)
    }

    /// These points.
    pub fn points(points: RowsBuf) -> Self {
        let count = points.view().nrows();
        Self::new(Landmarks::Given(points), count)
    }

    /// These landmarks, or at most `count` of them if they are a rule.
    pub fn new(landmarks: Landmarks, count: usize) -> Self {
        Self { landmarks, size: LowRankSize { landmarks: count, rank: None } }
    }

    /// At most `rank` features; one for each landmark unless set.
    #[must_use]
    pub fn rank(mut self, rank: usize) -> Self {
        self.size.rank = Some(rank);
        self
    }

    /// The landmarks, or the rule for them.
    pub fn landmarks(&self) -> &Landmarks {
        &self.landmarks
    }

    /// The numbers of landmarks and features.
    pub fn size(&self) -> LowRankSize {
        self.size
    }

    /// The same with other landmarks.
    pub(crate) fn with_landmarks(&self, landmarks: Landmarks) -> Self {
        Self { landmarks, ..self.clone() }
    }
}

/// Settings of a [`Nystrom`] map; see [`Nystrom::builder`].
///
/// ```
/// use kernelpath::{KernelFn, LowRank, Nystrom, Rows, Shape};
///
/// let x: Vec<f64> = (0..1000).map(|i| (0.37 * i as f64).sin()).collect();
/// let kernel = KernelFn::new(Shape::Rbf, 1.0)?;
/// let nystrom = Nystrom::builder(kernel).low_rank(LowRank::rp_cholesky(30)).build(&Rows::from_slice(&x, 2)?)?;
/// assert!(nystrom.rank() <= 30 && nystrom.approximation().trace_error < 1e-6);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NystromBuilder<'a> {
    kernel: KernelFn,
    low_rank: LowRank,
    weight: Option<&'a [f64]>,
    seed: u64,
}

impl Nystrom {
    /// A map for this kernel: 2000 landmarks by the rule that fits it, unless others are set.
    pub fn builder<'a>(kernel: KernelFn) -> NystromBuilder<'a> {
        NystromBuilder { kernel, low_rank: LowRank::default(), weight: None, seed: 0 }
    }
}

impl<'a> NystromBuilder<'a> {
    /// The landmarks and the number of features.
    #[must_use]
    pub fn low_rank(mut self, low_rank: LowRank) -> Self {
        self.low_rank = low_rank;
        self
    }

    /// A weight for each row, ≥ 0. Landmarks are chosen among rows of weight > 0. All 1 unless set.
    #[must_use]
    pub fn weights(mut self, weight: Option<&'a [f64]>) -> Self {
        self.weight = weight;
        self
    }

    /// Seed of random choices; 0 unless set.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Chooses the landmarks among the rows, without a look at targets, and computes their map.
    pub fn build(&self, x: &Rows) -> Result<Nystrom> {
        self.build_with(x, &Control::default())
    }

    /// As [`build`](Self::build), stopped through `control`.
    pub fn build_with(&self, x: &Rows, control: &Control) -> Result<Nystrom> {
        pooled(0, || Nystrom::found(x, self.weight, self.kernel, &self.low_rank, self.seed, control))
    }
}
