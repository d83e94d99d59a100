"""The unit of y changes nothing, and several targets are one fit."""

import naive
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from twin import Problem, certificate, exact_kernel

from kernelpath import KernelQuantile, KernelRegressor, KernelSVR, _core

REGRESSORS = {
    "svr": KernelSVR(),
    "quantile": KernelQuantile(tau=0.3),
    "quantiles": KernelQuantile(tau=[0.2, 0.8]),
    "huber": KernelRegressor(loss="huber"),
    "squared": KernelRegressor(),
    "expectile": KernelRegressor(loss="expectile", tau=0.8),
}
OPTIONS = {
    "auto": {},
    "spectral": {"solver": "spectral"},
    "low rank": {"low_rank": True, "n_landmarks": 30},
    "all features": {"low_rank": True, "n_landmarks": 400},
    "loo": {"cv": "loo", "Cs": 4},
    "linear": {"kernel": "linear"},
    "gammas": {"gamma": [0.1, 1.0]},
}


def sample(n=90):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, 3))
    return X, 3.0 + 40.0 * (np.sin(X[:, 0]) + 0.3 * rng.standard_normal(n))


def fitted(name, option, y, X, **rest):
    parameters = {"Cs": 8, "cv": 3} | OPTIONS[option]
    return clone(REGRESSORS[name]).set_params(**parameters).fit(X, y, **rest)


def test_the_spread_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    for y in (rng.standard_normal(51), rng.standard_cauchy(50), np.repeat([1.0, 5.0], [9, 3]), np.zeros(4), [-2.0] * 3):
        y = np.asarray(y, dtype=float)
        assert _core.spread(y) == pytest.approx(naive.spread(y), rel=1e-13)
        weight = rng.integers(0, 4, len(y)).astype(float)
        weight[0] = 1.0
        assert _core.spread(y, weight) == pytest.approx(naive.spread(y, weight), rel=1e-13)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", REGRESSORS)
def test_powers_of_two_change_no_bit(name, option):
    if option == "loo" and name == "quantiles":
        pytest.skip("as of one quantile")
    X, y = sample()
    weight = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    ours = fitted(name, option, y, X, sample_weight=weight)
    for unit in (2.0**-30, 2.0**70):
        scaled = fitted(name, option, unit * y, X, sample_weight=weight)
        np.testing.assert_array_equal(scaled.predict(X), unit * ours.predict(X))
        np.testing.assert_array_equal(scaled.gaps_, ours.gaps_)
        np.testing.assert_array_equal(scaled.best_index_, ours.best_index_)
        np.testing.assert_array_equal(scaled.objective_, unit**2 * ours.objective_)
        np.testing.assert_array_equal(scaled.oof_decision_, unit * ours.oof_decision_)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("unit", [1e5, 1e-4, 1e60])
def test_other_units_change_nothing_beyond_the_certificate(name, unit):
    X, y = sample()
    ours, scaled = (fitted(name, "auto", u * y, X) for u in (1.0, unit))
    np.testing.assert_array_equal(scaled.best_index_, ours.best_index_)
    assert (scaled.status_ == "converged").all()
    np.testing.assert_allclose(np.divide(scaled.objective_, unit**2), ours.objective_, rtol=2e-6)
    # ½‖f − f*‖² in the space of the kernel is at most P − D, and |f(x)| is at most the norm of f (k(x, x) = 1).
    slack = 4.0 * np.sqrt(2e-6 * np.max(ours.objective_))
    np.testing.assert_allclose(scaled.predict(X) / unit, ours.predict(X), atol=slack)
    assert np.abs(ours.predict(X)).max() > 20 * slack


