//! The squared loss in closed form, on one eigendecomposition.
//!
//! With ρ = 1/(2C), G = (K + ρI)⁻¹ = U(Λ + ρ)⁻¹Uᵀ and H = G − G11ᵀG / 1ᵀG1, the solution on all rows is
//! β = Hy, b = 1ᵀGy / 1ᵀG1. Holding out the rows F leaves the system of the others, which is the same as changing
//! y on F until β is 0 there: y − z with z = H_FF⁻¹β_F. And z is the held-out residual.

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use std::sync::Arc;

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
}

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
        let (at, y) = (self.at(c)?, &self.centred);
        let (full, _) = self.models(&at, std::slice::from_ref(y))?.remove(0);
        let mut targets = Vec::with_capacity(sets.len());
        for set in sets {
            self.control.check()?;
            let mut changed = y.clone();
            if !set.is_empty() {
                for (&row, residual) in set.iter().zip(self.residuals(&at, &full, set)?) {
                    changed[row] -= residual;
                }
            }
            targets.push(changed);
        }
        let mut models = self.models(&at, &targets)?;
        for ((beta, b), set) in models.iter_mut().zip(sets) {
            *b += self.mean;
            for &row in *set {
                beta[row] = 0.0;
            }
        }
        Ok(models)
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
        let constant = |set: &Vec<usize>| Fitted { held_out: set.clone(), beta: zeros.clone(), b: self.mean };
        Ok(self.held_out.iter().map(constant).collect())
    }

    /// No start is needed.
    fn start(&self, past: &[(f64, &Fitted)], _: f64) -> Fitted {
        past[0].1.clone()
    }

    fn solve(&mut self, jobs: &mut [Job<Fitted>], _: Goal) -> Result<()> {
        each_c(jobs, |c, fitted| {
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

    fn leave_out(&mut self, c: f64, _: &Whole, _: &LeftOutRows, units: &[usize]) -> Result<Vec<Fitted>> {
        let sets: Vec<&[usize]> = units.iter().map(std::slice::from_ref).collect();
        let fitted = |(beta, b)| Fitted { held_out: Vec::new(), beta, b };
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
