"""Speed and memory against the peers, as one Markdown table.

    python benchmarks/bench.py                 all cases
    python benchmarks/bench.py sim2000 a7a     some
    python benchmarks/bench.py --quick         scikit-learn on 5 of the 50 C's everywhere, scaled
    python benchmarks/bench.py --list          what there is

Each fit is 50 values of C × (10 folds + refit) with gamma="sigest" on two threads, and fails if a gap is above 1e-6.
The cases nystrom_* are in nystrom.py: features of low rank from 2000 landmarks, against LinearSVC on the same features.
Those of files of data, *_read, are in reading.py, and those of kernels in doubt in definite.py.
A peer runs right after kernelpath, in the same minute: read the ratios, not the seconds. A fit shorter than
ten seconds is measured three times, and the median counts. Real data is looked for in the folder KERNELPATH_DATA, or
../shared/data; the interpreter that has liquidSVM and TorchKM is KERNELPATH_PEERS, or the one that `make peers` and
`make peers-torch` install into.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernelpath
from data import libsvm_data, sparse_libsvm_data, unpacked
from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelSVC, _core
from kernelpath.datasets import make_mixture
from measure import FOLDS, GRID, SEED, TOL, NotAvailable, fit, median_seconds, peak_memory
from peers import liquid_seconds, scikit_learn_seconds, torchkm
from table import CASES, Row, case

TORCHKM_GRID = np.logspace(np.log10(5e-8), np.log10(0.05), 50)
ESTIMATORS = {"svc": KernelSVC, "logistic": KernelLogistic, "dwd": KernelDWD, "quantile": KernelQuantile}
CALIBRATIONS = ("sigmoid", "isotonic", "temperature")
MB = 1e6


# Data


def simulated(method: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The mixture, p = 10. For quantiles the target is a number made from the features x₁, …, x₄,

        sin(2x₁) + ½ x₂x₃ + ½ (1 + |x₄|) ε,     ε ~ N(0, 1),

    whose noise grows with |x₄|, standardised to mean 0 and standard deviation 1.
    """
    X, y = make_mixture(n, 10, random_state=SEED)
    if method != "quantile":
        return X, y
    x1, x2, x3, x4 = X.T[:4]
    noise = np.random.default_rng(SEED).standard_normal(n)
    y = np.sin(2.0 * x1) + 0.5 * x2 * x3 + 0.5 * (1.0 + np.abs(x4)) * noise
    return X, (y - y.mean()) / y.std()


# Cases


def against_scikit_learn(
    name: str, X: np.ndarray, y: np.ndarray, Cs: np.ndarray, bar: float | None, n_Cs: int, **settings: Any
) -> Row:
    ours = fit(X, y, Cs, **settings)
    seconds, peer = scikit_learn_seconds(X, y, ours.estimator, n_Cs)
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
    seconds = liquid_seconds(X, y, ours.estimator)
    ratio = seconds / ours.seconds
    passed = ratio >= bar and ours.worst_gap <= TOL
    return Row(
        name, f"{ours.seconds:.2f} s", ours.worst_gap, f"liquidSVM {seconds:.2f} s", ratio, f"≥ {bar:g} ×", passed
    )


def against_torchkm(method: str, bar: float | None, solver: str = "auto", n: int = 1000, Cs: np.ndarray = GRID) -> Row:
    """TorchKM on 5 of the C's. To pass, our objective must not be above its own at any of them."""
    X, y = simulated(method, n)
    ours = fit(X, y, Cs, ESTIMATORS[method], solver)
    theirs = torchkm(method, X, y, ours.estimator, 5)
    note, as_low = theirs.note, True
    if theirs.objectives is not None:
        excess = theirs.objectives / objectives(ours.estimator, X, y, theirs.Cs) - 1.0
        note += f"; its objective above ours by {excess.min():.1e} to {excess.max():.1e}"
        as_low = excess.min() >= -TOL
    ratio = theirs.seconds / ours.seconds
    return Row(
        f"{method}, solver={ours.estimator.solver_}, n = {n}, p = 10",
        f"{ours.seconds:.2f} s{passes(ours, n)}",
        ours.worst_gap,
        note,
        ratio,
        "report" if bar is None else f"≥ {bar:g} ×",
        None if bar is None else ratio >= bar and ours.worst_gap <= TOL and as_low,
    )


def passes(ours: Any, n: int) -> str:
    """Of the spectral engine: the two products of each step of each model, over the time of the whole fit."""
    if ours.estimator.solver_ != "spectral":
        return ""
    return f" ({4e-9 * n * n * ours.estimator.n_iter_.sum() / ours.seconds:.0f} GFLOP/s by its passes alone)"


