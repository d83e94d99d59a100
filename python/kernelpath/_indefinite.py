"""Kernels with negative eigenvalues, for which no duality gap proves anything: what the user is told."""

from __future__ import annotations

import math
from collections.abc import Sequence

INDEFINITE = "indefinite"


class IndefiniteKernelWarning(UserWarning):
    """The kernel matrix has a negative eigenvalue: the models have no certificate.

    A duality gap bounds the distance to the optimum only if the kernel matrix is positive semi-definite. The message
    states the smallest eigenvalue and what to do. `gaps_` and `dual_objective_` of such models are NaN, and their
    `status_` is "indefinite".
    """


def indefinite(
    kernel: str, eigenvalues: Sequence[float | None], gammas: Sequence[float], coef0: float, low_rank: bool
) -> str | None:
    """What the warning must say, given the smallest eigenvalue at each γ, None where there is no negative one.

    None when the kernel is positive semi-definite at every γ.
    """
    found = [(value, gamma) for value, gamma in zip(eigenvalues, gammas, strict=True) if value is not None]
    if not found:
        return None
    smallest, gamma = min(found)
    matrix = "the kernel matrix of the landmarks" if low_rank else "the kernel matrix"
    where = f" at {len(found)} of {len(gammas)} values of gamma" if len(gammas) > 1 else ""
    at = f" (gamma={gamma:.4g})" if len(gammas) > 1 else ""
    return (
        f"kernel={kernel!r} is indefinite{where}: {matrix} has the eigenvalue {smallest:.4g}{at}. Without a positive "
        "semi-definite kernel no duality gap proves how good a model is: the models are returned, but their gaps and "
        f'dual values are NaN and their status is "{INDEFINITE}". {_advice(kernel, smallest, coef0, low_rank)}'
    )


def _advice(kernel: str, smallest: float, coef0: float, low_rank: bool) -> str:
    instead = f"coef0 >= 0 (it is {coef0:g})" if kernel == "poly" else "another kernel, such as 'rbf'"
    if low_rank:
        return f"Use {instead}. (The features leave out what belongs to negative eigenvalues.)"
    repair = f"add at least {_enough(-smallest)} to its diagonal, or set its negative eigenvalues to 0"
    if kernel == "precomputed":
        return f"Use {instead}; or repair the training matrix: {repair}."
    return f"Use {instead}; or pass the matrix as kernel='precomputed' and repair it: {repair}."


def _enough(shift: float) -> str:
    """`shift` rounded up to two digits, and at least by a thousandth: less would leave a negative eigenvalue."""
    unit = 10.0 ** (math.floor(math.log10(shift)) - 1)
    return f"{math.ceil(1.001 * shift / unit) * unit:.3g}"
