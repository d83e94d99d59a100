"""What every estimator shares: parameters in, one call into Rust, attributes out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelpath import _core
from kernelpath._at_once import at_once
from kernelpath._callbacks import CallbackSupportMixin, FitTasks, with_callbacks
from kernelpath._columns import columns_named, named
from kernelpath._edge import GridEdgeWarning, edge
from kernelpath._files import ModelFilesMixin
from kernelpath._folds import Folds, among_rows, make_folds, spread
from kernelpath._indefinite import IndefiniteKernelWarning, indefinite
from kernelpath._landmarks import Approximation, landmark_rows
from kernelpath._machines import Machines, Parts, learned
from kernelpath._parameters import RECORDED
from kernelpath._progress import ProgressLine, Watch
from kernelpath._report import ReportMixin
from kernelpath._results import NOT_RUN, FoldScores, cv_results, path_table, shortfall
from kernelpath._rows import checked_rows, checked_training, is_matrix, scaled
from kernelpath._saved import STATE
from kernelpath._scoring import Scorer, make_scorer
from kernelpath._settings import KERNELS_WITHOUT_GAMMA, Grid, Settings, called, is_changed, n_threads
from kernelpath._tuning import HeldOut, Maps, check_tunable, nothing_to_choose
from kernelpath._verify import Certificate, digests, verified
from kernelpath._weights import Weights, checked_weights, without_zeros

_Self = TypeVar("_Self", bound="_KernelPathBase")


class _KernelPathBase(ModelFilesMixin, ReportMixin, CallbackSupportMixin, BaseEstimator):
    """What every estimator shares: parameters, grid, folds, the call into Rust, attributes and warnings.

    A subclass makes machines of targets (:meth:`_make_machines`), says what a scorer sees (:meth:`_stand_in`), and
    predicts.
    """

    _splitter: type = StratifiedKFold

    _multi_output = False

    # How attributes of machines are laid out; set by `fit`.
    _parts: Parts

    # The loss of each machine, and the proof of it, as a file holds them; set by `fit`.
    _learned: list[_core._MachineParts]

    # The digests of the rows of the fit; set by `fit`. Files of format 1 have none.
    _training: str

    # The kernel, where it is a function; set by `fit`. What is predicted does not depend on the parameter.
    _function: Callable[[Any, Any], Any] | None = None

    # Subtracted from each column of X, and what it is then multiplied with: of models that another program scaled.
    _scaling: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "sigest",
        degree: int = 3,
        coef0: float = 0.0,
        Cs: Any = 50,
        lambdas: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "best",
        low_rank: bool = False,
        landmarks: Any = "auto",
        n_landmarks: int = 2000,
        rank: int | None = None,
        device: str = "cpu",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1_000_000,
        assume_definite: bool = False,
        time_budget: float | None = None,
        dtype: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        keep_path: bool = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.Cs = Cs
        self.lambdas = lambdas
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.low_rank = low_rank
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.device = device
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.assume_definite = assume_definite
        self.time_budget = time_budget
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.keep_path = keep_path

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    @at_once(STATE | {RECORDED})
    @with_callbacks
    def fit(
        self: _Self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, low_rank: bool | None = None
    ) -> _Self:
        """Train and tune: every C on every fold, and on all rows; keep the model of the chosen C.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the symmetric matrix K(X, X) of shape (n_samples, n_samples), dense, when
            ``kernel="precomputed"``. float32 and float64 arrays are read in place, in any memory order, and so is a
            sparse matrix in CSR format; other sparse formats are converted to it. Nothing sparse is made dense. For a
            kernel that is a function, X may be a list or an array of objects, which are not made numbers. Arrays
            that are read in place must not change before the fit ends: what it returns if another thread writes to
            them is undefined.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for `KernelSVR` and `KernelRegressor`
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, at least 0, in the loss, in the scores, in calibration and in the bandwidth rules: a
            row of weight 2 counts as two rows, one of weight 0 as none.
        groups : array-like of shape (n_samples,), optional
            Groups for the splitter passed as `cv`.
        low_rank : bool, optional
            Goes before the parameter of that name, for this fit.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        settings, scorer = Settings.of(self, low_rank), make_scorer(self.scoring)
        self._check_parameters()
        self._warn_of_unused_landmarks(settings)
        given, targets = X, y
        X, y = self._checked_training(X, y)
        n_rows = len(y)
        weight = checked_weights(sample_weight, n_rows)
        if groups is not None:
            check_consistent_length(y, groups)
        training = None if X.dtype == object else digests(X, y, weight)
        rows, X, y, weight = without_zeros(X, y, weight, self._is_precomputed())
        cv = self.cv
        if rows is not None:
            cv, settings = among_rows(cv, rows, n_rows), settings.among_rows(rows, n_rows)
            groups = None if groups is None else np.asarray(groups)[rows]
        machines = self._make_machines(y, weight, settings)
        self._parts = machines.parts
        Cs = settings.Cs(len(y))
        folds, seed = self._randomised(cv, X, y, groups)
        check_tunable(folds, len(Cs), settings.n_gammas, len(y), settings.selection, scorer)
        self._check_folds(machines, folds, settings)
        if callable(self.kernel):
            self._function = self.kernel
        matrix = X if self._function is None else called(self._function, X, X)

        line = ProgressLine(type(self).__name__) if self.verbose else None
        callbacks = FitTasks.of(self, given, targets, sample_weight, settings.n_gammas)
        scorer = None if folds is None else scorer
        by = None if scorer is None else self._scored_by(scorer, X, y, weight, folds)
        with settings.grid_as_given(), columns_named(self, given, rows), Watch(line, callbacks) as watch:
            fit = _core.fit(
                matrix, machines, settings, Cs, folds, seed=seed, weight=weight, scorer=by, watch=watch.if_any()
            )
        if fit.places is None:
            raise nothing_to_choose(fit.timed_out, settings.time_budget, scorer)
        self._look_at(fit)

        left_out = weight if folds == "loo" and scorer is None else None
        self._keep_paths(fit, [Cs * task.c_factor for task in machines.tasks], folds, left_out)
        gamma = fit.places[0] // len(Cs)
        chosen = float(self.gammas_[gamma])
        self.smallest_eigenvalue_ = fit.smallest_eigenvalues[gamma]
        self.gamma_ = None if settings.kernel in KERNELS_WITHOUT_GAMMA else chosen
        self._kernel: dict[str, Any] = {
            "kernel": settings.kernel,
            "gamma": chosen,
            "degree": settings.degree,
            "coef0": settings.coef0,
        }
        self._keep_basis(fit.nystrom(gamma), settings, X, rows)
        self._keep_model(fit, X, y, rows)
        self._learned = learned(machines, fit, self.C_)
        if training is not None:
            self._training = training
        self._keep_oof(fit, rows, n_rows)
        self._keep_probabilities(fit, rows, n_rows)
        self.fit_seconds_ = time.perf_counter() - started
        if callbacks is not None:
            callbacks.end()
        self._warn_of_shortfall(settings, len(fit.gammas_out_of_time))
        self._warn_of_indefinite(fit.smallest_eigenvalues, settings)
        self._warn_of_edge(fit, settings)
        return self

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """Recompute the certificate of the returned model from its data, in double precision.

        Nothing of the fit is trusted but the coefficients: kernel values are computed anew from X, and the objective, a
        lower bound of it, their gap and its rounding noise from these. With `low_rank`, the problem is the one of the
        landmarks, and its lower bound is found anew at `C_`.

        Parameters
        ----------
        X, y : array-like
            The data of the fit.
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the fit.

        Returns
        -------
        Certificate
            A named tuple (primal, dual, gap, noise): numbers, or for several machines or quantiles arrays with an entry
            for each.
        """
        return verified(self, X, y, sample_weight)

    def path_table(self) -> str:
        """The path as text, one line a C (and γ, if several were tried); a star marks the chosen one.

        A line has the mean score ± its standard error over the folds, the number of support vectors of the
        refit, and the worst relative duality gap and the statuses among the folds and the refit.
        """
        check_is_fitted(self)
        n_gammas = len(self.gammas_)
        gammas = None if n_gammas == 1 else np.repeat(self.gammas_, self._n_Cs)
        tables = []
        for grid, scores, gaps, status, n_support, best in self._by_table():
            Cs = np.tile(grid, n_gammas)
            scores, gaps, status = (array.reshape(-1, len(Cs)) for array in (scores, gaps, status))
            of_models = scores, gaps, status, n_support.ravel()
            tables.append(path_table(Cs, gammas, *of_models, int(best), self._fold_weights))
        return "\n".join(self._parts.headed(k, "\n", table) for k, table in enumerate(tables))

    @property
    def best_params_(self) -> dict[str, Any]:
        """The chosen C, and γ if several were tried, as ``set_params`` takes them."""
        check_is_fitted(self)
        if np.ndim(self.C_) > 0:
            raise AttributeError(
                f"best_params_ is there where one C was chosen, but this {type(self).__name__} has {len(self.C_)}: "
                "C_ holds them"
            )
        gamma = {"gamma": self.gamma_} if len(self.gammas_) > 1 else {}
        return {"Cs": self.C_, **gamma, **({} if self.lambdas is None else {"lambdas": None})}

    @property
    def coef_(self) -> npt.NDArray[np.float64]:
        """With the linear kernel, the coefficients of the features, a line a machine: f = coef_ · x + intercept_."""
        check_is_fitted(self)
        if self._kernel["kernel"] != "linear":
            raise AttributeError(
                f"coef_ is there with kernel='linear' only; this {type(self).__name__} was fitted with "
                f"kernel={self._kernel['kernel']!r}"
            )
        return _core.plane(self.support_vectors_, self.dual_coef_, self.intercept_, self._centre)[0]

    # The point that rows of a linear kernel were centred at, and the values of all machines there; None: they were not.
    _centre: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None = None

    def _make_machines(self, y: npt.NDArray[Any], weight: Weights | None, settings: Settings) -> Machines:
        """The machines that learn these targets. Keeps what decodes predictions."""
        raise NotImplementedError

    def _stand_in(self, values: npt.NDArray[np.float64], maps: Callable[[], Maps]) -> Any:
        """An estimator that answers with these out-of-fold values."""
        raise NotImplementedError

    def _scored_by(self, scorer: Scorer, X: Any, y: Any, weight: Weights | None, folds: Folds) -> HeldOut:
        """The scorer, with the data it sees: all machines are one model."""
        return HeldOut(X, y, weight, folds, scorer, self._stand_in)

    def _check_parameters(self) -> None:
        """Refuse, before any work, parameters that only this estimator has."""
        return

    def _check_folds(self, machines: Machines, folds: Folds, settings: Settings) -> None:
        """Refuse, before any work, folds that the fit cannot use."""
        if settings.low_rank is None:
            return
        others = "solver='auto', 'newton' or 'spectral'"
        for asked, instead in (
            (folds == "loo" and "cv='loo'", "folds, such as cv=10"),
            (settings.solver in ("active-set", "closed-form") and f"solver={settings.solver!r}", others),
        ):
            if asked:
                raise ValueError(
                    f"{asked} needs the whole kernel matrix, which low_rank=True does without: use {instead}"
                )

    def _look_at(self, fit: _core.Fit) -> None:
        """All models of a fit, of which only the chosen one is kept."""
        return

    def _keep_probabilities(self, fit: _core.Fit, rows: Any, n_rows: int) -> None:
        """Probabilities of the held-out rows, and what predicts others, for estimators that have them."""
        return

    def _decision_values(self, X: Any) -> npt.NDArray[np.float64]:
        """Values f(x) = Σᵢ βᵢ k(xᵢ, x) + b, shape (n_samples, n_losses)."""
        if "_kernel" not in vars(self):  # asking scikit-learn takes longer than the prediction of a row
            check_is_fitted(self)
        rows = self._checked_rows(X)
        try:
            return self._expansion(rows)
        except ValueError as error:
            raise named(error, self, X) from None

    def _expansion(self, X: Any, columns: Any = None) -> npt.NDArray[np.float64]:
        """Values f of rows; `columns` are the support vectors' in a precomputed matrix, unless it has all."""
        X = self._scaled(X)
        if self._kernel["kernel"] == "precomputed":
            if self._function is None:
                X = X[:, self.support_ if columns is None else columns]
            else:
                X = called(self._function, X, self.support_vectors_)
        vectors = np.empty((0, 0)) if self._kernel["kernel"] == "precomputed" else self.support_vectors_
        threads = n_threads(self.n_jobs)
        of_machines = vectors, self.dual_coef_, self.intercept_
        return _core.decision(
            X, *of_machines, **self._kernel, centre=self._centre, device=self.device, n_threads=threads
        )

    def _scaled(self, X: Any) -> Any:
        """The rows as the model sees them."""
        return scaled(X, *self._scaling) if hasattr(self, "_scaling") else X

    def _checked_rows(self, X: Any) -> Any:
        return checked_rows(self, X)

    def _checked_training(self, X: Any, y: Any, reset: bool = True) -> Any:
        return checked_training(self, X, y, reset=reset)

    def _randomised(self, cv: Any, X: Any, y: Any, groups: Any) -> tuple[Folds, int]:
        """Folds, and the seed of the bandwidth rule, both from `random_state`."""
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        # An integer goes to the splitter itself, so that the folds can be had again without us.
        splitter_state = self.random_state if isinstance(self.random_state, Integral) else rng
        return make_folds(cv, X, y, groups, self._splitter, splitter_state), seed

    def _is_precomputed(self) -> bool:
        """Whether X of a fit is the kernel matrix: not so for a callable kernel, whose matrix only Rust sees as X."""
        return is_matrix(self.kernel)

    def _keep_basis(self, basis: _core.Nystrom | None, settings: Settings, X: Any, rows: Any) -> None:
        if basis is not None and settings.low_rank is not None:
            indices = basis.indices
            self.landmark_indices_ = indices if indices is None or rows is None else rows[indices]
            self.landmarks_ = landmark_rows(basis, settings.low_rank.landmarks, None if self._is_precomputed() else X)
            self.rank_ = len(basis.spectrum)
            self.approximation_ = Approximation.of(basis)

    def _keep_paths(self, fit: _core.Fit, grids: list[Grid], folds: Folds, weight: Weights | None) -> None:
        self.Cs_ = np.array(grids) if self._parts.has_own_grids else grids[0]
        self.gammas_ = fit.gammas
        gaps, status = fit.gaps, np.array(_core.STATUS_NAMES)[fit.status]
        self.gaps_, self.gap_noise_, self.status_ = (self._laid_out(of) for of in (gaps, fit.gap_noise, status))
        # A start that is optimal took one look.
        self.n_iter_ = self._laid_out(np.maximum(fit.n_iter, status != NOT_RUN))
        self.n_support_path_ = self._laid_out(fit.n_support)
        self.solver_, self.timed_out_ = fit.solver, fit.timed_out
        self.gram_bytes_, self.planned_bytes_ = fit.gram_bytes, fit.planned_bytes
        self.kernel_seconds_, self.path_seconds_ = fit.kernel_seconds, fit.path_seconds
        self.scores_ = self._by_gamma(np.array(fit.scores) if self._parts.has_choices else fit.scores[0])
        self._split_columns = folds != "loo"
        self.__dict__.pop("fold_weights_", None)  # of an earlier fit
        if weight is not None:
            self.fold_weights_ = weight
        results, places = self._tables(), fit.places or []
        chosen = [float(grid[place % self._n_Cs]) for grid, place in zip(grids, places, strict=True)]
        best_scores = [float(of["mean_test_score"][place]) for of, place in zip(results, places, strict=False)]
        has_choices = self._parts.has_choices
        self.cv_results_ = results if has_choices else results[0]
        self.best_index_: Any = np.array(places) if has_choices else places[0]
        self.best_score_: Any = np.array(best_scores) if has_choices else best_scores[0]
        self.C_: Any = np.array(chosen) if has_choices or self._parts.has_own_grids else chosen[0]

    def _tables(self) -> list[dict[str, Any]]:
        """`cv_results_` of each machine that chooses, or of all, from the other attributes."""
        gammas = None if len(self.gammas_) == 1 else np.repeat(self.gammas_, self._n_Cs)
        grids = [np.tile(grid, len(self.gammas_)) for grid in np.atleast_2d(self.Cs_)]
        n_models, n_machines = len(grids[0]), len(self._parts.names) or 1
        gaps, status = (array.reshape(n_machines, -1, n_models) for array in (self.gaps_, self.status_))
        scores = self.scores_.reshape(n_machines if self._parts.has_choices else 1, -1, n_models)
        if not self._parts.has_own_grids:
            grids *= n_machines
        if self._parts.is_joint:  # the gap of one model is the worst of its machines
            not_run, short = status == NOT_RUN, status != "converged"
            first_short = np.where(not_run.any(axis=0), not_run.argmax(axis=0), short.argmax(axis=0))
            gaps, status = gaps.max(axis=0)[None], np.take_along_axis(status, first_short[None], axis=0)
        weight, split_columns, by_lambda = self._fold_weights, self._split_columns, self.lambdas is not None
        return [
            cv_results(*table, gammas, weight=weight, split_columns=split_columns, by_lambda=by_lambda)
            for table in zip(scores, gaps, status, grids, strict=not self._parts.is_joint)
        ]

    def _keep_model(self, fit: _core.Fit, X: Any, y: Any, rows: Any) -> None:
        self.lambdas_ = 1.0 / (2.0 * X.shape[0] * self.Cs_)
        self.lambda_ = 1.0 / (2.0 * X.shape[0] * self.C_)
        coef = fit.coef
        if hasattr(self, "landmarks_"):
            indices = self.landmark_indices_
            self.support_ = np.empty(0, dtype=np.int64) if indices is None else indices.copy()
            self.support_vectors_, self.dual_coef_ = self.landmarks_, coef
        else:
            support = np.flatnonzero(coef.any(axis=0))
            self.support_ = support if rows is None else rows[support]
            self.support_vectors_ = np.empty((0, 0)) if self._is_precomputed() else X[support]
            self.dual_coef_ = np.ascontiguousarray(coef[:, support])  # as predictions read it
        self._centre, self.intercept_ = fit.centre, fit.intercepts
        if self._centre is not None:  # f = coef_ · x + intercept_ to the last digits that these have
            _, self.intercept_ = _core.plane(self.support_vectors_, self.dual_coef_, fit.intercepts, self._centre)
        places = np.array(fit.places)
        chosen = np.arange(len(places)), -1, places
        self.objective_ = self._parts.joined(fit.primal[chosen].tolist())
        self.dual_objective_ = self._parts.joined(fit.dual[chosen].tolist())

    def _keep_oof(self, fit: _core.Fit, rows: Any, n_rows: int) -> None:
        """Out-of-fold values, NaN for rows of weight 0."""
        self.oof_decision_ = self._parts.joined(spread(values, rows, n_rows) for values in fit.held_out.T.copy())
        if not self.keep_path:
            return
        paths = []
        for m, status in enumerate(fit.status):
            path = np.full((len(fit.held_out), status.shape[-1]), np.nan)
            # What was not run takes no time.
            for k in np.flatnonzero((status != _core.STATUS_NAMES.index(NOT_RUN)).any(axis=0)).tolist():
                path[:, k] = fit.out_of_fold(k, m)
            paths.append(path)
        self.oof_path_ = self._by_gamma(self._parts.joined(spread(path, rows, n_rows) for path in paths))

    def _laid_out(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """An attribute, from an array of shape (n_machines, ..., n_places)."""
        return self._by_gamma(array if self._parts.has_axis else array[0])

    def _by_gamma(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The last axis as γ × C, if several γ were tried."""
        n_gammas = len(self.gammas_)
        return array if n_gammas == 1 else array.reshape(*array.shape[:-1], n_gammas, self._n_Cs)

    @property
    def _n_Cs(self) -> int:
        return int(self.Cs_.shape[-1])

    @property
    def _fold_weights(self) -> Weights | None:
        """How much each fold counts in the mean of `scores_`; None: all the same."""
        return getattr(self, "fold_weights_", None)

    def _by_table(self) -> Iterable[tuple[Any, ...]]:
        """(C's, scores, gaps, statuses, numbers of support vectors, chosen place) of each table: a machine, or all."""
        attributes = [self.scores_, self.gaps_, self.status_, self.n_support_path_, self.best_index_]
        if self._parts.is_joint:
            n_models = self._n_Cs * len(self.gammas_)
            gaps, status, n_support = (array.reshape(-1, n_models) for array in attributes[1:4])
            return [(np.atleast_2d(self.Cs_)[0], self.scores_, gaps, status, n_support.max(axis=0), self.best_index_)]
        tables = list(self._parts.each(*attributes))
        grids = self.Cs_ if self._parts.has_own_grids else [self.Cs_] * len(tables)
        return [(grid, *table) for grid, table in zip(grids, tables, strict=True)]

    def _warn_of_unused_landmarks(self, settings: Settings) -> None:
        names = [name for name in ("landmarks", "n_landmarks", "rank") if is_changed(self, name)]
        if names and settings.low_rank is None and not self.low_rank:
            have = "has" if len(names) == 1 else "have"
            warnings.warn(
                f"{' and '.join(names)} {have} no effect without low_rank=True, in the constructor or in fit",
                UserWarning,
                stacklevel=5,
            )

    def _warn_of_shortfall(self, settings: Settings, n_untried: int) -> None:
        budget = settings.time_budget if self.timed_out_ else None
        untried, messages = (n_untried, len(self.gammas_) + n_untried), []
        of_tables = self.gap_noise_ if self._parts.has_choices else [self.gap_noise_]
        for k, ((grid, _, gaps, status, _, best), noise) in enumerate(zip(self._by_table(), of_tables, strict=True)):
            Cs = np.tile(grid, len(self.gammas_))
            gaps, noise, status = (array.reshape(-1, len(Cs)) for array in (gaps, noise, status))
            message = shortfall(
                gaps, noise, status, Cs, int(best), tol=settings.tol, time_budget=budget, untried=untried
            )
            if message is not None:
                messages.append(self._parts.headed(k, ": ", message))
        if messages:
            warnings.warn("\n".join(messages), ConvergenceWarning, stacklevel=5)

    def _warn_of_edge(self, fit: _core.Fit, settings: Settings) -> None:
        messages = []
        places = fit.places or []
        for k, ((grid, *_), scores) in enumerate(zip(self._by_table(), fit.scores, strict=True)):
            counted = FoldScores.counted(scores, self._fold_weights)
            message = edge(counted, places[k], grid, self.gammas_, settings)
            if message is not None:
                messages.append(self._parts.headed(k, ": ", message))
        if messages:
            warnings.warn("\n".join(messages), GridEdgeWarning, stacklevel=5)

    def _warn_of_indefinite(self, eigenvalues: list[float | None], settings: Settings) -> None:
        low_rank = settings.low_rank is not None
        message = indefinite(settings.kernel, eigenvalues, self.gammas_.tolist(), settings.coef0, low_rank)
        if message is not None:
            warnings.warn(message, IndefiniteKernelWarning, stacklevel=5)
