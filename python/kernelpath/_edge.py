"""A word where the best score lies at the edge of the grid, and a wider one would do better."""

from __future__ import annotations

import math

import numpy as np

from kernelpath._results import FoldScores
from kernelpath._settings import Grid, Settings

# By how much a wider grid goes on beyond its edge, and the most values that it has.
FURTHER = {"Cs": 100.0, "lambdas": 100.0, "gamma": 10.0}
MOST_VALUES = 200


class GridEdgeWarning(UserWarning):
    """The chosen C or γ is the smallest or the largest one tried, and the score still rises there."""


def edge(scores: FoldScores, best: int, Cs: Grid, gammas: Grid, settings: Settings) -> str | None:
    """What a GridEdgeWarning must say of scores at each γ and C; None if nothing.

    The score still rises at an edge if it is higher there than at the next value, on the mean over the folds by more
    than a standard error of the difference.
    """
    if len(scores.values) < 2:
        return None
    gamma, c = divmod(best, len(Cs))
    parts = []
    here = scores.at([best])
    if (inner := _inner_neighbour(Cs, c)) is not None:
        name, parameter, values = ("lambda", "lambdas", settings.grid) if settings.grid_is_lambda else ("C", "Cs", Cs)
        parts.append(_rising(name, parameter, values, c, inner, here.minus(scores.at([gamma * len(Cs) + inner]))))
    if (inner := _inner_neighbour(gammas, gamma)) is not None:
        # The other γ at its own best C, of equal ones the smallest.
        places = inner * len(Cs) + np.argsort(Cs, kind="stable")
        there = places[scores.at(places).ranks().argmin()]
        parts.append(_rising("gamma", "gamma", gammas, gamma, inner, here.minus(scores.at([there]))))
    return " ".join(part for part in parts if part) or None


def _inner_neighbour(values: Grid, at: int) -> int | None:
    """The place of the value next to `values[at]`, if that is the smallest or the largest of several."""
    distinct = np.unique(values)
    if len(distinct) < 2 or values[at] not in (distinct[0], distinct[-1]):
        return None
    neighbour = distinct[1] if values[at] == distinct[0] else distinct[-2]
    return int(np.flatnonzero(values == neighbour)[0])


def _rising(name: str, parameter: str, values: Grid, at: int, inner: int, difference: FoldScores) -> str | None:
    rise, error = float(difference.mean()[0]), float(difference.error()[0])
    if not rise > error:
        return None
    largest = bool(values[at] > values[inner])
    end, way = ("largest", "larger") if largest else ("smallest", "smaller")
    return (
        f"The chosen {name}={values[at]:.4g} is the {end} of the {len(np.unique(values))} tried, and the score still "
        f"rises there: by {with_error(rise, error)} from {name}={values[inner]:.4g}. Pass {way} values, too, in "
        f"{parameter}: {_call(parameter, values, largest)}"
    )


def with_error(value: float, error: float) -> str:
    """``value ± error`` to the same decimal, with two digits of the error, or more where they would look the same."""
    if not error > 0.0:
        return f"{value:.2g} ± 0"
    for digits in range(1, 6):
        decimals = max(digits - math.floor(math.log10(error)), 0)
        shown = f"{value:.{decimals}f}", f"{error:.{decimals}f}"
        if shown[0] != shown[1]:
            break
    return " ± ".join(shown) if decimals <= 8 else f"{value:.3g} ± {error:.2g}"


def _call(parameter: str, values: Grid, upwards: bool) -> str:
    """The call that makes the grid wider, with steps of about the same ratio."""
    distinct = np.unique(values)
    low, high, further = float(distinct[0]), float(distinct[-1]), FURTHER[parameter]
    wide = (low, min(high * further, 1e300)) if upwards else (max(low / further, 1e-300), high)
    steps = (len(distinct) - 1) * math.log(wide[1] / wide[0]) / math.log(high / low)
    count = min(max(round(steps), len(distinct)) + 1, max(MOST_VALUES, len(distinct) + 1))
    return f"model.set_params({parameter}=np.geomspace({wide[0]:.4g}, {wide[1]:.4g}, {count}))"