def test_the_constants_and_the_grid_that_were_used():
    X, y = sample()
    spread = naive.spread(y)
    svr = KernelSVR(Cs=5, cv=3).fit(X, y)
    assert svr.epsilon_ == pytest.approx(0.1 * spread)
    np.testing.assert_allclose(svr.Cs_, spread * np.geomspace(1e-3, 1e3, 5))
    assert svr.C_ == svr.Cs_[svr.best_index_]
    huber = KernelRegressor(loss="huber", Cs=5, cv=3).fit(X, y)
    assert huber.delta_ == pytest.approx(spread)
    np.testing.assert_allclose(huber.Cs_, np.geomspace(1e-3, 1e3, 5))
    assert huber.set_params(loss="squared").fit(X, y).delta_ is None
    np.testing.assert_allclose(KernelQuantile(Cs=5, cv=3).fit(X, y).Cs_, spread * np.geomspace(1e-3, 1e3, 5))
    # Numbers are taken as they are.
    given = KernelSVR(epsilon=0.5, Cs=[0.1, 1.0], cv=3).fit(X, y)
    assert given.epsilon_ == 0.5
    np.testing.assert_array_equal(given.Cs_, [0.1, 1.0])
    np.testing.assert_allclose(KernelSVR(lambdas=[0.1, 1.0], cv=3).fit(X, y).lambdas_, [0.1, 1.0])


@pytest.mark.parametrize("name", ["svr", "huber", "squared", "quantile"])
@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_objectives_are_those_of_y_as_given(name, unit):
    """The twin knows y, C and the constants as they were given."""
    X, y = sample()
    model = fitted(name, "auto", unit * y, X)
    loss, constant = {
        "svr": lambda m: ("epsilon_insensitive", m.epsilon_),
        "huber": lambda m: ("huber", m.delta_),
        "squared": lambda m: ("squared", 0.0),
        "quantile": lambda m: ("quantile", 0.3),
    }[name](model)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    problem = Problem(loss, constant, unit * y, np.ones(len(y)))
    found = certificate(exact_kernel(X, X, "rbf", model.gamma_), problem, model.C_, beta, model.intercept_[0], 1e-7)
    assert found.proves(1e-6, 1e-12)
    assert float(found.primal.value) == pytest.approx(model.objective_, rel=1e-10)
    proof = model.verify(X, unit * y)
    assert proof.primal == pytest.approx(model.objective_, rel=1e-10)
    assert proof.gap <= 1e-6


@pytest.mark.parametrize("y", [np.zeros(12), np.full(12, -3.0), np.repeat([1.0, 2.0], [9, 3])])
@pytest.mark.parametrize("name", REGRESSORS)
def test_targets_of_no_spread(name, y):
    X = np.random.default_rng(0).standard_normal((12, 2))
    model = fitted(name, "auto", y, X)
    assert (model.status_ == "converged").all()
    if np.ptp(y) == 0.0:
        np.testing.assert_allclose(model.predict(X), np.broadcast_to(y[0], model.predict(X).shape), atol=1e-12)


# ------------------------------------------------------------------------------------------------- several targets

SEVERAL = {name: REGRESSORS[name] for name in ("svr", "huber", "squared", "expectile")}


def several(n=90):
    X, y = sample(n)
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((2, n))
    return X, np.column_stack([y, 1e4 * (np.cos(2.0 * X[:, 1]) + 0.1 * noise[0]), 1e-3 * (X[:, 2] + 0.5 * noise[1])])


@pytest.mark.parametrize("option", [o for o in OPTIONS if o != "gammas"])
@pytest.mark.parametrize("name", SEVERAL)
def test_each_target_is_a_fit_of_its_own(name, option):
    """To the certificate: rows are summed in another order."""
    X, Y = several()
    weight = np.random.default_rng(1).integers(1, 3, len(Y)).astype(float)
    tol = 1e-6 if option == "spectral" else 1e-8
    parameters = {"Cs": 8, "cv": 3, "dtype": "float64", "tol": tol, "tune": "each"}
    model = clone(SEVERAL[name]).set_params(**(parameters | OPTIONS[option])).fit(X, Y, sample_weight=weight)
    assert model.predict(X).shape == Y.shape
    assert (model.status_ == "converged").all()
    for k, y in enumerate(Y.T):
        alone = clone(model).fit(X, y, sample_weight=weight)
        assert alone.C_ == model.C_[k]
        np.testing.assert_array_equal(alone.Cs_, model.Cs_[k])
        assert model.objective_[k] == pytest.approx(alone.objective_, rel=2 * tol)
        slack = 10 * np.sqrt(tol) * naive.spread(y)
        np.testing.assert_allclose(model.predict(X)[:, k], alone.predict(X), atol=slack, rtol=0)
        np.testing.assert_allclose(model.oof_decision_[k], alone.oof_decision_, atol=slack, rtol=0)
        for constant in ("epsilon_", "delta_"):
            if getattr(model, constant, None) is not None:
                assert getattr(model, constant)[k] == getattr(alone, constant)


