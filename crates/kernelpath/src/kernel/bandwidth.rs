//! Rules that choose the bandwidth of a kernel by the data.

use crate::data::rows::Rows;
use crate::data::units::Units;
use crate::error::{Error, Result};
use crate::kernel::shape::{KernelFn, Shape};
use crate::kernel::tile::Side;
use crate::numeric::threads::pooled;
use crate::observe::Control;

/// How γ is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bandwidth {
    /// This value.
    Value(f64),
    /// 1 / (p · variance of all entries of X), scikit-learn's default.
    Scale,
    /// σ is the mean of 1/q90 and 1/q10, where q10 and q90 are quantiles of the non-zero squared distances between rows
    /// (for the Laplacian kernel, of their L1 distances), and γ = 2σ. Distances below 1e-10 of the others count as 0. Up to 500 different rows, all pairs count. With n
    /// different rows, if that is more, n/2 random pairs do.
    Sigest,
}

/// A kernel as the user asks for it: a shape and a bandwidth rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kernel {
    /// The shape.
    pub shape: Shape,
    /// The rule for γ.
    pub bandwidth: Bandwidth,
}

impl From<f64> for Bandwidth {
    fn from(gamma: f64) -> Self {
        Self::Value(gamma)
    }
}

/// A constructor for each shape. A bandwidth is a rule or a number.
///
/// ```
/// use kernelpath::{Bandwidth, Kernel, Regressor};
///
/// let x: Vec<f64> = (0..80).map(|i| 0.1 * f64::from(i)).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// for kernel in [Kernel::rbf(0.5), Kernel::matern52(Bandwidth::Sigest), Kernel::poly(5, 1.0, 0.1)] {
///     let model = Regressor::ridge().kernel(kernel).n_cs(10).fit((&x[..], 1), &y)?;
///     assert!((model.predict((&[1.55][..], 1))?[0] - 1.0).abs() < 0.1);
/// }
/// # Ok::<(), kernelpath::Error>(())
/// ```
impl Kernel {
    /// The Gaussian kernel exp(−γ‖x−z‖²).
    pub fn rbf(bandwidth: impl Into<Bandwidth>) -> Self {
        Self::of(Shape::Rbf, bandwidth)
    }

    /// The Laplacian kernel exp(−γ‖x−z‖₁).
    pub fn laplacian(bandwidth: impl Into<Bandwidth>) -> Self {
        Self::of(Shape::Laplacian, bandwidth)
    }

    /// The Matérn kernel of smoothness 3/2: (1+a)e⁻ᵃ with a = √(6γ)‖x−z‖.
    pub fn matern32(bandwidth: impl Into<Bandwidth>) -> Self {
        Self::of(Shape::Matern32, bandwidth)
    }

    /// The Matérn kernel of smoothness 5/2: (1+a+a²/3)e⁻ᵃ with a = √(10γ)‖x−z‖.
    pub fn matern52(bandwidth: impl Into<Bandwidth>) -> Self {
        Self::of(Shape::Matern52, bandwidth)
    }

    /// The polynomial kernel (γ⟨x,z⟩ + coef0)^degree. With coef0 < 0 it may be indefinite.
    pub fn poly(degree: u32, coef0: f64, bandwidth: impl Into<Bandwidth>) -> Self {
        Self::of(Shape::Poly { degree, coef0 }, bandwidth)
    }

    /// The kernel tanh(γ⟨x,z⟩ + coef0), which is mostly indefinite and then has no proofs.
    pub fn sigmoid(coef0: f64, bandwidth: impl Into<Bandwidth>) -> Self {
        Self::of(Shape::Sigmoid { coef0 }, bandwidth)
    }

    /// The linear kernel ⟨x,z⟩.
    pub fn linear() -> Self {
        Self::of(Shape::Linear, 1.0)
    }

    /// X is the kernel matrix itself: symmetric to fit, and to predict the kernel between new rows and all rows of the
    /// fit.
    pub fn precomputed() -> Self {
        Self::of(Shape::Precomputed, 1.0)
    }

    fn of(shape: Shape, bandwidth: impl Into<Bandwidth>) -> Self {
        Self { shape, bandwidth: bandwidth.into() }
    }

    /// Settles γ on the data, reproducibly for a seed. A row of weight 2 counts as two rows; without weights, all
    /// weights are 1.
    pub fn resolve(&self, x: &Rows, weight: Option<&[f64]>, seed: u64) -> Result<KernelFn> {
        let gamma = if self.shape.uses_gamma() { self.gamma(x, weight, seed)? } else { 1.0 };
        KernelFn::new(self.shape, gamma)
    }

    /// The kernel with this γ.
    pub fn with_value(&self, gamma: f64) -> Result<KernelFn> {
        KernelFn::new(self.shape, gamma)
    }

    fn gamma(&self, x: &Rows, weight: Option<&[f64]>, seed: u64) -> Result<f64> {
        match self.bandwidth {
            Bandwidth::Value(gamma) => Ok(gamma),
            Bandwidth::Scale => scale(x, weight),
            Bandwidth::Sigest => pooled(0, || sigest(x, weight, self.shape, seed)),
        }
    }
}

