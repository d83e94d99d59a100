"""Fits on data that another thread changes meanwhile: run by ``test_runtime.py``, given the name of a case.

Prints how many fits ended with a model, and the names of the exceptions that ended the others.
"""

import sys
import threading
import time
import warnings

import numpy as np
from scipy import sparse

from kernelpath import KernelLogistic, KernelSVC, NystromFeatures

SECONDS = 1.0
GARBAGE = (-1, 2**31 - 1, 7, 0, -(2**31), 100_000, *range(20, 1000))

rng = np.random.RandomState(0)
dense = rng.standard_normal((400, 20))
y = np.where(dense[:, 0] + 0.5 * rng.standard_normal(len(dense)) > 0, 1, -1)


def numbers(array):
    """Writes numbers, among them NaN and infinity, into an array."""
    flat = array.reshape(-1)
    for value in np.array([0.0, 1e300, np.nan, -np.inf, 3.0, -1e-300], dtype=array.dtype):
        flat[rng.randint(flat.size, size=50)] = value


def integers(array):
    """Writes indices that are none, or none that are in order."""
    array[:] = rng.randint(20, size=array.size)
    array[rng.randint(array.size, size=array.size // 2)] = rng.choice(GARBAGE, size=array.size // 2)


def sparse_rows():
    return sparse.csr_matrix(np.where(rng.rand(*dense.shape) < 0.4, dense, 0.0))


def case(name):
    """The data, the array of them that changes, and what changes it."""
    kind, part = name.split()
    if kind == "dense":
        X = np.asarray(dense, dtype=part).copy()
        return X, X, numbers
    X = sparse_rows()
    return X, getattr(X, part), numbers if part == "data" else integers


def main(name):
    X, array, write = case(name)
    kept, over = array.copy(), threading.Event()

    def change():
        while not over.is_set():
            # Long enough for a fit to begin, and to find out on the way.
            time.sleep(rng.choice([0.0005, 0.002, 0.01]))
            write(array)
            time.sleep(0.0005)
            array[:] = kept

    models = [
        KernelSVC(Cs=[0.1, 1.0], cv=3, random_state=0, n_jobs=2, max_iter=1000),
        KernelSVC(Cs=[0.1, 1.0], cv=3, kernel="laplacian", gamma=0.1, random_state=0, n_jobs=2, max_iter=1000),
        KernelLogistic(Cs=[0.1, 1.0], cv=3, low_rank=True, n_landmarks=50, random_state=0, n_jobs=2, max_iter=1000),
        NystromFeatures(n_landmarks=50, landmarks="rpcholesky", random_state=0, n_jobs=2),
    ]
    changer = threading.Thread(target=change)
    changer.start()
    ended, failed = 0, set()
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() - started < SECONDS:
            for model in models:
                try:
                    model.fit(X, y)
                    if hasattr(model, "predict"):
                        model.predict(X)
                        model.verify(X, y)
                    ended += 1
                except Exception as error:
                    failed.add(type(error).__name__)
    over.set()
    changer.join()
    print(ended, *sorted(failed))


if __name__ == "__main__":
    main(sys.argv[1])
