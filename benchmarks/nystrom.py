"""Cases of low_rank=True: 10 folds × 50 C's on features of rank r from 2000 landmarks, λ in [1e-7, 1e-1].

The bandwidth is the best of four multiples of "sigest" by cross-validation at that rank, on a sample of the training
rows; this choice is not in the seconds of the fit, and is printed beside them.
The fit runs in a fresh process, whose memory is measured, and reads X from a memory-mapped file. Its seconds are
all of `fit`: landmarks, features, path, folds, refit and scores. The peer is LinearSVC on the same features, which it
is given: only its fits of the folds are counted, and no refit.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from data import Split, covtype, deformed_digits, fifth_held_out, libsvm_data, libsvm_split
from kernelpath import NystromFeatures
from measure import SEED, TOL, AddedMemory, Fit, fit
from peers import linear_svc_seconds
from table import Row, case

N_LANDMARKS = 2000
SAMPLE = 8000
MULTIPLES = np.array([1.0, 1 / 3, 1 / 9, 1 / 27])
MB = 1e6


@dataclass
class Ours:
    """A fit in a process of its own, and the bytes it added at its peak to what that process had."""

    fit: Fit
    added: int


@dataclass
class Bars:
    """What a case has to reach; None is only reported."""

    accuracy: float | None = None
    ratio: float | None = None
    memory: float | None = 0.15

    def __str__(self) -> str:
        ratio = [] if self.ratio is None else [f"≥ {self.ratio:g} ×"]
        accuracy = [] if self.accuracy is None else [f"accuracy ≥ {self.accuracy:g}"]
        memory = [] if self.memory is None else [f"memory within {self.memory:.0%} of plan"]
        return ", ".join([*ratio, *accuracy, *memory, "gaps ≤ 1e-6"])


def lambda_grid(n: int, n_Cs: int = 50) -> np.ndarray:
    """C = 1 / (2nλ) for λ in [1e-7, 1e-1]."""
    return 1.0 / (2.0 * n * np.logspace(-1, -7, n_Cs))


def against_linear_svc(
    name: str,
    data: Split,
    rank: int,
    bars: Bars,
    paper: float | None = None,
    *,
    n_Cs: int = 50,
    n_landmarks: int = N_LANDMARKS,
    peer_Cs: int = 5,
    peer_folds: int | None = None,
    loss: str = "hinge",
) -> Row:
    """`paper`: seconds of TorchKM on its L40S; `peer_Cs`, `peer_folds`: those the peer is run on (0 C's: it is not)."""
    n, p = data.X.shape
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "X.npy"
        np.save(file, data.X)
        data.X = np.load(file, mmap_mode="r")
        settings = {"loss": loss, "low_rank": True, "n_landmarks": n_landmarks, "rank": rank}
        gamma, multiple, choice = chosen_gamma(data.X, data.y, settings)
        settings["gamma"] = gamma
        ours = in_fresh_process(file, data.y, lambda_grid(n, n_Cs), settings)
        model = ours.fit.estimator
        accuracy = float(np.mean(model.predict(data.X_test) == data.y_test))
        peer, note, at_least = None, "", False
        if peer_Cs:
            Z = features(model, data.X)
            peer, note, at_least = linear_svc_seconds(Z, data.y, model, peer_Cs, peer_folds, loss)
    ratio = None if peer is None else peer / ours.fit.seconds
    plan = model.planned_bytes_
    reached = [ours.fit.worst_gap <= TOL]
    reached += [] if bars.memory is None else [abs(ours.added - plan) <= bars.memory * plan]
    reached += [] if bars.accuracy is None else [accuracy >= bars.accuracy]
    reached += [] if bars.ratio is None or ratio is None else [ratio >= bars.ratio]
    return Row(
        f"{name}, n = {n}, p = {p}, rank {model.rank_}, λ ∈ [1e-7, 1e-1], γ = {gamma:.3g} ({multiple:.2g} sigest)",
        "; ".join(
            [
                f"{seconds(ours.fit)}, γ chosen in {choice:.1f} s more",
                f"test accuracy {accuracy:.4f}",
                f"trace error {model.approximation_.trace_error:.1e}",
                memory(ours, data.X.nbytes),
                *([] if paper is None else [f"paper's L40S {paper:g} s"]),
            ]
        ),
        ours.fit.worst_gap,
        note,
        ratio,
        str(bars),
        all(reached),
        at_least,
    )


def chosen_gamma(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> tuple[float, float, float]:
    """The best bandwidth, the multiple of "sigest" that it is, and the seconds that took."""
    rows = np.sort(np.random.RandomState(SEED).permutation(len(y))[:SAMPLE])
    sample, targets = np.asarray(X[rows]), y[rows]
    base = fit(sample, targets, np.array([1.0]), cv=2, low_rank=True, n_landmarks=50).estimator.gamma_
    tuned = fit(sample, targets, lambda_grid(len(rows), 7), cv=5, gamma=base * MULTIPLES, **settings)
    return tuned.estimator.gamma_, tuned.estimator.gamma_ / base, tuned.seconds


def seconds(ours: Fit) -> str:
    """Of the fit; and of its last run features and path, and what is neither (landmarks, scores)."""
    model = ours.estimator
    rest = model.fit_seconds_ - model.kernel_seconds_ - model.path_seconds_
    parts = f"features {model.kernel_seconds_:.2f}, path {model.path_seconds_:.2f}, landmarks and scores {rest:.2f}"
    return f"{ours.seconds:.2f} s ({parts})"


def memory(ours: Ours, size_of_X: int) -> str:
    model = ours.fit.estimator
    parts = f"plan {model.planned_bytes_ / MB:.0f}, of this Z {model.gram_bytes_ / MB:.0f}"
    return f"memory {ours.added / MB:.0f} MB ({parts}; X, mapped, is {size_of_X / MB:.0f} beside it)"


def features(model: Any, X: np.ndarray) -> np.ndarray:
    """Z of the fit, in double precision, which LinearSVC would convert it to."""
    of = NystromFeatures(landmarks=model.landmarks_, gamma=model.gamma_, rank=model.rank_, dtype="float64", n_jobs=2)
    return of.fit(X).transform(X)


def in_fresh_process(file: Path, y: np.ndarray, Cs: np.ndarray, settings: dict[str, Any]) -> Ours:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measured, (file, y, Cs, settings))


def measured(file: Path, y: np.ndarray, Cs: np.ndarray, settings: dict[str, Any]) -> Ours:
    X = np.load(file, mmap_mode="r")
    fit(X[:1000], y[:1000], Cs[:1], **{**settings, "n_landmarks": 50, "rank": None})  # loads what it needs
    with AddedMemory() as added:
        ours = fit(X, y, Cs, runs=1, **settings)
    # What later runs add is less: they find memory that the first has left.
    ours = ours if ours.seconds >= 10.0 else fit(X, y, Cs, **settings)
    del ours.estimator.oof_path_  # n × 50, not needed on the other side
    return Ours(ours, added.bytes)


@case("landmarks")
def landmarks(quick: bool) -> Row:
    """The part of the trace that 300 features miss, by rules for landmarks: 5000 rows of three data sets, 5 seeds"""
    of = {"a9a": libsvm_split("a9a", 123), "ijcnn1": libsvm_split("ijcnn1", 22), "covtype": covtype()}
    kernels: dict[str, dict[str, Any]] = {
        "rbf": {},
        "laplacian": {"kernel": "laplacian"},
        "poly": {"kernel": "poly", "degree": 3, "coef0": 1.0},
    }
    parts = []
    for data, kernel in (
        ("a9a", "rbf"),
        ("ijcnn1", "rbf"),
        ("covtype", "rbf"),
        ("a9a", "laplacian"),
        ("covtype", "poly"),
    ):
        errors = {rule: trace_errors(of[data].X, rule, kernels[kernel]) for rule in ("uniform", "rpcholesky", "kmeans")}
        said = ", ".join(f"{rule} {np.mean(values):.4f}" for rule, values in errors.items())
        parts.append(f"{data} {kernel}: {said}, best of any {least_error(of[data].X, kernels[kernel]):.4f}")
    return Row("trace missed by 300 features", "; ".join(parts))


def sampled(X: np.ndarray, seed: int) -> np.ndarray:
    return np.asarray(X[np.random.RandomState(seed).permutation(len(X))[:5000]])


def trace_errors(X: np.ndarray, rule: str, kernel: dict[str, Any]) -> list[float]:
    def error(seed: int) -> float:
        of = NystromFeatures(landmarks=rule, n_landmarks=300, random_state=seed, n_jobs=2, **kernel)
        return float(of.fit(sampled(X, seed)).approximation_.trace_error)

    return [error(seed) for seed in range(5)]


def least_error(X: np.ndarray, kernel: dict[str, Any]) -> float:
    """What the 300 largest eigenvalues leave of the trace, of one sample."""
    # All rows as landmarks: the eigenvalues are those of the kernel matrix itself.
    whole = NystromFeatures(landmarks=np.arange(5000), rank=300, random_state=0, n_jobs=2, **kernel)
    return float(whole.fit(sampled(X, 0)).approximation_.trace_error)


@case("nystrom_a9a")
def nystrom_a9a(quick: bool) -> Row:
    """a9a, rank 300, against LinearSVC on the same features, 5 of the 50 C's (--quick, here and below: 1)"""
    data = libsvm_split("a9a", 123)
    return against_linear_svc("a9a", data, 300, Bars(0.851, 60.0), 17.9, peer_Cs=1 if quick else 5)


@case("nystrom_a9a_squared")
def nystrom_a9a_squared(quick: bool) -> Row:
    """The same with the squared hinge loss, of both: LinearSVC's own"""
    data = libsvm_split("a9a", 123)
    return against_linear_svc(
        "a9a, squared hinge", data, 300, Bars(0.851, 60.0), peer_Cs=1 if quick else 5, loss="squared_hinge"
    )


@case("nystrom_w8a")
def nystrom_w8a(quick: bool) -> Row:
    """w8a, a fifth held out, rank 300, the same"""
    data = fifth_held_out(*libsvm_data("w8a", 300))
    return against_linear_svc("w8a", data, 300, Bars(0.981, 30.0), 20.8, peer_Cs=1 if quick else 5)


@case("nystrom_ijcnn1")
def nystrom_ijcnn1(quick: bool) -> Row:
    """ijcnn1, rank 300, the same"""
    data = libsvm_split("ijcnn1", 22)
    return against_linear_svc("ijcnn1", data, 300, Bars(None, 30.0), 27.4, peer_Cs=1 if quick else 5)


@case("nystrom_ijcnn1_1000")
def nystrom_ijcnn1_1000(quick: bool) -> Row:
    """ijcnn1, rank 1000, the same"""
    data = libsvm_split("ijcnn1", 22)
    return against_linear_svc("ijcnn1", data, 1000, Bars(0.982, 30.0), peer_Cs=1 if quick else 5)


@case("nystrom_covtype")
def nystrom_covtype(quick: bool) -> Row:
    """Covertype, class 2 against the rest, features in [0, 1], a fifth held out, rank 30, the same"""
    return against_linear_svc("covtype", covtype(), 30, Bars(0.807, 50.0), 31.1, peer_Cs=1 if quick else 5)


@case("nystrom_covtype_most")
def nystrom_covtype_most(quick: bool) -> Row:
    """The most that 30 features give on held-out rows, which choose it: scalings, kernels, bandwidths, landmarks"""
    n = 20_000 if quick else 60_000
    split = covtype()
    data = Split(split.X[:n], split.y[:n], split.X_test[:20_000], split.y_test[:20_000])
    parts = [
        f"{name}, {kernel} {most_accurate(scaled, kernel):.4f}"
        for name, scaled in scalings(data).items()
        for kernel in ("rbf", "laplacian")
    ]
    return Row(f"covtype, n = {n}, rank 30, λ ∈ [1e-9, 1e-1], accuracy", "; ".join(parts))


def scalings(data: Split) -> dict[str, Split]:
    """All features, or only the ten that are no indicators."""

    def standardised(X: np.ndarray, features: int) -> np.ndarray:
        scaler = StandardScaler().fit(data.X[:, :features])
        return np.hstack([scaler.transform(X[:, :features]), X[:, features:]])

    def split(of: Callable[[np.ndarray], np.ndarray]) -> Split:
        return Split(of(data.X), data.y, of(data.X_test), data.y_test)

    return {
        "in [0, 1]": data,
        "standardised": split(lambda X: standardised(X, X.shape[1])),
        "measures standardised": split(lambda X: standardised(X, 10)),
        "measures alone": split(lambda X: standardised(X, 10)[:, :10]),
    }


def most_accurate(data: Split, kernel: str) -> float:
    """Over bandwidths and landmarks; C by cross-validation."""
    Cs = 1.0 / (2.0 * len(data.y) * np.logspace(-1, -9, 9))
    settings: dict[str, Any] = {"kernel": kernel, "low_rank": True, "rank": 30, "cv": 3}
    sample = data.head(SAMPLE)
    rough: dict[str, Any] = {"kernel": kernel, "low_rank": True, "n_landmarks": 50, "cv": 2}
    base = fit(sample.X, sample.y, np.array([1.0]), runs=1, **rough).estimator.gamma_
    accuracies = []
    for multiple in (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
        for rule, n_landmarks in (("auto", 30), ("kmeans", 30), ("auto", 1000)):
            settings |= {"gamma": base * multiple, "landmarks": rule, "n_landmarks": n_landmarks}
            model = fit(data.X, data.y, Cs, runs=1, **settings).estimator
            accuracies.append(float(np.mean(model.predict(data.X_test) == data.y_test)))
    return max(accuracies)


@case("nystrom_covtype_300")
def nystrom_covtype_300(quick: bool) -> Row:
    """The same at rank 300, without a peer"""
    return against_linear_svc("covtype", covtype(), 300, Bars(), peer_Cs=0)


@case("nystrom_covtype_1000")
def nystrom_covtype_1000(quick: bool) -> Row:
    """And at rank 1000"""
    return against_linear_svc("covtype", covtype(), 1000, Bars(), peer_Cs=0)


@case("nystrom_mnist")
def nystrom_mnist(quick: bool) -> Row:
    """MNIST 4 v 6, synthetic copies to 1.27 million rows (--quick: 100 000), rank 300, the peer on 1 C and 1 fold"""
    data = deformed_digits(100_000 if quick else 1_270_000)
    name = "MNIST 4 v 6, synthetic (deformed copies), real test digits"
    return against_linear_svc(name, data, 300, Bars(0.997), 64.7, peer_Cs=1, peer_folds=1)
