//! The functions of a model with the linear kernel: planes.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::data::rows::Rows;
use crate::error::{Error, Result};
use crate::kernel::tile::{Side, check_sums};
use crate::numeric::memory;
use crate::numeric::parallel;
use crate::numeric::threads::pooled_if_worth;

/// Rows that are packed at a time, in double precision and less the centre.
const PACKED_ROWS: usize = 128;

/// Numbers of weights for each number of the vectors and coefficients, up to which a model keeps its weights. Sparse rows
/// may have more columns than any memory: a larger value lets their weights take more than the model does, a smaller one
/// makes models of few vectors and many columns predict from their vectors.
const WEIGHTS_PER_NUMBER: usize = 8;

/// Numbers of weights that are always kept.
const FEW_WEIGHTS: usize = 1024;

/// Where a model was centred, and the values of its functions there.
///
/// f(x) = Σᵢ cᵢ⟨vᵢ, x⟩ + b has Σc = 0 only up to rounding, which ‖x‖² multiplies. f(x) = ⟨w, x − m⟩ + f(m) with
/// w = Σᵢ cᵢ(vᵢ − m) has no such terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Centre {
    /// m, one number a column.
    pub point: Vec<f64>,
    /// f(m) of each function.
    pub values: Vec<f64>,
}

/// f_k(x) = ⟨w_k, x − m⟩ + a_k.
#[derive(Debug, Clone)]
pub struct Plane {
    /// One row for each column of x, one column for each function.
    weights: Mat<f64>,
    /// m; empty: 0.
    centre: Vec<f64>,
    values: Vec<f64>,
}

impl Plane {
    /// The functions Σᵢ coef[i, k]⟨vᵢ, x⟩ + b_k or, with a centre, Σᵢ coef[i, k]⟨vᵢ − m, x − m⟩ + f_k(m).
    ///
    /// The weights take a number for each column of the vectors and each function.
    pub fn new(vectors: &Rows, coef: MatRef<f64>, intercepts: &[f64], centre: Option<&Centre>) -> Result<Self> {
        let (p, functions) = (vectors.ncols(), coef.ncols());
        let (point, values) = centre.map_or((&[][..], intercepts), |centre| (&centre.point, &centre.values));
        let mut weights = memory::matrix(p, functions, "the weights of the columns", |_, _| 0.0)?;
        if let Some(sparse) = vectors.as_csr() {
            for i in 0..sparse.nrows() {
                for (j, value) in sparse.row(i) {
                    (0..functions).for_each(|k| weights[(j, k)] += coef[(i, k)] * value);
                }
            }
            for k in 0..functions {
                let sum: f64 = coef.col(k).iter().sum();
                point.iter().enumerate().for_each(|(j, m)| weights[(j, k)] -= sum * m);
            }
        } else {
            let rows: Vec<usize> = (0..coef.nrows()).collect();
            for rows in rows.chunks(PACKED_ROWS) {
                let packed = packed(vectors, rows, point);
                matmul(
                    weights.as_mut(),
                    Accum::Add,
                    MatRef::from_row_major_slice(&packed, rows.len(), p).transpose(),
                    coef.subrows(rows[0], rows.len()),
                    1.0,
                    Par::Seq,
                );
            }
        }
        Ok(Self { weights, centre: point.to_vec(), values: values.to_vec() })
    }

    /// Whether the weights take little beside what they are made of.
    pub fn is_small(vectors: &Rows, coef: MatRef<f64>) -> bool {
        let numbers = vectors.stored().saturating_add(coef.nrows().saturating_mul(coef.ncols()));
        let limit = WEIGHTS_PER_NUMBER.saturating_mul(numbers).saturating_add(FEW_WEIGHTS);
        vectors.ncols().saturating_mul(coef.ncols()) <= limit
    }

    /// The planes moved by m: the same w, and the same values, at m instead of 0.
    pub(crate) fn moved(self, centre: &[f64]) -> Self {
        Self { centre: centre.to_vec(), ..self }
    }

