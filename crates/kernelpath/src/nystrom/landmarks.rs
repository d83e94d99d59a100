//! The rows, or points, whose kernel functions span a low-rank approximation. Choosing them never looks at targets.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use fastrand::Rng;

use crate::data::rows::{Rows, RowsBuf};
use crate::error::{Error, Result};
use crate::kernel::shape::{KernelFn, Measure, Shape};
use crate::kernel::tile::{Side, TILE, Tile, pack, shift_for};
use crate::numeric::memory;
use crate::numeric::parallel;
use crate::numeric::simd::vectorise;
use crate::observe::{Control, Phase};

/// How landmarks are chosen.
#[derive(Debug, Clone)]
pub enum Landmarks {
    /// [`Landmarks::KMeans`] for smooth functions of ‖x − z‖ (rbf, Matérn), where its error is mostly the smallest,
    /// unless its centroids, which are dense, would take more memory than a sparse X. Otherwise
    /// [`Landmarks::RpCholesky`], which fits every kernel.
    Auto,
    /// Rows drawn with probability proportional to their weights.
    Uniform,
    /// Centroids of k-means.
    KMeans,
    /// Pivots of a randomly pivoted Cholesky factorisation of the kernel matrix: a row that is badly explained by the
    /// rows chosen before is likely to be next.
    RpCholesky,
    /// These rows of X.
    Rows(Vec<usize>),
    /// These points.
    Given(RowsBuf),
}

/// What was chosen.
pub(crate) enum Choice {
    Rows(Vec<usize>),
    Points(RowsBuf),
}

/// A rule looks at a sample of rows: this many per landmark, and at least [`FEWEST_LOOKED_AT`] in all. A residual
/// diagonal is known well from few rows per pivot, and a factor with one line per sampled row has to be kept in memory.
const LOOKED_AT_BY_RP_CHOLESKY: usize = 5;

/// A centroid is a mean, whose error falls with the number of rows it is taken over.
const LOOKED_AT_BY_KMEANS: usize = 20;

const FEWEST_LOOKED_AT: usize = 10_000;

/// Proposals drawn at a time.
const PROPOSALS: usize = 128;

/// Rounds of Lloyd's algorithm: most of what it gains over k-means++ comes first.
const LLOYD: usize = 3;

/// A residual below this share of the row's own diagonal entry is rounding. (Pivoted Cholesky factors do not depend on the
/// lengths of rows: a long row says nothing about what is left of the others.)
const EXHAUSTED: f64 = 1e-12;

/// A residual that is below 0 by more than this share of the largest diagonal entry is not rounding: the kernel is
/// indefinite.
const INDEFINITE: f64 = 1e-6;

impl Landmarks {
    /// The names of the rules, in the order of the documentation.
    pub const NAMES: &'static [&'static str] = &["auto", "uniform", "kmeans", "rpcholesky"];

    /// The rule of that name.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "uniform" => Ok(Self::Uniform),
            "kmeans" => Ok(Self::KMeans),
            "rpcholesky" => Ok(Self::RpCholesky),
            _ => Err(Error::Unknown { what: "rule for landmarks", name: name.into(), known: Self::NAMES }),
        }
    }

    /// The name of the rule; `None` for landmarks that are given.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::Auto => Some("auto"),
            Self::Uniform => Some("uniform"),
            Self::KMeans => Some("kmeans"),
            Self::RpCholesky => Some("rpcholesky"),
            Self::Rows(_) | Self::Given(_) => None,
        }
    }

    /// Chooses at most `count` landmarks among the candidates by a rule, or takes the given ones.
    pub(crate) fn choose(
        &self,
        x: &Rows,
        candidates: &Candidates,
        kernel: &KernelFn,
        count: usize,
        seed: u64,
        control: &Control,
    ) -> Result<Choice> {
        let count = count.min(candidates.rows.len());
        let mut rng = Rng::with_seed(seed);
        if kernel.shape == Shape::Precomputed {
            if matches!(self, Self::KMeans | Self::Given(_)) {
                let problem = "a precomputed kernel, or one given as a function, knows rows only, no other points; what fits: \"uniform\", \
                               \"rpcholesky\", or indices of rows";
                return Err(Error::Landmarks { problem: problem.into() });
            }
            if x.nrows() != x.ncols() {
                return Err(Error::NotSquare { rows: x.nrows(), columns: x.ncols() });
            }
        }
        let smooth = matches!(kernel.shape, Shape::Rbf | Shape::Matern32 | Shape::Matern52);
        let rule = match self {
            Self::Auto if smooth && count * x.ncols() <= x.stored() => &Self::KMeans,
            Self::Auto => &Self::RpCholesky,
            rule => rule,
        };
        Ok(match rule {
            Self::Uniform => Choice::Rows(candidates.sample(count, &mut rng).rows),
            Self::Auto | Self::RpCholesky => {
                let looked_at = (LOOKED_AT_BY_RP_CHOLESKY * count).max(FEWEST_LOOKED_AT);
                let sample = candidates.sample(looked_at, &mut rng);
                Choice::Rows(rp_cholesky(x, &sample, kernel, count, &mut rng, control)?)
            }
            Self::KMeans => {
                let looked_at = (LOOKED_AT_BY_KMEANS * count).max(FEWEST_LOOKED_AT);
                let sample = candidates.sample(looked_at, &mut rng);
                Choice::Points(RowsBuf::Dense(kmeans(x, &sample, count, &mut rng, control)?))
            }
            Self::Rows(rows) => Choice::Rows(rows.clone()),
            Self::Given(points) => Choice::Points(points.clone()),
        })
    }
}

