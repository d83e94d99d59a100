//! One fit: all machines with every γ, the choice among the models, and their probabilities.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kernelpath::{
    Arrangement as Arranged, Bandwidth, ChooseBy, Classes, Control, DeviceChoice, Gammas, Kernel, LowRank, LowRankSize,
    Method, Odds, PathFit, Precision, Record, Request, Scores, Scoring, Search, Selection, Settings, Solver, Surface,
    Task, Trained, Tuned,
};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::arrangement::Arrangement;
use crate::boundary::{Matrix, Table, Vector, matrix, run, run_watched, threads, unwrap};
use crate::calibration::Calibration;
use crate::kernels::kernel_fn;
use crate::landmarks::{Found, is_given, read_landmarks};
use crate::task::{PyTask, RowClasses, read_folds, read_task};

/// What a fit is asked to do, apart from the data.
#[derive(FromPyObject)]
pub(crate) struct PySettings<'py> {
    kernel: String,
    /// Numbers, or the name of a rule.
    gamma: Bound<'py, PyAny>,
    degree: u32,
    coef0: f64,
    selection: String,
    solver: String,
    tol: f64,
    max_iter: usize,
    assume_definite: bool,
    time_budget: Option<f64>,
    dtype: String,
    device: String,
    n_threads: i64,
    low_rank: Option<PyLowRank<'py>>,
    /// The size of a fit at low rank that an error names if there is no memory for the kernel matrix.
    n_landmarks: usize,
    rank: Option<usize>,
}

#[derive(FromPyObject)]
pub(crate) struct PyLowRank<'py> {
    landmarks: Bound<'py, PyAny>,
    n_landmarks: usize,
    rank: Option<usize>,
}

/// The machines, and how they choose.
#[derive(FromPyObject)]
pub(crate) struct PyMachines<'py> {
    tasks: Vec<PyTask<'py>>,
    /// Whether they choose one place together.
    is_joint: bool,
    /// What the scores of each machine's loss are divided by.
    units: Option<Vec<f64>>,
    classes: Option<PyClasses<'py>>,
}

/// The classes of a classifier's rows.
#[derive(FromPyObject)]
pub(crate) struct PyClasses<'py> {
    arrangement: Bound<'py, Arrangement>,
    /// The class of each row, and its weight in scores.
    rows: Bound<'py, RowClasses>,
    /// "native", the name of a calibration, or None.
    probability: Option<String>,
}

/// The same, owned.
struct Labelled {
    arrangement: Arranged,
    class: Vec<usize>,
    weight: Vec<f64>,
    tasks: Vec<Task>,
    method: Option<Method>,
    is_native: bool,
}

impl Labelled {
    fn read(classes: &PyClasses<'_>, tasks: &[Task]) -> PyResult<Self> {
        let arrangement = classes.arrangement.get().arranged.clone();
        let rows = &classes.rows.get().0;
        let class = rows.class().to_vec();
        let weight = rows.weight().map_or_else(|| vec![1.0; class.len()], <[f64]>::to_vec);
        let is_native = classes.probability.as_deref() == Some("native");
        let method = classes.probability.as_deref().filter(|_| !is_native).map(Method::from_name).transpose();
        Ok(Self { arrangement, class, weight, tasks: tasks.to_vec(), method: unwrap(method)?, is_native })
    }

    fn view(&self) -> Classes<'_> {
        let Self { arrangement, class, weight, tasks, method, .. } = self;
        Classes { arrangement, class, weight, tasks, method: *method }
    }
}

/// A point, and the values of all machines there.
type PointAndValues<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// What follows from the scores.
struct Chosen {
    tuned: Tuned,
    /// The values of the chosen models at the rows that they did not see, row after row.
    held_out: Vec<f64>,
    odds: Option<Odds>,
    /// The probabilities of the classes at these values.
    probabilities: Vec<f64>,
    /// Seconds that the probabilities took.
    seconds: f64,
}

/// All models of a fit, and the chosen ones. A *place* is a pair of γ and C: place g·(number of C's) + c.
#[pyclass(frozen, module = "kernelpath._core")]
pub(crate) struct Fit {
    trained: Trained,
    classes: Option<Labelled>,
    chosen: OnceLock<Chosen>,
    given_landmarks: bool,
}

