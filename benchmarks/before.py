"""Fits of this code against fits of other code, such as that of an earlier commit, in alternation.

    git worktree add ../before COMMIT && make -C ../before ../before/.venv/.built
    python benchmarks/before.py ../before/.venv/bin/python sim2000 sim5000 a7a nystrom_a9a

The other code is that of the interpreter named first. Each fit runs in a process of its own; of each case the median
seconds of both, their ratio and the size of the stored kernel matrix or features are printed, with the worst gap and
the lowest share of models that are certified.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROUNDS = 5


def problem(case: str) -> tuple[Any, Any, dict[str, Any]]:
    """Data and settings of a case, as bench.py and nystrom.py have them."""
    from data import libsvm_data
    from kernelpath.datasets import make_mixture

    if case.startswith("sim"):
        X, y = make_mixture(int(case[3:]), 10, random_state=0)
        return X, y, {"Cs": np.logspace(-3, 3, 50)}
    name = case.removeprefix("nystrom_")
    X, y = libsvm_data(name, 123)
    if name == case:
        return X, y, {"Cs": 1.0 / (2.0 * len(y) * np.logspace(-1, -5, 50))}
    low_rank = {"low_rank": True, "n_landmarks": 2000, "rank": 300, "gamma": 0.01}
    return X, y, {"Cs": 1.0 / (2.0 * len(y) * np.logspace(-1, -7, 50)), **low_rank}


def fit_once(case: str) -> dict[str, float]:
    """One fit by the code of this interpreter."""
    from kernelpath import KernelSVC

    X, y, settings = problem(case)
    model = KernelSVC(cv=10, tol=1e-6, n_jobs=2, random_state=0, **settings)
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
