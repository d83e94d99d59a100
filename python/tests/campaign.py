"""Seeded random fits of every kind, each model judged by a twin that shares no code with the library.

`case(seed)` draws a fit; `examine(case)` runs it and lists what is wrong with it; `run(seeds)` does so for many, in
processes of their own with a time limit. From the command line:

    python python/tests/campaign.py --cases 2000       rates and offenders
    python python/tests/campaign.py --seed 17          one case, and all that is wrong with it
"""

import argparse
import contextlib
import json
import sys
import time
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from children import answers
from paths import MachinePath, fit_path
from scipy import sparse
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, ShuffleSplit, StratifiedKFold
from twin import (
    MULTINOMIAL,
    Certificate,
    LowRank,
    Problem,
    Value,
    certificate,
    exact_kernel,
    given_kernel,
    is_indefinite,
)

import kernelpath
from kernelpath import _core
from kernelpath._settings import Settings

# Kinds of offence. The goal is none of each.
FALSE_PROOF = "false proof"  # "converged", but the gap recomputed exceeds tol by more than all noise
WRONG_VALUE = "wrong value"  # P or D is not what the formulas give, or P < D* or D > P* elsewhere
NEGATIVE = "negative gap"  # "converged" with a gap below minus its noise
NOISY = "noise above tol"  # "converged", though the noise it reports exceeds tol
NOT_A_NUMBER = "gap not finite"  # of a model that was run, with a kernel that is not indefinite
INDEFINITE = "indefinite kernel"  # not called so, or called so wrongly, or with numbers where NaN is due
REPEATED = "repeated C"  # equal values of C with different results
INCONSISTENT = "inconsistent"  # attributes that contradict each other or the parameters
CRASH = "crash"
HANG = "hang"
KINDS = (
    FALSE_PROOF, WRONG_VALUE, NEGATIVE, NOISY, NOT_A_NUMBER, INDEFINITE, REPEATED, INCONSISTENT, CRASH, HANG
)  # fmt: skip

# Seconds for one case. A case takes some ten milliseconds; a busy machine may be ten times slower.
SECONDS = 30.0
# Seconds that the checks of one case may solve problems again; what is not solved by then stays undecided.
SECONDS_AGAIN = 3.0
# Values that differ by less than this part of `tol` are not called wrong: no claim depends on it.
NEGLIGIBLE = 0.01
# The same where float32 was asked for whatever C is: P has the errors of K of the first order, P − D of the second.
NEGLIGIBLE_IN_SINGLE = 0.2
# Folds of one fit that are solved again; those of leave-one-out are many.
MOST_FOLDS = 6
# What the library may refuse: folds and machines that the drawn data does not allow, kernels that float32 cannot hold.
REFUSALS = (
    "in float32: scale",
    "training rows have the same class",
    "cannot be represented",
)
PSD_KERNELS = ("rbf", "laplacian", "matern32", "matern52", "linear")


# ---------------------------------------------------------------------------------------------------------- cases


@dataclass
class Case:
    """One fit: the estimator, its data, and what the checks must know of it."""

    seed: int
    estimator: object
    X: object
    y: np.ndarray
    sample_weight: np.ndarray | None
    groups: np.ndarray | None
    notes: list = field(default_factory=list)
    unit: bool = False  # the columns of X, and targets of a regression, have variance 1, and weights are moderate

    def fit(self):
        return self.estimator.fit(self.X, self.y, sample_weight=self.sample_weight, groups=self.groups)

    def __str__(self):
        parameters = {k: v for k, v in self.estimator.get_params().items() if k not in ("verbose", "device")}
        defaults = type(self.estimator)().get_params()
        shown = ", ".join(f"{k}={_brief(v)}" for k, v in parameters.items() if not _same(v, defaults[k]))
        shape = "x".join(map(str, self.X.shape))
        return f"{type(self.estimator).__name__}({shown}) on {shape} {self.X.dtype} [{', '.join(self.notes)}]"


def _brief(value):
    if callable(value):
        return getattr(value, "__name__", str(value))
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return f"<{len(value)} splits>"
    if isinstance(value, np.ndarray | list):
        return "[" + ",".join(f"{v:.6g}" for v in np.ravel(value)) + "]" if np.size(value) < 20 else "<array>"
    return repr(value)


def _same(value, other):
    return type(value) is type(other) and not isinstance(value, np.ndarray | list) and value == other


def cosine_kernel(A, B):
    """A callable kernel: the squared cosine plus the Gaussian, positive semi-definite."""
    A, B = (np.asarray(M.toarray() if sparse.issparse(M) else M, np.float64) for M in (A, B))
    a, b = (M / np.maximum(np.linalg.norm(M, axis=1, keepdims=True), 1e-300) for M in (A, B))
    return (a @ b.T) ** 2 + 1.0 * (np.abs(A[:, None] - B[None]).max(axis=2) == 0)


def sign_kernel(A, B):
    """A callable kernel that is not positive semi-definite."""
    A, B = (np.asarray(M.toarray() if sparse.issparse(M) else M, np.float64) for M in (A, B))
    return -np.abs(A[:, None] - B[None]).sum(axis=2) / max(1e-300, np.abs(A).max())