fn read_budget(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let budget = |seconds: f64| {
        let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
        duration
            .ok_or_else(|| PyValueError::new_err(format!("time_budget must be a number of seconds > 0, got {seconds}")))
    };
    seconds.map(budget).transpose()
}

/// The kernel with its own rule for γ, and the grid of γ's, if there is one.
fn read_gamma(settings: &PySettings<'_>, columns: usize) -> PyResult<(Kernel, Option<Gammas>)> {
    let shape = kernel_fn(&settings.kernel, 1.0, settings.degree, settings.coef0)?.shape;
    let Ok(rule) = settings.gamma.extract::<String>() else {
        let gammas: Vec<f64> = settings.gamma.extract()?;
        return Ok((Kernel { shape, bandwidth: Bandwidth::Value(1.0) }, Some(gammas.into())));
    };
    let (bandwidth, grid) = match rule.as_str() {
        "sigest" => (Bandwidth::Sigest, None),
        "scale" => (Bandwidth::Scale, None),
        "auto" => (Bandwidth::Value(1.0 / columns as f64), None),
        "auto-grid" => (Bandwidth::Sigest, Some(Gammas::Auto)),
        _ => return Err(PyValueError::new_err(format!("unknown bandwidth rule gamma={rule:?}"))),
    };
    Ok((Kernel { shape, bandwidth }, grid))
}

fn read_selection(name: &str) -> PyResult<Selection> {
    match name {
        "best" => Ok(Selection::Best),
        "1se" => Ok(Selection::OneStandardError),
        _ => Err(PyValueError::new_err(format!("unknown selection {name:?}: known are best, 1se"))),
    }
}

/// Fits all machines with every γ, every C, on every fold and on all rows, each model with its certificate, and chooses
/// among the models.
///
/// `scorer` is called with the fit once all models are there, and returns the scores by which to choose, of shape
/// (n_folds, n_places): one array for each machine, or one if they choose together. Without it, the scores of the losses
/// choose. `watch` is called with (done, total, phase), and has `begin_gamma(at, gammas)` and `end_gamma()`, which
/// returns whether to try no other γ.
#[pyfunction]
#[pyo3(signature = (X, machines, settings, cs, folds, *, seed=0, weight=None, scorer=None, watch=None))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    machines: PyMachines<'py>,
    settings: PySettings<'py>,
    cs: Vector<'py, f64>,
    folds: &Bound<'py, PyAny>,
    seed: u64,
    weight: Option<Vector<'py, f64>>,
    scorer: Option<&Bound<'py, PyAny>>,
    watch: Option<&Bound<'py, PyAny>>,
) -> PyResult<Py<Fit>> {
    unwrap(kernelpath::memory::check_cushion())?;
    let x = Matrix::borrow(X, "X")?;
    let x = x.rows()?;
    let (cs, weight) = (cs.to_vec(), weight.map(|weight| weight.to_vec()));
    if weight.as_ref().is_some_and(|weight| weight.len() != x.nrows()) {
        return Err(PyValueError::new_err("weight must have one entry a row of X"));
    }
    let tasks: Vec<Task> = machines.tasks.iter().map(read_task).collect::<PyResult<_>>()?;
    let classes = machines.classes.as_ref().map(|classes| Labelled::read(classes, &tasks)).transpose()?;
    let (kernel, grid) = read_gamma(&settings, x.ncols())?;
    let threads = threads(settings.n_threads);
    let mut request = Request::new(x, tasks, unwrap(kernel.with_value(1.0))?, &cs);
    request.solver = unwrap(Solver::from_name(&settings.solver))?;
    request.folds = read_folds(folds)?;
    request.settings =
        Settings { tol: settings.tol, max_iter: settings.max_iter, assume_definite: settings.assume_definite };
    request.precision = unwrap(Precision::from_name(&settings.dtype))?;
    request.device = unwrap(DeviceChoice::from_name(&settings.device))?;
    request.threads = threads;
    request.instead = LowRankSize { landmarks: settings.n_landmarks, rank: settings.rank };
    let mut search = Search::new(request);
    let low_rank = settings.low_rank.as_ref().map(|low_rank| -> PyResult<LowRank> {
        let of = LowRank::new(read_landmarks(&low_rank.landmarks)?, low_rank.n_landmarks);
        Ok(if let Some(rank) = low_rank.rank { of.rank(rank) } else { of })
    });
    search.low_rank = low_rank.transpose()?;
    (search.weight, search.seed) = (weight.as_deref(), seed);
    search.time_budget = read_budget(settings.time_budget)?;

    let control = Control::default();
    let trained = run_watched(py, &control, watch, |watch| {
        if kernel.shape.uses_gamma() {
            x.check("X")?;
        }
        let gammas = || kernel.gammas(grid.as_ref(), &x, weight.as_deref(), seed);
        search.gammas = kernelpath::memory::pool(threads)?.install(gammas)?;
        search.run(&control, watch)
    })?;
    let given_landmarks = search.low_rank.as_ref().is_some_and(is_given);
    let fit = Bound::new(py, Fit { trained, classes, chosen: OnceLock::new(), given_landmarks })?;
    let scores = scorer.map(|scorer| read_scores(&scorer.call1((&fit,))?)).transpose()?;
    let by = (machines.is_joint, machines.units.as_deref(), read_selection(&settings.selection)?);
    let this = fit.get();
    if let Some(chosen) = run(py, &control, || this.choose(by, scores))? {
        // A new fit has not chosen yet.
        let _ = this.chosen.set(chosen);
    }
    Ok(fit.unbind())
}

