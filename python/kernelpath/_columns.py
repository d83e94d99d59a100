"""What was passed as X, y or weights and is not numbers: what is wrong, in which column, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from scipy import sparse

TIMES = "turn dates and times into numbers first, such as days since the first"
MOST_SHOWN = 60  # characters of a value
NOT_A_NUMBER = "is not a number"
ENCODE = "by OneHotEncoder or OrdinalEncoder of scikit-learn"

# What Rust says of a value that is not finite.
NOT_FINITE = re.compile(r"^X contains (\S+) at row (\d+), column (\d+):")


def check_container(name: str, values: Any) -> None:
    """Refuse what would be read as other numbers than it stands for: masked entries, and times in polars."""
    kind = type(values)
    if kind is np.ndarray:
        return
    if isinstance(values, np.ma.MaskedArray):
        if n_masked := np.ma.count_masked(values):
            raise ValueError(
                f"{name} is a masked array with {n_masked} masked of {values.size} entries, whose values would be used "
                f"as if they were not masked; fill them, as by {name}.filled(0.0) or an imputer, or drop their rows"
            )
    elif kind.__module__.startswith("polars"):
        if kind.__name__ == "LazyFrame":
            raise TypeError(f"{name} is a polars LazyFrame, which holds no values yet; pass {name}.collect()")
        if kind.__name__ == "DataFrame" and any(dtype.is_temporal() for dtype in values.dtypes):
            raise TypeError(_not_numbers(values))


def not_numbers(X: Any, error: Exception) -> Exception | None:
    """The error to raise in place of one that came of reading X: it names the value and its place.

    None if X is not what `error` is about.
    """
    text = str(error)
    if sparse.issparse(X) or "feature names" in text:
        return None
    if not (is_frame(X) or "could not convert" in text or "argument must be" in text):
        return None
    message = _not_numbers(X)
    if message is None:
        return None
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"{message} ({text.splitlines()[0]})" if message.endswith(NOT_A_NUMBER) else message)


def named(error: ValueError, model: Any, X: Any, rows: Any = None) -> ValueError:
    """`error` with the name of the column that Rust gives by number, and if it saw only `rows` of X, the row of X."""
    found = NOT_FINITE.match(str(error))
    labels = list(X.columns) if is_frame(X) else getattr(model, "feature_names_in_", None)
    if found is None or (labels is None and rows is None):
        return error
    value, row, column = found[1], int(found[2]), int(found[3])
    label = column if labels is None or column >= len(labels) else labels[column]
    row = row if rows is None else int(rows[row])
    return ValueError(f"X contains {value} at row {row}, column {label!r}:{str(error)[found.end() :]}")


@contextmanager
def columns_named(model: Any, X: Any, rows: Any = None) -> Iterator[None]:
    """Errors about a value of X name its column, and its row in X if only `rows` of it are looked at."""
    try:
        yield
    except ValueError as error:
        raise named(error, model, X, rows) from None


def is_frame(X: Any) -> bool:
    return not isinstance(X, np.ndarray) and hasattr(X, "columns") and hasattr(X, "dtypes")


def _not_numbers(X: Any) -> str | None:
    """What in X is not a number, and what to do; None if all is."""
    columns: Iterable[tuple[Any, Any]]
    if is_frame(X):
        columns = ((label, X.iloc[:, k] if hasattr(X, "iloc") else X[label]) for k, label in enumerate(X.columns))
    else:
        columns = enumerate(np.asarray(X, dtype=object).T)
    for label, column in columns:
        problem = _of_column(column, f"column {label!r}")
        if problem is not None:
            return f"X must hold numbers, but {problem}"
    return None


def _of_column(column: Any, name: str) -> str | None:
    dtype = column.dtype
    if getattr(dtype, "kind", "") in ("m", "M") or (hasattr(dtype, "is_temporal") and dtype.is_temporal()):
        return f"{name} holds dates or times ({dtype}); {TIMES}"
    for row, value in enumerate(column):
        try:
            float(np.nan if value is None else value)
        except (TypeError, ValueError):
            if str(dtype).lower().startswith(("categor", "enum")):
                return f"{name} holds categories, such as {_shown(value)}; encode them first, {ENCODE}"
            return f"row {row}, {name} is {_shown(value)}; {_advice(value)}"
    return None


def _shown(value: Any) -> str:
    """`value` on one line, shortened."""
    text = " ".join(repr(value).split())
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _advice(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, str | bytes):
        return f"encode text columns first, {ENCODE}"
    if isinstance(value, date | time | timedelta | np.datetime64 | np.timedelta64) or kind == "Period":
        return TIMES
    if kind == "NAType":
        return "remove or impute such values"
    return f"convert it: {kind} {NOT_A_NUMBER}"
