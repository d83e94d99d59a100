"""The kernel at low rank, as features for any linear model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelpath import _core
from kernelpath._at_once import at_once
from kernelpath._callbacks import CallbackSupportMixin, FitTasks, with_callbacks
from kernelpath._columns import columns_named
from kernelpath._files import FilesMixin
from kernelpath._landmarks import Approximation, landmark_rows
from kernelpath._parameters import RECORDED
from kernelpath._rows import checked_rows, checked_training, is_matrix
from kernelpath._saved import FEATURES, features_to_saved, restore_features
from kernelpath._settings import (
    AUTO_GRID,
    KERNELS_WITHOUT_GAMMA,
    LowRank,
    _dtype,
    _gamma,
    _integer,
    _kernel,
    called,
    n_threads,
    number,
)
from kernelpath._shared import ESTIMATORS, explain_unknown_keywords

_Self = TypeVar("_Self", bound="NystromFeatures")


@explain_unknown_keywords
class NystromFeatures(
    FilesMixin, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Features whose inner products are nearly the kernel: k(x, z) ≈ ⟨φ(x), φ(z)⟩.

    With m landmarks and their kernel matrix UΛUᵀ, φ(x) = Λ_r^(−½)U_rᵀ (k(x, l₁), …, k(x, l_m)) in r ≤ m dimensions:
    exact on the span of the landmarks, too small elsewhere, by what `approximation_` says.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As of :class:`KernelSVC`. A "precomputed" matrix, and a function (whose matrix between all rows `fit` computes),
        go with landmarks that are rows.
    gamma : float, "sigest", "scale" or "auto", default="sigest"
        Bandwidth γ, or the rule that chooses it, as of :class:`KernelSVC`.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant of the "poly" and "sigmoid" kernels.
    landmarks : {"auto", "kmeans", "rpcholesky", "uniform"}, array of int, array or sparse matrix, default="auto"
        Rule that chooses landmarks: centroids of k-means; rows that those chosen before explain badly (pivots of a
        randomly pivoted Cholesky factorisation); or rows at random. "auto" is "kmeans" for the kernels "rbf",
        "matern32" and "matern52", unless its centroids, which are dense, would take more than a sparse X, and
        "rpcholesky" otherwise. Or indices of rows; or points, one a row.
    n_landmarks : int, default=100
        Landmarks that a rule chooses: fewer, if there are fewer rows, or if fewer explain all rows.
    rank : int, optional
        Most features. None keeps all that stand out of rounding.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the features, which are computed in float64; "auto" is that of X.
    n_jobs : int, optional
        Threads, as of :class:`KernelSVC`. Results do not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the rule and of "sigest".

    Attributes
    ----------
    landmarks_ : ndarray or sparse matrix of shape (n_landmarks, n_features)
        The landmarks; empty when ``kernel="precomputed"``.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        Rows of X that they are; None for centroids and for points that were given.
    map_ : ndarray of shape (n_landmarks, rank)
        U_r Λ_r^(−½).
    rank_ : int
        Number of features.
    approximation_ : Approximation
        `trace_error`, `sampled_rows`, `spectrum` and `tail`: how far the features are from the kernel.
    gamma_ : float or None
        The bandwidth used; None for kernels without one.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Columns seen by `fit`.

    Examples
    --------
    >>> from sklearn.datasets import make_gaussian_quantiles
    >>> from sklearn.linear_model import RidgeClassifierCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from kernelpath import NystromFeatures
    >>> X, y = make_gaussian_quantiles(n_samples=2000, n_features=5, n_classes=2, random_state=0)
    >>> model = make_pipeline(NystromFeatures(n_landmarks=200, random_state=0), RidgeClassifierCV())
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    # The kernel, where it is a function, and the precision of the features; set by `fit`.
    _function: Callable[[Any, Any], Any] | None = None
    _precision: str

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "sigest",
        degree: int = 3,
        coef0: float = 0.0,
        landmarks: Any = "auto",
        n_landmarks: int = 100,
        rank: int | None = None,
        dtype: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not tags.input_tags.pairwise
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @at_once(FEATURES | {RECORDED})
    @with_callbacks
    def fit(self: _Self, X: Any, y: Any = None) -> _Self:
        """Choose landmarks and compute their map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; or the matrix K(X, X) when ``kernel="precomputed"``.
        y : None
            Not looked at, so that cross-validation of what follows stays honest.

        Returns
        -------
        self
        """
        kernel, gamma, degree, coef0 = self._check_parameters()
        low_rank = LowRank.of(self)
        threads = n_threads(self.n_jobs)
        self._precision = _dtype(self.dtype)
        given, callbacks = X, FitTasks.of(self, X, y)
        X = checked_training(self, X, reset=True)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        with columns_named(self, given):
            value = 1.0 if kernel in KERNELS_WITHOUT_GAMMA else _bandwidth(X, kernel, gamma, seed, threads)
        self._kernel: dict[str, Any] = {"kernel": kernel, "gamma": value, "degree": degree, "coef0": coef0}
        if callable(self.kernel):
            self._function = self.kernel
        matrix = X if self._function is None else called(self._function, X, X)
        with columns_named(self, given):
            found = low_rank.found(matrix, self._kernel, seed, threads)
        self.map_ = found.map
        self.landmark_indices_ = found.indices
        self.landmarks_ = landmark_rows(found, low_rank.landmarks, None if self._is_precomputed() else X)
        self.rank_ = self.map_.shape[1]
        self.approximation_ = Approximation.of(found)
        self.gamma_ = None if kernel in KERNELS_WITHOUT_GAMMA else value
        if callbacks is not None:
            callbacks.end()
        return self

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; or the kernel between them and all rows seen by `fit` when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, rank)
        """
        check_is_fitted(self)
        given = X
        X = checked_rows(self, X)
        of_rows = "float64" if X.dtype == object else str(X.dtype)
        dtype = of_rows if self._precision == "auto" else self._precision
        landmarks = self.landmarks_
        if self._kernel["kernel"] == "precomputed":
            X = X[:, self.landmark_indices_] if self._function is None else called(self._function, X, landmarks)
            landmarks = np.empty((0, 0))
        threads = n_threads(self.n_jobs)
        with columns_named(self, given):
            return _core.nystrom_features(X, landmarks, self.map_, **self._kernel, dtype=dtype, n_threads=threads)

    def _check_parameters(self) -> tuple[str, float | str, int, float]:
        """The kernel, and its constants; an error names what is wrong."""
        _dtype(self.dtype)
        degree, coef0 = _integer("degree", self.degree, at_least=1), number("coef0", self.coef0)
        return _kernel(self.kernel), _one_gamma(self.gamma), degree, coef0

    _in_files = FEATURES

    def _to_saved(self, kind: type) -> _core.Saved:
        return features_to_saved(self, kind)

    def _restore(self, saved: _core.Saved) -> None:
        restore_features(self, saved)

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def _is_precomputed(self) -> bool:
        return is_matrix(self.kernel)


ESTIMATORS[NystromFeatures.__name__] = NystromFeatures


def _one_gamma(value: Any) -> float | str:
    gamma = _gamma(value)
    if gamma == AUTO_GRID or (isinstance(gamma, tuple) and len(gamma) > 1):
        raise ValueError(
            f"gamma must be one number > 0, 'sigest', 'scale' or 'auto', got {value!r}; "
            "to choose among several, tune a pipeline of the features and a model"
        )
    return gamma if isinstance(gamma, str) else gamma[0]


def _bandwidth(X: Any, kernel: str, gamma: float | str, seed: int, n_threads: int) -> float:
    if not isinstance(gamma, str):
        return gamma
    if X.shape[0] == 1 and gamma != "auto":
        raise ValueError(f"gamma={gamma!r} needs rows that differ, but X has 1 sample; give gamma as a number")
    return _core.bandwidth(X, kernel, gamma, seed, None, n_threads)
