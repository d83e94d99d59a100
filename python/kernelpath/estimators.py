"""scikit-learn estimators over the Rust core: parameters in, one call, attributes out."""

from __future__ import annotations

import time
import warnings
from contextlib import nullcontext
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelpath import _core
from kernelpath._folds import Folds, make_folds
from kernelpath._progress import ProgressLine
from kernelpath._results import NOT_RUN, cv_results, path_table, shortfall
from kernelpath._scoring import OutOfFold, Scorer, make_scorer, predicted_labels, score_folds
from kernelpath._settings import Grid, Settings, n_threads

KERNELS_WITHOUT_GAMMA = ("linear", "precomputed")

_Self = TypeVar("_Self", bound="_KernelPathBase")


class _KernelPathBase(BaseEstimator):
    """What every estimator shares: parameters, grid, folds, the call into Rust, attributes and warnings.

    A subclass encodes targets (:meth:`_encode`), names what a scorer sees (:meth:`_stand_in`), and predicts.
    """

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
        return tags

    def fit(self: _Self, X: Any, y: Any, groups: Any = None) -> _Self:
        """Train and tune: every C on every fold, and on all rows; keep the model of the chosen C.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, or the symmetric matrix K(X, X) of shape (n_samples, n_samples) when
            ``kernel="precomputed"``. float32 and float64 arrays are read in place, in any memory order.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), optional
            Groups for the splitter passed as `cv`.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        settings, scorer = Settings.of(self), make_scorer(self.scoring)
        X, y = self._checked_training(X, y)
        targets = self._encode(y)
        Cs = settings.Cs(len(y))
        folds, seed = self._randomised(X, y, groups)
        _check_tunable(folds, len(Cs), len(y), settings.selection, scorer)
        kernel = self._resolved_kernel(settings, X, seed)

        with ProgressLine(type(self).__name__) if self.verbose else nullcontext() as progress:
            path = _core.fit_path(
                X,
                targets,
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

        self._keep_path(path, Cs)
        self._score_and_choose(path, folds, settings, scorer, X, y)
        self._keep_model(path, kernel, X)
        self.fit_seconds_ = time.perf_counter() - started
        self._warn_of_shortfall(settings)
        return self

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Decision values f(x) = Σᵢ βᵢ k(xᵢ, x) + b.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = _floating(_numeric(self, X, reset=False))
        if self._kernel["kernel"] == "precomputed":
            X = X[:, self.support_]
        return _core.decision(
            X,
            self.support_vectors_,
            self.dual_coef_[0],
            float(self.intercept_[0]),
            **self._kernel,
            n_threads=n_threads(self.n_jobs),
        )

    def path_table(self) -> str:
        """The path as text, one line a C; a star marks the chosen one.

        A line has the mean score ± its standard error over the folds, the number of support vectors of the
        refit, and the worst relative duality gap and the statuses among the folds and the refit.
        """
        check_is_fitted(self)
        return path_table(self.scores_, self.gaps_, self.status_, self.Cs_, self.n_support_path_, self.best_index_)

    def _encode(self, y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Targets as the loss wants them; keeps what decodes predictions."""
        raise NotImplementedError

    def _stand_in(self, decision: npt.NDArray[np.float64]) -> Any:
        """An estimator that answers with these out-of-fold decision values."""
        raise NotImplementedError

    def _checked_training(self, X: Any, y: Any) -> tuple[Any, Any]:
        X, y = _numeric(self, X, y, reset=True)
        return _floating(X), y

    def _randomised(self, X: Any, y: Any, groups: Any) -> tuple[Folds, int]:
        """Folds, and the seed of the bandwidth rule, both from `random_state`."""
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        # An integer goes to the splitter itself, so that the folds can be had again without us.
        splitter_state = self.random_state if isinstance(self.random_state, Integral) else rng
        if groups is not None:
            check_consistent_length(X, groups)
        return make_folds(self.cv, X, y, groups, splitter_state), seed

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

    def _keep_path(self, path: _core.PathFit, Cs: Grid) -> None:
        self.Cs_ = Cs
        self.gaps_ = path.gaps
        self.status_ = np.array(_core.STATUS_NAMES)[path.status]
        self.n_iter_ = np.maximum(path.n_iter, self.status_ != NOT_RUN)  # a start that is optimal took one look
        self.n_support_path_ = np.array([np.count_nonzero(path.coef(j)) for j in range(len(Cs))])
        self.oof_path_ = path.oof_matrix()
        self.lambdas_ = 1.0 / (2.0 * len(self.oof_path_) * Cs)
        self.timed_out_ = path.timed_out
        self.gram_bytes_ = path.gram_bytes
        self.kernel_seconds_ = path.kernel_seconds
        self.path_seconds_ = path.path_seconds

    def _score_and_choose(
        self, path: _core.PathFit, folds: Folds, settings: Settings, scorer: Scorer | None, X: Any, y: Any
    ) -> None:
        if scorer is None or folds is None:
            self.scores_ = path.scores
        elif folds == "loo":
            # A single row cannot be ranked: the scorer sees all rows at once.
            self.scores_ = score_folds(scorer, [(np.arange(len(y)), self.oof_path_)], X, y, self._stand_in)
        else:
            held_out = ((test, path.oof(k)) for k, (_, test) in enumerate(folds))
            self.scores_ = score_folds(scorer, held_out, X, y, self._stand_in)
        refitted = self.status_[-1] != NOT_RUN
        candidates = np.where(refitted, self.scores_, np.nan)
        if not (refitted & np.isfinite(candidates).all(axis=0)).any():
            raise _nothing_to_choose(self, settings.time_budget)
        best = 0 if folds is None else _core.select(candidates, self.Cs_, settings.selection)
        self.cv_results_ = cv_results(self.scores_, self.gaps_, self.status_, self.Cs_, folds != "loo")
        self.best_index_ = best
        self.best_score_ = float(self.cv_results_["mean_test_score"][best])
        self.C_ = float(self.Cs_[best])
        self.lambda_ = float(self.lambdas_[best])
        self.oof_decision_ = self.oof_path_[:, best].copy()

    def _keep_model(self, path: _core.PathFit, kernel: dict[str, Any], X: Any) -> None:
        best = self.best_index_
        coef = path.coef(best)
        self._kernel = kernel
        self.support_ = np.flatnonzero(coef)
        precomputed = kernel["kernel"] == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if precomputed else X[self.support_]
        self.dual_coef_ = coef[np.newaxis, self.support_]
        self.intercept_ = path.intercepts[best : best + 1].copy()
        self.objective_ = float(path.primal[-1, best])
        self.dual_objective_ = float(path.dual[-1, best])

    def _warn_of_shortfall(self, settings: Settings) -> None:
        message = shortfall(
            self.gaps_,
            self.status_,
            self.Cs_,
            self.best_index_,
            tol=settings.tol,
            time_budget=settings.time_budget if self.timed_out_ else None,
        )
        if message is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=3)


