"""TorchKM's helpers: bandwidth, kernel matrices, scaling and simulated data, on arrays and CPU tensors.

All return numpy arrays. Randomness comes from numpy's global generator: seed it with ``numpy.random.seed``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelpath import _core
from kernelpath._settings import number
from kernelpath.datasets import _centers, _rows
from kernelpath.torchkm._translation import Matrix, numbers

__all__ = ["data_gen", "kernelMult", "rbf_kernel", "sigest", "standardize"]


def sigest(x: Any, frac: float = 0.5) -> float:
    """Bandwidth σ of :func:`rbf_kernel` from the distances of random pairs of rows: half of kernelpath's "sigest".

    Parameters
    ----------
    x : array-like of shape (n_samples, n_features)
        Rows.
    frac : float, default=0.5
        Has no effect: the number of pairs is chosen here.

    Returns
    -------
    float
    """
    seed = int(check_random_state(None).randint(np.iinfo(np.int32).max))
    return _core.bandwidth(numbers("x", x, 2), "rbf", "sigest", seed) / 2.0


def rbf_kernel(x: Any, sigma: float) -> Matrix:
    """Kernel matrix exp(−2σ‖xᵢ−xⱼ‖²) of the rows of `x`.

    Parameters
    ----------
    x : array-like of shape (n_samples, n_features)
        Rows.
    sigma : float
        Bandwidth σ, half of kernelpath's γ.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)
    """
    return kernelMult(x, x, sigma)


def kernelMult(X: Any, X_new: Any, sigma: float) -> Matrix:
    """Kernel matrix exp(−2σ‖x−z‖²) between the rows of `X` and those of `X_new`.

    Parameters
    ----------
    X, X_new : array-like of shape (n_samples, n_features), (n_new, n_features)
        Rows.
    sigma : float
        Bandwidth σ, half of kernelpath's γ.

    Returns
    -------
    ndarray of shape (n_samples, n_new)
    """
    gamma = 2.0 * number("sigma", sigma, above=0.0)
    X, X_new = numbers("X", X, 2), numbers("X_new", X_new, 2)
    if X.shape[1] != X_new.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features and X_new {X_new.shape[1]}; both need the same")
    return _core.kernel_matrix(X, X_new, kernel="rbf", gamma=gamma, degree=3, coef0=0.0)


def standardize(x: Any) -> Matrix:
    """Columns of mean 0 and standard deviation 1 (of n − 1); a constant column becomes 0.

    Parameters
    ----------
    x : array-like of shape (n_samples, n_features)
        Rows, at least two.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
    """
    x = numbers("x", x, 2)
    if len(x) < 2:
        raise ValueError(f"standardize needs at least 2 rows, got {len(x)}")
    deviation = x.std(axis=0, ddof=1)
    return (x - x.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)


def data_gen(
    nn: int,
    nm: int,
    pp: int,
    p1: int,
    p2: int,
    mu: float,
    ro: float,
    sdn: int | None = None,
    means: Any = None,
) -> tuple[Matrix, Matrix, Matrix]:
    """Two classes, each a mixture of Gaussians, as :func:`kernelpath.datasets.make_mixture` without its scaling.

    Parameters
    ----------
    nn, nm, pp : int
        Rows, centres of each class, and features.
    p1 : int
        Features, the first ones, in which the centres of class −1 are shifted; those of +1 are shifted in the others.
    p2 : int
        Has no effect.
    mu, ro : float
        The shift, and the standard deviation of a row around its centre.
    sdn : int, optional
        Seed, where `means` is None; else, and by default, the rows come from numpy's global generator.
    means : array-like of shape (2 * nm, pp), optional
        Centres of an earlier call.

    Returns
    -------
    X : ndarray of shape (nn, pp)
        Rows.
    y : ndarray of shape (nn,)
        Labels −1.0 and 1.0.
    means : ndarray of shape (2 * nm, pp)
        Centres, first those of class −1.
    """
    rng = check_random_state(sdn if means is None else None)
    if means is None:
        centers = _centers(rng, nm, pp, p1, mu)
    else:
        means = numbers("means", means, 2)
        if means.shape != (2 * nm, pp):
            raise ValueError(f"means must have shape (2 * nm, pp) = {(2 * nm, pp)}, got {means.shape}")
        centers = means.reshape(2, nm, pp)
    X, y = _rows(rng, centers, nn, ro)
    return X, y.astype(np.float64), centers.reshape(2 * nm, pp)
