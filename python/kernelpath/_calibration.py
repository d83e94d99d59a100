"""Probabilities from decision values, fitted on those of the held-out rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from kernelpath import _core
from kernelpath._folds import spread
from kernelpath._settings import choice

Vector = npt.NDArray[np.float64]


class Calibrator:
    """A map from decision values f of one machine to P(y = +1), which never decreases in f; made by :meth:`fit`.

    Attributes
    ----------
    method : {"sigmoid", "isotonic", "temperature"}
        The form of the map.
    slope : float or None
        a of 1 / (1 + exp(−(a f + b))); None for "isotonic".
    intercept : float or None
        b of the same, None but for "sigmoid".
    points : ndarray of shape (n_points, 2) or None
        (f, P) between which "isotonic" is straight, and outside of which it is constant; None for the others.
    """

    def __init__(self, fitted: _core.Calibration) -> None:
        self._fitted = fitted

    @classmethod
    def fit(cls, method: str, scores: Any, positive: Any, sample_weight: Any = None) -> Calibrator:
        """Fit the map to decision values of held-out rows.

        Parameters
        ----------
        method : {"sigmoid", "isotonic", "temperature"}
            "sigmoid" is 1 / (1 + exp(−(a f + b))) with a ≥ 0 and Platt's targets (N₊ + 1) / (N₊ + 2) and 1 / (N₋ + 2)
            in place of 1 and 0; scores that point the wrong way get a = 0 and the base rate. "temperature" has no b and
            the targets 1 and 0, with a median |a f| between exp(−10) and exp(10). "isotonic" is the best map that does
            not decrease.
        scores : array-like of shape (n_samples,)
            Decision values; NaN marks a row that was never held out, and is left out.
        positive : array-like of bool of shape (n_samples,)
            Whether the row is of the class whose probability is asked for.
        sample_weight : array-like of shape (n_samples,), optional
            Weights ≥ 0. Integers are the same as repeated rows, also in N₊ and N₋.

        Returns
        -------
        Calibrator
        """
        scores, positive = _vector("scores", scores), np.asarray(positive)
        if positive.dtype != np.bool_ or positive.ndim != 1:
            raise TypeError(
                "positive must be a one-dimensional array of booleans, such as y == classes_[1], "
                f"got {positive.dtype} of shape {positive.shape}"
            )
        weights = np.ones(len(scores)) if sample_weight is None else _vector("sample_weight", sample_weight)
        if len(weights) == len(scores):
            weights = np.where(np.isnan(scores), 0.0, weights)
        return cls(_core.Calibration.fit(choice("method", method, _core.CALIBRATIONS), scores, positive, weights))

    @property
    def method(self) -> str:
        return self._fitted.method

    @property
    def slope(self) -> float | None:
        return self._fitted.slope

    @property
    def intercept(self) -> float | None:
        return self._fitted.intercept

    @property
    def points(self) -> Vector | None:
        return self._fitted.points

    def probability(self, scores: Any) -> Vector:
        """P(y = +1) at each decision value; NaN stays NaN."""
        return self._fitted.probability(_vector("scores", scores))

    def log_odds(self, scores: Any) -> Vector:
        """log(P(y = +1) / P(y = −1)) at each decision value; infinite where an "isotonic" probability is 0 or 1."""
        return self._fitted.log_odds(_vector("scores", scores))

    def __repr__(self) -> str:
        parts = [("slope", self.slope), ("intercept", self.intercept)]
        shown = [f"{name}={value:.6g}" for name, value in parts if value is not None]
        if self.points is not None:
            shown.append(f"n_points={len(self.points)}")
        return f"Calibrator({self.method!r}, {', '.join(shown)})"


def calibration_method(probability: Any, cv: Any) -> str | None:
    """The method that the parameter `probability` names, None for none; an error if it cannot be had."""
    if isinstance(probability, bool | np.bool_):
        method = "sigmoid" if probability else None
    elif isinstance(probability, str) and probability in _core.CALIBRATIONS:
        method = probability
    else:
        known = ", ".join(map(repr, _core.CALIBRATIONS))
        raise ValueError(f"probability={probability!r} is not available; available: False, True ('sigmoid'), {known}")
    if method is not None and cv is None:
        raise ValueError(
            f"probability={probability!r} is fitted on the decision values of held-out rows, and cv=None holds none "
            "out; pass folds, such as cv=5, or probability=False"
        )
    return method


class _WithProbability:
    """A method that is there only if `probability` is asked for, or was before fit: else it is said how to ask."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        functools.update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: Any, kind: type) -> Any:
        if model is None:
            return self._method
        is_asked_for = not isinstance(model.probability, bool | np.bool_) or model.probability
        if not is_asked_for and "calibration_" not in vars(model):
            known = ", ".join(map(repr, _core.CALIBRATIONS))
            raise AttributeError(
                f"this {kind.__name__} has no {self._method.__name__}: fit it with probability=True, or with one of "
                f"{known} (predict and decision_function need no probabilities)"
            )
        return MethodType(self._method, model)


class CalibratedMixin:
    """`predict_proba` for a classifier with the parameter `probability`."""

    probability: Any
    cv: Any
    _arrangement: _core.Arrangement
    _decision_values: Callable[[Any], Vector]

    @_WithProbability
    def predict_proba(self, X: Any) -> Vector:
        """Probability of each class: the decision value, mapped by `calibration_`.

        Those of more than two classes are the normalised ones of their machines ("ovr"), or fit those of all pairs
        best ("ovo").

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        self._check_calibrated()
        return self._arrangement.probabilities(self._decision_values(X), self._maps())

    @_WithProbability
    def predict_log_proba(self, X: Any) -> Vector:
        """Logarithm of the probability of each class; −inf only where a probability is 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        self._check_calibrated()
        return self._arrangement.log_probabilities(self._decision_values(X), self._maps())

    def _check_calibrated(self) -> None:
        if "calibration_" not in vars(self):  # asking scikit-learn takes longer than the prediction of a row
            check_is_fitted(self, "calibration_")

    def _maps(self) -> list[_core.Calibration]:
        """The map of each machine."""
        calibration = self.calibration_
        return [c._fitted for c in ([calibration] if isinstance(calibration, Calibrator) else calibration)]

    def _probability(self) -> str | None:
        return calibration_method(self.probability, self.cv)

    def _check_parameters(self) -> None:
        calibration_method(self.probability, self.cv)

    def _keep_probabilities(self, fit: _core.Fit, rows: Any, n_rows: int) -> None:
        if fit.probabilities is None:
            return
        calibrators = [Calibrator(fitted) for fitted in fit.calibrations]
        self.calibration_ = calibrators if self._arrangement.pairs else calibrators[0]
        self.oof_proba_ = spread(fit.probabilities, rows, n_rows)
        self.calibration_seconds_ = fit.calibration_seconds


def _vector(name: str, values: Any) -> Vector:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    return array
