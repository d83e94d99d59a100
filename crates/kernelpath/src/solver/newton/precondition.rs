//! Preconditioners of conjugate gradients for losses of one value per row: approximate inverses of I + S½KS½, and how
//! strong they have to be.

use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::kernel::pivoted::{LowRank, Of, Woodbury};
use crate::numeric::cholesky::{Cholesky, Working};
use crate::numeric::parallel;
use crate::numeric::simd::dot;
use crate::observe::Control;
use crate::solver::newton::gradients::{self, Gradients};
use crate::solver::newton::smooth::{Direction, System};

/// Made for the S of each column, or for one S̄ ≥ S for all columns. It is exact for that S or S̄, except for what the
/// low rank leaves out.
enum Preconditioner<'a, T> {
    /// Cheap to make, weak where many eigenvalues of S½KS½ are large.
    LowRank(Woodbury<'a>),
    /// A Cholesky factor of all of I + S̄½KS̄½, and S̄½.
    Dense(Cholesky<T>, Vec<f64>),
}

impl<T: Working> Preconditioner<'_, T> {
    fn dense(gram: &Gram<T>, curvature: &[f64], control: &Control) -> Result<Self> {
        let root: Vec<f64> = curvature.iter().map(|s| s.sqrt()).collect();
        let factor = Cholesky::new(gram.n(), 1e-6, control, |q, column| {
            for ((value, k), r) in column.iter_mut().zip(gram.row(q)).zip(&root) {
                *value = T::narrow(k.wide() * root[q] * r);
            }
            column[q] += T::narrow(1.0);
        })?;
        Ok(Self::Dense(factor, root))
    }

    /// Applies the preconditioner to the vectors of some columns.
    fn apply(&self, vectors: &[Of]) -> Vec<Vec<f64>> {
        match self {
            Self::LowRank(woodbury) => woodbury.apply(vectors),
            Self::Dense(factor, full) => {
                // Vectors are scaled, so that single precision neither overflows nor loses small residuals.
                let sizes: Vec<f64> = vectors
                    .iter()
                    .map(|of| of.vector.iter().fold(0.0_f64, |a, v| a.max(v.abs())).max(f64::MIN_POSITIVE))
                    .collect();
                let n = full.len();
                // Rows with hardly any curvature in this column are decoupled from the others.
                let coupled = |root: &[f64], i: usize| root[i] > 0.03 * full[i];
                let mut block: Vec<T> = Vec::with_capacity(n * vectors.len());
                for (Of { root, vector, .. }, size) in vectors.iter().zip(&sizes) {
                    block.extend((0..n).map(|i| T::narrow(if coupled(root, i) { vector[i] / size } else { 0.0 })));
                }
                factor.solve(&mut block, n);
                let column = |((Of { root, vector, .. }, size), solved): ((&Of, &f64), &[T])| {
                    (0..n).map(|i| if coupled(root, i) { solved[i].wide() * size } else { vector[i] }).collect()
                };
                vectors.iter().zip(&sizes).zip(block.chunks_exact(n)).map(column).collect()
            }
        }
    }
    /// Projected, preconditioned conjugate gradients on all systems.
    fn directions(&self, gram: &Gram<T>, systems: &[System<Vec<f64>>], control: &Control) -> Result<Vec<Direction>> {
        let roots: Vec<Of> =
            systems.iter().enumerate().map(|(column, s)| Of { column, root: &s.root, vector: &s.root }).collect();
        // M⁻¹s, and sᵀM⁻¹s.
        let normals =
            parallel::map(roots.iter().zip(self.apply(&roots)), |(of, normal)| (dot(of.root, &normal), normal));
        let along = |size: f64, sum: f64| if size > 0.0 { sum / size } else { 0.0 };
        // Shifted along M⁻¹s until the constraint holds.
        let start = |column: usize, system: &System<Vec<f64>>| {
            let (size, normal) = &normals[column];
            let mut v = gradients::standstill(&system.root, &system.residual);
            let shift = along(*size, system.constraint[0] - dot(&system.root, &v));
            v.iter_mut().zip(normal).for_each(|(v, z)| *v += shift * z);
            v
        };
        let aim = |open: &mut [&mut Gradients<Vec<f64>>]| {
            let residuals: Vec<Of> =
                open.iter().map(|g| Of { column: g.column, root: &g.system.root, vector: &g.residual }).collect();
            let preconditioned = self.apply(&residuals);
            parallel::for_each(open.iter_mut().zip(preconditioned), |(g, mut z)| {
                let (root, (size, normal)) = (&g.system.root, &normals[g.column]);
                let shift = along(*size, dot(root, &z));
                z.iter_mut().zip(normal).for_each(|(z, normal)| *z -= shift * normal);
                g.direction.b[0] = shift;
                let gap = g.residual.iter().zip(root).map(|(r, s)| 0.5 * (r - s * shift).powi(2)).sum();
                let energy = dot(&g.residual, &z);
                g.aim(z, energy, gap);
            });
        };
        gradients::directions(systems, start, aim, |columns| gram.apply(columns, control))
    }
}

