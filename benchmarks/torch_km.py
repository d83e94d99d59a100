"""Time TorchKM in its own interpreter: ``python torch_km.py data.npz result.npz`` prints the seconds it took.

The first file holds method (a name in `METHODS`), X, y, gamma, Cs, fold (0, 1, … for each row) and limit, the seconds
after which it is stopped. The second gets

    seconds     of cross-validation and the path on all rows, on two threads of the CPU;
    setup       the part of them that does not grow with the number of C's: kernel matrix and eigendecomposition;
    finished    whether it did within the limit; if not, there is nothing else;
    exhausted   whether its iterations ran out, so that it left models or folds unfinished;
    converged   where it says so, one a C; empty for quantiles, of which it says nothing;
    objectives  C Σ L + ½ αᵀKα of its models on all rows, one a C.

Its kernel is exp(−2σd²). Its quantiles minimise the mean loss + ½ λ αᵀKα with λ = 1/(2nC), where its other methods have
λ αᵀKα, so that they solve our problem at C if they are given C/2. `max_iter` bounds the iterations on all rows of all
C's together, and `max_iter` times the number of C's those of cross-validation. (This file is not called torchkm.py, or
it would import itself.)
"""

import signal
import sys
import time
import warnings

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torchkm.estimators import TorchKMDWD, TorchKMKQR, TorchKMLogit, TorchKMSVC

TAU = 0.5


def hinge(y, f):
    return np.maximum(0.0, 1.0 - y * f)


def logistic(y, f):
    return np.logaddexp(0.0, -y * f)


def dwd(y, f):
    margin = y * f
    return np.where(margin <= 0.5, 1.0 - margin, 0.25 / np.maximum(margin, 0.5))


def pinball(y, f):
    return np.maximum(TAU * (y - f), (TAU - 1.0) * (y - f))


# Estimator, parameters of its own, loss, and what it must be given for our C, over C.
METHODS = {
    "svc": (TorchKMSVC, {}, hinge, 1.0),
    "logistic": (TorchKMLogit, {}, logistic, 1.0),
    "dwd": (TorchKMDWD, {}, dwd, 1.0),
    "quantile": (TorchKMKQR, {"tau": TAU}, pinball, 0.5),
}


class OutOfTime(Exception):  # noqa: N818
    """The limit has passed."""


def stop(*_):
    raise OutOfTime


def fit(estimator, X, y, **settings):
    """The fitted model, with its solver, and its seconds."""
    model = with_solver(estimator)(kernel="rbf", device="cpu", store_path=True, **settings)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it warns of is in the answer
        model.fit(X, y)
    return model, time.perf_counter() - started


def with_solver(estimator):
    """The estimator, which keeps its solver, and so its counts of iterations."""

    class WithSolver(estimator):
        def _make_backend(self, **arguments):
            self.solver_ = super()._make_backend(**arguments)
            return self.solver_

    return WithSolver


def objectives(model, loss, X, y, gamma, Cs):
    path = model.alpmat_path_.numpy()
    intercepts, alphas = path[0], path[1:]
    K_alphas = np.exp(-gamma * cdist(X, X, "sqeuclidean")) @ alphas
    return Cs * loss(y[:, None], K_alphas + intercepts).sum(axis=0) + 0.5 * (alphas * K_alphas).sum(axis=0)


def exhausted(solver):
    return bool(solver.npass.sum() > solver.maxit or solver.cvnpass.sum() > solver.nmaxit)


def main():
    source, result = sys.argv[1:]
    data = np.load(source)
    X, y, Cs, gamma, fold = data["X"], data["y"].astype(float), data["Cs"], float(data["gamma"]), data["fold"]
    estimator, own, loss, factor = METHODS[str(data["method"])]
    order = np.argsort(-Cs)  # from the largest C down, as its own grid
    settings = {"Cs": factor * Cs[order], "cv": fold.max() + 1, "foldid": fold + 1, "rbf_sigma": gamma / 2, **own}

    torch.set_num_threads(2)
    fit(estimator, X, y, max_iter=1, **settings)  # starts its threads
    setup = fit(estimator, X, y, max_iter=1, **settings)[1]
    limit = int(data["limit"])
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    try:
        model, seconds = fit(estimator, X, y, max_iter=100_000, **settings)
    except OutOfTime:
        np.savez(result, seconds=limit, setup=setup, finished=False)
        return
    signal.alarm(0)

    back = np.argsort(order)
    converged = getattr(model, "converged_", None)
    np.savez(
        result,
        seconds=seconds,
        setup=setup,
        finished=True,
        exhausted=exhausted(model.solver_),
        converged=np.array([]) if converged is None else converged[back],
        objectives=objectives(model, loss, X, y, gamma, Cs[order])[back],
    )
    print(seconds)


if __name__ == "__main__":
    main()