/// The ranks of scores of shape (n_folds, n_places) by their mean over the folds, 1 for the best: what is equal but for
/// rounding shares a rank. `weight` says how often each fold counts.
#[pyfunction]
#[pyo3(signature = (scores, weight=None))]
pub(crate) fn ranks<'py>(
    py: Python<'py>,
    scores: Table<'py, f64>,
    weight: Option<Vector<'py, f64>>,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let scores: Scores = scores.view().outer_iter().map(|fold| fold.to_vec()).collect();
    let weight = weight.map_or_else(Vec::new, |weight| weight.to_vec());
    if !weight.is_empty() && weight.len() != scores.len() {
        return Err(PyValueError::new_err("weight must have one entry a fold"));
    }
    let ranks = kernelpath::ranks(&scores, &weight);
    Ok(ranks.into_iter().map(|rank| rank as i32).collect::<Vec<_>>().into_pyarray(py))
}

fn read_scores(scores: &Bound<'_, PyAny>) -> PyResult<Vec<Scores>> {
    let of_machine = |scores: Table<'_, f64>| scores.view().outer_iter().map(|fold| fold.to_vec()).collect();
    scores.try_iter()?.map(|scores| Ok(of_machine(scores?.extract()?))).collect()
}

impl Fit {
    /// The chosen places, and the probabilities there; `None` if no model was both scored and fitted on all rows.
    fn choose(
        &self,
        (is_joint, units, selection): (bool, Option<&[f64]>, Selection),
        scores: Option<Vec<Scores>>,
    ) -> kernelpath::Result<Option<Chosen>> {
        let classes = self.classes.as_ref().map(Labelled::view);
        let by = match (&classes, units) {
            (Some(classes), _) if is_joint => {
                ChooseBy::Classes { classes, scoring: Scoring::Accuracy, all_at_once: false }
            }
            (None, Some(units)) if is_joint => ChooseBy::Mean { units },
            (_, units) => ChooseBy::Apart { units },
        };
        let Some(tuned) = self.trained.choose(by, selection, scores)? else { return Ok(None) };
        let held_out = self.trained.out_of_fold(&tuned);
        let started = Instant::now();
        let (odds, probabilities) = match &self.classes {
            Some(labelled) if labelled.is_native || labelled.method.is_some() => {
                let odds = labelled.view().odds(&held_out)?;
                let probabilities = odds.probabilities(&labelled.arrangement, &held_out);
                (Some(odds), probabilities)
            }
            _ => (None, Vec::new()),
        };
        Ok(Some(Chosen { tuned, held_out, odds, probabilities, seconds: started.elapsed().as_secs_f64() }))
    }

