"""Fits of this code against fits of other code, such as that of an earlier commit, in alternation.

    git worktree add ../before COMMIT && make -C ../before ../before/.venv/.built
    python benchmarks/before.py ../before/.venv/bin/python sim2000 sim5000 logistic2000 a7a nystrom_a9a

The other code is that of the interpreter named first. Each fit runs in a process of its own; of each case the median
seconds of both, their ratio and the size of the stored kernel matrix or features are printed, with the worst gap and
the lowest share of models that are certified.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROUNDS = int(os.environ.get("ROUNDS", "5"))

# Cases on data of the paper's mixture: the name of the estimator, and what is set beside the path. The number of rows
# follows the name, as in sim5000.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "sim": ("KernelSVC", {}),
    "wide": ("KernelSVC", {}),
    "spectral": ("KernelSVC", {"solver": "spectral", "cv": 5}),
    "loo": ("KernelSVC", {"cv": "loo", "Cs": [0.1, 1.0, 10.0]}),
    "surface": ("KernelSVC", {"gamma": "auto-grid", "cv": 5}),
    "pairs": ("KernelSVC", {"cv": 5}),
    "logistic": ("KernelLogistic", {}),
    "multinomial": ("KernelLogistic", {"multi_class": "multinomial", "cv": 5, "Cs": np.logspace(-3, 3, 15)}),
    "dwd": ("KernelDWD", {}),
    "quantile": ("KernelQuantile", {}),
    "squared": ("KernelRegressor", {}),
    "huber": ("KernelRegressor", {"loss": "huber", "delta": 1.0}),
    "lowrank": ("KernelSVC", {"low_rank": True, "n_landmarks": 300}),
    "lowranklogistic": ("KernelLogistic", {"low_rank": True, "n_landmarks": 300}),
}


def problem(case: str) -> tuple[Any, Any, dict[str, Any]]:
    """Data and settings of a case, as bench.py and nystrom.py have them."""
    from data import covtype, libsvm_data
    from kernelpath.datasets import make_mixture

    kind = case.rstrip("0123456789")
    if kind in KINDS:
        n, columns = int(case[len(kind) :]), 100 if kind == "wide" else 10
        X, y = make_mixture(n, columns, random_state=0)
        if kind in ("quantile", "squared", "huber"):
            y = np.sin(2 * X[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=n)
        elif kind in ("pairs", "multinomial"):
            y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0).astype(int) * (1 + (X[:, 2] > 0))
        return X, y, {"Cs": np.logspace(-3, 3, 50), **KINDS[kind][1]}
    if case == "nystrom_covtype":
        split = covtype()
        low_rank = {"low_rank": True, "n_landmarks": 2000, "rank": 30}
        return split.X, split.y, {"Cs": 1.0 / (2.0 * len(split.y) * np.logspace(-1, -7, 50)), **low_rank}
    name = case.removeprefix("nystrom_")
    X, y = libsvm_data(name, 123)
    if name == case:
        return X, y, {"Cs": 1.0 / (2.0 * len(y) * np.logspace(-1, -5, 50))}
    low_rank = {"low_rank": True, "n_landmarks": 2000, "rank": 300, "gamma": 0.01}
    return X, y, {"Cs": 1.0 / (2.0 * len(y) * np.logspace(-1, -7, 50)), **low_rank}


def fit_once(case: str) -> dict[str, float]:
    """One fit by the code of this interpreter."""
    import kernelpath

    X, y, settings = problem(case)
    name, _ = KINDS.get(case.rstrip("0123456789"), ("KernelSVC", {}))
    model = getattr(kernelpath, name)(**{"cv": 10, "tol": 1e-6, "n_jobs": 2, "random_state": 0, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        model.fit(X, y)
    seconds = time.perf_counter() - started
    certified = float(np.mean(model.status_ == "converged"))
    return {"seconds": seconds, "bytes": model.gram_bytes_, "gap": float(model.gaps_.max()), "certified": certified}


def main() -> int:
    """Print a line a case."""
    if sys.argv[1] == "--fit":
        print(json.dumps(fit_once(sys.argv[2])))
        return 0
    other, cases = sys.argv[1], sys.argv[2:]
    print("| case | before, s | now, s | ratio | stored, MB (before, now) | worst gap | certified |")
    print("|---|---|---|---|---|---|---|")
    for case in cases:
        found: dict[str, list[dict[str, float]]] = {other: [], sys.executable: []}
        for _ in range(ROUNDS):
            for python, fits in found.items():
                command = [python, str(Path(__file__).resolve()), "--fit", case]
                fits.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        before, now = (median(fit["seconds"] for fit in fits) for fits in found.values())
        stored = ", ".join(f"{fits[0]['bytes'] / 1e6:.0f}" for fits in found.values())
        ours = found[sys.executable]
        gap, certified = max(fit["gap"] for fit in ours), min(fit["certified"] for fit in ours)
        print(
            f"| {case} | {before:.2f} | {now:.2f} | {now / before:.3f} | {stored} | {gap:.1e} | {certified:.2%} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