class KernelSVC(ClassifierMixin, _KernelPathBase):
    """Kernel support vector classifier, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ max(0, 1 − yᵢ fᵢ)  +  ½ βᵀKβ,     f = Kβ + b,

    on one kernel matrix K shared by all folds, all C's and the refit. A duality gap, computed apart from the solver,
    bounds how far each model is from its optimum.

    Parameters
    ----------
    kernel : str, default="rbf"
        "rbf" exp(−γ‖x−z‖²), "laplacian" exp(−γ‖x−z‖₁), "poly" (γ⟨x,z⟩ + coef0)^degree, "linear" ⟨x,z⟩,
        "sigmoid" tanh(γ⟨x,z⟩ + coef0), "matern32" and "matern52" of length scale 1/√(2γ), or "precomputed".
    gamma : float, "sigest" or "scale", default="sigest"
        Bandwidth γ. "sigest" takes it from the distances of random pairs of rows (as kernlab and TorchKM do);
        "scale" is 1 / (n_features · Var(X)).
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant of the "poly" and "sigmoid" kernels.
    Cs : int, float or sequence of float, default=50
        Values of C. An int is the length of a logarithmic grid from 1e-3 to 1e3, a float is one value; the order
        of a sequence is kept in all results.
    lambdas : float or sequence of float, optional
        Values of λ in place of `Cs`: C = 1 / (2 n_samples λ).
    cv : int, splitter, iterable, "loo" or None, default=5
        An int is the number of stratified, shuffled folds; any scikit-learn splitter or iterable of (train, test)
        rows is taken as it is; "loo" is exact leave-one-out. None fits without cross-validation, for one C.
    scoring : str, callable or None, default=None
        None is accuracy; else a scorer of scikit-learn, by name or as ``callable(estimator, X, y)``, applied to
        the out-of-fold decision values of each fold (with "loo": of all rows at once).
    selection : {"best", "1se"}, default="best"
        The C of the best mean score, ties going to the smallest; or the smallest C within one standard error of it.
    device : {"cpu"}, default="cpu"
        Where the linear algebra runs.
    solver : {"auto", "active-set"}, default="auto"
        How each problem is solved.
    tol : float, default=1e-6
        Relative duality gap each model has to reach.
    max_iter : int, default=1000000
        Most solver steps for one model.
    time_budget : float, optional
        Seconds after which the fit ends with the best model found and says what it left out.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the kernel matrix; all sums and the certificate are in float64. "auto" is float32, half the memory
        and twice the speed, unless the matrix is so close to singular that float32 would blur it ("linear", "poly",
        "sigmoid", smooth kernels of few features); a "precomputed" matrix keeps its own precision.
    n_jobs : int, optional
        Threads: None and -1 use all cores. Results do not depend on it. Within an outer parallel loop
        (``GridSearchCV(n_jobs=…)``) pass 1.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of "sigest". With an int, the folds of ``cv=k`` are those of
        ``StratifiedKFold(k, shuffle=True, random_state=random_state)``.
    verbose : int, default=0
        1 shows a live line of progress.

    Attributes
    ----------
    C_, lambda_, best_index_, best_score_ : float, float, int, float
        The chosen C, its λ, its place in `Cs_`, and its mean score.
    gamma_ : float or None
        The bandwidth used; None for kernels without one.
    Cs_, lambdas_ : ndarray of shape (n_Cs,)
        The path.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Scores of the held-out rows; NaN where not run.
    cv_results_ : dict
        Columns as in ``GridSearchCV``, with the gaps beside the scores.
    gaps_ : ndarray of shape (n_folds + 1, n_Cs)
        Relative duality gaps, (P − D) / max(abs(P), abs(D)); the last row is the refit.
    status_, n_iter_ : ndarray of shape (n_folds + 1, n_Cs)
        How each solve ended, and after how many steps.
    objective_, dual_objective_ : float
        The primal and dual values of the returned model; the optimum lies between them.
    oof_decision_, oof_path_ : ndarray of shape (n_samples,), (n_samples, n_Cs)
        Out-of-fold decision values at `C_` and at every C: the mean over the folds that held the row out.
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficients β of the support vectors.
    intercept_ : ndarray of shape (1,)
        Intercept b.
    support_, support_vectors_ : ndarray of shape (n_SV,), (n_SV, n_features)
        Rows with β ≠ 0; the vectors are empty when ``kernel="precomputed"``.
    n_support_ : ndarray of shape (2,)
        Support vectors of each class.
    n_support_path_ : ndarray of shape (n_Cs,)
        Support vectors of the refit at each C.
    classes_ : ndarray of shape (2,)
        Labels; a decision value > 0 means ``classes_[1]``.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Columns seen by `fit`.
    timed_out_ : bool
        Whether `time_budget` ended the fit.
    fit_seconds_, kernel_seconds_, path_seconds_, gram_bytes_ : float, float, float, int
        Time of the whole fit, of the kernel matrix and of the path; size of the kernel matrix.

    Examples
    --------
    >>> from kernelpath import KernelSVC
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(200, 5, random_state=0)
    >>> clf = KernelSVC(random_state=0).fit(X, y)
    >>> bool(clf.gaps_.max() <= 1e-6)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels: ``classes_[1]`` where the decision value is > 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return predicted_labels(self.decision_function(X), self.classes_)

    def _encode(self, y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        check_classification_targets(y)
        classes, index = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"KernelSVC separates 2 classes, but y has 1 class: {classes.tolist()}")
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y has "
                f"{len(classes)} classes, {_shown(classes)}. Wrap the estimator for now: "
                "sklearn.multiclass.OneVsRestClassifier(KernelSVC(...))"
            )
        self.classes_ = classes
        return np.where(index == 1, 1.0, -1.0)

    def _stand_in(self, decision: npt.NDArray[np.float64]) -> OutOfFold:
        return OutOfFold(decision, self.classes_)

    def _keep_model(self, path: _core.PathFit, kernel: dict[str, Any], X: Any) -> None:
        super()._keep_model(path, kernel, X)
        n_positive = np.count_nonzero(self.dual_coef_ > 0.0)
        self.n_support_ = np.array([len(self.support_) - n_positive, n_positive], dtype=np.int32)


def _numeric(estimator: BaseEstimator, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
    """`validate_data`, which leaves NaN and inf to Rust (it says where they are) and places strings."""
    try:
        return validate_data(estimator, X, y, reset=reset, dtype="numeric", ensure_all_finite=False)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        place = _first_text(X)
        raise ValueError(f"X must hold numbers, but {place or error}; encode text columns first") from error


def _floating(X: npt.NDArray[Any]) -> Any:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _first_text(X: Any) -> str | None:
    for row, values in enumerate(np.asarray(X, dtype=object)):
        for column, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                return f"row {row}, column {column} is {value!r}"
    return None


def _check_tunable(folds: Folds, n_Cs: int, n_rows: int, selection: str, scorer: Scorer | None) -> None:
    """Refuse, before any work, a choice of C that the scores could not support."""
    if folds is None and n_Cs > 1:
        raise ValueError(
            f"cv=None cannot choose among {n_Cs} values of C; pass one value, such as Cs=1.0, or folds, such as cv=5"
        )
    n_scores = n_rows if folds == "loo" else len(folds or ())
    if folds == "loo" and scorer is not None:
        n_scores = 1
    if folds is not None and selection == "1se" and n_scores < 2:
        raise ValueError("selection='1se' needs the scores of at least 2 folds; use selection='best'")


def _nothing_to_choose(estimator: Any, time_budget: float | None) -> Exception:
    if estimator.timed_out_:
        return TimeoutError(
            f"time_budget={time_budget:g} s ended before any C was both scored and fitted on all rows; "
            "raise it, or pass fewer Cs, folds or rows"
        )
    return ValueError(f"scoring={estimator.scoring!r} gave no finite score for any C")


def _shown(classes: npt.NDArray[Any], most: int = 10) -> str:
    return repr(classes[:most].tolist())[:-1] + (", ...]" if len(classes) > most else "]")
