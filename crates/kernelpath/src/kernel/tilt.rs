//! The linear kernel of rows less a centre.
//!
//! With an intercept Σβ = 0, so ⟨x − m, z − m⟩ in the place of ⟨x, z⟩ leaves problem (P) as it is:
//!
//! ```text
//! f(x) = Σᵢ βᵢ⟨xᵢ − m, x − m⟩ + b' = ⟨w, x⟩ + b,     w = Σᵢ βᵢ(xᵢ − m),     b = b' − ⟨m, w⟩
//! ```
//!
//! and saves the digits that entries near ‖m‖² would lose. Other kernels would become other kernels. Dense rows are
//! shifted. Sparse rows, which a shift would fill, keep their products, and the matrix becomes K − 1vᵀ − v1ᵀ + ‖m‖²11ᵀ with
//! v = Xm: there, entries keep the errors of ⟨x, z⟩.

use crate::data::rows::Rows;
use crate::kernel::shape::{KernelFn, Shape};
use crate::numeric::centre;
use crate::numeric::parallel;

/// m: the centre of each column over all rows, if the kernel is linear and the centre is not 0; else empty.
///
/// A column of sparse rows is near 0 if half of its entries are 0. Sparse rows with more columns than entries have no
/// centre: it takes a number for each column.
pub(crate) fn centre_of(kernel: &KernelFn, x: &Rows) -> Vec<f64> {
    if kernel.shape != Shape::Linear {
        return Vec::new();
    }
    let (n, p) = (x.nrows(), x.ncols());
    if p > x.stored() {
        return Vec::new();
    }
    let centre = if x.as_csr().is_some() {
        let mut counts = vec![0; p];
        (0..n).for_each(|i| x.for_each_nonzero(i, |j, _| counts[j] += 1));
        let mut full: Vec<Vec<f64>> = vec![Vec::new(); p];
        for i in 0..n {
            x.for_each_nonzero(i, |j, value| {
                if 2 * counts[j] > n {
                    full[j].push(value);
                }
            });
        }
        parallel::map(full, |mut values| {
            if !values.is_empty() {
                values.resize(n, 0.0);
            }
            centre::of_values(&mut values)
        })
    } else {
        let of_column = |j: usize| centre::of_values(&mut (0..n).map(|i| x.get(i, j)).collect::<Vec<f64>>());
        parallel::map_numbers(p, 1 + 65_536 / n.max(1), of_column)
    };
    if centre.iter().all(|m| *m == 0.0) { Vec::new() } else { centre }
}

/// The largest √k(x, x) of some rows, or of these rows less a centre of the linear kernel. Sparse rows keep their products,
/// and count as long as ‖x‖ + ‖m‖.
pub(crate) fn largest_root(kernel: &KernelFn, x: &Rows, rows: &[usize], centre: &[f64]) -> f64 {
    let tilt = Tilt::new(centre, x, rows);
    let root = |&i: &usize| {
        if centre.is_empty() {
            return kernel.diagonal(x, i).abs().sqrt();
        }
        centre.iter().enumerate().map(|(j, m)| (x.get(i, j) - m).powi(2)).sum::<f64>().sqrt()
    };
    match tilt.roots() {
        Some(roots) => roots.iter().copied().fold(0.0, f64::max),
        None => rows.iter().map(root).fold(0.0, f64::max),
    }
}

/// What a centre does to the kernel matrix of some rows. Without a centre all is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tilt {
    /// ⟨m, xᵢ − m⟩.
    products: Vec<f64>,
    /// ‖m‖².
    square: f64,
    /// ‖xᵢ‖ + ‖m‖ of sparse rows, the number that errors of their entries are proportional to; else empty.
    roots: Vec<f64>,
}

impl Tilt {
    pub fn new(centre: &[f64], x: &Rows, rows: &[usize]) -> Self {
        if centre.is_empty() {
            return Self::default();
        }
        let square = centre.iter().map(|m| m * m).sum::<f64>();
        if x.as_csr().is_some() {
            let product = |&i: &usize| {
                let (mut product, mut norm) = (0.0, 0.0);
                x.for_each_nonzero(i, |j, value| (product, norm) = (product + centre[j] * value, norm + value * value));
                (product - square, norm.sqrt() + square.sqrt())
            };
            let (products, roots) = rows.iter().map(product).unzip();
            return Self { products, square, roots };
        }
        let product = |&i: &usize| centre.iter().enumerate().map(|(j, m)| m * (x.get(i, j) - m)).sum();
        Self { products: rows.iter().map(product).collect(), square, roots: Vec::new() }
    }

