"""Models that the command trained on tables: texts and missing values become numbers before the model sees them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from kernelpath import _core
from kernelpath._columns import columns_named

UNKNOWN = -1.0  # what a text becomes that training has not seen


def restore_encoding(model: Any, encoding: str) -> None:
    """Give a model that a file holds the way in which the columns of a table become its features.

    Its `n_features_in_` and `feature_names_in_` are then those of the table.
    """
    model._encoding = encoding
    columns = json.loads(encoding)["columns"]
    if not columns:
        return
    model._n_encoded = model.n_features_in_
    model.n_features_in_ = len(columns)
    names = [column["name"] for column in columns]
    model.__dict__.pop("feature_names_in_", None)
    if None not in names:
        model.feature_names_in_ = np.array(names, dtype=object)


def encoded_columns(model: Any) -> dict[str, Any]:
    """What a file says of the features of a model: their number, and their names if there are any."""
    if not hasattr(model, "_n_encoded"):
        return {}
    names = [
        name if texts is None else f"{name}={text}"
        for name, texts in ((column["name"], column.get("texts")) for column in json.loads(model._encoding)["columns"])
        for text in ([""] if texts is None else texts)
    ]
    return {"width": model._n_encoded, "columns": names if hasattr(model, "feature_names_in_") else None}


def encoded(model: Any, X: Any) -> npt.NDArray[np.float64]:
    """The features of the rows of a table: a data frame, or an array or lists of numbers and texts.

    None, NaN and missing values of pandas are missing. Columns of data frames are those of the training data by name.
    """
    columns = json.loads(model._encoding)["columns"]
    is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    table: Any = X if is_frame else np.asarray(X, dtype=object)
    if not is_frame and table.ndim != 2:
        raise ValueError(f"X must have two axes, got shape {table.shape}")
    validate_data(model, table, reset=False, skip_check_array=True)
    raw = np.empty((len(table), len(columns)))
    for k, column in enumerate(columns):
        if not is_frame:
            values = table[:, k]
        else:
            values = table.iloc[:, k] if hasattr(table, "iloc") else table[table.columns[k]]
        label = column["name"] if column["name"] is not None else k
        raw[:, k] = _numbers(values, label) if column.get("texts") is None else _places(values, column["texts"])
    with columns_named(model, X):
        return _core.encode(model._encoding, raw, model._n_encoded)


def _is_missing(value: Any) -> bool:
    # NaN, NaT and pandas' NA are not equal to themselves, the last of them in a value that has no truth.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _places(values: Any, texts: list[str]) -> list[float]:
    places = {text: float(place) for place, text in enumerate(texts)}
    return [np.nan if _is_missing(value) else places.get(str(value), UNKNOWN) for value in values]


def _numbers(values: Any, label: Any) -> list[float]:
    numbers = []
    for row, value in enumerate(values):
        try:
            numbers.append(np.nan if _is_missing(value) else float(value))
        except (TypeError, ValueError):
            raise ValueError(f"row {row}, column {label!r} is {value!r}, and the model needs a number there") from None
    return numbers
