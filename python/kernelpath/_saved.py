"""A fitted estimator as what a model file holds, and back."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import is_classifier

from kernelpath import _core
from kernelpath._calibration import CalibratedMixin, Calibrator
from kernelpath._encoding import encoded_columns, restore_encoding
from kernelpath._landmarks import Approximation
from kernelpath._machines import Parts
from kernelpath._parameters import from_json, is_text, parameters_to_json, to_json
from kernelpath._read import check_attributes
from kernelpath._settings import _dtype as precision_of

# Attributes that every fit leaves behind: a file has all of them, or none if another program trained the model.
PATH = (
    *("Cs_", "lambdas_", "gammas_", "C_", "lambda_", "gamma_", "best_index_", "best_score_", "scores_"),
    *("gaps_", "gap_noise_", "n_iter_", "status_", "n_support_path_", "objective_", "dual_objective_"),
    *("solver_", "timed_out_", "smallest_eigenvalue_"),
)

# Attributes that a file holds under their own names.
ATTRIBUTES = (
    *PATH,
    *("oof_decision_", "oof_path_", "oof_proba_", "fold_weights_"),
    *("gram_bytes_", "planned_bytes_", "kernel_seconds_", "path_seconds_", "fit_seconds_", "calibration_seconds_"),
    *("landmark_indices_", "rank_", "n_support_", "tau_", "n_crossings_", "epsilon_", "delta_"),
)

# Attributes that are made of the other contents.
_MADE = (
    *("n_features_in_", "feature_names_in_", "_parts", "_learned", "_kernel", "_split_columns", "_scaling"),
    *("_training", "_function", "_is_sorted", "_centre"),
    *("_encoding", "_n_encoded"),
    *("support_", "support_vectors_", "landmarks_", "dual_coef_", "intercept_", "approximation_", "cv_results_"),
    *("classes_", "machines_", "calibration_", "_arrangement"),
)

# What a file does not hold of a fitted estimator is its parameters, and what others keep on it.
STATE = frozenset((*ATTRIBUTES, *_MADE))

# Those of :class:`NystromFeatures`.
FEATURES = frozenset(
    (
        *("n_features_in_", "feature_names_in_", "_kernel", "landmarks_", "landmark_indices_", "map_", "rank_"),
        *("approximation_", "gamma_", "_function", "_precision"),
    )
)

LAYOUT = "support_vectors_.layout"  # how the rows lay in memory, which sums of floats may depend on
FEW_CHARACTERS = 100_000  # of padded labels, whatever the size of the file
MOST_PADDING = 8  # characters of padded labels for each of theirs
LONGEST_TEXT = 32  # characters of a text in an array of them, such as a status

_HELD = ("f8", "f4", "i8", "i4", "u1", "b1")  # types of arrays

# What goes wrong where parts of a file do not fit together.
MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class NotHeldError(ValueError):
    """A model file cannot hold the model."""


class LabelNotHeldError(NotHeldError, TypeError):
    """A model file cannot hold a label of that type."""


def _check_no_code(model: Any) -> None:
    if model._function is not None:
        raise NotHeldError(
            f"a model file holds no code, and the kernel is the function {model._function!r}: fit with "
            "kernel='precomputed' and the matrix of its values, or pickle the model"
        )


def to_saved(model: Any, kind: type) -> _core.Saved:
    """What a file of a fitted estimator holds; `kind` is the class whose name it gets."""
    _check_no_code(model)
    _check_arrays(model)
    return _core.Saved(
        **_described(model, kind, model.support_vectors_),
        machines=model._learned,
        support=np.ascontiguousarray(model.support_, dtype=np.int64),
        coef=model.dual_coef_,
        intercepts=model.intercept_,
        **_outputs(model),
        found=_found(model),
        scaling=getattr(model, "_scaling", None),
        training=getattr(model, "_training", None),
        centre=model._centre,
        encoding=getattr(model, "_encoding", None),
    )


def features_to_saved(features: Any, kind: type) -> _core.Saved:
    """The same of fitted :class:`NystromFeatures`: each feature is a function Σⱼ map_[j, k] k(x, lⱼ)."""
    _check_no_code(features)
    found = {name: _held(name, getattr(features, name)) for name in ("gamma_", "landmark_indices_", "rank_")}
    found["precision_"] = to_json(features._precision)
    described = _described(features, kind, features.landmarks_)
    indices = features.landmark_indices_
    return _core.Saved(
        **described,
        machines=[],
        support=np.empty(0, dtype=np.int64) if indices is None else indices,
        coef=np.ascontiguousarray(features.map_.T),
        intercepts=np.zeros(features.rank_),
        label_type=None,
        labels=None,
        arrangement=None,
        odds=None,
        is_one=False,
        rising=None,
        found=found | _approximated(features) | _laid_out(features.landmarks_),
    )


def _check_arrays(model: Any) -> None:
    """Refuse, with its name, what `fit` does not leave behind: somebody set it."""
    coef, intercepts, support = model.dual_coef_, model.intercept_, model.support_
    vectors, precomputed = model.support_vectors_, model._kernel["kernel"] == "precomputed"
    axes = (("dual_coef_", coef, 2, "f"), ("intercept_", intercepts, 1, "f"), ("support_", support, 1, "i"))
    for name, value, ndim, kind in axes:
        if not isinstance(value, np.ndarray) or value.ndim != ndim or value.dtype.kind != kind or value.itemsize != 8:
            raise NotHeldError(f"{name} is not the array that fit leaves there, but {value!r}")
    if not (isinstance(vectors, np.ndarray) or sparse.issparse(vectors)) or vectors.dtype.kind != "f":
        raise NotHeldError(f"support_vectors_ is not the matrix that fit leaves there, but {vectors!r}")
    functions, count = coef.shape
    width = model._n_encoded if hasattr(model, "_n_encoded") else model.n_features_in_
    rows = (len(support), width) if precomputed else vectors.shape
    if len(intercepts) != functions or rows != (count, width):
        raise NotHeldError(
            f"dual_coef_ of shape {coef.shape} does not fit to {len(intercepts)} intercepts, {rows[0]} support vectors "
            f"and {width} columns"
        )


def _described(model: Any, kind: type, vectors: Any) -> dict[str, Any]:
    """The class, its parameters, its columns, its kernel and the rows that this is taken with."""
    kernel = model._kernel
    precomputed = kernel["kernel"] == "precomputed"
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if not all(map(is_text, names)):
        raise NotHeldError("a model file holds names of columns as UTF-8, which cannot have half a character")
    return {
        "estimator": kind.__name__,
        "parameters": parameters_to_json(model),
        "columns": names or None,
        **kernel,
        "vectors": None if precomputed else vectors,
        "width": model.n_features_in_,
    } | encoded_columns(model)


def restore(model: Any, saved: _core.Saved) -> None:
    """Give an estimator, whose parameters are set, what a file holds beside them."""
    labels, found = saved.labels, saved.found
    if is_classifier(model) != (labels is not None):
        is_what = "numbers" if labels is None else "classes"
        raise ValueError(f"a {type(model).__name__} does not predict {is_what}, as the file has it")
    needed = (*PATH, "split_columns_", *(("tau_",) if hasattr(model, "noncrossing") else ()))
    missing = [name for name in needed if name not in found]
    if len(missing) < len(needed):
        missing += [] if "parts_" in found else ["parts_"]
        if missing:
            raise ValueError(f"there is no {missing[0]}")
    for name in STATE & vars(model).keys():
        delattr(model, name)
    _restore_kernel(model, saved)
    if saved.scaling is not None:
        model._scaling = saved.scaling
    if saved.training is not None:
        model._training = saved.training
    if saved.encoding is not None:
        restore_encoding(model, saved.encoding)
    model._learned = saved.machines
    model._learned, model._centre = saved.machines, saved.centre
    model.support_, model.dual_coef_, model.intercept_ = saved.support, saved.coef, saved.intercepts
    model.support_vectors_ = _rows(saved)
    for attribute in ATTRIBUTES:
        if attribute in found:
            setattr(model, attribute, _read(found[attribute]))
    if "status_" in found:
        model.status_ = model.status_.astype(np.array(_core.STATUS_NAMES).dtype)
    if "rank_" in found:
        model.landmarks_ = model.support_vectors_
        model.approximation_ = _approximation(found)
    if labels is not None and saved.arrangement is not None:
        _restore_classes(model, saved, _classes(labels, saved.label_type), saved.arrangement)
    model._parts = _parts(model, saved)
    if saved.rising is not None:
        model._is_sorted = True
    check_attributes(model)
    if "split_columns_" in found:
        model._split_columns = bool(from_json(found["split_columns_"]))
        # Files of format 1 count the chosen C alone.
        gamma = 0 if len(model.gammas_) == 1 else int(np.flatnonzero(model.gammas_ == model.gamma_)[0])
        model.best_index_ = gamma * model._n_Cs + model.best_index_ % model._n_Cs
        results = model._tables()
        model.cv_results_ = results if model._parts.has_choices else results[0]


def restore_features(features: Any, saved: _core.Saved) -> None:
    """Give :class:`NystromFeatures` what a file holds beside their parameters."""
    if saved.scaling is not None or saved.encoding is not None:
        raise ValueError("features of scaled or encoded columns")
    for name in FEATURES & vars(features).keys():
        delattr(features, name)
    _restore_kernel(features, saved)
    features.landmarks_ = _rows(saved)
    features.map_ = np.ascontiguousarray(saved.coef.T)
    for name in ("gamma_", "landmark_indices_", "rank_"):
        setattr(features, name, _read(saved.found[name]))
    features.approximation_ = _approximation(saved.found)
    precision = from_json(saved.found["precision_"]) if "precision_" in saved.found else features.dtype
    features._precision = precision_of(precision)
    if features.landmark_indices_ is not None and not np.array_equal(features.landmark_indices_, saved.support):
        raise ValueError("landmark_indices_ are not the rows that the landmarks are")


def _restore_kernel(model: Any, saved: _core.Saved) -> None:
    name, gamma, degree, coef0 = saved.kernel
    model._kernel = {
        "kernel": name,
        "gamma": gamma,
        "degree": 3 if degree is None else degree,
        "coef0": 0.0 if coef0 is None else coef0,
    }
    model.n_features_in_ = saved.width
    if saved.columns is not None:
        model.feature_names_in_ = np.array(saved.columns, dtype=object)


def _approximation(found: dict[str, Any]) -> Approximation:
    return Approximation(
        **{field.name: _read(found[f"approximation_.{field.name}"]) for field in fields(Approximation)}
    )


def _restore_classes(model: Any, saved: _core.Saved, classes: Any, arrangement: _core.Arrangement) -> None:
    model.classes_, model._arrangement = classes, arrangement
    model.machines_ = model._labels_set_apart()
    if saved.calibrations and isinstance(model, CalibratedMixin):
        maps = [Calibrator(fitted) for fitted in saved.calibrations]
        model.calibration_ = maps if arrangement.pairs else maps[0]


def _parts(model: Any, saved: _core.Saved) -> Parts:
    """How attributes are laid out. A file that another program wrote may not say so."""
    if "parts_" in saved.found:
        stated = from_json(saved.found["parts_"])
        parts = Parts(tuple(map(str, stated["names"])), bool(stated["is_joint"]), bool(stated["has_own_grids"]))
    elif saved.labels is None:
        parts = Parts(() if saved.is_one else tuple(f"target {k}" for k in range(len(saved.coef))))
    else:
        names = tuple(f"{one!r} against {'the rest' if two is None else repr(two)}" for one, two in model.machines_)
        parts = Parts(names, is_joint=bool(names))
    expected = len(saved.machines) if saved.machines else len(saved.coef)
    if len(parts.names or ("one",)) != expected:
        raise ValueError(f"{expected} machines have the names {list(parts.names)}")
    return parts


def _outputs(model: Any) -> dict[str, Any]:
    """What the values of the machines stand for."""
    numbers = {"label_type": None, "labels": None, "arrangement": None, "odds": None}
    if not is_classifier(model):
        rising = np.argsort(model.tau_).tolist() if getattr(model, "_is_sorted", False) else None
        return {**numbers, "is_one": not model._parts.has_axis, "rising": rising}
    labels = [label.item() if isinstance(label, np.generic) else label for label in model.classes_.tolist()]
    if any(isinstance(label, float) and abs(label) > 2**53 for label in labels):
        raise NotHeldError(f"a model file holds labels up to 2^53 in size, if they are floats, not {labels}")
    for label in labels:
        is_held = isinstance(label, bool | float) or (isinstance(label, int) and abs(label) < 2**127)
        if not is_held and not (isinstance(label, str) and is_text(label)):
            kind = type(label).__name__
            raise LabelNotHeldError(f"a label of a model file is a bool, int, float or str, not {kind}: {label}")
    odds: Any = None
    if hasattr(model, "calibration_"):
        odds = model._maps()
    elif model._probability() == "native":
        odds = "native"
    kind = model.classes_.dtype
    label_type = kind.name if kind.kind in "biufO" else None
    return {
        "label_type": kind.str if kind.kind == "U" else label_type,
        "labels": labels,
        "arrangement": model._arrangement,
        "odds": odds,
        "is_one": True,
        "rising": None,
    }


def _classes(labels: list[Any], label_type: str | None) -> npt.NDArray[Any]:
    """The classes as an array of the type they had."""
    texts = [label for label in labels if isinstance(label, str)]
    kind = np.dtype(label_type if label_type is not None else "U" if texts else np.array(labels).dtype)
    if kind.kind not in "biufUO":
        raise ValueError(f"labels are not of the type {label_type}")
    if kind.kind == "U":
        characters = max(kind.itemsize // 4, *map(len, texts))
        # numpy pads all texts to the longest.
        if characters * len(labels) > FEW_CHARACTERS + MOST_PADDING * sum(map(len, texts)):
            kind = np.dtype(object)
    classes = np.array(labels, dtype=kind)
    if classes.tolist() != labels:
        raise ValueError(f"the classes {labels} are not of the type {label_type}")
    return classes


def _found(model: Any) -> dict[str, Any]:
    state = vars(model)
    found = {name: _held(name, state[name]) for name in ATTRIBUTES if name in state}
    parts = model._parts
    stated = {"names": parts.names, "is_joint": parts.is_joint, "has_own_grids": parts.has_own_grids}
    found["parts_"] = json.dumps(stated)
    if "_split_columns" in state:
        found["split_columns_"] = to_json(model._split_columns)
    return found | _approximated(model) | _laid_out(model.support_vectors_)


def _approximated(model: Any) -> dict[str, Any]:
    parts = vars(model.approximation_) if hasattr(model, "approximation_") else {}
    return {f"approximation_.{name}": _held("approximation_", value) for name, value in parts.items()}


def _held(name: str, value: Any) -> Any:
    try:
        return _written(value)
    except TypeError as error:
        raise NotHeldError(f"a model file cannot hold this {name}: {error}") from error


def _written(value: Any) -> Any:
    """An attribute as Rust reads it: an array, (texts, which of them each entry is), or JSON."""
    if not isinstance(value, np.ndarray):
        return to_json(value)
    if value.dtype.kind != "U":
        if value.dtype.kind + str(value.itemsize) not in _HELD:
            raise TypeError(f"an array of type {value.dtype} has no place there")
        return value
    names, codes = np.unique(value, return_inverse=True)
    return names.tolist(), codes.reshape(value.shape).astype(np.uint32)


def _read(value: Any) -> Any:
    """What :func:`_written` wrote."""
    if isinstance(value, str):
        return from_json(value)
    if isinstance(value, tuple):
        names, codes = value
        if any(len(name) > LONGEST_TEXT for name in names):
            raise ValueError(f"a text in an array is longer than {LONGEST_TEXT} characters")
        return np.array(names, dtype=str)[codes]
    return value


def _laid_out(rows: Any) -> dict[str, Any]:
    if sparse.issparse(rows):
        order = "csr array" if isinstance(rows, sparse.sparray) else "csr matrix"
    else:
        order = "C" if rows.flags.c_contiguous else "F"
    return {LAYOUT: to_json([rows.dtype.name, order])}


def _rows(saved: _core.Saved) -> Any:
    """The support vectors, or landmarks, as they were."""
    vectors, layout = saved.vectors, from_json(saved.found.get(LAYOUT, "null"))
    if vectors is None:
        return np.empty((0, 0))
    name, order = layout or ("float64", None)
    dtype = np.float32 if name == "float32" else np.float64
    if not isinstance(vectors, tuple):
        return vectors.astype(dtype, order="F" if order == "F" else "C")
    values, columns, starts = vectors
    kind = sparse.csr_array if order == "csr array" else sparse.csr_matrix
    index = np.int32 if max(saved.width, len(values)) < 2**31 else np.int64
    parts = values.astype(dtype), columns.astype(index), starts.astype(index)
    return kind(parts, shape=(len(starts) - 1, saved.width))
