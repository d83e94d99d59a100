"""Rows as they are given, as Rust reads them: tables of numbers, sparse ones, or objects for a kernel function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_X_y, validate_data

from kernelpath._columns import TIMES, check_container, is_frame, not_numbers
from kernelpath._encoding import encoded

Objects = npt.NDArray[np.object_]

_READ_IN_PLACE = (np.dtype(np.float64), np.dtype(np.float32))


def is_matrix(kernel: Any) -> bool:
    """Whether rows of this kernel are those of its matrix."""
    return isinstance(kernel, str) and kernel == "precomputed"


def reads_matrix(model: Any) -> bool:
    """Whether rows of a fitted model are those of the kernel matrix."""
    return model._kernel["kernel"] == "precomputed" and model._function is None


def takes_objects(model: Any) -> bool:
    """Whether rows of a fitted model are objects: only these have no columns."""
    return model._function is not None and not hasattr(model, "n_features_in_")


def checked_rows(model: Any, X: Any) -> Any:
    """Rows that a fitted model predicts, as Rust reads them, which says where NaN and inf are."""
    if takes_objects(model):
        return _objects(model, X)
    # An array that is right needs no look at what else it could be, which takes longer than the prediction of a row.
    if (
        type(X) is np.ndarray
        and X.dtype in _READ_IN_PLACE
        and X.ndim == 2
        and X.shape[1] == model.n_features_in_
        and X.shape[0] > 0
        and not hasattr(model, "feature_names_in_")
        and not hasattr(model, "_n_encoded")
    ):
        return X
    return _numeric(model, X, reset=False, is_matrix=reads_matrix(model))


def checked_training(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
    """X of a fit, and y if it is given; of a model that is fitted already unless `reset`."""
    if not (callable(estimator.kernel) and not _is_table(X) if reset else takes_objects(estimator)):
        of_matrix = is_matrix(estimator.kernel) if reset else reads_matrix(estimator)
        return _numeric(estimator, X, y, reset=reset, is_matrix=of_matrix)
    X = _objects(estimator, X)
    if isinstance(y, str):
        return X
    check_container("y", y)
    y = validate_data(estimator, "no_validation", y, reset=reset, multi_output=estimator._multi_output)
    check_consistent_length(X, y)
    return X, y


def _numeric(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool, is_matrix: bool) -> Any:
    """`validate_data`, which leaves NaN and inf to Rust, and X as Rust reads it."""
    if not reset and hasattr(estimator, "_n_encoded"):
        X = encoded(estimator, X)
        if isinstance(y, str):
            return X
        return check_X_y(X, y, dtype="numeric", ensure_all_finite=False, multi_output=estimator._multi_output)
    if is_matrix and sparse.issparse(X):
        raise TypeError(f"a precomputed kernel matrix must be dense, got a sparse {type(X).__name__}; pass K.toarray()")
    check_container("X", X)
    check_container("y", y)
    of_y = {} if isinstance(y, str) else {"multi_output": estimator._multi_output}
    try:
        checked = validate_data(
            estimator, X, y, reset=reset, dtype="numeric", ensure_all_finite=False, accept_sparse="csr", **of_y
        )
        return (_readable(checked[0]), checked[1]) if isinstance(checked, tuple) else _readable(checked)
    except (TypeError, ValueError) as error:
        explained = not_numbers(X, error)
        if explained is None:
            raise
        raise explained from error


def _is_table(X: Any) -> bool:
    """Whether X is a table of numbers, or meant as one, rather than a sequence of objects for a kernel function."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind not in "OSU"
    if is_frame(X) or sparse.issparse(X):
        return True
    if hasattr(X, "dtype") and hasattr(X, "to_numpy"):  # a column of a frame
        return np.asarray(X).dtype.kind not in "OSU"
    if not isinstance(X, Sequence) or isinstance(X, str | bytes):
        return True
    if not all(isinstance(row, list | tuple | np.ndarray) for row in X):
        return all(isinstance(row, int | float | np.number) for row in X)
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return False
    return array.dtype.kind in "biuf" and array.ndim <= 2


def _objects(estimator: Any, X: Any) -> Objects:
    """Objects, one a row, as an array: what a kernel function gets."""
    check_container("X", X)
    name = type(estimator).__name__
    if isinstance(X, str | bytes) or is_frame(X) or sparse.issparse(X) or not hasattr(X, "__len__"):
        raise TypeError(
            f"{name} with a function of objects as its kernel takes a list or an array of them, one a row, not a "
            f"{type(X).__name__}"
        )
    if isinstance(X, np.ndarray) and X.dtype.kind in "OSU" and X.ndim > 0:
        objects = X.astype(object)
    else:
        objects = np.fromiter(X, dtype=object, count=len(X))
    if len(objects) == 0:
        raise ValueError(f"X has 0 samples, but {name} needs at least 1")
    return objects


def scaled(X: Any, shift: npt.NDArray[np.float64], factor: npt.NDArray[np.float64]) -> Any:
    """(X − shift) · factor, column by column; what is sparse stays so."""
    if not sparse.issparse(X):
        return (X.astype(np.float64) - shift) * factor
    if shift.any():
        raise ValueError(
            "the model subtracts a number from each column before it predicts, which would make these sparse rows "
            "dense; pass X.toarray()"
        )
    X = X.astype(np.float64)
    X.data *= factor[X.indices]
    return X


def _readable(X: Any) -> Any:
    """`X` as Rust reads it: float32 or float64, and if sparse, canonical: indices ascending, none twice."""
    if X.dtype not in (np.float32, np.float64):
        if X.dtype.kind in "mM":
            raise TypeError(f"X must hold numbers, but its dtype is {X.dtype}; {TIMES}")
        X = X.astype(np.float64)
    return _canonical(X) if sparse.issparse(X) else X


def _canonical(X: Any) -> Any:
    # A matrix that shares the arrays: what scipy notes on it, and what it sorts, is not the caller's.
    kind = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
    # Without gaps and aligned, as scipy's loops trust them to be. Where rows begin is copied: another thread that
    # changed it would send readers out of the arrays.
    data, indices = (np.require(part, requirements=["C", "A"]) for part in (X.data, X.indices))
    arrays = (data, indices, np.array(X.indptr))
    shared = kind(arrays, shape=X.shape)
    shared.check_format(full_check=True)  # sorting trusts the indices
    if shared.has_canonical_format:
        return shared
    shared = shared.copy()
    shared.sum_duplicates()
    return shared
