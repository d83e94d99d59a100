"""Cases of bench.py: kernel matrices that no formula makes positive semi-definite, and what examining them takes."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from kernelpath import IndefiniteKernelWarning, KernelSVC
from kernelpath.datasets import make_mixture
from table import Row, case


def examined(K: Any, y: Any) -> tuple[bool, float]:
    """Whether a matrix is called indefinite, and the seconds that it took to find out."""
    seconds, called = [], False
    for vouched in (True, False):
        model = KernelSVC(
            kernel="precomputed", Cs=1e-3 / K.diagonal().max(), cv=None, assume_definite=vouched, n_jobs=2
        )
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(K, y)
        seconds.append(time.perf_counter() - started)
        called = any(warning.category is IndefiniteKernelWarning for warning in caught)
    return called, seconds[1] - seconds[0]


@case("definite")
def definite(quick: bool) -> Row:
    """Squares and rbf matrices of 5000 rows are called definite, in either precision, raw and standardised"""
    n = 2000 if quick else 5000
    X, y = make_mixture(n, 10, random_state=0)
    raw = np.exp(0.3 * X) * np.logspace(-2, 3, 10) + np.linspace(0.0, 500.0, 10)
    alarms, seconds = [], []
    for name, rows in (("raw", raw), ("standardised", (raw - raw.mean(0)) / raw.std(0))):
        for dtype in (np.float32, np.float64):
            A = rows.astype(dtype)
            for kernel, K in (("square", (A @ A.T) ** 2), ("rbf", rbf_kernel(A, gamma=1.0 / (10 * A.var())))):
                alarm, took = examined(K, y)
                seconds.append(took)
                if alarm:
                    alarms.append(f"{kernel} {name} {dtype.__name__}")
    measured = f"{max(seconds):.2f} s to examine the slowest; false alarms: {', '.join(alarms) or 'none'}"
    return Row(f"positive semi-definite, n = {n}", measured, bar="no false alarm", passed=not alarms)


@case("indefinite")
def indefinite(quick: bool) -> Row:
    """A uniform spectrum in [0, 1] with one eigenvalue of -1e-5, 5000 rows"""
    n = 2000 if quick else 5000
    rng = np.random.default_rng(0)
    u = rng.normal(size=n)
    u /= np.linalg.norm(u)
    reflection = np.eye(n) - 2.0 * np.outer(u, u)
    K = reflection * np.r_[np.arange(1, n) / n, -1e-5] @ reflection
    alarm, took = examined((K + K.T) / 2, np.where(rng.random(n) < 0.5, 1, -1))
    verdict = "called indefinite" if alarm else "not seen"
    return Row(f"one eigenvalue of -1e-5, n = {n}", f"{verdict}, {took:.2f} s", bar="alarm", passed=alarm)
