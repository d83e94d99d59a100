"""The models of one machine over C and γ, as one path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpath import _core

Matrix = npt.NDArray[np.float64]
Path = _core.PathFit


@dataclass(frozen=True)
class Surface:
    """The paths of one machine, one a γ, laid end to end: position g · n_Cs + c is the c-th C of the g-th γ.

    The values of a multinomial machine have one more axis, the last, for the classes.
    """

    paths: list[Path]

    @property
    def scores(self) -> Matrix:
        """Weighted mean scores of the folds, shape (n_folds, n_gammas · n_Cs)."""
        return self._side_by_side("scores")

    @property
    def gaps(self) -> Matrix:
        """Relative duality gaps of the folds and the refit."""
        return self._side_by_side("gaps")

    @property
    def gap_noise(self) -> Matrix:
        """Rounding noise of the gaps."""
        return self._side_by_side("gap_noise")

    @property
    def status(self) -> npt.NDArray[np.str_]:
        """How each solve ended."""
        return np.array(_core.STATUS_NAMES)[self._side_by_side("status")]

    @property
    def n_iter(self) -> npt.NDArray[np.int64]:
        """Steps of each solve."""
        return self._side_by_side("n_iter")

    @property
    def n_support(self) -> npt.NDArray[np.int64]:
        """Rows of the refit with β ≠ 0."""
        return self._side_by_side("n_support")

    @property
    def timed_out(self) -> bool:
        """Whether the time budget ended the fit."""
        return any(path.timed_out for path in self.paths)

    @cached_property
    def n_Cs(self) -> int:
        """Number of C's of a path."""
        return int(self.paths[0].gaps.shape[1])

    def __len__(self) -> int:
        return len(self.paths) * self.n_Cs

    def oof_at(self, k: int) -> Matrix:
        """Mean value of each row over the folds that held it out, at position `k`."""
        path, c = self.at(k)
        return path.oof_at(c)

    def oof_matrix(self) -> Matrix:
        """The same at every position, shape (n, n_gammas · n_Cs)."""
        return np.column_stack([self.oof_at(k) for k in range(len(self))])

    def coef(self, k: int) -> npt.NDArray[np.float64]:
        """β of the refit at position `k`: one a row, or a line a class."""
        path, c = self.at(k)
        return path.coef(c)

    def refit(self, k: int) -> tuple[Matrix, float, float]:
        """Intercept, primal and dual value of the refit at position `k`."""
        path, c = self.at(k)
        return np.atleast_1d(path.intercepts[c]), float(path.primal[-1, c]), float(path.dual[-1, c])

    def at(self, k: int) -> tuple[Path, int]:
        """The path of position `k`, and which of its C's it is."""
        gamma, c = divmod(k, self.n_Cs)
        return self.paths[gamma], c

    def _side_by_side(self, name: str) -> Any:
        return _joined([getattr(path, name) for path in self.paths])


def held_out(surfaces: list[Surface], fold: int, k: int) -> Matrix:
    """Values of a fold's test rows at position `k`; of several machines, a column each."""
    gamma, c = divmod(k, surfaces[0].n_Cs)
    paths: list[Any] = [surface.paths[gamma] for surface in surfaces]
    return paths[0].oof(fold, c) if len(paths) == 1 else _core.held_out(paths, fold, c)


def _joined(parts: list[Any]) -> Any:
    """Side by side; a single part is not copied."""
    return parts[0] if len(parts) == 1 else np.hstack(parts)
