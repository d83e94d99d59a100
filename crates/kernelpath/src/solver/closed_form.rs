//! The squared loss in closed form, on one eigendecomposition.
//!
//! With ρ = 1/(2C), G = (K + ρI)⁻¹ = U(Λ + ρ)⁻¹Uᵀ and H = G − G11ᵀG / 1ᵀG1, the solution on all rows is
//! β = Hy, b = 1ᵀGy / 1ᵀG1. Holding out the rows F leaves the system of the others, which is the same as changing
//! y on F until β is 0 there: y − z with z = H_FF⁻¹β_F. And z is the held-out residual. A model whose certificate is short
//! is refined from the residual of its equations.

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use std::sync::Arc;

use crate::certify::ledger::Taken;
use crate::certify::record::{Outcome, Status};
use crate::device::{Decomposition, Device};
use crate::error::Result;
use crate::loss::scalar::Loss;
use crate::numeric::memory;
use crate::observe::Control;
use crate::solver::engine::{Description, Engine, Goal, Job, LeftOutRows, Whole, each_c};

/// The squared loss on one decomposition. All weights must be 0 or 1, and in the refit no row may be left out.
pub(crate) struct ClosedForm<'a> {
    device: &'a dyn Device,
    decomposition: &'a Decomposition,
    /// The rows that each problem holds out.
    held_out: Vec<Vec<usize>>,
    /// The targets less their mean. H maps the mean to 0, so that it would bring in nothing but rounding.
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

/// A model: β and b, and the rows it holds out.
#[derive(Clone)]
pub(crate) struct Fitted {
    held_out: Vec<usize>,
    beta: Vec<f64>,
    b: f64,
    /// Kβ as the certificate recomputed it; empty before that.
    f: Vec<f64>,
}

/// How often a model whose certificate is short is solved: at first, and then refined.
const CLOSED_FORM_ATTEMPTS: usize = 3;

/// A refinement that moves β by more than this share of its size does not refine: the basis is too rough.
const LARGEST_REFINEMENT: f64 = 0.1;

const SOLVED: Outcome = Outcome { status: Status::Converged, steps: 1 };

impl<'a> ClosedForm<'a> {
    pub fn new(
        y: &[f64],
        device: &'a dyn Device,
        decomposition: &'a Decomposition,
        weights: &[Arc<[f64]>],
        control: &'a Control,
    ) -> Self {
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        let centred = y.iter().map(|y| y - mean).collect();
        let held_out = |weight: &Arc<[f64]>| (0..weight.len()).filter(|&i| weight[i] == 0.0).collect();
        Self { device, decomposition, held_out: weights.iter().map(held_out).collect(), centred, mean, control }
    }

    fn at(&self, c: f64) -> Result<At> {
        let (device, spectrum) = (self.device, &self.decomposition.spectrum);
        let inverse: Vec<f64> = spectrum.values.iter().map(|v| 1.0 / (v + 0.5 / c)).collect();
        let coordinates: Vec<f64> = spectrum.ones.iter().zip(&inverse).map(|(o, d)| o * d).collect();
        let sum = spectrum.ones.iter().zip(&coordinates).map(|(o, g)| o * g).sum();
        let coordinates = device.upload(spectrum.values.len(), &[coordinates])?;
        let g1 = device.download(&device.times(&self.decomposition.basis, &coordinates, self.control)?)?.remove(0);
        Ok(At { inverse, g1, sum })
    }

    /// Hy and b for each column of targets.
    fn models(&self, at: &At, targets: &[Vec<f64>]) -> Result<Vec<(Vec<f64>, f64)>> {
        let (device, basis) = (self.device, &self.decomposition.basis);
        let uploaded = device.upload(at.g1.len(), targets)?;
        let coordinates = device.transposed_times(basis, &uploaded, self.control)?;
        let products = device.times(basis, &device.scale_rows(&at.inverse, &coordinates)?, self.control)?;
        let model = |(mut beta, y): (Vec<f64>, &Vec<f64>)| {
            let b = at.g1.iter().zip(y).map(|(g, y)| g * y).sum::<f64>() / at.sum;
            for (beta, g) in beta.iter_mut().zip(&at.g1) {
                *beta -= b * g;
            }
            (beta, b)
        };
        Ok(device.download(&products)?.into_iter().zip(targets).map(model).collect())
    }

    /// The model without each set of rows; an empty set gives the model of all rows.
    fn without(&self, c: f64, sets: &[&[usize]]) -> Result<Vec<(Vec<f64>, f64)>> {
        let mut models = self.of_targets(c, &self.centred, sets)?;
        for (_, b) in &mut models {
            *b += self.mean;
        }
        Ok(models)
    }

    /// The model of these targets without each set of rows.
    fn of_targets(&self, c: f64, y: &[f64], sets: &[&[usize]]) -> Result<Vec<(Vec<f64>, f64)>> {
        let at = self.at(c)?;
        let (full, _) = self.models(&at, &[y.to_vec()])?.remove(0);
        let mut targets = Vec::with_capacity(sets.len());
        for set in sets {
            self.control.check()?;
            let mut changed = y.to_vec();
            if !set.is_empty() {
                for (&row, residual) in set.iter().zip(self.residuals(&at, &full, set)?) {
                    changed[row] -= residual;
                }
            }
            targets.push(changed);
        }
        let mut models = self.models(&at, &targets)?;
        for ((beta, _), set) in models.iter_mut().zip(sets) {
            for &row in *set {
                beta[row] = 0.0;
            }
        }
        Ok(models)
    }