/// Rows of weight > 0, ascending, and their weights.
#[derive(Clone)]
pub(crate) struct Candidates {
    pub rows: Vec<usize>,
    pub weight: Vec<f64>,
}

impl Candidates {
    pub fn new(n: usize, weight: Option<&[f64]>) -> Result<Self> {
        let Some(weight) = weight else { return Ok(Self { rows: (0..n).collect(), weight: vec![1.0; n] }) };
        if weight.len() != n {
            let why = "one weight a row of X";
            return Err(Error::Length { what: "the weights", got: weight.len(), expected: n, why });
        }
        if let Some(row) = weight.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            return Err(Error::Weight { value: weight[row], row });
        }
        let rows: Vec<usize> = (0..n).filter(|&i| weight[i] > 0.0).collect();
        if rows.is_empty() {
            return Err(Error::NoWeight);
        }
        let weight = rows.iter().map(|&i| weight[i]).collect();
        Ok(Self { rows, weight })
    }

    /// A sample without replacement. Each row is drawn with probability proportional to its weight, and then counts
    /// with weight 1. If there are at most `size` rows, all of them are returned, with their weights.
    ///
    /// The rows with the smallest Eᵢ/wᵢ, Eᵢ exponential, are such a sample (Efraimidis, Spirakis 2006).
    pub fn sample(&self, size: usize, rng: &mut Rng) -> Self {
        if self.rows.len() <= size {
            return self.clone();
        }
        let mut keys: Vec<(f64, usize)> =
            self.rows.iter().zip(&self.weight).map(|(&i, w)| (-(1.0 - rng.f64()).ln() / w, i)).collect();
        keys.select_nth_unstable_by(size, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut rows: Vec<usize> = keys[..size].iter().map(|&(_, i)| i).collect();
        rows.sort_unstable();
        Self { rows, weight: vec![1.0; size] }
    }

    /// wᵢ · potentialᵢ, or 0 if the potential is negative.
    fn weighted(&self, potential: &[f64]) -> Vec<f64> {
        self.weight.iter().zip(potential).map(|(w, p)| w * p.max(0.0)).collect()
    }
}

/// Positions drawn independently, with probabilities proportional to `potential`; none if all are 0. Beside an infinite
/// potential all finite ones are 0.
fn draw(potential: &[f64], count: usize, rng: &mut Rng) -> Vec<usize> {
    let largest = potential.iter().fold(0.0, |a: f64, p| a.max(*p));
    if largest > f64::MAX / potential.len() as f64 {
        let share = |p: &f64| if largest.is_finite() { p / largest } else { f64::from(u8::from(*p == largest)) };
        return draw(&potential.iter().map(share).collect::<Vec<_>>(), count, rng);
    }
    let mut total = 0.0;
    let until: Vec<f64> = potential
        .iter()
        .map(|p| {
            total += p;
            total
        })
        .collect();
    let Some(last) = potential.iter().rposition(|p| *p > 0.0) else { return Vec::new() };
    let mut at = || {
        let target = rng.f64() * total;
        until.partition_point(|u| *u <= target).min(last)
    };
    (0..count).map(|_| at()).collect()
}

