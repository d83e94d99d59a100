//! The linear systems of a Newton step, and the two routes by which they are solved.
//!
//! ```text
//! (I + Zᵀ S Z) Δw + Zᵀ S 1 Δb = −e,     1ᵀ S Z Δw + (1ᵀ S 1 + ε) Δb = ρ
//! ```
//!
//! Only rows with curvature take part. Every system is solved by conjugate gradients, with a factor as preconditioner:
//!
//! * **together**: one factor, that of the mean of all systems, serves all of them as one block. Folds have most rows
//!   in common, so few passes are enough.
//! * **apart**: each system has a factor of its own, of the smaller order: the number of its rows or the number of
//!   features. After a new factor one pass is enough.
//!
//! On both routes a factor serves for many steps, as few rows come in or go out between two steps. A new one is made
//! when the passes of a step, the last or the present one, cost as much. [`Costs::route`] chooses the route by counted
//! multiplications, so that the choice does not depend on the machine. How many passes the shared factor takes is known
//! only afterwards. So systems that are not solved together by the time that the other route would have taken are
//! solved apart.

use faer::Mat;

use crate::error::Result;
use crate::numeric::cholesky::Working;
use crate::numeric::design::{Accuracy, Design, Gathered};
use crate::numeric::parallel;
use crate::observe::Control;
use crate::solver::low_rank::by_rows::ByRows;
use crate::solver::low_rank::conjugate::System;
use crate::solver::low_rank::costs::{Costs, Route};
use crate::solver::low_rank::system_factor::{Factor, by_features, ridge};
use crate::solver::low_rank::tuning::{CHUNK, CURVATURE_GROUPS, MOST_PASSES};

/// A system: S, and e and ρ on its right-hand side.
pub(crate) struct Equation<'a> {
    /// The problem that the system belongs to. Factors are kept per problem.
    pub plan: usize,
    pub s: &'a [f64],
    /// Rows that take part.
    pub n_active: usize,
    pub error: &'a [f64],
    /// ρ.
    pub pull: f64,
    /// A ‖residual‖² that is small enough, whatever ‖e‖² is.
    pub enough: f64,
}

/// Factors of earlier systems, kept as long as they serve.
pub(crate) struct Preconditioner<T> {
    /// Factor of the mean of all systems.
    shared: Option<Kept<T>>,
    /// Per plan, the factor of its own system.
    own: Vec<Option<Kept<T>>>,
}

/// A factor, and the passes that a system took with it at the last step.
struct Kept<T> {
    factor: Factor<T>,
    passes: usize,
}

impl<T> Preconditioner<T> {
    /// Most bytes that a preconditioner takes.
    pub fn bytes(n: usize, rank: usize, plans: usize) -> u64 {
        // A factor in the dimensions of rows is made for fewer rows than features, and keeps their features.
        let rows = n.min(rank);
        let factor = (rank + 1).pow(2).max(rows * (rank + rows));
        ((plans + 1) * factor * size_of::<T>()) as u64
    }

    pub fn new(plans: usize) -> Self {
        Self { shared: None, own: (0..plans).map(|_| None).collect() }
    }
}

/// What all systems have in common.
pub(crate) struct Directions<'a, T> {
    pub design: Design<'a, T>,
    /// Most rows whose features may be copied at once.
    pub copied: usize,
    pub accuracy: Accuracy,
    pub control: &'a Control,
}

