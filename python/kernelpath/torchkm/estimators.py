"""TorchKM's estimators.

Each class translates its parameters, fits the estimator of kernelpath that solves the same problem, and answers under
TorchKM's names; the fitted estimator, with its certificates, is ``estimator_``.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from kernelpath import _core
from kernelpath._at_once import at_once
from kernelpath._calibration import Calibrator
from kernelpath._settings import _integer, choice, level, number
from kernelpath._shared import _inserted
from kernelpath.classifiers import KernelDWD, KernelLogistic, KernelSVC
from kernelpath.display import CalibrationBins, CalibrationDisplay, new_axes
from kernelpath.regressors import KernelQuantile
from kernelpath.torchkm._translation import as_numpy, device_of, fitted_path, folds_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TorchKMDWD", "TorchKMKQR", "TorchKMLogit", "TorchKMSVC"]

KERNELS = ("rbf", "linear", "poly", "precomputed")

PARAMETERS = """
kernel : {"rbf", "linear", "poly", "precomputed"}, default="rbf"
    "rbf" is exp(−2σ‖x−z‖²), "poly" (poly_gamma ⟨x,z⟩ + poly_coef0)^poly_degree.
nC, C_max, C_min : int, float, float, default=50, 1000.0, 0.001
    Length and ends of the logarithmic grid of C, from the largest to the smallest, where `Cs` is None.
Cs : array-like of shape (n_Cs,), optional
    Values of C, in any order.
cv : int, default=5
    Number of folds, shuffled by `random_state`.
foldid : array-like of shape (n_samples,), optional
    Number of the fold that holds each row out, as 1 to k; goes before `cv`.
tol : float, default=1e-05
    Relative duality gap each model has to reach.
device : str or torch.device, optional
    None and "auto" take a GPU if there is one, else the processor; "cuda", "cuda:1", "opencl" and "cpu" name a
    device. One that is not available is an error, where TorchKM would fall back.
rbf_sigma : float, optional
    Bandwidth σ, half of kernelpath's γ; taken from the distances of random pairs of rows where it is None.
poly_degree, poly_coef0, poly_gamma : int, float, float, default=3, 1.0, 1.0
    Constants of the "poly" kernel.
random_state : int, RandomState or None, default=None
    Seed of the folds and of the bandwidth.
store_path : bool, default=False
    Keep `pred_path_`, the out-of-fold values at every C, and `alpmat_path_`, the coefficients.
low_rank : bool, default=False
    Approximate the kernel (Nyström): time and memory then grow with the number of rows, not with its square.
num_landmarks, nys_k : int, default=2000, 1000
    With `low_rank`: landmarks, rows drawn at random, and the rank of the approximation.
n_jobs : int, optional
    Threads: None and -1 use all cores. Results do not depend on it. (TorchKM has no such parameter.)
"""

PROBABILITY = """
probability : bool, default=False
    Fit a sigmoid to the out-of-fold decision values, for `predict_proba` and `platt_plot`.
"""

TAU = """
tau : float, default=0.5
    Level of the quantile, in (0, 1).
"""

NO_EFFECT = """
max_iter, solver_gamma, is_exact, sigest_frac, {own} : object
    Have no effect: they steer what works otherwise here.
"""

ATTRIBUTES = """
estimator_ : estimator
    The fitted estimator of kernelpath.
best_C_, best_ind_ : float, int
    The chosen C, and its place in `Cs_`. Of equal scores the smallest C is chosen.
Cs_ : ndarray of shape (n_Cs,)
    The path.
alpha_ : ndarray of shape (n_samples,)
    Coefficients of all rows: with `low_rank`, of the landmarks among them.
intercept_ : float
    Intercept.
foldid_ : ndarray of shape (n_samples,)
    Number of the fold that held each row out.
converged_ : ndarray of shape (n_Cs,)
    Whether all models of a C reached `tol`.
n_iter_ : ndarray of shape (n_folds + 1, n_Cs)
    Steps of the solver, the refit last.
kernel_state_ : dict
    The bandwidth as "sigma", for the "rbf" kernel.
pred_path_ : ndarray of shape (n_samples, n_Cs) or None
    Out-of-fold values at every C, with ``store_path=True``.
alpmat_path_ : ndarray of shape (n_samples + 1, n_Cs) or None
    The intercept and below it the coefficients of all rows, at every C, with ``store_path=True``.
X_fit_ : ndarray or sparse matrix of shape (n_samples, n_features), or None
    The training rows, not copied; None when ``kernel="precomputed"``.