def objectives(fitted: Any, X: np.ndarray, y: np.ndarray, Cs: np.ndarray) -> np.ndarray:
    """Of the estimator on all rows, one a C, on a kernel matrix in double precision, as TorchKM's is."""
    model = clone(fitted).set_params(cv=None, gamma=fitted.gamma_, dtype="float64")
    return np.array([model.set_params(Cs=C).fit(X, y).objective_ for C in Cs])


def against_own_svm(bars: dict[str, float], n: int, Cs: np.ndarray = GRID) -> Row:
    """Each method may take `bars` times as long as the SVM."""
    svm = fit(*simulated("svc", n), Cs)
    fits = {method: fit(*simulated(method, n), Cs, ESTIMATORS[method]) for method in bars}
    ratios = {method: ours.seconds / svm.seconds for method, ours in fits.items()}
    worst_gap = max(ours.worst_gap for ours in [svm, *fits.values()])
    return Row(
        f"losses, n = {n}, p = 10",
        ", ".join(f"{method} {fits[method].seconds:.2f} s ({ratios[method]:.1f} ×)" for method in bars),
        worst_gap,
        f"own SVM {svm.seconds:.2f} s",
        bar=", ".join(f"{method} ≤ {bar:g} ×" for method, bar in bars.items()),
        passed=worst_gap <= TOL and all(ratios[method] <= bar for method, bar in bars.items()),
    )