impl<T: Working> Directions<'_, T> {
    /// (Δw, Δb) of every system.
    pub fn all(&self, equations: &[Equation], preconditioner: &mut Preconditioner<T>) -> Result<Vec<Vec<f64>>> {
        let mean = parallel::map_numbers(self.design.n(), CHUNK, |i| {
            equations.iter().map(|equation| equation.s[i]).sum::<f64>() / equations.len() as f64
        });
        let active = with_curvature(&mean);
        let passes = |kept: &Option<Kept<T>>| kept.as_ref().map(|kept| kept.passes);
        let own: Vec<(usize, Option<usize>)> = (equations.iter())
            .map(|equation| (equation.n_active, passes(&preconditioner.own[equation.plan])))
            .collect();
        let union = (active.len(), passes(&preconditioner.shared));
        let mut directions = vec![None; equations.len()];
        if let Route::Together { passes } = self.costs().route(union, &own) {
            directions = self.together(equations, &mean, &active, passes, preconditioner)?;
        }
        let late = (0..equations.len()).filter(|&k| directions[k].is_none());
        let jobs: Vec<(usize, Option<Kept<T>>)> =
            late.map(|k| (k, preconditioner.own[equations[k].plan].take())).collect();
        let done = parallel::try_map(jobs, |(k, kept)| Ok((k, self.alone(&equations[k], kept)?)))?;
        for (k, (kept, direction)) in done {
            preconditioner.own[equations[k].plan] = Some(kept);
            directions[k] = Some(direction);
        }
        Ok(directions.into_iter().flatten().collect())
    }

    fn costs(&self) -> Costs {
        Costs { rank: self.design.rank() as f64, by_rows: self.accuracy == Accuracy::Working }
    }

    /// Solves all systems as one block, on all threads, with at most `most` passes. Returns `None` for systems that
    /// need more.
    fn together(
        &self,
        equations: &[Equation],
        mean: &[f64],
        active: &[usize],
        most: usize,
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<Vec<Option<Vec<f64>>>> {
        let new = || self.factor(mean, active, CURVATURE_GROUPS);
        let kept = preconditioner.shared.take();
        let times = |design: Design<T>, open: &[&mut System]| self.times_block(design, open);
        let (kept, systems) = self.solve(equations, active, kept, most, new, times)?;
        preconditioner.shared = Some(kept);
        Ok(systems.into_iter().map(|system| system.done.then_some(system.direction)).collect())
    }

    /// Solves one system, on this thread.
    fn alone(&self, equation: &Equation, kept: Option<Kept<T>>) -> Result<(Kept<T>, Vec<f64>)> {
        let (rank, active) = (self.design.rank(), with_curvature(equation.s));
        let new = || self.factor(equation.s, &active, 1);
        let times = |design: Design<T>, open: &[&mut System]| {
            self.control.check()?;
            let of = |system: &&mut System| {
                design.curved_times(&system.curvature, &system.search[..rank], system.search[rank], self.accuracy)
            };
            Ok(open.iter().map(of).collect())
        };
        let (kept, mut system) = self.solve(std::slice::from_ref(equation), &active, kept, MOST_PASSES, new, times)?;
        Ok((kept, system.remove(0).direction))
    }

    /// Solves the systems, whose rows with curvature are `active`, with the factor at hand, unless the passes it took
    /// last time, or takes now, are worth a new one; then with a new one, in at most `most` passes. `times` gives
    /// ZᵀS(Zp + p_b) and the sum over rows of S(Zp + p_b) for the search direction of each system. Returns the last
    /// factor, and where the systems stand.
    fn solve(
        &self,
        equations: &[Equation],
        active: &[usize],
        kept: Option<Kept<T>>,
        most: usize,
        new: impl FnOnce() -> Result<Factor<T>>,
        times: impl Fn(Design<T>, &[&mut System]) -> Result<Vec<(Vec<f64>, f64)>>,
    ) -> Result<(Kept<T>, Vec<System>)> {
        let gathered = self.gathered(active)?;
        let design = gathered.as_ref().map_or(self.design, Gathered::design);
        let rows = gathered.as_ref().map(|_| active);
        let mut systems: Vec<System> =
            equations.iter().map(|equation| System::new(equation, on_rows(equation.s, rows))).collect();
        let with = |systems: &mut [System], factor: Factor<T>, most: usize| {
            self.conjugate(systems, &factor, most, |open| times(design, open))?;
            let passes: usize = systems.iter().map(|system| system.passes).sum();
            Ok(Kept { factor, passes: passes.div_ceil(systems.len()) })
        };
        let worth = self.costs().worth(active.len(), equations.len());
        if let Some(kept) = kept.filter(|kept| kept.passes < worth) {
            let kept = with(&mut systems, kept.factor, worth.min(most))?;
            if systems.iter().all(|system| system.done) {
                return Ok((kept, systems));
            }
            for system in &mut systems {
                (system.passes, system.search) = (0, Vec::new());
            }
        }
        Ok((with(&mut systems, new()?, most)?, systems))
    }

    /// At most `passes` iterations of conjugate gradients on all systems at once.
    fn conjugate(
        &self,
        systems: &mut [System],
        factor: &Factor<T>,
        passes: usize,
        times: impl Fn(&[&mut System]) -> Result<Vec<(Vec<f64>, f64)>>,
    ) -> Result<()> {
        let order = self.design.rank() + 1;
        let mut open: Vec<&mut System> = systems.iter_mut().filter(|system| !system.done).collect();
        for _ in 0..passes {
            let mut block: Vec<f64> = open.iter().flat_map(|system| &system.residual).copied().collect();
            factor.solve(&mut block, order, self.control)?;
            open.iter_mut().zip(block.chunks_exact(order)).for_each(|(system, solved)| system.aim(solved));
            open.retain(|system| !system.done);
            if open.is_empty() {
                break;
            }
            let products = times(&open)?;
            open.iter_mut().zip(products).for_each(|(system, (product, sum))| system.advance(product, sum));
            open.retain(|system| !system.done);
        }
        Ok(())
    }

    /// ZᵀS(Zp + p_b) and the sum over rows of S(Zp + p_b), for the search direction of each system.
    fn times_block(&self, design: Design<T>, open: &[&mut System]) -> Result<Vec<(Vec<f64>, f64)>> {
        let rank = design.rank();
        let searches: Vec<&[f64]> = open.iter().map(|system| &system.search[..rank]).collect();
        let mut images = design.times(&searches, self.accuracy, self.control)?;
        let sums: Vec<f64> = parallel::map(images.iter_mut().zip(open), |(image, system)| {
            let shift = system.search[rank];
            image.iter_mut().zip(&system.curvature).for_each(|(u, s)| *u = s * (*u + shift));
            image.iter().sum()
        });
        let scaled: Vec<&[f64]> = images.iter().map(|image| &image[..]).collect();
        let products = design.transposed_times(&scaled, self.accuracy, self.control)?;
        Ok(products.into_iter().zip(sums).collect())
    }

    /// A factor of [I 0; 0 0] + [Z 1]ᵀ S [Z 1], of the smaller order. `active` are the rows with s > 0. The sums over
    /// `groups` groups of rows are taken side by side.
    fn factor(&self, s: &[f64], active: &[usize], groups: usize) -> Result<Factor<T>> {
        let Self { design, accuracy, control, .. } = *self;
        if self.costs().is_smaller_by_rows(active.len()) {
            let (z, s) = (design.gather(active, accuracy)?.into_values(), on_rows(s, Some(active)));
            return Ok(Factor::Rows(ByRows::new(z, design.rank(), &s, ridge::<T>(), control)?));
        }
        Ok(match accuracy {
            Accuracy::Working => {
                let curvature: Mat<T> = design.curvature(s, groups, control)?;
                Factor::Features(by_features(&curvature, control)?)
            }
            Accuracy::Double => {
                let curvature: Mat<f64> = design.curvature(s, groups, control)?;
                Factor::Wide(by_features(&curvature, control)?)
            }
        })
    }

    /// A copy of the features of some rows, if passes over the copy are worth it and there is memory for it.
    fn gathered(&self, rows: &[usize]) -> Result<Option<Gathered<T>>> {
        let pays = 2 * rows.len() < self.design.n() && rows.len() <= self.copied;
        pays.then(|| self.design.gather(rows, self.accuracy)).transpose()
    }
}

