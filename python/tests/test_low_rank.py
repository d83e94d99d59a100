"""low_rank=True: the certificate, the exact estimators on the same kernel, the attributes, and what is refused."""

import itertools
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import matplotlib
import naive
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpath import (
    KernelDWD,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
    NystromFeatures,
    _core,
)
from kernelpath.datasets import make_mixture
from kernelpath.display import CalibrationDisplay, CVCurveDisplay, GapDisplay, SupportPathDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# An estimator, and its losses in the words of the naive twins.
ESTIMATORS = {
    "svc": (KernelSVC(), [("hinge", 0.0)]),
    "squared-hinge": (KernelSVC(loss="squared_hinge"), [("squared_hinge", 0.0)]),
    "logistic": (KernelLogistic(), [("logistic", 0.0)]),
    "dwd": (KernelDWD(), [("dwd", 0.0)]),
    "quantile": (KernelQuantile(tau=0.3), [("quantile", 0.3)]),
    "quantiles": (KernelQuantile(tau=[0.2, 0.5, 0.8]), [("quantile", tau) for tau in (0.2, 0.5, 0.8)]),
    "svr": (KernelSVR(epsilon=0.2), [("epsilon_insensitive", 0.2)]),
    "squared": (KernelRegressor(), [("squared", 0.0)]),
    "huber": (KernelRegressor(loss="huber", delta=0.5), [("huber", 0.5)]),
    "expectile": (KernelRegressor(loss="expectile", tau=0.8), [("expectile", 0.8)]),
}
Cs = [10.0, 0.1, 1.0]  # out of order on purpose
TOL = 1e-10
FOLDS = list(KFold(3, shuffle=True, random_state=0).split(np.arange(120)))
SETTINGS = {"Cs": Cs, "cv": FOLDS, "gamma": 0.4, "tol": TOL, "dtype": "float64", "random_state": 0}
KEPT = ("rank_", "landmarks_", "landmark_indices_", "approximation_")

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture(scope="module")
def data():
    """120 rows, labels, and targets with a slope, a wave and noise."""
    X, y = make_mixture(120, 3, random_state=0)
    noise = np.random.RandomState(1).standard_normal(120)
    return X, y, X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * noise


@pytest.fixture(scope="module")
def points():
    """Landmarks that are no rows."""
    return np.random.RandomState(2).standard_normal((20, 3))


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def made(name, **parameters):
    return clone(ESTIMATORS[name][0]).set_params(**SETTINGS | {"low_rank": True} | parameters)


def target(name, data):
    return data[1 if is_classifier(ESTIMATORS[name][0]) else 2]


def values(model, X):
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def slack(name, y, Cs, tol=TOL):
    """How far the values of two models with a gap of `tol` may lie apart, a row a loss and a column a C.

    ½‖h − h*‖² ≤ tol P and P ≤ C Σ L(y, 0); with k(x, x) ≤ 1 each h = f − b is within √(2 tol P) of the optimum.
    """
    losses = ESTIMATORS[name][1]
    at_zero = [naive.LOSSES[loss]["value"](y, np.zeros(len(y)), constant).sum() for loss, constant in losses]
    return 2.0 * np.sqrt(2.0 * tol * np.outer(at_zero, Cs))


def assert_close(name, f, g, allowed):
    """Values of one model by two fits, rows last; b follows h, unless a loss with kinks leaves it open."""
    difference = f - g
    assert (np.ptp(difference, axis=-1) <= 2.0 * allowed).all()
    if ESTIMATORS[name][1][0][0] in naive.SMOOTH:
        assert (np.abs(difference).max(axis=-1) <= 2.0 * allowed).all()


def assert_same(name, a, b, y, tol=TOL):
    """Two fits on the same folds: objectives, choices and held-out values agree as well as the gaps say."""
    assert max(a.gaps_.max(), b.gaps_.max()) <= tol
    np.testing.assert_array_equal(a.C_, b.C_)
    np.testing.assert_allclose(a.objective_, b.objective_, rtol=2 * tol)
    for _, test in FOLDS:
        f, g = (np.swapaxes(model.oof_path_.reshape(-1, 120, len(Cs))[:, test], 1, 2) for model in (a, b))
        assert_close(name, f, g, slack(name, y, Cs, tol))


def chosen(name, model, y, tol=TOL):
    """`slack` at the chosen C."""
    return np.diag(slack(name, y, np.ravel(model.C_), tol))


# What is solved


@every_estimator
def test_every_model_has_its_certificate(name, data):
    """In single precision, on the default grid, with landmarks by rule; the objective is that of the formula."""
    X, y = data[0], target(name, data)
    model = made(name, Cs=9, gamma="sigest", tol=1e-6, dtype="auto", n_landmarks=30).fit(X, y)
    losses = ESTIMATORS[name][1]
    assert model.gaps_.size == 9 * 4 * len(losses)
    assert model.gaps_.max() <= 1e-6
    assert (model.status_ == "converged").all()
    assert model.solver_ == "newton"
    K = rbf_kernel(model.landmarks_, gamma=model.gamma_)
    f = _core.kernel_matrix(X, model.landmarks_, kernel="rbf", gamma=model.gamma_, degree=3, coef0=0.0)
    for k, (loss, constant) in enumerate(losses):
        beta, b = model.dual_coef_[k], model.intercept_[k]
        C, objective = np.ravel(model.C_)[k], np.ravel(model.objective_)[k]
        primal = C * naive.LOSSES[loss]["value"](y, f @ beta + b, constant).sum() + beta @ K @ beta / 2
        assert primal == pytest.approx(objective, rel=1e-5)
        assert np.ravel(model.dual_objective_)[k] <= objective


@every_estimator
def test_all_rows_as_landmarks_are_the_exact_model(name, data):
    X, y = data[0], target(name, data)
    exact = made(name, low_rank=False).fit(X, y)
    model = made(name, landmarks=np.arange(120)).fit(X, y)
    assert_same(name, model, exact, y, tol=1e-9)
    assert model.approximation_.trace_error < 1e-9
    f, g = (np.atleast_2d(values(fitted, X).T) for fitted in (model, exact))
    assert_close(name, f, g, chosen(name, model, y, tol=1e-9))


@every_estimator
@pytest.mark.parametrize("rank", [None, 8])
def test_exact_on_the_same_kernel(name, rank, data, points):
    X, y = data[0], target(name, data)
    model = made(name, landmarks=points, rank=rank).fit(X, y)
    Z = NystromFeatures(landmarks=points, rank=rank, gamma=0.4, dtype="float64").fit_transform(X)
    exact = made(name, kernel="precomputed", low_rank=False).fit(Z @ Z.T, y)
    assert_same(name, model, exact, y, tol=1e-9)
    assert model.rank_ == Z.shape[1] == (rank or 20)
