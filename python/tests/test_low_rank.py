"""low_rank=True: the certificate, the exact estimators on the same kernel, the attributes, and what is refused."""

import pickle
import sys
import textwrap
import time
import warnings

import matplotlib
import naive
import numpy as np
import pandas as pd
import pytest
from children import interrupted_in
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.utils import estimator_checks
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


@every_estimator
def test_sparse_is_dense(name, data, points):
    rng = np.random.RandomState(3)
    X, y = data[0] * (rng.rand(120, 3) < 0.5), target(name, data)
    dense = made(name, landmarks=points).fit(X, y)
    for landmarks in (points, sparse.csr_matrix(points)):
        model = made(name, landmarks=landmarks).fit(sparse.csr_array(X), y)
        assert_same(name, model, dense, y)
        f, g = (np.atleast_2d(values(dense, rows).T) for rows in (X, sparse.coo_matrix(X)))
        np.testing.assert_allclose(f, g, rtol=1e-12, atol=1e-12)


@every_estimator
def test_predictions_are_the_expansion_over_landmarks(name, data):
    X, y = data[0], target(name, data)
    model = made(name, n_landmarks=15, rank=10).fit(X, y)
    new = np.random.RandomState(4).standard_normal((30, 3))
    expected = naive.gram(new, model.landmarks_, gamma=0.4) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(values(model, new), np.squeeze(expected), atol=1e-10 * np.abs(model.dual_coef_).sum())
    assert model.dual_coef_.shape == (len(ESTIMATORS[name][1]), 15)


def test_equal_rows_are_one_row(data, points):
    """Of larger weight: features are computed and kept once, and the models are those of weights, to the bit."""
    X, y = data[0], target("svc", data)
    once = made("svc", landmarks=points).fit(X, y, sample_weight=np.full(120, 3.0))
    folds = [tuple(np.concatenate([part, part + 120, part + 240]) for part in fold) for fold in FOLDS]
    thrice = made("svc", landmarks=points, cv=folds).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    assert thrice.gram_bytes_ == once.gram_bytes_ == 120 * once.rank_ * 8
    np.testing.assert_array_equal(thrice.objective_, once.objective_)
    np.testing.assert_array_equal(thrice.dual_coef_, once.dual_coef_)


@every_estimator
def test_weights_are_repetitions(name, data, points):
    """With landmarks given; a rule draws others among other rows."""
    X, y = data[0], target(name, data)
    weight = np.random.RandomState(5).randint(0, 4, 120)
    repeated = np.repeat(np.arange(120), weight)
    parts = [tuple(np.flatnonzero(np.isin(repeated, part)) for part in fold) for fold in FOLDS]
    weighted = made(name, landmarks=points).fit(X, y, sample_weight=weight)
    twin = made(name, landmarks=points, cv=parts).fit(X[repeated], y[repeated])
    np.testing.assert_array_equal(twin.C_, weighted.C_)
    np.testing.assert_allclose(twin.objective_, weighted.objective_, rtol=2 * TOL)
    np.testing.assert_allclose(twin.scores_, weighted.scores_, atol=slack(name, y[repeated], 10.0).max())
    f, g = (np.atleast_2d(values(model, X).T) for model in (twin, weighted))
    assert_close(name, f, g, chosen(name, twin, y[repeated]))
    oof = weighted.oof_decision_.reshape(-1, 120)
    assert (np.isnan(oof) == (weight == 0)).all()


@every_estimator
@pytest.mark.parametrize("landmarks", ["kmeans", "rpcholesky", "uniform"])
def test_weight_zero_is_no_row(name, landmarks, data):
    X, y = data[0], target(name, data)
    kept = np.flatnonzero(np.random.RandomState(6).rand(120) < 0.7)
    weight = np.zeros(120)
    weight[kept] = 1.0
    common = {"landmarks": landmarks, "n_landmarks": 12, "cv": 3, "gamma": "sigest"}
    weighted = made(name, **common).fit(X, y, sample_weight=weight)
    without = made(name, **common).fit(X[kept], y[kept])
    np.testing.assert_array_equal(weighted.scores_, without.scores_)
    np.testing.assert_array_equal(values(weighted, X), values(without, X))
    if landmarks == "kmeans":
        assert weighted.landmark_indices_ is None
        assert weighted.support_.shape == (0,)
    else:
        np.testing.assert_array_equal(weighted.landmark_indices_, kept[without.landmark_indices_])
        np.testing.assert_array_equal(weighted.support_, weighted.landmark_indices_)
        np.testing.assert_array_equal(weighted.landmarks_, X[weighted.landmark_indices_])


def test_landmarks_named_beside_rows_of_weight_zero(data):
    X, y, _ = data
    weight = np.where(np.arange(120) < 30, 0.0, 1.0)
    named = made("svc", landmarks=[119, 40, 40], cv=3).fit(X, y, sample_weight=weight)
    assert named.landmark_indices_.tolist() == [119, 40, 40]
    np.testing.assert_array_equal(named.landmarks_, X[[119, 40, 40]])
    given = made("svc", landmarks=X[[119, 40, 40]], cv=3).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(named.decision_function(X), given.decision_function(X))
    for landmarks, message in (([50, 7], "row 7 has weight 0"), ([120], "no row 120: X has 120 rows")):
        with pytest.raises(ValueError, match=message):
            made("svc", landmarks=landmarks).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("class_weight", [{1: 3.0}, "balanced"])