/// Chooses rows i one after the other with probability proportional to wᵢdᵢ. Here d is the diagonal of the residual K −
/// FFᵀ, and F the Cholesky factor of the rows chosen so far (Chen, Epperly, Tropp, Webber 2022).
///
/// A block of proposals is drawn from the same d and thinned: the i-th is accepted with probability (its residual by
/// now) / (its residual at the draw). So the pivots are distributed as if they were drawn one at a time (Epperly,
/// Tropp, Webber 2024), and all work on the sample consists of products of matrices.
fn rp_cholesky(
    x: &Rows,
    sample: &Candidates,
    kernel: &KernelFn,
    count: usize,
    rng: &mut Rng,
    control: &Control,
) -> Result<Vec<usize>> {
    let rows = &sample.rows;
    check_memory(8 * rows.len() as u64 * count as u64, "use fewer landmarks, or landmarks=\"uniform\"")?;
    let shift = shift_for(kernel, x, x, rows);
    let mut left: Vec<f64> = rows.iter().map(|&i| kernel.diagonal(x, i)).collect();
    let largest = left.iter().fold(0.0_f64, |a, d| a.max(d.abs()));
    let tiny: Vec<f64> = left.iter().map(|d| EXHAUSTED * d.abs()).collect();
    let side = Side::x(kernel, x);
    let mut factor: Vec<f64> = memory::zeros(rows.len() * count, "the choice of landmarks")?;
    let mut pivots: Vec<usize> = Vec::with_capacity(count);
    let mut tile = Tile::default();
    control.begin(Phase::Kernel, count);
    while pivots.len() < count {
        control.check()?;
        let done = pivots.len();
        let proposals = draw(&sample.weighted(&left), PROPOSALS.min(count - done), rng);
        if proposals.is_empty() {
            break; // the chosen rows explain all others
        }
        let size = proposals.len();
        let proposed: Vec<usize> = proposals.iter().map(|&s| rows[s]).collect();
        let across = |of: &[usize]| Mat::from_fn(of.len(), done, |i, k| factor[of[i] * count + k]);
        let known = across(&proposals);
        tile.evaluate(x, &proposed, x, &proposed, &shift, kernel);
        tile.check::<f64>((side, &proposed), (side, &proposed))?;
        let mut residual = Mat::from_fn(size, size, |i, j| tile.values[i * size + j]);
        matmul(residual.as_mut(), Accum::Add, known.as_ref(), known.transpose(), -1.0, Par::Seq);
        let (accepted, lower) = thin(&mut residual, |i| (rng.f64() * left[proposals[i]]).max(tiny[proposals[i]]));

        let new: Vec<usize> = accepted.iter().map(|&a| proposals[a]).collect();
        if !new.is_empty() {
            let known = across(&new);
            let columns: Vec<usize> = new.iter().map(|&s| rows[s]).collect();
            let of_rows = rows.chunks(TILE).zip(tiny.chunks(TILE));
            let bands = factor.chunks_mut(TILE * count).zip(left.chunks_mut(TILE)).zip(of_rows);
            parallel::try_for_each_with(bands, |tile: &mut Tile, ((factor, left), (rows, tiny))| {
                control.check()?;
                tile.evaluate(x, rows, x, &columns, &shift, kernel);
                tile.check::<f64>((side, rows), (side, &columns))?;
                explain(&mut tile.values, factor, left, (&known, &lower), tiny);
                Ok(())
            })?;
        }
        // Rows that are chosen, or turned out to be exhausted, are not drawn again.
        for (i, &s) in proposals.iter().enumerate() {
            if residual[(i, i)] <= tiny[s] {
                left[s] = left[s].min(0.0);
            }
        }
        pivots.extend(&new);
        control.advance(new.len());
    }
    let mut chosen: Vec<usize> = pivots.into_iter().map(|s| rows[s]).collect();
    // An indefinite kernel (residuals below 0) runs out of positive pivots early, and a kernel of zeros has none.
    let wanted = if left.iter().any(|d| *d < -INDEFINITE * largest) { count } else { 1 };
    if chosen.len() < wanted {
        let others = rows.iter().zip(&sample.weight).filter(|(i, _)| !chosen.contains(i));
        let (rows, weight) = others.map(|(&i, &w)| (i, w)).unzip();
        chosen.extend(Candidates { rows, weight }.sample(wanted - chosen.len(), rng).rows);
    }
    chosen.sort_unstable();
    Ok(chosen)
}

