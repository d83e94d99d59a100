//! Whether a symmetric matrix is positive definite: a Cholesky factorisation in squares, which is not kept.
//!
//! With A = LLᵀ and squares A_ij of [`SQUARE`] rows and columns, for j = 0, 1, …
//!
//! ```text
//! A_ij ← A_ij − Σ_{k<j} L_ik L_jkᵀ  (i ≥ j),   L_jj L_jjᵀ = A_jj,   L_ij = A_ij L_jj⁻ᵀ  (i > j)
//! ```
//!
//! If a pivot is not above 0, that of row m, then ℓ with Lℓ = A_{·m} (of the rows before m) gives a direction along which
//! A is not positive:
//!
//! ```text
//! z = (−L⁻ᵀℓ, 1, 0, …),   zᵀAz = A_mm − ℓᵀℓ ≤ 0
//! ```
//!
//! It takes n³/3 multiplications. Each square of a column is one task, so that nothing depends on the number of threads,
//! and between two products of squares, a few milliseconds, an interruption is heard.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, MatMut, MatRef, Par};

use crate::error::Result;
use crate::numeric::memory;
use crate::numeric::parallel;
use crate::numeric::simd::{dot_in_lanes, vectorise};
use crate::observe::Control;

/// Rows and columns of a square.
const SQUARE: usize = 256;

/// What errors call the factor.
const FACTOR: &str = "the factor that examines the kernel matrix";

/// The rows of the `k`-th row of squares.
fn part(k: usize, n: usize) -> std::ops::Range<usize> {
    k * SQUARE..n.min((k + 1) * SQUARE)
}

/// Bytes that a factorisation of a matrix of order `n` takes beside the matrix.
pub(crate) fn factor_bytes(n: usize) -> u64 {
    let parts = n.div_ceil(SQUARE);
    (0..parts).map(|j| 8 * ((n - j * SQUARE) * part(j, n).len()) as u64).sum()
}

/// A direction z with zᵀAz ≤ 0 (up to rounding), or none if A is positive definite. `fill(c, start, out)` must write the
/// entries of column `c` of A from row `start` on. `on_column` is called after each column of squares.
pub(crate) fn direction_not_positive(
    n: usize,
    fill: impl Fn(usize, usize, &mut [f64]) + Sync,
    control: &Control,
    on_column: impl Fn() -> Result<()>,
) -> Result<Option<Vec<f64>>> {
    let parts = n.div_ceil(SQUARE);
    // `factor[j][i − j]` is L_ij, column after column; on the diagonal row after row.
    let mut factor: Vec<Vec<Vec<f64>>> = Vec::with_capacity(parts);
    for j in 0..parts {
        let width = part(j, n).len();
        let updated = |i: usize| -> Result<Vec<f64>> {
            let height = part(i, n).len();
            let mut square = memory::zeros(height * width, FACTOR)?;
            for (c, out) in part(j, n).zip(square.chunks_exact_mut(height)) {
                fill(c, i * SQUARE, out);
            }
            let mut target = MatMut::from_column_major_slice_mut(&mut square, height, width);
            for (k, known) in factor.iter().enumerate() {
                control.check()?;
                let left = MatRef::from_column_major_slice(&known[i - k], height, SQUARE);
                let right = MatRef::from_column_major_slice(&known[j - k], width, SQUARE);
                matmul(target.as_mut(), Accum::Add, left, right.transpose(), -1.0, Par::Seq);
            }
            Ok(square)
        };
        let mut squares = parallel::try_map(j..parts, updated)?;
        let (diagonal, below) = squares.split_at_mut(1);
        if let Some(row) = factorise(&mut diagonal[0], width) {
            return Ok(Some(direction(&factor, &diagonal[0], row, n)));
        }
        let diagonal = MatRef::from_row_major_slice(&diagonal[0], width, width);
        parallel::try_for_each(below, |square| {
            control.check()?;
            let height = square.len() / width;
            let square = MatMut::from_column_major_slice_mut(square, height, width);
            solve_lower_triangular_in_place(diagonal, square.transpose_mut(), Par::Seq);
            Ok(())
        })?;
        factor.push(squares);
        on_column()?;
    }
    Ok(None)
}

/// Factorises a symmetric square in place: its lower triangle, row after row, becomes L. Returns the first row whose
/// pivot is not above 0; the entries before it are then those of ℓ.
fn factorise(square: &mut [f64], width: usize) -> Option<usize> {
    vectorise(
        #[inline(always)]
        || {
            for r in 0..width {
                let (above, rest) = square.split_at_mut(r * width);
                let row = &mut rest[..width];
                for (c, other) in above.chunks_exact(width).enumerate() {
                    row[c] = (row[c] - dot_in_lanes(&row[..c], &other[..c])) / other[c];
                }
                let pivot = row[r] - dot_in_lanes(&row[..r], &row[..r]);
                // (A NaN is not above 0.)
                if pivot > 0.0 {
                    row[r] = pivot.sqrt();
                } else {
                    return Some(r);
                }
            }
            None
        },
    )
}