def test_class_weights_multiply(class_weight, data, points):
    X, y = data[0], np.where(data[0][:, 0] > 0.7, 1, -1)
    weight = np.random.RandomState(7).randint(1, 3, 120).astype(float)
    total = {label: weight[y == label].sum() for label in (-1, 1)}
    factor = {-1: 1.0, 1: 3.0} if class_weight != "balanced" else {k: weight.sum() / (2 * v) for k, v in total.items()}
    by_hand = weight * np.where(y == 1, factor[1], factor[-1])
    one = {"landmarks": points, "Cs": 1.0, "cv": None}
    ours = made("svc", class_weight=class_weight, **one).fit(X, y, sample_weight=weight)
    plain = made("svc", **one).fit(X, y, sample_weight=by_hand)
    assert plain.objective_ == pytest.approx(ours.objective_, rel=2 * TOL)
    bound = 2 * np.sqrt(2 * TOL * ours.objective_)
    assert np.ptp(ours.decision_function(X) - plain.decision_function(X)) <= 2 * bound
    unweighted = made("svc", **one).fit(X, y)
    assert np.ptp(ours.decision_function(X) - unweighted.decision_function(X)) > 100 * bound


def test_rows_in_several_folds(data, points):
    """Held out twice: the mean of both values; trained on twice: a weight of 2."""
    X, y, _ = data
    splits = list(ShuffleSplit(4, test_size=0.3, random_state=0).split(X))
    splits[0] = (np.concatenate([splits[0][0], splits[0][0][:20]]), splits[0][1])
    model = made("logistic", landmarks=points, cv=splits, Cs=1.0).fit(X, y)
    sums, counts = np.zeros(120), np.zeros(120)
    for train, test in splits:
        alone = made("logistic", landmarks=points, cv=None, Cs=1.0).fit(X[train], y[train])
        sums[test] += alone.decision_function(X[test])
        counts[test] += 1
    expected = np.divide(sums, counts, out=np.full(120, np.nan), where=counts > 0)
    np.testing.assert_array_equal(np.isnan(model.oof_decision_), counts == 0)
    assert (counts > 1).any()
    np.testing.assert_allclose(model.oof_decision_, expected, atol=2 * slack("logistic", np.tile(y, 2), 1.0).max())


# What is chosen


@pytest.mark.parametrize("kind", [KernelSVC, KernelLogistic])
def test_bandwidths_are_tuned_with_C(kind, data):
    """Each with landmarks and features of its own; the model keeps those of the chosen one."""
    X, y, _ = data
    common = {**SETTINGS, "low_rank": True, "landmarks": "rpcholesky", "n_landmarks": 15}
    model = kind(**common | {"gamma": [0.03, 0.3, 3.0]}).fit(X, y)
    assert model.scores_.shape == (3, 3, 3)
    assert model.gaps_.shape == (4, 3, 3)
    assert model.gaps_.max() <= TOL
    alone = [kind(**common | {"gamma": gamma}).fit(X, y) for gamma in (0.03, 0.3, 3.0)]
    for g, apart in enumerate(alone):
        np.testing.assert_array_equal(model.scores_[:, g], apart.scores_)
        if model.gamma_ == apart.gamma_:
            np.testing.assert_array_equal(model.decision_function(X), apart.decision_function(X))
            np.testing.assert_array_equal(model.landmark_indices_, apart.landmark_indices_)
            assert model.approximation_.trace_error == apart.approximation_.trace_error
    assert model.best_score_ == max(apart.best_score_ for apart in alone)
    assert model.path_table().count("*") == 1
    grid = kind(**common | {"gamma": "auto-grid"}).fit(X, y)
    assert grid.gammas_.shape == (6,)


def test_scoring_and_selection(data, points):
    X, y, _ = data
    model = made("svc", landmarks=points, scoring="roc_auc").fit(X, y)
    for k, (_, test) in enumerate(FOLDS):
        expected = [roc_auc_score(y[test], f) for f in model.oof_path_[test].T]
        np.testing.assert_allclose(model.scores_[k], expected)
    careful = made("svc", landmarks=points, scoring="roc_auc", selection="1se", Cs=9).fit(X, y)
    mean, error = careful.scores_.mean(axis=0), careful.scores_.std(axis=0, ddof=1) / np.sqrt(3)
    within = mean >= mean.max() - error[mean.argmax()]
    assert careful.C_ == careful.Cs_[within].min()


def test_inside_a_grid_search(data):
    X, y, _ = data
    search = GridSearchCV(KernelSVC(low_rank=True, Cs=1.0, cv=None, random_state=0), {"n_landmarks": [1, 40]}, cv=3)
    search.fit(X, y)
    assert search.best_params_ == {"n_landmarks": 40}
    assert search.best_estimator_.rank_ == 40


