"""Constructor parameters, checked once: after :meth:`Settings.of` nobody checks again."""

from __future__ import annotations

import inspect
import math
import multiprocessing
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib.parallel import get_active_backend

from kernelpath import _core
from kernelpath._landmarks import checked_landmarks, landmarks_among

KERNELS_WITHOUT_GAMMA = ("linear", "precomputed")
AUTO_GRID = "auto-grid"
AUTO_GRID_LENGTH = 6
BANDWIDTH_RULES = ("sigest", "scale", "auto", AUTO_GRID)
SELECTIONS = ("best", "1se")
DTYPES = ("auto", "float32", "float64")

Grid = npt.NDArray[np.float64]
Loss = tuple[str, float]  # its name, and its τ, ε or δ (0 if it has none)


@dataclass(frozen=True)
class LowRank:
    """How the kernel is approximated."""

    landmarks: Any
    n_landmarks: int
    rank: int | None

    @classmethod
    def of(cls, estimator: Any) -> LowRank:
        """Check the parameters of `estimator`."""
        return cls(
            landmarks=checked_landmarks(estimator.landmarks),
            n_landmarks=_integer("n_landmarks", estimator.n_landmarks, at_least=1),
            rank=None if estimator.rank is None else _integer("rank", estimator.rank, at_least=1),
        )

    def count(self) -> int:
        """Landmarks, if there are as many rows."""
        return self.n_landmarks if isinstance(self.landmarks, str) else int(self.landmarks.shape[0])

    def found(
        self, X: Any, kernel: dict[str, Any], seed: int, n_threads: int, weight: npt.NDArray[np.float64] | None = None
    ) -> _core.Nystrom:
        """Landmarks, chosen without a look at targets, and their map."""
        of = self.landmarks, self.n_landmarks, self.rank, seed
        return _core.nystrom(X, *of, **kernel, weight=weight, n_threads=n_threads)


@dataclass(frozen=True)
class Settings:
    """What one fit was asked to do, apart from `cv`, `scoring` and `random_state`, which need the data."""

    kernel: str
    gamma: tuple[float, ...] | str
    degree: int
    coef0: float
    grid: Grid
    grid_is_lambda: bool
    grid_is_default: bool
    selection: str
    solver: str
    tol: float
    max_iter: int
    assume_definite: bool
    time_budget: float | None
    dtype: str
    device: str
    n_threads: int
    low_rank: LowRank | None
    n_landmarks: int
    rank: int | None

    @classmethod
    def of(cls, estimator: Any, low_rank: Any = None) -> Settings:
        """Check the parameters of `estimator`; an error names the parameter, its value and the way out."""
        asked = truth("low_rank", estimator.low_rank if low_rank is None else low_rank)
        approximation = LowRank.of(estimator)
        by_lambda = estimator.lambdas is not None
        return cls(
            kernel=_kernel(estimator.kernel),
            gamma=_gamma(estimator.gamma),
            degree=_integer("degree", estimator.degree, at_least=1),
            coef0=number("coef0", estimator.coef0),
            grid=_lambdas(estimator) if by_lambda else _Cs(estimator.Cs),
            grid_is_lambda=by_lambda,
            grid_is_default=not by_lambda and isinstance(estimator.Cs, Integral),
            selection=choice("selection", estimator.selection, SELECTIONS),
            solver=choice("solver", estimator.solver, _core.SOLVERS),
            tol=number("tol", estimator.tol, above=0.0),
            max_iter=_integer("max_iter", estimator.max_iter, at_least=1),
            assume_definite=truth("assume_definite", estimator.assume_definite),
            time_budget=None
            if estimator.time_budget is None
            else number("time_budget", estimator.time_budget, above=0.0),
            dtype=_dtype(estimator.dtype),
            device=device_name("device", estimator.device),
            n_threads=n_threads(estimator.n_jobs),
            low_rank=approximation if asked else None,
            n_landmarks=approximation.count(),
            rank=approximation.rank,
        )

    @property
    def n_gammas(self) -> int:
        """How many values of γ are tried."""
        if self.kernel in KERNELS_WITHOUT_GAMMA:
            return 1
        if isinstance(self.gamma, str):
            return AUTO_GRID_LENGTH if self.gamma == AUTO_GRID else 1
        return len(self.gamma)

    def among_rows(self, rows: npt.NDArray[Any], n_rows: int) -> Settings:
        """The same for `rows` of X alone, in whose order landmarks that are rows are then counted."""
        if self.low_rank is None:
            return self
        landmarks = landmarks_among(self.low_rank.landmarks, rows, n_rows)
        return replace(self, low_rank=replace(self.low_rank, landmarks=landmarks))

    def Cs(self, n_rows: int) -> Grid:
        """The grid as values of C, in the order given: C = 1 / (2 n λ)."""
        if not self.grid_is_lambda:
            return self.grid.copy()
        with np.errstate(over="ignore", divide="ignore"):
            Cs = 1.0 / (2.0 * n_rows * self.grid)
        bad = np.flatnonzero(~((Cs > 0.0) & np.isfinite(Cs)))
        if bad.size:
            raise ValueError(
                f"lambda = {self.grid[bad[0]]} (lambdas[{bad[0]}]) gives C = 1 / (2 n lambda) = {Cs[bad[0]]}, "
                "which must be a finite number > 0"
            )
        return Cs

    @contextmanager
    def grid_as_given(self) -> Iterator[None]:
        """Errors about a value of C, which speak of `Cs`, name `lambdas` if these were given."""
        try:
            yield
        except ValueError as error:
            if self.grid_is_lambda and "(Cs[" in str(error):
                raise ValueError(str(error).replace("(Cs[", "(of lambdas[")) from None
            raise