def case(seed, dtype=None):
    """The case of a seed: equal seeds, equal cases; `dtype` goes before the one drawn."""
    rng = np.random.default_rng(seed)
    family = rng.choice(
        ["hinge", "squared_hinge", "logistic", "multinomial", "dwd", "quantile", "quantiles", "svr", "squared",
         "huber", "expectile"],
        p=[0.19, 0.08, 0.11, 0.06, 0.08, 0.12, 0.06, 0.12, 0.06, 0.06, 0.06],
    )  # fmt: skip
    classify = family in ("hinge", "squared_hinge", "logistic", "multinomial", "dwd")
    unit = rng.random() < 0.55
    notes = ["unit"] if unit else []
    leave_one_out = family != MULTINOMIAL and rng.random() < 0.12
    n_classes = 2 if not classify or (family != MULTINOMIAL and rng.random() < 0.8) else int(rng.integers(3, 5))
    most = 30 if leave_one_out else 70 if n_classes > 2 or family == "quantiles" else 121
    least = 8 * n_classes if n_classes > 2 else 10
    n, p = int(rng.integers(least, max(most, 2 * least))), int(rng.integers(1, 9))
    X, signal = _rows(rng, n, p, unit, notes)
    y = _labels(rng, signal, n_classes, notes) if classify else _targets(rng, signal, unit, notes)
    weight, class_weight = _weights(rng, y, n_classes if classify else 0, unit, notes)
    parameters = {"random_state": int(rng.integers(100)), "n_jobs": int(rng.choice([1, 1, 1, 2]))}
    if class_weight is not None:
        parameters["class_weight"] = class_weight
    X = _kernel(rng, X, parameters, unit, notes)
    low_rank = not leave_one_out and rng.random() < 0.22
    if low_rank:
        parameters |= {"low_rank": True, "landmarks": str(rng.choice(["auto", "uniform", "kmeans", "rpcholesky"]))}
        if parameters.get("kernel") == "precomputed" or callable(parameters.get("kernel")):
            parameters["landmarks"] = str(rng.choice(["uniform", "rpcholesky"]))
        parameters["n_landmarks"] = int(rng.integers(2, min(40, n)))
        if rng.random() < 0.3:
            parameters["rank"] = int(rng.integers(1, parameters["n_landmarks"] + 1))
    parameters["solver"] = _solver(rng, family, low_rank)
    if parameters["solver"] == "spectral":
        parameters["max_iter"] = 100_000  # of first-order steps; a million take seconds where C is extreme
    parameters["dtype"] = str(rng.choice(["auto", "float32", "float64"], p=[0.5, 0.2, 0.3]))
    parameters["dtype"] = dtype or parameters["dtype"]
    if rng.random() < 0.1:
        parameters["tol"] = float(rng.choice([1e-3, 1e-4, 1e-5]))
    parameters["cv"], groups = _cv(rng, y, classify, n_classes, weight, leave_one_out, notes)
    single = parameters["cv"] is None
    _grid(rng, parameters, single, unit, n)
    if not single and parameters.get("kernel", "rbf") in ("rbf", "laplacian", "matern32") and rng.random() < 0.15:
        rule = rng.random() < 0.4
        middle = 1.0 / max(1e-300, X.shape[1] * np.square(X).mean()) if not sparse.issparse(X) else 0.1
        parameters["gamma"] = "auto-grid" if rule else list(middle * 10 ** rng.uniform(-2, 1, 3))
        parameters["Cs"] = np.geomspace(0.01, 100, 3)
        parameters.pop("lambdas", None)
    return Case(seed, _estimator(rng, family, y, n_classes, parameters), X, y, weight, groups, notes, unit)


