"""A pipeline that scales columns, and then predicts by an estimator of this library, as one model that does both."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

Vector = npt.NDArray[np.float64]

# x' = (x − shift) · factor, column by column; None: no shift, or no factor.
Affine = tuple[Any, Any]

_WAY_OUT = "save the last step alone and transform rows before it predicts, or pickle the pipeline"


def _standard(step: StandardScaler) -> Affine:
    return step.mean_ if step.with_mean else None, 1.0 / step.scale_ if step.with_std else None


def _min_max(step: MinMaxScaler) -> Affine:
    return -step.min_ / step.scale_, step.scale_


def _max_abs(step: MaxAbsScaler) -> Affine:
    return None, 1.0 / step.scale_


def _robust(step: RobustScaler) -> Affine:
    return step.center_ if step.with_centering else None, 1.0 / step.scale_ if step.with_scaling else None


# What each scaler does to a column; that of a subclass is not known.
SCALERS: dict[type, Callable[[Any], Affine]] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
}


def with_scaling(model: Any, kind: type[Any]) -> Any:
    """The last step of a pipeline, an estimator of that kind, as a model that does what the scalers before it do.

    What is no pipeline is returned as it is.
    """
    if not isinstance(model, Pipeline):
        return model
    *before, (last_name, last) = _steps(model)
    if not isinstance(last, kind):
        raise TypeError(
            f"the pipeline ends in the step {last_name!r}, a {type(last).__name__}, and a file holds an estimator of "
            "kernelpath that predicts"
        )
    scalers = [(name, _checked(name, step)) for name, step in before]
    check_is_fitted(last)
    if not scalers:
        return last
    if last._kernel["kernel"] == "precomputed":
        name, step = scalers[0]
        raise ValueError(
            f"the step {name!r} of the pipeline, a {type(step).__name__}, scales what the kernel is computed of, and a "
            "model file holds no such kernel: use a kernel of kernelpath, or pickle the pipeline"
        )
    shift, factor = _composed(scalers, last.n_features_in_)
    twin = copy.copy(last)
    twin.__dict__.pop("feature_names_in_", None)
    twin.__dict__.pop("_training", None)  # digests of scaled rows
    names = getattr(scalers[0][1], "feature_names_in_", None)
    if names is not None:
        twin.feature_names_in_ = names
    if hasattr(last, "_scaling"):
        shift, factor = _after((shift, factor), last._scaling)
    twin._scaling = shift, factor
    return twin


def _steps(model: Pipeline) -> Iterator[tuple[str, Any]]:
    """The names and estimators of all steps that do something, also of a pipeline in a pipeline."""
    for name, step in model.steps:
        if isinstance(step, Pipeline):
            yield from _steps(step)
        elif step is not None and not isinstance(step, str):  # "passthrough"
            yield name, step


def _checked(name: str, step: Any) -> Any:
    kind = type(step).__name__
    if type(step) not in SCALERS:
        known = ", ".join(scaler.__name__ for scaler in SCALERS)
        raise ValueError(
            f"the step {name!r} of the pipeline is a {kind}, and a model holds only steps that shift and scale each "
            f"column by itself ({known}): {_WAY_OUT}"
        )
    if getattr(step, "clip", False):
        raise ValueError(
            f"the step {name!r} of the pipeline is a {kind} with clip=True, and a model shifts and scales columns but "
            f"does not clip them: fit with clip=False, or {_WAY_OUT}"
        )
    try:
        check_is_fitted(step)
    except NotFittedError:
        raise NotFittedError(
            f"the step {name!r} of the pipeline, a {kind}, is not fitted yet: call fit of the pipeline first"
        ) from None
    return step


def _composed(scalers: list[tuple[str, Any]], n_columns: int) -> tuple[Vector, Vector]:
    """One shift and factor of each column for all scalers, one after the other."""
    total = np.zeros(n_columns), np.ones(n_columns)
    for name, step in scalers:
        if step.n_features_in_ != n_columns:
            raise ValueError(
                f"the step {name!r} of the pipeline was fitted on {step.n_features_in_} columns, and the last step on "
                f"{n_columns}: fit the pipeline as a whole"
            )
        with np.errstate(all="ignore"):
            shift, factor = SCALERS[type(step)](step)
            total = _after(total, (0.0 if shift is None else shift, 1.0 if factor is None else factor))
        bad = np.flatnonzero(~(np.isfinite(total[0]) & np.isfinite(total[1])))
        if bad.size:
            raise ValueError(
                f"the step {name!r} of the pipeline, a {type(step).__name__}, scales column {bad[0]} by a number that "
                "is not finite in double precision; leave the column out, or bring it to another unit"
            )
    return total


def _after(first: Affine, second: Affine) -> tuple[Vector, Vector]:
    """What two maps do together: ((x − s₁) f₁ − s₂) f₂ = (x − (s₁ + s₂ / f₁)) f₁ f₂."""
    return first[0] + second[0] / first[1], first[1] * second[1]