# More than two classes, and probabilities


@pytest.fixture(scope="module")
def classes():
    X, y = make_blobs(120, n_features=3, centers=4, cluster_std=3.0, random_state=1)
    return X, np.array(["b", "d", "a", "c"])[y]


@pytest.mark.parametrize("kind", [KernelSVC, KernelLogistic, KernelDWD])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("tune", ["joint", "each"])
def test_several_classes_are_the_exact_model_on_the_same_kernel(kind, multi_class, tune, classes):
    X, y = classes
    landmarks = X[::4] + 0.1
    # At a small C all rows of a pair are at a bound of the hinge, and b is not unique.
    common = {**SETTINGS, "Cs": [10.0, 1.0, 3.0], "gamma": 0.05, "multi_class": multi_class, "tune": tune}
    model = kind(**common, low_rank=True, landmarks=landmarks).fit(X, y)
    Z = NystromFeatures(landmarks=landmarks, gamma=0.05, dtype="float64").fit_transform(X)
    exact = kind(**common | {"kernel": "precomputed"}).fit(Z @ Z.T, y)
    assert model.gaps_.max() <= TOL
    assert model.machines_ == exact.machines_
    assert model.dual_coef_.shape == ({"ovo": 6, "ovr": 4}[multi_class], 30)
    np.testing.assert_array_equal(model.scores_, exact.scores_)
    np.testing.assert_array_equal(model.C_, exact.C_)
    np.testing.assert_allclose(model.objective_, exact.objective_, rtol=2 * TOL)
    np.testing.assert_array_equal(model.predict(X), exact.predict(Z @ Z.T))
    np.testing.assert_array_equal(
        model.classes_[model.oof_decision_.argmax(axis=1)], exact.classes_[exact.oof_decision_.argmax(axis=1)]
    )


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_machines_of_several_classes(multi_class, classes):
    """Each is the model of two classes on the same landmarks; a rule's landmarks serve all machines."""
    X, y = classes
    common = {**SETTINGS, "Cs": 2.0, "cv": None, "gamma": 0.05, "low_rank": True}
    model = KernelLogistic(**common, multi_class=multi_class, landmarks="rpcholesky", n_landmarks=40).fit(X, y)
    values = naive.gram(X, model.landmarks_, gamma=0.05) @ model.dual_coef_.T + model.intercept_
    for m, (positive, negative) in enumerate(model.machines_):
        rows = np.ones(len(y), bool) if negative is None else (y == positive) | (y == negative)
        alone = KernelLogistic(**common, landmarks=model.landmarks_).fit(X[rows], y[rows] == positive)
        bound = 4 * np.sqrt(2 * TOL * alone.objective_)
        np.testing.assert_allclose(values[:, m], alone.decision_function(X), atol=bound)
        assert model.objective_[m] == pytest.approx(alone.objective_, rel=2 * TOL)


MULTINOMIAL = {**SETTINGS, "gamma": 0.05, "multi_class": "multinomial"}


def apart(model):
    """How far the values of two multinomial models may lie apart: √(2 (P − D)) each, and b with them; P ≤ C n log 4."""
    return 4.0 * np.sqrt(2.0 * TOL * model.C_ * 120 * np.log(4.0))


@pytest.mark.parametrize("rank", [None, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_multinomial_loss_is_the_exact_model_on_the_same_kernel(rank, weighted, classes):
    X, y = classes
    weight = np.random.RandomState(0).choice([0.0, 0.5, 1.0, 3.0], len(y)) if weighted else None
    landmarks = X[::4] + 0.1
    model = KernelLogistic(**MULTINOMIAL, low_rank=True, landmarks=landmarks, rank=rank).fit(X, y, sample_weight=weight)
    Z = NystromFeatures(landmarks=landmarks, gamma=0.05, rank=rank, dtype="float64").fit_transform(X)
    exact = KernelLogistic(**MULTINOMIAL | {"kernel": "precomputed"}).fit(Z @ Z.T, y, sample_weight=weight)
    assert model.gaps_.shape == (4, 3)
    assert model.gaps_.max() <= TOL
    assert model.rank_ == (rank or 30)
    assert model.dual_coef_.shape == (4, 30)
    assert model.C_ == exact.C_
    assert model.objective_ == pytest.approx(exact.objective_, rel=2 * TOL)
    np.testing.assert_allclose(model.oof_decision_, exact.oof_decision_, atol=(1.0 + weighted) * apart(model))
    expansion = naive.gram(X, landmarks, gamma=0.05) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expansion, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), softmax(expansion, axis=1), atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), exact.predict(Z @ Z.T))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("C", Cs)
