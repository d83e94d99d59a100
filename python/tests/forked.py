"""Every estimator and engine in a process forked from one that used it: run by ``test_runtime.py``.

All cases run in this process first, which would start whatever pool of threads is kept. Then each runs in a forked
child, which an alarm ends if it hangs. Prints a line of JSON for each: the name of the case, how its child ended,
whether its answer was that of this process, and the threads that the case left here.
"""

import contextlib
import json
import os
import signal
import sys
import time
import warnings

import numpy as np
from scipy import sparse

from kernelpath import (
    KernelDWD,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
    NystromFeatures,
    _core,
)

SECONDS = 30  # after which a child counts as hanging

rng = np.random.RandomState(0)
X = rng.standard_normal((120, 4))
S = sparse.csr_matrix(np.where(rng.rand(*X.shape) < 0.5, X, 0.0))
y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(len(X)) > 0, 1, -1)
target = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))
kinds = np.digitize(target, [-0.5, 0.5])
MANY = rng.standard_normal((20_000, 4))  # enough for threads to predict them
FAST = {"Cs": [0.1, 1.0], "cv": 3, "random_state": 0, "n_jobs": 2, "tol": 1e-4}
LOW = {**FAST, "low_rank": True, "n_landmarks": 30}


def scored(model, X, y):
    """Everything an estimator does: fit, predict one row and many, verify."""
    model.fit(X, y)
    proof = model.verify(X, y)
    return [model.scores_, model.predict(X[:1]), model.predict(MANY), proof.primal]


def probabilities(model, y):
    return [model.fit(X, y).predict_proba(MANY), model.oof_proba_]


def transformed(**parameters):
    features = NystromFeatures(n_landmarks=20, random_state=0, n_jobs=2, **parameters)
    return [features.fit_transform(X), features.transform(MANY), features.transform(X[:1])]


CASES = {
    "bandwidth": lambda: [_core.bandwidth(X, "rbf", rule, 0) for rule in ("sigest", "scale")],
    "kernel matrix": lambda: [_core.kernel_matrix(MANY, X, kernel="rbf", gamma=0.2, degree=3, coef0=0.0)],
    "active set": lambda: scored(KernelSVC(**FAST), X, y),
    "squared hinge": lambda: scored(KernelSVC(**FAST, loss="squared_hinge"), X, y),
    "newton": lambda: scored(KernelLogistic(**FAST), X, y),
    "dwd": lambda: scored(KernelDWD(**FAST), X, y),
    "quantile": lambda: scored(KernelQuantile(**FAST, tau=[0.2, 0.8]), X, target),
    "svr": lambda: scored(KernelSVR(**FAST), X, target),
    "closed form": lambda: scored(KernelRegressor(**FAST, loss="squared"), X, target),
    "huber": lambda: scored(KernelRegressor(**FAST, loss="huber"), X, target),
    "expectile": lambda: scored(KernelRegressor(**FAST, loss="expectile"), X, target),
    "spectral": lambda: scored(KernelSVC(**FAST, solver="spectral"), X, y),
    "leave one out": lambda: scored(KernelSVC(**{**FAST, "cv": "loo"}), X, y),
    "leave one out, newton": lambda: scored(KernelLogistic(**{**FAST, "cv": "loo"}), X[:60], y[:60]),
    "gamma grid": lambda: scored(KernelSVC(**FAST, gamma="auto-grid"), X, y),
    "precomputed": lambda: [KernelSVC(**FAST, kernel="precomputed").fit(X @ X.T, y).scores_],
    "indefinite": lambda: scored(KernelSVC(**FAST, kernel="sigmoid", gamma=1.0, coef0=-1.0), X, y),
    "sparse": lambda: scored(KernelSVC(**FAST), S, y),
    "sparse, laplacian": lambda: scored(KernelSVC(**FAST, kernel="laplacian"), S, y),
    "low rank": lambda: scored(KernelSVC(**LOW), X, y),
    "low rank, newton": lambda: scored(KernelLogistic(**LOW), X, y),
    "low rank, spectral": lambda: scored(KernelLogistic(**LOW, solver="spectral"), X, y),
    "low rank, product": lambda: scored(KernelLogistic(**{**LOW, "n_landmarks": 119}), X, y),
    "low rank, sparse": lambda: scored(KernelSVC(**LOW), S, y),
    "low rank, regression": lambda: scored(KernelRegressor(**LOW, loss="huber"), X, target),
    "low rank, quantile": lambda: scored(KernelQuantile(**LOW, tau=0.3), X, target),
    "pairs of classes": lambda: scored(KernelSVC(**FAST), X, kinds),
    "one against rest": lambda: scored(KernelDWD(**FAST, multi_class="ovr"), X, kinds),
    "multinomial": lambda: scored(KernelLogistic(**FAST, multi_class="multinomial"), X, kinds),
    "multinomial, low rank": lambda: scored(KernelLogistic(**LOW, multi_class="multinomial"), X, kinds),
    "sigmoid": lambda: probabilities(KernelSVC(**FAST, probability="sigmoid"), y),
    "isotonic": lambda: probabilities(KernelSVC(**FAST, probability="isotonic"), kinds),
    "temperature": lambda: probabilities(KernelDWD(**LOW, probability="temperature"), y),
    "features": lambda: transformed(),
    "features, rpcholesky": lambda: transformed(landmarks="rpcholesky", kernel="laplacian"),
    "features, uniform": lambda: transformed(landmarks="uniform", dtype="float32"),
}


def answer(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of indefinite kernels
        return b"".join(np.asarray(part, dtype=np.float64).tobytes() for part in CASES[case]())


def threads_left():
    """Threads of this process that are not of BLAS or Python; those that are about to end are waited for."""
    for _ in range(200):
        names = []
        for task in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/comm") as file:
                names.append(file.read().strip())
        left = len(names) - BEFORE
        if left <= 0:
            return 0
        time.sleep(0.01)
    return left


def forked(case, expected):
    """How a child that runs the case ends, and whether its answer is the expected one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        code = 1
        try:
            os.write(writing, b"same" if answer(case) == expected else b"other")
            code = 0
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode()[:4000])
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said


if __name__ == "__main__":
    BEFORE = len(os.listdir("/proc/self/task"))
    left, expected = {}, {}
    for case in CASES:
        expected[case] = answer(case)
        left[case] = threads_left()
    for case in CASES:
        code, said = forked(case, expected[case])
        print(json.dumps({"case": case, "code": code, "said": said, "threads_left": left[case]}), flush=True)
    sys.exit(0)
