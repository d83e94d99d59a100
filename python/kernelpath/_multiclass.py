"""Several classes by machines of two, one against the rest or one against one; or by one machine of all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_softmax, softmax

from kernelpath import _core

Matrix = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Machines:
    """Machines of two classes: `plus[m, k]` where class k is the positive one of machine m, `minus` likewise."""

    plus: npt.NDArray[np.bool_]
    minus: npt.NDArray[np.bool_]
    votes: bool

    @classmethod
    def one_against_rest(cls, n_classes: int) -> Machines:
        """A machine a class: it against all others."""
        plus = np.eye(n_classes, dtype=bool)
        return cls(plus, ~plus, votes=False)

    @classmethod
    def one_against_one(cls, n_classes: int) -> Machines:
        """A machine for each pair (i, j), i < j; as in scikit-learn's ``SVC``, the sign for i is +."""
        pairs = np.array(list(combinations(range(n_classes), 2)))
        classes = np.arange(n_classes)
        return cls(pairs[:, :1] == classes, pairs[:, 1:] == classes, votes=True)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.plus.shape[1]

    def names(self, classes: npt.NDArray[Any]) -> list[tuple[Any, Any]]:
        """The labels each machine sets apart; None for all others."""
        labels = classes.tolist()
        first, second = self.plus.argmax(axis=1), self.minus.argmax(axis=1)
        return [(labels[i], labels[j] if self.votes else None) for i, j in zip(first, second, strict=True)]

    def targets(self, m: int, index: Index) -> tuple[Matrix, npt.NDArray[np.int64] | None]:
        """Targets ±1 of machine `m` and the rows they are of (None: all), for rows of classes `index`."""
        positive = self.plus[m][index]
        rows = np.flatnonzero(positive | self.minus[m][index])
        if len(rows) == len(index):
            return np.where(positive, 1.0, -1.0), None
        return np.where(positive[rows], 1.0, -1.0), rows.astype(np.int64)

    def decision(self, values: Matrix) -> Matrix:
        """A value a class, from those of the machines, shape (n, n_machines): the largest is the prediction.

        One against rest: the machine's own. One against one: the votes, and between equal votes the sum of the values
        for the class, squeezed into (−1/3, 1/3), as in scikit-learn.
        """
        if not self.votes:
            return values
        return _core.votes(values, self._pairs, self.n_classes)

    @cached_property
    def _pairs(self) -> npt.NDArray[np.int64]:
        """The two classes of each machine of one against one."""
        return np.column_stack([self.plus.argmax(axis=1), self.minus.argmax(axis=1)]).astype(np.int64)

    def probabilities(self, positive: Matrix) -> Matrix:
        """A probability a class, from those of the machines' positive classes, shape (n, n_machines)."""
        return coupled(positive, self.plus, self.minus) if self.votes else normalised(positive)

    def native_probabilities(self, log_odds: Matrix) -> Matrix:
        """A probability a class, from the machines' log odds."""
        return self.probabilities(expit(log_odds))

    def native_log_probabilities(self, log_odds: Matrix) -> Matrix:
        """Their logarithms; −inf where a probability is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.native_probabilities(log_odds))


class Multinomial(Machines):
    """One machine with a value a class, whose probabilities are the softmax of all."""

    @classmethod
    def of(cls, n_classes: int) -> Machines:
        """The machine of `n_classes` classes."""
        return cls.one_against_rest(n_classes)

    def names(self, classes: npt.NDArray[Any]) -> list[tuple[Any, Any]]:
        """None: no machine sets two apart."""
        return []

    def native_probabilities(self, log_odds: Matrix) -> Matrix:
        """The softmax of the values, exp f_c / Σ exp f."""
        return softmax(log_odds, axis=1)

    def native_log_probabilities(self, log_odds: Matrix) -> Matrix:
        """f_c − log Σ exp f, finite where the probability itself is 0 in float64."""
        return log_softmax(log_odds, axis=1)


def normalised(positive: Matrix) -> Matrix:
    """Each row divided by its sum; equal parts where all are 0."""
    total = positive.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, positive / np.where(total > 0.0, total, 1.0), 1.0 / positive.shape[1])


def coupled(positive: Matrix, plus: npt.NDArray[np.bool_], minus: npt.NDArray[np.bool_]) -> Matrix:
    """Class probabilities p that fit pairwise ones r best: they minimise Σ (r_ji p_i − r_ij p_j)² over the pairs.

    (The second method of Wu, Lin and Weng, 2004.) The minimum under Σp = 1 is p ∝ Q⁻¹1, with Q_ii = Σ r_ji² and
    Q_ij = −r_ji r_ij; Q is singular only if it is 0 along p itself, so a little is added to its diagonal.
    """
    n, n_classes = len(positive), plus.shape[1]
    r = np.clip(positive, 1e-7, 1.0 - 1e-7)
    first, second = plus.argmax(axis=1), minus.argmax(axis=1)
    won = np.zeros((n, n_classes, n_classes))  # won[:, i, j]: the probability of i against j
    won[:, first, second] = r
    won[:, second, first] = 1.0 - r
    Q = -won * won.transpose(0, 2, 1)
    diagonal = np.arange(n_classes)
    Q[:, diagonal, diagonal] = (won**2).sum(axis=1) + 1e-12
    p = np.linalg.solve(Q, np.ones((n, n_classes, 1)))[..., 0]
    return normalised(np.clip(p, 0.0, None))
