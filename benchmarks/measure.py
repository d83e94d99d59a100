"""What is measured: fits of kernelpath, and the clock."""

from __future__ import annotations

import resource
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelpath import KernelSVC

TOL = 1e-6
FOLDS = 10
SEED = 0
GRID = np.logspace(-3, 3, 50)


class NotAvailable(Exception):  # noqa: N818
    """Data, a peer or a part of kernelpath is not on this machine."""


@dataclass
class Fit:
    """A fitted estimator and the seconds its fit took."""

    estimator: Any
    seconds: float

    @property
    def worst_gap(self) -> float:
        """Of all folds, C's and the refit."""
        return float(self.estimator.gaps_.max())


def fit(
    X: np.ndarray,
    y: np.ndarray,
    Cs: np.ndarray = GRID,
    estimator: Any = KernelSVC,
    solver: str = "auto",
    runs: int = 3,
    **settings: Any,
) -> Fit:
    """One fit with cross-validation, on two threads; the median seconds of `runs` runs when it is quick."""
    settings = {"cv": FOLDS, "tol": TOL, "n_jobs": 2, "random_state": SEED, **settings}
    model = estimator(Cs=Cs, solver=solver, **settings)

    def once() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the gaps are judged by the cases
            started = time.perf_counter()
            model.fit(X, y)
            return time.perf_counter() - started

    return Fit(model, median_seconds(once, runs))


def median_seconds(once: Callable[[], float], runs: int = 3) -> float:
    """The seconds `once` returns; the median of several runs when it is quick."""
    seconds = [once()]
    while seconds[0] < 10.0 and len(seconds) < runs:
        seconds.append(once())
    return float(np.median(seconds))


def peak_memory() -> int:
    """Bytes at the peak of this process. (getrusage on Linux counts that of the parent, which survives exec.)"""
    status = Path("/proc/self/status")
    if status.exists():
        kilobytes = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(kilobytes)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class AddedMemory:
    """The most that a `with` block adds to what this process has allocated, files and code not counted."""

    def __enter__(self) -> AddedMemory:
        self._before, self._most, self._over = allocated(), 0, threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()

    @property
    def bytes(self) -> int:
        """As many; looked at every 5 ms."""
        return self._most - self._before

    def _look(self) -> None:
        while not self._over.wait(0.005):
            self._most = max(self._most, allocated())


def allocated() -> int:
    """Bytes of memory of this process that are no file's."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError as error:
        raise NotAvailable("memory is measured on Linux only") from error
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("RssAnon")))
