"""The multinomial loss: against scikit-learn on explicit features, against scipy, and against its own formulas."""

import pickle

import naive
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold

from kernelpath import KernelDWD, KernelLogistic, KernelSVC
from kernelpath.display import CVCurveDisplay, GapDisplay, SupportPathDisplay

FIXED = {"multi_class": "multinomial", "gamma": 0.1, "dtype": "float64"}


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(120, n_features=3, centers=4, cluster_std=3.0, random_state=1)
    return X, np.array(["b", "d", "a", "c"])[y]


def reach(model):
    """How far f may be from the optimal one at any row: ½‖f − f*‖² ≤ P − D in the norm of K, whose diagonal is 1.

    The intercepts have no norm; a factor is left for them, and for rounding of the objectives.
    """
    return 4.0 * np.sqrt(2.0 * max(model.objective_ - model.dual_objective_, 1e-15 * model.objective_))


def objective(K, index, C, B, b, weight=1.0):
    f = K @ B + b
    losses = logsumexp(f, axis=1) - f[np.arange(len(f)), index]
    return C * np.sum(weight * losses) + 0.5 * np.sum(B * (K @ B))


def dual_objective(K, index, C, theta, weight=1.0):
    """D(θ), with the constraints on it."""
    cw = C * weight * np.ones((len(K), 1))
    pi = np.eye(theta.shape[1])[index] - theta / cw
    np.testing.assert_allclose(pi.sum(axis=1), 1.0)
    np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-9 * np.abs(theta).sum())
    assert pi.min() > -1e-9
    entropy = -np.sum(np.where(pi > 0.0, pi * np.log(np.where(pi > 0.0, pi, 1.0)), 0.0), axis=1)
    return np.sum(cw[:, 0] * entropy) - 0.5 * np.sum(theta * (K @ theta))


