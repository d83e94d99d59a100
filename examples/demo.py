"""Train and tune 550 certified kernel SVMs, then ask scikit-learn the same question.

Run by ``make demo``. Draws out/demo.png.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import NamedTuple

import joblib
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from kernelpath import KernelSVC
from kernelpath.datasets import make_mixture

PICTURE = Path(__file__).resolve().parents[1] / "out" / "demo.png"
FOLDS = 10
EVERY = 5  # scikit-learn gets every fifth C
CORES = joblib.cpu_count()


class Search(NamedTuple):
    """What scikit-learn answered on a part of the path."""

    subset: np.ndarray
    accuracy: np.ndarray
    seconds: float
    all_seconds: float


def main() -> None:
    """Fit, compare, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=2000, help="rows (default: 2000)")
    parser.add_argument("-p", type=int, default=10, help="columns (default: 10)")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="where to draw (default: out/demo.png)")
    arguments = parser.parse_args()

    X, y = make_mixture(arguments.n, arguments.p, random_state=0)
    print(f"Data          two classes, each a mixture of 10 Gaussians: n = {arguments.n}, p = {arguments.p}")
    print(f"Question      which of 50 C's? {FOLDS} folds and a refit make 550 RBF-kernel SVMs, on {CORES} cores")

    clf = KernelSVC(Cs=50, cv=FOLDS, random_state=0, n_jobs=CORES).fit(X, y)
    chosen = f"C = {clf.C_:.4g}, accuracy {clf.best_score_:.4f}, γ = {clf.gamma_:.4g}"
    print(f"kernelpath    {clf.fit_seconds_:.2f} s for all: {chosen}")
    print(
        f"              {np.sum(clf.gaps_ <= clf.tol)} of {clf.gaps_.size} models proved optimal to {clf.tol:g}; "
        f"the worst relative duality gap is {clf.gaps_.max():.1e}"
    )

    print(f"scikit-learn  GridSearchCV(SVC, n_jobs={CORES}) on every {EVERY}th C ...", flush=True)
    theirs = search(clf, X, y)
    print(
        f"              {theirs.seconds:.1f} s for {len(theirs.subset)} C's, so {theirs.all_seconds:.0f} s for "
        f"{len(clf.Cs_)}: kernelpath is {theirs.all_seconds / clf.fit_seconds_:.0f} × faster"
    )
    print()
    print(table(clf, theirs))
    print()
    svc = SVC(gamma=clf.gamma_, C=clf.C_, tol=1e-6, cache_size=1000).fit(X, y)
    difference = np.abs(svc.decision_function(X) - clf.decision_function(X)).max()
    print(f"Refit at C = {clf.C_:.4g}: decision values differ from SVC(tol=1e-6) by at most {difference:.1e}.")
    draw(clf, theirs, arguments.picture)
    print(f"Picture: {os.path.relpath(arguments.picture)}")


def search(clf: KernelSVC, X: np.ndarray, y: np.ndarray) -> Search:
    """The same folds and bandwidth through GridSearchCV(SVC), on every fifth C."""
    subset = np.arange(EVERY // 2, len(clf.Cs_), EVERY)
    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    grid = GridSearchCV(
        SVC(gamma=clf.gamma_, cache_size=1000), {"C": clf.Cs_[subset]}, cv=splits, n_jobs=CORES, refit=False
    )
    clone(grid).set_params(cv=2).fit(X[:100], y[:100])  # its worker processes start outside the clock
    started = time.perf_counter()
    grid.fit(X, y)
    seconds = time.perf_counter() - started
    return Search(subset, grid.cv_results_["mean_test_score"], seconds, seconds * len(clf.Cs_) / len(subset))


def table(clf: KernelSVC, theirs: Search) -> str:
    """The C's that both were asked about, and the chosen one."""
    mean, error = mean_and_error(clf)
    other = dict(zip(theirs.subset, theirs.accuracy, strict=True))
    worst = f"worst of {len(clf.gaps_)} gaps"
    lines = [f"  {'C':>9}   {'kernelpath ± se':>17}   {'scikit-learn':>12}   {'SVs':>5}   {worst:>16}"]
    for j in sorted({*other, clf.best_index_}):
        accuracy = f"{other[j]:.4f}" if j in other else ""
        lines.append(
            f"{'*' if j == clf.best_index_ else ' '} {clf.Cs_[j]:>9.4g}   {f'{mean[j]:.4f} ± {error[j]:.4f}':>17}   "
            f"{accuracy:>12}   {clf.n_support_path_[j]:>5}   {clf.gaps_[:, j].max():>16.1e}"
        )
    return "\n".join(lines)


def mean_and_error(clf: KernelSVC) -> tuple[np.ndarray, np.ndarray]:
    """Mean accuracy of the folds at each C, and its standard error."""
    return clf.scores_.mean(axis=0), clf.scores_.std(axis=0, ddof=1) / np.sqrt(len(clf.scores_))


def draw(clf: KernelSVC, theirs: Search, file: Path) -> None:
    """The cross-validation curve with its one-standard-error band, and the gap of every model."""
    figure, (curve, heat) = plt.subplots(
        2, 1, figsize=(9, 8), sharex=True, layout="constrained", gridspec_kw={"height_ratios": [1.1, 1]}
    )
    figure.suptitle(
        f"{clf.gaps_.size} kernel SVMs, trained, tuned and certified in {clf.fit_seconds_:.2f} s\n"
        f"scikit-learn: {theirs.all_seconds:.0f} s ({theirs.all_seconds / clf.fit_seconds_:.0f} × as long)",
        fontsize=14,
    )
    draw_curve(curve, clf, theirs)
    draw_gaps(figure, heat, clf)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)


