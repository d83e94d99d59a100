//! Values at held-out rows, for machines that each learn from a part of the rows, like those of pairs of classes.
//!
//! Units that the same machines learn from, such as the rows of a class, form a group. Their part of the kernel matrix
//! is multiplied with the coefficients of all these machines at once: it is read once for all of them, and there are
//! enough columns for a product of matrices.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use std::collections::HashMap;

use crate::certify::exact::distinct;
use crate::certify::ledger::Kept;
use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::numeric::entry::Entry;
use crate::numeric::memory;
use crate::numeric::parallel;
use crate::observe::Control;

/// Rows of a block, few enough that their entries for a group stay in the second cache.
const HELD_OUT_ROWS: usize = 128;

/// Units that the same machines learn from.
pub(crate) struct Group {
    units: Vec<usize>,
    members: Vec<Member>,
}

/// A machine, and for each of the group's units its place among the machine's own units.
struct Member {
    machine: usize,
    places: Vec<usize>,
}

/// The groups of machines, in the order of their first unit. `owns` holds the units that each machine learns from.
pub(crate) fn groups(owns: &[&[usize]]) -> Vec<Group> {
    let n = owns.iter().filter_map(|own| own.last()).max().map_or(0, |last| last + 1);
    let mut learners: Vec<Vec<(usize, usize)>> = vec![Vec::new(); n];
    for (machine, own) in owns.iter().enumerate() {
        for (place, &unit) in own.iter().enumerate() {
            learners[unit].push((machine, place));
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut of_machines: HashMap<Vec<usize>, usize> = HashMap::new();
    for (unit, learners) in learners.into_iter().enumerate() {
        let machines: Vec<usize> = learners.iter().map(|(machine, _)| *machine).collect();
        let at = *of_machines.entry(machines).or_insert_with_key(|machines| {
            let member = |&machine: &usize| Member { machine, places: Vec::new() };
            groups.push(Group { units: Vec::new(), members: machines.iter().map(member).collect() });
            groups.len() - 1
        });
        groups[at].units.push(unit);
        for (member, (_, place)) in groups[at].members.iter_mut().zip(learners) {
            member.places.push(place);
        }
    }
    groups
}

/// The coefficients of a group's units. Units whose coefficient is 0 in all models are left out.
struct Factor {
    units: Vec<usize>,
    /// One column per distinct model, machine after machine.
    right: Vec<f64>,
    /// For each machine, where its columns start among all columns, and how many it has.
    columns: Vec<(usize, usize)>,
}

/// `[machine][c][row]`: f at the units `wanted`, from what was kept of each machine; NaN where not run.
pub(crate) fn held_out<T: Entry>(
    gram: &Gram<T>,
    groups: &[Group],
    machines: &[&Kept],
    wanted: &[usize],
    control: &Control,
) -> Result<Vec<Vec<Vec<f64>>>> {
    let run: Vec<Vec<usize>> =
        machines.iter().map(|kept| (0..kept.coef.len()).filter(|&c| !kept.coef[c].is_empty()).collect()).collect();
    let models: Vec<_> = (machines.iter().zip(&run))
        .map(|(kept, run)| distinct(&run.iter().map(|&c| &kept.coef[c][..]).collect::<Vec<_>>()))
        .collect();
    let mut total = 0;
    let columns: Vec<(usize, usize)> = (models.iter())
        .map(|(distinct, _)| {
            total += distinct.len();
            (total - distinct.len(), distinct.len())
        })
        .collect();
    let factors = parallel::try_map(groups, |group| factor(group, &models, &columns))?;
    let blocks = parallel::try_map(wanted.chunks(HELD_OUT_ROWS), |rows| {
        control.check()?;
        block(gram, &factors, rows, total)
    })?;
    let values = |machine: usize| {
        let kept = machines[machine];
        let mut f = vec![Vec::new(); kept.coef.len()];
        for (&c, (model, ratio)) in run[machine].iter().zip(&models[machine].1) {
            let column = columns[machine].0 + model;
            f[c].reserve_exact(wanted.len());
            for (rows, block) in wanted.chunks(HELD_OUT_ROWS).zip(&blocks) {
                let products = &block[column * rows.len()..(column + 1) * rows.len()];
                f[c].extend(products.iter().map(|product| ratio * product + kept.records[c].b[0]));
            }
        }
        for f in &mut f {
            f.resize(wanted.len(), f64::NAN);
        }
        f
    };
    Ok(parallel::map(0..machines.len(), values))
}

type Models<'a> = (Vec<&'a [f64]>, Vec<(usize, f64)>);

fn factor(group: &Group, models: &[Models], columns: &[(usize, usize)]) -> Result<Factor> {
    let of_unit = |k: usize| {
        (group.members.iter()).flat_map(move |m| models[m.machine].0.iter().map(move |beta| beta[m.places[k]]))
    };
    let used: Vec<usize> = (0..group.units.len()).filter(|&k| of_unit(k).any(|beta| beta != 0.0)).collect();
    let width: usize = group.members.iter().map(|member| models[member.machine].0.len()).sum();
    let mut right = memory::with_room(used.len() * width, "the coefficients of all machines")?;
    for member in &group.members {
        for beta in &models[member.machine].0 {
            right.extend(used.iter().map(|&k| beta[member.places[k]]));
        }
    }
    let units = used.iter().map(|&k| group.units[k]).collect();
    Ok(Factor { units, right, columns: group.members.iter().map(|member| columns[member.machine]).collect() })
}

/// Products of these rows of the matrix with all `total` models, column after column.
fn block<T: Entry>(gram: &Gram<T>, factors: &[Factor], rows: &[usize], total: usize) -> Result<Vec<f64>> {
    let m = rows.len();
    let mut out: Vec<f64> = memory::zeros(m * total, "the values of all machines")?;
    let (mut left, mut product) = (Vec::new(), Vec::new());
    for Factor { units, right, columns } in factors.iter().filter(|factor| !factor.units.is_empty()) {
        left.clear();
        for &i in rows {
            left.extend(units.iter().map(|&u| gram.get(i, u)));
        }
        let width = right.len() / units.len();
        product.resize(m * width, 0.0);
        matmul(
            MatMut::from_column_major_slice_mut(&mut product, m, width),
            Accum::Replace,
            MatRef::from_row_major_slice(&left, m, units.len()),
            MatRef::from_column_major_slice(right, units.len(), width),
            1.0,
            Par::Seq,
        );
        let mut rest = &product[..];
        for &(first, count) in columns {
            let (of_machine, others) = rest.split_at(count * m);
            let sums = &mut out[first * m..(first + count) * m];
            sums.iter_mut().zip(of_machine).for_each(|(sum, value)| *sum += value);
            rest = others;
        }
    }
    Ok(out)
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
        let found = groups(&owns);
        assert_eq!(found.len(), 6);
        let got = held_out(&gram, &found, &kept.iter().collect::<Vec<_>>(), &wanted, &control).unwrap();
        for ((got, kept), own) in got.iter().zip(&kept).zip(&owns) {
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
