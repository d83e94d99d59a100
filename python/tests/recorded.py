"""Fits of every estimator with every solver and option, on data that ships with scikit-learn, and what came of them.

`CASES` are the fits by name, `outcome(case)` is what one gives, and recorded.json holds what all of them gave when it
was written, with the instruction set of that machine. From the command line:

    python python/tests/recorded.py                    what has changed since
    python python/tests/recorded.py --write            writes recorded.json anew
    python python/tests/recorded.py --write balanced   only the fits with "balanced" in their name
"""

import argparse
import contextlib
import json
import platform
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit

from kernelpath import (
    GridEdgeWarning,
    IndefiniteKernelWarning,
    KernelDWD,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
    NystromFeatures,
)

FILE = Path(__file__).with_name("recorded.json")

# Numbers are the same if they differ by no more than this part of the largest that they belong to.
SAME = 1e-9
# As much gaps may differ as they are: theirs is a difference of two nearly equal numbers.
SAME_GAP = 1e-9
# On another instruction set, scores, and objectives on other landmarks, may differ by this part.
LOOSE = 0.03
# Digits that are kept, of a number and behind the point of a gap.
DIGITS, DIGITS_OF_GAP = 10, 12


# ----------------------------------------------------------------------------------------------------------- data


def scaled(X):
    """Columns of mean 0 and deviation 1, as multiples of 2⁻¹⁰: the same numbers, however numpy rounds."""
    return np.round(1024.0 * (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)) / 1024.0


@cache
def two():
    X, y = load_breast_cancer(return_X_y=True)
    return scaled(X[::5, :10]), y[::5]


@cache
def three():
    X, y = load_wine(return_X_y=True)
    return scaled(X[::2]), np.array(["a", "b", "c"])[y[::2]]


@cache
def number():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return scaled(X[::4]), y[::4]


@cache
def numbers():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return scaled(np.delete(X, 3, axis=1)[::4]), np.column_stack([y, X[:, 3]])[::4]


@cache
def many():
    """Rows that fill more than a tile, a panel and a band of the kernel matrix."""
    X, y = load_digits(return_X_y=True)
    return X[:700] / 16.0, y[:700] % 3


@cache
def many_of_two():
    X, y = many()
    return X, (y > 0).astype(int)


@cache
def many_numbers():
    X, _ = many()
    return X[:, :60], 16.0 * X[:, 60]


@cache
def many_pairs_of_numbers():
    X, _ = many()
    return X[:, :60], 16.0 * X[:, 60:62]


def thinned(X):
    return sparse.csr_matrix(np.where(X > 0.25, X, 0.0))


def weights(X):
    """0, ½, 1, 1½ in turn."""
    return (np.arange(len(X)) % 4) / 2.0


def rational(A, B):
    """A kernel as a function: 1 / (1 + ‖a − b‖² / 10)."""
    return 1.0 / (1.0 + ((A[:, None] - B[None]) ** 2).sum(axis=2) / 10.0)


# ---------------------------------------------------------------------------------------------------------- cases


@dataclass
class Case:
    """A fit: an estimator, the name of its data, what is done to its rows, and arguments of `fit` made from them."""

    estimator: object
    data: object
    rows: object = None
    arguments: dict = field(default_factory=dict)

    def training(self):
        X, y = self.data()
        return X if self.rows is None else self.rows(X), y

    def fit(self, **parameters):
        X, y = self.training()
        arguments = {name: of(X) for name, of in self.arguments.items()}
        model = clone(self.estimator).set_params(**parameters)
        with warnings.catch_warnings():
            for kind in (ConvergenceWarning, GridEdgeWarning, IndefiniteKernelWarning):
                warnings.simplefilter("ignore", kind)
            return model.fit(X, y, **arguments)

    def with_options(self, rows=None, arguments=(), **parameters):
        return Case(clone(self.estimator).set_params(**parameters), self.data, rows, dict(arguments))


