//! Kernels between new rows and known ones, and their products with coefficients, without storing the matrix.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::data::rows::Rows;
use crate::error::{Error, Result};
use crate::kernel::shape::{KernelFn, Measure};
use crate::kernel::tile::{Side, TILE, Tile, shift_for};
use crate::numeric::entry::Entry;
use crate::numeric::memory;
use crate::numeric::parallel;
use crate::numeric::simd::{dot_in_lanes, vectorise};
use crate::numeric::threads::pooled_if_worth;
use crate::observe::Control;

/// The kernel between rows of `x` and rows of `z`, row after row. If there is much to compute, it is shared out among
/// `threads` threads.
pub fn kernel_matrix(x: &Rows, z: &Rows, kernel: &KernelFn, threads: usize, control: &Control) -> Result<Vec<f64>> {
    pooled_if_worth(threads, kernel_flops(x, z, 0), || {
        x.check("X")?;
        z.check("Z")?;
        if x.ncols() != z.ncols() {
            return Err(Error::Features { got: x.ncols(), expected: z.ncols() });
        }
        kernel_in_bands(x, z, kernel, control)
    })
}

fn kernel_in_bands(x: &Rows, z: &Rows, kernel: &KernelFn, control: &Control) -> Result<Vec<f64>> {
    let all: Vec<usize> = (0..z.nrows()).collect();
    let length = x.nrows().saturating_mul(z.nrows());
    let mut out = memory::zeros(length, "the kernel matrix")?;
    let shift = shift_for(kernel, x, z, &all);
    for_each_band(x, &mut out, z.nrows(), |rows, band| {
        let mut tile = Tile::default();
        for columns in all.chunks(TILE) {
            control.check()?;
            tile.evaluate(x, rows, z, columns, &shift, kernel);
            tile.check::<f64>((Side::x(kernel, x), rows), (Side::Rows("Z", z), columns))?;
            for (row, values) in band.chunks_exact_mut(z.nrows()).zip(tile.values.chunks_exact(columns.len())) {
                row[columns[0]..columns[0] + columns.len()].copy_from_slice(values);
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// Σⱼ coefⱼ k(x, zⱼ) for every row of `x` and each column of `coef`, which has a row for each row of `z`. The result is
/// row after row. It is computed in tiles, so that the kernel values take little memory whatever the sizes.
pub(crate) fn kernel_times(
    x: &Rows,
    z: &Rows,
    coef: MatRef<f64>,
    kernel: &KernelFn,
    control: &Control,
) -> Result<Vec<f64>> {
    let machines = coef.ncols();
    if x.nrows() == 1 {
        match z {
            Rows::F32(z) if x.as_csr().is_none() => return Ok(kernel_row_times(x, *z, coef, kernel)),
            Rows::F64(z) if x.as_csr().is_none() => return Ok(kernel_row_times(x, *z, coef, kernel)),
            _ => {}
        }
    }
    let all: Vec<usize> = (0..z.nrows()).collect();
    let shift = shift_for(kernel, x, z, &all);
    let mut out = memory::zeros(x.nrows().saturating_mul(machines), "the values of all rows")?;
    for_each_band(x, &mut out, machines, |rows, band| {
        let mut tile = Tile::default();
        for columns in all.chunks(TILE) {
            control.check()?;
            tile.evaluate(x, rows, z, columns, &shift, kernel);
            matmul(
                MatMut::from_row_major_slice_mut(&mut *band, rows.len(), machines),
                Accum::Add,
                MatRef::from_row_major_slice(&tile.values, rows.len(), columns.len()),
                coef.subrows(columns[0], columns.len()),
                1.0,
                Par::Seq,
            );
        }
        Ok(())
    })?;
    Ok(out)
}

/// Rows of `z` that a single row meets at a time: their kernel values stay in the first cache.
const ROWS_PER_STRETCH: usize = 512;

/// As [`kernel_times`] for the one row of `x`, with the numbers of `z` read where they lie: packing them would take
/// longer than reading them once. Distances are sums over the differences of the rows, which lose no digits.
fn kernel_row_times<T: Entry>(x: &Rows, z: MatRef<T>, coef: MatRef<f64>, kernel: &KernelFn) -> Vec<f64> {
    let row: Vec<f64> = (0..x.ncols()).map(|j| x.get(0, j)).collect();
    let mut out = vec![0.0; coef.ncols()];
    let mut stretch = [0.0; ROWS_PER_STRETCH];
    vectorise(
        #[inline(always)]
        || {
            for start in (0..z.nrows()).step_by(ROWS_PER_STRETCH) {
                let values = &mut stretch[..ROWS_PER_STRETCH.min(z.nrows() - start)];
                let (z, coef) = (z.subrows(start, values.len()), coef.subrows(start, values.len()));
                match kernel.shape.measure() {
                    Measure::Products => sum_over_columns(
                        &row,
                        z,
                        values,
                        #[inline(always)]
                        |x, z| x * z,
                    ),
                    Measure::SquaredDistances => sum_over_columns(
                        &row,
                        z,
                        values,
                        #[inline(always)]
                        |x, z| (x - z) * (x - z),
                    ),
                    Measure::AbsoluteDistances => sum_over_columns(
                        &row,
                        z,
                        values,
                        #[inline(always)]
                        |x, z| (x - z).abs(),
                    ),
                }
                kernel.map(values);
                for (out, coef) in out.iter_mut().zip(coef.col_iter()) {
                    *out += match coef.try_as_col_major() {
                        Some(coef) => dot_in_lanes(values, coef.as_slice()),
                        None => values.iter().zip(coef.iter()).map(|(value, coef)| value * coef).sum(),
                    };
                }
            }
        },
    );
    out
}

/// Σₖ t(xₖ, zₖ) of one row with each row of `z`, summed in the order of the columns whatever the layout in memory.
#[inline(always)]
fn sum_over_columns<T: Entry>(x: &[f64], z: MatRef<T>, out: &mut [f64], t: impl Fn(f64, f64) -> f64) {
    /// Rows whose sums are taken side by side, so that no sum waits for the addition of another.
    const ABREAST: usize = 8;
    out.fill(0.0);
    if z.row_stride() == 1 {
        for (x, z) in x.iter().zip(z.col_iter()) {
            let Some(z) = z.try_as_col_major() else { return };
            for (out, z) in out.iter_mut().zip(z.as_slice()) {
                *out += t(*x, z.wide());
            }
        }
        return;
    }
    let (blocks, rest) = out.as_chunks_mut::<ABREAST>();
    let done = blocks.len() * ABREAST;
    for (block, out) in blocks.iter_mut().enumerate() {
        let z = z.subrows(block * ABREAST, ABREAST);
        for (x, z) in x.iter().zip(z.col_iter()) {
            for l in 0..ABREAST {
                out[l] += t(*x, z[l].wide());
            }
        }
    }
    for (i, out) in rest.iter_mut().enumerate() {
        for (x, z) in x.iter().zip(z.row(done + i).iter()) {
            *out += t(*x, z.wide());
        }
    }
}

/// Hands bands of rows of `x`, with their part of `out` (`width` values per row), to all threads of the current pool.
fn for_each_band(
    x: &Rows,
    out: &mut [f64],
    width: usize,
    work: impl Fn(&[usize], &mut [f64]) -> Result<()> + Sync,
) -> Result<()> {
    if x.nrows() == 0 || width == 0 {
        return Ok(());
    }
    let rows: Vec<usize> = (0..x.nrows()).collect();
    let bands = rows.chunks(TILE).zip(out.chunks_mut(TILE * width));
    parallel::try_for_each(bands, |(rows, band)| work(rows, band))
}

/// Flops of a kernel value beside those for the entries of its rows: mostly those of an exponential.
const OF_A_VALUE: f64 = 30.0;

/// Flops of the kernel between all rows of `x` and of `z`, and of its product with a matrix of `columns` columns.
pub fn kernel_flops(x: &Rows, z: &Rows, columns: usize) -> f64 {
    // A precomputed kernel has its values in `x`, and `z` is empty.
    let (values, entries) = if z.nrows() == 0 { (x.ncols(), 0) } else { (z.nrows(), z.stored()) };
    x.nrows() as f64 * (3.0 * entries as f64 + values as f64 * (OF_A_VALUE + 2.0 * columns as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::threads::are_few;

    #[test]
    fn one_row_is_few_flops_and_thousands_are_not() {
        let vectors = vec![0.0; 12_000];
        let z = Rows::from_slice(&vectors, 10).unwrap();
        let x = |rows: usize| Rows::from_slice(&vectors[..10 * rows], 10).unwrap();
        assert!(are_few(kernel_flops(&x(1), &z, 1)) && are_few(kernel_flops(&x(1), &z, 45)));
        assert!(!are_few(kernel_flops(&x(1000), &z, 1)));
    }
}
