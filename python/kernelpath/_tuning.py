"""The choice of C and γ by a scorer written in Python, and what is asked before any choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpath import _core
from kernelpath._folds import Folds, Index
from kernelpath._scoring import Scorer, score_folds
from kernelpath._weights import Weights

Matrix = npt.NDArray[np.float64]

# The maps from decision values to probabilities, one a machine; empty where there are none.
Maps = list[_core.Calibration]


@dataclass(frozen=True)
class HeldOut:
    """The data as a scorer sees it: the rows of each fold, and who stands in for the model of the fold.

    Called with the models of a fit, it returns the scores of each place, shape (n_folds, n_places): of each machine by
    itself if `targets` has the targets of each, else of all machines as one model. `stand_in` gets the values of the
    fold's rows, and what gives the maps to probabilities at that place.
    """

    X: Any
    y: Any
    weight: Weights | None
    folds: Folds
    scorer: Scorer
    stand_in: Callable[[Matrix, Callable[[], Maps]], Any]
    targets: list[Any] | None = None

    def __call__(self, fit: _core.Fit) -> list[Matrix]:
        """The scores of each machine, or of all as one model."""
        if self.targets is None:
            return [self._scores(fit, None, self.y)]
        return [self._scores(fit, m, y) for m, y in enumerate(self.targets)]

    def _scores(self, fit: _core.Fit, machine: int | None, y: Any) -> Matrix:
        maps = cache(fit.calibrations_at)

        def stand_in(of_fold: Matrix, place: int) -> Any:
            return self.stand_in(of_fold, lambda: maps(place))

        return score_folds(self.scorer, self._values(fit, machine), self.X, y, self.weight, stand_in)

    def _values(self, fit: _core.Fit, machine: int | None) -> Iterable[tuple[Index, Iterable[Matrix]]]:
        """(test rows, their values at each place) of each fold."""
        places = range(fit.gaps.shape[-1])
        if self.folds == "loo":
            # A single row cannot be ranked: the scorer sees all rows at once.
            yield np.arange(len(self.y)), (fit.out_of_fold(place, machine) for place in places)
            return
        for fold, (_, test) in enumerate(self.folds or ()):
            yield test, (fit.values(fold, place, machine) for place in places)


def check_tunable(folds: Folds, n_Cs: int, n_gammas: int, n_rows: int, selection: str, scorer: Scorer | None) -> None:
    """Refuse, before any work, a choice of C and γ that the scores could not support."""
    if folds is None and n_Cs * n_gammas > 1:
        several = [
            (f"{count} values of {name}", f"one {name}, such as {one}")
            for name, count, one in (("C", n_Cs, "Cs=1.0"), ("gamma", n_gammas, "gamma='sigest'"))
            if count > 1
        ]
        values, instead = (" and ".join(of) for of in zip(*several, strict=True))
        raise ValueError(f"cv=None cannot choose among {values}; pass {instead}, or folds, such as cv=5")
    n_scores = n_rows if folds == "loo" else len(folds or ())
    if folds == "loo" and scorer is not None:
        n_scores = 1
    if folds is not None and selection == "1se" and n_scores < 2:
        raise ValueError("selection='1se' needs the scores of at least 2 folds; use selection='best'")


def nothing_to_choose(timed_out: bool, time_budget: float | None, scorer: Scorer | None) -> Exception:
    """Why no model was both scored on every fold and fitted on all rows."""
    if timed_out:
        return TimeoutError(
            f"time_budget={time_budget:g} s ended before any C was both scored and fitted on all rows; "
            "raise it, or pass fewer Cs, folds or rows"
        )
    if scorer is None:
        return ValueError("no C has a finite score: the loss of some held-out rows overflows; scale y")
    return ValueError(f"scoring by {scorer!r} gave no finite score for any C")
