"""Tables and warnings drawn from the arrays of a fit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from kernelpath._indefinite import INDEFINITE

Matrix = npt.NDArray[np.float64]
NOT_RUN = "not_run"


def mean_and_std(scores: Matrix, ddof: int = 0) -> tuple[Matrix, Matrix]:
    """Mean and standard deviation over the folds; NaN where a fold was not run, or there is none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        n_folds = len(scores)
        mean = scores.sum(axis=0) / np.float64(n_folds)
        variance = ((scores - mean) ** 2).sum(axis=0) / np.float64(n_folds - ddof)
        return mean, np.sqrt(variance)


def whole_folds(scores: Matrix) -> Matrix:
    """Without the folds that score no model: they hold no test row of the machine."""
    scored = ~np.isnan(scores).all(axis=1)
    return scores[scored] if scored.any() else scores


def cv_results(
    scores: Matrix,
    gaps: Matrix,
    status: npt.NDArray[np.str_],
    Cs: Matrix,
    gammas: Matrix | None,
    split_columns: bool,
) -> dict[str, Any]:
    """Columns as in ``GridSearchCV.cv_results_``, and the relative duality gaps beside the scores.

    There is a line for each C, or for several γ, given one a line, for each γ and C.
    """
    mean, std = mean_and_std(scores)
    results: dict[str, Any] = {"param_C": np.ma.asarray(Cs), "params": [{"C": float(C)} for C in Cs]}
    if gammas is not None:
        results["param_gamma"] = np.ma.asarray(gammas)
        results["params"] = [{"C": float(C), "gamma": float(g)} for C, g in zip(Cs, gammas, strict=True)]
    if split_columns:
        results |= {f"split{k}_test_score": row for k, row in enumerate(scores)}
        results |= {f"split{k}_gap": row for k, row in enumerate(gaps[:-1])}
    return results | {
        "mean_test_score": mean,
        "std_test_score": std,
        "rank_test_score": rankdata(np.nan_to_num(-mean, nan=np.inf), method="min").astype(np.int32),
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
) -> str:
    """One line a C: score ± standard error, support vectors, worst gap of the folds and the refit, statuses."""
    mean, std = mean_and_std(scores, ddof=1)
    error = std / np.sqrt(max(len(scores), 1))
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
    status: npt.NDArray[np.str_],
    Cs: Matrix,
    chosen: int,
    *,
    tol: float,
    time_budget: float | None,
) -> str | None:
    """What a ConvergenceWarning must say; None when every model reached `tol`.

    `time_budget` is given when it ended the fit. Models without a gap, on an indefinite kernel, have their own warning.
    """
    run = status != NOT_RUN
    short = run & ~np.isin(status, ("converged", INDEFINITE))
    if run.all() and not short.any():
        return None
    parts = []
    if time_budget is not None:
        parts.append(
            f"time_budget={time_budget:g} s ended the fit: {np.sum(~run)} of {gaps.size} models were not run; "
            f"{np.sum(run.all(axis=0))} of {len(Cs)} values of C were run on every fold."
        )
    if short.any():
        worst = np.argmax(np.where(short, np.nan_to_num(gaps, nan=np.inf), -1.0))
        row, column = np.unravel_index(worst, gaps.shape)
        where = "refit" if row == len(gaps) - 1 else f"fold {row}"
        parts.append(
            f"{np.sum(short)} of {gaps.size} models did not reach tol={tol:g} ({_tally(status[short])}); the worst "
            f"relative duality gap is {gaps[row, column]:.1e} ({where}, C={Cs[column]:.4g})."
        )
    if status[-1, chosen] == INDEFINITE:
        parts.append(f"The returned model (C={Cs[chosen]:.4g}) has no gap, as its kernel is indefinite.")
    else:
        parts.append(f"The returned model (C={Cs[chosen]:.4g}) has gap {gaps[-1, chosen]:.1e}.")
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