def is_changed(estimator: Any, name: str) -> bool:
    """Whether a parameter is not at its default."""
    value, parameter = getattr(estimator, name), inspect.signature(type(estimator)).parameters.get(name)
    if parameter is None:  # a subclass that does not take it
        return False
    return not (value is parameter.default or (isinstance(value, str | Real) and value == parameter.default))


def n_threads(n_jobs: Any) -> int:
    """Threads for `n_jobs`, as Rust counts them: 0 is its default, −1 all cores that the process may use, −2 one less.

    The default is all of them, or fewer where the environment says so. One of several workers that share the cores
    without a word in the environment takes one thread: a thread of joblib, or a process of ``multiprocessing.Pool``.
    """
    if n_jobs is None:
        backend, of_context = get_active_backend()
        is_worker = (backend.nesting_level or 0) > 0 and threading.current_thread() is not threading.main_thread()
        if is_worker or multiprocessing.current_process().daemon:
            return 1
        return min(of_context, _core.count_threads(0)) if of_context is not None and of_context > 0 else 0
    _require_integer("n_jobs", n_jobs)
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: pass None or -1 for all cores, or a number of threads")
    return max(min(int(n_jobs), _core.MOST_THREADS), -_core.MOST_THREADS)


def truth(name: str, value: Any) -> bool:
    """A parameter that is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: Any, known: tuple[str, ...]) -> str:
    """`value`, if it is one of the known."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}={value!r} is not available; available: {_listed(known)}")
    return value


def _kernel(value: Any) -> str:
    if callable(value):
        return "precomputed"
    if not isinstance(value, str) or value not in _core.KERNELS:
        raise ValueError(f"unknown kernel {value!r}; known kernels: {_listed(_core.KERNELS)}, or a callable")
    return value


def called(kernel: Any, X: Any, Z: Any) -> npt.NDArray[np.float64]:
    """The matrix of a callable kernel between the rows of X and of Z, checked."""
    matrix = np.asarray(kernel(X, Z))
    expected = (X.shape[0], Z.shape[0])
    if matrix.shape != expected or matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"the kernel {kernel!r} must return a matrix of numbers of shape {expected}, one row a row of its first "
            f"argument and one column a row of its second; got shape {matrix.shape}, dtype {matrix.dtype}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(matrix.sum())  # a sum that overflows is looked into, too
    if not is_finite and not (finite := np.isfinite(matrix)).all():
        i, j = np.unravel_index(np.argmin(finite), finite.shape)
        raise ValueError(
            f"the kernel {kernel!r} returned {matrix[i, j]} for row {i} of its first argument and row {j} of its "
            "second; it must return a finite number for every pair of rows"
        )
    return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64, copy=False)


def _gamma(value: Any) -> tuple[float, ...] | str:
    if isinstance(value, str):
        if value not in BANDWIDTH_RULES:
            raise ValueError(
                f"unknown bandwidth rule gamma={value!r}; pass numbers > 0 or one of {_listed(BANDWIDTH_RULES)}"
            )
        return value
    if np.ndim(value) == 0:
        return (number("gamma", value, above=0.0),)
    grid = tuple(number(f"gamma[{k}]", g, above=0.0) for k, g in enumerate(_values("gamma", "gamma", value).tolist()))
    if len(set(grid)) < len(grid):
        raise ValueError(f"gamma must not repeat a value, got {value!r}")
    return grid


