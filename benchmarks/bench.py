"""Speed and memory against the peers, as one Markdown table.

    python benchmarks/bench.py                 all cases
    python benchmarks/bench.py sim2000 a7a     some
    python benchmarks/bench.py --quick         scikit-learn on 5 of the 50 C's everywhere, scaled
    python benchmarks/bench.py --list          what there is

Each fit is 50 values of C × (10 folds + refit) with gamma="sigest" on two threads, and fails if a gap is above 1e-6.
A peer runs right after kernelpath, in the same minute: read the ratios, not the seconds. A fit shorter than
ten seconds is measured three times, and the median counts. Real data is looked for in the folder KERNELPATH_DATA, or
../shared/data; the interpreter that has liquidSVM is KERNELPATH_PEERS, or the one `make peers` installs.
"""

from __future__ import annotations

import argparse
import lzma
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from kernelpath import KernelSVC
from kernelpath.datasets import make_mixture

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("KERNELPATH_DATA", HERE.parents[1] / "shared" / "data"))
PEERS_PYTHON = Path(os.environ.get("KERNELPATH_PEERS", HERE / ".venv" / "bin" / "python"))
TOL = 1e-6
FOLDS = 10
GRID = np.logspace(-3, 3, 50)
TORCHKM_GRID = np.logspace(np.log10(5e-8), np.log10(0.05), 50)
MB = 1e6


@dataclass
class Row:
    """One line of the table; `passed` is None when there is no bar."""

    case: str
    measured: str
    worst_gap: float | None = None
    peer: str = ""
    ratio: float | None = None
    bar: str = "report"
    passed: bool | None = None

    HEADER = "| case | measured | worst gap | peer | ratio | bar | |\n|---|---|---|---|---|---|---|"

    def __str__(self) -> str:
        gap = "" if self.worst_gap is None else f"{self.worst_gap:.1e}"
        ratio = "" if self.ratio is None else f"{self.ratio:.1f} ×"
        verdict = {True: "pass", False: "**FAIL**", None: ""}[self.passed]
        return f"| {self.case} | {self.measured} | {gap} | {self.peer} | {ratio} | {self.bar} | {verdict} |"


class NotAvailable(Exception):  # noqa: N818
    """Data or a peer is not on this machine."""


Case = Callable[[bool], Row]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def register(function: Case) -> Case:
        CASES[name] = function
        return function

    return register


# What is measured


@dataclass
class Fit:
    """A fitted classifier and the seconds its fit took."""

    classifier: KernelSVC
    seconds: float

    @property
    def worst_gap(self) -> float:
        """Of all folds, C's and the refit."""
        return float(self.classifier.gaps_.max())


