"""A word where the best score lies at the edge of the grid, and a wider one would do better."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelpath._results import mean_and_std
from kernelpath._settings import Grid, Settings

Matrix = npt.NDArray[np.float64]


class GridEdgeWarning(UserWarning):
    """The chosen C or γ is the smallest or the largest one tried, and the score still rises there."""


def edge(scores: Matrix, best: int, Cs: Grid, gammas: Grid, settings: Settings) -> str | None:
    """What a GridEdgeWarning must say of scores of shape (n_folds, n_gammas · n_Cs); None if nothing.

    The score still rises at an edge if it is higher there than at the next value, on the mean over the folds by more
    than a standard error of the difference.
    """
    if len(scores) < 2:
        return None
    gamma, c = divmod(best, len(Cs))
    parts = []
    of_gamma = scores.reshape(len(scores), len(gammas), len(Cs))[:, gamma]
    if (inner := _inner_neighbour(Cs, c)) is not None:
        name, values = ("lambda", settings.grid) if settings.grid_is_lambda else ("C", Cs)
        parts.append(_rising(name, values, c, inner, of_gamma[:, c], of_gamma[:, inner], _wider(settings)))
    if (inner := _inner_neighbour(gammas, gamma)) is not None:
        # The other γ at its own best C.
        other = scores.reshape(len(scores), len(gammas), len(Cs))[:, inner]
        mean = np.nan_to_num(mean_and_std(other)[0], nan=-np.inf)
        parts.append(_rising("gamma", gammas, gamma, inner, of_gamma[:, c], other[:, mean.argmax()], "gamma"))
    return " ".join(part for part in parts if part) or None


def _inner_neighbour(values: Grid, at: int) -> int | None:
    """The place of the value next to `values[at]`, if that is the smallest or the largest of several."""
    distinct = np.unique(values)
    if len(distinct) < 2 or values[at] not in (distinct[0], distinct[-1]):
        return None
    neighbour = distinct[1] if values[at] == distinct[0] else distinct[-2]
    return int(np.flatnonzero(values == neighbour)[0])


def _rising(name: str, values: Grid, at: int, inner: int, here: Matrix, there: Matrix, parameter: str) -> str | None:
    difference = here - there
    rise, std = mean_and_std(difference[:, None], ddof=1)
    error = std[0] / np.sqrt(len(difference))
    if not rise[0] > error:
        return None
    largest = values[at] > values[inner]
    end, way = ("largest", "larger") if largest else ("smallest", "smaller")
    return (
        f"The chosen {name}={values[at]:.4g} is the {end} of the {len(np.unique(values))} tried, and the score still "
        f"rises there: by {rise[0]:.2g} ± {error:.1g} from {name}={values[inner]:.4g}. Pass {way} values, too, in "
        f"{parameter}."
    )


def _wider(settings: Settings) -> str:
    """The parameter to widen."""
    if settings.grid_is_lambda:
        return "lambdas"
    return "Cs, such as Cs=np.geomspace(smallest, largest, 50)" if settings.grid_is_default else "Cs"