/// Accepts the i-th proposal if the residual it has left, given those accepted before it, is above `threshold(i)`.
/// Returns the accepted proposals and the Cholesky factor of their residual. What they explain is subtracted from
/// `residual`.
fn thin(residual: &mut Mat<f64>, mut threshold: impl FnMut(usize) -> f64) -> (Vec<usize>, Mat<f64>) {
    let size = residual.nrows();
    let (mut accepted, mut columns) = (Vec::new(), Vec::<Vec<f64>>::new());
    for i in 0..size {
        let (left, threshold) = (residual[(i, i)], threshold(i));
        if left <= threshold {
            continue;
        }
        let column: Vec<f64> = (0..size).map(|j| residual[(j, i)] / left.sqrt()).collect();
        for j in 0..size {
            for k in 0..size {
                residual[(k, j)] -= column[k] * column[j];
            }
        }
        accepted.push(i);
        columns.push(column);
    }
    let lower = Mat::from_fn(accepted.len(), accepted.len(), |a, b| if a >= b { columns[b][accepted[a]] } else { 0.0 });
    (accepted, lower)
}

/// Computes new columns of a band of F from the kernel of its rows with the new pivots: (K − F F_pᵀ) L⁻ᵀ, where F_p are
/// the rows of the pivots in F, and L is the Cholesky factor of their residual. Also updates what is left of the
/// diagonal.
fn explain(kernel: &mut [f64], factor: &mut [f64], left: &mut [f64], pivots: (&Mat<f64>, &Mat<f64>), tiny: &[f64]) {
    let (known, lower) = pivots;
    let (height, stride) = (left.len(), factor.len() / left.len());
    let (width, done) = (known.nrows(), known.ncols());
    let mut band = MatMut::from_row_major_slice_mut(kernel, height, width);
    if done > 0 {
        let before = MatRef::from_row_major_slice_with_stride(&*factor, height, done, stride);
        matmul(band.as_mut(), Accum::Add, before, known.transpose(), -1.0, Par::Seq);
    }
    solve_lower_triangular_in_place(lower.as_ref(), band.transpose_mut(), Par::Seq);
    let rows = kernel.chunks_exact(width).zip(factor.chunks_exact_mut(stride));
    for ((values, factor), (left, tiny)) in rows.zip(left.iter_mut().zip(tiny)) {
        factor[done..done + width].copy_from_slice(values);
        *left -= values.iter().map(|v| v * v).sum::<f64>();
        *left = if left.abs() > *tiny { *left } else { 0.0 };
    }
}

/// Centroids by k-means++ (Arthur, Vassilvitskii 2007), with proposals thinned as in [`rp_cholesky`], and then Lloyd's
/// rounds.
fn kmeans(x: &Rows, sample: &Candidates, count: usize, rng: &mut Rng, control: &Control) -> Result<Mat<f64>> {
    let (rows, p) = (&sample.rows, x.ncols());
    let way_out = "centroids are dense; use fewer landmarks, or a rule that takes rows (\"rpcholesky\", \"uniform\")";
    check_memory(3 * 8 * count as u64 * p as u64, way_out)?;
    let shift = if x.as_csr().is_some() { Vec::new() } else { x.column_medians(rows) };
    control.begin(Phase::Kernel, count * (1 + LLOYD));
    let seeds = seed_centres(x, sample, &shift, count, rng, control)?;
    let count = seeds.len();
    // Centroids, row after row. A cluster that loses its rows keeps its centroid.
    let mut centres: Vec<f64> = memory::zeros(count * p, "the centroids")?;
    for (&i, centre) in seeds.iter().zip(centres.chunks_exact_mut(p)) {
        x.for_each_nonzero(i, |j, value| centre[j] = value);
    }
    let mut labels = vec![usize::MAX; rows.len()];
    for _ in 0..LLOYD {
        let now = nearest_centres(x, rows, &Rows::from_slice(&centres, p)?, &shift, control)?;
        if now == labels {
            break;
        }
        labels = now;
        let mut sums: Vec<f64> = memory::zeros(count * p, "the centroids")?;
        let mut weights = vec![0.0; count];
        for ((&i, &label), w) in rows.iter().zip(&labels).zip(&sample.weight) {
            weights[label] += w;
            let sum = &mut sums[label * p..(label + 1) * p];
            x.for_each_nonzero(i, |j, value| sum[j] += w * value);
        }
        for ((centre, sum), &w) in centres.chunks_exact_mut(p).zip(sums.chunks_exact(p)).zip(&weights) {
            if w > 0.0 {
                // (A sum of numbers near the largest double may be infinite.)
                centre.iter_mut().zip(sum).filter(|(_, s)| s.is_finite()).for_each(|(c, s)| *c = s / w);
            }
        }
        control.advance(count);
    }
    Ok(Mat::from_fn(count, p, |i, j| centres[i * p + j]))
}

