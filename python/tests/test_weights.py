"""Weights: a row of weight 2 is that row twice, a row of weight 0 is no row."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold
from sklearn.svm import SVC, SVR

from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR

ESTIMATORS = [
    KernelSVC(),
    KernelSVC(loss="squared_hinge"),
    KernelLogistic(),
    KernelDWD(),
    KernelQuantile(tau=0.3),
    KernelSVR(),
    KernelRegressor(),
    KernelRegressor(loss="huber"),
    KernelRegressor(loss="expectile", tau=0.8),
]
IDS = [repr(estimator) for estimator in ESTIMATORS]
SETTINGS = {"Cs": [0.1, 1.0, 10.0], "tol": 1e-9, "dtype": "float64"}


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(60)
    return X, y, rng.randint(0, 4, 60)


def targets(estimator, y):
    return (y > 0).astype(int) if is_classifier(estimator) else y


def values(estimator, X):
    return estimator.decision_function(X) if hasattr(estimator, "decision_function") else estimator.predict(X)


@pytest.mark.parametrize("gamma", ["sigest", "scale"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=IDS)
def test_weights_are_repetitions(estimator, data, gamma):
    X, y, weight = data
    y, estimator = targets(estimator, y), clone(estimator)
    repeated = np.repeat(np.arange(60), weight)
    splits = list(KFold(3).split(X))
    twin_splits = [tuple(np.flatnonzero(np.isin(repeated, part)) for part in split) for split in splits]
    ours = estimator.set_params(**SETTINGS, gamma=gamma, cv=splits).fit(X, y, sample_weight=weight)
    answers = (ours.gamma_, ours.scores_, ours.C_, values(ours, X), ours.oof_decision_, ours.objective_)
    gaps = ours.gaps_
    twin = estimator.set_params(cv=twin_splits).fit(X[repeated], y[repeated])
    assert ours.gamma_ == pytest.approx(answers[0], rel=1e-12)
    np.testing.assert_allclose(twin.scores_, answers[1], atol=1e-6)
    assert twin.C_ == answers[2]
    np.testing.assert_allclose(values(twin, X), answers[3], atol=1e-6)
    assert np.isnan(answers[4][weight == 0]).all()
    np.testing.assert_allclose(twin.oof_decision_, answers[4][repeated], atol=1e-6)
    assert twin.objective_ == pytest.approx(answers[5], rel=1e-8)
    assert gaps.max() <= 1e-9


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=IDS)
def test_weight_zero_is_no_row_in_folds_of_an_integer(estimator, data):
    X, y, weight = data
    y, estimator = targets(estimator, y), clone(estimator)
    weight = np.minimum(weight, 1)
    estimator.set_params(**SETTINGS, gamma="sigest", cv=4, random_state=3)
    f = values(estimator.fit(X, y, sample_weight=weight), X)
    support = estimator.support_
    scores = estimator.scores_
    kept = np.flatnonzero(weight)
    estimator.fit(X[kept], y[kept])
    np.testing.assert_array_equal(estimator.scores_, scores)
    np.testing.assert_array_equal(values(estimator, X), f)
    np.testing.assert_array_equal(kept[estimator.support_], support)


def test_against_scikit_learn(data):
    X, y, weight = data
    ours = KernelSVC(Cs=3.0, cv=None, gamma=0.5, tol=1e-10).fit(X, y > 0, sample_weight=weight)
    theirs = SVC(C=3.0, gamma=0.5, tol=1e-10).fit(X[weight > 0], y[weight > 0] > 0, sample_weight=weight[weight > 0])
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    ours = KernelSVR(Cs=3.0, cv=None, gamma=0.5, tol=1e-10, epsilon=0.1).fit(X, y, sample_weight=weight)
    theirs = SVR(C=3.0, gamma=0.5, tol=1e-10).fit(X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)


@pytest.mark.parametrize("class_weight", [{0: 3.0}, {0: 2.0, 1: 0.5}, "balanced"])
def test_class_weights_multiply(data, class_weight):
    X, y, weight = data
    labels = (y > 0.7).astype(int)
    ours = KernelSVC(Cs=[0.3, 3.0], cv=3, gamma=0.5, tol=1e-10, random_state=0, class_weight=class_weight)
    f = ours.fit(X, labels, sample_weight=weight).decision_function(X)
    counts = np.bincount(labels, weight)
    factors = {
        "balanced": weight.sum() / (2 * counts),
    }.get(class_weight if isinstance(class_weight, str) else "")
    if factors is None:
        factors = np.array([class_weight.get(0, 1.0), class_weight.get(1, 1.0)])
    plain = KernelSVC(Cs=ours.C_, cv=None, gamma=0.5, tol=1e-10)
    plain.fit(X, labels, sample_weight=weight * factors[labels])
    np.testing.assert_allclose(plain.decision_function(X), f, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "n_classes"),
    [
        (KernelSVC(probability=True), 2),
        (KernelDWD(probability="isotonic"), 2),
        (KernelSVC(probability=True), 3),
        (KernelSVC(multi_class="ovr", probability=True, tune="each"), 3),
        (KernelLogistic(multi_class="multinomial"), 3),
        (KernelLogistic(multi_class="multinomial", low_rank=True, n_landmarks=40), 3),
        (KernelSVC(low_rank=True, n_landmarks=40), 2),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weights_are_in_the_loss_only(model, n_classes, weighted):
    """Scores and calibrated probabilities mean what they mean without class weights: of rows as they come."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((240, 3))
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(240), [1.2, 1.8][: n_classes - 1])
    weight = rng.integers(1, 4, 240).astype(float) if weighted else None
    model = clone(model).set_params(class_weight="balanced", Cs=[0.1, 1.0, 10.0], cv=4, gamma=0.3)
    model.fit(X, y, sample_weight=weight)
    counts = np.ones(240) if weight is None else weight
    if model.tune == "joint":
        by_scorer = clone(model).set_params(scoring="accuracy").fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(model.scores_, by_scorer.scores_, rtol=1e-12)
        assert model.C_ == by_scorer.C_
    if getattr(model, "probability", False):
        prevalence = np.bincount(y, counts) / counts.sum()
        mean = np.average(model.oof_proba_, axis=0, weights=counts)
        np.testing.assert_allclose(mean, prevalence, atol=0.03)
    # And they are in the loss.
    unweighted = clone(model).set_params(class_weight=None).fit(X, y, sample_weight=weight)
    assert np.abs(model.decision_function(X) - unweighted.decision_function(X)).max() > 0.01


