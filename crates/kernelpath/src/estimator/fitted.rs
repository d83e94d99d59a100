//! What all fitted models share: the chosen functions, the paths they come from, and their proofs.

use faer::Mat;

use crate::certify::certificate::{Certificate, worst};
use crate::data::rows::{Rows, RowsBuf};
use crate::error::{Error, Result};
use crate::estimator::counted::Counted;
use crate::estimator::options::{Options, setting};
use crate::fit::request::{KernelChoice, Task};
use crate::fit::result::PathFit;
use crate::fit::search::Trained;
use crate::fit::surface::{Scores, Surface};
use crate::fit::tune::Tuned;
use crate::fit::verify::{Returned, verify};
use crate::kernel::plane::Centre;
use crate::kernel::shape::{KernelFn, Shape};
use crate::model::expansion::Expansion;
use crate::model::training_rows::TrainingRows;
use crate::nystrom::approximation::Nystrom;
use crate::observe::Control;

/// The models of a fit, and the chosen ones.
#[derive(Debug, Clone)]
pub(crate) struct Fitted {
    pub options: Options,
    kernels: Vec<KernelFn>,
    fits: Vec<Vec<PathFit>>,
    tuned: Tuned,
    cs: Vec<f64>,
    /// The chosen C of each machine, with the machine's factor.
    chosen: Vec<f64>,
    is_timed_out: bool,
    basis: Option<Nystrom>,
    /// Rows of the training data.
    n: usize,
    pub training: TrainingRows,
    support: Vec<usize>,
    expansion: Expansion,
    /// The rows of X that the kernel function meets.
    met: Option<RowsBuf>,
}

