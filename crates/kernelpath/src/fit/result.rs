//! Every model of a fit.

use crate::certify::certificate::worst;
use crate::certify::record::{Record, Status, withdraw};
use crate::fit::folds::Folds;
use crate::fit::request::{Request, Task};
use crate::loss::objective::Objective;

/// Every model of a fit: folds × C's and the refit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PathFit {
    /// The loss.
    pub objective: Objective,
    /// Values per row: 1, or for the multinomial loss one per class.
    pub outputs: usize,
    /// The solver that solved the problems.
    pub solver: &'static str,
    /// The values of C, as given, times the factor of C of the task.
    pub cs: Vec<f64>,
    /// Number of rows of the data.
    pub n: usize,
    /// The rows that `coef` has coefficients for; `None`: all rows, or landmarks.
    pub rows: Option<Vec<usize>>,
    /// For every fold and C, the weighted mean [score](crate::Loss::score) (for several classes, the accuracy) over those
    /// of the fold's test rows that are among `rows`; NaN where not run, or if there are no such rows.
    pub scores: Vec<Vec<f64>>,
    /// How much the score of each fold counts in a mean over the folds: 1, or if rows are left out one by one, the weight of
    /// the row in scores; 0 for rows that are not among `rows`.
    pub fold_weights: Vec<f64>,
    /// `records[fold][c]`; the last "fold" is the refit on all rows.
    pub records: Vec<Vec<Record>>,
    /// `oof[fold][c]`: decision values of the fold's test rows, row after row, `outputs` for each; NaN where not run.
    pub oof: Vec<Vec<Vec<f64>>>,
    /// Test rows of each fold.
    pub test: Vec<Vec<usize>>,
    /// `coef[c]`: β of the refit, one for each row that it learned from, or with low rank for each landmark; for several
    /// classes, class after class.
    pub coef: Vec<Vec<f64>>,
    /// With the linear kernel, what was subtracted from each column of X; empty if that is 0 in all of them. Coefficients
    /// and intercepts are those for X as it is.
    pub centre: Vec<f64>,
    /// `at_centre[c]`: the values of the refit's functions there; empty if there is no centre.
    pub at_centre: Vec<Vec<f64>>,
    /// Bytes of the kernel matrix, or of the features.
    pub gram_bytes: u64,
    /// Bytes that the fit was planned to take at its peak.
    pub planned_bytes: u64,
    /// Seconds spent on the kernel matrix, or on the features.
    pub kernel_seconds: f64,
    /// Seconds spent on the paths. Machines that were fitted side by side share the time that passed.
    pub path_seconds: f64,
    /// Whether the time budget ended the fit.
    pub timed_out: bool,
    /// The smallest eigenvalue of the kernel matrix, or of that of the landmarks, if it is so far below 0 that the
    /// models have no certificate. `None`: the matrix is positive semi-definite, up to rounding.
    pub smallest_eigenvalue: Option<f64>,
}

impl PathFit {
    /// Number of folds, the refit not counted.
    pub fn n_folds(&self) -> usize {
        self.test.len()
    }

    /// Mean decision values of each row over the folds that held it out, at the C of index `c`, row after row, `outputs`
    /// for each; NaN if no fold did.
    pub fn out_of_fold(&self, c: usize) -> Vec<f64> {
        let mut mean = vec![0.0; self.n * self.outputs];
        let mut count = vec![0.0; self.n];
        for (by_c, test) in self.oof.iter().zip(&self.test) {
            for (&row, f) in test.iter().zip(by_c[c].chunks_exact(self.outputs)) {
                mean[row * self.outputs..].iter_mut().zip(f).for_each(|(mean, f)| *mean += f);
                count[row] += 1.0;
            }
        }
        for (mean, count) in mean.chunks_exact_mut(self.outputs).zip(count) {
            for mean in mean {
                *mean /= count;
            }
        }
        mean
    }

    /// The coefficients of the refit at the C of index `c`, one slice per output.
    pub fn coefficients(&self, c: usize) -> Vec<&[f64]> {
        let coef = &self.coef[c];
        coef.chunks_exact((coef.len() / self.outputs).max(1)).collect()
    }

    /// The same with a coefficient for each row, 0 for rows that the machine did not learn from; with low rank, for each
    /// landmark.
    pub fn coefficients_of_rows(&self, c: usize) -> Vec<Vec<f64>> {
        let spread = |coef: &[f64]| match &self.rows {
            None => coef.to_vec(),
            Some(rows) => {
                let mut all = vec![0.0; self.n];
                rows.iter().zip(coef).for_each(|(&row, coef)| all[row] = *coef);
                all
            }
        };
        self.coefficients(c).into_iter().map(spread).collect()
    }

