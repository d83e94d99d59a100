//! The squared loss in closed form, on one eigendecomposition.
//!
//! With ρ = 1/(2C), G = (K + ρI)⁻¹ = U(Λ + ρ)⁻¹Uᵀ and H = G − G11ᵀG / 1ᵀG1, the solution on all rows is
//! β = Hy, b = 1ᵀGy / 1ᵀG1. Holding out the rows F leaves the system of the others, which is the same as changing
//! y on F until β is 0 there: y − z with z = H_FF⁻¹β_F. And z is the held-out residual.

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};

use crate::device::{Cpu, Decomposition, Device, Spectrum};
use crate::error::Result;
use crate::gram::Entry;
use crate::ledger::{Ledger, Solution};
use crate::memory;
use crate::observe::Control;
use crate::path::rising;
use crate::problem::{Outcome, Status};

/// The decomposition of one Gram matrix.
pub(crate) struct ClosedForm<'a> {
    basis: &'a Mat<f64>,
    spectrum: &'a Spectrum,
    /// The targets less their mean, which H maps to 0 and only rounding would bring in.
    centred: Vec<f64>,
    mean: f64,
    control: &'a Control,
}

/// What depends on C: 1/(λ + ρ), G1 and 1ᵀG1.
struct At {
    inverse: Vec<f64>,
    g1: Vec<f64>,
    sum: f64,
}

/// A model: β and b.
pub(crate) struct Fitted {
    pub beta: Vec<f64>,
    pub b: f64,
}

impl<'a> ClosedForm<'a> {
    pub fn new(y: &[f64], decomposition: &'a Decomposition<Mat<f64>>, control: &'a Control) -> Self {
        let Decomposition { basis, spectrum } = decomposition;
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        let centred = y.iter().map(|y| y - mean).collect();
        Self { basis, spectrum, centred, mean, control }
    }

    fn at(&self, c: f64) -> Result<At> {
        let inverse: Vec<f64> = self.spectrum.values.iter().map(|v| 1.0 / (v + 0.5 / c)).collect();
        let coordinates: Vec<f64> = self.spectrum.ones.iter().zip(&inverse).map(|(o, d)| o * d).collect();
        let sum = self.spectrum.ones.iter().zip(&coordinates).map(|(o, g)| o * g).sum();
        let g1 =
            Cpu.download(&Cpu.times(self.basis, &Cpu.upload(self.spectrum.values.len(), &[coordinates])?)?)?.remove(0);
        Ok(At { inverse, g1, sum })
    }

    /// Hy and b for each column of targets.
    fn models(&self, at: &At, targets: &[Vec<f64>]) -> Result<Vec<Fitted>> {
        let targets_matrix = Cpu.upload(self.spectrum.values.len(), targets)?;
        let coordinates = Cpu.transposed_times(self.basis, &targets_matrix)?;
        let products = Cpu.times(self.basis, &Cpu.scale_rows(&at.inverse, &coordinates)?)?;
        let model = |(mut beta, y): (Vec<f64>, &Vec<f64>)| {
            let b = at.g1.iter().zip(y).map(|(g, y)| g * y).sum::<f64>() / at.sum;
            for (beta, g) in beta.iter_mut().zip(&at.g1) {
                *beta -= b * g;
            }
            Fitted { beta, b }
        };
        Ok(Cpu.download(&products)?.into_iter().zip(targets).map(model).collect())
    }

    /// The model without each set of rows; an empty set gives the model of all rows.
    pub fn without(&self, c: f64, sets: &[Vec<usize>]) -> Result<Vec<Fitted>> {
        let (at, y) = (self.at(c)?, &self.centred);
        let full = self.models(&at, std::slice::from_ref(y))?.remove(0);
        let mut targets = Vec::with_capacity(sets.len());
        for set in sets {
            self.control.check()?;
            let mut changed = y.clone();
            if !set.is_empty() {
                let (n, held_out) = (self.spectrum.values.len(), "the rows of a fold");
                let rows = memory::matrix(set.len(), n, held_out, |i, k| self.basis[(set[i], k)])?;
                let scaled = memory::matrix(n, set.len(), held_out, |k, i| self.basis[(set[i], k)] * at.inverse[k])?;
                let mut h = Cpu.times(&rows, &scaled)?;
                // Its factor and that factor's work space.
                memory::check_block(3 * 8 * set.len() * set.len(), held_out)?;
                for j in 0..set.len() {
                    for i in 0..set.len() {
                        h[(i, j)] -= at.g1[set[i]] * at.g1[set[j]] / at.sum;
                    }
                }
                let right = Mat::from_fn(set.len(), 1, |i, _| full.beta[set[i]]);
                let residual = match h.llt(Side::Lower) {
                    Ok(factor) => factor.solve(&right),
                    Err(_) => h.partial_piv_lu().solve(&right),
                };
                for (i, &row) in set.iter().enumerate() {
                    changed[row] -= residual[(i, 0)];
                }
            }
            targets.push(changed);
        }
        let mut models = self.models(&at, &targets)?;
        for (model, set) in models.iter_mut().zip(sets) {
            model.b += self.mean;
            for &row in set {
                model.beta[row] = 0.0;
            }
        }
        Ok(models)
    }

    /// Solves all plans of a ledger at every C; weights must be 0 and 1.
    pub fn sweep<T: Entry>(&self, ledger: &Ledger<T>) -> Result<()> {
        let held_out = |weight: &Vec<f64>| (0..weight.len()).filter(|&i| weight[i] == 0.0).collect();
        let sets: Vec<Vec<usize>> = ledger.plans.iter().map(|plan| held_out(&plan.weight)).collect();
        for (done, c) in rising(ledger.cs).into_iter().enumerate() {
            if done > 0 && self.control.out_of_time() {
                break;
            }
            let outcome = Outcome { status: Status::Converged, steps: 1 };
            let solution = |(plan, model): (usize, Fitted)| Solution { plan, c, beta: model.beta, b: model.b, outcome };
            let batch = self.without(ledger.cs[c], &sets)?.into_iter().enumerate().map(solution).collect();
            ledger.settle(batch, |_, _, _| {})?;
            self.control.advance(sets.len());
        }
        Ok(())
    }
}