y_fit_original_ : ndarray of shape (n_samples,)
    The targets as given.
low_rank_landmark_indices_, num_landmarks_ : ndarray of shape (num_landmarks_,), int
    With `low_rank` only: the rows that are landmarks, and their number.
low_rank_basis_dim_, nys_k_ : int, int
    With `low_rank` only: the rank, under both of TorchKM's names.
n_samples_fit_, n_features_in_, feature_names_in_ : int, int, ndarray of str
    Rows and columns seen by `fit`.
"""

CLASSIFIER_ATTRIBUTES = """
classes_ : ndarray of shape (2,)
    Labels; a decision value > 0 means ``classes_[1]``.
cv_mis_ : ndarray of shape (n_Cs,)
    Share of held-out rows with a wrong label, the mean over the folds.
platt_ : Calibrator or None
    The map from decision values to probabilities of ``classes_[1]``, with ``probability=True``.
platt_scores_, platt_y_ : ndarray of shape (n_samples,) or None
    What it was fitted to: out-of-fold decision values at `best_C_`, and the labels.
"""
REGRESSOR_ATTRIBUTES = """
tau_ : float
    The level.
cv_loss_ : ndarray of shape (n_Cs,)
    Mean pinball loss of the held-out rows, the mean over the folds.
"""

# What `fit` sets.
LEARNED = frozenset(
    (
        *("estimator_", "X_fit_", "y_fit_original_", "foldid_", "Cs_", "best_C_", "best_ind_", "n_iter_", "converged_"),
        *("pred_path_", "alpmat_path_", "n_samples_fit_", "n_features_in_", "feature_names_in_", "alpha_"),
        *("intercept_", "kernel_state_", "classes_", "cv_mis_", "platt_", "platt_scores_", "platt_y_", "tau_"),
        *("cv_loss_", "low_rank_landmark_indices_", "num_landmarks_", "low_rank_basis_dim_", "nys_k_"),
    )
)

_Self = TypeVar("_Self", bound="_TorchKM")
_Class = TypeVar("_Class", bound=type)


def _documented(cls: _Class) -> _Class:
    """Put what the classes share in place of the lines ``{parameters}`` and ``{attributes}`` of the docstring."""
    if cls.__doc__ is not None:  # python -OO has none
        classifies = issubclass(cls, ClassifierMixin)
        unused = NO_EFFECT.format(own="platt_device" if classifies else "delta_len, mproj, KKTeps, KKTeps2")
        parameters = PARAMETERS + (PROBABILITY if classifies else TAU) + unused
        attributes = ATTRIBUTES + (CLASSIFIER_ATTRIBUTES if classifies else REGRESSOR_ATTRIBUTES)
        cls.__doc__ = _inserted(cls.__doc__, {"{parameters}": parameters, "{attributes}": attributes})
    return cls


class _TorchKM(BaseEstimator):
    """Parameters into kernelpath's words, one fit, results into TorchKM's."""

    _kind: type
    _splitter: type

    kernel: str
    nC: int  # noqa: N815 (TorchKM's name)
    Cs: Any
    C_max: float
    C_min: float
    cv: int
    foldid: Any
    tol: float
    device: Any
    rbf_sigma: float | None
    poly_degree: int
    poly_coef0: float
    poly_gamma: float
    random_state: Any
    store_path: bool
    low_rank: bool
    num_landmarks: int
    nys_k: int
    n_jobs: int | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @at_once(LEARNED)
    def fit(
        self: _Self,
        X: Any,
        y: Any,
        *,
        low_rank: bool | None = None,
        num_landmarks: int | None = None,
        nys_k: int | None = None,
    ) -> _Self:
        """Train and tune: every C on every fold, and on all rows; keep the model of the chosen C.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, or K(X, X) of shape (n_samples, n_samples) when ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Targets.
        low_rank : bool, optional
            Goes before the parameter of that name, for this fit; and so do
        num_landmarks, nys_k : int, optional
            the others.

        Returns
        -------
        self
        """
        X, y = as_numpy("X", X), as_numpy("y", y)
        self._check_targets(y)
        seed = self._seed()
        model = self._kind(**self._translated(seed))
        asked = self.low_rank if low_rank is None else low_rank
        model.set_params(low_rank=asked)
        if asked:
            n_landmarks = self.num_landmarks if num_landmarks is None else num_landmarks
            model.set_params(**self._landmarks(n_landmarks, self.nys_k if nys_k is None else nys_k))
        path = fitted_path(model, X, y) if self.store_path else None
        if path is None:
            model.fit(X, y)
        self.estimator_ = model
        self.X_fit_ = None if self.kernel == "precomputed" else X if sparse.issparse(X) else np.asarray(X)
        self.y_fit_original_ = np.array(column_or_1d(y))
        self._keep_path(model)
        self._keep_model(model, path)
        self._keep_low_rank(model)
        self._keep_own(model, self.y_fit_original_)
        self.foldid_ = self._fold_numbers(self.y_fit_original_, seed)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predicted labels, or predicted quantiles.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.estimator_.predict(as_numpy("X", X))

    def _check_targets(self, y: Any) -> None:
        """Refuse targets that this class does not take."""
        return

    def _keep_own(self, model: Any, y: npt.NDArray[Any]) -> None:
        """The results that not all classes have."""
        raise NotImplementedError

    def _translated(self, seed: int) -> dict[str, Any]:
        return {
            "kernel": choice("kernel", self.kernel, KERNELS),
            "gamma": self._gamma(),
            "degree": self.poly_degree,
            "coef0": self.poly_coef0,
            "Cs": self._grid(),
            "cv": self._folds(),
            "device": device_of(self.device),
            "tol": self.tol,
            "n_jobs": self.n_jobs,
            "random_state": seed,
        }

    @staticmethod
    def _landmarks(num_landmarks: Any, nys_k: Any) -> dict[str, Any]:
        n_landmarks = _integer("num_landmarks", num_landmarks, at_least=1)
        rank = min(_integer("nys_k", nys_k, at_least=1), n_landmarks)
        return {"landmarks": "uniform", "n_landmarks": n_landmarks, "rank": rank}

    def _gamma(self) -> float | str:
        """TorchKM's "rbf" is exp(−2σ‖x−z‖²)."""
        if self.kernel == "poly":
            return self.poly_gamma
        return "sigest" if self.rbf_sigma is None else 2.0 * number("rbf_sigma", self.rbf_sigma, above=0.0)

    def _grid(self) -> Any:
        if self.Cs is not None:
            return np.atleast_1d(as_numpy("Cs", self.Cs))
        ends = number("C_max", self.C_max, above=0.0), number("C_min", self.C_min, above=0.0)
        return np.geomspace(*ends, num=self.nC)

    def _folds(self) -> Any:
        if self.foldid is not None:
            return folds_of(self.foldid)
        if not isinstance(self.cv, Integral) or isinstance(self.cv, bool):
            kind = self._kind.__name__
            raise TypeError(f"cv must be a number of folds, got {self.cv!r}; pass foldid, or to {kind} any splitter")
        return self.cv

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _fold_numbers(self, y: npt.NDArray[Any], seed: int) -> npt.NDArray[Any]:
        """The folds of the fit, drawn again from the same seed."""
        if self.foldid is not None:
            return np.array(column_or_1d(as_numpy("foldid", self.foldid)))
        numbers = np.empty(len(y), dtype=np.int64)
        splitter = self._splitter(self.cv, shuffle=True, random_state=seed)
        for k, (_, test) in enumerate(splitter.split(y, y)):
            numbers[test] = k + 1
        return numbers

    def _keep_path(self, model: Any) -> None:
        self.Cs_ = model.Cs_
        self.best_C_ = model.C_
        self.best_ind_ = int(model.best_index_)
        self.n_iter_ = model.n_iter_
        self.converged_ = (model.gaps_ <= self.tol).all(axis=0)
        self.pred_path_ = model.oof_path_ if self.store_path else None

    def _keep_model(self, model: Any, path: npt.NDArray[np.float64] | None) -> None:
        self.n_samples_fit_ = len(model.oof_path_)
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self.alpha_ = np.zeros(self.n_samples_fit_)
        self.alpha_[model.support_] = model.dual_coef_[0]
        self.intercept_ = float(model.intercept_[0])
        self.kernel_state_ = {"sigma": model.gamma_ / 2.0} if self.kernel == "rbf" else {}
        self.alpmat_path_ = path
        if path is not None and hasattr(model, "rank_"):
            self.alpmat_path_ = np.zeros((self.n_samples_fit_ + 1, len(model.Cs_)))
            self.alpmat_path_[np.append(0, 1 + model.landmark_indices_)] = path

    def _keep_low_rank(self, model: Any) -> None:
        if hasattr(model, "rank_"):
            self.low_rank_landmark_indices_ = model.landmark_indices_
            self.num_landmarks_ = len(model.landmark_indices_)
            self.low_rank_basis_dim_ = self.nys_k_ = model.rank_