def draw_curve(axes: plt.Axes, clf: KernelSVC, theirs: Search) -> None:
    """Accuracy ± one standard error over C; scikit-learn's answers on top of it."""
    mean, error = mean_and_error(clf)
    best = int(mean.argmax())
    within = mean[best] - error[best]
    axes.fill_between(clf.Cs_, mean - error, mean + error, color="tab:blue", alpha=0.25, label="± 1 standard error")
    axes.plot(clf.Cs_, mean, color="tab:blue", label=f"kernelpath, mean of {len(clf.scores_)} folds")
    axes.plot(
        clf.Cs_[theirs.subset], theirs.accuracy, "o", markersize=7, markerfacecolor="none", color="tab:orange",
        label="scikit-learn, same folds",
    )  # fmt: skip
    axes.axhline(within, color="gray", linestyle=":", linewidth=1.2, label=f"best − 1 standard error: {within:.4f}")
    axes.axvline(clf.C_, color="black", linestyle="--", linewidth=1.2, label=f"chosen: C = {clf.C_:.3g}")
    axes.set(xscale="log", ylabel="accuracy", title="Cross-validated accuracy")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", framealpha=1.0)


def draw_gaps(figure: plt.Figure, axes: plt.Axes, clf: KernelSVC) -> None:
    """One tile a model; above `tol` it would be red."""
    middles = np.sqrt(clf.Cs_[1:] * clf.Cs_[:-1])
    edges = np.concatenate([[clf.Cs_[0] ** 2 / middles[0]], middles, [clf.Cs_[-1] ** 2 / middles[-1]]])
    rows = np.arange(len(clf.gaps_) + 1) - 0.5
    colours = plt.get_cmap("YlGnBu_r").with_extremes(over="red")
    gaps = np.maximum(clf.gaps_, 1e-16)  # rounding can make a gap of 0 negative
    image = axes.pcolormesh(edges, rows, gaps, cmap=colours, norm=LogNorm(1e-16, clf.tol), rasterized=True)
    axes.axhline(len(clf.gaps_) - 1.5, color="white", linewidth=3)
    axes.axvline(clf.C_, color="black", linestyle="--", linewidth=1.2)
    axes.set(xlabel="C", title=f"Relative duality gap of each model: the worst is {clf.gaps_.max():.1e}")
    axes.set_yticks(range(len(clf.gaps_)), [f"fold {k}" for k in range(len(clf.scores_))] + ["refit"])
    bar = figure.colorbar(image, ax=axes, extend="max", label="(P − D) / max(|P|, |D|)")
    decades = np.arange(-16, np.floor(np.log10(clf.tol)) - 0.5, 2)
    bar.set_ticks([*10.0**decades, clf.tol], labels=[*(f"$10^{{{d:.0f}}}$" for d in decades), f"tol = {clf.tol:g}"])
    bar.ax.get_yticklabels()[-1].set_color("red")


if __name__ == "__main__":
    main()