    fn surface(&self) -> Surface<'_> {
        Surface::new(&self.trained.fits)
    }

    /// What was chosen. Python asks after `places` only.
    fn chosen(&self) -> PyResult<&Chosen> {
        self.chosen.get().ok_or_else(|| PyValueError::new_err("no model was chosen"))
    }

    /// The fit of each machine at its chosen place, and which of its C's that is.
    fn chosen_fits(&self) -> PyResult<Vec<(&PathFit, usize)>> {
        let surface = self.surface();
        Ok(self.chosen()?.tuned.places.iter().enumerate().map(|(m, place)| surface.at(m, *place)).collect())
    }

    /// Values per row of all machines together.
    fn outputs(&self) -> usize {
        self.trained.fits[0].iter().map(|fit| fit.outputs).sum()
    }

    /// Something of every model: (n_machines, n_folds + 1, n_places), the last "fold" being the refit.
    fn of_records<'py, T: Element>(
        &self,
        py: Python<'py>,
        of: impl Fn(&Record) -> T,
    ) -> PyResult<Bound<'py, PyArray3<T>>> {
        let (surface, problems) = (self.surface(), self.trained.fits[0][0].records.len());
        let mut values = Vec::with_capacity(surface.machines().len() * problems * surface.places());
        for m in surface.machines() {
            for problem in 0..problems {
                for place in 0..surface.places() {
                    let (fit, c) = surface.at(m, place);
                    values.push(of(&fit.records[problem][c]));
                }
            }
        }
        values.into_pyarray(py).reshape([surface.machines().len(), problems, surface.places()])
    }

    /// Values of rows: a vector, or if there are several for a row, a matrix with a line for each row.
    fn shaped(py: Python<'_>, values: Vec<f64>, outputs: usize) -> PyResult<Bound<'_, PyAny>> {
        if outputs == 1 {
            return Ok(values.into_pyarray(py).into_any());
        }
        Ok(matrix(py, values, outputs)?.into_any())
    }

    /// One machine, or all of them, and their values per row.
    fn part(&self, machine: Option<usize>) -> PyResult<(std::ops::Range<usize>, usize)> {
        match machine {
            None => Ok((self.surface().machines(), self.outputs())),
            Some(m) => {
                let fit = self.trained.fits[0].get(m);
                let fit = fit.ok_or_else(|| PyIndexError::new_err(format!("no machine number {m}")))?;
                Ok((m..m + 1, fit.outputs))
            }
        }
    }

    fn check_place(&self, place: usize) -> PyResult<()> {
        let places = self.surface().places();
        if place < places { Ok(()) } else { Err(PyIndexError::new_err(format!("no place number {place} of {places}"))) }
    }
}

