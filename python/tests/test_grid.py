"""Any list of C's: repeated, nearly equal, in any order, far apart, and beyond what doubles can hold."""

import numpy as np
import pytest

from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR

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


@pytest.mark.parametrize(("name", "kind"), cases())
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


@pytest.mark.parametrize(("name", "kind"), cases())
def test_cs_that_differ_by_rounding_only(name, kind):
    X, y = problem(name)
    Cs = [3.0, 1.0, np.nextafter(1.0, 2.0), np.nextafter(3.0, 4.0), 50.0]
    model = made(name, kind, Cs=Cs, cv=3).fit(X, y)
    assert model.gaps_.max() <= 1e-6
    np.testing.assert_allclose(model.scores_[:, 1], model.scores_[:, 2], atol=1e-2)
