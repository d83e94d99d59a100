//! What factors and passes cost, in multiplications, and which route is the cheaper one.

use crate::solver::low_rank::tuning::{EXPECTED_PASSES, MANY_ROWS, MOST_PASSES, READING};

/// Costs of systems in `rank` dimensions.
#[derive(Clone, Copy)]
pub(super) struct Costs {
    pub rank: f64,
    /// Whether factors in the dimensions of rows may be made.
    pub by_rows: bool,
}

/// How the systems of a step are solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// As one block, with one factor; after this many passes the systems that are left go apart.
    Together { passes: usize },
    /// Each with a factor of its own.
    Apart,
}

impl Costs {
    /// The cheaper route. A route costs the passes with its kept factors, as many as at their last step, or new factors
    /// and the passes with these, whichever is less:
    ///
    /// ```text
    /// together: cost of a step on the union of the rows, for all systems
    /// apart:    sum over the systems of the cost of a step on the rows of each
    /// ```
    ///
    /// `union` and `own` hold the number of rows, and the passes of the kept factor if there is one.
    pub fn route(self, (rows, kept): (usize, Option<usize>), own: &[(usize, Option<usize>)]) -> Route {
        if own.len() == 1 {
            return Route::Together { passes: MOST_PASSES }; // on all threads
        }
        let fewest = own.iter().map(|own| own.0).min().unwrap_or(0);
        let expected = self.passes_together(rows, fewest);
        let together = self.step(rows, own.len(), kept.map(|passes| passes.max(expected)), expected);
        let apart: f64 = own.iter().map(|&(rows, kept)| self.step(rows, 1, kept, 1)).sum();
        if together > apart {
            return Route::Apart;
        }
        let passes = (apart / self.pass(rows, own.len()).max(1.0)) as usize;
        Route::Together { passes: passes.clamp(EXPECTED_PASSES, MOST_PASSES) }
    }

    /// The passes that a system of `fewest` rows is expected to take with the factor of the mean of systems that have
    /// `rows` rows in all. With many more rows than features, every direction is seen by rows that the system has.
    /// Otherwise, each row that the system lacks is a direction in which the factor is wrong, and takes a pass.
    fn passes_together(self, rows: usize, fewest: usize) -> usize {
        let is_seen = fewest as f64 > MANY_ROWS * self.rank;
        if is_seen { EXPECTED_PASSES } else { EXPECTED_PASSES.max(rows - fewest) }
    }

    /// The number of passes that cost as much as a new factor.
    pub fn worth(self, rows: usize, systems: usize) -> usize {
        1 + (self.factor(rows) / self.pass(rows, systems).max(1.0)) as usize
    }

    /// Whether a factor in the dimensions of the rows is cheaper than one in those of the features.
    pub fn is_smaller_by_rows(self, rows: usize) -> bool {
        self.by_rows && of_order(rows as f64, self.rank) < of_order(self.rank, rows as f64)
    }

    fn step(self, rows: usize, systems: usize, kept: Option<usize>, when_new: usize) -> f64 {
        let pass = self.pass(rows, systems);
        let new = self.factor(rows) + when_new as f64 * pass;
        kept.map_or(new, |passes| new.min(passes as f64 * pass))
    }

    fn factor(self, rows: usize) -> f64 {
        let by_features = of_order(self.rank, rows as f64);
        if self.by_rows { by_features.min(of_order(rows as f64, self.rank)) } else { by_features }
    }

    /// A pass there and back for all systems, and the solves with the factor.
    fn pass(self, rows: usize, systems: usize) -> f64 {
        (2.0 * rows as f64 + self.rank) * self.rank * (systems as f64 + READING)
    }
}

/// A symmetric matrix of this order, summed over `terms` terms, and its Cholesky factor.
fn of_order(order: f64, terms: f64) -> f64 {
    0.5 * order * order * terms + order * order * order / 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { rank: 300.0, by_rows: true };

    /// Counted one by one.
    #[test]
    fn a_factor_takes_this_many_multiplications() {
        let (order, terms) = (40, 7);
        let mut counted = 0.0;
        for i in 0..order {
            // Entry (i, j) of the matrix is a sum of `terms` products, and of its factor, one of j products.
            (0..=i).for_each(|j| counted += f64::from(terms + j));
        }
        let formula = of_order(f64::from(order), f64::from(terms));
        assert!((formula / counted - 1.0).abs() < 0.05, "{formula} is not {counted}");
    }

    #[test]
    fn the_smaller_order_is_that_of_the_fewer() {
        assert!(COSTS.is_smaller_by_rows(299) && !COSTS.is_smaller_by_rows(300));
        assert!(!Costs { by_rows: false, ..COSTS }.is_smaller_by_rows(10));
    }

    #[test]
    fn folds_of_a_smooth_loss_go_together_and_systems_without_common_rows_apart() {
        let goes_together = |union, own: &[(usize, Option<usize>)]| COSTS.route(union, own) != Route::Apart;
        assert!(goes_together((20_000, None), &[(18_000, None); 10]));
        assert!(!goes_together((1000, None), &[(100, None); 10]));
        assert!(goes_together((100, None), &[(100, Some(1))]));
        assert!(goes_together((255, None), &[(250, None); 10]));
        assert!(!goes_together((400, None), &[(250, None); 10]));
        // Together costs a new shared factor and its passes (229 million), apart 1054 million with new factors and 199
        // million with kept ones that take one pass.
        assert!(goes_together((2000, Some(20)), &[(1800, None); 10]));
        assert!(!goes_together((2000, Some(20)), &[(1800, Some(1)); 10]));
    }

    /// Passes together cost no more than the other route.
    #[test]
    fn passes_together_are_bounded_by_the_cost_of_the_other_route() {
        let own = [(18_000, None); 10];
        let Route::Together { passes } = COSTS.route((20_000, None), &own) else { panic!("apart") };
        let apart = 10.0 * (COSTS.factor(18_000) + COSTS.pass(18_000, 1));
        let pass = COSTS.pass(20_000, 10);
        assert!(passes as f64 * pass <= apart && (passes + 1) as f64 * pass > apart, "{passes}");
    }
}
