"""Train and tune 550 certified kernel SVMs, then ask scikit-learn the same question.

Run by ``make demo``. Writes out/demo.png.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from kernelpath import KernelSVC
from kernelpath.datasets import make_mixture

PICTURE = Path(__file__).resolve().parents[1] / "out" / "demo.png"
FOLDS = 10
EVERY = 5  # scikit-learn gets every fifth C


def main() -> None:
    """Fit, compare, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=2000, help="rows (default: 2000)")
    parser.add_argument("-p", type=int, default=10, help="columns (default: 10)")
    arguments = parser.parse_args()

    X, y = make_mixture(arguments.n, arguments.p, random_state=0)
    print(f"Two classes, each a mixture of 10 Gaussians: n = {arguments.n}, p = {arguments.p}.")
    clf = KernelSVC(Cs=50, cv=FOLDS, random_state=0).fit(X, y)
    print(clf.path_table())
    print(
        f"\n{clf.gaps_.size} models ({len(clf.Cs_)} C × ({FOLDS} folds + refit)) in {clf.fit_seconds_:.2f} s, "
        f"worst relative duality gap {clf.gaps_.max():.1e}."
    )
    print(f"Chosen: C = {clf.C_:.4g}, cross-validated accuracy {clf.best_score_:.4f}, γ = {clf.gamma_:.4g}.\n")
    compare(clf, X, y)
    draw(clf)
    print(f"Picture: {PICTURE.relative_to(PICTURE.parents[1])}")


def compare(clf: KernelSVC, X: np.ndarray, y: np.ndarray) -> None:
    """The same folds, bandwidth and C's through GridSearchCV(SVC)."""
    subset = np.arange(EVERY // 2, len(clf.Cs_), EVERY)
    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    search = GridSearchCV(
        SVC(gamma=clf.gamma_, cache_size=1000), {"C": clf.Cs_[subset]}, cv=splits, n_jobs=2, refit=False
    )
    print(f"scikit-learn GridSearchCV(SVC, n_jobs=2) on {len(subset)} of the {len(clf.Cs_)} C's ...", flush=True)
    clone(search).set_params(cv=2).fit(X[:100], y[:100])  # its worker processes start outside the clock
    started = time.perf_counter()
    search.fit(X, y)
    seconds = time.perf_counter() - started
    scaled = seconds * len(clf.Cs_) / len(subset)
    print(
        f"  {seconds:.1f} s, scaled to {len(clf.Cs_)} C's {scaled:.0f} s: "
        f"kernelpath is {scaled / clf.fit_seconds_:.0f} × faster, its refit and certificates included."
    )

    ours, theirs = clf.scores_.mean(axis=0)[subset], search.cv_results_["mean_test_score"]
    print(
        f"  best of these C's: {clf.Cs_[subset][ours.argmax()]:.4g} and {search.best_params_['C']:.4g}, "
        f"accuracy {ours.max():.4f} and {theirs.max():.4f}; "
        f"over all of them it differs by at most {np.abs(ours - theirs).max():.4f}."
    )
    svc = SVC(gamma=clf.gamma_, C=clf.C_, tol=1e-6, cache_size=1000).fit(X, y)
    difference = np.abs(svc.decision_function(X) - clf.decision_function(X)).max()
    print(f"  refit at C = {clf.C_:.4g}: decision values differ by at most {difference:.1e}.\n")


def draw(clf: KernelSVC) -> None:
    """The cross-validation curve with its one-standard-error band, and the gap of every model."""
    mean = clf.scores_.mean(axis=0)
    error = clf.scores_.std(axis=0, ddof=1) / np.sqrt(len(clf.scores_))
    figure, (curve, heat) = plt.subplots(2, 1, figsize=(8, 7), sharex=True, layout="constrained")

    curve.fill_between(clf.Cs_, mean - error, mean + error, alpha=0.25, label="± 1 standard error")
    curve.plot(clf.Cs_, mean, label="mean of the folds")
    curve.axvline(clf.C_, color="black", linestyle="--", linewidth=1, label=f"chosen: C = {clf.C_:.3g}")
    curve.set(xscale="log", ylabel="accuracy", title="Cross-validated accuracy")
    curve.legend()

    edges = np.sqrt(clf.Cs_[1:] * clf.Cs_[:-1])
    edges = np.concatenate([[clf.Cs_[0] ** 2 / edges[0]], edges, [clf.Cs_[-1] ** 2 / edges[-1]]])
    rows = np.arange(len(clf.gaps_) + 1) - 0.5
    image = heat.pcolormesh(edges, rows, np.log10(np.maximum(clf.gaps_, 1e-16)), cmap="viridis")
    heat.set(xlabel="C", title=f"Relative duality gap of each of the {clf.gaps_.size} models")
    heat.set_yticks(range(len(clf.gaps_)), [f"fold {k}" for k in range(len(clf.scores_))] + ["refit"])
    figure.colorbar(image, ax=heat, label="log₁₀ gap")

    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
