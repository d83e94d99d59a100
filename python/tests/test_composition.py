"""Inside scikit-learn: metadata routing, searches, calibration, ensembles, frames of other libraries."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpath import KernelLogistic, KernelRegressor, KernelSVC


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(90, n_features=3, centers=3, cluster_std=3.0, random_state=0)
    return X, y, np.random.RandomState(0).randint(1, 4, 90).astype(float)


def test_weights_and_groups_are_routed(data):
    X, y, weight = data
    groups = np.arange(90) % 6
    model = KernelSVC(Cs=[0.5, 5.0], cv=GroupKFold(3), gamma=0.1)
    direct = model.fit(X, y, sample_weight=weight, groups=groups).decision_function(X)
    with config_context(enable_metadata_routing=True):
        routed = KernelSVC(Cs=[0.5, 5.0], cv=GroupKFold(3), gamma=0.1)
        routed.set_fit_request(sample_weight=True, groups=True)
        pipeline = make_pipeline(
            StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False), routed
        )
        pipeline.fit(X, y, sample_weight=weight, groups=groups)
        np.testing.assert_array_equal(pipeline.decision_function(X), direct)
        routed.set_score_request(sample_weight=True)
        scores = cross_validate(routed, X, y, cv=2, params={"sample_weight": weight, "groups": groups})["test_score"]
    assert np.isfinite(scores).all()
    without = KernelSVC(Cs=[0.5, 5.0], cv=GroupKFold(3), gamma=0.1).fit(X, y, groups=groups)
    assert not np.array_equal(without.decision_function(X), direct)


def test_calibrated_from_outside(data):
    X, y, weight = data
    outside = CalibratedClassifierCV(KernelSVC(Cs=1.0, cv=None, gamma=0.1), cv=3, ensemble=False)
    proba = outside.fit(X, y, sample_weight=weight).predict_proba(X)
    assert proba.shape == (90, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_searched_and_voting(data):
    X, y, weight = data
    search = GridSearchCV(KernelLogistic(Cs=1.0, cv=None), {"kernel": ["rbf", "matern32"], "gamma": [0.05, 0.2]}, cv=3)
    search.fit(X, y, sample_weight=weight)
    assert len(search.cv_results_["params"]) == 4
    voting = VotingClassifier([("svc", KernelSVC(Cs=5, cv=3)), ("logistic", KernelLogistic(Cs=5, cv=3))]).fit(X, y)
    assert voting.score(X, y) > 0.5


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(data, library):
    frames = pytest.importorskip(library)
    X, _, _ = data
    frame = frames.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    model = KernelRegressor(Cs=[1.0, 10.0], cv=3, random_state=0).fit(frame, X[:, 0])
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    twin = KernelRegressor(Cs=[1.0, 10.0], cv=3, random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(model.predict(frame), twin.predict(X))


def test_memory_map(data, tmp_path):
    X, y, _ = data
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    ours = KernelSVC(Cs=[0.5, 5.0], cv=3, random_state=0).fit(mapped, y[:, None].ravel())
    twin = KernelSVC(Cs=[0.5, 5.0], cv=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(ours.decision_function(mapped), twin.decision_function(X))
