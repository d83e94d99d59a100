"""A path of TorchKM's low-level classes: what it solves, on a kernel matrix or on Nyström features.

With f = Kα + b on the n rows, each class minimises over α, b, for every λ of `ulam` and every fold,

    λ αᵀKα + (1/n) Σᵢ L(yᵢ, fᵢ)          (quantiles: ½ λ αᵀKα + …),

which is kernelpath's problem at C = 1 / (2nλ) (quantiles: 1 / (nλ)). In the folds n stays the number of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from kernelpath._at_once import at_once
from kernelpath._settings import _integer, number
from kernelpath.nystrom import NystromFeatures
from kernelpath.torchkm._translation import Matrix, as_numpy, device_of, fitted_path, folds_of, numbers

# What `fit` sets.
LEARNED = frozenset(
    (
        *("estimators_", "alpmat", "pred", "npass", "cvnpass", "converged", "anlam", "jerr"),
        *("features_", "indices", "landmarks_", "M_", "k_eff_", "sig_w_", "Z_train", "Z_test"),
    )
)

Loss = Callable[[Matrix, Matrix, float], Matrix]  # of the targets y, the values f and the constant (δ or τ)

_Self = TypeVar("_Self", bound="Path")


class Method(NamedTuple):
    """A loss, the estimator that minimises it, its keyword for the loss's constant, and the factor of λ αᵀKα."""

    kind: type
    options: dict[str, Any]
    loss: Loss
    constant: str | None = None
    factor: float = 1.0


class Path:
    """One loss: a path on all rows and on the folds, out-of-fold values, objectives.

    A subclass says on which matrices the estimators work (:meth:`_problems`) and what coefficients mean.
    """

    _method: Method
    _constant = 0.0  # δ or τ of the loss

    def __init__(
        self, n_rows: int, y: Any, nlam: int, ulam: Any, foldid: Any, nfolds: int, eps: float, device: Any, n_jobs: Any
    ) -> None:
        self.nobs = n_rows
        self.y = numbers("y", y, 1, n_rows)
        if self._classifies():
            bad = np.flatnonzero(np.abs(self.y) != 1.0)
            if bad.size:
                raise ValueError(f"y must hold the labels -1 and 1 alone, got {self.y[bad[0]]:g} in row {bad[0]}")
        self.nlam = _integer("nlam", nlam, at_least=1)
        grid = numbers("ulam", ulam, 1)
        if len(grid) < self.nlam:
            raise ValueError(f"nlam={nlam}, but ulam has {len(grid)} values")
        bad = np.flatnonzero(~((grid > 0.0) & np.isfinite(grid)))
        if bad.size:
            raise ValueError(f"lambda must be a finite number > 0, got {grid[bad[0]]:g} (ulam[{bad[0]}])")
        self.ulam = grid[: self.nlam]
        self.nfolds = _integer("nfolds", nfolds, at_least=2)
        self.foldid = self._fold_numbers(foldid)
        self.eps = number("eps", eps, above=0.0)
        self.device, self.n_jobs = device_of(device), n_jobs

    @at_once(LEARNED)
    def fit(self: _Self) -> _Self:
        """Solve every λ on all rows and on every fold.

        Returns
        -------
        self
            With `alpmat`, the intercept and below it the coefficients, a column for each λ; `pred`, the out-of-fold
            values, a column for each λ; `npass` and `cvnpass`, the steps of the solver on all rows and on the folds;
            `converged`, whether all models of a λ reached `eps`; `estimators_`, the fitted estimators of kernelpath,
            with their certificates (one for the path; of `cvkhuber`, one for each λ).
        """
        self.estimators_ = []
        columns = []
        for X, lambdas in self._problems():
            model = self._estimator(lambdas * self._method.factor)
            columns.append(fitted_path(model, X, self.y))
            self.estimators_.append(model)
        self.alpmat = self._kept(np.hstack(columns))
        self.pred = np.hstack([model.oof_path_ for model in self.estimators_])
        steps = np.hstack([model.n_iter_ for model in self.estimators_])
        self.npass, self.cvnpass = steps[-1], steps[:-1].sum(axis=0)
        gaps = np.hstack([model.gaps_ for model in self.estimators_])
        self.converged = (gaps <= self.eps).all(axis=0)
        self.anlam, self.jerr = self.nlam - 1, 0
        return self

    def cv(self, pred: Any, y: Any) -> Matrix:
        """Mean error of out-of-fold values over all rows: share of wrong labels, or pinball loss.

        Parameters
        ----------
        pred : array-like of shape (n_samples, n_lambdas)
            Values, such as the attribute `pred`.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        ndarray of shape (n_lambdas,)
        """
        values = numbers("pred", pred, 2)
        targets = numbers("y", y, 1, len(values))[:, None]
        if self._classifies():
            return np.asarray((_labels(values) != targets).mean(axis=0))
        return np.asarray(self._method.loss(targets, values, self._constant).mean(axis=0))

    def predict(self, Kmat_new: Any, y_new: Any, alp_b: Any) -> Any:
        """Predictions of one column of `alpmat` for new rows.

        Parameters
        ----------
        Kmat_new : array-like of shape (n_new, n_samples), or (n_new, n_features)
            The kernel between new rows and the training rows; the Nyström classes take the new rows themselves.
        y_new : array-like of shape (n_new,)
            Labels of the new rows; not looked at by `cvkqr`.
        alp_b : array-like
            A column of `alpmat`.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            -1 or 1; `cvkqr` returns its quantiles, and nothing else.
        accuracy : float
            Share of the labels that agree with `y_new`.
        """
        coef = numbers("alp_b", alp_b, 1, self._n_coef() + 1)
        values = self._at(Kmat_new, coef[1:]) + coef[0]
        if not self._classifies():
            return values
        labels = _labels(values)
        return labels, float((labels == numbers("y_new", y_new, 1, len(labels))).mean())

    def obj_value(self, alp_b: Any, lam_b: Any) -> float:
        """λ αᵀKα + (1/n) Σ L(y, f), the function that `fit` minimises (quantiles: ½ λ αᵀKα).

        Parameters
        ----------
        alp_b : array-like
            A column of `alpmat`, or any other intercept and coefficients.
        lam_b : float
            λ.

        Returns
        -------
        float
        """
        coef, lam = numbers("alp_b", alp_b, 1, self._n_coef() + 1), float(numbers("lam_b", lam_b, 0))
        values, norm = self._on_rows(coef[1:])
        losses = self._method.loss(self.y, values + coef[0], self._constant)
        return float(self._method.factor * lam * norm + losses.mean())

    def _problems(self) -> Iterable[tuple[Matrix, Matrix]]:
        """Matrices for the estimator, and the values of λ to solve on each."""
        raise NotImplementedError

    def _on_rows(self, coef: Matrix) -> tuple[Matrix, float]:
        """Values of the training rows without the intercept, and αᵀKα."""
        raise NotImplementedError

    def _at(self, new: Any, coef: Matrix) -> Matrix:
        """Values of new rows without the intercept."""
        raise NotImplementedError

    def _n_coef(self) -> int:
        """Number of coefficients beside the intercept."""
        return self.nobs

    def _kept(self, path: Matrix) -> Matrix:
        """`alpmat` from the intercepts and coefficients of the estimators."""
        return path

    def _kernel(self) -> dict[str, Any]:
        """The kernel of the estimator."""
        return {"kernel": "precomputed"}

    def _estimator(self, lambdas: Matrix) -> Any:
        constant = {} if self._method.constant is None else {self._method.constant: self._constant}
        return self._method.kind(
            lambdas=lambdas,
            cv=folds_of(self.foldid),
            tol=self.eps,
            device=self.device,
            n_jobs=self.n_jobs,
            **self._kernel(),
            **self._method.options,
            **constant,
        )

    @classmethod
    def _classifies(cls) -> bool:
        return issubclass(cls._method.kind, ClassifierMixin)

    def _fold_numbers(self, foldid: Any) -> npt.NDArray[Any]:
        """As given, or random ones of nearly equal size."""
        if foldid is None:
            return check_random_state(None).permutation(self.nobs) % self.nfolds + 1
        fold = np.asarray(as_numpy("foldid", foldid))
        if fold.shape != (self.nobs,):
            raise ValueError(f"foldid must have an entry for each of the {self.nobs} rows, got shape {fold.shape}")
        return fold