    /// What is subtracted from entry (i, j) of the kernel matrix of sparse rows: vᵢ + vⱼ − ‖m‖².
    pub fn of_entry(&self, i: usize, j: usize) -> f64 {
        if self.roots.is_empty() { 0.0 } else { self.products[i] + self.products[j] + self.square }
    }

    /// That of some of the rows.
    pub fn part(&self, rows: &[usize]) -> Self {
        let part =
            |values: &[f64]| if values.is_empty() { Vec::new() } else { rows.iter().map(|&i| values[i]).collect() };
        Self { products: part(&self.products), square: self.square, roots: part(&self.roots) }
    }

    /// What errors of the entries of each row are proportional to, if that is not the root of the diagonal.
    pub fn roots(&self) -> Option<&[f64]> {
        (!self.roots.is_empty()).then_some(&self.roots[..])
    }

    /// The intercepts for rows as they are, given those for rows less the centre: b' − Σ βᵢ⟨m, xᵢ − m⟩ of each output.
    pub fn intercepts(&self, coef: &[f64], b: &mut [f64]) {
        if self.products.is_empty() {
            return;
        }
        for (b, beta) in b.iter_mut().zip(coef.chunks_exact(self.products.len())) {
            *b -= beta.iter().zip(&self.products).map(|(beta, product)| beta * product).sum::<f64>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::data::sparse::Csr;
    use crate::kernel::gram::Gram;
    use crate::observe::Control;

    const ROWS: usize = 40;

    /// Columns around 2e4, −3e7 and 0, and one of mostly zeros.
    fn values() -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(4);
        let row = |_| {
            let rare = if rng.f64() < 0.2 { 7.0 } else { 0.0 };
            [2e4 + rng.f64(), -3e7 + rng.f64(), rng.f64() - 0.5, rare]
        };
        (0..ROWS).flat_map(row).collect()
    }

    #[test]
    fn entries_are_products_of_rows_less_the_centre() {
        let (values, kernel) = (values(), KernelFn::new(Shape::Linear, 1.0).unwrap());
        let dense = Rows::from_slice(&values, 4).unwrap();
        let (starts, columns): (Vec<usize>, Vec<usize>) =
            ((0..=ROWS).map(|i| 4 * i).collect(), (0..4 * ROWS).map(|k| k % 4).collect());
        let sparse = Rows::from(Csr::new(4, &starts[..], &columns[..], &values[..]).unwrap());
        let centre = centre_of(&kernel, &dense);
        assert_eq!(centre_of(&kernel, &sparse), centre);
        assert!((centre[0] - 2e4).abs() < 2.0 && (centre[1] + 3e7).abs() < 2.0 && centre[2..] == [0.0, 0.0]);
        assert!(centre_of(&KernelFn::new(Shape::Poly { degree: 1, coef0: 0.0 }, 1.0).unwrap(), &dense).is_empty());
        let all: Vec<usize> = (0..ROWS).collect();
        let row = |i: usize| (0..4).map(|j| dense.get(i, j) - centre[j]).collect::<Vec<f64>>();
        // The products of sparse rows are about 1e15, and rounded.
        for (x, rounding) in [(&dense, 1e-13), (&sparse, 1.0)] {
            let gram = Gram::<f64>::compute_on(None, x, &all, &kernel, &centre, None, &Control::default()).unwrap();
            for (i, j) in (0..ROWS).flat_map(|i| (0..ROWS).map(move |j| (i, j))) {
                let want: f64 = row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum();
                assert!((gram.get(i, j) - want).abs() <= rounding, "{i} {j}: {} {want}", gram.get(i, j));
                let error = gram.error();
                assert!((gram.get(i, j) - want).abs() <= 6.0 * error.relative * error.roots[i] * error.roots[j]);
            }
            // b moves with the rows, whatever β is, as long as Σβ = 0.
            let beta: Vec<f64> = (0..ROWS).map(|i| (i as f64).sin() - ((i + 1) % ROWS) as f64).collect();
            let mean = beta.iter().sum::<f64>() / ROWS as f64;
            let beta: Vec<f64> = beta.iter().map(|beta| beta - mean).collect();
            let part = gram.part(&all[5..]).unwrap();
            for (gram, beta) in [(&gram, &beta[..]), (&part, &beta[5..])] {
                let mut b = [0.25];
                gram.tilt.intercepts(beta, &mut b);
                let first = ROWS - beta.len();
                let product = |j: usize| -> f64 { beta.iter().enumerate().map(|(k, c)| c * row(first + k)[j]).sum() };
                let want = 0.25 - (0..4).map(|j| centre[j] * product(j)).sum::<f64>();
                assert!((b[0] - want).abs() <= 1e-9 * want.abs().max(1.0) * if rounding < 1.0 { 1.0 } else { 1e6 });
            }
        }
    }
}