/// z, if the pivot of row `row` of the square on the diagonal below the columns of `factor` is not above 0.
fn direction(factor: &[Vec<Vec<f64>>], diagonal: &[f64], row: usize, n: usize) -> Vec<f64> {
    let (j, width) = (factor.len(), part(factor.len(), n).len());
    let end = j * SQUARE + row;
    // ℓ, from which the rows below are eliminated one after the other.
    let mut z: Vec<f64> = Vec::with_capacity(n);
    for (k, known) in factor.iter().enumerate() {
        z.extend(known[j - k].chunks_exact(width).map(|column| column[row]));
    }
    z.extend_from_slice(&diagonal[row * width..][..row]);
    let solve = |z: &mut [f64], triangle: &[f64], width: usize| {
        for c in (0..z.len()).rev() {
            let line = &triangle[c * width..][..=c];
            let value = z[c] / line[c];
            z[c] = value;
            z[..c].iter_mut().zip(line).for_each(|(z, l)| *z -= value * l);
        }
    };
    solve(&mut z[j * SQUARE..], diagonal, width);
    for (k, known) in factor.iter().enumerate().rev() {
        let (head, solved) = z.split_at_mut((k + 1) * SQUARE);
        let own = &mut head[k * SQUARE..];
        for (square, below) in known[1..].iter().zip(solved.chunks(SQUARE)) {
            for (own, column) in own.iter_mut().zip(square.chunks_exact(square.len() / SQUARE)) {
                *own -= dot_in_lanes(&column[..below.len()], below);
            }
        }
        solve(own, &known[0], SQUARE);
    }
    for z in &mut z {
        *z = -*z;
    }
    z.push(1.0);
    z.resize(n, 0.0);
    debug_assert_eq!(z.len() - 1 - end, n - 1 - end);
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::error::Error;

    /// A symmetric matrix of random numbers with `diagonal` added to each entry of its diagonal, column after column.
    fn matrix(n: usize, diagonal: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(n as u64);
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let value = rng.f64() - 0.5;
                (a[i * n + j], a[j * n + i]) = (value, value);
            }
            a[i * n + i] += diagonal(i);
        }
        a
    }

    fn found(a: &[f64], n: usize) -> Option<Vec<f64>> {
        let fill = |c: usize, start: usize, out: &mut [f64]| out.copy_from_slice(&a[c * n + start..][..out.len()]);
        direction_not_positive(n, fill, &Control::default(), || Ok(())).unwrap()
    }

    fn form(a: &[f64], z: &[f64]) -> f64 {
        a.chunks_exact(z.len()).zip(z).map(|(row, zi)| zi * row.iter().zip(z).map(|(a, z)| a * z).sum::<f64>()).sum()
    }

    #[test]
    fn definite_matrices_have_no_such_direction() {
        for n in [1, 2, 100, SQUARE, SQUARE + 1, 3 * SQUARE + 7] {
            // The spectrum of the random part lies within about ±√(n/3).
            assert_eq!(found(&matrix(n, |_| 2.0 + (n as f64).sqrt()), n), None, "{n}");
        }
    }

    #[test]
    fn other_matrices_have_one_wherever_the_pivot_fails() {
        for n in [2, 100, SQUARE, SQUARE + 1, 3 * SQUARE + 7] {
            for at in [0, 1, n / 2, n - 1] {
                let size = 2.0 + (n as f64).sqrt();
                let a = matrix(n, |i| if i == at { -0.5 } else { size });
                let z = found(&a, n).unwrap_or_else(|| panic!("row {at} of {n}"));
                assert!((z[at], z[at + 1..].iter().all(|z| *z == 0.0)) == (1.0, true), "row {at} of {n}");
                let value = form(&a, &z);
                assert!(value < 1e-9 && value > -2.0 - size, "row {at} of {n}: {value}");
                // z is the direction with z_at = 1 in which the form is smallest.
                for other in [0, at / 2].into_iter().filter(|other| *other < at) {
                    let mut near = z.clone();
                    near[other] += 1e-3;
                    assert!(form(&a, &near) > value, "row {at} of {n}");
                }
            }
        }
    }

    #[test]
    fn its_memory_is_counted() {
        for n in [1, SQUARE, SQUARE + 1, 2000] {
            let half = (n * (n + 1) / 2 * 8) as u64;
            let bytes = factor_bytes(n);
            assert!(bytes >= half && bytes <= half + (8 * n * SQUARE) as u64, "{n}: {bytes}");
        }
    }

    #[test]
    fn an_interrupt_is_heard_between_products() {
        let n = 3 * SQUARE;
        let a = matrix(n, |_| 2.0 + (n as f64).sqrt());
        let fill = |c: usize, start: usize, out: &mut [f64]| out.copy_from_slice(&a[c * n + start..][..out.len()]);
        let control = Control::default();
        let interrupted = direction_not_positive(n, fill, &control, || {
            control.cancel();
            Ok(())
        });
        assert_eq!(interrupted, Err(Error::Interrupted));
    }
}