pub(crate) fn scale(x: &Rows, weight: Option<&[f64]>) -> Result<f64> {
    let (n, p) = (x.nrows(), x.ncols());
    let of_row = |i: usize| weight.map_or(1.0, |weight| weight[i]);
    let count = p as f64 * (0..n).map(of_row).sum::<f64>();
    let sum = |of: &dyn Fn(f64) -> f64| -> f64 { (0..n).map(|i| of_row(i) * x.sum_over_row(i, of)).sum() };
    let mean = sum(&|v| v) / count;
    let variance = sum(&|v| (v - mean) * (v - mean)) / count;
    let gamma = 1.0 / (p as f64 * variance);
    if gamma > 0.0 && gamma.is_finite() {
        return Ok(gamma);
    }
    let found = if variance == 0.0 {
        "all entries of X are equal".into()
    } else {
        let cells = (0..n).filter_map(|i| Side::Rows("X", x).largest(i));
        let cell = cells.reduce(|a, b| if b.value.abs() > a.value.abs() { b } else { a });
        let named = cell.map_or_else(String::new, |cell| format!(" (the largest entry is {cell})"));
        format!("their variance overflows or vanishes{named}")
    };
    Err(Error::Bandwidth { rule: "scale", found })
}

/// Most different rows for which all pairs are looked at.
const ALL_PAIRS: usize = 500;

/// Rows whose distance is below this share of the 90 % quantile of distances count as equal. Repeated rows that were
/// computed in different ways differ by about 1e-16 of their size, and by more after columns were centred; as distances
/// that count, a tenth of all pairs of this kind would make γ so large that no two other rows are alike.
const EQUAL: f64 = 1e-10;

fn sigest(x: &Rows, weight: Option<&[f64]>, shape: Shape, seed: u64) -> Result<f64> {
    let distance = |a: usize, b: usize| {
        if shape == Shape::Laplacian { x.l1_distance(a, x, b) } else { x.squared_distance(a, x, b) }
    };
    // Equal rows are merged and their weights add up, so that weights act like repeated rows.
    let units = Units::merge(x, |_| std::iter::empty(), &Control::default())?;
    let mut weights = vec![0.0; units.len()];
    for (i, &u) in units.of_row.iter().enumerate() {
        weights[u] += weight.map_or(1.0, |weight| weight[i]);
    }
    let rows: Vec<(usize, f64)> = units.representative.into_iter().zip(weights).filter(|(_, w)| *w > 0.0).collect();
    let n = rows.len();
    let mut distances: Vec<(f64, f64)> = if n <= ALL_PAIRS {
        let pairs = (0..n).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.map(|(a, b)| (distance(rows[a].0, rows[b].0), rows[a].1 * rows[b].1)).collect()
    } else {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut total = 0.0;
        let until: Vec<f64> = rows
            .iter()
            .map(|(_, w)| {
                total += w;
                total
            })
            .collect();
        let mut draw = || {
            let target = rng.f64() * total;
            rows[until.partition_point(|t| *t <= target).min(n - 1)].0
        };
        (0..n.div_ceil(2)).map(|_| (distance(draw(), draw()), 1.0)).collect()
    };
    distances.retain(|(d, _)| *d > 0.0 && d.is_finite());
    distances.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    // Rows that only rounding tells apart are equal, too.
    let least = if shape == Shape::Laplacian { EQUAL } else { EQUAL * EQUAL } * quantile(&distances, 0.9);
    distances.retain(|(d, _)| *d > least);
    let (q10, q90) = (quantile(&distances, 0.1), quantile(&distances, 0.9));
    // γ = 2σ with σ the mean of 1/q90 and 1/q10.
    let gamma = 1.0 / q90 + 1.0 / q10;
    if distances.is_empty() || !gamma.is_finite() {
        let found = "all rows are equal, or their distances overflow or vanish".into();
        return Err(Error::Bandwidth { rule: "sigest", found });
    }
    Ok(gamma)
}

/// The smallest of the sorted values up to which at least the share `level` of the weight lies; 0 if there are none.
fn quantile(sorted: &[(f64, f64)], level: f64) -> f64 {
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut reached = 0.0;
    for (value, weight) in sorted {
        reached += weight;
        if reached >= (level - 1e-12) * total {
            return *value;
        }
    }
    sorted.last().map_or(0.0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigest_is_the_mean_of_the_inverse_quantiles() {
        // Two distinct points: every non-zero squared distance is 4, so γ = 2/4.
        let x = [0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0];
        let rows = Rows::from_slice(&x, 1).unwrap();
        let kernel = Kernel::rbf(Bandwidth::Sigest).resolve(&rows, None, 7).unwrap();
        assert!((kernel.gamma - 0.5).abs() < 1e-15);
        let laplacian = Kernel { shape: Shape::Laplacian, bandwidth: Bandwidth::Sigest };
        assert!((laplacian.resolve(&rows, None, 7).unwrap().gamma - 1.0).abs() < 1e-15);
    }

    #[test]
    fn quantile_counts_weights() {
        assert_eq!(quantile(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)], 0.5), 2.0);
        assert_eq!(quantile(&[(1.0, 1.0), (2.0, 3.0)], 0.5), 2.0);
        assert_eq!(quantile(&[(5.0, 0.1)], 0.9), 5.0);
    }
}