    /// w: one row for each column of x, one column for each function.
    pub fn weights(&self) -> MatRef<'_, f64> {
        self.weights.as_ref()
    }

    /// The values at one point.
    pub(crate) fn at(&self, point: &[f64]) -> Vec<f64> {
        let intercepts = self.intercepts();
        let value =
            |(k, b): (usize, f64)| b + point.iter().enumerate().map(|(j, x)| x * self.weights[(j, k)]).sum::<f64>();
        intercepts.into_iter().enumerate().map(value).collect()
    }

    /// b, with which f(x) = ⟨w, x⟩ + b.
    pub fn intercepts(&self) -> Vec<f64> {
        let at_zero = |(k, value): (usize, &f64)| {
            value - self.centre.iter().enumerate().map(|(j, m)| m * self.weights[(j, k)]).sum::<f64>()
        };
        self.values.iter().enumerate().map(at_zero).collect()
    }

    /// The values of all functions, row after row, shared out among `threads` threads if that is worth it. They are cheap:
    /// no device is asked.
    pub fn decision(&self, x: &Rows, threads: usize) -> Result<Vec<f64>> {
        if x.ncols() != self.weights.nrows() {
            return Err(Error::Features { got: x.ncols(), expected: self.weights.nrows() });
        }
        let flops = 2.0 * x.stored() as f64 * self.values.len() as f64;
        pooled_if_worth(threads, flops, || {
            x.check("X")?;
            let values = self.values(x);
            check_sums::<f64>("the decision value", Side::Rows("X", x), |row| row, self.values.len(), &values)?;
            Ok(values)
        })
    }

    fn values(&self, x: &Rows) -> Vec<f64> {
        let rows: Vec<usize> = (0..x.nrows()).collect();
        parallel::map(rows.chunks(PACKED_ROWS), |rows| self.values_at(x, rows)).concat()
    }

    /// The values at some rows.
    pub(crate) fn values_at(&self, x: &Rows, rows: &[usize]) -> Vec<f64> {
        let (p, functions) = (self.weights.nrows(), self.values.len());
        if let Some(sparse) = x.as_csr() {
            let intercepts = self.intercepts();
            let mut values = intercepts.repeat(rows.len());
            for (&i, values) in rows.iter().zip(values.chunks_exact_mut(functions)) {
                for (j, value) in sparse.row(i) {
                    values.iter_mut().enumerate().for_each(|(k, sum)| *sum += value * self.weights[(j, k)]);
                }
            }
            return values;
        }
        let mut values = self.values.repeat(rows.len());
        let packed = packed(x, rows, &self.centre);
        matmul(
            MatMut::from_row_major_slice_mut(&mut values, rows.len(), functions),
            Accum::Add,
            MatRef::from_row_major_slice(&packed, rows.len(), p),
            self.weights.as_ref(),
            1.0,
            Par::Seq,
        );
        values
    }
}

/// b of functions Σᵢ coef[i, k]⟨vᵢ, x⟩ + b_k that are centred, for Σcoef = 0.
pub(crate) fn intercepts_at_zero(vectors: &Rows, coef: MatRef<f64>, centre: &Centre) -> Vec<f64> {
    let square: f64 = centre.point.iter().map(|m| m * m).sum();
    let mut intercepts = centre.values.clone();
    for i in 0..vectors.nrows() {
        let mut product = 0.0;
        vectors.for_each_nonzero(i, |j, value| product += value * centre.point[j]);
        intercepts.iter_mut().enumerate().for_each(|(k, b)| *b -= coef[(i, k)] * (product - square));
    }
    intercepts
}

