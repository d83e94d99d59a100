"""From scikit-learn's `cv` to folds: pairs of row indices, `"loo"`, or None."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import LeaveOneOut, PredefinedSplit

Index = npt.NDArray[np.int64]
Folds = list[tuple[Index, Index]] | Literal["loo"] | None

# What the rows of a fold are for.
PARTS = ("train", "test")


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
    (in_train, in_test) = PARTS
    return _rows(k, in_train, train, n_rows), _rows(k, in_test, test, n_rows)


def _rows(k: int, part: str, rows: Any, n_rows: int) -> Index:
    """Row indices of one part of fold `k`, given as indices (repeats allowed) or as a boolean mask."""
    index = np.asarray(rows)
    where = f"the {part} part of fold {k}"
    if index.ndim == 1 and index.size == 0:
        raise ValueError(f"{where} has no rows: leave the fold out")
    if index.ndim != 1:
        raise ValueError(f"{where} must be a one-dimensional array of rows, got shape {index.shape}")
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
    if isinstance(cv, PredefinedSplit):  # it has the fold of every row, and does not look at X
        if len(cv.test_fold) != n_rows:
            raise ValueError(f"cv=PredefinedSplit(…) has the folds of {len(cv.test_fold)} rows, but X has {n_rows}")
        return PredefinedSplit(np.asarray(cv.test_fold)[rows])
    if cv is None or isinstance(cv, str | Integral) or hasattr(cv, "split") or not isinstance(cv, Iterable):
        return cv
    place = np.full(n_rows, -1)
    place[rows] = np.arange(len(rows))
    return [
        tuple(_counted(k, part, given, place) for part, given in zip(PARTS, _fold(k, split, n_rows), strict=True))
        for k, split in enumerate(cv)
    ]


def _counted(k: int, part: str, given: Index, place: Index) -> Index:
    """The rows of one part of fold `k` that are left, by their new places."""
    left = place[given]
    left = left[left >= 0]
    if not left.size:
        raise ValueError(
            f"the {part} part of fold {k} has rows of weight 0 only, which count as no rows: leave the fold out, or "
            "give one of its rows a weight"
        )
    return left


def spread(values: npt.NDArray[Any], rows: Index | None, n_rows: int) -> npt.NDArray[Any]:
    """Values of some rows among NaN for the others."""
    if rows is None:
        return values
    all_rows = np.full((n_rows, *values.shape[1:]), np.nan)
    all_rows[rows] = values
    return all_rows