def test_folds_of_the_multinomial_loss_are_refits_on_the_features(C, classes):
    X, y = classes
    model = KernelLogistic(**MULTINOMIAL | {"Cs": C}, low_rank=True, landmarks=X[::4] + 0.1).fit(X, y)
    Z = NystromFeatures(landmarks=model.landmarks_, gamma=0.05, dtype="float64").fit_transform(X)
    for train, test in FOLDS:
        refit = LogisticRegression(C=C, solver="newton-cg", tol=1e-9, max_iter=10_000).fit(Z[train], y[train])
        f = refit.decision_function(Z[test]) - refit.intercept_.mean()
        np.testing.assert_allclose(model.oof_decision_[test], f, atol=apart(model))


def test_the_multinomial_loss_at_full_rank_is_exact(classes):
    X, y = classes
    exact = KernelLogistic(**MULTINOMIAL).fit(X, y)
    model = KernelLogistic(**MULTINOMIAL, low_rank=True, landmarks=np.arange(120)).fit(X, y)
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    np.testing.assert_allclose(model.oof_decision_, exact.oof_decision_, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_the_multinomial_loss_in_single_precision(kind, classes):
    """On the default grid, by a rule, dense and sparse, threads no matter."""
    X, y = classes
    settings = {"multi_class": "multinomial", "low_rank": True, "n_landmarks": 40, "cv": 3, "random_state": 0}
    one, two = (KernelLogistic(**settings, Cs=9, n_jobs=n_jobs).fit(kind(X), y) for n_jobs in (1, 2))
    assert one.gaps_.max() <= 1e-6
    np.testing.assert_array_equal(one.oof_decision_, two.oof_decision_)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert accuracy_score(y, one.predict(X)) > 0.6
    short = KernelLogistic(**settings, Cs=9, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="gap"):
        assert short.fit(kind(X), y).gaps_.max() > 1e-6


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("name", ["svc", "dwd"])
def test_probabilities(name, method, data, points):
    X, y, _ = data
    model = made(name, landmarks=points, probability=method).fit(X, y)
    Z = NystromFeatures(landmarks=points, gamma=0.4, dtype="float64").fit_transform(X)
    exact = made(name, kernel="precomputed", low_rank=False, probability=method).fit(Z @ Z.T, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p[:, 1], model.calibration_.probability(model.decision_function(X)))
    assert model.oof_proba_.shape == (120, 2)
    if method == "isotonic":  # a map of steps: equal but near a step
        assert np.mean(np.abs(p - exact.predict_proba(Z @ Z.T)) > 1e-3) < 0.05
    else:  # the slope of a sigmoid is at most a quarter of that of its log-odds
        steep = abs(model.calibration_.slope)
        bound = (1.0 + steep) * 4 * chosen(name, model, y).max()
        np.testing.assert_allclose(p, exact.predict_proba(Z @ Z.T), atol=bound)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("method", [True, "isotonic", "temperature"])
def test_probabilities_of_several_classes(method, multi_class, classes):
    X, y = classes
    model = KernelSVC(
        low_rank=True, n_landmarks=40, Cs=[0.5, 5.0], cv=3, probability=method, multi_class=multi_class, random_state=0
    ).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert accuracy_score(y, model.classes_[p.argmax(axis=1)]) > 0.6
    assert accuracy_score(y, model.classes_[model.oof_proba_.argmax(axis=1)]) > 0.5
    assert len(model.calibration_) == len(model.machines_)


def test_probabilities_of_the_logistic_loss_need_no_calibration(data, points):
    X, y, _ = data
    model = made("logistic", landmarks=points).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))


# Kernels, data and landmarks


@pytest.mark.filterwarnings("ignore::kernelpath.IndefiniteKernelWarning")
@pytest.mark.parametrize("kernel", [k for k in _core.KERNELS if k != "precomputed"])
@pytest.mark.parametrize("name", ["svc", "logistic", "svr"])
def test_every_kernel(kernel, name, data):
    """At large C's too, in single precision."""
    X, y = data[0], target(name, data)
    options = {"gamma": 0.05, "coef0": 1.0, "n_landmarks": 25, "Cs": 7, "tol": 1e-6, "dtype": "auto"}
    model = made(name, kernel=kernel, **options).fit(X, y)
    if kernel == "sigmoid":
        assert (model.status_ == "indefinite").all()
    else:
        assert model.gaps_.max() <= 1e-6
    assert (model.gamma_ is None) == (kernel == "linear")
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["svc", "quantiles", "squared"])
def test_precomputed_and_callable_kernels(name, weighted, data):
    X, y = data[0], target(name, data)
    weight = np.random.RandomState(8).randint(0, 3, 120) if weighted else None
    rows = np.flatnonzero(np.ones(120) if weight is None else weight)[::5]
    K = naive.gram(X, X, gamma=0.4)
    model = made(name, landmarks=rows).fit(X, y, sample_weight=weight)
    matrix = made(name, landmarks=rows, kernel="precomputed").fit(K, y, sample_weight=weight)
    function = made(name, landmarks=rows, kernel=lambda A, B: naive.gram(A, B, gamma=0.4))
    function.fit(X, y, sample_weight=weight)
    # The same numbers to rounding, which the inverse root of the landmarks' matrix enlarges.
    f = np.atleast_2d(values(model, X).T)
    for g in (values(matrix, K), values(function, X)):
        assert_close(name, f, np.atleast_2d(g.T), slack(name, np.tile(y, 2), 10.0).max())
    np.testing.assert_array_equal(matrix.landmark_indices_, rows)
    np.testing.assert_array_equal(matrix.support_, rows)
    assert matrix.landmarks_.shape == matrix.support_vectors_.shape == (0, 0)
    np.testing.assert_array_equal(function.landmarks_, X[rows])
    assert function.gaps_.max() <= TOL