def fit(X: np.ndarray, y: np.ndarray, Cs: np.ndarray = GRID) -> Fit:
    """kernelpath; the median of three when it is quick."""
    classifier = KernelSVC(Cs=Cs, cv=FOLDS, tol=TOL, n_jobs=2, random_state=0)
    seconds: list[float] = []
    while not seconds or (seconds[0] < 10.0 and len(seconds) < 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the gaps are judged below
            started = time.perf_counter()
            classifier.fit(X, y)
            seconds.append(time.perf_counter() - started)
    return Fit(classifier, float(np.median(seconds)))


def scikit_learn_seconds(X: np.ndarray, y: np.ndarray, ours: KernelSVC, n_Cs: int) -> tuple[float, str]:
    """GridSearchCV(SVC) on the same folds, bandwidth and C's, or on `n_Cs` of them, spread evenly, and scaled."""
    Cs = ours.Cs_
    picked = np.arange(len(Cs)) if n_Cs >= len(Cs) else ((np.arange(n_Cs) + 0.5) * len(Cs) / n_Cs).astype(int)
    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    search = GridSearchCV(
        SVC(gamma=ours.gamma_, cache_size=1000), {"C": Cs[picked]}, cv=splits, n_jobs=2, refit=len(picked) == len(Cs)
    )
    clone(search).set_params(cv=2, refit=False).fit(X[:200], y[:200])  # starts its worker processes
    started = time.perf_counter()
    search.fit(X, y)
    seconds = (time.perf_counter() - started) * len(Cs) / len(picked)
    note = "" if len(picked) == len(Cs) else f", {len(picked)} of {len(Cs)} C's scaled"
    return seconds, f"scikit-learn {seconds:.1f} s{note}"


def liquid_seconds(X: np.ndarray, y: np.ndarray, ours: KernelSVC) -> float:
    """liquidSVM, in the interpreter of the peers; the median of three when it is quick."""
    if not PEERS_PYTHON.exists():
        raise NotAvailable("liquidSVM is not installed: run `make peers`")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, X=X, y=y, gamma=ours.gamma_, Cs=ours.Cs_, folds=FOLDS)
        seconds: list[float] = []
        while not seconds or (seconds[0] < 10.0 and len(seconds) < 3):
            command = [str(PEERS_PYTHON), str(HERE / "liquid.py"), str(file)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds.append(float(output.split()[-2]))
    return float(np.median(seconds))


def libsvm_data(name: str, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """A LIBSVM file as dense float32."""
    file = DATA / f"{name}.xz"
    if not file.exists():
        raise NotAvailable(f"{file.name} is not there: set KERNELPATH_DATA to the folder that holds it")
    X, y = load_svmlight_file(BytesIO(lzma.decompress(file.read_bytes())), n_features=n_features, dtype=np.float32)
    return np.ascontiguousarray(X.toarray()), y.astype(int)


# Cases


def against_scikit_learn(name: str, X: np.ndarray, y: np.ndarray, Cs: np.ndarray, bar: float | None, n_Cs: int) -> Row:
    ours = fit(X, y, Cs)
    seconds, peer = scikit_learn_seconds(X, y, ours.classifier, n_Cs)
    ratio = seconds / ours.seconds
    return Row(
        name,
        f"{ours.seconds:.2f} s",
        ours.worst_gap,
        peer,
        ratio,
        "report" if bar is None else f"≥ {bar:g} ×",
        None if bar is None else ratio >= bar and ours.worst_gap <= TOL,
    )


def against_liquid(name: str, n: int, bar: float) -> Row:
    X, y = make_mixture(n, 10, random_state=0)
    ours = fit(X, y)
    seconds = liquid_seconds(X, y, ours.classifier)
    ratio = seconds / ours.seconds
    passed = ratio >= bar and ours.worst_gap <= TOL
    return Row(
        name, f"{ours.seconds:.2f} s", ours.worst_gap, f"liquidSVM {seconds:.2f} s", ratio, f"≥ {bar:g} ×", passed
    )


def report(name: str, X: np.ndarray, y: np.ndarray, Cs: np.ndarray) -> Row:
    ours = fit(X, y, Cs)
    passed = ours.worst_gap <= TOL
    return Row(name, f"{ours.seconds:.2f} s", ours.worst_gap, bar="report; gaps ≤ 1e-6", passed=passed)


@case("sim2000")
def sim2000(quick: bool) -> Row:
    """Mixture, n = 2000, p = 10, against scikit-learn"""
    X, y = make_mixture(2000, 10, random_state=0)
    return against_scikit_learn("n = 2000, p = 10", X, y, GRID, 35.0, 5 if quick else 50)


@case("sim5000")
def sim5000(quick: bool) -> Row:
    """Mixture, n = 5000, p = 10, against scikit-learn"""
    X, y = make_mixture(5000, 10, random_state=0)
    return against_scikit_learn("n = 5000, p = 10", X, y, GRID, 30.0, 5 if quick else 50)


@case("wide5000")
def wide5000(quick: bool) -> Row:
    """Mixture, n = 5000, p = 100, against scikit-learn"""
    X, y = make_mixture(5000, 100, random_state=0)
    return against_scikit_learn("n = 5000, p = 100", X, y, GRID, 100.0, 5 if quick else 50)


@case("liquid2000")
def liquid2000(quick: bool) -> Row:
    """Mixture, n = 2000, p = 10, against liquidSVM"""
    return against_liquid("n = 2000, p = 10", 2000, 2.0)


@case("liquid5000")
def liquid5000(quick: bool) -> Row:
    """Mixture, n = 5000, p = 10, against liquidSVM"""
    return against_liquid("n = 5000, p = 10", 5000, 2.0)


@case("torchkm10000")
def torchkm10000(quick: bool) -> Row:
    """Mixture, n = 10000, p = 10, C in [5e-8, 0.05]: the grid of TorchKM's script"""
    X, y = make_mixture(10_000, 10, random_state=0)
    return report("n = 10000, p = 10, C ∈ [5e-8, 0.05]", X, y, TORCHKM_GRID)


@case("sim10000")
def sim10000(quick: bool) -> Row:
    """Mixture, n = 10000, p = 10, C in [1e-3, 1e3]"""
    X, y = make_mixture(10_000, 10, random_state=0)
    return report("n = 10000, p = 10, C ∈ [1e-3, 1e3]", X, y, GRID)


def lambda_grid(n: int) -> np.ndarray:
    """C = 1 / (2nλ) for λ in [1e-5, 1e-1]."""
    return 1.0 / (2.0 * n * np.logspace(-1, -5, 50))


@case("a7a")
def a7a(quick: bool) -> Row:
    """a7a, λ in [1e-5, 1e-1], against scikit-learn on 5 of the 50 C's"""
    X, y = libsvm_data("a7a", 123)
    return against_scikit_learn(f"a7a, n = {len(y)}", X, y, lambda_grid(len(y)), 60.0, 5)


@case("w7a")
def w7a(quick: bool) -> Row:
    """w7a, λ in [1e-5, 1e-1]"""
    X, y = libsvm_data("w7a", 300)
    return report(f"w7a, n = {len(y)}", X, y, lambda_grid(len(y)))


@case("growth")
def growth(quick: bool) -> Row:
    """Seconds for n = 1000, 2000, 5000 and 10000, and the exponent"""
    sizes = [1000, 2000, 5000] if quick else [1000, 2000, 5000, 10_000]
    fits = [fit(*make_mixture(n, 10, random_state=0)) for n in sizes]
    exponent = np.polyfit(np.log(sizes), np.log([f.seconds for f in fits]), 1)[0]
    seconds = ", ".join(f"{n}: {f.seconds:.2f} s" for n, f in zip(sizes, fits, strict=True))
    return Row(f"growth, n^{exponent:.2f}", seconds, max(f.worst_gap for f in fits))


@case("memory")
def memory(quick: bool) -> Row:
    """Peak memory of a fresh process at n = 10000 (--quick: 5000)"""
    n = 5000 if quick else 10_000
    command = [sys.executable, str(Path(__file__).resolve()), "--peak-memory-of", str(n)]
    peak, gram = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    allowed = 1.3 * gram + 300 * MB
    return Row(
        f"peak memory, n = {n}",
        f"{peak / MB:.0f} MB (Gram {gram / MB:.0f} MB)",
        bar=f"≤ {allowed / MB:.0f} MB (Gram + 30 % + 300 MB)",
        passed=peak <= allowed,
    )


def print_peak_memory(n: int) -> None:
    """Fit in this process, over every second C, and print its peak and the size of the Gram matrix."""
    X, y = make_mixture(n, 10, random_state=0)
    classifier = KernelSVC(Cs=GRID[::2], cv=FOLDS, n_jobs=2, random_state=0).fit(X, y)
    print(peak_memory(), classifier.gram_bytes_)


def peak_memory() -> int:
    """Bytes at the peak of this process. (getrusage on Linux counts that of the parent, which survives exec.)"""
    status = Path("/proc/self/status")
    if status.exists():
        kilobytes = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(kilobytes)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help="cases to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="peers on 5 of the 50 C's, scaled; smaller sizes")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--peak-memory-of", type=int, metavar="N", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak_memory_of:
        print_peak_memory(arguments.peak_memory_of)
        return 0
    if arguments.list:
        for name, function in CASES.items():
            print(f"  {name:<14} {function.__doc__}")
        return 0
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"unknown cases: {', '.join(sorted(unknown))}; known: {', '.join(CASES)}")

    failed = False
    print(Row.HEADER, flush=True)
    for name in arguments.cases or CASES:
        try:
            row = CASES[name](arguments.quick)
        except NotAvailable as reason:
            row = Row(name, f"skipped: {reason}", bar="")
        failed |= row.passed is False
        print(row, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
