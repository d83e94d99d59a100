"""The machines of a fit: what each learns, how they choose, and how their attributes are laid out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpath import _core
from kernelpath._weights import Weights

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """One machine, as Rust reads it.

    Attributes
    ----------
    loss, constant : str, float
        Name of the loss, and its τ, ε or δ (0 if it has none).
    y : ndarray
        Targets.
    weight : ndarray or None
        Weights of the targets in the loss, in scores and in calibration; None: all 1.
    rows : ndarray or None
        The rows of X these are of; None: all.
    classes : RowClasses or None
        The classes of all rows of X and their weights in the loss, if this is a machine of a classifier.
    c_factor : float
        What C is multiplied with.
    """

    loss: str
    constant: float
    y: Matrix
    weight: Weights | None = None
    rows: npt.NDArray[np.int64] | None = None
    classes: _core.RowClasses | None = None
    c_factor: float = 1.0


@dataclass(frozen=True)
class Classes:
    """The classes of a classifier's rows, as Rust reads them.

    Attributes
    ----------
    arrangement : Arrangement
        What the machines have to do with the classes.
    rows : RowClasses
        The class of each row, and its weight in scores.
    probability : str or None
        "native" if the machines' values are the logarithms of odds, else the name of a calibration, or None.
    """

    arrangement: _core.Arrangement
    rows: _core.RowClasses
    probability: str | None


@dataclass(frozen=True)
class Parts:
    """How the attributes of machines are laid out.

    Attributes
    ----------
    names : tuple of str
        What sets each machine apart. Attributes have a leading axis for the machines, unless there is no name.
    is_joint : bool
        Whether the machines are one model, with one place in the grid and one table of scores.
    has_own_grids : bool
        Whether each machine has values of C of its own.
    """

    names: tuple[str, ...] = ()
    is_joint: bool = False
    has_own_grids: bool = False

    @property
    def has_axis(self) -> bool:
        """Whether attributes have a leading axis for the machines."""
        return bool(self.names)

    @property
    def has_choices(self) -> bool:
        """Whether each machine chooses for itself."""
        return self.has_axis and not self.is_joint

    def joined(self, values: Iterable[Any]) -> Any:
        """An attribute, from the value of each machine."""
        values = list(values)
        return np.array(values) if self.has_axis else values[0]

    def each(self, *attributes: Any) -> Iterable[tuple[Any, ...]]:
        """The attributes of one machine after the other: undoes :meth:`joined`."""
        return zip(*attributes, strict=True) if self.has_axis else [attributes]

    def headed(self, k: int, separator: str, text: str) -> str:
        """A text about the k-th table of scores, after the name of its machine."""
        heading = "" if self.is_joint or not self.has_axis else self.names[k]
        return separator.join(filter(None, [_core.shown(heading), text]))


@dataclass(frozen=True)
class Machines:
    """What one fit learns, as Rust reads it.

    Attributes
    ----------
    tasks : list of Task
        The machines.
    parts : Parts
        How their attributes are laid out.
    units : list of float or None
        What the scores of each machine's loss are divided by, so that they can be compared; None: all 1.
    classes : Classes or None
        The classes, if these are the machines of a classifier.
    """

    tasks: list[Task]
    parts: Parts = Parts()
    units: list[float] | None = None
    classes: Classes | None = None

    @property
    def is_joint(self) -> bool:
        """Whether the machines choose one place together."""
        return self.parts.is_joint


def learned(machines: Machines, fit: _core.Fit, Cs: Any) -> list[_core._MachineParts]:
    """Loss, constant, C, P, D, gap, noise and status of each machine at its place in the grid."""
    places = np.array(fit.places)
    chosen = np.arange(len(places)), -1, places
    columns = [
        np.broadcast_to(Cs, len(places)),
        *(of[chosen] for of in (fit.primal, fit.dual, fit.gaps, fit.gap_noise)),
    ]
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    status = [_core.STATUS_NAMES[code] for code in fit.status[chosen]]
    return [
        (task.loss, task.constant, *of, name) for task, of, name in zip(machines.tasks, numbers, status, strict=True)
    ]
