from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, final

import numpy as np
import numpy.typing as npt

_Real: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
_Rows: TypeAlias = _Real | _Csr
_Double: TypeAlias = npt.NDArray[np.float64]
_Folds: TypeAlias = Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] | Literal["loo"] | None
_Progress: TypeAlias = Callable[[int, int, str], object] | None

__all__ = [
    "CALIBRATIONS",
    "DEVICES",
    "KERNELS",
    "LANDMARKS",
    "LOSSES",
    "SOLVERS",
    "STATUS_NAMES",
    "Calibration",
    "Nystrom",
    "Pairs",
    "PathFit",
    "__version__",
    "available_memory",
    "bandwidth",
    "count_threads",
    "decision",
    "default_settings",
    "fit_paths",
    "held_out",
    "kernel_matrix",
    "nystrom",
    "nystrom_features",
    "select",
    "spread",
    "verify",
    "votes",
]

__version__: str
CALIBRATIONS: tuple[str, ...]
DEVICES: tuple[str, ...]
KERNELS: tuple[str, ...]
LANDMARKS: tuple[str, ...]
LOSSES: tuple[str, ...]
SOLVERS: tuple[str, ...]
STATUS_NAMES: tuple[str, ...]

class _Csr(Protocol):
    """A scipy CSR matrix or array."""

    @property
    def format(self) -> str: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def data(self) -> npt.NDArray[Any]: ...
    @property
    def indices(self) -> npt.NDArray[Any]: ...
    @property
    def indptr(self) -> npt.NDArray[Any]: ...

class _Task(Protocol):
    """One machine; None: weights of 1, the weights of the loss, all rows."""

    @property
    def loss(self) -> str: ...
    @property
    def constant(self) -> float: ...
    @property
    def y(self) -> _Double: ...
    @property
    def weight(self) -> _Double | None: ...
    @property
    def score_weight(self) -> _Double | None: ...
    @property
    def rows(self) -> npt.NDArray[np.int64] | None: ...
    @property
    def c_factor(self) -> float: ...

def available_memory() -> int | None: ...
def count_threads(n_threads: int) -> int: ...
def default_settings() -> dict[str, Any]: ...
def bandwidth(
    X: _Rows, kernel: str, rule: str, seed: int, weight: _Double | None = None, n_threads: int = 0
) -> float: ...
def kernel_matrix(
    X: _Rows,
    Z: _Rows,
    *,
    kernel: str,
    gamma: float,
    degree: int,
    coef0: float,
    n_threads: int = 0,
) -> _Double: ...
def decision(
    X: _Rows,
    support_vectors: _Rows,
    coef: _Double,
    intercept: _Double,
    *,
    kernel: str,
    gamma: float,
    degree: int,
    coef0: float,
    n_threads: int = 0,
) -> _Double: ...
def nystrom(
    X: _Rows,
    landmarks: str | npt.NDArray[np.int64] | _Rows,
    n_landmarks: int,
    rank: int | None,
    seed: int,
    *,
    kernel: str,
    gamma: float,
    degree: int,
    coef0: float,
    weight: _Double | None = None,
    n_threads: int = 0,
) -> Nystrom: ...
def nystrom_features(
    X: _Rows,
    landmarks: _Rows,
    map: _Double,
    *,
    kernel: str,
    gamma: float,
    degree: int,
    coef0: float,
    dtype: str,
    n_threads: int = 0,
) -> _Real: ...
def spread(y: _Double, weight: _Double | None = None) -> float: ...
def votes(values: _Double, pairs: npt.NDArray[np.int64], n_classes: int) -> _Double: ...
def held_out(paths: Sequence[PathFit], fold: int, k: int) -> _Double: ...
def select(scores: _Double, cs: _Double, rule: str) -> int: ...
def fit_paths(
    X: _Rows,
    tasks: Sequence[_Task],
    *,
    solver: str,
    kernel: str,
    gamma: float,
    degree: int,
    coef0: float,
    cs: _Double,
    folds: _Folds,
    tol: float,
    max_iter: int,
    dtype: str,
    device: str = "cpu",
    n_threads: int = 0,
    time_budget: float | None = None,
    progress: _Progress = None,
    low_rank: Nystrom | None = None,
    pairs: Pairs | None = None,
    n_landmarks: int = 2000,
    rank: int | None = None,
) -> list[PathFit]: ...
def verify(
    X: _Rows,
    task: _Task,
    *,
    coef: _Double,
    intercepts: _Double,
    C: float,
    kernel: str,
    gamma: float,
    degree: int,
    coef0: float,
    tol: float,
    max_iter: int,
    n_threads: int = 0,
    low_rank: Nystrom | None = None,
) -> tuple[float, float, float, float]: ...

@final
class Pairs: ...

@final
class Nystrom:
    @property
    def indices(self) -> npt.NDArray[np.int64] | None: ...
    @property
    def points(self) -> _Double | None: ...
    @property
    def map(self) -> _Double: ...
    @property
    def trace_error(self) -> float: ...
    @property
    def sampled_rows(self) -> int: ...
    @property
    def spectrum(self) -> _Double: ...
    @property
    def tail(self) -> float: ...

@final
class PathFit:
    @property
    def scores(self) -> _Double: ...
    @property
    def solver(self) -> str: ...
    @property
    def gaps(self) -> _Double: ...
    @property
    def gap_noise(self) -> _Double: ...
    @property
    def n_iter(self) -> npt.NDArray[np.int64]: ...
    @property
    def status(self) -> npt.NDArray[np.uint8]: ...
    @property
    def primal(self) -> _Double: ...
    @property
    def dual(self) -> _Double: ...
    @property
    def n_support(self) -> npt.NDArray[np.int64]: ...
    @property
    def intercepts(self) -> _Double: ...
    @property
    def gram_bytes(self) -> int: ...
    @property
    def planned_bytes(self) -> int: ...
    @property
    def kernel_seconds(self) -> float: ...
    @property
    def path_seconds(self) -> float: ...
    @property
    def timed_out(self) -> bool: ...
    @property
    def smallest_eigenvalue(self) -> float | None: ...
    def coef(self, k: int) -> _Double: ...
    def oof(self, fold: int, k: int) -> _Double: ...
    def oof_at(self, k: int) -> _Double: ...

@final
class Calibration:
    def __new__(
        cls, method: str, slope: float, intercept: float, points: Sequence[tuple[float, float]]
    ) -> Calibration: ...
    @staticmethod
    def fit(
        method: str, scores: _Double, positive: npt.NDArray[np.bool_], weights: _Double | None = None
    ) -> Calibration: ...
    @property
    def method(self) -> str: ...
    @property
    def slope(self) -> float | None: ...
    @property
    def intercept(self) -> float | None: ...
    @property
    def points(self) -> _Double | None: ...
    def probability(self, scores: _Double) -> _Double: ...
    def log_odds(self, scores: _Double) -> _Double: ...
    def __reduce__(
        self,
    ) -> tuple[type[Calibration], tuple[str, float, float, list[tuple[float, float]]]]: ...