def test_rules_of_a_precomputed_kernel(data):
    X, y, _ = data
    K = rbf_kernel(X, gamma=0.4)
    auto, named = (
        made("svc", kernel="precomputed", landmarks=rule, n_landmarks=9).fit(K, y) for rule in ("auto", "rpcholesky")
    )
    np.testing.assert_array_equal(auto.landmark_indices_, named.landmark_indices_)
    for kernel, rows in (("precomputed", K), (rbf_kernel, X)):
        with pytest.raises(ValueError, match='knows rows only.*"uniform", "rpcholesky", or indices'):
            made("svc", kernel=kernel, landmarks="kmeans").fit(rows, y)


def test_memory_map(data, points, tmp_path):
    X, y, _ = data
    file = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=X.shape)
    file[:] = X
    file.flush()
    mapped = np.memmap(tmp_path / "X", dtype=np.float32, mode="r", shape=X.shape)
    for landmarks in (points, "kmeans", "rpcholesky"):
        model, plain = (
            made("svc", landmarks=landmarks, n_landmarks=20).fit(rows, y) for rows in (mapped, X.astype(np.float32))
        )
        np.testing.assert_array_equal(model.oof_path_, plain.oof_path_)
        np.testing.assert_array_equal(model.decision_function(mapped), plain.decision_function(X.astype(np.float32)))


def test_data_frames(data):
    X, y, _ = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = made("svc", n_landmarks=10).fit(frame, y)
    np.testing.assert_array_equal(
        model.decision_function(frame), made("svc", n_landmarks=10).fit(X, y).decision_function(X)
    )
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("landmarks", ["kmeans", "rpcholesky", "uniform"])
def test_fewer_rows_than_landmarks(landmarks, data):
    X, y, _ = data
    exact = made("svc", low_rank=False).fit(X, y)
    model = made("svc", landmarks=landmarks, n_landmarks=2000).fit(X, y)
    assert model.rank_ <= 120
    assert_same("svc", model, exact, y, tol=1e-9)


@pytest.mark.parametrize("name", ["svc", "logistic", "huber"])
def test_repeated_landmarks(name, data, points):
    X, y = data[0], target(name, data)
    once = made(name, landmarks=points).fit(X, y)
    twice = made(name, landmarks=np.vstack([points, points[:7]])).fit(X, y)
    assert (once.rank_, twice.rank_) == (20, 20)
    assert twice.dual_coef_.shape == (1, 27)
    assert_same(name, twice, once, y, tol=1e-9)


@pytest.mark.parametrize("name", ["svc", "quantile", "squared"])
def test_linear_kernel_of_few_features_has_their_rank(name, data):
    X, y = data[0], target(name, data)
    model = made(name, kernel="linear", landmarks=np.arange(50)).fit(X, y)
    assert model.rank_ == 3
    assert model.approximation_.trace_error < 1e-12
    exact = made(name, kernel="linear", low_rank=False).fit(X, y)
    np.testing.assert_allclose(model.objective_, exact.objective_, rtol=2 * TOL)


def test_linear_kernel_of_columns_far_from_zero():
    rng = np.random.RandomState(0)
    X = 100 + rng.normal(size=(40, 1))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 100, 1, -1)
    model = KernelSVC(kernel="linear", low_rank=True, dtype="float64", Cs=5, cv=2, random_state=0).fit(X, y)
    assert model.gaps_.max() <= 1e-6


def test_constant_features(data, points):
    X, y, _ = data
    # (From five columns on, distances are found by products, which round otherwise.)
    wide, marks = (np.column_stack([rows, np.full(len(rows), 7.0)]) for rows in (X, points))
    model, plain = made("svc", landmarks=marks).fit(wide, y), made("svc", landmarks=points).fit(X, y)
    np.testing.assert_array_equal(model.oof_path_, plain.oof_path_)
    nothing = made("logistic", n_landmarks=5).fit(np.ones((120, 2)), y)  # a constant kernel: b alone
    assert nothing.rank_ == 1
    share = [np.mean(y[train] == 1) for train, _ in FOLDS]
    expected = [np.log(p / (1 - p)) for p in share]
    for (_, test), f in zip(FOLDS, expected, strict=True):
        np.testing.assert_allclose(nothing.oof_path_[test], f, atol=slack("logistic", y, 10.0).max())