def _Cs(value: Any) -> Grid:
    """An int is the length of a logarithmic grid; a float is one value; a sequence is taken as it is."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        if value < 2:
            raise ValueError(
                f"an integer Cs is the length of a grid and must be at least 2, got {value!r}; "
                "for one value of C pass a float, such as Cs=1.0"
            )
        if int(value) > _core.MOST_CS:
            raise ValueError(f"an integer Cs is the length of a grid, at most {_core.MOST_CS}, got {value!r}")
        default = _core.default_settings()
        return np.geomspace(default["c_min"], default["c_max"], int(value))
    return _values("Cs", "C", value)


def _lambdas(estimator: Any) -> Grid:
    grid = _values("lambdas", "lambda", estimator.lambdas)
    if is_changed(estimator, "Cs"):
        raise ValueError(
            f"lambdas takes the place of Cs, but both were given: Cs={estimator.Cs!r} and "
            f"lambdas={estimator.lambdas!r}; pass one of them"
        )
    return grid


def _values(name: str, symbol: str, values: Any) -> Grid:
    """One number or a sequence of numbers, each finite and > 0."""
    try:
        if isinstance(values, str | bytes | bool) or values is None:
            raise TypeError
        if isinstance(values, Iterable) and not isinstance(values, np.ndarray):
            values = list(values)
        grid = np.array(values, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or a sequence of numbers, got {values!r}") from None
    if grid.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {grid.shape}")
    if grid.size == 0:
        raise ValueError(f"{name} is empty: pass at least one value")
    if grid.size > _core.MOST_CS:
        raise ValueError(f"{name} has {grid.size} values, and {_core.MOST_CS} are the most")
    bad = np.flatnonzero(~((grid > 0.0) & np.isfinite(grid)))
    if bad.size:
        raise ValueError(f"{symbol} must be a finite number > 0, got {grid[bad[0]]} ({name}[{bad[0]}])")
    return grid


def device_name(parameter: str, value: Any) -> str:
    """The name of a device, which need not be there."""
    if not isinstance(value, str):
        raise TypeError(f"{parameter} must be a string, such as 'cpu', 'auto', 'cuda' or 'opencl:1', got {value!r}")
    if not _core.is_device(value):
        names = ", ".join(map(repr, _core.DEVICES))
        raise ValueError(f"{parameter}={value!r} is not available; available: {names}, or a number as in 'cuda:1'")
    return value


def _dtype(value: Any) -> str:
    try:
        return choice("dtype", value if isinstance(value, str) else np.dtype(value).name, DTYPES)
    except TypeError:
        raise TypeError(f"dtype must be one of {_listed(DTYPES)} or a numpy type, got {value!r}") from None


def number(
    name: str, value: Any, *, above: float | None = None, at_least: float | None = None, below: float | None = None
) -> float:
    """`value` as a float, if it is a finite number within the bounds."""
    bounds = " and ".join(
        f"{sign} {bound:g}" for sign, bound in ((">", above), (">=", at_least), ("<", below)) if bound is not None
    )
    expected = f"number {bounds}".rstrip()
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a {expected}, got {value!r}")
    result = float(value)
    within = (
        (above is None or result > above)
        and (at_least is None or result >= at_least)
        and (below is None or result < below)
    )
    if not (math.isfinite(result) and within):
        raise ValueError(f"{name} must be a finite {expected}, got {value!r}")
    return result


def level(name: str, value: Any) -> float:
    """A quantile or expectile level."""
    return number(name, value, above=0.0, below=1.0)


def levels(name: str, values: Any) -> list[float]:
    """A sequence of levels, in any order, no two equal."""
    try:
        if isinstance(values, str | bytes):
            raise TypeError
        values = list(values)
    except TypeError:
        raise TypeError(f"{name} must be a number > 0 and < 1 or a sequence of such numbers, got {values!r}") from None
    result = [level(f"{name}[{k}]", value) for k, value in enumerate(values)]
    if not result:
        raise ValueError(f"{name} is empty: pass at least one number > 0 and < 1")
    for k, value in enumerate(result):
        if (first := result.index(value)) < k:
            raise ValueError(f"{name} must not repeat a value, got {value:g} twice ({name}[{first}], {name}[{k}])")
    return result


def _integer(name: str, value: Any, *, at_least: int) -> int:
    _require_integer(name, value)
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value!r}")
    return int(value)


def _require_integer(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
