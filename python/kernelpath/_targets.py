"""Targets that are numbers: in a unit of their own, and of several columns on one kernel matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.model_selection import KFold

from kernelpath import _core
from kernelpath._base import _KernelPathBase
from kernelpath._folds import Folds
from kernelpath._machines import Machines, Parts, Task
from kernelpath._scoring import OutOfFoldRegressor, ScoredMixin, Scorer
from kernelpath._settings import Loss, Settings, choice, number
from kernelpath._tuning import HeldOut
from kernelpath._weights import Weights

Matrix = npt.NDArray[np.float64]


class RegressorBase(ScoredMixin, RegressorMixin, _KernelPathBase):
    """Targets are numbers, and predictions are the values f."""

    _splitter = KFold

    @property
    def coef_(self) -> npt.NDArray[np.float64]:
        """With the linear kernel, the coefficients of the features: f = coef_ · x + intercept_."""
        coef = super().coef_
        return coef if self._parts.has_axis else coef[0]

    def _stand_in(self, values: Matrix, maps: Any) -> OutOfFoldRegressor:
        return OutOfFoldRegressor(values)


class TargetsBase(RegressorBase):
    """One target, or several as columns of y: a machine each."""

    _multi_output = True
    tune: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Predicted targets f(x) = Σᵢ βᵢ k(xᵢ, x) + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_targets) if y had columns
        """
        values = self._decision_values(X)
        return values if self._parts.has_axis else values[:, 0]

    def _loss_of(self, unit: float) -> Loss:
        """The loss of a target of that spread."""
        raise NotImplementedError

    def _grid_factor(self, unit: float, settings: Settings) -> float:
        """What the default grid is multiplied with for a target of that spread."""
        return 1.0

    def _keep_constants(self, constants: Any) -> None:
        """The constant of the loss, or those of several targets, as a fitted attribute."""
        return

    def _make_machines(self, y: npt.NDArray[Any], weight: Weights | None, settings: Settings) -> Machines:
        choice("tune", self.tune, ("joint", "each"))
        targets = encoded(y)
        columns = [np.ascontiguousarray(column) for column in targets.reshape(len(targets), -1).T]
        names = tuple(f"target {k}" for k in range(len(columns))) if targets.ndim == 2 else ()
        parts = Parts(names, is_joint=bool(names) and self.tune == "joint", has_own_grids=bool(names))
        units = [_core.spread(column, weight) for column in columns]
        losses = [self._loss_of(unit) for unit in units]
        self._keep_constants(parts.joined(constant for _, constant in losses))
        tasks = [
            Task(*loss, column, weight, c_factor=self._grid_factor(unit, settings))
            for loss, column, unit in zip(losses, columns, units, strict=True)
        ]
        with np.errstate(over="ignore"):
            powers = np.array(units) ** self._score_growth
        return Machines(tasks, parts, powers.tolist())

    def _scored_by(self, scorer: Scorer, X: Any, y: Any, weight: Weights | None, folds: Folds) -> HeldOut:
        by = super()._scored_by(scorer, X, y, weight, folds)
        apart = self._parts.has_axis and not self._parts.is_joint
        return replace(by, targets=list(y.T)) if apart else by

    @property
    def _score_growth(self) -> int:
        """The power of the unit of y that the default score has."""
        raise NotImplementedError


def encoded(y: npt.NDArray[Any]) -> Matrix:
    """Targets as float64, each a finite number; an error says which is not."""
    if y.dtype.kind not in "biufO":
        raise ValueError(f"y must hold numbers, got dtype {y.dtype}, such as {y.flat[0]!r}; encode or convert it first")
    try:
        targets = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold numbers, but {_first_non_number(y)}; encode or convert it first") from None
    bad = np.argwhere(~np.isfinite(targets))
    if bad.size:
        raise ValueError(f"y must hold finite numbers, got {targets[tuple(bad[0])]} in {_place(bad[0])}")
    return targets


def auto_or_number(name: str, value: Any, multiple: float, unit: float, **bounds: float) -> float:
    """`value` if it is a number within the bounds; "auto" is `multiple` times the spread of the targets."""
    if isinstance(value, str) and value == "auto":
        return multiple * unit
    try:
        return number(name, value, **bounds)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; or pass 'auto', {multiple:g} times the spread of y") from None


def _place(index: npt.NDArray[Any]) -> str:
    return ", ".join(f"{name} {i}" for name, i in zip(("row", "column"), index, strict=False))


def _first_non_number(y: npt.NDArray[Any]) -> str:
    for index, value in np.ndenumerate(y):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"{_place(np.array(index))} is {value!r}"
    return "some of it is not"
