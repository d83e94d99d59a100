"""Parameters and small attributes as JSON, and back."""

from __future__ import annotations

import inspect
import json
import math
from numbers import Integral, Real
from typing import Any

import numpy as np

LONGEST_LIST = 10_000  # entries; a list of that length takes 200 kB of the 16 MB that the header of a file may have
LONGEST_REPR = 200  # characters

_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


# Where a fit computed. The file has them on record; they are not set for whoever loads it.
MACHINE = ("device", "n_jobs")
RECORDED = "_recorded"


class Lost(str):
    """The `repr` of a value that JSON cannot hold."""


def to_json(value: Any) -> str:
    """`value` as a text of JSON; TypeError if it is nothing that JSON holds."""
    return json.dumps(_plain(value), allow_nan=False)


def from_json(text: str) -> Any:
    """What :func:`to_json` wrote."""
    return _restored(json.loads(text))


def parameters_to_json(estimator: Any) -> str:
    """The parameters as a JSON object; what JSON cannot hold is written as its `repr`."""
    parameters = {name: _parameter(value) for name, value in estimator.get_params(deep=False).items()}
    defaults = inspect.signature(type(estimator)).parameters
    for name, value in getattr(estimator, RECORDED, {}).items():
        if name in defaults and parameters.get(name) == defaults[name].default:  # not set since the file was read
            parameters[name] = value
    return json.dumps(parameters, allow_nan=False)


def parameters_from_json(text: str, kind: type) -> tuple[dict[str, Any], dict[str, str]]:
    """Keywords for the constructor of `kind`, and those left out as it cannot take them, with what is known of them."""
    known = inspect.signature(kind).parameters
    kept, lost = {}, {}
    for name, value in json.loads(text).items():
        restored = _restored(value)
        if isinstance(restored, Lost) or name not in known:
            lost[name] = str(restored)
        else:
            kept[name] = restored
    return kept, lost


def is_text(text: str) -> bool:
    """Whether UTF-8 has all of its characters; a surrogate by itself is none."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _parameter(value: Any) -> Any:
    try:
        return _plain(value)
    except TypeError:
        name = getattr(value, "__qualname__", None)  # the repr of a function has its place in memory
        text = repr(value) if name is None else f"{value.__module__}.{name}"
        return {"repr": text if len(text) <= LONGEST_REPR else f"{text[:LONGEST_REPR]}…"}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = list(value)
    if isinstance(value, list | tuple) and len(value) <= LONGEST_LIST:
        return [_scalar(entry) for entry in value]
    if isinstance(value, dict) and len(value) <= LONGEST_LIST:
        return {"items": [[_scalar(key), _scalar(entry)] for key, entry in value.items()]}
    if isinstance(value, np.dtype) or (isinstance(value, type) and (value is float or issubclass(value, np.generic))):
        return np.dtype(value).name
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        if isinstance(value, str) and not is_text(value):
            raise TypeError(f"a text with half a character is nothing that JSON holds: {value!r}")
        return str(value) if isinstance(value, str) else value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral) and abs(int(value)) < 2**63:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    raise TypeError(f"a {type(value).__name__} is nothing that JSON holds: {value!r}")


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("repr"), str):
        return Lost(value["repr"])
    if value.get("float") in _FLOATS:
        return _FLOATS[value["float"]]
    if value.keys() == {"integer"}:
        return int(value["integer"])
    if value.keys() == {"items"}:
        return {_restored(key): _restored(entry) for key, entry in value["items"]}
    return {name: _restored(entry) for name, entry in value.items()}