/// Chooses rows one after the other with probability proportional to wᵢ times the squared distance to the nearest row
/// chosen before. Returns fewer than `count` if fewer rows are different.
fn seed_centres(
    x: &Rows,
    sample: &Candidates,
    shift: &[f64],
    count: usize,
    rng: &mut Rng,
    control: &Control,
) -> Result<Vec<usize>> {
    let rows = &sample.rows;
    let mut nearest = vec![f64::INFINITY; rows.len()];
    let mut seeds: Vec<usize> = draw(&sample.weight, 1, rng).into_iter().map(|s| rows[s]).collect();
    let mut new = seeds.clone();
    let mut tile = Tile::default();
    loop {
        let bands = nearest.chunks_mut(TILE).zip(rows.chunks(TILE));
        parallel::try_for_each_with(bands, |tile: &mut Tile, (nearest, rows)| {
            control.check()?;
            tile.compare(x, rows, x, &new, shift, Measure::SquaredDistances);
            for (nearest, distances) in nearest.iter_mut().zip(tile.values.chunks_exact(new.len())) {
                *nearest = distances.iter().fold(*nearest, |a, d| a.min(*d));
            }
            Ok(())
        })?;
        control.advance(new.len());
        let proposals = draw(&sample.weighted(&nearest), PROPOSALS.min(count - seeds.len()), rng);
        if proposals.is_empty() {
            return Ok(seeds);
        }
        let proposed: Vec<usize> = proposals.iter().map(|&s| rows[s]).collect();
        tile.compare(x, &proposed, x, &proposed, shift, Measure::SquaredDistances);
        let mut accepted: Vec<usize> = Vec::new();
        for (i, &s) in proposals.iter().enumerate() {
            let to_accepted = accepted.iter().map(|&a| tile.values[i * proposed.len() + a]);
            let left = to_accepted.fold(nearest[s], f64::min);
            if left > 0.0 && left >= rng.f64() * nearest[s] {
                accepted.push(i);
            }
        }
        new = accepted.into_iter().map(|a| proposed[a]).collect();
        seeds.extend(&new);
    }
}