def test_rank_truncates_the_spectrum(data):
    X, y, _ = data
    full = made("svc", n_landmarks=30).fit(X, y)
    few = made("svc", n_landmarks=30, rank=5).fit(X, y)
    assert (full.rank_, few.rank_) == (30, 5)
    np.testing.assert_allclose(few.approximation_.spectrum, full.approximation_.spectrum[:5])
    assert few.approximation_.trace_error > full.approximation_.trace_error
    features = NystromFeatures(n_landmarks=30, rank=5, gamma=0.4, random_state=0, landmarks=few.landmarks_).fit(X)
    assert few.approximation_.trace_error == pytest.approx(features.approximation_.trace_error)
    assert few.approximation_.sampled_rows == 120


def test_random_state_seeds_the_landmarks(data):
    X, y, _ = data
    one, same, other = (made("svc", n_landmarks=10, landmarks="uniform", random_state=k).fit(X, y) for k in (1, 1, 2))
    np.testing.assert_array_equal(one.oof_path_, same.oof_path_)
    assert one.landmark_indices_.tolist() == same.landmark_indices_.tolist() != other.landmark_indices_.tolist()


def test_results_do_not_depend_on_threads():
    X, y = make_mixture(1500, 5, random_state=0)
    for kind in (KernelSVC, KernelLogistic):
        one, two = (kind(low_rank=True, n_landmarks=40, Cs=4, cv=3, n_jobs=n, random_state=0).fit(X, y) for n in (1, 2))
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
        np.testing.assert_array_equal(one.oof_path_, two.oof_path_)
        np.testing.assert_array_equal(one.gaps_, two.gaps_)


# Conventions


@every_estimator
def test_low_rank_of_one_fit_goes_before_the_parameter(name, data):
    X, y = data[0], target(name, data)
    always, never = made(name, n_landmarks=10).fit(X, y), made(name, low_rank=False).fit(X, y)
    model = made(name, low_rank=False, n_landmarks=10)
    before = model.get_params()
    assert model.fit(X, y, low_rank=True) is model
    assert model.get_params() == before
    assert all(hasattr(model, kept) for kept in KEPT)
    np.testing.assert_array_equal(values(model, X), values(always, X))
    with pytest.warns(UserWarning, match="n_landmarks has no effect"):
        model.fit(X, y)
    assert not any(hasattr(model, kept) for kept in KEPT)
    assert vars(model).keys() == vars(never).keys()
    np.testing.assert_array_equal(values(model, X), values(never, X))
    always.fit(X, y, low_rank=False)
    assert always.low_rank
    np.testing.assert_array_equal(values(always, X), values(never, X))


@pytest.mark.parametrize("landmarks", ["kmeans", "uniform", "points", "indices"])
def test_attributes(landmarks, data, points):
    X, y, _ = data
    given = {"points": points, "indices": np.array([3, 1, 77])}.get(landmarks, landmarks)
    model = made("svc", landmarks=given, n_landmarks=20).fit(X, y)
    m = 3 if landmarks == "indices" else 20
    assert model.landmarks_.shape == model.support_vectors_.shape == (m, 3)
    assert model.dual_coef_.shape == (1, m)
    assert model.rank_ == m == len(model.approximation_.spectrum)
    assert 0.0 < model.approximation_.trace_error < 1.0
    assert model.n_support_path_.tolist() == [m] * 3
    assert model.gram_bytes_ == 120 * m * 8
    assert model.planned_bytes_ > model.gram_bytes_
    if landmarks in ("kmeans", "points"):
        assert model.landmark_indices_ is None
        assert model.support_.shape == (0,)
        assert model.n_support_.tolist() == [0, 0]
    else:
        np.testing.assert_array_equal(model.landmarks_, X[model.landmark_indices_])
        np.testing.assert_array_equal(model.support_, model.landmark_indices_)
        assert model.n_support_.tolist() == [np.sum(y[model.support_] == label) for label in (-1, 1)]
    if landmarks == "indices":
        assert model.landmark_indices_.tolist() == [3, 1, 77]
    assert model.oof_path_.shape == (120, 3)
    assert model.dual_objective_ <= model.objective_ * (1 + 1e-12)
    assert (model.objective_ - model.dual_objective_) / model.objective_ == pytest.approx(
        model.gaps_[-1, model.best_index_], abs=1e-14
    )


@every_estimator
def test_pickle_and_clone(name, data, points):
    X, y = data[0], target(name, data)
    model = made(name, landmarks=points, rank=12)
    copied = clone(model)
    np.testing.assert_array_equal(copied.landmarks, points)
    assert (copied.low_rank, copied.rank) == (True, 12)
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(values(again, X), values(model, X))
    np.testing.assert_array_equal(again.approximation_.spectrum, model.approximation_.spectrum)
    assert again.path_table() == model.path_table()
    np.testing.assert_array_equal(values(copied.fit(X, y), X), values(model, X))