/// How much is spent on preconditioning.
#[derive(Clone, Copy, PartialEq)]
enum Strength {
    /// K of low rank, for the curvatures of all columns together.
    SharedLowRank,
    /// K of low rank, for the curvatures of each column, and made anew for each C.
    OwnLowRank,
    /// A factor of the whole matrix for all columns together.
    SharedFactor,
    /// A factor of the whole matrix for each column.
    OwnFactor,
}

/// What preconditioners are made of.
pub(crate) struct Preconditioners {
    low_rank: LowRank,
    /// K of low rank with pivots for the curvatures at this C.
    curved: Option<LowRank>,
    /// Never made weaker: a preconditioner that was too weak at one C is too weak at larger C's as well.
    strength: Strength,
}

impl Preconditioners {
    pub fn new<T: Working>(gram: &Gram<T>, control: &Control) -> Result<Self> {
        let low_rank = LowRank::new(gram, rank(gram.n()), control)?;
        Ok(Self { low_rank, curved: None, strength: Strength::SharedLowRank })
    }

    /// Solves the systems, with the preconditioner chosen by what the steps before have cost. For one column, a
    /// preconditioner of low rank takes the time of rank²/n passes, and a factor of the whole matrix the time of n/6
    /// passes. `is_first` is true in the first step at a C.
    pub fn directions<T: Working>(
        &mut self,
        gram: &Gram<T>,
        systems: &[System<Vec<f64>>],
        is_first: bool,
        control: &Control,
    ) -> Result<Vec<Direction>> {
        let curvature = |system: &System<Vec<f64>>| system.root.iter().map(|s| s * s).collect::<Vec<f64>>();
        let largest = || {
            let mut largest = vec![0.0_f64; gram.n()];
            for system in systems {
                for (largest, root) in largest.iter_mut().zip(&system.root) {
                    *largest = largest.max(root * root);
                }
            }
            largest
        };
        if is_first {
            self.curved = None;
        }
        let directions = match self.strength {
            Strength::SharedLowRank => {
                let woodbury = self.low_rank.precondition(&[largest()], control)?;
                Preconditioner::LowRank(woodbury).directions(gram, systems, control)?
            }
            Strength::OwnLowRank => {
                let low_rank = match &mut self.curved {
                    Some(low_rank) => low_rank,
                    none => none.insert(LowRank::curved(gram, &largest(), rank(gram.n()), control)?),
                };
                let own: Vec<Vec<f64>> = systems.iter().map(curvature).collect();
                Preconditioner::LowRank(low_rank.precondition(&own, control)?).directions(gram, systems, control)?
            }
            Strength::SharedFactor => {
                Preconditioner::dense(gram, &largest(), control)?.directions(gram, systems, control)?
            }
            Strength::OwnFactor => {
                let mut directions = Vec::new();
                for system in systems.chunks(1) {
                    let preconditioner = Preconditioner::dense(gram, &curvature(&system[0]), control)?;
                    directions.append(&mut preconditioner.directions(gram, system, control)?);
                }
                directions
            }
        };
        let passes: usize = directions.iter().map(|direction| direction.passes).sum();
        self.strength = match self.strength {
            Strength::SharedLowRank if passes * gram.n() > 2 * systems.len() * rank(gram.n()).pow(2) => {
                Strength::OwnLowRank
            }
            Strength::OwnLowRank if 3 * passes > gram.n() => Strength::SharedFactor,
            Strength::SharedFactor if 30 * passes > gram.n() * systems.len() => Strength::OwnFactor,
            enough => enough,
        };
        Ok(directions)
    }
}

/// Columns of the low-rank K.
fn rank(n: usize) -> usize {
    (n / 8).clamp(64, 200)
}
