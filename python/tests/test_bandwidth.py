"""Joint choice of C and γ, and kernels given as functions or matrices."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RationalQuadratic
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from kernelpath import KernelQuantile, KernelRegressor, KernelSVC, NystromFeatures
from kernelpath.datasets import make_mixture

CS, GAMMAS = [0.1, 1.0, 10.0], [0.05, 0.2, 1.0]


@pytest.fixture(scope="module")
def data():
    return make_mixture(90, 3, random_state=0)


def test_auto_is_one_over_the_number_of_features():
    X, y = make_mixture(60, 4, random_state=0)
    auto, given = (KernelSVC(gamma=gamma, Cs=1.0, cv=None, random_state=0).fit(X, y) for gamma in ("auto", 0.25))
    assert auto.gamma_ == 0.25
    np.testing.assert_array_equal(auto.dual_coef_, given.dual_coef_)
    assert SVC(gamma="auto").fit(X, y)._gamma == 0.25
    assert NystromFeatures(gamma="auto", n_landmarks=10).fit(X).gamma_ == 0.25
    assert NystromFeatures(gamma="auto").fit(X[:1]).gamma_ == 0.25
    assert KernelSVC(kernel="linear", gamma="auto", Cs=1.0, cv=None).fit(X, y).gamma_ is None


def test_surface_is_that_of_separate_fits(data):
    X, y = data
    settings = {"Cs": CS, "cv": 3, "random_state": 0}
    ours = KernelSVC(gamma=GAMMAS, **settings).fit(X, y)
    assert ours.scores_.shape == (3, 3, 3)
    assert ours.gaps_.shape == ours.status_.shape == (4, 3, 3)
    assert ours.oof_path_.shape == (90, 3, 3)
    means = []
    for g, gamma in enumerate(GAMMAS):
        alone = KernelSVC(gamma=gamma, **settings).fit(X, y)
        np.testing.assert_array_equal(ours.scores_[:, g], alone.scores_)
        np.testing.assert_array_equal(ours.gaps_[:, g], alone.gaps_)
        np.testing.assert_array_equal(ours.oof_path_[:, g], alone.oof_path_)
        means.append(alone.best_score_)
        if gamma == ours.gamma_:
            assert alone.C_ == ours.C_
            np.testing.assert_array_equal(alone.decision_function(X), ours.decision_function(X))
            np.testing.assert_array_equal(alone.oof_decision_, ours.oof_decision_)
    assert ours.best_score_ == max(means)
    assert ours.gamma_ in GAMMAS
    assert "gamma" in ours.path_table()


def test_against_grid_search(data):
    X, y = data
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    ours = KernelSVC(Cs=CS, gamma=GAMMAS, cv=folds).fit(X, y)
    theirs = GridSearchCV(SVC(), {"gamma": GAMMAS, "C": CS}, cv=folds).fit(X, y)
    place = {(p["C"], p["gamma"]): k for k, p in enumerate(theirs.cv_results_["params"])}
    order = [place[p["Cs"], p["gamma"]] for p in ours.cv_results_["params"]]
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"][order], atol=0.012
    )
    assert set(ours.cv_results_["param_gamma"].tolist()) == set(GAMMAS)
    assert len(ours.cv_results_["param_Cs"]) == 9


def test_auto_grid_is_multiples_of_sigest(data):
    X, y = data
    one = KernelSVC(Cs=CS, cv=3, random_state=0).fit(X, y)
    grid = KernelSVC(Cs=CS, cv=3, random_state=0, gamma="auto-grid").fit(X, y)
    np.testing.assert_allclose(grid.gammas_, one.gamma_ * np.array([0.125, 0.25, 0.5, 1, 2, 4]))
    assert grid.best_score_ >= one.best_score_


def test_levels_share_a_bandwidth(data):
    X, _ = data
    y = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1]
    ours = KernelQuantile(tau=[0.2, 0.8], Cs=CS, gamma=GAMMAS, cv=3, random_state=0).fit(X, y)
    assert ours.scores_.shape == (2, 3, 3, 3)
    alone = KernelQuantile(tau=[0.2, 0.8], Cs=CS, gamma=ours.gamma_, cv=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(alone.predict(X), ours.predict(X))
    totals = [ours.scores_[:, :, g].mean(axis=1).max(axis=1).mean() for g in range(3)]
    assert GAMMAS[int(np.argmax(totals))] == ours.gamma_


def test_cv_none_cannot_choose_a_bandwidth(data):
    with pytest.raises(ValueError, match="cv=None cannot choose"):
        KernelSVC(Cs=1.0, cv=None, gamma=GAMMAS).fit(*data)


@pytest.mark.parametrize("y_kind", ["two", "three", "number"])
def test_callable_kernel(data, y_kind):
    X, y = data
    kind = KernelRegressor if y_kind == "number" else KernelSVC
    y = {"two": y, "three": np.digitize(X[:, 0], [-0.7, 0.7]), "number": X[:, 0] * X[:, 1]}[y_kind]
    settings = {"Cs": CS, "cv": 3, "random_state": 0, "tol": 1e-9, "dtype": "float64"}
    ours = kind(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3), **settings).fit(X, y)
    twin = kind(kernel="rbf", gamma=0.3, **settings).fit(X, y)
    np.testing.assert_allclose(ours.scores_, twin.scores_, atol=1e-9)
    np.testing.assert_allclose(ours.predict(X[:7] + 0.1), twin.predict(X[:7] + 0.1), atol=1e-5)
    matrix = kind(kernel="precomputed", **settings).fit(rbf_kernel(X, gamma=0.3), y)
    np.testing.assert_allclose(matrix.scores_, twin.scores_, atol=1e-9)
    np.testing.assert_allclose(
        matrix.predict(rbf_kernel(X[:7] + 0.1, X, gamma=0.3)), twin.predict(X[:7] + 0.1), atol=1e-5
    )


def test_kernel_of_scikit_learn(data):
    X, y = data
    clf = KernelSVC(kernel=RationalQuadratic(), Cs=CS, cv=3, random_state=0).fit(X, y)
    assert clf.best_score_ > 0.6
    assert clf.gamma_ is None
    assert clf.gaps_.max() <= 1e-6


def test_precomputed_is_sliced_on_both_axes(data):
    X, y = data
    K = rbf_kernel(X, gamma=0.3)
    search = GridSearchCV(KernelSVC(kernel="precomputed", cv=None, Cs=1.0), {"Cs": [0.1, 1.0]}, cv=3).fit(K, y)
    twin = GridSearchCV(KernelSVC(gamma=0.3, cv=None, Cs=1.0), {"Cs": [0.1, 1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], twin.cv_results_["mean_test_score"])