def test_fit_mutates_neither_input_nor_parameters(data, points):
    X, y = data[0].copy(), data[1].copy()
    model = made("svc", landmarks=points.copy())
    before = pickle.dumps((X, y, model.landmarks))
    model.fit(X, y)
    model.landmarks_[:] = 0.0  # results share no memory with parameters
    assert pickle.dumps((X, y, model.landmarks)) == before


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"low_rank": "yes"}, TypeError, "low_rank must be True or False, got 'yes'"),
        ({"low_rank": 1}, TypeError, "low_rank must be True or False, got 1"),
        ({"rank": 0}, ValueError, "rank must be at least 1, got 0"),
        ({"rank": 2.5}, TypeError, "rank must be an integer, got 2.5"),
        ({"rank": 21}, ValueError, "20 give no more than 20 features, but rank=21; use more, or a smaller rank"),
        ({"n_landmarks": 0}, ValueError, "n_landmarks must be at least 1, got 0"),
        ({"n_landmarks": None}, TypeError, "n_landmarks must be an integer, got None"),
        ({"landmarks": "random"}, ValueError, "unknown rule landmarks='random'; known rules: 'auto', 'uniform'"),
        ({"landmarks": None}, TypeError, "landmarks must be the name of a rule"),
        ({"landmarks": [0, 120]}, ValueError, "there is no row 120: X has 120 rows, counted from 0"),
        ({"landmarks": [-1]}, ValueError, "negative row index -1"),
        ({"landmarks": np.ones((4, 2))}, ValueError, "they have 2 columns, but X has 3"),
        ({"landmarks": [[0.0, 1.0, np.nan]]}, ValueError, "landmarks contains NaN at row 0, column 2"),
        ({"solver": "smo"}, ValueError, "solver='smo' is not available"),
        (
            {"kernel": "poly", "gamma": 1e120},
            ValueError,
            r"the features \(.* is X\[.*\] = .*\) or the kernel's constants",
        ),
    ],
)
def test_what_it_refuses(parameters, error, message, data):
    X, y, _ = data
    with pytest.raises(error, match=message):
        made("svc", **{"n_landmarks": 20} | parameters).fit(X, y)


def test_more_that_it_refuses(data):
    X, y, _ = data
    with pytest.raises(TypeError, match="low_rank must be True or False, got 'yes'"):
        KernelSVC().fit(X, y, low_rank="yes")
    folds = [FOLDS[0], (np.flatnonzero(y < 0), np.flatnonzero(y > 0))]
    with pytest.raises(ValueError, match=r"fold 1: all \d+ training rows have the same class"):
        made("svc", cv=folds).fit(X, y)
    with pytest.raises(ValueError, match="X contains NaN at row 3, column 1"):
        made("svc").fit(np.where(X == X[3, 1], np.nan, X), y)
    fitted = made("svc", n_landmarks=5).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but KernelSVC is expecting 3"):
        fitted.predict(X[:, :2])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cv": "loo"}, "cv='loo' needs the whole kernel matrix.*use folds, such as cv=10"),
        (
            {"solver": "active-set"},
            "'active-set' needs the whole kernel matrix.*use solver='auto', 'newton' or 'spectral'",
        ),
        ({"solver": "closed-form"}, "'closed-form' needs the whole kernel matrix.*'auto', 'newton' or 'spectral'"),
    ],
)
def test_what_needs_the_kernel_matrix_is_refused_before_any_work(parameters, message, classes, monkeypatch):
    monkeypatch.delattr(_core, "fit")
    with pytest.raises(ValueError, match=message):
        KernelLogistic(low_rank=True, Cs=3, **parameters).fit(*classes)
    with pytest.raises(AttributeError, match="fit"):
        KernelLogistic(low_rank=True, Cs=3).fit(*classes)


@every_estimator
def test_newton_is_the_solver(name, data):
    X, y = data[0], target(name, data)
    named, auto = (made(name, n_landmarks=10, solver=solver).fit(X, y) for solver in ("newton", "auto"))
    assert named.solver_ == auto.solver_ == "newton"
    np.testing.assert_array_equal(named.oof_path_, auto.oof_path_)


@every_estimator
def test_the_spectral_engine_agrees(name, data):
    X, y = data[0], target(name, data)
    newton, spectral = (made(name, n_landmarks=10, tol=1e-8, solver=s).fit(X, y) for s in ("newton", "spectral"))
    assert spectral.solver_ == "spectral"
    assert np.all(spectral.gaps_ <= 1e-8)
    np.testing.assert_allclose(spectral.objective_, newton.objective_, rtol=2e-8)


# Time, interruption, progress


def test_time_budget_returns_the_best_found_and_says_so():
    X, _ = make_mixture(8000, 8, random_state=0)
    y = np.where(np.random.RandomState(0).rand(8000) < 0.5, 1, -1)
    settings = {"low_rank": True, "n_landmarks": 150, "landmarks": "uniform", "cv": 5, "tol": 1e-8, "random_state": 0}
    started = time.monotonic()
    with pytest.warns(ConvergenceWarning, match=r"time_budget=1 s ended the fit: \d+ of 18000 models were not run"):
        model = KernelSVC(Cs=np.logspace(-4, 5, 3000), time_budget=1.0, **settings).fit(X, y)
    assert time.monotonic() - started < 3.0
    assert model.timed_out_
    not_run = model.status_ == "not_run"
    assert not_run.any()
    assert np.isinf(model.gaps_[not_run]).all()
    assert np.isfinite(model.gaps_[-1, model.best_index_])
    assert model.predict(X).shape == (8000,)


