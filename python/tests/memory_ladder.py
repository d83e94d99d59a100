"""Fits under a limit on the address space, each in a process of its own: run by ``test_memory.py``.

Prints a line of JSON for each: the name of the case, the megabytes that it was given beside what the interpreter
takes, how its process ended, and what it said.
"""

import json
import os
import resource
import signal
import sys

import numpy as np

from kernelpath import KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, NystromFeatures, _core

MB = 1 << 20
SECONDS = 60  # after which a fit counts as hanging

rng = np.random.RandomState(0)
X = rng.standard_normal((2000, 5))
y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(len(X)) > 0, 1, -1)
target = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))
classes = np.digitize(target, [-0.5, 0.5])
MANY = np.zeros((400_000, 5))
FAST = {"Cs": [0.1, 1.0], "cv": 3, "gamma": 0.2, "random_state": 0, "n_jobs": 2, "tol": 1e-4}


def small(estimator, n=300):
    """A fit made before the limit is set would leave threads; this one is made under it, and is small."""
    return estimator.fit(X[:n], y[:n])


def kernel_matrix():
    return _core.kernel_matrix(X, X, kernel="rbf", gamma=0.2, degree=3, coef0=0.0, n_threads=2)


CASES = {
    "gamma grid": lambda: KernelSVC(**{**FAST, "gamma": [0.1, 0.3]}, dtype="float64").fit(X, y),
    "active set": lambda: KernelSVC(**FAST).fit(X, y),
    "active set, sigest": lambda: KernelSVC(**{**FAST, "gamma": "sigest"}).fit(X, y),
    "quantile": lambda: KernelQuantile(**FAST, dtype="float64").fit(X[:1200], target[:1200]),
    "newton": lambda: KernelLogistic(**FAST, dtype="float64").fit(X, y),
    "spectral": lambda: KernelSVC(**FAST, solver="spectral", loss="squared_hinge").fit(X[:800], y[:800]),
    "closed form": lambda: KernelRegressor(**FAST, loss="squared", solver="closed-form").fit(X[:1000], target[:1000]),
    "low rank": lambda: KernelSVC(**FAST, low_rank=True, n_landmarks=300).fit(X, y),
    "low rank, spectral": lambda: KernelLogistic(**FAST, low_rank=True, n_landmarks=300, solver="spectral").fit(X, y),
    "product of features": lambda: KernelLogistic(**FAST, low_rank=True, n_landmarks=800).fit(X[:900], y[:900]),
    "multinomial": lambda: KernelLogistic(**FAST, multi_class="multinomial").fit(X[:1000], classes[:1000]),
    "multinomial, low rank": lambda: KernelLogistic(
        **FAST, multi_class="multinomial", low_rank=True, n_landmarks=300
    ).fit(X, classes),
    "pairs of classes": lambda: KernelSVC(**FAST, multi_class="ovo").fit(X, classes),
    "leave one out": lambda: KernelSVC(**{**FAST, "cv": "loo"}).fit(X[:500], y[:500]),
    "leave one out, newton": lambda: KernelLogistic(**{**FAST, "cv": "loo"}).fit(X[:300], y[:300]),
    "predict": lambda: small(KernelSVC(**{**FAST, "Cs": 1.0, "cv": None})).decision_function(MANY),
    "features": lambda: NystromFeatures(n_landmarks=500, gamma=0.2, random_state=0, n_jobs=2).fit_transform(X),
    "kernel matrix": kernel_matrix,
}


def address_space():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def under_limit(case, megabytes, kind):
    """What the case says with so much more address space, or data, than the interpreter has."""
    signal.alarm(SECONDS)
    limit = address_space() + megabytes * MB
    resource.setrlimit(kind, (limit, limit))
    try:
        CASES[case]()
    except MemoryError as error:
        return f"MemoryError: {error}"
    except BaseException as error:
        return f"{type(error).__module__}.{type(error).__name__}: {error}"
    return "done"


def run(case, megabytes, kind=resource.RLIMIT_AS):
    """In a process of its own: how it ended, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        said = under_limit(case, megabytes, kind)
        os.write(writing, said.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said


if __name__ == "__main__":
    rungs = [int(rung) for rung in sys.argv[1].split(",")]
    cases = [case for case in CASES if len(sys.argv) < 3 or case in sys.argv[2:]]
    for case in cases:
        for rung in rungs:
            code, said = run(case, rung)
            print(json.dumps({"case": case, "megabytes": rung, "code": code, "said": said}), flush=True)
