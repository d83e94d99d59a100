//! The systems of [`directions`](super::directions) where fewer rows take part than there are features: solved in the
//! dimensions of these rows.
//!
//! With M = S⁻¹ + ZZᵀ over these rows, Woodbury's formula gives for
//!
//! ```text
//! (I + Zᵀ S Z) x + Zᵀ S 1 β = r,     1ᵀ S Z x + (1ᵀ S 1 + ε) β = ρ
//! h = M⁻¹ Z r,   t = M⁻¹ 1,          β = (ρ − 1ᵀh) / (ε + 1ᵀt),     x = r − Zᵀ(h + β t)
//! ```
//!
//! Between steps most of the rows stay, and problems have many in common, so the products of rows are kept.

use std::collections::HashMap;

use faer::MatRef;
use rayon::prelude::*;

use crate::design::{Design, product};
use crate::error::Result;
use crate::observe::Control;

use super::cholesky::{Cholesky, Working};

/// Rows that are kept at most: their products take 32 MB in single precision.
const MOST: usize = 4096;

/// Rows at most that take part in a step: with more, products would be found anew too often.
const MOST_AT_ONCE: usize = MOST / 2;

/// Rows whose products one thread finds at once.
const BAND: usize = 64;

/// The products of pairs of rows that took part in some step.
pub(super) struct Products<T> {
    /// Place of a row.
    place: HashMap<usize, usize>,
    rank: usize,
    /// Their features, place after place.
    values: Vec<T>,
    /// Of each place the products with those before it and itself.
    lines: Vec<Vec<T>>,
}

impl<T> Products<T> {
    /// Bytes that those of a design take at most.
    pub fn bytes(n: usize, rank: usize) -> u64 {
        let rows = n.min(MOST);
        (rows * (rank + rows / 2) * size_of::<T>()) as u64
    }
}

impl<T: Working> Products<T> {
    pub fn new(rank: usize) -> Self {
        Self { place: HashMap::new(), rank, values: Vec::new(), lines: Vec::new() }
    }

    /// Makes sure that these rows of a design, known by the names that `name` gives them, have a place; false if they
    /// are too many.
    pub fn include(
        &mut self,
        design: Design<T>,
        rows: &[usize],
        name: impl Fn(usize) -> usize,
        control: &Control,
    ) -> Result<bool> {
        if rows.len() > MOST_AT_ONCE {
            return Ok(false);
        }
        let without = |place: &HashMap<usize, usize>| -> Vec<usize> {
            rows.iter().filter(|row| !place.contains_key(&name(**row))).copied().collect()
        };
        let mut new = without(&self.place);
        if self.lines.len() + new.len() > MOST {
            *self = Self::new(self.rank);
            new = without(&self.place);
        }
        let (old, all) = (self.lines.len(), self.lines.len() + new.len());
        self.place.extend(new.iter().zip(old..).map(|(&row, place)| (name(row), place)));
        self.values.extend(design.gather(&new));
        let (values, rank) = (&self.values, self.rank);
        let bands: Vec<usize> = (old..all).step_by(BAND).collect();
        let lines = bands
            .into_par_iter()
            .map(|start| {
                control.check()?;
                let end = (start + BAND).min(all);
                let left = MatRef::from_row_major_slice(&values[..end * rank], end, rank);
                let right = MatRef::from_column_major_slice(&values[start * rank..end * rank], rank, end - start);
                let products = product(left, right);
                Ok((start..end).map(|k| products.col_as_slice(k - start)[..=k].to_vec()).collect())
            })
            .collect::<Result<Vec<Vec<Vec<T>>>>>()?;
        self.lines.extend(lines.into_iter().flatten());
        Ok(true)
    }
}

/// H⁻¹ of one system, by its rows.
pub(super) struct ByRows<T> {
    /// The rows, in the order of their places.
    pub rows: Vec<usize>,
    /// Their features.
    pub values: Vec<T>,
    rank: usize,
    factor: Cholesky<T>,
    /// t, and ε + 1ᵀt.
    ones: Vec<f64>,
    total: f64,
}

impl<T: Working> ByRows<T> {
    /// For the rows where s > 0, which `products` includes by their names; `ridge` is relative to the largest entry of M.
    pub fn new(
        products: &Products<T>,
        s: &[f64],
        name: impl Fn(usize) -> usize,
        (floor, ridge): (f64, f64),
        control: &Control,
    ) -> Result<Self> {
        let place = |i: usize| products.place.get(&name(i)).map(|&place| (place, i));
        let mut places: Vec<(usize, usize)> = (0..s.len()).filter(|&i| s[i] > 0.0).filter_map(place).collect();
        places.sort_unstable();
        let (places, rows): (Vec<usize>, Vec<usize>) = places.into_iter().unzip();
        let order = rows.len();
        let diagonal = |q: usize| products.lines[places[q]][places[q]].wide() + 1.0 / s[rows[q]];
        let ridge = ridge * (0..order).map(diagonal).fold(0.0, f64::max);
        let factor = Cholesky::new(order, ridge, control, |q, column| {
            let line = &products.lines[places[q]];
            column.iter_mut().zip(&places).for_each(|(value, &place)| *value = line[place]);
            column[q] = T::narrow(diagonal(q) + ridge);
        })?;
        let mut ones = vec![T::narrow(1.0); order];
        factor.solve(&mut ones, order);
        let ones: Vec<f64> = ones.into_iter().map(T::wide).collect();
        let total = floor + ones.iter().sum::<f64>();
        let values = Design::new(&products.values, products.lines.len(), products.rank).gather(&places);
        Ok(Self { rows, values, rank: products.rank, factor, ones, total })
    }

