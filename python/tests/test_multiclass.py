"""More than two classes, against scikit-learn's wrappers around our machine of two."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.svm import SVC

from kernelpath import KernelDWD, KernelLogistic, KernelSVC
from kernelpath._core import Arrangement

KINDS = [KernelSVC, KernelLogistic, KernelDWD]
# A gap of 1e-10 (1e-9) of an objective near 100 leaves f unknown by √(2e-8) (√(2e-7)): hence the tolerances below.
WRAPPERS = {"ovo": OneVsOneClassifier, "ovr": OneVsRestClassifier}


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(120, n_features=3, centers=4, cluster_std=3.0, random_state=1)
    return X, np.array(["b", "d", "a", "c"])[y]


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("kind", KINDS)
def test_against_the_wrappers(data, kind, multi_class):
    X, y = data
    fixed = {"Cs": 2.0, "cv": None, "gamma": 0.1, "tol": 1e-10}
    ours = kind(multi_class=multi_class, **fixed).fit(X, y)
    theirs = WRAPPERS[multi_class](kind(**fixed)).fit(X, y)
    np.testing.assert_array_equal(ours.classes_, ["a", "b", "c", "d"])
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert len(ours.machines_) == len(ours.dual_coef_) == len(ours.intercept_) == {"ovo": 6, "ovr": 4}[multi_class]
    assert ours.machines_[0] == {"ovo": ("a", "b"), "ovr": ("a", None)}[multi_class]


def test_against_svc(data):
    X, y = data
    ours = KernelSVC(Cs=2.0, cv=None, gamma=0.1, tol=1e-10).fit(X, y)
    theirs = SVC(C=2.0, gamma=0.1, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_joint_scores_are_those_of_refits(data, multi_class):
    X, y = data
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    Cs = [0.05, 1.0, 20.0]
    ours = KernelSVC(Cs=Cs, cv=folds, gamma=0.1, multi_class=multi_class, tol=1e-9).fit(X, y)
    assert ours.scores_.shape == (3, 3)
    for k, (train, test) in enumerate(folds):
        for j, C in enumerate(Cs):
            naive = KernelSVC(Cs=C, cv=None, gamma=0.1, multi_class=multi_class, tol=1e-9).fit(X[train], y[train])
            assert ours.scores_[k, j] == accuracy_score(y[test], naive.predict(X[test]))
            if j == ours.best_index_:
                np.testing.assert_allclose(ours.oof_decision_[test], naive.decision_function(X[test]), atol=1e-4)
    assert ours.C_ == Cs[int(np.argmax(ours.scores_.mean(axis=0)))]
    assert ours.gaps_.shape == (len(ours.machines_), 4, 3)
    assert ours.gaps_.max() <= 1e-9
    by_scorer = ours.set_params(scoring="accuracy")
    scores = ours.scores_
    np.testing.assert_array_equal(by_scorer.fit(X, y).scores_, scores)


def test_each_machine_its_own_C(data):
    X, y = data
    settings = {"Cs": [0.05, 1.0, 20.0], "gamma": 0.1, "multi_class": "ovr", "tol": 1e-9}
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    ours = KernelSVC(tune="each", cv=folds, **settings).fit(X, y)
    assert ours.scores_.shape == (4, 3, 3)
    for m, label in enumerate(ours.classes_):
        alone = KernelSVC(cv=folds, **settings).fit(X, y == label)
        assert alone.C_ == ours.C_[m]
        np.testing.assert_allclose(alone.scores_, ours.scores_[m])
        np.testing.assert_allclose(alone.decision_function(X), ours.decision_function(X)[:, m], atol=5e-4)
    assert ours.path_table().count("against the rest") == 4


def test_leave_one_out(data):
    X, y = data[0][:40], data[1][:40]
    ours = KernelSVC(Cs=[0.5, 5.0], cv="loo", gamma=0.1, tol=1e-8).fit(X, y)
    assert ours.scores_.shape == (40, 2)
    for i in [0, 7, 21]:
        rest = np.arange(40) != i
        naive = KernelSVC(Cs=ours.C_, cv=None, gamma=0.1, tol=1e-8).fit(X[rest], y[rest])
        np.testing.assert_allclose(ours.oof_decision_[i], naive.decision_function(X[[i]])[0], atol=1e-4)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repetitions(data, kind, multi_class):
    X, y = data
    weight = np.random.RandomState(0).randint(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    ours = kind(Cs=2.0, cv=None, multi_class=multi_class, tol=1e-9)
    f = ours.fit(X, y, sample_weight=weight).decision_function(X)
    np.testing.assert_allclose(ours.fit(X[repeated], y[repeated]).decision_function(X), f, atol=1e-6)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_logistic_probabilities(multi_class):
    X, y = load_iris(return_X_y=True)
    model = KernelLogistic(Cs=10, cv=3, scoring="neg_log_loss", multi_class=multi_class, random_state=0).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (150, 3)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert accuracy_score(y, proba.argmax(axis=1)) > 0.95
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba)
    assert np.isfinite(model.scores_).all()


def test_coupling_recovers_probabilities():
    """Pairwise probabilities that come from class probabilities give these back."""
    rng = np.random.RandomState(0)
    p = rng.dirichlet(np.ones(4), 50)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    log_odds = np.column_stack([np.log(p[:, i] / p[:, j]) for i, j in pairs])
    np.testing.assert_allclose(Arrangement("ovo", 4).probabilities(log_odds, []), p, atol=1e-6)
    np.testing.assert_allclose(Arrangement("ovr", 4).probabilities(np.full((2, 4), -np.inf), []), 0.25)
    assert np.isnan(Arrangement("ovr", 4).probabilities(np.full((1, 4), np.nan), [])).all()


def test_gamma_grid_and_table(data):
    X, y = data
    ours = KernelSVC(Cs=[0.1, 1.0], gamma=[0.03, 0.3], cv=3, random_state=0).fit(X, y)
    assert ours.scores_.shape == (3, 2, 2)
    assert ours.gaps_.shape == (6, 4, 2, 2)
    assert ours.path_table().count("*") == 1
    apart = [KernelSVC(Cs=[0.1, 1.0], gamma=g, cv=3, random_state=0).fit(X, y) for g in [0.03, 0.3]]
    for g in range(2):
        np.testing.assert_array_equal(ours.scores_[:, g], apart[g].scores_)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("kind", [KernelSVC, KernelDWD])
def test_calibrated_probabilities(data, kind, multi_class, method):
    X, y = data
    weight = np.random.RandomState(0).randint(0, 3, len(y))
    model = kind(Cs=[0.5, 5.0], cv=3, multi_class=multi_class, probability=method, random_state=0)
    model.fit(X, y, sample_weight=weight)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert ((proba >= 0) & np.isfinite(proba)).all()
    assert np.mean(model.predict(X) == model.classes_[proba.argmax(axis=1)]) > 0.8
    assert model.oof_proba_.shape == (len(y), 4)
    np.testing.assert_array_equal(np.isnan(model.oof_proba_).any(axis=1), weight == 0)
    assert len(model.calibration_) == len(model.machines_)
    assert accuracy_score(y[weight > 0], model.classes_[model.oof_proba_[weight > 0].argmax(axis=1)]) > 0.5