def _with_probability(classifier: Any) -> bool:
    is_fitted = "estimator_" in vars(classifier)
    if not (classifier.platt_ is not None if is_fitted else classifier.probability):
        raise AttributeError("predict_proba and platt_plot need probability=True when the model is fitted")
    return True


class _TorchKMClassifier(ClassifierMixin, _TorchKM):
    """Two classes."""

    _splitter = StratifiedKFold

    platt_: Any
    platt_scores_: Any
    platt_y_: Any

    def __init__(
        self,
        kernel: str = "rbf",
        nC: int = 50,
        Cs: Any = None,
        C_max: float = 1000.0,
        C_min: float = 0.001,
        cv: int = 5,
        foldid: Any = None,
        tol: float = 1e-5,
        max_iter: int = 1000,
        solver_gamma: float = 1e-8,
        is_exact: int = 0,
        device: Any = None,
        rbf_sigma: float | None = None,
        sigest_frac: float = 0.5,
        poly_degree: int = 3,
        poly_coef0: float = 1.0,
        poly_gamma: float = 1.0,
        probability: bool = False,
        platt_device: Any = None,
        random_state: Any = None,
        store_path: bool = False,
        low_rank: bool = False,
        num_landmarks: int = 2000,
        nys_k: int = 1000,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.nC = nC
        self.Cs = Cs
        self.C_max = C_max
        self.C_min = C_min
        self.cv = cv
        self.foldid = foldid
        self.tol = tol
        self.max_iter = max_iter
        self.solver_gamma = solver_gamma
        self.is_exact = is_exact
        self.device = device
        self.rbf_sigma = rbf_sigma
        self.sigest_frac = sigest_frac
        self.poly_degree = poly_degree
        self.poly_coef0 = poly_coef0
        self.poly_gamma = poly_gamma
        self.probability = probability
        self.platt_device = platt_device
        self.random_state = random_state
        self.store_path = store_path
        self.low_rank = low_rank
        self.num_landmarks = num_landmarks
        self.nys_k = nys_k
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Decision values; > 0 means ``classes_[1]``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.estimator_.decision_function(as_numpy("X", X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows with the right label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
        """
        return super().score(X, as_numpy("y", y), sample_weight)

    @available_if(_with_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probability of each class; needs ``probability=True``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        values = self.decision_function(X)[:, None]
        return _core.Arrangement("ovo", 2).probabilities(values, [self.platt_._fitted])

    @available_if(_with_probability)  # type: ignore[untyped-decorator]
    def platt_plot(
        self,
        X: Any = None,
        y: Any = None,
        *,
        n_bins: int = 15,
        strategy: str = "uniform",
        annotate_counts: bool = True,
        figsize: tuple[float, float] = (5.2, 5.2),
        title: str | None = None,
        savepath: Any = None,
        dpi: float = 150,
        ax: Axes | None = None,
    ) -> tuple[Axes, dict[str, Any]]:
        """Draw how often the probabilities come true, by default those of the training rows out of fold.

        Parameters
        ----------
        X, y : array-like of shape (n_samples, n_features), (n_samples,), optional
            Other rows and their labels.
        n_bins : int, default=15
            Bins of the probability.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equally many rows.
        annotate_counts : bool, default=True
            Write the number of rows of each bin.
        figsize : tuple of float, default=(5.2, 5.2)
            Size of the new figure where `ax` is None.
        title : str, optional
            Put above the picture.
        savepath : str or path, optional
            Where to save the picture.
        dpi : float, default=150
            Resolution of the saved picture.
        ax : Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ax : Axes
            Where it was drawn.
        stats : dict
            "ece" and "brier"; "bin_avg_proba", "bin_empirical_freq" and "bin_count" of the bins that hold rows.
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("platt_plot needs X and y, or neither for the training rows out of fold")
        if X is None:
            y, p = self.platt_y_, self.platt_.probability(self.platt_scores_)
        else:
            y, p = as_numpy("y", y), self.predict_proba(X)[:, 1]
        bins = CalibrationBins.of(y, p, n_bins=n_bins, strategy=strategy, pos_label=self.classes_[1])
        display = CalibrationDisplay(bins, pos_label=self.classes_[1], annotate_counts=annotate_counts)
        ax = display.plot(ax or new_axes(figsize)).ax_
        if title is not None:
            ax.set_title(title)
        if savepath is not None:
            ax.figure.canvas.print_figure(savepath, dpi=dpi)
        return ax, {
            "ece": bins.ece,
            "brier": bins.brier,
            "bin_avg_proba": bins.predicted,
            "bin_empirical_freq": bins.observed,
            "bin_count": bins.count,
        }

    def _check_targets(self, y: Any) -> None:
        device_of(self.platt_device, "platt_device")
        labels = column_or_1d(y)
        finite = labels.dtype.kind != "f" or np.isfinite(labels).all()  # else the estimator says what is wrong
        if finite and type_of_target(labels, input_name="y") == "multiclass":
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass; "
                f"{self._kind.__name__} takes any number of classes"
            )

    def _keep_own(self, model: Any, y: npt.NDArray[Any]) -> None:
        self.classes_ = model.classes_
        self.cv_mis_ = 1.0 - model.scores_.mean(axis=0)
        self.platt_ = self.platt_scores_ = self.platt_y_ = None
        if self.probability:
            self.platt_scores_, self.platt_y_ = model.oof_decision_, y
            self.platt_ = Calibrator.fit("sigmoid", self.platt_scores_, y == model.classes_[1])


@_documented
class TorchKMSVC(_TorchKMClassifier):
    """:class:`~kernelpath.KernelSVC` under TorchKM's names.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from kernelpath.datasets import make_mixture
    >>> from kernelpath.torchkm import TorchKMSVC
    >>> X, y = make_mixture(200, 5, random_state=0)
    >>> clf = TorchKMSVC(nC=10, random_state=0).fit(X, y)
    >>> bool(clf.best_C_ == clf.Cs_[clf.best_ind_])
    True
    """

    _kind = KernelSVC


@_documented
class TorchKMDWD(_TorchKMClassifier):
    """:class:`~kernelpath.KernelDWD` under TorchKM's names.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

    _kind = KernelDWD


@_documented
class TorchKMLogit(_TorchKMClassifier):
    """:class:`~kernelpath.KernelLogistic` under TorchKM's names.

    Its decision values are the logarithms of odds. As C is chosen by labels, and of equal errors the smallest, they may
    be too close to even: `predict_proba` calibrates them, as it does for the other classes.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

    _kind = KernelLogistic


@_documented
class TorchKMKQR(RegressorMixin, _TorchKM):
    """:class:`~kernelpath.KernelQuantile` of one level, under TorchKM's names.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

    _kind = KernelQuantile
    _splitter = KFold

    def __init__(
        self,
        kernel: str = "rbf",
        nC: int = 50,
        Cs: Any = None,
        C_max: float = 1000.0,
        C_min: float = 0.001,
        cv: int = 5,
        foldid: Any = None,
        tau: float = 0.5,
        tol: float = 1e-5,
        max_iter: int = 1000,
        solver_gamma: float = 1e-8,
        is_exact: int = 0,
        delta_len: int = 4,
        mproj: int = 2,
        KKTeps: float = 1e-3,
        KKTeps2: float = 1e-3,
        device: Any = None,
        rbf_sigma: float | None = None,
        sigest_frac: float = 0.5,
        poly_degree: int = 3,
        poly_coef0: float = 1.0,
        poly_gamma: float = 1.0,
        random_state: Any = None,
        store_path: bool = False,
        low_rank: bool = False,
        num_landmarks: int = 2000,
        nys_k: int = 1000,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.nC = nC
        self.Cs = Cs
        self.C_max = C_max
        self.C_min = C_min
        self.cv = cv
        self.foldid = foldid
        self.tau = tau
        self.tol = tol
        self.max_iter = max_iter
        self.solver_gamma = solver_gamma
        self.is_exact = is_exact
        self.delta_len = delta_len
        self.mproj = mproj
        self.KKTeps = KKTeps
        self.KKTeps2 = KKTeps2
        self.device = device
        self.rbf_sigma = rbf_sigma
        self.sigest_frac = sigest_frac
        self.poly_degree = poly_degree
        self.poly_coef0 = poly_coef0
        self.poly_gamma = poly_gamma
        self.random_state = random_state
        self.store_path = store_path
        self.low_rank = low_rank
        self.num_landmarks = num_landmarks
        self.nys_k = nys_k
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the score is at most 0, and no R²
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The negative mean pinball loss; 0 is perfect.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return self.estimator_.score(as_numpy("X", X), as_numpy("y", y), sample_weight)

    def _translated(self, seed: int) -> dict[str, Any]:
        return super()._translated(seed) | {"tau": level("tau", self.tau)}

    def _keep_own(self, model: Any, y: npt.NDArray[Any]) -> None:
        self.tau_ = float(self.tau)
        self.cv_loss_ = -model.scores_.mean(axis=0)
