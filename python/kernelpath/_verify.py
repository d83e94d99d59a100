"""The certificate of a fitted model, recomputed from its data."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from kernelpath import _core
from kernelpath._rows import reads_matrix
from kernelpath._settings import Settings, called
from kernelpath._weights import Weights, checked_weights, without_zeros

# Columns that were scaled by others are equal to ours within so many units of what was scaled.
SCALING_SLACK = 4.0 * float(np.finfo(np.float32).eps)


class Certificate(NamedTuple):
    """What proves a model: the value P of its objective is at most P − D above the optimum, up to the noise.

    Of several machines or quantiles, each field is an array with an entry for each.
    """

    primal: Any
    """P, the value of the objective at the model."""
    dual: Any
    """D, a lower bound of the objective."""
    gap: Any
    """(P − D) / max(|P|, |D|)."""
    noise: Any
    """How far rounding may have taken the gap, over max(|P|, |D|)."""


def verified(model: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of each machine of a fitted estimator, from the data it was fitted on."""
    check_is_fitted(model)
    if not hasattr(model, "C_"):
        raise ValueError(
            f"the file that this {type(model).__name__} comes from holds no C, so that there is no objective to verify"
        )
    X, y = model._checked_training(X, y, reset=False)
    weight = checked_weights(sample_weight, len(y))
    given = X, y, weight
    rows, X, y, weight = without_zeros(X, y, weight, reads_matrix(model))
    X = model._scaled(X)
    support = model.support_ if rows is None else np.searchsorted(rows, model.support_)
    _check_same_rows(model, X, support)
    twin = copy.copy(model)  # whose classes and machines are made anew
    settings = Settings.of(model, None)
    # C_ is each machine's own.
    tasks = [replace(task, c_factor=1.0) for task in twin._make_machines(y, weight, settings).tasks]
    if not np.array_equal(getattr(twin, "classes_", 0), getattr(model, "classes_", 0)):
        raise ValueError(
            f"y has not the classes that the model was fitted on, {model.classes_.tolist()}; verify needs the data of "
            "the fit"
        )
    _check_digests(model, given)
    if len(tasks) == len(model.dual_coef_):
        coefs = [(coef[None], intercept) for coef, intercept in zip(model.dual_coef_, model.intercept_, strict=True)]
    else:  # one machine of all classes
        coefs = [(model.dual_coef_, model.intercept_)]

    kernel = model._kernel
    matrix = X if model._function is None else called(model._function, X, X)
    is_low_rank = hasattr(model, "landmarks_")
    basis = _basis(model, matrix, support, settings.n_threads) if is_low_rank else None
    proofs = []
    for k, (task, (coef, intercept)) in enumerate(zip(tasks, coefs, strict=True)):
        own = task.rows
        if not is_low_rank:
            spread = np.zeros((len(coef), X.shape[0]))
            spread[:, support] = coef
            coef = spread if own is None else spread[:, own]
        proofs.append(
            _core.verify(
                matrix,
                task,
                coef=np.ascontiguousarray(coef),
                intercepts=np.atleast_1d(intercept),
                C=float(model.C_ if np.ndim(model.C_) == 0 else model.C_[k]),
                **kernel,
                tol=settings.tol,
                max_iter=settings.max_iter,
                assume_definite=settings.assume_definite,
                n_threads=settings.n_threads,
                low_rank=basis,
            )
        )
    return Certificate(*(model._parts.joined(values) for values in zip(*proofs, strict=True)))


def _check_digests(model: Any, given: tuple[Any, Any, Weights | None]) -> None:
    """Refuse rows that are not those of the fit; a file of format 1 does not know them."""
    trained = getattr(model, "_training", None)
    difference = None if trained is None else _core.training_difference(digests(*given), trained)
    if difference is not None:
        raise ValueError(
            f"these are not the training rows: {difference}; verify needs the data of the fit, with its sample_weight"
        )


def digests(X: Any, y: npt.NDArray[Any], weight: Weights | None) -> str:
    """The digests of rows, with their targets or labels, and their weights."""
    if y.dtype.kind in "biuf":
        return _core.training_rows(X, numbers=y.astype(np.float64).reshape(len(y), -1), weight=weight)
    return _core.training_rows(X, labels=[_label(label) for label in y.ravel().tolist()], weight=weight)


def _label(label: Any) -> bool | int | float | str:
    """A label as the digest sees it: what Rust has no type for goes by its text."""
    if isinstance(label, bool | float) or (isinstance(label, int) and abs(label) < 2**63):
        return label
    return str(label).encode("utf-8", "backslashreplace").decode("utf-8")


def _basis(model: Any, matrix: Any, support: Any, n_threads: int) -> _core.Nystrom:
    """The landmarks of the fit, and the map from their kernel to features, made anew."""
    precomputed = model._kernel["kernel"] == "precomputed"
    landmarks = support.astype(np.int64) if precomputed else model.landmarks_
    return _core.nystrom(
        matrix, landmarks, model.dual_coef_.shape[1], model.rank_, 0, **model._kernel, n_threads=n_threads
    )


def _equal_sparse(A: Any, B: Any, are_equal: Any) -> bool:
    """Whether two canonical CSR matrices are equal.

    scipy's ``A != B`` trusts the indices, and another thread may have written to those of X.
    """
    if not sparse.issparse(B) or A.shape != B.shape:
        return False
    A, B = A.copy(), B.copy()
    A.eliminate_zeros()
    B.eliminate_zeros()
    has_same_places = all(np.array_equal(getattr(A, part), getattr(B, part)) for part in ("indptr", "indices"))
    return has_same_places and are_equal(A.data, B.data)


def _check_same_rows(model: Any, X: Any, support: Any) -> None:
    vectors = model.support_vectors_
    if reads_matrix(model) or len(support) != vectors.shape[0] or vectors.dtype == object:
        return  # objects need not know whether they are equal
    are_equal: Any = np.array_equal
    if hasattr(model, "_scaling"):  # the fit may have scaled with other roundings, and in single precision
        shift, factor = model._scaling
        offset = 0.0 if sparse.issparse(X) else np.abs(shift * factor)

        def are_equal(a: Any, b: Any) -> bool:
            return a.shape == b.shape and bool((np.abs(a - b) <= SCALING_SLACK * (np.abs(a) + offset)).all())

    if len(support) and support.max() < X.shape[0]:
        found = X[support]
        is_same = _equal_sparse(found, vectors, are_equal) if sparse.issparse(found) else are_equal(found, vectors)
    else:
        is_same = len(support) == 0
    if not is_same:
        raise ValueError(
            "X holds other rows than the model was fitted on (X[support_] differs from support_vectors_); "
            "verify needs the data of the fit"
        )
