"""Sample and class weights as one weight a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpath._columns import check_container

Weights = npt.NDArray[np.float64]


def checked_weights(sample_weight: Any, n_rows: int) -> Weights | None:
    """Weights of the rows, finite and at least 0, one of them above; None where there are none."""
    if sample_weight is None:
        return None
    check_container("sample_weight", sample_weight)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}: sample_weight must have one number a row"
        )
    bad = np.flatnonzero(~((weight >= 0.0) & np.isfinite(weight)))
    if bad.size:
        raise ValueError(
            f"Negative values in data passed to sample_weight: it must be finite and at least 0, got {weight[bad[0]]} "
            f"in row {bad[0]}"
            if weight[bad[0]] < 0.0
            else f"sample_weight must be finite and at least 0, got {weight[bad[0]]} in row {bad[0]}"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero for every row: no row is left to learn from")
    return weight


def class_factors(class_weight: Any, classes: npt.NDArray[Any]) -> str | list[float] | None:
    """What the weights of each class's rows are multiplied by in the loss; "balanced": so that all have one total."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight={class_weight!r} is not known; pass a dict, 'balanced' or None")
        return class_weight
    if isinstance(class_weight, Mapping):
        labels = classes.tolist()
        unknown = [label for label in class_weight if label not in labels]
        if unknown:
            raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class of y: {labels}")
        return [_number(label, class_weight.get(label, 1.0)) for label in labels]
    raise TypeError(f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}")


def _number(label: Any, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"class_weight[{label!r}] must be a number > 0, got {value!r}") from None
    if not (number > 0.0 and np.isfinite(number)):
        raise ValueError(f"class_weight[{label!r}] must be a finite number > 0, got {value!r}")
    return number


def without_zeros(
    X: Any, y: Any, weight: Weights | None, is_precomputed: bool
) -> tuple[npt.NDArray[np.intp] | None, Any, Any, Weights | None]:
    """The rows of weight > 0 (None: all), and X, y and the weights of these."""
    if weight is None or weight.all():
        return None, X, y, weight
    rows = np.flatnonzero(weight)
    return rows, X[np.ix_(rows, rows)] if is_precomputed else X[rows], y[rows], weight[rows]
