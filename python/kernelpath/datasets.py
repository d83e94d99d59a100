"""Data from files of LIBSVM, and simulated data for examples and benchmarks."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_random_state

from kernelpath import _core
from kernelpath._settings import n_threads


def load_libsvm(
    source: str | os.PathLike[str] | bytes,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype: Any = np.float64,
    ignore_qid: bool = False,
    n_jobs: int | None = None,
) -> tuple[Any, npt.NDArray[Any]]:
    r"""Read a file of LIBSVM, plain or compressed by gzip, bzip2 or xz, in parallel.

    A line is ``label index:value index:value … # comment``, with rising indices. What is wrong with a line is an error
    that names it. Several labels in a line are refused.

    Parameters
    ----------
    source : str, path-like or bytes
        The file, or its contents.
    n_features : int, optional
        Columns of X, if the file need not have all of them. None is what its largest index says.
    zero_based : bool or "auto", default="auto"
        Whether indices count from 0. "auto": they do if the file has an index 0.
    dtype : numpy type, default=float64
        Type of X: float32 or float64.
    ignore_qid : bool, default=False
        Whether ``qid:`` entries, which name the query of a ranking, are skipped. They are an error otherwise.
    n_jobs : int, optional
        Threads, as of :class:`KernelSVC`. The result does not depend on it.

    Returns
    -------
    X : CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Labels: int64 if all are whole numbers without a point, else float64.

    Examples
    --------
    >>> from kernelpath.datasets import load_libsvm
    >>> X, y = load_libsvm(b"1 1:0.5 3:2\\n-1 2:1\\n")
    >>> X.shape, y.tolist()
    ((2, 3), [1, -1])
    """
    if not (zero_based is True or zero_based is False or zero_based == "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    base = None if zero_based == "auto" else int(not zero_based)
    values, columns, starts, width, labels = _core.read_libsvm(
        source, n_features=n_features, base=base, ignore_qid=ignore_qid, n_threads=n_threads(n_jobs)
    )
    parts = values.astype(dtype, copy=False), columns, starts
    return sparse.csr_matrix(parts, shape=(len(starts) - 1, width)), labels


def make_mixture(
    n_samples: int = 2000,
    n_features: int = 10,
    *,
    n_centers: int = 10,
    mu: float = 2.0,
    sigma: float = 3.0,
    random_state: Any = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Two classes, each a mixture of Gaussians: the simulation of the TorchKM paper, after Hastie et al.

    With h = n_features // 2, the centres of class −1 are drawn from N(μ·(1,…,1,0,…,0), I), where the first
    h coordinates are shifted, those of class +1 from N(μ·(0,…,0,1,…,1), I), where the others are. A row
    has either class with probability ½ and is x = m + σ·N(0, I), m a random centre of its class. The columns
    are then standardised to mean 0 and standard deviation 1.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    n_centers : int
        Gaussians in each class.
    mu, sigma : float
        Shift between the classes, and standard deviation of a row around its centre.
    random_state : int, RandomState or None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), of −1 and +1
    """
    rng = check_random_state(random_state)
    centers = _centers(rng, n_centers, n_features, n_features // 2, mu)
    X, y = _rows(rng, centers, n_samples, sigma)
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    return X, y


def _centers(
    rng: np.random.RandomState, n_centers: int, n_features: int, n_first: int, mu: float
) -> npt.NDArray[np.float64]:
    """Centres of both classes, shape (2, n_centers, n_features).

    Those of class −1 are shifted by μ in the `n_first` first features, those of +1 in the others.
    """
    shift = np.zeros((2, 1, n_features))
    shift[0, :, :n_first] = mu
    shift[1, :, n_first:] = mu
    return rng.standard_normal((2, n_centers, n_features)) + shift


def _rows(
    rng: np.random.RandomState, centers: npt.NDArray[np.float64], n_samples: int, sigma: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Rows around random centres, and their classes −1 and +1."""
    is_positive = rng.randint(2, size=n_samples)
    X = centers[is_positive, rng.randint(centers.shape[1], size=n_samples)]
    X += sigma * rng.standard_normal(X.shape)
    return X, 2 * is_positive - 1
