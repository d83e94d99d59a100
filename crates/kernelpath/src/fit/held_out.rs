//! Values at held-out rows, for machines that each learn from a part of the rows, like those of pairs of classes.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::certify::exact::distinct;
use crate::certify::ledger::Kept;
use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::numeric::entry::Entry;
use crate::numeric::memory;
use crate::numeric::parallel;
use crate::observe::Control;

/// Rows of a block, few enough that their entries for a machine stay in the second cache.
const HELD_OUT_ROWS: usize = 128;

/// `[c][row]`: the values of a machine, which learned from the units `own`, at the units `wanted`; NaN where not run.
pub(crate) fn held_out<T: Entry>(
    gram: &Gram<T>,
    own: &[usize],
    machine: &Kept,
    wanted: &[usize],
    control: &Control,
) -> Result<Vec<Vec<f64>>> {
    let run: Vec<usize> = (0..machine.coef.len()).filter(|&c| !machine.coef[c].is_empty()).collect();
    if run.is_empty() {
        return Ok(vec![vec![f64::NAN; wanted.len()]; machine.coef.len()]);
    }
    let (models, model_of) = distinct(&run.iter().map(|&c| &machine.coef[c][..]).collect::<Vec<_>>());
    // Units whose coefficient is 0 in all models are left out.
    let used: Vec<usize> = (0..own.len()).filter(|&k| models.iter().any(|beta| beta[k] != 0.0)).collect();
    let mut right = memory::with_room(used.len() * models.len(), "the coefficients of a machine")?;
    right.extend(models.iter().flat_map(|beta| used.iter().map(move |&k| beta[k])));
    let blocks = parallel::try_map(wanted.chunks(HELD_OUT_ROWS), |rows| {
        control.check()?;
        let mut left: Vec<f64> = memory::with_room(rows.len() * used.len(), "the entries of held-out rows")?;
        for &i in rows {
            left.extend(used.iter().map(|&k| gram.get(i, own[k])));
        }
        let mut products = memory::zeros(rows.len() * models.len(), "the values of a machine")?;
        matmul(
            MatMut::from_column_major_slice_mut(&mut products, rows.len(), models.len()),
            Accum::Add,
            MatRef::from_row_major_slice(&left, rows.len(), used.len()),
            MatRef::from_column_major_slice(&right, used.len(), models.len()),
            1.0,
            Par::Seq,
        );
        Ok(products)
    })?;
    let mut f = vec![vec![f64::NAN; wanted.len()]; machine.coef.len()];
    for (&c, (model, ratio)) in run.iter().zip(&model_of) {
        let products = blocks.iter().flat_map(|block: &Vec<f64>| {
            let rows = block.len() / models.len();
            &block[model * rows..(model + 1) * rows]
        });
        f[c].iter_mut().zip(products).for_each(|(f, product)| *f = ratio * product + machine.records[c].b[0]);
    }
    Ok(f)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::certify::record::Record;
    use crate::data::rows::Rows;
    use crate::kernel::shape::{KernelFn, Shape};

    #[test]
    fn are_sums_over_the_rows_of_each_machine() {
        let (n, control) = (300, Control::default());
        let x: Vec<f64> = (0..2 * n).map(|i| (0.37 * i as f64).sin()).collect();
        let kernel = KernelFn::new(Shape::Rbf, 0.5).unwrap();
        let all: Vec<usize> = (0..n).collect();
        let gram = Gram::<f64>::compute(&Rows::from_slice(&x, 2).unwrap(), &all, &kernel, None, &control).unwrap();
        // Pairs of three classes, and a machine that shares some rows with them. More rows are wanted than a block has.
        let pair = |a: usize, b: usize| all.iter().copied().filter(|i| i % 3 == a || i % 3 == b).collect::<Vec<_>>();
        let owns = [pair(0, 1), pair(0, 2), pair(1, 2), (90..120).collect()];
        let owns: Vec<&[usize]> = owns.iter().map(|own| &own[..]).collect();
        let wanted: Vec<usize> = (0..n).step_by(2).collect();
        let kept: Vec<Kept> = (owns.iter().enumerate())
            .map(|(machine, own)| {
                // Not run, a model, twice that model, and one of zeros.
                let beta = |c: usize, k: usize| {
                    f64::from(u8::from(!k.is_multiple_of(4))) * ((k + machine) as f64).cos() * c as f64
                };
                let of = |c: usize| own.iter().enumerate().map(|(k, _)| beta(c, k)).collect();
                let beta = vec![Vec::new(), of(1), of(2), of(0)];
                let record = |c: usize| Record { b: vec![(machine + c) as f64], ..Record::not_run(1) };
                let (f, values) = (Vec::new(), Vec::new());
                Kept { records: (0..4).map(record).collect(), coef: beta, f, values }
            })
            .collect();
        for (kept, own) in kept.iter().zip(&owns) {
            let got = held_out(&gram, own, kept, &wanted, &control).unwrap();
            assert!(got[0].iter().all(|f| f.is_nan()) && got[0].len() == wanted.len());
            for c in 1..4 {
                for (&i, got) in wanted.iter().zip(&got[c]) {
                    let sum: f64 = own.iter().zip(&kept.coef[c]).map(|(&j, beta)| gram.get(i, j) * beta).sum();
                    assert!((got - sum - kept.records[c].b[0]).abs() < 1e-10);
                }
            }
        }
    }
}
