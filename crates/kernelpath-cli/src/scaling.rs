//! Scaling of columns, learned from the rows that count.

use kernelpath::{Rows, Scaling, Shape, available_memory};

use crate::arguments::grid::ScaleChoice;
use crate::failure::{FAILED, Failure};

/// The scaling of the columns of `x`, which drops those of equal values; with weights, as if each row were there that many times.
///
/// Sparse rows stay sparse where the kernel allows it: one that sees differences of rows does not see what is subtracted
/// from all of them.
pub(crate) fn fitted(choice: ScaleChoice, x: &Rows, weights: Option<&[f64]>, shape: Shape) -> Result<Scaling, Failure> {
    if shape == Shape::Precomputed {
        return Err(Failure::input(
            "--scale: the columns of a precomputed kernel matrix are no features; leave it out",
        ));
    }
    check_width(x.ncols())?;
    let mut scaling = match choice {
        ScaleChoice::Standard => standard(x, weights),
        ScaleChoice::Range(low, high) => ranged(x, weights, low, high),
    };
    let sees_differences = matches!(shape, Shape::Rbf | Shape::Laplacian | Shape::Matern32 | Shape::Matern52);
    if matches!(x, Rows::Csr(_)) {
        if sees_differences {
            scaling.shift.fill(0.0);
        } else if scaling.shift.iter().any(|shift| *shift != 0.0) {
            check_memory(x)?;
        }
    }
    Ok(scaling)
}

/// Numbers for each column that learning a scaling takes at most, and the model with it.
const NUMBERS: u64 = 6;

/// Refuses columns whose scaling alone takes more memory than there is: an index of a sparse file can have any size.
fn check_width(columns: usize) -> Result<(), Failure> {
    let need = (columns as u64).saturating_mul(8 * NUMBERS);
    match available_memory() {
        Some(available) if need > available => Err(Failure::new(
            FAILED,
            format!(
                "--scale: a scaling of {columns} columns takes {} MB of {} MB; number the columns without gaps, or leave \
                 --scale out",
                need >> 20,
                available >> 20
            ),
        )),
        _ => Ok(()),
    }
}

/// x′ = (x − mean) / standard deviation, and 0 in a column of equal values.
fn standard(x: &Rows, weights: Option<&[f64]>) -> Scaling {
    let of_row = |i: usize| weights.map_or(1.0, |weights| weights[i]);
    let total: f64 = (0..x.nrows()).map(of_row).sum();
    let (mut mean, mut stored) = (vec![0.0; x.ncols()], vec![0.0; x.ncols()]);
    each(x, |i, j, value| {
        mean[j] += of_row(i) * value / total;
        stored[j] += of_row(i);
    });
    // What is not stored is 0.
    let mut variance: Vec<f64> = mean.iter().zip(&stored).map(|(m, stored)| (total - stored) / total * m * m).collect();
    each(x, |i, j, value| variance[j] += of_row(i) * (value - mean[j]).powi(2) / total);
    let mut factor = variance;
    for (factor, mean) in factor.iter_mut().zip(&mut mean) {
        // The variance of equal values is rounding.
        if *factor <= (1e-14 * *mean).powi(2) {
            (*factor, *mean) = (0.0, 0.0);
        } else {
            *factor = 1.0 / factor.sqrt();
        }
    }
    Scaling { factor, shift: mean }
}

/// x′ = low + (x − min) (high − low) / (max − min), and 0 in a column of equal values.
fn ranged(x: &Rows, weights: Option<&[f64]>, low: f64, high: f64) -> Scaling {
    let counts = |i: usize| weights.is_none_or(|weights| weights[i] > 0.0);
    let rows = (0..x.nrows()).filter(|i| counts(*i)).count();
    let columns = x.ncols();
    let (mut least, mut most, mut stored) =
        (vec![f64::INFINITY; columns], vec![f64::NEG_INFINITY; columns], vec![0; columns]);
    each(x, |i, j, value| {
        if counts(i) {
            (least[j], most[j]) = (value.min(least[j]), value.max(most[j]));
            stored[j] += 1;
        }
    });
    let mut scaling = Scaling { shift: Vec::with_capacity(columns), factor: Vec::with_capacity(columns) };
    for j in 0..columns {
        if stored[j] < rows {
            (least[j], most[j]) = (least[j].min(0.0), most[j].max(0.0));
        }
        let range = most[j] - least[j];
        let factor = if range > 0.0 { (high - low) / range } else { 0.0 };
        scaling.factor.push(factor);
        scaling.shift.push(if range > 0.0 { least[j] - low / factor } else { 0.0 });
    }
    scaling
}

