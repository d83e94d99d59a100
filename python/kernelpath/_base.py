"""What every estimator shares: parameters in, one call into Rust, attributes out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from contextlib import nullcontext
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelpath import _core
from kernelpath._folds import Folds, make_folds
from kernelpath._progress import ProgressLine
from kernelpath._results import path_table, shortfall
from kernelpath._scoring import make_scorer
from kernelpath._settings import Grid, Loss, Settings, n_threads
from kernelpath._tuning import HeldOut, Tuned, check_tunable

KERNELS_WITHOUT_GAMMA = ("linear", "precomputed")

_Self = TypeVar("_Self", bound="_KernelPathBase")


class _KernelPathBase(BaseEstimator):
    """What every estimator shares: parameters, grid, folds, the call into Rust, attributes and warnings.

    A subclass names its loss (:meth:`_losses`), encodes targets (:meth:`_encode`), says what a scorer sees
    (:meth:`_stand_in`), and predicts.
    """

    _splitter: type = StratifiedKFold

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
        device: str = "cpu",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1_000_000,
        time_budget: float | None = None,
        dtype: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
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
        self.device = device
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_budget = time_budget
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def fit(self: _Self, X: Any, y: Any, groups: Any = None) -> _Self:
        """Train and tune: every C on every fold, and on all rows; keep the model of the chosen C.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the symmetric matrix K(X, X) of shape (n_samples, n_samples), dense, when
            ``kernel="precomputed"``. float32 and float64 arrays are read in place, in any memory order, and so is a
            sparse matrix in CSR format; other sparse formats are converted to it. Nothing sparse is made dense.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), optional
            Groups for the splitter passed as `cv`.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        settings, scorer, losses = Settings.of(self), make_scorer(self.scoring), self._losses()
        X, y = self._checked_training(X, y)
        targets = self._encode(y)
        Cs = settings.Cs(len(y))
        folds, seed = self._randomised(X, y, groups)
        check_tunable(folds, len(Cs), len(y), settings.selection, scorer)
        kernel = self._resolved_kernel(settings, X, seed)

        with ProgressLine(type(self).__name__) if self.verbose else nullcontext() as progress:
            paths = _core.fit_paths(
                X,
                targets,
                losses=losses if isinstance(losses, list) else [losses],
                solver=settings.solver,
                **kernel,
                cs=Cs,
                folds=folds,
                tol=settings.tol,
                max_iter=settings.max_iter,
                dtype=settings.dtype,
                n_threads=settings.n_threads,
                time_budget=settings.time_budget,
                progress=progress,
            )

        held_out = HeldOut(X, y, folds, scorer, self._stand_in)
        tuned = [Tuned.of(path, Cs, held_out, settings) for path in paths]
        self._has_loss_axis = isinstance(losses, list)
        self._keep_paths(paths, tuned, Cs)
        self._keep_choice(tuned)
        self._keep_model(tuned, kernel, X, targets)
        self.fit_seconds_ = time.perf_counter() - started
        self._warn_of_shortfall(settings)
        return self

    def path_table(self) -> str:
        """The path as text, one line a C; a star marks the chosen one.

        A line has the mean score ± its standard error over the folds, the number of support vectors of the
        refit, and the worst relative duality gap and the statuses among the folds and the refit.
        """
        check_is_fitted(self)
        columns = (self.scores_, self.gaps_, self.status_, self.n_support_path_, self.best_index_)
        tables = (path_table(self.Cs_, *of_loss) for of_loss in self._by_loss(*columns))
        return "\n".join(self._headed(k, "\n", table) for k, table in enumerate(tables))

    def _losses(self) -> Loss | list[Loss]:
        """The loss; or a list of them, fitted on one kernel matrix, whose attributes then have a leading axis."""
        raise NotImplementedError

    def _encode(self, y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Targets as the loss wants them; keeps what decodes predictions."""
        raise NotImplementedError

    def _stand_in(self, values: npt.NDArray[np.float64]) -> Any:
        """An estimator that answers with these out-of-fold values."""
        raise NotImplementedError

    def _heading(self, k: int) -> str:
        """What sets the k-th of several losses apart."""
        return ""

    def _decision_values(self, X: Any) -> npt.NDArray[np.float64]:
        """Values f(x) = Σᵢ βᵢ k(xᵢ, x) + b, shape (n_samples, n_losses)."""
        check_is_fitted(self)
        return self._expansion(_readable(_numeric(self, X, reset=False)))

    def _expansion(self, X: Any) -> npt.NDArray[np.float64]:
        if self._kernel["kernel"] == "precomputed":
            X = X[:, self.support_]
        threads = n_threads(self.n_jobs)
        return np.column_stack(
            [
                _core.decision(X, self.support_vectors_, beta, float(b), **self._kernel, n_threads=threads)
                for beta, b in zip(self.dual_coef_, self.intercept_, strict=True)
            ]
        )

    def _checked_training(self, X: Any, y: Any) -> tuple[Any, Any]:
        X, y = _numeric(self, X, y, reset=True)
        return _readable(X), y

    def _randomised(self, X: Any, y: Any, groups: Any) -> tuple[Folds, int]:
        """Folds, and the seed of the bandwidth rule, both from `random_state`."""
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        # An integer goes to the splitter itself, so that the folds can be had again without us.
        splitter_state = self.random_state if isinstance(self.random_state, Integral) else rng
        if groups is not None:
            check_consistent_length(X, groups)
        return make_folds(self.cv, X, y, groups, self._splitter, splitter_state), seed

    def _resolved_kernel(self, settings: Settings, X: Any, seed: int) -> dict[str, Any]:
        gamma = settings.gamma
        if settings.kernel in KERNELS_WITHOUT_GAMMA:
            self.gamma_, gamma = None, 1.0
        else:
            if isinstance(gamma, str):
                gamma = _core.bandwidth(X, settings.kernel, gamma, seed)
            self.gamma_ = gamma
        return {
            "kernel": settings.kernel,
            "gamma": gamma,
            "degree": settings.degree,
            "coef0": settings.coef0,
        }

    def _keep_paths(self, paths: list[_core.PathFit], tuned: list[Tuned], Cs: Grid) -> None:
        self.Cs_ = Cs
        self.gaps_ = self._joined(t.gaps for t in tuned)
        self.status_ = self._joined(t.status for t in tuned)
        self.n_iter_ = self._joined(t.n_iter for t in tuned)
        self.n_support_path_ = self._joined(t.n_support for t in tuned)
        self.oof_path_ = self._joined(t.oof for t in tuned)
        self.lambdas_ = 1.0 / (2.0 * len(tuned[0].oof) * Cs)
        self.solver_ = paths[0].solver
        self.timed_out_ = any(path.timed_out for path in paths)
        self.gram_bytes_ = paths[0].gram_bytes
        self.kernel_seconds_ = paths[0].kernel_seconds
        self.path_seconds_ = paths[0].path_seconds

    def _keep_choice(self, tuned: list[Tuned]) -> None:
        self.scores_ = self._joined(t.scores for t in tuned)
        self.cv_results_ = [t.cv_results for t in tuned] if self._has_loss_axis else tuned[0].cv_results
        self.best_index_ = self._joined(t.best for t in tuned)
        self.best_score_ = self._joined(t.best_score for t in tuned)
        self.C_ = self._joined(float(self.Cs_[t.best]) for t in tuned)
        self.lambda_ = self._joined(float(self.lambdas_[t.best]) for t in tuned)
        self.oof_decision_ = self._joined(t.oof[:, t.best].copy() for t in tuned)

    def _keep_model(self, tuned: list[Tuned], kernel: dict[str, Any], X: Any, targets: npt.NDArray[np.float64]) -> None:
        coef = np.array([t.coef for t in tuned])
        self._kernel = kernel
        self.support_ = np.flatnonzero(coef.any(axis=0))
        precomputed = kernel["kernel"] == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if precomputed else X[self.support_]
        self.dual_coef_ = coef[:, self.support_]
        self.intercept_ = np.array([t.intercept for t in tuned])
        self.objective_ = self._joined(t.objective for t in tuned)
        self.dual_objective_ = self._joined(t.dual_objective for t in tuned)

    def _joined(self, values: Iterable[Any]) -> Any:
        """The value of the one loss, or those of several losses along a leading axis."""
        values = list(values)
        return np.array(values) if self._has_loss_axis else values[0]

    def _by_loss(self, *attributes: Any) -> Iterable[tuple[Any, ...]]:
        """The attributes of one loss after the other: undoes :meth:`_joined`."""
        return zip(*attributes, strict=True) if self._has_loss_axis else [attributes]

    def _headed(self, k: int, separator: str, text: str) -> str:
        return separator.join(filter(None, [self._heading(k), text]))

    def _warn_of_shortfall(self, settings: Settings) -> None:
        budget = settings.time_budget if self.timed_out_ else None
        messages = []
        for k, (gaps, status, best) in enumerate(self._by_loss(self.gaps_, self.status_, self.best_index_)):
            message = shortfall(gaps, status, self.Cs_, best, tol=settings.tol, time_budget=budget)
            if message is not None:
                messages.append(self._headed(k, ": ", message))
        if messages:
            warnings.warn("\n".join(messages), ConvergenceWarning, stacklevel=3)


def _numeric(estimator: BaseEstimator, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
    """`validate_data`, which leaves NaN and inf to Rust (it says where they are) and places strings."""
    if sparse.issparse(X) and estimator.kernel == "precomputed":
        raise TypeError(f"a precomputed kernel matrix must be dense, got a sparse {type(X).__name__}; pass K.toarray()")
    try:
        return validate_data(
            estimator, X, y, reset=reset, dtype="numeric", ensure_all_finite=False, accept_sparse="csr"
        )
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        place = _first_text(X)
        raise ValueError(f"X must hold numbers, but {place or error}; encode text columns first") from error


def _readable(X: Any) -> Any:
    """`X` as Rust reads it: float32 or float64, and if sparse, canonical: indices ascending, none twice."""
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return _canonical(X) if sparse.issparse(X) else X


def _canonical(X: Any) -> Any:
    # A matrix that shares the arrays: what scipy notes on it, and what it sorts, is not the caller's.
    kind = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
    arrays = tuple(np.ascontiguousarray(array) for array in (X.data, X.indices, X.indptr))
    shared = kind(arrays, shape=X.shape)
    shared.check_format(full_check=True)  # sorting trusts the indices
    if shared.has_canonical_format:
        return shared
    shared = shared.copy()
    shared.sum_duplicates()
    return shared


def _first_text(X: Any) -> str | None:
    for row, values in enumerate(np.asarray(X, dtype=object)):
        for column, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                return f"row {row}, column {column} is {value!r}"
    return None
