import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, final

import numpy as np
import numpy.typing as npt

_Real: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
_Rows: TypeAlias = _Real | _Csr
_Double: TypeAlias = npt.NDArray[np.float64]
_Folds: TypeAlias = Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] | Literal["loo"] | None
_Index: TypeAlias = npt.NDArray[np.int64]

__all__ = [
    "CALIBRATIONS",
    "DEVICES",
    "KERNELS",
    "LANDMARKS",
    "LOSSES",
    "MOST_CS",
    "MOST_THREADS",
    "SOLVERS",
    "STATUS_NAMES",
    "Arrangement",
    "Calibration",
    "Fit",
    "Nystrom",
    "RowClasses",
    "Saved",
    "__version__",
    "available_memory",
    "bandwidth",
    "count_threads",
    "decision",
    "default_settings",
    "device_traffic",
    "devices",
    "encode",
    "fit",
    "is_device",
    "kernel_matrix",
    "nystrom",
    "nystrom_features",
    "plane",
    "ranks",
    "read_libsvm",
    "run_command",
    "shown",
    "spread",
    "training_difference",
    "training_rows",
    "verify",
    "write_report",
]

__version__: str
CALIBRATIONS: tuple[str, ...]
DEVICES: tuple[str, ...]
KERNELS: tuple[str, ...]
LANDMARKS: tuple[str, ...]
LOSSES: tuple[str, ...]
SOLVERS: tuple[str, ...]
STATUS_NAMES: tuple[str, ...]
MOST_CS: int
MOST_THREADS: int

# Loss, constant, C, P, D, gap, noise, status.
_MachineParts: TypeAlias = tuple[str, float, float, float, float, float, float, str]

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
    """One machine; None: weights of 1, all rows, no classifier."""

    @property
    def loss(self) -> str: ...
    @property
    def constant(self) -> float: ...
    @property
    def y(self) -> _Double: ...
    @property
    def weight(self) -> _Double | None: ...
    @property
    def rows(self) -> npt.NDArray[np.int64] | None: ...
    @property
    def classes(self) -> RowClasses | None: ...
    @property
    def c_factor(self) -> float: ...

class _Classes(Protocol):
    """The classes of a classifier's rows; None: no probabilities."""

    @property
    def arrangement(self) -> Arrangement: ...
    @property
    def rows(self) -> RowClasses: ...
    @property
    def probability(self) -> str | None: ...

class _Machines(Protocol):
    """The machines, and how they choose; None: units of 1, no classes."""

    @property
    def tasks(self) -> Sequence[_Task]: ...
    @property
    def is_joint(self) -> bool: ...
    @property
    def units(self) -> Sequence[float] | None: ...
    @property
    def classes(self) -> _Classes | None: ...

class _LowRank(Protocol):
    @property
    def landmarks(self) -> str | _Index | _Rows: ...
    @property
    def n_landmarks(self) -> int: ...
    @property
    def rank(self) -> int | None: ...

class _Settings(Protocol):
    """What a fit is asked to do, apart from the data."""

    @property
    def kernel(self) -> str: ...
    @property
    def gamma(self) -> Sequence[float] | str: ...
    @property
    def degree(self) -> int: ...
    @property
    def coef0(self) -> float: ...
    @property
    def selection(self) -> str: ...
    @property
    def solver(self) -> str: ...
    @property
    def tol(self) -> float: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def assume_definite(self) -> bool: ...
    @property
    def time_budget(self) -> float | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def n_threads(self) -> int: ...
    @property
    def low_rank(self) -> _LowRank | None: ...
    @property
    def n_landmarks(self) -> int: ...
    @property
    def rank(self) -> int | None: ...

class _Watch(Protocol):
    """Is told of progress, and of each γ; `end_gamma` returns whether to try no other."""

    def __call__(self, done: int, total: int, phase: str) -> object: ...
    def begin_gamma(self, at: int, gammas: list[float]) -> object: ...
    def end_gamma(self) -> bool: ...

def available_memory() -> int | None: ...
def count_threads(n_threads: int) -> int: ...
def encode(encoding: str, table: _Double, features: int) -> _Double: ...
def is_device(name: str) -> bool: ...
def device_traffic(name: str) -> tuple[int, int, int] | None: ...
def devices() -> list[dict[str, Any]]: ...
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
    centre: tuple[_Double, _Double] | None = None,
    device: str = "cpu",
    n_threads: int = 0,
) -> _Double: ...
def plane(
    support_vectors: _Rows,
    coef: _Double,
    intercept: _Double,
    centre: tuple[_Double, _Double] | None = None,
) -> tuple[_Double, _Double]: ...
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
def read_libsvm(
    source: str | os.PathLike[str] | bytes,
    *,
    n_features: int | None = None,
    base: int | None = None,
    ignore_qid: bool = False,
    n_threads: int = 0,
) -> tuple[_Double, npt.NDArray[np.int32] | _Index, _Index, int, npt.NDArray[np.int64] | _Double]: ...
def run_command(arguments: Sequence[str]) -> int: ...
def write_report(
    saved: Saved,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    x: _Rows | None = None,
    labels: Sequence[bool | int | float | str] | None = None,
    numbers: _Double | None = None,
    weight: _Double | None = None,
    device: str = "cpu",
    n_threads: int = 0,
) -> None: ...
def shown(text: str) -> str: ...
def spread(y: _Double, weight: _Double | None = None) -> float: ...
def fit(
    X: _Rows,
    machines: _Machines,
    settings: _Settings,
    cs: _Double,
    folds: _Folds,
    *,
    seed: int = 0,
    weight: _Double | None = None,
    scorer: Callable[[Fit], Sequence[_Double]] | None = None,
    watch: _Watch | None = None,
) -> Fit: ...
def training_rows(
    X: _Rows,
    *,
    labels: Sequence[bool | int | float | str] | None = None,
    numbers: _Double | None = None,
    weight: _Double | None = None,
) -> str: ...
def training_difference(found: str, trained: str) -> str | None: ...
def ranks(scores: _Double, weight: _Double | None = None) -> npt.NDArray[np.int32]: ...
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
    assume_definite: bool = False,
    n_threads: int = 0,
    low_rank: Nystrom | None = None,
) -> tuple[float, float, float, float]: ...

