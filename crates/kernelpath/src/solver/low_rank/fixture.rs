//! A small random problem, for the tests of this folder.

use crate::certify::record::Settings;
use crate::loss::scalar::Loss;
use crate::numeric::design::{Accuracy, Design};
use crate::observe::Control;
use crate::solver::low_rank::column::Column;
use crate::solver::low_rank::primal::Primal;

pub(super) struct Fixture {
    pub n: usize,
    pub rank: usize,
    /// Features, row after row.
    pub z: Vec<f64>,
    pub y: Vec<f64>,
    pub weight: Vec<f64>,
    control: Control,
    pub rng: fastrand::Rng,
}

impl Fixture {
    /// Features in [−½, ½]. The sign of y follows the first feature, with noise. One row in nine has weight 0.
    pub fn new(n: usize, rank: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(7);
        let z: Vec<f64> = (0..n * rank).map(|_| rng.f64() - 0.5).collect();
        let y = (0..n).map(|i| if z[i * rank] + 0.3 * (rng.f64() - 0.5) > 0.0 { 1.0 } else { -1.0 }).collect();
        let weight = (0..n).map(|i| if i % 9 == 4 { 0.0 } else { 0.5 + rng.f64() }).collect();
        Self { n, rank, z, y, weight, control: Control::default(), rng }
    }

    pub fn primal(&self, loss: Loss) -> Primal<'_, f64> {
        Primal {
            design: Design::new(&self.z, &[], self.n, self.rank),
            copied: self.n,
            loss,
            y: &self.y,
            settings: Settings::default(),
            accuracy: Accuracy::Working,
            control: &self.control,
        }
    }

    /// Zw, summed row by row.
    pub fn times(&self, w: &[f64]) -> Vec<f64> {
        self.z.chunks_exact(self.rank).map(|row| row.iter().zip(w).map(|(z, w)| z * w).sum()).collect()
    }

    /// Zᵀa, summed row by row.
    pub fn transposed_times(&self, a: &[f64]) -> Vec<f64> {
        (0..self.rank).map(|j| (0..self.n).map(|i| self.z[i * self.rank + j] * a[i]).sum()).collect()
    }

    /// A problem at a random w, with a centre inside the box for a piecewise-linear loss.
    pub fn column(&mut self, loss: Loss, c: f64) -> (Vec<f64>, f64, Vec<f64>, Vec<f64>) {
        let w: Vec<f64> = (0..self.rank).map(|_| 2.0 * (self.rng.f64() - 0.5)).collect();
        let centre = |i: usize| {
            let (lo, hi) = loss.domain(self.y[i]);
            c * self.weight[i] * (lo + 0.4 * (hi - lo))
        };
        let centre = if loss.kinks(1.0).is_some() { (0..self.n).map(centre).collect() } else { Vec::new() };
        (w.clone(), self.rng.f64() - 0.5, self.times(&w), centre)
    }

    /// ½‖w‖² + C Σ w L(y, g + b), summed row by row.
    pub fn objective(&self, loss: Loss, c: f64, w: &[f64], b: f64) -> f64 {
        let losses: f64 =
            self.times(w).iter().enumerate().map(|(i, g)| self.weight[i] * loss.value(self.y[i], g + b)).sum();
        0.5 * w.iter().map(|w| w * w).sum::<f64>() + c * losses
    }

    /// ½‖w − Zᵀa‖² + Σ (C·w L − ψ(a) + a (g + b)) + |Σa|·|b|: the duality gap, summed row by row. For a piecewise-linear
    /// loss only.
    pub fn gap(&self, loss: Loss, c: f64, column: &Column) -> f64 {
        let (image, g) = (self.transposed_times(&column.a), self.times(&column.w));
        let of_error: f64 = column.w.iter().zip(image).map(|(w, image)| 0.5 * (w - image).powi(2)).sum();
        let of_row = |i: usize| {
            let (k, a, cw) = (loss.kinks(self.y[i]).unwrap(), column.a[i], c * self.weight[i]);
            let psi =
                if a > cw * k.mid { cw * k.mid * k.kink_low + (a - cw * k.mid) * k.kink_high } else { a * k.kink_low };
            cw * loss.value(self.y[i], g[i] + column.b) - psi + a * (g[i] + column.b)
        };
        let unbalanced = column.a.iter().sum::<f64>() * column.b;
        of_error + (0..self.n).map(of_row).sum::<f64>() + unbalanced.abs()
    }
}

pub(super) const PIECEWISE: [Loss; 3] =
    [Loss::Hinge, Loss::Quantile { tau: 0.3 }, Loss::EpsilonInsensitive { epsilon: 0.2 }];

pub(super) const SMOOTH: [Loss; 3] = [Loss::Logistic, Loss::SquaredHinge, Loss::Squared];