    /// The number of rows, or with low rank of landmarks, with a coefficient of the refit at the C of index `c`.
    pub fn n_support(&self, c: usize) -> usize {
        let coefficients = self.coefficients(c);
        let length = coefficients.first().map_or(0, |coef| coef.len());
        (0..length).filter(|&i| coefficients.iter().any(|coef| coef[i] != 0.0)).count()
    }

    /// The intercepts of the refit at the C of index `c`.
    pub fn intercepts(&self, c: usize) -> &[f64] {
        self.records.last().map_or(&[], |refit| &refit[c].b)
    }

    /// The values of the refit's functions at the [centre](Self::centre), at the C of index `c`; none if there is none.
    pub fn values_at_centre(&self, c: usize) -> &[f64] {
        self.at_centre.get(c).map_or(&[], |values| values)
    }

    /// Largest gap of all models; NaN if the kernel is indefinite.
    pub fn worst_gap(&self) -> f64 {
        worst(self.records.iter().flatten().map(|r| r.certificate.gap()))
    }
}

/// The fit of a task with these models, with the scores of its folds.
pub(crate) fn path_fit(
    request: &Request,
    task: &Task,
    solver: &'static str,
    records: Vec<Vec<Record>>,
    oof: Vec<Vec<Vec<f64>>>,
    coef: Vec<Vec<f64>>,
) -> PathFit {
    let (n, outputs) = (request.x.nrows(), task.outputs());
    let test: Vec<Vec<usize>> = match &request.folds {
        Folds::None => Vec::new(),
        Folds::LeaveOneOut => (0..n).map(|i| vec![i]).collect(),
        Folds::Splits(folds) => folds.iter().map(|fold| fold.test.clone()).collect(),
    };
    // The task's own rows in a test set, by their places there and among the task's rows.
    let own = |test: &Vec<usize>| -> Vec<(usize, usize)> {
        test.iter().enumerate().filter_map(|(at, &i)| Some((at, task.position(i)?))).collect()
    };
    let mean = |own: &[(usize, usize)], f: &[f64]| {
        let (mut sum, mut total) = (0.0, 0.0);
        for &(at, k) in own {
            let (weight, f) = (task.score_weight(k), &f[at * outputs..(at + 1) * outputs]);
            if weight > 0.0 {
                sum += weight * if f[0].is_nan() { f[0] } else { task.objective.score(task.y[k], f) };
                total += weight;
            }
        }
        sum / total
    };
    let of_fold = |(oof, test): (&Vec<Vec<f64>>, &Vec<usize>)| {
        let own = own(test);
        oof.iter().map(|f| mean(&own, f)).collect()
    };
    let scores = oof.iter().zip(&test).map(of_fold).collect();
    let fold_weight = |test: &Vec<usize>| match request.folds {
        Folds::LeaveOneOut => own(test).iter().map(|&(_, k)| task.score_weight(k)).sum(),
        _ => 1.0,
    };
    let fold_weights = test.iter().map(fold_weight).collect();
    let timed_out = records.iter().flatten().any(|r| matches!(r.status, Status::NotRun | Status::TimeLimit));
    PathFit {
        objective: task.objective,
        outputs,
        solver,
        cs: request.cs.to_vec(),
        n,
        rows: task.rows.clone(),
        scores,
        fold_weights,
        records,
        oof,
        test,
        coef,
        centre: Vec::new(),
        at_centre: Vec::new(),
        gram_bytes: 0,
        planned_bytes: 0,
        kernel_seconds: 0.0,
        path_seconds: 0.0,
        timed_out,
        smallest_eigenvalue: None,
    }
}

impl PathFit {
    /// The fit on rows less a centre. Without one, the values at it are not kept.
    pub(crate) fn centred(mut self, centre: &[f64]) -> Self {
        if centre.is_empty() {
            self.at_centre.clear();
        }
        Self { centre: centre.to_vec(), ..self }
    }

    /// The fit, without proofs if its K is indefinite: `smallest` is then the smallest eigenvalue.
    pub(crate) fn with_negative_eigenvalue(mut self, smallest: Option<f64>) -> Self {
        if smallest.is_some() {
            withdraw(&mut self.records);
        }
        Self { smallest_eigenvalue: smallest, ..self }
    }
}
