//! The builder, and the trained and tuned machine: a support vector classifier unless another loss is set.

use crate::calibrate::{Calibration, Method};
use crate::certificate::Certificate;
use crate::cv::{Folds, PathFit, Precision, Request, Selection, Task, fit_paths, select};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::features::LowRankSize;
use crate::kernel::{Bandwidth, Kernel};
use crate::loss::{Loss, sigmoid};
use crate::model::Model;
use crate::observe::Control;
use crate::path::logspace;
use crate::problem::Settings;
use crate::solver::Solver;
use crate::threads::pooled;
use crate::verify::{Returned, verify};

/// Number of folds unless set.
pub const DEFAULT_FOLDS: usize = 5;

/// Which folds to use, before the data is known.
#[derive(Debug, Clone)]
enum Cv {
    Stratified(usize),
    Folds(Folds),
}

/// Settings of a kernel machine; see [`Svc::builder`].
#[derive(Debug, Clone)]
pub struct SvcBuilder {
    loss: Loss,
    solver: Solver,
    kernel: Kernel,
    cs: Vec<f64>,
    cv: Cv,
    selection: Selection,
    probability: Option<Method>,
    settings: Settings,
    precision: Precision,
    threads: usize,
    seed: u64,
    weight: Option<Vec<f64>>,
}

impl Default for SvcBuilder {
    fn default() -> Self {
        Self {
            loss: Loss::Hinge,
            solver: Solver::Auto,
            kernel: Kernel::rbf(Bandwidth::Sigest),
            cs: logspace(1e-3, 1e3, 50),
            cv: Cv::Stratified(DEFAULT_FOLDS),
            selection: Selection::Best,
            probability: None,
            settings: Settings::default(),
            precision: Precision::Auto,
            threads: 0,
            seed: 0,
            weight: None,
        }
    }
}

impl SvcBuilder {
    /// The values of C in force.
    pub fn grid(&self) -> &[f64] {
        &self.cs
    }

    /// The loss; the hinge unless set. Regression losses take any targets, the others ±1.
    #[must_use]
    pub fn loss(mut self, loss: Loss) -> Self {
        self.loss = loss;
        self
    }

    /// The solver; the fastest that fits the loss unless set.
    #[must_use]
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// The kernel; RBF with the `sigest` bandwidth unless set.
    #[must_use]
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// The values of C to try; 50 from 1e-3 to 1e3 unless set.
    #[must_use]
    pub fn cs(mut self, cs: impl Into<Vec<f64>>) -> Self {
        self.cs = cs.into();
        self
    }

    /// The number of stratified folds; 5 unless set.
    #[must_use]
    pub fn cv(mut self, folds: usize) -> Self {
        self.cv = Cv::Stratified(folds);
        self
    }

    /// Folds of one's own, leave-one-out, or none.
    #[must_use]
    pub fn folds(mut self, folds: Folds) -> Self {
        self.cv = Cv::Folds(folds);
        self
    }

    /// How C is chosen from the scores.
    #[must_use]
    pub fn selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Probabilities for [`Svc::predict_proba`], calibrated on the out-of-fold scores at the chosen C; none unless set.
    #[must_use]
    pub fn probability(mut self, method: Method) -> Self {
        self.probability = Some(method);
        self
    }

    /// Largest relative duality gap; 1e-6 unless set.
    #[must_use]
    pub fn tol(mut self, tol: f64) -> Self {
        self.settings.tol = tol;
        self
    }

    /// Most steps a solve may take.
    #[must_use]
    pub fn max_iter(mut self, max_iter: usize) -> Self {
        self.settings.max_iter = max_iter;
        self
    }

    /// Precision of the kernel matrix.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Threads; 0, the default, takes one a core.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// A weight for each row, ≥ 0: the loss of a row counts so often. All 1 unless set.
    #[must_use]
    pub fn weights(mut self, weight: impl Into<Vec<f64>>) -> Self {
        self.weight = Some(weight.into());
        self
    }

