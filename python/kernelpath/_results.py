"""Tables and warnings drawn from the arrays of a fit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpath import _core
from kernelpath._indefinite import INDEFINITE

Matrix = npt.NDArray[np.float64]
NOT_RUN = "not_run"


@dataclass(frozen=True)
class FoldScores:
    """Scores of the folds that count, shape (n_folds, n_places), and how much each fold counts (None: all the same).

    Means are NaN where a fold was not run, or there is none.
    """

    values: Matrix
    weight: Matrix | None = None

    @classmethod
    def counted(
        cls, scores: Matrix, weight: Matrix | None = None, status: npt.NDArray[np.str_] | None = None
    ) -> FoldScores:
        """Those of the folds that count in the choice.

        A fold without any score, as it holds no test row of the machine, does not count; one that was not run at all,
        which `status` of the folds tells, does, and leaves no mean.
        """
        counts = ~np.isnan(scores).all(axis=1)
        if status is not None and len(status) == len(scores):
            counts |= (status == NOT_RUN).all(axis=1)
        if weight is not None and len(weight) != len(scores):
            weight = None  # of scores that a scorer gave all rows at once
        if not counts.any():
            return cls(scores, weight)
        return cls(scores[counts], None if weight is None else weight[counts])

    def mean(self) -> Matrix:
        """The mean over the folds."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (self._weights() * self.values).sum(axis=0) / self._weights().sum()

    def std(self) -> Matrix:
        """The standard deviation over the folds."""
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = (self._weights() * (self.values - self.mean()) ** 2).sum(axis=0)
            return np.sqrt(squares / self._weights().sum())

    def error(self) -> Matrix:
        """The standard error of the mean."""
        n_folds = np.float64(len(self.values))
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations = self._weights() * (self.values - self.mean()) / self._weights().sum()
            return np.sqrt((deviations**2).sum(axis=0) * n_folds / (n_folds - 1.0))

    def ranks(self) -> npt.NDArray[np.int32]:
        """Ranks by the mean, 1 for the highest; means that differ by rounding only share one, and NaN comes last."""
        return _core.ranks(self.values, self.weight)

    def minus(self, other: FoldScores) -> FoldScores:
        """The differences, fold by fold."""
        return replace(self, values=self.values - other.values)

    def at(self, places: Any) -> FoldScores:
        """Those of some places."""
        return replace(self, values=np.ascontiguousarray(self.values[:, places]))

    def _weights(self) -> Matrix:
        weight = np.ones(len(self.values)) if self.weight is None else self.weight
        return weight[:, None]


def cv_results(
    scores: Matrix,
    gaps: Matrix,
    status: npt.NDArray[np.str_],
    Cs: Matrix,
    gammas: Matrix | None,
    *,
    weight: Matrix | None,
    split_columns: bool,
    by_lambda: bool,
) -> dict[str, Any]:
    """Columns as in ``GridSearchCV.cv_results_``, and the relative duality gaps beside the scores.

    There is a line for each C, or for several γ, given one a line, for each γ and C. The parameters of a line are what
    ``set_params`` takes to fit that one model. A model that was not run on all rows, and so cannot be chosen, ranks
    last.
    """
    counted = FoldScores.counted(scores, weight, status[:-1])
    refitted = status[-1] != NOT_RUN
    columns = {"Cs": Cs} if gammas is None else {"Cs": Cs, "gamma": gammas}
    others = {"lambdas": None} if by_lambda else {}  # they would take the place of Cs
    results: dict[str, Any] = {f"param_{name}": np.ma.asarray(values) for name, values in columns.items()}
    results["params"] = [
        {**{name: float(values[k]) for name, values in columns.items()}, **others} for k in range(len(Cs))
    ]
    if split_columns:
        results |= {f"split{k}_test_score": row for k, row in enumerate(scores)}
        results |= {f"split{k}_gap": row for k, row in enumerate(gaps[:-1])}
    return results | {
        "mean_test_score": counted.mean(),
        "std_test_score": counted.std(),
        "rank_test_score": replace(counted, values=np.where(refitted, counted.values, np.nan)).ranks(),
        "worst_gap": gaps.max(axis=0),
        "refit_gap": gaps[-1],
        "refit_status": status[-1],
    }