/// Calls `visit` with row, column and value of every entry that is stored.
fn each(x: &Rows, mut visit: impl FnMut(usize, usize, f64)) {
    for i in 0..x.nrows() {
        match x {
            Rows::Csr(sparse) => sparse.row(i).for_each(|(j, value)| visit(i, j, value)),
            _ => (0..x.ncols()).for_each(|j| visit(i, j, x.entry(i, j).unwrap_or(f64::NAN))),
        }
    }
}

/// Refuses to fill more memory than there is with the zeros of sparse rows.
fn check_memory(x: &Rows) -> Result<(), Failure> {
    let need = (x.nrows() as u64).saturating_mul(x.ncols() as u64).saturating_mul(8);
    match available_memory() {
        Some(available) if need > available => Err(Failure::new(
            FAILED,
            format!(
                "--scale: the scaled rows of a sparse file are dense for this kernel, and take {} MB of {} MB; use a \
                 kernel of differences such as rbf, or leave --scale out",
                need >> 20,
                available >> 20
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernelpath::CsrBuf;

    #[test]
    fn scaled_columns_have_mean_0_and_variance_1_or_their_range() {
        let values = [1.0, 5.0, 2.0, 5.0, 6.0, 5.0];
        let x = Rows::from_slice(&values, 2).unwrap();
        let scaled = fitted(ScaleChoice::Standard, &x, None, Shape::Rbf).unwrap().apply(&x).unwrap();
        let column: Vec<f64> = (0..3).map(|i| scaled.view().entry(i, 0).unwrap()).collect();
        assert!(column.iter().sum::<f64>().abs() < 1e-14);
        assert!((column.iter().map(|v| v * v).sum::<f64>() / 3.0 - 1.0).abs() < 1e-14);
        assert_eq!(scaled.view().entry(1, 1).unwrap(), 0.0);
        let scaled = fitted(ScaleChoice::Range(-1.0, 1.0), &x, None, Shape::Rbf).unwrap().apply(&x).unwrap();
        assert_eq!(
            (
                scaled.view().entry(0, 0).unwrap(),
                scaled.view().entry(2, 0).unwrap(),
                scaled.view().entry(2, 1).unwrap()
            ),
            (-1.0, 1.0, 0.0)
        );
        // What was constant is dropped, whatever it is later.
        let scaling = fitted(ScaleChoice::Standard, &x, None, Shape::Rbf).unwrap();
        let later = [1.0, 1e300];
        assert_eq!(scaling.apply(&Rows::from_slice(&later, 2).unwrap()).unwrap().view().entry(0, 1).unwrap(), 0.0);
    }

    #[test]
    fn a_row_of_weight_2_counts_twice() {
        let (once, twice) = ([1.0, 2.0, 6.0], [1.0, 2.0, 6.0, 6.0]);
        let (once, twice) = (Rows::from_slice(&once, 1).unwrap(), Rows::from_slice(&twice, 1).unwrap());
        let weighted = fitted(ScaleChoice::Standard, &once, Some(&[1.0, 1.0, 2.0]), Shape::Rbf).unwrap();
        let repeated = fitted(ScaleChoice::Standard, &twice, None, Shape::Rbf).unwrap();
        assert!((weighted.factor[0] - repeated.factor[0]).abs() < 1e-14);
        let left_out = fitted(ScaleChoice::Range(0.0, 1.0), &once, Some(&[1.0, 1.0, 0.0]), Shape::Rbf).unwrap();
        assert_eq!(left_out, Scaling { shift: vec![1.0], factor: vec![1.0] });
    }

    #[test]
    fn sparse_rows_are_scaled_as_dense_ones() {
        let dense = [0.0, 3.0, 1.0, 0.0, 4.0, 3.0];
        let sparse = CsrBuf::new(2, vec![0, 1, 2, 4], vec![1, 0, 0, 1], vec![3.0, 1.0, 4.0, 3.0]).unwrap();
        let (dense, sparse) = (Rows::from_slice(&dense, 2).unwrap(), Rows::Csr(sparse.view()));
        for choice in [ScaleChoice::Standard, ScaleChoice::Range(0.0, 1.0)] {
            let (a, b) = (fitted(choice, &dense, None, Shape::Linear), fitted(choice, &sparse, None, Shape::Linear));
            let (a, b) = (a.unwrap(), b.unwrap());
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14);
            assert!(close(&a.shift, &b.shift) && close(&a.factor, &b.factor));
            let c = fitted(choice, &sparse, None, Shape::Rbf).unwrap();
            assert!(c.shift == [0.0, 0.0] && c.factor == b.factor);
        }
    }
}
