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

use crate::design::{Accuracy, Design, product};
use crate::error::Result;
use crate::memory;
use crate::observe::Control;

use super::cholesky::{Cholesky, Working};

/// Rows that are kept at most: their products take 32 MB in single precision.
const MOST: usize = 4096;

/// Rows at most that take part in a step: with more, products would be found anew too often.
pub(super) const MOST_AT_ONCE: usize = MOST / 2;

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

    /// The places of the rows of a design, which are given the names that they are known by; no more than
    /// [`MOST_AT_ONCE`].
    pub fn include(&mut self, design: Design<T>, names: &[usize], control: &Control) -> Result<Vec<usize>> {
        let without = |place: &HashMap<usize, usize>| -> Vec<usize> {
            (0..names.len()).filter(|&k| !place.contains_key(&names[k])).collect()
        };
        let mut new = without(&self.place);
        if self.lines.len() + new.len() > MOST {
            *self = Self::new(self.rank);
            new = without(&self.place);
        }
        let (old, all) = (self.lines.len(), self.lines.len() + new.len());
        self.place.extend(new.iter().zip(old..).map(|(&k, place)| (names[k], place)));
        let gathered = design.gather(&new, Accuracy::Working)?.into_values();
        memory::reserve(&mut self.values, gathered.len(), "the products of rows")?;
        self.values.extend(gathered);
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
        Ok(names.iter().map(|name| self.place[name]).collect())
    }
}

/// M⁻¹ of one system.
pub(super) struct ByRows<T> {
    /// Its rows, in the order of their places.
    rows: Vec<usize>,
    factor: Cholesky<T>,
    /// t, and ε + 1ᵀt.
    ones: Vec<f64>,
    total: f64,
}

impl<T: Working> ByRows<T> {
    /// For the rows where s > 0, of those at these places; `ridge` is relative to the largest entry of M.
    pub fn new(
        products: &Products<T>,
        places: &[usize],
        s: &[f64],
        (floor, ridge): (f64, f64),
        control: &Control,
    ) -> Result<Self> {
        let mut rows: Vec<usize> = (0..s.len()).filter(|&i| s[i] > 0.0).collect();
        rows.sort_unstable_by_key(|&i| places[i]);
        let places: Vec<usize> = rows.iter().map(|&i| places[i]).collect();
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
        Ok(Self { rows, factor, ones, total })
    }

    /// h + βt, 0 for rows of other systems, and β, given Zr and ρ.
    pub fn solve(&self, image: &[f64], pull: f64) -> (Vec<f64>, f64) {
        let mut h: Vec<T> = self.rows.iter().map(|&i| T::narrow(image[i])).collect();
        self.factor.solve(&mut h, self.rows.len());
        let sum: f64 = h.iter().map(|h| h.wide()).sum();
        let beta = (pull - sum) / self.total;
        let mut pulls = vec![0.0; image.len()];
        self.rows.iter().zip(&h).zip(&self.ones).for_each(|((&i, h), t)| pulls[i] = h.wide() + beta * t);
        (pulls, beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (x, β) in the precision of T, of the rows where s > 0, which are known by names.
    fn solved<T: Working>(
        products: &mut Products<T>,
        z: &[f64],
        s: &[f64],
        right: &[f64],
        (rank, floor): (usize, f64),
    ) -> Vec<f64> {
        let control = Control::default();
        let rows: Vec<usize> = (0..s.len()).filter(|&i| s[i] > 0.0).collect();
        let names: Vec<usize> = rows.iter().map(|i| 1000 - i).collect();
        let narrow: Vec<T> = z.iter().map(|z| T::narrow(*z)).collect();
        let values = Design::new(&narrow, &[], s.len(), rank).gather(&rows, Accuracy::Working).unwrap().into_values();
        let places = products.include(Design::new(&values, &[], rows.len(), rank), &names, &control).unwrap();
        let curvature: Vec<f64> = rows.iter().map(|&i| s[i]).collect();
        let factor = ByRows::new(products, &places, &curvature, (floor, 0.0), &control).unwrap();
        let row = |i: usize| &z[i * rank..(i + 1) * rank];
        let image: Vec<f64> = rows.iter().map(|&i| row(i).iter().zip(right).map(|(z, r)| z * r).sum()).collect();
        let (pulls, beta) = factor.solve(&image, right[rank]);
        let mut x = right.to_vec();
        for (&i, pull) in rows.iter().zip(pulls) {
            x.iter_mut().zip(row(i)).for_each(|(x, z)| *x -= pull * z);
        }
        x[rank] = beta;
        x
    }

    /// Of random features, curvatures and right-hand sides, in f64 and f32; rows come in turn by turn.
    #[test]
    fn it_solves_the_system() {
        let (n, rank, floor) = (60, 20, 1e-6);
        let mut rng = fastrand::Rng::with_seed(3);
        let z: Vec<f64> = (0..n * rank).map(|_| rng.f64() - 0.5).collect();
        let mut products = (Products::<f64>::new(rank), Products::<f32>::new(rank));
        for active in [12, 0, 19, 7] {
            let mut s = vec![0.0; n];
            (0..active).for_each(|_| s[rng.usize(..n)] = 10.0 * rng.f64());
            let right: Vec<f64> = (0..=rank).map(|_| rng.f64() - 0.5).collect();
            let wide = solved(&mut products.0, &z, &s, &right, (rank, floor));
            let single = solved(&mut products.1, &z, &s, &right, (rank, floor));
            // H(x, β), row by row.
            let (x, beta) = wide.split_at(rank);
            let mut product: Vec<f64> = x.to_vec();
            product.push(floor * beta[0]);
            for i in 0..n {
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
    fn what_is_full_is_begun_anew() {
        let z = vec![1.0_f32; MOST_AT_ONCE];
        let (design, control) = (Design::new(&z, &[], MOST_AT_ONCE, 1), Control::default());
        let mut products = Products::new(1);
        let names: Vec<usize> = (0..=MOST).collect();
        for names in names[..MOST].chunks(MOST_AT_ONCE) {
            assert_eq!(products.include(design, names, &control).unwrap(), names);
        }
        assert_eq!(products.lines.len(), MOST);
        let three = Design::new(&z[..3], &[], 3, 1);
        assert_eq!(products.include(three, &names[MOST - 2..], &control).unwrap(), [0, 1, 2]);
        assert_eq!(products.lines.len(), 3);
    }
}