def _rows(rng, n, p, unit, notes):
    """Rows, and a signal that the targets follow."""
    flavour = rng.choice(["normal", "uniform", "grid", "binary", "line"], p=[0.45, 0.15, 0.15, 0.1, 0.15])
    if flavour == "normal":
        X = rng.standard_normal((n, p))
    elif flavour == "uniform":
        X = rng.uniform(-2, 2, (n, p))
    elif flavour == "grid":
        X = rng.integers(0, 4, (n, p)).astype(float)
    elif flavour == "binary":
        X = (rng.random((n, p)) < 0.3).astype(float)
    else:
        X = np.sort(rng.uniform(-3, 3, n))[:, None]
    notes.append(str(flavour))
    if rng.random() < 0.2:
        rows = rng.integers(0, max(1, n // 2), n // 2)
        X[n - n // 2 :] = X[rows]
        notes.append("duplicates")
    signal = np.sin(2 * X[:, 0]) + (X[:, 1] if X.shape[1] > 1 else 0.0) * 0.5
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    if rng.random() < 0.15:
        X = np.column_stack([X, np.full(n, float(rng.choice([0, 1, 3.7])))])
        notes.append("constant column")
    if rng.random() < 0.15:
        X = np.column_stack([X, X[:, 0] * rng.choice([1.0, -1.0]) + rng.choice([0.0, 1e-9]) * rng.standard_normal(n)])
        notes.append("collinear columns")
    if not unit:
        scale = 10.0 ** rng.choice([0, -8, -4, -2, 2, 4, 8])
        X = X * scale
        if scale != 1:
            notes.append(f"X*{scale:g}")
        if rng.random() < 0.2:
            offset = scale * 10.0 ** rng.integers(1, 7)
            X = X + offset
            notes.append(f"X+{offset:g}")
        if rng.random() < 0.1:
            X[:, 0] = X[:, 0] * 1e4
            notes.append("a column*1e4")
    return X, signal


def _labels(rng, signal, n_classes, notes):
    noise = rng.choice([0.0, 0.3, 1.0])
    ranks = np.argsort(np.argsort(signal + noise * rng.standard_normal(len(signal)), kind="stable"), kind="stable")
    parts = rng.dirichlet(np.full(n_classes, 5.0))
    if rng.random() < 0.2:
        parts = np.append(np.full(n_classes - 1, 0.06), 1 - 0.06 * (n_classes - 1))
        notes.append("imbalance")
    edges = np.cumsum(parts)[:-1] * len(signal)
    y = np.searchsorted(edges, ranks, side="right")
    # Each class has a few rows.
    least = 5 if n_classes > 2 else 3
    for c in range(n_classes):
        short = least - np.sum(y == c)
        if short > 0:
            y[rng.choice(np.flatnonzero(y == np.bincount(y).argmax()), short, replace=False)] = c
    notes.append(f"label noise {noise:g}")
    return y if n_classes > 2 else np.where(y == 1, 1, -1)


def _targets(rng, signal, unit, notes):
    kind = rng.choice(["noisy", "exact", "ties", "outliers", "constant"], p=[0.45, 0.2, 0.2, 0.13, 0.02])
    y = signal.copy()
    if kind != "exact":
        y += 0.3 * rng.standard_normal(len(y))
    if kind == "ties":
        y = np.round(y)
    if kind == "outliers":
        y[:: max(1, len(y) // 4)] += 20
    notes.append(f"{kind} targets")
    y = y - y.mean()
    y = np.full(len(y), 2.5) if kind == "constant" else y / (y.std() or 1.0)
    if not unit:
        scale = 10.0 ** rng.choice([0, -8, -4, -1, 1, 4, 8])
        offset = scale * rng.choice([0, 0, 0, 1, 1e3])
        y = y * scale + offset
        notes.append(f"y*{scale:g}+{offset:g}")
    return y


def _weights(rng, y, n_classes, unit, notes):
    weight, class_weight = None, None
    kind = rng.choice(["none", "moderate", "zeros", "wild"], p=[0.6, 0.2, 0.12, 0.08])
    if kind == "wild" and unit:
        kind = "moderate"
    if kind == "moderate":
        weight = rng.uniform(0.1, 10, len(y))
    if kind == "wild":
        weight = 10 ** rng.uniform(-6, 6, len(y))
    if kind == "zeros":
        weight = rng.integers(0, 3, len(y)).astype(float)
        for label in np.unique(y) if n_classes else ():
            rows = np.flatnonzero(y == label)[:3]
            weight[rows] = 1.0
    if kind == "zeros" and not n_classes:
        weight[:5] = 1.0
    if kind != "none":
        notes.append(f"{kind} weights")
    if n_classes and rng.random() < 0.15:
        class_weight = "balanced"
        if n_classes == 2 and rng.random() < 0.5:
            class_weight = {1: float(10 ** rng.uniform(-2, 2))}
    return weight, class_weight


def _kernel(rng, X, parameters, unit, notes):
    """Draws the kernel; gives X as the estimator gets it."""
    kind = rng.choice(
        ["rbf", "laplacian", "matern32", "matern52", "linear", "poly", "precomputed", "callable", "indefinite"],
        p=[0.4, 0.08, 0.06, 0.06, 0.1, 0.1, 0.07, 0.05, 0.08],
    )
    size = float(np.sqrt(np.square(X).sum(axis=1).mean())) or 1.0
    centred = X - X.mean(axis=0)
    width = float(np.sqrt(np.square(centred).sum(axis=1).mean())) or 1.0
    if kind in ("rbf", "laplacian", "matern32", "matern52"):
        parameters["kernel"] = str(kind)
        rule = rng.choice(["sigest", "scale", "number"], p=[0.5, 0.2, 0.3])
        power = 1 if kind == "laplacian" else 2
        parameters["gamma"] = str(rule) if rule != "number" else float(10 ** rng.uniform(-2, 1.5)) / width**power
    elif kind == "linear":
        parameters["kernel"] = "linear"
    elif kind == "poly":
        gamma = "scale" if rng.random() < 0.6 else 1 / size**2
        if not unit and rng.random() < 0.2:
            gamma = 1.0
        parameters |= {"kernel": "poly", "degree": int(rng.integers(1, 5)), "coef0": float(rng.choice([0, 0.5, 1]))}
        parameters["gamma"] = gamma
    elif kind == "callable":
        parameters["kernel"] = cosine_kernel
    elif kind == "precomputed":
        K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2) / width**2 * rng.choice([0.1, 1.0, 10.0]))
        K = K * (1.0 if unit else 10.0 ** rng.choice([-6, 0, 0, 6]))
        parameters["kernel"] = "precomputed"
        return K.astype(np.float32) if rng.random() < 0.2 else K
    else:
        which = rng.choice(["sigmoid", "poly", "precomputed", "callable"])
        notes.append(f"indefinite {which}")
        if which == "sigmoid":
            parameters |= {"kernel": "sigmoid", "gamma": 1 / width**2, "coef0": float(rng.choice([-1.0, -0.3, 0.5]))}
        elif which == "poly":
            parameters |= {"kernel": "poly", "degree": 3, "gamma": 1 / size**2, "coef0": -1.0}
        elif which == "precomputed":
            parameters["kernel"] = "precomputed"
            A = rng.standard_normal((len(X), len(X)))
            return A + A.T
        else:
            parameters["kernel"] = sign_kernel
    form = rng.choice(["double", "single", "columns", "sparse"], p=[0.6, 0.15, 0.1, 0.15])
    if form == "single":
        return X.astype(np.float32)
    if form == "sparse":
        return sparse.csr_matrix(np.where(rng.random(X.shape) < 0.3, 0.0, X))
    return np.asfortranarray(X) if form == "columns" else X


def _solver(rng, family, low_rank):
    if family == MULTINOMIAL:
        return str(rng.choice(["auto", "newton"]))
    fitting = ["spectral"]
    if family in ("hinge", "quantile", "quantiles", "svr"):
        fitting += [] if low_rank else ["active-set"]
    else:
        fitting += ["newton"]
        if family == "squared" and not low_rank:
            fitting += ["closed-form"]
    return "auto" if rng.random() < 0.65 else str(rng.choice(fitting))


def _cv(rng, y, classify, n_classes, weight, leave_one_out, notes):
    """`cv`, and groups if it asks for them."""
    n = len(y)
    if leave_one_out:
        return "loo", None
    if rng.random() < 0.2:
        return None, None
    seed = int(rng.integers(100))
    stratified = classify and (n_classes > 2 or np.bincount(np.unique(y, return_inverse=True)[1]).min() < n / 4)
    folds = int(rng.integers(2, 4 if classify else 6))
    if stratified or (classify and rng.random() < 0.4):
        return (folds, None) if rng.random() < 0.6 else (StratifiedKFold(3, shuffle=True, random_state=seed), None)
    kind = rng.choice(["int", "kfold", "list", "groups", "repeated", "shuffle"])
    if kind == "int":
        return folds, None
    if kind == "kfold":
        return KFold(folds, shuffle=True, random_state=seed), None
    if kind == "repeated":
        return RepeatedKFold(n_splits=2, n_repeats=2, random_state=seed), None
    if kind == "shuffle":
        return ShuffleSplit(2, test_size=0.3, random_state=seed), None
    if kind == "groups":
        notes.append("groups")
        groups = rng.integers(0, 4, n)
        groups[:4] = np.arange(4)
        used = np.arange(n) if weight is None else np.flatnonzero(weight)
        if len(np.unique(groups[used])) >= 3:
            return GroupKFold(3), groups
        return folds, None
    # Bootstrap samples: rows are drawn more than once.
    used = np.arange(n) if weight is None else np.flatnonzero(weight)
    notes.append("bootstrap")
    return [(rng.choice(used, len(used)), rng.choice(used, max(1, len(used) // 3))) for _ in range(3)], None


def _grid(rng, parameters, single, unit, n):
    """Values of C in any order, perhaps with repeats."""
    if single:
        parameters["Cs"] = float(10 ** (rng.uniform(-3, 3) if unit or rng.random() < 0.5 else rng.uniform(-8, 8)))
        return
    kind = rng.choice(["default", "any", "extreme", "descending", "repeats", "lambdas"])
    count = int(rng.integers(2, 7))
    if kind == "default":
        parameters["Cs"] = int(rng.integers(4, 9))
    elif kind == "any":
        parameters["Cs"] = 10 ** rng.uniform(-3, 3, count)
    elif kind == "extreme":
        parameters["Cs"] = 10 ** rng.uniform(-8, 8, count)
    elif kind == "descending":
        parameters["Cs"] = np.geomspace(1e3, 1e-2, count)
    elif kind == "repeats":
        values = np.geomspace(1e-2, 10 ** rng.uniform(0, 3), 3)
        parameters["Cs"] = rng.permutation(np.concatenate([values, rng.choice(values, 2)]))
    else:
        parameters["lambdas"] = 1 / (2 * n * 10 ** rng.uniform(-3, 3, count))


def _estimator(rng, family, y, n_classes, parameters):
    if family in ("hinge", "squared_hinge", "logistic", "dwd") and n_classes > 2:
        parameters["multi_class"] = str(rng.choice(["ovo", "ovr"]))
        parameters["tune"] = "joint" if rng.random() < 0.7 else "each"
    if family in ("hinge", "squared_hinge"):
        return kernelpath.KernelSVC(loss=str(family), **parameters)
    if family == "logistic":
        return kernelpath.KernelLogistic(**parameters)
    if family == MULTINOMIAL:
        return kernelpath.KernelLogistic(multi_class=MULTINOMIAL, **parameters)
    if family == "dwd":
        return kernelpath.KernelDWD(**parameters)
    spread = float(y.std()) or 1.0
    if family == "quantile":
        return kernelpath.KernelQuantile(tau=float(rng.choice([0.5, 0.1, 0.9, 0.01])), **parameters)
    if family == "quantiles":
        return kernelpath.KernelQuantile(tau=[0.1, 0.9, 0.5], **parameters)
    if family == "svr":
        return kernelpath.KernelSVR(epsilon=float(rng.choice([0.0, 0.1, 1.0])) * spread, **parameters)
    extra = {"huber": {"delta": float(rng.choice([0.1, 1.0]) * spread)}, "expectile": {"tau": 0.8}}.get(family, {})
    return kernelpath.KernelRegressor(loss=str(family), **extra, **parameters)


# --------------------------------------------------------------------------------------------------------- checks


@dataclass
class Call:
    """The part of a call into the core that has one γ: its arguments, and the paths it gave, one a machine."""

    tasks: list
    settings: Settings
    cs: np.ndarray
    folds: object
    gamma: float
    found: object  # the landmarks, at low rank
    paths: list

    @property
    def multinomial(self):
        return self.tasks[0].loss == MULTINOMIAL


@contextlib.contextmanager
def recorded():
    """The calls into the core, which has the values of the folds that no attribute shows."""
    calls, original = [], _core.fit

    def call(X, machines, settings, cs, folds, **keywords):
        fit = original(X, machines, settings, cs, folds, **keywords)
        for g, gamma in enumerate(fit.gammas):
            of_gamma = [MachinePath(fit, m, g, len(cs)) for m in range(len(machines.tasks))]
            calls.append(Call(machines.tasks, settings, cs, folds, float(gamma), fit.nystrom(g), of_gamma))
        return fit

    _core.fit = call
    try:
        yield calls
    finally:
        _core.fit = original


class Report:
    """What a case showed: offences as (kind, text), and counts."""

    def __init__(self):
        self.offences, self.counts, self.statuses = [], Counter(), Counter()

    def offence(self, kind, text):
        self.offences.append((kind, text))

    def as_json(self):
        return {"offences": self.offences, "counts": dict(self.counts), "statuses": dict(self.statuses)}


def examine(case):
    """Runs a case and checks all it claims."""
    report, started = Report(), time.perf_counter()
    report.counts["fits"] += 1
    with warnings.catch_warnings(), recorded() as calls:
        warnings.simplefilter("ignore")
        try:
            model = case.fit()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of Rust is no Exception
            if isinstance(error, ValueError) and any(text in str(error) for text in REFUSALS):
                report.counts["refused"] += 1
            else:
                report.offence(CRASH, f"{type(error).__name__}: {str(error)[:200]}")
            return report
        report.counts["milliseconds"] = int(1e3 * (time.perf_counter() - started))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 0/0 and overflow of the twin's own formulas
        Examination(case, model, calls, report).run()
    return report


class Examination:
    """The checks of one fitted model."""

    def __init__(self, case, model, calls, report):
        self.case, self.model, self.calls, self.report = case, model, calls, report
        self.rows, self.problems, self.members = machines(case, model)
        self.tol = case.estimator.tol
        single = case.estimator.dtype == "float32"
        self.negligible = NEGLIGIBLE_IN_SINGLE if single else NEGLIGIBLE
        self.Cs, self.gammas = model.Cs_, model.gammas_
        self.deadline = time.perf_counter() + SECONDS_AGAIN
        n_machines = 1 if calls[0].multinomial else len(calls[0].paths)
        shape = (n_machines, -1, len(self.gammas), len(self.Cs))
        self.gaps, self.status = model.gaps_.reshape(shape), model.status_.reshape(shape)
        noise = getattr(model, "gap_noise_", None)
        self.noise = np.zeros(self.gaps.shape) if noise is None else noise.reshape(shape)

    def run(self):
        self.consistency()
        self.repeated_values()
        for g, call in enumerate(self.calls):
            low_rank, kernel = self.kernels(call)
            indefinite = self.definiteness(g, call, low_rank, kernel)
            self.counts(g, indefinite)
            if indefinite is False:
                self.finite(g)
                for m in range(len(self.problems)):
                    self.machine(g, m, call, low_rank, kernel)

    def kernels(self, call):
        """The problem at low rank, if it is one, and K of all rows with a weight."""
        settings, X = call.settings, self.case.X
        kind = {"kernel": settings.kernel, "gamma": call.gamma, "degree": settings.degree, "coef0": settings.coef0}
        rows = self.rows
        if callable(self.case.estimator.kernel):
            kernel = given_kernel(self.case.estimator.kernel(X[rows], X[rows]))
        elif kind["kernel"] == "precomputed":
            kernel = given_kernel(X[np.ix_(rows, rows)])
        else:
            centred = self.centred()
            kernel = exact_kernel(*((X[rows],) * 2 if centred is None else (centred,) * 2), **kind)
        found = call.found
        if found is None:
            return None, kernel
        if found.indices is not None:
            everything = np.arange(len(rows))
            return LowRank(kernel.among(everything, found.indices), kernel.among(found.indices), found.map), kernel
        points = found.points
        return LowRank(exact_kernel(X[rows], points, **kind), exact_kernel(points, points, **kind), found.map), kernel

    def centred(self):
        """The rows less the centre that the model keeps, in extended precision; None if it keeps none.

        In f = Σβᵢ⟨xᵢ, x⟩ + b, what Σβ misses of 0 by rounding would count ‖m‖² times. A model predicts with
        Σβᵢ⟨xᵢ − m, x − m⟩ + f(m), and that is what is certified.
        """
        if self.model._centre is None:
            return None
        X = self.case.X[self.rows]
        return (X.toarray() if sparse.issparse(X) else X).astype(np.longdouble) - self.model._centre[0]

    def counts(self, g, indefinite):
        """Counts models by status; a kernel that is indefinite, and is not said to be, is an offence of its own."""
        count, status, gaps, noise = (
            self.report.counts, self.status[:, :, g], self.gaps[:, :, g], self.noise[:, :, g]
        )  # fmt: skip
        count["models"] += status.size
        self.report.statuses.update(status.ravel().tolist())
        converged = status == "converged"
        heaviest = max(float(problem.w.max()) for problem in self.problems)
        moderate = np.broadcast_to(self.case.unit & (self.Cs * heaviest <= 1e3), status.shape)
        judged = (status != "indefinite") & (indefinite is not True)
        count["judged"] += int(judged.sum())
        count["certified"] += int((judged & converged).sum())
        count["judged moderate"] += int((judged & moderate).sum())
        count["certified moderate"] += int((judged & moderate & converged).sum())
        for kind, wrong, values in (
            (NEGATIVE, gaps < -noise, gaps),
            (NOISY, ~(noise <= self.tol), noise),
            (FALSE_PROOF, ~(gaps <= self.tol), gaps),
        ):
            for m, fold, k in np.argwhere(converged & wrong):
                self.report.offence(kind, f"{self.where(m, fold, g, k)}: {values[m, fold, k]:.2e}")

    def where(self, m, fold, g, k):
        refit = fold == self.gaps.shape[1] - 1
        return (
            (f"machine {m} " if len(self.problems) > 1 else "")
            + (f"gamma={self.gammas[g]:.6g} " if len(self.gammas) > 1 else "")
            + f"{'refit' if refit else f'fold {fold}'} C={self.Cs[k]:.6g} {self.status[m, fold, g, k]}"
        )

    def finite(self, g):
        bad = ~np.isfinite(self.gaps[:, :, g]) & (self.status[:, :, g] != "not_run")
        for m, fold, k in np.argwhere(bad)[:3]:
            gap = self.gaps[m, fold, g, k]
            self.report.offence(NOT_A_NUMBER, f"{self.where(m, fold, g, k)}: {gap} ({bad.sum()} in all)")

    def consistency(self):
        """The machines are those the parameters ask for, and the attributes are the values of the chosen C."""
        for call in self.calls:
            for m, (problem, members) in enumerate(zip(self.problems, self.members, strict=True)):
                task = call.tasks[m]
                loss, y, weight, members_given = task.loss, task.y, task.weight, task.rows
                if task.constant != (problem.constant or 0.0):
                    text = f"machine {m}: constant {task.constant}, not {problem.constant}"
                    self.report.offence(INCONSISTENT, text)
                weight = np.ones(len(y)) if weight is None else weight
                own = own_weights(self.case)[1][members]  # those of the classes are seen in P and D
                if loss != problem.loss or not np.array_equal(y, problem.y.astype(y.dtype)):
                    self.report.offence(INCONSISTENT, f"machine {m}: loss or targets are not those asked for")
                if not np.array_equal(weight, own):
                    self.report.offence(INCONSISTENT, f"machine {m}: weights are not those asked for")
                if members_given is not None and not np.array_equal(members_given, members):
                    self.report.offence(INCONSISTENT, f"machine {m}: rows are not those asked for")
        model = self.model
        g = 0 if len(self.gammas) == 1 else int(np.flatnonzero(self.gammas == model.gamma_)[0])
        best = np.broadcast_to(np.atleast_1d(model.best_index_) % self.Cs.shape[-1], len(self.problems))
        values = zip(best, np.atleast_1d(model.objective_), np.atleast_1d(model.dual_objective_), strict=True)
        for m, (k, primal, dual) in enumerate(values):
            path = self.calls[g].paths[m]
            same = np.array_equal([primal, dual], [path.primal[-1, k], path.dual[-1, k]], equal_nan=True)
            # What the model predicts with is what was certified.
            coef = path.coef(k) if self.calls[g].multinomial else path.coef(k)[None]
            lines = slice(None) if self.calls[g].multinomial else slice(m, m + 1)
            if hasattr(model, "landmarks_"):
                same &= np.array_equal(model.dual_coef_[lines], coef, equal_nan=True)
            else:
                spread = np.zeros((len(coef), self.case.X.shape[0]))
                spread[:, model.support_] = model.dual_coef_[lines]
                same &= np.array_equal(spread[:, self.rows], coef, equal_nan=True)
            intercepts = np.atleast_1d(path.intercepts[k])
            if model._centre is None:
                same &= np.array_equal(intercepts, model.intercept_[lines], equal_nan=True)
            else:
                # b in the columns as they are: f at the centre, which is exact, less ⟨w, m⟩, which is rounded.
                rows = np.abs(self.case.X - model._centre[0]).max(axis=0)
                size = np.abs(coef).sum(axis=1) * (np.abs(model._centre[0]) * np.asarray(rows).ravel()).sum()
                same &= (np.abs(intercepts - model.intercept_[lines]) <= 1e-13 * size).all()
            if not same:
                self.report.offence(INCONSISTENT, f"machine {m}: the model is not that of the path")

    def repeated_values(self):
        """Equal values of C have equal results."""
        for j, k in combinations(range(len(self.Cs)), 2):
            if self.Cs[j] != self.Cs[k]:
                continue
            for g, call in enumerate(self.calls):
                for m, path in enumerate(call.paths):
                    different = [
                        name
                        for name in ("primal", "dual", "gaps", "status", "scores")
                        if not np.array_equal(getattr(path, name)[:, j], getattr(path, name)[:, k], equal_nan=True)
                    ]
                    if not np.array_equal(path.coef(j), path.coef(k), equal_nan=True):
                        different.append("coef")
                    if different:
                        where = self.where(m, self.gaps.shape[1] - 1, g, k)
                        self.report.offence(REPEATED, f"{where}: {', '.join(different)}")
                        return

    def definiteness(self, g, call, low_rank, kernel):
        """Whether K is indefinite (None: within rounding of it), and whether the fit says so."""
        kind, coef0 = call.settings.kernel, call.settings.coef0
        said = self.status[:, :, g] == "indefinite"
        if kind in PSD_KERNELS or (kind == "poly" and coef0 >= 0):
            if said.any():
                self.report.offence(INDEFINITE, f"a {kind} kernel is called indefinite")
            return False
        given_single = kind == "precomputed" and self.case.X.dtype == np.float32
        indefinite = is_indefinite(kernel.K, 2.0**-23 if given_single else 2.0**-52)
        if low_rank is not None and indefinite is not False and is_indefinite(low_rank.of_landmarks.K) is not True:
            return None  # the landmarks do not show it
        if self.case.estimator.dtype != "float64" and indefinite and is_indefinite(kernel.K, 2.0**-23) is not True:
            return None  # in single precision it need not show
        self.report.counts["indefinite fits"] += bool(indefinite)
        if indefinite is False and said.any():
            self.report.offence(INDEFINITE, f"a {kind} kernel that is definite is called indefinite")
        if indefinite and not (said | (self.status[:, :, g] == "not_run")).all():
            wrong = Counter(self.status[:, :, g][~said].tolist())
            lowest = float(np.linalg.eigvalsh(kernel.K.astype(float))[0])
            self.report.offence(INDEFINITE, f"λmin = {lowest:.3g}, but the statuses are {dict(wrong)}")
        elif indefinite and not np.isnan(self.gaps[:, :, g]).all():
            self.report.offence(INDEFINITE, "finite gaps")
        if indefinite:
            for path in call.paths:
                if said.all() and not np.isnan(path.dual).all():
                    self.report.offence(INDEFINITE, "finite dual values")
                    break
        return indefinite

    def machine(self, g, m, call, low_rank, kernel):
        """Every model of one machine at one γ against the twin."""
        problem, members, path = self.problems[m], self.members[m], call.paths[m]
        kernel = low_rank.among(members).kernel() if low_rank else kernel.among(members)
        low_rank = low_rank.among(members) if low_rank else None
        n_folds = self.gaps.shape[1] - 1
        again = Again(call, kernel, problem, self.tol, self.deadline)
        for k in range(len(self.Cs)):
            self.refit(g, m, k, path, low_rank, kernel, again)
        place = np.full(len(self.rows), -1)
        place[members] = np.arange(len(members))
        chosen = np.arange(n_folds)
        if n_folds > MOST_FOLDS:
            chosen = np.random.default_rng(self.case.seed).choice(n_folds, MOST_FOLDS, replace=False)
        for fold in chosen:
            train = np.delete(np.arange(len(self.rows)), fold) if call.folds == "loo" else call.folds[fold][0]
            count = np.bincount(train, minlength=len(self.rows))
            rows = np.unique(place[train])
            rows = rows[rows >= 0]
            of_fold = machines(self.case, self.model, count)[1][m].among(rows).without_missing_classes()
            if of_fold is None:  # a constant, whose loss is 0 in the limit
                if np.any([path.primal[fold], path.dual[fold]]):
                    text = f"{self.where(m, fold, g, 0)}: P or D of a machine without two classes is not 0"
                    self.report.offence(WRONG_VALUE, text)
                continue
            part = Again(call, kernel.among(rows), of_fold, self.tol, self.deadline)
            for k in range(len(self.Cs)):
                self.fold(g, m, fold, k, path, part)

    def refit(self, g, m, k, path, low_rank, kernel, again):
        """The certificate of a model on all rows, from its coefficients."""
        fold = self.gaps.shape[1] - 1
        status, noise = self.status[m, fold, g, k], self.noise[m, fold, g, k]
        if status == "not_run":
            return
        problem, C, coef, b = self.problems[m], self.Cs[k], path.coef(k), path.intercepts[k]
        coef = coef.T if problem.loss == MULTINOMIAL else coef
        centred = self.centred()
        if centred is not None:  # f at the centre
            b = b + self.model._centre[0] @ (centred.T @ coef)
        primal, dual = path.primal[fold, k], path.dual[fold, k]
        where, converged = self.where(m, fold, g, k), status == "converged"
        self.report.counts["refits checked"] += 1
        if low_rank is None:
            found = certificate(kernel, problem, C, coef[self.members[m]], b, self.tol / 10)
        else:
            found = Certificate(low_rank.primal(problem, C, coef, b), again.certificate(k).dual)
        if not np.isfinite(found.primal.value):
            if converged:
                self.report.offence(FALSE_PROOF, f"{where}: the twin finds P = {found.primal.value}")
            return
        if converged and not found.proves(self.tol, noise):
            # Any feasible point proves: perhaps one from another solve does.
            other = again.certificate(k)
            best = Certificate(found.primal, max(found.dual, other.dual))
            is_tight = other.proves(self.tol / 2) or dual > other.primal.value + other.noise
            if best.proves(self.tol, noise):
                pass
            elif is_tight:
                gap = self.gaps[m, fold, g, k]
                text = f"{where}: reported gap {gap:.1e}, true {best.gap:.1e} ± {best.noise / best.scale:.0e}"
                self.report.offence(FALSE_PROOF, text)
            else:
                self.report.counts["undecided"] += 1
        scale = max(abs(found.primal.value), abs(primal))
        allowed = found.primal.noise + (noise + self.negligible * self.tol) * scale
        if abs(primal - found.primal.value) > allowed:
            off = abs(primal - found.primal.value) / scale
            text = f"{where}: P = {primal:.12g}, recomputed {found.primal.value:.12g} ({off:.1e} off)"
            self.report.offence(WRONG_VALUE, text)
        if dual - found.primal.value > allowed:
            self.report.offence(WRONG_VALUE, f"{where}: D = {dual:.12g} above P = {found.primal.value:.12g}")

    def fold(self, g, m, fold, k, path, again):
        """The values of a fold's model against those of another solve of its problem, which bracket the optimum."""
        status, noise = self.status[m, fold, g, k], self.noise[m, fold, g, k]
        if status == "not_run":
            return
        other = again.certificate(k)
        if not np.isfinite(other.gap):
            self.report.counts["undecided"] += 1
            return
        self.report.counts["folds checked"] += 1
        primal, dual = path.primal[fold, k], path.dual[fold, k]
        allowed = other.noise + noise * max(abs(primal), abs(dual))
        where = self.where(m, fold, g, k)
        bracket = f"the optimum is in [{other.dual.value:.12g}, {other.primal.value:.12g}] ± {allowed:.0e}"
        text = f"{where}: P = {primal:.12g}, D = {dual:.12g}, but {bracket}"
        # P is never below the optimum, nor D above it; and a model that converged has P within tol of it.
        beyond, above = max(other.dual.value - primal, dual - other.primal.value), primal - other.primal.value
        if status == "converged" and max(beyond, above) > self.tol * other.scale + allowed:
            if beyond > allowed or other.proves(self.tol / 2):
                self.report.offence(FALSE_PROOF, text)
            else:
                self.report.counts["undecided"] += 1
        elif beyond > allowed + self.negligible * self.tol * other.scale:
            self.report.offence(WRONG_VALUE, text)


class Again:
    """Another solve of one problem, on K of the twin in double precision, whose certificates the twin computes."""

    def __init__(self, call, kernel, problem, tol, deadline):
        self.call, self.kernel, self.problem, self.tol, self.deadline = call, kernel, problem, tol, deadline
        self.path, self.certificates = None, {}
        # What the default grid of some losses is multiplied with is part of C.
        self.Cs = call.cs * call.tasks[0].c_factor

    def solve(self):
        K = self.kernel.K.astype(np.float64)
        K = (K + K.T) / 2
        problem, weight = self.problem, self.problem.w.astype(np.float64)
        cs, time_budget = np.unique(self.Cs), max(0.01, self.deadline - time.perf_counter())
        with contextlib.suppress(ValueError):
            self.path = fit_path(
                K, problem.loss, problem.constant or 0.0, problem.y.astype(np.float64), weight,
                cs=cs, kernel="precomputed", tol=min(1e-8, self.tol / 10), max_iter=self.call.settings.max_iter,
                n_threads=self.call.settings.n_threads, time_budget=time_budget,
            )  # fmt: skip
        return cs

    def certificate(self, k):
        """The certificate at the k-th C: NaN if it could not be had."""
        if self.path is None and not self.certificates:
            self.cs = self.solve()
        if k not in self.certificates:
            C = self.Cs[k]
            if self.path is None:
                self.certificates[k] = Certificate(Value(np.nan, np.nan), Value(np.nan, np.nan))
            else:
                at = int(np.searchsorted(self.cs, C))
                coef, b = self.path.coef(at), self.path.intercepts[at]
                coef = coef.T if self.problem.loss == MULTINOMIAL else coef
                self.certificates[k] = certificate(self.kernel, self.problem, C, coef, b, self.tol / 100)
        return self.certificates[k]


def own_weights(case):
    """The rows with a weight, and their weights without those of classes."""
    weight = np.ones(len(case.y)) if case.sample_weight is None else np.asarray(case.sample_weight, np.float64)
    rows = np.flatnonzero(weight > 0)
    return rows, weight[rows]


def machines(case, model, count=None):
    """The rows with a weight, and of each machine the problem and which of these rows it is of.

    With `count`, the problem is that of a fold whose training rows are these rows so often.
    """
    estimator, (rows, weight) = case.estimator, own_weights(case)
    y, everything = np.asarray(case.y)[rows], np.arange(len(rows))
    weight = weight if count is None else weight * count
    if isinstance(estimator, kernelpath.KernelQuantile):
        taus = np.atleast_1d(estimator.tau)
        problems = [Problem("quantile", float(tau), y.astype(float), weight) for tau in taus]
        return rows, problems, [everything] * len(problems)
    if isinstance(estimator, kernelpath.KernelSVR | kernelpath.KernelRegressor):
        loss = getattr(estimator, "loss", "epsilon_insensitive")
        constant = {
            "epsilon_insensitive": getattr(estimator, "epsilon", 0.0),
            "huber": getattr(estimator, "delta", 0.0),
            "expectile": getattr(estimator, "tau", 0.0),
        }.get(loss, 0.0)
        return rows, [Problem(loss, constant, y.astype(float), weight)], [everything]
    loss = {"KernelLogistic": "logistic", "KernelDWD": "dwd"}.get(type(estimator).__name__) or estimator.loss
    classes, index = np.unique(y, return_inverse=True)
    if estimator.class_weight == "balanced":
        totals = np.array([weight[index == c].sum() for c in range(len(classes))])
        there = totals > 0
        weight = weight * (weight.sum() / (there.sum() * np.where(there, totals, np.inf)))[index]
    elif estimator.class_weight is not None:
        weight = weight * np.array([estimator.class_weight.get(label, 1.0) for label in classes.tolist()])[index]
    if len(classes) == 2:
        return rows, [Problem(loss, 0.0, np.where(index == 1, 1.0, -1.0), weight)], [everything]
    if estimator.multi_class == MULTINOMIAL:
        return rows, [Problem(MULTINOMIAL, 0.0, index, weight)], [everything]
    problems, members = [], []
    if estimator.multi_class == "ovr":
        pairs = [(index == c, index != c) for c in range(len(classes))]
    else:
        pairs = [(index == i, index == j) for i, j in combinations(range(len(classes)), 2)]
    for plus, minus in pairs:
        of = np.flatnonzero(plus | minus)
        problems.append(Problem(loss, 0.0, np.where(plus[of], 1.0, -1.0), weight[of]))
        members.append(of)
    return rows, problems, members


# ----------------------------------------------------------------------------------------------------------- runs


class Summary:
    """Counts over many cases, and the offences of each kind as (seed, text)."""

    def __init__(self, dtype=None):
        self.counts, self.statuses, self.offences, self.slow = Counter(), Counter(), defaultdict(list), []
        self.short = Counter()  # models that are not certified, by seed
        self.short_moderate = Counter()
        self.dtype = dtype

    def add(self, seed, report):
        slowest = report["counts"].pop("milliseconds", 0)
        self.slow = sorted([*self.slow, (slowest, seed)])[-5:]
        count = Counter(report["counts"])
        self.counts.update(count)
        self.short[seed] = count["judged"] - count["certified"]
        self.short_moderate[seed] = count["judged moderate"] - count["certified moderate"]
        self.statuses.update(report["statuses"])
        for kind, text in report["offences"]:
            self.offences[kind].append((seed, text))

    def rate(self, moderate=False):
        """Part of the models with a definite kernel that are certified; `moderate`: unit variance, C w ≤ 1e3."""
        which = " moderate" if moderate else ""
        return self.counts[f"certified{which}"] / max(1, self.counts[f"judged{which}"])

    def uncertified(self, moderate=False, most=5):
        """The seeds with most models that are not certified."""
        worst = (self.short_moderate if moderate else self.short).most_common(most)
        lines = [f"  seed {seed}: {count} models\n    {describe(seed, self.dtype)}" for seed, count in worst if count]
        return "\n".join([f"{self.rate(moderate):.2%} certified; most that are not:", *lines])

    def seeds(self, kind):
        return sorted({seed for seed, _ in self.offences[kind]})

    def listed(self, kind, most=10):
        """The offences of a kind, one line a seed, each with what reproduces it."""
        lines, seen = [], set()
        for seed, text in self.offences[kind]:
            if seed in seen:
                continue
            seen.add(seed)
            if len(lines) < most:
                more = sum(s == seed for s, _ in self.offences[kind]) - 1
                lines.append(f"  seed {seed}: {text}{f' (and {more} more)' if more else ''}")
                lines.append(f"    {describe(seed, self.dtype)}")
        if len(seen) > most:
            lines.append(f"  … and {len(seen) - most} more seeds: {self.seeds(kind)[:60]}")
        count = len(self.offences[kind])
        again = f"again: python {Path(__file__).name} --seed N"
        return "\n".join([f"{kind}: {count} in {len(seen)} of {self.counts['fits']} fits ({again})", *lines])

    def __str__(self):
        c = self.counts
        head = [
            f"{c['fits']} fits ({c['refused']} refused, {c['indefinite fits']} with an indefinite kernel), "
            f"{c['models']} models; checked {c['refits checked']} refits and {c['folds checked']} fold models, "
            f"{c['undecided']} undecided",
            f"certified: {self.rate():.2%} of {c['judged']} models; "
            f"{self.rate(True):.2%} of {c['judged moderate']} with unit variance and C w <= 1e3",
            f"statuses: {dict(self.statuses.most_common())}",
            "slowest fits: " + ", ".join(f"{ms} ms (seed {seed})" for ms, seed in reversed(self.slow)),
        ]
        rates = [f"unit variance and C w <= 1e3: {self.uncertified(True)}", f"all: {self.uncertified()}"]
        return "\n".join(head + rates + [self.listed(kind) for kind in KINDS if self.offences[kind]])


def describe(seed, dtype=None):
    try:
        return str(case(seed, dtype))
    except Exception as error:
        return f"case({seed}) itself fails: {error!r}"


def run(seeds, workers=2, seconds=SECONDS, dtype=None, progress=None):
    """Examines the cases of `seeds` in child processes; one that takes too long or dies is an offence.

    `dtype` goes before that of the cases.
    """
    summary = Summary(dtype)
    shares = [list(seeds)[k::workers] for k in range(workers)]
    command = [sys.executable, str(Path(__file__).resolve()), "--child", *(["--dtype", dtype] if dtype else [])]
    for done, (seed, answer) in enumerate(answers(command, shares, seconds), 1):
        if answer is None:
            report = {"offences": [(HANG, f"no answer within {seconds:g} s")], "counts": {"fits": 1}, "statuses": {}}
        elif isinstance(answer, int):
            text = f"the process ended with code {answer}"
            report = {"offences": [(CRASH, text)], "counts": {"fits": 1}, "statuses": {}}
        else:
            report = json.loads(answer)
        summary.add(seed, report)
        if progress is not None:
            progress(done)
    return summary


def serve(dtype=None):
    """A child: a seed on each line of stdin, its report on one line of stdout."""
    print("ready", flush=True)
    for line in sys.stdin:
        seed = int(line)
        try:
            report = examine(case(seed, dtype))
        except Exception as error:  # the campaign's own
            report = Report()
            where = error.__traceback__
            while where.tb_next is not None:
                where = where.tb_next
            report.offence(CRASH, f"in the campaign, line {where.tb_lineno}: {type(error).__name__}: {error}")
        print(json.dumps(report.as_json()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000, help="how many cases to run")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--seed", type=int, help="run this case alone, in this process, and show all it did wrong")
    parser.add_argument("--dtype", help="goes before the dtype that the cases draw")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        serve(arguments.dtype)
    elif arguments.seed is not None:
        drawn = case(arguments.seed, arguments.dtype)
        print(drawn)
        report = examine(drawn)
        print(dict(report.counts), dict(report.statuses))
        print("\n".join(f"{kind}: {text}" for kind, text in report.offences) or "nothing wrong")
    else:
        started = time.perf_counter()

        def progress(done):
            if sys.stderr.isatty():
                print(f"\r{done} of {arguments.cases}", end="", file=sys.stderr, flush=True)

        seeds = range(arguments.start, arguments.start + arguments.cases)
        summary = run(seeds, arguments.workers, dtype=arguments.dtype, progress=progress)
        print(f"\r{summary}\n{time.perf_counter() - started:.0f} s")
        sys.exit(any(summary.offences[kind] for kind in KINDS))


if __name__ == "__main__":
    main()