    /// Adds what is missing of a model, from the residual of its equations at the f that the certificate recomputed: the
    /// eigenvectors are right to rounding times the largest eigenvalue, which is not little beside a small ρ.
    ///
    /// ```text
    /// (K + ρI)β + b = y on the rows that are not held out,     Σβ = 0
    /// ```
    fn refine(&self, c: f64, fitted: &mut Fitted) -> Result<()> {
        let Fitted { held_out, beta, b, f } = fitted;
        let mut counts = vec![true; beta.len()];
        for &row in held_out.iter() {
            counts[row] = false;
        }
        let trained = counts.iter().filter(|counts| **counts).count().max(1) as f64;
        let surplus = beta.iter().sum::<f64>() / trained;
        let centred_b = *b - self.mean;
        let residual: Vec<f64> = (0..beta.len())
            .map(|i| if counts[i] { self.centred[i] - f[i] - centred_b - 0.5 / c * beta[i] } else { 0.0 })
            .collect();
        let (change, shift) = self.of_targets(c, &residual, &[&held_out[..]])?.remove(0);
        let largest = |values: &[f64]| values.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
        if largest(&change) <= LARGEST_REFINEMENT * largest(beta) && shift.is_finite() {
            for ((beta, change), counts) in beta.iter_mut().zip(change).zip(counts) {
                *beta += if counts { change - surplus } else { 0.0 };
            }
            *b += shift;
        }
        Ok(())
    }

    /// z = H_FF⁻¹β_F for the rows F of a set.
    fn residuals(&self, at: &At, beta: &[f64], set: &[usize]) -> Result<Vec<f64>> {
        let device = self.device;
        let rows = device.rows(&self.decomposition.basis, set)?;
        let scaled = device.scale_rows(&at.inverse, &rows)?;
        let columns = device.download(&device.transposed_times(&rows, &scaled, self.control)?)?;
        // Room for this matrix, for its factor, and for the factor's work space.
        memory::check_block(4 * 8 * set.len() * set.len(), "the rows of a fold")?;
        let h = Mat::from_fn(set.len(), set.len(), |i, j| columns[j][i] - at.g1[set[i]] * at.g1[set[j]] / at.sum);
        let right = Mat::from_fn(set.len(), 1, |i, _| beta[set[i]]);
        let residuals = match h.llt(Side::Lower) {
            Ok(factor) => factor.solve(&right),
            Err(_) => h.partial_piv_lu().solve(&right),
        };
        Ok(residuals.col_as_slice(0).to_vec())
    }
}

impl Engine for ClosedForm<'_> {
    type Point = Fitted;

    fn remembers(&self) -> usize {
        1
    }

    fn constants(&mut self) -> Result<Vec<Fitted>> {
        let zeros = vec![0.0; self.centred.len()];
        let constant =
            |set: &Vec<usize>| Fitted { held_out: set.clone(), beta: zeros.clone(), b: self.mean, f: Vec::new() };
        Ok(self.held_out.iter().map(constant).collect())
    }

    /// No start is needed.
    fn start(&self, past: &[(f64, &Fitted)], _: f64) -> Fitted {
        Fitted { f: Vec::new(), ..past[0].1.clone() }
    }

    fn solve(&mut self, jobs: &mut [Job<Fitted>], _: Goal) -> Result<()> {
        each_c(jobs, |c, fitted| {
            if fitted.iter().all(|fitted| !fitted.f.is_empty()) {
                return fitted.iter_mut().try_for_each(|fitted| self.refine(c, fitted));
            }
            let sets: Vec<&[usize]> = fitted.iter().map(|fitted| &fitted.held_out[..]).collect();
            let models = self.without(c, &sets)?;
            fitted.iter_mut().zip(models).for_each(|(fitted, (beta, b))| (fitted.beta, fitted.b) = (beta, b));
            Ok(())
        })
    }

    fn outcome(&self, _: &Fitted) -> Outcome {
        SOLVED
    }

    fn solution(&self, fitted: &Fitted) -> (Vec<f64>, Vec<f64>) {
        (fitted.beta.clone(), vec![fitted.b])
    }

    fn take(&self, fitted: &mut Fitted, _: f64, f: &[f64], _: &[f64]) -> Option<Taken> {
        fitted.f = f.to_vec();
        None
    }

    fn attempts(&self) -> usize {
        CLOSED_FORM_ATTEMPTS
    }

    fn leave_out(&mut self, c: f64, _: &Whole, _: &LeftOutRows, units: &[usize]) -> Result<Vec<Fitted>> {
        let sets: Vec<&[usize]> = units.iter().map(std::slice::from_ref).collect();
        let fitted = |(beta, b)| Fitted { held_out: Vec::new(), beta, b, f: Vec::new() };
        Ok(self.without(c, &sets)?.into_iter().map(fitted).collect())
    }
}

/// Numbers per row and problem: targets, coordinates, coefficients, and the parts of products.
const TARGETS: u64 = 12;

pub(crate) const CLOSED_FORM: Description = Description {
    name: "closed-form",
    lacks: |loss| (loss != Loss::Squared).then_some("which is not the squared one"),
    bytes: |size| {
        let (n, held_out) = (size.rows as u64, size.held_out as u64);
        // The rows of a fold twice, and the matrix of the fold with its factor.
        size.decomposition + 8 * (2 * n + 4 * held_out) * held_out + 8 * n * size.problems as u64 * TARGETS
    },
};
