"""From scikit-learn's `cv` to folds: pairs of row indices, `"loo"`, or None."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import LeaveOneOut

Index = npt.NDArray[np.int64]
Folds = list[tuple[Index, Index]] | Literal["loo"] | None


def make_folds(cv: Any, X: Any, y: Any, groups: Any, splitter: Any, random_state: Any) -> Folds:
    """Folds of the rows of `X`.

    An int is shuffled: the folds of ``splitter(cv, shuffle=True, random_state=random_state)``.
    """
    if cv is None:
        return None
    if isinstance(cv, str):
        if cv != "loo":
            raise ValueError(f"unknown cv={cv!r}; the only named one is 'loo' (leave one out)")
        return "loo"
    if isinstance(cv, LeaveOneOut):
        return "loo"
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        cv = splitter(int(cv), shuffle=True, random_state=random_state)
    if hasattr(cv, "split"):
        splits = cv.split(X, y, groups)
    elif isinstance(cv, Iterable):
        splits = cv
    else:
        raise TypeError(f"cv must be an integer, a splitter, an iterable of (train, test), 'loo' or None, got {cv!r}")
    folds = [_fold(k, split, len(y)) for k, split in enumerate(splits)]
    if not folds:
        raise ValueError("cv yields no folds; pass cv=None to fit without cross-validation")
    return folds


def _fold(k: int, split: Any, n_rows: int) -> tuple[Index, Index]:
    try:
        train, test = split
    except (TypeError, ValueError):
        raise ValueError(f"fold {k} of cv is not a pair (train, test) of row indices or masks") from None
    return _rows(k, "train", train, n_rows), _rows(k, "test", test, n_rows)


def _rows(k: int, part: str, rows: Any, n_rows: int) -> Index:
    """Row indices of one part of fold `k`, given as indices (repeats allowed) or as a boolean mask."""
    index = np.asarray(rows)
    where = f"the {part} part of fold {k}"
    if index.ndim != 1 or index.size == 0:
        raise ValueError(f"{where} must be a non-empty one-dimensional array, got shape {index.shape}")
    if index.dtype == np.bool_:
        if len(index) != n_rows:
            raise ValueError(f"{where} is a mask of length {len(index)}, but X has {n_rows} rows")
        if not index.any():
            raise ValueError(f"{where} is a mask without a row")
        return np.flatnonzero(index).astype(np.int64, copy=False)
    if index.dtype.kind not in "iu":
        raise ValueError(f"{where} must hold integers or booleans, got dtype {index.dtype}")
    if index.min() < 0 or index.max() >= n_rows:
        raise ValueError(f"{where} names a row outside 0..{n_rows - 1}: {index.min()} to {index.max()}")
    return index.astype(np.int64, copy=False)


def among_rows(cv: Any, rows: Index, n_rows: int) -> Any:
    """`cv` for some of the rows: folds given by row numbers are counted anew, others are made of these rows alone."""
    if cv is None or isinstance(cv, str | Integral) or hasattr(cv, "split") or not isinstance(cv, Iterable):
        return cv
    place = np.full(n_rows, -1)
    place[rows] = np.arange(len(rows))
    folds = []
    for k, split in enumerate(cv):
        parts = [place[part] for part in _fold(k, split, n_rows)]
        folds.append(tuple(part[part >= 0] for part in parts))
    return folds


def spread(values: npt.NDArray[Any], rows: Index | None, n_rows: int) -> npt.NDArray[Any]:
    """Values of some rows among NaN for the others."""
    if rows is None:
        return values
    all_rows = np.full((n_rows, *values.shape[1:]), np.nan)
    all_rows[rows] = values
    return all_rows