/// Rows with s > 0.
fn with_curvature(s: &[f64]) -> Vec<usize> {
    (0..s.len()).filter(|&i| s[i] > 0.0).collect()
}

/// The values of some rows, or of all of them.
fn on_rows(values: &[f64], rows: Option<&[usize]>) -> Vec<f64> {
    rows.map_or_else(|| values.to_vec(), |rows| rows.iter().map(|&i| values[i]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::low_rank::fixture::Fixture;
    use crate::solver::low_rank::tuning::FLOOR;

    /// ‖H(Δw, Δb) − (−e, ρ)‖², row by row.
    fn residual(fixture: &Fixture, equation: &Equation, direction: &[f64]) -> f64 {
        let (rank, shift) = (fixture.rank, direction[fixture.rank]);
        let u: Vec<f64> =
            fixture.times(&direction[..rank]).iter().zip(equation.s).map(|(v, s)| s * (v + shift)).collect();
        let back = fixture.transposed_times(&u);
        let of_w: f64 = (0..rank).map(|j| (direction[j] + back[j] + equation.error[j]).powi(2)).sum();
        of_w + (u.iter().sum::<f64>() + FLOOR * shift - equation.pull).powi(2)
    }

    /// Both routes, factors of both orders, kept and new: systems with more and with fewer rows than features, that
    /// have most rows in common, few or none.
    #[test]
    fn every_route_solves_the_systems() {
        let mut fixture = Fixture::new(400, 30);
        let control = Control::default();
        for accuracy in [Accuracy::Working, Accuracy::Double] {
            let mut preconditioner = Preconditioner::new(4);
            for (rows, spread) in [(300, 20), (300, 20), (100, 100), (12, 0), (12, 50), (90, 0), (1, 1), (0, 0)] {
                let s: Vec<Vec<f64>> = (0..4)
                    .map(|k| {
                        let inside = k * spread..k * spread + rows;
                        (0..400)
                            .map(|i| if inside.contains(&i) { 1.0 + 5.0 * fixture.rng.f64() } else { 0.0 })
                            .collect()
                    })
                    .collect();
                let errors: Vec<Vec<f64>> =
                    (0..4).map(|_| (0..30).map(|_| fixture.rng.f64() - 0.5).collect()).collect();
                let equation = |k: usize| {
                    let n_active = s[k].iter().filter(|s| **s > 0.0).count();
                    Equation { plan: k, s: &s[k], n_active, error: &errors[k], pull: 0.1, enough: 1e-12 }
                };
                let design = Design::new(&fixture.z, &[], 400, 30);
                let directions = Directions { design, copied: 400, accuracy, control: &control };
                let equations: Vec<Equation> = (0..4).map(equation).collect();
                let mean: Vec<f64> = (0..400).map(|i| s.iter().map(|s| s[i]).sum::<f64>() / 4.0).collect();
                let active = with_curvature(&mean);
                let together =
                    directions.together(&equations, &mean, &active, MOST_PASSES, &mut preconditioner).unwrap();
                let together: Vec<Vec<f64>> = together.into_iter().flatten().collect();
                assert_eq!(together.len(), 4, "{rows} rows, {spread}: not solved together");
                // No passes: every system is late.
                let mut fresh = Preconditioner::new(4);
                assert!(
                    directions.together(&equations, &mean, &active, 0, &mut fresh).unwrap().iter().all(Option::is_none)
                );
                let chosen = directions.all(&equations, &mut preconditioner).unwrap();
                for (k, equation) in equations.iter().enumerate() {
                    let enough = 0.1 * equation.error.iter().map(|e| e * e).sum::<f64>();
                    let (kept, alone) = directions.alone(equation, preconditioner.own[k].take()).unwrap();
                    preconditioner.own[k] = Some(kept);
                    for direction in [&together[k], &chosen[k], &alone] {
                        let residual = residual(&fixture, equation, direction);
                        assert!(residual <= 1.001 * enough, "{rows} rows, {spread}: {residual} is above {enough}");
                    }
                }
            }
        }
    }
}
