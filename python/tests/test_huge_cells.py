"""One number of another size than all others: the model is that of the true kernel, or the error names the cell."""

import re
import warnings

import naive
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from kernelpath import KernelLogistic, KernelRegressor, KernelSVC

DISTANCES = ["rbf", "laplacian", "matern32", "matern52"]
CELLS = [999_999_999.0, 1e153, 1.5e154, -1e200, 1.7e308]
ROW = 7


def moons(cell):
    X, y = make_moons(300, noise=0.2, random_state=0)
    X[ROW, 0] = cell
    return X, y


def true_kernel(X, Z, kernel, gamma):
    """The kernel by its formula; a distance that no double can hold makes it 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = naive.gram(X, Z, kernel, gamma)
        far = ~np.isfinite(((X[:, None] - Z[None]) ** 2).sum(axis=2))
    return np.where(far, 0.0, K)


def coefficients(clf, n):
    beta = np.zeros(n)
    beta[clf.support_] = clf.dual_coef_[0]
    return beta


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kernel", DISTANCES)
def test_the_model_is_that_of_the_true_kernel(kernel, cell, kind):
    X, y = moons(cell)
    C, rows = 3.0, kind(X)
    clf = KernelSVC(kernel=kernel, gamma=2.0, Cs=C, cv=None, tol=1e-9, dtype="float64").fit(rows, y)
    K, beta = true_kernel(X, X, kernel, 2.0), coefficients(clf, len(y))
    primal, dual = naive.certificate(K, np.where(y == 1, 1, -1), C, beta, clf.intercept_[0])
    assert clf.gaps_.max() <= 1e-9
    assert abs(naive.relative_gap(primal, dual)) <= 1e-8
    assert clf.objective_ == pytest.approx(primal, rel=1e-9)
    assert clf.score(rows, y) >= 0.9
    # Prediction, of all rows and of one; and the proof from scratch.
    f = K @ beta + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(rows), f, rtol=0, atol=1e-9)
    for i in (0, ROW):
        np.testing.assert_allclose(clf.decision_function(rows[i : i + 1]), f[i : i + 1], rtol=0, atol=1e-9)
    assert clf.verify(rows, y).primal == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid"])
def test_a_kernel_that_overflows_names_the_cell(kernel, kind):
    X, y = moons(1e200)
    with pytest.raises(ValueError, match=re.escape(f"X[{ROW}, 0] = 1e200")):
        KernelSVC(kernel=kernel, gamma=1.0, Cs=1.0, cv=None).fit(kind(X), y)
    # In rows to predict.
    good = make_moons(300, noise=0.2, random_state=0)[0]
    clf = KernelSVC(kernel=kernel, gamma=1.0, Cs=1.0, cv=None, max_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an indefinite kernel
        clf.fit(good, y)
    X[ROW, 0] = 1e308
    if kernel == "linear":  # a sum of products with the weights, which overflows where these are large
        clf = KernelRegressor(kernel="linear", Cs=1e3, cv=None).fit(good, 10 * good[:, 0])
    values = clf.predict if kernel == "linear" else clf.decision_function
    for rows, row in [(X, ROW), (X[ROW : ROW + 1], 0)]:
        with pytest.raises(ValueError, match=re.escape(f"decision value of row {row} is") + ".*1e308"):
            values(kind(rows))
    # One that the kernel can hold is no error.
    X[ROW, 0] = 1e90
    assert np.isfinite(values(kind(X))).all()


def test_a_gamma_that_makes_infinite_distances_short_is_refused():
    X, y = moons(1e200)
    with pytest.raises(ValueError, match=re.escape(f"X[{ROW}, 0] = 1e200")):
        KernelSVC(gamma=1e-310, Cs=1.0, cv=None).fit(X, y)


def test_scale_names_the_cell():
    X, y = moons(1e200)
    with pytest.raises(ValueError, match=re.escape(f"X[{ROW}, 0] = 1e200") + ".*gamma as a number"):
        KernelSVC(gamma="scale", Cs=1.0, cv=None).fit(X, y)


def test_sigest_does_not_see_the_cell():
    X, y = moons(0.0)
    ordinary = KernelSVC(Cs=1.0, cv=None, random_state=0).fit(X, y).gamma_
    for cell in CELLS:
        X[ROW, 0] = cell
        assert KernelSVC(Cs=1.0, cv=None, random_state=0).fit(X, y).gamma_ == pytest.approx(ordinary, rel=0.05)


@pytest.mark.parametrize("landmarks", ["kmeans", "rpcholesky", "uniform"])
@pytest.mark.parametrize("cell", [999_999_999.0, 1e200, 1.7e308])
def test_low_rank_keeps_its_quality(landmarks, cell):
    settings = {"gamma": 2.0, "Cs": 3.0, "cv": None, "random_state": 0}
    low_rank = {**settings, "low_rank": True, "landmarks": landmarks, "n_landmarks": 60}
    X, y = moons(cell)
    clf = KernelLogistic(**low_rank).fit(X, y)
    ordinary = KernelLogistic(**low_rank).fit(*moons(0.0))
    assert clf.gaps_.max() <= 1e-6
    assert clf.approximation_.trace_error <= 2 * ordinary.approximation_.trace_error + 0.01
    assert clf.score(X, y) >= 0.9
    K = true_kernel(X, clf.landmarks_, "rbf", 2.0)
    f = K @ clf.dual_coef_[0] + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(X), f, rtol=0, atol=1e-7 * np.abs(clf.dual_coef_).sum())


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_one_long_row_leaves_the_landmarks_of_the_others(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    y = X[:, 1] - X[:, 2]
    X[ROW, 0] = 1e9
    common = {"kernel": kernel, "degree": 2, "coef0": 1.0, "gamma": 1.0, "Cs": 1.0, "cv": None, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelRegressor(**common, low_rank=True, landmarks="rpcholesky", n_landmarks=40).fit(X, y)
    features = 5 if kernel == "linear" else 21
    assert len(model.landmarks_) >= features
    assert len(model.approximation_.spectrum) >= features
    others = np.arange(len(X)) != ROW
    assert np.corrcoef(model.predict(X[others]), y[others])[0, 1] > 0.99


def test_repeated_rows_are_repeated_up_to_rounding():
    """A third of all pairs are rows that were computed twice, in different ways."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((3, 4)) + 5.0
    X = np.repeat(centres, 20, axis=0)
    exact = KernelSVC(Cs=1.0, cv=None, random_state=0).fit(X, np.arange(60) % 2).gamma_
    rounded = X * (1 + 2e-16 * rng.integers(-3, 4, X.shape))
    assert len(np.unique(rounded, axis=0)) > 30
    found = KernelSVC(Cs=1.0, cv=None, random_state=0).fit(rounded, np.arange(60) % 2).gamma_
    assert found == pytest.approx(exact, rel=1e-6)


def test_sigest_on_tight_clusters_predicts():
    """Clusters that are apart are no rounding: γ is then made for rows of one cluster, and serves new rows of it."""
    rng = np.random.default_rng(0)
    centres, labels = rng.standard_normal((6, 3)), np.arange(6) % 2
    of_row = np.repeat(np.arange(6), 50)
    X = centres[of_row] + 1e-4 * rng.standard_normal((300, 3))
    new = centres[of_row] + 1e-4 * rng.standard_normal((300, 3))
    clf = KernelSVC(Cs=[0.1, 1.0, 10.0], cv=3, random_state=0).fit(X, labels[of_row])
    assert clf.score(new, labels[of_row]) >= 0.97
