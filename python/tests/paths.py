"""Paths straight from the core, so that every C and fold can be looked at, not only the chosen one."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from kernelpath import _core
from kernelpath._machines import Machines, Task

SETTINGS = {
    "kernel": "rbf",
    "gamma": (1.0,),
    "degree": 3,
    "coef0": 0.0,
    "selection": "best",
    "solver": "auto",
    "tol": 1e-6,
    "max_iter": 1_000_000,
    "assume_definite": False,
    "time_budget": None,
    "dtype": "float64",
    "device": "cpu",
    "n_threads": 0,
    "low_rank": None,
    "n_landmarks": 2000,
    "rank": None,
}


@dataclass
class MachinePath:
    """The models of one machine with one γ."""

    fit: _core.Fit
    machine: int
    gamma: int
    n_cs: int

    def __getattr__(self, name):
        """primal, dual, gaps, gap_noise, status: of shape (n_folds + 1, n_cs); scores, which all machines may share."""
        of_machines = getattr(self.fit, name)
        of_machine = of_machines[min(self.machine, len(of_machines) - 1)]
        return of_machine[..., self._place(0) : self._place(self.n_cs)]

    @property
    def solver(self):
        return self.fit.solver

    @property
    def smallest_eigenvalue(self):
        return self.fit.smallest_eigenvalues[self.gamma]

    @property
    def intercepts(self):
        """One for each C, or for several classes a line for each C."""
        lines = [self.fit.intercepts_at(self.machine, self._place(k)) for k in range(self.n_cs)]
        return np.squeeze(lines, axis=1) if len(lines[0]) == 1 else np.array(lines)

    def coef(self, k):
        """One for each row or landmark, or for several classes a line for each class."""
        coef = self.fit.coef_at(self.machine, self._place(k))
        return coef[0] if len(coef) == 1 else coef

    def oof(self, fold, k):
        return self.fit.values(fold, self._place(k), self.machine)

    def oof_at(self, k):
        return self.fit.out_of_fold(self._place(k), self.machine)

    def _place(self, k):
        return self.gamma * self.n_cs + k


def fit_path(X, loss, constant, y, weight=None, *, cs, folds=None, watch=None, **settings):
    """The path of one machine."""
    gamma = settings.pop("gamma", 1.0)
    settings = SimpleNamespace(**SETTINGS | {"gamma": (gamma,)} | settings)
    machines = Machines([Task(loss, constant, y, weight)])
    return MachinePath(_core.fit(X, machines, settings, cs, folds, watch=watch), 0, 0, len(cs))
