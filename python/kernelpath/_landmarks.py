"""Landmarks: as a parameter (the name of a rule, indices of rows, or points), and what a rule found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
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


def landmarks_among(landmarks: Any, rows: npt.NDArray[Any], n_rows: int) -> Any:
    """Checked landmarks; if they are indices of the `n_rows` rows of X, their places among `rows`, those that count."""
    if not isinstance(landmarks, np.ndarray) or landmarks.ndim == 2:
        return landmarks
    places = np.full(n_rows, -1)
    places[rows] = np.arange(len(rows))
    for row in landmarks.tolist():
        if not 0 <= row < n_rows:
            raise ValueError(f"landmarks: there is no row {row}: X has {n_rows} rows, counted from 0")
        if places[row] < 0:
            raise ValueError(f"landmarks: row {row} has weight 0, so it is no row; pass others, or points")
    return places[landmarks]


def landmark_rows(found: _core.Nystrom, landmarks: Any, X: Any) -> Any:
    """The landmarks as rows: of X, which is None if there are no rows, made up by a rule, or as they were given."""
    if found.indices is not None:
        return np.empty((0, 0)) if X is None else X[found.indices]
    points = found.points
    return landmarks if points is None else points


@dataclass(frozen=True)
class Approximation:
    """How far the products of the features are from the kernel.

    Attributes
    ----------
    trace_error : float
        Part of Σᵢ k(xᵢ, xᵢ) that the features miss, 1 − Σᵢ‖zᵢ‖² / Σᵢ k(xᵢ, xᵢ): 0 is exact, 1 is nothing.
    sampled_rows : int
        Rows it was measured on: all, or a random 5000 of them.
    spectrum : ndarray of shape (rank,)
        Eigenvalues of the landmarks' kernel matrix that were kept, descending.
    tail : float
        Sum of the dropped ones over the sum of all, in absolute value.
    """

    trace_error: float
    sampled_rows: int
    spectrum: npt.NDArray[np.float64]
    tail: float

    @classmethod
    def of(cls, found: _core.Nystrom) -> Approximation:
        """What was found, measured."""
        return cls(found.trace_error, found.sampled_rows, found.spectrum, found.tail)
