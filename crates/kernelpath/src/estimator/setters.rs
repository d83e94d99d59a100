//! The methods that set what all builders share, written once.

/// The methods that set what every builder holds, for a builder with the field `options`.
macro_rules! shared_settings {
    ($builder:ty) => {
        impl $builder {
            /// The kernel; RBF with the `sigest` bandwidth unless set.
            #[must_use]
            pub fn kernel(mut self, kernel: crate::kernel::bandwidth::Kernel) -> Self {
                self.options.kernel = kernel;
                self.options.function = None;
                self
            }

            /// A kernel of your own: a symmetric function of two rows, which is called for each pair of rows of the fit,
            /// by several threads. If it is not positive semi-definite, models claim no proof. A file holds the model
            /// without the function: what loads it predicts from kernel values with all rows of the fit.
            ///
            /// ```
            /// use kernelpath::Classifier;
            ///
            /// let x: Vec<f64> = (0..120).map(|i| (0.37 * f64::from(i)).sin()).collect();
            /// let y: Vec<i64> = x.chunks(3).map(|r| i64::from(r[0] * r[1] > 0.0)).collect();
            /// let squared = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>().powi(2);
            /// let svm = Classifier::svm().kernel_function(squared).fit((&x[..], 3), &y)?;
            /// assert!(svm.score((&x[..], 3), &y)? > 0.9 && svm.worst_gap() <= 1e-6);
            /// # Ok::<(), kernelpath::Error>(())
            /// ```
            #[must_use]
            pub fn kernel_function(mut self, function: impl Fn(&[f64], &[f64]) -> f64 + Send + Sync + 'static) -> Self {
                self.options.kernel = crate::kernel::bandwidth::Kernel::precomputed();
                self.options.function = Some(crate::estimator::function::Function::new(function));
                self
            }

            /// Values of γ to try, in place of the kernel's own rule.
            #[must_use]
            pub fn gammas(mut self, gammas: impl Into<crate::kernel::gammas::Gammas>) -> Self {
                self.options.gammas = Some(gammas.into());
                self
            }

            /// Values of C to try, in place of the default grid.
            #[must_use]
            pub fn cs(mut self, cs: impl Into<Vec<f64>>) -> Self {
                self.options.grid = crate::estimator::options::Grid::Cs(cs.into());
                self
            }

            /// The number of values of the default grid; 50 unless set. They go from 1e-3 to 1e3, which for quantiles
            /// and the ε-insensitive loss is multiplied by the [spread](crate::spread) of the targets, so that the unit
            /// of y does not matter.
            #[must_use]
            pub fn n_cs(mut self, count: usize) -> Self {
                self.options.grid = crate::estimator::options::Grid::Default(count);
                self
            }

            /// Values of λ to try, in place of values of C: C = 1 / (2nλ), where n is the number of rows.
            #[must_use]
            pub fn lambdas(mut self, lambdas: impl Into<Vec<f64>>) -> Self {
                self.options.grid = crate::estimator::options::Grid::Lambdas(lambdas.into());
                self
            }

            /// The number of folds, shuffled, and stratified if targets are classes; 5 unless set.
            #[must_use]
            pub fn cv(mut self, folds: usize) -> Self {
                self.options.cv = crate::estimator::options::Cv::Count(folds);
                self
            }

            /// Your own folds, or none.
            #[must_use]
            pub fn folds(mut self, folds: crate::fit::folds::Folds) -> Self {
                self.options.cv = crate::estimator::options::Cv::Given(folds);
                self
            }

            /// Holds out each row once, exactly.
            #[must_use]
            pub fn leave_one_out(self) -> Self {
                self.folds(crate::fit::folds::Folds::LeaveOneOut)
            }

            /// By what C and γ are chosen: the accuracy of classifiers and the negative mean loss of regressors, unless
            /// set.
            #[must_use]
            pub fn scoring(mut self, scoring: crate::fit::scoring::Scoring) -> Self {
                self.options.scoring = Some(scoring);
                self
            }

            /// How the scores choose: the best mean unless set.
            #[must_use]
            pub fn selection(mut self, selection: crate::fit::select::Selection) -> Self {
                self.options.selection = selection;
                self
            }

            /// A weight for each row, ≥ 0, in the loss, the scores, calibration and the bandwidth rules: a row of weight
            /// 2 counts as two rows, and a row of weight 0 as none. All 1 unless set.
            #[must_use]
            pub fn weights(mut self, weights: impl Into<Vec<f64>>) -> Self {
                self.options.weights = Some(weights.into());
                self
            }

            /// A kernel at low rank, in place of the kernel matrix of all rows.
            #[must_use]
            pub fn low_rank(mut self, low_rank: crate::nystrom::build::LowRank) -> Self {
                self.options.low_rank = Some(low_rank);
                self
            }

            /// The solver; the fastest that fits the loss unless set.
            #[must_use]
            pub fn solver(mut self, solver: crate::solver::choice::Solver) -> Self {
                self.options.solver = solver;
                self
            }

            /// Largest relative duality gap of a converged model; 1e-6 unless set.
            #[must_use]
            pub fn tol(mut self, tol: f64) -> Self {
                self.options.settings.tol = tol;
                self
            }

            /// Most steps a solve may take; a million unless set.
            #[must_use]
            pub fn max_iter(mut self, max_iter: usize) -> Self {
                self.options.settings.max_iter = max_iter;
                self
            }

            /// Whether to take the kernel for positive semi-definite without a look at its matrix; false unless set.
            ///
            /// A precomputed matrix, and the matrix of a kernel that is not semi-definite by its formula, is examined by
            /// a factorisation, whose cost is of order n³: its certificates hold only if it has no negative eigenvalue.
            /// Say `true` if you know that it has none: certificates are then as true as what you say.
            #[must_use]
            pub fn assume_definite(mut self, assume_definite: bool) -> Self {
                self.options.settings.assume_definite = assume_definite;
                self
            }

            /// Precision of the kernel matrix; single where that is enough unless set.
            #[must_use]
            pub fn precision(mut self, precision: crate::fit::precision::Precision) -> Self {
                self.options.precision = precision;
                self
            }

            /// Where the linear algebra runs; on the processor unless set.
            #[must_use]
            pub fn device(mut self, device: crate::device::place::DeviceChoice) -> Self {
                self.options.device = device;
                self
            }

            /// Number of threads; 0, the default, takes one per core. The answer does not depend on it.
            #[must_use]
            pub fn threads(mut self, threads: usize) -> Self {
                self.options.threads = threads;
                self
            }

            /// Seed of the folds, the bandwidth's sample and the landmarks; 0 unless set.
            #[must_use]
            pub fn seed(mut self, seed: u64) -> Self {
                self.options.seed = seed;
                self
            }

            /// Time that training may take, shared evenly among the values of γ. When it ends, the best of the models
            /// that were fitted by then is chosen. No limit unless set.
            #[must_use]
            pub fn time_budget(mut self, budget: std::time::Duration) -> Self {
                self.options.time_budget = Some(budget);
                self
            }
        }
    };
}

pub(crate) use shared_settings;