    /// Seed of the bandwidth's sample and of the folds.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Trains and tunes: all folds and all C's on one kernel matrix.
    pub fn fit<'a>(&self, x: impl Into<Rows<'a>>, y: &[f64]) -> Result<Svc> {
        self.fit_with(x, y, &Control::default())
    }

    /// As [`fit`](Self::fit), watched and stopped through `control`.
    pub fn fit_with<'a>(&self, x: impl Into<Rows<'a>>, y: &[f64], control: &Control) -> Result<Svc> {
        let x = x.into();
        x.check("X")?;
        let folds = match &self.cv {
            Cv::Folds(folds) => folds.clone(),
            Cv::Stratified(k) => Folds::stratified(y, *k, self.seed)?,
        };
        if folds == Folds::None && self.cs.len() > 1 {
            return Err(Error::Parameter {
                name: "the number of C's",
                expected: "1 without cross-validation, which is what chooses among several",
                value: self.cs.len() as f64,
            });
        }
        if self.probability.is_some() {
            check_probability(self.loss, &folds)?;
        }
        if let Some(weight) = self.weight.as_ref().filter(|weight| weight.len() != y.len()) {
            let why = "one weight a row of X";
            return Err(Error::Length { what: "the weights", got: weight.len(), expected: y.len(), why });
        }
        let kernel = pooled(self.threads, || self.kernel.resolve(&x, self.weight.as_deref(), self.seed))?;
        let request = Request {
            x,
            tasks: vec![Task { weight: self.weight.clone(), ..Task::new(self.loss, y) }],
            solver: self.solver,
            kernel,
            cs: &self.cs,
            folds,
            settings: self.settings,
            precision: self.precision,
            threads: self.threads,
            pairs: None,
            instead: LowRankSize::default(),
        };
        let path = fit_paths(&request, control)?.remove(0);
        let best = if self.cs.len() == 1 { Some(0) } else { select(&path.scores, &self.cs, self.selection) };
        let refit = path.records.last().zip(best).map(|(refit, best)| (best, refit[best].b));
        let Some((best, b)) = refit.filter(|(_, b)| b.is_finite()) else {
            let budget = control.budget_seconds().unwrap_or(f64::NAN);
            return Err(Error::TimeBudget {
                budget,
                what: "any C was tried on every fold and on all rows",
                rows: y.len(),
            });
        };
        let model = Model::new(&x, kernel, &path.coef[best], b);
        let calibrate = |method| calibrate(method, &path.out_of_fold(best), y, self.weight.as_deref());
        let calibration = self.probability.map(calibrate).transpose()?;
        Ok(Svc { model, path, best, weight: self.weight.clone(), calibration })
    }
}

fn check_probability(loss: Loss, folds: &Folds) -> Result<()> {
    let problem = |problem: String| Err(Error::Calibration { problem });
    if !loss.is_classification() {
        return problem(format!("the {} loss has no classes; use a loss of classification", loss.name()));
    }
    if *folds == Folds::None {
        return problem("probabilities are fitted on scores of held-out rows; use folds, such as .cv(5)".into());
    }
    Ok(())
}

/// Rows that no fold held out have no score, and no weight.
fn calibrate(method: Method, scores: &[f64], y: &[f64], weight: Option<&[f64]>) -> Result<Calibration> {
    let positive: Vec<bool> = y.iter().map(|y| *y > 0.0).collect();
    let of_row = |i: usize| weight.map_or(1.0, |weight| weight[i]);
    let weights: Vec<f64> = scores.iter().enumerate().map(|(i, f)| if f.is_nan() { 0.0 } else { of_row(i) }).collect();
    Calibration::fit(method, scores, &positive, Some(&weights))
}

/// A trained and tuned kernel machine: a support vector classifier unless another loss was set.
///
/// ```
/// use kernelpath::{Loss, Svc};
///
/// let x: Vec<f64> = (0..60).map(|i| f64::from(i) / 10.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let median = Svc::builder().loss(Loss::Quantile { tau: 0.5 }).fit((x.as_slice(), 1), &y)?;
/// assert!((median.predict((&[1.55][..], 1))?[0] - 1.0).abs() < 0.1);
/// # Ok::<(), kernelpath::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Svc {
    model: Model,
    path: PathFit,
    best: usize,
    weight: Option<Vec<f64>>,
    calibration: Option<Calibration>,
}

impl Svc {
    /// Starts from the defaults.
    pub fn builder() -> SvcBuilder {
        SvcBuilder::default()
    }

    /// The chosen C.
    pub fn c(&self) -> f64 {
        self.path.cs[self.best]
    }

    /// Weighted mean [score](Loss::score) of every fold at every C.
    pub fn scores(&self) -> &[Vec<f64>] {
        &self.path.scores
    }

    /// All models of the path with their certificates.
    pub fn path(&self) -> &PathFit {
        &self.path
    }

