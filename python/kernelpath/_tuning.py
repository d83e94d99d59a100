"""The choice of C on a path: scores of the held-out rows, and the model they choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpath import _core
from kernelpath._folds import Folds, Index
from kernelpath._results import NOT_RUN, mean_and_std
from kernelpath._scoring import Scorer, score_folds
from kernelpath._settings import Grid, Settings
from kernelpath._surface import Surface, held_out
from kernelpath._weights import Weights

Matrix = npt.NDArray[np.float64]

# What makes probabilities of decision values, one a machine; empty where nothing does.
Calibration = list[Any]


@dataclass(frozen=True)
class Task:
    """One machine, as Rust reads it.

    Attributes
    ----------
    loss, constant : str, float
        Name of the loss, and its τ, ε or δ (0 if it has none).
    y : ndarray
        Targets.
    weight : ndarray or None
        Weights of the targets in the loss, class weights among them; None: all 1.
    score_weight : ndarray or None
        Weights of the targets in scores and calibration; None: as in the loss.
    rows : ndarray or None
        The rows of X these are of; None: all.
    c_factor : float
        What C is multiplied with.
    """

    loss: str
    constant: float
    y: Matrix
    weight: Weights | None = None
    score_weight: Weights | None = None
    rows: npt.NDArray[np.int64] | None = None
    c_factor: float = 1.0


@dataclass(frozen=True)
class HeldOut:
    """The data as a scorer sees it: the rows of each fold, and who stands in for the model of the fold.

    `stand_in` gets the values of the fold's rows, and what gives the maps to probabilities at that C; `calibration`
    makes these from the values of all held-out rows, a column a machine.
    """

    X: Any
    y: Any
    weight: Weights | None
    folds: Folds
    scorer: Scorer | None
    stand_in: Callable[[Matrix, Callable[[], Calibration]], Any]
    calibration: Callable[[Matrix], Calibration]

    def scores(self, surface: Surface) -> Matrix:
        """Scores of one machine, (n_folds, n_gammas · n_Cs); without a scorer, those of the loss."""
        if self.scorer is None or self.folds is None:
            return surface.scores
        return self._scored(self.scorer, [surface])

    def joint_scores(self, surfaces: list[Surface]) -> Matrix:
        """Scores of several machines as one model; without a scorer, the accuracy."""
        if self.folds is None:
            return surfaces[0].scores
        if self.scorer is not None:
            return self._scored(self.scorer, surfaces)
        right = ([self._right(v, test) for v in values] for test, values in self._values(surfaces))
        if self.folds == "loo":
            return np.stack(next(right), axis=1)
        weights = [None if self.weight is None else self.weight[test] for _, test in self.folds]
        return np.array([np.average(r, axis=1, weights=w) for r, w in zip(right, weights, strict=True)])

    def _scored(self, scorer: Scorer, surfaces: list[Surface]) -> Matrix:
        @cache
        def calibration(k: int) -> Calibration:
            return self.calibration(np.column_stack([surface.oof_at(k) for surface in surfaces]))

        def stand_in(of_fold: Matrix, k: int) -> Any:
            return self.stand_in(of_fold, lambda: calibration(k))

        return score_folds(scorer, self._values(surfaces), self.X, self.y, self.weight, stand_in)

    def _right(self, values: Matrix, rows: Index) -> Matrix:
        """1 where the stand-in is right, 0 where not; NaN where it was not run."""
        right = (self.stand_in(values, list).predict(self.X[rows]) == self.y[rows]).astype(float)
        right[np.isnan(values).any(axis=1)] = np.nan
        return right

    def _values(self, surfaces: list[Surface]) -> Iterable[tuple[Index, Iterable[Matrix]]]:
        """(test rows, values of shape (n_test[, n_machines]) at each position) of each fold."""
        positions = range(len(surfaces[0]))
        if self.folds == "loo":
            # A single row cannot be ranked: the scorer sees all rows at once.
            columns = (np.column_stack([surface.oof_at(k) for surface in surfaces]) for k in positions)
            yield np.arange(len(self.y)), (values if len(surfaces) > 1 else values[:, 0] for values in columns)
        else:
            for fold, (_, test) in enumerate(self.folds or ()):
                yield test, map(partial(held_out, surfaces, fold), positions)


@dataclass(frozen=True)
class Tuned:
    """The models of one machine over C and γ, their scores, and the chosen one."""

    surface: Surface
    scores: Matrix
    best: int

    @property
    def coef(self) -> npt.NDArray[np.float64]:
        """β of the chosen model."""
        return self.surface.coef(self.best)


def held_out_values(tuned: list[Tuned]) -> Matrix:
    """Out-of-fold values of the chosen models, a column a machine."""
    return np.column_stack([t.surface.oof_at(t.best) for t in tuned])


def tuned_apart(
    surfaces: list[Surface],
    Cs: Grid,
    held_out: HeldOut,
    settings: Settings,
    of_machines: list[HeldOut] | None = None,
    relative: Callable[[int, Matrix], Matrix] = lambda _, scores: scores,
) -> list[Tuned]:
    """Each machine by its own scores, all at the γ of the best mean score.

    `of_machines` is the data as the scorer of each machine sees it, if that is not the same for all; `relative` makes
    scores of a machine comparable with those of others.
    """
    data = of_machines or [held_out] * len(surfaces)
    scores = [of.scores(surface) for of, surface in zip(data, surfaces, strict=True)]
    n_gammas = len(surfaces[0].paths)
    if len(surfaces) > 1 and n_gammas > 1:
        comparable = [relative(k, s) for k, s in enumerate(scores)] if held_out.scorer is None else scores
        means = [mean_and_std(_of_whole_folds(s))[0].reshape(n_gammas, -1) for s in comparable]
        best_of_gamma = np.array([np.nanmax(np.where(np.isnan(m), -np.inf, m), axis=1) for m in means]).mean(axis=0)
        outside = np.arange(n_gammas).repeat(len(Cs) // n_gammas) != np.argmax(best_of_gamma)
    else:
        outside = np.zeros(len(Cs), dtype=bool)
    choices = [
        choose([surface], np.where(outside, np.nan, s), Cs, held_out, settings)
        for surface, s in zip(surfaces, scores, strict=True)
    ]
    return [Tuned(*of_machine) for of_machine in zip(surfaces, scores, choices, strict=True)]


def tuned_jointly(surfaces: list[Surface], Cs: Grid, held_out: HeldOut, settings: Settings) -> list[Tuned]:
    """All machines at one C and γ, by the scores of the model they make together."""
    scores = held_out.joint_scores(surfaces)
    best = choose(surfaces, scores, Cs, held_out, settings)
    return [Tuned(surface, scores, best) for surface in surfaces]


def check_tunable(folds: Folds, n_Cs: int, n_rows: int, selection: str, scorer: Scorer | None) -> None:
    """Refuse, before any work, a choice of C that the scores could not support."""
    if folds is None and n_Cs > 1:
        raise ValueError(
            f"cv=None cannot choose among {n_Cs} values of C; pass one value, such as Cs=1.0, or folds, such as cv=5"
        )
    n_scores = n_rows if folds == "loo" else len(folds or ())
    if folds == "loo" and scorer is not None:
        n_scores = 1
    if folds is not None and selection == "1se" and n_scores < 2:
        raise ValueError("selection='1se' needs the scores of at least 2 folds; use selection='best'")


def choose(surfaces: list[Surface], scores: Matrix, Cs: Grid, held_out: HeldOut, settings: Settings) -> int:
    """The place of the machines' C and γ, given the scores of each place."""
    refitted = np.all([surface.status[-1] != NOT_RUN for surface in surfaces], axis=0)
    candidates = np.where(refitted, _of_whole_folds(scores), np.nan)
    if not (refitted & np.isfinite(candidates).all(axis=0)).any():
        timed_out = any(surface.timed_out for surface in surfaces)
        raise _nothing_to_choose(timed_out, settings.time_budget, held_out.scorer)
    return 0 if held_out.folds is None else _core.select(candidates, Cs, settings.selection)


def _of_whole_folds(scores: Matrix) -> Matrix:
    """Without the folds that score no model: they hold no test row of the machine."""
    scored = ~np.isnan(scores).all(axis=1)
    return scores[scored] if scored.any() else scores


def _nothing_to_choose(timed_out: bool, time_budget: float | None, scorer: Scorer | None) -> Exception:
    if timed_out:
        return TimeoutError(
            f"time_budget={time_budget:g} s ended before any C was both scored and fitted on all rows; "
            "raise it, or pass fewer Cs, folds or rows"
        )
    if scorer is None:
        return ValueError("no C has a finite score: the loss of some held-out rows overflows; scale y")
    return ValueError(f"scoring by {scorer!r} gave no finite score for any C")