def path_table(
    Cs: Matrix,
    gammas: Matrix | None,
    scores: Matrix,
    gaps: Matrix,
    status: npt.NDArray[np.str_],
    n_support: npt.NDArray[np.int64],
    chosen: int,
    weight: Matrix | None,
) -> str:
    """One line a C: score ± standard error, support vectors, worst gap of the folds and the refit, statuses."""
    counted = FoldScores.counted(scores, weight, status[:-1])
    mean, error = counted.mean(), counted.error()
    gamma_column = [""] * len(Cs) if gammas is None else [f"  {gamma:>10.4g}" for gamma in gammas]
    heading = "" if gammas is None else f"  {'gamma':>10}"
    lines = [f"  {'C':>10}{heading}  {'score ± se':>17}  {'SVs':>6}  {'worst gap':>9}  status"]
    for j, C in enumerate(Cs):
        score = f"{mean[j]:.4f} ± {error[j]:.4f}" if np.isfinite(mean[j]) else "-"
        mark = "*" if j == chosen else " "
        lines.append(
            f"{mark} {C:>10.4g}{gamma_column[j]}  {score:>17}  {n_support[j]:>6}  {_gap(gaps[:, j].max()):>9}  "
            f"{_tally(status[:, j])}"
        )
    return "\n".join(lines)


def shortfall(
    gaps: Matrix,
    noise: Matrix,
    status: npt.NDArray[np.str_],
    Cs: Matrix,
    chosen: int,
    *,
    tol: float,
    time_budget: float | None,
    untried: tuple[int, int],
) -> str | None:
    """What a ConvergenceWarning must say; None when every model reached `tol`.

    `time_budget` is given when it ended the fit. `untried` are the values of γ that it left no time for, and all values
    of γ. Models without a gap, on an indefinite kernel, have their own warning.
    """
    run = status != NOT_RUN
    short = run & ~np.isin(status, ("converged", INDEFINITE))
    n_untried, n_gammas = untried
    if run.all() and not short.any() and not n_untried:
        return None
    parts = []
    if time_budget is not None:
        # Each γ has the same number of models.
        n_models, n_places = (count // (n_gammas - n_untried) * n_gammas for count in (gaps.size, len(Cs)))
        places = "values of C" if n_gammas == 1 else "pairs of C and gamma"
        parts.append(
            f"time_budget={time_budget:g} s ended the fit: {n_models - np.sum(run)} of {n_models} models were not run; "
            f"{np.sum(run.all(axis=0))} of {n_places} {places} were run on every fold."
        )
        if n_untried:
            parts.append(f"{n_untried} of {n_gammas} values of gamma were not begun.")

    def worst(of: Matrix, among: npt.NDArray[np.bool_]) -> str:
        row, column = np.unravel_index(np.argmax(np.where(among, np.nan_to_num(of, nan=np.inf), -1.0)), of.shape)
        where = "refit" if row == len(gaps) - 1 else f"fold {row}"
        return f"{of[row, column]:.1e} ({where}, C={Cs[column]:.4g})"

    missed = short & (gaps > tol)
    if missed.any():
        parts.append(
            f"{np.sum(missed)} of {gaps.size} models did not reach tol={tol:g} ({_tally(status[missed])}); the worst "
            f"relative duality gap is {worst(gaps, missed)}."
        )
    hidden = short & ~missed
    if hidden.any():
        parts.append(
            f"{np.sum(hidden)} of {gaps.size} models are not proved to reach tol={tol:g} ({_tally(status[hidden])}): "
            f"rounding may have moved their relative duality gaps by up to {worst(noise, hidden)}."
        )
    if status[-1, chosen] == INDEFINITE:
        parts.append(f"The returned model (C={Cs[chosen]:.4g}) has no gap, as its kernel is indefinite.")
    else:
        rounding = f", known up to {noise[-1, chosen]:.1e}" if noise[-1, chosen] > tol else ""
        parts.append(f"The returned model (C={Cs[chosen]:.4g}) has gap {gaps[-1, chosen]:.1e}{rounding}.")
    parts.append(_advice(set(status[short].tolist()), time_budget is not None))
    return " ".join(parts)


def _advice(short: set[str], out_of_time: bool) -> str:
    """What helps models that ended so."""
    ways = []
    if out_of_time:
        ways.append("raise time_budget")
    if "max_iter" in short:
        ways.append("raise max_iter")
    if not short:
        return f"To run the others, {ways[0]}."
    if short & {"stalled", "inaccurate"}:
        ways.append("scale the features and the targets, pass dtype='float64'")
    return (
        f"To close the gaps, {', '.join([*ways, 'leave out the largest values of C'])}, or accept them by raising tol."
    )


def _gap(gap: float) -> str:
    return "-" if np.isnan(gap) else f"{gap:.1e}"


def _tally(statuses: npt.NDArray[np.str_]) -> str:
    counts = Counter(statuses.tolist())
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