PATH = {"Cs": [0.03, 1.0, 30.0], "cv": 3, "random_state": 0}
# Targets of the regressions have a spread of about 80.
STEEP = {**PATH, "Cs": [1.0, 30.0, 1000.0]}

KINKED, SMOOTH = ("auto", "active-set", "spectral"), ("auto", "newton", "spectral")
SQUARED = ("auto", "newton", "spectral", "closed-form")
ONE_BY_ONE, AGAINST_REST = {"multi_class": "ovo"}, {"multi_class": "ovr"}

# Estimators, their data, and the solvers they allow on the kernel matrix.
MODELS = {
    "svc": (KernelSVC(**PATH), two, KINKED),
    "svc squared": (KernelSVC(loss="squared_hinge", **PATH), two, SMOOTH),
    "dwd": (KernelDWD(**PATH), two, SMOOTH),
    "logistic": (KernelLogistic(**PATH), two, SMOOTH),
    "svc ovo": (KernelSVC(**ONE_BY_ONE, **PATH), three, KINKED),
    "svc ovr": (KernelSVC(**AGAINST_REST, **PATH), three, KINKED),
    "svc squared ovo": (KernelSVC(loss="squared_hinge", **ONE_BY_ONE, **PATH), three, SMOOTH),
    "svc squared ovr": (KernelSVC(loss="squared_hinge", **AGAINST_REST, **PATH), three, SMOOTH),
    "dwd ovo": (KernelDWD(**ONE_BY_ONE, **PATH), three, SMOOTH),
    "dwd ovr": (KernelDWD(**AGAINST_REST, **PATH), three, SMOOTH),
    "logistic ovo": (KernelLogistic(**ONE_BY_ONE, **PATH), three, SMOOTH),
    "logistic ovr": (KernelLogistic(**AGAINST_REST, **PATH), three, SMOOTH),
    "multinomial": (KernelLogistic(multi_class="multinomial", **PATH), three, ("auto", "newton")),
    "quantile": (KernelQuantile(tau=0.3, **STEEP), number, KINKED),
    "quantiles": (KernelQuantile(tau=[0.1, 0.5, 0.9], **STEEP), number, KINKED),
    "svr": (KernelSVR(**STEEP), number, KINKED),
    "svr of two": (KernelSVR(**STEEP), numbers, KINKED),
    "squared": (KernelRegressor(**PATH), number, SQUARED),
    "squared of two": (KernelRegressor(tune="each", **PATH), numbers, SQUARED),
    "huber": (KernelRegressor(loss="huber", **PATH), number, SMOOTH),
    "huber of two": (KernelRegressor(loss="huber", **PATH), numbers, SMOOTH),
    "expectile": (KernelRegressor(loss="expectile", tau=0.8, **PATH), number, SMOOTH),
}
SINGLE = ("svc", "svc squared", "dwd", "logistic", "multinomial", "quantile", "svr", "squared", "huber", "expectile")

LOW_RANK = {"low_rank": True, "n_landmarks": 25}

