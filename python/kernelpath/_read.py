"""What was read from a model file, checked: types and shapes are those that a fit leaves behind."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelpath._settings import Settings, levels, number
from kernelpath._weights import class_factors

_MACHINES, _PROBLEMS, _PLACES = "machines", "problems", "places"

# Attributes that are arrays: the kind of their entries, and their axes. A model without several machines has not the
# first axis, and with one γ the places are the values of C.
_ARRAYS = {
    "gaps_": ("f", (_MACHINES, _PROBLEMS, _PLACES)),
    "gap_noise_": ("f", (_MACHINES, _PROBLEMS, _PLACES)),
    "n_iter_": ("i", (_MACHINES, _PROBLEMS, _PLACES)),
    "status_": ("U", (_MACHINES, _PROBLEMS, _PLACES)),
    "n_support_path_": ("i", (_MACHINES, _PLACES)),
}

# Those of any shape.
_FREE = {"oof_decision_": "f", "oof_path_": "f", "oof_proba_": "f", "n_support_": "i"}

# Attributes that are one value, or None.
_VALUES: dict[str, type | tuple[type, ...]] = {
    "gamma_": (Real, type(None)),
    "solver_": str,
    "timed_out_": bool,
    "smallest_eigenvalue_": (Real, type(None)),
    "gram_bytes_": Integral,
    "planned_bytes_": Integral,
    "kernel_seconds_": Real,
    "path_seconds_": Real,
    "fit_seconds_": Real,
    "calibration_seconds_": Real,
    "rank_": Integral,
    "n_crossings_": Integral,
}


def check_parameters(model: Any) -> None:
    """Refuse parameters that no fit could have had."""
    model._check_parameters()
    if not hasattr(model, "solver"):  # features
        return
    Settings.of(model)
    for name in ("tune", "multi_class", "loss", "noncrossing"):
        if not isinstance(getattr(model, name, None), str | None):
            raise TypeError(f"{name} is {getattr(model, name)!r}")
    if not isinstance(model.keep_path, bool) or not isinstance(model.verbose, int):
        raise TypeError(f"keep_path is {model.keep_path!r} and verbose is {model.verbose!r}")
    if hasattr(model, "tau"):
        levels("tau", [model.tau] if isinstance(model.tau, Real) else model.tau)
    for name in ("epsilon", "delta"):
        if getattr(model, name, "auto") != "auto":
            number(name, getattr(model, name), at_least=0.0)


def check_class_weight(model: Any) -> None:
    """Refuse weights of classes that are none; the classes are known."""
    if hasattr(model, "class_weight"):
        class_factors(model.class_weight, model.classes_)


def check_attributes(model: Any) -> None:
    """Refuse attributes that no fit leaves behind."""
    state, parts = vars(model), model._parts
    for name, kinds in _VALUES.items():
        is_bool = isinstance(state.get(name), bool) and kinds is not bool
        if name in state and (is_bool or not isinstance(state[name], kinds)):
            raise ValueError(f"{name} is {state[name]!r}")
    if not 1 <= state.get("rank_", 1) <= model.dual_coef_.shape[1]:
        raise ValueError(f"rank_ is {model.rank_!r}, of {model.dual_coef_.shape[1]} landmarks")
    for name, kind in _FREE.items():
        if name in state:
            _check_array(name, state[name], kind, None)
    for name in ("tau_", "epsilon_", "delta_"):
        if state.get(name) is not None and not _are_none(state[name]):
            _check_numbers(name, state[name], len(parts.names), name == "tau_")
    if "Cs_" not in state:
        return
    machines = (len(parts.names),) if parts.has_axis else ()
    own, apart = (machines if is_there else () for is_there in (parts.has_own_grids, parts.has_choices))
    _check_array("gammas_", model.gammas_, "f", None)
    cs = np.shape(model.Cs_)[-1:]
    for name in ("Cs_", "lambdas_"):
        _check_array(name, state[name], "f", (*own, *cs))
    gammas = len(model.gammas_)
    if model.gammas_.ndim != 1 or gammas == 0 or not cs or cs[0] == 0:
        raise ValueError("it has no grid of C and gamma")
    places = cs if gammas == 1 else (gammas, *cs)
    problems = np.shape(model.gaps_)[len(machines) : len(machines) + 1]
    axes = {_MACHINES: machines, _PROBLEMS: problems, _PLACES: places}
    for name, (kind, names) in _ARRAYS.items():
        _check_array(name, state[name], kind, tuple(length for axis in names for length in axes[axis]))
    folds = np.shape(model.scores_)[len(apart) : len(apart) + 1]
    _check_array("scores_", model.scores_, "f", (*apart, *folds, *places))
    if "fold_weights_" in state:
        _check_array("fold_weights_", model.fold_weights_, "f", folds)
    for name, shape in (("C_", own or apart), ("lambda_", own or apart), ("best_score_", apart)):
        _check_shaped(name, state[name], shape)
    for name in ("objective_", "dual_objective_"):
        _check_shaped(name, state[name], machines)
    best = np.asarray(model.best_index_)
    if best.shape != apart or best.dtype.kind != "i" or not ((best >= 0) & (best < gammas * cs[0])).all():
        raise ValueError(f"best_index_ is {model.best_index_!r}")
    if gammas > 1 and model.gamma_ not in model.gammas_:
        raise ValueError(f"gamma_ is {model.gamma_!r}, which is none of gammas_")


def _are_none(value: Any) -> bool:
    """Whether the losses of the machines have no such constant."""
    return isinstance(value, list | np.ndarray) and len(value) > 0 and all(entry is None for entry in value)


def _check_array(name: str, value: Any, kind: str, shape: tuple[int, ...] | None) -> None:
    if not isinstance(value, np.ndarray) or value.dtype.kind != kind or (shape is not None and value.shape != shape):
        found = f"of shape {value.shape} and type {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
        raise ValueError(f"{name} is {found}, not an array{'' if shape is None else f' of shape {shape}'}")


def _check_shaped(name: str, value: Any, shape: tuple[int, ...]) -> None:
    """An array of floats with an entry for each machine, or a number."""
    if shape:
        _check_array(name, value, "f", shape)
    elif isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} is {value!r}, not a number")


def _check_numbers(name: str, value: Any, machines: int, is_list: bool) -> None:
    entries = value if isinstance(value, Iterable) and not isinstance(value, str | dict) else [value]
    if any(isinstance(entry, bool) or not isinstance(entry, Real) for entry in entries):
        raise ValueError(f"{name} is {value!r}, not numbers")
    if len(list(entries)) != (machines or 1):
        raise ValueError(f"{name} has not a number for each of {machines or 1} machines")