impl Fitted {
    /// Of a fit to `x`, whose rows that count are `counted`.
    pub fn new(
        options: &Options,
        (x, counted): (&Rows, &Counted),
        tasks: &[Task],
        mut trained: Trained,
        tuned: Tuned,
        training: TrainingRows,
    ) -> Self {
        let (gamma, is_timed_out) = (tuned.places[0] / trained.cs.len(), trained.is_timed_out());
        let c = |m: usize| tuned.places[m] % trained.cs.len();
        let chosen = tasks.iter().enumerate().map(|(m, task)| task.c_factor * trained.cs[c(m)]).collect();
        let (kernel, basis) = (trained.kernels[gamma], trained.bases.swap_remove(gamma));
        let rows = basis.as_ref().map_or(counted.n(), |basis| basis.map().nrows());
        let (mut columns, mut intercepts, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (m, fit) in trained.fits[gamma].iter().enumerate() {
            columns.extend(fit.coefficients_of_rows(c(m)));
            intercepts.extend(fit.intercepts(c(m)));
            values.extend(fit.values_at_centre(c(m)));
        }
        let point = trained.fits[gamma].first().map_or_else(Vec::new, |fit| fit.centre.clone());
        let centre = (!point.is_empty()).then_some(Centre { point, values });
        let used = |i: &usize| basis.is_some() || columns.iter().any(|column| column[*i] != 0.0);
        let vectors: Vec<usize> = (0..rows).filter(used).collect();
        let coef = Mat::from_fn(vectors.len(), columns.len(), |i, m| columns[m][vectors[i]]);
        // Rows that the vectors are among those that count, if they are rows at all.
        let support: Vec<usize> = match &basis {
            None => vectors,
            Some(basis) => basis.chosen().map_or_else(Vec::new, <[usize]>::to_vec),
        };
        let copied = match &basis {
            _ if kernel.shape == Shape::Precomputed => counted.x().copy_rows(&[]),
            None => counted.x().copy_rows(&support),
            Some(basis) => {
                let landmarks = basis.landmarks();
                landmarks.copy_rows(&(0..landmarks.nrows()).collect::<Vec<_>>())
            }
        };
        let support: Vec<usize> = support.into_iter().map(|k| counted.row(k)).collect();
        let n = counted.total();
        let met = options.function.as_ref().map(|_| x.copy_rows(&support));
        let width = if kernel.shape == Shape::Precomputed { n } else { counted.x().ncols() };
        let expansion = Expansion::new(kernel, (copied, support.clone()), width, coef, intercepts).centred(centre);
        let Trained { kernels, fits, cs, .. } = trained;
        let options = options.clone();
        Self { options, kernels, fits, tuned, cs, chosen, is_timed_out, basis, n, training, support, expansion, met }
    }

    fn gamma_at(&self) -> usize {
        self.tuned.places[0] / self.cs.len()
    }

    pub fn kernel(&self) -> KernelFn {
        self.kernels[self.gamma_at()]
    }

    pub fn gamma(&self) -> Option<f64> {
        self.kernel().shape.uses_gamma().then(|| self.kernel().gamma)
    }

    pub fn gammas(&self) -> Vec<f64> {
        self.kernels.iter().map(|kernel| kernel.gamma).collect()
    }

    pub fn cs(&self) -> &[f64] {
        &self.cs
    }

    pub fn chosen(&self) -> &[f64] {
        &self.chosen
    }

    /// The chosen place of each machine: C after C of the first γ, then of the second.
    pub fn places(&self) -> &[usize] {
        &self.tuned.places
    }

    pub fn scores(&self) -> &[Scores] {
        &self.tuned.scores
    }

    pub fn best_scores(&self) -> Vec<f64> {
        let (surface, is_joint) = (Surface::new(&self.fits), self.tuned.scores.len() == 1);
        let best = |(m, (scores, place)): (usize, (&Scores, &usize))| {
            let machines = if is_joint { surface.machines() } else { m..m + 1 };
            surface.mean_scores(machines, scores).get(*place).map_or(f64::NAN, |(mean, _)| *mean)
        };
        self.tuned.scores.iter().zip(&self.tuned.places).enumerate().map(best).collect()
    }

    /// The weights of the rows in means of the scores, if rows are left out one by one and do not all count 1.
    pub fn weights_of_rows_left_out(&self) -> Option<Vec<f64>> {
        let scores = self.tuned.scores.first().filter(|_| self.options.is_leave_one_out())?;
        let surface = Surface::new(&self.fits);
        let weights = surface.fold_weights(surface.machines(), scores);
        weights.iter().any(|weight| *weight != 1.0).then_some(weights)
    }

    pub fn paths(&self) -> &[Vec<PathFit>] {
        &self.fits
    }

    pub fn chosen_paths(&self) -> &[PathFit] {
        &self.fits[self.gamma_at()]
    }

    pub fn worst_gap(&self) -> f64 {
        worst(self.fits.iter().flatten().map(PathFit::worst_gap))
    }

    pub fn is_timed_out(&self) -> bool {
        self.is_timed_out
    }

    pub fn support(&self) -> &[usize] {
        &self.support
    }

    pub fn expansion(&self) -> &Expansion {
        &self.expansion
    }

    pub fn nystrom(&self) -> Option<&Nystrom> {
        self.basis.as_ref()
    }

    /// The values of all functions, row after row.
    pub fn values(&self, x: &Rows) -> Result<Vec<f64>> {
        let (Some(function), Some(met)) = (&self.options.function, &self.met) else {
            return self.expansion.values(x, self.options.hardware());
        };
        let met = met.view();
        x.check("X")?;
        if x.ncols() != met.ncols() {
            return Err(Error::Features { got: x.ncols(), expected: met.ncols() });
        }
        let matrix = function.matrix(x, &met, self.options.threads, &Control::default())?;
        let columns: Vec<usize> = (0..met.nrows()).collect();
        self.expansion.values_by(&Rows::from(&matrix), &columns, met.nrows(), self.options.hardware())
    }

    /// The support vectors; none if the kernel is precomputed.
    pub fn vectors(&self) -> Rows<'_> {
        self.met.as_ref().map_or_else(|| self.expansion.vectors(), RowsBuf::view)
    }

    /// The values at the training rows that count. A precomputed matrix has one column for each of these rows.
    pub fn values_at_rows(&self, counted: &Counted) -> Result<Vec<f64>> {
        let x = counted.x();
        let columns: Vec<usize> = self.support.iter().filter_map(|row| counted.place(*row)).collect();
        self.expansion.values_by(&x, &columns, x.ncols(), self.options.hardware())
    }

    /// The rows of the fit that count, from its data.
    pub fn counted<'a>(&self, x: Rows<'a>, targets: usize) -> Result<Counted<'a>> {
        if x.nrows() != self.n {
            let why = "verify needs the rows of the fit";
            return Err(Error::Length { what: "X", got: x.nrows(), expected: self.n, why });
        }
        let vectors = self.vectors();
        if self.kernel().shape != Shape::Precomputed || self.met.is_some() {
            if x.ncols() != vectors.ncols() {
                return Err(Error::Features { got: x.ncols(), expected: vectors.ncols() });
            }
            let differs = |(k, row): &(usize, &usize)| x.squared_distance(**row, &vectors, *k) != 0.0;
            if let Some((_, row)) = self.support.iter().enumerate().find(differs) {
                let problem = format!("row {row} of X is not what the model was fitted on; give the rows of the fit");
                return setting(".verify(x, y)", problem);
            }
        }
        self.options.counted(x, targets, &Control::default())
    }

    /// The certificate of each machine at its chosen C, recomputed from the data of the fit.
    pub fn verify(&self, counted: &Counted, tasks: &[Task]) -> Result<Vec<Certificate>> {
        let (kernel, x) = (self.kernel(), counted.x());
        let choice = self.basis.as_ref().map_or(KernelChoice::Exact(kernel), KernelChoice::LowRank);
        let proof = |(m, task): (usize, &Task)| {
            let (fit, c) = (&self.chosen_paths()[m], self.tuned.places[m] % self.cs.len());
            let model = Returned { c: self.chosen[m], coef: &fit.coef[c], b: fit.intercepts(c) };
            // The chosen C is the machine's own.
            let task = task.clone().with_c_factor(1.0);
            verify(&x, choice, &task, model, self.options.settings, self.options.threads, &Control::default())
        };
        tasks.iter().enumerate().map(proof).collect()
    }
}