/// Rows in double precision, less a centre unless that is empty.
fn packed(x: &Rows, rows: &[usize], centre: &[f64]) -> Vec<f64> {
    let p = x.ncols();
    let none = if centre.is_empty() { vec![0.0; p] } else { Vec::new() };
    let shift = if centre.is_empty() { &none } else { centre };
    let mut packed = vec![0.0; rows.len() * p];
    rows.iter().zip(packed.chunks_exact_mut(p.max(1))).for_each(|(&i, row)| x.copy_row(i, shift, row));
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::data::sparse::CsrBuf;

    #[test]
    fn a_centre_keeps_the_digits_that_a_rounded_sum_of_coefficients_would_cost() {
        // Coefficients whose sum is a rounding error of 1e-9, and rows around 1e6.
        let mut rng = fastrand::Rng::with_seed(1);
        let (n, p) = (150, 3);
        let near: Vec<f64> = (0..n * p).map(|_| (64.0 * rng.f64()).round() / 64.0).collect();
        let far: Vec<f64> = near.iter().map(|x| x + 1e6).collect();
        let mut coef: Vec<f64> = (0..n).map(|_| (2.0 * rng.f64() - 1.0) * 1e4).collect();
        let mean = coef.iter().sum::<f64>() / n as f64;
        for c in &mut coef {
            *c -= mean;
        }
        coef[0] += 1e-9;
        let coef = MatRef::from_column_major_slice(&coef, n, 1);
        let (near, far) = (Rows::from_slice(&near, p).unwrap(), Rows::from_slice(&far, p).unwrap());
        let want = Plane::new(&near, coef, &[0.5], None).unwrap().values(&near);
        let centre = Centre { point: vec![1e6; p], values: vec![0.5] };
        let plane = Plane::new(&far, coef, &[f64::NAN], Some(&centre)).unwrap();
        for (got, want) in plane.values(&far).iter().zip(&want) {
            assert!((got - want).abs() <= 1e-9, "{got} {want}");
        }
        // In the columns as they are, b is rounded like ⟨w, m⟩; with no centre even w is lost.
        let plain = Plane::new(&far, coef, &plane.intercepts(), None).unwrap().values(&far);
        assert!(plain.iter().zip(&want).any(|(got, want)| (got - want).abs() > 1e-4));
        let b = plane.intercepts()[0];
        for (i, want) in want.iter().enumerate() {
            let sum: f64 = (0..p).map(|j| plane.weights()[(j, 0)] * far.get(i, j)).sum::<f64>() + b;
            assert!((sum - want).abs() <= 1e-5 * want.abs().max(1.0), "{sum} {want}");
        }
        // Sparse rows have the same plane, but for their rounding.
        let (starts, columns): (Vec<usize>, Vec<usize>) =
            ((0..=n).map(|i| i * p).collect(), (0..n * p).map(|k| k % p).collect());
        let values: Vec<f64> = (0..n * p).map(|k| far.get(k / p, k % p)).collect();
        let sparse = CsrBuf::new(p, starts, columns, values).unwrap();
        let sparse = Rows::Csr(sparse.view());
        let of_sparse = Plane::new(&sparse, coef, &[f64::NAN], Some(&centre)).unwrap();
        for (got, want) in of_sparse.values(&sparse).iter().zip(&want) {
            assert!((got - want).abs() <= 1e-3 * want.abs().max(1.0), "{got} {want}");
        }
    }

    /// Sparse rows of more columns than any memory has numbers for: the functions are those of their vectors.
    #[test]
    fn columns_without_end_make_no_plane() {
        let (starts, columns, values) = ([0_usize, 1, 2], [0_usize, usize::MAX - 1], [1.0, 2.0]);
        let wide = crate::data::sparse::Csr::new(usize::MAX, &starts[..], &columns[..], &values[..]).unwrap();
        let coef = Mat::from_fn(2, 1, |i, _| 1.0 + i as f64);
        assert!(!Plane::is_small(&Rows::Csr(wide), coef.as_ref()));
        assert!(Plane::new(&Rows::Csr(wide), coef.as_ref(), &[0.0], None).is_err());
        let x = [1.0, 5.0, 2.0, 4.0];
        let rows = Rows::from_slice(&x, 2).unwrap();
        assert!(Plane::is_small(&rows, coef.as_ref()));
        let centre = Centre { point: vec![1.5, 4.5], values: vec![0.25] };
        let (plane, expected) = (Plane::new(&rows, coef.as_ref(), &[0.0], Some(&centre)).unwrap(), [0.25; 1]);
        assert_eq!(plane.at(&centre.point), expected);
        let direct = intercepts_at_zero(&rows, coef.as_ref(), &centre);
        assert!((plane.intercepts()[0] - direct[0]).abs() < 1e-12, "{} {}", plane.intercepts()[0], direct[0]);
    }
}