    /// The certificate of the returned model, [recomputed](crate::verify()) from the rows that it was fitted on, in double
    /// precision.
    pub fn verify<'a>(&self, x: impl Into<Rows<'a>>, y: &[f64]) -> Result<Certificate> {
        let x = x.into();
        let b = self.path.records.last().map_or(f64::NAN, |refit| refit[self.best].b);
        let model = Returned { c: self.c(), coef: &self.path.coef[self.best], b: &[b] };
        let task = Task { weight: self.weight.clone(), ..Task::new(self.path.loss, y) };
        verify(&x, &self.model.kernel(), &task, model, 0, &Control::default())
    }

    /// The model at the chosen C.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// f at every row; see [`Model::decision_function`].
    pub fn decision_function<'a>(&self, x: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        self.model.decision_function(x)
    }

    /// The class of every row, see [`Model::predict`]; for a regression loss f itself.
    pub fn predict<'a>(&self, x: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        if self.path.loss.is_classification() { self.model.predict(x) } else { self.model.decision_function(x) }
    }

    /// The map from f to probabilities, if [`SvcBuilder::probability`] asked for it.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// P(y = +1) of every row, calibrated as [`SvcBuilder::probability`] says; of the logistic loss, whose f is the
    /// log-odds, also without.
    ///
    /// [`predict`](Self::predict) goes by the sign of f. It agrees with P > ½, except for calibrations that move ½ away
    /// from f = 0, as all but [`Method::Temperature`] may.
    pub fn predict_proba<'a>(&self, x: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        let probability = |f: f64| match &self.calibration {
            Some(calibration) => calibration.probability(f),
            None => sigmoid(f),
        };
        if self.calibration.is_none() && self.path.loss != Loss::Logistic {
            let problem = "no probabilities were asked for; fit with .probability(Method::Sigmoid)".into();
            return Err(Error::Calibration { problem });
        }
        Ok(self.model.decision_function(x)?.into_iter().map(probability).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cv::Fold;

    /// A noisy step at x = 1.
    fn step(n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut rng = fastrand::Rng::with_seed(3);
        let x: Vec<f64> = (0..n).map(|_| 4.0 * rng.f64() - 1.0).collect();
        let y = x.iter().map(|x| if rng.f64() < sigmoid(3.0 * (x - 1.0)) { 1.0 } else { -1.0 }).collect();
        (x, y)
    }

    #[test]
    fn probabilities_are_the_calibrated_out_of_fold_scores() {
        let (x, y) = step(90);
        for loss in [Loss::Hinge, Loss::Dwd] {
            for method in [Method::Sigmoid, Method::Isotonic, Method::Temperature] {
                let builder = Svc::builder().loss(loss).cs([0.1, 1.0]).probability(method);
                let svc = builder.fit((x.as_slice(), 1), &y).unwrap();
                // Each row is held out once: its score is the one its fold gave it.
                let mut scores = vec![f64::NAN; 90];
                for (by_c, test) in svc.path.oof.iter().zip(&svc.path.test) {
                    test.iter().zip(&by_c[svc.best]).for_each(|(&row, &f)| scores[row] = f);
                }
                let positive: Vec<bool> = y.iter().map(|y| *y > 0.0).collect();
                let expected = Calibration::fit(method, &scores, &positive, None).unwrap();
                assert_eq!(svc.calibration(), Some(&expected));
                let f = svc.decision_function((x.as_slice(), 1)).unwrap();
                let p = svc.predict_proba((x.as_slice(), 1)).unwrap();
                assert!(f.iter().zip(&p).all(|(f, p)| *p == expected.probability(*f)));
            }
        }
    }

    #[test]
    fn rows_never_held_out_do_not_count() {
        let (x, y) = step(60);
        let fold = Fold { train: (0..30).collect(), test: (30..60).collect() };
        let builder = Svc::builder().cs([1.0]).folds(Folds::Splits(vec![fold])).probability(Method::Sigmoid);
        let svc = builder.fit((x.as_slice(), 1), &y).unwrap();
        assert!(svc.path.out_of_fold(0)[..30].iter().all(|f| f.is_nan()));
        let positive: Vec<bool> = y[30..].iter().map(|y| *y > 0.0).collect();
        let expected = Calibration::fit(Method::Sigmoid, &svc.path.oof[0][0], &positive, None).unwrap();
        assert_eq!(svc.calibration(), Some(&expected));
    }

    #[test]
    fn probabilities_need_classes_folds_and_asking() {
        let (x, y) = step(40);
        let rows = (x.as_slice(), 1);
        let asked = Svc::builder().cs([1.0]).probability(Method::Sigmoid);
        let message = |builder: SvcBuilder| builder.fit(rows, &y).unwrap_err().to_string();
        assert!(message(asked.clone().folds(Folds::None)).contains("use folds"));
        assert!(message(asked.loss(Loss::Squared)).contains("the squared loss has no classes"));

        let svc = Svc::builder().cs([1.0]).fit(rows, &y).unwrap();
        assert!(svc.predict_proba(rows).unwrap_err().to_string().contains(".probability(Method::Sigmoid)"));
        let logistic = Svc::builder().loss(Loss::Logistic).cs([1.0]).fit(rows, &y).unwrap();
        let f = logistic.decision_function(rows).unwrap();
        assert!(logistic.predict_proba(rows).unwrap().iter().zip(&f).all(|(p, f)| *p == sigmoid(*f)));
    }
}