def features(K):
    """Rows whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_against_scikit_learn(data, C):
    X, y = data
    ours = KernelLogistic(Cs=C, cv=None, tol=1e-11, **FIXED).fit(X, y)
    Z = features(naive.gram(X, X, gamma=0.1))
    theirs = LogisticRegression(C=C, solver="newton-cg", tol=1e-12, max_iter=10_000).fit(Z, y)
    assert ours.gaps_.max() <= 1e-11
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), atol=reach(ours))
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(Z), atol=2 * reach(ours))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(Z))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_against_scipy_and_its_own_formulas(data, C, weighted):
    X, y = data
    index = np.unique(y, return_inverse=True)[1]
    weight = np.random.RandomState(0).uniform(0.2, 3.0, len(y)) if weighted else np.ones(len(y))
    ours = KernelLogistic(Cs=C, cv=None, **FIXED).fit(X, y, sample_weight=weight)
    K = naive.gram(X, X, gamma=0.1)
    Z = features(K)
    B, b = ours.dual_coef_.T, ours.intercept_
    np.testing.assert_array_equal(ours.support_, np.arange(len(y)))
    np.testing.assert_allclose(objective(K, index, C, B, b, weight), ours.objective_, rtol=1e-12)
    np.testing.assert_allclose(ours.decision_function(X), K @ B + b, atol=1e-9)
    # A gap of 1e-6 P leaves θ unknown by the square root of it; D, at its maximum, by the gap itself.
    p = softmax(K @ B + b, axis=1)
    np.testing.assert_allclose(B, C * weight[:, None] * (np.eye(4)[index] - p), atol=C * weight.max() * reach(ours))
    np.testing.assert_allclose(B.sum(axis=1), 0.0, atol=1e-10)
    np.testing.assert_allclose(B.sum(axis=0), 0.0, atol=1e-10)
    assert abs(b.sum()) < 1e-10
    assert dual_objective(K, index, C, B, weight[:, None]) == pytest.approx(ours.dual_objective_, rel=1e-9)

    def value_and_slope(w):
        W, b = w[:-4].reshape(-1, 4), w[-4:]
        f = Z @ W + b
        slope = C * weight[:, None] * (softmax(f, axis=1) - np.eye(4)[index])
        losses = weight * (logsumexp(f, axis=1) - f[np.arange(len(f)), index])
        return C * losses.sum() + 0.5 * np.sum(W**2), np.r_[(Z.T @ slope + W).ravel(), slope.sum(axis=0)]

    theirs = minimize(value_and_slope, np.zeros(4 * len(y) + 4), jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    assert ours.dual_objective_ <= theirs.fun
    assert ours.objective_ <= theirs.fun * (1.0 + ours.gaps_.max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_folds_are_refits(data, dtype):
    X, y = data
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    Cs = [0.001, 0.1, 1000.0, 10.0]
    settings = FIXED | {"dtype": dtype, "tol": 1e-8}
    ours = KernelLogistic(Cs=Cs, cv=folds, **settings).fit(X, y)
    assert ours.scores_.shape == (3, 4)
    assert ours.gaps_.shape == ours.status_.shape == ours.n_iter_.shape == (4, 4)
    assert ours.gaps_.max() <= 1e-8
    assert ours.oof_decision_.shape == ours.oof_proba_.shape == (120, 4)
    np.testing.assert_allclose(softmax(ours.oof_decision_, axis=1), ours.oof_proba_)
    for k, (train, test) in enumerate(folds):
        for j, C in enumerate(Cs):
            refit = KernelLogistic(Cs=C, cv=None, **settings).fit(X[train], y[train])
            assert ours.scores_[k, j] == accuracy_score(y[test], refit.predict(X[test]))
            if j == ours.best_index_:
                atol = 2.0 * reach(refit) + (1e-5 if dtype == "float32" else 0.0)
                np.testing.assert_allclose(ours.oof_decision_[test], refit.decision_function(X[test]), atol=atol)
    assert ours.C_ == Cs[int(np.argmax(ours.scores_.mean(axis=0)))]
    assert ours.solver_ == "newton"
    assert ours.machines_ == []
    assert ours.path_table().count("*") == 1
    scores = ours.scores_
    np.testing.assert_array_equal(ours.set_params(scoring="accuracy").fit(X, y).scores_, scores)


def test_weights_are_repetitions(data):
    X, y = data
    weight = np.random.RandomState(0).randint(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    settings = {"Cs": 2.0, "cv": None, "tol": 1e-9, **FIXED}
    weighted = KernelLogistic(**settings).fit(X, y, sample_weight=weight)
    repeats = KernelLogistic(**settings).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.decision_function(X), repeats.decision_function(X), atol=2 * reach(weighted))
    assert not np.isin(np.flatnonzero(weight == 0), weighted.support_).any()
    removed = KernelLogistic(**settings).fit(X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    np.testing.assert_allclose(weighted.decision_function(X), removed.decision_function(X), atol=2 * reach(weighted))
    # A class weight is the weight of its rows, and in folds, too.
    by_class = {"a": 2.0, "c": 0.5}
    folds = list(StratifiedKFold(3).split(X, y))
    settings |= {"Cs": [0.5, 5.0], "cv": folds}
    ours = KernelLogistic(class_weight=by_class, **settings).fit(X, y)
    own = KernelLogistic(**settings).fit(X, y, sample_weight=[by_class.get(label, 1.0) for label in y])
    np.testing.assert_allclose(ours.gaps_, own.gaps_)
    np.testing.assert_allclose(ours.oof_decision_, own.oof_decision_)


def test_probabilities():
    X, y = load_iris(return_X_y=True)
    model = KernelLogistic(multi_class="multinomial", Cs=10, cv=3, scoring="neg_log_loss", random_state=0).fit(X, y)
    f, p = model.decision_function(X), model.predict_proba(X)
    assert f.shape == p.shape == (150, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p, softmax(f, axis=1))
    np.testing.assert_allclose(model.predict_log_proba(X), log_softmax(f, axis=1))
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    assert np.isfinite(model.predict_log_proba(1e3 * X)).all()
    folds = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
    for k, (_, test) in enumerate(folds):
        own = -log_loss(y[test], model.oof_proba_[test])
        assert model.scores_[k, model.best_index_] == pytest.approx(own)
    # The intercepts are not penalised: on average the probabilities are the frequencies.
    np.testing.assert_allclose(p.mean(axis=0), 1 / 3, atol=1e-4)


def test_two_classes_are_the_binary_machine(data):
    X, y = data
    ours = KernelLogistic(multi_class="multinomial", Cs=5, cv=3, random_state=0).fit(X, y == "a")
    binary = KernelLogistic(Cs=5, cv=3, random_state=0).fit(X, y == "a")
    np.testing.assert_array_equal(ours.decision_function(X), binary.decision_function(X))


def test_kernels_layouts_and_pickles(data):
    X, y = data
    settings = {"Cs": [0.1, 10.0], "cv": 3, "random_state": 0, **FIXED}
    rows = KernelLogistic(**settings).fit(X, y)
    f = rows.decision_function(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows)).decision_function(X), f)
    close = {"atol": 2 * reach(rows)}
    csr = KernelLogistic(**settings).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(csr.decision_function(sparse.csr_matrix(X)), f, **close)
    K = naive.gram(X, X, gamma=0.1)
    given = KernelLogistic(kernel="precomputed", **settings).fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), f, **close)
    called = KernelLogistic(kernel=lambda a, b: naive.gram(a, b, gamma=0.1), **settings).fit(X, y)
    np.testing.assert_allclose(called.decision_function(X), f, **close)
    linear = KernelLogistic(multi_class="multinomial", kernel="linear", Cs=1.0, cv=None, tol=1e-11).fit(X, y)
    theirs = LogisticRegression(C=1.0, solver="newton-cg", tol=1e-12).fit(X, y)
    size = np.abs(X).max() * np.sqrt(3.0)  # √K_ii, which is 1 for the others
    np.testing.assert_allclose(linear.predict_proba(X), theirs.predict_proba(X), atol=size * reach(linear))


@pytest.mark.parametrize("kind", [CVCurveDisplay, GapDisplay, SupportPathDisplay])
def test_pictures(data, kind):
    pytest.importorskip("matplotlib").use("agg")
    model = KernelLogistic(Cs=[0.1, 1.0], cv=3, random_state=0, **FIXED).fit(*data)
    assert kind.from_estimator(model).ax_.get_xlabel() == "C"


def test_gamma_grid(data):
    X, y = data
    settings = {"multi_class": "multinomial", "Cs": [0.1, 1.0], "cv": 3, "random_state": 0}
    ours = KernelLogistic(gamma=[0.03, 0.3], **settings).fit(X, y)
    assert ours.scores_.shape == (3, 2, 2)
    assert ours.gaps_.shape == (4, 2, 2)
    assert ours.path_table().count("*") == 1
    for g, gamma in enumerate([0.03, 0.3]):
        np.testing.assert_array_equal(ours.scores_[:, g], KernelLogistic(gamma=gamma, **settings).fit(X, y).scores_)


def test_limits(data):
    X, y = data
    short = KernelLogistic(Cs=[1.0, 10.0], cv=2, max_iter=1, random_state=0, **FIXED)
    with pytest.warns(ConvergenceWarning, match="did not reach tol=1e-06"):
        short.fit(X, y)
    assert (short.status_ == "max_iter").any()
    assert (short.gaps_ <= 1.0).all()
    with pytest.raises(TimeoutError, match="time_budget"):
        KernelLogistic(Cs=50, cv=10, time_budget=1e-6, **FIXED).fit(X, y)


def test_selection(data):
    X, y = data
    settings = {"Cs": [0.01, 0.1, 1.0, 10.0], "cv": 3, "random_state": 0, **FIXED}
    best, careful = (KernelLogistic(selection=rule, **settings).fit(X, y) for rule in ("best", "1se"))
    np.testing.assert_array_equal(best.scores_, careful.scores_)
    means, error = best.scores_.mean(axis=0), best.scores_.std(axis=0, ddof=1)[best.best_index_] / np.sqrt(3)
    assert careful.C_ == min(C for C, mean in zip(best.Cs_, means, strict=True) if mean >= means.max() - error)
    assert best.cv_results_["mean_test_score"].shape == (4,)
    assert (best.cv_results_["worst_gap"] <= 1e-6).all()


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            KernelSVC(multi_class="multinomial"),
            r"KernelSVC does not have; use KernelLogistic\(multi_class='multinomial'\)",
        ),
        (KernelDWD(multi_class="multinomial"), "or multi_class='ovo' or 'ovr'"),
        (KernelLogistic(multi_class="multinomial", tune="each"), "tune='each' gives each machine its own C"),
        (KernelLogistic(multi_class="multinomial", cv="loo"), "'ovo' or 'ovr', which have exact leave-one-out"),
        (KernelLogistic(multi_class="multinomial", solver="spectral"), "what fits: 'auto', 'newton'"),
        (KernelLogistic(multi_class="softmax"), "available: 'ovo', 'ovr', 'multinomial'"),
    ],
)
def test_what_does_not_fit_is_refused(data, estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*data)
