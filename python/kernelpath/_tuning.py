"""The choice of C on a path: scores of the held-out rows, and the model they choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpath import _core
from kernelpath._folds import Folds, Index
from kernelpath._results import NOT_RUN, cv_results
from kernelpath._scoring import Scorer, score_folds
from kernelpath._settings import Grid, Settings

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """The data as a scorer sees it: the rows of each fold, and who stands in for the model of the fold."""

    X: Any
    y: Any
    folds: Folds
    scorer: Scorer | None
    stand_in: Callable[[Matrix], Any]

    def scores(self, path: _core.PathFit) -> Matrix:
        """Scores (n_folds, n_Cs); without a scorer, those of the loss."""
        if self.scorer is None or self.folds is None:
            return path.scores
        if self.folds == "loo":
            # A single row cannot be ranked: the scorer sees all rows at once.
            held_out: Iterable[tuple[Index, Matrix]] = [(np.arange(len(self.y)), path.oof_matrix())]
        else:
            held_out = ((test, path.oof(k)) for k, (_, test) in enumerate(self.folds))
        return score_folds(self.scorer, held_out, self.X, self.y, self.stand_in)


@dataclass(frozen=True)
class Tuned:
    """The path of one loss, its scores, and the model of the chosen C."""

    scores: Matrix
    cv_results: dict[str, Any]
    gaps: Matrix
    status: npt.NDArray[np.str_]
    n_iter: npt.NDArray[np.int64]
    n_support: npt.NDArray[np.int64]
    oof: Matrix
    best: int
    best_score: float
    coef: npt.NDArray[np.float64]
    intercept: float
    objective: float
    dual_objective: float

    @classmethod
    def of(cls, path: _core.PathFit, Cs: Grid, held_out: HeldOut, settings: Settings) -> Tuned:
        """Score the path and choose among the C's whose refit was run."""
        scores = held_out.scores(path)
        status = np.array(_core.STATUS_NAMES)[path.status]
        best = _chosen(path, scores, status[-1] != NOT_RUN, Cs, held_out, settings)
        results = cv_results(scores, path.gaps, status, Cs, held_out.folds != "loo")
        return cls(
            scores=scores,
            cv_results=results,
            gaps=path.gaps,
            status=status,
            n_iter=np.maximum(path.n_iter, status != NOT_RUN),  # a start that is optimal took one look
            n_support=np.array([np.count_nonzero(path.coef(j)) for j in range(len(Cs))]),
            oof=path.oof_matrix(),
            best=best,
            best_score=float(results["mean_test_score"][best]),
            coef=path.coef(best),
            intercept=float(path.intercepts[best]),
            objective=float(path.primal[-1, best]),
            dual_objective=float(path.dual[-1, best]),
        )


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


def _chosen(
    path: _core.PathFit,
    scores: Matrix,
    refitted: npt.NDArray[np.bool_],
    Cs: Grid,
    held_out: HeldOut,
    settings: Settings,
) -> int:
    candidates = np.where(refitted, scores, np.nan)
    if not (refitted & np.isfinite(candidates).all(axis=0)).any():
        raise _nothing_to_choose(path.timed_out, settings.time_budget, held_out.scorer)
    return 0 if held_out.folds is None else _core.select(candidates, Cs, settings.selection)


def _nothing_to_choose(timed_out: bool, time_budget: float | None, scorer: Scorer | None) -> Exception:
    if timed_out:
        return TimeoutError(
            f"time_budget={time_budget:g} s ended before any C was both scored and fitted on all rows; "
            "raise it, or pass fewer Cs, folds or rows"
        )
    if scorer is None:
        return ValueError("no C has a finite score: the loss of some held-out rows overflows; scale y")
    return ValueError(f"scoring by {scorer!r} gave no finite score for any C")
