"""Landmarks as a parameter: the name of a rule, indices of rows, or points."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kernelpath import _core


def checked_landmarks(value: Any) -> Any:
    """`value` as Rust reads it: a name, an array of int64 indices, or a float array or CSR matrix of points."""
    if isinstance(value, str):
        if value not in _core.LANDMARKS:
            known = ", ".join(repr(name) for name in _core.LANDMARKS)
            raise ValueError(
                f"unknown rule landmarks={value!r}; known rules: {known}; or pass indices of rows, or points"
            )
        return value
    if sparse.issparse(value):
        points = value.tocsr().astype(np.float64)
        points.sum_duplicates()
        return points
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.ndim == 1 and array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.ndim == 2 and array.dtype.kind in "iuf":
        return array.astype(np.float64)
    raise TypeError(
        "landmarks must be the name of a rule, a one-dimensional array of integers (indices of rows) or a "
        f"two-dimensional one of numbers (points, one a row), got {value!r}"
    )
