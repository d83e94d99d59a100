"""TorchKM's low-level classes: `METHODS` says which estimator of kernelpath minimises which loss."""
# ruff: noqa: N801 (the names are TorchKM's)

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelpath._settings import level, number
from kernelpath.classifiers import KernelDWD, KernelLogistic, KernelSVC
from kernelpath.regressors import KernelQuantile
from kernelpath.torchkm._paths import ExactPath, Method, NystromPath
from kernelpath.torchkm._translation import Matrix

__all__ = [
    "cvkdwd",
    "cvkhuber",
    "cvklogit",
    "cvknyqr",
    "cvknysdwd",
    "cvknyslogit",
    "cvknyssvm",
    "cvkqr",
    "cvksqsvm",
    "cvksvm",
]


def _hinge(y: Matrix, f: Matrix, _: float) -> Matrix:
    return np.maximum(0.0, 1.0 - y * f)


def _squared_hinge(y: Matrix, f: Matrix, _: float) -> Matrix:
    return _hinge(y, f, _) ** 2


def _huberised_hinge(y: Matrix, f: Matrix, delta: float) -> Matrix:
    short = _hinge(y, f, delta)
    return np.where(short <= delta, short**2 / (2.0 * delta), short - delta / 2.0)


def _dwd(y: Matrix, f: Matrix, _: float) -> Matrix:
    margin = y * f
    return np.where(margin <= 0.5, 1.0 - margin, 0.25 / np.maximum(margin, 0.5))


def _logistic(y: Matrix, f: Matrix, _: float) -> Matrix:
    return np.logaddexp(0.0, -y * f)


def _pinball(y: Matrix, f: Matrix, tau: float) -> Matrix:
    return np.maximum(tau * (y - f), (tau - 1.0) * (y - f))


METHODS = {
    "svm": Method(KernelSVC, {}, _hinge),
    "sqsvm": Method(KernelSVC, {"loss": "squared_hinge"}, _squared_hinge),
    "huber": Method(KernelSVC, {}, _huberised_hinge),  # on another matrix: see cvkhuber
    "dwd": Method(KernelDWD, {}, _dwd),
    "logit": Method(KernelLogistic, {}, _logistic),
    "qr": Method(KernelQuantile, {}, _pinball, constant="tau", factor=0.5),
}


class cvksvm(ExactPath):
    """Hinge loss max(0, 1 − yf), by :class:`~kernelpath.KernelSVC`."""

    _method = METHODS["svm"]


class cvksqsvm(ExactPath):
    """Squared hinge loss max(0, 1 − yf)², by :class:`~kernelpath.KernelSVC`."""

    _method = METHODS["sqsvm"]


class cvkdwd(ExactPath):
    """Distance-weighted discrimination, by :class:`~kernelpath.KernelDWD`."""

    _method = METHODS["dwd"]


class cvklogit(ExactPath):
    """Logistic loss log(1 + exp(−yf)), by :class:`~kernelpath.KernelLogistic`."""

    _method = METHODS["logit"]


class cvkhuber(ExactPath):
    """Huberised hinge loss of labels, by :class:`~kernelpath.KernelSVC` for each λ.

    With s = max(0, 1 − yf), the loss s²/(2δ) up to s = δ, and s − δ/2 beyond, is min over t of max(0, 1 − yf − t) +
    t²/(2δ). So t is a value of its own for each row, with the penalty C t²/(2δ): the problem is that of the hinge loss
    with the kernel matrix K + (δ/C) I, and 1/C = 2nλ. Rows held out have other rows' coefficients alone, hence K.
    """

    _method = METHODS["huber"]

    def __init__(self, delta: float, Kmat: Any, y: Any, nlam: int, ulam: Any, *args: Any, **options: Any) -> None:
        self.delta = self._constant = number("delta", delta, above=0.0)
        super().__init__(Kmat, y, nlam, ulam, *args, **options)

    def _problems(self) -> Iterable[tuple[Matrix, Matrix]]:
        for lam in self.ulam:
            yield self.Kmat + 2.0 * self.nobs * lam * self.delta * np.eye(self.nobs), np.array([lam])


class cvkqr(ExactPath):
    """Pinball loss of the level τ, by :class:`~kernelpath.KernelQuantile`; the objective has ½ λ αᵀKα."""

    _method = METHODS["qr"]

    def __init__(self, Kmat: Any, y: Any, nlam: int, ulam: Any, tau: float, *args: Any, **options: Any) -> None:
        self.tau = self._constant = level("tau", tau)
        super().__init__(Kmat, y, nlam, ulam, *args, **options)


class cvknyssvm(NystromPath):
    """Hinge loss on Nyström features, by :class:`~kernelpath.KernelSVC`."""

    _method = METHODS["svm"]


class cvknysdwd(NystromPath):
    """Distance-weighted discrimination on Nyström features, by :class:`~kernelpath.KernelDWD`."""

    _method = METHODS["dwd"]


class cvknyslogit(NystromPath):
    """Logistic loss on Nyström features, by :class:`~kernelpath.KernelLogistic`."""

    _method = METHODS["logit"]


class cvknyqr(NystromPath):
    """Pinball loss on Nyström features, by :class:`~kernelpath.KernelQuantile`; the objective has ½ λ αᵀKα.

    Its coefficients are those of the rows, in K = ZZᵀ: the smallest α for which Zᵀα are those of the features.
    """

    _method = METHODS["qr"]

    def __init__(
        self,
        Xmat: Any,
        X_test: Any = None,
        y: Any = None,
        nlam: int = 50,
        ulam: Any = None,
        tau: float = 0.5,
        *args: Any,
        random_state: Any = None,
        **options: Any,
    ) -> None:
        for name, value in (("y", y), ("ulam", ulam)):
            if value is None:
                raise ValueError(f"cvknyqr needs {name}, got None")
        self.tau = self._constant = level("tau", tau)
        super().__init__(Xmat, X_test, y, nlam, ulam, *args, random_state=random_state, **options)

    def predict(self, X_new: Any, alp_b: Any) -> Matrix:  # type: ignore[override]  # TorchKM's signature
        """Quantiles of new rows, by one column of `alpmat`.

        Parameters
        ----------
        X_new : array-like of shape (n_new, n_features)
            Rows.
        alp_b : array-like of shape (n_samples + 1,)
            A column of `alpmat`.

        Returns
        -------
        ndarray of shape (n_new,)
        """
        return np.asarray(super().predict(X_new, None, alp_b))

    def approx_kernel_to_train(self, X_new: Any) -> Matrix:
        """The approximated kernel between new rows and the training rows.

        Parameters
        ----------
        X_new : array-like of shape (n_new, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_new, n_samples)
        """
        return np.asarray(self.transform(X_new) @ self.Z_train.T)

    def _kept(self, path: Matrix) -> Matrix:
        return np.vstack([path[0], np.linalg.lstsq(self.Z_train.T, path[1:], rcond=None)[0]])

    def _n_coef(self) -> int:
        self._check_fitted()
        return self.nobs

    def _of_features(self, coef: Matrix) -> Matrix:
        return np.asarray(self.Z_train.T @ coef)