/// The nearest centre of every row; of equally near ones, the first.
fn nearest_centres(x: &Rows, rows: &[usize], centres: &Rows, shift: &[f64], control: &Control) -> Result<Vec<usize>> {
    let all: Vec<usize> = (0..centres.nrows()).collect();
    if x.as_csr().is_none() && have_like_lengths(x, rows, centres, shift) {
        return nearest_dense_centres(x, rows, centres, shift, control);
    }
    let mut labels = vec![(f64::INFINITY, 0); rows.len()];
    parallel::try_for_each_with(labels.chunks_mut(TILE).zip(rows.chunks(TILE)), |tile: &mut Tile, (labels, rows)| {
        for columns in all.chunks(TILE) {
            control.check()?;
            tile.compare(x, rows, centres, columns, shift, Measure::SquaredDistances);
            for (best, distances) in labels.iter_mut().zip(tile.values.chunks_exact(columns.len())) {
                for (&column, &distance) in columns.iter().zip(distances) {
                    if distance < best.0 {
                        *best = (distance, column);
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(labels.into_iter().map(|(_, label)| label).collect())
}

/// Whether no row or centre is so long that single precision could not tell the others apart.
fn have_like_lengths(x: &Rows, rows: &[usize], centres: &Rows, shift: &[f64]) -> bool {
    /// Rounding to single precision then moves a number by 2⁻¹⁴ of the typical length at most.
    const LONGEST: f64 = 1024.0;
    let all: Vec<usize> = (0..centres.nrows()).collect();
    let lengths = |x: &Rows, rows: &[usize]| -> Vec<f64> {
        let (mut wide, mut norms) = (Vec::new(), Vec::new());
        let of_some = |rows: &[usize]| {
            pack(x, rows, shift, &mut wide, &mut norms);
            norms.iter().map(|norm| norm.sqrt()).collect::<Vec<f64>>()
        };
        rows.chunks(TILE).flat_map(of_some).collect()
    };
    let (mut of_rows, of_centres) = (lengths(x, rows), lengths(centres, &all));
    let longest = of_rows.iter().chain(&of_centres).fold(0.0_f64, |a, length| a.max(*length));
    of_rows.retain(|length| *length > 0.0);
    let middle = of_rows.len() / 2;
    let typical = if of_rows.is_empty() { 0.0 } else { *of_rows.select_nth_unstable_by(middle, f64::total_cmp).1 };
    longest <= LONGEST * typical
}

/// The same for dense rows: the centre with the smallest ½‖c‖² − ⟨x, c⟩. Single precision is enough: for a row between
/// two centres, either is as good.
fn nearest_dense_centres(
    x: &Rows,
    rows: &[usize],
    centres: &Rows,
    shift: &[f64],
    control: &Control,
) -> Result<Vec<usize>> {
    let (count, p) = (centres.nrows(), centres.ncols());
    let all: Vec<usize> = (0..count).collect();
    let (mut wide, mut norms) = (Vec::new(), Vec::new());
    pack(centres, &all, shift, &mut wide, &mut norms);
    // Numbers are scaled to 1, so that no square overflows or vanishes.
    let largest = wide.iter().fold(f64::MIN_POSITIVE, |a, v| a.max(v.abs()));
    let single = |wide: &[f64]| wide.iter().map(|v| (v / largest) as f32).collect::<Vec<f32>>();
    let right = single(&wide);
    let half: Vec<f32> = norms.iter().map(|norm| (0.5 * norm / largest / largest) as f32).collect();
    let labels = parallel::try_map(rows.chunks(TILE), |rows| {
        control.check()?;
        let (mut wide, mut norms) = (Vec::new(), Vec::new());
        pack(x, rows, shift, &mut wide, &mut norms);
        let left = single(&wide);
        let mut products = Mat::<f32>::zeros(count, rows.len());
        matmul(
            products.as_mut(),
            Accum::Replace,
            MatRef::from_row_major_slice(&right, count, p),
            MatRef::from_row_major_slice(&left, rows.len(), p).transpose(),
            1.0,
            Par::Seq,
        );
        let nearest = |i: usize| {
            vectorise(
                #[inline(always)]
                || least_difference(&half, products.col_as_slice(i)),
            )
        };
        Ok((0..rows.len()).map(nearest).collect::<Vec<usize>>())
    })?;
    Ok(labels.concat())
}

/// The place where a − b is least; of equal ones, the first. For use inside [`vectorise`].
#[inline(always)]
fn least_difference(a: &[f32], b: &[f32]) -> usize {
    const COMPARED_AT_ONCE: usize = 64;
    let ((a_blocks, a_rest), (b_blocks, b_rest)) =
        (a.as_chunks::<COMPARED_AT_ONCE>(), b.as_chunks::<COMPARED_AT_ONCE>());
    let mut lanes = [f32::INFINITY; COMPARED_AT_ONCE];
    for at in 0..a_blocks.len().min(b_blocks.len()) {
        let (a, b) = (&a_blocks[at], &b_blocks[at]);
        for l in 0..COMPARED_AT_ONCE {
            let difference = a[l] - b[l];
            lanes[l] = if difference < lanes[l] { difference } else { lanes[l] };
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| a - b);
    let least = lanes.into_iter().chain(rest).fold(f32::INFINITY, f32::min);
    for at in 0..a_blocks.len().min(b_blocks.len()) {
        let (a, b) = (&a_blocks[at], &b_blocks[at]);
        let mut found = false;
        for l in 0..COMPARED_AT_ONCE {
            found |= a[l] - b[l] == least;
        }
        if found {
            return at * COMPARED_AT_ONCE + (0..COMPARED_AT_ONCE).position(|l| a[l] - b[l] == least).unwrap_or(0);
        }
    }
    let rest = a_rest.iter().zip(b_rest).position(|(a, b)| a - b == least);
    rest.map_or(0, |at| a.len() - a_rest.len() + at)
}

/// Fails, before anything is allocated, if there is not enough memory to choose or use landmarks.
pub(crate) fn check_memory(need: u64, way_out: &'static str) -> Result<()> {
    memory::check(need, "the landmarks", way_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_least_differences_is_found() {
        for n in [1, 63, 64, 65, 200] {
            let (a, mut b): (Vec<f32>, Vec<f32>) = ((0..n).map(|i| (i % 7) as f32).collect(), vec![0.0; n]);
            assert_eq!(least_difference(&a, &b), 0);
            for at in [0, n / 2, n - 1] {
                b[at] = 100.0 + a[at];
                assert_eq!(least_difference(&a, &b), at, "{n}");
                b[n - 1] = 100.0 + a[n - 1];
                assert_eq!(least_difference(&a, &b), at, "{n}");
                b.fill(0.0);
            }
        }
    }
}
