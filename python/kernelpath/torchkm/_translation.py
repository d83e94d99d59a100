"""What the estimators and the low-level classes translate alike: tensors, folds, devices, the whole path."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d

from kernelpath import _core
from kernelpath._settings import device_name

Matrix = npt.NDArray[np.float64]


def as_numpy(name: str, value: Any) -> Any:
    """`value` as a numpy array, if it is a tensor; arrays, lists, frames and sparse matrices stay as they are."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__array__") or hasattr(value, "to_numpy"):
        return value
    try:
        return np.asarray(value)
    except (TypeError, RuntimeError) as error:  # a tensor on a GPU, or one that records gradients
        device = getattr(value, "device", None)
        place = "" if device is None else f" on the device {str(device)!r}"
        raise TypeError(
            f"{name} is a {type(value).__name__}{place} that numpy cannot read; pass {name}.detach().cpu() ({error})"
        ) from error


def numbers(name: str, value: Any, n_dim: int, length: int | None = None) -> Matrix:
    """`value`, an array-like or a tensor, as an array of float64: a number, a vector or a matrix by `n_dim`.

    Its first dimension must have the `length` given.
    """
    try:
        array = np.asarray(as_numpy(name, value), dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None
    if array.ndim != n_dim:
        raise ValueError(f"{name} must be a {('number', 'vector', 'matrix')[n_dim]}, got shape {array.shape}")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} must have {length} {('entries', 'rows')[n_dim - 1]}, got {len(array)}")
    return array


def folds_of(foldid: Any) -> list[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
    """The folds as masks (train, test), from the number of the fold that holds each row out."""
    fold = column_or_1d(as_numpy("foldid", foldid))
    return [(fold != k, fold == k) for k in np.unique(fold)]


def device_of(device: Any, parameter: str = "device") -> str:
    """TorchKM's device in kernelpath's words: like TorchKM, None takes a GPU if there is one."""
    return device_name(parameter, "auto" if device is None else str(device))


def fitted_path(model: Any, X: Any, y: Any) -> Matrix:
    """Fit `model`; return the intercept and below it the coefficients of the refit, a column for each C.

    The estimators of kernelpath keep the coefficients of the chosen C alone, so this looks at all models as they pass.
    """
    seen: list[_core.Fit] = []
    model._look_at = seen.append
    try:
        model.fit(X, y)
    finally:
        del model._look_at
    (fit,) = seen
    columns = [
        np.append(fit.intercepts_at(0, c), fit.coef_at(0, c)) for c in range(len(model.Cs_))
    ]  # one machine, one γ
    return np.column_stack(columns)