@pytest.mark.parametrize("name", SEVERAL)
def test_one_place_in_the_grid_for_all_targets(name):
    """The mean of the targets' scores, each in units of its spread, chooses; the unit of a target changes nothing."""
    X, Y = several()
    model = clone(SEVERAL[name]).set_params(Cs=8, cv=3, dtype="float64").fit(X, Y)
    growth = 1 if name == "svr" else 2
    each = clone(model).set_params(tune="each").fit(X, Y)
    units = np.array([naive.spread(y) for y in Y.T])
    relative = np.mean(each.scores_ / units[:, None, None] ** growth, axis=0)
    np.testing.assert_allclose(model.scores_, relative, rtol=1e-12)
    assert model.best_index_ == relative.mean(axis=0).argmax()
    np.testing.assert_array_equal(model.C_, model.Cs_[:, model.best_index_])
    other = clone(model).fit(X, Y * [1.0, 1e-7, 1e9])
    assert other.best_index_ == model.best_index_
    np.testing.assert_allclose(other.predict(X) / [1.0, 1e-7, 1e9] / units, model.predict(X) / units, atol=1e-4)
    proof = model.verify(X, Y)
    assert proof.gap.shape == (3,)
    assert proof.gap.max() <= 1e-6


def test_scorers_see_all_targets():
    X, Y = several()
    folds = list(KFold(3).split(X))
    model = KernelRegressor(Cs=6, cv=folds, scoring="r2").fit(X, Y)
    each = KernelRegressor(Cs=6, cv=folds, scoring="r2", tune="each").fit(X, Y)
    assert model.scores_.shape == (3, 6)
    assert each.scores_.shape == (3, 3, 6)
    np.testing.assert_allclose(model.scores_, each.scores_.mean(axis=0))
    for k, (_, test) in enumerate(folds):
        want = [[r2_score(Y[test, t], f) for f in each.oof_path_[t][test].T] for t in range(3)]
        np.testing.assert_allclose(each.scores_[:, k], want)
    assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)))


def test_several_targets_and_several_bandwidths():
    X, Y = several(60)
    for tune in ("joint", "each"):
        model = KernelSVR(gamma=[0.05, 0.3, 2.0], Cs=5, cv=3, tune=tune).fit(X, Y)
        assert model.gaps_.shape == (3, 4, 3, 5)
        assert model.scores_.shape == ((3, 3, 5) if tune == "joint" else (3, 3, 3, 5))
        assert model.gamma_ in model.gammas_
        assert model.gaps_.max() <= model.tol
        assert model.path_table().count("*") == (1 if tune == "joint" else 3)
        # The γ does not depend on units.
        scaled = clone(model).fit(X, Y * [1e3, 1e-5, 1.0])
        assert scaled.gamma_ == model.gamma_


def test_one_column_is_a_target_with_an_axis():
    X, y = sample()
    column = KernelSVR(Cs=4, cv=3).fit(X, y[:, None])
    flat = KernelSVR(Cs=4, cv=3).fit(X, y)
    np.testing.assert_array_equal(column.predict(X), flat.predict(X)[:, None])
    assert column.C_.shape == (1,)
    np.testing.assert_array_equal(column.C_[0], flat.C_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda Y: np.where(np.arange(Y.size).reshape(Y.shape) == 7, np.nan, Y), "y contains NaN"),
        (lambda Y: np.where(np.arange(Y.size).reshape(Y.shape) == 7, "a", Y.astype(object)), "row 2, column 1 is 'a'"),
    ],
)
def test_bad_targets_are_named(change, message):
    X, Y = several(20)
    with pytest.raises(ValueError, match=message):
        KernelRegressor().fit(X, change(Y))


@pytest.mark.parametrize("model", [KernelSVR(epsilon="wide"), KernelRegressor(loss="huber", delta=-1.0)])
def test_bad_constants_name_auto(model):
    X, y = sample(20)
    with pytest.raises((TypeError, ValueError), match="or pass 'auto', .* times the spread of y"):
        model.fit(X, y)


def test_bad_tune():
    X, Y = several(20)
    with pytest.raises(ValueError, match="tune='both' is not available; available: 'joint', 'each'"):
        KernelSVR(tune="both").fit(X, Y)