@final
class Arrangement:
    def __new__(cls, name: str, n_classes: int) -> Arrangement: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_machines(self) -> int: ...
    @property
    def pairs(self) -> list[tuple[int, int | None]]: ...
    def targets(self, m: int, index: _Index) -> tuple[_Double, _Index | None]: ...
    def decision(self, values: _Double) -> _Double: ...
    def probabilities(self, values: _Double, maps: Sequence[Calibration]) -> _Double: ...
    def log_probabilities(self, values: _Double, maps: Sequence[Calibration]) -> _Double: ...
    def __reduce__(self) -> tuple[type[Arrangement], tuple[str, int]]: ...

@final
class RowClasses:
    def __new__(
        cls, index: _Index, n_classes: int, weight: _Double | None = None, factors: str | Sequence[float] | None = None
    ) -> RowClasses: ...

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
class Fit:
    @property
    def gammas(self) -> _Double: ...
    @property
    def places(self) -> list[int] | None: ...
    @property
    def scores(self) -> list[_Double]: ...
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
    def coef(self) -> _Double: ...
    @property
    def intercepts(self) -> _Double: ...
    @property
    def centre(self) -> tuple[_Double, _Double] | None: ...
    @property
    def held_out(self) -> _Double: ...
    @property
    def probabilities(self) -> _Double | None: ...
    @property
    def calibrations(self) -> list[Calibration]: ...
    @property
    def calibration_seconds(self) -> float: ...
    @property
    def solver(self) -> str: ...
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
    def gammas_out_of_time(self) -> list[float]: ...
    @property
    def smallest_eigenvalues(self) -> list[float | None]: ...
    def nystrom(self, gamma: int) -> Nystrom | None: ...
    def coef_at(self, machine: int, place: int) -> _Double: ...
    def intercepts_at(self, machine: int, place: int) -> _Double: ...
    def calibrations_at(self, place: int) -> list[Calibration]: ...
    def values(self, fold: int, place: int, machine: int | None = None) -> _Double: ...
    def out_of_fold(self, place: int, machine: int | None = None) -> _Double: ...

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

@final
class Saved:
    def __new__(
        cls,
        *,
        estimator: str,
        parameters: str,
        columns: Sequence[str] | None,
        label_type: str | None,
        machines: Sequence[_MachineParts],
        kernel: str,
        gamma: float,
        degree: int,
        coef0: float,
        vectors: _Rows | None,
        support: _Index,
        width: int,
        coef: _Double,
        intercepts: _Double,
        labels: Sequence[bool | int | float | str] | None,
        arrangement: Arrangement | None,
        odds: str | Sequence[Calibration] | None,
        is_one: bool,
        rising: Sequence[int] | None,
        found: dict[str, Any],
        scaling: tuple[_Double, _Double] | None = None,
        training: str | None = None,
        centre: tuple[_Double, _Double] | None = None,
        encoding: str | None = None,
    ) -> Saved: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Saved: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    @staticmethod
    def load(path: str | os.PathLike[str]) -> Saved: ...
    def answers(self, x: _Rows) -> tuple[_Double, _Double | None]: ...
    def to_onnx(self, single: bool = False) -> bytes: ...
    def to_libsvm(self) -> str: ...
    @staticmethod
    def from_libsvm(text: bytes) -> Saved: ...
    @property
    def estimator(self) -> str: ...
    @property
    def parameters(self) -> str: ...
    @property
    def columns(self) -> list[str] | None: ...
    @property
    def label_type(self) -> str | None: ...
    @property
    def machines(self) -> list[_MachineParts]: ...
    @property
    def kernel(self) -> tuple[str, float, int | None, float | None]: ...
    @property
    def vectors(self) -> _Double | tuple[_Double, _Index, _Index] | None: ...
    @property
    def support(self) -> _Index: ...
    @property
    def width(self) -> int: ...
    @property
    def coef(self) -> _Double: ...
    @property
    def intercepts(self) -> _Double: ...
    @property
    def labels(self) -> list[Any] | None: ...
    @property
    def arrangement(self) -> Arrangement | None: ...
    @property
    def calibrations(self) -> list[Calibration] | None: ...
    @property
    def is_one(self) -> bool: ...
    @property
    def rising(self) -> list[int] | None: ...
    @property
    def scaling(self) -> tuple[_Double, _Double] | None: ...
    @property
    def training(self) -> str | None: ...
    @property
    def centre(self) -> tuple[_Double, _Double] | None: ...
    @property
    def encoding(self) -> str | None: ...
    @property
    def found(self) -> dict[str, Any]: ...