class ExactPath(Path):
    """On the kernel matrix.

    Parameters
    ----------
    Kmat : array-like of shape (n_samples, n_samples)
        Kernel matrix.
    y : array-like of shape (n_samples,)
        Labels -1 and 1, or the targets of `cvkqr`.
    nlam : int
        Number of values of λ to solve, the first of `ulam`.
    ulam : array-like of shape (n_lambdas,)
        Values of λ, in any order.
    foldid : array-like of shape (n_samples,), optional
        Number of the fold that holds each row out.
    nfolds : int, default=5
        Folds, drawn at random, where `foldid` is None.
    eps : float, default=1e-05
        Relative duality gap each model has to reach.
    device : str, optional
        None, "auto" and "cpu" are the processor.
    n_jobs : int, optional
        Threads: None and -1 use all cores.
    maxit, gamma, is_exact, delta_len, mproj, KKTeps, KKTeps2 : object
        Have no effect: they steer what works otherwise here.
    """

    def __init__(
        self,
        Kmat: Any,
        y: Any,
        nlam: int,
        ulam: Any,
        foldid: Any = None,
        nfolds: int = 5,
        eps: float = 1e-5,
        maxit: int = 1000,
        gamma: float = 1.0,
        *,
        is_exact: int = 0,
        delta_len: int = 8,
        mproj: int = 10,
        KKTeps: float = 1e-3,
        KKTeps2: float = 1e-3,
        device: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.Kmat = numbers("Kmat", Kmat, 2)
        if self.Kmat.shape[0] != self.Kmat.shape[1]:
            raise ValueError(f"Kmat must be a square matrix, got shape {self.Kmat.shape}")
        super().__init__(len(self.Kmat), y, nlam, ulam, foldid, nfolds, eps, device, n_jobs)

    def _problems(self) -> Iterable[tuple[Matrix, Matrix]]:
        return [(self.Kmat, self.ulam)]

    def _on_rows(self, coef: Matrix) -> tuple[Matrix, float]:
        values = self.Kmat @ coef
        return values, float(coef @ values)

    def _at(self, new: Any, coef: Matrix) -> Matrix:
        K = numbers("Kmat_new", new, 2)
        if K.shape[1] != self.nobs:
            raise ValueError(f"Kmat_new must have a column for each of the {self.nobs} training rows, got {K.shape[1]}")
        return np.asarray(K @ coef)


class NystromPath(Path):
    """On Nyström features Z of an rbf kernel exp(−2σ‖x−z‖²): K is ZZᵀ, and the coefficients are those of the features.

    `fit` keeps `Z_train`, `Z_test`, `indices` and `landmarks_` (the landmarks), `M_` (their map to features), `k_eff_`
    (the number of features) and `sig_w_` (σ).

    Parameters
    ----------
    Xmat : array-like of shape (n_samples, n_features)
        Rows.
    X_test : array-like of shape (n_test, n_features) or None
        Rows whose features `fit` keeps as `Z_test`.
    y, nlam, ulam, foldid, nfolds, eps, device, n_jobs : object
        As of the exact classes.
    num_landmarks, k : int, default=2000, 1000
        Landmarks, rows drawn at random, and the most features.
    sigma : float, optional
        Bandwidth σ; taken from the distances of random pairs of rows where it is None.
    random_state : int, RandomState or None, default=0
        Seed of the landmarks and of the bandwidth; None by default in `cvknyqr`.
    maxit, gamma, is_exact, delta_len, mproj, KKTeps, KKTeps2 : object
        Have no effect: they steer what works otherwise here.
    """

    def __init__(
        self,
        Xmat: Any,
        X_test: Any,
        y: Any,
        nlam: int,
        ulam: Any,
        foldid: Any = None,
        nfolds: int = 5,
        eps: float = 1e-5,
        maxit: int = 1000,
        gamma: float = 1.0,
        *,
        is_exact: int = 0,
        delta_len: int = 8,
        mproj: int = 10,
        KKTeps: float = 1e-3,
        KKTeps2: float = 1e-3,
        num_landmarks: int = 2000,
        k: int = 1000,
        sigma: float | None = None,
        random_state: Any = 0,
        device: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.Xmat = numbers("Xmat", Xmat, 2)
        self.X_test = None if X_test is None else numbers("X_test", X_test, 2)
        self.num_landmarks = _integer("num_landmarks", num_landmarks, at_least=1)
        self.k = _integer("k", k, at_least=1)
        self.sigma = None if sigma is None else number("sigma", sigma, above=0.0)
        self.random_state = random_state
        super().__init__(len(self.Xmat), y, nlam, ulam, foldid, nfolds, eps, device, n_jobs)

    def transform(self, X_new: Any) -> Matrix:
        """Nyström features of rows.

        Parameters
        ----------
        X_new : array-like of shape (n_new, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_new, k_eff_)
        """
        self._check_fitted()
        return np.asarray(self.features_.transform(numbers("X_new", X_new, 2)))

    def _problems(self) -> Iterable[tuple[Matrix, Matrix]]:
        self.features_ = self._fitted_features()
        self.indices, self.landmarks_ = self.features_.landmark_indices_, self.features_.landmarks_
        self.M_, self.k_eff_ = self.features_.map_, self.features_.rank_
        self.sig_w_ = self.features_.gamma_ / 2.0
        self.Z_train = self.transform(self.Xmat)
        self.Z_test = None if self.X_test is None else self.transform(self.X_test)
        return [(self.Z_train, self.ulam)]

    def _check_fitted(self) -> None:
        if not hasattr(self, "features_"):
            raise RuntimeError(f"call fit() first: this {type(self).__name__} has no landmarks yet")

    def _fitted_features(self) -> Any:
        return NystromFeatures(
            gamma="sigest" if self.sigma is None else 2.0 * self.sigma,
            landmarks="uniform",
            n_landmarks=self.num_landmarks,
            rank=min(self.k, self.num_landmarks),
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(self.Xmat)

    def _kernel(self) -> dict[str, Any]:
        # From unit vectors as landmarks the linear kernel is exact; their coefficients are those of the features.
        return {"kernel": "linear", "low_rank": True, "landmarks": np.eye(self.k_eff_), "dtype": "float64"}

    def _on_rows(self, coef: Matrix) -> tuple[Matrix, float]:
        weights = self._of_features(coef)
        return self.Z_train @ weights, float(weights @ weights)

    def _at(self, new: Any, coef: Matrix) -> Matrix:
        return np.asarray(self.transform(new) @ self._of_features(coef))

    def _n_coef(self) -> int:
        self._check_fitted()
        return int(self.k_eff_)

    def _of_features(self, coef: Matrix) -> Matrix:
        """The coefficients of the features, from those of `alpmat`."""
        return coef


def _labels(values: Matrix) -> npt.NDArray[np.int64]:
    return np.where(values > 0.0, 1, -1)
