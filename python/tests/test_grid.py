"""Any list of C's: repeated, nearly equal, in any order, far apart, and beyond what doubles can hold."""

import pathlib
import re
import warnings

import numpy as np
import pytest
from children import finished_within
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kernelpath import (
    GridEdgeWarning,
    KernelDWD,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
    NystromFeatures,
)

REPEATED = np.r_[np.geomspace(0.1, 1, 3), np.geomspace(1, 100, 4)]
ESTIMATORS = {
    "svc": (KernelSVC, {}),
    "logistic": (KernelLogistic, {}),
    "dwd": (KernelDWD, {}),
    "quantile": (KernelQuantile, {"tau": 0.3}),
    "svr": (KernelSVR, {}),
    "squared": (KernelRegressor, {"loss": "squared"}),
    "huber": (KernelRegressor, {"loss": "huber"}),
    "expectile": (KernelRegressor, {"loss": "expectile", "tau": 0.2}),
    "multinomial": (KernelLogistic, {"multi_class": "multinomial"}),
}
LOW_RANK = {"low_rank": True, "n_landmarks": 20}
KINDS = {"exact": {}, "spectral": {"solver": "spectral"}, "low rank": LOW_RANK}


def cases():
    for name in ESTIMATORS:
        for kind in KINDS:
            if (name, kind) != ("multinomial", "spectral"):
                yield name, kind


def made(name, kind, **settings):
    cls, constants = ESTIMATORS[name]
    return cls(random_state=0, **constants, **KINDS[kind], **settings)


def problem(name, n=60):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, 3))
    f = X[:, 0] - 0.5 * X[:, 1] + 0.7 * rng.standard_normal(n)
    if name == "multinomial":
        return X, np.digitize(f, [-0.5, 0.5])
    return X, np.where(f > 0, 1, -1) if name in ("svc", "logistic", "dwd") else f


@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_equal_cs_have_equal_results(name, kind):
    X, y = problem(name)
    model = made(name, kind, Cs=REPEATED, cv=3).fit(X, y)
    assert not np.isnan(model.scores_).any()
    assert model.gaps_.max() <= 1e-6
    np.testing.assert_array_equal(model.scores_[:, 2], model.scores_[:, 3])
    np.testing.assert_array_equal(model.gaps_[:, 2], model.gaps_[:, 3])
    if name != "multinomial":
        np.testing.assert_array_equal(model.oof_path_[:, 2], model.oof_path_[:, 3])
    # Neither repeating a C nor the order changes anything.
    unique = made(name, kind, Cs=np.unique(REPEATED)[::-1], cv=3).fit(X, y)
    np.testing.assert_array_equal(np.unique(REPEATED, return_inverse=True)[1], [0, 1, 2, 2, 3, 4, 5])
    np.testing.assert_array_equal(unique.scores_[:, ::-1][:, [0, 1, 2, 2, 3, 4, 5]], model.scores_)
    assert unique.C_ == model.C_


@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_cs_that_differ_by_rounding_only(name, kind):
    X, y = problem(name)
    Cs = [3.0, 1.0, np.nextafter(1.0, 2.0), np.nextafter(3.0, 4.0), 50.0]
    model = made(name, kind, Cs=Cs, cv=3).fit(X, y)
    assert model.gaps_.max() <= 1e-6
    np.testing.assert_allclose(model.scores_[:, 1], model.scores_[:, 2], atol=1e-2)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_cs_beyond_doubles_are_refused(name):
    X, y = problem(name)
    for Cs, place in (([1.0, 1e-310], "1e-310 (Cs[1])"), ([1e308, 1.0], "1e308 (Cs[0])")):
        with pytest.raises(ValueError, match="cannot represent") as caught:
            made(name, "exact", Cs=Cs, cv=3).fit(X, y)
        assert place in str(caught.value)
        assert "C must be between" in str(caught.value)
    with pytest.raises(ValueError, match=r"the smallest weight \(1e-160\)"):
        made(name, "exact", Cs=[1.0], cv=None).fit(X, y, sample_weight=np.where(np.arange(len(y)) == 3, 1e-160, 1.0))


def test_lambdas_are_named_as_given():
    X, y = problem("svc")
    with pytest.raises(ValueError, match=r"lambdas\[1\]"):
        KernelSVC(lambdas=[1e-2, 1e300], cv=3).fit(X, y)
    with pytest.raises(ValueError, match=r"lambdas\[0\]"):
        KernelSVC(lambdas=[1e-310, 1.0], cv=3).fit(X, y)


CHILD = """
import warnings
warnings.simplefilter("ignore")
import sys
sys.path.insert(0, {folder!r})
from test_grid import cases, made, problem
for name, kind in cases():
    X, y = problem(name)
    try:
        model = made(name, kind, Cs={Cs}, cv=3).fit(X, y)
        assert not (model.status_ == "not_run").any(), (name, kind)
        print(name, kind, "solved", flush=True)
    except ValueError as error:
        assert "cannot represent" in str(error), (name, kind, error)
        print(name, kind, "refused", flush=True)
"""


@pytest.mark.parametrize(
    ("Cs", "answer"),
    [("[1, 1e-310]", "refused"), ("[1, 1e308]", "refused"), ("[1e-150, 1e150]", "solved"), ("[1e-30, 1e30]", "solved")],
)
def test_extreme_cs_end(Cs, answer):
    """In a process of its own: what hangs or panics must not take the tests with it."""
    folder = str(pathlib.Path(__file__).parent)
    lines = finished_within(180.0, CHILD.format(folder=folder, Cs=Cs)).splitlines()
    assert lines == [f"{name} {kind} {answer}" for name, kind in cases()]