#[pymethods]
impl Fit {
    /// The values of γ that were tried.
    #[getter]
    fn gammas<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.trained.kernels.iter().map(|kernel| kernel.gamma).collect::<Vec<_>>().into_pyarray(py)
    }

    /// The chosen place of each machine; None if no model was both scored on every fold and fitted on all rows.
    #[getter]
    fn places(&self) -> Option<Vec<usize>> {
        self.chosen.get().map(|chosen| chosen.tuned.places.clone())
    }

    /// The scores that chose, shape (n_folds, n_places): one array for each machine, or one if they chose together. NaN
    /// where not run.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<f64>>>> {
        let places = self.surface().places();
        self.chosen()?.tuned.scores.iter().map(|scores| matrix(py, scores.concat(), places)).collect()
    }

    /// Relative duality gaps, shape (n_machines, n_folds + 1, n_places), last the refit; inf where not run, NaN if the
    /// kernel is indefinite.
    #[getter]
    fn gaps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        self.of_records(py, |record| record.certificate.gap())
    }

    /// Rounding noise of the gaps, in the same shape; inf where not run.
    #[getter]
    fn gap_noise<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        self.of_records(py, |record| record.certificate.relative_noise())
    }

    /// Solver steps, in the same shape.
    #[getter]
    fn n_iter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<i64>>> {
        self.of_records(py, |record| record.steps as i64)
    }

    /// Positions in STATUS_NAMES, in the same shape.
    #[getter]
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u8>>> {
        self.of_records(py, |record| record.status as u8)
    }

    /// Primal objective values, in the same shape.
    #[getter]
    fn primal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        self.of_records(py, |record| record.certificate.primal)
    }

    /// Dual objective values, in the same shape; NaN if the kernel is indefinite.
    #[getter]
    fn dual<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        self.of_records(py, |record| record.certificate.dual)
    }

    /// Number of rows (or landmarks) of the refits with a coefficient ≠ 0, shape (n_machines, n_places).
    #[getter]
    fn n_support<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let surface = self.surface();
        let count = |m: usize, place: usize| {
            let (fit, c) = surface.at(m, place);
            fit.n_support(c) as i64
        };
        let of_machine = |m: usize| (0..surface.places()).map(move |place| count(m, place));
        matrix(py, surface.machines().flat_map(of_machine).collect(), surface.places())
    }

    /// Coefficients of a machine's refit at a place, one for each row (0 for rows that it did not learn from) or
    /// landmark, a line for each of its outputs.
    fn coef_at<'py>(&self, py: Python<'py>, machine: usize, place: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.part(Some(machine))?;
        self.check_place(place)?;
        let (fit, c) = self.surface().at(machine, place);
        let coefficients = fit.coefficients_of_rows(c);
        let columns = coefficients.first().map_or(0, Vec::len);
        matrix(py, coefficients.concat(), columns)
    }

    /// Intercepts of a machine's refit at a place.
    fn intercepts_at<'py>(&self, py: Python<'py>, machine: usize, place: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.part(Some(machine))?;
        self.check_place(place)?;
        let (fit, c) = self.surface().at(machine, place);
        Ok(fit.intercepts(c).to_vec().into_pyarray(py))
    }

    /// Coefficients of the chosen refits, a line for each output of each machine.
    #[getter]
    fn coef<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let lines: Vec<Vec<f64>> =
            self.chosen_fits()?.into_iter().flat_map(|(fit, c)| fit.coefficients_of_rows(c)).collect();
        let columns = lines.first().map_or(0, Vec::len);
        matrix(py, lines.concat(), columns)
    }

    /// Intercepts of the chosen refits, one for each output of each machine.
    #[getter]
    fn intercepts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let intercepts = self.chosen_fits()?.into_iter().flat_map(|(fit, c)| fit.intercepts(c).to_vec());
        Ok(intercepts.collect::<Vec<_>>().into_pyarray(py))
    }

    /// With the linear kernel, the point that rows were centred at, and the values of the chosen refits there; None if
    /// they were not centred.
    #[getter]
    fn centre<'py>(&self, py: Python<'py>) -> PyResult<Option<PointAndValues<'py>>> {
        let fits = self.chosen_fits()?;
        let point = fits.first().map_or_else(Vec::new, |(fit, _)| fit.centre.clone());
        if point.is_empty() {
            return Ok(None);
        }
        let values = fits.into_iter().flat_map(|(fit, c)| fit.values_at_centre(c).to_vec()).collect::<Vec<f64>>();
        Ok(Some((point.into_pyarray(py), values.into_pyarray(py))))
    }

    /// Values of the chosen models at the rows that they did not see, shape (n, n_outputs); NaN if no fold held out a
    /// row.
    #[getter]
    fn held_out<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        matrix(py, self.chosen()?.held_out.clone(), self.outputs())
    }

    /// Probabilities of the classes at these values, shape (n, n_classes); None if they were not asked for.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let (chosen, labelled) = (self.chosen()?, self.classes.as_ref());
        let classes = labelled.filter(|_| chosen.odds.is_some()).map(|labelled| labelled.arrangement.classes());
        classes.map(|classes| matrix(py, chosen.probabilities.clone(), classes)).transpose()
    }

    /// The maps from values to probabilities, one for each machine; empty if there are none.
    #[getter]
    fn calibrations(&self) -> PyResult<Vec<Calibration>> {
        Ok(maps(self.chosen()?.odds.as_ref()))
    }

    /// Seconds that the probabilities took.
    #[getter]
    fn calibration_seconds(&self) -> PyResult<f64> {
        Ok(self.chosen()?.seconds)
    }

    /// The maps from values to probabilities at any place that all machines share.
    fn calibrations_at(&self, py: Python<'_>, place: usize) -> PyResult<Vec<Calibration>> {
        self.check_place(place)?;
        let Some(labelled) = self.classes.as_ref().filter(|labelled| labelled.method.is_some()) else {
            return Ok(Vec::new());
        };
        let surface = self.surface();
        let odds = run(py, &Control::default(), || {
            labelled.view().odds(&surface.out_of_fold(surface.machines().map(|m| (m, place))))
        })?;
        Ok(maps(Some(&odds)))
    }

    /// Values of a fold's test rows at a place, of one machine or of all, a column for each output if there are several;
    /// NaN where not run.
    #[pyo3(signature = (fold, place, machine=None))]
    fn values<'py>(
        &self,
        py: Python<'py>,
        fold: usize,
        place: usize,
        machine: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check_place(place)?;
        let (machines, outputs) = self.part(machine)?;
        if fold >= self.surface().tests().len() {
            return Err(PyIndexError::new_err(format!("no fold number {fold}")));
        }
        Self::shaped(py, self.surface().values(machines, fold, place), outputs)
    }

    /// Mean value of each row over the folds that held it out, at a place, in the same shape; NaN if no fold did.
    #[pyo3(signature = (place, machine=None))]
    fn out_of_fold<'py>(&self, py: Python<'py>, place: usize, machine: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        self.check_place(place)?;
        let (machines, outputs) = self.part(machine)?;
        Self::shaped(py, self.surface().out_of_fold(machines.map(|m| (m, place))), outputs)
    }

    /// The solver that solved the folds and the refits.
    #[getter]
    fn solver(&self) -> &'static str {
        self.trained.fits[0][0].solver
    }

    /// Bytes of the kernel matrix, or of the features.
    #[getter]
    fn gram_bytes(&self) -> u64 {
        self.trained.fits[0][0].gram_bytes
    }

    /// Bytes that the fit was planned to take at its peak.
    #[getter]
    fn planned_bytes(&self) -> u64 {
        self.trained.fits.iter().map(|of_gamma| of_gamma[0].planned_bytes).max().unwrap_or(0)
    }

    /// Seconds spent on kernel matrices, or on features.
    #[getter]
    fn kernel_seconds(&self) -> f64 {
        self.trained.fits.iter().map(|of_gamma| of_gamma[0].kernel_seconds).sum()
    }

    /// Seconds spent on the paths.
    #[getter]
    fn path_seconds(&self) -> f64 {
        self.trained.fits.iter().flatten().map(|fit| fit.path_seconds).sum()
    }

    /// Whether the time budget ended the fit.
    #[getter]
    fn timed_out(&self) -> bool {
        self.trained.is_timed_out()
    }

    /// The values of γ that were not tried, as the time budget ended before.
    #[getter]
    fn gammas_out_of_time(&self) -> Vec<f64> {
        self.trained.out_of_time.clone()
    }

    /// For each γ, the smallest eigenvalue of the kernel matrix, or of that of the landmarks, if it is indefinite; else
    /// None.
    #[getter]
    fn smallest_eigenvalues(&self) -> Vec<Option<f64>> {
        self.trained.fits.iter().map(|of_gamma| of_gamma[0].smallest_eigenvalue).collect()
    }

    /// The landmarks of a γ; None if the fit is exact.
    fn nystrom(&self, gamma: usize) -> PyResult<Option<Found>> {
        let found = self.trained.bases.get(gamma);
        let found = found.ok_or_else(|| PyIndexError::new_err(format!("no gamma number {gamma}")))?;
        Ok(found.clone().map(|found| Found { found, given: self.given_landmarks }))
    }
}

fn maps(odds: Option<&Odds>) -> Vec<Calibration> {
    match odds {
        Some(Odds::Calibrated(maps)) => maps.iter().cloned().map(Calibration).collect(),
        _ => Vec::new(),
    }
}