def test_time_budget_shorter_than_the_features(data):
    with pytest.raises(TimeoutError, match="time_budget"):
        KernelSVC(low_rank=True, time_budget=1e-6, gamma=0.1).fit(*data[:2])


def test_time_for_landmarks_counts():
    """A budget that ends while landmarks are chosen ends the fit, and says so."""
    X, _ = make_mixture(20_000, 50, random_state=0)
    y = np.where(X[:, 0] > 0, 1, -1)
    with pytest.raises(TimeoutError, match=r"landmarks of one gamma were chosen \(uniform ones are the fastest\)"):
        KernelSVC(low_rank=True, n_landmarks=1000, landmarks="kmeans", time_budget=0.05, gamma=0.1).fit(X, y)


def test_ample_time_budget_changes_nothing(data):
    X, y, _ = data
    plain, timed = (made("dwd", n_landmarks=15, time_budget=budget).fit(X, y) for budget in (None, 1e3))
    np.testing.assert_array_equal(plain.oof_path_, timed.oof_path_)
    assert not timed.timed_out_


CHILD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored
import sys
import numpy as np
from kernelpath import KernelLogistic, KernelSVC, _progress
phases = []
def progress(self, done, total, phase):
    if phase == "{phase}" and done and not phases:
        phases.append(phase)
        print(phase, flush=True)
_progress.ProgressLine.__call__ = progress
rng = np.random.RandomState(0)
X = rng.standard_normal(({n}, {p}))
y = rng.randint({classes}, size={n})
clf = {estimator}(
    kernel="laplacian", gamma=1.0 / {p}, low_rank=True, landmarks="uniform", n_landmarks={m},
    Cs=np.logspace(-2, 6, 300), tol=1e-10, random_state=0, verbose=1, {setting},
)
try:
    clf.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(0)
print("not interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("phase", "n", "p", "m", "classes", "estimator", "setting"),
    [
        ("kernel", 20_000, 200, 800, 2, "KernelSVC", "solver='auto'"),
        ("path", 8000, 5, 200, 2, "KernelSVC", "solver='newton'"),
        ("path", 8000, 5, 200, 2, "KernelSVC", "solver='spectral'"),
        ("path", 8000, 5, 200, 3, "KernelLogistic", "multi_class='multinomial'"),
    ],
)
def test_interrupt_is_heard_within_a_second(phase, n, p, m, classes, estimator, setting):
    """While features are computed, and while models are solved."""
    child = CHILD.format(phase=phase, n=n, p=p, m=m, classes=classes, estimator=estimator, setting=setting)
    output, seconds = interrupted_in(phase, textwrap.dedent(child))
    assert output.strip() == "interrupted"
    assert seconds < 1.0


def test_verbose_shows_progress(data, capfd):
    made("svc", n_landmarks=10, verbose=1).fit(*data[:2])
    out, err = capfd.readouterr()
    assert out == ""
    assert "path 12/12 (100 %)" in err


# Pictures


def test_displays(data):
    X, y, t = data
    model = made("svc", n_landmarks=15, tol=1e-6, probability=True).fit(X, y)
    (line,) = CVCurveDisplay.from_estimator(model).lines
    np.testing.assert_allclose(line.values, model.scores_.mean(axis=0))
    assert line.C == model.C_
    assert GapDisplay.from_estimator(model).ax_.get_title() == "12 of 12 gaps are within tol = 1e-06"
    (line,) = SupportPathDisplay.from_estimator(model).lines
    assert set(line.values) == {15}
    calibration = CalibrationDisplay.from_estimator(model, X, y)
    assert calibration.brier == pytest.approx(np.mean((model.predict_proba(X)[:, 1] - (y == 1)) ** 2))
    several = made("quantiles", n_landmarks=15).fit(X, t)
    assert len(CVCurveDisplay.from_estimator(several).lines) == 3


# scikit-learn's checks


SAMPLE_WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


@parametrize_with_checks(
    [
        KernelSVC(low_rank=True, n_landmarks=50, Cs=5, cv=2),
        # Weighted and repeated rows must give the same to 1e-9, and features stored in float32 are known to 1e-12 of
        # weights that are a thousand times as large.
        KernelRegressor(low_rank=True, n_landmarks=50, Cs=5, cv=2, dtype="float64"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        if check.func.__name__ == "check_class_weight_classifiers":
            # Weights of 1e3 and 1e-4 and C up to 1e3: the largest C's stall at gaps above tol, and say so.
            warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@every_estimator
def test_sample_weight_checks_with_landmarks_given(name):
    """With fewer landmarks than rows, on their data of thirty features."""
    landmarks = np.random.RandomState(0).uniform(size=(12, 30))
    model = made(name, landmarks=landmarks, cv=2, tol=1e-13)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # they compare to 1e-7, which takes gaps beyond proof
        for check in SAMPLE_WEIGHT_CHECKS:
            getattr(estimator_checks, check)(type(model).__name__, model)