/// The methods that every fitted model has, for one with the field `fitted`.
macro_rules! shared_results {
    ([$($parameters:tt)*] $model:ty) => {
        impl<$($parameters)*> $model {
            /// The chosen C; if each machine has its own, that of the first (see [`chosen_cs`](Self::chosen_cs)).
            pub fn c(&self) -> f64 {
                self.fitted.chosen()[0]
            }

            /// The chosen C of each machine.
            pub fn chosen_cs(&self) -> &[f64] {
                self.fitted.chosen()
            }

            /// The chosen γ; `None` if the kernel has none.
            pub fn gamma(&self) -> Option<f64> {
                self.fitted.gamma()
            }

            /// The kernel with the chosen γ.
            pub fn kernel(&self) -> crate::kernel::shape::KernelFn {
                self.fitted.kernel()
            }

            /// The values of C that were tried, before the spread of targets is multiplied in, if it is.
            pub fn cs(&self) -> &[f64] {
                self.fitted.cs()
            }

            /// The values of γ that were tried.
            pub fn gammas(&self) -> Vec<f64> {
                self.fitted.gammas()
            }

            /// The score of every fold at every place: C after C of the first γ, then of the second. If each machine
            /// chose its own C, these are the scores of the first (see [`all_scores`](Self::all_scores)).
            pub fn scores(&self) -> &[Vec<f64>] {
                &self.fitted.scores()[0]
            }

            /// The same for each machine; one entry if all machines chose together.
            pub fn all_scores(&self) -> &[Vec<Vec<f64>>] {
                self.fitted.scores()
            }

            /// The mean score at the chosen place: one entry, or one for each machine that chose its own C. NaN without
            /// folds.
            pub fn best_scores(&self) -> Vec<f64> {
                self.fitted.best_scores()
            }

            /// All models of the first machine with the chosen γ: folds, refit, certificates.
            pub fn path(&self) -> &crate::fit::result::PathFit {
                &self.fitted.chosen_paths()[0]
            }

            /// All models: `[gamma][machine]`. Rows of weight 0 are not counted in them.
            pub fn paths(&self) -> &[Vec<crate::fit::result::PathFit>] {
                self.fitted.paths()
            }

            /// Largest gap of all models, with every γ; NaN if the kernel is indefinite.
            pub fn worst_gap(&self) -> f64 {
                self.fitted.worst_gap()
            }

            /// Whether the time budget ended the fit, so that some models were not run.
            pub fn is_timed_out(&self) -> bool {
                self.fitted.is_timed_out()
            }

            /// Training rows that a chosen machine has a coefficient for; with low rank, the landmarks that are rows.
            pub fn support(&self) -> &[usize] {
                self.fitted.support()
            }

            /// The support vectors, or with low rank the landmarks; none if the kernel is precomputed.
            pub fn support_vectors(&self) -> crate::data::rows::Rows<'_> {
                self.fitted.vectors()
            }

            /// The coefficients of the support vectors: one row for each, one column for each function.
            pub fn coefficients(&self) -> faer::MatRef<'_, f64> {
                self.fitted.expansion().coef()
            }

            /// The intercept of each function.
            pub fn intercepts(&self) -> &[f64] {
                self.fitted.expansion().intercepts()
            }

            /// Writes the model to a file, for [`SavedModel::load`](crate::SavedModel::load), for Python
            /// (`kernelpath.load`) and for the command line. A file of that name is replaced once the new one is
            /// complete.
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> crate::error::Result<()> {
                self.saved().save(path)
            }

            /// The landmarks of a fit at low rank, with the error of the approximation.
            pub fn nystrom(&self) -> Option<&crate::nystrom::approximation::Nystrom> {
                self.fitted.nystrom()
            }
        }
    };
}

pub(crate) use shared_results;