def test_scores_are_weighted(data):
    X, y, weight = data
    labels = (y > 0).astype(int)
    folds = list(KFold(3).split(X))
    ours = KernelSVC(Cs=[0.3, 3.0], cv=folds, gamma=0.5).fit(X, labels, sample_weight=weight)
    by_scorer = KernelSVC(Cs=[0.3, 3.0], cv=folds, gamma=0.5, scoring="accuracy").fit(X, labels, sample_weight=weight)
    np.testing.assert_allclose(by_scorer.scores_, ours.scores_)
    for k, (_, test) in enumerate(folds):
        right = (ours.oof_path_[test] > 0) == (labels[test] == 1)[:, None]
        right = np.where(np.isnan(ours.oof_path_[test]), 0.0, right)
        np.testing.assert_allclose(ours.scores_[k], np.average(right, axis=0, weights=weight[test]))


def test_leave_one_out(data):
    X, y, weight = data
    weight = np.where(weight == 0, 0.0, weight / 2)
    ours = KernelSVC(Cs=[2.0], cv="loo", gamma=0.5, tol=1e-10).fit(X, y > 0, sample_weight=weight)
    for i in [3, 10, 25, 40]:
        without = weight.copy()
        without[i] = 0.0
        if weight[i] > 0:
            f = KernelSVC(Cs=2.0, cv=None, gamma=0.5, tol=1e-10).fit(X, y > 0, sample_weight=without)
            np.testing.assert_allclose(f.decision_function(X[[i]])[0], ours.oof_decision_[i], atol=1e-5)
    assert np.isnan(ours.oof_decision_[weight == 0]).all()


def test_precomputed(data):
    X, y, weight = data
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    settings = {"Cs": [0.3, 3.0], "cv": 3, "random_state": 0, "tol": 1e-10}
    ours = KernelSVC(kernel="precomputed", **settings).fit(K, y > 0, sample_weight=weight)
    twin = KernelSVC(gamma=0.5, **settings).fit(X, y > 0, sample_weight=weight)
    np.testing.assert_allclose(ours.decision_function(K), twin.decision_function(X), atol=1e-5)
    taus = KernelQuantile(tau=[0.2, 0.8], kernel="precomputed", **settings).fit(K, y, sample_weight=weight)
    assert taus.predict(K).shape == (60, 2)


def test_callable_kernel(data):
    X, y, weight = data
    settings = {"Cs": [0.3, 3.0], "cv": 3, "random_state": 0, "tol": 1e-10, "dtype": "float64"}
    ours = KernelSVC(kernel=lambda A, B: np.exp(-0.5 * cdist(A, B, "sqeuclidean")), **settings)
    ours.fit(X, y > 0, sample_weight=weight)
    twin = KernelSVC(gamma=0.5, **settings).fit(X, y > 0, sample_weight=weight)
    np.testing.assert_array_equal(ours.scores_, twin.scores_)
    np.testing.assert_allclose(ours.decision_function(X), twin.decision_function(X), atol=1e-5)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(60), "zero for every row"),
        (np.r_[np.nan, np.ones(59)], "got nan in row 0"),
        (np.r_[np.ones(59), -1.0], "got -1.0 in row 59"),
        (np.ones(59), r"shape == \(59,\), expected \(60,\)"),
    ],
)
def test_bad_weights(data, weight, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        KernelSVC().fit(X, y > 0, sample_weight=weight)