    fn design(&self) -> Design<'_, T> {
        Design::new(&self.values, self.rows.len(), self.rank)
    }

    /// (r, ρ) ← (x, β).
    pub fn solve(&self, b: &mut [f64]) {
        // Scaled to 1, so that single precision neither overflows nor loses small residuals.
        let scale = b.iter().fold(f64::MIN_POSITIVE, |a, v| a.max(v.abs()));
        let narrow: Vec<T> = b[..self.rank].iter().map(|v| T::narrow(v / scale)).collect();
        let mut h = self.design().times_one(&narrow);
        self.factor.solve(&mut h, self.rows.len());
        let sum: f64 = h.iter().map(|h| h.wide()).sum();
        let beta = (b[self.rank] / scale - sum) / self.total;
        h.iter_mut().zip(&self.ones).for_each(|(h, t)| *h = T::narrow(h.wide() + beta * t));
        let back = self.design().transposed_times_one(&h);
        b.iter_mut().zip(back).for_each(|(x, back)| *x -= scale * back.wide());
        b[self.rank] = scale * beta;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of random features, curvatures and right-hand sides, in f64 and f32; rows come in turn by turn.
    #[test]
    fn it_solves_the_system() {
        let (n, rank, floor) = (60, 20, 1e-6);
        let mut rng = fastrand::Rng::with_seed(3);
        let z: Vec<f64> = (0..n * rank).map(|_| rng.f64() - 0.5).collect();
        let mut products = (Products::<f64>::new(rank), Products::<f32>::new(rank));
        let narrow: Vec<f32> = z.iter().map(|z| *z as f32).collect();
        for active in [12, 0, 19, 7] {
            let mut s = vec![0.0; n];
            (0..active).for_each(|_| s[rng.usize(..n)] = 10.0 * rng.f64());
            let rows: Vec<usize> = (0..n).filter(|&i| s[i] > 0.0).collect();
            let right: Vec<f64> = (0..=rank).map(|_| rng.f64() - 0.5).collect();
            let name = |i: usize| 1000 - i;
            let control = Control::default();
            let mut wide = right.clone();
            assert!(products.0.include(Design::new(&z, n, rank), &rows, name, &control).unwrap());
            ByRows::new(&products.0, &s, name, (floor, 0.0), &control).unwrap().solve(&mut wide);
            let mut single = right.clone();
            assert!(products.1.include(Design::new(&narrow, n, rank), &rows, name, &control).unwrap());
            ByRows::new(&products.1, &s, name, (floor, 0.0), &control).unwrap().solve(&mut single);
            // H(x, β), row by row.
            let (x, beta) = wide.split_at(rank);
            let mut product: Vec<f64> = x.to_vec();
            product.push(floor * beta[0]);
            for &i in &rows {
                let row = &z[i * rank..(i + 1) * rank];
                let u = s[i] * (row.iter().zip(x).map(|(z, x)| z * x).sum::<f64>() + beta[0]);
                product.iter_mut().zip(row).for_each(|(product, z)| *product += u * z);
                product[rank] += u;
            }
            for (product, right) in product.iter().zip(&right) {
                assert!((product - right).abs() < 1e-9, "{active} rows: {product} is not {right}");
            }
            let size = wide.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
            for (single, wide) in single.iter().zip(&wide) {
                assert!((single - wide).abs() < 1e-3 * size, "{active} rows: {single} is not {wide}");
            }
        }
    }

    #[test]
    fn too_many_rows_are_left_out() {
        let z = vec![1.0_f32; 2 * MOST];
        let all: Vec<usize> = (0..2 * MOST).collect();
        let (design, control) = (Design::new(&z, 2 * MOST, 1), Control::default());
        let mut products = Products::new(1);
        assert!(!products.include(design, &all[..=MOST_AT_ONCE], |i| i, &control).unwrap());
        for rows in all[..MOST].chunks(MOST_AT_ONCE) {
            assert!(products.include(design, rows, |i| i, &control).unwrap());
        }
        assert_eq!(products.lines.len(), MOST);
        // What is full is begun anew.
        assert!(products.include(design, &all[MOST - 2..=MOST], |i| i, &control).unwrap());
        assert_eq!(products.lines.len(), 3);
    }
}