@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_wide_grids_in_any_order(name, kind):
    X, y = problem(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = made(name, kind, Cs=[1e8, 1e-8, 1.0, 1e-4, 1e3], cv=3).fit(X, y)
    assert np.isfinite(model.gaps_).all()
    assert (model.status_[:, 1:4] == "converged").all()


@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_weights_of_wide_ratios_and_zeros(name, kind):
    X, y = problem(name, 90)
    weight = np.array([1.0, 0.0, 1e-6, 1.0, 1e6])[np.arange(90) % 5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = made(name, kind, Cs=[1e-3, 1.0], cv=3).fit(X, y, sample_weight=weight)
    assert np.isfinite(model.gaps_).all()
    assert (model.status_ == "converged").mean() > 0.7


# ------------------------------------------------------------------------------------------- the edge of the grid


def rings(n=300):
    """Classes that need a large C, in rings."""
    rng = np.random.default_rng(0)
    angle, outer = rng.uniform(0, 2 * np.pi, n), rng.integers(0, 2, n)
    radius = 1.0 + 0.5 * outer + 0.1 * rng.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), outer


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"Cs": [1e-3, 1e-2, 0.1]},
            r"The chosen C=0.1 is the largest of the 3 tried.*Pass larger values, too, in Cs",
        ),
        ({"Cs": [0.1, 1e-3, 1e-2]}, r"from C=0.01. Pass larger values, too, in Cs"),
        (
            {"lambdas": [0.01, 1.0, 10.0]},
            r"The chosen lambda=0.01 is the smallest.*Pass smaller values, too, in lambdas",
        ),
        (
            {"Cs": 1.0, "gamma": [1e-3, 1e-2, 0.1]},
            r"The chosen gamma=0.1 is the largest.*Pass larger values.*in gamma",
        ),
        ({"Cs": 1.0, "gamma": [3e3, 1e3, 1e2]}, r"The chosen gamma=100 is the smallest.*Pass smaller values.*in gamma"),
        ({"Cs": [1e-2, 0.1], "cv": "loo"}, r"The chosen C=0.1 is the largest"),
    ],
)
def test_a_score_that_rises_at_the_edge_is_said(parameters, message):
    X, y = rings()
    with pytest.warns(GridEdgeWarning, match=message) as record:
        model = KernelSVC(**({"gamma": 1.0, "cv": 5} | parameters), scoring=None).fit(X, y)
    assert len(record) == 1
    # The rise and its standard error are those of the scores.
    if "lambdas" not in parameters and "cv" not in parameters and np.ndim(parameters["Cs"]):
        inner = list(model.Cs_).index(1e-2)
        rise = model.scores_[:, model.best_index_] - model.scores_[:, inner]
        error = rise.std(ddof=1) / np.sqrt(5)
        said = re.search(r"by (\S+) ± (\S+) from", str(record[0].message))
        assert [float(number) for number in said.groups()] == pytest.approx([rise.mean(), error], rel=0.05)
        assert rise.mean() > error


@pytest.mark.parametrize(
    "parameters",
    [
        {"Cs": [0.1, 1.0, 10.0, 100.0, 1000.0]},  # a plateau
        {"Cs": 1.0},
        {"Cs": 1.0, "cv": None},
        {"Cs": [1e-4, 1e-3, 1e-2], "selection": "1se", "gamma": 1e-6},  # nothing to learn: no rise
    ],
)
def test_no_word_where_the_score_does_not_rise(parameters):
    X, y = rings()
    with warnings.catch_warnings():
        warnings.simplefilter("error", GridEdgeWarning)
        KernelSVC(**({"gamma": 1.0, "cv": 5} | parameters)).fit(X, y)


def test_each_machine_and_level_has_its_own_word():
    X, y = rings()
    target = X[:, 0] * X[:, 1]
    with pytest.warns(GridEdgeWarning, match=r"tau=0.2: The chosen C=0.1(.|\n)*tau=0.8: The chosen C=0.1"):
        KernelQuantile(tau=[0.2, 0.8], Cs=[1e-2, 0.1], gamma=1.0).fit(X, target)
    labels = y + 2 * (X[:, 0] > 0)
    with pytest.warns(GridEdgeWarning, match=r"^The chosen C=0.1"):
        KernelSVC(Cs=[1e-2, 0.1], gamma=1.0).fit(X, labels)
    with pytest.warns(GridEdgeWarning, match=r"0 against 1: The chosen C=0.1"):
        KernelSVC(Cs=[1e-2, 0.1], gamma=1.0, tune="each").fit(X, labels)


@pytest.mark.parametrize(
    "model", [KernelSVC(), KernelSVC(low_rank=True, n_landmarks=30), KernelQuantile(), KernelLogistic(Cs=5)]
)
def test_the_same_data_has_the_same_answer(model):
    """Folds, bandwidths and landmarks are drawn from seed 0 unless another is given."""
    X, y = rings(150)
    first, second, seeded = (clone(model).set_params(**p).fit(X, y) for p in ({}, {}, {"random_state": 0}))
    np.testing.assert_array_equal(first.scores_, second.scores_)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    np.testing.assert_array_equal(first.scores_, seeded.scores_)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(first.scores_, other.scores_)


def test_the_same_features_each_time():
    X, _ = rings(150)
    first, second = (NystromFeatures(n_landmarks=20).fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