# Options of all estimators in `SINGLE`.
OPTIONS = {
    "weights": {"arguments": {"sample_weight": weights}},
    "loo": {"cv": "loo"},
    "loo, weights": {"cv": "loo", "arguments": {"sample_weight": weights}},
    "gammas": {"gamma": [0.3, 0.02, 0.1]},
    "float32": {"dtype": "float32"},
    "float64": {"dtype": "float64"},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": "scale"},
    "sparse": {"rows": thinned},
    "lambdas": {"lambdas": [1e-2, 1e-3, 1e-4], "Cs": 50},
    "tight": {"tol": 1e-10, "dtype": "float64"},
    "few steps": {"max_iter": 2},
    "low rank, weights": {**LOW_RANK, "arguments": {"sample_weight": weights}},
    "low rank, gammas": {**LOW_RANK, "gamma": [0.3, 0.02, 0.1]},
    "low rank, float64": {**LOW_RANK, "dtype": "float64"},
}
OPTIONS |= {
    f"spectral, {name}": {**OPTIONS[name], "solver": "spectral"}
    for name in ("weights", "loo", "gammas", "float64", "linear", "low rank, weights", "low rank, gammas")
}
# Options that have little to do with the loss.
FEW = ("svc", "logistic", "quantile", "squared")
OPTIONS_OF_FEW = {
    "laplacian": {"kernel": "laplacian"},
    "matern32": {"kernel": "matern32"},
    "matern52": {"kernel": "matern52", "gamma": "auto"},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.1},
    "function": {"kernel": rational},
    "precomputed": {"kernel": "precomputed", "rows": lambda X: rational(X, X)},
    "sparse linear": {"kernel": "linear", "rows": thinned},
    "sparse laplacian": {"kernel": "laplacian", "rows": thinned},
    "rows in float32": {"rows": lambda X: X.astype(np.float32)},
    "rows that repeat": {"rows": lambda X: X[np.arange(len(X)) // 3]},
    "few features": {"rows": lambda X: X[:, :2]},
    "auto-grid": {"gamma": "auto-grid", "Cs": [0.1, 10.0]},
    "sparse, gammas": {"gamma": [0.3, 0.02], "rows": thinned},
    "1se": {"selection": "1se"},
    "default grid": {"Cs": 4},
    "unordered": {"Cs": [1.0, 0.1, 1.0, 10.0]},
    "one model": {"Cs": 1.0, "cv": None},
    "splitter": {"cv": ShuffleSplit(2, test_size=0.4, random_state=1)},
    "large C": {"Cs": [1e3, 1e5]},
    "low rank, uniform": {**LOW_RANK, "landmarks": "uniform"},
    "low rank, rpcholesky": {**LOW_RANK, "landmarks": "rpcholesky"},
    "low rank, indices": {**LOW_RANK, "landmarks": np.arange(0, 80, 4)},
    "low rank, linear": {**LOW_RANK, "kernel": "linear"},
    "low rank, poly": {**LOW_RANK, "kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": "scale"},
    "low rank, sparse": {**LOW_RANK, "rows": thinned},
    "low rank, precomputed": {**LOW_RANK, "kernel": "precomputed", "rows": lambda X: rational(X, X)},
    "low rank, rank": {**LOW_RANK, "rank": 10},
    "low rank, all rows": {"low_rank": True},
    "low rank, large C": {**LOW_RANK, "Cs": [1e3, 1e5]},
}
OPTIONS_OF_ONE = {
    "svc": {
        "balanced": {"class_weight": "balanced"},
        "roc auc": {"scoring": "roc_auc"},
        "sigmoid map": {"probability": True},
        "isotonic map": {"probability": "isotonic", "arguments": {"sample_weight": weights}},
        "temperature map": {"probability": "temperature", "scoring": "neg_log_loss"},
        "low rank, sigmoid map": {"probability": True, **LOW_RANK},
    },
    "svc squared": {"sigmoid map": {"probability": True}, "balanced": {"class_weight": "balanced"}},
    "dwd": {"sigmoid map": {"probability": True}, "balanced": {"class_weight": "balanced"}},
    "logistic": {"log loss": {"scoring": "neg_log_loss"}, "balanced": {"class_weight": "balanced"}},
    "svc ovo": {
        "each": {"tune": "each"},
        "loo": {"cv": "loo"},
        "gammas": {"gamma": [0.3, 0.02, 0.1]},
        "weights": {"arguments": {"sample_weight": weights}},
        "sigmoid map": {"probability": True},
    },
    "svc ovr": {
        "each": {"tune": "each"},
        "loo": {"cv": "loo"},
        "isotonic map": {"probability": "isotonic"},
        "balanced": {"class_weight": "balanced"},
    },
    "dwd ovo": {"sigmoid map": {"probability": True}},
    "logistic ovo": {"log loss": {"scoring": "neg_log_loss"}, "each": {"tune": "each"}},
    "multinomial": {
        "balanced": {"class_weight": "balanced"},
        "log loss": {"scoring": "neg_log_loss"},
        "large C": {"Cs": [1e3, 1e5]},
        "laplacian": {"kernel": "laplacian"},
        "low rank, sparse": {**LOW_RANK, "rows": thinned},
        "low rank, rank": {**LOW_RANK, "rank": 10},
        "low rank, all rows": {"low_rank": True},
    },
    "quantiles": {"sorted": {"noncrossing": "sort"}, "gammas": {"gamma": [0.3, 0.02, 0.1]}},
    "svr of two": {"each": {"tune": "each"}, "gammas": {"gamma": [0.3, 0.02, 0.1]}},
    "squared of two": {"joint": {"tune": "joint"}, "loo": {"cv": "loo"}},
}
SHORT = {"Cs": [0.3, 10.0], "cv": 2, "random_state": 0}
LARGE = {
    "svc": Case(KernelSVC(**SHORT), many_of_two),
    "svc, spectral": Case(KernelSVC(**SHORT, solver="spectral"), many_of_two),
    "svc ovo": Case(KernelSVC(**SHORT), many),
    "logistic": Case(KernelLogistic(**SHORT), many_of_two),
    "logistic, float64": Case(KernelLogistic(**SHORT, dtype="float64"), many_of_two),
    "multinomial": Case(KernelLogistic(multi_class="multinomial", **SHORT), many),
    "dwd, gammas": Case(KernelDWD(**SHORT, gamma=[0.01, 0.03]), many_of_two),
    "squared": Case(KernelRegressor(**SHORT), many_numbers),
    "squared, newton": Case(KernelRegressor(**SHORT, solver="newton"), many_numbers),
    "svr": Case(KernelSVR(**SHORT), many_numbers),
    "huber of two": Case(KernelRegressor(loss="huber", **SHORT), many_pairs_of_numbers),
    "svc squared ovr, gammas": Case(KernelSVC(loss="squared_hinge", **AGAINST_REST, **SHORT, gamma=[0.01, 0.03]), many),
    "svc, low rank": Case(KernelSVC(**SHORT, low_rank=True, n_landmarks=100), many_of_two),
    "logistic, low rank": Case(KernelLogistic(**SHORT, low_rank=True, n_landmarks=300), many_of_two),
    "multinomial, low rank": Case(
        KernelLogistic(multi_class="multinomial", **SHORT, low_rank=True, n_landmarks=100), many
    ),
    "squared, low rank": Case(KernelRegressor(**SHORT, low_rank=True, n_landmarks=300), many_numbers),
    "quantile, low rank": Case(KernelQuantile(**SHORT, low_rank=True, n_landmarks=100), many_numbers),
}
FEATURES = {
    "kmeans": Case(NystromFeatures(n_landmarks=20), two),
    "rpcholesky": Case(NystromFeatures(n_landmarks=20, landmarks="rpcholesky"), two),
    "uniform": Case(NystromFeatures(n_landmarks=20, landmarks="uniform", kernel="laplacian"), two),
    "poly": Case(NystromFeatures(n_landmarks=20, kernel="poly", degree=2, coef0=1.0, rank=12), two),
    "sparse": Case(NystromFeatures(n_landmarks=20), two, thinned),
    "float32": Case(NystromFeatures(n_landmarks=20, dtype="float32"), two),
    "many": Case(NystromFeatures(n_landmarks=300), many_of_two),
}


def all_cases():
    cases = {}

    def add(name, base, options):
        taken = {**options, "rows": options.get("rows"), "arguments": options.get("arguments", {})}
        cases[name] = base.with_options(**taken)

    for name, (estimator, data, solvers) in MODELS.items():
        base = Case(estimator, data)
        for solver in solvers:
            add(f"{name}, {solver}", base, {"solver": solver})
        of_low_rank = ("auto", "newton") if name == "multinomial" else ("auto", "newton", "spectral")
        for solver in of_low_rank:
            add(f"{name}, low rank, {solver}", base, {"solver": solver, **LOW_RANK})
        options = {
            **(OPTIONS if name in SINGLE else {}),
            **(OPTIONS_OF_FEW if name in FEW else {}),
            **OPTIONS_OF_ONE.get(name, {}),
        }
        for option, of_option in options.items():
            if not (name == "multinomial" and ("loo" in option or "spectral" in option)):
                add(f"{name}, {option}", base, of_option)
    cases |= {f"large: {name}": case for name, case in LARGE.items()}
    cases |= {f"features: {name}": case for name, case in FEATURES.items()}
    return cases


CASES = all_cases()


# -------------------------------------------------------------------------------------------------------- outcome


def outcome(case):
    """What a fit gives, as lists of numbers, None for NaN: nothing of how long it took, and in how many steps."""
    model = case.fit()
    X, _ = case.training()
    rows = np.linspace(0, X.shape[0] - 1, 5).astype(int)
    return plain(of_features(model, X[rows]) if isinstance(model, NystromFeatures) else of_model(model, X[rows], rows))


def of_features(model, X):
    features = model.transform(X).astype(np.float64)
    return {
        "gamma": model.gamma_,
        "rank": model.rank_,
        "trace_error": model.approximation_.trace_error,
        "products": features @ features.T,
    }


def of_model(model, X, rows):
    tables = model.cv_results_ if isinstance(model.cv_results_, list) else [model.cv_results_]
    result = {
        "solver": model.solver_,
        "C": model.C_,
        "gamma": model.gamma_,
        "index": model.best_index_,
        "score": model.best_score_,
        "scores": [table["mean_test_score"] for table in tables],
        "objective": model.objective_,
        "dual_objective": model.dual_objective_,
        "noise": np.round(noise(model), DIGITS_OF_GAP),
        "worst_gaps": [np.round(table["worst_gap"], DIGITS_OF_GAP) for table in tables],
        "refit_gaps": [np.round(table["refit_gap"], DIGITS_OF_GAP) for table in tables],
        "status": dict(sorted(Counter(model.status_.ravel().tolist()).items())),
        "n_support": model.n_support_path_,
        "norm": np.abs(model.dual_coef_).sum(axis=1),
        "intercept": model.intercept_,
        "values": model._decision_values(X),
    }
    if is_classifier(model) or getattr(model, "noncrossing", None) is not None:
        result["predicted"] = model.predict(X)
    if model.cv is not None:
        oof = model.oof_decision_
        result["held_out"] = oof[rows] if len(oof) > rows[-1] else oof[:, rows]
    if hasattr(model, "predict_proba"):
        result["probability"] = model.predict_proba(X)
    if model.low_rank:
        result |= {"rank": model.rank_, "trace_error": model.approximation_.trace_error}
    if model.smallest_eigenvalue_ is not None:
        result["smallest_eigenvalue"] = model.smallest_eigenvalue_
    if isinstance(model, KernelQuantile):
        result["n_crossings"] = model.n_crossings_
    return result


def noise(model):
    """The largest of all models; NaN if none has a gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all are NaN
        return float(np.nanmax(model.gap_noise_))


def plain(value):
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value


# ----------------------------------------------------------------------------------------------------- comparison


def instruction_set():
    """The widest that the library, which chooses when it runs, finds on this machine; "unknown" where nothing says."""
    flags = set()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                flags = set(line.split(":")[1].split())
                break
    if not flags or platform.machine() not in ("x86_64", "AMD64"):
        return "unknown"
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags:
        return "AVX-512"
    return "AVX2" if {"avx2", "fma"} <= flags else "less than AVX2"


# What is a difference of larger numbers is compared in units of these.
UNITS = {"intercept": "values", "held_out": "values", "dual_objective": "objective"}


def changes(was, now):
    """What is not as recorded, to rounding."""
    found = [f"{key} is there only {'before' if key in was else 'now'}" for key in was.keys() ^ now.keys()]
    for key in was.keys() & now.keys():
        if key in ("worst_gaps", "refit_gaps", "noise"):
            same = near(was[key], now[key], SAME_GAP)
        elif has_numbers(was[key]):
            unit = max(largest(was[key]), largest(was.get(UNITS.get(key, key))))
            same = near(was[key], now[key], SAME * unit)
        else:
            same = was[key] == now[key]
        if not same:
            found.append(f"{key} was {was[key]}, is {now[key]}")
    return sorted(found)


def contradictions(was, now, tol):
    """What recorded results exclude, whatever the rounding: two certificates of one problem, and scores roughly."""
    found = [f"{key} is there only {'before' if key in was else 'now'}" for key in was.keys() ^ now.keys()]
    if "score" not in was:
        return found if near(was["products"], now["products"], LOOSE * largest(was["products"])) else ["products"]
    if was["solver"] != now["solver"]:
        found.append(f"solver was {was['solver']}, is {now['solver']}")
    if sum(was["status"].values()) != sum(now["status"].values()):
        found.append(f"status was {was['status']}, is {now['status']}")
    if was["score"] is not None and not near(was["score"], now["score"], LOOSE * largest(was["scores"])):
        found.append(f"score was {was['score']}, is {now['score']}")
    # Another C may be chosen where scores are nearly the same.
    is_one_problem = all(near(was[key], now[key], SAME * largest(was[key])) for key in ("C", "gamma"))
    if is_one_problem and was["dual_objective"] is not None:
        is_one_kernel = all(near(was.get(key), now.get(key), SAME) for key in ("rank", "trace_error"))
        gaps = [gap for of in (was, now) for gap in np.ravel(of["refit_gaps"]).tolist()]
        allowed = max(tol, *gaps) + was["noise"] + now["noise"] if is_one_kernel else LOOSE
        if not near(was["objective"], now["objective"], allowed * largest(was["objective"])):
            found.append(f"objective was {was['objective']}, is {now['objective']}")
    return found


def array(value):
    return np.array(value, dtype=np.float64)


def near(was, now, allowed):
    was, now = array(was), array(now)
    return was.shape == now.shape and np.allclose(was, now, rtol=SAME, atol=allowed, equal_nan=True)


def largest(value):
    values = np.abs(array(value))
    return float(np.nanmax(values)) if np.isfinite(values).any() else 0.0


def has_numbers(value):
    """Whether some number is no integer: then it has been rounded."""
    return isinstance(value, float) or (isinstance(value, list) and any(map(has_numbers, value)))


def recorded():
    return json.loads(FILE.read_text(encoding="utf-8"))


def differences(name, record):
    """What has changed in a case, as the record allows it to be judged on this machine."""
    was, now = record["outcomes"][name], outcome(CASES[name])
    if record["instruction_set"] == instruction_set() != "unknown":
        return changes(was, now)
    return contradictions(was, now, getattr(CASES[name].estimator, "tol", 0.0))


def write(part=""):
    """Writes the outcomes of the cases with `part` in their name anew, and keeps the others."""
    kept = {name: of for name, of in recorded()["outcomes"].items() if part not in name} if part else {}
    outcomes = {name: kept[name] if name in kept else outcome(case) for name, case in CASES.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(of, separators=(',', ':'))}" for name, of in outcomes.items()]
    head = f'{{\n"instruction_set": {json.dumps(instruction_set())},\n"outcomes": {{\n'
    FILE.write_text(head + ",\n".join(lines) + "\n}\n}\n", encoding="utf-8")
    return len(CASES) - len(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    told = "write recorded.json anew; with PART, only the fits with it in their name"
    parser.add_argument("--write", nargs="?", const="", metavar="PART", help=told)
    started, part = time.perf_counter(), parser.parse_args().write
    if part is not None:
        count = write(part)
        print(f"{count} fits in {time.perf_counter() - started:.1f} s, {FILE.stat().st_size / 1e3:.0f} kB")
        return 0
    record, changed = recorded(), 0
    for name in CASES:
        found = differences(name, record) if name in record["outcomes"] else ["not recorded"]
        changed += bool(found)
        if found:
            print(f"{name}:", *found, sep="\n  ")
    print(f"{changed} of {len(CASES)} fits have changed")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())