def calibration_share(n: int, bar: float) -> Row:
    """The seconds of each calibration, as a part of the seconds of the fit it belongs to."""
    X, y = simulated("svc", n)
    fits = {method: fit(X, y, estimator=partial(KernelSVC, probability=method)) for method in CALIBRATIONS}
    shares = {method: f.estimator.calibration_seconds_ / f.estimator.fit_seconds_ for method, f in fits.items()}
    worst_gap = max(ours.worst_gap for ours in fits.values())
    return Row(
        f"probability, n = {n}, p = 10",
        ", ".join(f"{method} {share:.2%}" for method, share in shares.items()),
        worst_gap,
        f"fit {fits[CALIBRATIONS[0]].seconds:.2f} s",
        bar=f"≤ {bar:.0%} of the fit",
        passed=worst_gap <= TOL and max(shares.values()) <= bar,
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


@case("torchkm_svc")
def torchkm_svc(quick: bool) -> Row:
    """SVM, mixture, n = 1000, p = 10, against TorchKM on 5 of the 50 C's"""
    return against_torchkm("svc", 400.0)


@case("torchkm_logistic")
def torchkm_logistic(quick: bool) -> Row:
    """Logistic regression, the same"""
    return against_torchkm("logistic", 150.0)


@case("torchkm_dwd")
def torchkm_dwd(quick: bool) -> Row:
    """Distance-weighted discrimination, the same"""
    return against_torchkm("dwd", 25.0)


@case("torchkm_quantile")
def torchkm_quantile(quick: bool) -> Row:
    """Median regression, the same on a target made from the mixture's features"""
    return against_torchkm("quantile", 400.0)


@case("spectral_svc")
def spectral_svc(quick: bool) -> Row:
    """As torchkm_svc with the spectral solver"""
    return against_torchkm("svc", 10.0, "spectral")


@case("spectral_logistic")
def spectral_logistic(quick: bool) -> Row:
    """As torchkm_logistic with the spectral solver"""
    return against_torchkm("logistic", 10.0, "spectral")


@case("spectral_quantile")
def spectral_quantile(quick: bool) -> Row:
    """As torchkm_quantile with the spectral solver"""
    return against_torchkm("quantile", 10.0, "spectral")


@case("torchkm_svc_2000")
def torchkm_svc_2000(quick: bool) -> Row:
    """As torchkm_svc with n = 2000"""
    return against_torchkm("svc", None, n=2000)


@case("torchkm_logistic_2000")
def torchkm_logistic_2000(quick: bool) -> Row:
    """As torchkm_logistic with n = 2000"""
    return against_torchkm("logistic", None, n=2000)


@case("torchkm_dwd_2000")
def torchkm_dwd_2000(quick: bool) -> Row:
    """As torchkm_dwd with n = 2000"""
    return against_torchkm("dwd", None, n=2000)


@case("losses5000")
def losses5000(quick: bool) -> Row:
    """Mixture, n = 5000, p = 10: logistic, DWD and quantile against our own SVM"""
    return against_own_svm({"logistic": 4.0, "dwd": 4.0, "quantile": 2.0}, 5000)


@case("probability")
def probability(quick: bool) -> Row:
    """Mixture, n = 2000, p = 10: what calibrated probabilities add to a fit"""
    return calibration_share(2000, 0.02)


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


@case("digits")
def digits(quick: bool) -> Row:
    """Digits, 10 classes, one against one, 20 C's × 5 folds, against scikit-learn"""
    X, y = load_digits(return_X_y=True)
    return against_scikit_learn("digits, 10 classes, n = 1797", X, y, np.logspace(-3, 3, 20), 15.0, 20, cv=5)


@case("letter")
def letter(quick: bool) -> Row:
    """Letters, 26 classes, first 8000 rows, 20 C's × 5 folds, against scikit-learn on 4 of the C's (--quick: 2)"""
    lines = unpacked("letter-recognition.data.xz").decode().split()[:8000]
    y = np.array([line[0] for line in lines])
    X = StandardScaler().fit_transform(np.array([line.split(",")[1:] for line in lines], dtype=float))
    Cs = np.logspace(-3, 3, 20)
    return against_scikit_learn("letter, 26 classes, n = 8000", X, y, Cs, 15.0, 2 if quick else 4, cv=5)


@case("surface")
def surface(quick: bool) -> Row:
    """Mixture, n = 2000, p = 10: 20 C's × 8 bandwidths × 5 folds, against scikit-learn on 5 of the C's"""
    X, y = make_mixture(2000, 10, random_state=0)
    gammas = fit(X, y, np.array([1.0])).estimator.gamma_ * np.geomspace(1 / 16, 8, 8)
    Cs = np.logspace(-3, 3, 20)
    return against_scikit_learn("C × γ, 20 × 8, n = 2000", X, y, Cs, 20.0, 5, cv=5, gamma=gammas)


@case("one_cell")
def one_cell(quick: bool) -> Row:
    """Mixture, n = 5000, p = 10: one cell is 999 999 999, a code for a missing value; against none"""
    X, y = make_mixture(5000, 10, random_state=0)
    settings = {"Cs": np.array([1.0]), "cv": None, "gamma": 0.05}
    without = fit(X, y, **settings)
    X[7, 0] = 999_999_999.0
    ours = fit(X, y, **settings)
    ratio = ours.seconds / without.seconds
    passed = ratio <= 1.5 and ours.worst_gap <= TOL
    peer = f"without {without.seconds:.2f} s"
    return Row("one cell of another size", f"{ours.seconds:.2f} s", ours.worst_gap, peer, ratio, "≤ 1.5 ×", passed)


@case("prediction")
def prediction(quick: bool) -> Row:
    """20 000 rows against 5000 support vectors, p = 10, against SVC.predict"""
    X, y = make_mixture(5000, 10, random_state=0)
    y = np.random.default_rng(0).permutation(y)  # noise: every row is a support vector
    Z, _ = make_mixture(20_000, 10, random_state=1)
    ours = KernelSVC(Cs=1e-3, cv=None, gamma=0.05, n_jobs=2).fit(X, y)
    theirs = SVC(C=1e-3, gamma=0.05).fit(X, y)

    def timed(model: Any) -> float:
        started = time.perf_counter()
        model.predict(Z)
        return time.perf_counter() - started

    seconds, peer = median_seconds(lambda: timed(ours)), median_seconds(lambda: timed(theirs))
    vectors = f"{len(ours.support_)} and {len(theirs.support_)} support vectors"
    ratio = peer / seconds
    return Row(f"prediction, {vectors}", f"{seconds:.2f} s", None, f"SVC {peer:.2f} s", ratio, "≥ 10 ×", ratio >= 10.0)


@case("latency")
def latency(quick: bool) -> Row:
    """One row against 1200 support vectors, p = 10: 2 classes, low rank, 10 classes, in turn with SVC.predict"""
    X, y = make_mixture(1200, 10, random_state=0)
    rng = np.random.default_rng(0)
    noise, kinds = rng.permutation(y), rng.integers(10, size=len(y))  # noise: every row is a support vector
    settings: dict[str, Any] = {"Cs": 1e-3, "cv": None, "gamma": 0.05, "random_state": SEED}
    pairs = {
        "binary": (KernelSVC(**settings).fit(X, noise), SVC(C=1e-3, gamma=0.05).fit(X, noise)),
        "low rank": (
            KernelSVC(**settings, low_rank=True, n_landmarks=1200).fit(X, noise),
            SVC(C=1e-3, gamma=0.05).fit(X, noise),
        ),
        "10 classes": (KernelSVC(**settings).fit(X, kinds), SVC(C=1e-3, gamma=0.05).fit(X, kinds)),
    }
    seconds = {name: alternating(pair, X, 200 if quick else 1000) for name, pair in pairs.items()}
    ours, theirs = seconds["binary"]
    ratios = {name: theirs / ours for name, (ours, theirs) in seconds.items()}
    others = ", ".join(f"{name} {ratio:.1f} ×" for name, ratio in ratios.items() if name != "binary")
    native = rust_latency()
    return Row(
        f"one row, {len(pairs['binary'][0].support_)} support vectors",
        f"{1e6 * ours:.0f} µs, from Rust {native:.1f} µs; {others}",
        None,
        f"SVC {1e6 * theirs:.0f} µs",
        ratios["binary"],
        "≥ 1 × each, ≤ 20 µs from Rust, ≤ 20 µs more from Python",
        min(ratios.values()) >= 1.0 and native <= 20.0 and 1e6 * ours <= native + 20.0,
    )


def alternating(models: tuple[Any, Any], X: np.ndarray, calls: int) -> tuple[float, float]:
    """Median seconds of `predict` of one row by each of two models, who take turns."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for call in range(calls):
        row = X[call % len(X)][np.newaxis]
        for model, of_model in zip(models, seconds, strict=True):
            started = time.perf_counter()
            model.predict(row)
            of_model.append(time.perf_counter() - started)
    return float(np.median(seconds[0])), float(np.median(seconds[1]))


def rust_latency() -> float:
    """Microseconds of the same call from Rust, by the example `latency`."""
    folder = Path(__file__).resolve().parents[1]
    command = ["cargo", "run", "--release", "--quiet", "--package", "kernelpath", "--example", "latency"]
    try:
        lines = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout.splitlines()
    except FileNotFoundError as error:
        raise NotAvailable("cargo is not installed") from error
    return float(lines[0].split()[1])


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


@case("sparse_gram")
def sparse_gram(quick: bool) -> Row:
    """Kernel matrix of a9a (--quick: a7a) from sparse and from dense rows"""
    name = "a7a" if quick else "a9a"
    X, y = sparse_libsvm_data(name, 123)
    model = KernelSVC(Cs=1e-4, cv=None, gamma=0.05, dtype="float32", n_jobs=2)
    forms = {"CSR": X, "dense": X.toarray()}
    runs = [{form: model.fit(rows, y).kernel_seconds_ for form, rows in forms.items()} for _ in range(3)]
    seconds = {form: float(np.median([run[form] for run in runs])) for form in forms}
    ratio = seconds["CSR"] / seconds["dense"]
    return Row(
        f"kernel matrix, {name} as CSR, n = {len(y)}",
        f"{seconds['CSR']:.2f} s",
        float(model.gaps_.max()),
        f"dense rows {seconds['dense']:.2f} s",
        ratio,
        "≤ 1.5 ×",
        ratio <= 1.5,
    )


@case("devices")
def devices(quick: bool) -> Row:
    """What a device is asked to do: launches, bytes moved, and bytes moved per row and step at n and 2n rows"""
    found = [device.name for device in kernelpath.devices() if device.name != "cpu" and device.problem is None]
    if not found:
        raise NotAvailable("no device but the processor is usable: kernelpath.devices() says why")
    methods: dict[str, tuple[Any, dict[str, Any]]] = {
        "hinge, spectral": (KernelSVC, {"solver": "spectral"}),
        "logistic, Newton": (KernelLogistic, {"solver": "newton"}),
        "logistic, rank 50": (KernelLogistic, {"low_rank": True, "n_landmarks": 50}),
    }
    parts, kept = [], True
    for name, (estimator, settings) in methods.items():
        small, large = (device_counts(estimator, n, found[0], settings) for n in ((100, 200) if quick else (150, 300)))
        kept &= large["row"] <= 2.0 * small["row"]
        parts.append(
            f"{name}: {large['launches']:.0f} launches for {large['steps']:.0f} steps, {large['up']:.1f} MB up, "
            f"{large['down']:.1f} MB down; {small['row']:.0f} and {large['row']:.0f} bytes per row and step"
        )
    return Row(f"devices, {found[0]}", "; ".join(parts), bar="bytes per row and step do not grow", passed=kept)


def device_counts(estimator: Any, n: int, device: str, settings: dict[str, Any]) -> dict[str, float]:
    """Of one fit with ten C's; bytes per row and step are those that the last five of them add."""
    X, y = make_mixture(n, 5, random_state=SEED)
    counts = []
    for n_Cs in (5, 10):
        before = _core.device_traffic(device) or (0, 0, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the grid is narrow on purpose
            model = estimator(Cs=GRID[::5][:n_Cs], cv=5, device=device, gamma=0.5, **settings).fit(X, y)
        counts.append(np.subtract(_core.device_traffic(device), before))
    launches, up, down = counts[1]
    row = (counts[1] - counts[0])[1:].sum() / n / model.n_iter_[..., 5:].sum()
    return {"launches": launches, "steps": model.n_iter_.sum(), "up": up / MB, "down": down / MB, "row": row}


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


import definite  # noqa: E402, F401  (cases, after those above)
import nystrom  # noqa: E402, F401
import reading  # noqa: E402, F401


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
            print(f"  {name:<20} {function.__doc__}")
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
